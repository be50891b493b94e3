//! Random sequences of valid and invalid calls, compared with a small model of return values and memory
//! contents.
//!
//! Sequences run in a separate process, so that a crash or a hang is reported with its seed. **No call
//! returns the status of a panic, every status equals the model's, memory has the model's contents, and all
//! memory is free at the end.** `BROADLOOM_FUZZ_SEED` and `BROADLOOM_FUZZ_CALLS` set the first seed and the
//! number of sequences.

#![allow(unsafe_code, reason = "the library is one of C")]
#![allow(clippy::missing_safety_doc, reason = "NVIDIA's documentation says it")]

mod groups;

use broadloom_cudart::Status;
use broadloom_random::Random;
use std::ffi::{c_char, c_void};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

type Place = *mut u64;

unsafe extern "C" {
    fn cudaMalloc(place: Place, bytes: usize) -> u32;
    fn cudaMallocManaged(place: Place, bytes: usize, flags: u32) -> u32;
    fn cudaFree(address: u64) -> u32;
    fn cudaFreeAsync(address: u64, stream: u64) -> u32;
    fn cudaMallocHost(place: Place, bytes: usize) -> u32;
    fn cudaFreeHost(address: u64) -> u32;
    fn cudaHostRegister(address: u64, bytes: usize, flags: u32) -> u32;
    fn cudaHostUnregister(address: u64) -> u32;
    fn cudaMemset(to: u64, value: i32, bytes: usize) -> u32;
    fn cudaMemsetAsync(to: u64, value: i32, bytes: usize, stream: u64) -> u32;
    fn cudaMemcpy(to: u64, from: u64, bytes: usize, kind: u32) -> u32;
    fn cudaMemcpyAsync(to: u64, from: u64, bytes: usize, kind: u32, stream: u64) -> u32;
    fn cudaMemGetInfo(free: *mut usize, total: *mut usize) -> u32;
    fn cudaStreamCreateWithFlags(place: Place, flags: u32) -> u32;
    fn cudaStreamDestroy(stream: u64) -> u32;
    fn cudaStreamSynchronize(stream: u64) -> u32;
    fn cudaStreamQuery(stream: u64) -> u32;
    fn cudaStreamWaitEvent(stream: u64, event: u64, flags: u32) -> u32;
    fn cudaStreamBeginCapture(stream: u64, mode: u32) -> u32;
    fn cudaStreamEndCapture(stream: u64, graph: Place) -> u32;
    fn cudaEventCreateWithFlags(place: Place, flags: u32) -> u32;
    fn cudaEventDestroy(event: u64) -> u32;
    fn cudaEventRecord(event: u64, stream: u64) -> u32;
    fn cudaEventQuery(event: u64) -> u32;
    fn cudaEventElapsedTime(milliseconds: *mut f32, start: u64, end: u64) -> u32;
    fn cudaDeviceSynchronize() -> u32;
    fn cudaGetLastError() -> u32;
    fn cudaPeekAtLastError() -> u32;
    fn cudaGraphCreate(place: Place, flags: u32) -> u32;
    fn cudaGraphDestroy(graph: u64) -> u32;
    fn cudaGraphAddEmptyNode(node: Place, graph: u64, after: *const u64, count: usize) -> u32;
    fn cudaGraphAddMemcpyNode1D(
        node: Place,
        graph: u64,
        after: *const u64,
        count: usize,
        to: u64,
        from: u64,
        bytes: usize,
        kind: u32,
    ) -> u32;
    fn cudaGraphInstantiate(exec: Place, graph: u64, flags: u64) -> u32;
    fn cudaGraphLaunch(exec: u64, stream: u64) -> u32;
    fn cudaGraphExecDestroy(exec: u64) -> u32;
    fn cuModuleLoadData(module: Place, text: *const c_char) -> u32;
    fn cuModuleUnload(module: u64) -> u32;
    fn cuModuleGetFunction(function: Place, module: u64, name: *const c_char) -> u32;
    fn cuLaunchKernel(
        f: u64,
        gx: u32,
        gy: u32,
        gz: u32,
        bx: u32,
        by: u32,
        bz: u32,
        shared: u32,
        stream: u64,
        params: *const *const c_void,
        more: usize,
    ) -> u32;
    fn cuStreamWriteValue32_v2(stream: u64, address: u64, value: u32, flags: u32) -> u32;
    fn cuStreamWaitValue32_v2(stream: u64, address: u64, value: u32, flags: u32) -> u32;
    fn cuInit(flags: u32) -> u32;
    fn cuCtxSynchronize() -> u32;
}

/// Kernel that adds a number to every byte of a range: thread `i` handles byte `i`.
const KERNEL: &std::ffi::CStr = c".version 7.0\n.target sm_75\n.address_size 64\n\
    .visible .entry add(.param .u64 data, .param .u32 n, .param .u32 value)\n{\n\
    .reg .pred %p; .reg .b16 %h<3>; .reg .b32 %r<7>; .reg .b64 %d<4>;\n\
    ld.param.u64 %d1, [data]; ld.param.u32 %r1, [n]; ld.param.u32 %r2, [value];\n\
    mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x; mad.lo.u32 %r3, %r3, %r4, %r5;\n\
    setp.ge.u32 %p, %r3, %r1; @%p bra END;\n\
    cvt.u64.u32 %d2, %r3; add.u64 %d1, %d1, %d2;\n\
    ld.global.u8 %h1, [%d1]; cvt.u16.u32 %h2, %r2; add.u16 %h1, %h1, %h2; st.global.u8 [%d1], %h1;\n\
    END: ret;\n}\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Device,
    Managed,
    Host,
    Registered,
}

/// Allocation with its contents: `None` for unknown bytes.
#[derive(Debug)]
struct Memory {
    start: u64,
    bytes: Vec<Option<u8>>,
    kind: Kind,
}

/// Graph with the copies of its nodes. Each node depends on the previous one.
#[derive(Clone, Debug, Default)]
struct Graph {
    handle: u64,
    nodes: Vec<u64>,
    copies: Vec<(u64, u64, usize)>,
}

struct Model {
    random: Random,
    seed: u64,
    step: usize,
    memory: Vec<Memory>,
    streams: Vec<u64>,
    events: Vec<(u64, bool)>,
    graphs: Vec<Graph>,
    execs: Vec<Graph>,
    gone: Vec<u64>,
    last: u32,
    kernel: u64,
    /// Host memory of this program, parts of which may be registered.
    arena: Vec<u8>,
}

const OK: u32 = 0;
const INVALID_VALUE: u32 = 1;
const OUT_OF_MEMORY: u32 = 2;
const INVALID_DIRECTION: u32 = 21;
const INVALID_HANDLE: u32 = 400;
const NOT_READY: u32 = 600;
const ALREADY_REGISTERED: u32 = 712;
const NOT_REGISTERED: u32 = 713;

impl Model {
    /// Checks the status of a call.
    #[track_caller]
    fn expect(&mut self, what: &str, got: u32, want: u32) {
        assert!(
            got == want,
            "seed {}, step {}: {what} returns {:?}, and not {:?}",
            self.seed,
            self.step,
            Status(got),
            Status(want)
        );
        if what.starts_with("cuda") && got != OK && got != NOT_READY {
            self.last = got;
        }
    }

    fn find(&self, address: u64) -> Option<usize> {
        self.memory.iter().position(|memory| address >= memory.start && address - memory.start < memory.bytes.len() as u64)
    }

    fn holds(&self, address: u64, bytes: usize) -> bool {
        self.find(address).is_some_and(|index| {
            let memory = &self.memory[index];
            bytes as u64 <= memory.bytes.len() as u64 - (address - memory.start)
        })
    }

    /// Returns a random handle: usually a valid one, sometimes a stale or invalid one.
    fn handle(&mut self, good: &[u64]) -> u64 {
        match self.random.below(12) {
            0 if !self.gone.is_empty() => self.gone[self.random.below(self.gone.len())],
            1 => [0x0b10_0000_0000_0010, 0xdead_beef, u64::MAX][self.random.below(3)],
            _ if good.is_empty() => 0xdead_beef,
            _ => good[self.random.below(good.len())],
        }
    }

    fn stream(&mut self) -> (u64, bool) {
        if self.random.one_in(3) {
            return (0, true);
        }
        let streams = self.streams.clone();
        let stream = self.handle(&streams);
        (stream, streams.contains(&stream))
    }

    /// Returns a random address: usually inside memory, sometimes at its edges or invalid.
    fn address(&mut self) -> u64 {
        match self.random.below(16) {
            0 => 0,
            1 if !self.gone.is_empty() => self.gone[self.random.below(self.gone.len())],
            2 => 0x10,
            _ if self.memory.is_empty() => 0,
            _ => {
                let index = self.random.below(self.memory.len());
                let length = self.memory[index].bytes.len();
                self.memory[index].start + if self.random.one_in(2) { 0 } else { self.random.below(length + 1) as u64 }
            }
        }
    }

    fn length(&mut self, address: u64) -> usize {
        let left =
            self.find(address).map_or(64, |index| self.memory[index].bytes.len() - (address - self.memory[index].start) as usize);
        match self.random.below(12) {
            0 => 0,
            1 => left + 1,
            2 => usize::MAX,
            3 => left,
            _ => self.random.below(left + 1),
        }
    }

    fn allocate(&mut self) {
        let bytes = match self.random.below(10) {
            0 => 0,
            1 => 1 << 60,
            2 => 1 + self.random.below(1 << 16),
            _ => 1 + self.random.below(600),
        };
        let mut place = 7;
        let kind = [Kind::Device, Kind::Device, Kind::Managed, Kind::Host][self.random.below(4)];
        // SAFETY: the output is valid.
        let (name, got) = unsafe {
            match kind {
                Kind::Device => ("cudaMalloc", cudaMalloc(&mut place, bytes)),
                Kind::Managed => ("cudaMallocManaged", cudaMallocManaged(&mut place, bytes, 1)),
                Kind::Host | Kind::Registered => ("cudaMallocHost", cudaMallocHost(&mut place, bytes)),
            }
        };
        let want = match bytes {
            0 if kind == Kind::Managed => INVALID_VALUE,
            0 => OK,
            bytes if bytes >= 1 << 60 => OUT_OF_MEMORY,
            _ => OK,
        };
        self.expect(name, got, want);
        if want == OK && bytes > 0 {
            assert!(self.find(place).is_none() && place % 256 == 0, "seed {}: {place:#x} is given twice", self.seed);
            self.memory.push(Memory { start: place, bytes: vec![None; bytes], kind });
        }
    }

    fn free(&mut self) {
        let address = self.address();
        let found = self.memory.iter().position(|memory| memory.start == address);
        let kind = found.map(|index| self.memory[index].kind);
        let host = self.random.one_in(3);
        let want = match kind {
            _ if address == 0 => OK,
            Some(Kind::Device | Kind::Managed) if !host => OK,
            Some(Kind::Host) if host => OK,
            Some(_) | None => INVALID_VALUE,
        };
        // SAFETY: the arguments are numbers.
        let got = unsafe { if host { cudaFreeHost(address) } else { cudaFree(address) } };
        self.expect(if host { "cudaFreeHost" } else { "cudaFree" }, got, want);
        if want == OK && address != 0 {
            self.memory.swap_remove(found.unwrap());
            self.gone.push(address);
        }
    }

    fn register(&mut self) {
        let (start, length) = (self.arena.as_ptr() as u64, self.arena.len());
        if self.random.one_in(2) {
            let at = self.random.below(length);
            let bytes = self.random.below(length - at);
            let address = start + at as u64;
            let taken = self.memory.iter().any(|m| m.start < address + bytes as u64 && address < m.start + m.bytes.len() as u64);
            let want = if bytes == 0 {
                INVALID_VALUE
            } else if taken {
                ALREADY_REGISTERED
            } else {
                OK
            };
            // SAFETY: the range belongs to this program.
            let got = unsafe { cudaHostRegister(address, bytes, 0) };
            self.expect("cudaHostRegister", got, want);
            if want == OK {
                let bytes = self.arena[at..at + bytes].iter().map(|byte| Some(*byte)).collect();
                self.memory.push(Memory { start: address, bytes, kind: Kind::Registered });
            }
        } else {
            let address = self.address();
            let found = self.memory.iter().position(|memory| memory.start == address && memory.kind == Kind::Registered);
            // SAFETY: the argument is a number.
            let got = unsafe { cudaHostUnregister(address) };
            self.expect("cudaHostUnregister", got, if found.is_some() { OK } else { NOT_REGISTERED });
            if let Some(index) = found {
                self.memory.swap_remove(index);
            }
        }
    }

    fn set(&mut self, address: u64, bytes: usize, value: impl Fn(usize) -> Option<u8>) {
        if bytes > 0
            && let Some(index) = self.find(address)
        {
            let start = (address - self.memory[index].start) as usize;
            for at in 0..bytes {
                self.memory[index].bytes[start + at] = value(at);
            }
        }
    }

    fn fill(&mut self) {
        let (to, value) = (self.address(), self.random.bits() as u8);
        let bytes = self.length(to);
        let want = if bytes == 0 || self.holds(to, bytes) { OK } else { INVALID_VALUE };
        if self.random.one_in(2) {
            // SAFETY: the library checks its arguments.
            let got = unsafe { cudaMemset(to, i32::from(value), bytes) };
            self.expect("cudaMemset", got, want);
        } else {
            let (stream, good) = self.stream();
            // SAFETY: as above.
            let got = unsafe { cudaMemsetAsync(to, i32::from(value), bytes, stream) };
            let want = if good { want } else { INVALID_HANDLE };
            self.expect("cudaMemsetAsync", got, want);
            self.wait(want == OK, stream);
            if want != OK {
                return;
            }
        }
        if want == OK {
            self.set(to, bytes, |_| Some(value));
        }
    }

    /// Tests a word that a stream writes and then waits for. A device with its own address space refuses
    /// both.
    fn word(&mut self) {
        let (stream, good) = self.stream();
        let (address, value) = (self.address(), self.random.bits() as u32);
        let refused = std::env::var("BROADLOOM_DEVICE").as_deref() == Ok("interp");
        let want = match (good, refused, address.is_multiple_of(4) && self.holds(address, 4)) {
            (false, _, _) => INVALID_HANDLE,
            (true, true, _) => Status::NOT_SUPPORTED.0,
            (true, false, false) => INVALID_VALUE,
            (true, false, true) => OK,
        };
        // SAFETY: the library checks its arguments.
        let got = unsafe { cuStreamWriteValue32_v2(stream, address, value, 0) };
        self.expect("cuStreamWriteValue32_v2", got, want);
        // SAFETY: as above.
        let got = unsafe { cuStreamWaitValue32_v2(stream, address, value, 1) };
        self.expect("cuStreamWaitValue32_v2", got, want);
        self.wait(want == OK, stream);
        if want == OK {
            self.set(address, 4, |index| Some(value.to_le_bytes()[index]));
        }
    }

    /// Waits for a stream, so that its work is done.
    fn wait(&mut self, good: bool, stream: u64) {
        if good {
            // SAFETY: the argument is a number.
            let got = unsafe { cudaStreamSynchronize(stream) };
            self.expect("cudaStreamSynchronize", got, OK);
        }
    }

    fn copy(&mut self) {
        let (to, from) = (self.address(), self.address());
        let measured = if self.random.one_in(2) { to } else { from };
        let mut bytes = self.length(measured);
        let kind = if self.random.one_in(10) { 5 + self.random.below(90) as u32 } else { 4 };
        // The library trusts addresses that CUDA does not know, so copies with such addresses are empty.
        let unknown = |model: &Model, address: u64| model.find(address).is_none() && address != 0;
        if unknown(self, to) || unknown(self, from) {
            bytes = 0;
        }
        let overlap = to < from.saturating_add(bytes as u64) && from < to.saturating_add(bytes as u64) && bytes != 0;
        if overlap {
            return;
        }
        let want = match () {
            () if kind > 4 => INVALID_DIRECTION,
            () if bytes == 0 || self.holds(to, bytes) && self.holds(from, bytes) => OK,
            () => INVALID_VALUE,
        };
        let (stream, right) = self.stream();
        // SAFETY: the library knows and checks both sides, or the copy is empty.
        let (name, got, want) = unsafe {
            if self.random.one_in(2) {
                ("cudaMemcpy", cudaMemcpy(to, from, bytes, kind), want)
            } else {
                let got = cudaMemcpyAsync(to, from, bytes, kind, stream);
                let want = if right { want } else { INVALID_HANDLE };
                ("cudaMemcpyAsync", got, want)
            }
        };
        self.expect(name, got, want);
        if want == OK {
            // SAFETY: the call has no arguments.
            let got = unsafe { cudaDeviceSynchronize() };
            self.expect("cudaDeviceSynchronize", got, OK);
            self.apply(to, from, bytes);
        }
    }

    fn apply(&mut self, to: u64, from: u64, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let index = self.find(from).unwrap();
        let start = (from - self.memory[index].start) as usize;
        let source: Vec<Option<u8>> = self.memory[index].bytes[start..start + bytes].to_vec();
        self.set(to, bytes, |at| source[at]);
    }

    fn streams(&mut self) {
        match self.random.below(4) {
            0 => {
                let (mut place, flags) = (0, self.random.below(3) as u32);
                // SAFETY: the output is valid.
                let got = unsafe { cudaStreamCreateWithFlags(&mut place, flags) };
                self.expect("cudaStreamCreateWithFlags", got, if flags < 2 { OK } else { INVALID_VALUE });
                if flags < 2 {
                    self.streams.push(place);
                }
            }
            1 => {
                let streams = self.streams.clone();
                let stream = self.handle(&streams);
                let good = streams.contains(&stream);
                // SAFETY: the argument is a number.
                let got = unsafe { cudaStreamDestroy(stream) };
                self.expect("cudaStreamDestroy", got, if good { OK } else { INVALID_HANDLE });
                if good {
                    self.streams.retain(|known| *known != stream);
                    self.gone.push(stream);
                }
            }
            2 => {
                let (stream, good) = self.stream();
                // SAFETY: the argument is a number.
                let got = unsafe { cudaStreamSynchronize(stream) };
                self.expect("cudaStreamSynchronize", got, if good { OK } else { INVALID_HANDLE });
            }
            _ => {
                let (stream, good) = self.stream();
                // SAFETY: the argument is a number.
                let got = unsafe { cudaStreamQuery(stream) };
                let want = if good && got == NOT_READY {
                    NOT_READY
                } else if good {
                    OK
                } else {
                    INVALID_HANDLE
                };
                self.expect("cudaStreamQuery", got, want);
            }
        }
    }

    fn events(&mut self) {
        let handles: Vec<u64> = self.events.iter().map(|(event, _)| *event).collect();
        let event = self.handle(&handles);
        let known = self.events.iter().position(|(handle, _)| *handle == event);
        match self.random.below(6) {
            0 | 1 => {
                let (mut place, flags) = (0, self.random.below(9) as u32);
                // SAFETY: the output is valid.
                let got = unsafe { cudaEventCreateWithFlags(&mut place, flags & 8) };
                self.expect("cudaEventCreateWithFlags", got, if flags < 8 { OK } else { INVALID_VALUE });
                if flags < 8 {
                    self.events.push((place, false));
                }
            }
            2 => {
                // SAFETY: the argument is a number.
                let got = unsafe { cudaEventDestroy(event) };
                self.expect("cudaEventDestroy", got, if known.is_some() { OK } else { INVALID_HANDLE });
                if let Some(index) = known {
                    self.events.swap_remove(index);
                    self.gone.push(event);
                }
            }
            3 => {
                let (stream, good) = self.stream();
                // SAFETY: the arguments are numbers.
                let got = unsafe { cudaEventRecord(event, stream) };
                self.expect("cudaEventRecord", got, if good && known.is_some() { OK } else { INVALID_HANDLE });
                if let (true, Some(index)) = (good, known) {
                    self.events[index].1 = true;
                }
            }
            4 => {
                let (stream, good) = self.stream();
                // SAFETY: the arguments are numbers.
                let got = unsafe { cudaStreamWaitEvent(stream, event, 0) };
                self.expect("cudaStreamWaitEvent", got, if good && known.is_some() { OK } else { INVALID_HANDLE });
            }
            _ => {
                let other = self.handle(&handles);
                let recorded = |handle: u64| self.events.iter().any(|(known, recorded)| *known == handle && *recorded);
                let (good, mut time) = (recorded(event) && recorded(other), 0.0);
                // SAFETY: the output is valid; the other arguments are numbers.
                let got = unsafe { cudaEventElapsedTime(&mut time, event, other) };
                let want = if good && got == NOT_READY {
                    NOT_READY
                } else if good {
                    OK
                } else {
                    INVALID_HANDLE
                };
                self.expect("cudaEventElapsedTime", got, want);
                // SAFETY: the argument is a number.
                let got = unsafe { cudaEventQuery(event) };
                let want = if known.is_some() && got == NOT_READY {
                    NOT_READY
                } else if known.is_some() {
                    OK
                } else {
                    INVALID_HANDLE
                };
                self.expect("cudaEventQuery", got, want);
            }
        }
    }

    fn launch(&mut self) {
        if self.memory.is_empty() {
            return;
        }
        let index = self.random.below(self.memory.len());
        let memory = &self.memory[index];
        let (address, count, value) = (memory.start, memory.bytes.len() as u32, self.random.bits() as u32);
        // Half of the launches are valid. Unwritten bytes are not read.
        let known = memory.bytes.iter().all(Option::is_some);
        let (threads, shared) = ([64, 0, 1024, 2048][self.random.below(4)], [0, 1 << 20][usize::from(self.random.one_in(6))]);
        let blocks = if threads == 0 { 1 } else { count.div_ceil(threads) };
        let (stream, good) = self.stream();
        let fits = (1..=1024).contains(&threads) && shared == 0;
        if fits && good && !known {
            return;
        }
        let params = [(&raw const address).cast(), (&raw const count).cast(), (&raw const value).cast::<c_void>()];
        // SAFETY: the arguments match the kernel, which stays inside the range.
        let got = unsafe { cuLaunchKernel(self.kernel, blocks, 1, 1, threads, 1, 1, shared, stream, params.as_ptr(), 0) };
        let want = if !good {
            INVALID_HANDLE
        } else if fits {
            OK
        } else {
            INVALID_VALUE
        };
        self.expect("cuLaunchKernel", got, want);
        if want == OK {
            // SAFETY: the call has no arguments.
            let got = unsafe { cuCtxSynchronize() };
            self.expect("cuCtxSynchronize", got, OK);
            for byte in &mut self.memory[index].bytes {
                *byte = byte.map(|byte| byte.wrapping_add(value as u8));
            }
        }
    }

    fn graphs(&mut self) {
        let handles: Vec<u64> = self.graphs.iter().map(|graph| graph.handle).collect();
        let graph = self.handle(&handles);
        let known = handles.iter().position(|handle| *handle == graph);
        match self.random.below(7) {
            0 => {
                let mut place = 0;
                // SAFETY: the output is valid.
                let got = unsafe { cudaGraphCreate(&mut place, 0) };
                self.expect("cudaGraphCreate", got, OK);
                self.graphs.push(Graph { handle: place, ..Graph::default() });
            }
            1 => {
                // SAFETY: the argument is a number.
                let got = unsafe { cudaGraphDestroy(graph) };
                self.expect("cudaGraphDestroy", got, if known.is_some() { OK } else { INVALID_HANDLE });
                if let Some(index) = known {
                    self.graphs.swap_remove(index);
                    self.gone.push(graph);
                }
            }
            2 | 3 => {
                let mut node = 0;
                let after = known.map(|index| self.graphs[index].nodes.clone()).unwrap_or_default();
                let (to, from) = (self.address(), self.address());
                let bytes = self.length(to);
                let apart = to.abs_diff(from) >= bytes as u64;
                let good = apart && bytes > 0 && self.holds(to, bytes) && self.holds(from, bytes);
                // SAFETY: lists and outputs are valid.
                let (name, got) = unsafe {
                    if good {
                        let got = cudaGraphAddMemcpyNode1D(&mut node, graph, after.as_ptr(), after.len(), to, from, bytes, 4);
                        ("cudaGraphAddMemcpyNode1D", got)
                    } else {
                        ("cudaGraphAddEmptyNode", cudaGraphAddEmptyNode(&mut node, graph, after.as_ptr(), after.len()))
                    }
                };
                self.expect(name, got, if known.is_some() { OK } else { INVALID_HANDLE });
                if let Some(index) = known {
                    self.graphs[index].nodes.push(node);
                    if good {
                        self.graphs[index].copies.push((to, from, bytes));
                    }
                }
            }
            4 => {
                let mut place = 0;
                // SAFETY: the output is valid.
                let got = unsafe { cudaGraphInstantiate(&mut place, graph, 0) };
                self.expect("cudaGraphInstantiate", got, if known.is_some() { OK } else { INVALID_HANDLE });
                if let Some(index) = known {
                    self.execs.push(Graph { handle: place, ..self.graphs[index].clone() });
                }
            }
            5 => {
                let handles: Vec<u64> = self.execs.iter().map(|exec| exec.handle).collect();
                let exec = self.handle(&handles);
                let known = handles.iter().position(|handle| *handle == exec);
                // SAFETY: the argument is a number.
                let got = unsafe { cudaGraphExecDestroy(exec) };
                self.expect("cudaGraphExecDestroy", got, if known.is_some() { OK } else { INVALID_HANDLE });
                if let Some(index) = known {
                    self.execs.swap_remove(index);
                    self.gone.push(exec);
                }
            }
            _ => {
                let (stream, good) = self.stream();
                let Some(exec) = (!self.execs.is_empty()).then(|| self.random.below(self.execs.len())) else { return };
                let exec = self.execs[exec].clone();
                // A graph is not launched if memory of its copies was freed.
                if !exec.copies.iter().all(|(to, from, bytes)| self.holds(*to, *bytes) && self.holds(*from, *bytes)) {
                    return;
                }
                // SAFETY: all sides of the copies are valid.
                let got = unsafe { cudaGraphLaunch(exec.handle, stream) };
                self.expect("cudaGraphLaunch", got, if good { OK } else { INVALID_HANDLE });
                if good {
                    self.wait(true, stream);
                    for (to, from, bytes) in exec.copies {
                        self.apply(to, from, bytes);
                    }
                }
            }
        }
    }

    /// Tests a captured fill.
    fn capture(&mut self) {
        let (Some(stream), Some(memory)) = (self.streams.first().copied(), self.memory.first()) else { return };
        let (to, bytes, value, mut graph) = (memory.start, memory.bytes.len(), self.random.bits() as u8, 0);
        // SAFETY: the range is known; the output is valid.
        unsafe {
            let got = cudaStreamBeginCapture(stream, 1);
            self.expect("cudaStreamBeginCapture", got, OK);
            let got = cudaMemsetAsync(to, i32::from(value), bytes, stream);
            self.expect("cudaMemsetAsync", got, OK);
            let got = cudaStreamSynchronize(stream);
            self.expect("cudaStreamSynchronize", got, Status::STREAM_CAPTURE_UNSUPPORTED.0);
            let got = cudaStreamEndCapture(stream, &mut graph);
            if got != OK {
                // Waiting invalidates a capture.
                self.expect("cudaStreamEndCapture", got, Status::STREAM_CAPTURE_INVALIDATED.0);
                return;
            }
        }
        self.graphs.push(Graph { handle: graph, ..Graph::default() });
        // The model does not know the graph's work, so the graph is destroyed.
        let index = self.graphs.len() - 1;
        // SAFETY: the argument is a number.
        let got = unsafe { cudaGraphDestroy(graph) };
        self.expect("cudaGraphDestroy", got, OK);
        self.graphs.swap_remove(index);
        self.gone.push(graph);
    }

    /// Compares an allocation with the model.
    fn look(&mut self) {
        if self.memory.is_empty() {
            return;
        }
        let index = self.random.below(self.memory.len());
        let mut bytes = vec![0u8; self.memory[index].bytes.len()];
        // SAFETY: both ranges are valid and of the same length.
        let got = unsafe { cudaMemcpy(bytes.as_mut_ptr() as u64, self.memory[index].start, bytes.len(), 4) };
        self.expect("cudaMemcpy", got, OK);
        let wrong = self.memory[index].bytes.iter().zip(&bytes).position(|(want, got)| want.is_some_and(|want| want != *got));
        assert!(
            wrong.is_none(),
            "seed {}, step {}: byte {wrong:?} of {:?} is wrong",
            self.seed,
            self.step,
            self.memory[index].kind
        );
    }

    fn errors(&mut self) {
        // SAFETY: the calls have no arguments.
        let (peeked, got, again) = unsafe { (cudaPeekAtLastError(), cudaGetLastError(), cudaGetLastError()) };
        assert_eq!((peeked, got, again), (self.last, self.last, OK), "seed {}, step {}: the last error", self.seed, self.step);
        self.last = OK;
    }

    fn end(mut self) {
        // SAFETY: the arguments are numbers returned by the library.
        unsafe {
            for memory in std::mem::take(&mut self.memory) {
                let got = match memory.kind {
                    Kind::Device | Kind::Managed => cudaFree(memory.start),
                    Kind::Host => cudaFreeHost(memory.start),
                    Kind::Registered => cudaHostUnregister(memory.start),
                };
                self.expect("the end", got, OK);
            }
            for stream in std::mem::take(&mut self.streams) {
                self.expect("the end", cudaStreamDestroy(stream), OK);
            }
            for (event, _) in std::mem::take(&mut self.events) {
                self.expect("the end", cudaEventDestroy(event), OK);
            }
            for graph in std::mem::take(&mut self.graphs) {
                self.expect("the end", cudaGraphDestroy(graph.handle), OK);
            }
            for exec in std::mem::take(&mut self.execs) {
                self.expect("the end", cudaGraphExecDestroy(exec.handle), OK);
            }
            self.expect("the end", cudaDeviceSynchronize(), OK);
            cudaGetLastError();
        }
    }
}

/// Runs one sequence.
fn sequence(seed: u64, kernel: u64) {
    let random = Random::new(seed);
    let mut model = Model {
        random,
        seed,
        step: 0,
        memory: vec![],
        streams: vec![],
        events: vec![],
        graphs: vec![],
        execs: vec![],
        gone: vec![],
        last: OK,
        kernel,
        arena: vec![5; 4096],
    };
    for step in 0..300 {
        model.step = step;
        match model.random.below(30) {
            0..=3 => model.allocate(),
            4 | 5 => model.free(),
            6 => model.register(),
            7..=9 => model.fill(),
            10..=12 => model.copy(),
            13 => model.streams(),
            14 | 15 => model.events(),
            16..=18 => model.launch(),
            19 | 20 => model.graphs(),
            21 => model.capture(),
            22 => model.errors(),
            23 => model.word(),
            24 => model.condition(),
            25 => model.user_object(),
            26 => model.pool(),
            27 => model.array(),
            28 => model.batch(),
            _ => model.look(),
        }
    }
    model.end();
}

fn free_bytes() -> usize {
    let (mut free, mut total) = (0, 0);
    // SAFETY: the outputs are valid.
    assert_eq!(unsafe { cudaMemGetInfo(&mut free, &mut total) }, OK);
    free
}

/// Runs sequences in the child process started below.
#[test]
fn sequences() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let (Some(from), Some(count)) = (number("FUZZ_FROM"), number("FUZZ_COUNT")) else { return };
    let (mut module, mut kernel) = (0, 0);
    // SAFETY: outputs and texts are valid.
    unsafe {
        assert_eq!(cuInit(0), OK);
        assert_eq!(cudaDeviceSynchronize(), OK);
        assert_eq!(cuModuleLoadData(&mut module, KERNEL.as_ptr()), OK);
        assert_eq!(cuModuleGetFunction(&mut kernel, module, c"add".as_ptr()), OK);
    }
    sequence(from, kernel);
    let free = free_bytes();
    for seed in from..from + count {
        sequence(seed, kernel);
        assert_eq!(free_bytes(), free, "seed {seed}: memory is lost");
    }
    // SAFETY: the argument is a handle returned by the library.
    assert_eq!(unsafe { cuModuleUnload(module) }, OK);
    assert!(free_bytes() >= free);
}

fn run(device: &str, from: u64, count: u64, limit: Duration) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sequences", "--nocapture"])
        .env("FUZZ_FROM", from.to_string())
        .env("FUZZ_COUNT", count.to_string())
        .env("BROADLOOM_DEVICE", device)
        .env("BROADLOOM_THREADS", "2")
        .env("BROADLOOM_MEMORY_LIMIT", "1G")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The output is read while the process runs, so that it never blocks on a full pipe.
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let read = |stream: &mut dyn std::io::Read| {
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text
    };
    let out = std::thread::spawn(move || read(&mut out));
    let err = std::thread::spawn(move || read(&mut err));
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if started.elapsed() > limit {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let (out, err) = (out.join().unwrap(), err.join().unwrap());
    let well = status.is_some_and(|status| status.success()) && out.contains("1 passed");
    assert!(well, "{device}, seeds from {from}: {status:?}\n{out}\n{err}");
}

#[test]
fn calls_do_as_the_model_says() {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().unwrap_or_else(|_| panic!("{name} is `{text}`, and it takes a number")))
    };
    let (from, count) = (number("BROADLOOM_FUZZ_SEED").unwrap_or(1), number("BROADLOOM_FUZZ_CALLS").unwrap_or(150));
    for device in ["cpu", "interp"] {
        // The limit is far above the normal duration and only stops hangs.
        run(device, from, count, Duration::from_secs(600 + count));
    }
}
