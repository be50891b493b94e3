//! Element types of arrays.

use broadloom_graph::{Error, Result};
use broadloom_scalar::traced::{self, Kind};
use half::f16;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// Vector of four floats as one element, such as a pixel or a point.
pub type F32x4 = [f32; 4];

/// Element type of arrays.
pub trait Element: Kind + Send + Sync + PartialEq + std::fmt::Debug + 'static {
    /// Returns the bytes of values in device layout.
    fn to_bytes(values: &[Self]) -> std::borrow::Cow<'_, [u8]>;
    /// Creates `count` values from bytes that a function writes.
    fn read(count: usize, write: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Vec<Self>>;
}

/// Allocates zeroed host memory for `count` values.
fn zeros<T: FromZeros>(count: usize) -> Result<Vec<T>> {
    T::new_vec_zeroed(count).map_err(|_| Error::Host { bytes: (count as u64).saturating_mul(size_of::<T>() as u64) })
}

/// Creates values of a type for which every bit pattern is valid.
fn plain<T: FromBytes + IntoBytes>(count: usize, write: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Vec<T>> {
    let mut values = zeros::<T>(count)?;
    write(values.as_mut_bytes())?;
    Ok(values)
}

/// Element with arithmetic: numbers, and vectors of them.
pub trait Arithmetic: Element + traced::Arithmetic {}

/// Ordered element of one lane: all numbers.
pub trait Number: Arithmetic + traced::Number {
    /// The neutral element of addition.
    const ZERO: Self;
    /// The neutral element of multiplication.
    const ONE: Self;
}

/// Number without a fraction: it has bits, remainders and shifts.
pub trait Integer: Number + traced::Integer {}

/// Float of one lane, or vector of floats.
pub trait Floating: Arithmetic + traced::Floating {}

/// Float of one lane.
pub trait Float: Number + Floating {}

/// Element with bitwise operations: integers and truth values.
pub trait Bits: Element + traced::Bits {}

macro_rules! numbers {
    ($($rust:ty, $zero:expr, $one:expr;)*) => {
        $(impl Element for $rust {
            fn to_bytes(values: &[Self]) -> std::borrow::Cow<'_, [u8]> {
                values.as_bytes().into()
            }
            fn read(count: usize, write: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Vec<Self>> {
                plain(count, write)
            }
        }
        impl Arithmetic for $rust {}
        impl Number for $rust {
            const ZERO: Self = $zero;
            const ONE: Self = $one;
        })*
    };
}

numbers! {
    i8, 0, 1; i16, 0, 1; i32, 0, 1; i64, 0, 1; u8, 0, 1; u16, 0, 1; u32, 0, 1; u64, 0, 1;
    f32, 0.0, 1.0; f64, 0.0, 1.0; f16, f16::ZERO, f16::ONE;
}

macro_rules! marked {
    ($($name:ident: $($rust:ty),*;)*) => { $($(impl $name for $rust {})*)* };
}

marked! {
    Integer: i8, i16, i32, i64, u8, u16, u32, u64;
    Bits: bool, i8, i16, i32, i64, u8, u16, u32, u64;
    Floating: f16, f32, f64, F32x4;
    Float: f16, f32, f64;
    Arithmetic: F32x4;
}

impl Element for bool {
    fn to_bytes(values: &[Self]) -> std::borrow::Cow<'_, [u8]> {
        values.as_bytes().into()
    }
    fn read(count: usize, write: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Vec<Self>> {
        Ok(plain::<u8>(count, write)?.into_iter().map(|byte| byte != 0).collect())
    }
}

impl Element for F32x4 {
    fn to_bytes(values: &[Self]) -> std::borrow::Cow<'_, [u8]> {
        values.as_bytes().into()
    }
    fn read(count: usize, write: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Vec<Self>> {
        plain(count, write)
    }
}
