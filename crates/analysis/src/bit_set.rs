//! Sets of ids, one bit each.

use cranelift_entity::EntityRef;
use std::fmt;
use std::marker::PhantomData;

/// Set of ids, one bit each. Its length follows the largest id.
#[derive(Clone)]
pub struct BitSet<K> {
    words: Vec<u64>,
    kind: PhantomData<K>,
}

impl<K: EntityRef> BitSet<K> {
    /// Returns the empty set.
    pub fn new() -> Self {
        BitSet { words: vec![], kind: PhantomData }
    }

    /// Returns the empty set, with space for the ids below a number.
    pub fn with_capacity(count: usize) -> Self {
        BitSet { words: vec![0; count.div_ceil(64)], kind: PhantomData }
    }

    /// Returns whether the set contains an id.
    pub fn contains(&self, id: K) -> bool {
        self.words.get(id.index() / 64).is_some_and(|word| word >> (id.index() % 64) & 1 != 0)
    }

    /// Adds an id. Returns whether it is new.
    pub fn insert(&mut self, id: K) -> bool {
        let place = id.index() / 64;
        if place >= self.words.len() {
            self.words.resize(place + 1, 0);
        }
        let bit = 1 << (id.index() % 64);
        let new = self.words[place] & bit == 0;
        self.words[place] |= bit;
        new
    }

    /// Removes an id. Returns whether it was present.
    pub fn remove(&mut self, id: K) -> bool {
        let Some(word) = self.words.get_mut(id.index() / 64) else { return false };
        let bit = 1 << (id.index() % 64);
        let was = *word & bit != 0;
        *word &= !bit;
        was
    }

    /// Adds all ids of another set. Returns whether any is new.
    pub fn union_with(&mut self, other: &Self) -> bool {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        let mut changed = 0;
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            changed |= theirs & !*mine;
            *mine |= theirs;
        }
        changed != 0
    }

    /// Adds all ids of `other` that are not in `without`. Returns whether any is new.
    pub fn union_with_difference(&mut self, other: &Self, without: &Self) -> bool {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        let mut changed = 0;
        for (index, (mine, theirs)) in self.words.iter_mut().zip(&other.words).enumerate() {
            let added = theirs & !without.words.get(index).copied().unwrap_or(0);
            changed |= added & !*mine;
            *mine |= added;
        }
        changed != 0
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Returns the number of ids.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns the ids in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = K> + '_ {
        self.words.iter().enumerate().flat_map(|(place, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
                Some(K::new(place * 64 + bit))
            })
        })
    }
}

impl<K: EntityRef> Default for BitSet<K> {
    fn default() -> Self {
        BitSet::new()
    }
}

impl<K: EntityRef> PartialEq for BitSet<K> {
    fn eq(&self, other: &Self) -> bool {
        let (short, long) = if self.words.len() < other.words.len() { (self, other) } else { (other, self) };
        let (same, rest) = long.words.split_at(short.words.len());
        same == short.words && rest.iter().all(|word| *word == 0)
    }
}

impl<K: EntityRef> Eq for BitSet<K> {}

impl<K: EntityRef> FromIterator<K> for BitSet<K> {
    fn from_iter<I: IntoIterator<Item = K>>(ids: I) -> Self {
        let mut set = BitSet::new();
        set.extend(ids);
        set
    }
}

impl<K: EntityRef> Extend<K> for BitSet<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, ids: I) {
        for id in ids {
            self.insert(id);
        }
    }
}

impl<K: EntityRef + fmt::Debug> fmt::Debug for BitSet<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
