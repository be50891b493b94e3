//! Expressions of a function.

use super::literal::{literal, typed};
use super::scan::{Scanner, type_of};
use super::{BAD_NAME, BAD_VALUE, UNEXPECTED};
use crate::builder::{Accessor, Array, Builder, Operand, Value, Variable};
use crate::declaration::{AccessorDecl, AccessorKind};
use crate::id::TableId;
use crate::math_function::{MathFunction, Precision};
use crate::op::{BinaryOp, CompareOp, UnaryOp};
use crate::types::{Element, Type};
use broadloom_diag::{Diagnostic, Span};
use std::collections::HashMap;

/// Meaning of a name in the code of a function.
#[derive(Clone)]
pub(super) enum NameMeaning {
    Value(Value),
    Variable(Variable),
    Array(Array),
    Table(TableId),
    Accessor(Accessor, AccessorDecl),
}

/// State while a function is read.
pub(super) struct FunctionReader<'t> {
    pub(super) builder: Builder,
    pub(super) names: HashMap<&'t str, NameMeaning>,
    depth: usize,
}

/// A value, or the text of a literal whose type depends on its place.
#[derive(Clone, Copy)]
pub(super) enum Expression<'t> {
    Value(Value),
    Literal(&'t str, Span),
}

/// Maximum nesting depth of expressions.
const MAX_DEPTH: usize = 200;

/// Result of a parser, or a message about the text.
pub(super) type ParseResult<T> = Result<T, Box<Diagnostic>>;

/// Binary operators, by increasing precedence.
const LEVELS: [&[&str]; 7] = [&["==", "!=", "<=", ">="], &["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "/", "%"]];

fn binary_op(name: &str) -> Option<BinaryOp> {
    BinaryOp::ALL.iter().copied().find(|op| op.name() == name)
}

fn compare_op(name: &str) -> Option<CompareOp> {
    CompareOp::ALL.iter().copied().find(|op| op.name() == name)
}

impl<'t> FunctionReader<'t> {
    pub(super) fn new(builder: Builder) -> FunctionReader<'t> {
        FunctionReader { builder, names: HashMap::new(), depth: 0 }
    }

    /// Reads an expression.
    pub(super) fn expression(&mut self, scanner: &mut Scanner<'t>) -> ParseResult<Expression<'t>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Box::new(
                Diagnostic::error(UNEXPECTED, format!("an expression is nested more than {MAX_DEPTH} deep"))
                    .at(scanner.since(0), "up to here")
                    .help("give parts of it names"),
            ));
        }
        let found = self.level(scanner, 0);
        self.depth -= 1;
        found
    }

    /// Reads an expression as a value. A literal must name its type.
    pub(super) fn value(&mut self, scanner: &mut Scanner<'t>) -> ParseResult<Value> {
        let expression = self.expression(scanner)?;
        self.typed(expression, None)
    }

    /// Reads an expression at a place that requires a type.
    pub(super) fn value_of(&mut self, scanner: &mut Scanner<'t>, ty: Type) -> ParseResult<Value> {
        let expression = self.expression(scanner)?;
        self.typed(expression, Some(ty.element()))
    }

    /// Returns an expression as a value. A literal gets the type that it names, or the wanted one.
    fn typed(&mut self, expression: Expression<'t>, wanted: Option<Element>) -> ParseResult<Value> {
        match expression {
            Expression::Value(value) => Ok(value),
            Expression::Literal(text, span) => {
                let wrong = |message: String| Box::new(Diagnostic::error(BAD_VALUE, message).at(span, "here"));
                let element = typed(text).1.or(wanted).or((text == "true" || text == "false").then_some(Element::Bool));
                let Some(element) = element else {
                    let untold = wrong(format!("nothing says of which type `{text}` is"));
                    return Err(Box::new(untold.help(format!("name it: `{text}f32`"))));
                };
                let literal = literal(element, text).ok_or_else(|| wrong(format!("`{text}` is not a value of `{element}`")))?;
                Ok(self.builder.literal(literal))
            }
        }
    }

    /// Returns expressions as values of one type, which at least one of them must name.
    fn alike(&mut self, expressions: &[Expression<'t>], otherwise: Option<Element>) -> ParseResult<Vec<Value>> {
        let known = expressions.iter().find_map(|expression| match expression {
            Expression::Value(value) => Some(self.builder.type_of(*value).element()),
            Expression::Literal(text, _) => typed(text).1,
        });
        expressions.iter().map(|expression| self.typed(*expression, known.or(otherwise))).collect()
    }

    /// Returns the bounds and the step of a loop.
    pub(super) fn bounds(&mut self, expressions: [Expression<'t>; 3]) -> ParseResult<Vec<Value>> {
        self.alike(&expressions, Some(Element::I32))
    }

    /// Reads an integer as an index.
    pub(super) fn index(&mut self, scanner: &mut Scanner<'t>) -> ParseResult<Operand> {
        let expression = self.expression(scanner)?;
        match expression {
            Expression::Literal(text, span) if typed(text).1.is_none() => {
                let wrong =
                    || Box::new(Diagnostic::error(BAD_VALUE, format!("`{text}` is no index")).at(span, "expected an integer"));
                let value = literal(Element::I64, text).and_then(|literal| literal.as_i128()).ok_or_else(wrong)?;
                Ok(Operand::Integer(value))
            }
            other => Ok(Operand::Value(self.typed(other, None)?)),
        }
    }

    fn level(&mut self, scanner: &mut Scanner<'t>, level: usize) -> ParseResult<Expression<'t>> {
        let Some(operators) = LEVELS.get(level) else { return self.postfix(scanner) };
        let mut left = self.level(scanner, level + 1)?;
        loop {
            // `<` and `>` are comparisons, unless they are part of a shift.
            let longer = scanner.sees("<<") || scanner.sees(">>");
            let found = operators.iter().find(|operator| scanner.eat(operator)).copied();
            let single = || ["<", ">"].into_iter().find(|operator| level == 0 && !longer && scanner.eat(operator));
            let Some(operator) = found.or_else(single) else { return Ok(left) };
            let right = self.level(scanner, level + 1)?;
            left = Expression::Value(self.between(operator, left, right)?);
        }
    }

    /// Applies an operator to two expressions.
    fn between(&mut self, operator: &str, left: Expression<'t>, right: Expression<'t>) -> ParseResult<Value> {
        if let ("<<" | ">>", Some(op)) = (operator, binary_op(operator)) {
            let (left, right) = (self.typed(left, None)?, self.typed(right, Some(Element::U32))?);
            return Ok(self.builder.binary(op, left, right));
        }
        let both = self.alike(&[left, right], None)?;
        Ok(match (binary_op(operator), compare_op(operator)) {
            (Some(op), _) => self.builder.binary(op, both[0], both[1]),
            (None, Some(op)) => self.builder.compare(op, both[0], both[1]),
            (None, None) => self.builder.poison(),
        })
    }

    /// Reads a primary expression, and lanes of it.
    fn postfix(&mut self, scanner: &mut Scanner<'t>) -> ParseResult<Expression<'t>> {
        let mut found = self.primary(scanner)?;
        while let Expression::Value(value) = found
            && scanner.sees(".")
            && !scanner.sees("..")
        {
            scanner.expect(".")?;
            let lane: usize = scanner.integer("the number of a lane")?;
            found = Expression::Value(self.builder.lane(value, lane));
        }
        Ok(found)
    }

    fn primary(&mut self, scanner: &mut Scanner<'t>) -> ParseResult<Expression<'t>> {
        let start = scanner.at();
        if let Some(text) = scanner.literal() {
            return Ok(Expression::Literal(text, scanner.since(start)));
        }
        if scanner.eat("(") {
            let inner = self.expression(scanner)?;
            if scanner.eat_word("in") {
                let low = scanner.integer("the least value")?;
                scanner.expect("..=")?;
                let high = scanner.integer("the greatest value")?;
                scanner.expect(")")?;
                let value = self.typed(inner, None)?;
                return Ok(Expression::Value(self.builder.assume(value, low, high)));
            }
            scanner.expect(")")?;
            return Ok(inner);
        }
        if scanner.eat("<") {
            let mut lanes = vec![];
            loop {
                // Not a complete expression, because `>` ends the vector.
                lanes.push(self.level(scanner, 1)?);
                if !scanner.eat(",") {
                    break;
                }
            }
            scanner.expect(">")?;
            let lanes = self.alike(&lanes, None)?;
            return Ok(Expression::Value(self.builder.vector(&lanes)));
        }
        let word = scanner.name("a value")?;
        let span = scanner.since(start);
        if scanner.eat("(") {
            let arguments = scanner.list(")", |scanner| self.expression(scanner))?;
            return self.call(word, &arguments, span).map(Expression::Value);
        }
        let unknown =
            || Box::new(Diagnostic::error(BAD_NAME, format!("`{word}` is not known here")).at(span, "no value of this name"));
        let named = self.names.get(word).cloned().ok_or_else(unknown)?;
        Ok(Expression::Value(match named {
            NameMeaning::Value(value) => value,
            NameMeaning::Variable(variable) => self.builder.get(variable),
            NameMeaning::Array(array) => {
                scanner.expect("[")?;
                let index = self.index(scanner)?;
                scanner.expect("]")?;
                self.builder.element(array, index)
            }
            NameMeaning::Table(table) => {
                scanner.expect("[")?;
                let index = self.index(scanner)?;
                scanner.expect("]")?;
                self.builder.lookup(table, index)
            }
            NameMeaning::Accessor(accessor, decl) => match decl.kind {
                AccessorKind::Input | AccessorKind::Output => {
                    scanner.expect("[")?;
                    let position = scanner.list("]", |scanner| self.index(scanner))?;
                    self.builder.read(accessor, &position)
                }
                AccessorKind::Window => {
                    scanner.expect("@[")?;
                    let offsets = scanner.list("]", |scanner| self.index(scanner))?;
                    self.builder.window(accessor, &offsets)
                }
                AccessorKind::Source | AccessorKind::Sink => {
                    scanner.expect(".")?;
                    if scanner.eat_word("pop") {
                        scanner.expect("()")?;
                        self.builder.pop(accessor)
                    } else if scanner.eat_word("peek") {
                        scanner.expect("(")?;
                        let offset = self.index(scanner)?;
                        scanner.expect(")")?;
                        self.builder.peek(accessor, offset)
                    } else {
                        return Err(scanner.unexpected("`pop` or `peek`"));
                    }
                }
            },
        }))
    }

    /// Applies a function of the language.
    fn call(&mut self, name: &str, arguments: &[Expression<'t>], span: Span) -> ParseResult<Value> {
        let takes = |count: usize| match arguments.len() == count {
            true => Ok(()),
            false => {
                let message = format!("`{name}` takes {count} arguments, not {}", arguments.len());
                Err(Box::new(Diagnostic::error(UNEXPECTED, message).at(span, "this function")))
            }
        };
        let unary = UnaryOp::ALL.iter().copied().find(|op| op.name() == name);
        let math = MathFunction::ALL.iter().copied().find(|function| function.name() == name.trim_end_matches("_fast"));
        if let Some(op) = unary {
            takes(1)?;
            let value = self.typed(arguments[0], None)?;
            return Ok(self.builder.unary(op, value));
        }
        if let Some(op) = binary_op(name) {
            takes(2)?;
            let both = self.alike(arguments, None)?;
            return Ok(self.builder.binary(op, both[0], both[1]));
        }
        if let Some(function) = math {
            takes(function.arguments())?;
            let precision = if name == function.name() { Precision::Accurate } else { Precision::Fast };
            let values = self.alike(arguments, None)?;
            return Ok(self.builder.math(function, precision, &values));
        }
        if let Some(ty) = type_of(name) {
            takes(1)?;
            let value = self.typed(arguments[0], None)?;
            return Ok(self.builder.convert(value, ty));
        }
        if let Some(ty) = name.strip_prefix("bits_as_").and_then(type_of) {
            takes(1)?;
            let value = self.typed(arguments[0], None)?;
            return Ok(self.builder.bitcast(value, ty));
        }
        match name {
            "fma" => {
                takes(3)?;
                let values = self.alike(arguments, None)?;
                Ok(self.builder.fma(values[0], values[1], values[2]))
            }
            "select" => {
                takes(3)?;
                let condition = self.typed(arguments[0], Some(Element::Bool))?;
                let values = self.alike(&arguments[1..], None)?;
                Ok(self.builder.select(condition, values[0], values[1]))
            }
            _ => Err(Box::new(Diagnostic::error(BAD_NAME, format!("`{name}` is not a function")).at(span, "here"))),
        }
    }
}
