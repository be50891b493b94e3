//! Operations on scalars. Integers wrap. Floats are IEEE single precision. Mathematical functions are
//! computed in double precision.

use crate::language::core::{Binary, Math, Type, Value};

/// The reason why an operation has no result.
pub(crate) type Refusal = &'static str;

/// Computes a binary operation. Both operands have the same type, as core guarantees.
pub(crate) fn binary(operator: Binary, left: &Value, right: &Value) -> Result<Value, Refusal> {
    Ok(match (left, right) {
        (Value::Int(left), Value::Int(right)) => match compare(operator, *left, *right) {
            Some(truth) => Value::Boolean(truth),
            None => Value::Int(int(operator, *left, *right)?),
        },
        (Value::Float(left), Value::Float(right)) => match compare(operator, *left, *right) {
            Some(truth) => Value::Boolean(truth),
            None => Value::Float(float(operator, *left, *right)?),
        },
        (Value::Double(left), Value::Double(right)) => match compare(operator, *left, *right) {
            Some(truth) => Value::Boolean(truth),
            None => Value::Double(double(operator, *left, *right)?),
        },
        (Value::Boolean(left), Value::Boolean(right)) | (Value::Bit(left), Value::Bit(right))
            if matches!(operator, Binary::Equal | Binary::NotEqual) =>
        {
            Value::Boolean((left == right) == (operator == Binary::Equal))
        }
        (Value::Boolean(a), Value::Boolean(b)) => {
            Value::Boolean(bits(operator, *a, *b).ok_or("the operation is not defined for booleans")?)
        }
        (Value::Bit(a), Value::Bit(b)) => Value::Bit(bits(operator, *a, *b).ok_or("the operation is not defined for bits")?),
        (Value::Complex(a, b), Value::Complex(c, d)) => {
            let (a, b, c, d) = (*a, *b, *c, *d);
            match operator {
                Binary::Add => Value::Complex(a + c, b + d),
                Binary::Subtract => Value::Complex(a - c, b - d),
                Binary::Multiply => Value::Complex(a * c - b * d, a * d + b * c),
                Binary::Divide => {
                    let size = c * c + d * d;
                    Value::Complex((a * c + b * d) / size, (b * c - a * d) / size)
                }
                Binary::Equal => Value::Boolean(a == c && b == d),
                Binary::NotEqual => Value::Boolean(a != c || b != d),
                _ => return Err("the operation is not defined for complex numbers"),
            }
        }
        _ => return Err("the operands have different types"),
    })
}

/// Computes an integer operation that is not a comparison.
#[inline]
pub(super) fn int(operator: Binary, a: i32, b: i32) -> Result<i32, Refusal> {
    Ok(match operator {
        Binary::Add => a.wrapping_add(b),
        Binary::Subtract => a.wrapping_sub(b),
        Binary::Multiply => a.wrapping_mul(b),
        Binary::Divide if b == 0 => return Err("division by zero"),
        Binary::Divide => a.wrapping_div(b),
        Binary::Modulo if b == 0 => return Err("remainder of a division by zero"),
        Binary::Modulo => a.wrapping_rem(b),
        Binary::BitOr => a | b,
        Binary::BitAnd => a & b,
        Binary::BitXor => a ^ b,
        Binary::ShiftLeft => a.wrapping_shl(b as u32),
        Binary::ShiftRight => a.wrapping_shr(b as u32),
        Binary::Equal | Binary::NotEqual | Binary::Less | Binary::LessEqual | Binary::Greater | Binary::GreaterEqual => {
            return Err("the operation is a comparison");
        }
    })
}

/// Computes a float operation that is not a comparison.
#[inline]
pub(super) fn float(operator: Binary, a: f32, b: f32) -> Result<f32, Refusal> {
    Ok(match operator {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        _ => return Err("the operation is not defined for floats"),
    })
}

/// Computes a double operation that is not a comparison.
#[inline]
pub(super) fn double(operator: Binary, a: f64, b: f64) -> Result<f64, Refusal> {
    Ok(match operator {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        _ => return Err("the operation is not defined for doubles"),
    })
}

fn bits(operator: Binary, a: bool, b: bool) -> Option<bool> {
    match operator {
        Binary::BitOr => Some(a | b),
        Binary::BitAnd => Some(a & b),
        Binary::BitXor => Some(a ^ b),
        _ => None,
    }
}

/// Compares two numbers. Returns `None` for other operations.
#[inline]
pub(super) fn compare<T: PartialOrd>(operator: Binary, a: T, b: T) -> Option<bool> {
    Some(match operator {
        Binary::Equal => a == b,
        Binary::NotEqual => a != b,
        Binary::Less => a < b,
        Binary::LessEqual => a <= b,
        Binary::Greater => a > b,
        Binary::GreaterEqual => a >= b,
        Binary::BitOr
        | Binary::BitAnd
        | Binary::BitXor
        | Binary::Add
        | Binary::Subtract
        | Binary::Multiply
        | Binary::Divide
        | Binary::Modulo
        | Binary::ShiftLeft
        | Binary::ShiftRight => return None,
    })
}

/// Converts a scalar, by a cast or implicitly. Floats become integers by truncation and saturate. NaN becomes
/// 0.
pub(crate) fn convert(value: &Value, to: &Type) -> Option<Value> {
    let number = match value {
        Value::Bit(bit) => Number::Int(i32::from(*bit)),
        Value::Int(value) => Number::Int(*value),
        Value::Float(value) => Number::Float(*value),
        Value::Double(value) => Number::Double(*value),
        Value::Complex(..) if *to == Type::Complex => return Some(value.clone()),
        _ => return None,
    };
    let float = match number {
        Number::Int(value) => value as f32,
        Number::Float(value) => value,
        Number::Double(value) => value as f32,
    };
    let int = match number {
        Number::Int(value) => value,
        Number::Float(value) => value as i32,
        Number::Double(value) => value as i32,
    };
    Some(match to {
        Type::Bit => Value::Bit(int & 1 != 0),
        Type::Int => Value::Int(int),
        Type::Float => Value::Float(float),
        Type::Double => Value::Double(match number {
            Number::Int(value) => f64::from(value),
            Number::Float(value) => f64::from(value),
            Number::Double(value) => value,
        }),
        Type::Complex => Value::Complex(float, 0.0),
        Type::Void | Type::Boolean | Type::Struct(_) | Type::Array(_) | Type::Portal(_) | Type::Text | Type::Unknown => {
            return None;
        }
    })
}

enum Number {
    Int(i32),
    Float(f32),
    Double(f64),
}

/// Computes a mathematical function in double precision. The caller rounds to float.
pub(crate) fn math(function: Math, a: f64, b: f64) -> f64 {
    match function {
        Math::Sin => a.sin(),
        Math::Cos => a.cos(),
        Math::Tan => a.tan(),
        Math::Asin => a.asin(),
        Math::Acos => a.acos(),
        Math::Atan => a.atan(),
        Math::Atan2 => a.atan2(b),
        Math::Sinh => a.sinh(),
        Math::Cosh => a.cosh(),
        Math::Tanh => a.tanh(),
        Math::Exp => a.exp(),
        Math::Expm1 => a.exp_m1(),
        Math::Log => a.ln(),
        Math::Log10 => a.log10(),
        Math::Log1p => a.ln_1p(),
        Math::Sqrt => a.sqrt(),
        Math::Cbrt => a.cbrt(),
        Math::Pow => a.powf(b),
        Math::Hypot => a.hypot(b),
        Math::Floor => a.floor(),
        Math::Ceil => a.ceil(),
        Math::Round if a.is_nan() => 0.0,
        Math::Round => (a + 0.5).floor(),
        Math::Rint => a.round_ties_even(),
        Math::Abs => a.abs(),
        Math::Arg => 0.0f64.atan2(a),
        Math::Min | Math::Max if a.is_nan() || b.is_nan() => f64::NAN,
        Math::Min => a.min(b),
        Math::Max => a.max(b),
        Math::Signum if a == 0.0 || a.is_nan() => a,
        Math::Signum => a.signum(),
        Math::ToRadians => a.to_radians(),
        Math::ToDegrees => a.to_degrees(),
    }
}

/// Computes the principal value of a function of a complex number, in double precision.
pub(crate) fn complex(function: Math, a: f64, b: f64) -> Value {
    let (real, imaginary) = match function {
        Math::Exp => (a.exp() * b.cos(), a.exp() * b.sin()),
        Math::Log => (a.hypot(b).ln(), b.atan2(a)),
        Math::Sqrt => {
            let size = a.hypot(b);
            let imaginary = ((size - a) / 2.0).max(0.0).sqrt();
            (((size + a) / 2.0).max(0.0).sqrt(), if b < 0.0 { -imaginary } else { imaginary })
        }
        Math::Sin => (a.sin() * b.cosh(), a.cos() * b.sinh()),
        Math::Cos => (a.cos() * b.cosh(), -(a.sin() * b.sinh())),
        Math::Arg => return Value::Float(b.atan2(a) as f32),
        _ => return Value::Float(a.hypot(b) as f32),
    };
    Value::Complex(real as f32, imaginary as f32)
}
