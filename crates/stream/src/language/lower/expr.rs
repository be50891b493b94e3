//! Expressions and places.

use super::{Context, Lowerer, suggest};
use crate::language::codes;
use crate::language::core::{Access, Expr, ExprKind, MAX_PATH, Place, Root, Type, Value};
use crate::language::syntax::ast;
use broadloom_diag::{Diagnostic, Span};
use std::sync::Arc;

impl Lowerer {
    pub(super) fn expr(&mut self, expr: &ast::Expr) -> Expr {
        let span = expr.span;
        let constant = |value: Value, ty: Type| Expr { kind: ExprKind::Const(value), ty, span };
        match &expr.kind {
            ast::ExprKind::Int(value) => constant(Value::Int(*value), Type::Int),
            ast::ExprKind::Float(value) => constant(Value::Float(*value), Type::Float),
            ast::ExprKind::Imaginary(value) => constant(Value::Complex(0.0, *value), Type::Complex),
            ast::ExprKind::Boolean(value) => constant(Value::Boolean(*value), Type::Boolean),
            ast::ExprKind::Text(value) => constant(Value::Text(value.clone()), Type::Text),
            ast::ExprKind::Name(_) => self.place(expr).map_or_else(|| self.broken(span), read),
            ast::ExprKind::Member(inner, member) => {
                if is_place(inner) {
                    return self.place(expr).map_or_else(|| self.broken(span), read);
                }
                let inner = self.expr(inner);
                match self.member(&inner.ty, member) {
                    Some((access, ty)) => Expr { kind: ExprKind::Part(Box::new(inner), Box::new(access)), ty, span },
                    None => self.broken(span),
                }
            }
            ast::ExprKind::Index(inner, index) => {
                if is_place(inner) {
                    return self.place(expr).map_or_else(|| self.broken(span), read);
                }
                let inner = self.expr(inner);
                let index = self.int(index, "an index");
                match self.element(&inner.ty, inner.span) {
                    Some(ty) => Expr { kind: ExprKind::Part(Box::new(inner), Box::new(Access::Index(index))), ty, span },
                    None => self.broken(span),
                }
            }
            ast::ExprKind::Call(name, arguments) => self.call(name, arguments, span),
            ast::ExprKind::PackageCall(package, name, arguments) => self.package_call(package, name, arguments, span),
            ast::ExprKind::Pop => self.tape_read(ExprKind::Pop, "pop()", span),
            ast::ExprKind::Peek(index) => {
                let index = self.int(index, "the argument of peek");
                self.tape_read(ExprKind::Peek(Box::new(index)), "peek()", span)
            }
            ast::ExprKind::Iter => {
                if !matches!(self.unit().context, Context::Work | Context::Handler) {
                    let error = Diagnostic::error(codes::MISPLACED, "`iter()` stands outside of the code of firings");
                    self.error(error.at(span, "").help("use it in `work` or a function that `work` calls"));
                }
                Expr { kind: ExprKind::Iter, ty: Type::Int, span }
            }
            ast::ExprKind::Negate(operand) => {
                let operand = self.expr(operand);
                match (&operand.kind, &operand.ty) {
                    (ExprKind::Const(Value::Int(value)), _) => constant(Value::Int(value.wrapping_neg()), Type::Int),
                    (ExprKind::Const(Value::Float(value)), _) => constant(Value::Float(-value), Type::Float),
                    (_, Type::Bit) => {
                        let operand = self.coerce(operand, &Type::Int, "the operand");
                        Expr { kind: ExprKind::Negate(Box::new(operand)), ty: Type::Int, span }
                    }
                    (_, ty) if ty.is_numeric() => {
                        let ty = ty.clone();
                        Expr { kind: ExprKind::Negate(Box::new(operand)), ty, span }
                    }
                    _ => self.bad_operands("-", &operand, None, span, ""),
                }
            }
            ast::ExprKind::Not(operand) => {
                let operand = self.expr(operand);
                if operand.ty != Type::Boolean {
                    return self.bad_operands("!", &operand, None, span, "compare a number with 0: `x == 0`");
                }
                Expr { kind: ExprKind::Not(Box::new(operand)), ty: Type::Boolean, span }
            }
            ast::ExprKind::Complement(operand) => {
                let operand = self.expr(operand);
                match operand.ty {
                    Type::Int | Type::Bit => {
                        let ty = operand.ty.clone();
                        Expr { kind: ExprKind::Complement(Box::new(operand)), ty, span }
                    }
                    _ => self.bad_operands("~", &operand, None, span, "it is defined for int and bit"),
                }
            }
            ast::ExprKind::Step(target, step, first) => {
                let Some(place) = self.writable(target) else { return self.broken(span) };
                let ty = place.ty.clone();
                if !matches!(ty, Type::Int | Type::Float | Type::Double | Type::Unknown) {
                    let target = read(place);
                    return self.bad_operands(if *step > 0 { "++" } else { "--" }, &target, None, span, "");
                }
                Expr { kind: ExprKind::Step(place, *step, *first), ty, span }
            }
            ast::ExprKind::Binary(operator, left, right) => {
                let left = self.expr(left);
                let right = self.expr(right);
                self.binary(*operator, left, right, span)
            }
            ast::ExprKind::Choose(condition, yes, no) => {
                let condition = self.condition(condition);
                let (yes, no) = (self.expr(yes), self.expr(no));
                let Some(ty) = self.common(&yes.ty, &no.ty) else {
                    return self.bad_operands("? :", &yes, Some(&no), span, "both results need one type");
                };
                let yes = Box::new(self.coerce(yes, &ty, "the first result"));
                let no = Box::new(self.coerce(no, &ty, "the second result"));
                Expr { kind: ExprKind::Choose(Box::new(condition), yes, no), ty, span }
            }
            ast::ExprKind::Cast(base, operand) => {
                let operand = self.expr(operand);
                self.cast(base, operand, span)
            }
            ast::ExprKind::List(_) => {
                let error = Diagnostic::error(codes::MISPLACED, "a list of values stands outside of a declaration");
                self.error(error.at(span, "").help("declare an array with it: `int[2] a = {1, 2};`"));
                self.broken(span)
            }
        }
    }

    pub(super) fn int(&mut self, expr: &ast::Expr, purpose: &str) -> Expr {
        let value = self.expr(expr);
        self.coerce(value, &Type::Int, purpose)
    }

    pub(super) fn condition(&mut self, expr: &ast::Expr) -> Expr {
        let value = self.expr(expr);
        self.coerce(value, &Type::Boolean, "the condition")
    }

    fn tape_read(&mut self, kind: ExprKind, what: &str, span: Span) -> Expr {
        let unit = self.unit();
        let (context, ty) = (unit.context, unit.input.clone());
        if context != Context::Work {
            self.no_tapes_here(what, span);
            return self.broken(span);
        }
        if ty == Type::Void {
            let error = Diagnostic::error(codes::NO_TAPE, format!("`{what}` in a filter without input"));
            self.error(
                error.at(span, "").note("the input type of the filter is void").help("give the filter an input type: `int->…`"),
            );
            return self.broken(span);
        }
        Expr { kind, ty, span }
    }

    pub(super) fn no_tapes_here(&mut self, what: &str, span: Span) {
        let place = match self.unit().context {
            Context::Init => "in `init`, which runs before there are items",
            Context::Handler => "in a message handler, which must not touch the tapes",
            Context::Package => "in a helper package, which belongs to no filter",
            Context::Constant => "in a declaration",
            Context::Static => "in a `static` section",
            Context::Composite(_) => "in a stream that is no filter",
            Context::Work => "here",
        };
        let error = Diagnostic::error(codes::MISPLACED, format!("`{what}` stands {place}"));
        self.error(error.at(span, "").help("tape operations belong into `work`, `prework` and the functions they call"));
    }

    /// Lowers the initialiser of a variable: an expression, or a list for an array.
    pub(super) fn initialiser(&mut self, value: &ast::Expr, ty: &Type, name: &str) -> Expr {
        let ast::ExprKind::List(items) = &value.kind else {
            let lowered = self.expr(value);
            return self.coerce(lowered, ty, &format!("the value of `{name}`"));
        };
        let Type::Array(element) = ty else {
            if *ty != Type::Unknown {
                let message = format!("`{name}` has type {}, but a list of values is given", self.show(ty));
                self.error(
                    Diagnostic::error(codes::MISMATCH, message)
                        .at(value.span, "")
                        .help("lists are for arrays: `int[2] a = {1, 2};`"),
                );
            }
            return self.broken(value.span);
        };
        let element: Arc<Type> = element.clone();
        let items = items.iter().map(|item| self.initialiser(item, &element, name)).collect();
        Expr { kind: ExprKind::List(items), ty: ty.clone(), span: value.span }
    }

    /// Lowers an expression that names a variable or a part of one.
    pub(super) fn place(&mut self, expr: &ast::Expr) -> Option<Place> {
        match &expr.kind {
            ast::ExprKind::Name(name) => match self.variable(name) {
                Some((root, ty)) => Some(Place { root, name: name.clone(), path: vec![], ty, span: expr.span }),
                None => {
                    self.undefined(name, expr.span);
                    None
                }
            },
            ast::ExprKind::Member(inner, member) => {
                let mut place = self.place(inner)?;
                let (access, ty) = self.member(&place.ty, member)?;
                self.extend(&mut place, access, ty, expr.span);
                Some(place)
            }
            ast::ExprKind::Index(inner, index) => {
                let mut place = self.place(inner)?;
                let index = self.int(index, "an index");
                let ty = self.element(&place.ty, inner.span)?;
                self.extend(&mut place, Access::Index(index), ty, expr.span);
                Some(place)
            }
            _ => {
                let error = Diagnostic::error(codes::MISPLACED, "this is no variable");
                self.error(error.at(expr.span, "only variables and their parts can be changed"));
                None
            }
        }
    }

    fn extend(&mut self, place: &mut Place, access: Access, ty: Type, span: Span) {
        if place.path.len() == MAX_PATH {
            let message = format!("more than {MAX_PATH} indices and members behind one name");
            self.error(Diagnostic::error(codes::TOO_DEEP, message).at(span, "").help("copy a part of it into a local"));
            return;
        }
        place.path.push(access);
        place.ty = ty;
        place.span = span;
    }

    /// Lowers a place that is written.
    pub(super) fn writable(&mut self, expr: &ast::Expr) -> Option<Place> {
        let place = self.place(expr)?;
        let context = self.unit().context;
        let error = match place.root {
            Root::Param(index) => {
                let param = self.unit().params[index].clone();
                let message = format!("`{}` is a parameter of the stream and cannot be changed", param.name);
                let mut error = Diagnostic::error(codes::CONSTANT, message).at(expr.span, "");
                if !param.span.is_synthetic() {
                    error = error.label(param.span, "the parameter");
                }
                error.help("copy it into a field or a local")
            }
            Root::Static(index) if context != Context::Static => {
                let message = format!("`{}` is a static variable and cannot be changed here", self.statics[index].name);
                let error = Diagnostic::error(codes::CONSTANT, message).at(expr.span, "");
                error.help("static variables get their values in `init` of the `static` section; use a field for state")
            }
            Root::Static(_) | Root::Local(_) | Root::Field(_) => return Some(place),
        };
        self.error(error);
        None
    }

    fn member(&mut self, ty: &Type, member: &ast::Ident) -> Option<(Access, Type)> {
        match (ty, &*member.name) {
            (Type::Complex, "real") => return Some((Access::Real, Type::Float)),
            (Type::Complex, "imag") => return Some((Access::Imaginary, Type::Float)),
            (Type::Unknown, _) => return None,
            _ => {}
        }
        let shown = self.show(ty);
        let error = match ty {
            Type::Struct(id) => {
                let members = &self.structs[*id].members;
                if let Some(index) = members.iter().position(|(name, _)| *name == member.name) {
                    return Some((Access::Member(index), members[index].1.ty.clone()));
                }
                let error = Diagnostic::error(codes::BAD_ACCESS, format!("the struct {shown} has no member `{}`", member.name));
                suggest(error.at(member.span, ""), &member.name, members.iter().map(|(name, _)| name))
            }
            Type::Complex => Diagnostic::error(codes::BAD_ACCESS, format!("a complex number has no member `{}`", member.name))
                .at(member.span, "")
                .help("its members are `real` and `imag`"),
            _ => Diagnostic::error(codes::BAD_ACCESS, format!("a value of type {shown} has no members"))
                .at(member.span, "")
                .help("members belong to structs; `complex` has `real` and `imag`"),
        };
        self.error(error);
        None
    }

    fn element(&mut self, ty: &Type, span: Span) -> Option<Type> {
        match ty {
            Type::Array(element) => Some((**element).clone()),
            Type::Unknown => None,
            _ => {
                let message = format!("an index behind a value of type {}, which is no array", self.show(ty));
                let error = Diagnostic::error(codes::BAD_ACCESS, message).at(span, "");
                self.error(error.help("remove the index, or declare an array: `int[8] a;`"));
                None
            }
        }
    }

    fn undefined(&mut self, name: &Arc<str>, span: Span) {
        let error = Diagnostic::error(codes::UNDEFINED, format!("there is no variable `{name}`")).at(span, "");
        let mut names: Vec<Arc<str>> = self.statics.iter().map(|field| field.name.clone()).collect();
        for unit in self.units.iter().rev() {
            names.extend(unit.scopes.iter().flat_map(|scope| scope.keys().cloned()));
            names.extend(unit.fields.iter().map(|(name, _)| name.clone()));
            names.extend(unit.params.iter().map(|param| param.name.clone()));
            if !unit.anonymous {
                break;
            }
        }
        self.error(suggest(error, name, names.iter()));
    }
}

pub(super) fn read(place: Place) -> Expr {
    let (ty, span) = (place.ty.clone(), place.span);
    Expr { kind: ExprKind::Read(place), ty, span }
}

fn is_place(expr: &ast::Expr) -> bool {
    match &expr.kind {
        ast::ExprKind::Name(_) => true,
        ast::ExprKind::Member(inner, _) | ast::ExprKind::Index(inner, _) => is_place(inner),
        _ => false,
    }
}
