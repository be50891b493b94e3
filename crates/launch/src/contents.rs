//! What a buffer starts with.

use crate::Element;

/// Numbers that look random and never change: the sequence "SplitMix64".
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// Fills bytes element by element.
fn fill(bytes: &mut [u8], element: Element, mut value: impl FnMut(u64) -> [u8; 8]) {
    for (index, place) in bytes.chunks_exact_mut(element.bytes()).enumerate() {
        place.copy_from_slice(&value(index as u64)[..element.bytes()]);
    }
}

pub(crate) fn fill_iota(bytes: &mut [u8], element: Element) {
    fill(bytes, element, |index| element.from_index(index));
}

pub(crate) fn fill_random(bytes: &mut [u8], element: Element, seed: u64) {
    let mut random = Random::new(seed);
    fill(bytes, element, |_| element.from_random(random.next()));
}
