//! Devices by name.

use broadloom_cpu::Cpu;
use broadloom_device::{Device, Error, Machine};
use broadloom_interp::Interp;

/// A name that no device here has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no device `{name}` here; there is {}", .available.join(", "))]
pub struct UnknownDevice {
    /// The name asked for.
    pub name: String,
    /// The names there are.
    pub available: Vec<String>,
}

/// Why a device could not be opened.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    /// There is none of that name.
    #[error(transparent)]
    Unknown(#[from] UnknownDevice),
    /// There is, and it could not be had.
    #[error(transparent)]
    Device(#[from] Error),
}

/// Opens a device by the name that [`machines`] gives it.
pub fn open(name: &str) -> Result<Device, OpenError> {
    match name {
        "cpu" => Ok(Device::new(Cpu::new(broadloom_cpu::Options::default())?)),
        "interp" => Ok(Device::new(Interp::new(broadloom_interp::Options::default()))),
        _ => {
            let available = machines().into_iter().map(|machine| machine.id).collect();
            Err(UnknownDevice { name: name.to_owned(), available }.into())
        }
    }
}

/// The machines that are here, the default first.
pub fn machines() -> Vec<Machine> {
    let interp = Device::new(Interp::new(broadloom_interp::Options::default()));
    vec![broadloom_cpu::Options::default().machine(), interp.machine().clone()]
}
