//! Streams and events.

use crate::code::{self, Code, Outcome};
use crate::device::{answer, has_flags};
use crate::state::{Object, call, current, device, enter, giving_back, judged, object, remove, show_printed, state, stream};
use broadloom_device::EventId;

pub(crate) unsafe fn create(place: *mut usize, flags: u32) -> Code {
    call("cuStreamCreate", || {
        let gpu = current()?;
        has_flags(flags, 1)?;
        let stream = judged(gpu, device(gpu)?.backend().create_stream())?;
        // SAFETY: the caller's output pointer.
        unsafe { answer(place, enter(gpu, Object::Stream { stream, given: 0, probe: None })) }
    })
}

pub(crate) fn destroy(handle: usize) -> Code {
    giving_back("cuStreamDestroy", || remove(handle, "stream"))
}

pub(crate) fn synchronise(handle: usize) -> Code {
    call("cuStreamSynchronize", || {
        let (gpu, stream) = stream(handle)?;
        let device = device(gpu)?;
        let outcome = judged(gpu, device.backend().synchronise_stream(stream));
        show_printed();
        outcome
    })
}

pub(crate) fn query(handle: usize) -> Code {
    call("cuStreamQuery", || {
        let (gpu, object) = object(handle, "stream")?;
        let Object::Stream { stream, given, probe } = object else { return Err(code::INVALID_HANDLE) };
        let device = device(gpu)?;
        let backend = device.backend();
        let event = match probe {
            Some((event, behind)) if behind == given => event,
            Some((event, _)) => {
                judged(gpu, backend.record_event(event, stream))?;
                event
            }
            None => {
                let event = judged(gpu, backend.create_event())?;
                judged(gpu, backend.record_event(event, stream))?;
                event
            }
        };
        if let Some(Object::Stream { probe, .. }) = state().gpus[gpu].objects.get_mut(&handle) {
            *probe = Some((event, given));
        }
        if !judged(gpu, backend.query_event(event))? {
            return Err(code::NOT_READY);
        }
        let outcome = judged(gpu, backend.synchronise_stream(stream));
        show_printed();
        outcome
    })
}

pub(crate) fn wait(handle: usize, event: usize, flags: u32) -> Code {
    call("cuStreamWaitEvent", || {
        has_flags(flags, 0)?;
        let (_, id, recorded) = found(event)?;
        let (gpu, stream) = stream(handle)?;
        if recorded { judged(gpu, device(gpu)?.backend().wait_event(stream, id)) } else { Ok(()) }
    })
}

fn found(handle: usize) -> Outcome<(usize, EventId, bool)> {
    match object(handle, "event")? {
        (gpu, Object::Event { event, recorded }) => Ok((gpu, event, recorded)),
        _ => Err(code::INVALID_HANDLE),
    }
}

pub(crate) unsafe fn create_event(place: *mut usize, flags: u32) -> Code {
    call("cuEventCreate", || {
        let gpu = current()?;
        has_flags(flags, 3)?;
        let event = judged(gpu, device(gpu)?.backend().create_event())?;
        // SAFETY: the caller's output pointer.
        unsafe { answer(place, enter(gpu, Object::Event { event, recorded: false })) }
    })
}

pub(crate) fn destroy_event(handle: usize) -> Code {
    giving_back("cuEventDestroy", || remove(handle, "event"))
}

pub(crate) fn record(handle: usize, at: usize) -> Code {
    call("cuEventRecord", || {
        let (_, event, _) = found(handle)?;
        let (gpu, stream) = stream(at)?;
        judged(gpu, device(gpu)?.backend().record_event(event, stream))?;
        if let Some(Object::Event { recorded, .. }) = state().gpus[gpu].objects.get_mut(&handle) {
            *recorded = true;
        }
        Ok(())
    })
}

pub(crate) fn query_event(handle: usize) -> Code {
    call("cuEventQuery", || {
        let (gpu, event, _) = found(handle)?;
        if judged(gpu, device(gpu)?.backend().query_event(event))? { Ok(()) } else { Err(code::NOT_READY) }
    })
}

pub(crate) fn synchronise_event(handle: usize) -> Code {
    call("cuEventSynchronize", || {
        let (gpu, event, _) = found(handle)?;
        let device = device(gpu)?;
        judged(gpu, device.backend().synchronise_event(event))
    })
}

pub(crate) unsafe fn elapsed(place: *mut f32, start: usize, end: usize) -> Code {
    call("cuEventElapsedTime", || {
        let ((gpu, start, _), (_, end, _)) = (found(start)?, found(end)?);
        let backend = device(gpu)?.backend().clone();
        if !judged(gpu, backend.query_event(start))? || !judged(gpu, backend.query_event(end))? {
            return Err(code::NOT_READY);
        }
        let time = judged(gpu, backend.elapsed(start, end))?;
        // SAFETY: the caller's output pointer.
        unsafe { answer(place, time.as_secs_f32() * 1e3) }
    })
}
