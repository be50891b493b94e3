//! Settings of a context that change the kernels of its plans.

/// Use of chains by the planner. Chains exist only on machines that keep rows in the cache of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Chains {
    /// Every kernel writes its results to memory.
    Never,
    /// Kernels are joined if the cost model predicts that this is cheaper.
    #[default]
    Cheaper,
    /// Kernels are joined wherever it is possible.
    Always,
}

/// Settings of the kernels of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct KernelSettings {
    /// Rule for joining kernels into chains.
    pub(crate) chains: Chains,
    /// True if each thread computes one position on machines with many threads.
    pub(crate) single_positions: bool,
}
