//! A test file taken apart: settings, the PTX text, the expectations; and put together again with new expectations.
//!
//! A file is one case, or several: after a first line `// ----- name` each such line starts a case of its own, named so, with
//! its own text and expectations. What stands before the first one holds for all: its settings, and its text if it has
//! a line `// ...`, which is where each case's text goes.

use crate::Command;
use crate::command::passes;
use crate::expand::{Replacement, expand};
use crate::tolerance::Tolerance;
use std::collections::BTreeMap;
use std::fmt;

/// What the leading comment asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// `// test:` lines, in order.
    pub commands: Vec<Command>,
    /// `// run:` lines: launches.
    pub runs: Vec<String>,
    /// `// let:` lines: texts too long or too odd to stand in a file.
    pub replacements: Vec<Replacement>,
    /// What stands behind `// test: transform`: passes, in order.
    pub passes: String,
    /// The `// tolerance:` line: how far floats may be from those expected.
    pub tolerance: Option<Tolerance>,
}

/// One text with what to do and what must come out.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Its name, when the file has several.
    pub name: Option<String>,
    /// The line of the file, from 1, on which it starts.
    pub line: usize,
    /// What to do, that of the whole file included.
    pub settings: Settings,
    /// The PTX text.
    pub text: String,
    /// What must come out, per command; lines without the comment marks, each ending in a newline.
    pub expectations: BTreeMap<Command, String>,
    /// All lines of the file before the expectations.
    raw: String,
}

/// A file of one or several cases.
#[derive(Clone, Debug, PartialEq)]
pub struct TestFile {
    /// The cases, in order.
    pub cases: Vec<Case>,
    preamble: String,
}

/// Why a file is no test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for FileError {}

const SEPARATOR: &str = "// -----";
const EXPECT: &str = "// expect ";
const PLACE: &str = "// ...";

impl TestFile {
    /// Takes a file apart.
    pub fn parse(content: &str) -> Result<TestFile, FileError> {
        let lines: Vec<&str> = content.split_inclusive('\n').collect();
        let starts: Vec<usize> = (0..lines.len()).filter(|&index| lines[index].starts_with(SEPARATOR)).collect();
        let Some(&first) = starts.first() else {
            return Ok(TestFile {
                cases: vec![Case::parse(None, 1, &lines, &Settings::default(), None)?],
                preamble: String::new(),
            });
        };
        let shared = Settings::parse(&lines[..first], 1, Settings::default())?;
        let template = Template::parse(&lines[..first])?;
        let mut cases: Vec<Case> = vec![];
        for (index, &start) in starts.iter().enumerate() {
            let end = starts.get(index + 1).copied().unwrap_or(lines.len());
            let name = lines[start][SEPARATOR.len()..].trim();
            let error = |message: String| FileError { line: start + 1, message };
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(error(format!("the name of a case is letters, digits and `_`, not `{name}`")));
            }
            if cases.iter().any(|case| case.name.as_deref() == Some(name)) {
                return Err(error(format!("a second case named `{name}`")));
            }
            cases.push(Case::parse(Some(name), start + 2, &lines[start + 1..end], &shared, template.as_ref())?);
        }
        Ok(TestFile { cases, preamble: lines[..first].concat() })
    }

    /// The file as text, with its expectations as they are now.
    pub fn render(&self) -> String {
        let mut out = self.preamble.clone();
        for (index, case) in self.cases.iter().enumerate() {
            if let Some(name) = &case.name {
                // Cases of a file are set apart by an empty line.
                if index > 0 {
                    out.push('\n');
                }
                out.push_str(&format!("{SEPARATOR} {name}\n"));
            }
            out.push_str(&case.raw);
            for command in &case.settings.commands {
                let Some(expected) = case.expectations.get(command) else { continue };
                out.push_str(&format!("{EXPECT}{command}:\n"));
                for line in expected.lines() {
                    out.push_str(format!("// {line}").trim_end());
                    out.push('\n');
                }
            }
        }
        out
    }
}

/// The text around the cases of a file.
struct Template {
    before: String,
    after: String,
}

impl Template {
    fn parse(lines: &[&str]) -> Result<Option<Template>, FileError> {
        let places: Vec<usize> = (0..lines.len()).filter(|&index| lines[index].trim() == PLACE).collect();
        let text = body_lines(lines);
        match places[..] {
            [] if text.iter().all(|line| line.trim().is_empty()) => Ok(None),
            [] => {
                Err(FileError { line: 1, message: format!("text before the first case needs a line `{PLACE}` where cases go") })
            }
            [place] => {
                let before = body_lines(&lines[..place]).concat();
                Ok(Some(Template { before, after: lines[place + 1..].concat().trim_end().to_owned() + "\n" }))
            }
            [_, second, ..] => Err(FileError { line: second + 1, message: format!("a second `{PLACE}`") }),
        }
    }
}

/// The lines behind the leading comment.
fn body_lines<'l, 'a>(lines: &'l [&'a str]) -> &'l [&'a str] {
    &lines[header_length(lines)..]
}

/// How many lines of comment, or empty, a text starts with.
fn header_length(lines: &[&str]) -> usize {
    let header = |line: &&&str| line.trim().is_empty() || (line.starts_with("//") && line.trim() != PLACE);
    lines.iter().take_while(header).count()
}

impl Settings {
    /// Reads the leading comment of some lines. Commands replace those of the file; launches and replacements add to them.
    fn parse(lines: &[&str], first_line: usize, shared: Settings) -> Result<Settings, FileError> {
        let mut settings = Settings { commands: vec![], ..shared };
        let header = &lines[..header_length(lines)];
        let mut index = 0;
        while index < header.len() {
            let line = first_line + index;
            let error = |message: String| FileError { line, message };
            let mut text = header[index].trim_start_matches('/').trim().to_owned();
            index += 1;
            // A `\` at the end of a launch joins the next line of comment.
            while text.starts_with("run:") && text.ends_with('\\') && index < header.len() {
                text.pop();
                text.push_str(header[index].trim_start_matches('/').trim());
                index += 1;
            }
            if let Some(word) = text.strip_prefix("test:") {
                let (word, rest) = word.trim().split_once(' ').unwrap_or((word.trim(), ""));
                let Some(command) = Command::from_name(word) else {
                    let names = Command::ALL.map(Command::name).join(", ");
                    return Err(error(format!("`{}` is not a command; there are {names}", word.trim())));
                };
                if settings.commands.contains(&command) {
                    return Err(error(format!("`test: {command}` a second time")));
                }
                if command == Command::Transform {
                    passes(rest).map_err(error)?;
                    settings.passes = rest.to_owned();
                } else if !rest.is_empty() {
                    return Err(error(format!("`{command}` takes nothing behind it, not `{rest}`")));
                }
                settings.commands.push(command);
            } else if let Some(launch) = text.strip_prefix("run:") {
                settings.runs.push(launch.trim().to_owned());
            } else if let Some(rest) = text.strip_prefix("let:") {
                settings.replacements.push(Replacement::parse(rest).map_err(error)?);
            } else if let Some(rest) = text.strip_prefix("tolerance:") {
                settings.tolerance = Some(Tolerance::parse(rest).map_err(error)?);
            }
        }
        Ok(settings)
    }
}

impl Case {
    fn parse(
        name: Option<&str>,
        first_line: usize,
        lines: &[&str],
        shared: &Settings,
        template: Option<&Template>,
    ) -> Result<Case, FileError> {
        let error = |line: usize, message: String| FileError { line, message };
        let end = lines.iter().position(|line| line.starts_with(EXPECT)).unwrap_or(lines.len());
        let text_end = (0..end).rev().find(|&index| !lines[index].trim().is_empty()).map_or(0, |index| index + 1);
        let lines_of_text = &lines[..text_end];
        let mut settings = Settings::parse(lines_of_text, first_line, shared.clone())?;
        if settings.commands.is_empty() {
            settings.commands = shared.commands.clone();
        }
        if settings.commands.is_empty() {
            return Err(error(first_line, "no `// test:` line says what to do".to_owned()));
        }
        let needs_launch = settings.commands.iter().any(|command| command.launches());
        if needs_launch && settings.runs.is_empty() {
            return Err(error(first_line, "`test: run` needs a `// run:` line".to_owned()));
        }
        if !needs_launch && !settings.runs.is_empty() {
            return Err(error(first_line, "a `// run:` line without `// test: run`".to_owned()));
        }
        // The lines of a whole file keep their numbers; those of a case count from its first line that is no comment.
        let text = match (name, template) {
            (None, _) => lines_of_text.concat(),
            (Some(_), None) => body_lines(lines_of_text).concat(),
            (Some(_), Some(template)) => template.before.clone() + &body_lines(lines_of_text).concat() + &template.after,
        };
        let text = expand(&text, &settings.replacements).map_err(|message| error(first_line, message))?;
        let expectations = expectations(&lines[end..], first_line + end)?;
        if let Some(command) = expectations.keys().find(|command| !settings.commands.contains(command)) {
            return Err(error(first_line + end, format!("`expect {command}` without `test: {command}`")));
        }
        let mut raw = lines_of_text.concat();
        if !raw.is_empty() && !raw.ends_with('\n') {
            raw.push('\n');
        }
        Ok(Case { name: name.map(str::to_owned), line: first_line, settings, text, expectations, raw })
    }
}

fn expectations(lines: &[&str], first_line: usize) -> Result<BTreeMap<Command, String>, FileError> {
    let mut found: BTreeMap<Command, String> = BTreeMap::new();
    let mut current = None;
    for (index, line) in lines.iter().enumerate() {
        let error = |message: String| FileError { line: first_line + index, message };
        let line = line.trim_end();
        if let Some(rest) = line.strip_prefix(EXPECT) {
            let word = rest.strip_suffix(':').unwrap_or(rest);
            let command = Command::from_name(word).ok_or_else(|| error(format!("`{word}` is not a command")))?;
            if found.insert(command, String::new()).is_some() {
                return Err(error(format!("`expect {command}` a second time")));
            }
            current = Some(command);
        } else if let Some(text) = line.strip_prefix("//") {
            let section = current.and_then(|command| found.get_mut(&command));
            let section = section.ok_or_else(|| error("a line that belongs to no expectation".to_owned()))?;
            section.push_str(text.strip_prefix(' ').unwrap_or(text));
            section.push('\n');
        } else if !line.is_empty() {
            return Err(error("only comments may follow an expectation".to_owned()));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "// Prose.\n// test: print\n// test: verify\n.version 8.0\n\n// expect print:\n// a\n//\n//   b\n// expect verify:\n// ok\n";

    #[test]
    fn a_file_of_one_case() {
        let file = TestFile::parse(ONE).unwrap();
        let [case] = &file.cases[..] else { panic!("one case") };
        assert_eq!(case.settings.commands, [Command::Print, Command::Verify]);
        assert_eq!(case.text, "// Prose.\n// test: print\n// test: verify\n.version 8.0\n");
        assert_eq!(case.expectations[&Command::Print], "a\n\n  b\n");
        assert_eq!(case.expectations[&Command::Verify], "ok\n");
    }

    #[test]
    fn rewriting_keeps_everything_but_expectations() {
        let mut file = TestFile::parse(ONE).unwrap();
        assert_eq!(file.render(), ONE.replace("8.0\n\n", "8.0\n"));
        file.cases[0].expectations.insert(Command::Verify, "bad\n".to_owned());
        assert_eq!(file.render(), ONE.replace("8.0\n\n", "8.0\n").replace("// ok", "// bad"));
    }

    #[test]
    fn cases_share_settings_and_a_template() {
        let text = "// test: verify\nhead\n// ...\ntail\n\n// ----- a\nx\n// expect verify:\n// ok\n\n// ----- b\n// why\n// let: n = \"y\" * 3\n<<n>>\n";
        let file = TestFile::parse(text).unwrap();
        assert_eq!(file.cases[0].text, "head\nx\ntail\n");
        assert_eq!(file.cases[1].text, "head\nyyy\ntail\n");
        assert_eq!(file.cases[1].name.as_deref(), Some("b"));
        assert_eq!(file.render(), text);
    }

    #[test]
    fn launches_may_span_lines() {
        let file = TestFile::parse("// test: run\n// run: --grid 2 \\\n//      --block 3\n.version 8.0\n").unwrap();
        assert_eq!(file.cases[0].settings.runs, ["--grid 2 --block 3"]);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        for (text, line, part) in [
            ("// no command\n.version 8.0\n", 1, "no `// test:`"),
            ("// test: frobnicate\n", 1, "not a command"),
            ("// test: print fold\n", 1, "takes nothing"),
            ("// test: transform\n", 1, "needs passes"),
            ("// test: transform to_ssa, frobnicate\n", 1, "`frobnicate` is not a pass"),
            ("// test: print\n// test: print\n", 2, "second time"),
            ("// test: print\nx\n// expect print:\nstray\n", 4, "only comments"),
            ("// test: print\nx\n// expect verify:\n// ok\n", 3, "without `test: verify`"),
            ("// test: run\nx\n", 1, "needs a `// run:`"),
            ("// test: print\n// run: --grid 1\nx\n", 1, "without `// test: run`"),
            ("// test: print\nx\n// ----- a\n", 1, "needs a line"),
            ("// test: print\n// ----- a\n// ----- a\n", 3, "second case"),
            ("// test: print\n// ----- a b\n", 2, "name of a case"),
            ("// test: print\n// let: x\nx\n", 2, "let"),
            ("// test: run\n// tolerance: a bit\nx\n", 2, "not a tolerance"),
        ] {
            let error = TestFile::parse(text).unwrap_err();
            assert!(error.line == line && error.message.contains(part), "{text:?}: {error}");
        }
    }
}
