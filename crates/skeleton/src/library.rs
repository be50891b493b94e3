//! Programs that are ready, found by pattern.

use crate::{Histogram, Loaded, Map, Pack, Product, Program, Reduce, Result, Scan, Scatter, Sort, Transpose};
use broadloom_device::{Device, Machine};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

macro_rules! patterns {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Any pattern. It is the key under which a program is found.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Pattern {
            $($(#[$doc])* $name($name),)*
        }

        impl Pattern {
            /// The program for a machine.
            pub fn program(&self, machine: &Machine) -> Result<Program> {
                match self { $(Pattern::$name(pattern) => pattern.program(machine),)* }
            }
        }

        $(impl From<$name> for Pattern {
            fn from(pattern: $name) -> Pattern {
                Pattern::$name(pattern)
            }
        })*
    };
}

patterns! {
    /// The same function at every position.
    Map,
    /// An associative operator over some axes.
    Reduce,
    /// All prefixes along an axis.
    Scan,
    /// The values at chosen positions.
    Pack,
    /// How many positions fall into each bin.
    Histogram,
    /// Two axes exchanged.
    Transpose,
    /// The product of two matrices.
    Product,
    /// Sorted by keys.
    Sort,
    /// Values sent to places, and combined there.
    Scatter,
}

/// The programs of a device that are ready; cheap to clone, and shared by all clones.
///
/// A pattern that was asked for before costs a look into a table. Compiled code is also kept on disk, by the device.
#[derive(Clone, Debug)]
pub struct Library {
    device: Device,
    loaded: Arc<Mutex<HashMap<Pattern, Loaded>>>,
}

impl Library {
    /// An empty one.
    pub fn new(device: &Device) -> Library {
        Library { device: device.clone(), loaded: Arc::default() }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The program of a pattern, ready to run.
    pub fn get(&self, pattern: &Pattern) -> Result<Loaded> {
        let known = self.loaded.lock().unwrap_or_else(PoisonError::into_inner).get(pattern).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        // Not under the lock: others need not wait for a compiler.
        let loaded = pattern.program(self.device.machine())?.load(&self.device)?;
        let mut all = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(all.entry(pattern.clone()).or_insert(loaded).clone())
    }

    /// How many programs there are.
    pub fn len(&self) -> usize {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
