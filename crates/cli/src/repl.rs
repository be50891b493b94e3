//! `broadloom repl`: an interactive NESL session.
//!
//! On a terminal, lines are edited with history and completion. An incomplete form continues in the next
//! line. Ctrl-C at the prompt drops the line. During an evaluation it ends the evaluation and keeps the
//! definitions.
//!
//! Without a terminal, standard input is a script: each form is answered as soon as it is complete, without a
//! prompt.

use crate::failure::{Exit, Failure, codes};
use crate::nesl::{session, target, widths, write_output};
use crate::options::Repl;
use crate::terminal::Terminal;
use crate::watch::Watch;
use broadloom::cpu::signals::{STOP, catch_interrupts};
use broadloom::device::Stop;
use broadloom::diag::Diagnostic;
use broadloom::nesl::session::{SETTINGS, Session, Settings};
use broadloom::nesl::syntax::{COMMANDS, Lines, Word, is_complete};
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use std::cell::RefCell;
use std::io::{self, BufRead, IsTerminal};
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// Maximum number of forms in the history.
const HISTORY: usize = 1000;

/// Maximum size of one form of a script, in bytes.
const MAX_FORM: usize = 16 << 20;

/// Time limit of each form, and the flag that stops a form.
struct FormLimit {
    limit: Option<Duration>,
    stop: &'static Stop,
}

/// Runs a session until its input ends.
pub fn run(options: &Repl, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let interactive = io::stdin().is_terminal() && io::stdout().is_terminal();
    let target = target(options.device.as_deref(), terminal)?.with_precision(options.math.precision());
    let mut limits = widths(options.int.as_deref(), options.float.as_deref());
    let interrupt = interactive.then(catch_interrupts);
    let stop = interrupt.unwrap_or(&STOP);
    limits.stop = Some(stop);
    let limit = FormLimit { limit: options.time_limit, stop };
    let mut session = session(Settings { options: limits, ..Settings::default() }, Some(target))?;
    let mut exit = Exit::Done;
    for file in &options.files {
        load(&mut session, file, &limit, terminal)?;
    }
    if interactive {
        edited(options, session, &limit, terminal)?;
    } else if !scripted(&mut session, &limit, terminal)? {
        exit = Exit::Failed;
    }
    Ok(exit)
}

/// Loads a file as the command `load` does.
fn load(session: &mut Session, file: &Path, limit: &FormLimit, terminal: &mut Terminal) -> Result<(), Failure> {
    if !file.is_file() {
        let message = match file.is_dir() {
            true => format!("{} is a folder, not a file", file.display()),
            false => format!("there is no file {}", file.display()),
        };
        return Err(Failure::usage(Diagnostic::error(codes::CANNOT_READ, message)));
    }
    let quoted = file.display().to_string().replace('\\', "\\\\").replace('"', "\\\"");
    evaluate(session, &format!("load \"{quoted}\";"), 0, limit, terminal);
    Ok(())
}

/// Evaluates forms that follow `lines_before` lines of a script, and writes the answers. Returns whether the
/// session continues, and whether no form failed.
fn evaluate(session: &mut Session, text: &str, lines_before: u32, limit: &FormLimit, terminal: &mut Terminal) -> (bool, bool) {
    let mut right = true;
    limit.stop.clear();
    let _watch = Watch::start(limit.limit, limit.stop, "the form", terminal);
    let more = session.eval_part("input", text, lines_before, |output| {
        right &= !write_output(&output, terminal);
        terminal.flush();
    });
    (more, right)
}

/// Answers a script on standard input. Returns whether no form failed.
fn scripted(session: &mut Session, limit: &FormLimit, terminal: &mut Terminal) -> Result<bool, Failure> {
    let (mut text, mut lines, mut right) = (String::new(), Lines::default(), true);
    // Number of lines read, and number of these lines before the text.
    let (mut line_count, mut lines_before) = (0u32, 0);
    loop {
        let mut line = vec![];
        // The lock is not held during evaluation, because programs may read the console.
        let read = io::stdin().lock().read_until(b'\n', &mut line);
        let count = read.map_err(|error| {
            let message = format!("standard input cannot be read: {error}");
            Failure::usage(Diagnostic::error(codes::CANNOT_READ, message))
        })?;
        let line = String::from_utf8_lossy(&line);
        lines.push(&line);
        text += &line;
        line_count = line_count.saturating_add(1);
        if count > 0 && text.len() < MAX_FORM && !lines.is_complete() && !is_command(&text) {
            continue;
        }
        if !text.trim().is_empty() {
            let (more, good) = evaluate(session, &text, lines_before, limit, terminal);
            right &= good;
            if !more {
                return Ok(right);
            }
        }
        if count == 0 {
            return Ok(right);
        }
        text.clear();
        lines = Lines::default();
        lines_before = line_count;
    }
}

/// Tests if a text can be evaluated.
fn is_whole(text: &str) -> bool {
    is_complete(text) || is_command(text)
}

/// Tests if a text is a line that begins with a command, which needs no `;`.
fn is_command(text: &str) -> bool {
    let line = text.trim();
    let word = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
    let is_known = COMMANDS.contains(&word.to_ascii_lowercase().as_str()) || line == "?";
    is_known && !text.trim_end_matches('\n').contains('\n') && is_complete(&format!("{line};"))
}

/// Validation and completion of NESL in the line editor.
struct NeslHelper {
    session: Rc<RefCell<Session>>,
    files: FilenameCompleter,
}

impl Helper for NeslHelper {}
impl Highlighter for NeslHelper {}
impl Hinter for NeslHelper {
    type Hint = String;
}

impl Validator for NeslHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_whole(context.input()) { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Completer for NeslHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..position];
        // Completes file names inside a string.
        if before.matches('"').count() % 2 == 1 {
            let (start, mut found) = self.files.complete_path(line, position)?;
            // The name of a file ends the string, that of a folder does not.
            if !line[position..].starts_with('"') {
                let files = found.iter_mut().filter(|pair| !pair.replacement.ends_with(MAIN_SEPARATOR));
                files.for_each(|pair| pair.replacement.push('"'));
            }
            return Ok((start, found));
        }
        let start = before.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        let word = before[start..].to_ascii_lowercase();
        let first = before[..start].split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
        let fixed: &[&str] = match first.as_str() {
            "" => &COMMANDS,
            "set" => &SETTINGS,
            "show" => &["code", "status"],
            _ => &[],
        };
        let mut found: Vec<String> = fixed.iter().map(|name| (*name).to_owned()).collect();
        if first != "set" {
            found.extend(Word::ALL.iter().map(|word| word.text().to_owned()));
            found.extend(self.session.borrow_mut().names(&word));
        }
        found.retain(|name| name.starts_with(&word) && name.starts_with(|c: char| c.is_ascii_alphabetic()));
        found.sort();
        found.dedup();
        Ok((start, found.into_iter().map(|name| Pair { display: name.clone(), replacement: name }).collect()))
    }
}

/// Edits lines on the terminal and evaluates them.
fn edited(options: &Repl, session: Session, limit: &FormLimit, terminal: &mut Terminal) -> Result<(), Failure> {
    let session = Rc::new(RefCell::new(session));
    let refused = |error: ReadlineError| {
        let message = format!("the terminal cannot be used: {error}");
        Failure::new(Exit::Machine, Diagnostic::error(codes::CANNOT_READ, message))
    };
    let config = Config::builder().max_history_size(HISTORY).and_then(|builder| builder.history_ignore_dups(true));
    let config = config.map_err(refused)?.history_ignore_space(true).completion_type(CompletionType::List).build();
    let mut editor: Editor<NeslHelper, DefaultHistory> = Editor::with_config(config).map_err(refused)?;
    editor.set_helper(Some(NeslHelper { session: session.clone(), files: FilenameCompleter::new() }));
    let history = if options.no_history { None } else { history() };
    if let Some(path) = &history {
        // The first session has no history file.
        let _ = editor.load_history(path);
    }
    terminal.write("NESL. A form ends with `;`, `help;` lists the commands, Ctrl-D ends.\n");
    loop {
        terminal.flush();
        match editor.readline("> ") {
            Ok(text) if text.trim().is_empty() => {}
            Ok(text) => {
                // The session continues without a history.
                let _ = editor.add_history_entry(text.as_str());
                let (more, _) = evaluate(&mut session.borrow_mut(), &text, 0, limit, terminal);
                if !more {
                    break;
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => {
                terminal.write("\n");
                break;
            }
            Err(error) => return Err(refused(error)),
        }
    }
    if let Some(path) = &history {
        let _ = editor.save_history(path);
    }
    Ok(())
}

/// Returns the path of the history file and creates its folder; `None` if the environment names no location
/// for it.
fn history() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")))?;
    let folder = state.join("broadloom");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("nesl_history"))
}
