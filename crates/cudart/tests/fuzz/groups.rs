//! Groups of calls whose objects live for one step: conditional nodes, user objects, pools and their sharing,
//! arrays and textures of the driver, batches of copies.

use crate::{INVALID_HANDLE, INVALID_VALUE, Model, OK, Place, cudaGraphAddMemcpyNode1D, cudaGraphCreate, cudaGraphDestroy};
use crate::{cudaFreeAsync, cudaGraphExecDestroy, cudaGraphInstantiate, cudaGraphLaunch};
use broadloom_cudart::Status;
use std::sync::atomic::{AtomicU32, Ordering};

/// `cudaMemcpyAttributes`: order, two hints, flags.
type CopyAttributes = [u32; 6];

unsafe extern "C" {
    fn cudaGraphConditionalHandleCreate(handle: Place, graph: u64, value: u32, flags: u32) -> u32;
    fn cudaGraphAddNode(node: Place, graph: u64, after: *const u64, data: usize, count: usize, params: *mut [u64; 32]) -> u32;
    fn cudaUserObjectCreate(
        object: Place,
        data: *const AtomicU32,
        destroy: extern "C" fn(&AtomicU32),
        references: u32,
        flags: u32,
    ) -> u32;
    fn cuUserObjectRetain(object: u64, count: u32) -> u32;
    fn cudaUserObjectRelease(object: u64, count: u32) -> u32;
    fn cudaGraphRetainUserObject(graph: u64, object: u64, count: u32, flags: u32) -> u32;
    fn cuGraphReleaseUserObject(graph: u64, object: u64, count: u32) -> u32;
    fn cudaMemPoolCreate(pool: Place, properties: *const [u64; 11]) -> u32;
    fn cuMemPoolDestroy(pool: u64) -> u32;
    fn cudaMallocFromPoolAsync(address: Place, bytes: usize, pool: u64, stream: u64) -> u32;
    fn cuMemPoolGetAttribute(pool: u64, number: u32, value: Place) -> u32;
    fn cudaMemPoolExportToShareableHandle(descriptor: *mut i32, pool: u64, kind: u32, flags: u32) -> u32;
    fn cuMemPoolImportFromShareableHandle(pool: Place, descriptor: usize, kind: u32, flags: u64) -> u32;
    fn cuArrayCreate_v2(array: Place, descriptor: *const [u64; 3]) -> u32;
    fn cuArrayGetDescriptor_v2(descriptor: *mut [u64; 3], array: u64) -> u32;
    fn cuArrayDestroy(array: u64) -> u32;
    fn cuMemcpyHtoA_v2(array: u64, offset: usize, from: *const u8, bytes: usize) -> u32;
    fn cuMemcpyAtoH_v2(to: *mut u8, array: u64, offset: usize, bytes: usize) -> u32;
    fn cuTexObjectCreate(object: Place, resource: *const [u64; 18], texture: *const [u32; 26], view: usize) -> u32;
    fn cuTexObjectDestroy(object: u64) -> u32;
    fn cuMemcpyBatchAsync(
        to: *const u64,
        from: *const u64,
        sizes: *const usize,
        count: usize,
        attributes: *const CopyAttributes,
        firsts: *const usize,
        many: usize,
        failed: *mut usize,
        stream: u64,
    ) -> u32;
    fn close(descriptor: i32) -> i32;
}

extern "C" fn gone(count: &AtomicU32) {
    count.fetch_add(1, Ordering::SeqCst);
}

fn unified() -> bool {
    std::env::var("BROADLOOM_DEVICE").as_deref() != Ok("interp")
}

impl Model {
    /// Returns a valid random copy between known allocations without overlap, if one was found.
    fn good_copy(&mut self) -> Option<(u64, u64, usize)> {
        let (to, from) = (self.address(), self.address());
        let bytes = self.length(to);
        let good = bytes > 0 && self.holds(to, bytes) && self.holds(from, bytes) && to.abs_diff(from) >= bytes as u64;
        good.then_some((to, from, bytes))
    }

    /// Tests a conditional node whose bodies each copy something: only the selected copy is done.
    pub(crate) fn condition(&mut self) {
        let (mut graph, mut handle, mut node, mut exec) = (0, 0, 0, 0);
        let (kind, value) = (self.random.below(4) as u64, self.random.below(4) as u32);
        let count = self.random.below(4) as u64;
        let fits = match kind {
            0 => (1..=2).contains(&count),
            1 => count == 1 && value == 0,
            2 => count >= 1,
            _ => false,
        };
        if kind == 1 && count == 1 && value != 0 {
            // Such a loop would never end.
            return;
        }
        let bad = self.random.one_in(8);
        // SAFETY: outputs, lists and structures are valid; the copies stay inside known memory.
        unsafe {
            self.expect("cudaGraphCreate", cudaGraphCreate(&mut graph, 0), OK);
            let got = cudaGraphConditionalHandleCreate(&mut handle, graph, value, 1);
            self.expect("cudaGraphConditionalHandleCreate", got, OK);
            let mut params = [0; 32];
            (params[0], params[2], params[3]) = (13, if bad { 0xdead_beef } else { handle }, kind | count << 32);
            let got = cudaGraphAddNode(&mut node, graph, std::ptr::null(), 0, 0, &mut params);
            self.expect("cudaGraphAddNode", got, if fits && !bad { OK } else { INVALID_VALUE });
            if fits && !bad {
                let bodies = std::slice::from_raw_parts(params[4] as *const u64, count as usize).to_vec();
                let mut copies = vec![];
                for body in &bodies {
                    let copy = self.good_copy();
                    if let Some((to, from, bytes)) = copy {
                        let got = cudaGraphAddMemcpyNode1D(&mut node, *body, std::ptr::null(), 0, to, from, bytes, 4);
                        self.expect("cudaGraphAddMemcpyNode1D", got, OK);
                    }
                    copies.push(copy);
                }
                self.expect("cudaGraphInstantiate", cudaGraphInstantiate(&mut exec, graph, 0), OK);
                let (stream, good) = self.stream();
                self.expect("cudaGraphLaunch", cudaGraphLaunch(exec, stream), if good { OK } else { INVALID_HANDLE });
                self.wait(good, stream);
                let chosen = match kind {
                    0 => usize::from(value == 0),
                    1 => usize::MAX,
                    _ => value as usize,
                };
                if good && let Some(Some((to, from, bytes))) = copies.get(chosen) {
                    self.apply(*to, *from, *bytes);
                }
                self.expect("cudaGraphExecDestroy", cudaGraphExecDestroy(exec), OK);
                self.gone.extend(bodies);
            }
            self.expect("cudaGraphDestroy", cudaGraphDestroy(graph), OK);
        }
        self.gone.push(graph);
    }

    /// Tests that a user object is destroyed exactly when the program and all graphs have released it.
    pub(crate) fn user_object(&mut self) {
        let count = AtomicU32::new(0);
        let (mut object, mut graph, mut exec) = (0, 0, 0);
        let held = self.random.below(4) as u32;
        // SAFETY: outputs are valid, and the counter outlives the object.
        unsafe {
            let got = cudaUserObjectCreate(&mut object, &count, gone, held, 1);
            self.expect("cudaUserObjectCreate", got, if held > 0 { OK } else { INVALID_VALUE });
            if held == 0 {
                return;
            }
            let more = self.random.below(3) as u32;
            self.expect("cuUserObjectRetain", cuUserObjectRetain(object, more), if more > 0 { OK } else { INVALID_VALUE });
            self.expect("cudaGraphCreate", cudaGraphCreate(&mut graph, 0), OK);
            // The program's own references may be moved to the graph.
            let moved = self.random.one_in(2);
            let got = cudaGraphRetainUserObject(graph, object, 1, u32::from(moved));
            self.expect("cudaGraphRetainUserObject", got, OK);
            let own = held + more - u32::from(moved);
            self.expect("cudaUserObjectRelease", cudaUserObjectRelease(object, own + 2), INVALID_VALUE);
            if own > 0 {
                self.expect("cudaUserObjectRelease", cudaUserObjectRelease(object, own), OK);
            }
            let ready = self.random.one_in(2);
            if ready {
                self.expect("cudaGraphInstantiate", cudaGraphInstantiate(&mut exec, graph, 0), OK);
            }
            assert_eq!(count.load(Ordering::SeqCst), 0, "seed {}, step {}: an object is gone too early", self.seed, self.step);
            if self.random.one_in(2) {
                self.expect("cuGraphReleaseUserObject", cuGraphReleaseUserObject(graph, object, 2), INVALID_VALUE);
                self.expect("cuGraphReleaseUserObject", cuGraphReleaseUserObject(graph, object, 1), OK);
            }
            self.expect("cudaGraphDestroy", cudaGraphDestroy(graph), OK);
            if ready {
                assert_eq!(count.load(Ordering::SeqCst), 0, "seed {}, step {}: gone before its graph", self.seed, self.step);
                self.expect("cudaGraphExecDestroy", cudaGraphExecDestroy(exec), OK);
            }
        }
        assert_eq!(count.load(Ordering::SeqCst), 1, "seed {}, step {}: an object is not gone, or twice", self.seed, self.step);
        self.gone.push(graph);
    }

    /// Tests a pool with a maximum size: allocations, frees, and sharing with another process.
    pub(crate) fn pool(&mut self) {
        let (mut pool, mut imported, mut descriptor) = (0, 0, -1);
        let shared = self.random.one_in(2);
        // Pinned, shareable or not, on the device, with a maximum of 4096 bytes.
        let properties = [1 | u64::from(shared) << 32, 1, 0, 4096, 0, 0, 0, 0, 0, 0, 0];
        let refused = Status::NOT_SUPPORTED.0;
        // SAFETY: outputs and structures are valid.
        unsafe {
            let got = cudaMemPoolCreate(&mut pool, &properties);
            self.expect("cudaMemPoolCreate", got, if shared && !unified() { refused } else { OK });
            if got != OK {
                return;
            }
            let (mut given, mut used) = (vec![], 0);
            for _ in 0..self.random.below(6) {
                let (mut address, bytes) = (0, 1 + self.random.below(2500));
                let got = cudaMallocFromPoolAsync(&mut address, bytes, pool, 0);
                let fits = used + bytes as u64 <= 4096;
                self.expect("cudaMallocFromPoolAsync", got, if fits { OK } else { Status::OUT_OF_MEMORY.0 });
                if fits {
                    assert!(self.find(address).is_none(), "seed {}: {address:#x} is given twice", self.seed);
                    given.push((address, bytes));
                    used += bytes as u64;
                }
                if !given.is_empty() && self.random.one_in(3) {
                    let (address, bytes) = given.swap_remove(self.random.below(given.len()));
                    self.expect("cudaFreeAsync", cudaFreeAsync(address, 0), OK);
                    self.expect("cudaFreeAsync", cudaFreeAsync(address, 0), INVALID_VALUE);
                    used -= bytes as u64;
                }
                let mut told = 7;
                self.expect("cuMemPoolGetAttribute", cuMemPoolGetAttribute(pool, 7, &mut told), OK);
                assert_eq!(told, used, "seed {}, step {}: what a pool has given out", self.seed, self.step);
            }
            let got = cudaMemPoolExportToShareableHandle(&mut descriptor, pool, 1, 0);
            let want = match (unified(), shared) {
                (false, _) => refused,
                (true, false) => INVALID_VALUE,
                (true, true) => OK,
            };
            self.expect("cudaMemPoolExportToShareableHandle", got, want);
            if want == OK {
                let got = cuMemPoolImportFromShareableHandle(&mut imported, descriptor as usize, 1, 0);
                self.expect("cuMemPoolImportFromShareableHandle", got, OK);
                let mut address = 0;
                let got = cudaMallocFromPoolAsync(&mut address, 8, imported, 0);
                self.expect("cudaMallocFromPoolAsync", got, INVALID_VALUE);
                self.expect("cuMemPoolDestroy", cuMemPoolDestroy(imported), OK);
                assert_eq!(close(descriptor), 0);
            }
            self.expect("cuMemPoolDestroy", cuMemPoolDestroy(pool), OK);
            self.expect("cuMemPoolDestroy", cuMemPoolDestroy(pool), INVALID_VALUE);
            for (address, _) in given {
                self.expect("cudaFreeAsync", cudaFreeAsync(address, 0), OK);
            }
        }
    }

    /// Tests that bytes copied to an array are read back from it.
    pub(crate) fn array(&mut self) {
        const BYTES: u64 = 1;
        let (mut array, mut texture) = (0, 0);
        let width = self.random.below(300);
        let descriptor = [width as u64, 0, BYTES | 1 << 32];
        // SAFETY: outputs, structures and ranges are valid.
        unsafe {
            let got = cuArrayCreate_v2(&mut array, &descriptor);
            self.expect("cuArrayCreate_v2", got, if width > 0 { OK } else { INVALID_VALUE });
            if width == 0 {
                return;
            }
            let mut told = [0; 3];
            self.expect("cuArrayGetDescriptor_v2", cuArrayGetDescriptor_v2(&mut told, array), OK);
            assert_eq!(told, descriptor, "seed {}, step {}", self.seed, self.step);
            let mut model = vec![None; width];
            for _ in 0..self.random.below(5) {
                let (offset, bytes) = (self.random.below(width + 2), self.random.below(width + 2));
                let inside = offset + bytes <= width;
                if inside {
                    let values: Vec<u8> = (0..bytes).map(|_| self.random.bits() as u8).collect();
                    self.expect("cuMemcpyHtoA_v2", cuMemcpyHtoA_v2(array, offset, values.as_ptr(), bytes), OK);
                    values.iter().enumerate().for_each(|(at, value)| model[offset + at] = Some(*value));
                } else {
                    let values = vec![0; bytes];
                    self.expect("cuMemcpyHtoA_v2", cuMemcpyHtoA_v2(array, offset, values.as_ptr(), bytes), INVALID_VALUE);
                }
            }
            let mut back = vec![0; width];
            self.expect("cuMemcpyAtoH_v2", cuMemcpyAtoH_v2(back.as_mut_ptr(), array, 0, width), OK);
            let wrong = model.iter().zip(&back).position(|(want, got)| want.is_some_and(|want| want != *got));
            assert!(wrong.is_none(), "seed {}, step {}: byte {wrong:?} of an array is wrong", self.seed, self.step);
            // A texture over the array, with unnormalised values.
            let (mut resource, mut state) = ([0; 18], [0; 26]);
            (resource[1], state[4]) = (array, 1);
            self.expect("cuTexObjectCreate", cuTexObjectCreate(&mut texture, &resource, &state, 0), OK);
            self.expect("cuTexObjectDestroy", cuTexObjectDestroy(texture), OK);
            self.expect("cuArrayDestroy", cuArrayDestroy(array), OK);
            self.expect("cuArrayDestroy", cuArrayDestroy(array), INVALID_HANDLE);
        }
    }

    /// Tests a batch of copies with independent destinations. If one copy is invalid, none is done.
    pub(crate) fn batch(&mut self) {
        let mut copies: Vec<(u64, u64, usize)> = vec![];
        for _ in 0..self.random.below(4) {
            let Some(copy) = self.good_copy() else { continue };
            let apart = |a: (u64, usize), b: (u64, usize)| a.0 + a.1 as u64 <= b.0 || b.0 + b.1 as u64 <= a.0;
            let free = copies.iter().all(|other| {
                let ours = [(copy.0, copy.2), (copy.1, copy.2)];
                apart(ours[0], (other.0, other.2)) && apart(ours[0], (other.1, other.2)) && apart(ours[1], (other.0, other.2))
            });
            if free {
                copies.push(copy);
            }
        }
        let Some(stream) = self.streams.first().copied() else { return };
        let spoiled = self.random.one_in(4).then(|| self.random.below(copies.len().max(1))).filter(|index| *index < copies.len());
        let (to, from): (Vec<u64>, Vec<u64>) = copies.iter().map(|copy| (copy.0, copy.1)).unzip();
        let sizes: Vec<usize> =
            copies.iter().enumerate().map(|(index, copy)| if spoiled == Some(index) { usize::MAX / 2 } else { copy.2 }).collect();
        let order = 1 + self.random.below(3) as u32;
        let (attributes, firsts, mut failed) = ([order, 0, 0, 0, 0, 0], [0], 7);
        // SAFETY: the lists are valid, and the library checks the ranges.
        let got = unsafe {
            cuMemcpyBatchAsync(
                to.as_ptr(),
                from.as_ptr(),
                sizes.as_ptr(),
                sizes.len(),
                &attributes,
                firsts.as_ptr(),
                1,
                &mut failed,
                stream,
            )
        };
        let want = if copies.is_empty() || spoiled.is_some() { INVALID_VALUE } else { OK };
        self.expect("cuMemcpyBatchAsync", got, want);
        if let Some(index) = spoiled {
            assert_eq!(failed, index, "seed {}, step {}: which copy is wrong", self.seed, self.step);
        }
        self.wait(want == OK, stream);
        if want == OK {
            copies.into_iter().for_each(|(to, from, bytes)| self.apply(to, from, bytes));
        }
    }
}
