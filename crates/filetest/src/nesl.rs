//! NESL: `.nesl` files.

use crate::devices::PrintedText;
use crate::failure::Failure;
use crate::language::{Command, Devices, Language, Request};
use broadloom_nesl::eval::SealedHost;
use broadloom_nesl::run::Target;
use broadloom_nesl::session::{Output, Session, Settings};

/// Registration of NESL.
pub(crate) const LANGUAGE: Language = Language { extension: "nesl", comment: ("%", "%"), commands: COMMANDS };

const COMMANDS: &[Command] = &[
    // Evaluates as at the top level of the language; outputs answers, output and errors with their positions.
    // A device must give the same, except for the notes of errors.
    Command { name: "run", launches: false, devices: Devices::Some(&RUN_ON), argument: None, perform: run },
];

/// Devices for results. Kernels of all vector widths are tested with PTX.
const RUN_ON: [&str; 3] = ["interp", "cpu-avx2", "cuda"];

/// Returns an answer; for an error its code, message and place.
fn compared(output: &Output) -> String {
    match output {
        Output::Error(report) => {
            let place = |error: &broadloom_diag::Diagnostic| error.primary.as_ref().map(|label| label.span);
            report.diagnostics.iter().map(|error| format!("{} {} {:?}\n", error.code, error.message, place(error))).collect()
        }
        other => other.to_string(),
    }
}

fn run(request: &Request<'_>) -> Result<String, Failure> {
    let mut session = Session::new(Settings::default(), Box::new(SealedHost))?;
    let expected = session.eval(request.name, request.text);
    let device = *request.device;
    let target = Target::new(move || device.open(&PrintedText::default()).map_err(|failure| failure.0)).with_threshold(0);
    let on_device = Session::with_device(Settings::default(), Box::new(SealedHost), target);
    let found = on_device?.eval(request.name, request.text);
    let text = |outputs: &[Output]| outputs.iter().map(compared).collect::<String>();
    if text(&expected) != text(&found) {
        return Err(format!("the device answers otherwise than the evaluator:\n{}", text(&found)).into());
    }
    Ok(expected.iter().map(ToString::to_string).collect())
}
