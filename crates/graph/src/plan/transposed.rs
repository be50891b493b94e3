//! Kernels that transpose: they read along another axis than they write, and exchange tiles in shared memory.

use crate::expr::error::Result;
use crate::plan::group::{Group, GroupFunction, GroupKind};
use crate::plan::kernel::{Kernel, Planner};
use crate::plan::pattern::KernelProgram;

/// Returns the axis along which a function reads, and its reads; `None` if it does not transpose.
pub(crate) fn reads(planner: &Planner<'_>, group: &Group, functions: &[GroupFunction<'_>]) -> Option<(u8, Vec<u32>)> {
    let [function] = functions else { return None };
    let class = planner.tape.shapes[function.shape as usize];
    let is_possible = group.kind == GroupKind::Map && class.rows && class.length.is_none() && group.traps.is_empty();
    if is_possible { function.fused.transposed(planner.tape) } else { None }
}

/// Returns the kernel of a group whose function reads along an axis.
pub(crate) fn kernel(
    planner: &Planner<'_>,
    group: &Group,
    functions: Vec<GroupFunction<'_>>,
    axis: u8,
    reads: Vec<u32>,
) -> Result<Kernel> {
    let group = Group { kind: GroupKind::Transpose(axis), ..group.clone() };
    let (mut codes, mut sink) = (vec![], None);
    for function in functions {
        let [read, rest] = function.fused.code_transposed(planner.tape, planner.costs.side_by_side(), axis, reads.clone())?;
        codes.push((read, false));
        sink = Some(rest);
    }
    let ready = KernelProgram::new(planner.tape, &group, &codes, sink.as_ref(), false, planner.library)?;
    Ok(Kernel::of_functions(group, codes, sink, ready))
}
