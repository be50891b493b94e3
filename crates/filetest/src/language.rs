//! Description of a language of file tests: the comment syntax, for settings and expectations, and the
//! commands.

use crate::devices::{DEVICES, DeviceEntry};
use crate::failure::Failure;
use std::fmt;
use std::path::Path;

/// Language of file tests.
#[derive(Debug)]
pub struct Language {
    /// Extension of its files, without the dot.
    pub extension: &'static str,
    /// Start of a comment, and its end before the end of the line, if needed.
    pub comment: (&'static str, &'static str),
    /// Commands for its files.
    pub commands: &'static [Command],
}

/// Check of an argument; the error describes what is wrong.
pub type ArgumentCheck = fn(&str) -> Result<(), Failure>;

/// Command of a `// test:` line.
#[derive(Clone, Copy)]
pub struct Command {
    /// Name of the command.
    pub name: &'static str,
    /// True if it needs `// run:` lines.
    pub launches: bool,
    /// Devices that it runs on.
    pub devices: Devices,
    /// Check of its argument; `None` if it takes none.
    pub argument: Option<ArgumentCheck>,
    /// Runs the command; returns its output, or the reason why there is none.
    pub perform: fn(&Request<'_>) -> Result<String, Failure>,
}

/// Devices on which a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Devices {
    /// No device, or only the first.
    One,
    /// All of them.
    All,
    /// Devices with these names.
    Some(&'static [&'static str]),
}

impl Devices {
    /// Returns whether a command runs on a device. The first runs commands that need none.
    pub fn take(self, device: &DeviceEntry) -> bool {
        match self {
            Devices::One => device.name == DEVICES[0].name,
            Devices::All => true,
            Devices::Some(names) => names.contains(&device.name),
        }
    }
}

/// Input of a command.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Text of the case.
    pub text: &'a str,
    /// Argument of the command: the text after its name.
    pub argument: &'a str,
    /// Launches of the case.
    pub launches: &'a [String],
    /// Name of the text in diagnostics.
    pub name: &'a str,
    /// Folder of the files that a launch reads.
    pub folder: &'a Path,
    /// The device that runs the command.
    pub device: &'a DeviceEntry,
}

impl Language {
    /// Returns a command by name.
    pub fn command(&self, name: &str) -> Option<&'static Command> {
        self.commands.iter().find(|command| command.name == name)
    }

    /// Returns the text of a line that is only a comment, without its marks and the blank after the first.
    pub fn comment_in<'l>(&self, line: &'l str) -> Option<&'l str> {
        let (open, close) = self.comment;
        let inner = line.trim_end().strip_prefix(open)?;
        let inner = inner.strip_suffix(close).unwrap_or(inner);
        Some(inner.strip_prefix(' ').unwrap_or(inner).trim_end())
    }

    /// Returns a comment line.
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
