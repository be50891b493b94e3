//! Conversions and operators.

use super::Lowerer;
use crate::language::codes;
use crate::language::core::{Binary, Expr, ExprKind, Type, Value};
use crate::language::syntax::ast;
use broadloom_diag::{Diagnostic, Span};

/// Returns the position of a numeric type in the order of implicit conversions.
fn rank(ty: &Type) -> Option<u32> {
    Some(match ty {
        Type::Bit => 1,
        Type::Int => 2,
        Type::Float => 3,
        Type::Double => 4,
        Type::Complex => 5,
        Type::Void | Type::Boolean | Type::Struct(_) | Type::Array(_) | Type::Portal(_) | Type::Text | Type::Unknown => {
            return None;
        }
    })
}

/// Returns whether values of a type convert to another without a cast.
fn converts(from: &Type, to: &Type) -> bool {
    match (rank(from), rank(to)) {
        (Some(from_rank), Some(to_rank)) => from_rank < to_rank && !(*from == Type::Double && *to == Type::Complex),
        _ => false,
    }
}

/// Returns whether an expression consists of the literals 0 and 1, which are also bits.
fn is_bit_literal(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Const(Value::Int(0 | 1)) => true,
        ExprKind::Choose(_, yes, no) => is_bit_literal(yes) && is_bit_literal(no),
        _ => false,
    }
}

impl Lowerer {
    /// Converts an expression to a type if the conversion is implicit. The error names the purpose of the
    /// value.
    pub(super) fn coerce(&mut self, expr: Expr, to: &Type, purpose: &str) -> Expr {
        match self.try_coerce(expr, to) {
            Ok(expr) => expr,
            Err(expr) => {
                let (found, wanted) = (self.show(&expr.ty), self.show(to));
                let error = Diagnostic::error(codes::MISMATCH, format!("{purpose} has type {found}, but {wanted} is needed"));
                let mut error = error.at(expr.span, format!("this is of type {found}"));
                let is_large = matches!(expr.kind, ExprKind::Const(Value::Float(value)) if value.abs() >= 2_147_483_648.0);
                if is_large && *to == Type::Int {
                    error = error.help("integers reach from -2147483648 to 2147483647; larger literals are floats");
                } else if rank(&expr.ty).is_some() && rank(to).is_some() {
                    error = error.help(format!("convert it with a cast: `({wanted})(…)`"));
                } else if expr.ty == Type::Boolean && rank(to).is_some() {
                    error = error.help("a boolean is no number; write `(… ? 1 : 0)`");
                } else if *to == Type::Boolean && rank(&expr.ty).is_some() {
                    error = error.help("a number is no boolean; write `… != 0`");
                } else if expr.ty == Type::Text {
                    error = error.help("strings are only printed, and name files");
                } else if expr.ty == Type::Void {
                    error = error.help("a function without a result stands as a statement of its own");
                } else {
                    error = error.help(format!("give a value of type {wanted}"));
                }
                self.error(error);
                self.broken(expr.span)
            }
        }
    }

    fn try_coerce(&mut self, expr: Expr, to: &Type) -> Result<Expr, Box<Expr>> {
        if expr.ty == *to || expr.ty == Type::Unknown || *to == Type::Unknown {
            return Ok(expr);
        }
        if *to == Type::Bit && expr.ty == Type::Int {
            // Only the lowest bit is kept.
            return Ok(if is_bit_literal(&expr) { as_bit(expr) } else { convert(expr, Type::Bit) });
        }
        if converts(&expr.ty, to) { Ok(convert(expr, to.clone())) } else { Err(Box::new(expr)) }
    }

    /// Returns the type to which two operands convert.
    pub(super) fn common(&self, left: &Type, right: &Type) -> Option<Type> {
        match (left, right) {
            (left, right) if left == right => Some(left.clone()),
            (left, right) if converts(left, right) => Some(right.clone()),
            (left, right) if converts(right, left) => Some(left.clone()),
            (Type::Unknown, _) | (_, Type::Unknown) => Some(Type::Unknown),
            _ => None,
        }
    }

    pub(super) fn binary(&mut self, operator: ast::Binary, left: Expr, right: Expr, span: Span) -> Expr {
        use ast::Binary as Op;
        if left.ty == Type::Unknown || right.ty == Type::Unknown {
            return self.broken(span);
        }
        if operator == Op::Add
            && (left.ty == Type::Text || right.ty == Type::Text)
            && left.ty != Type::Void
            && right.ty != Type::Void
        {
            return Expr { kind: ExprKind::Concat(Box::new(left), Box::new(right)), ty: Type::Text, span };
        }
        if matches!(operator, Op::And | Op::Or) {
            if left.ty != Type::Boolean || right.ty != Type::Boolean {
                return self.bad_operands(
                    operator.symbol(),
                    &left,
                    Some(&right),
                    span,
                    "compare numbers first: `a != 0 && b != 0`",
                );
            }
            let (left, right) = (Box::new(left), Box::new(right));
            let kind = if operator == Op::And { ExprKind::And(left, right) } else { ExprKind::Or(left, right) };
            return Expr { kind, ty: Type::Boolean, span };
        }
        let (core, is_comparison) = match operator {
            Op::BitOr => (Binary::BitOr, false),
            Op::BitAnd => (Binary::BitAnd, false),
            Op::BitXor => (Binary::BitXor, false),
            Op::Equal => (Binary::Equal, true),
            Op::NotEqual => (Binary::NotEqual, true),
            Op::Less => (Binary::Less, true),
            Op::LessEqual => (Binary::LessEqual, true),
            Op::Greater => (Binary::Greater, true),
            Op::GreaterEqual => (Binary::GreaterEqual, true),
            Op::Add => (Binary::Add, false),
            Op::Subtract => (Binary::Subtract, false),
            Op::Multiply => (Binary::Multiply, false),
            Op::Divide => (Binary::Divide, false),
            Op::Modulo => (Binary::Modulo, false),
            Op::ShiftLeft => (Binary::ShiftLeft, false),
            Op::ShiftRight => (Binary::ShiftRight, false),
            Op::And | Op::Or => return self.broken(span),
        };
        // A literal 0 or 1 next to a bit is a bit.
        let (left, right) = match (&left.ty, &right.ty) {
            (Type::Bit, Type::Int) if is_bit_literal(&right) => (left, as_bit(right)),
            (Type::Int, Type::Bit) if is_bit_literal(&left) => (as_bit(left), right),
            _ => (left, right),
        };
        let operand = self.common(&left.ty, &right.ty).and_then(|common| {
            let bits = matches!(core, Binary::BitOr | Binary::BitAnd | Binary::BitXor);
            match common {
                Type::Boolean if bits || matches!(core, Binary::Equal | Binary::NotEqual) => Some(Type::Boolean),
                Type::Bit if bits => Some(Type::Bit),
                Type::Bit | Type::Int => Some(Type::Int),
                Type::Float | Type::Double => {
                    let whole = bits || matches!(core, Binary::Modulo | Binary::ShiftLeft | Binary::ShiftRight);
                    (!whole).then_some(common)
                }
                Type::Complex => {
                    let defined = matches!(
                        core,
                        Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Equal | Binary::NotEqual
                    );
                    defined.then_some(common)
                }
                Type::Boolean | Type::Void | Type::Struct(_) | Type::Array(_) | Type::Portal(_) | Type::Text | Type::Unknown => {
                    None
                }
            }
        });
        let Some(operand) = operand else {
            let advice = match core {
                Binary::Modulo | Binary::ShiftLeft | Binary::ShiftRight => "convert floats with a cast: `(int)x`",
                _ => "",
            };
            return self.bad_operands(operator.symbol(), &left, Some(&right), span, advice);
        };
        let left = Box::new(convert(left, operand.clone()));
        let right = Box::new(convert(right, operand.clone()));
        let ty = if is_comparison { Type::Boolean } else { operand.clone() };
        Expr { kind: ExprKind::Binary(core, operand, left, right), ty, span }
    }

    pub(super) fn bad_operands(&mut self, symbol: &str, left: &Expr, right: Option<&Expr>, span: Span, advice: &str) -> Expr {
        if left.ty == Type::Unknown || right.is_some_and(|right| right.ty == Type::Unknown) {
            return self.broken(span);
        }
        let left_type = self.show(&left.ty);
        let mut error = match right {
            Some(right) => {
                let right_type = self.show(&right.ty);
                let message = format!("`{symbol}` is not defined for {left_type} and {right_type}");
                let error = Diagnostic::error(codes::BAD_OPERANDS, message).at(left.span, format!("this is of type {left_type}"));
                error.label(right.span, format!("this is of type {right_type}"))
            }
            None => Diagnostic::error(codes::BAD_OPERANDS, format!("`{symbol}` is not defined for {left_type}"))
                .at(left.span, format!("this is of type {left_type}")),
        };
        // `a & b == c` is `a & (b == c)`, as in C.
        let compared = |expr: &Expr| matches!(&expr.kind, ExprKind::Binary(operator, ..) if operator.compares());
        let mixed = right.is_some_and(|right| (left.ty == Type::Boolean) != (right.ty == Type::Boolean));
        if matches!(symbol, "&" | "|" | "^") && mixed && (compared(left) || right.is_some_and(compared)) {
            error = error.help(format!("comparisons bind tighter than `{symbol}`; write `(a {symbol} b) == c`"));
        } else if !advice.is_empty() {
            error = error.help(advice);
        } else if symbol == "^" {
            error = error.help("`^` is the exclusive or of integers; write `pow(x, y)` for a power");
        } else {
            error = error.help("convert the operands to one type, or use another operator");
        }
        self.error(error);
        self.broken(span)
    }

    pub(super) fn cast(&mut self, base: &ast::Base, operand: Expr, span: Span) -> Expr {
        let to = match base {
            ast::Base::Boolean => Type::Boolean,
            ast::Base::Bit => Type::Bit,
            ast::Base::Int => Type::Int,
            ast::Base::Float => Type::Float,
            ast::Base::Double => Type::Double,
            ast::Base::Complex => Type::Complex,
            ast::Base::Void | ast::Base::Named(_) | ast::Base::Portal(_) => Type::Unknown,
        };
        if operand.ty == to || operand.ty == Type::Unknown {
            return Expr { ty: to, ..operand };
        }
        let real = |ty: &Type| matches!(ty, Type::Bit | Type::Int | Type::Float | Type::Double);
        if real(&operand.ty) && (real(&to) || to == Type::Complex) {
            return Expr { span, ..convert(operand, to) };
        }
        let (from, to) = (self.show(&operand.ty), self.show(&to));
        let mut error = Diagnostic::error(codes::BAD_OPERANDS, format!("{from} cannot be cast to {to}")).at(span, "");
        if from == "boolean" {
            error = error.help("write `(… ? 1 : 0)`");
        } else if from == "complex" {
            error = error.help("take a part of it: `.real` or `.imag`");
        } else {
            error = error.help("casts are for numbers");
        }
        self.error(error);
        self.broken(span)
    }
}

fn convert(expr: Expr, to: Type) -> Expr {
    if expr.ty == to {
        return expr;
    }
    let span = expr.span;
    let constant = match (&expr.kind, &to) {
        (ExprKind::Const(Value::Int(value)), Type::Float) => Some(Value::Float(*value as f32)),
        (ExprKind::Const(Value::Int(value)), Type::Complex) => Some(Value::Complex(*value as f32, 0.0)),
        (ExprKind::Const(Value::Float(value)), Type::Complex) => Some(Value::Complex(*value, 0.0)),
        _ => None,
    };
    match constant {
        Some(value) => Expr { kind: ExprKind::Const(value), ty: to, span },
        None => Expr { kind: ExprKind::Convert(Box::new(expr)), ty: to, span },
    }
}

/// Turns the literals 0 and 1 into bits.
fn as_bit(expr: Expr) -> Expr {
    let span = expr.span;
    let kind = match expr.kind {
        ExprKind::Const(Value::Int(value)) => ExprKind::Const(Value::Bit(value != 0)),
        ExprKind::Choose(condition, yes, no) => ExprKind::Choose(condition, Box::new(as_bit(*yes)), Box::new(as_bit(*no))),
        other => other,
    };
    Expr { kind, ty: Type::Bit, span }
}
