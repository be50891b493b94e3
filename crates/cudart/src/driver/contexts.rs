//! Contexts. All contexts are handles of one device with one memory.

use crate::boundary::{Call, exported, has_runtime_context, is_runtime_used};
use crate::device::{DEVICE, check_device};
use crate::pointer::Out;
pub(crate) use crate::runtime::devices::{
    cuCtxGetFlags, cuCtxGetLimit, cuCtxGetSharedMemConfig, cuCtxSetCacheConfig, cuCtxSetLimit, cuCtxSetSharedMemConfig,
    cuCtxSynchronize,
};
use crate::status::{Outcome, Status};
use crate::streams::PRIORITIES;
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

pub(crate) fn check(context: usize) -> Outcome {
    let known = (PRIMARY..=NEWEST.load(Ordering::Relaxed)).contains(&context);
    if known { Ok(()) } else { Err(Status::INVALID_CONTEXT) }
}

fn create(call: &Call, context: Out<usize>, device: i32) -> Outcome {
    context.wanted()?;
    call.runtime.device()?;
    check_device(device)?;
    let made = NEWEST.fetch_add(16, Ordering::Relaxed) + 16;
    STACK.with_borrow_mut(|stack| stack.push(made));
    context.set(made)
}

fn destroy(context: usize) -> Outcome {
    check(context)?;
    STACK.with_borrow_mut(|stack| stack.retain(|held| *held != context));
    Ok(())
}

fn push(context: usize) -> Outcome {
    check(context)?;
    STACK.with_borrow_mut(|stack| stack.push(context));
    Ok(())
}

fn pop(context: Out<usize>) -> Outcome {
    let popped = STACK.with_borrow_mut(|stack| stack.pop()).ok_or(Status::INVALID_CONTEXT)?;
    context.set_if_wanted(popped);
    Ok(())
}

fn release(device: i32) -> Outcome {
    check_device(device)?;
    let lower = |held: u32| held.checked_sub(1);
    HELD.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lower).map(drop).map_err(|_| Status::INVALID_CONTEXT)
}

exported! { driver
    /// Creates a context and makes it current.
    fn cuCtxCreate = cuCtxCreate_v2(call, context: Out<usize>, _flags: u32, device: i32) {
        create(call, context, device)
    }

    /// Creates a context and makes it current. The affinities have no effect.
    fn cuCtxCreate_v3(call, context: Out<usize>, _affinities: usize, _count: i32, _flags: u32, device: i32) {
        create(call, context, device)
    }

    /// Creates a context and makes it current. The parameters have no effect.
    fn cuCtxCreate_v4(call, context: Out<usize>, _parameters: usize, _flags: u32, device: i32) {
        create(call, context, device)
    }

    /// Destroys a context.
    fn cuCtxDestroy = cuCtxDestroy_v2(_call, context: usize) {
        destroy(context)
    }

    /// Pushes a context onto the stack.
    fn cuCtxPushCurrent = cuCtxPushCurrent_v2(_call, context: usize) {
        push(context)
    }

    /// Pops the current context from the stack.
    fn cuCtxPopCurrent = cuCtxPopCurrent_v2(_call, context: Out<usize>) {
        pop(context)
    }

    /// Replaces the current context.
    fn cuCtxSetCurrent(_call, context: usize) {
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

    /// Returns the current context.
    fn cuCtxGetCurrent(_call, context: Out<usize>) {
        context.set(current())
    }

    /// Returns the device of the current context.
    fn cuCtxGetDevice(_call, device: Out<i32>) {
        if current() == 0 { Err(Status::INVALID_CONTEXT) } else { device.set(DEVICE) }
    }

    /// Returns the unique number of a context.
    fn cuCtxGetId(_call, context: usize, id: Out<u64>) {
        id.set(if context == 0 { current() } else { context } as u64)
    }

    /// Returns the version of the interface.
    fn cuCtxGetApiVersion(_call, _context: usize, version: Out<u32>) {
        version.set(3020)
    }

    /// Returns the cache configuration.
    fn cuCtxGetCacheConfig(_call, config: Out<u32>) {
        config.set(0)
    }

    /// Returns the lowest and highest priority of streams.
    fn cuCtxGetStreamPriorityRange(_call, least: Out<i32>, greatest: Out<i32>) {
        least.set_if_wanted(PRIORITIES[0]);
        greatest.set_if_wanted(PRIORITIES[1]);
        Ok(())
    }

    /// Retains the primary context.
    fn cuDevicePrimaryCtxRetain(call, context: Out<usize>, device: i32) {
        call.runtime.device()?;
        check_device(device)?;
        context.wanted()?;
        HELD.fetch_add(1, Ordering::Relaxed);
        context.set(PRIMARY)
    }

    /// Releases the primary context.
    fn cuDevicePrimaryCtxRelease = cuDevicePrimaryCtxRelease_v2(_call, device: i32) {
        release(device)
    }

    /// Destroys all objects of the program.
    fn cuDevicePrimaryCtxReset = cuDevicePrimaryCtxReset_v2(call, device: i32) {
        check_device(device)?;
        call.runtime.reset()
    }

    /// Returns whether the primary context is active.
    fn cuDevicePrimaryCtxGetState(_call, device: i32, flags: Out<u32>, active: Out<i32>) {
        check_device(device)?;
        flags.set(8)?;
        active.set(i32::from(HELD.load(Ordering::Relaxed) > 0 || is_runtime_used()))
    }

    /// Accepts flags on how the host waits. They have no effect.
    fn cuDevicePrimaryCtxSetFlags = cuDevicePrimaryCtxSetFlags_v2(_call, device: i32, _flags: u32) {
        check_device(device)
    }

    /// Returns the device of a context.
    fn cuCtxGetDevice_v2(_call, device: Out<i32>, context: usize) {
        check(if context == 0 { current() } else { context })?;
        device.set(DEVICE)
    }

    /// Waits for all work.
    fn cuCtxSynchronize_v2(call, context: usize) {
        check(if context == 0 { current() } else { context })?;
        call.runtime.wait_for_all()
    }

    /// Accepts flags on how the host waits. They have no effect.
    fn cuCtxSetFlags(_call, flags: u32) {
        if current() == 0 {
            return Err(Status::INVALID_CONTEXT);
        }
        if flags & !0xff == 0 { Ok(()) } else { Err(Status::INVALID_VALUE) }
    }

    /// Does nothing: the device has no persisting L2 cache.
    fn cuCtxResetPersistingL2Cache(_call) {
        if current() == 0 { Err(Status::INVALID_CONTEXT) } else { Ok(()) }
    }

    /// Adds a reference to the current context.
    fn cuCtxAttach(_call, context: Out<usize>, flags: u32) {
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        if current() == 0 { Err(Status::INVALID_CONTEXT) } else { context.set(current()) }
    }

    /// Removes a reference to a context.
    fn cuCtxDetach(_call, context: usize) {
        check(context)
    }

    /// Fails: there is no second device.
    fn cuCtxEnablePeerAccess(_call, peer: usize, flags: u32) {
        check(peer)?;
        if flags != 0 { Err(Status::INVALID_VALUE) } else { Err(Status::INVALID_DEVICE) }
    }

    /// Fails: peer access is never enabled.
    fn cuCtxDisablePeerAccess(_call, peer: usize) {
        check(peer)?;
        Err(Status::PEER_ACCESS_NOT_ENABLED)
    }
}
