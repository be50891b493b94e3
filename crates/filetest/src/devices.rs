//! Devices that launches run on: the one place that lists them.

use crate::failure::Failure;
use broadloom_cpu::compile::Checks;
use broadloom_cpu::{CacheFolder, Cpu};
use broadloom_cuda::Cuda;
use broadloom_device::Device;
use broadloom_interp::{Interp, Options};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Device with its name and constructor.
#[derive(Clone, Copy)]
pub struct DeviceEntry {
    /// Name on the command line and in the names of trials.
    pub name: &'static str,
    /// Creates a device that prints into the text, or returns the reason why there is none here.
    make: fn(&PrintedText) -> Result<Device, Failure>,
    /// True if it is one shared machine: the effects of a kernel on it are visible to all.
    pub is_shared: bool,
    /// True if it runs all cases of a file; otherwise only the first.
    every_case: bool,
}

impl fmt::Debug for DeviceEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// All devices. The results of the first one are recorded as expectations.
pub const DEVICES: &[DeviceEntry] = &[
    DeviceEntry { name: "interp", make: make_interp, is_shared: false, every_case: true },
    DeviceEntry { name: "cpu-avx512", make: |printed| make_cpu("avx512", true, printed), is_shared: false, every_case: true },
    DeviceEntry { name: "cpu-avx2", make: |printed| make_cpu("avx2", true, printed), is_shared: false, every_case: true },
    // LLVM gets the same code as for `cpu-avx2` and takes three times as long.
    DeviceEntry { name: "cpu-sse4.2", make: |printed| make_cpu("sse4.2", true, printed), is_shared: false, every_case: false },
    DeviceEntry { name: "cpu-threads", make: |printed| make_cpu("host", false, printed), is_shared: false, every_case: true },
    DeviceEntry { name: "cpu-strict", make: make_strict, is_shared: false, every_case: false },
    DeviceEntry { name: "cuda", make: make_cuda, is_shared: true, every_case: true },
];

impl DeviceEntry {
    /// Creates a device that prints into the text, or returns the reason why there is none here.
    pub fn open(&self, printed: &PrintedText) -> Result<Device, Failure> {
        (self.make)(printed)
    }

    /// Returns whether it runs the case of a file with this index. `BROADLOOM_EVERY_CASE` makes every device
    /// run every case.
    pub fn takes(&self, case: usize) -> bool {
        self.every_case || case == 0 || std::env::var_os("BROADLOOM_EVERY_CASE").is_some()
    }

    /// Returns whether it is available. It is opened once to know that.
    pub fn is_here(&self) -> bool {
        static KNOWN: Mutex<BTreeMap<&str, bool>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(self.name).or_insert_with(|| self.open(&PrintedText::default()).is_ok())
    }
}

/// Text that the kernels of a device have printed.
#[derive(Clone, Debug, Default)]
pub struct PrintedText(Arc<Mutex<Vec<u8>>>);

impl PrintedText {
    /// Adds text.
    pub fn add(&self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
    }

    /// Returns everything so far.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

/// Opens the first GPU. Its device is kept, so that its context is created once; a lost one is dropped.
fn make_cuda(printed: &PrintedText) -> Result<Device, Failure> {
    static KEPT: Mutex<Option<Device>> = Mutex::new(None);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.as_ref().is_some_and(|device| device.synchronise().is_err()) {
        *kept = None;
    }
    let options = broadloom_cuda::Options { memory_bytes: Some(8 << 30), ..broadloom_cuda::Options::default() };
    if kept.is_none() {
        *kept = Some(Cuda::new(options.clone()).map(Device::new)?);
    }
    let printed = printed.clone();
    let output = Some(Arc::new(move |bytes: &[u8]| printed.add(bytes)) as broadloom_cuda::Output);
    Ok(Device::new(Cuda::new(broadloom_cuda::Options { output, ..options })?))
}

fn make_interp(printed: &PrintedText) -> Result<Device, Failure> {
    let printed = printed.clone();
    let output = Arc::new(move |bytes: &[u8]| printed.add(bytes));
    Ok(Device::new(Interp::new(Options { output, ..Options::default() })))
}

/// Opens the CPU with a vector instruction set, or one thread at a time. One worker is enough for tests,
/// which run in parallel.
pub(crate) fn make_cpu(vectors: &str, vectorise: bool, printed: &PrintedText) -> Result<Device, Failure> {
    let mut options = cpu(printed).vectors(vectors).ok_or_else(|| format!("this machine has no {vectors}"))?;
    options.compile.vectorise = vectorise;
    Ok(Device::new(Cpu::new(options)?))
}

/// Opens the CPU with a check of every access.
pub(crate) fn make_strict(printed: &PrintedText) -> Result<Device, Failure> {
    let mut options = cpu(printed);
    options.compile.checks = Checks::Strict;
    Ok(Device::new(Cpu::new(options)?))
}

fn cpu(printed: &PrintedText) -> broadloom_cpu::Options {
    let printed = printed.clone();
    let output = Arc::new(move |bytes: &[u8]| printed.add(bytes));
    broadloom_cpu::Options {
        threads: 1,
        memory_bytes: 8 << 30,
        cache: CacheFolder::Nowhere,
        output,
        ..broadloom_cpu::Options::default()
    }
}
