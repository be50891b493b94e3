//! Devices by name.

use broadloom_device::{Device, Machine};
use broadloom_interp::{Interp, Options};

/// A name that no device here has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no device `{name}` here; there is {}", .available.join(", "))]
pub struct UnknownDevice {
    /// The name asked for.
    pub name: String,
    /// The names there are.
    pub available: Vec<String>,
}

/// Opens a device by the name that [`machines`] gives it.
pub fn open(name: &str) -> Result<Device, UnknownDevice> {
    match name {
        "interp" => Ok(Device::new(Interp::new(Options::default()))),
        _ => {
            let available = machines().into_iter().map(|machine| machine.id).collect();
            Err(UnknownDevice { name: name.to_owned(), available })
        }
    }
}

/// The machines that are here, the default first.
pub fn machines() -> Vec<Machine> {
    vec![Device::new(Interp::new(Options::default())).machine().clone()]
}
