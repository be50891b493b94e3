//! Time of work: bandwidth, launches, and the balance of operations to bytes.

use super::Costs;
use super::memory::VECTOR_REGISTERS;
use broadloom_device::MachineKind;
use std::time::Duration;

/// Fraction of the peak bandwidth that kernels reach.
const REACHED: f64 = 0.9;
/// Approximate bandwidth of the last-level cache as a multiple of that of memory.
const CACHE_SPEED: f64 = 3.0;
/// Divisor of the last-level cache: arrays of a kernel up to the quotient stay in it.
const CACHE_SHARE: u64 = 2;

/// The work of a kernel that takes time: launches, bytes, operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelWork {
    /// Number of kernel launches.
    pub launches: u64,
    /// Bytes that are read and written.
    pub bytes: u64,
    /// Simple operations.
    pub operations: u64,
}

/// Latencies of a machine, in seconds.
pub(super) struct Latencies {
    /// One access to memory on which the next access depends, with the instructions around it.
    pub(super) access: f64,
    /// One launch, including its preparation on the host: instructions, nodes and arguments.
    pub(super) launch: f64,
    /// One small transfer that the host waits for.
    pub(super) wait: f64,
    /// One byte, if all threads move bytes together.
    pub(super) byte: f64,
}

impl Costs<'_> {
    /// Returns how many simple operations take as long as reading or writing a byte of memory: by the peaks
    /// of the machine where they are known; else 15 on a GPU, as on an H200, and 8 on vectors of 64 bytes.
    pub fn balance(&self) -> u64 {
        if let (Some(operations), Some(bandwidth)) = (self.machine.peak_operations, self.machine.peak_bandwidth) {
            return (operations / (REACHED * bandwidth)).round().clamp(1.0, 1000.0) as u64;
        }
        match self.machine.kind {
            MachineKind::Cuda => 15,
            MachineKind::Cpu | MachineKind::Interp => {
                u64::from(self.machine.vector_registers.unwrap_or(VECTOR_REGISTERS).0 / 8).max(1)
            }
        }
    }

    /// Returns how many simple operations take as long as a byte of an array that stays in the caches of the
    /// cores from one kernel to the next.
    pub fn balance_in_cache(&self) -> u64 {
        if self.in_vectors() { (self.balance() as f64 / CACHE_SPEED).ceil() as u64 } else { self.balance() }
    }

    pub(super) fn latencies(&self) -> Latencies {
        let (access, host, wait) = match self.machine.kind {
            MachineKind::Cpu => (1e-9, 2e-6, 20e-6),
            // The host of an H200 takes 31 ms for 1327 launches of quicksort.
            MachineKind::Cuda => (50e-9, 20e-6, 15e-6),
            MachineKind::Interp => (1e-6, 2e-6, 0.0),
        };
        Latencies { access, launch: host + self.launch_cost(), wait, byte: 1.0 / self.bandwidth() }
    }

    /// Returns the bytes per second that a kernel reads and writes: as measured, else by the peak of the
    /// machine, else those of small machines.
    fn bandwidth(&self) -> f64 {
        let peak = self.machine.peak_bandwidth.map(|peak| REACHED * peak);
        let small = match self.machine.kind {
            MachineKind::Cpu => 20e9,
            MachineKind::Cuda => 500e9,
            MachineKind::Interp => 50e6,
        };
        self.machine.bandwidth.or(peak).unwrap_or(small).max(1.0)
    }

    /// Returns the seconds of an empty launch, as measured or as usual for the kind of machine.
    fn launch_cost(&self) -> f64 {
        self.machine.launch_cost.unwrap_or(match self.machine.kind {
            MachineKind::Cpu => 4e-6,
            MachineKind::Cuda => 2e-6,
            MachineKind::Interp => 100e-6,
        })
    }

    /// Predicts how long work takes; `None` on the interpreter, which is not for speed. Where the machine was
    /// not measured, the prediction follows its peaks, or is that of a small machine.
    ///
    /// Launches follow each other. Memory and arithmetic go on at the same time, so the slower of both
    /// counts. Arrays that fit into the last-level cache are read from there.
    pub fn predict(&self, work: &KernelWork) -> Option<Duration> {
        let (bandwidth, launch) = match self.machine.kind {
            MachineKind::Interp => return None,
            MachineKind::Cpu | MachineKind::Cuda => (self.bandwidth(), self.launch_cost()),
        };
        let is_cached = self.machine.cache_bytes.is_some_and(|cache| work.bytes <= cache / CACHE_SHARE);
        let memory = work.bytes as f64 / (bandwidth * if is_cached { CACHE_SPEED } else { 1.0 });
        let arithmetic = work.operations as f64 / (bandwidth * self.balance() as f64);
        Duration::try_from_secs_f64(work.launches as f64 * launch + memory.max(arithmetic)).ok()
    }
}
