//! Plans fitted to sizes: the values that a run needs once all extents are known.
//!
//! A plan serves all sizes; most loops have one. Grids, byte counts of results, bounds of interiors and
//! parameter blocks depend on the sizes. They are computed once for each set of sizes, and the last few sets
//! are cached with the plan. A run then allocates memory, writes addresses and scalars, and launches. Its
//! cost does not depend on the number of operations in the expression.

use crate::emit::code::KernelScalar;
use crate::expr::error::{Error, Result};
use crate::expr::shape::Shape;
use crate::limits::MAX_FITS;
use crate::plan::group::GroupKind;
use crate::plan::kernels::Plan;
use crate::plan::summary::Summary;
use crate::tape::bindings::Bindings;
use crate::tape::entries::{Id, Kind, Tape};
use broadloom_device::{Buffer, Device, Stream};
use broadloom_scalar::{Element, Lanes, Literal};
use broadloom_skeleton::{Call, FittedProgram};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Plan with the sizes that it was fitted to last.
#[derive(Debug)]
pub(crate) struct CachedPlan {
    plan: Plan,
    fits: Mutex<Vec<Arc<FittedPlan>>>,
}

/// Scalars of the kernels of a plan.
pub(crate) type Scalars = Vec<SmallVec<[Literal; 8]>>;

/// Plan fitted to known sizes.
#[derive(Debug)]
pub(crate) struct FittedPlan {
    shapes: Vec<Shape>,
    integers: Vec<i64>,
    kernels: Vec<FittedKernel>,
    /// Number of nodes in memory that the plan makes: those written by kernels and the assembled ones.
    made: usize,
    /// Number and byte count of each assembled node.
    wholes: Vec<(u32, usize)>,
    /// Total size in bytes of the temporaries that must be zero. One fill clears them for all kernels.
    zeros: usize,
    results: Vec<NodeMemory>,
}

#[derive(Clone, Copy, Debug)]
enum NodeMemory {
    /// Slot of the given buffers.
    Input(u32),
    /// Number of a node that a kernel writes.
    Written(u32),
}

#[derive(Debug)]
struct FittedKernel {
    /// The launches; `None` if there are no positions.
    work: Option<FittedProgram>,
    /// Offset and byte count of its part of the zeroed memory; `None` if it needs none, or needs much.
    zeros: Option<(usize, usize)>,
    inputs: Vec<NodeMemory>,
    /// The memory of each result: an input that it overwrites, a part of an assembled node, or new memory.
    outputs: Vec<Output>,
    /// Its scalars, and those among them that are lanes of given values: number, slot, lane.
    scalars: SmallVec<[Literal; 8]>,
    lanes: Vec<(u32, u32, u8)>,
    /// Nodes whose memory is free after the kernel.
    dead: Vec<u32>,
}

#[derive(Debug)]
struct Output {
    number: u32,
    over: Option<NodeMemory>,
    bytes: usize,
    /// The assembled node that contains it: its index in the list, and the first byte.
    within: Option<(usize, usize)>,
}

/// Threshold in bytes of zeroed memory. From it on, a kernel has its own zeroed memory while it runs.
const MUCH: usize = 1 << 18;

/// Scalar of a kernel that is a lane of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneOf {
    pub(crate) kernel: usize,
    pub(crate) scalar: usize,
    pub(crate) slot: u32,
    pub(crate) lane: u8,
}

fn missing(id: Id) -> Error {
    Error::Plan { what: "a run".into(), reason: format!("node {id} is not in memory") }
}

impl CachedPlan {
    pub(crate) fn new(plan: Plan) -> CachedPlan {
        CachedPlan { plan, fits: Mutex::default() }
    }

    /// Returns the tape that the plan is found by.
    pub(crate) fn key(&self) -> &Tape {
        &self.plan.key
    }

    /// Returns the plan as data, for these sizes.
    pub(crate) fn summary(&self, bindings: &Bindings) -> Result<Summary> {
        self.plan.summary(bindings)
    }

    /// Returns the plan for the sizes of a run.
    pub(crate) fn fitted(&self, bindings: &Bindings) -> Result<Arc<FittedPlan>> {
        let fits = |fitted: &&Arc<FittedPlan>| fitted.shapes == bindings.shapes && fitted.integers == bindings.integers;
        if let Some(known) = self.fits.lock().unwrap_or_else(PoisonError::into_inner).iter().find(fits) {
            return Ok(known.clone());
        }
        // Fitting happens outside the lock: another way to spread threads may have to be compiled.
        let fitted = Arc::new(FittedPlan::new(&self.plan, bindings)?);
        let mut known = self.fits.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_FITS {
            known.remove(0);
        }
        known.push(fitted.clone());
        Ok(fitted)
    }
}

impl FittedPlan {
    fn new(plan: &Plan, bindings: &Bindings) -> Result<FittedPlan> {
        let tape = &plan.tape;
        let index = if tape.wide { Element::I64 } else { Element::I32 };
        let mut made: HashMap<Id, u32> = HashMap::new();
        let find = |made: &HashMap<Id, u32>, id: Id| {
            // The memory of a trap is the word that it writes.
            let id = if tape.is_trap(id) { tape.entry(id).inputs[1] } else { id };
            match tape.entry(id).kind {
                Kind::Leaf(slot) => Ok(NodeMemory::Input(slot)),
                _ => made.get(&id).map(|number| NodeMemory::Written(*number)).ok_or_else(|| missing(id)),
            }
        };
        let bytes = |id: Id| {
            let entry = tape.entry(id);
            bindings.shapes[entry.shape as usize].count() * entry.ty.bytes() as usize
        };
        let mut pieces: HashMap<Id, (usize, usize)> = HashMap::new();
        for (number, assembled) in plan.assembled.iter().enumerate() {
            let mut first = 0;
            for part in &assembled.parts {
                pieces.insert(*part, (number, first));
                first += bytes(*part);
            }
        }
        let (mut kernels, mut all_zeros) = (vec![], 0);
        for kernel in &plan.kernels {
            let (codes, bounds, _) = plan.ready(kernel, bindings)?;
            let length = tape.shapes[kernel.group.domain as usize].length.filter(|_| kernel.group.kind == GroupKind::Map);
            let reads = codes.iter().flat_map(|code| &code.inputs).chain(&length);
            let inputs = reads.map(|input| find(&made, *input)).collect::<Result<Vec<NodeMemory>>>()?;
            let over = kernel.reused.iter().map(|input| input.map(|input| find(&made, input)).transpose());
            let over = over.collect::<Result<Vec<Option<NodeMemory>>>>()?;
            let mut outputs = vec![];
            for (root, over) in kernel.group.roots.iter().zip(over) {
                let number = made.len() as u32;
                made.insert(*root, number);
                let within = pieces.get(root).copied();
                outputs.push(Output { number, over: over.filter(|_| within.is_none()), bytes: bytes(*root), within });
            }
            let given = bounds.iter().chain(codes.iter().flat_map(|code| &code.scalars));
            let (mut scalars, mut lanes) = (SmallVec::new(), vec![]);
            for given in given {
                if let KernelScalar::Lane(slot, lane) = given {
                    lanes.push((scalars.len() as u32, *slot, *lane));
                }
                scalars.push(given.literal(index, bindings));
            }
            let sizes = plan.sizes(kernel, bindings);
            let work = match sizes.contains(&0) {
                true => None,
                false => Some(plan.loaded(kernel, bindings)?.fit(&sizes)?),
            };
            let bytes = work.as_ref().map_or(0, FittedProgram::zeroed_bytes);
            let zeros = (1..MUCH).contains(&bytes).then_some((all_zeros, bytes));
            all_zeros += zeros.map_or(0, |(_, bytes)| bytes);
            let dead = kernel.dead.iter().filter_map(|dead| made.get(dead).copied()).collect();
            kernels.push(FittedKernel { work, zeros, inputs, outputs, scalars, lanes, dead });
        }
        let mut wholes = vec![];
        for assembled in &plan.assembled {
            let number = made.len() as u32;
            made.insert(assembled.whole, number);
            wholes.push((number, bytes(assembled.whole)));
        }
        let results = plan.key.outputs.iter().map(|output| find(&made, plan.key.behind(*output))).collect::<Result<_>>()?;
        let (shapes, integers) = (bindings.shapes.clone(), bindings.integers.clone());
        Ok(FittedPlan { shapes, integers, kernels, made: made.len(), wholes, zeros: all_zeros, results })
    }

    /// Returns the scalars of all kernels for these values.
    pub(crate) fn scalars(&self, values: &[Lanes]) -> Scalars {
        let of = |kernel: &FittedKernel| {
            let mut scalars = kernel.scalars.clone();
            for (scalar, slot, lane) in &kernel.lanes {
                scalars[*scalar as usize] = values[*slot as usize][usize::from(*lane)];
            }
            scalars
        };
        self.kernels.iter().map(of).collect()
    }

    /// Returns the scalars that are lanes of values.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = LaneOf> {
        self.kernels.iter().enumerate().flat_map(|(kernel, own)| {
            own.lanes.iter().map(move |(scalar, slot, lane)| LaneOf {
                kernel,
                scalar: *scalar as usize,
                slot: *slot,
                lane: *lane,
            })
        })
    }

    /// Returns the number of kernels that are launched.
    pub(crate) fn launches(&self) -> u64 {
        self.kernels.iter().filter(|kernel| kernel.work.is_some()).count() as u64
    }

    /// Launches all kernels and returns the memory of the results. Does not wait.
    pub(crate) fn run(
        &self,
        device: &Device,
        buffers: &[Option<Buffer<u8>>],
        scalars: &Scalars,
        stream: Stream,
    ) -> Result<SmallVec<[Buffer<u8>; 2]>> {
        self.run_watched(device, buffers, scalars, stream, || Ok(()))
    }

    /// Launches all kernels like [`FittedPlan::run`]. Calls a function after each kernel of the plan is
    /// submitted to the device.
    pub(crate) fn run_watched(
        &self,
        device: &Device,
        buffers: &[Option<Buffer<u8>>],
        scalars: &Scalars,
        stream: Stream,
        mut given: impl FnMut() -> Result<()>,
    ) -> Result<SmallVec<[Buffer<u8>; 2]>> {
        type Buffers = SmallVec<[Buffer<u8>; 4]>;
        let mut made: SmallVec<[Option<Buffer<u8>>; 8]> = SmallVec::from_elem(None, self.made);
        let find = |made: &[Option<Buffer<u8>>], place: NodeMemory| match place {
            NodeMemory::Input(slot) => buffers[slot as usize].clone().ok_or_else(|| missing(slot)),
            NodeMemory::Written(number) => made[number as usize].clone().ok_or_else(|| missing(number)),
        };
        let zeros = match self.zeros {
            0 => None,
            bytes => {
                let zeros = device.allocate_behind::<u8>(stream, bytes)?;
                zeros.fill_bytes_in(stream, 0)?;
                Some(zeros)
            }
        };
        for (kernel, scalars) in self.kernels.iter().zip(scalars) {
            let mut outputs = Buffers::new();
            for output in &kernel.outputs {
                outputs.push(match (output.over, output.within) {
                    (Some(place), _) => find(&made, place)?,
                    (None, Some((whole, first))) => {
                        let (number, bytes) = self.wholes[whole];
                        if made[number as usize].is_none() {
                            made[number as usize] = Some(device.allocate_behind::<u8>(stream, bytes)?);
                        }
                        let whole = find(&made, NodeMemory::Written(number))?;
                        whole.slice(first, output.bytes).ok_or_else(|| missing(output.number))?
                    }
                    (None, None) => device.allocate_behind::<u8>(stream, output.bytes)?,
                });
            }
            if let Some(work) = &kernel.work {
                let inputs = kernel.inputs.iter().map(|input| find(&made, *input)).collect::<Result<Buffers>>()?;
                let call = Call { inputs: &inputs, outputs: &outputs, scalars, sizes: work.sizes(), stream };
                let zeros = kernel.zeros.and_then(|(start, bytes)| zeros.as_ref()?.slice(start, bytes));
                work.run_with(&call, zeros.as_ref())?;
            }
            given()?;
            for (output, buffer) in kernel.outputs.iter().zip(outputs) {
                made[output.number as usize] = Some(buffer);
            }
            for dead in &kernel.dead {
                made[*dead as usize] = None;
            }
        }
        self.results.iter().map(|place| find(&made, *place)).collect()
    }
}
