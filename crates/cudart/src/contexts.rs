//! Contexts: handles, and the stack of each thread. All contexts are handles of one device with one memory.

use crate::boundary::{has_runtime_context, is_runtime_used};
use crate::status::{Outcome, Status};
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Handle of the primary context.
pub(crate) const PRIMARY: usize = 0x0b10_0b00_0000_0010;
/// Handle of the newest context.
static NEWEST: AtomicUsize = AtomicUsize::new(PRIMARY);
/// Number of references to the primary context.
static HELD: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Context stack. It is never dropped, because a program may make calls while its thread ends.
    static STACK: RefCell<ManuallyDrop<Vec<usize>>> = const { RefCell::new(ManuallyDrop::new(vec![])) };
}

/// Returns the current context of the calling thread: the one on its stack, the primary one if it has used
/// the runtime, or 0.
pub(crate) fn current() -> usize {
    let without = if has_runtime_context() { PRIMARY } else { 0 };
    STACK.with_borrow(|stack| stack.last().copied().unwrap_or(without))
}

/// Checks that a context exists.
pub(crate) fn check(context: usize) -> Outcome {
    let known = (PRIMARY..=NEWEST.load(Ordering::Relaxed)).contains(&context);
    if known { Ok(()) } else { Err(Status::INVALID_CONTEXT) }
}

/// Checks that a context exists. The number 0 is the current one.
pub(crate) fn check_or_current(context: usize) -> Outcome {
    check(if context == 0 { current() } else { context })
}

/// Creates a context and makes it current.
pub(crate) fn create() -> usize {
    let context = NEWEST.fetch_add(16, Ordering::Relaxed) + 16;
    STACK.with_borrow_mut(|stack| stack.push(context));
    context
}

/// Destroys a context.
pub(crate) fn destroy(context: usize) -> Outcome {
    check(context)?;
    STACK.with_borrow_mut(|stack| stack.retain(|held| *held != context));
    Ok(())
}

/// Pushes a context onto the stack.
pub(crate) fn push(context: usize) -> Outcome {
    check(context)?;
    STACK.with_borrow_mut(|stack| stack.push(context));
    Ok(())
}

/// Pops the current context from the stack.
pub(crate) fn pop() -> Outcome<usize> {
    STACK.with_borrow_mut(|stack| stack.pop()).ok_or(Status::INVALID_CONTEXT)
}

/// Replaces the current context. The number 0 stands for no context.
pub(crate) fn replace(context: usize) -> Outcome {
    if context != 0 {
        check(context)?;
    }
    STACK.with_borrow_mut(|stack| {
        stack.pop();
        if context != 0 {
            stack.push(context);
        }
    });
    Ok(())
}

/// Adds a reference to the primary context.
pub(crate) fn retain_primary() {
    HELD.fetch_add(1, Ordering::Relaxed);
}

/// Removes a reference to the primary context.
pub(crate) fn release_primary() -> Outcome {
    let lower = |held: u32| held.checked_sub(1);
    HELD.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lower).map(drop).map_err(|_| Status::INVALID_CONTEXT)
}

/// Tests if the primary context is active.
pub(crate) fn is_primary_active() -> bool {
    HELD.load(Ordering::Relaxed) > 0 || is_runtime_used()
}
