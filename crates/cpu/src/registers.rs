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

#[cfg(test)]
mod tests {
    use super::estimate;

    fn of(text: &str) -> u32 {
        let mut sources = broadloom_diag::Sources::new();
        let id = sources.add("k.ptx", format!(".version 7.0\n.target sm_75\n.address_size 64\n{text}"));
        let module = broadloom_ptx::parse(&sources, id).and_then(broadloom_ptx::verify).unwrap();
        let kernel = module.kernels().next().unwrap().0;
        estimate(&module, kernel)
    }

    /// Returns a kernel that loads `count` 64-bit numbers before it stores the first, with a directive.
    fn kernel(count: usize, directive: &str) -> String {
        let lines = |line: &dyn Fn(usize) -> String| (0..count).map(line).collect::<String>();
        let loads = lines(&|at| format!("ld.global.u64 %d{at}, [%a+{}];\n", 8 * at));
        let stores = lines(&|at| format!("st.global.u64 [%a+{}], %d{at};\n", 8 * (count - at)));
        format!(
            ".entry k(.param .u64 p) {directive} {{ .reg .u64 %a, %d<{count}>; ld.param.u64 %a, [p];\n{loads}{stores} ret; }}"
        )
    }

    #[test]
    fn words_that_are_live_at_once_are_counted() {
        assert_eq!(of(".entry k() { ret; }"), 8);
        assert_eq!(of(&kernel(20, "")), 42);
        assert_eq!(of(&kernel(20, ".maxnreg 32")), 32);
        assert_eq!(of(&kernel(20, ".maxnreg 64")), 42);
        assert_eq!(of(&kernel(200, "")), 255);
        // The maximum of a kernel and its callees.
        let called = kernel(20, "").replace(".entry k", ".func f").replace("ld.param.u64 %a, [p]", "mov.u64 %a, 0");
        assert_eq!(of(&format!("{}\n.entry k() {{ .param .u64 q; call f, (q); ret; }}", called)), 42);
    }
}
