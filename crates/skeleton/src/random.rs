//! Random numbers that depend only on a key and a counter. Each position has its own numbers, the same on
//! every device.
//!
//! Philox4x32-10 (Salmon, Moraes, Dror and Shaw, *Parallel random numbers: as easy as 1, 2, 3*, SC 2011).

use broadloom_scalar::{Builder, Type, Value};

const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
const STEPS: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

/// Returns four random words, `u32`, for a counter of four words and a key of two.
///
/// ```
/// use broadloom_scalar::{Builder, Type};
/// use broadloom_skeleton::random::philox;
/// let f = Builder::function("zeros");
/// let i = f.parameter("i", Type::U32);
/// let words = philox(&f, [i, i, i, i], [i, i]);
/// let zeros = f.finish_function(&words).unwrap();
/// let words = zeros.evaluate(&[0u32.into()]).unwrap();
/// assert_eq!(words, [0x6627e8d5u32, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8].map(Into::into));
/// ```
pub fn philox(b: &Builder, counter: [Value; 4], key: [Value; 2]) -> [Value; 4] {
    let (mut words, mut key) = (counter, key);
    for _ in 0..10 {
        let product = |word: Value, by: u32| (b.mul_high(word, by), b.mul(word, by));
        let (high, low) = product(words[0], MULTIPLIERS[0]);
        let (other_high, other_low) = product(words[2], MULTIPLIERS[1]);
        words = [b.xor(b.xor(other_high, words[1]), key[0]), other_low, b.xor(b.xor(high, words[3]), key[1]), low];
        key = [b.add(key[0], STEPS[0]), b.add(key[1], STEPS[1])];
    }
    words
}

/// Returns four random words for a position (any integer) and a seed (a `u64`). `stream` distinguishes
/// several draws for one position.
pub fn words_at(b: &Builder, position: Value, seed: Value, stream: u32) -> [Value; 4] {
    let halves = |value: Value| {
        let value = b.convert(value, Type::U64);
        [b.convert(value, Type::U32), b.convert(b.shr(value, 32), Type::U32)]
    };
    let ([low, high], seed) = (halves(position), halves(seed));
    philox(b, [low, high, b.literal(stream), b.literal(0u32)], seed)
}

/// Returns a number from 0 up to but not including 1, an `f32` with 24 random bits, from a random word.
pub fn uniform_f32(b: &Builder, word: Value) -> Value {
    b.mul(b.convert(b.shr(word, 8), Type::F32), 2f64.powi(-24))
}

/// Returns a number from 0 up to but not including 1, an `f64` with 53 random bits, from two random words.
pub fn uniform_f64(b: &Builder, high: Value, low: Value) -> Value {
    let bits = b.or(b.shl(b.convert(high, Type::U64), 32), b.convert(low, Type::U64));
    b.mul(b.convert(b.shr(bits, 11), Type::F64), 2f64.powi(-53))
}
