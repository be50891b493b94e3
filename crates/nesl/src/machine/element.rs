//! Instructions that work element by element.

use super::{Machine, wrong_lengths, wrong_types};
use crate::eval::{Fault, Run};
use crate::run::Entry;
use crate::vcode::{Op, Type};

impl Machine<'_, '_, '_> {
    pub(super) fn element(&mut self, op: Op, ty: Type) -> Run<Entry> {
        let range = self.range(op.operands().len() as u32, 0)?;
        let operands: Vec<Entry> = self.stack.drain(range).collect();
        let length = operands[0].len();
        if let Some(other) = operands.iter().find(|operand| operand.len() != length) {
            return wrong_lengths(op, length, other.len());
        }
        self.reserve(length)?;
        match (&operands[..], ty) {
            ([Entry::Int(a), Entry::Int(b)], Type::Int) => self.ints_of_two(op, a, b),
            ([Entry::Float(a), Entry::Float(b)], Type::Float) => self.floats_of_two(op, a, b),
            ([Entry::Bool(a), Entry::Bool(b)], Type::Bool) => {
                let combine = |a: bool, b: bool| match op {
                    Op::And => a & b,
                    Op::Or => a | b,
                    _ => a ^ b,
                };
                self.bools(a.iter().zip(b.iter()).map(|(&a, &b)| combine(a, b)).collect())
            }
            ([Entry::Bool(flags), a, b], _) => match (a, b) {
                (Entry::Int(a), Entry::Int(b)) if ty == Type::Int => self.ints(select(flags, a, b)),
                (Entry::Bytes(a), Entry::Bytes(b)) if ty == Type::Int => self.bytes(select(flags, a, b).into()),
                (Entry::Float(a), Entry::Float(b)) if ty == Type::Float => self.floats(select(flags, a, b)),
                (Entry::Bool(a), Entry::Bool(b)) if ty == Type::Bool => self.bools(select(flags, a, b)),
                _ => wrong_types(op, &operands),
            },
            ([Entry::Int(a)], Type::Int) => match op {
                Op::Not => self.ints(a.iter().map(|&a| !a).collect()),
                Op::Random => {
                    let mut numbers = Vec::with_capacity(length);
                    for &bound in a.iter() {
                        numbers.push(self.world.random_int(bound)?);
                    }
                    self.ints(numbers)
                }
                Op::IntToFloat => self.floats(a.iter().map(|&a| self.world.round(a as f64)).collect()),
                Op::IntToBool => self.bools(a.iter().map(|&a| a != 0).collect()),
                _ => wrong_types(op, &operands),
            },
            ([Entry::Bool(a)], Type::Bool) => match op {
                Op::Not => self.bools(a.iter().map(|&a| !a).collect()),
                Op::BoolToInt => self.ints(a.iter().map(|&a| i64::from(a)).collect()),
                _ => wrong_types(op, &operands),
            },
            ([Entry::Float(a)], Type::Float) => self.of_float(op, a),
            _ => wrong_types(op, &operands),
        }
    }

    fn ints_of_two(&mut self, op: Op, a: &[i64], b: &[i64]) -> Run<Entry> {
        let pairs = || a.iter().copied().zip(b.iter().copied());
        let divides = matches!(op, Op::Divide | Op::Modulo);
        if divides && b.contains(&0) {
            return Fault::at_run_time("division by zero");
        }
        let wide = self.world.options().widths.wide_int;
        macro_rules! compare {
            ($test:expr) => {
                self.bools(pairs().map($test).collect())
            };
        }
        macro_rules! compute {
            ($combine:expr) => {{
                let values = pairs().map($combine).map(|value: i64| self.world.wrap(value)).collect();
                self.ints(values)
            }};
        }
        match op {
            Op::Add => compute!(|(a, b)| a.wrapping_add(b)),
            Op::Subtract => compute!(|(a, b)| a.wrapping_sub(b)),
            Op::Multiply => compute!(|(a, b)| a.wrapping_mul(b)),
            Op::Divide => compute!(|(a, b)| a.wrapping_div(b)),
            Op::Modulo => compute!(|(a, b)| a.wrapping_rem(b)),
            Op::LeftShift if wide => compute!(|(a, b)| a.wrapping_shl(b as u32)),
            Op::LeftShift => compute!(|(a, b)| i64::from((a as i32).wrapping_shl(b as u32))),
            Op::RightShift if wide => compute!(|(a, b)| a.wrapping_shr(b as u32)),
            Op::RightShift => compute!(|(a, b)| i64::from((a as i32).wrapping_shr(b as u32))),
            Op::And => compute!(|(a, b)| a & b),
            Op::Or => compute!(|(a, b)| a | b),
            Op::Xor => compute!(|(a, b)| a ^ b),
            Op::Less => compare!(|(a, b)| a < b),
            Op::LessEqual => compare!(|(a, b)| a <= b),
            Op::Greater => compare!(|(a, b)| a > b),
            Op::GreaterEqual => compare!(|(a, b)| a >= b),
            Op::Equal => compare!(|(a, b)| a == b),
            Op::NotEqual => compare!(|(a, b)| a != b),
            _ => Fault::at_run_time(format!("{} does not take ints", op.name())),
        }
    }

    fn floats_of_two(&mut self, op: Op, a: &[f64], b: &[f64]) -> Run<Entry> {
        let pairs = || a.iter().copied().zip(b.iter().copied());
        if op == Op::Divide && b.contains(&0.0) {
            return Fault::at_run_time("division by zero");
        }
        macro_rules! compare {
            ($test:expr) => {
                self.bools(pairs().map($test).collect())
            };
        }
        macro_rules! compute {
            ($combine:expr) => {{
                let values = pairs().map($combine).map(|value: f64| self.world.round(value)).collect();
                self.floats(values)
            }};
        }
        match op {
            Op::Add => compute!(|(a, b)| a + b),
            Op::Subtract => compute!(|(a, b)| a - b),
            Op::Multiply => compute!(|(a, b)| a * b),
            Op::Divide => compute!(|(a, b)| a / b),
            Op::Less => compare!(|(a, b)| a < b),
            Op::LessEqual => compare!(|(a, b)| a <= b),
            Op::Greater => compare!(|(a, b)| a > b),
            Op::GreaterEqual => compare!(|(a, b)| a >= b),
            Op::Equal => compare!(|(a, b)| a == b),
            Op::NotEqual => compare!(|(a, b)| a != b),
            _ => Fault::at_run_time(format!("{} does not take floats", op.name())),
        }
    }

    fn of_float(&mut self, op: Op, a: &[f64]) -> Run<Entry> {
        let convert: Option<fn(f64) -> f64> = match op {
            Op::Floor => Some(f64::floor),
            Op::Ceil => Some(f64::ceil),
            Op::Trunc => Some(f64::trunc),
            Op::Round => Some(|value| if value < 0.0 { value - 0.5 } else { value + 0.5 }),
            _ => None,
        };
        if let Some(convert) = convert {
            return self.ints(a.iter().map(|&value| self.world.to_int(convert(value))).collect());
        }
        let negative = a.iter().any(|&value| value < 0.0);
        match op {
            Op::Log if negative => return Fault::at_run_time("logarithm of a negative number"),
            Op::Sqrt if negative => return Fault::at_run_time("square root of a negative number"),
            _ => {}
        }
        let Some(compute) = elementary(op) else {
            return Fault::at_run_time(format!("{} does not take floats", op.name()));
        };
        self.floats(a.iter().map(|&value| self.world.round(compute(value))).collect())
    }
}

/// Returns the function of an instruction on one float.
pub(super) fn elementary(op: Op) -> Option<fn(f64) -> f64> {
    Some(match op {
        Op::Log => f64::ln,
        Op::Sqrt => f64::sqrt,
        Op::Exp => f64::exp,
        Op::Sin => f64::sin,
        Op::Cos => f64::cos,
        Op::Tan => f64::tan,
        Op::Asin => f64::asin,
        Op::Acos => f64::acos,
        Op::Atan => f64::atan,
        Op::Sinh => f64::sinh,
        Op::Cosh => f64::cosh,
        Op::Tanh => f64::tanh,
        _ => return None,
    })
}

fn select<T: Copy>(flags: &[bool], a: &[T], b: &[T]) -> Vec<T> {
    flags.iter().zip(a.iter().zip(b)).map(|(&flag, (&a, &b))| if flag { a } else { b }).collect()
}
