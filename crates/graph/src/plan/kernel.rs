//! Kernels of a plan.

use crate::emit::code::{Code, KernelScalar};
use crate::emit::fused::FusedTraces;
use crate::emit::trace::ExtentCondition;
use crate::expr::error::{Error, Result};
use crate::plan::cut::Cut;
use crate::plan::group::{Group, GroupFunction};
use crate::plan::patches::{PatchKernels, Patches};
use crate::plan::pattern::KernelProgram;
use crate::tape::entries::{Id, Tape};
use broadloom_scalar::Type;
use broadloom_skeleton::Library;
use broadloom_skeleton::cost::Costs;
use std::sync::Arc;

/// Kernel of a plan.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) group: Group,
    /// Functions that feed it, or the functions of the interior and of the edges of strips. The last one is
    /// the function of its results, if they are not just stored.
    pub(crate) codes: Vec<Code>,
    /// Scalars before those of the codes.
    pub(crate) bounds: Vec<KernelScalar>,
    /// Cost of a position, in simple operations.
    pub(crate) cost: u64,
    pub(crate) ready: KernelProgram,
    /// The kernel without boundary rules.
    pub(crate) inside: Option<InteriorKernel>,
    /// The kernel in patches, for sizes that have room for them.
    pub(crate) patches: Option<PatchKernels>,
    /// Nodes whose memory is free after it.
    pub(crate) dead: Vec<Id>,
    /// For each result, an input whose memory it takes over.
    pub(crate) reused: Vec<Option<Id>>,
}

/// Kernel for sizes at which no position is near an edge, so no lane tests for edges.
#[derive(Debug)]
pub(crate) struct InteriorKernel {
    pub(crate) codes: Vec<Code>,
    pub(crate) ready: KernelProgram,
    /// Conditions that have to hold at all positions.
    pub(crate) conditions: Arc<Vec<ExtentCondition>>,
}

impl Kernel {
    /// Creates a kernel that has no variants for the interior or for patches.
    pub(crate) fn new(group: Group, codes: Vec<Code>, bounds: Vec<KernelScalar>, cost: u64, ready: KernelProgram) -> Kernel {
        let (inside, patches, dead, reused) = (None, None, vec![], vec![]);
        Kernel { group, codes, bounds, cost, ready, inside, patches, dead, reused }
    }

    /// Creates a kernel from the functions that feed it and the function of its results. A flag of each is
    /// true if its domain is one line.
    pub(crate) fn of_functions(group: Group, feeds: Vec<(Code, bool)>, sink: Option<Code>, ready: KernelProgram) -> Kernel {
        let codes: Vec<Code> = feeds.into_iter().map(|(code, _)| code).chain(sink).collect();
        let cost = codes.iter().map(|code| code.cost).sum();
        Kernel::new(group, codes, vec![], cost, ready)
    }
}

/// Planner of single kernels.
pub(crate) struct Planner<'p> {
    pub(crate) tape: &'p Tape,
    pub(crate) cut: &'p Cut,
    pub(crate) costs: Costs<'p>,
    pub(crate) library: &'p Library,
}

/// Returns the error of a kernel that is larger than its group should be.
pub(crate) fn too_large() -> Error {
    Error::Plan { what: "a kernel".into(), reason: "it does not fit".into() }
}

impl Planner<'_> {
    /// Emits a function of a kernel that takes values of these types.
    pub(crate) fn code(&self, fused: FusedTraces<'_>, name: &str, values: &[Type]) -> Result<Code> {
        fused.code(self.tape, name, self.costs.side_by_side(), values)
    }

    /// Returns the function of the results of a pattern; `None` if they are just stored.
    pub(crate) fn sink(&self, group: &Group) -> Result<Option<Code>> {
        if group.is_stored(self.tape) {
            return Ok(None);
        }
        let fused = group.tail(self.tape, &self.cut.kept).ok_or_else(too_large)?;
        Ok(Some(self.code(fused, "tail", &group.values(self.tape))?))
    }

    /// Returns the variants of a kernel in patches. `strip`: its traces in strips of rows, if it has them.
    pub(crate) fn patchable(
        &self,
        group: &Group,
        functions: &[GroupFunction<'_>],
        strip: Option<(&FusedTraces<'_>, u32)>,
    ) -> Option<PatchKernels> {
        let [function] = functions else { return None };
        let patches = Patches::of(self.tape, &self.cut.kept, group, function, self.library.device().machine())?;
        patches.patchable(strip)
    }
}
