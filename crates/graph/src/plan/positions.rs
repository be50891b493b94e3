//! Kernels whose threads compute single positions: functions of every position, and patterns.

use crate::expr::error::Result;
use crate::limits::MAX_REPEATED;
use crate::plan::group::{Group, GroupFunction, GroupKind};
use crate::plan::kernel::{InteriorKernel, Kernel, Planner};
use crate::plan::pattern::KernelProgram;
use broadloom_scalar::Type;
use smallvec::SmallVec;

/// Returns the kernel of a group.
pub(crate) fn kernel(planner: &Planner<'_>, group: &Group, functions: Vec<GroupFunction<'_>>) -> Result<Kernel> {
    let (tape, library) = (planner.tape, planner.library);
    let patches = planner.patchable(group, &functions, None);
    // True if the function may be repeated for several rows of results.
    let repeats = functions.iter().all(|function| function.fused.items() <= MAX_REPEATED);
    let (mut codes, mut interior) = (vec![], None);
    for (mut function, feed) in functions.into_iter().zip(&group.feeds) {
        let given: SmallVec<[Type; 1]> = feed.given.iter().map(|node| tape.entry(*node).ty).collect();
        if group.reduced(tape).is_some() && tape.shapes[function.shape as usize].length.is_none() {
            let code = function.fused.inner_code(tape, planner.costs.side_by_side())?;
            interior = code.map(|(code, conditions)| ((code, function.line), conditions));
        }
        function.fused.along_last = group.kind == GroupKind::Map;
        codes.push((planner.code(function.fused, "fused", &given)?, function.line));
    }
    let sink = planner.sink(group)?;
    let ready = KernelProgram::new(tape, group, &codes, sink.as_ref(), repeats, library)?;
    let inside = match interior {
        None => None,
        Some((code, conditions)) => {
            let code = [code];
            let ready = KernelProgram::new(tape, group, &code, sink.as_ref(), repeats, library)?;
            let codes = code.into_iter().map(|(code, _)| code).chain(sink.clone()).collect();
            Some(InteriorKernel { codes, ready, conditions })
        }
    };
    Ok(Kernel { inside, patches, ..Kernel::of_functions(group.clone(), codes, sink, ready) })
}
