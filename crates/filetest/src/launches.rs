//! `run`: launches of a case on a device, with their results as text.

use crate::devices::{DeviceEntry, PrintedText, make_cpu, make_strict};
use crate::failure::Failure;
use broadloom_device::{Device, Error, Module};
use broadloom_diag::{SourceId, Sources};
use broadloom_interp::{Interp, Options};
use broadloom_launch::{LaunchError, LaunchSpec, PreparedLaunch, prepare, split_words};
use broadloom_ptx::{Verified, parse, verify};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Default time limit of a launch. Compiling counts, and other tests compile at the same time.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Returns the text of all launches of a case: outputs, printed text, failures. An error means a broken test.
pub(crate) fn perform_run(
    sources: &mut Sources,
    id: SourceId,
    launches: &[String],
    folder: &Path,
    entry: &DeviceEntry,
) -> Result<String, Failure> {
    let code = parse_and_verify(sources, id, "run")?;
    let mut text = String::new();
    for launch in launches {
        if launches.len() > 1 {
            let _ = writeln!(text, "# {launch}");
        }
        // Each launch has its own device: no other launch sees its changes to globals or memory.
        let printed = PrintedText::default();
        let device = entry.open(&printed)?;
        let failure = match launch_on(&device, sources, &code, launch, folder)? {
            Ok(prepared) => show_outputs(&prepared, &mut text).err(),
            Err(error) => Some(error),
        };
        if !printed.text().is_empty() {
            let _ = writeln!(text, "printed:");
            printed.text().lines().for_each(|line| {
                let _ = writeln!(text, "  {line}");
            });
        }
        if let Some(error) = failure {
            text.push_str(&show_error(sources, &error));
        }
    }
    Ok(text)
}

/// Returns the findings of all launches of a case, or `nothing found`. An error means a broken test.
pub(crate) fn perform_check(
    sources: &mut Sources,
    id: SourceId,
    launches: &[String],
    folder: &Path,
    options: &Options,
) -> Result<String, Failure> {
    let code = parse_and_verify(sources, id, "check")?;
    let mut text = String::new();
    for launch in launches {
        if launches.len() > 1 {
            let _ = writeln!(text, "# {launch}");
        }
        let interp = Interp::new(options.clone());
        let outcome = launch_on(&Device::new(interp.clone()), sources, &code, launch, folder)?;
        let findings = interp.findings();
        findings.iter().for_each(|finding| text.push_str(&finding.render(sources)));
        match outcome {
            // A fault that ends the launch is among the findings.
            Err(Error::Fault(_)) => {}
            Err(error) => text.push_str(&show_error(sources, &error)),
            Ok(_) if findings.is_empty() => text.push_str("nothing found\n"),
            Ok(_) => {}
        }
    }
    Ok(text)
}

/// Returns the fault of each launch of a case on the CPU as it is, and in strict mode. Addresses of the host
/// differ from run to run and are left out.
pub(crate) fn perform_strict(sources: &mut Sources, id: SourceId, launches: &[String], folder: &Path) -> Result<String, Failure> {
    let code = parse_and_verify(sources, id, "strict")?;
    let mut text = String::new();
    for launch in launches {
        if launches.len() > 1 {
            let _ = writeln!(text, "# {launch}");
        }
        let printed = PrintedText::default();
        for (name, device) in [("cpu", make_cpu("host", true, &printed)?), ("cpu:strict", make_strict(&printed)?)] {
            let outcome = match launch_on(&device, sources, &code, launch, folder)? {
                Ok(prepared) => prepared.outputs().map(drop),
                Err(error) => Err(error),
            };
            let outcome = outcome.map_or_else(|error| show_error(sources, &error), |()| "nothing found\n".to_owned());
            let _ = write!(text, "{name}: {}", without_addresses(&outcome));
        }
    }
    Ok(text)
}

/// Replaces hexadecimal numbers that can be addresses of the host.
fn without_addresses(text: &str) -> String {
    let mut pieces = text.split("0x");
    let mut outcome = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let digits = piece.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(piece.len());
        match digits {
            8.. => outcome.push_str(&format!("<address>{}", &piece[digits..])),
            _ => outcome.push_str(&format!("0x{piece}")),
        }
    }
    outcome
}

/// Returns the module of a test that runs. Invalid text belongs under `verify`.
fn parse_and_verify(sources: &Sources, id: SourceId, command: &str) -> Result<Arc<Verified>, Failure> {
    let verified = parse(sources, id).and_then(verify);
    let why = |wrong| format!("`{command}` needs a module without mistakes:\n{}", sources.render_all(&wrong));
    Ok(Arc::new(verified.map_err(why)?))
}

/// Launches. The outer error means an invalid test, the inner one an error of the device.
fn launch_on(
    device: &Device,
    sources: &mut Sources,
    code: &Arc<Verified>,
    launch: &str,
    folder: &Path,
) -> Result<Result<PreparedLaunch, Error>, Failure> {
    let module: Module = match device.load(code) {
        Ok(module) => module,
        Err(error) => return Ok(Err(error)),
    };
    let words = split_words(launch).ok_or_else(|| format!("a quote is not closed in `{launch}`"))?;
    let mut spec = LaunchSpec::parse(sources, &words).map_err(|wrong| sources.render_all(&wrong))?;
    spec.launch.time_limit.get_or_insert(TIME_LIMIT);
    let prepared = match prepare(&module, &spec, folder) {
        Ok(prepared) => prepared,
        Err(LaunchError::Wrong(wrong)) => return Err(sources.render_all(&wrong).into()),
        Err(LaunchError::Device(error)) => return Ok(Err(error)),
    };
    Ok(prepared.launch().map(|()| prepared))
}

fn show_outputs(prepared: &PreparedLaunch, text: &mut String) -> Result<(), Error> {
    for output in prepared.outputs()? {
        let _ = writeln!(text, "{}: {}", output.name, output.array);
    }
    Ok(())
}

fn show_error(sources: &Sources, error: &Error) -> String {
    match error {
        Error::Unsupported(refused) => sources.render_all(refused),
        Error::Fault(fault) => {
            let place = fault.span.map_or_else(String::new, |span| format!("\n  at {}", sources.place(span)));
            format!("error: {fault}{place}\n")
        }
        other => format!("error: {other}\n"),
    }
}
