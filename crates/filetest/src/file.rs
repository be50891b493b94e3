//! Parsing of a test file into settings, text and expectations, and rendering with new expectations.
//!
//! A file is one case or several. After a first line `// ----- name` each such line starts a new case with
//! this name and its own text and expectations. The part before the first one applies to all cases: its
//! settings, and its text if it has a line `// ...`, which is the place of each case's text.

use crate::devices::DeviceEntry;
use crate::expand::{Replacement, expand};
use crate::failure::Failure;
use crate::language::{Command, Language, Request};
use crate::tolerance::Tolerance;
use std::collections::BTreeMap;
use std::path::Path;

/// Settings of the leading comment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// `// test:` lines, in order.
    pub commands: Vec<&'static Command>,
    /// `// run:` lines: launches.
    pub runs: Vec<String>,
    /// `// let:` lines: texts too long or too unusual to stand in a file.
    pub replacements: Vec<Replacement>,
    /// Text after the words of commands, such as the passes of `// test: transform`.
    pub arguments: BTreeMap<&'static str, String>,
    /// `// tolerance:` line: the permitted difference of floats.
    pub tolerance: Option<Tolerance>,
}

/// Text with its commands and expectations.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Name, if the file has several cases.
    pub name: Option<String>,
    /// First line in the file, from 1.
    pub line: usize,
    /// Commands, including those of the whole file.
    pub settings: Settings,
    /// Text that the commands read, with its replacements.
    pub text: String,
    /// Expected output, by the name of the command: lines without the comment marks, each ending in a
    /// newline.
    pub expectations: BTreeMap<&'static str, String>,
    /// All lines of the file before the expectations.
    raw: String,
}

/// File of one or several cases.
#[derive(Clone, Debug, PartialEq)]
pub struct TestFile {
    /// Cases in order.
    pub cases: Vec<Case>,
    language: &'static Language,
    preamble: String,
}

/// Error in a test file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct FileError {
    /// Line, from 1.
    pub line: usize,
    /// Reason.
    pub message: String,
}

/// Marks of a case, of an expectation, and of the place of cases in a frame, each as a comment line.
const SEPARATOR: &str = "-----";
const EXPECT: &str = "expect ";
const PLACE: &str = "...";

/// Returns the text after a mark in a comment line.
fn behind<'l>(language: &Language, line: &'l str, mark: &str) -> Option<&'l str> {
    language.comment_in(line)?.strip_prefix(mark)
}

impl TestFile {
    /// Parses a file.
    pub fn parse(content: &str, language: &'static Language) -> Result<TestFile, FileError> {
        let lines: Vec<&str> = content.split_inclusive('\n').collect();
        let starts_case = |index: &usize| behind(language, lines[*index], SEPARATOR).is_some();
        let starts: Vec<usize> = (0..lines.len()).filter(starts_case).collect();
        let Some(&first) = starts.first() else {
            let cases = vec![Case::parse(None, 1, &lines, language, &Settings::default(), None)?];
            return Ok(TestFile { cases, language, preamble: String::new() });
        };
        let shared = Settings::parse(&lines[..first], language, 1, Settings::default())?;
        let template = Template::parse(&lines[..first], language)?;
        let mut cases: Vec<Case> = vec![];
        for (index, &start) in starts.iter().enumerate() {
            let end = starts.get(index + 1).copied().unwrap_or(lines.len());
            let name = behind(language, lines[start], SEPARATOR).unwrap_or_default().trim();
            let error = |message: String| FileError { line: start + 1, message };
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(error(format!("the name of a case is letters, digits and `_`, not `{name}`")));
            }
            if cases.iter().any(|case| case.name.as_deref() == Some(name)) {
                return Err(error(format!("a second case named `{name}`")));
            }
            let lines = &lines[start + 1..end];
            cases.push(Case::parse(Some(name), start + 2, lines, language, &shared, template.as_ref())?);
        }
        Ok(TestFile { cases, language, preamble: lines[..first].concat() })
    }

    /// Returns the file as text, with its current expectations.
    pub fn render(&self) -> String {
        let mut out = self.preamble.clone();
        for (index, case) in self.cases.iter().enumerate() {
            if let Some(name) = &case.name {
                // Cases of a file are separated by an empty line.
                if index > 0 {
                    out.push('\n');
                }
                out.push_str(&self.language.comment_of(&format!("{SEPARATOR} {name}")));
                out.push('\n');
            }
            out.push_str(&case.raw);
            for command in &case.settings.commands {
                let Some(expected) = case.expectations.get(command.name) else { continue };
                let head = format!("{EXPECT}{command}:");
                for line in std::iter::once(head.as_str()).chain(expected.lines()) {
                    out.push_str(&self.language.comment_of(line));
                    out.push('\n');
                }
            }
        }
        out
    }
}

/// Text around the cases of a file.
struct Template {
    before: String,
    after: String,
}

impl Template {
    fn parse(lines: &[&str], language: &Language) -> Result<Option<Template>, FileError> {
        let places: Vec<usize> =
            (0..lines.len()).filter(|&index| language.comment_in(lines[index].trim()) == Some(PLACE)).collect();
        let text = body_lines(lines, language);
        match places[..] {
            [] if text.iter().all(|line| line.trim().is_empty()) => Ok(None),
            [] => {
                Err(FileError { line: 1, message: format!("text before the first case needs a line `{PLACE}` where cases go") })
            }
            [place] => {
                let before = body_lines(&lines[..place], language).concat();
                Ok(Some(Template { before, after: lines[place + 1..].concat().trim_end().to_owned() + "\n" }))
            }
            [_, second, ..] => Err(FileError { line: second + 1, message: format!("a second `{PLACE}`") }),
        }
    }
}

/// Returns the lines after the leading comment.
fn body_lines<'l, 'a>(lines: &'l [&'a str], language: &Language) -> &'l [&'a str] {
    &lines[header_length(lines, language)..]
}

/// Returns the number of comment lines and empty lines that a text starts with.
fn header_length(lines: &[&str], language: &Language) -> usize {
    let header = |line: &&&str| line.trim().is_empty() || language.comment_in(line).is_some_and(|text| text != PLACE);
    lines.iter().take_while(header).count()
}

impl Settings {
    /// Parses the leading comment of some lines. Commands replace those of the file; launches and
    /// replacements add to them.
    fn parse(lines: &[&str], language: &Language, first_line: usize, shared: Settings) -> Result<Settings, FileError> {
        let mut settings = Settings { commands: vec![], ..shared };
        let header = &lines[..header_length(lines, language)];
        let comment = |index: usize| language.comment_in(header[index]).unwrap_or_default().trim();
        let mut index = 0;
        while index < header.len() {
            let line = first_line + index;
            let error = |message: String| FileError { line, message };
            let failed = |failure: Failure| error(failure.0);
            let mut text = comment(index).to_owned();
            index += 1;
            // A `\` at the end of a launch joins the next comment line.
            while text.starts_with("run:") && text.ends_with('\\') && index < header.len() {
                text.pop();
                text.push_str(comment(index));
                index += 1;
            }
            if let Some(word) = text.strip_prefix("test:") {
                let (word, rest) = word.trim().split_once(' ').unwrap_or((word.trim(), ""));
                let Some(command) = language.command(word) else {
                    let names = language.commands.iter().map(|command| command.name).collect::<Vec<_>>().join(", ");
                    return Err(error(format!("`{}` is not a command; there are {names}", word.trim())));
                };
                if settings.commands.contains(&command) {
                    return Err(error(format!("`test: {command}` a second time")));
                }
                match command.argument {
                    Some(check) => {
                        check(rest).map_err(failed)?;
                        settings.arguments.insert(command.name, rest.to_owned());
                    }
                    None if rest.is_empty() => {}
                    None => return Err(error(format!("`{command}` takes nothing behind it, not `{rest}`"))),
                }
                settings.commands.push(command);
            } else if let Some(launch) = text.strip_prefix("run:") {
                settings.runs.push(launch.trim().to_owned());
            } else if let Some(rest) = text.strip_prefix("let:") {
                settings.replacements.push(Replacement::parse(rest).map_err(failed)?);
            } else if let Some(rest) = text.strip_prefix("tolerance:") {
                settings.tolerance = Some(Tolerance::parse(rest).map_err(failed)?);
            }
        }
        Ok(settings)
    }
}

impl Case {
    /// Returns the request of a command on a device. `name` is the name of the text in diagnostics, and `folder`
    /// has the files that a launch reads.
    pub fn request<'a>(&'a self, command: &Command, name: &'a str, folder: &'a Path, device: &'a DeviceEntry) -> Request<'a> {
        let argument = self.settings.arguments.get(command.name).map_or("", String::as_str);
        Request { text: &self.text, argument, launches: &self.settings.runs, name, folder, device }
    }

    fn parse(
        name: Option<&str>,
        first_line: usize,
        lines: &[&str],
        language: &'static Language,
        shared: &Settings,
        template: Option<&Template>,
    ) -> Result<Case, FileError> {
        let error = |line: usize, message: String| FileError { line, message };
        let end = lines.iter().position(|line| behind(language, line, EXPECT).is_some()).unwrap_or(lines.len());
        let text_end = (0..end).rev().find(|&index| !lines[index].trim().is_empty()).map_or(0, |index| index + 1);
        let lines_of_text = &lines[..text_end];
        let mut settings = Settings::parse(lines_of_text, language, first_line, shared.clone())?;
        if settings.commands.is_empty() {
            settings.commands = shared.commands.clone();
        }
        if settings.commands.is_empty() {
            return Err(error(first_line, "no `// test:` line says what to do".to_owned()));
        }
        let needs_launch = settings.commands.iter().any(|command| command.launches);
        if needs_launch && settings.runs.is_empty() {
            return Err(error(first_line, "`test: run` needs a `// run:` line".to_owned()));
        }
        if !needs_launch && !settings.runs.is_empty() {
            return Err(error(first_line, "a `// run:` line without `// test: run`".to_owned()));
        }
        // The lines of a whole file keep their numbers; those of a case count from its first line that is not
        // a comment.
        let text = match (name, template) {
            (None, _) => lines_of_text.concat(),
            (Some(_), None) => body_lines(lines_of_text, language).concat(),
            (Some(_), Some(template)) => {
                template.before.clone() + &body_lines(lines_of_text, language).concat() + &template.after
            }
        };
        let text = expand(&text, &settings.replacements).map_err(|failure| error(first_line, failure.0))?;
        let expectations = expectations(&lines[end..], language, first_line + end)?;
        let is_done = |name: &str| settings.commands.iter().any(|command| command.name == name);
        if let Some(command) = expectations.keys().find(|name| !is_done(name)) {
            return Err(error(first_line + end, format!("`expect {command}` without `test: {command}`")));
        }
        let mut raw = lines_of_text.concat();
        if !raw.is_empty() && !raw.ends_with('\n') {
            raw.push('\n');
        }
        Ok(Case { name: name.map(str::to_owned), line: first_line, settings, text, expectations, raw })
    }
}

fn expectations(
    lines: &[&str],
    language: &'static Language,
    first_line: usize,
) -> Result<BTreeMap<&'static str, String>, FileError> {
    let mut found: BTreeMap<&'static str, String> = BTreeMap::new();
    let mut current = None;
    for (index, line) in lines.iter().enumerate() {
        let error = |message: String| FileError { line: first_line + index, message };
        let line = line.trim_end();
        if let Some(rest) = behind(language, line, EXPECT) {
            let word = rest.strip_suffix(':').unwrap_or(rest);
            let command = language.command(word).ok_or_else(|| error(format!("`{word}` is not a command")))?;
            if found.insert(command.name, String::new()).is_some() {
                return Err(error(format!("`expect {command}` a second time")));
            }
            current = Some(command.name);
        } else if let Some(text) = language.comment_in(line) {
            let section = current.and_then(|command| found.get_mut(command));
            let section = section.ok_or_else(|| error("a line that belongs to no expectation".to_owned()))?;
            section.push_str(text);
            section.push('\n');
        } else if !line.is_empty() {
            return Err(error("only comments may follow an expectation".to_owned()));
        }
    }
    Ok(found)
}
