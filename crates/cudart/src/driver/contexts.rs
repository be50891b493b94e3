//! Contexts. All of them are one device with one memory; a program may hold several names of it.

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

/// The context that a device has from the start.
pub(crate) const PRIMARY: usize = 0x0b10_0b00_0000_0010;
/// The newest context.
static NEWEST: AtomicUsize = AtomicUsize::new(PRIMARY);
/// How often the primary context is held.
static HELD: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Not dropped: a program may call while its thread ends.
    static STACK: RefCell<ManuallyDrop<Vec<usize>>> = const { RefCell::new(ManuallyDrop::new(vec![])) };
}

/// The context of the calling thread: the one that it made current, the primary one when it has used the runtime, or none.
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
    /// A context, current from now on.
    fn cuCtxCreate = cuCtxCreate_v2(call, context: Out<usize>, _flags: u32, device: i32) {
        create(call, context, device)
    }

    /// The same, with affinities that make no difference here.
    fn cuCtxCreate_v3(call, context: Out<usize>, _affinities: usize, _count: i32, _flags: u32, device: i32) {
        create(call, context, device)
    }

    /// The same, with parameters that make no difference here.
    fn cuCtxCreate_v4(call, context: Out<usize>, _parameters: usize, _flags: u32, device: i32) {
        create(call, context, device)
    }

    /// Gives a context back.
    fn cuCtxDestroy = cuCtxDestroy_v2(_call, context: usize) {
        destroy(context)
    }

    /// Makes a context current and keeps the one before.
    fn cuCtxPushCurrent = cuCtxPushCurrent_v2(_call, context: usize) {
        push(context)
    }

    /// The context before is current again.
    fn cuCtxPopCurrent = cuCtxPopCurrent_v2(_call, context: Out<usize>) {
        pop(context)
    }

    /// Makes a context current.
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

    /// The current context.
    fn cuCtxGetCurrent(_call, context: Out<usize>) {
        context.set(current())
    }

    /// The device of the current context.
    fn cuCtxGetDevice(_call, device: Out<i32>) {
        if current() == 0 { Err(Status::INVALID_CONTEXT) } else { device.set(DEVICE) }
    }

    /// A number that no other context has.
    fn cuCtxGetId(_call, context: usize, id: Out<u64>) {
        id.set(if context == 0 { current() } else { context } as u64)
    }

    /// The version of the interface.
    fn cuCtxGetApiVersion(_call, _context: usize, version: Out<u32>) {
        version.set(3020)
    }

    /// The same.
    fn cuCtxGetCacheConfig(_call, config: Out<u32>) {
        config.set(0)
    }

    /// The least and the greatest priority of streams.
    fn cuCtxGetStreamPriorityRange(_call, least: Out<i32>, greatest: Out<i32>) {
        least.set_if_wanted(PRIORITIES[0]);
        greatest.set_if_wanted(PRIORITIES[1]);
        Ok(())
    }

    /// Holds the primary context.
    fn cuDevicePrimaryCtxRetain(call, context: Out<usize>, device: i32) {
        call.runtime.device()?;
        check_device(device)?;
        context.wanted()?;
        HELD.fetch_add(1, Ordering::Relaxed);
        context.set(PRIMARY)
    }

    /// Lets go of it.
    fn cuDevicePrimaryCtxRelease = cuDevicePrimaryCtxRelease_v2(_call, device: i32) {
        release(device)
    }

    /// Takes back everything that the program was given.
    fn cuDevicePrimaryCtxReset = cuDevicePrimaryCtxReset_v2(call, device: i32) {
        check_device(device)?;
        call.runtime.reset()
    }

    /// Whether the primary context is held.
    fn cuDevicePrimaryCtxGetState(_call, device: i32, flags: Out<u32>, active: Out<i32>) {
        check_device(device)?;
        flags.set(8)?;
        active.set(i32::from(HELD.load(Ordering::Relaxed) > 0 || is_runtime_used()))
    }

    /// How the host waits, which makes no difference here.
    fn cuDevicePrimaryCtxSetFlags = cuDevicePrimaryCtxSetFlags_v2(_call, device: i32, _flags: u32) {
        check_device(device)
    }

    /// The device of a context.
    fn cuCtxGetDevice_v2(_call, device: Out<i32>, context: usize) {
        check(if context == 0 { current() } else { context })?;
        device.set(DEVICE)
    }

    /// Waits for everything.
    fn cuCtxSynchronize_v2(call, context: usize) {
        check(if context == 0 { current() } else { context })?;
        call.runtime.wait_for_all()
    }

    /// How the host waits, which makes no difference here.
    fn cuCtxSetFlags(_call, flags: u32) {
        if current() == 0 {
            return Err(Status::INVALID_CONTEXT);
        }
        if flags & !0xff == 0 { Ok(()) } else { Err(Status::INVALID_VALUE) }
    }

    /// Empties a cache that the device does not have.
    fn cuCtxResetPersistingL2Cache(_call) {
        if current() == 0 { Err(Status::INVALID_CONTEXT) } else { Ok(()) }
    }

    /// One holder more of the current context.
    fn cuCtxAttach(_call, context: Out<usize>, flags: u32) {
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        if current() == 0 { Err(Status::INVALID_CONTEXT) } else { context.set(current()) }
    }

    /// One holder fewer.
    fn cuCtxDetach(_call, context: usize) {
        check(context)
    }

    /// A context has access to itself, and another device there is not.
    fn cuCtxEnablePeerAccess(_call, peer: usize, flags: u32) {
        check(peer)?;
        if flags != 0 { Err(Status::INVALID_VALUE) } else { Err(Status::INVALID_DEVICE) }
    }

    /// No access was given.
    fn cuCtxDisablePeerAccess(_call, peer: usize) {
        check(peer)?;
        Err(Status::PEER_ACCESS_NOT_ENABLED)
    }
}
