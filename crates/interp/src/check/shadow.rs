//! Shadow memory: the last accesses of every word.
//!
//! A page of shadow covers [`PAGE`] bytes and comes into being when one of them is touched. It keeps a cell per word of four
//! bytes, and splits into a cell per byte when a smaller or unaligned access comes.

use crate::watch::{Home, Scope};
use broadloom_ptx::{Func, Inst};
use std::collections::HashMap;

const PAGE: u64 = 1024;
/// Readers that are remembered per cell. Of many unordered readers a few are enough to meet a write.
const READERS: usize = 3;

/// An access that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) block: u32,
    pub(super) thread: u16,
    /// Whether it was atomic, volatile or ordered.
    pub(super) strong: bool,
    pub(super) scope: Scope,
    pub(super) time: u32,
    pub(super) func: Func,
    pub(super) inst: Inst,
}

/// The last accesses of a word or byte.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    pub(super) write: Option<Record>,
    reads: [Option<Record>; READERS],
}

impl Cell {
    pub(super) fn readers(&self) -> impl Iterator<Item = &Record> {
        self.reads.iter().flatten()
    }

    /// Remembers a reader: in the place of its own earlier read, a free place, or the oldest but the first.
    pub(super) fn add_reader(&mut self, record: Record) {
        let same = |read: &Option<Record>| read.is_some_and(|read| (read.block, read.thread) == (record.block, record.thread));
        if let Some(place) = self.reads.iter_mut().find(|read| same(read)) {
            *place = Some(record);
        } else if let Some(place) = self.reads.iter_mut().find(|read| read.is_none()) {
            *place = Some(record);
        } else {
            self.reads[1..].rotate_left(1);
            self.reads[READERS - 1] = Some(record);
        }
    }

    pub(super) fn clear_readers(&mut self) {
        self.reads = [None; READERS];
    }
}

#[derive(Debug)]
struct Page {
    /// Bytes per cell: 4 or 1.
    grain: u64,
    cells: Vec<Cell>,
}

impl Page {
    fn split(&mut self) {
        self.cells = self.cells.iter().flat_map(|cell| std::iter::repeat_n(cell, self.grain as usize)).cloned().collect();
        self.grain = 1;
    }
}

/// Which memory: an allocation, or the shared memory of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Area {
    Device(u64),
    Shared(u32),
}

/// The shadow of all memory that a launch has touched.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    pages: HashMap<(Area, u64), Page>,
}

impl Shadow {
    /// The cells of a range.
    pub(super) fn cells(&mut self, area: Area, offset: u64, bytes: u64) -> impl Iterator<Item = &mut Cell> {
        // An access is at most 64 bytes and aligned to its size, so it lies in one page.
        let page = self
            .pages
            .entry((area, offset / PAGE))
            .or_insert_with(|| Page { grain: 4, cells: vec![Cell::default(); PAGE as usize / 4] });
        if page.grain == 4 && (!offset.is_multiple_of(4) || !bytes.is_multiple_of(4)) {
            page.split();
        }
        let start = (offset % PAGE / page.grain) as usize;
        let end = ((offset % PAGE + bytes).min(PAGE)).div_ceil(page.grain) as usize;
        page.cells[start..end].iter_mut()
    }

    /// Forgets the shared memory of a block that has ended.
    pub(super) fn forget(&mut self, block: u32, shared_bytes: u64) {
        for page in 0..shared_bytes.div_ceil(PAGE) {
            self.pages.remove(&(Area::Shared(block), page));
        }
    }
}

impl Area {
    /// The area of an access that other threads can see.
    pub(super) fn of(home: Home, block: u32) -> Option<Area> {
        match home {
            Home::Device(serial) => Some(Area::Device(serial)),
            Home::Shared => Some(Area::Shared(block)),
            Home::Peer(number) => Some(Area::Shared(number as u32)),
            Home::Local | Home::Param => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_split_for_bytes_and_keep_what_they_knew() {
        let record = Record {
            block: 1,
            thread: 2,
            strong: false,
            scope: Scope::Gpu,
            time: 3,
            func: Func::from_u32(0),
            inst: Inst::from_u32(0),
        };
        let mut shadow = Shadow::default();
        shadow.cells(Area::Device(1), 8, 4).for_each(|cell| cell.write = Some(record));
        assert_eq!(shadow.cells(Area::Device(1), 9, 1).filter(|cell| cell.write == Some(record)).count(), 1);
        assert_eq!(shadow.cells(Area::Device(1), 4, 8).filter(|cell| cell.write == Some(record)).count(), 4);
        assert_eq!(shadow.cells(Area::Device(2), 8, 4).filter(|cell| cell.write.is_some()).count(), 0);
    }
}
