//! Output of the passes, stage by stage.

use crate::failure::{Exit, Failure, codes};
use crate::input::Input;
use crate::terminal::Terminal;
use broadloom::diag::Diagnostic;
use broadloom::ptx::{BodyForm, Printer, Verified, print};
use broadloom::transform::Facts;
use broadloom::transform::pipeline::{self, BACK, STAGES, Stage, Verification, run_pipeline};

/// Writes the functions of a module after the stage with the index `stage`. Writes the whole module as PTX if
/// the functions are not in SSA form.
pub fn write(
    input: Input,
    module: Verified,
    stage: usize,
    block: Option<[u32; 3]>,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let stages: Vec<Stage> = STAGES.iter().chain([&BACK]).take(stage + 1).copied().collect();
    let facts = Facts { block, grid: None };
    let mut module = module.into_module();
    let mut text = String::new();
    for func in module.functions.keys().filter(|func| module.functions[*func].has_body).collect::<Vec<_>>() {
        let outcome = run_pipeline(&module, func, &stages, &facts, Verification::Always, |_, _| {});
        let function = match outcome {
            Ok(function) => function,
            Err(pipeline::Failure::Refused(diagnostics)) => {
                return Err(Failure { exit: Exit::Failed, diagnostics, sources: input.sources });
            }
            Err(pipeline::Failure::Broken(broken)) => {
                return Err(Failure::new(Exit::Machine, Diagnostic::error(codes::INTERNAL, broken.to_string())));
            }
        };
        match function.form {
            BodyForm::Ssa => text.push_str(&Printer::new(&module).body(&function)),
            BodyForm::Registers => module.functions[func] = function,
        }
    }
    let text = if text.is_empty() { print(&module) } else { text.trim_start_matches('\n').to_owned() };
    terminal.write(&text);
    Ok(())
}
