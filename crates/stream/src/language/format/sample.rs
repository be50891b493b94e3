//! Numbers in files, and their conversion from and to the words of tapes.
//!
//! An integer of a file is the same integer on a tape of `int`. On a tape of floats it is scaled to the range from -1 to
//! 1, unless the container is `.npy`, whose numbers are not scaled. Unsigned numbers are scaled around the middle of
//! their range, pairs of them (`cu8`) around a half less, the level of silence of receivers that write them.

use std::fmt;

/// The type of a tape's items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// Packed bits.
    Bit,
    /// 32-bit integers.
    Int,
    /// 32-bit floats.
    Float,
    /// 64-bit floats.
    Double,
    /// Pairs of 32-bit floats.
    Complex,
}

impl Item {
    /// Returns the bytes of one number of an item.
    pub(super) fn word(self) -> usize {
        if self == Item::Double { 8 } else { 4 }
    }
}

/// The kind of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// An integer in two's complement.
    Signed,
    /// An integer that is not negative.
    Unsigned,
    /// An IEEE float.
    Float,
}

/// Reason why a file cannot have a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// A word that names no format.
    #[error("there is no format `{0}`")]
    Unknown(String),
    /// The text of a rate that is no positive number.
    #[error("`{0}` is no rate of items")]
    Rate(String),
    /// The text of a number of channels that is no positive number.
    #[error("`{0}` is no number of channels")]
    Channels(String),
    /// Another format than bits for a tape of bits.
    #[error("bits are packed into bytes and have no other format")]
    Bits,
    /// Floats in a file that a tape of `int` reads.
    #[error("numbers of {0} are floats; a tape of int holds none: read float and convert")]
    FloatsForInt(Sample),
    /// Numbers that a WAV file cannot hold.
    #[error("a WAV file holds u8, s16, s24, s32, f32 or f64, and not {0}")]
    Wav(Sample),
}

/// The numbers of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Their kind.
    pub number: Number,
    /// The bytes of one number.
    pub bytes: usize,
    /// True if the most significant byte comes first.
    pub big_endian: bool,
    /// True if two numbers, the real and the imaginary part, are one item.
    pub paired: bool,
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.number {
            Number::Signed => 's',
            Number::Unsigned => 'u',
            Number::Float => 'f',
        };
        let (pair, order) = (if self.paired { "c" } else { "" }, if self.big_endian { "be" } else { "" });
        write!(f, "{pair}{kind}{}{order}", self.bytes * 8)
    }
}

impl Sample {
    /// Returns single little-endian numbers.
    pub(super) fn new(number: Number, bytes: usize) -> Sample {
        Sample { number, bytes, big_endian: false, paired: false }
    }

    /// Returns the numbers that a name stands for: `s16`, `cs16`, `f32be`, `short`.
    pub fn parse(name: &str) -> Option<Sample> {
        let named = match name {
            "char" => "s8",
            "uchar" | "byte" => "u8",
            "short" => "s16",
            "ushort" => "u16",
            "uint" => "u32",
            other => other,
        };
        let (named, big_endian) = named.strip_suffix("be").map_or((named, false), |rest| (rest, true));
        let named = named.strip_suffix("le").filter(|_| !big_endian).unwrap_or(named);
        let (named, paired) = named.strip_prefix('c').map_or((named, false), |rest| (rest, true));
        let digits = named.find(|c: char| c.is_ascii_digit())?;
        let number = match &named[..digits] {
            "s" | "i" | "int" => Number::Signed,
            "u" | "uint" => Number::Unsigned,
            "f" | "float" => Number::Float,
            _ => return None,
        };
        let bytes = match (&named[digits..], number) {
            ("8", Number::Signed | Number::Unsigned) => 1,
            ("16", Number::Signed | Number::Unsigned) => 2,
            ("24", Number::Signed) => 3,
            ("32", _) => 4,
            ("64", Number::Float) => 8,
            _ => return None,
        };
        Some(Sample { number, bytes, big_endian, paired })
    }

    /// Returns the numbers that are the words of items.
    pub(super) fn words_of(item: Item) -> Sample {
        let number = if item == Item::Int { Number::Signed } else { Number::Float };
        Sample { number, bytes: item.word(), big_endian: false, paired: item == Item::Complex }
    }

    /// Returns the type of a tape for these numbers if the program names only them.
    pub(crate) fn item(self) -> Item {
        match (self.paired, self.number, self.bytes) {
            (true, _, _) => Item::Complex,
            (_, Number::Float, 8) => Item::Double,
            (_, Number::Float, _) => Item::Float,
            (_, Number::Signed | Number::Unsigned, _) => Item::Int,
        }
    }

    /// Checks that items can be made of these numbers, or written as them.
    pub(super) fn check(self, item: Item, reads: bool) -> Result<(), FormatError> {
        match (item, self.number) {
            (Item::Int, Number::Float) if reads => Err(FormatError::FloatsForInt(self)),
            (Item::Bit, _) => Err(FormatError::Bits),
            (Item::Int | Item::Float | Item::Double | Item::Complex, _) => Ok(()),
        }
    }

    /// Tests if a WAV file can hold these numbers.
    pub(super) fn fits_wav(self) -> bool {
        !self.big_endian
            && match self.number {
                Number::Unsigned => self.bytes == 1,
                Number::Signed => (2..=4).contains(&self.bytes),
                Number::Float => true,
            }
    }

    /// Returns the zero level and the largest absolute value of scaled numbers.
    fn scale(self) -> (f64, f64) {
        let half = (1u64 << (8 * self.bytes - 1)) as f64;
        match (self.number, self.paired) {
            (Number::Unsigned, true) => (half - 0.5, half),
            (Number::Unsigned, false) => (half, half),
            (Number::Signed, _) => (0.0, half),
            (Number::Float, _) => (0.0, 1.0),
        }
    }
}

/// The conversion between the numbers of a file and the words of a tape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conversion {
    pub(super) sample: Sample,
    pub(super) item: Item,
    /// True if integers are scaled where the tape has floats.
    pub(super) scaled: bool,
}

impl Conversion {
    /// Tests if the file holds the words of the tape.
    pub(super) fn is_identity(self) -> bool {
        let words = Sample::words_of(self.item);
        Sample { paired: words.paired, ..self.sample } == words
    }

    /// Converts whole numbers of a file to words. The numbers of the two slices are as many.
    pub(super) fn decode(self, numbers: &[u8], words: &mut [u8]) {
        let big = self.sample.big_endian;
        match (self.sample.number, self.sample.bytes) {
            (Number::Float, 8) => self.decode_all::<8>(numbers, words, |bytes| {
                ExactNumber::Real(f64::from_bits(if big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }))
            }),
            (Number::Float, _) => self.decode_all::<4>(numbers, words, |bytes| {
                let bits = if big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
                ExactNumber::Real(f64::from(f32::from_bits(bits)))
            }),
            (number, 1) => self.decode_all::<1>(numbers, words, |bytes| integer(bytes, big, number)),
            (number, 2) => self.decode_all::<2>(numbers, words, |bytes| integer(bytes, big, number)),
            (number, 3) => self.decode_all::<3>(numbers, words, |bytes| integer(bytes, big, number)),
            (number, _) => self.decode_all::<4>(numbers, words, |bytes| integer(bytes, big, number)),
        }
    }

    fn decode_all<const N: usize>(self, numbers: &[u8], words: &mut [u8], read: impl Fn([u8; N]) -> ExactNumber) {
        let (zero, half) = if self.scaled { self.sample.scale() } else { (0.0, 1.0) };
        let numbers = numbers.as_chunks::<N>().0.iter();
        let real = |bytes: &[u8; N]| match read(*bytes) {
            ExactNumber::Real(value) => value,
            ExactNumber::Integer(value) => (value as f64 - zero) / half,
        };
        match self.item {
            Item::Int | Item::Bit => numbers.zip(words.as_chunks_mut::<4>().0).for_each(|(number, word)| {
                let ExactNumber::Integer(value) = read(*number) else { return };
                *word = (value as i32).to_le_bytes();
            }),
            Item::Float | Item::Complex => {
                numbers.zip(words.as_chunks_mut::<4>().0).for_each(|(number, word)| *word = (real(number) as f32).to_le_bytes())
            }
            Item::Double => {
                numbers.zip(words.as_chunks_mut::<8>().0).for_each(|(number, word)| *word = real(number).to_le_bytes())
            }
        }
    }

    /// Appends the numbers of a file for words.
    pub(super) fn encode(self, words: &[u8], numbers: &mut Vec<u8>) {
        let eights = |word: &[u8; 8]| ExactNumber::Real(f64::from_le_bytes(*word));
        let fours = |word: &[u8; 4]| ExactNumber::Real(f64::from(f32::from_le_bytes(*word)));
        let integers = |word: &[u8; 4]| ExactNumber::Integer(i64::from(i32::from_le_bytes(*word)));
        match self.item {
            Item::Double => words.as_chunks::<8>().0.iter().for_each(|word| self.encode_one(eights(word), numbers)),
            Item::Float | Item::Complex => words.as_chunks::<4>().0.iter().for_each(|word| self.encode_one(fours(word), numbers)),
            Item::Int | Item::Bit => words.as_chunks::<4>().0.iter().for_each(|word| self.encode_one(integers(word), numbers)),
        }
    }

    fn encode_one(self, value: ExactNumber, numbers: &mut Vec<u8>) {
        let Sample { number, bytes, big_endian, .. } = self.sample;
        let bits: u64 = match (number, value) {
            (Number::Float, ExactNumber::Real(value)) => float_bits(value, bytes),
            (Number::Float, ExactNumber::Integer(value)) => float_bits(value as f64, bytes),
            (Number::Signed | Number::Unsigned, value) => {
                let width = 8 * bytes as u32;
                let (least, most) = match number {
                    Number::Unsigned => (0, (1i64 << width) - 1),
                    Number::Signed | Number::Float => (-(1i64 << (width - 1)), (1i64 << (width - 1)) - 1),
                };
                let integer = match value {
                    ExactNumber::Integer(value) => value,
                    ExactNumber::Real(value) => {
                        let (zero, half) = if self.scaled { self.sample.scale() } else { (0.0, 1.0) };
                        // A conversion to an integer saturates, and makes 0 of what is no number.
                        (value * half + zero).round_ties_even() as i64
                    }
                };
                integer.clamp(least, most) as u64
            }
        };
        match big_endian {
            true => numbers.extend_from_slice(&bits.to_be_bytes()[8 - bytes..]),
            false => numbers.extend_from_slice(&bits.to_le_bytes()[..bytes]),
        }
    }
}

/// A number without loss.
#[derive(Clone, Copy)]
enum ExactNumber {
    Integer(i64),
    Real(f64),
}

fn float_bits(value: f64, bytes: usize) -> u64 {
    if bytes == 8 { value.to_bits() } else { u64::from((value as f32).to_bits()) }
}

fn integer<const N: usize>(bytes: [u8; N], big_endian: bool, number: Number) -> ExactNumber {
    let mut wide = [0; 4];
    for (at, byte) in bytes.iter().enumerate() {
        wide[if big_endian { N - 1 - at } else { at }] = *byte;
    }
    let bits = u32::from_le_bytes(wide);
    ExactNumber::Integer(match number {
        Number::Unsigned => i64::from(bits),
        Number::Signed | Number::Float => {
            let unused = 32 - 8 * N as u32;
            i64::from((bits << unused) as i32 >> unused)
        }
    })
}
