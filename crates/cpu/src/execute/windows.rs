//! Shared memory of the blocks of a cluster: one window each, far enough apart that none reaches into
//! another. See [`WINDOW`].

use crate::abi::{FAR, WINDOW};
use crate::map::{Mapping, Pages, page_bytes};
use std::io;

/// Shared memory of the blocks of a cluster.
#[derive(Debug)]
pub(super) struct Windows {
    mapping: Mapping,
    blocks: usize,
    /// Bytes of each block, in whole pages.
    bytes: usize,
    /// Bit mask of the blocks whose memory is closed.
    closed: u32,
}

impl Windows {
    /// Reserves address space for any cluster; none of it is accessible.
    pub(super) fn new() -> io::Result<Windows> {
        // The space after the last block covers the range that an address of another block's memory can
        // exceed it by.
        let mapping = Mapping::new((3 * FAR * WINDOW) as usize, Pages::Private)?;
        mapping.protect(0, mapping.bytes(), libc::PROT_NONE)?;
        Ok(Windows { mapping, blocks: 0, bytes: 0, closed: 0 })
    }

    pub(super) fn fit(&mut self, blocks: usize, bytes: usize) -> io::Result<()> {
        let bytes = bytes.next_multiple_of(page_bytes());
        if blocks > FAR as usize || bytes >= WINDOW as usize {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        if (blocks, bytes) != (self.blocks, self.bytes) || self.closed != 0 {
            self.blocks = 0;
            self.mapping.protect(0, self.mapping.bytes(), libc::PROT_NONE)?;
            for rank in 0..blocks {
                self.mapping.protect(rank * WINDOW as usize, bytes, libc::PROT_READ | libc::PROT_WRITE)?;
            }
            (self.blocks, self.bytes, self.closed) = (blocks, bytes, 0);
        }
        Ok(())
    }

    pub(super) fn start(&self, rank: usize) -> *mut u8 {
        // Address inside the mapping.
        self.mapping.start().wrapping_add(rank * WINDOW as usize)
    }

    /// Closes the shared memory of a block that has ended.
    pub(super) fn close(&mut self, rank: usize) {
        // If the host cannot protect it, a stray access stays undetected.
        if self.mapping.protect(rank * WINDOW as usize, self.bytes, libc::PROT_NONE).is_ok() {
            self.closed |= 1 << rank;
        }
    }

    /// Opens the shared memory of all blocks.
    pub(super) fn open(&mut self) -> io::Result<()> {
        for rank in (0..self.blocks).filter(|rank| self.closed >> rank & 1 == 1) {
            self.mapping.protect(rank * WINDOW as usize, self.bytes, libc::PROT_READ | libc::PROT_WRITE)?;
        }
        self.closed = 0;
        Ok(())
    }
}
