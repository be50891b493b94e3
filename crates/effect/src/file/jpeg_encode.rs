//! Blocks of a JPEG that is written: cosine transform, quantisation and Huffman codes (ITU-T T.81, annexes F and K).
//!
//! Rows of units are encoded on all cores: each ends in a restart marker, so that none depends on another.

use super::huffman;
use super::jpeg_blocks::{Lane, add, scaled, sub};
use super::jpeg_entropy::ZIGZAG;

/// Scales of the transform of Arai, Agui and Nakajima along an axis, by frequency.
const SCALES: [f64; 8] = [1.0, 1.387_039_845, 1.306_562_965, 1.175_875_602, 1.0, 0.785_694_958, 0.541_196_1, 0.275_899_379];

/// Quantisation of brightness and of colours at a quality of 50, row by row (T.81, tables K.1 and K.2).
const QUANTIZATION: [[u8; 64]; 2] = [
    [
        16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87,
        80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92,
        95, 98, 112, 100, 103, 99,
    ],
    [
        17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99, 99, 99,
        99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
        99, 99, 99, 99,
    ],
];

/// Returns the quantisation table of a quality from 1 to 100, row by row.
pub(super) fn quantization(of_color: bool, quality: u8) -> [u8; 64] {
    let quality = u32::from(quality.clamp(1, 100));
    let scale = if quality < 50 { 5000 / quality } else { 200 - 2 * quality };
    QUANTIZATION[usize::from(of_color)].map(|value| ((u32::from(value) * scale + 50) / 100).clamp(1, 255) as u8)
}

/// Returns the factors of coefficients, with those of the transform.
pub(super) fn factors(table: &[u8; 64]) -> [f32; 64] {
    std::array::from_fn(|at| (1.0 / (f64::from(table[at]) * SCALES[at / 8] * SCALES[at % 8] * 8.0)) as f32)
}

/// Transforms along columns, eight at once.
#[inline(always)]
fn transformed(x: [Lane; 8]) -> [Lane; 8] {
    let (s07, d07, s16, d16) = (add(x[0], x[7]), sub(x[0], x[7]), add(x[1], x[6]), sub(x[1], x[6]));
    let (s25, d25, s34, d34) = (add(x[2], x[5]), sub(x[2], x[5]), add(x[3], x[4]), sub(x[3], x[4]));
    let (e0, e3, e1, e2) = (add(s07, s34), sub(s07, s34), add(s16, s25), sub(s16, s25));
    let z1 = scaled(add(e2, e3), std::f32::consts::FRAC_1_SQRT_2);
    let (o0, o1, o2) = (add(d34, d25), add(d25, d16), add(d16, d07));
    let z5 = scaled(sub(o0, o2), 0.382_683_43);
    let z2 = add(scaled(o0, 0.541_196_1), z5);
    let z4 = add(scaled(o2, 1.306_563), z5);
    let z3 = scaled(o1, std::f32::consts::FRAC_1_SQRT_2);
    let (z11, z13) = (add(d07, z3), sub(d07, z3));
    [add(e0, e1), add(z11, z4), add(e3, z1), sub(z13, z2), sub(e0, e1), add(z13, z2), sub(e3, z1), sub(z11, z4)]
}

/// Number of blocks that are transformed at once. Samples of a place in all of them are a [`Lane`], so that no block is
/// transposed.
pub(super) const ABREAST: usize = 8;

/// Sums with this number have no bits behind the point.
const ROUNDING: f32 = 12_582_912.0;

/// Quantised coefficients of a block in the order of the file.
pub(super) type Block = [i16; 64];

/// Returns the quantised coefficients of blocks that stand side by side, whose rows are `pitch` samples apart.
pub(super) fn coefficients(samples: &[u8], pitch: usize, factors: &[f32; 64]) -> [Block; ABREAST] {
    let mut values = [[[0.0; ABREAST]; 8]; 8];
    for (row, samples) in values.iter_mut().zip(samples.chunks(pitch)) {
        let blocks = samples[..8 * ABREAST].as_chunks::<8>().0;
        for (x, lane) in row.iter_mut().enumerate() {
            for (value, block) in lane.iter_mut().zip(blocks) {
                *value = f32::from(block[x]) - 128.0;
            }
        }
    }
    for x in 0..8 {
        let mut column = [[0.0; ABREAST]; 8];
        for (lane, row) in column.iter_mut().zip(&values) {
            *lane = row[x];
        }
        for (row, lane) in values.iter_mut().zip(transformed(column)) {
            row[x] = lane;
        }
    }
    for row in &mut values {
        *row = transformed(*row);
    }
    let mut out = [[0; 64]; ABREAST];
    for (at, place) in ZIGZAG.iter().enumerate() {
        let (lane, factor) = (&values.as_flattened()[usize::from(*place)], factors[usize::from(*place)]);
        let mut quantised = [0; ABREAST];
        for (quantised, value) in quantised.iter_mut().zip(lane) {
            // The codes of the standard have no larger values. The sum has the nearest integer in its lowest bits: a cast
            // would check for values that are not there, one sample at a time.
            *quantised = ((value * factor).clamp(-1023.0, 1023.0) + ROUNDING).to_bits();
        }
        for (block, value) in out.iter_mut().zip(quantised) {
            block[at] = value as i16;
        }
    }
    out
}

/// Symbol of a code with the bits behind it: bits, their number, the symbol, and the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token(u32);

impl Token {
    fn new(table: usize, symbol: u32, bits: u32, size: u32) -> Token {
        Token(bits | size << 16 | symbol << 20 | (table as u32) << 28)
    }

    fn bits(self) -> u64 {
        u64::from(self.0 & 0xffff)
    }

    fn size(self) -> u32 {
        self.0 >> 16 & 15
    }

    fn symbol(self) -> usize {
        (self.0 >> 20 & 255) as usize
    }

    fn table(self) -> usize {
        (self.0 >> 28) as usize
    }
}

/// Returns the size of a value and its bits.
fn sized(value: i32) -> (u32, u32) {
    let size = 32 - value.unsigned_abs().leading_zeros();
    let bits = if value < 0 { value - 1 } else { value } as u32 & ((1 << size) - 1);
    (size, bits)
}

/// Passes on the tokens of a block. `tables` are those of its first coefficient and the others.
#[inline(always)]
pub(super) fn each_token(block: &Block, before: &mut i32, tables: [usize; 2], mut out: impl FnMut(Token)) {
    let (size, bits) = sized(i32::from(block[0]) - *before);
    *before = i32::from(block[0]);
    out(Token::new(tables[0], size, bits, size));
    let mut places = 0u64;
    for (at, eight) in block.as_chunks::<8>().0.iter().enumerate() {
        // Eight bytes of 0 or 1 become eight bits.
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(eight).for_each(|(byte, value)| *byte = u8::from(*value != 0));
        let bits = u64::from_le_bytes(bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        places |= bits << (8 * at);
    }
    places &= !1;
    let mut last = 0;
    while places != 0 {
        let place = places.trailing_zeros();
        places &= places - 1;
        let mut zeros = place - last - 1;
        while zeros > 15 {
            out(Token::new(tables[1], 0xf0, 0, 0));
            zeros -= 16;
        }
        let (size, bits) = sized(i32::from(block[place as usize & 63]));
        out(Token::new(tables[1], zeros << 4 | size, bits, size));
        last = place;
    }
    if last < 63 {
        out(Token::new(tables[1], 0, 0, 0));
    }
}

/// A table of codes: the number of codes of each length and their symbols, and the codes by symbol.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) counts: [u8; 16],
    pub(super) symbols: Vec<u8>,
    /// Code and its length.
    codes: Vec<(u16, u8)>,
}

impl Table {
    fn new(counts: [u8; 16], symbols: &[u8]) -> Table {
        let mut codes = vec![(0, 0); 256];
        let (mut code, mut place) = (0u16, 0);
        for (length, count) in (1u8..).zip(counts) {
            for symbol in &symbols[place..place + usize::from(count)] {
                codes[usize::from(*symbol)] = (code, length);
                code = code.wrapping_add(1);
            }
            place += usize::from(count);
            code <<= 1;
        }
        Table { counts, symbols: symbols.to_vec(), codes }
    }

    /// Returns the codes that are the shortest for tokens, table by table.
    pub(super) fn best<'a>(tokens: impl Iterator<Item = &'a Token>) -> [Table; 4] {
        let mut counts = [[0u32; 257]; 4];
        tokens.for_each(|token| counts[token.table()][token.symbol()] += 2);
        counts.map(|mut counts| {
            // The last code, of ones alone, is not allowed. A symbol that does not occur takes it.
            counts[256] = 1;
            let lengths = huffman::lengths(&counts, 16);
            let mut all: Vec<usize> = (0..256).filter(|symbol| lengths[*symbol] > 0).collect();
            all.sort_by_key(|symbol| lengths[*symbol]);
            let mut counts = [0; 16];
            all.iter().for_each(|symbol| counts[usize::from(lengths[*symbol]) - 1] += 1);
            Table::new(counts, &all.into_iter().map(|symbol| symbol as u8).collect::<Vec<u8>>())
        })
    }

    /// Returns the tables of T.81: for first coefficients of brightness and colours, then for the others.
    pub(super) fn usual() -> [Table; 4] {
        let sizes: Vec<u8> = (0..12).collect();
        [
            Table::new([0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0], &sizes),
            Table::new([0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0], &sizes),
            Table::new([0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125], &LUMA),
            Table::new([0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 119], &COLOR),
        ]
    }
}

/// Symbols of table K.5.
const LUMA: [u8; 162] = [
    0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07, 0x22, 0x71, 0x14, 0x32, 0x81,
    0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52, 0xd1, 0xf0, 0x24, 0x33, 0x62, 0x72, 0x82, 0x09, 0x0a, 0x16, 0x17, 0x18,
    0x19, 0x1a, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
    0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75,
    0x76, 0x77, 0x78, 0x79, 0x7a, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99,
    0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3,
    0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5,
    0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa,
];

/// Symbols of table K.6.
const COLOR: [u8; 162] = [
    0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07, 0x61, 0x71, 0x13, 0x22, 0x32, 0x81, 0x08,
    0x14, 0x42, 0x91, 0xa1, 0xb1, 0xc1, 0x09, 0x23, 0x33, 0x52, 0xf0, 0x15, 0x62, 0x72, 0xd1, 0x0a, 0x16, 0x24, 0x34, 0xe1, 0x25,
    0xf1, 0x17, 0x18, 0x19, 0x1a, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47,
    0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74,
    0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97,
    0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba,
    0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe2, 0xe3, 0xe4,
    0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa,
];

/// Bits that are written, the highest first. A zero follows each byte of ones.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    held: u64,
    count: u32,
}

impl Bits {
    #[inline(always)]
    fn put(&mut self, bits: u64, count: u32) {
        self.held = self.held << count | bits;
        self.count += count;
    }

    /// Writes four bytes if so many are held.
    #[inline(always)]
    fn flush(&mut self) {
        if self.count < 32 {
            return;
        }
        self.count -= 32;
        let word = (self.held >> self.count) as u32;
        let has_ones = (!word).wrapping_sub(0x0101_0101) & word & 0x8080_8080 != 0;
        if !has_ones {
            self.bytes.extend_from_slice(&word.to_be_bytes());
            return;
        }
        word.to_be_bytes().into_iter().for_each(|byte| self.byte(byte));
    }

    fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
        if byte == 0xff {
            self.bytes.push(0);
        }
    }
}

/// Codes of tokens.
pub(super) struct TokenEncoder<'a> {
    bits: Bits,
    tables: &'a [Table; 4],
}

impl<'a> TokenEncoder<'a> {
    /// Begins with about so many tokens to come.
    pub(super) fn new(tables: &'a [Table; 4], tokens: usize) -> TokenEncoder<'a> {
        TokenEncoder { bits: Bits { bytes: Vec::with_capacity(tokens + 16), ..Bits::default() }, tables }
    }

    /// Appends the code and the bits of a token.
    #[inline(always)]
    pub(super) fn put(&mut self, token: Token) {
        let (code, length) = self.tables[token.table()].codes[token.symbol()];
        self.bits.put(u64::from(code) << token.size() | token.bits(), u32::from(length) + token.size());
        self.bits.flush();
    }

    /// Returns the bytes. The last one is filled up.
    pub(super) fn end(self) -> Vec<u8> {
        let mut bits = self.bits;
        let free = 7 - (bits.count + 7) % 8;
        bits.put((1 << free) - 1, free);
        while bits.count > 0 {
            bits.count -= 8;
            bits.byte((bits.held >> bits.count) as u8);
        }
        bits.bytes
    }
}

/// Returns the bytes of tokens, which end at a byte.
pub(super) fn encoded(tokens: &[Token], tables: &[Table; 4]) -> Vec<u8> {
    let mut encoder = TokenEncoder::new(tables, tokens.len());
    tokens.iter().for_each(|token| encoder.put(*token));
    encoder.end()
}
