//! Configuration of the generated kernels.

/// Configuration of the generated kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Number of statements at the top level of a kernel.
    pub statements: usize,
    /// Maximum nesting of loops and branches.
    pub depth: usize,
    /// Maximum threads per block.
    pub threads: u32,
    /// Maximum blocks.
    pub blocks: u32,
    /// Target: forms of later ones are not drawn.
    pub sm: u16,
    /// Version of PTX: forms of later ones are not drawn.
    pub isa: (u8, u8),
    /// True to draw approximate instructions too. Only round trips use that.
    pub approximate: bool,
    /// True to restrict kernels to what the manual defines and NVIDIA's machines follow, so that they can be
    /// compared with a GPU. The following are then omitted:
    ///
    /// - payloads of NaNs in `f32` and `f64` (a NaN result is made canonical);
    /// - sums of doubles in memory;
    /// - conversions to `tf32`, to halves with `.ftz` and to doubles with `.sat`;
    /// - shifts of 16 bits, bit fields of 64 bits (machines do not truncate positions to 8 bits), absolute
    ///   values of 16 bits, comparisons with half results, `fns`;
    /// - scalar video instructions (the assembler's sequences for them deviate from the manual);
    /// - guards on instructions that the assembler turns into several;
    /// - warp masks that are computed on only one side of a branch;
    /// - known positions of signed bit fields from 32 on;
    /// - masks of all lanes that the assembler knows to be that;
    /// - branches on predicates that are computed with;
    /// - generic addresses of local memory where lanes have diverged;
    /// - functions that call others or themselves.
    ///
    /// `docs/CUDA.md` tells which of 2,000 kernels showed what: of the last five, one, two, three, two and
    /// ten.
    pub portable: bool,
    /// True to make visible which NaN an instruction on `f64` gave, which the manual does not define.
    /// Otherwise such a result is made canonical, and no doubles are summed in memory.
    pub nan_payloads: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            statements: 24,
            depth: 3,
            threads: 96,
            blocks: 3,
            sm: 90,
            isa: (8, 5),
            approximate: false,
            portable: true,
            nan_payloads: false,
        }
    }
}
