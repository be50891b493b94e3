//! Functions, read statement by statement.

use super::expression::{FunctionReader, NameMeaning, ParseResult};
use super::literal::literal;
use super::scan::{Line, Lines, Scanner};
use super::{BAD_CODE, BAD_NAME, BAD_VALUE, UNEXPECTED};
use crate::body::{MAX_NESTING, Unroll};
use crate::builder::{Builder, Value};
use crate::declaration::{AccessorDecl, AccessorKind};
use crate::function::Function;
use crate::types::Type;
use broadloom_diag::{Diagnostic, Span};

/// Reads a function: the next line, `fn name(…) -> (…)`, and the lines below it with a larger indentation.
pub fn function(lines: &mut Lines<'_>) -> ParseResult<Function> {
    let Some(head) = lines.next() else {
        return Err(Box::new(
            Diagnostic::error(UNEXPECTED, "a function is missing at the end of the text").at(lines.end(), "here"),
        ));
    };
    let mut scanner = head.scan();
    if !scanner.eat_word("fn") {
        return Err(scanner.unexpected("`fn`"));
    }
    let name = scanner.name("the name of a function")?;
    let mut parser =
        Parser { lines, reading: FunctionReader::new(Builder::function(name)), results: vec![], returned: None, nesting: 0 };
    scanner.expect("(")?;
    scanner.list(")", |scanner| {
        let start = scanner.at();
        let name = scanner.name("the name of a parameter")?;
        let span = scanner.since(start);
        scanner.expect(":")?;
        let value = parser.reading.builder.parameter(name, scanner.ty()?);
        parser.declare(name, NameMeaning::Value(value), span)
    })?;
    scanner.expect("->")?;
    scanner.expect("(")?;
    parser.results = scanner.list(")", Scanner::ty)?;
    scanner.finish()?;
    parser.block(head.indent + 1, None)?;
    let Some(returned) = parser.returned.take() else {
        return Err(Box::new(
            Diagnostic::error(UNEXPECTED, format!("`{name}` has no `return`")).at(head.span(), "this function"),
        ));
    };
    let finished = parser.reading.builder.finish_function(&returned);
    finished.map_err(|error| Box::new(Diagnostic::error(BAD_CODE, error.to_string()).at(head.span(), "this function")))
}

struct Parser<'l, 't> {
    lines: &'l mut Lines<'t>,
    reading: FunctionReader<'t>,
    results: Vec<Type>,
    returned: Option<Vec<Value>>,
    nesting: usize,
}

/// The reason why a block ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// No more lines of the block.
    Lines,
    /// A line `while`, which ends the head of a loop.
    While,
}

impl<'t> Parser<'_, 't> {
    /// Declares a name. It must not be in use here.
    fn declare(&mut self, name: &'t str, named: NameMeaning, span: Span) -> ParseResult<()> {
        let taken = match self.reading.names.get(name) {
            Some(NameMeaning::Value(old)) => self.reading.builder.is_usable(*old),
            Some(_) => true,
            None => false,
        };
        if taken {
            return Err(Box::new(
                Diagnostic::error(BAD_NAME, format!("`{name}` is something else already")).at(span, "named again"),
            ));
        }
        self.reading.names.insert(name, named);
        Ok(())
    }

    /// Returns an error for the first mistake that the builder found in a line.
    fn check(&self, line: &Line<'_>) -> ParseResult<()> {
        match self.reading.builder.take_problems().first() {
            None => Ok(()),
            Some(problem) => {
                // The place in the Rust source is not useful for this text.
                let problem = problem.rsplit_once(" (").map_or(problem.as_str(), |(problem, _)| problem);
                Err(Box::new(Diagnostic::error(BAD_CODE, problem).at(line.span(), "here")))
            }
        }
    }

    /// Reads statements with at least this indentation. The first statement, or the head of a loop before it,
    /// sets the indentation.
    fn block(&mut self, least: usize, mut indent: Option<usize>) -> ParseResult<(End, Option<usize>)> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            let span = self.lines.peek().map_or(self.lines.end(), |line| line.span());
            return Err(Box::new(
                Diagnostic::error(BAD_CODE, format!("blocks are nested more than {MAX_NESTING} deep")).at(span, "here"),
            ));
        }
        while let Some(line) = self.lines.peek().filter(|line| line.indent >= least) {
            let expected = *indent.get_or_insert(line.indent);
            if line.indent != expected {
                let message = format!("this line stands at column {}, the lines before it at {expected}", line.indent);
                return Err(Box::new(Diagnostic::error(UNEXPECTED, message).at(line.span(), "here")));
            }
            if self.returned.is_some() {
                return Err(Box::new(Diagnostic::error(UNEXPECTED, "nothing follows `return`").at(line.span(), "here")));
            }
            self.lines.next();
            if self.statement(&line)? == End::While {
                self.nesting -= 1;
                return Ok((End::While, indent));
            }
            self.check(&line)?;
        }
        self.nesting -= 1;
        Ok((End::Lines, indent))
    }

    fn statement(&mut self, line: &Line<'t>) -> ParseResult<End> {
        let mut scanner = line.scan();
        let start = scanner.at();
        let word = scanner.name("a statement")?;
        let named = scanner.since(start);
        match word {
            "if" => {
                let condition = self.reading.value(&mut scanner)?;
                scanner.finish()?;
                self.reading.builder.begin_if(condition);
                self.check(line)?;
                self.nested(line)?;
                if let Some(other) = self.lines.peek().filter(|other| other.indent == line.indent && other.text() == "else") {
                    self.lines.next();
                    self.reading.builder.begin_else();
                    self.nested(&other)?;
                }
                self.reading.builder.end_if();
            }
            "for" => self.counting(&mut scanner, line)?,
            "loop" => {
                scanner.finish()?;
                self.reading.builder.begin_while();
                let (end, indent) = self.block(line.indent + 1, None)?;
                if end != End::While {
                    return Err(Box::new(Diagnostic::error(UNEXPECTED, "a `loop` has no `while`").at(line.span(), "this loop")));
                }
                if self.block(line.indent + 1, indent)?.0 == End::While {
                    return Err(Box::new(Diagnostic::error(UNEXPECTED, "a `loop` has two `while`").at(line.span(), "this loop")));
                }
                self.reading.builder.end_while();
            }
            "while" => {
                let condition = self.reading.value(&mut scanner)?;
                scanner.finish()?;
                self.reading.builder.begin_while_body(condition);
                self.check(line)?;
                return Ok(End::While);
            }
            "break" => self.reading.builder.break_loop(),
            "continue" => self.reading.builder.continue_loop(),
            "return" => self.returns(&mut scanner, line)?,
            "var" | "local" | "table" => self.declaration(word, &mut scanner)?,
            "input" | "window" | "output" | "source" | "sink" if !["=", "[", "."].iter().any(|mark| scanner.sees(mark)) => {
                self.accessor(word, &mut scanner)?;
            }
            "keep" if scanner.eat_word("products") => self.reading.builder.keep_products(),
            name => self.assignment(name, named, &mut scanner)?,
        }
        scanner.finish()?;
        Ok(End::Lines)
    }

    /// Reads a block inside of a statement.
    fn nested(&mut self, line: &Line<'t>) -> ParseResult<()> {
        match self.block(line.indent + 1, None)?.0 {
            End::Lines if self.returned.is_none() => Ok(()),
            End::Lines => Err(Box::new(
                Diagnostic::error(UNEXPECTED, "`return` stands at the end of a function").at(line.span(), "in here"),
            )),
            End::While => Err(Box::new(Diagnostic::error(UNEXPECTED, "a `while` without its `loop`").at(line.span(), "in here"))),
        }
    }

    fn counting(&mut self, scanner: &mut Scanner<'t>, line: &Line<'t>) -> ParseResult<()> {
        let start = scanner.at();
        let name = scanner.name("the name of a counter")?;
        let span = scanner.since(start);
        if !scanner.eat_word("in") {
            return Err(scanner.unexpected("`in`"));
        }
        let first = self.reading.expression(scanner)?;
        scanner.expect("..")?;
        let end = self.reading.expression(scanner)?;
        if !scanner.eat_word("by") {
            return Err(scanner.unexpected("`by`"));
        }
        let step = self.reading.expression(scanner)?;
        let unroll = match scanner.eat_word("unroll") {
            false => Unroll::Auto,
            true if scanner.eat_word("never") => Unroll::Never,
            true if scanner.eat_word("full") => Unroll::Full,
            true if scanner.eat_word("by") => {
                scanner.expect("(")?;
                let rounds = scanner.integer("a number of rounds up to 255")?;
                scanner.expect(")")?;
                Unroll::By(rounds)
            }
            true => return Err(scanner.unexpected("`never`, `full` or `by`")),
        };
        scanner.finish()?;
        let bounds = self.reading.bounds([first, end, step])?;
        let counter = self.reading.builder.begin_for(bounds[0], bounds[1], bounds[2], unroll);
        self.check(line)?;
        self.declare(name, NameMeaning::Value(counter), span)?;
        self.nested(line)?;
        self.reading.builder.end_for();
        Ok(())
    }

    fn returns(&mut self, scanner: &mut Scanner<'t>, line: &Line<'t>) -> ParseResult<()> {
        let mut values = vec![];
        for (index, ty) in self.results.clone().into_iter().enumerate() {
            if index > 0 {
                scanner.expect(",")?;
            }
            let value = self.reading.value_of(scanner, ty)?;
            let own = self.reading.builder.type_of(value);
            self.check(line)?;
            if own != ty {
                let message = format!("result {index} is `{own}`, and the function says `{ty}`");
                return Err(Box::new(Diagnostic::error(BAD_CODE, message).at(line.span(), "here")));
            }
            values.push(value);
        }
        self.returned = Some(values);
        Ok(())
    }

    /// Reads `var v: f32`, `local a: f32[4]`, `table t: f32 = 1.0, 2.0`.
    fn declaration(&mut self, word: &str, scanner: &mut Scanner<'t>) -> ParseResult<()> {
        let start = scanner.at();
        let name = scanner.name("a name")?;
        let span = scanner.since(start);
        scanner.expect(":")?;
        let ty = scanner.ty()?;
        let named = match word {
            "var" => NameMeaning::Variable(self.reading.builder.variable(ty)),
            "local" => {
                scanner.expect("[")?;
                let length = scanner.integer("a number of elements")?;
                scanner.expect("]")?;
                NameMeaning::Array(self.reading.builder.array(ty, length))
            }
            _ => {
                scanner.expect("=")?;
                let mut entries = vec![];
                loop {
                    let start = scanner.at();
                    let text = scanner.literal().ok_or_else(|| scanner.unexpected("an entry"))?;
                    let wrong = || Box::new(Diagnostic::error(BAD_VALUE, format!("`{text}` is not a value of `{ty}`")));
                    entries.push(literal(ty.element(), text).ok_or_else(|| Box::new(wrong().at(scanner.since(start), "here")))?);
                    if !scanner.eat(",") {
                        break;
                    }
                }
                NameMeaning::Table(self.reading.builder.table(&entries))
            }
        };
        self.declare(name, named, span)
    }

    /// Reads `window image: f32 of rank 2`.
    fn accessor(&mut self, word: &str, scanner: &mut Scanner<'t>) -> ParseResult<()> {
        let kind = match word {
            "input" => AccessorKind::Input,
            "window" => AccessorKind::Window,
            "output" => AccessorKind::Output,
            "source" => AccessorKind::Source,
            _ => AccessorKind::Sink,
        };
        let start = scanner.at();
        let name = scanner.name("a name")?;
        let span = scanner.since(start);
        scanner.expect(":")?;
        let ty = scanner.ty()?;
        if !scanner.eat_word("of") || !scanner.eat_word("rank") {
            return Err(scanner.unexpected("`of rank`"));
        }
        let rank = scanner.integer("a rank")?;
        let accessor = self.reading.builder.accessor(name, kind, ty, rank);
        let decl = AccessorDecl { name: name.to_owned(), kind, ty, rank };
        self.declare(name, NameMeaning::Accessor(accessor, decl), span)
    }

    /// Reads `x = …`, `a[i] = …`, `out[i, j] = …`, `queue.push(…)`.
    fn assignment(&mut self, name: &'t str, span: Span, scanner: &mut Scanner<'t>) -> ParseResult<()> {
        match self.reading.names.get(name).cloned() {
            Some(NameMeaning::Variable(variable)) => {
                scanner.expect("=")?;
                let value = self.reading.value_of(scanner, variable.ty())?;
                self.reading.builder.set(variable, value);
            }
            Some(NameMeaning::Array(array)) => {
                scanner.expect("[")?;
                let index = self.reading.index(scanner)?;
                scanner.expect("]")?;
                scanner.expect("=")?;
                let value = self.reading.value_of(scanner, array.ty)?;
                self.reading.builder.set_element(array, index, value);
            }
            Some(NameMeaning::Accessor(accessor, decl)) if decl.kind == AccessorKind::Sink => {
                scanner.expect(".")?;
                if !scanner.eat_word("push") {
                    return Err(scanner.unexpected("`push`"));
                }
                scanner.expect("(")?;
                let value = self.reading.value_of(scanner, decl.ty)?;
                scanner.expect(")")?;
                self.reading.builder.push(accessor, value);
            }
            Some(NameMeaning::Accessor(accessor, decl)) => {
                scanner.expect("[")?;
                let position = scanner.list("]", |scanner| self.reading.index(scanner))?;
                scanner.expect("=")?;
                let value = self.reading.value_of(scanner, decl.ty)?;
                self.reading.builder.write(accessor, &position, value);
            }
            Some(NameMeaning::Value(_) | NameMeaning::Table(_)) | None => {
                scanner.expect("=")?;
                let value = self.reading.value(scanner)?;
                self.declare(name, NameMeaning::Value(value), span)?;
            }
        }
        Ok(())
    }
}
