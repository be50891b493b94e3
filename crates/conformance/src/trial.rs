//! Trial: a corpus module loaded on a device, and the operations of a case on it.
//!
//! A case uploads inputs, launches kernels and downloads results. Values are transferred as flat bytes:
//! scalars, and arrays of them for CUDA's vector types.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use broadloom_device::{Argument, Buffer, Device, Element, Error, FaultKind, GlobalVariable, Launch, Module, Stream};
use broadloom_diag::{Diagnostics, Sources};
use broadloom_ptx::{Verified, parse, verify};

/// Time after which a launch counts as hung.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// The executor that the corpus is run on.
#[derive(Clone, Debug)]
pub struct DeviceUnderTest {
    /// Device that runs the kernels.
    pub device: Device,
    /// Output of its kernels that was not read yet.
    pub printed: Arc<Mutex<String>>,
}

/// Reason why a trial failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A result differs from the reference.
    #[error("{0}")]
    Wrong(String),
    /// The device rejected the case or failed.
    #[error("{0}")]
    Device(#[from] Error),
    /// The module could not be read.
    #[error("{0}")]
    Module(String),
}

/// The outcome of a trial.
pub type Outcome = Result<(), Failure>;

fn rendered(sources: &Sources, diagnostics: &Diagnostics) -> Failure {
    Failure::Module(sources.render_all(diagnostics))
}

/// Parses and verifies a module. Returns it with its source.
pub(crate) fn verified(name: &str, text: &str) -> Result<(Sources, Verified), Failure> {
    let mut sources = Sources::default();
    let id = sources.add(name, text);
    match parse(&sources, id).and_then(verify) {
        Ok(module) => Ok((sources, module)),
        Err(diagnostics) => Err(rendered(&sources, &diagnostics)),
    }
}

/// Value with a defined layout in device memory.
pub(crate) trait DeviceValue: Copy {
    /// Its size.
    const BYTES: usize;
    /// Appends its bytes.
    fn append_to(self, bytes: &mut Vec<u8>);
    /// Reads it back.
    fn read_from(bytes: &[u8]) -> Self;
}

macro_rules! plain {
    ($($t:ty),*) => {
        $(impl DeviceValue for $t {
            const BYTES: usize = <$t as Element>::BYTES;
            fn append_to(self, bytes: &mut Vec<u8>) {
                let start = bytes.len();
                bytes.resize(start + <Self as DeviceValue>::BYTES, 0);
                self.to_bytes(&mut bytes[start..]);
            }
            fn read_from(bytes: &[u8]) -> Self {
                Self::from_bytes(bytes)
            }
        }
        impl KernelArgument for $t {
            fn pass(&self) -> Argument {
                Argument::from(*self)
            }
        })*
    };
}

plain!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64, half::f16, half::bf16);

impl<T: DeviceValue, const N: usize> DeviceValue for [T; N] {
    const BYTES: usize = T::BYTES * N;
    fn append_to(self, bytes: &mut Vec<u8>) {
        self.into_iter().for_each(|v| v.append_to(bytes));
    }
    fn read_from(bytes: &[u8]) -> Self {
        std::array::from_fn(|k| T::read_from(&bytes[k * T::BYTES..][..T::BYTES]))
    }
}

fn to_bytes<T: DeviceValue>(values: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() * T::BYTES);
    values.iter().for_each(|v| v.append_to(&mut bytes));
    bytes
}

fn from_bytes<T: DeviceValue>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(T::BYTES).map(T::read_from).collect()
}

/// Device memory that holds values of one type.
pub(crate) struct Memory<T> {
    buffer: Buffer<u8>,
    values: PhantomData<T>,
}

/// Value that is passed to a kernel.
pub(crate) trait KernelArgument {
    /// Returns the argument.
    fn pass(&self) -> Argument;
}

impl<T> KernelArgument for Memory<T> {
    fn pass(&self) -> Argument {
        Argument::from(&self.buffer)
    }
}

/// Vector type by value.
impl<T: DeviceValue, const N: usize> KernelArgument for [T; N] {
    fn pass(&self) -> Argument {
        Argument::Bytes(to_bytes(self))
    }
}

/// Structure by value, laid out by the caller.
impl KernelArgument for Vec<u8> {
    fn pass(&self) -> Argument {
        Argument::Bytes(self.clone())
    }
}

/// Arguments of a launch.
macro_rules! args {
    ($($value:expr),* $(,)?) => {
        &[$($crate::trial::KernelArgument::pass(&$value)),*] as &[broadloom_device::Argument]
    };
}
pub(crate) use args;

/// Number of blocks or threads, in one dimension or three.
pub(crate) trait LaunchExtent {
    /// Returns the extent in three dimensions.
    fn extent(self) -> [u32; 3];
}

impl LaunchExtent for u32 {
    fn extent(self) -> [u32; 3] {
        [self, 1, 1]
    }
}

impl LaunchExtent for [u32; 3] {
    fn extent(self) -> [u32; 3] {
        self
    }
}

/// Corpus module on a device.
pub(crate) struct Trial<'s> {
    subject: &'s DeviceUnderTest,
    module: Module,
}

impl<'s> Trial<'s> {
    /// Parses, verifies and loads the text of a module; `name` is its name in diagnostics.
    pub(crate) fn load(subject: &'s DeviceUnderTest, name: &str, text: &str) -> Result<Self, Failure> {
        let (sources, module) = verified(name, text)?;
        match subject.device.load(&Arc::new(module)) {
            Ok(module) => Ok(Trial { subject, module }),
            Err(Error::Unsupported(diagnostics)) => Err(rendered(&sources, &diagnostics)),
            Err(error) => Err(error.into()),
        }
    }

    /// Allocates memory with these values.
    pub(crate) fn upload<T: DeviceValue>(&self, values: &[T]) -> Result<Memory<T>, Failure> {
        Ok(Memory { buffer: self.subject.device.upload(&to_bytes(values))?, values: PhantomData })
    }

    /// Allocates memory for `count` values that a kernel writes.
    pub(crate) fn output<T: DeviceValue>(&self, count: usize) -> Result<Memory<T>, Failure> {
        Ok(Memory { buffer: self.subject.device.allocate(count * T::BYTES)?, values: PhantomData })
    }

    /// Allocates zeroed memory for `count` values.
    pub(crate) fn zeros<T: DeviceValue>(&self, count: usize) -> Result<Memory<T>, Failure> {
        Ok(Memory { buffer: self.subject.device.zeros(count * T::BYTES)?, values: PhantomData })
    }

    /// Returns the values in memory, after all launches so far.
    pub(crate) fn download<T: DeviceValue>(&self, memory: &Memory<T>) -> Result<Vec<T>, Failure> {
        Ok(from_bytes(&memory.buffer.read()?))
    }

    /// Launches a kernel.
    pub(crate) fn launch(
        &self,
        kernel: &str,
        grid: impl LaunchExtent,
        block: impl LaunchExtent,
        arguments: &[Argument],
    ) -> Outcome {
        self.run(kernel, Launch::new(grid.extent(), block.extent()), arguments)
    }

    /// Launches a kernel with dynamic shared memory.
    pub(crate) fn launch_shared(
        &self,
        kernel: &str,
        grid: impl LaunchExtent,
        block: impl LaunchExtent,
        shared_bytes: usize,
        arguments: &[Argument],
    ) -> Outcome {
        self.run(kernel, Launch::new(grid.extent(), block.extent()).shared(shared_bytes as u32), arguments)
    }

    /// Launches a kernel whose blocks must all be resident at the same time.
    pub(crate) fn launch_together(
        &self,
        kernel: &str,
        grid: impl LaunchExtent,
        block: impl LaunchExtent,
        arguments: &[Argument],
    ) -> Outcome {
        self.run(kernel, Launch::new(grid.extent(), block.extent()).cooperative(), arguments)
    }

    fn run(&self, kernel: &str, launch: Launch, arguments: &[Argument]) -> Outcome {
        self.module.kernel(kernel)?.launch(&launch.time_limit(TIME_LIMIT), arguments)?;
        Ok(self.subject.device.synchronise()?)
    }

    /// Launches a kernel that must fail with a given kind.
    pub(crate) fn fails(
        &self,
        kernel: &str,
        kind: FaultKind,
        grid: impl LaunchExtent,
        block: impl LaunchExtent,
        arguments: &[Argument],
    ) -> Outcome {
        match self.launch(kernel, grid, block, arguments) {
            Err(Failure::Device(Error::Fault(fault))) if fault.kind == kind => Ok(()),
            Err(other) => Err(Failure::Wrong(format!("`{kernel}` should fail with {kind:?}, but: {other}"))),
            Ok(()) => Err(Failure::Wrong(format!("`{kernel}` should fail with {kind:?}, but does not"))),
        }
    }

    fn variable(&self, name: &str, bytes: usize) -> Result<GlobalVariable, Failure> {
        match self.module.variable(name) {
            Some(variable) if variable.bytes == bytes as u64 => Ok(variable),
            Some(variable) => Err(Failure::Wrong(format!("variable `{name}` has {} bytes, not {bytes}", variable.bytes))),
            None => Err(Failure::Wrong(format!("the module has no variable `{name}`"))),
        }
    }

    /// Writes a variable of the module.
    pub(crate) fn write_variable<T: DeviceValue>(&self, name: &str, values: &[T]) -> Outcome {
        let bytes = to_bytes(values);
        let variable = self.variable(name, bytes.len())?;
        Ok(self.subject.device.backend().write(Stream::default(), variable.address, &bytes)?)
    }

    /// Reads a variable of the module that holds `count` values.
    pub(crate) fn read_variable<T: DeviceValue>(&self, name: &str, count: usize) -> Result<Vec<T>, Failure> {
        let mut bytes = vec![0; count * T::BYTES];
        let variable = self.variable(name, bytes.len())?;
        self.subject.device.backend().read(Stream::default(), variable.address, &mut bytes)?;
        Ok(from_bytes(&bytes))
    }

    /// Returns the text that kernels have printed since the last call.
    pub(crate) fn printed(&self) -> String {
        std::mem::take(&mut *self.subject.printed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
