//! Huffman codes of JPEG scans (ITU-T T.81, annex F): bits of a file, and coefficients of blocks.

use super::Problem;
use super::source::Source;
use std::io::Read;

/// Bytes that a block needs at most, with stuffed zeros: 64 coefficients of 16 bits of code and 15 bits of value.
const MOST_OF_BLOCK: usize = 1024;
/// Size of the buffer of compressed bytes.
const BUFFER: usize = 1 << 18;
/// Bits that are looked up at once.
const LOOKED_UP: u32 = 10;

/// Order of the coefficients of a block in the file.
pub(super) const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28, 35, 42,
    49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// Codes of a table.
#[derive(Clone, Debug)]
pub(super) struct Codes {
    /// Symbol and length of the codes of at most [`LOOKED_UP`] bits, by the bits that begin with them; 0 elsewhere.
    short: Vec<u16>,
    /// For bits that hold a code and its value: value, zeros before it, and number of bits; 0 elsewhere.
    whole: Vec<u32>,
    /// First code of each length with 16 bits, and the first code behind the length.
    ends: [u32; 17],
    /// For each length, what is added to a code to get the place of its symbol.
    places: [i32; 17],
    symbols: Vec<u8>,
}

impl Codes {
    /// Creates the codes from the number of codes of each length and their symbols; `None` if there is no such code.
    pub(super) fn new(counts: &[u8], symbols: &[u8]) -> Option<Codes> {
        let mut codes = Codes {
            short: vec![0; 1 << LOOKED_UP],
            whole: vec![0; 1 << LOOKED_UP],
            ends: [0; 17],
            places: [0; 17],
            symbols: symbols.to_vec(),
        };
        let (mut code, mut place) = (0u32, 0usize);
        for length in 1..=16u32 {
            codes.places[length as usize] = place as i32 - code as i32;
            for _ in 0..counts[length as usize - 1] {
                let symbol = *symbols.get(place)?;
                if code >> length != 0 {
                    return None;
                }
                if length <= LOOKED_UP {
                    let free = LOOKED_UP - length;
                    let entry = u16::from(symbol) << 8 | length as u16;
                    codes.short[(code << free) as usize..((code + 1) << free) as usize].fill(entry);
                }
                (code, place) = (code + 1, place + 1);
            }
            codes.ends[length as usize] = code << (16 - length);
            code <<= 1;
        }
        for bits in 0..1u32 << LOOKED_UP {
            let [length, symbol] = codes.short[bits as usize].to_le_bytes();
            let (size, length) = (u32::from(symbol & 15), u32::from(length));
            if length > 0 && size > 0 && length + size <= LOOKED_UP {
                let value = extended(bits >> (LOOKED_UP - length - size) & ((1 << size) - 1), size);
                codes.whole[bits as usize] = (value as u32) << 16 | u32::from(symbol >> 4) << 8 | (length + size);
            }
        }
        Some(codes)
    }
}

/// Returns the value of bits: those that begin with 0 are negative.
fn extended(bits: u32, size: u32) -> i32 {
    if size == 0 || bits >> (size - 1) != 0 { bits as i32 } else { bits as i32 - (1 << size) + 1 }
}

/// Bits of a scan.
#[derive(Debug)]
pub(super) struct Bits {
    source: Source,
    bytes: Vec<u8>,
    at: usize,
    end: usize,
    /// Bits that are not used yet, from the highest one on.
    held: u64,
    count: u32,
    /// Number of bits of `held` that are not in the file.
    missing: u32,
    is_at_marker: bool,
}

impl Bits {
    /// Begins at the place of the source.
    pub(super) fn new(source: Source) -> Bits {
        let bytes = vec![0; BUFFER];
        Bits { source, bytes, at: 0, end: 0, held: 0, count: 0, missing: 0, is_at_marker: false }
    }

    /// Reads bytes for the next block. The end of the file counts as a marker.
    pub(super) fn prepare(&mut self) -> Result<(), Problem> {
        if self.end - self.at >= MOST_OF_BLOCK {
            return Ok(());
        }
        self.bytes.copy_within(self.at..self.end, 0);
        (self.end, self.at) = (self.end - self.at, 0);
        while self.end < MOST_OF_BLOCK {
            let count = self.source.read(&mut self.bytes[self.end..]).map_err(Problem::of_read)?;
            if count == 0 {
                self.bytes[self.end..2 * MOST_OF_BLOCK].fill(0xff);
                self.end = 2 * MOST_OF_BLOCK;
            }
            self.end += count;
        }
        Ok(())
    }

    /// Holds at least 48 bits. Behind the last one they are 0.
    #[inline(always)]
    fn fill(&mut self) {
        if self.count >= 48 {
            return;
        }
        if let Some(Ok(eight)) = self.bytes.get(self.at..self.at + 8).map(<[u8; 8]>::try_from) {
            let word = u64::from_be_bytes(eight);
            let inverse = !word;
            let has_marker = inverse.wrapping_sub(0x0101_0101_0101_0101) & word & 0x8080_8080_8080_8080 != 0;
            if !has_marker && !self.is_at_marker {
                self.held |= word >> self.count;
                self.at += ((63 - self.count) >> 3) as usize;
                self.count |= 56;
                return;
            }
        }
        self.fill_bytewise();
    }

    #[inline(never)]
    fn fill_bytewise(&mut self) {
        while self.count <= 56 {
            let mut byte = 0;
            if self.is_at_marker {
                self.missing += 8;
            } else {
                byte = self.bytes[self.at];
                if byte == 0xff && self.bytes[self.at + 1] != 0 {
                    (self.is_at_marker, byte) = (true, 0);
                    self.missing += 8;
                } else {
                    self.at += 1 + usize::from(byte == 0xff);
                }
            }
            self.held |= u64::from(byte) << (56 - self.count);
            self.count += 8;
        }
    }

    #[inline(always)]
    fn skip(&mut self, count: u32) {
        self.held <<= count;
        self.count -= count;
    }

    /// Returns the next symbol.
    #[inline(always)]
    fn symbol(&mut self, codes: &Codes) -> Option<u8> {
        let [length, symbol] = codes.short[(self.held >> (64 - LOOKED_UP)) as usize].to_le_bytes();
        if length > 0 {
            self.skip(u32::from(length));
            return Some(symbol);
        }
        let sixteen = (self.held >> 48) as u32;
        let length = (LOOKED_UP + 1..=16).find(|length| sixteen < codes.ends[*length as usize])?;
        self.skip(length);
        codes.symbols.get(((sixteen >> (16 - length)) as i32 + codes.places[length as usize]) as usize).copied()
    }

    #[inline(always)]
    fn value(&mut self, size: u32) -> i32 {
        if size == 0 {
            return 0;
        }
        let bits = (self.held >> (64 - size)) as u32;
        self.skip(size);
        extended(bits, size)
    }

    /// Reads the coefficients of a block, which are 0 before. Returns the place behind the last one that is not 0.
    pub(super) fn block(&mut self, dc: &Codes, ac: &Codes, before: &mut i32, out: &mut [i16; 64]) -> Result<u8, Problem> {
        self.prepare()?;
        self.fill();
        let broken = || Problem::Decode("a scan has a code that its table does not have".to_owned());
        let size = u32::from(self.symbol(dc).filter(|size| *size <= 15).ok_or_else(broken)?);
        *before = before.wrapping_add(self.value(size));
        out[0] = *before as i16;
        let (mut place, mut end) = (1, 1);
        while place < 64 {
            self.fill();
            let whole = ac.whole[(self.held >> (64 - LOOKED_UP)) as usize];
            let value = if whole != 0 {
                self.skip(whole & 0xff);
                place += (whole >> 8 & 0xff) as usize;
                (whole >> 16) as i16
            } else {
                let symbol = self.symbol(ac).ok_or_else(broken)?;
                let (zeros, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
                match (zeros, size) {
                    (15, 0) => {
                        place += 16;
                        continue;
                    }
                    (_, 0) => break,
                    _ => {}
                }
                place += zeros;
                self.value(size) as i16
            };
            let natural = ZIGZAG.get(place).ok_or_else(|| Problem::Decode("a block has more than 64 coefficients".to_owned()))?;
            out[usize::from(*natural)] = value;
            place += 1;
            end = place;
        }
        match self.count < self.missing {
            true => Err(Problem::Decode("the file ends before the image".to_owned())),
            false => Ok(end as u8),
        }
    }

    /// Continues behind the restart marker of this number.
    pub(super) fn restart(&mut self, number: u8) -> Result<(), Problem> {
        self.prepare()?;
        let is_marker = |pair: &&[u8; 2]| pair[0] == 0xff && !matches!(pair[1], 0 | 0xff);
        let rest = &self.bytes[self.at..self.end];
        let found = rest.array_windows::<2>().find(is_marker);
        if found.is_none_or(|pair| pair[1] != 0xd0 + number) {
            return Err(Problem::Decode(format!("the restart marker {number} is missing")));
        }
        self.at += rest.array_windows::<2>().position(|pair| is_marker(&pair)).unwrap_or(0) + 2;
        (self.held, self.count, self.missing, self.is_at_marker) = (0, 0, 0, false);
        Ok(())
    }
}
