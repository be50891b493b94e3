//! Kernels: complete programs of a thread, launched over a grid.

use crate::body::Body;
use crate::declaration::ParameterDecl;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Facts about the launches of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LaunchBounds {
    /// Exact number of threads of a block.
    pub block: Option<[u32; 3]>,
    /// Maximum number of threads of a block, if the exact number is unknown.
    pub max_threads: Option<u32>,
    /// Minimum number of blocks that a multiprocessor should hold.
    pub min_blocks: Option<u32>,
    /// Maximum number of blocks of the grid in each direction.
    pub max_grid: Option<[u32; 3]>,
}

impl LaunchBounds {
    /// Returns bounds for one-dimensional blocks of exactly this number of threads.
    pub fn block(threads: u32) -> LaunchBounds {
        LaunchBounds { block: Some([threads, 1, 1]), ..LaunchBounds::default() }
    }
}

/// A kernel: parameters, code, and facts about its launches. It is cheap to clone, and compared and hashed by
/// value.
#[derive(Clone)]
pub struct Kernel(Arc<KernelData>);

#[derive(PartialEq, Eq)]
struct KernelData {
    hash: u64,
    name: String,
    parameters: Vec<ParameterDecl>,
    bounds: LaunchBounds,
    body: Body,
}

impl Kernel {
    pub(crate) fn new(name: String, parameters: Vec<ParameterDecl>, bounds: LaunchBounds, body: Body) -> Kernel {
        let mut hasher = DefaultHasher::new();
        parameters.iter().for_each(|parameter| (parameter.ty, parameter.kind).hash(&mut hasher));
        (&name, &bounds, &body).hash(&mut hasher);
        Kernel(Arc::new(KernelData { hash: hasher.finish(), name, parameters, bounds, body }))
    }

    /// Returns the name of the entry in PTX.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the declarations of the parameters, in order.
    pub fn parameters(&self) -> &[ParameterDecl] {
        &self.0.parameters
    }

    /// Returns the facts about its launches.
    pub fn bounds(&self) -> &LaunchBounds {
        &self.0.bounds
    }

    /// Returns its code.
    pub fn body(&self) -> &Body {
        &self.0.body
    }
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Kernel) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for Kernel {}

impl Hash for Kernel {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
