//! Contexts. All contexts are handles of one device with one memory.

use crate::boundary::{Call, exported};
use crate::contexts::{
    PRIMARY, check, check_or_current, create, current, destroy, is_primary_active, pop, push, release_primary, replace,
    retain_primary,
};
use crate::location::{DEVICE, check_device};
use crate::objects::streams::PRIORITIES;
use crate::pointer::Out;
use crate::status::{Outcome, Status};

pub(crate) use crate::shared_api::devices::*;

fn create_on(call: &Call, context: Out<usize>, device: i32) -> Outcome {
    context.wanted()?;
    call.runtime.device()?;
    check_device(device)?;
    context.set(create())
}

exported! { driver
    fn cuCtxCreate = cuCtxCreate_v2(call, context: Out<usize>, _flags: u32, device: i32) => create_on(call, context, device);
    /// Creates a context and makes it current. The affinities have no effect.
    fn cuCtxCreate_v3(call, context: Out<usize>, _affinities: usize, _count: i32, _flags: u32, device: i32)
        => create_on(call, context, device);
    /// Creates a context and makes it current. The parameters have no effect.
    fn cuCtxCreate_v4(call, context: Out<usize>, _parameters: usize, _flags: u32, device: i32) => create_on(call, context, device);
    fn cuCtxDestroy = cuCtxDestroy_v2(_call, context: usize) => destroy(context);
    fn cuCtxPushCurrent = cuCtxPushCurrent_v2(_call, context: usize) => push(context);

    fn cuCtxPopCurrent = cuCtxPopCurrent_v2(_call, context: Out<usize>) {
        context.set_if_wanted(pop()?);
        Ok(())
    }

    fn cuCtxSetCurrent(_call, context: usize) => replace(context);
    fn cuCtxGetCurrent(_call, context: Out<usize>) => context.set(current());
    fn cuCtxGetDevice(_call, device: Out<i32>) => if current() == 0 { Err(Status::INVALID_CONTEXT) } else { device.set(DEVICE) };
    fn cuCtxGetId(_call, context: usize, id: Out<u64>) => id.set(if context == 0 { current() } else { context } as u64);
    fn cuCtxGetApiVersion(_call, _context: usize, version: Out<u32>) => version.set(3020);
    fn cuCtxGetCacheConfig(_call, config: Out<u32>) => config.set(0);

    fn cuCtxGetStreamPriorityRange(_call, least: Out<i32>, greatest: Out<i32>) {
        least.set_if_wanted(PRIORITIES[0]);
        greatest.set_if_wanted(PRIORITIES[1]);
        Ok(())
    }

    fn cuDevicePrimaryCtxRetain(call, context: Out<usize>, device: i32) {
        call.runtime.device()?;
        check_device(device)?;
        context.wanted()?;
        retain_primary();
        context.set(PRIMARY)
    }

    fn cuDevicePrimaryCtxRelease = cuDevicePrimaryCtxRelease_v2(_call, device: i32) => check_device(device)?, release_primary();
    /// Destroys all objects of the program.
    fn cuDevicePrimaryCtxReset = cuDevicePrimaryCtxReset_v2(call, device: i32) => check_device(device)?, call.runtime.reset();
    fn cuDevicePrimaryCtxGetState(_call, device: i32, flags: Out<u32>, active: Out<i32>)
        => check_device(device)?, flags.set(8)?, active.set(i32::from(is_primary_active()));
    /// Accepts flags on how the host waits. They have no effect.
    fn cuDevicePrimaryCtxSetFlags = cuDevicePrimaryCtxSetFlags_v2(_call, device: i32, _flags: u32) => check_device(device);
    fn cuCtxGetDevice_v2(_call, device: Out<i32>, context: usize) => check_or_current(context)?, device.set(DEVICE);
    fn cuCtxSynchronize_v2(call, context: usize) => check_or_current(context)?, call.runtime.wait_for_all();

    /// Accepts flags on how the host waits. They have no effect.
    fn cuCtxSetFlags(_call, flags: u32) {
        if current() == 0 {
            return Err(Status::INVALID_CONTEXT);
        }
        if flags & !0xff == 0 { Ok(()) } else { Err(Status::INVALID_VALUE) }
    }

    /// Does nothing: the device has no persisting L2 cache.
    fn cuCtxResetPersistingL2Cache(_call) => if current() == 0 { Err(Status::INVALID_CONTEXT) } else { Ok(()) };

    fn cuCtxAttach(_call, context: Out<usize>, flags: u32) {
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        if current() == 0 { Err(Status::INVALID_CONTEXT) } else { context.set(current()) }
    }

    fn cuCtxDetach(_call, context: usize) => check(context);

    /// Fails: there is no second device.
    fn cuCtxEnablePeerAccess(_call, peer: usize, flags: u32) {
        check(peer)?;
        if flags != 0 { Err(Status::INVALID_VALUE) } else { Err(Status::INVALID_DEVICE) }
    }

    /// Fails: peer access is never enabled.
    fn cuCtxDisablePeerAccess(_call, peer: usize) => check(peer)?, Err(Status::PEER_ACCESS_NOT_ENABLED);
}
