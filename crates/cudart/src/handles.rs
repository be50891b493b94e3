//! Handles of streams, events, graphs and other objects.
//!
//! A handle is a number whose upper bits form no valid address, so a lookup detects handles that a program
//! invented or kept too long. **A number is never reused.**

use crate::status::{Outcome, Status};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Handle as a program holds it.
pub(crate) type Handle = usize;

/// Upper bits of every handle. They are never those of an address.
const MARK: usize = 0x0b10 << 48;

/// Objects behind the handles of one kind.
#[derive(Debug)]
pub(crate) struct Handles<T> {
    kind: usize,
    next: AtomicUsize,
    live: Mutex<HashMap<Handle, Arc<T>>>,
}

impl<T> Handles<T> {
    /// Creates an empty table. The number distinguishes kinds of handles.
    pub(crate) fn new(kind: u8) -> Handles<T> {
        Handles { kind: usize::from(kind) << 40, next: AtomicUsize::new(1), live: Mutex::default() }
    }

    fn live(&self) -> MutexGuard<'_, HashMap<Handle, Arc<T>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves an unused handle.
    pub(crate) fn reserve(&self) -> Handle {
        MARK | self.kind | (self.next.fetch_add(1, Ordering::Relaxed) << 4)
    }

    /// Stores an object under a reserved handle.
    pub(crate) fn put(&self, handle: Handle, value: Arc<T>) {
        self.live().insert(handle, value);
    }

    /// Stores a new object and returns its handle.
    pub(crate) fn insert(&self, value: T) -> Handle {
        let handle = self.reserve();
        self.put(handle, Arc::new(value));
        handle
    }

    /// Returns the object behind a handle.
    pub(crate) fn get(&self, handle: Handle) -> Outcome<Arc<T>> {
        self.find(handle).ok_or(Status::INVALID_HANDLE)
    }

    /// Returns the object behind a number if it is a handle of this kind.
    pub(crate) fn find(&self, handle: Handle) -> Option<Arc<T>> {
        self.live().get(&handle).cloned()
    }

    /// Removes a handle.
    pub(crate) fn remove(&self, handle: Handle) -> Outcome<Arc<T>> {
        self.live().remove(&handle).ok_or(Status::INVALID_HANDLE)
    }

    /// Removes the handles whose objects `keep` rejects.
    pub(crate) fn retain(&self, keep: impl Fn(&T) -> bool) {
        // The destructor of an object may access handles itself, so the lock is released first.
        let gone: Vec<Arc<T>> = {
            let mut live = self.live();
            let handles: Vec<Handle> = live.iter().filter(|(_, value)| !keep(value)).map(|(handle, _)| *handle).collect();
            handles.iter().filter_map(|handle| live.remove(handle)).collect()
        };
        drop(gone);
    }

    /// Returns the handle of an object.
    pub(crate) fn handle_of(&self, value: &Arc<T>) -> Option<Handle> {
        self.live().iter().find(|(_, held)| Arc::ptr_eq(held, value)).map(|(handle, _)| *handle)
    }

    /// Returns all handles.
    pub(crate) fn handles(&self) -> Vec<Handle> {
        self.live().keys().copied().collect()
    }

    /// Returns all objects.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.live().values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_good_until_it_is_removed() {
        let handles = Handles::new(3);
        let (a, b) = (handles.insert('a'), handles.insert('b'));
        assert_ne!(a, b);
        assert_eq!(handles.get(a).map(|value| *value), Ok('a'));
        assert_eq!(handles.remove(a).map(|value| *value), Ok('a'));
        assert_eq!(handles.get(a), Err(Status::INVALID_HANDLE));
        assert_eq!(handles.remove(a), Err(Status::INVALID_HANDLE));
        assert_eq!(handles.get(0), Err(Status::INVALID_HANDLE));
        assert_ne!(handles.insert('c'), a);
        assert_eq!(handles.all().len(), 2);
    }
}
