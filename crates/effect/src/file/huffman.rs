//! Deflate blocks (RFC 1951) of literals and runs of a byte, with codes made for their content.
//!
//! Filtered rows of images have few other repetitions, so that nothing is searched. That takes a tenth of the time of a
//! search, and is a few percent larger.

/// Literals, the end of a block, and lengths.
const SYMBOLS: usize = 286;
/// Symbol of the end of a block.
const END: usize = 256;
/// Maximum length of a code of literals and lengths, so that four of them fit into a word beside its rest.
const MOST_BITS: usize = 12;
/// Maximum length of the codes of lengths.
const MOST_BITS_OF_LENGTHS: usize = 7;
/// Order in which the lengths of the codes of lengths are written.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
/// Equal bytes that are looked for at once.
const GROUP: usize = 8;
/// Maximum length of a match.
const MOST_MATCHED: usize = 258;
/// Maximum length of a stored block.
const STORED: usize = 65535;

/// Returns the symbol of a length from 3 on, its extra bits and their number.
fn symbol_of_length(length: usize) -> (usize, u64, u32) {
    match length {
        3..=10 => (length + 254, 0, 0),
        258 => (285, 0, 0),
        _ => {
            let bits = (length - 3).ilog2() - 2;
            (261 + 4 * bits as usize + ((length - 3) >> bits & 3), (length - 3) as u64 & ((1 << bits) - 1), bits)
        }
    }
}

/// Returns the lengths of codes for symbols with these counts, at most `most` bits long.
pub(super) fn lengths(counts: &[u32], most: usize) -> Vec<u8> {
    let mut used: Vec<(u64, usize)> =
        counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(symbol, count)| (u64::from(*count), symbol)).collect();
    used.sort_unstable();
    let mut lengths = vec![0; counts.len()];
    if let [(_, only)] = used[..] {
        lengths[only] = 1;
        return lengths;
    }
    // Nodes of the tree: leaves in ascending order, then inner ones, which ascend too.
    let (mut weights, leaves) = (used.iter().map(|(count, _)| *count).collect::<Vec<u64>>(), used.len());
    let mut parents = vec![0; 2 * leaves];
    let (mut leaf, mut inner) = (0, leaves);
    for _ in 1..leaves {
        let number = weights.len();
        let mut sum = 0;
        for _ in 0..2 {
            let takes_leaf = leaf < leaves && (inner >= number || weights[leaf] <= weights[inner]);
            let child = if takes_leaf { &mut leaf } else { &mut inner };
            sum += weights[*child];
            parents[*child] = number;
            *child += 1;
        }
        weights.push(sum);
    }
    let mut depths = vec![0usize; weights.len()];
    for node in (0..weights.len().saturating_sub(1)).rev() {
        depths[node] = depths[parents[node]] + 1;
    }
    // Codes that are too long become shorter, and others longer, until the codes are a tree again.
    let mut bits: Vec<usize> = depths[..leaves].iter().map(|depth| (*depth).min(most)).collect();
    let mut sum: usize = bits.iter().map(|bits| 1 << (most - bits)).sum();
    for bits in &mut bits {
        while sum > 1 << most && *bits < most {
            sum -= 1 << (most - *bits - 1);
            *bits += 1;
        }
    }
    for bits in bits.iter_mut().rev() {
        while *bits > 1 && sum + (1 << (most - *bits)) <= 1 << most {
            sum += 1 << (most - *bits);
            *bits -= 1;
        }
    }
    for ((_, symbol), bits) in used.iter().zip(bits) {
        lengths[*symbol] = bits as u8;
    }
    lengths
}

/// Returns the codes of lengths, with their first bit as the lowest.
fn codes(lengths: &[u8]) -> Vec<u16> {
    let mut next = [0u16; 17];
    for bits in 1..=16 {
        let count = |bits: usize| lengths.iter().filter(|length| usize::from(**length) == bits && bits > 0).count() as u16;
        next[bits] = (next[bits - 1] + count(bits - 1)) << 1;
    }
    let code = |length: &u8| {
        if *length == 0 {
            return 0;
        }
        let code = next[usize::from(*length)];
        next[usize::from(*length)] += 1;
        code.reverse_bits() >> (16 - length)
    };
    lengths.iter().map(code).collect()
}

/// Bits that are written, the lowest first.
struct Writer {
    bytes: Vec<u8>,
    held: u64,
    count: u32,
}

impl Writer {
    #[inline(always)]
    fn put(&mut self, bits: u64, count: u32) {
        self.held |= bits << self.count;
        self.count += count;
    }

    /// Writes whole bytes, so that 56 bits more can be held.
    #[inline(always)]
    fn flush(&mut self) {
        self.bytes.extend_from_slice(&self.held.to_le_bytes());
        self.bytes.truncate(self.bytes.len() - 8 + (self.count / 8) as usize);
        self.held = if self.count >= 64 { 0 } else { self.held >> (self.count & !7) };
        self.count &= 7;
    }

    /// Ends the blocks at a byte: by the last block, or by an empty stored block.
    fn end(mut self, is_last: bool) -> Vec<u8> {
        if is_last {
            // An empty block of the fixed codes.
            self.put(0b011, 3);
            self.put(0, 7);
        } else {
            self.put(0, 3);
        }
        self.flush();
        if self.count > 0 {
            self.put(0, 8 - self.count);
            self.flush();
        }
        if !is_last {
            self.bytes.extend([0, 0, 0xff, 0xff]);
        }
        self.bytes
    }
}

/// Parts of the content: literals, and runs of the last of them.
fn parts<'a>(content: &'a [u8], mut each: impl FnMut(&'a [u8], usize)) {
    let mut first = 0;
    let mut at = 0;
    while let Some(group) = content.get(at..at + GROUP) {
        let word = u64::from_ne_bytes(group.try_into().unwrap_or_default());
        if word != u64::from(group[0]) * 0x0101_0101_0101_0101 {
            at += GROUP;
            continue;
        }
        let end = at + GROUP + content[at + GROUP..].iter().take_while(|byte| **byte == group[0]).count();
        each(&content[first..=at], end - at - 1);
        (first, at) = (end, end);
    }
    each(&content[first..], 0);
}

/// Calls a function with the lengths of the matches of a run, of which none is shorter than 3.
fn matches(mut run: usize, mut each: impl FnMut(usize)) {
    while run > 0 {
        let length = match run {
            0..=MOST_MATCHED => run,
            // The rest must not be shorter than a match.
            _ if run < MOST_MATCHED + 3 => MOST_MATCHED - 3,
            _ => MOST_MATCHED,
        };
        each(length);
        run -= length;
    }
}

/// Compresses content to blocks that end at a byte. `is_last` ends the stream.
pub(super) fn compressed(content: &[u8], is_last: bool) -> Vec<u8> {
    let mut counts = [[0u32; SYMBOLS]; 4];
    parts(content, |literals, run| {
        // Four tables, because a counter is not ready when the same byte follows at once.
        let (fours, rest) = literals.as_chunks::<4>();
        for four in fours {
            counts.iter_mut().zip(four).for_each(|(counts, byte)| counts[usize::from(*byte)] += 1);
        }
        rest.iter().for_each(|byte| counts[0][usize::from(*byte)] += 1);
        matches(run, |length| counts[0][symbol_of_length(length).0] += 1);
    });
    let mut total: Vec<u32> = (0..SYMBOLS).map(|symbol| counts.iter().map(|counts| counts[symbol]).sum()).collect();
    total[END] += 1;
    let bits = lengths(&total, MOST_BITS);
    let size: u64 = total.iter().zip(&bits).map(|(count, bits)| u64::from(*count) * u64::from(*bits)).sum();
    let size = size.div_ceil(8) as usize;
    if size >= content.len() {
        return stored(content, is_last);
    }
    let codes = codes(&bits);
    let mut out = Writer { bytes: Vec::with_capacity(size + 1024), held: 0, count: 0 };
    header(&bits, &mut out);
    let table: Vec<u32> = codes.iter().zip(&bits).map(|(code, bits)| u32::from(*code) << 8 | u32::from(*bits)).collect();
    let mut word = [(0u32, 0u32); 256];
    word.iter_mut().zip(&table).for_each(|(word, entry)| *word = (entry >> 8, entry & 0xff));
    let symbol = |symbol: usize, out: &mut Writer| out.put(u64::from(codes[symbol]), u32::from(bits[symbol]));
    parts(content, |literals, run| {
        let (fours, rest) = literals.as_chunks::<4>();
        for four in fours {
            for byte in four {
                let (code, bits) = word[usize::from(*byte)];
                out.put(u64::from(code), bits);
            }
            out.flush();
        }
        rest.iter().for_each(|byte| symbol(usize::from(*byte), &mut out));
        out.flush();
        matches(run, |length| {
            let (number, extra, count) = symbol_of_length(length);
            symbol(number, &mut out);
            out.put(extra, count);
            // The only code of distances: 1.
            out.put(0, 1);
            out.flush();
        });
    });
    symbol(END, &mut out);
    out.flush();
    out.end(is_last)
}

/// Writes the header of a block: the lengths of its codes, and one code of distances.
fn header(bits: &[u8], out: &mut Writer) {
    let mut all = bits.to_vec();
    all.push(1);
    // Symbols of the lengths: lengths, and 17 and 18 for runs of zeros, with their extra bits.
    let (mut symbols, mut at) = (vec![], 0);
    while at < all.len() {
        let zeros = all[at..].iter().take_while(|bits| **bits == 0).take(138).count();
        match zeros {
            0..=2 => {
                symbols.push((usize::from(all[at]), 0, 0));
                at += 1;
                continue;
            }
            3..=10 => symbols.push((17, zeros as u64 - 3, 3)),
            _ => symbols.push((18, zeros as u64 - 11, 7)),
        }
        at += zeros;
    }
    let mut counts = [0; 19];
    symbols.iter().for_each(|(symbol, ..)| counts[*symbol] += 1);
    let own = lengths(&counts, MOST_BITS_OF_LENGTHS);
    let own_codes = codes(&own);
    let written = ORDER.iter().rposition(|symbol| own[*symbol] > 0).map_or(4, |last| (last + 1).max(4));
    // No last block, dynamic codes; the numbers of codes.
    out.put(0b100, 3);
    out.put((bits.len() - 257) as u64, 5);
    out.put(0, 5);
    out.put((written - 4) as u64, 4);
    out.flush();
    for symbol in &ORDER[..written] {
        out.put(u64::from(own[*symbol]), 3);
        out.flush();
    }
    for (symbol, extra, count) in symbols {
        out.put(u64::from(own_codes[symbol]), u32::from(own[symbol]));
        out.put(extra, count);
        out.flush();
    }
}

/// Returns blocks of bytes that are not compressed.
fn stored(content: &[u8], is_last: bool) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(content.len() + content.len() / STORED * 5 + 16);
    for block in content.chunks(STORED) {
        let len = block.len() as u16;
        bytes.push(0);
        bytes.extend(len.to_le_bytes());
        bytes.extend((!len).to_le_bytes());
        bytes.extend_from_slice(block);
    }
    bytes.extend(Writer { bytes: vec![], held: 0, count: 0 }.end(is_last));
    bytes
}
