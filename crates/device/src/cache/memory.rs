//! Cache in memory with least-recently-used eviction.

use super::key::Key;
use std::collections::HashMap;
use std::sync::Arc;

/// Value with its size and the time of its last use.
#[derive(Debug)]
struct StoredValue<T> {
    value: Arc<T>,
    bytes: usize,
    used: u64,
}

/// Values of bounded total size, by key and variant.
#[derive(Debug)]
pub(super) struct Memory<T> {
    values: HashMap<(Key, u64), StoredValue<T>>,
    bytes: usize,
    most_bytes: usize,
    clock: u64,
}

impl<T> Memory<T> {
    pub(super) fn new(most_bytes: usize) -> Memory<T> {
        Memory { values: HashMap::new(), bytes: 0, most_bytes, clock: 0 }
    }

    pub(super) fn find(&mut self, key: &(Key, u64)) -> Option<Arc<T>> {
        self.clock += 1;
        let kept = self.values.get_mut(key)?;
        kept.used = self.clock;
        Some(kept.value.clone())
    }

    pub(super) fn keep(&mut self, key: (Key, u64), value: Arc<T>, bytes: usize) {
        self.clock += 1;
        self.bytes += bytes;
        if let Some(before) = self.values.insert(key, StoredValue { value, bytes, used: self.clock }) {
            self.bytes -= before.bytes;
        }
        while self.bytes > self.most_bytes && self.values.len() > 1 {
            let Some(oldest) = self.values.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| *key) else { break };
            if let Some(gone) = self.values.remove(&oldest) {
                self.bytes -= gone.bytes;
            }
        }
    }

    /// Removes all variants of a key.
    pub(super) fn forget(&mut self, key: &Key) {
        let bytes = &mut self.bytes;
        self.values.retain(|(other, _), kept| {
            let stays = other != key;
            *bytes -= if stays { 0 } else { kept.bytes };
            stays
        });
    }
}
