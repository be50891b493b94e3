//! Options: the techniques of the optimiser, each with a switch.

use broadloom_graph::Chains;
use std::fmt;

/// Use of a technique.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Switch {
    /// Never used.
    Off,
    /// Used if the cost model predicts a gain.
    #[default]
    Auto,
    /// Used wherever possible.
    On,
}

impl Switch {
    /// Returns whether to use a technique. `good` is the decision of the cost model.
    pub(crate) fn decides(self, good: impl FnOnce() -> bool) -> bool {
        match self {
            Switch::Off => false,
            Switch::Auto => good(),
            Switch::On => true,
        }
    }
}

/// The techniques of the optimiser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    /// Fusion of point functors into the kernels of their neighbours.
    pub fuse: Switch,
    /// Fusion of functors with windows into the kernels of their consumers. Images between them are
    /// recomputed and not stored.
    pub contract: Switch,
    /// Merging of kernels that read each other's images in windows. The merged kernel keeps the rows between
    /// them in ring buffers.
    pub chain: Switch,
    /// State of moving averages, carried along lines. Otherwise every pixel reads its whole window.
    pub carry: Switch,
    /// Staging of windows in shared memory.
    pub stage: Switch,
    /// Transposition of images for horizontal moving averages and vertical filters.
    pub transpose: Switch,
    /// Cancellation of pairs of transpositions, also across point functors.
    pub cancel: Switch,
    /// Splitting of lines of moving averages, to give work to more threads.
    pub split: Switch,
    /// Alignment of the first and last columns of regions of interest.
    pub realign: Switch,
    /// Several pixels of a staged window per thread.
    pub several: Switch,
    /// Adaptation of the shape of tiles to the window.
    pub shape: Switch,
    /// Order of functors that needs little memory.
    pub order: Switch,
    /// True if reads outside declared windows are errors. Kernels are slower.
    pub check: bool,
    /// Device memory that a plan may use, in bytes; by default three quarters of it. Larger images are
    /// computed in tiles.
    pub memory: Option<u64>,
}

impl Options {
    /// Returns the use of chains by the planner of the graph.
    pub(crate) fn chains(&self) -> Chains {
        match self.chain {
            Switch::Off => Chains::Never,
            Switch::Auto => Chains::Cheaper,
            Switch::On => Chains::Always,
        }
    }

    /// Returns the straight translation: one kernel per functor, one thread per pixel, and one memory access
    /// per read.
    pub const fn straight() -> Options {
        Options::all(Switch::Off)
    }

    /// Returns options in which all techniques have the same switch.
    pub const fn all(switch: Switch) -> Options {
        Options {
            fuse: switch,
            contract: switch,
            chain: switch,
            carry: switch,
            stage: switch,
            transpose: switch,
            cancel: switch,
            split: switch,
            realign: switch,
            several: switch,
            shape: switch,
            order: switch,
            check: false,
            memory: None,
        }
    }

    /// Names of the techniques.
    pub const NAMES: [&str; 12] =
        ["fuse", "contract", "chain", "carry", "stage", "transpose", "cancel", "split", "realign", "several", "shape", "order"];

    /// Returns the switch of the technique with the given name.
    pub fn switch(&mut self, name: &str) -> Option<&mut Switch> {
        Some(match name {
            "fuse" => &mut self.fuse,
            "contract" => &mut self.contract,
            "chain" => &mut self.chain,
            "carry" => &mut self.carry,
            "stage" => &mut self.stage,
            "transpose" => &mut self.transpose,
            "cancel" => &mut self.cancel,
            "split" => &mut self.split,
            "realign" => &mut self.realign,
            "several" => &mut self.several,
            "shape" => &mut self.shape,
            "order" => &mut self.order,
            _ => return None,
        })
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut own = *self;
        for (number, name) in Options::NAMES.into_iter().enumerate() {
            let switch = own.switch(name).map_or(Switch::Off, |switch| *switch);
            let comma = if number == 0 { "" } else { ", " };
            write!(f, "{comma}{name} {}", format!("{switch:?}").to_lowercase())?;
        }
        Ok(())
    }
}
