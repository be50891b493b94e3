//! Initialised bytes and registers.

use std::collections::HashMap;

/// Set of bytes of one memory, by offset.
#[derive(Clone, Debug, Default)]
pub struct Bytes {
    words: Vec<u64>,
}

impl Bytes {
    /// Marks a range as written or not.
    pub fn set(&mut self, offset: u64, bytes: u64, defined: bool) {
        let end = (offset + bytes) as usize;
        if self.words.len() * 64 < end {
            self.words.resize(end.div_ceil(64), 0);
        }
        let mut at = offset as usize;
        while at < end {
            let (word, bit) = (at / 64, at % 64);
            let count = (64 - bit).min(end - at);
            let mask = (u64::MAX >> (64 - count)) << bit;
            if defined {
                self.words[word] |= mask;
            } else {
                self.words[word] &= !mask;
            }
            at += count;
        }
    }

    /// Returns whether a byte has been written.
    pub fn has(&self, offset: u64) -> bool {
        self.words.get(offset as usize / 64).is_some_and(|word| word >> (offset % 64) & 1 == 1)
    }

    /// Returns whether any byte of a range has been written.
    pub fn any(&self, offset: u64, bytes: u64) -> bool {
        (offset..offset + bytes).any(|at| self.has(at))
    }
}

/// Initialised bytes of the allocations of a device; lives as long as the device.
#[derive(Debug, Default)]
pub(crate) struct DeviceBytes {
    by_serial: HashMap<u64, Bytes>,
}

impl DeviceBytes {
    pub(crate) fn of(&mut self, serial: u64) -> &mut Bytes {
        self.by_serial.entry(serial).or_default()
    }

    pub(crate) fn forget(&mut self, serial: u64) {
        self.by_serial.remove(&serial);
    }

    /// Copies the knowledge about one range to another.
    pub(crate) fn copy(&mut self, to: (u64, u64), from: (u64, u64), bytes: u64) {
        let known: Vec<bool> = (0..bytes).map(|at| self.of(from.0).has(from.1 + at)).collect();
        for (at, defined) in known.into_iter().enumerate() {
            self.of(to.0).set(to.1 + at as u64, 1, defined);
        }
    }
}
