//! A launch from the command line to the contents of its buffers, shared by `run` and `check`.

use crate::failure::{Exit, Failure, codes};
use crate::input::Input;
use crate::kernel;
use crate::options::LaunchOptions;
use crate::terminal::Terminal;
use broadloom::cpu::{self, Cpu};
use broadloom::cuda::{self, Cuda};
use broadloom::device::place::{index, party};
use broadloom::device::trace::span;
use broadloom::device::{Device, Error, Fault, FaultKind, Launch};
use broadloom::diag::{Code, Diagnostic, Diagnostics, Sources};
use broadloom::interp::{self, Interp};
use broadloom::launch::{Destination, LaunchError, LaunchSpec, Output, PreparedLaunch, parse_arguments, prepare, write_npy};
use broadloom::{gpu_ordinal, machines};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl LaunchOptions {
    /// Refuses options of a launch, for files whose programs launch kernels themselves. `why` is the end of
    /// the message.
    pub fn refuse(&self, why: &str) -> Result<(), Failure> {
        let given = [
            ("--kernel", self.kernel.is_some()),
            ("--grid", self.grid.is_some()),
            ("--block", self.block.is_some()),
            ("--cluster", self.cluster.is_some()),
            ("--arg", !self.arguments.is_empty()),
            ("--shared", self.shared != 0),
            ("--cooperative", self.cooperative),
        ];
        if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
            let message = format!("{option} is for kernels: {why}");
            return Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message).help(format!("leave {option} out"))));
        }
        Ok(())
    }
}

/// Executor of a kernel.
#[derive(Debug)]
pub enum Executor {
    /// CPU of this machine.
    Cpu(Cpu),
    /// GPU.
    Cuda(Cuda),
    /// Interpreter.
    Interp(Interp),
}

impl Executor {
    /// Returns the executor as a device.
    pub fn device(&self) -> Device {
        match self {
            Executor::Cpu(cpu) => Device::new(cpu.clone()),
            Executor::Cuda(cuda) => Device::new(cuda.clone()),
            Executor::Interp(interp) => Device::new(interp.clone()),
        }
    }
}

/// A launch that has ended, with its buffers and times.
#[derive(Debug)]
pub struct CompletedLaunch {
    /// Sources of the diagnostics.
    pub sources: Sources,
    /// Executor of the launch.
    pub executor: Executor,
    /// Name of the kernel.
    pub kernel: String,
    /// Launch configuration.
    pub launch: Launch,
    /// Duration of the launch.
    pub time: Duration,
    /// Contents of the buffers, or the error of the launch.
    pub outcome: Result<Vec<Output>, Error>,
}

/// Reads the module, allocates the buffers, launches, and reads the buffers back.
///
/// `verb` is the command in the examples of messages. An error of the launch itself is returned in the
/// result. All other errors are failures.
pub fn launch(
    verb: &str,
    options: &LaunchOptions,
    open: impl FnOnce(&Terminal) -> Result<Executor, Failure>,
    terminal: &mut Terminal,
) -> Result<CompletedLaunch, Failure> {
    let reading = span("read the file");
    let file = options.file.as_deref().unwrap_or(Path::new("-"));
    let input = Input::read(file)?;
    drop(reading);
    let (mut input, module) = input.verify()?;
    let opening = span("open the device");
    let executor = open(terminal)?;
    drop(opening);
    let kernel = kernel::choose(&module, options.kernel.as_deref()).map_err(|diagnostic| Failure::usage(*diagnostic))?;
    let spec = LaunchSpec {
        kernel: Some(kernel.name.clone()),
        launch: shape(options, kernel.directive("reqntid")),
        arguments: match parse_arguments(&mut input.sources, &options.arguments) {
            Ok(arguments) => arguments,
            Err(diagnostics) => return Err(Failure { exit: Exit::Usage, diagnostics, sources: input.sources }),
        },
    };
    let given = spec.arguments.len();
    if given < kernel::params(kernel).count() {
        let diagnostic = kernel::missing_arguments(verb, &file.to_string_lossy(), &module, kernel, given);
        return Err(Failure { exit: Exit::Usage, diagnostics: diagnostic.into(), sources: input.sources });
    }
    let name = kernel.name.clone();
    let prepared = match ready(&executor.device(), module, &spec) {
        Ok(prepared) => prepared,
        Err(LaunchError::Wrong(diagnostics)) => return Err(Failure { exit: Exit::Usage, diagnostics, sources: input.sources }),
        Err(LaunchError::Device(error)) => return Err(failure(error, input.sources)),
    };
    terminal.flush();
    let start = Instant::now();
    let outcome = prepared.launch();
    let time = start.elapsed();
    let reading = span("read the results");
    let outcome = outcome.and_then(|()| prepared.outputs());
    drop(reading);
    Ok(CompletedLaunch { sources: input.sources, executor, kernel: name, launch: spec.launch, time, outcome })
}

fn ready(device: &Device, module: broadloom::ptx::Verified, spec: &LaunchSpec) -> Result<PreparedLaunch, LaunchError> {
    let module = device.load(&Arc::new(module))?;
    let _span = span("make the buffers");
    prepare(&module, spec, Path::new(""))
}

/// Opens a device by its name, or the default one. Kernels print to standard output. `timing` enables timing
/// of launches on devices where timing has a cost.
pub fn open(name: Option<&str>, timing: bool, terminal: &Terminal) -> Result<Executor, Failure> {
    let output = terminal.sink();
    if let Some(ordinal) = name.and_then(gpu_ordinal) {
        let cuda = Cuda::new(cuda::Options { ordinal, timing, output: Some(output), ..cuda::Options::default() });
        return cuda.map(Executor::Cuda).map_err(|error| failure(error, Sources::new()));
    }
    match name {
        Some("auto") => open(Some("cuda"), timing, terminal).or_else(|_| open(Some("cpu"), timing, terminal)),
        Some("interp") => Ok(Executor::Interp(Interp::new(interp::Options { output, ..interp::Options::default() }))),
        name => match cpu::Options::of(name.unwrap_or("cpu")) {
            Some(options) => {
                let cpu = Cpu::new(cpu::Options { output, notice: terminal.progress(), ..options });
                cpu.map(Executor::Cpu).map_err(|error| failure(error, Sources::new()))
            }
            None => Err(no_device(name.unwrap_or_default())),
        },
    }
}

/// Builds the failure for an unknown device.
pub fn no_device(name: &str) -> Failure {
    let names: Vec<String> = machines().iter().map(|machine| format!("`{}`", machine.id)).collect();
    let diagnostic = Diagnostic::error(codes::NO_DEVICE, format!("there is no device `{name}` here"))
        .help(format!("what is here is {}; `broadloom devices` says more", names.join(", ")));
    Failure::new(Exit::Machine, diagnostic)
}

/// Returns the launch configuration. The default block is the one that the kernel requires, or one thread.
fn shape(options: &LaunchOptions, required: Option<&[u32]>) -> Launch {
    let mut block = [1; 3];
    block.iter_mut().zip(required.unwrap_or_default()).for_each(|(place, count)| *place = *count);
    Launch {
        shared_bytes: options.shared,
        cooperative: options.cooperative,
        cluster: options.cluster,
        time_limit: options.time_limit,
        ..Launch::new(options.grid.unwrap_or([1; 3]), options.block.unwrap_or(block))
    }
}

/// Prints and writes the contents of the buffers.
pub fn deliver(outputs: &[Output], terminal: &mut Terminal) -> Result<(), Failure> {
    for output in outputs {
        match &output.destination {
            Destination::Shown => terminal.write(&format!("{}: {}\n", output.name, output.array)),
            Destination::File(path) => write_npy(path, &output.array).map_err(|error| Failure::cannot_write(path, &error))?,
        }
    }
    Ok(())
}

/// Converts a device error to a failure.
pub fn failure(error: Error, sources: Sources) -> Failure {
    let (exit, diagnostics): (Exit, Diagnostics) = match error {
        Error::Fault(fault) => (Exit::Failed, describe(&fault).into()),
        Error::Unsupported(diagnostics) => (Exit::Machine, diagnostics),
        Error::BadLaunch { .. } | Error::BadArgument { .. } | Error::UnknownKernel { .. } | Error::BadTexture { .. } => {
            (Exit::Usage, Diagnostic::error(codes::BAD_LAUNCH, error.to_string()).into())
        }
        Error::OutOfMemory { .. } => (Exit::Machine, Diagnostic::error(codes::OUT_OF_MEMORY, error.to_string()).into()),
        Error::NotHere { .. } => {
            let names: Vec<String> = machines().iter().map(|machine| format!("`{}`", machine.id)).collect();
            let help = format!("what is here is {}; `broadloom devices` says more", names.join(", "));
            (Exit::Machine, Diagnostic::error(codes::NO_DEVICE, error.to_string()).help(help).into())
        }
        Error::BadAddress { .. }
        | Error::UnknownStream(_)
        | Error::UnknownEvent(_)
        | Error::Lost { .. }
        | Error::Driver { .. } => (Exit::Machine, Diagnostic::error(codes::DEVICE, error.to_string()).into()),
    };
    Failure { exit, diagnostics, sources }
}

/// Converts a kernel's fault to a diagnostic at its location in the text.
fn describe(fault: &Fault) -> Diagnostic {
    let mut diagnostic = Diagnostic::error(code(fault.kind), format!("kernel `{}`: {}", fault.kernel, fault.message));
    let who = match (fault.block, fault.thread) {
        (Some(block), Some(thread)) => Some(party(block, thread)),
        (Some(block), None) => Some(format!("block {}", index(block))),
        (None, _) => None,
    };
    match (fault.span.filter(|span| !span.is_synthetic()), who) {
        (Some(span), who) => diagnostic = diagnostic.at(span, who.unwrap_or_default()),
        (None, Some(who)) => diagnostic = diagnostic.note(format!("in {who}")),
        (None, None) => {}
    }
    if let Some(function) = &fault.function {
        diagnostic = diagnostic.note(format!("in function `{function}`"));
    }
    for note in fault.source.iter().flat_map(|source| source.notes()) {
        diagnostic = diagnostic.note(note);
    }
    match fault.kind {
        FaultKind::OutOfBounds | FaultKind::Misaligned | FaultKind::WrongSpace | FaultKind::UseAfterFree => {
            diagnostic.help("`broadloom check` goes on behind a fault and shows all of them")
        }
        FaultKind::BadFree | FaultKind::Trap | FaultKind::Assert | FaultKind::Deadlock | FaultKind::BadCall => diagnostic,
        FaultKind::StackOverflow | FaultKind::BadBarrier | FaultKind::Unsupported | FaultKind::TimeLimit => diagnostic,
        FaultKind::Interrupted => diagnostic,
    }
}

fn code(kind: FaultKind) -> Code {
    Code(match kind {
        FaultKind::OutOfBounds => "out-of-bounds",
        FaultKind::Misaligned => "misaligned",
        FaultKind::WrongSpace => "wrong-space",
        FaultKind::UseAfterFree => "use-after-free",
        FaultKind::BadFree => "bad-free",
        FaultKind::Trap => "trap",
        FaultKind::Assert => "assert",
        FaultKind::Deadlock => "deadlock",
        FaultKind::BadCall => "bad-call",
        FaultKind::StackOverflow => "stack-overflow",
        FaultKind::BadBarrier => "bad-barrier",
        FaultKind::Unsupported => "unsupported",
        FaultKind::TimeLimit => "time-limit",
        FaultKind::Interrupted => "interrupted",
    })
}
