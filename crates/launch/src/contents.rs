//! Initial contents of buffers.

use crate::Element;
use broadloom_random::Random;

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
    fill(bytes, element, |_| element.from_random(random.bits()));
}
