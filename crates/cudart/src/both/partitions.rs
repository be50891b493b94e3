//! The device as a whole, in the words that are made for its parts: one execution context, which is the primary one, and all multiprocessors in one piece.

use crate::boundary::{Call, exported};
use crate::device::{DEVICE, check_device};
use crate::driver::contexts::{PRIMARY, check, current};
use crate::pointer::Out;
use crate::status::{Outcome, Status};
use crate::types::DeviceResource;

/// Multiprocessors as a resource.
const MULTIPROCESSORS: u32 = 1;

/// What the device has of a kind of resource: multiprocessors, which cannot be shared out.
fn resource(call: &Call, place: Out<DeviceResource>, kind: u32) -> Outcome {
    place.wanted()?;
    if kind != MULTIPROCESSORS {
        return Err(Status::INVALID_RESOURCE_TYPE);
    }
    let count = call.runtime.device()?.machine().multiprocessors;
    place.set(DeviceResource::multiprocessors(count, count, 1))
}

/// The one execution context that there is.
fn whole(context: usize) -> Outcome {
    if context == PRIMARY { Ok(()) } else { Err(Status::INVALID_VALUE) }
}

exported! { runtime
    /// Resources of the device.
    fn cudaDeviceGetDevResource | cuDeviceGetDevResource(call, device: i32, place: Out<DeviceResource>, kind: u32) {
        check_device(device)?;
        resource(call, place, kind)
    }

    /// Resources of a stream, which has all of the device.
    fn cudaStreamGetDevResource / cudaStreamGetDevResource_ptsz | cuStreamGetDevResource / cuStreamGetDevResource_ptsz(call, stream: usize, place: Out<DeviceResource>, kind: u32) {
        call.stream(stream)?;
        resource(call, place, kind)
    }

    /// Resources of an execution context.
    fn cudaExecutionCtxGetDevResource(call, context: usize, place: Out<DeviceResource>, kind: u32) {
        whole(context)?;
        resource(call, place, kind)
    }

    /// The execution context of the device.
    fn cudaDeviceGetExecutionCtx(call, context: Out<usize>, device: i32) {
        context.wanted()?;
        check_device(device)?;
        call.runtime.device()?;
        context.set(PRIMARY)
    }

    /// The device of an execution context.
    fn cudaExecutionCtxGetDevice(_call, device: Out<i32>, context: usize) {
        whole(context)?;
        device.set(DEVICE)
    }

    /// A number that no other context has.
    fn cudaExecutionCtxGetId(_call, context: usize, id: Out<u64>) {
        whole(context)?;
        id.set(context as u64)
    }

    /// A stream of an execution context.
    fn cudaExecutionCtxStreamCreate(call, stream: Out<usize>, context: usize, flags: u32, priority: i32) {
        stream.wanted()?;
        whole(context)?;
        stream.set(call.runtime.create_stream(flags, priority)?)
    }

    /// Waits for all work of an execution context.
    fn cudaExecutionCtxSynchronize(call, context: usize) {
        whole(context)?;
        call.runtime.wait_for_all()
    }

    /// Puts an event behind all work of an execution context.
    fn cudaExecutionCtxRecordEvent(call, context: usize, event: usize) {
        whole(context)?;
        call.runtime.record_for_all(event)
    }

    /// Lets all later work of an execution context wait for an event.
    fn cudaExecutionCtxWaitEvent(call, context: usize, event: usize) {
        whole(context)?;
        call.runtime.wait_in_all(event)
    }
}

exported! { driver
    /// Resources of a context, which has all of the device.
    fn cuCtxGetDevResource(call, context: usize, place: Out<DeviceResource>, kind: u32) {
        check(if context == 0 { current() } else { context })?;
        resource(call, place, kind)
    }

    /// Puts an event behind all work of a context.
    fn cuCtxRecordEvent(call, context: usize, event: usize) {
        check(if context == 0 { current() } else { context })?;
        call.runtime.record_for_all(event)
    }

    /// Lets all later work of a context wait for an event.
    fn cuCtxWaitEvent(call, context: usize, event: usize) {
        check(if context == 0 { current() } else { context })?;
        call.runtime.wait_in_all(event)
    }

    /// Whether contexts may have some multiprocessors only: no.
    fn cuDeviceGetExecAffinitySupport(_call, support: Out<i32>, kind: u32, device: i32) {
        support.wanted()?;
        check_device(device)?;
        if kind == 0 { support.set(0) } else { Err(Status::INVALID_VALUE) }
    }

    /// The part of the device that a stream is of: none, it is of the whole.
    fn cuStreamGetGreenCtx(call, stream: usize, part: Out<usize>) {
        call.stream(stream)?;
        part.set(0)
    }
}
