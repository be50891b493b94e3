//! The evaluator: plain recursion over nested values. It defines the meaning of programs and is the reference
//! for compiled code.
//!
//! A body is evaluated as written, except that tail calls need no stack. Every run has limits on steps, on
//! the bytes of live sequences and on the depth of calls. Exceeding a limit is an error that names the
//! function.

mod code;
pub(crate) mod conditions;
mod data;
mod fault;
mod files;
mod generic;
mod host;
mod instance;
mod number;
mod object;
mod run;
mod scalar;
mod sequence;
mod show;
mod stream;
mod value;

pub(crate) use code::CodeId;
pub use fault::Fault;
pub(crate) use fault::Run;
pub use host::{Host, SealedHost, System};
pub use number::format_float;
pub use show::show_value;
pub(crate) use value::Charge;
pub use value::{Function, Meter, Seq, Value};

use crate::core::{Body, DefId, Environment};
use crate::infer::Widths;
use crate::types::{Base, Type, TypeId};
use crate::vcode::Layout;
use broadloom_device::{Stop, StopReason};
use broadloom_diag::{SourceId, Span};
use broadloom_random::Random;
use cranelift_entity::SecondaryMap;
use std::rc::Rc;
use std::time::Instant;
use stream::Files;
pub(crate) use stream::StreamError;

/// Limits of a run and widths of numbers.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Widths of numbers.
    pub widths: Widths,
    /// Maximum number of expressions that one top-level form may evaluate.
    pub max_steps: u64,
    /// Maximum number of bytes of live sequences.
    pub max_bytes: usize,
    /// Maximum depth of calls; tail calls do not count.
    pub max_depth: u32,
    /// Flag that ends a run when a timer or a signal sets it. The rest of the text is dropped.
    pub stop: Option<&'static Stop>,
    /// True if a form that reaches a limit of these options ends the text, as in a check.
    pub ends_at_limit: bool,
}

impl Options {
    /// Tells whether the run must end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(Stop::is_requested)
    }

    /// Returns the error of a run that was stopped.
    pub(crate) fn stopped(&self) -> Box<Fault> {
        let reason = self.stop.and_then(Stop::reason).unwrap_or(StopReason::TimeLimit);
        Fault::new(crate::codes::INTERRUPTED, format!("the run was stopped by {reason}"))
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            widths: Widths { wide_int: false, narrow_float: false },
            max_steps: 2_000_000_000,
            max_bytes: 4 << 30,
            max_depth: 100_000,
            stop: None,
            ends_at_limit: false,
        }
    }
}

/// State that outlives a run: instances of functions, values of global variables, open streams, the timer,
/// the state of the random generator.
pub(crate) struct EvaluatorState {
    pub(crate) options: Options,
    codes: code::Codes,
    pub(crate) globals: SecondaryMap<DefId, Option<Value>>,
    meter: Rc<Meter>,
    random: Random,
    files: Files,
    timer: Instant,
    /// The last source of the library. Errors in the library are shown at the call in the program.
    pub(crate) library: Option<SourceId>,
    /// Maximum stack size of a run in bytes.
    pub(crate) stack: usize,
}

impl EvaluatorState {
    pub(crate) fn new(options: Options, stack: usize) -> Self {
        EvaluatorState {
            options,
            codes: code::Codes::default(),
            globals: SecondaryMap::new(),
            meter: Meter::new(options.max_bytes),
            random: Random::new(0),
            files: Files::default(),
            timer: Instant::now(),
            library: None,
            stack,
        }
    }

    /// Returns the types that replace the type variables in the code of a function value.
    pub(crate) fn instance_of(&self, value: &Value) -> Vec<TypeId> {
        match value {
            Value::Function(function) => self.codes.instance(function.code),
            _ => vec![],
        }
    }

    /// Replaces the instances of a definition that has changed.
    pub(crate) fn renew(&mut self, env: &mut Environment, definition: DefId) {
        self.codes.renew(env, definition);
    }
}

struct TailCall {
    code: CodeId,
    captured: Option<Rc<Function>>,
    argument: Value,
    site: Span,
}

/// A run.
pub(crate) struct Evaluation<'a> {
    env: &'a mut Environment,
    state: &'a mut EvaluatorState,
    host: &'a mut dyn Host,
    out: &'a mut dyn FnMut(&[u8]),
    steps: u64,
    depth: u32,
    /// The stack address at the start.
    base: usize,
    /// A tail call that the caller executes.
    pending: Option<TailCall>,
}

impl<'a> Evaluation<'a> {
    pub(crate) fn new(
        env: &'a mut Environment,
        state: &'a mut EvaluatorState,
        host: &'a mut dyn Host,
        out: &'a mut dyn FnMut(&[u8]),
    ) -> Self {
        let here = 0u8;
        Evaluation { env, state, host, out, steps: 0, depth: 0, base: std::ptr::from_ref(&here).addr(), pending: None }
    }

    pub(crate) fn options(&self) -> &Options {
        &self.state.options
    }

    /// Returns the start time of the timer.
    pub(crate) fn timer(&mut self) -> &mut Instant {
        &mut self.state.timer
    }

    pub(crate) fn meter(&self) -> &Rc<Meter> {
        &self.state.meter
    }

    /// Returns the type with this layout.
    pub(crate) fn type_of(&mut self, layout: &Layout) -> TypeId {
        let ty = match layout {
            Layout::Int | Layout::Nothing => Type::Base(Base::Int),
            Layout::Float => Type::Base(Base::Float),
            Layout::Bool => Type::Base(Base::Bool),
            Layout::Char => Type::Base(Base::Char),
            Layout::Seq(element) => Type::Seq(self.type_of(element)),
            Layout::Pair(first, rest) => Type::Pair(self.type_of(first), self.type_of(rest)),
        };
        self.env.types.intern(ty)
    }

    /// Evaluates a top-level expression.
    pub(crate) fn evaluate(&mut self, body: &Body) -> Run<Value> {
        let code = self.top_level(body);
        self.start(&code)
    }
}
