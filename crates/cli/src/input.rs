//! Input files: reading, parsing, verification.

use crate::failure::{Exit, Failure, codes};
use broadloom::device::trace::span;
use broadloom::diag::{Diagnostic, SourceId, Sources};
use broadloom::ptx::{self, Module, Verified, parse::MAX_INPUT};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Kind of an input file, by the extension of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Module of kernels. Files of any other extension are taken for one.
    Ptx,
    /// Graph in textual form: `.graph`.
    Graph,
    /// NESL program: `.nesl`.
    Nesl,
    /// VCODE program: `.vcode`.
    Vcode,
    /// StreamIt program: `.str`.
    Stream,
}

impl FileKind {
    /// Returns the kind of a file.
    pub fn of(file: &Path) -> FileKind {
        match file.extension().and_then(OsStr::to_str) {
            Some("graph") => FileKind::Graph,
            Some("nesl") => FileKind::Nesl,
            Some("vcode") => FileKind::Vcode,
            Some("str") => FileKind::Stream,
            _ => FileKind::Ptx,
        }
    }
}

/// Text of an input file.
#[derive(Debug)]
pub struct Input {
    /// Sources, which contain only this text.
    pub sources: Sources,
    /// ID of the text.
    pub id: SourceId,
}

impl Input {
    /// Reads a file; `-` is standard input.
    pub fn read(path: &Path) -> Result<Input, Failure> {
        let is_stdin = path.as_os_str() == "-";
        let name = if is_stdin { "<stdin>".to_owned() } else { path.display().to_string() };
        let mut bytes = vec![];
        // Reads one byte more than the limit, to distinguish a text that is too long from one that just fits.
        let limit = MAX_INPUT as u64 + 1;
        let outcome = if is_stdin {
            io::stdin().lock().take(limit).read_to_end(&mut bytes)
        } else {
            File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
        };
        outcome.map_err(|error| cannot_read(&name, path, &error))?;
        if bytes.len() > MAX_INPUT {
            let message = format!("{name} is larger than the {} MiB that are read", MAX_INPUT >> 20);
            return Err(Failure::usage(Diagnostic::error(codes::TOO_LARGE, message)));
        }
        let mut text = String::from_utf8(bytes).map_err(|error| not_text(&name, path, &error))?;
        // Some editors begin a text with a byte order mark.
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        let mut sources = Sources::new();
        let id = sources.add(name, text);
        Ok(Input { sources, id })
    }

    /// Returns the name of the text.
    pub fn name(&self) -> &str {
        self.sources.get(self.id).map_or("", |source| source.name())
    }

    /// Parses the text to a module, without verification.
    pub fn parse(self) -> Result<(Input, Module), Failure> {
        let _span = span("parse");
        match ptx::parse(&self.sources, self.id) {
            Ok(module) => Ok((self, module)),
            Err(diagnostics) => Err(Failure { exit: Exit::Usage, diagnostics, sources: self.sources }),
        }
    }

    /// Parses and verifies the text.
    pub fn verify(self) -> Result<(Input, Verified), Failure> {
        let (input, module) = self.parse()?;
        let _span = span("verify");
        match ptx::verify(module) {
            Ok(module) => Ok((input, module)),
            Err(diagnostics) => Err(Failure { exit: Exit::Usage, diagnostics, sources: input.sources }),
        }
    }
}

fn cannot_read(name: &str, path: &Path, error: &io::Error) -> Failure {
    let (message, help) = match error.kind() {
        ErrorKind::NotFound => (format!("there is no file {name}"), neighbours(path)),
        ErrorKind::IsADirectory => (format!("{name} is a folder, not a file"), files(path, "ptx")),
        ErrorKind::PermissionDenied => (format!("{name} may not be read: permission denied"), None),
        _ => (format!("{name} cannot be read: {error}"), None),
    };
    let mut diagnostic = Diagnostic::error(codes::CANNOT_READ, message);
    diagnostic.helps.extend(help);
    Failure::usage(diagnostic)
}

/// Returns a suggestion for a missing file: files of its folder with the same extension.
fn neighbours(path: &Path) -> Option<String> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Some(format!("there is no folder {} either", folder.display()));
    }
    files(folder, path.extension().and_then(OsStr::to_str).unwrap_or("ptx"))
}

fn files(folder: &Path, extension: &str) -> Option<String> {
    let entries = std::fs::read_dir(folder).ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_like = |name: &String| Path::new(name).extension().is_some_and(|own| own == extension);
    let mut names: Vec<String> = names.filter(is_like).collect();
    names.sort();
    let shown = 8.min(names.len());
    let more = if names.len() > shown { format!(" and {} more", names.len() - shown) } else { String::new() };
    (shown > 0).then(|| format!("{} has {}{more}", folder.display(), names[..shown].join(", ")))
}

fn not_text(name: &str, path: &Path, error: &std::string::FromUtf8Error) -> Failure {
    let at = error.utf8_error().valid_up_to();
    let bytes = error.as_bytes();
    let message = format!("{name} is not text: byte {at} is {:#04x}, which is not UTF-8", bytes[at]);
    let diagnostic = Diagnostic::error(codes::NOT_TEXT, message);
    let is_binary = bytes.starts_with(b"\x7fELF") || bytes.starts_with(&[0x50, 0xed, 0x55, 0xba]);
    let is_program = path.extension().is_some_and(|extension| extension != "ptx");
    Failure::usage(if is_binary {
        diagnostic.help(
            "this looks like a compiled program; its PTX comes out with `cuobjdump --dump-ptx`, or compile with `nvcc -ptx`",
        )
    } else if is_program {
        diagnostic.help("save the program as UTF-8; `iconv -f latin1 -t utf-8` converts texts in Latin-1")
    } else {
        diagnostic.help("PTX is text: `nvcc -ptx kernel.cu` writes kernel.ptx")
    })
}
