//! Calls: functions of the filter, of packages, and of the library.

use super::{Lowerer, suggest};
use crate::language::codes;
use crate::language::core::{Binary, Expr, ExprKind, FunctionId, Math, Type};
use crate::language::syntax::ast;
use crate::language::text::plural;
use broadloom_diag::{Diagnostic, Span};
use std::sync::Arc;

impl Lowerer {
    pub(super) fn call(&mut self, name: &ast::Ident, arguments: &[ast::Expr], span: Span) -> Expr {
        if let Some(id) = self.unit().functions.get(&name.name).copied() {
            return self.call_function(id, arguments, span);
        }
        if let Some((math, count)) = Math::find(&name.name) {
            return self.math(math, count, name, arguments, span);
        }
        match &*name.name {
            "random" => {
                self.count(name, arguments.len(), 0, span);
                Expr { kind: ExprKind::Random, ty: Type::Double, span }
            }
            // The root of a negative number is complex.
            "csqrt" => {
                if !self.count(name, arguments.len(), 1, span) {
                    return self.broken(span);
                }
                let value = self.expr(&arguments[0]);
                let value = self.coerce(value, &Type::Complex, "the argument of `csqrt`");
                Expr { kind: ExprKind::Math(Math::Sqrt, vec![value]), ty: Type::Complex, span }
            }
            "init_array_1D_float" => self.file_array(name, arguments, Type::Float, span),
            "init_array_1D_int" => self.file_array(name, arguments, Type::Int, span),
            "print" | "println" => {
                let error = Diagnostic::error(codes::MISPLACED, format!("`{}` gives no value", name.name));
                self.error(error.at(span, "").help("let it stand as a statement of its own"));
                self.broken(span)
            }
            _ => {
                let error =
                    Diagnostic::error(codes::UNDEFINED, format!("there is no function `{}`", name.name)).at(name.span, "");
                let mut names: Vec<Arc<str>> = self.unit().functions.keys().cloned().collect();
                names.extend(["println", "print", "sqrt", "random", "round", "floor", "abs"].map(Arc::from));
                let error = suggest(error, &name.name, names.iter());
                let owners = self.packages.iter().filter(|(_, functions)| functions.contains_key(&name.name));
                let owner = owners.map(|(package, _)| package.clone()).min();
                self.error(match (owner, self.stream_names.contains_key(&name.name)) {
                    (Some(owner), _) => error.help(format!("a package has one: write `{owner}.{}`", name.name)),
                    (None, true) => error.help("a stream of that name exists; `add` creates it in a pipeline or splitjoin"),
                    (None, false) if &*name.name == "not" => error.help("write `!`"),
                    (None, false) => error,
                });
                self.broken(span)
            }
        }
    }

    pub(super) fn package_call(&mut self, package: &ast::Ident, name: &ast::Ident, arguments: &[ast::Expr], span: Span) -> Expr {
        let error = match self.packages.get(&package.name) {
            Some(functions) => match functions.get(&name.name) {
                Some(id) => {
                    let id = *id;
                    return self.call_function(id, arguments, span);
                }
                None => {
                    let message = format!("the package `{}` has no function `{}`", package.name, name.name);
                    suggest(Diagnostic::error(codes::UNDEFINED, message).at(name.span, ""), &name.name, functions.keys())
                }
            },
            None => {
                let message = format!("there is no helper package `{}`", package.name);
                suggest(Diagnostic::error(codes::UNDEFINED, message).at(package.span, ""), &package.name, self.packages.keys())
            }
        };
        self.error(error);
        self.broken(span)
    }

    fn call_function(&mut self, id: FunctionId, arguments: &[ast::Expr], span: Span) -> Expr {
        let function = &self.functions[id];
        let (name, count, result) = (function.name.clone(), function.params, function.result.clone());
        let params: Vec<(Arc<str>, Type)> =
            function.locals.iter().take(count).map(|param| (param.name.clone(), param.ty.clone())).collect();
        let place = function.span;
        if arguments.len() != count {
            let message = format!("`{name}` takes {}, but {} given", plural(count as u64, "argument"), are(arguments.len()));
            self.error(
                Diagnostic::error(codes::ARGUMENT_COUNT, message)
                    .at(span, "")
                    .label(place, "declared here")
                    .help("give one value for each parameter"),
            );
            return self.broken(span);
        }
        let args = arguments
            .iter()
            .zip(&params)
            .map(|(argument, (param, ty))| {
                let value = self.expr(argument);
                self.coerce(value, ty, &format!("the argument `{param}` of `{name}`"))
            })
            .collect();
        Expr { kind: ExprKind::Call(id, args), ty: result, span }
    }

    fn count(&mut self, name: &ast::Ident, found: usize, wanted: usize, span: Span) -> bool {
        if found != wanted {
            let message = format!("`{}` takes {}, but {} given", name.name, plural(wanted as u64, "argument"), are(found));
            let help = if found > wanted { "remove what is too much" } else { "add what is missing" };
            self.error(Diagnostic::error(codes::ARGUMENT_COUNT, message).at(span, "").help(help));
        }
        found == wanted
    }

    fn math(&mut self, math: Math, count: usize, name: &ast::Ident, arguments: &[ast::Expr], span: Span) -> Expr {
        if !self.count(name, arguments.len(), count, span) {
            return self.broken(span);
        }
        let mut args: Vec<Expr> = arguments.iter().map(|argument| self.expr(argument)).collect();
        if math == Math::Arg {
            let args = args.into_iter().map(|value| self.coerce(value, &Type::Complex, "the argument of `arg`")).collect();
            return Expr { kind: ExprKind::Math(math, args), ty: Type::Float, span };
        }
        if math == Math::Pow && args.iter().any(|value| value.ty == Type::Complex) {
            // The base to the power of the exponent is exp(exponent · log(base)).
            let Some((exponent, base)) = args.pop().zip(args.pop()) else { return self.broken(span) };
            let base = self.coerce(base, &Type::Complex, "the base of `pow`");
            let exponent = self.coerce(exponent, &Type::Complex, "the exponent of `pow`");
            let complex = |kind: ExprKind| Expr { kind, ty: Type::Complex, span };
            let log = complex(ExprKind::Math(Math::Log, vec![base]));
            let power = complex(ExprKind::Binary(Binary::Multiply, Type::Complex, Box::new(log), Box::new(exponent)));
            return complex(ExprKind::Math(Math::Exp, vec![power]));
        }
        if let [argument] = &args[..]
            && argument.ty == Type::Complex
        {
            match math {
                // The absolute value of a complex number is its distance from zero.
                Math::Abs => return Expr { kind: ExprKind::Math(math, args), ty: Type::Float, span },
                Math::Exp | Math::Log | Math::Sqrt | Math::Sin | Math::Cos => {
                    return Expr { kind: ExprKind::Math(math, args), ty: Type::Complex, span };
                }
                _ => {}
            }
        }
        let purpose = format!("the argument of `{}`", name.name);
        let args = args.into_iter().map(|value| self.coerce(value, &Type::Double, &purpose)).collect();
        Expr { kind: ExprKind::Math(math, args), ty: Type::Float, span }
    }

    fn file_array(&mut self, name: &ast::Ident, arguments: &[ast::Expr], element: Type, span: Span) -> Expr {
        if !self.count(name, arguments.len(), 2, span) {
            return self.broken(span);
        }
        let file = self.expr(&arguments[0]);
        let file = self.coerce(file, &Type::Text, "the file name");
        let length = self.int(&arguments[1], "the length of the array");
        let kind = ExprKind::FileArray(Box::new(file), Box::new(length));
        Expr { kind, ty: Type::Array(Arc::new(element)), span }
    }
}

/// Returns a number and its verb: "1 is", "2 are".
pub(super) fn are(count: usize) -> String {
    if count == 1 { "1 is".to_owned() } else { format!("{count} are") }
}
