//! PTX: `.ptx` files.

use crate::failure::Failure;
use crate::language::{Command, Devices, Language, Request};
use crate::launches::{perform_check, perform_run, perform_strict};
use broadloom_diag::{SourceId, Sources};
use broadloom_interp::Options;
use broadloom_ptx::{Module, Printer, parse, print, verify};
use broadloom_transform::Facts;
use broadloom_transform::pipeline::{self, PASSES, Pass, Verification, pass, run_pass};

/// Registration of PTX.
pub const LANGUAGE: Language = Language { extension: "ptx", comment: ("//", ""), commands: COMMANDS };

const COMMANDS: &[Command] = &[
    // Parses and prints; the print must be a fixed point and mean the same module.
    Command {
        name: "print",
        launches: false,
        devices: Devices::One,
        argument: None,
        perform: |r| with_sources(r, perform_print),
    },
    // Parses and verifies; outputs the diagnostics, or `ok`.
    Command {
        name: "verify",
        launches: false,
        devices: Devices::One,
        argument: None,
        perform: |r| with_sources(r, perform_verify),
    },
    // Launches; outputs the contents of the output buffers, the printed text, and the failure, if there is
    // one.
    Command {
        name: "run",
        launches: true,
        devices: Devices::All,
        argument: None,
        perform: |r| with_sources(r, |sources, id| perform_run(sources, id, r.launches, r.folder, r.device)),
    },
    // Launches in checking mode; outputs the faults found. Only the interpreter has this mode.
    Command {
        name: "check",
        launches: true,
        devices: Devices::One,
        argument: Some(|words| check_options(words).map(drop)),
        perform: |r| {
            let options = check_options(r.argument)?;
            with_sources(r, |sources, id| perform_check(sources, id, r.launches, r.folder, &options))
        },
    },
    // Launches on the CPU as it is and in strict mode; outputs which fault each of them finds.
    Command {
        name: "strict",
        launches: true,
        devices: Devices::One,
        argument: None,
        perform: |r| with_sources(r, |sources, id| perform_strict(sources, id, r.launches, r.folder)),
    },
    // Runs passes; outputs each resulting function.
    Command {
        name: "transform",
        launches: false,
        devices: Devices::One,
        argument: Some(|list| passes(list).map(|_| ())),
        perform: |r| with_sources(r, |sources, id| perform_transform(sources, id, r.argument)),
    },
];

/// Returns the options of the interpreter for the words behind `check`.
fn check_options(words: &str) -> Result<Options, Failure> {
    let strict_barriers = match words {
        "" => false,
        "strict-barriers" => true,
        other => return Err(format!("`check` takes `strict-barriers` or nothing behind it, not `{other}`").into()),
    };
    Ok(Options { check: true, strict_barriers, ..Options::default() })
}

/// Runs an action on the text of a request as a source.
fn with_sources<T>(request: &Request<'_>, act: impl FnOnce(&mut Sources, SourceId) -> T) -> T {
    let mut sources = Sources::new();
    let id = sources.add(request.name, request.text);
    act(&mut sources, id)
}

fn perform_print(sources: &mut Sources, id: SourceId) -> Result<String, Failure> {
    // Invalid text belongs under `verify`: here it is a broken test.
    let module = parse(sources, id).map_err(|diagnostics| sources.render_all(&diagnostics))?;
    let printed = print(&module);
    let again = sources.add("the print", printed.as_str());
    let again = parse(sources, again)
        .map_err(|diagnostics| format!("the print does not parse:\n{}\n{printed}", sources.render_all(&diagnostics)))?;
    if print(&again) != printed {
        return Err(format!("the print is not a fixed point: it prints again as\n{}", print(&again)).into());
    }
    if without_spans(again) != without_spans(module) {
        return Err(format!("the print means another module:\n{printed}").into());
    }
    Ok(printed)
}

fn without_spans(mut module: Module) -> Module {
    module.strip_spans();
    module
}

/// Returns the passes that a list such as `to_ssa, fold` names.
fn passes(list: &str) -> Result<Vec<Pass>, Failure> {
    let names = || PASSES.iter().map(|pass| pass.name).collect::<Vec<_>>().join(", ");
    let words: Vec<&str> = list.split([',', ' ']).filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return Err(format!("`transform` needs passes behind it: some of {}", names()).into());
    }
    let unknown = |word: &str| Failure(format!("`{word}` is not a pass; there are {}", names()));
    words.into_iter().map(|word| pass(word).ok_or_else(|| unknown(word))).collect()
}

fn perform_transform(sources: &Sources, id: SourceId, list: &str) -> Result<String, Failure> {
    let module = parse(sources, id).and_then(verify).map_err(|wrong| sources.render_all(&wrong))?;
    let mut text = String::new();
    for function in module.functions.values().filter(|function| function.has_body) {
        let mut function = function.clone();
        let mut refused = None;
        for pass in passes(list)? {
            match run_pass(pass, &module, &mut function, &Facts::default(), Verification::Always) {
                Ok(()) => {}
                Err(pipeline::Failure::Refused(why)) => {
                    refused = Some(why);
                    break;
                }
                Err(pipeline::Failure::Broken(broken)) => {
                    return Err(format!("{broken}\n{}", Printer::new(&module).body(&function)).into());
                }
            }
        }
        text.push_str(&match refused {
            Some(why) => sources.render_all(&why),
            None => Printer::new(&module).body(&function),
        });
    }
    Ok(text.trim_start().to_owned())
}

/// Maximum number of diagnostics that are recorded; more would add nothing new.
const SHOWN: usize = 6;

fn perform_verify(sources: &mut Sources, id: SourceId) -> Result<String, Failure> {
    let diagnostics = match parse(sources, id).and_then(verify) {
        Ok(_) => return Ok("ok\n".to_owned()),
        Err(diagnostics) => diagnostics,
    };
    let all = diagnostics.iter().count() + diagnostics.left_out();
    let mut text: String = diagnostics.iter().take(SHOWN).map(|diagnostic| sources.render(diagnostic)).collect();
    if all > SHOWN {
        text.push_str(&format!("… and {} more\n", all - SHOWN));
    }
    Ok(text)
}
