//! Plans: the launches for a tape, their order and their memory.
//!
//! A plan is data. Tests can read its [summary](crate::plan::summary): the number of kernels and bytes, the
//! reason for each cut. It holds nothing of a single run, so one plan serves all expressions with the same
//! [tape](crate::tape::entries), whatever their sizes and scalars.

use crate::emit::code::{Code, KernelScalar, interior};
use crate::expr::error::Result;
use crate::expr::shape::Shape;
use crate::plan::assemble::{AssembledConcatenation, assemble};
use crate::plan::cut::Reason;
use crate::plan::group::GroupKind;
use crate::plan::kernel::{InteriorKernel, Kernel, Planner};
use crate::plan::order::order;
use crate::plan::patches::PatchKernel;
use crate::plan::pattern::KernelProgram;
use crate::plan::{chain, kinds, rows};
use crate::tape::bindings::Bindings;
use crate::tape::entries::{Id, Kind, ShapeId, Tape};
use broadloom_skeleton::cost::{self, Costs};
use broadloom_skeleton::{Library, LoadedProgram};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

/// The kernels of an expression, in order.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The tape by which the plan is looked up.
    pub(crate) key: Tape,
    /// The tape that was planned: outputs are arrays that kernels write.
    pub(crate) tape: Tape,
    /// Outputs of the key that are assembled from outputs of the planned tape.
    pub(crate) assembled: Vec<AssembledConcatenation>,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) reasons: HashMap<Id, Reason>,
    /// Nodes that are in memory when the kernels that read them run.
    kept: Vec<bool>,
    library: Library,
}

impl Plan {
    /// Makes the plan of a tape for a machine. Kernels are taken from the library.
    pub(crate) fn new(key: Tape, bindings: &Bindings, library: &Library) -> Result<Plan> {
        let machine = library.device().machine();
        let (tape, assembled) = assemble(&key);
        let cut = rows::joined(&tape, chain::kernels(&tape, bindings, machine), bindings, machine);
        let planner = Planner { tape: &tape, cut: &cut, costs: Costs::of(machine), library };
        let order = order(&tape, &cut.groups, bindings);
        let kernels = order.into_iter().map(|index| kinds::kernel(&planner, &cut.groups[index])).collect::<Result<_>>()?;
        let (kept, reasons, library) = (cut.kept, cut.reasons, library.clone());
        let mut plan = Plan { key, tape, assembled, kernels, reasons, kept, library };
        plan.load_all(bindings)?;
        plan.lifetimes();
        Ok(plan)
    }

    /// Loads the programs of all kernels side by side. A driver compiles a program while it loads it.
    fn load_all(&self, bindings: &Bindings) -> Result<()> {
        let threads = available_parallelism().map_or(1, NonZero::get).min(self.kernels.len());
        let next = AtomicUsize::new(0);
        let load = || {
            while let Some(kernel) = self.kernels.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.loaded(kernel, bindings)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(load)).collect();
            let own = load();
            let others: Vec<Result<()>> =
                others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic))).collect();
            others.into_iter().fold(own, Result::and)
        })
    }

    /// Sets when memory is free, and which results can reuse the memory of an input.
    fn lifetimes(&mut self) {
        let results: HashSet<Id> = self.tape.outputs.iter().map(|output| self.tape.behind(*output)).collect();
        let mut seen: HashSet<Id> = HashSet::new();
        for kernel in self.kernels.iter_mut().rev() {
            let own = kernel.group.reads.iter().chain(&kernel.group.roots);
            for id in own {
                let kept = !matches!(self.tape.entry(*id).kind, Kind::Leaf(_)) && !self.tape.is_trap(*id);
                if seen.insert(*id) && kept && !results.contains(id) {
                    kernel.dead.push(*id);
                }
            }
        }
        for kernel in &mut self.kernels {
            let mut taken: Vec<Id> = vec![];
            for root in &kernel.group.roots {
                // The same thread reads each element before it writes it.
                let aligned = kernel.codes.iter().flat_map(|code| code.inputs.iter().zip(&code.aligned));
                let candidate = aligned.clone().find(|(input, aligned)| {
                    let (from, to) = (self.tape.entry(**input), self.tape.entry(*root));
                    **aligned
                        // Kernels in patches read their inputs as constant memory.
                        && kernel.patches.is_none()
                        && kernel.group.kind == GroupKind::Map
                        && kernel.dead.contains(input)
                        && !taken.contains(input)
                        && from.ty.bytes() == to.ty.bytes()
                        && from.shape == to.shape
                });
                let found = candidate.map(|(input, _)| *input);
                taken.extend(found);
                kernel.reused.push(found);
            }
        }
    }

    /// Returns the functions and the program of a kernel for these sizes.
    pub(crate) fn ready<'k>(
        &self,
        kernel: &'k Kernel,
        bindings: &Bindings,
    ) -> Result<(&'k [Code], &'k [KernelScalar], &'k KernelProgram)> {
        let sizes = self.sizes(kernel, bindings);
        if let Some(patched) = self.patched(kernel, &sizes)? {
            return Ok((&patched.codes, &patched.bounds, &patched.ready));
        }
        let holds = |inside: &InteriorKernel| {
            (0..).zip(&sizes).all(|(axis, size)| {
                let (first, end) = interior(axis, &inside.conditions, bindings);
                first == 0 && end >= 0 && end as u64 >= *size
            })
        };
        Ok(match kernel.inside.as_ref().filter(|inside| holds(inside)) {
            Some(inside) => (&inside.codes, &[], &inside.ready),
            None => (&kernel.codes, &kernel.bounds, &kernel.ready),
        })
    }

    /// Returns the best patches of a kernel that these sizes have room for.
    pub(crate) fn patched<'k>(&self, kernel: &'k Kernel, sizes: &[u64]) -> Result<Option<&'k PatchKernel>> {
        let Some(patches) = &kernel.patches else { return Ok(None) };
        let all = patches.of_sizes(&self.tape, &self.kept, &kernel.group, sizes, &self.library)?;
        Ok(all.iter().find(|patched| patched.patch.fits(sizes)))
    }

    /// Returns the program of a kernel for these sizes.
    pub(crate) fn loaded(&self, kernel: &Kernel, bindings: &Bindings) -> Result<LoadedProgram> {
        let count = |shape: ShapeId| bindings.shapes[shape as usize].count();
        let read: usize = kernel.group.reads.iter().map(|read| count(self.tape.entry(*read).shape)).sum();
        let shares = cost::shares_reads(count(kernel.group.domain), read);
        self.ready(kernel, bindings)?.2.loaded(&self.sizes(kernel, bindings), shares)
    }

    /// Returns the sizes of a call of a kernel.
    pub(crate) fn sizes(&self, kernel: &Kernel, bindings: &Bindings) -> Vec<u64> {
        let shape_of = |id: Id| &bindings.shapes[self.tape.entry(id).shape as usize];
        let extents = |shape: &Shape| shape.extents().iter().map(|extent| *extent as u64).collect::<Vec<u64>>();
        let domain = &bindings.shapes[kernel.group.domain as usize];
        let mut sizes = if kernel.group.line { vec![domain.count() as u64] } else { extents(domain) };
        match (&kernel.group.kind, kernel.group.operation(&self.tape), kernel.group.combined.first()) {
            (GroupKind::Pattern, Some(operation), Some(first)) => {
                let inputs = &self.tape.entry(*first).inputs;
                let inputs: SmallVec<[&Shape; 4]> = inputs.iter().map(|input| shape_of(*input)).collect();
                sizes = operation.sizes(&sizes, &inputs, shape_of(*first));
            }
            (GroupKind::Transpose(axis), ..) => {
                let last = sizes.len() - 1;
                sizes.swap(usize::from(*axis), last);
            }
            (GroupKind::Map | GroupKind::Pattern | GroupKind::Chain | GroupKind::Rows, ..) => {}
        }
        sizes
    }
}
