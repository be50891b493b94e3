//! Measurement of memory bandwidth and launch cost.
//!
//! The measurement runs on first request, once per process and machine, with operations that every device
//! has. Opening a device measures nothing. **The measurement takes less than a second. A value that cannot be
//! measured stays unknown.**

use crate::{Device, Launch, Machine};
use broadloom_diag::Sources;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum and maximum bytes per copy. They should exceed the caches.
const COPIED: (u64, u64) = (64 << 20, 256 << 20);
/// Duration of repeated copies, of which the fastest counts.
const COPY_TIME: Duration = Duration::from_millis(150);
/// Number of launches before a wait, and number of rounds.
const LAUNCHES: u32 = 200;
const ROUNDS: u32 = 5;

/// Measured values: bytes per second, and seconds.
type MeasuredRates = (Option<f64>, Option<f64>);

impl Device {
    /// Returns the machine description with measured bandwidth and launch cost.
    pub fn measured_machine(&self) -> Machine {
        static KNOWN: Mutex<Option<HashMap<String, MeasuredRates>>> = Mutex::new(None);
        let machine = self.machine().clone();
        let key = format!("{} {} {} {}", machine.id, machine.name, machine.multiprocessors, machine.memory_bytes);
        // Concurrent measurements would disturb each other.
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let measured = || (useful(bandwidth(self, &machine)), useful(launch_cost(self, &machine)));
        let (bandwidth, launch_cost) = *known.get_or_insert_default().entry(key).or_insert_with(measured);
        Machine { bandwidth: machine.bandwidth.or(bandwidth), launch_cost: machine.launch_cost.or(launch_cost), ..machine }
    }
}

fn useful(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite() && *value > 0.0)
}

/// Measures the bytes per second that copies within the device read and write.
fn bandwidth(device: &Device, machine: &Machine) -> Option<f64> {
    // At most a fraction of a small memory.
    let wanted = machine.cache_bytes.map_or(COPIED.1, |cache| 2 * cache).clamp(COPIED.0, COPIED.1);
    let bytes = wanted.min(machine.memory_bytes / 16) & !255;
    let stream = crate::Stream::default();
    let measured = {
        let from = device.zeros::<u8>(usize::try_from(bytes).ok()?).ok()?;
        let to = device.allocate::<u8>(from.len()).ok()?;
        let copy = || {
            let start = Instant::now();
            to.copy_from(stream, &from).and_then(|()| device.synchronise()).ok()?;
            Some(start.elapsed().as_secs_f64())
        };
        // The first copy touches the memory for the first time.
        copy()?;
        let start = Instant::now();
        let mut best = copy()?;
        while start.elapsed() < COPY_TIME {
            best = best.min(copy()?);
        }
        2.0 * bytes as f64 / best
    };
    // The user expects the device's memory to be empty.
    let _ = device.trim();
    Some(measured)
}

/// Measures the host's seconds per empty launch, without waiting.
fn launch_cost(device: &Device, machine: &Machine) -> Option<f64> {
    let header = format!(".version {}\n.target sm_{}\n.address_size 64\n", machine.isa, machine.sm);
    let mut sources = Sources::new();
    let id = sources.add("empty.ptx", format!("{header}.visible .entry empty()\n{{\n\tret;\n}}\n"));
    let module = broadloom_ptx::parse(&sources, id).and_then(broadloom_ptx::verify).ok()?;
    let kernel = device.load(&Arc::new(module)).and_then(|module| module.kernel("empty")).ok()?;
    let launch = || kernel.launch(&Launch::linear(1, 1), &[]).ok();
    launch()?;
    device.synchronise().ok()?;
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..LAUNCHES {
            launch()?;
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(LAUNCHES));
        device.synchronise().ok()?;
    }
    Some(best)
}
