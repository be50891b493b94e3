//! Kernels in strips: each thread computes several rows, which share what they read and compute.

use crate::emit::fused::{FusedTraces, PatchTrace};
use crate::emit::patch::Patch;
use crate::expr::error::Result;
use crate::limits::{MAX_EDGE, MAX_STRIP};
use crate::plan::cut::Cut;
use crate::plan::group::{Group, GroupFunction, GroupKind};
use crate::plan::kernel::{Kernel, Planner};
use crate::plan::pattern::{KernelProgram, StencilForm};
use crate::tape::entries::Tape;
use broadloom_skeleton::{Stencil, cost};

/// Returns the kernel of a group in strips, or `None` if rows share too little.
pub(crate) fn kernel(planner: &Planner<'_>, group: &Group, functions: &[GroupFunction<'_>]) -> Result<Option<Kernel>> {
    let (tape, library) = (planner.tape, planner.library);
    let Some((fused, rows)) = strip(tape, planner.cut, group, functions, planner.costs.lanes_share()) else { return Ok(None) };
    let cost = fused.cost() / u64::from(rows);
    let form = StencilForm { patch: Patch { rows, ..Patch::SINGLE }, reach: fused.reach(), live: fused.live(1) };
    let patches = planner.patchable(group, functions, Some((&fused, rows)));
    let (mut codes, bounds) = fused.strip_codes(tape, planner.costs.side_by_side())?;
    let sink = planner.sink(group)?;
    let ready = KernelProgram::strips(tape, group, &codes, sink.as_ref(), form, library)?;
    codes.extend(sink);
    Ok(Some(Kernel { patches, ..Kernel::new(group.clone(), codes, bounds, cost, ready) }))
}

/// Returns the traces of a kernel in strips, and the number of rows of a strip, if rows share enough reads
/// and operations. On a CPU, lanes may exchange values too, if that pays. There, rows that share only reads
/// are not joined: the cache holds the shared elements, and registers do not. A core also prefetches few rows
/// at a time.
fn strip<'k>(
    tape: &'k Tape,
    cut: &'k Cut,
    group: &Group,
    parts: &[GroupFunction<'_>],
    cpu: bool,
) -> Option<(FusedTraces<'k>, u32)> {
    let [part] = parts else { return None };
    let class = tape.shapes[part.shape as usize];
    if part.line
        || !class.rows
        || !class.tall
        || class.length.is_some()
        || !group.traps.is_empty()
        || tape.kernels.single_positions && !cpu
    {
        return None;
    }
    let folds = class.rank > 2 && group.reduced(tape) == Some(&[0]);
    let roots = match group.feeds.as_slice() {
        [feed] if group.kind == GroupKind::Map || folds => group.roots_of(feed),
        _ => return None,
    };
    // The highest strips that pay, with the cost of a position in hundredths.
    let highest = |sliding: &'k [bool]| {
        Stencil::HEIGHTS.iter().find_map(|rows| {
            let fused = FusedTraces::strip(tape, &cut.kept, sliding, roots, class.rank.into(), *rows)?;
            let (before, behind) = fused.reach();
            let lanes = 32u64.checked_sub((before + behind).into()).filter(|lanes| *lanes >= 16)?;
            let cost = cost::strip_cost(fused.cost(), *rows, lanes);
            let pays = cost::strip_pays(cost, part.fused.cost()) && fused.items() <= MAX_STRIP;
            pays.then_some((fused, *rows, cost))
        })
    };
    let alone = highest(&cut.sliding);
    let is_map = group.kind == GroupKind::Map;
    let shared = if cpu && is_map { highest(&cut.near) } else { None };
    let ((fused, rows, _), sliding) = match (alone, shared) {
        (Some(alone), Some(shared)) if cost::SHARED_STRIP_GAIN.pays(shared.2, alone.2) && !shared.0.chooses() => {
            (shared, &cut.near)
        }
        (None, Some(shared)) if !shared.0.chooses() => (shared, &cut.near),
        (alone, _) => (alone?, &cut.sliding),
    };
    if cpu && is_map && !fused.calls(tape) {
        let one = FusedTraces::strip(tape, &cut.kept, sliding, roots, class.rank.into(), 1)?;
        if !cost::STRIP_COMPUTATION_GAIN.pays(fused.computing(), one.computing() * u64::from(rows)) {
            return Some((one, 1));
        }
    }
    if cpu && is_map && rows > 1 && fused.reach() == (0, 0) && fused.edge_items() > MAX_EDGE {
        let patch = Patch { rows, ..Patch::SINGLE };
        let of = PatchTrace { alone: true, ..PatchTrace::of(patch) };
        return Some((FusedTraces::patch(tape, &cut.kept, sliding, roots, class.rank.into(), of)?, rows));
    }
    Some((fused, rows))
}
