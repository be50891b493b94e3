//! Options: the techniques of the optimiser, each with a switch.

use broadloom_graph::Chains;
use std::fmt;

/// The use of a technique.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Switch {
    /// Never.
    Off,
    /// Where the cost model finds it better.
    #[default]
    Auto,
    /// Wherever it is possible.
    On,
}

impl Switch {
    /// Returns whether to use a technique that the cost model finds good or not.
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
    /// Point functors become part of the kernels of their neighbours.
    pub fuse: Switch,
    /// Functors with windows become part of the kernels of their consumers: images between them are computed again and not stored.
    pub contract: Switch,
    /// Kernels that read each other's images in windows become one kernel, which keeps the rows between them in rings.
    pub chain: Switch,
    /// Moving averages carry their state along lines; otherwise every pixel reads its whole window.
    pub carry: Switch,
    /// Windows are staged in shared memory.
    pub stage: Switch,
    /// Horizontal moving averages and vertical filters run on transposed images.
    pub transpose: Switch,
    /// Pairs of transpositions are cancelled, also across point functors.
    pub cancel: Switch,
    /// Lines of moving averages are split, so that more threads have work.
    pub split: Switch,
    /// Regions of interest start and end at aligned columns.
    pub realign: Switch,
    /// A thread computes several pixels of a staged window.
    pub several: Switch,
    /// Tiles have the shape that suits the window.
    pub shape: Switch,
    /// Functors run in an order that needs little memory.
    pub order: Switch,
    /// Reads outside of declared windows are errors. Kernels are slower.
    pub check: bool,
    /// Bytes of the device's memory that a plan may use; three quarters of it where nothing is said. Larger images are
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

    /// Returns the straight translation: each functor is a kernel, each pixel a thread, each read a read of memory.
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

    /// The names of the techniques.
    pub const NAMES: [&str; 12] =
        ["fuse", "contract", "chain", "carry", "stage", "transpose", "cancel", "split", "realign", "several", "shape", "order"];

    /// Returns the switch of a technique by its name.
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
