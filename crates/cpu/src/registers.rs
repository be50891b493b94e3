//! Estimate of the registers that a GPU would give to each thread of a kernel.
//!
//! Programs query it to choose the shape of their blocks. It is the maximum number of 32-bit words that are
//! live at once in the kernel, or in a function that it reaches. Predicates have separate registers. NVIDIA's
//! assembler reorders instructions, so its number differs.

use broadloom_analysis::{Cfg, Liveness};
use broadloom_ptx::{Func, Function, Module, Reach, Type};

/// Minimum number of registers. GPUs allocate registers in groups, and this is the smallest.
const FEWEST: u32 = 8;
/// Maximum number of registers that an instruction can name.
const MOST: u32 = 255;

/// Returns the estimate. `.maxnreg` limits it: the assembler would spill.
pub(crate) fn estimate(module: &Module, kernel: Func) -> u32 {
    let reached = Reach::of(module, kernel).functions;
    let live = reached.iter().map(|func| of_function(&module.functions[*func])).max().unwrap_or(0);
    let limit = module.functions[kernel].directive("maxnreg").and_then(|numbers| numbers.first().copied()).unwrap_or(MOST);
    live.clamp(FEWEST, MOST).min(limit.max(FEWEST))
}

fn of_function(function: &Function) -> u32 {
    let Some(cfg) = Cfg::new(function) else { return 0 };
    let liveness = Liveness::new(function, &cfg);
    liveness.most_live(function, |reg| match function.regs[reg].ty {
        Type::Pred => 0,
        ty => ty.bits().div_ceil(32),
    })
}
