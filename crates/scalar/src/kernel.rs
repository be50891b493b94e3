//! Kernels: whole programs of a thread, launched over a grid.

use crate::body::Body;
use crate::builder::ParameterDecl;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Facts about the launches of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LaunchBounds {
    /// Threads of a block, exactly.
    pub block: Option<[u32; 3]>,
    /// Threads of a block, at most, when they are not known exactly.
    pub max_threads: Option<u32>,
    /// Blocks that a multiprocessor should hold at least.
    pub min_blocks: Option<u32>,
    /// Blocks of the grid in each direction, at most.
    pub max_grid: Option<[u32; 3]>,
}

impl LaunchBounds {
    /// One-dimensional blocks of exactly so many threads.
    pub fn block(threads: u32) -> LaunchBounds {
        LaunchBounds { block: Some([threads, 1, 1]), ..LaunchBounds::default() }
    }
}

/// A kernel: parameters, code, what is known of its launches. Cheap to clone, compared and hashed by what it is.
#[derive(Clone)]
pub struct Kernel(Arc<Data>);

#[derive(PartialEq, Eq)]
struct Data {
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
        Kernel(Arc::new(Data { hash: hasher.finish(), name, parameters, bounds, body }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its parameters.
    pub fn parameters(&self) -> &[ParameterDecl] {
        &self.0.parameters
    }

    /// Returns the facts about its launches.
    pub fn bounds(&self) -> &LaunchBounds {
        &self.0.bounds
    }

    /// Its code.
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
