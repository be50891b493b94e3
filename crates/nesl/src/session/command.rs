//! Commands of the top level.

use super::Output;
use super::worker::Worker;
use crate::codes;
use crate::core::DefinitionKind;
use crate::eval::Value;
use crate::infer::TypedExpression;
use crate::syntax::{Ast, CommandWord, Expr, ExprId, Name, Word};
use broadloom_diag::{Diagnostic, Diagnostics};
use std::fmt::Write as _;
use std::sync::Arc;

const HELP: &str = "\
Forms:
  function <name>(<pattern>) [: <type>] = <expression>;   a function
  datatype <name>(<type>);                                 a datatype
  <pattern> = <expression>;                                a variable
  <expression>;                                            any expression

Commands:
  help;                      this text
  help <name>;               the same as describe
  describe <name>;           the type, the description and the code of a function
  apropos <text>;            the names that contain a text
  load \"<file>\";             reads a file; without a name, the last one again
  set print_length <n>;      how many elements of a sequence are printed
  set verbose on|off;        whether `load` names the file
  set sequential on|off;     whether small calls run sequentially
  show code <name>;          the code of a function
  show status;               the settings
  exit;                      leaves
";

/// Names of the settings that `set` changes.
pub const SETTINGS: [&str; 4] = ["print_length", "verbose", "arg_check", "sequential"];

/// Commands of the original that are refused, with advice.
const REFUSED: [(&str, &str); 4] = [
    ("shell", "`shell_command(\"ls\", \"\")` runs a command and gives its output"),
    ("edit", "change the file in an editor; `load;` reads the last file again"),
    ("dump", "`broadloom explain FILE --emit vcode` writes the VCODE of a file"),
    ("defconfig", "the option `--device` of the command chooses the machine"),
];

fn refuse(message: impl Into<String>) -> Result<(), Diagnostics> {
    Err(Diagnostic::error(codes::COMMAND, message).into())
}

/// Returns the use of a word of the language.
fn usage(word: Word) -> &'static str {
    match word {
        Word::If | Word::Then | Word::Else => "if <condition> then <expression> else <expression>",
        Word::Let => "let <pattern> = <expression>; ... in <expression>",
        Word::In => "let <pattern> = <expression> in <expression>, {<expression> : <pattern> in <sequence>}",
        Word::Function => "function <name>(<pattern>) [: <type>] = <expression>;",
        Word::Datatype => "datatype <name>(<type>);",
        Word::And | Word::Or | Word::Xor | Word::Nand | Word::Nor => "an operator on two bools or two ints",
        Word::True => "the value true",
        Word::False => "the value false",
        Word::Time => "time(<expression>), the value of the expression and the seconds that it takes",
    }
}

fn word(word: &CommandWord) -> String {
    match word {
        CommandWord::Word(word) => word.clone(),
        CommandWord::Int(value) => value.to_string(),
        CommandWord::Text(text) => String::from_utf8_lossy(text).into_owned(),
    }
}

impl Worker {
    fn say(&mut self, text: impl Into<String>) -> Result<(), Diagnostics> {
        self.emit(Output::Text(text.into().into_bytes()));
        Ok(())
    }

    pub(super) fn command(&mut self, name: &Name, words: &[CommandWord]) -> Result<(), Diagnostics> {
        let texts: Vec<String> = words.iter().map(word).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        match (name.as_str(), texts.as_slice()) {
            ("help", []) => self.say(HELP),
            ("help" | "describe", [what]) => self.describe(what),
            ("help" | "describe", _) => refuse(format!("`{name}` takes the name of a function: `{name} sum;`")),
            ("apropos", [part]) => self.apropos(part),
            ("apropos", _) => refuse("`apropos` takes a part of a name: `apropos scan;`"),
            ("exit" | "lisp", _) => {
                self.leave();
                Ok(())
            }
            ("get", _) => {
                refuse("there is no work in the background to get; inside of an expression `get` is a function: `(get(v, i))`")
            }
            ("set", [what, rest @ ..]) => self.set(what, rest, words),
            ("set", []) => refuse("`set` takes a setting and its value: `set print_length 20;`"),
            ("show", ["code", what]) => self.show_code(what),
            ("show", ["status"]) => self.status(),
            ("show", ["bugs"]) => self.say("no bugs are known\n"),
            ("show", _) => refuse("`show` takes `code <name>` or `status`"),
            (command, _) => {
                let error = Diagnostic::error(codes::COMMAND, format!("the command `{name}` is not supported"));
                let advice = REFUSED.iter().find(|(refused, _)| *refused == command);
                Err(advice.map_or(error.clone(), |(_, advice)| error.help(*advice)).into())
            }
        }
    }

    fn describe(&mut self, what: &str) -> Result<(), Diagnostics> {
        let Some(id) = self.env.lookup(&Name::new(what)) else {
            if let Some(word) = Word::ALL.iter().find(|word| word.text().eq_ignore_ascii_case(what)) {
                return self.say(format!("`{word}` is a word of the language: {}\n", usage(*word)));
            }
            let similar = self.env.similar(what, std::iter::empty());
            let error = Diagnostic::error(codes::UNDEFINED, format!("`{what}` is not defined"));
            return Err(match similar {
                Some(similar) => error.help(format!("did you mean `{similar}`?")).into(),
                None => error.help("`apropos` lists names that contain a text").into(),
            });
        };
        let known = &self.env.definitions[id];
        let mut text = String::new();
        if !matches!(known.kind, DefinitionKind::Value) {
            let _ = writeln!(text, "INTERFACE: {}", known.interface);
        }
        let serial = if known.serial { " (callable in serial only)" } else { "" };
        let _ = writeln!(text, "TYPE: {}{serial}", self.env.print_scheme(&known.scheme));
        if let Some(doc) = &known.doc {
            let _ = writeln!(text, "DOCUMENTATION: {doc}");
        }
        match &known.kind {
            DefinitionKind::Function(_) => {
                let _ = writeln!(text, "CODE:\n{}", known.code);
            }
            DefinitionKind::Primitive(_) => text.push_str("CODE: primitive\n"),
            DefinitionKind::Declared => text.push_str("CODE: declared, not defined yet\n"),
            DefinitionKind::Constructor(_) | DefinitionKind::Value => {}
        }
        self.say(text)
    }

    fn apropos(&mut self, part: &str) -> Result<(), Diagnostics> {
        let part = part.to_ascii_lowercase();
        let mut text = String::new();
        for (name, &id) in self.env.names.iter().filter(|(name, _)| name.as_str().contains(&part)) {
            let _ = writeln!(text, "{name} : {}", self.env.print_scheme(&self.env.definitions[id].scheme));
        }
        self.say(if text.is_empty() { format!("no name contains `{part}`\n") } else { text })
    }

    fn set(&mut self, what: &str, rest: &[&str], words: &[CommandWord]) -> Result<(), Diagnostics> {
        let on = match rest {
            ["on"] => Some(true),
            ["off"] => Some(false),
            _ => None,
        };
        match (what, on) {
            ("print_length", _) => match words.get(1) {
                Some(CommandWord::Int(length)) if words.len() == 2 => {
                    self.print_length = usize::try_from(*length).unwrap_or(usize::MAX);
                    Ok(())
                }
                _ => refuse("`set print_length` takes a number"),
            },
            ("verbose", Some(on)) => {
                self.verbose = on;
                Ok(())
            }
            ("arg_check", Some(true)) => Ok(()),
            ("arg_check", Some(false)) => self.say("Arguments are always checked.\n"),
            ("sequential", Some(on)) => {
                if let Some(accelerator) = &mut self.accelerator {
                    accelerator.set_sequential(on);
                }
                Ok(())
            }
            ("verbose" | "arg_check" | "sequential", None) => refuse(format!("`set {what}` takes `on` or `off`")),
            _ => {
                let error = Diagnostic::error(codes::COMMAND, format!("there is no setting `{what}`"));
                Err(error.help(format!("the settings are `{}`", SETTINGS.join("`, `"))).into())
            }
        }
    }

    fn show_code(&mut self, what: &str) -> Result<(), Diagnostics> {
        let Some(id) = self.env.lookup(&Name::new(what)) else {
            return Err(Diagnostic::error(codes::UNDEFINED, format!("`{what}` is not defined")).into());
        };
        let known = &self.env.definitions[id];
        let text = match known.kind {
            DefinitionKind::Function(_) => format!("{}\n", known.code),
            DefinitionKind::Primitive(_) => format!("{what} is a primitive.\n"),
            DefinitionKind::Declared | DefinitionKind::Constructor(_) | DefinitionKind::Value => {
                format!("{what} is not a function definition.\n")
            }
        };
        self.say(text)
    }

    fn status(&mut self) -> Result<(), Diagnostics> {
        let verbose = if self.verbose { "on" } else { "off" };
        self.say(format!("verbose {verbose}\narg_check on\nprint_length = {}\n", self.print_length))
    }

    /// Executes `load`, with its optional arguments `verbose` and `print`.
    pub(super) fn load(&mut self, ast: &Arc<Ast>, argument: Option<ExprId>) -> Result<(), Diagnostics> {
        let Some(argument) = argument else {
            return match self.last_file.clone() {
                Some(file) => self.load_file(&file, self.verbose, false),
                None => refuse("no file was loaded yet: `load \"file.nesl\";`"),
            };
        };
        let (mut file, mut verbose, mut print) = (argument, self.verbose, false);
        let mut rest = argument;
        while let Expr::Pair(first, more) = ast.exprs[rest] {
            file = if rest == argument { first } else { file };
            rest = more;
            let option = if let Expr::Pair(first, _) = ast.exprs[more] { first } else { more };
            let Expr::Keyword(name, value) = &ast.exprs[option] else {
                return refuse("`load` takes a file and the options `verbose := f` and `print := t`");
            };
            match (name.as_str(), &ast.exprs[*value]) {
                ("verbose", Expr::Bool(value)) => verbose = *value,
                ("print", Expr::Bool(value)) => print = *value,
                ("save_filename", Expr::Bool(_)) => {}
                _ => return refuse(format!("`load` has no option `{name}` with this value")),
            }
        }
        let (value, TypedExpression { scheme, .. }) = self.evaluate(ast, file, None)?;
        if !matches!(value, Value::Seq(_)) || self.env.print_scheme(&scheme) != "[char]" {
            return Err(Diagnostic::error(codes::COMMAND, "`load` takes a string")
                .at(ast.expr_spans[file], "expected the name of a file")
                .into());
        }
        let name = value.text();
        self.last_file = Some(name.clone());
        self.load_file(&name, verbose, print)
    }
}
