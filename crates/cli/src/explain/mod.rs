//! `broadloom explain`: the contents of a module, or the plan of a graph or of a StreamIt program.

mod compiled;
mod inventory;
mod report;
mod stages;

use crate::failure::{Exit, Failure, codes};
use crate::graph;
use crate::input::{FileKind, Input};
use crate::nesl;
use crate::options::{Emit, Explain};
use crate::stream;
use crate::terminal::Terminal;
use broadloom::device::Error;
use broadloom::diag::{Diagnostic, Diagnostics};
use broadloom::interp::{self, Interp};
use broadloom::ptx::{self, Verified};
use std::sync::Arc;

/// Explains a module or a graph, or prints a module.
pub fn run(options: &Explain, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let kind = FileKind::of(&options.file);
    if kind == FileKind::Stream {
        return stream::explain(options, terminal);
    }
    options.math.refuse()?;
    options.prefetch.refuse()?;
    if kind == FileKind::Nesl {
        return nesl::explain(options, terminal);
    }
    if kind == FileKind::Vcode {
        let message = "a VCODE program has no other form to show: `run` executes it, and `check` checks its kernels";
        let help = "`broadloom explain x.nesl` shows the VCODE and the kernels of a NESL program";
        return Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message).help(help)));
    }
    if let Some(Emit::Dot | Emit::Kernels | Emit::Svg | Emit::KernelsSvg) = options.emit {
        let message = "the forms `dot`, `kernels`, `svg` and `kernels-svg` are for StreamIt programs: the name of the file must end with `.str`";
        return Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message)));
    }
    if let Some(Emit::Vcode | Emit::Flat) = options.emit {
        let message = "the forms `flat` and `vcode` are for NESL programs: the name of the file must end with `.nesl`";
        return Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message)));
    }
    if kind == FileKind::Graph {
        return graph::explain(options, terminal);
    }
    if options.device.is_some() {
        let message = "--device is for graphs and StreamIt programs: a module is explained as it is";
        return Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message).help("leave --device out")));
    }
    let (input, module) = Input::read(&options.file)?.verify()?;
    match options.emit {
        Some(Emit::Ptx) => terminal.write(&ptx::print(&module)),
        Some(Emit::Stage(stage)) => stages::write(input, module, stage, options.block, terminal)?,
        Some(Emit::Cpu(stage)) => compiled::write(input, &module, stage, options, terminal)?,
        None | Some(Emit::Vcode | Emit::Flat | Emit::Dot | Emit::Kernels | Emit::Svg | Emit::KernelsSvg) => {
            report::write(&input, &module, terminal);
            report::write_refused(&input, &refused(module), terminal);
        }
    }
    Ok(Exit::Done)
}

/// Returns the unsupported parts of the module, each with its location.
fn refused(module: Verified) -> Diagnostics {
    match Interp::new(interp::Options::default()).refused(&Arc::new(module)) {
        Ok(refused) | Err(Error::Unsupported(refused)) => refused,
        Err(error) => Diagnostic::error(codes::DEVICE, error.to_string()).into(),
    }
}
