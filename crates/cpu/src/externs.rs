//! Functions that generated code may call without the runtime: those that LLVM calls if the host has no
//! instruction.
//!
//! A half is passed and returned in the low bits of a floating-point register on both architectures. In Rust
//! it is an `f32` whose low 16 bits matter.

/// Returns the address of a function by its name in object files; `None` for all others.
pub fn address(name: &str) -> Option<usize> {
    type CopyMemory = unsafe extern "C" fn(*mut libc::c_void, *const libc::c_void, usize) -> *mut libc::c_void;
    type FillMemory = unsafe extern "C" fn(*mut libc::c_void, i32, usize) -> *mut libc::c_void;
    type CompareMemory = unsafe extern "C" fn(*const libc::c_void, *const libc::c_void, usize) -> i32;
    match name {
        "memcpy" => Some(libc::memcpy as CopyMemory as usize),
        "memmove" => Some(libc::memmove as CopyMemory as usize),
        "memset" => Some(libc::memset as FillMemory as usize),
        "memcmp" | "bcmp" => Some(libc::memcmp as CompareMemory as usize),
        _ => compiler_address(name).or_else(|| libm_address(name)),
    }
}

/// Defines the functions of compilers' runtime libraries.
macro_rules! compiler {
    ($($name:literal ($($arg:ident: $ty:ty),*) -> $result:ty $body:block)*) => {
        fn compiler_address(name: &str) -> Option<usize> {
            $(if name == $name {
                extern "C" fn run($($arg: $ty),*) -> $result $body
                return Some(run as extern "C" fn($($ty),*) -> $result as usize);
            })*
            None
        }
    };
}

compiler! {
    "__extendhfsf2" (value: f32) -> f32 { widen_half(low_half(value)) }
    "__extendhfdf2" (value: f32) -> f64 { f64::from(widen_half(low_half(value))) }
    "__extendbfsf2" (value: f32) -> f32 { f32::from_bits(u32::from(low_half(value)) << 16) }
    "__truncsfhf2" (value: f32) -> f32 { in_register(narrow(f64::from(value), &HALF)) }
    "__truncdfhf2" (value: f64) -> f32 { in_register(narrow(value, &HALF)) }
    "__truncsfbf2" (value: f32) -> f32 { in_register(narrow(f64::from(value), &BRAIN)) }
    "__truncdfbf2" (value: f64) -> f32 { in_register(narrow(value, &BRAIN)) }
    // Division by zero is undefined where LLVM calls these. They return the values that PTX specifies.
    "__udivti3" (a: u128, b: u128) -> u128 { a.checked_div(b).unwrap_or(u128::MAX) }
    "__umodti3" (a: u128, b: u128) -> u128 { a.checked_rem(b).unwrap_or(a) }
    "__divti3" (a: i128, b: i128) -> i128 { if b == 0 { -1 } else { a.wrapping_div(b) } }
    "__modti3" (a: i128, b: i128) -> i128 { if b == 0 { a } else { a.wrapping_rem(b) } }
    "__multi3" (a: u128, b: u128) -> u128 { a.wrapping_mul(b) }
    "__ashlti3" (a: u128, by: i32) -> u128 { a.wrapping_shl(by as u32) }
    "__lshrti3" (a: u128, by: i32) -> u128 { a.wrapping_shr(by as u32) }
    "__ashrti3" (a: i128, by: i32) -> i128 { a.wrapping_shr(by as u32) }
    "__floattisf" (a: i128) -> f32 { a as f32 }
    "__floattidf" (a: i128) -> f64 { a as f64 }
    "__floatuntisf" (a: u128) -> f32 { a as f32 }
    "__floatuntidf" (a: u128) -> f64 { a as f64 }
    "__fixsfti" (a: f32) -> i128 { a as i128 }
    "__fixdfti" (a: f64) -> i128 { a as i128 }
    "__fixunssfti" (a: f32) -> u128 { a as u128 }
    "__fixunsdfti" (a: f64) -> u128 { a as u128 }
}

macro_rules! libm {
    ($($double:literal $single:literal ($($arg:ident),*) $body:expr;)*) => {
        fn libm_address(name: &str) -> Option<usize> {
            $(
                if name == $double {
                    extern "C" fn run($($arg: f64),*) -> f64 { $body }
                    return Some(run as extern "C" fn($(libm!(@f64 $arg)),*) -> f64 as usize);
                }
                if name == $single {
                    extern "C" fn run($($arg: f32),*) -> f32 { $body }
                    return Some(run as extern "C" fn($(libm!(@f32 $arg)),*) -> f32 as usize);
                }
            )*
            None
        }
    };
    (@f64 $arg:ident) => { f64 };
    (@f32 $arg:ident) => { f32 };
}

libm! {
    "fmod" "fmodf" (a, b) a % b;
    "fma" "fmaf" (a, b, c) a.mul_add(b, c);
    "floor" "floorf" (a) a.floor();
    "ceil" "ceilf" (a) a.ceil();
    "trunc" "truncf" (a) a.trunc();
    "round" "roundf" (a) a.round();
    "rint" "rintf" (a) a.round_ties_even();
    "nearbyint" "nearbyintf" (a) a.round_ties_even();
    "roundeven" "roundevenf" (a) a.round_ties_even();
    "sqrt" "sqrtf" (a) a.sqrt();
    "sin" "sinf" (a) a.sin();
    "cos" "cosf" (a) a.cos();
    "tan" "tanf" (a) a.tan();
    "tanh" "tanhf" (a) a.tanh();
    "exp" "expf" (a) a.exp();
    "exp2" "exp2f" (a) a.exp2();
    "log" "logf" (a) a.ln();
    "log2" "log2f" (a) a.log2();
    "log10" "log10f" (a) a.log10();
    "pow" "powf" (a, b) a.powf(b);
    "fmin" "fminf" (a, b) a.min(b);
    "fmax" "fmaxf" (a, b) a.max(b);
}

/// Format of 16 bits: the length of its mantissa and the exponent of its largest numbers.
struct ShortFormat {
    mantissa: u32,
    max_exponent: i32,
}

const HALF: ShortFormat = ShortFormat { mantissa: 10, max_exponent: 15 };
const BRAIN: ShortFormat = ShortFormat { mantissa: 7, max_exponent: 127 };

/// Converts to a short format, with a single rounding to nearest, ties to even.
fn narrow(value: f64, format: &ShortFormat) -> u16 {
    let bits = value.to_bits();
    let sign = ((bits >> 63) as u16) << 15;
    let exponent_field = ((2 * format.max_exponent + 1) as u16) << format.mantissa;
    let fraction = bits & ((1 << 52) - 1);
    if value.is_nan() {
        let payload = (fraction >> (52 - format.mantissa)) as u16 | 1 << (format.mantissa - 1);
        return sign | exponent_field | payload;
    }
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1023;
    let min_exponent = 1 - format.max_exponent;
    if exponent == -1023 {
        // Zero, or a denormal double: far below half of the smallest number of the format.
        return sign;
    }
    if exponent > format.max_exponent {
        return sign | exponent_field;
    }
    let significand = fraction | 1 << 52;
    // Denormals have the smallest exponent and fewer bits.
    let drop = (52 - format.mantissa as i32) + (min_exponent - exponent).max(0);
    if drop > 54 {
        return sign;
    }
    let (kept, rest, half) = (significand >> drop, significand & ((1u64 << drop) - 1), 1u64 << (drop - 1));
    let rounded = kept + u64::from(rest > half || (rest == half && kept & 1 == 1));
    // The leading one of a normal number adds one to the exponent, as does a carry out of the mantissa.
    let biased = (exponent.max(min_exponent) - min_exponent) as u64;
    sign | ((biased << format.mantissa) + rounded) as u16
}

fn widen_half(bits: u16) -> f32 {
    let sign = u32::from(bits >> 15) << 31;
    let (exponent, mantissa) = (u32::from(bits >> 10 & 0x1f), u32::from(bits & 0x3ff));
    let magnitude = match (exponent, mantissa) {
        (0, mantissa) => (mantissa as f32 * (1.0 / 16_777_216.0)).to_bits(),
        (31, 0) => 0x7f80_0000,
        (31, mantissa) => 0x7fc0_0000 | mantissa << 13,
        (exponent, mantissa) => (exponent + 112) << 23 | mantissa << 13,
    };
    f32::from_bits(sign | magnitude)
}

fn low_half(register: f32) -> u16 {
    register.to_bits() as u16
}

fn in_register(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits))
}
