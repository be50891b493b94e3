//! What can be done with a test file.

use crate::Case;
use crate::devices::DeviceEntry;
use crate::launches::{perform_check, perform_run};
use broadloom_diag::{SourceId, Sources};
use broadloom_ptx::{Module, Printer, parse, print, verify};
use broadloom_transform::Facts;
use broadloom_transform::pipeline::{Failure, PASSES, Pass, Verification, pass, run_pass};
use std::fmt;
use std::path::Path;

/// A command of a `// test:` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Command {
    /// Parse and print; the print must be a fixed point and mean the same module.
    Print,
    /// Parse and verify; the diagnostics, or `ok`.
    Verify,
    /// Launch; the contents of the output buffers, what was printed, and how it failed if it did.
    Run,
    /// Launch, watched; the faults that were found.
    Check,
    /// Run passes; what they leave of each function.
    Transform,
}

impl Command {
    /// All of them.
    pub const ALL: [Command; 5] = [Command::Print, Command::Verify, Command::Run, Command::Check, Command::Transform];

    /// The word in a `// test:` line.
    pub const fn name(self) -> &'static str {
        match self {
            Command::Print => "print",
            Command::Verify => "verify",
            Command::Run => "run",
            Command::Check => "check",
            Command::Transform => "transform",
        }
    }

    /// The command of a word.
    pub fn from_name(name: &str) -> Option<Command> {
        Command::ALL.into_iter().find(|command| command.name() == name)
    }

    /// Whether it needs `// run:` lines.
    pub const fn launches(self) -> bool {
        match self {
            Command::Print | Command::Verify | Command::Transform => false,
            Command::Run | Command::Check => true,
        }
    }

    /// Whether it is done on every device. Only the interpreter watches.
    pub const fn on_every_device(self) -> bool {
        match self {
            Command::Print | Command::Verify | Command::Check | Command::Transform => false,
            Command::Run => true,
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What comes out of a command, or why nothing can. `name` is what diagnostics call the text, `folder` where files that a
/// launch reads are looked for.
pub fn perform(command: Command, case: &Case, name: &str, folder: &Path, device: &DeviceEntry) -> Result<String, String> {
    let mut sources = Sources::new();
    let id = sources.add(name, case.text.as_str());
    match command {
        Command::Print => perform_print(&mut sources, id),
        Command::Verify => Ok(perform_verify(&sources, id)),
        Command::Run => perform_run(&mut sources, id, case, folder, device),
        Command::Check => perform_check(&mut sources, id, case, folder),
        Command::Transform => perform_transform(&sources, id, &case.settings.passes),
    }
}

fn perform_print(sources: &mut Sources, id: SourceId) -> Result<String, String> {
    // Text with mistakes belongs under `verify`: here it is a broken test.
    let module = parse(sources, id).map_err(|diagnostics| sources.render_all(&diagnostics))?;
    let printed = print(&module);
    let again = sources.add("the print", printed.as_str());
    let again = parse(sources, again)
        .map_err(|diagnostics| format!("the print does not parse:\n{}\n{printed}", sources.render_all(&diagnostics)))?;
    if print(&again) != printed {
        return Err(format!("the print is not a fixed point: it prints again as\n{}", print(&again)));
    }
    if without_spans(again) != without_spans(module) {
        return Err(format!("the print means another module:\n{printed}"));
    }
    Ok(printed)
}

fn without_spans(mut module: Module) -> Module {
    module.strip_spans();
    module
}

/// The passes that a list such as `to_ssa, fold` names.
pub(crate) fn passes(list: &str) -> Result<Vec<Pass>, String> {
    let names = || PASSES.iter().map(|pass| pass.name).collect::<Vec<_>>().join(", ");
    let words: Vec<&str> = list.split([',', ' ']).filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return Err(format!("`transform` needs passes behind it: some of {}", names()));
    }
    words.into_iter().map(|word| pass(word).ok_or_else(|| format!("`{word}` is not a pass; there are {}", names()))).collect()
}

fn perform_transform(sources: &Sources, id: SourceId, list: &str) -> Result<String, String> {
    let module = parse(sources, id).and_then(verify).map_err(|wrong| sources.render_all(&wrong))?;
    let mut text = String::new();
    for function in module.functions.values().filter(|function| function.has_body) {
        let mut function = function.clone();
        let mut refused = None;
        for pass in passes(list)? {
            match run_pass(pass, &module, &mut function, &Facts::default(), Verification::Always) {
                Ok(()) => {}
                Err(Failure::Refused(why)) => {
                    refused = Some(why);
                    break;
                }
                Err(Failure::Broken(broken)) => {
                    return Err(format!("{broken}\n{}", Printer::new(&module).body(&function)));
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

/// Of many diagnostics only the first are written down: the rest says nothing new.
const SHOWN: usize = 6;

fn perform_verify(sources: &Sources, id: SourceId) -> String {
    let diagnostics = match parse(sources, id).and_then(verify) {
        Ok(_) => return "ok\n".to_owned(),
        Err(diagnostics) => diagnostics,
    };
    let all = diagnostics.iter().count() + diagnostics.left_out();
    let mut text: String = diagnostics.iter().take(SHOWN).map(|diagnostic| sources.render(diagnostic)).collect();
    if all > SHOWN {
        text.push_str(&format!("… and {} more\n", all - SHOWN));
    }
    text
}
