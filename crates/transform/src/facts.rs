//! Facts about a launch that are known before it happens.

use broadloom_ptx::{Function, Special};

/// Sizes that code can be specialised on; `None` means any size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Facts {
    /// Number of threads of a block: `%ntid`.
    pub block: Option<[u32; 3]>,
    /// Number of blocks of the grid: `%nctaid`.
    pub grid: Option<[u32; 3]>,
}

impl Facts {
    /// Adds the requirements of the function itself (`.reqntid`), if nothing is known yet.
    pub fn with_directives(mut self, function: &Function) -> Facts {
        if let (None, Some(numbers)) = (self.block, function.directive("reqntid")) {
            let size = |index: usize| numbers.get(index).copied().unwrap_or(1);
            self.block = Some([size(0), size(1), size(2)]);
        }
        self
    }

    /// Returns the value of a special register, if it is known and equal in all threads.
    pub fn special(&self, special: Special) -> Option<u64> {
        let size = |sizes: Option<[u32; 3]>, axis: usize| sizes.map(|sizes| u64::from(sizes[axis]));
        // If the size is one, the index is zero.
        let index = |sizes: Option<[u32; 3]>, axis: usize| size(sizes, axis).filter(|count| *count == 1).map(|_| 0);
        match special {
            Special::NtidX => size(self.block, 0),
            Special::NtidY => size(self.block, 1),
            Special::NtidZ => size(self.block, 2),
            Special::NctaidX => size(self.grid, 0),
            Special::NctaidY => size(self.grid, 1),
            Special::NctaidZ => size(self.grid, 2),
            Special::TidX => index(self.block, 0),
            Special::TidY => index(self.block, 1),
            Special::TidZ => index(self.block, 2),
            Special::CtaidX => index(self.grid, 0),
            Special::CtaidY => index(self.grid, 1),
            Special::CtaidZ => index(self.grid, 2),
            Special::TidW | Special::CtaidW => Some(0),
            Special::NtidW | Special::NctaidW => Some(1),
            _ => None,
        }
    }
}
