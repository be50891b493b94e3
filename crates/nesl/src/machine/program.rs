//! Runs of programs of VCODE that are read from text.

use super::Machine;
use super::io::show;
use crate::core::Environment;
use crate::eval::{self, EvaluatorState, Fault, Host, Options};
use crate::run::Accelerator;
use crate::vcode::Program;

/// Vectors that a run left, and the number of its steps.
#[derive(Clone, Debug)]
pub struct ProgramOutcome {
    /// The vectors left on the stack, as text, the top last; empty after `EXIT`.
    pub stack: Vec<String>,
    /// The number of executed instructions.
    pub steps: u64,
}

/// Runs a program. `out` receives its output.
pub fn run(
    program: &Program,
    options: Options,
    host: &mut dyn Host,
    out: &mut dyn FnMut(&[u8]),
) -> Result<ProgramOutcome, Box<Fault>> {
    run_on(program, options, host, out, None)
}

/// Runs a program with its large vectors on a device.
pub fn run_on(
    program: &Program,
    options: Options,
    host: &mut dyn Host,
    out: &mut dyn FnMut(&[u8]),
    accelerator: Option<&mut Accelerator>,
) -> Result<ProgramOutcome, Box<Fault>> {
    let mut env = Environment::default();
    let mut state = EvaluatorState::new(options, usize::MAX);
    let mut world = eval::Evaluation::new(&mut env, &mut state, host, out);
    let mut machine = Machine::new(program, &mut world);
    if let Some(accelerator) = accelerator {
        machine = machine.on(accelerator, false);
    }
    let stack = machine.execute(vec![])?;
    let stack = stack.iter().map(show).collect();
    Ok(ProgramOutcome { stack, steps: machine.steps })
}
