//! Constant expressions (manual: "Constant Expressions"): C's operators over 64-bit integers and doubles.

use super::lexer::TokenKind;
use super::{MAX_DEPTH, ParseResult, Parser, ReportedError, codes};
use crate::inst::Imm;
use crate::literal;
use crate::types::Type;
use broadloom_diag::Diagnostic;

/// Binary operator. It has a precedence and a length in characters.
#[derive(Clone, Copy, PartialEq)]
enum Binary {
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Binary {
    fn strength(self) -> u8 {
        match self {
            Binary::Or => 1,
            Binary::And => 2,
            Binary::BitOr => 3,
            Binary::BitXor => 4,
            Binary::BitAnd => 5,
            Binary::Equal | Binary::NotEqual => 6,
            Binary::Less | Binary::LessEqual | Binary::Greater | Binary::GreaterEqual => 7,
            Binary::ShiftLeft | Binary::ShiftRight => 8,
            Binary::Add | Binary::Subtract => 9,
            Binary::Multiply | Binary::Divide | Binary::Remainder => 10,
        }
    }
}

impl Parser<'_> {
    /// Parses an expression whose value must be an integer.
    pub(super) fn integer_expression(&mut self) -> ParseResult<i64> {
        let place = self.here();
        match self.expression()? {
            Imm::Int(value) => Ok(value),
            Imm::Uint(value) => Ok(value as i64),
            Imm::F32(_) | Imm::F64(_) => {
                Err(self
                    .report(Diagnostic::error(codes::BAD_EXPRESSION, "an integer is needed here").at(place, "this is a float")))
            }
        }
    }

    /// Parses an expression.
    pub(super) fn expression(&mut self) -> ParseResult<Imm> {
        self.choice(0)
    }

    /// Parses `condition ? yes : no`, which is right-associative, or an expression without `?`.
    fn choice(&mut self, depth: usize) -> ParseResult<Imm> {
        let value = self.binary(1, depth)?;
        if !self.eat(b'?') {
            return Ok(value);
        }
        let yes = self.choice(depth + 1)?;
        self.expect(b':')?;
        let no = self.choice(depth + 1)?;
        Ok(if is_true(value) { yes } else { no })
    }

    /// Parses sums and products of constants, which may follow a name in an address.
    pub(super) fn offset_expression(&mut self) -> ParseResult<i64> {
        let place = self.here();
        match self.binary(Binary::Add.strength(), 0)?.integer_bits() {
            Some(bits) => Ok(bits as i64),
            None => Err(self
                .report(Diagnostic::error(codes::BAD_EXPRESSION, "an offset must be an integer").at(place, "this is a float"))),
        }
    }

    fn operator(&self) -> Option<(Binary, usize)> {
        let TokenKind::Sign(first) = self.kind() else { return None };
        let token = self.token();
        let second = match self.kind_ahead(1) {
            TokenKind::Sign(sign) if self.tokens[self.at + 1].start == token.end => Some(sign),
            _ => None,
        };
        Some(match (first, second) {
            (b'|', Some(b'|')) => (Binary::Or, 2),
            (b'&', Some(b'&')) => (Binary::And, 2),
            (b'=', Some(b'=')) => (Binary::Equal, 2),
            (b'!', Some(b'=')) => (Binary::NotEqual, 2),
            (b'<', Some(b'<')) => (Binary::ShiftLeft, 2),
            (b'>', Some(b'>')) => (Binary::ShiftRight, 2),
            (b'<', Some(b'=')) => (Binary::LessEqual, 2),
            (b'>', Some(b'=')) => (Binary::GreaterEqual, 2),
            (b'|', _) => (Binary::BitOr, 1),
            (b'^', _) => (Binary::BitXor, 1),
            (b'&', _) => (Binary::BitAnd, 1),
            (b'<', _) => (Binary::Less, 1),
            (b'>', _) => (Binary::Greater, 1),
            (b'+', _) => (Binary::Add, 1),
            (b'-', _) => (Binary::Subtract, 1),
            (b'*', _) => (Binary::Multiply, 1),
            (b'/', _) => (Binary::Divide, 1),
            (b'%', _) => (Binary::Remainder, 1),
            _ => return None,
        })
    }

    fn binary(&mut self, weakest: u8, depth: usize) -> ParseResult<Imm> {
        let start = self.here();
        let mut left = self.unary(depth)?;
        while let Some((operator, signs)) = self.operator() {
            if operator.strength() < weakest {
                break;
            }
            for _ in 0..signs {
                self.bump();
            }
            let right = self.binary(operator.strength() + 1, depth + 1)?;
            let place = start.to(self.last());
            left = apply(operator, left, right).map_err(|why| {
                self.report(Diagnostic::error(codes::BAD_EXPRESSION, "this expression has no value").at(place, why))
            })?;
        }
        Ok(left)
    }

    fn unary(&mut self, depth: usize) -> ParseResult<Imm> {
        if depth > MAX_DEPTH {
            let place = self.here();
            return Err(self.report(
                Diagnostic::error(codes::LIMIT, format!("an expression nested deeper than {MAX_DEPTH} levels"))
                    .at(place, "too deep"),
            ));
        }
        let place = self.here();
        match self.kind() {
            TokenKind::Imm(imm) => {
                self.bump();
                Ok(imm)
            }
            TokenKind::Name if self.text_of(self.token()) == "WARP_SZ" => {
                self.bump();
                Ok(Imm::Int(32))
            }
            TokenKind::Sign(sign @ (b'-' | b'+' | b'~' | b'!')) => {
                self.bump();
                let value = self.unary(depth + 1)?;
                negate(sign, value).map_err(|why| {
                    self.report(Diagnostic::error(codes::BAD_EXPRESSION, "this expression has no value").at(place, why))
                })
            }
            TokenKind::Sign(b'(') => {
                self.bump();
                if let Some(word @ ("s64" | "u64")) = self.dotted() {
                    self.bump();
                    self.expect(b')')?;
                    let value = self.unary(depth + 1)?;
                    return self.cast(word, value);
                }
                if self.dotted().is_some_and(|word| Type::from_name(word).is_some()) {
                    let diagnostic = Diagnostic::error(codes::BAD_EXPRESSION, "a constant can only be cast to `.s64` or `.u64`");
                    let place = self.here();
                    return Err(self.report(diagnostic.at(place, "not one of these")));
                }
                let value = self.choice(depth + 1)?;
                self.expect(b')')?;
                Ok(value)
            }
            // The lexer reads `.5` as a modifier.
            TokenKind::Dotted if literal::read(self.text_of(self.token())).is_ok() => {
                let token = self.bump();
                Ok(literal::read(self.text_of(token)).unwrap_or(Imm::Int(0)))
            }
            _ => Err(self.unexpected("a constant")),
        }
    }

    fn cast(&mut self, word: &str, value: Imm) -> Result<Imm, ReportedError> {
        Ok(match value {
            Imm::Int(_) | Imm::Uint(_) => value,
            Imm::F32(_) | Imm::F64(_) if word == "s64" => Imm::Int(as_f64(value) as i64),
            Imm::F32(_) | Imm::F64(_) => Imm::from_u64(as_f64(value) as u64),
        })
    }
}

fn as_f64(value: Imm) -> f64 {
    match value {
        Imm::Int(value) => value as f64,
        Imm::Uint(value) => value as f64,
        Imm::F32(bits) => f64::from(f32::from_bits(bits)),
        Imm::F64(bits) => f64::from_bits(bits),
    }
}

fn is_true(value: Imm) -> bool {
    value.integer_bits().map_or_else(|| as_f64(value) != 0.0, |bits| bits != 0)
}

fn negate(sign: u8, value: Imm) -> Result<Imm, &'static str> {
    Ok(match (sign, value) {
        (b'+', value) => value,
        (b'-', Imm::Int(value)) => Imm::Int(value.wrapping_neg()),
        (b'-', Imm::Uint(value)) => Imm::Int(value.wrapping_neg() as i64),
        (b'-', Imm::F32(bits)) => Imm::F32(bits ^ (1 << 31)),
        (b'-', Imm::F64(bits)) => Imm::F64(bits ^ (1 << 63)),
        (b'!', value) => Imm::Int(i64::from(!is_true(value))),
        (_, Imm::Int(value)) => Imm::Int(!value),
        (_, Imm::Uint(value)) => Imm::from_u64(!value),
        (_, Imm::F32(_) | Imm::F64(_)) => return Err("`~` takes integers only"),
    })
}

fn apply(operator: Binary, left: Imm, right: Imm) -> Result<Imm, &'static str> {
    if let (Some(a), Some(b)) = (left.integer_bits(), right.integer_bits()) {
        // As in C, an operation with an unsigned operand is unsigned.
        let unsigned = matches!(left, Imm::Uint(_)) || matches!(right, Imm::Uint(_));
        return if unsigned { apply_unsigned(operator, a, b) } else { apply_signed(operator, a as i64, b as i64) };
    }
    let (a, b) = (as_f64(left), as_f64(right));
    let truth = |value: bool| Ok(Imm::Int(i64::from(value)));
    let number = |value: f64| Ok(Imm::F64(value.to_bits()));
    match operator {
        Binary::Add => number(a + b),
        Binary::Subtract => number(a - b),
        Binary::Multiply => number(a * b),
        Binary::Divide => number(a / b),
        Binary::Equal => truth(a == b),
        Binary::NotEqual => truth(a != b),
        Binary::Less => truth(a < b),
        Binary::LessEqual => truth(a <= b),
        Binary::Greater => truth(a > b),
        Binary::GreaterEqual => truth(a >= b),
        Binary::Or => truth(a != 0.0 || b != 0.0),
        Binary::And => truth(a != 0.0 && b != 0.0),
        Binary::BitOr | Binary::BitXor | Binary::BitAnd | Binary::ShiftLeft | Binary::ShiftRight | Binary::Remainder => {
            Err("this operator takes integers only")
        }
    }
}

fn apply_signed(operator: Binary, a: i64, b: i64) -> Result<Imm, &'static str> {
    Ok(Imm::Int(match operator {
        Binary::ShiftRight if (0..64).contains(&b) => a >> b,
        Binary::ShiftRight => a >> 63,
        Binary::Divide if b == 0 => return Err("division by zero"),
        Binary::Remainder if b == 0 => return Err("division by zero"),
        Binary::Divide => a.wrapping_div(b),
        Binary::Remainder => a.wrapping_rem(b),
        Binary::Less => i64::from(a < b),
        Binary::LessEqual => i64::from(a <= b),
        Binary::Greater => i64::from(a > b),
        Binary::GreaterEqual => i64::from(a >= b),
        Binary::Or | Binary::And | Binary::BitOr | Binary::BitXor | Binary::BitAnd | Binary::Equal | Binary::NotEqual => {
            return apply_unsigned(operator, a as u64, b as u64).map(signed);
        }
        Binary::Add | Binary::Subtract | Binary::Multiply | Binary::ShiftLeft => {
            return apply_unsigned(operator, a as u64, b as u64).map(signed);
        }
    }))
}

fn signed(value: Imm) -> Imm {
    Imm::Int(value.integer_bits().unwrap_or(0) as i64)
}

fn apply_unsigned(operator: Binary, a: u64, b: u64) -> Result<Imm, &'static str> {
    let truth = u64::from;
    Ok(Imm::from_u64(match operator {
        Binary::Or => truth(a != 0 || b != 0),
        Binary::And => truth(a != 0 && b != 0),
        Binary::BitOr => a | b,
        Binary::BitXor => a ^ b,
        Binary::BitAnd => a & b,
        Binary::Equal => truth(a == b),
        Binary::NotEqual => truth(a != b),
        Binary::Less => truth(a < b),
        Binary::LessEqual => truth(a <= b),
        Binary::Greater => truth(a > b),
        Binary::GreaterEqual => truth(a >= b),
        Binary::ShiftLeft => a.checked_shl(b.min(64) as u32).unwrap_or(0),
        Binary::ShiftRight => a.checked_shr(b.min(64) as u32).unwrap_or(0),
        Binary::Add => a.wrapping_add(b),
        Binary::Subtract => a.wrapping_sub(b),
        Binary::Multiply => a.wrapping_mul(b),
        Binary::Divide => a.checked_div(b).ok_or("division by zero")?,
        Binary::Remainder => a.checked_rem(b).ok_or("division by zero")?,
    }))
}
