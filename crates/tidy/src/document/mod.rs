//! Fenced blocks of Markdown documents: their kinds, and the outputs that they show.
//!
//! The word behind the backticks is the language of a block. The second word says how the block is tested;
//! [`Block::kind`] has the table. `docs/TESTING.md` is the guide.
//!
//! A `console` block is a list of [`ConsoleCommand`]s: a line `$ COMMAND`, then its output. A command whose next line
//! begins with `> ` is a session: such lines are its input. [`output`] compares an output with what the block
//! shows, in which `…` stands for text that differs between machines.

pub mod output;

use std::fmt;

/// Fenced block.
#[derive(Clone, Debug)]
pub struct Block {
    /// Number of its first line behind the opening backticks, from 0.
    pub start: usize,
    /// Words behind the opening backticks.
    pub info: Vec<String>,
    /// The text between the fences.
    pub lines: Vec<String>,
}

/// Kind of a block: how it is tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// `console`: its commands print what it shows.
    Console,
    /// `console gpu`, `console nvcc`, …: a console block whose commands need something that few machines have.
    Skipped(String),
    /// `sh`: commands without output. Their options exist.
    Commands,
    /// A language and a path of the repository: the lines are in that file, in this order, without a gap.
    Excerpt(String),
    /// A language and the name of a file: the commands of later `console` blocks find the file.
    File(String),
    /// `rust`: an example that the tests of a crate run.
    Example,
    /// `python`: a session that the tests of the Python package run.
    Session,
    /// A language and `fragment`: not a whole program.
    Fragment,
    /// `text diagram`: a drawing.
    Diagram,
}

/// Block of a document that no test can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MalformedBlock {
    /// Words behind the backticks that are not in the table of [`BlockKind`].
    Kind(String),
    /// Console block that begins with output.
    NoCommand,
}

impl fmt::Display for MalformedBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MalformedBlock::Kind(words) => write!(f, "a block of the kind `{words}`"),
            MalformedBlock::NoCommand => f.write_str("a console block begins with `$ ` and a command"),
        }
    }
}

/// Requirements of console blocks that are skipped.
const REQUIREMENTS: &[&str] = &["gpu", "network", "nvcc", "program"];

/// Languages of code.
const LANGUAGES: &[&str] = &["rust", "nesl", "str", "graph", "ptx", "cpp", "toml"];

impl Block {
    /// Returns the kind of the block.
    ///
    /// # Errors
    /// If the words behind the backticks are not in the table of [`BlockKind`].
    pub fn kind(&self) -> Result<BlockKind, MalformedBlock> {
        let info: Vec<&str> = self.info.iter().map(String::as_str).collect();
        match info.as_slice() {
            ["console"] => Ok(BlockKind::Console),
            ["console", requirement] if REQUIREMENTS.contains(requirement) => Ok(BlockKind::Skipped((*requirement).to_owned())),
            ["sh"] => Ok(BlockKind::Commands),
            ["text", "diagram"] => Ok(BlockKind::Diagram),
            ["rust"] => Ok(BlockKind::Example),
            ["python"] => Ok(BlockKind::Session),
            [language, "fragment"] if LANGUAGES.contains(language) => Ok(BlockKind::Fragment),
            [language, file] if LANGUAGES.contains(language) && file.contains('/') => Ok(BlockKind::Excerpt((*file).to_owned())),
            [language, file] if LANGUAGES.contains(language) && file.contains('.') => Ok(BlockKind::File((*file).to_owned())),
            _ => Err(MalformedBlock::Kind(self.info.join(" "))),
        }
    }

    /// Returns the commands of a console block with what it shows of their output.
    ///
    /// # Errors
    /// If the block begins with output.
    pub fn commands(&self) -> Result<Vec<ConsoleCommand>, MalformedBlock> {
        let mut calls: Vec<ConsoleCommand> = vec![];
        let mut continues = false;
        for line in &self.lines {
            match (line.strip_prefix("$ "), calls.last_mut()) {
                (_, Some(call)) if continues => {
                    call.command.push('\n');
                    call.command.push_str(line);
                }
                (Some(command), _) => {
                    calls.push(ConsoleCommand { command: command.to_owned(), steps: vec![OutputPart::default()] })
                }
                (None, Some(call)) => call.add(line),
                (None, None) => return Err(MalformedBlock::NoCommand),
            }
            continues = line.ends_with('\\') && calls.last().is_some_and(|call| call.is_bare());
        }
        Ok(calls)
    }

    /// Tests if a text contains the lines of the block one after the other, all indented by the same amount.
    pub fn is_excerpt_of(&self, text: &str) -> bool {
        let lines: Vec<&str> = text.lines().collect();
        let shown: Vec<&str> = self.lines.iter().map(|line| line.trim_end()).collect();
        let Some(first) = shown.first() else { return true };
        lines.windows(shown.len()).any(|window| {
            let Some(indent) = window[0].strip_suffix(first).filter(|indent| indent.trim().is_empty()) else { return false };
            window.iter().zip(&shown).all(|(line, shown)| {
                line.strip_prefix(indent).is_some_and(|line| line == *shown) || line.is_empty() && shown.is_empty()
            })
        })
    }
}

/// Command of a console block and its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleCommand {
    /// Text for the shell.
    pub command: String,
    /// The output before the first input, then each input with the output that follows it.
    pub steps: Vec<OutputPart>,
}

/// Part of the output of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputPart {
    /// Line that the session reads; `None` for the output before the first input.
    pub input: Option<String>,
    /// Output up to the next input.
    pub shown: Vec<String>,
}

impl ConsoleCommand {
    /// Tests if nothing but the command was added.
    fn is_bare(&self) -> bool {
        self.steps.len() == 1 && self.steps[0].shown.is_empty()
    }

    fn add(&mut self, line: &str) {
        let is_input = line.starts_with("> ") && (self.is_bare() || self.is_session());
        match self.steps.last_mut() {
            Some(step) if !is_input => step.shown.push(line.to_owned()),
            _ => self.steps.push(OutputPart { input: Some(line[2..].to_owned()), shown: vec![] }),
        }
    }

    /// Tests if the command reads lines of the block.
    pub fn is_session(&self) -> bool {
        self.steps.len() > 1
    }

    /// Returns the lines of the block for this command.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = format!("$ {}", self.command).lines().map(str::to_owned).collect();
        for step in &self.steps {
            lines.extend(step.input.iter().map(|input| format!("> {input}")));
            lines.extend(step.shown.iter().cloned());
        }
        lines
    }
}

/// Returns the fenced blocks of a document.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = vec![];
    let mut open: Option<Block> = None;
    for (number, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(info), None) => {
                let info = info.split_whitespace().map(str::to_owned).collect();
                open = Some(Block { start: number + 1, info, lines: vec![] });
            }
            (None, Some(block)) => block.lines.push(line.to_owned()),
            (None, None) => {}
        }
    }
    blocks.extend(open);
    blocks
}

/// Returns a document in which blocks have other lines. Each change has the block and its new lines.
pub fn rewritten(text: &str, changes: &[(Block, Vec<String>)]) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let mut ordered: Vec<&(Block, Vec<String>)> = changes.iter().collect();
    ordered.sort_by_key(|(block, _)| block.start);
    for (block, new) in ordered.into_iter().rev() {
        lines.splice(block.start..block.start + block.lines.len(), new.iter().map(String::as_str));
    }
    lines.join("\n") + "\n"
}

/// Returns the commands `broadloom …` and the options `--…` that a document names outside of console blocks: in
/// `sh` blocks and in backticks. Each has the number of its line, from 1.
pub fn named_commands(text: &str) -> Vec<(usize, String)> {
    let mut named = vec![];
    let mut language: Option<&str> = None;
    for (number, line) in text.lines().enumerate() {
        if let Some(info) = line.strip_prefix("```") {
            language = if language.is_some() { None } else { Some(info.trim()) };
        } else if language == Some("sh") {
            named.push((number + 1, line.split(" #").next().unwrap_or_default().trim().to_owned()));
        } else if language.is_none() {
            named.extend(line.split('`').skip(1).step_by(2).map(|word| (number + 1, word.to_owned())));
        }
    }
    let is_call = |text: &str| text.split_whitespace().any(|word| word == "broadloom");
    named.retain(|(_, text)| is_call(text) || text.starts_with("--"));
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Page\n\n```console\n$ broadloom x \\\n    --y\none\n$ broadloom repl\n> 1;\nit = 1\n> 2;\n```\n\n```str a.str\nvoid\n```\n";

    #[test]
    fn blocks_have_calls_and_sessions() {
        let blocks = blocks(PAGE);
        assert_eq!(
            blocks.iter().map(|block| block.kind().unwrap()).collect::<Vec<_>>(),
            [BlockKind::Console, BlockKind::File("a.str".into())]
        );
        let calls = blocks[0].commands().unwrap();
        assert_eq!(calls[0].command, "broadloom x \\\n    --y");
        assert_eq!(calls[0].steps[0].shown, ["one"]);
        assert!(calls[1].is_session() && !calls[0].is_session());
        assert_eq!(calls[1].steps[1], OutputPart { input: Some("1;".into()), shown: vec!["it = 1".into()] });
        assert_eq!(calls.iter().flat_map(ConsoleCommand::lines).collect::<Vec<_>>(), blocks[0].lines);
        assert_eq!(rewritten(PAGE, &[(blocks[1].clone(), vec!["int".into(), "x".into()])]), PAGE.replace("void\n", "int\nx\n"));
    }

    #[test]
    fn blocks_without_a_test_have_no_kind() {
        for info in ["", "text", "bash", "console cpu", "rust x y", "nesl"] {
            let block = Block { start: 1, info: info.split_whitespace().map(str::to_owned).collect(), lines: vec![] };
            assert!(block.kind().is_err(), "{info}");
        }
        let skipped = Block { start: 1, info: vec!["console".into(), "gpu".into()], lines: vec![] };
        assert_eq!(skipped.kind(), Ok(BlockKind::Skipped("gpu".into())));
        let output = Block { start: 1, info: vec!["console".into()], lines: vec!["it = 1".into()] };
        assert!(output.commands().is_err());
    }

    #[test]
    fn excerpts_are_found_at_any_indentation() {
        let block = Block { start: 1, info: vec![], lines: vec!["a {".into(), String::new(), "  b".into()] };
        assert!(block.is_excerpt_of("x\n  a {\n\n    b\n  }\n") && block.is_excerpt_of("a {\n\n  b"));
        assert!(!block.is_excerpt_of("  a {\n\n  b\n") && !block.is_excerpt_of("a {\n  b\n"));
    }

    #[test]
    fn commands_are_found_in_backticks_and_lists() {
        let text = "Use `broadloom run x --stats`, `--int 64` or `make`.\n\n```sh\nbroadloom devices   # all\n```\n";
        let named = [(1, "broadloom run x --stats"), (1, "--int 64"), (4, "broadloom devices")];
        assert_eq!(named_commands(text), named.map(|(line, text)| (line, text.to_owned())));
    }
}
