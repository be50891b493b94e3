//! Work of a stream: launches, copies, fills, host functions, events.
//!
//! Each piece of work is a value. All API functions submit it to the executor in one way
//! ([`Runtime::submit`]), a capture records it instead, and a graph performs it repeatedly.
//!
//! Copies and fills follow "API synchronization behavior" of NVIDIA's runtime manual:
//!
//! | call | returns |
//! | --- | --- |
//! | `Memcpy`, host on one side or both | when it is done |
//! | `Memcpy`, device to device | at once |
//! | `MemcpyAsync`, host to host | when it is done |
//! | `MemcpyAsync`, pageable memory on one side | when it is done, as the manual allows |
//! | `MemcpyAsync`, otherwise | at once |
//! | `Memset` of pinned, registered or managed memory | when it is done |
//! | `Memset` of other memory, `MemsetAsync` | at once |

use crate::check::{self, because};
use crate::image::tell_refusal;
use crate::objects::boxes::{CopyBox, Direction, FillBox};
use crate::objects::memory::{Allocation, AllocationKind};
use crate::objects::streams::Stream;
use crate::objects::work::{HostFunction, Work};
use crate::pointer::{bytes_at, fill_values, move_bytes};
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use broadloom_device::Error;

impl CopyBox {
    /// Checks the copy against the known allocations.
    pub(crate) fn check(&self, runtime: &Runtime, direction: Direction) -> Outcome {
        if self.is_empty() {
            return Ok(());
        }
        if self.height > 1 && (self.to.pitch < self.width || self.from.pitch < self.width) {
            let pitch = self.to.pitch.min(self.from.pitch);
            because(|| format!("rows of {} bytes do not fit into a pitch of {pitch} bytes", self.width));
            return Err(Status::INVALID_PITCH_VALUE);
        }
        let memory = &runtime.memory;
        let sides = [("destination", &self.to, direction.ends_on_device()), ("source", &self.from, direction.starts_on_device())];
        for (name, side, on_device) in sides {
            let refused = |why: &dyn Fn() -> String| {
                because(|| format!("the {name}: {}", why()));
                Err(Status::INVALID_VALUE)
            };
            let Some(span) = side.span(self.width, self.height, self.depth) else {
                return refused(&|| "its last byte is behind the end of all addresses".to_owned());
            };
            if side.address == 0 {
                return refused(&|| memory.describe(0));
            }
            match memory.find(side.address) {
                None if on_device => {
                    return refused(&|| format!("{}, and the direction is {direction:?}", memory.describe(side.address)));
                }
                // On a device with its own address space, a device address is not mapped on the host.
                None if memory.freed(side.address).is_some_and(|(freed, _)| freed.kind == AllocationKind::Device)
                    && !runtime.device()?.unified =>
                {
                    return refused(&|| memory.describe(side.address));
                }
                None => {}
                Some(_) if memory.range(side.address, span).is_none() => {
                    return refused(&|| memory.describe_range(side.address, span));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Copies immediately. All preceding work is done.
    fn copy_now(self, runtime: &Runtime, stream: &Stream) -> Outcome {
        let opened = runtime.device()?;
        if opened.unified {
            for (to, from) in self.rows() {
                move_bytes(to as usize, from as usize, self.width);
            }
            return Ok(());
        }
        let (backend, id, width) = (opened.backend(), stream.id(), self.width as u64);
        let ours = |address| runtime.memory.find(address).is_some_and(|found| found.of_executor(opened.unified));
        for (to, from) in self.rows() {
            match (ours(to), ours(from)) {
                (true, true) => runtime.judge(backend.copy(id, to, from, width))?,
                (true, false) => runtime.judge(backend.write(id, to, &bytes_at(from as usize, self.width)?))?,
                (false, true) => {
                    let mut bytes = vec![0; self.width];
                    runtime.judge(backend.read(id, from, &mut bytes))?;
                    move_bytes(to as usize, bytes.as_ptr() as usize, self.width);
                }
                (false, false) => move_bytes(to as usize, from as usize, self.width),
            }
        }
        Ok(())
    }

    /// Copies in stream order. A copy with unregistered host memory is synchronous, because the program may
    /// reuse that memory once the call returns.
    fn copy_in_order(self, runtime: &Runtime, stream: &Stream) -> Outcome {
        let opened = runtime.device()?;
        let (to, from) = (runtime.memory.find(self.to.address), runtime.memory.find(self.from.address));
        let ours = |found: &Option<Allocation>| found.is_some_and(|found| found.of_executor(opened.unified));
        let linear = self.height == 1 && self.depth == 1;
        if linear && ours(&to) && ours(&from) {
            return runtime.judge(opened.backend().copy(stream.id(), self.to.address, self.from.address, self.width as u64));
        }
        if !opened.unified || to.is_none() || from.is_none() {
            runtime.wait(stream)?;
            return self.copy_now(runtime, stream);
        }
        self.copy_later(runtime, stream)
    }

    /// Copies in stream order for any memory: a program that replays a graph keeps its memory valid.
    fn copy_later(self, runtime: &Runtime, stream: &Stream) -> Outcome {
        let opened = runtime.device()?;
        if !opened.unified {
            return self.copy_now(runtime, stream);
        }
        let copy = move || {
            for (to, from) in self.rows() {
                move_bytes(to as usize, from as usize, self.width);
            }
        };
        runtime.judge(opened.backend().call(stream.id(), Box::new(copy)))
    }
}

impl FillBox {
    /// Checks that the whole box is memory that the device can access.
    pub(crate) fn check(&self, runtime: &Runtime) -> Outcome {
        if self.width == 0 || self.height == 0 || self.depth == 0 {
            return Ok(());
        }
        let row = self.width.checked_mul(self.size).ok_or(Status::INVALID_VALUE)?;
        if self.height > 1 && self.to.pitch < row || !self.to.address.is_multiple_of(self.size as u64) {
            because(|| {
                let (address, size, pitch) = (self.to.address, self.size, self.to.pitch);
                format!(
                    "{address:#x} is not a multiple of {size}, or rows of {row} bytes do not fit into a pitch of {pitch} bytes"
                )
            });
            return Err(Status::INVALID_VALUE);
        }
        let span = self.to.span(row, self.height, self.depth).ok_or(Status::INVALID_VALUE)?;
        runtime.memory.device_range(self.to.address, span)
    }

    fn perform(self, runtime: &Runtime, stream: &Stream) -> Outcome {
        let opened = runtime.device()?;
        let row = self.width * self.size;
        let bytes = self.value.to_le_bytes();
        let even = bytes[..self.size].iter().all(|byte| *byte == bytes[0]);
        let known = runtime.memory.find(self.to.address).is_some_and(|found| found.of_executor(opened.unified));
        let rows = move || (0..self.depth).flat_map(move |z| (0..self.height).map(move |y| self.to.row(y, z)));
        if even && known && (self.depth == 1 && self.height == 1 || !opened.unified) {
            for address in rows() {
                runtime.judge(opened.backend().fill(stream.id(), address, bytes[0], row as u64))?;
            }
            return Ok(());
        }
        if !opened.unified && known {
            let values: Vec<u8> = bytes[..self.size].iter().copied().cycle().take(row).collect();
            for address in rows() {
                runtime.judge(opened.backend().write(stream.id(), address, &values))?;
            }
            return Ok(());
        }
        let fill = move || {
            for address in rows() {
                fill_values(address as usize, self.value, self.size, self.width);
            }
        };
        runtime.judge(opened.backend().call(stream.id(), Box::new(fill)))
    }
}

impl HostFunction {
    fn call(self) {
        match self.stream {
            None => {
                // SAFETY: the program passed a function of this type (`cudaHostFn_t`). It is not 0.
                let function: extern "C" fn(usize) = unsafe { std::mem::transmute(self.function) };
                function(self.data);
            }
            Some(stream) => {
                // SAFETY: the program passed a function of this type (`cudaStreamCallback_t`). It is not 0.
                let function: extern "C" fn(usize, u32, usize) = unsafe { std::mem::transmute(self.function) };
                function(stream, 0, self.data);
            }
        }
    }
}

impl Work {
    /// Submits the work to the executor after the earlier work of a stream. `again` is true for work of a
    /// graph.
    pub(crate) fn perform(&self, runtime: &Runtime, stream: &Stream, again: bool) -> Outcome {
        let opened = runtime.device()?;
        let backend = opened.backend();
        match self {
            Work::Empty | Work::Allocated(_) | Work::Freed(_) => Ok(()),
            Work::Launch { kernel, launch, arguments } => {
                let resolved = kernel.resolved(runtime)?;
                let run = || resolved.kernel.launch(&launch.clone().on(stream.id()), arguments);
                let seen = || match &opened.mirror {
                    Some(mirror) => mirror.around(run),
                    None => Ok(run()),
                };
                let outcome = match check::active() {
                    Some(checking) => checking.launch(kernel.name(), &kernel.image().loaded(runtime)?.sources, seen)?,
                    None => seen()?,
                };
                if let Err(error @ (Error::Unsupported(_) | Error::BadLaunch { .. })) = &outcome {
                    tell_refusal(&kernel.image().loaded(runtime)?.sources, error);
                }
                runtime.judge(outcome)
            }
            Work::Copy(copy) if copy.is_empty() => Ok(()),
            Work::Copy(copy) if again && backend_knows(runtime, copy)? => copy.simplified().copy_in_order(runtime, stream),
            Work::Copy(copy) if again => copy.simplified().copy_later(runtime, stream),
            Work::Copy(copy) => copy.simplified().copy_in_order(runtime, stream),
            Work::Fill(fill) if fill.width == 0 || fill.height == 0 || fill.depth == 0 => Ok(()),
            Work::Fill(fill) => fill.perform(runtime, stream),
            Work::Host(function) => {
                let function = *function;
                runtime.judge(backend.call(stream.id(), Box::new(move || function.call())))
            }
            Work::Record(event) => {
                event.note_recorded();
                if let Some(shared) = &event.shared {
                    runtime.judge(backend.call(stream.id(), Box::new(shared.record())))?;
                }
                runtime.judge(backend.record_event(event.id(), stream.id()))
            }
            Work::Wait(event) => match &event.shared {
                Some(shared) => runtime.wait_in_stream(stream, shared.is_over()),
                None => runtime.judge(backend.wait_event(stream.id(), event.id())),
            },
            Work::Child(all) => all.iter().try_for_each(|work| work.perform(runtime, stream, true)),
            Work::Conditional(conditional) => conditional.frozen()?.perform(runtime, stream),
            Work::Decision(decision) => decision.perform(runtime, stream),
            Work::Words(operations) => crate::words::perform(runtime, stream, operations),
        }
    }
}

/// Tests if both sides of a copy are in known allocations.
fn backend_knows(runtime: &Runtime, copy: &CopyBox) -> Outcome<bool> {
    Ok(runtime.memory.find(copy.to.address).is_some() && runtime.memory.find(copy.from.address).is_some())
}

/// Copy or fill that a function requests.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Transfer {
    Copy(CopyBox, Direction),
    Fill(FillBox),
}

impl Transfer {
    /// Creates a copy of contiguous bytes.
    pub(crate) fn bytes(to: u64, from: u64, bytes: usize, direction: Direction) -> Transfer {
        Transfer::Copy(CopyBox::linear(to, from, bytes), direction)
    }
}

impl Runtime {
    /// Submits work to a stream, or records it in the stream's capture.
    pub(crate) fn submit(&self, stream: &Stream, work: Work) -> Outcome {
        if self.note_in_capture(stream, &work)? {
            return Ok(());
        }
        self.order(stream)?;
        work.perform(self, stream, false)
    }

    /// Tests if the host can access memory: unregistered host, pinned, registered or managed memory.
    fn is_hosts(&self, address: u64) -> bool {
        self.memory.find(address).is_none_or(|found| found.reached_by_host())
    }

    /// Copies or fills, and waits for completion if the caller does.
    pub(crate) fn transfer(&self, stream: &Stream, transfer: Transfer, waits: bool) -> Outcome {
        match transfer {
            Transfer::Copy(copy, direction) if waits => self.copy(stream, copy, direction),
            Transfer::Copy(copy, direction) => self.copy_async(stream, copy, direction),
            Transfer::Fill(fill) if waits => self.fill(stream, fill),
            Transfer::Fill(fill) => self.fill_async(stream, fill),
        }
    }

    /// Copies synchronously, or asynchronously if the host can access neither side.
    pub(crate) fn copy(&self, stream: &Stream, copy: CopyBox, direction: Direction) -> Outcome {
        self.device()?;
        copy.check(self, direction)?;
        if copy.is_empty() {
            return Ok(());
        }
        stream.refuse_capture()?;
        if !self.is_hosts(copy.to.address) && !self.is_hosts(copy.from.address) {
            return self.submit(stream, Work::Copy(copy));
        }
        self.order(stream)?;
        self.wait(stream)?;
        copy.simplified().copy_now(self, stream)
    }

    /// Copies in stream order. A copy from host to host is synchronous.
    pub(crate) fn copy_async(&self, stream: &Stream, copy: CopyBox, direction: Direction) -> Outcome {
        self.device()?;
        copy.check(self, direction)?;
        self.submit(stream, Work::Copy(copy))?;
        let on_device = |address| self.memory.find(address).is_some_and(|found| found.on_device());
        let between_hosts = !copy.is_empty() && !on_device(copy.to.address) && !on_device(copy.from.address);
        if between_hosts && stream.capturing().is_none() { self.wait(stream) } else { Ok(()) }
    }

    /// Fills memory, and waits for completion if the host can access it.
    pub(crate) fn fill(&self, stream: &Stream, fill: FillBox) -> Outcome {
        self.fill_async(stream, fill)?;
        if self.is_hosts(fill.to.address) && stream.capturing().is_none() { self.wait(stream) } else { Ok(()) }
    }

    /// Fills memory in stream order.
    pub(crate) fn fill_async(&self, stream: &Stream, fill: FillBox) -> Outcome {
        self.device()?;
        fill.check(self)?;
        self.submit(stream, Work::Fill(fill))
    }
}
