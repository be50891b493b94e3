//! Handles: what a program holds in place of streams, events, graphs and the like.
//!
//! A handle is a number that no pointer can be (its upper bits are no address of this machine), so one that a program made up or kept too
//! long is found out by looking it up. **A number is never given twice.**

use crate::status::{Outcome, Status};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A handle as a program holds it.
pub(crate) type Handle = usize;

/// Marks handles: not the upper bits of an address.
const MARK: usize = 0x0b10 << 48;

/// What is behind handles of one kind.
#[derive(Debug)]
pub(crate) struct Handles<T> {
    kind: usize,
    next: AtomicUsize,
    live: Mutex<HashMap<Handle, Arc<T>>>,
}

impl<T> Handles<T> {
    /// No handles yet. Kinds are told apart by a number.
    pub(crate) fn new(kind: u8) -> Handles<T> {
        Handles { kind: usize::from(kind) << 40, next: AtomicUsize::new(1), live: Mutex::default() }
    }

    fn live(&self) -> MutexGuard<'_, HashMap<Handle, Arc<T>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that was not given before.
    pub(crate) fn reserve(&self) -> Handle {
        MARK | self.kind | (self.next.fetch_add(1, Ordering::Relaxed) << 4)
    }

    /// Puts something behind a reserved number.
    pub(crate) fn put(&self, handle: Handle, value: Arc<T>) {
        self.live().insert(handle, value);
    }

    /// A handle to something new.
    pub(crate) fn insert(&self, value: T) -> Handle {
        let handle = self.reserve();
        self.put(handle, Arc::new(value));
        handle
    }

    /// What is behind a handle.
    pub(crate) fn get(&self, handle: Handle) -> Outcome<Arc<T>> {
        self.find(handle).ok_or(Status::INVALID_HANDLE)
    }

    /// What is behind a number, if it is a handle of this kind.
    pub(crate) fn find(&self, handle: Handle) -> Option<Arc<T>> {
        self.live().get(&handle).cloned()
    }

    /// Takes a handle out of use.
    pub(crate) fn remove(&self, handle: Handle) -> Outcome<Arc<T>> {
        self.live().remove(&handle).ok_or(Status::INVALID_HANDLE)
    }

    /// Takes handles out of use by what is behind them.
    pub(crate) fn retain(&self, keep: impl Fn(&T) -> bool) {
        // What is dropped may look at handles itself.
        let gone: Vec<Arc<T>> = {
            let mut live = self.live();
            let handles: Vec<Handle> = live.iter().filter(|(_, value)| !keep(value)).map(|(handle, _)| *handle).collect();
            handles.iter().filter_map(|handle| live.remove(handle)).collect()
        };
        drop(gone);
    }

    /// The handle of something that is behind one.
    pub(crate) fn handle_of(&self, value: &Arc<T>) -> Option<Handle> {
        self.live().iter().find(|(_, held)| Arc::ptr_eq(held, value)).map(|(handle, _)| *handle)
    }

    /// All handles.
    pub(crate) fn handles(&self) -> Vec<Handle> {
        self.live().keys().copied().collect()
    }

    /// All that is behind handles.
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
