//! A hash for tables that are looked at in every evaluation: nodes by their address, expressions and plans by their structure. What is in them comes from the
//! program itself, so nobody picks keys that collide, and a multiplication for each word does.

use std::hash::{BuildHasherDefault, Hasher};

/// A table with [`Quick`] hashes.
pub(crate) type QuickMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<Quick>>;

/// The hash of words so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Quick(u64);

/// An odd number whose bits look random.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Quick {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    }
}

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
        let mut rest = [0; 8];
        rest[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
        if !chunks.remainder().is_empty() {
            self.add(u64::from_le_bytes(rest));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.add(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.add(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.add(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.add(value as u64);
    }

    /// A table looks at the lowest and the highest bits, and a product's lowest depend on few.
    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(FACTOR);
        mixed ^ (mixed >> 29)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::hash::Hash;

    fn hash(value: impl Hash) -> u64 {
        let mut hasher = Quick::default();
        value.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn addresses_and_small_numbers_are_spread() {
        for step in [1usize, 8, 16, 4096] {
            let hashes: Vec<u64> = (0..4096usize).map(|i| hash(0x7f00_0000_0000 + i * step)).collect();
            assert_eq!(hashes.iter().collect::<HashSet<_>>().len(), 4096);
            // As balls in as many bins: about 63 of 100 bins have one.
            for shift in [0, 52] {
                let bins = hashes.iter().map(|hash| (hash >> shift) & 4095).collect::<HashSet<_>>().len();
                assert!(bins > 2300, "{step} {shift} {bins}");
            }
        }
        assert_ne!(hash("ab"), hash("ba"));
        assert_ne!(hash([1u8, 2].as_slice()), hash([2u8, 1].as_slice()));
        assert_ne!(hash((1u32, 2u32)), hash((2u32, 1u32)));
    }
}
