//! Modules, kernels and launches.

use crate::texture::{Surface, Texture};
use crate::{
    Buffer, Device, Element, Error, GlobalVariable, KernelAttributes, Launch, LoadedModule, Result, Step, Stream, trace,
};
use broadloom_ptx::{Func, Function, Param, Type, Verified};
use std::sync::Arc;

/// Argument of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// Bytes of a scalar or struct.
    Bytes(Vec<u8>),
    /// Device address.
    Address(u64),
}

impl<T: Element> From<&Buffer<T>> for Argument {
    fn from(buffer: &Buffer<T>) -> Self {
        Argument::Address(buffer.address())
    }
}

impl<T: Element> From<T> for Argument {
    fn from(value: T) -> Self {
        let mut bytes = vec![0; T::BYTES];
        value.to_bytes(&mut bytes);
        Argument::Bytes(bytes)
    }
}

/// Parameter of a kernel with its position in the parameter block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// Name in the PTX text.
    pub name: String,
    /// Element type.
    pub ty: Type,
    /// Offset in bytes.
    pub offset: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Alignment in bytes.
    pub align: u64,
}

/// Lays out the parameters of a kernel in order, each with its alignment.
pub fn param_layout(function: &Function) -> Vec<ParamInfo> {
    let mut end = 0u64;
    let mut layout = vec![];
    for param in &function.params {
        let Param::Memory(var) = param else { continue };
        let variable = &function.variables[*var];
        let (bytes, align) = (variable.bytes().unwrap_or(0), variable.alignment().max(1));
        let offset = end.next_multiple_of(align);
        end = offset + bytes;
        layout.push(ParamInfo { name: variable.name.clone(), ty: variable.ty, offset, bytes, align });
    }
    layout
}

/// Module loaded on a device.
#[derive(Clone, Debug)]
pub struct Module {
    device: Device,
    code: Arc<Verified>,
    loaded: Arc<dyn LoadedModule>,
}

impl Module {
    pub(crate) fn load(device: &Device, code: &Arc<Verified>) -> Result<Module> {
        let loaded = device.backend().load(code)?;
        Ok(Module { device: device.clone(), code: code.clone(), loaded })
    }

    /// Returns the verified PTX.
    pub fn code(&self) -> &Verified {
        &self.code
    }

    /// Returns a kernel by name.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let found = self.code.kernels().find(|(_, function)| function.name == name);
        match found {
            Some((func, function)) => Ok(Kernel { module: self.clone(), func, params: Arc::new(param_layout(function)) }),
            None => Err(Error::UnknownKernel {
                name: name.to_owned(),
                available: self.code.kernels().map(|(_, function)| function.name.clone()).collect(),
            }),
        }
    }

    /// Returns a global or constant variable by name.
    pub fn variable(&self, name: &str) -> Option<GlobalVariable> {
        self.loaded.variable(name)
    }

    /// Binds a texture to a `.texref` variable, or unbinds it. Later launches see the change. Its memory must
    /// stay valid meanwhile.
    pub fn bind_texture(&self, name: &str, texture: Option<&Texture>) -> Result<()> {
        self.loaded.bind_texture(name, texture)
    }

    /// Binds a surface to a `.surfref` variable, or unbinds it. Later launches see the change. Its memory
    /// must stay valid meanwhile.
    pub fn bind_surface(&self, name: &str, surface: Option<&Surface>) -> Result<()> {
        self.loaded.bind_surface(name, surface)
    }

    /// Returns the device that the module is loaded on.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

/// Kernel of a loaded module.
#[derive(Clone, Debug)]
pub struct Kernel {
    module: Module,
    func: Func,
    params: Arc<Vec<ParamInfo>>,
}

impl Kernel {
    /// Returns the name of the entry in PTX.
    pub fn name(&self) -> &str {
        &self.function().name
    }

    /// Returns the module that defines the kernel.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Returns the code.
    pub fn function(&self) -> &Function {
        &self.module.code.functions[self.func]
    }

    /// Returns the parameters.
    pub fn params(&self) -> &[ParamInfo] {
        &self.params
    }

    /// Compiles the kernel for launches of this shape ahead of the first one.
    pub fn prepare(&self, launch: &Launch) -> Result<()> {
        self.check_launch(launch)?;
        let _span = trace::span_with(|| format!("prepare {}", self.name()));
        self.module.loaded.prepare(self.func, launch)
    }

    /// Launches the kernel. Number and size of the arguments are checked.
    pub fn launch(&self, launch: &Launch, arguments: &[Argument]) -> Result<()> {
        let mut span = trace::span_with(|| format!("launch {}", self.name()));
        span.note_with("grid", || trace::shape(launch.grid));
        span.note_with("block", || trace::shape(launch.block));
        self.check_launch(launch)?;
        let block = self.param_block(arguments)?;
        self.module.loaded.launch(self.func, launch, &block)
    }

    /// Checks a launch configuration once, for repeated launches with a parameter block each.
    pub fn checked(&self, launch: &Launch) -> Result<CheckedLaunch> {
        self.check_launch(launch)?;
        let bytes = self.params.last().map_or(0, |last| last.offset + last.bytes);
        let bytes = usize::try_from(bytes).map_err(|_| self.bad_argument("the parameters are too large".into()))?;
        Ok(CheckedLaunch { kernel: self.clone(), launch: launch.clone(), bytes })
    }

    /// Returns facts about the compiled kernel.
    pub fn attributes(&self) -> Result<KernelAttributes> {
        self.module.loaded.attributes(self.func)
    }

    /// Returns the number of resident blocks of such a launch per multiprocessor, or `None` if it does not
    /// apply.
    pub fn occupancy(&self, launch: &Launch) -> Result<Option<u32>> {
        self.check_launch(launch)?;
        self.module.loaded.occupancy(self.func, launch)
    }

    /// Returns a launch as a step of a sequence.
    pub(crate) fn step(&self, launch: &Launch, arguments: &[Argument]) -> Result<Step> {
        self.check_launch(launch)?;
        let params = self.param_block(arguments)?;
        Ok(Step::Launch { module: self.module.loaded.clone(), kernel: self.func, launch: launch.clone(), params })
    }

    fn bad_argument(&self, reason: String) -> Error {
        Error::BadArgument { kernel: self.name().to_owned(), reason }
    }

    fn param_block(&self, arguments: &[Argument]) -> Result<Vec<u8>> {
        if arguments.len() != self.params.len() {
            let (takes, given) = (self.params.len(), arguments.len());
            return Err(self.bad_argument(format!("takes {takes} argument{}, not {given}", if takes == 1 { "" } else { "s" })));
        }
        let size = self.params.last().map_or(0, |last| last.offset + last.bytes);
        let size = usize::try_from(size).map_err(|_| self.bad_argument("the parameters are too large".into()))?;
        let mut block = vec![0; size];
        for (index, (param, argument)) in self.params.iter().zip(arguments).enumerate() {
            let address;
            let bytes: &[u8] = match argument {
                Argument::Bytes(bytes) => bytes,
                Argument::Address(value) => {
                    address = value.to_le_bytes();
                    let width = usize::from(self.module.code.address_size / 8);
                    &address[..width]
                }
            };
            if bytes.len() as u64 != param.bytes {
                let reason =
                    format!("argument {index} has {} bytes, but parameter `{}` has {}", bytes.len(), param.name, param.bytes);
                return Err(self.bad_argument(reason));
            }
            let start = param.offset as usize;
            block[start..start + bytes.len()].copy_from_slice(bytes);
        }
        Ok(block)
    }

    fn check_launch(&self, launch: &Launch) -> Result<()> {
        let machine = self.module.device.machine();
        let bad = |reason: String| Err(Error::BadLaunch { kernel: self.name().to_owned(), reason });
        for axis in 0..3 {
            let name = ["x", "y", "z"][axis];
            let (blocks, threads) = (launch.grid[axis], launch.block[axis]);
            if blocks == 0 || blocks > machine.max_grid[axis] {
                return bad(format!("a grid has 1 to {} blocks in {name}, not {blocks}", machine.max_grid[axis]));
            }
            if threads == 0 || threads > machine.max_block[axis] {
                return bad(format!("a block has 1 to {} threads in {name}, not {threads}", machine.max_block[axis]));
            }
        }
        let threads = launch.threads_per_block();
        if threads > u64::from(machine.max_threads_per_block) {
            return bad(format!("a block has at most {} threads, not {threads}", machine.max_threads_per_block));
        }
        if let Some(required) = self.function().directive("reqntid") {
            let want: Vec<u32> = (0..3).map(|axis| required.get(axis).copied().unwrap_or(1)).collect();
            if want != launch.block {
                return bad(format!("it was compiled for blocks of {want:?} threads, not {:?}", launch.block));
            }
        }
        if let Some(wanted) = launch.cluster
            && let Some(own) = launch.cluster_of(self.function())
            && own != wanted
        {
            return bad(format!("it was compiled for clusters of {own:?} blocks, not {wanted:?}"));
        }
        if let Some(most) = self.function().directive("maxntid") {
            let most: u64 = most.iter().map(|&n| u64::from(n)).product();
            if threads > most {
                return bad(format!("it was compiled for at most {most} threads per block, not {threads}"));
            }
        }
        Ok(())
    }
}

/// Launch with a checked configuration, for parameter blocks that are already laid out.
#[derive(Clone, Debug)]
pub struct CheckedLaunch {
    kernel: Kernel,
    launch: Launch,
    bytes: usize,
}

impl CheckedLaunch {
    /// Returns the kernel that is launched.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Returns the size of the parameter block in bytes. [`Kernel::params`] gives the offsets.
    pub fn param_bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the size of an address in the parameter block in bytes.
    pub fn address_bytes(&self) -> usize {
        usize::from(self.kernel.module.code.address_size / 8)
    }

    /// Launches in stream order.
    pub fn run(&self, stream: Stream, params: &[u8]) -> Result<()> {
        let mut span = trace::span_with(|| format!("launch {}", self.kernel.name()));
        span.note_with("grid", || trace::shape(self.launch.grid));
        span.note_with("block", || trace::shape(self.launch.block));
        if params.len() != self.bytes {
            let reason = format!("the parameters have {} bytes, not {}", self.bytes, params.len());
            return Err(self.kernel.bad_argument(reason));
        }
        if stream == self.launch.stream {
            return self.kernel.module.loaded.launch(self.kernel.func, &self.launch, params);
        }
        self.kernel.module.loaded.launch(self.kernel.func, &self.launch.clone().on(stream), params)
    }
}
