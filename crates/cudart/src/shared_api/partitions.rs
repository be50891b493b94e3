//! Device resources and execution contexts. There is one execution context, the primary one, and it has all
//! multiprocessors.

use crate::boundary::{Call, exported};
use crate::contexts::{PRIMARY, check_or_current};
use crate::location::{DEVICE, check_device};
use crate::pointer::Out;
use crate::status::{Outcome, Status};
use crate::types::DeviceResource;

/// Resource kind of multiprocessors.
const MULTIPROCESSORS: u32 = 1;

/// Returns a resource of the device: the multiprocessors, which cannot be partitioned.
fn resource(call: &Call, place: Out<DeviceResource>, kind: u32) -> Outcome {
    place.wanted()?;
    if kind != MULTIPROCESSORS {
        return Err(Status::INVALID_RESOURCE_TYPE);
    }
    let count = call.runtime.device()?.machine().multiprocessors;
    place.set(DeviceResource::multiprocessors(count, count, 1))
}

/// Checks that a context is the only execution context.
fn whole(context: usize) -> Outcome {
    if context == PRIMARY { Ok(()) } else { Err(Status::INVALID_VALUE) }
}

exported! { runtime
    fn cudaDeviceGetDevResource | cuDeviceGetDevResource(call, device: i32, place: Out<DeviceResource>, kind: u32)
        => check_device(device)?, resource(call, place, kind);
    /// Returns a resource of a stream, which has the whole device.
    fn cudaStreamGetDevResource / cudaStreamGetDevResource_ptsz | cuStreamGetDevResource / cuStreamGetDevResource_ptsz(call, stream: usize, place: Out<DeviceResource>, kind: u32)
        => call.stream(stream)?, resource(call, place, kind);
    fn cudaExecutionCtxGetDevResource(call, context: usize, place: Out<DeviceResource>, kind: u32)
        => whole(context)?, resource(call, place, kind);

    fn cudaDeviceGetExecutionCtx(call, context: Out<usize>, device: i32) {
        context.wanted()?;
        check_device(device)?;
        call.runtime.device()?;
        context.set(PRIMARY)
    }

    fn cudaExecutionCtxGetDevice(_call, device: Out<i32>, context: usize) => whole(context)?, device.set(DEVICE);
    fn cudaExecutionCtxGetId(_call, context: usize, id: Out<u64>) => whole(context)?, id.set(context as u64);
    fn cudaExecutionCtxStreamCreate(call, stream: Out<usize>, context: usize, flags: u32, priority: i32)
        => stream.wanted()?, whole(context)?, stream.set(call.runtime.create_stream(flags, priority)?);
    fn cudaExecutionCtxSynchronize(call, context: usize) => whole(context)?, call.runtime.wait_for_all();
    fn cudaExecutionCtxRecordEvent(call, context: usize, event: usize) => whole(context)?, call.runtime.record_for_all(event);
    fn cudaExecutionCtxWaitEvent(call, context: usize, event: usize) => whole(context)?, call.runtime.wait_in_all(event);
}

exported! { driver
    /// Returns a resource of a context, which has the whole device.
    fn cuCtxGetDevResource(call, context: usize, place: Out<DeviceResource>, kind: u32)
        => check_or_current(context)?, resource(call, place, kind);
    fn cuCtxRecordEvent(call, context: usize, event: usize) => check_or_current(context)?, call.runtime.record_for_all(event);
    fn cuCtxWaitEvent(call, context: usize, event: usize) => check_or_current(context)?, call.runtime.wait_in_all(event);

    /// Reports that contexts cannot be limited to some multiprocessors.
    fn cuDeviceGetExecAffinitySupport(_call, support: Out<i32>, kind: u32, device: i32) {
        support.wanted()?;
        check_device(device)?;
        if kind == 0 { support.set(0) } else { Err(Status::INVALID_VALUE) }
    }

    /// Returns the green context of a stream: none.
    fn cuStreamGetGreenCtx(call, stream: usize, part: Out<usize>) => call.stream(stream)?, part.set(0);
}
