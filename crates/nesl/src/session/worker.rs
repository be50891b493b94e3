//! The state of a session and the execution of forms.

use super::function::CompiledFunction;
use super::output::{Report, placed};
use super::{Engine, Output, Settings};
use crate::codes;
use crate::core::{Body, DefId, Environment, verify_all};
use crate::eval::{Evaluation, EvaluatorState, Fault, Host, SealedHost, Value};
use crate::invariant::BrokenInvariant;
use crate::run::Accelerator;
use crate::syntax::{FormKind, Program, parse};
use crate::vcode;
use broadloom_device::trace;
use broadloom_diag::{Diagnostic, Diagnostics, Sources, Span};
use std::sync::Arc;

/// Bytes of stack of the thread of a session.
pub(super) const STACK: usize = 512 << 20;

/// Maximum nesting depth of files that load files.
const MAX_LOADS: u32 = 16;

/// Maximum size in bytes of a text that a session reads.
const MAX_TEXT: usize = 256 << 20;

/// Variable with the expression that it is bound to.
pub(super) type Variable = (DefId, Arc<Body>);

pub(super) struct Worker {
    pub(super) env: Environment,
    pub(super) sources: Sources,
    pub(super) state: EvaluatorState,
    pub(super) host: Box<dyn Host>,
    pub(super) sink: Box<dyn FnMut(Output)>,
    pub(super) print_length: usize,
    pub(super) accelerator: Option<Accelerator>,
    engine: Engine,
    pub(super) function: Option<CompiledFunction>,
    /// Programs that are not written yet.
    emitted: Vec<vcode::Program>,
    pub(super) loading_library: bool,
    /// Variables of the library that were bound while it was read.
    pub(super) variables: Vec<Variable>,
    pub(super) last_file: Option<String>,
    pub(super) verbose: bool,
    /// True if results are printed; false while a file is loaded.
    showing: bool,
    loads: u32,
    leaving: bool,
    /// True if a form of this text has reached a limit.
    at_limit: bool,
}

impl Worker {
    pub(super) fn new(
        settings: Settings,
        host: Box<dyn Host>,
        accelerator: Option<Accelerator>,
        sink: Box<dyn FnMut(Output)>,
    ) -> Self {
        let mut worker = Worker {
            env: Environment::default(),
            sources: Sources::new(),
            state: EvaluatorState::new(settings.options, STACK),
            host,
            sink,
            print_length: settings.print_length,
            accelerator,
            engine: Engine::Evaluator,
            function: None,
            emitted: vec![],
            loading_library: true,
            variables: vec![],
            last_file: None,
            verbose: true,
            showing: false,
            loads: 0,
            leaving: false,
            at_limit: false,
        };
        worker.load_library();
        worker.engine = settings.engine;
        worker.loading_library = false;
        worker.showing = true;
        worker
    }

    pub(super) fn emit(&mut self, output: Output) {
        let shown = match &output {
            Output::Result(_) => self.showing && !self.emits(),
            Output::Note(_) => !self.loading_library,
            Output::Text(_) | Output::Error(_) | Output::Exit => true,
        };
        if shown {
            (self.sink)(output);
        }
    }

    /// Executes a text that follows `lines_before` lines of a file. Returns whether the session continues.
    pub(super) fn eval(&mut self, name: &str, text: &str, lines_before: u32) -> bool {
        let source = self.sources.add_part(name, text, lines_before);
        if text.len() > MAX_TEXT {
            let message = format!("the text is larger than {} MiB", MAX_TEXT >> 20);
            self.report(&Diagnostic::error(codes::LOAD, message).into());
            return true;
        }
        let program = parse(source, text);
        self.at_limit = false;
        self.forms(&program);
        if self.loads == 0 && !self.emitted.is_empty() {
            let program = vcode::Program::in_order(std::mem::take(&mut self.emitted));
            (self.sink)(Output::Text(program.to_string().into_bytes()));
        }
        !self.leaving
    }

    /// Tells whether the engine answers with code instead of values.
    fn emits(&self) -> bool {
        matches!(self.engine, Engine::EmitVcode | Engine::EmitFlat)
    }

    pub(super) fn forms(&mut self, program: &Program) {
        for (index, form) in program.forms.iter().enumerate() {
            let _span = (!self.loading_library).then(|| trace::span_with(|| format!("form {}", index + 1)));
            let done = self.form(program, &form.kind, form.span);
            if let Err(diagnostics) = &done {
                self.report(diagnostics);
            }
            if self.leaving {
                return;
            }
            if self.state.options.is_stopped() {
                // A stop between two forms drops the rest of the text.
                if done.is_ok() && index + 1 < program.forms.len() {
                    let fault = self.state.options.stopped();
                    self.report(&fault.diagnostic().into());
                }
                return;
            }
            let is_limit = |error: &Diagnostic| codes::LIMITS.contains(&error.code);
            self.at_limit |= done.is_err_and(|diagnostics| diagnostics.iter().any(is_limit));
            if self.state.options.ends_at_limit && self.at_limit {
                return;
            }
        }
    }

    fn form(&mut self, program: &Program, form: &FormKind, span: Span) -> Result<(), Diagnostics> {
        match form {
            FormKind::Function(function) => self.define_function(&program.ast, function, span),
            FormKind::Datatype(datatype) => self.define_datatype(&program.ast, datatype),
            FormKind::Bind(pattern, value, file) => self.bind(&program.ast, Some(*pattern), *value, *file),
            FormKind::Expr(expr) => self.bind(&program.ast, None, *expr, false),
            FormKind::Command(name, words) => self.command(name, words).map_err(|errors| placed(&errors, span)),
            FormKind::Load(file) => self.load(&program.ast, *file).map_err(|errors| placed(&errors, span)),
            FormKind::DumpVcode(..) => Err(Diagnostic::error(codes::COMMAND, "`dump vcode` is not supported")
                .at(span, "")
                .help("`broadloom explain FILE --emit vcode` writes the VCODE of a file")
                .into()),
            FormKind::Broken(index) => Err(program.errors[*index].clone()),
        }
    }

    pub(super) fn report(&mut self, diagnostics: &Diagnostics) {
        let rendered = self.sources.render_all(diagnostics);
        let text: Vec<String> = rendered
            .split_inclusive('\n')
            .map(|line| match line.strip_prefix("error") {
                Some(rest) if rest.starts_with(['[', ':']) => format!("Error{rest}"),
                _ => line.to_owned(),
            })
            .collect();
        self.emit(Output::Error(Report { diagnostics: diagnostics.clone(), text: text.concat() }));
    }

    /// Evaluates a checked expression. A fault without a place gets the place of the expression.
    pub(super) fn run(&mut self, body: &Body) -> Result<Value, Box<Fault>> {
        self.answer(body).map_err(|mut fault| {
            fault.span = fault.span.or(body.result.map(|result| body.spans[result]));
            fault
        })
    }

    fn answer(&mut self, body: &Body) -> Result<Value, Box<Fault>> {
        match self.engine {
            Engine::Vcode if !self.holds_function(body) => return self.run_vcode(body),
            Engine::EmitVcode if !self.holds_function(body) => {
                let program = self.vcode(body)?.0;
                self.emitted.push(program);
            }
            Engine::EmitFlat if !self.holds_function(body) => {
                let text = self.flattened(body)?.program.to_string();
                (self.sink)(Output::Text(text.into_bytes()));
            }
            Engine::Evaluator | Engine::Vcode | Engine::EmitVcode | Engine::EmitFlat => {}
        }
        let silent = self.emits();
        let sink = &mut self.sink;
        let mut out = |bytes: &[u8]| {
            if !silent {
                sink(Output::Text(bytes.to_vec()));
            }
        };
        Evaluation::new(&mut self.env, &mut self.state, &mut *self.host, &mut out).evaluate(body)
    }

    pub(super) fn leave(&mut self) {
        self.leaving = true;
        self.emit(Output::Exit);
    }

    /// Reads a file and executes it. For a name without an extension, the file with `.nesl` is tried first.
    pub(super) fn load_file(&mut self, name: &str, verbose: bool, print: bool) -> Result<(), Diagnostics> {
        if self.loads >= MAX_LOADS {
            let message = format!("files load each other deeper than {MAX_LOADS} levels");
            return Err(Diagnostic::error(codes::LOAD, message).into());
        }
        let with_ending = format!("{name}.nesl");
        let candidates = if name.ends_with(".nesl") { vec![name] } else { vec![with_ending.as_str(), name] };
        let mut failure = None;
        for candidate in candidates {
            match self.host.read_file(candidate) {
                Ok(bytes) => {
                    if verbose {
                        self.emit(Output::Text(format!("% Loading {candidate}. %\n").into_bytes()));
                    }
                    let showing = std::mem::replace(&mut self.showing, print);
                    self.loads += 1;
                    self.eval(candidate, &String::from_utf8_lossy(&bytes), 0);
                    self.loads -= 1;
                    self.showing = showing;
                    return Ok(());
                }
                // The name itself says more than the one with an extension that does not exist.
                Err(error) if failure.is_none() || error.kind() != std::io::ErrorKind::NotFound => failure = Some(error),
                Err(_) => {}
            }
        }
        let reason = failure.map_or_else(String::new, |error| format!(": {error}"));
        Err(Diagnostic::error(codes::LOAD, format!("the file `{name}` cannot be read{reason}"))
            .help("a name is relative to the folder in which the session was started; `.nesl` may be left out")
            .into())
    }
}

/// Checks that the definitions of the library satisfy the invariants of the typed program. Returns their
/// number.
#[doc(hidden)]
pub fn verify_library() -> Result<usize, BrokenInvariant> {
    let mut worker = Worker::new(Settings::default(), Box::new(SealedHost), None, Box::new(|_| {}));
    verify_all(&mut worker.env)?;
    Ok(worker.env.definitions.len())
}
