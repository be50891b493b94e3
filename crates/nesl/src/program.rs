//! Functions of NESL programs, compiled once and called from Rust with arrays.
//!
//! Arguments and results are [`Column`]s: flat vectors, of the host or of the device, in the order in which
//! the type names them. A nested sequence has a column of offsets before those of its elements, as in Arrow:
//! one more than there are inner sequences, the first 0. A pair has the columns of its parts. The type
//! `([[float]], int)` therefore has three columns: offsets, floats and one int. Arrays of the device are not
//! copied.
//!
//! ```
//! use broadloom_nesl::program::{Column, Program};
//! use broadloom_nesl::run::Target;
//!
//! let text = "function sums(rows) : [[float]] -> [float] = {sum(row) : row in rows};";
//! let mut program = Program::new(text, "sums", Default::default(), Target::new(|| Err("no device is needed".to_owned())))?;
//! let rows = [Column::Ints(vec![0, 2, 2, 3]), Column::Floats(vec![1.0, 2.0, 3.5])];
//! assert_eq!(program.call(&rows)?, [Column::Floats(vec![3.0, 0.0, 3.5])]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use crate::run::Column;
pub use crate::session::Failure;

use crate::eval::{Options, SealedHost};
use crate::run::{LaunchedCall, Statistics, Target, Templates};
use crate::session::{Engine, Output, Session, Settings};
use broadloom_graph::Context;

/// Call that [`Program::submit`] began: its kernels are launched, and errors may still occur.
#[derive(Debug)]
pub struct Pending(CallState);

#[derive(Debug)]
enum CallState {
    /// The call has finished.
    Finished(Vec<Column>),
    /// The kernels of a template run. The arguments are kept for a call by the machine, in case a condition
    /// does not hold.
    Launched(LaunchedCall, Vec<Column>),
}

impl Pending {
    /// Returns the results of a finished call.
    pub fn results(&self) -> Option<&[Column]> {
        match &self.0 {
            CallState::Finished(results) => Some(results),
            CallState::Launched(..) => None,
        }
    }
}

/// Compiled function.
///
/// If the function has no branch on data, repeated calls with arrays of the device are launched from a
/// template. Such a call executes no instruction and needs no other thread. A template serves all sizes for
/// which the function does the same.
pub struct Program {
    session: Session,
    /// `None` if the machine executes every call.
    templates: Option<Templates>,
}

impl Program {
    /// Reads a text, and compiles one of its functions. The type of the function must have no variables; the
    /// text can declare a type without them.
    pub fn new(text: &str, function: &str, options: Options, target: Target) -> Result<Program, Failure> {
        let templates = target.has_templates().then(Templates::new);
        let settings = Settings { options, engine: Engine::Vcode, ..Settings::default() };
        let session = Session::with_device(settings, Box::new(SealedHost), target);
        let mut session = session.map_err(|error| Failure(format!("there is no thread for the program: {error}")))?;
        for output in session.eval("program", text) {
            if let Output::Error(report) = output {
                return Err(Failure(report.text));
            }
        }
        session.compile(function)?;
        Ok(Program { session, templates })
    }

    /// Calls the function. Results on the device stay there. Waits for the device if the function can fail or
    /// a length depends on data.
    pub fn call(&mut self, arguments: &[Column]) -> Result<Vec<Column>, Failure> {
        let pending = self.submit(arguments)?;
        self.finish(pending)
    }

    /// Begins a call. The host does not wait for a call that is launched from a template, so several calls
    /// can be under way; [`Program::finish`] returns the results. Other calls are executed at once.
    ///
    /// ```
    /// # use broadloom_nesl::program::{Column, Program};
    /// # use broadloom_nesl::run::Target;
    /// # let text = "function inverses(a) : [float] -> [float] = {1.0 / x : x in a};";
    /// # let target = Target::new(|| Err("no device is needed".to_owned()));
    /// # let mut program = Program::new(text, "inverses", Default::default(), target)?;
    /// let first = program.submit(&[Column::Floats(vec![2.0])])?;
    /// let second = program.submit(&[Column::Floats(vec![4.0])])?;
    /// assert_eq!(program.finish(first)?, [Column::Floats(vec![0.5])]);
    /// assert_eq!(program.finish(second)?, [Column::Floats(vec![0.25])]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn submit(&mut self, arguments: &[Column]) -> Result<Pending, Failure> {
        let Program { session, templates } = self;
        let launch =
            |templates: &mut Templates| templates.launch(arguments, |is_general| session.trace(arguments.to_vec(), is_general));
        Ok(Pending(match templates.as_mut().and_then(launch) {
            Some(launched) => CallState::Launched(launched, arguments.to_vec()),
            None => CallState::Finished(session.call(arguments.to_vec())?),
        }))
    }

    /// Returns the results or the error of a call. Waits for the device under the conditions of
    /// [`Program::call`].
    pub fn finish(&mut self, pending: Pending) -> Result<Vec<Column>, Failure> {
        match pending.0 {
            CallState::Finished(results) => Ok(results),
            CallState::Launched(launched, arguments) => match self.templates.as_mut().and_then(|own| own.finish(&launched)) {
                Some(results) => Ok(results),
                None => self.session.call(arguments),
            },
        }
    }

    /// Returns the context of the device, in which columns of the device are made. Opens it if necessary.
    pub fn context(&mut self) -> Result<Context, Failure> {
        self.session.context()
    }

    /// Returns the counters of the work of the device.
    pub fn statistics(&mut self) -> Statistics {
        let done = self.session.statistics();
        let (calls, waits) = self.templates.as_ref().map_or((0, 0), |own| (own.calls, own.waits));
        Statistics { waits: done.waits + waits, templates: calls, ..done }
    }
}
