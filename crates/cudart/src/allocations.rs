//! Allocator of this crate's tests. It records the largest request of each thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct RecordingAllocator;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: RecordingAllocator = RecordingAllocator;

fn note(bytes: usize) {
    // The thread-local value is gone once the thread ends.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(bytes)));
}

// SAFETY: every call is forwarded to the system's allocator.
unsafe impl GlobalAlloc for RecordingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        note(bytes);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(at, layout, bytes) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Runs `body`. Returns its result and the size in bytes of the largest allocation it requested.
pub(crate) fn largest<T>(body: impl FnOnce() -> T) -> (T, usize) {
    LARGEST.set(0);
    let value = body();
    (value, LARGEST.get())
}
