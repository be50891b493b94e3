//! The types of values, and literal values.
//!
//! A [`Type`] is an [`Element`] type and a number of lanes. One lane is a plain value. 2, 3, 4, 8 or 16 lanes
//! form a small vector, for pixels, points and wide accesses. A [`Literal`] is one element: its type and its
//! bits. Literals are compared and hashed by type and bits, including NaN and -0.

use half::f16;
use std::fmt;

broadloom_diag::named! {
    /// The type of one element.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[allow(missing_docs, reason = "the names are Rust's own")]
    pub enum Element {
        Bool = "bool",
        I8 = "i8",
        I16 = "i16",
        I32 = "i32",
        I64 = "i64",
        U8 = "u8",
        U16 = "u16",
        U32 = "u32",
        U64 = "u64",
        F16 = "f16",
        F32 = "f32",
        F64 = "f64",
    }
}

impl Element {
    /// Returns the number of bits of a value. `bool` has one.
    pub const fn bits(self) -> u32 {
        match self {
            Element::Bool => 1,
            Element::I8 | Element::U8 => 8,
            Element::I16 | Element::U16 | Element::F16 => 16,
            Element::I32 | Element::U32 | Element::F32 => 32,
            Element::I64 | Element::U64 | Element::F64 => 64,
        }
    }

    /// Returns the number of bytes in memory. `bool` has one, which is 0 or 1.
    pub const fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Returns true if it is `f16`, `f32` or `f64`.
    pub const fn is_float(self) -> bool {
        matches!(self, Element::F16 | Element::F32 | Element::F64)
    }

    /// Returns true if it is an integer type.
    pub const fn is_integer(self) -> bool {
        !self.is_float() && !matches!(self, Element::Bool)
    }

    /// Returns true if it is a signed integer type.
    pub const fn is_signed(self) -> bool {
        matches!(self, Element::I8 | Element::I16 | Element::I32 | Element::I64)
    }

    /// Returns the least and the greatest value of an integer type. They are 0 and 1 for `bool`. Returns
    /// `None` for floats.
    pub const fn range(self) -> Option<(i128, i128)> {
        if self.is_float() {
            return None;
        }
        let bits = self.bits();
        Some(if self.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) })
    }

    /// Returns the integer type with this number of bits.
    pub const fn integer(bits: u32, signed: bool) -> Option<Element> {
        Some(match (bits, signed) {
            (8, true) => Element::I8,
            (16, true) => Element::I16,
            (32, true) => Element::I32,
            (64, true) => Element::I64,
            (8, false) => Element::U8,
            (16, false) => Element::U16,
            (32, false) => Element::U32,
            (64, false) => Element::U64,
            _ => return None,
        })
    }

    /// Returns the unsigned integer type of the same width, or `None` for `bool`.
    pub const fn unsigned(self) -> Option<Element> {
        Element::integer(self.bits(), false)
    }

    /// Returns the mask of the bits of a value.
    pub(crate) const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The type of a value: an element type and a number of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Type {
    element: Element,
    lanes: u8,
}

#[allow(missing_docs, reason = "the names are Rust's own")]
impl Type {
    pub const BOOL: Type = Type::of(Element::Bool);
    pub const I8: Type = Type::of(Element::I8);
    pub const I16: Type = Type::of(Element::I16);
    pub const I32: Type = Type::of(Element::I32);
    pub const I64: Type = Type::of(Element::I64);
    pub const U8: Type = Type::of(Element::U8);
    pub const U16: Type = Type::of(Element::U16);
    pub const U32: Type = Type::of(Element::U32);
    pub const U64: Type = Type::of(Element::U64);
    pub const F16: Type = Type::of(Element::F16);
    pub const F32: Type = Type::of(Element::F32);
    pub const F64: Type = Type::of(Element::F64);
}

impl Type {
    /// Returns the type of a plain value.
    pub const fn of(element: Element) -> Type {
        Type { element, lanes: 1 }
    }

    /// Returns the type of a small vector with 1, 2, 3, 4, 8 or 16 lanes.
    pub const fn vector(element: Element, lanes: usize) -> Option<Type> {
        match lanes {
            1 | 2 | 3 | 4 | 8 | 16 => Some(Type { element, lanes: lanes as u8 }),
            _ => None,
        }
    }

    /// Returns the type of an element.
    pub const fn element(self) -> Element {
        self.element
    }

    /// Returns the number of lanes.
    pub const fn lanes(self) -> usize {
        self.lanes as usize
    }

    /// Returns true if it has one lane.
    pub const fn is_scalar(self) -> bool {
        self.lanes == 1
    }

    /// Returns a type of another element with the same number of lanes.
    #[must_use]
    pub const fn with(self, element: Element) -> Type {
        Type { element, lanes: self.lanes }
    }

    /// Returns the number of bytes in memory.
    pub const fn bytes(self) -> u32 {
        self.element.bytes() * self.lanes as u32
    }
}

impl From<Element> for Type {
    fn from(element: Element) -> Type {
        Type::of(element)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lanes {
            1 => write!(f, "{}", self.element),
            lanes => write!(f, "{}x{lanes}", self.element),
        }
    }
}

/// One element: its type and its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Literal {
    element: Element,
    bits: u64,
}

impl Literal {
    /// Makes a literal from bits. Bits beyond the width of the type are dropped.
    pub const fn from_bits(element: Element, bits: u64) -> Literal {
        Literal { element, bits: bits & element.mask() }
    }

    /// Makes a literal from an integer: modulo the width of an integer type, or the nearest float.
    pub fn from_i128(element: Element, value: i128) -> Literal {
        match element {
            Element::F16 => half_from(value as f64).into(),
            Element::F32 => (value as f32).into(),
            Element::F64 => (value as f64).into(),
            Element::Bool => (value != 0).into(),
            _ => Literal::from_bits(element, value as u64),
        }
    }

    /// Returns the float of this type that is nearest to a value. Returns `None` if the type is not a float.
    pub fn from_f64(element: Element, value: f64) -> Option<Literal> {
        match element {
            Element::F16 => Some(half_from(value).into()),
            Element::F32 => Some((value as f32).into()),
            Element::F64 => Some(value.into()),
            _ => None,
        }
    }

    /// Reads consecutive values from memory. Trailing bytes that do not form a value are ignored.
    pub fn from_bytes(element: Element, bytes: &[u8]) -> impl Iterator<Item = Literal> + '_ {
        bytes.chunks_exact(element.bytes() as usize).map(move |chunk| {
            let mut bits = [0; 8];
            bits[..chunk.len()].copy_from_slice(chunk);
            Literal::from_bits(element, u64::from_le_bytes(bits))
        })
    }

    /// Returns the bytes of consecutive values in memory.
    pub fn to_bytes(values: &[Literal]) -> Vec<u8> {
        values.iter().flat_map(|value| value.bits.to_le_bytes().into_iter().take(value.element.bytes() as usize)).collect()
    }

    /// Returns zero, or false.
    pub const fn zero(element: Element) -> Literal {
        Literal { element, bits: 0 }
    }

    /// Returns its type.
    pub const fn element(self) -> Element {
        self.element
    }

    /// Returns the representation, zero-extended to 64 bits.
    pub const fn bits(self) -> u64 {
        self.bits
    }

    /// Returns the value of an integer, or 0 or 1 for `bool`. Returns `None` for floats.
    pub const fn as_i128(self) -> Option<i128> {
        if self.element.is_float() {
            return None;
        }
        let shift = 64 - self.element.bits();
        let high = self.bits << shift;
        Some(if self.element.is_signed() { ((high as i64) >> shift) as i128 } else { (high >> shift) as i128 })
    }

    /// Returns the exact value of a float, or `None` for other types.
    pub fn as_f64(self) -> Option<f64> {
        match self.element {
            Element::F16 => Some(f16::from_bits(self.bits as u16).to_f64()),
            Element::F32 => Some(f64::from(f32::from_bits(self.bits as u32))),
            Element::F64 => Some(f64::from_bits(self.bits)),
            _ => None,
        }
    }

    /// Returns the value of a `bool`, or `None` for other types.
    pub const fn as_bool(self) -> Option<bool> {
        match self.element {
            Element::Bool => Some(self.bits != 0),
            _ => None,
        }
    }

    /// Returns true if it is a NaN.
    pub fn is_nan(self) -> bool {
        self.as_f64().is_some_and(f64::is_nan)
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.as_f64(), self.as_i128()) {
            (Some(value), _) => match self.element {
                // The shortest text that reads back as the same value is that of the type itself.
                Element::F32 => write!(f, "{:?}", f32::from_bits(self.bits as u32)),
                Element::F16 => write!(f, "{}", f16::from_bits(self.bits as u16)),
                _ => write!(f, "{value:?}"),
            },
            (None, Some(value)) if self.element == Element::Bool => write!(f, "{}", value != 0),
            (None, value) => write!(f, "{}", value.unwrap_or_default()),
        }
    }
}

/// Rounds to the nearest half, ties to even. The value goes through `f32`, with the rounding error kept in
/// the last bit, so that only one rounding takes effect. The library ignores the lower half of an `f64`.
pub(crate) fn half_from(value: f64) -> f16 {
    let near = value as f32;
    let back = f64::from(near);
    let odd = if back == value || !near.is_finite() || near.to_bits() & 1 == 1 {
        near
    } else if (back.abs() < value.abs()) || near == 0.0 {
        f32::from_bits(near.to_bits() | 1)
    } else {
        f32::from_bits(near.to_bits() - 1)
    };
    f16::from_f32(odd)
}

macro_rules! literals {
    ($($rust:ty, $element:ident, $value:ident => $bits:expr;)*) => {
        $(impl From<$rust> for Literal {
            fn from($value: $rust) -> Literal {
                Literal::from_bits(Element::$element, $bits)
            }
        })*
    };
}

literals! {
    bool, Bool, value => u64::from(value);
    i8, I8, value => value as u64;
    i16, I16, value => value as u64;
    i32, I32, value => value as u64;
    i64, I64, value => value as u64;
    u8, U8, value => u64::from(value);
    u16, U16, value => u64::from(value);
    u32, U32, value => u64::from(value);
    u64, U64, value => value;
    f16, F16, value => u64::from(value.to_bits());
    f32, F32, value => u64::from(value.to_bits());
    f64, F64, value => value.to_bits();
}
