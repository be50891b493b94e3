//! Runs the commands that the documents show, and compares their output. `BLESS=1` rewrites the
//! documents; arguments filter as in any Rust test.
//!
//! Each console block is a trial. Its commands run one after the other in a new folder, which has links to
//! the folders of the repository and the files that earlier blocks of the document define. Output files of
//! commands stay there. The cache of compiled code is empty before the first command of a block. A trial for
//! each document tests that the options of the commands in its text exist. `docs/TESTING.md` has the kinds of
//! blocks.

use broadloom_tidy::document::{Block, BlockKind, ConsoleCommand, blocks, named_commands, output, rewritten};
use broadloom_tidy::{File, Repository};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Variables of the caller that commands get. All others are unset.
const KEPT_VARIABLES: &[&str] = &["LD_LIBRARY_PATH", "BROADLOOM_CPU", "BROADLOOM_THREADS"];

/// New lines of blocks, by document.
type Changes = Arc<Mutex<BTreeMap<String, Vec<(Block, Vec<String>)>>>>;

fn main() {
    let arguments = Arguments::from_args();
    let bless = std::env::var_os("BLESS").is_some_and(|value| value != "0");
    let changes = Changes::default();
    let documents: Vec<File> = Repository::open().documents().collect();
    let trials = documents.iter().flat_map(|document| trials(document, &changes)).collect();
    // Trials rewrite nothing themselves: blocks of one document are trials on several threads.
    let conclusion = libtest_mimic::run(&arguments, trials);
    if bless {
        for (path, changes) in changes.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let text = &documents.iter().find(|document| document.path == *path).expect("it has the blocks").text;
            std::fs::write(root().join(path), rewritten(text, changes)).expect("documents of the repository can be written");
        }
    }
    conclusion.exit();
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the trials of a document.
fn trials(document: &File, changes: &Changes) -> Vec<Trial> {
    let mut trials = vec![];
    let mut files: Vec<(String, String)> = vec![];
    for block in blocks(&document.text) {
        match block.kind() {
            // Another test runs examples in Rust.
            Ok(BlockKind::Console) if is_example(&block) => {}
            Ok(BlockKind::Console) => {
                let name = format!("{}:{}", document.path, block.start);
                let (path, files, changes) = (document.path.clone(), files.clone(), changes.clone());
                trials.push(Trial::test(name, move || console(&path, &block, &files, &changes)));
            }
            Ok(BlockKind::Skipped(requirement)) => {
                let reason = format!("skipped: it needs: {requirement}");
                let runner = move || Ok(Completion::ignored_with(reason));
                trials.push(Trial::ignorable_test(format!("{}:{}", document.path, block.start), runner));
            }
            Ok(BlockKind::File(name)) => files.push((name, block.lines.join("\n") + "\n")),
            // A law of `crates/tidy` refuses blocks without a kind.
            Ok(_) | Err(_) => {}
        }
    }
    let (path, commands) = (document.path.clone(), named_commands(&document.text));
    trials.push(Trial::test(format!("{path} options"), move || options_exist(&path, &commands)));
    trials
}

/// Tests if a block shows an example of a crate.
fn is_example(block: &Block) -> bool {
    block.lines.iter().any(|line| line.starts_with("$ cargo run "))
}

/// Runs the commands of a block.
fn console(path: &str, block: &Block, files: &[(String, String)], changes: &Changes) -> Result<(), Failed> {
    let place = format!("{path}:{}", block.start);
    let folder = Folder::new(&place, files)?;
    let mut lines = vec![];
    for mut call in block.commands()? {
        let mut before = String::new();
        for number in 0..call.steps.len() {
            let whole = folder.run(&call, number)?;
            // A session prints the same for the first inputs, however many follow.
            let Some(printed) = whole.strip_prefix(&before) else {
                return Err(format!("{place}: `{}` prints other text when more input follows", call.command).into());
            };
            let printed: Vec<&str> = printed.lines().collect();
            let shown = &mut call.steps[number].shown;
            if !output::agrees(shown, &printed) {
                *shown = output::blessed(shown, &printed);
            }
            before = whole;
        }
        lines.extend(call.lines());
    }
    if lines == block.lines {
        return Ok(());
    }
    if std::env::var_os("BLESS").is_some_and(|value| value != "0") {
        let mut changes = changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.entry(path.to_owned()).or_default().push((block.clone(), lines));
        return Ok(());
    }
    let first = block.lines.iter().zip(&lines).position(|(shown, printed)| shown != printed);
    let first = first.unwrap_or(block.lines.len().min(lines.len()));
    let line = |lines: &[String]| lines.get(first).map_or("(nothing)".to_owned(), Clone::clone);
    Err(format!(
        "{path}:{} shows\n  {}\nbut the command says\n  {}\n`BLESS=1 cargo test --workspace --test documents` rewrites it.",
        block.start + first + 1,
        line(&block.lines),
        line(&lines)
    )
    .into())
}

/// New folder in which the commands of a block run; removed at the end.
struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes a folder with links to the folders of the repository, and with files.
    fn new(place: &str, files: &[(String, String)]) -> Result<Self, String> {
        let name: String = place.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        // Nobody but the user can write to it, whatever the rights of the folder of build outputs: else the
        // cache of compiled code is not used.
        let path = std::env::temp_dir().join(format!("broadloom-{}-{name}", std::process::id()));
        let folder = Folder { path };
        let failed = |error: std::io::Error| format!("{}: {error}", folder.path.display());
        std::fs::create_dir_all(folder.work()).map_err(failed)?;
        std::fs::create_dir_all(folder.home()).map_err(failed)?;
        let root = root().canonicalize().map_err(failed)?;
        for name in ["corpus", "crates", "docs", "examples", "tests"] {
            std::os::unix::fs::symlink(root.join(name), folder.work().join(name)).map_err(failed)?;
        }
        for (name, text) in files {
            std::fs::write(folder.work().join(name), text).map_err(failed)?;
        }
        Ok(folder)
    }

    fn work(&self) -> PathBuf {
        self.path.join("work")
    }

    fn home(&self) -> PathBuf {
        self.path.join("home")
    }

    /// Returns what a command prints on both channels, given the inputs up to a step.
    fn run(&self, call: &ConsoleCommand, step: usize) -> Result<String, String> {
        let folder = Path::new(env!("CARGO_BIN_EXE_broadloom")).parent().unwrap_or(Path::new("."));
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec 2>&1\n{}", call.command)]).current_dir(self.work()).env_clear();
        command.env("PATH", path).env("HOME", self.home());
        command.envs(KEPT_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        let failed = |error: std::io::Error| format!("`{}`: {error}", call.command);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(failed)?;
        let inputs = call.steps[..=step].iter().filter_map(|step| step.input.as_deref());
        let input: String = inputs.map(|line| format!("{line}\n")).collect();
        let mut stdin = child.stdin.take().expect("it is a pipe");
        // The input of a session is shorter than the buffer of a pipe. A closed pipe is no failure of the test.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let output = child.wait_with_output().map_err(failed)?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        match output.status.code() {
            Some(0..=3) if !printed.contains("panicked") => Ok(printed),
            _ => Err(format!("`{}` ended with {}:\n{printed}", call.command, output.status)),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that stays costs space, and no result.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Returns the help of a command, empty if there is no such command; of the whole, with an empty name.
fn help(name: &str) -> String {
    let arguments: &[&str] = if name.is_empty() { &["--help"] } else { &[name, "--help"] };
    let output = Command::new(env!("CARGO_BIN_EXE_broadloom")).args(arguments).output();
    let output = output.ok().filter(|output| output.status.success());
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// Returns the helps of all commands.
fn all_helps() -> &'static str {
    static HELPS: OnceLock<String> = OnceLock::new();
    HELPS.get_or_init(|| {
        let commands = help("");
        let names = commands.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| line.starts_with("  "));
        names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").map(help).collect()
    })
}

/// Tests if a help names an option.
fn has_option(help: &str, option: &str) -> bool {
    help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|word| word == option)
}

/// Tests if the options of commands in the text of a document are in the help of the command, and options
/// alone in the help of any command.
fn options_exist(path: &str, commands: &[(usize, String)]) -> Result<(), Failed> {
    let mut helps: BTreeMap<String, String> = BTreeMap::new();
    let mut wrong = String::new();
    for (line, command) in commands {
        let first = command.split([' ', '=']).next().unwrap_or_default();
        // The page about tests has options of cargo.
        if first.starts_with("--") && path != "docs/TESTING.md" && !has_option(all_helps(), first) {
            wrong.push_str(&format!("{path}:{line}: no command of broadloom has the option `{first}`\n"));
        }
        let mut words = command.split_whitespace().skip_while(|word| *word != "broadloom").skip(1);
        let Some(name) = words.next().filter(|name| *name != "help" && name.chars().all(|c| c.is_ascii_lowercase())) else {
            continue;
        };
        let help = helps.entry(name.to_owned()).or_insert_with(|| help(name));
        if help.is_empty() {
            wrong.push_str(&format!("{path}:{line}: there is no command `{name}`: `{command}`\n"));
        }
        for word in words.take_while(|word| *word != "--").filter(|word| word.starts_with("--")) {
            let option = word.split('=').next().unwrap_or(word);
            if !has_option(help, option) {
                wrong.push_str(&format!("{path}:{line}: `broadloom {name}` has no option `{option}`: `{command}`\n"));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.into()) }
}
