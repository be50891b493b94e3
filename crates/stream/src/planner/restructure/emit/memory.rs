//! Buffers within a kernel, and the words of firings in them.

use crate::planner::restructure::section::Port;
use crate::planner::restructure::wiring::{apply, keeps_runs};
use crate::planner::translate::Words;
use broadloom_scalar::{Array, Builder, Literal, Memory, Value};

/// The memory of a buffer within a kernel.
#[derive(Clone, Copy)]
pub(in crate::planner::restructure) enum BufferMemory {
    Memory(Memory),
    Local(Array),
}

/// A buffer within a kernel.
#[derive(Clone, Copy)]
pub(in crate::planner::restructure) struct KernelBuffer {
    pub(in crate::planner::restructure) store: BufferMemory,
    /// The number of the first item in the memory.
    pub(in crate::planner::restructure) start: i64,
    /// Items before the block's own items, in global memory.
    pub(in crate::planner::restructure) base: Option<Value>,
    pub(in crate::planner::restructure) words: Words,
    /// Words left out after every 32 words.
    pub(in crate::planner::restructure) padding: u32,
}

impl KernelBuffer {
    /// Returns the index of a word, from the number of an item and of a word after its first.
    pub(in crate::planner::restructure) fn index(&self, k: &Builder, item: Value, word: Option<Value>) -> Value {
        let item = match self.base {
            Some(base) => k.add(base, item),
            None => item,
        };
        let item = if self.start == 0 { item } else { k.sub(item, self.start) };
        let first = if self.words.count == 1 { item } else { k.mul(item, self.words.count) };
        self.pad(k, word.map_or(first, |word| k.add(first, word)))
    }

    /// Returns the index including the padding before it.
    pub(in crate::planner::restructure) fn pad(&self, k: &Builder, index: Value) -> Value {
        match self.padding {
            0 => index,
            words => k.add(index, k.mul(k.shr(index, 5), words as i32)),
        }
    }

    pub(in crate::planner::restructure) fn load(&self, k: &Builder, index: Value) -> Value {
        match self.store {
            BufferMemory::Memory(memory) => k.load(memory, index),
            BufferMemory::Local(array) => k.element(array, index),
        }
    }

    pub(in crate::planner::restructure) fn store(&self, k: &Builder, index: Value, value: Value) {
        match self.store {
            BufferMemory::Memory(memory) => k.store(memory, index, value),
            BufferMemory::Local(array) => k.set_element(array, index, value),
        }
    }
}

/// The place of a firing's words. Words are counted from the first word of the firing.
pub(in crate::planner::restructure) struct Window<'w> {
    pub(in crate::planner::restructure) port: &'w Port,
    pub(in crate::planner::restructure) held: KernelBuffer,
    /// The first item of the firing, on the tape of the actor.
    pub(in crate::planner::restructure) first: Value,
    /// The smallest possible number of an item.
    pub(in crate::planner::restructure) least: i64,
    /// The table of `anchors`, if there is one.
    pub(in crate::planner::restructure) anchors: &'w [(i64, i64)],
}

impl Window<'_> {
    /// Returns whether the items of a firing are contiguous.
    fn is_run(&self) -> bool {
        let port = self.port;
        port.steps.is_empty() || (port.seen == port.rate && port.start % port.rate == 0 && keeps_runs(&port.steps, port.rate))
    }

    /// Returns the index of a word.
    pub(in crate::planner::restructure) fn index(&self, k: &Builder, position: Value) -> Value {
        if self.is_run() {
            let item = apply(k, &self.port.steps, self.first, self.least);
            return self.held.index(k, item, Some(position));
        }
        let words = self.held.words.count;
        let word = (words > 1).then(|| k.rem(position, words));
        self.held.index(k, self.item(k, position), word)
    }

    /// Returns the number of the item to which a word belongs.
    pub(in crate::planner::restructure) fn item(&self, k: &Builder, position: Value) -> Value {
        let known = k.as_literal(position).and_then(Literal::as_i128);
        let item = known.and_then(|known| usize::try_from(known / i128::from(self.held.words.count)).ok());
        if let Some((anchor, distance)) = item.and_then(|item| self.anchors.get(item)) {
            let anchor = apply(k, &self.port.steps, k.add(self.first, *anchor), self.least);
            return k.add(anchor, *distance);
        }
        let position = if self.held.words.count == 1 { position } else { k.div(position, self.held.words.count) };
        apply(k, &self.port.steps, k.add(self.first, position), self.least)
    }
}
