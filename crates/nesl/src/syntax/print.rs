//! The printer: tree to text. Parsing the text returns an equal tree.

use crate::syntax::Name;
use crate::syntax::ast::*;
use std::fmt::Write as _;

/// Prints a program, one form per line.
pub fn print_program(program: &Program) -> String {
    let mut printer = Printer { ast: &program.ast, out: String::new() };
    for form in &program.forms {
        printer.form(&form.kind);
    }
    printer.out
}

/// Prints an expression.
pub fn print_expr(ast: &Ast, expr: ExprId) -> String {
    let mut printer = Printer { ast, out: String::new() };
    printer.expr(expr, 0);
    printer.out
}

/// Prints a pattern; a tuple is printed in parentheses.
pub fn print_pattern(ast: &Ast, pattern: PatternId) -> String {
    let mut printer = Printer { ast, out: String::new() };
    printer.pattern(pattern, true);
    printer.out
}

fn is_command(name: &Name) -> bool {
    super::parse::COMMANDS.contains(&name.as_str())
}

/// Prints the parameter of a function without the parentheses around it.
pub fn print_parameter(ast: &Ast, pattern: PatternId) -> String {
    let mut printer = Printer { ast, out: String::new() };
    printer.pattern(pattern, false);
    printer.out
}

struct Printer<'a> {
    ast: &'a Ast,
    out: String,
}

impl Printer<'_> {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn form(&mut self, form: &FormKind) {
        match form {
            FormKind::Function(function) => self.function(function),
            FormKind::Datatype(datatype) => {
                let _ = write!(self.out, "datatype {} ", datatype.name);
                self.spec(&datatype.spec, true);
            }
            FormKind::Bind(pattern, value, file) => {
                let guard = self.pattern_word(*pattern).is_some_and(|name| is_command(&name));
                self.put(if guard { "(" } else { "" });
                self.pattern(*pattern, false);
                self.put(if guard { ")" } else { "" });
                self.put(if *file { " |= " } else { " = " });
                self.expr(*value, 0);
            }
            FormKind::Expr(expr) => self.statement(*expr),
            FormKind::Command(name, words) => {
                self.put(name.as_str());
                for word in words {
                    self.put(" ");
                    self.command_word(word);
                }
            }
            FormKind::Load(None) => self.put("load"),
            FormKind::Load(Some(file)) => {
                self.put("load ");
                self.expr(*file, 0);
            }
            FormKind::DumpVcode(file, expr) => {
                self.put("dump vcode ");
                self.command_word(file);
                self.put(" ");
                self.expr(*expr, 0);
            }
            FormKind::Broken(_) => return,
        }
        self.put(";\n");
    }

    /// Prints an expression as a form, in parentheses if it begins with the word of a command.
    fn statement(&mut self, expr: ExprId) {
        let mut first = expr;
        let name = loop {
            match &self.ast.exprs[first] {
                Expr::Pair(left, _) | Expr::Apply(left, _) | Expr::Index(left, _) | Expr::Binary(_, left, _) => first = *left,
                Expr::Lambda(pattern, _) => break self.pattern_word(*pattern),
                Expr::Name(name) => break Some(name.clone()),
                _ => break None,
            }
        };
        let guard = name.is_some_and(|name| is_command(&name));
        self.put(if guard { "(" } else { "" });
        self.expr(expr, 0);
        self.put(if guard { ")" } else { "" });
    }

    /// Returns the name that a pattern begins with, if no parenthesis precedes it.
    fn pattern_word(&self, mut pattern: PatternId) -> Option<Name> {
        loop {
            match &self.ast.patterns[pattern] {
                Pattern::Pair(left, _) => pattern = *left,
                Pattern::Name(name) | Pattern::Data(name, _) => return Some(name.clone()),
                Pattern::Optional(..) | Pattern::Broken => return None,
            }
        }
    }

    fn command_word(&mut self, word: &CommandWord) {
        match word {
            CommandWord::Word(word) => self.put(word),
            CommandWord::Int(value) => self.put(&value.to_string()),
            CommandWord::Text(text) => self.text(text),
        }
    }

    fn function(&mut self, function: &FunctionForm) {
        let _ = write!(self.out, "function {} (", function.name);
        self.pattern(function.parameter, false);
        self.put(")");
        if let Some(spec) = &function.spec {
            self.put(" : ");
            self.spec(spec, false);
        }
        if let Some(doc) = &function.doc {
            self.put(" ");
            self.text(doc);
        }
        if let Some(body) = function.body {
            self.put(" = ");
            self.expr(body, 0);
        }
    }

    fn spec(&mut self, spec: &TypeSpec, datatype: bool) {
        self.put(if datatype { "(" } else { "" });
        self.ty(spec.ty, 0);
        self.put(if datatype { ")" } else { "" });
        for (index, (variable, class, _)) in spec.context.iter().enumerate() {
            let before = if index == 0 { " :: (" } else { "; " };
            let _ = write!(self.out, "{before}{variable} in {class}");
        }
        self.put(if spec.context.is_empty() { "" } else { ")" });
    }

    fn text(&mut self, text: &[u8]) {
        self.put("\"");
        let text = String::from_utf8_lossy(text);
        for letter in text.chars() {
            if letter == '"' || letter == '\\' {
                self.put("\\");
            }
            self.out.push(letter);
        }
        self.put("\"");
    }

    /// Prints an expression. It is put into parentheses unless it binds tighter than `strength`.
    fn expr(&mut self, expr: ExprId, strength: u8) {
        let own = self.strength(expr);
        let open = own <= strength;
        self.put(if open { "(" } else { "" });
        self.bare(expr, if open { 0 } else { strength });
        self.put(if open { ")" } else { "" });
    }

    /// Returns the strength of the loosest operator of an expression. Forms that extend to the right as far
    /// as possible have the lowest.
    fn strength(&self, expr: ExprId) -> u8 {
        match &self.ast.exprs[expr] {
            Expr::If(..) | Expr::Let(..) => 1,
            Expr::Pair(..) => COMMA,
            Expr::Lambda(..) | Expr::Keyword(..) => LAMBDA,
            Expr::Binary(op, ..) => op.binding().0,
            Expr::Unary(..) => PREFIX,
            Expr::Apply(..) | Expr::Index(..) => POSTFIX,
            _ => POSTFIX + 1,
        }
    }

    fn bare(&mut self, expr: ExprId, _strength: u8) {
        match &self.ast.exprs[expr] {
            Expr::Int(value) => self.put(&value.to_string()),
            Expr::Float(value) => self.float(*value),
            Expr::Bool(value) => self.put(if *value { "t" } else { "f" }),
            Expr::Char(value) => {
                self.put("`");
                self.out.push(*value as char);
            }
            Expr::Text(text) => self.text(text),
            Expr::Name(name) => self.put(name.as_str()),
            Expr::Pair(first, rest) => {
                self.expr(*first, COMMA);
                self.put(", ");
                self.expr(*rest, COMMA - 1);
            }
            Expr::Apply(function, argument) => {
                self.expr(*function, POSTFIX - 1);
                self.put("(");
                self.expr(*argument, 0);
                self.put(")");
            }
            Expr::Index(sequence, index) => {
                self.expr(*sequence, POSTFIX - 1);
                self.put("[");
                self.expr(*index, 0);
                self.put("]");
            }
            Expr::Time(timed) => {
                self.put("time(");
                self.expr(*timed, 0);
                self.put(")");
            }
            Expr::Unary(op, operand) => {
                self.put(op.text());
                self.put(if *op == UnaryOp::Negate { " " } else { "" });
                self.expr(*operand, PREFIX - 1);
            }
            Expr::Binary(op, left, right) => {
                let (before, behind) = op.binding();
                // A right-associative operator needs parentheses on its left.
                self.expr(*left, if behind < before { before } else { before - 1 });
                let _ = write!(self.out, " {} ", op.text());
                self.expr(*right, behind);
            }
            Expr::If(condition, then, otherwise) => {
                self.put("if ");
                self.expr(*condition, 0);
                self.put(" then ");
                self.expr(*then, 0);
                self.put(" else ");
                self.expr(*otherwise, 0);
            }
            Expr::Let(bindings, body) => {
                for (index, (pattern, value)) in bindings.iter().enumerate() {
                    self.put(if index == 0 { "let " } else { "; " });
                    self.pattern(*pattern, false);
                    self.put(" = ");
                    self.expr(*value, 0);
                }
                self.put(" in ");
                self.expr(*body, 0);
            }
            Expr::Each(each) => self.each(each),
            Expr::Sequence(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    self.put(if index == 0 { "[" } else { ", " });
                    self.expr(*element, COMMA);
                }
                self.put("]");
            }
            Expr::Empty(ty) => {
                self.put("([] ");
                self.ty(*ty, 2);
                self.put(")");
            }
            Expr::Range(start, end, step) => {
                self.put("[");
                self.expr(*start, COMMA);
                self.put(" : ");
                self.expr(*end, 0);
                if let Some(step) = step {
                    self.put(" : ");
                    self.expr(*step, 0);
                }
                self.put("]");
            }
            Expr::Lambda(pattern, body) => {
                self.pattern(*pattern, true);
                self.put(" => ");
                self.expr(*body, COMMA);
            }
            Expr::Keyword(name, value) => {
                let _ = write!(self.out, "{name} := ");
                self.expr(*value, LAMBDA);
            }
            Expr::Broken => self.put("?"),
        }
    }

    fn each(&mut self, each: &Each) {
        self.put(if each.serial { "{* " } else { "{" });
        if let Some(body) = each.body {
            self.expr(body, 0);
            self.put(" : ");
        }
        for (index, generator) in each.generators.iter().enumerate() {
            self.put(if index == 0 { "" } else { "; " });
            self.pattern(generator.pattern, false);
            if let Some(source) = generator.source {
                self.put(" in ");
                self.expr(source, 0);
            }
        }
        if let Some(filter) = each.filter {
            self.put(" | ");
            self.expr(filter, 0);
        }
        self.put("}");
    }

    fn float(&mut self, value: f64) {
        if value.is_infinite() {
            return self.put("1e999");
        }
        let text = format!("{value:?}");
        self.put(&text);
    }

    fn pattern(&mut self, pattern: PatternId, closed: bool) {
        match &self.ast.patterns[pattern] {
            Pattern::Name(name) => self.put(name.as_str()),
            Pattern::Pair(first, rest) => {
                self.put(if closed { "(" } else { "" });
                self.pattern(*first, true);
                self.put(", ");
                self.pattern(*rest, false);
                self.put(if closed { ")" } else { "" });
            }
            Pattern::Data(name, content) => {
                let _ = write!(self.out, "{name}(");
                self.pattern(*content, false);
                self.put(")");
            }
            Pattern::Optional(name, default) => {
                let _ = write!(self.out, "{name} := ");
                self.expr(*default, LAMBDA);
            }
            Pattern::Broken => self.put("?"),
        }
    }

    /// Prints a type; level 1 puts tuples and level 2 also functions into parentheses.
    fn ty(&mut self, ty: TypeExprId, level: u8) {
        match &self.ast.types[ty] {
            TypeExpr::Name(name) => self.put(name.as_str()),
            TypeExpr::Seq(element) => {
                self.put("[");
                self.ty(*element, 0);
                self.put("]");
            }
            TypeExpr::Pair(first, rest) => {
                self.put(if level > 0 { "(" } else { "" });
                self.ty(*first, 1);
                self.put(", ");
                self.ty(*rest, 0);
                self.put(if level > 0 { ")" } else { "" });
            }
            TypeExpr::Function(argument, result) => {
                self.put(if level > 1 { "(" } else { "" });
                self.ty(*argument, 2);
                self.put(" -> ");
                self.ty(*result, 1);
                self.put(if level > 1 { ")" } else { "" });
            }
            TypeExpr::Data(name, arguments) => {
                let _ = write!(self.out, "{name}(");
                self.ty(*arguments, 0);
                self.put(")");
            }
            TypeExpr::Broken => self.put("?"),
        }
    }
}
