//! `broadloom explain`: what is in a module.

mod inventory;
mod report;

use crate::failure::{Exit, Failure};
use crate::input::Input;
use crate::options::{Emit, Explain};
use crate::terminal::Terminal;
use broadloom::ptx;

/// Explains a module, or prints it back.
pub fn run(options: &Explain, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let (input, module) = Input::read(&options.file)?.verify()?;
    match options.emit {
        Some(Emit::Ptx) => terminal.write(&ptx::print(&module)),
        None => report::write(&input, &module, terminal),
    }
    Ok(Exit::Done)
}
