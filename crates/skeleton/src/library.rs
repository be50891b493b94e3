//! A cache of loaded programs, keyed by pattern.

use crate::{
    Chain, Histogram, Key, LoadedProgram, Map, Pack, Product, Program, Reduce, Relay, Result, Rows, Scan, Scatter,
    SegmentNumbers, SegmentedReduce, SegmentedSort, Sort, Stencil, Sweep, TiledStencil, Transpose,
};
use broadloom_device::{Device, Machine};
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A parallel pattern: a value that becomes a program for a machine. It is its own key in a [`Library`]. Its
/// equality therefore covers everything that its code depends on, and excludes sizes.
///
/// The patterns of this crate implement it. A crate that writes kernels of another shape implements it for
/// its own type.
pub trait Generator: Key + fmt::Debug + Send + Sync {
    /// Writes the program for a machine.
    fn program(&self, machine: &Machine) -> Result<Program>;
}

/// A pattern of any type: the key of a program in a [`Library`]. It is cheap to clone.
#[derive(Clone, Debug)]
pub struct Pattern(Arc<dyn Generator>);

impl Pattern {
    /// Writes the program for a machine.
    pub fn program(&self, machine: &Machine) -> Result<Program> {
        self.0.program(machine)
    }
}

impl<T: Generator> From<T> for Pattern {
    fn from(generator: T) -> Pattern {
        Pattern(Arc::new(generator))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.is_equal(other.0.as_any())
    }
}

impl Eq for Pattern {}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.write_hash(state);
    }
}

macro_rules! generators {
    ($($name:ident)*) => {
        $(impl Generator for $name {
            fn program(&self, machine: &Machine) -> Result<Program> {
                $name::program(self, machine)
            }
        })*
    };
}

generators!(Map Stencil Reduce Scan SegmentedReduce SegmentNumbers Pack Histogram Transpose Product Sort SegmentedSort Scatter Sweep
    TiledStencil Chain Relay Rows);

/// Maximum number of programs in a library by default.
const MOST: usize = 1024;

/// The loaded programs of a device. It is cheap to clone, and all clones share the programs.
/// A pattern that was requested before costs one table lookup. There are never more than [`Library::most`]
/// programs: the least recently used one is removed first. A [`LoadedProgram`] that was removed remains
/// usable. The device also keeps compiled code on disk.
#[derive(Clone, Debug)]
pub struct Library {
    device: Device,
    most: usize,
    loaded: Arc<Mutex<ProgramCache>>,
}

/// Programs, each with the time of its last use.
#[derive(Debug, Default)]
struct ProgramCache {
    programs: HashMap<Pattern, (u64, LoadedProgram)>,
    clock: u64,
}

impl ProgramCache {
    fn get(&mut self, pattern: &Pattern) -> Option<LoadedProgram> {
        self.clock += 1;
        let (used, loaded) = self.programs.get_mut(pattern)?;
        *used = self.clock;
        Some(loaded.clone())
    }

    /// Adds a program. Returns the program to use and the programs to drop. A program that another thread has
    /// added meanwhile is kept.
    fn add(&mut self, pattern: &Pattern, loaded: LoadedProgram, most: usize) -> (LoadedProgram, Vec<LoadedProgram>) {
        if let Some(known) = self.get(pattern) {
            return (known, vec![loaded]);
        }
        let mut gone = vec![];
        while self.programs.len() >= most.max(1) {
            // A linear search is cheap compared to compiling a program.
            let oldest = self.programs.iter().min_by_key(|(_, (used, _))| *used).map(|(pattern, _)| pattern.clone());
            let Some((_, program)) = oldest.and_then(|oldest| self.programs.remove(&oldest)) else { break };
            gone.push(program);
        }
        self.programs.insert(pattern.clone(), (self.clock, loaded.clone()));
        (loaded, gone)
    }
}

impl Library {
    /// Makes an empty library.
    pub fn new(device: &Device) -> Library {
        Library::with_most(device, MOST)
    }

    /// Makes an empty library that keeps at most `most` programs, and at least one.
    pub fn with_most(device: &Device, most: usize) -> Library {
        Library { device: device.clone(), most: most.max(1), loaded: Arc::default() }
    }

    /// Returns the device that its programs are loaded on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the maximum number of programs.
    pub fn most(&self) -> usize {
        self.most
    }

    fn shelf(&self) -> MutexGuard<'_, ProgramCache> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the program of a pattern, ready to run.
    pub fn get(&self, pattern: &Pattern) -> Result<LoadedProgram> {
        if let Some(known) = self.shelf().get(pattern) {
            return Ok(known);
        }
        // The lock is not held here: other threads need not wait for a compilation or for unloading.
        let loaded = pattern.program(self.device.machine())?.load(&self.device)?;
        let (loaded, gone) = self.shelf().add(pattern, loaded, self.most);
        drop(gone);
        Ok(loaded)
    }

    /// Returns the number of programs.
    pub fn len(&self) -> usize {
        self.shelf().programs.len()
    }

    /// Returns true if there are no programs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
