//! A session: the top level of NESL.
//!
//! A session reads forms, executes them in order and answers each with its value, its type, its output or its
//! errors. After an error it continues, and older definitions stay. It runs on a separate thread with a large
//! stack, so deep recursion of a program ends in an error and never terminates the process.

mod advice;
mod call;
mod command;
mod compiled;
mod define;
mod function;
mod library;
mod output;
mod settings;
mod worker;

pub use command::SETTINGS;
pub use output::{Binding, Failure, Output, Report};
pub use settings::{Engine, Settings};
#[doc(hidden)]
pub use worker::verify_library;

use crate::codes;
use crate::eval::Host;
use crate::run::{Accelerator, CallTemplate, Column, Statistics, Target};
use broadloom_diag::{Diagnostic, Diagnostics};
use broadloom_graph::Context;
use std::sync::mpsc::{Receiver, RecvError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use worker::{STACK, Worker};

enum Request {
    Eval { name: String, text: String, lines_before: u32 },
    Names(String),
    Statistics,
    Compile(String),
    Call(Vec<Column>),
    Trace(Vec<Column>, bool),
    Context,
}

enum Reply {
    Output(Output),
    Names(Vec<String>),
    Statistics(Statistics),
    Columns(Result<Vec<Column>, Failure>),
    Template(Option<Box<CallTemplate>>),
    Context(Result<Context, Failure>),
    /// A request is done; the flag tells whether the session continues.
    Done(bool),
}

/// The top level: definitions and the state that outlives an expression.
pub struct Session {
    requests: Option<Sender<Request>>,
    replies: Receiver<Reply>,
    thread: Option<JoinHandle<()>>,
    open: bool,
}

/// Maximum time that a thread polls for a message before it sleeps. Waking a thread takes longer than many
/// calls.
const POLLING: Duration = Duration::from_micros(100);

/// Waits for a message. With `is_eager`, polls for it first.
fn receive<T>(messages: &Receiver<T>, is_eager: bool) -> Result<T, RecvError> {
    let start = Instant::now();
    while is_eager && start.elapsed() < POLLING {
        match messages.try_recv() {
            Ok(message) => return Ok(message),
            Err(TryRecvError::Disconnected) => return Err(RecvError),
            Err(TryRecvError::Empty) => std::hint::spin_loop(),
        }
    }
    messages.recv()
}

impl Session {
    /// Starts a session and loads the library. Fails if the machine cannot start a thread.
    pub fn new(settings: Settings, host: Box<dyn Host>) -> std::io::Result<Session> {
        Session::start(settings, host, None)
    }

    /// Starts a session whose large vectors are on a device. It executes flattened code.
    pub fn with_device(settings: Settings, host: Box<dyn Host>, target: Target) -> std::io::Result<Session> {
        Session::start(Settings { engine: Engine::Vcode, ..settings }, host, Some(target))
    }

    fn start(settings: Settings, host: Box<dyn Host>, target: Option<Target>) -> std::io::Result<Session> {
        let (requests, incoming) = channel::<Request>();
        let (outgoing, replies) = channel::<Reply>();
        let body = move || {
            let sink = outgoing.clone();
            // A caller that is gone receives no answers.
            let sink = Box::new(move |output| drop(sink.send(Reply::Output(output))));
            let mut worker = Worker::new(settings, host, target.map(Accelerator::new), sink);
            // A call is often followed by another.
            let mut is_eager = false;
            while let Ok(request) = receive(&incoming, is_eager) {
                is_eager = matches!(request, Request::Call(_) | Request::Trace(..));
                let reply = match request {
                    Request::Eval { name, text, lines_before } => Reply::Done(worker.eval(&name, &text, lines_before)),
                    Request::Names(prefix) => Reply::Names(worker.names(&prefix)),
                    Request::Context => Reply::Context(worker.context()),
                    Request::Compile(name) => Reply::Columns(worker.compile_function(&name).map(|()| vec![])),
                    Request::Call(arguments) => Reply::Columns(worker.call_function(arguments)),
                    Request::Trace(arguments, general) => {
                        Reply::Template(worker.trace_function(&arguments, general).map(Box::new))
                    }
                    Request::Statistics => {
                        Reply::Statistics(worker.accelerator.as_ref().map(Accelerator::statistics).unwrap_or_default())
                    }
                };
                if outgoing.send(reply).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("nesl".to_owned()).stack_size(STACK).spawn(body)?;
        Ok(Session { requests: Some(requests), replies, thread: Some(thread), open: true })
    }

    /// Sets the variable `arguments`: the arguments of the program.
    pub fn set_arguments(&mut self, arguments: &[String]) {
        let quoted = |text: &String| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let texts: Vec<String> = arguments.iter().map(quoted).collect();
        let value = if texts.is_empty() { "[] [char]".to_owned() } else { format!("[{}]", texts.join(", ")) };
        self.eval_each("arguments", &format!("arguments = {value};"), |_| {});
    }

    /// Executes a text and returns the answers. `name` identifies the text in messages.
    pub fn eval(&mut self, name: &str, text: &str) -> Vec<Output> {
        let mut outputs = vec![];
        self.eval_each(name, text, |output| outputs.push(output));
        outputs
    }

    /// Executes a text and passes on each answer as it comes. Returns whether the session continues.
    pub fn eval_each(&mut self, name: &str, text: &str, take: impl FnMut(Output)) -> bool {
        self.eval_part(name, text, 0, take)
    }

    /// Executes a part of a text like [`Session::eval_each`]. Line numbers in messages count from the start
    /// of the whole text.
    pub fn eval_part(&mut self, name: &str, text: &str, lines_before: u32, mut take: impl FnMut(Output)) -> bool {
        if !self.open {
            return false;
        }
        let request = Request::Eval { name: name.to_owned(), text: text.to_owned(), lines_before };
        if self.requests.as_ref().is_some_and(|requests| requests.send(request).is_ok()) {
            while let Ok(reply) = self.replies.recv() {
                match reply {
                    Reply::Output(output) => take(output),
                    Reply::Names(_) | Reply::Statistics(_) | Reply::Columns(_) | Reply::Template(_) | Reply::Context(_) => {}
                    Reply::Done(more) => {
                        self.open = more;
                        return more;
                    }
                }
            }
        }
        self.open = false;
        let error = Diagnostic::error(codes::RUN_TIME, "internal error: the evaluator stopped; please report the program");
        let text = format!("Error[{}]: {}\n", error.code, error.message);
        take(Output::Error(Report { diagnostics: Diagnostics::from(error), text }));
        false
    }

    /// Compiles a defined function for [`Session::call`].
    pub(crate) fn compile(&mut self, name: &str) -> Result<(), Failure> {
        self.columns(Request::Compile(name.to_owned())).map(|_| ())
    }

    /// Calls the compiled function.
    pub(crate) fn call(&mut self, arguments: Vec<Column>) -> Result<Vec<Column>, Failure> {
        self.columns(Request::Call(arguments))
    }

    /// Traces a call of the compiled function, for all sizes if requested and possible. Returns `None` for a
    /// call that has no template.
    pub(crate) fn trace(&mut self, arguments: Vec<Column>, is_general: bool) -> Option<CallTemplate> {
        self.requests.as_ref()?.send(Request::Trace(arguments, is_general)).ok()?;
        while let Ok(reply) = receive(&self.replies, true) {
            if let Reply::Template(template) = reply {
                return template.map(|template| *template);
            }
        }
        None
    }

    /// Opens the device unless it is open.
    pub(crate) fn context(&mut self) -> Result<Context, Failure> {
        if self.requests.as_ref().is_some_and(|requests| requests.send(Request::Context).is_ok()) {
            while let Ok(reply) = self.replies.recv() {
                if let Reply::Context(context) = reply {
                    return context;
                }
            }
        }
        Err(Failure("internal error: the machine stopped; please report the program".to_owned()))
    }

    fn columns(&mut self, request: Request) -> Result<Vec<Column>, Failure> {
        if self.requests.as_ref().is_some_and(|requests| requests.send(request).is_ok()) {
            while let Ok(reply) = receive(&self.replies, true) {
                if let Reply::Columns(columns) = reply {
                    return columns;
                }
            }
        }
        Err(Failure("internal error: the machine stopped; please report the program".to_owned()))
    }

    /// Returns the counters of the work of the session's device.
    pub fn statistics(&mut self) -> Statistics {
        if self.requests.as_ref().is_some_and(|requests| requests.send(Request::Statistics).is_ok()) {
            while let Ok(reply) = self.replies.recv() {
                if let Reply::Statistics(statistics) = reply {
                    return statistics;
                }
            }
        }
        Statistics::default()
    }

    /// Returns the defined names that begin with a text, for completion.
    pub fn names(&mut self, prefix: &str) -> Vec<String> {
        let request = Request::Names(prefix.to_owned());
        if self.requests.as_ref().is_some_and(|requests| requests.send(request).is_ok()) {
            while let Ok(reply) = self.replies.recv() {
                if let Reply::Names(names) = reply {
                    return names;
                }
            }
        }
        vec![]
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Worker {
    fn names(&self, prefix: &str) -> Vec<String> {
        let prefix = prefix.to_ascii_lowercase();
        self.env.names.keys().filter(|name| name.as_str().starts_with(&prefix)).map(ToString::to_string).collect()
    }
}
