//! Choice of the kind of a kernel.
//!
//! | kind | file | kernels |
//! | --- | --- | --- |
//! | chain | [`chain_kernel`] | several functions, which keep rows in rings |
//! | rows | [`row_kernel`] | reductions along rows, and functions that use their results |
//! | strips | [`strips`] | a function of neighbourhoods, whose threads have strips of rows |
//! | transposition | [`transposed`] | a function that reads along another axis than it writes |
//! | positions | [`positions`] | any other function, or a pattern |
//!
//! Kernels of strips and of positions can have variants in [`patches`](crate::plan::patches), for sizes that
//! have room for them.

use crate::expr::error::Result;
use crate::plan::group::{Group, GroupKind};
use crate::plan::kernel::{Kernel, Planner, too_large};
use crate::plan::{chain_kernel, positions, row_kernel, strips, transposed};

/// Returns the kernel of a group.
pub(crate) fn kernel(planner: &Planner<'_>, group: &Group) -> Result<Kernel> {
    if group.kind == GroupKind::Chain {
        return chain_kernel::kernel(planner, group);
    }
    if group.kind == GroupKind::Rows {
        return row_kernel::kernel(planner, group);
    }
    let functions = group.traced(planner.tape, &planner.cut.kept).ok_or_else(too_large)?;
    if let Some(kernel) = strips::kernel(planner, group, &functions)? {
        return Ok(kernel);
    }
    match transposed::reads(planner, group, &functions) {
        Some((axis, reads)) => transposed::kernel(planner, group, functions, axis, reads),
        None => positions::kernel(planner, group, functions),
    }
}
