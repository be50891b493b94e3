//! Checksums, ciphers and encodings.

use crate::compare::same;
use crate::inputs::Inputs;
use crate::trial::{Outcome, Trial, args};

pub(crate) fn crc32(t: &mut Trial<'_>) -> Outcome {
    let mut r = Inputs::new(80);
    let messages = 70;
    let mut data = b"123456789".to_vec();
    let mut start = vec![0i32, 9];
    for _ in 1..messages {
        let length = r.below(0, 20) as usize;
        data.extend(r.u8s(length));
        start.push(data.len() as i32);
    }
    // The remainder of the message, as a polynomial, by long division bit by bit from the highest.
    let crc = |message: &[u8]| {
        let mut remainder = u32::MAX;
        for byte in message {
            remainder ^= u32::from(byte.reverse_bits()) << 24;
            for _ in 0..8 {
                let top = remainder >> 31;
                remainder = (remainder << 1) ^ (top * 0x04c1_1db7);
            }
        }
        !remainder.reverse_bits()
    };
    let want: Vec<u32> = start.windows(2).map(|w| crc(&data[w[0] as usize..w[1] as usize])).collect();
    same("the check value of the standard", &want[..1], &[0xcbf4_3926])?;
    let (dd, ds) = (t.upload(&data)?, t.upload(&start)?);
    for (kernel, block) in [("crc32", 256), ("crc32_bitwise", 96)] {
        let out = t.output::<u32>(messages)?;
        t.launch(kernel, 1, block, args![dd, ds, messages as i32, out])?;
        same(kernel, &t.download(&out)?, &want)?;
    }
    Ok(())
}

/// Returns the first 32 bits of the fractional part of the `k`-th root of `p`.
fn root_bits(p: u64, k: u32) -> u32 {
    // The largest r with r^k <= p * 2^(32 k), bit by bit; it fits in 36 bits, so its cube in 108.
    let bound = u128::from(p) << (32 * k);
    let mut root = 0u128;
    for bit in (0..36).rev() {
        let trial = root | 1 << bit;
        if trial.pow(k) <= bound {
            root = trial;
        }
    }
    root as u32
}

fn sha256_blocks(message: &[u8]) -> [u32; 8] {
    let primes: Vec<u64> = (2..).filter(|n| (2..*n).all(|d| n % d != 0)).take(64).collect();
    let constants: Vec<u32> = primes.iter().map(|p| root_bits(*p, 3)).collect();
    let mut hash = [0; 8].map(|_: u32| 0);
    (0..8).for_each(|i| hash[i] = root_bits(primes[i], 2));
    for block in message.chunks(64) {
        let mut w: Vec<u32> = block.chunks(4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]])).collect();
        for i in 16..64 {
            let (a, b) = (w[i - 15], w[i - 2]);
            let s0 = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
            let s1 = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
            w.push(w[i - 16].wrapping_add(s0).wrapping_add(w[i - 7]).wrapping_add(s1));
        }
        let mut v = hash;
        for i in 0..64 {
            let s1 = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
            let choice = v[6] ^ v[4] & (v[5] ^ v[6]);
            let t1 = [s1, choice, constants[i], w[i]].iter().fold(v[7], |a, b| a.wrapping_add(*b));
            let s0 = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
            let majority = v[0] & v[1] | v[2] & (v[0] | v[1]);
            v.rotate_right(1);
            v[4] = v[4].wrapping_add(t1);
            v[0] = t1.wrapping_add(s0).wrapping_add(majority);
        }
        (0..8).for_each(|i| hash[i] = hash[i].wrapping_add(v[i]));
    }
    hash
}

pub(crate) fn sha256(t: &mut Trial<'_>) -> Outcome {
    let (messages, blocks) = (5, 2);
    let mut data = Inputs::new(81).u8s(messages * blocks * 64);
    // The first message is the two-block example of the standard.
    let example = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    data[..128].fill(0);
    data[..56].copy_from_slice(example);
    data[56] = 0x80;
    data[126..128].copy_from_slice(&448u16.to_be_bytes());
    let want: Vec<[u32; 8]> = data.chunks(blocks * 64).map(sha256_blocks).collect();
    same("the example of the standard", &want[0][..2], &[0x248d_6a61, 0xd206_38b8])?;
    let (dd, digest) = (t.upload(&data)?, t.output::<[u32; 8]>(messages)?);
    t.launch("sha256", 1, 32, args![dd, blocks as i32, messages as i32, digest])?;
    same("digests", &t.download(&digest)?, &want)
}

/// Returns a product in the field of 256 elements that AES uses.
fn field_product(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = a << 1 ^ if a & 0x80 != 0 { 0x1b } else { 0 };
        b >>= 1;
    }
    product
}

/// Computes the AES substitution: the inverse in that field (to the 254th power), then the affine map.
fn substitute(x: u8) -> u8 {
    let inverse = (0..254).fold(1, |p, _| field_product(p, x));
    (0..5).fold(0x63, |s, k| s ^ inverse.rotate_left(k))
}

fn aes_block(key: &[u8], block: &[u8]) -> [u8; 16] {
    let mut keys = key.to_vec();
    let mut round_constant = 1;
    for i in (16..176).step_by(4) {
        let mut word = [keys[i - 4], keys[i - 3], keys[i - 2], keys[i - 1]];
        if i % 16 == 0 {
            word = [word[1], word[2], word[3], word[0]].map(substitute);
            word[0] ^= round_constant;
            round_constant = field_product(round_constant, 2);
        }
        (0..4).for_each(|k| keys.push(keys[i - 16 + k] ^ word[k]));
    }
    let mut state = [0u8; 16];
    (0..16).for_each(|i| state[i] = block[i] ^ keys[i]);
    for round in 1..=10 {
        let mut shifted = [0u8; 16];
        for column in 0..4 {
            for row in 0..4 {
                shifted[4 * column + row] = substitute(state[4 * ((column + row) % 4) + row]);
            }
        }
        for i in 0..16 {
            let (column, row) = (i / 4 * 4, i % 4);
            let mixed = [2, 3, 1, 1]
                .iter()
                .enumerate()
                .fold(0, |sum, (k, factor)| sum ^ field_product(*factor, shifted[column + (row + k) % 4]));
            state[i] = if round < 10 { mixed } else { shifted[i] } ^ keys[16 * round + i];
        }
    }
    state
}

pub(crate) fn aes(t: &mut Trial<'_>) -> Outcome {
    let n = 20;
    // The first block is the example of the standard.
    let key: Vec<u8> = (0..16).collect();
    let mut input: Vec<u8> = (0..16).map(|i| i * 0x11).collect();
    input.extend(Inputs::new(82).u8s((n - 1) * 16));
    let want: Vec<u8> = input.chunks(16).flat_map(|block| aes_block(&key, block)).collect();
    same("the example of the standard", &want[..4], &[0x69, 0xc4, 0xe0, 0xd8])?;
    let (dk, di, out) = (t.upload(&key)?, t.upload(&input)?, t.output::<u8>(n * 16)?);
    t.launch("aes", 1, 32, args![dk, di, out, n as i32])?;
    same("blocks", &t.download(&out)?, &want)
}

pub(crate) fn base64(t: &mut Trial<'_>) -> Outcome {
    let n = 300;
    let mut input = b"Many hands make light work.".to_vec();
    input.extend(Inputs::new(83).u8s(n - input.len()));
    let alphabet: Vec<u8> = (b'A'..=b'Z').chain(b'a'..=b'z').chain(b'0'..=b'9').chain(*b"+/").collect();
    let bits: Vec<u8> = input.iter().flat_map(|b| (0..8).rev().map(move |k| b >> k & 1)).collect();
    let want: Vec<u8> = bits.chunks(6).map(|six| alphabet[six.iter().fold(0, |v, bit| v * 2 + *bit as usize)]).collect();
    same("a known text", &want[..12], b"TWFueSBoYW5k")?;
    let (di, out, back) = (t.upload(&input)?, t.output::<u8>(n / 3 * 4)?, t.output::<u8>(n)?);
    t.launch("base64_encode", 1, 128, args![di, n as i32, out])?;
    same("encoded", &t.download(&out)?, &want)?;
    t.launch("base64_decode", 1, 128, args![out, (n / 3 * 4) as i32, back])?;
    same("decoded", &t.download(&back)?, &input)
}
