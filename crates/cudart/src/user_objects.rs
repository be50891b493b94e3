//! User objects: what a program wants to live as long as graphs that use it.

use crate::status::{Outcome, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Something of the program's, and how to be rid of it.
#[derive(Debug)]
pub(crate) struct UserObject {
    data: usize,
    destroy: usize,
    references: AtomicU64,
}

impl UserObject {
    pub(crate) fn new(data: usize, destroy: usize, references: u32) -> Outcome<UserObject> {
        if destroy == 0 || references == 0 || references > i32::MAX as u32 {
            return Err(Status::INVALID_VALUE);
        }
        Ok(UserObject { data, destroy, references: AtomicU64::new(u64::from(references)) })
    }

    /// More references to it.
    pub(crate) fn retain(&self, count: u32) -> Outcome {
        if count == 0 || count > i32::MAX as u32 {
            return Err(Status::INVALID_VALUE);
        }
        self.references.fetch_add(u64::from(count), Ordering::SeqCst);
        Ok(())
    }

    /// Fewer references to it; whether it is gone now.
    pub(crate) fn release(&self, count: u32) -> Outcome<bool> {
        let lower = |references: u64| references.checked_sub(u64::from(count)).filter(|_| count > 0);
        let before =
            self.references.fetch_update(Ordering::SeqCst, Ordering::SeqCst, lower).map_err(|_| Status::INVALID_VALUE)?;
        if before != u64::from(count) {
            return Ok(false);
        }
        // SAFETY: the program gave a function of this type (`cudaHostFn_t`), which is not 0 and is called once.
        let destroy: extern "C" fn(usize) = unsafe { std::mem::transmute(self.destroy) };
        destroy(self.data);
        Ok(true)
    }
}

/// References that a graph has.
#[derive(Debug)]
pub(crate) struct Retained {
    pub(crate) object: Arc<UserObject>,
    pub(crate) count: u32,
}

impl Retained {
    /// One reference more, for what was made from the graph.
    pub(crate) fn again(&self) -> Option<Retained> {
        self.object.retain(1).ok()?;
        Some(Retained { object: self.object.clone(), count: 1 })
    }
}

impl Drop for Retained {
    fn drop(&mut self) {
        // Nobody else may give back what the graph holds.
        let _ = self.object.release(self.count);
    }
}
