//! NESL: `.nesl` files.

use crate::language::{Command, Devices, Language, Request};
use broadloom_nesl::eval::Sealed;
use broadloom_nesl::session::{Session, Settings};

/// Registration of NESL.
pub(crate) const LANGUAGE: Language = Language { extension: "nesl", comment: ("%", "%"), commands: COMMANDS };

const COMMANDS: &[Command] = &[
    // Evaluates as at the top level of the language; outputs answers, output and errors with their positions.
    Command { name: "run", launches: false, devices: Devices::One, argument: None, perform: run },
];

fn run(request: &Request<'_>) -> Result<String, String> {
    let mut session = Session::new(Settings::default(), Box::new(Sealed)).map_err(|error| error.to_string())?;
    let outputs = session.eval(request.name, request.text);
    Ok(outputs.iter().map(ToString::to_string).collect())
}
