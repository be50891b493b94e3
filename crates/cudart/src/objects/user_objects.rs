//! User objects: resources of a program that live as long as the graphs that use them.

use crate::status::{Outcome, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// User object: data and its destructor.
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

    /// Adds references.
    pub(crate) fn retain(&self, count: u32) -> Outcome {
        if count == 0 || count > i32::MAX as u32 {
            return Err(Status::INVALID_VALUE);
        }
        self.references.fetch_add(u64::from(count), Ordering::SeqCst);
        Ok(())
    }

    /// Removes references. Returns true if the object was destroyed.
    pub(crate) fn release(&self, count: u32) -> Outcome<bool> {
        let lower = |references: u64| references.checked_sub(u64::from(count)).filter(|_| count > 0);
        let before =
            self.references.fetch_update(Ordering::SeqCst, Ordering::SeqCst, lower).map_err(|_| Status::INVALID_VALUE)?;
        if before != u64::from(count) {
            return Ok(false);
        }
        // SAFETY: the program passed a function of this type (`cudaHostFn_t`). It is not 0 and is called
        // once.
        let destroy: extern "C" fn(usize) = unsafe { std::mem::transmute(self.destroy) };
        destroy(self.data);
        Ok(true)
    }
}

/// References held by a graph.
#[derive(Debug)]
pub(crate) struct RetainedReferences {
    pub(crate) object: Arc<UserObject>,
    pub(crate) count: u32,
}

impl RetainedReferences {
    /// Adds one reference, for an object derived from the graph.
    pub(crate) fn again(&self) -> Option<RetainedReferences> {
        self.object.retain(1).ok()?;
        Some(RetainedReferences { object: self.object.clone(), count: 1 })
    }
}

impl Drop for RetainedReferences {
    fn drop(&mut self) {
        // The graph's own references cannot have been released by anyone else.
        let _ = self.object.release(self.count);
    }
}
