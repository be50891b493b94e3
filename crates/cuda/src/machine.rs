//! Description of a GPU from the driver's attributes.

use crate::driver::{CallResult, Driver};
use crate::ffi::DeviceAttribute;
use broadloom_device::{Machine, MachineKind};
use broadloom_ptx::IsaVersion;
use std::ffi::c_int;

/// Returns the newest PTX version that a driver accepts, by its CUDA version (manual: "Release Notes").
/// `cuDriverGetVersion` returns `1000 * major + 10 * minor`.
pub(crate) fn newest_isa(version: u32) -> IsaVersion {
    let (major, minor) = (version / 1000, version % 1000 / 10);
    let minor = u8::try_from(minor).unwrap_or(9).min(9);
    match (major, minor) {
        (..=8, _) => IsaVersion::new(5, 0),
        (9, minor) => IsaVersion::new(6, minor.min(2)),
        (10, minor) => IsaVersion::new(6, 3 + minor.min(2)),
        (11, minor) => IsaVersion::new(7, minor.min(8)),
        (12, minor @ 0..=5) => IsaVersion::new(8, minor),
        // CUDA 12.6 has no new PTX version.
        (12, minor) => IsaVersion::new(8, (minor - 1).min(8)),
        (13, minor) => IsaVersion::new(9, minor),
        // Later drivers accept at least the versions of earlier ones.
        (14.., _) => IsaVersion::new(9, 3),
    }
}

/// Describes a GPU for planners, without measured values.
pub(crate) fn describe(driver: &Driver, ordinal: u32) -> CallResult<Machine> {
    let device = driver.device(ordinal)?;
    let attribute = |attribute| driver.device_attribute(device, attribute);
    let known = |value: u32| (value > 0).then_some(value);
    // Attributes that a driver need not have.
    let hinted = |attribute| driver.device_attribute(device, attribute).ok().and_then(known);
    let hertz = |attribute| hinted(attribute).map(|rate| f64::from(rate) * 1e3);
    let (multiprocessors, sm) = (attribute(DeviceAttribute::Multiprocessors)?, capability(driver, device)?);
    let lanes = f64::from(multiprocessors) * f64::from(lanes(sm));
    // Memory transfers twice in a clock cycle.
    let bus = hinted(DeviceAttribute::MemoryBusWidth).map(|bits| 2.0 * f64::from(bits) / 8.0);
    Ok(Machine {
        kind: MachineKind::Cuda,
        id: format!("cuda:{ordinal}"),
        name: driver.device_name(device)?,
        warp_size: attribute(DeviceAttribute::WarpSize)?,
        multiprocessors,
        max_threads_per_block: attribute(DeviceAttribute::MaxThreadsPerBlock)?,
        max_block: [
            attribute(DeviceAttribute::MaxBlockX)?,
            attribute(DeviceAttribute::MaxBlockY)?,
            attribute(DeviceAttribute::MaxBlockZ)?,
        ],
        max_grid: [
            attribute(DeviceAttribute::MaxGridX)?,
            attribute(DeviceAttribute::MaxGridY)?,
            attribute(DeviceAttribute::MaxGridZ)?,
        ],
        max_shared_bytes: attribute(DeviceAttribute::MaxSharedPerBlockOptIn)?,
        registers: known(attribute(DeviceAttribute::RegistersPerMultiprocessor)?),
        resident_threads: hinted(DeviceAttribute::ThreadsPerMultiprocessor),
        vector_registers: None,
        memory_bytes: driver.device_memory(device)?,
        cache_bytes: known(attribute(DeviceAttribute::CacheBytes)?).map(u64::from),
        core_cache_bytes: None,
        peak_operations: hertz(DeviceAttribute::ClockRate).map(|rate| 2.0 * lanes * rate),
        peak_bandwidth: hertz(DeviceAttribute::MemoryClockRate).zip(bus).map(|(rate, bus)| rate * bus),
        bandwidth: None,
        launch_cost: None,
        isa: newest_isa(driver.version),
        sm,
    })
}

/// Returns the single-precision lanes of a multiprocessor (CUDA C++ Programming Guide: "Throughput of Native Arithmetic
/// Instructions").
fn lanes(sm: u16) -> u32 {
    if matches!(sm, 60 | 70..=80) { 64 } else { 128 }
}

fn capability(driver: &Driver, device: c_int) -> CallResult<u16> {
    let major = driver.device_attribute(device, DeviceAttribute::CapabilityMajor)?;
    let minor = driver.device_attribute(device, DeviceAttribute::CapabilityMinor)?;
    Ok(u16::try_from(major * 10 + minor).unwrap_or(u16::MAX))
}

/// Tests if cooperative launches are supported.
pub(crate) fn is_cooperative(driver: &Driver, device: c_int) -> CallResult<bool> {
    Ok(driver.device_attribute(device, DeviceAttribute::CooperativeLaunch)? != 0)
}

/// Returns the maximum number of resident threads.
pub(crate) fn resident_threads(driver: &Driver, device: c_int) -> CallResult<u64> {
    let each = driver.device_attribute(device, DeviceAttribute::ThreadsPerMultiprocessor)?;
    Ok(u64::from(each) * u64::from(driver.device_attribute(device, DeviceAttribute::Multiprocessors)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_take_the_ptx_of_their_day() {
        for (version, isa) in [
            (11_000, (7, 0)),
            (11_080, (7, 8)),
            (12_000, (8, 0)),
            (12_050, (8, 5)),
            (12_060, (8, 5)),
            (12_080, (8, 7)),
            (12_090, (8, 8)),
            (13_000, (9, 0)),
            (13_010, (9, 1)),
        ] {
            assert_eq!(newest_isa(version), IsaVersion::new(isa.0, isa.1), "{version}");
        }
    }
}
