//! Shadow memory: the earlier accesses to every word.
//!
//! A page of shadow memory covers [`PAGE`] bytes and is created when one of them is accessed. It keeps a
//! history per four-byte word, and splits into one per byte on the first smaller or unaligned access.

use super::history::History;
use crate::watch::ByteMemory;
use rustc_hash::FxHashMap;

const PAGE: u64 = 1024;

#[derive(Debug)]
struct Page {
    /// Bytes per history: 4 or 1.
    grain: u64,
    places: Vec<History>,
}

impl Page {
    fn split(&mut self) {
        let each = |place| std::iter::repeat_n(place, self.grain as usize);
        self.places = self.places.iter().flat_map(each).cloned().collect();
        self.grain = 1;
    }
}

/// Memory: an allocation, or the shared memory of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Area {
    Device(u64),
    Shared(u32),
}

/// Shadow of all memory that a launch has accessed.
#[derive(Debug, Default)]
pub struct Shadow {
    pages: FxHashMap<(Area, u64), Page>,
}

impl Shadow {
    /// Returns the histories of a range.
    pub fn places(&mut self, area: Area, offset: u64, bytes: u64) -> impl Iterator<Item = &mut History> {
        // An access is at most 64 bytes and aligned to its size, so it lies in one page.
        let page = self
            .pages
            .entry((area, offset / PAGE))
            .or_insert_with(|| Page { grain: 4, places: vec![History::default(); PAGE as usize / 4] });
        if page.grain == 4 && (!offset.is_multiple_of(4) || !bytes.is_multiple_of(4)) {
            page.split();
        }
        let start = (offset % PAGE / page.grain) as usize;
        let end = ((offset % PAGE + bytes).min(PAGE)).div_ceil(page.grain) as usize;
        page.places[start..end].iter_mut()
    }

    /// Removes the shadow of the shared memory of a block that has ended.
    pub(super) fn forget(&mut self, block: u32, shared_bytes: u64) {
        for page in 0..shared_bytes.div_ceil(PAGE) {
            self.pages.remove(&(Area::Shared(block), page));
        }
    }
}

impl Area {
    /// Returns the area of an access that other threads can see.
    pub(super) fn of(home: ByteMemory, block: u32) -> Option<Area> {
        match home {
            ByteMemory::Device(serial) => Some(Area::Device(serial)),
            ByteMemory::Shared => Some(Area::Shared(block)),
            ByteMemory::Peer(number) => Some(Area::Shared(number as u32)),
            ByteMemory::Local | ByteMemory::Param => None,
        }
    }
}
