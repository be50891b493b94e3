//! The interpreter under the description of a GPU: planners do for it what they do for a GPU, and it finds the faults.

use broadloom_device::{Device, Machine, MachineKind};
use broadloom_interp::{Interp, Options};

/// A device that says that it is a GPU.
pub(crate) fn interp_as_gpu() -> Device {
    let own = Device::new(Interp::new(Options::default())).machine().clone();
    let machine = Machine { kind: MachineKind::Cuda, multiprocessors: 4, ..own };
    Device::new(Interp::new(Options { machine: Some(machine), ..Options::default() }))
}
