//! The languages of file tests: one registration each.
//!
//! A language is known by the extension of its files. It says how comments are written, which hold what to
//! do and what must come
//! out, and which commands there are. Adding one is a file with a [`Language`] and a line in [`LANGUAGES`].

use crate::devices::{DEVICES, DeviceEntry};
use crate::{Case, graph, nesl, ptx, stream};
use std::fmt;
use std::path::Path;

/// A language of file tests.
#[derive(Debug)]
pub struct Language {
    /// The extension of its files, without the point.
    pub extension: &'static str,
    /// How a comment starts, and how it ends before the end of its line if that is needed.
    pub comment: (&'static str, &'static str),
    /// The commands for its files.
    pub commands: &'static [Command],
}

/// All languages.
pub const LANGUAGES: &[&Language] = &[&ptx::LANGUAGE, &graph::LANGUAGE, &nesl::LANGUAGE, &stream::LANGUAGE];

/// Checks a text; the error says what is wrong.
pub type Check = fn(&str) -> Result<(), String>;

/// A command of a `// test:` line.
#[derive(Clone, Copy)]
pub struct Command {
    /// Its word.
    pub name: &'static str,
    /// Whether it needs `// run:` lines.
    pub launches: bool,
    /// Where it is done.
    pub devices: Devices,
    /// Checks what stands behind its word; a command without takes nothing.
    pub argument: Option<Check>,
    /// Does it; what comes out, or why nothing can.
    pub perform: fn(&Request<'_>) -> Result<String, String>,
}

/// The devices on which a command is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Devices {
    /// None is asked, or the first alone.
    One,
    /// All of them.
    All,
    /// Those with these names.
    Some(&'static [&'static str]),
}

impl Devices {
    /// Returns whether a command is done on a device. The first does what needs none.
    pub fn take(self, device: &DeviceEntry) -> bool {
        match self {
            Devices::One => device.name == DEVICES[0].name,
            Devices::All => true,
            Devices::Some(names) => names.contains(&device.name),
        }
    }
}

/// The input of a command.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The command.
    pub command: &'static Command,
    /// The text, and what was said about it.
    pub case: &'a Case,
    /// The name of the text in diagnostics.
    pub name: &'a str,
    /// Where files that a launch reads are looked for.
    pub folder: &'a Path,
    /// Where it runs.
    pub device: &'a DeviceEntry,
}

impl Request<'_> {
    /// Returns what stands behind the word of the command.
    pub fn argument(&self) -> &str {
        self.case.settings.arguments.get(self.command.name).map_or("", String::as_str)
    }
}

impl Language {
    /// Returns the language of a file, by its extension.
    pub fn of(path: &Path) -> Option<&'static Language> {
        let extension = path.extension().and_then(|extension| extension.to_str())?;
        LANGUAGES.iter().copied().find(|language| language.extension == extension)
    }

    /// Returns a command by its word.
    pub fn command(&self, name: &str) -> Option<&'static Command> {
        self.commands.iter().find(|command| command.name == name)
    }

    /// Returns what a line holds that is a comment and nothing else: without its marks and the blank behind
    /// the first.
    pub fn comment_in<'l>(&self, line: &'l str) -> Option<&'l str> {
        let (open, close) = self.comment;
        let inner = line.trim_end().strip_prefix(open)?;
        let inner = inner.strip_suffix(close).unwrap_or(inner);
        Some(inner.strip_prefix(' ').unwrap_or(inner).trim_end())
    }

    /// Returns a line of comment.
    pub fn comment_of(&self, text: &str) -> String {
        let (open, close) = self.comment;
        format!("{open} {text} {close}").trim_end().to_owned()
    }
}

impl PartialEq for Command {
    fn eq(&self, other: &Command) -> bool {
        std::ptr::fn_addr_eq(self.perform, other.perform) && self.name == other.name
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Language {
    fn eq(&self, other: &Language) -> bool {
        self.extension == other.extension
    }
}
