//! Stages of a kernel's compilation for the CPU, as text.

use crate::failure::{Exit, Failure, codes};
use crate::input::Input;
use crate::kernel;
use crate::options::Explain;
use crate::terminal::Terminal;
use broadloom::cpu::{
    self,
    compile::{self, CompileError, Machine, Stage, not_vectorised, show},
};
use broadloom::diag::Diagnostic;
use broadloom::ptx::Module;
use broadloom::transform::hoist_statics;

/// Writes a stage of a kernel's compilation. If the kernel is not vectorised, writes the reason to standard
/// error.
pub fn write(input: Input, module: &Module, stage: Stage, options: &Explain, terminal: &mut Terminal) -> Result<(), Failure> {
    let chosen = kernel::choose(module, options.kernel.as_deref()).map_err(|diagnostic| Failure::usage(*diagnostic))?;
    let required = chosen.directive("reqntid").unwrap_or_default();
    let mut block = [1; 3];
    block.iter_mut().zip(required).for_each(|(place, count)| *place = *count);
    let block = match (options.block, required) {
        (Some(block), _) => block,
        (None, [_, ..]) => block,
        (None, []) => {
            let message = format!("code of kernel `{}` is for one shape of block: which?", chosen.name);
            return Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message).help("add `--block 256`, say")));
        }
    };
    let name = chosen.name.clone();
    let mut module = module.clone();
    hoist_statics::run(&mut module);
    let Some((func, _)) = module.kernels().find(|(_, function)| function.name == name) else { return Ok(()) };
    let refused = cpu::refused(&module, func);
    if refused.has_errors() {
        return Err(Failure { exit: Exit::Machine, diagnostics: refused, sources: input.sources });
    }
    // Most launches run this variant: index arithmetic is proved not to wrap around.
    let mut settings = compile::CompileOptions { assume_no_wrap: true, assume_apart: true, ..compile::CompileOptions::default() };
    let told = Machine::told().map_err(|error| Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, error.to_string())))?;
    if let Some(machine) = told {
        // Code that is only displayed may use features that this host lacks.
        settings.machine = machine.clone();
    }
    let broken = |error: CompileError| Failure::new(Exit::Machine, Diagnostic::error(codes::INTERNAL, error.to_string()));
    if let Some(reason) = not_vectorised(&module, func, block, &settings).map_err(broken)? {
        terminal.remark(&format!("kernel `{name}` does not run as vectors but one thread at a time: {reason}"));
    }
    let text = show(&module, func, block, &settings, stage).map_err(broken)?;
    terminal.write(&format!("{}\n", text.trim_matches('\n')));
    Ok(())
}
