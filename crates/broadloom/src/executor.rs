//! Devices by name.

use broadloom_array::Context;
#[cfg(feature = "cpu")]
use broadloom_cpu::Cpu;
use broadloom_cuda::Cuda;
use broadloom_device::{Device, Error, Machine};
use broadloom_interp::Interp;
use std::sync::OnceLock;

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

/// The number of the GPU that a name means: `cuda` is the first, `cuda:1` the second.
pub fn gpu_ordinal(name: &str) -> Option<u32> {
    match name.strip_prefix("cuda")? {
        "" => Some(0),
        rest => rest.strip_prefix(':').filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok(),
    }
}

/// Opens a device by the name that [`machines`] gives it; `cuda` is the first GPU, and `auto` a GPU where there is one and else the CPU.
/// `cpu:strict` is the CPU with a check of every access of a kernel.
pub fn open(name: &str) -> Result<Device, OpenError> {
    if let Some(ordinal) = gpu_ordinal(name) {
        return Ok(Device::new(Cuda::new(broadloom_cuda::Options { ordinal, ..broadloom_cuda::Options::default() })?));
    }
    match name {
        "auto" => open("cuda").or_else(|error| if cfg!(feature = "cpu") { open("cpu") } else { Err(error) }),
        #[cfg(feature = "cpu")]
        name if let Some(options) = broadloom_cpu::Options::of(name) => Ok(Device::new(Cpu::new(options)?)),
        #[cfg(not(feature = "cpu"))]
        "cpu" | "cpu:strict" => {
            let reason = "this program was built without it; the feature `cpu` of the crate `broadloom` adds it".to_owned();
            Err(Error::NotHere { device: name.to_owned(), reason }.into())
        }
        "interp" => Ok(Device::new(Interp::new(broadloom_interp::Options::default()))),
        _ => {
            let available = machines().into_iter().map(|machine| machine.id).collect();
            Err(UnknownDevice { name: name.to_owned(), available }.into())
        }
    }
}

/// A place for arrays on the device of that name, with plans and kernels of its own.
pub fn context(name: &str) -> Result<Context, OpenError> {
    Ok(Context::new(&open(name)?))
}

/// The place for arrays on the best device that is here; all who ask get the same.
pub fn default_context() -> Result<&'static Context, OpenError> {
    static DEFAULT: OnceLock<Context> = OnceLock::new();
    if let Some(known) = DEFAULT.get() {
        return Ok(known);
    }
    let context = context("auto")?;
    Ok(DEFAULT.get_or_init(|| context))
}

/// The GPUs that are here; why there is none.
pub fn gpus() -> Result<Vec<Machine>, Error> {
    broadloom_cuda::machines()
}

/// The machines that are here, the default first.
pub fn machines() -> Vec<Machine> {
    let interp = Device::new(Interp::new(broadloom_interp::Options::default()));
    let mut all = vec![];
    #[cfg(feature = "cpu")]
    all.push(broadloom_cpu::Options::default().machine());
    // Without a driver or a GPU there are none.
    all.extend(gpus().unwrap_or_default());
    all.push(interp.machine().clone());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_have_numbers() {
        assert_eq!([gpu_ordinal("cuda"), gpu_ordinal("cuda:0"), gpu_ordinal("cuda:12")], [Some(0), Some(0), Some(12)]);
        for bad in ["cud", "cuda:", "cuda:-1", "cuda:+1", "cuda1", "cuda:1x", "cuda:99999999999"] {
            assert_eq!(gpu_ordinal(bad), None, "{bad}");
        }
    }

    #[test]
    #[cfg(not(feature = "cpu"))]
    fn without_the_feature_there_is_no_cpu() {
        let error = open("cpu").map(drop).unwrap_err().to_string();
        assert!(error.starts_with("the device `cpu` is not here: this program was built without it"), "{error}");
        assert!(machines().iter().all(|machine| machine.kind != broadloom_device::MachineKind::Cpu));
        assert!(open("interp").is_ok());
    }

    #[test]
    #[cfg(feature = "cpu")]
    fn without_a_gpu_the_cpu_is_taken() {
        let device = open("auto").unwrap();
        assert_ne!(device.machine().kind, broadloom_device::MachineKind::Interp);
        if let Err(error) = open("cuda") {
            assert!(error.to_string().starts_with("the device `cuda"), "{error}");
        }
    }
}
