//! Preparation of a launch on a device: selects the kernel, checks arguments against its parameters, and
//! allocates buffers.

use crate::argument::{ArgumentSpec, ArgumentValue, BufferSpec, Contents, Destination};
use crate::contents::{fill_iota, fill_random};
use crate::{BAD_FILE, Element, HostArray, LaunchError, LaunchSpec, MISFIT, NO_KERNEL, TOO_LARGE, read_npy};
use broadloom_device::{self as device, Argument, Buffer, Device, Kernel, Launch, Module, ParamInfo};
use broadloom_diag::{Diagnostic, Diagnostics, Span};
use broadloom_ptx::{Type, TypeKind, Variable};
use std::path::Path;

/// Launch that is ready to run.
#[derive(Debug)]
pub struct PreparedLaunch {
    kernel: Kernel,
    launch: Launch,
    arguments: Vec<Argument>,
    buffers: Vec<LaunchBuffer>,
    images: Images,
}

/// Handles of textures and surfaces, destroyed after the launch.
#[derive(Debug)]
struct Images {
    device: Device,
    handles: Vec<u64>,
}

impl Drop for Images {
    fn drop(&mut self) {
        for handle in &self.handles {
            let _ = self.device.destroy_opaque(*handle);
        }
    }
}

/// Buffer that is an argument of a launch.
#[derive(Debug)]
struct LaunchBuffer {
    name: String,
    element: Element,
    shape: Vec<u64>,
    memory: Buffer<u8>,
    output: Option<Destination>,
}

/// Buffer with its initial contents.
struct Start {
    element: Element,
    shape: Vec<u64>,
    /// Contents; `None` if it is filled on the device or not at all.
    bytes: Option<Vec<u8>>,
}

/// Contents of a buffer after the launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Name of its parameter; `p.1` is the second member of a struct.
    pub name: String,
    /// Where the contents go: to the output or a file.
    pub destination: Destination,
    /// Contents.
    pub array: HostArray,
}

/// Prepares a launch. File names are relative to `folder`; buffers are allocated and filled on the module's
/// device.
pub fn prepare(module: &Module, spec: &LaunchSpec, folder: &Path) -> Result<PreparedLaunch, LaunchError> {
    let kernel = choose_kernel(module, spec)?;
    let params: Vec<&Variable> = kernel.function().memory_params().collect();
    if spec.arguments.len() != params.len() {
        return Err(count_misfit(&kernel, spec, &params).into());
    }
    let images = Images { device: module.device().clone(), handles: vec![] };
    let mut builder = Builder { module, folder, buffers: vec![], images };
    let mut arguments = vec![];
    let mut diagnostics = Diagnostics::new();
    for ((argument, variable), info) in spec.arguments.iter().zip(&params).zip(kernel.params()) {
        match builder.argument(argument, variable, info) {
            Ok(argument) => arguments.push(argument),
            Err(LaunchError::Wrong(wrong)) => diagnostics.extend(wrong),
            Err(error @ LaunchError::Device(_)) => return Err(error),
        }
    }
    if diagnostics.has_errors() {
        return Err(LaunchError::Wrong(diagnostics));
    }
    let Builder { buffers, images, .. } = builder;
    Ok(PreparedLaunch { kernel, launch: spec.launch.clone(), arguments, buffers, images })
}

fn choose_kernel(module: &Module, spec: &LaunchSpec) -> Result<Kernel, LaunchError> {
    let names: Vec<&str> = module.code().kernels().map(|(_, function)| function.name.as_str()).collect();
    let list = || names.iter().take(20).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let diagnostic = match (&spec.kernel, &names[..]) {
        (Some(name), names) if names.contains(&name.as_str()) => return Ok(module.kernel(name)?),
        (None, [only]) => return Ok(module.kernel(only)?),
        (_, []) => Diagnostic::error(NO_KERNEL, "the module has no kernel").help("a kernel is an `.entry` with a body"),
        (None, _) => Diagnostic::error(NO_KERNEL, "which kernel? The module has several").help(format!("name one of {}", list())),
        (Some(name), _) => {
            let diagnostic = Diagnostic::error(NO_KERNEL, format!("the module has no kernel `{name}`"));
            match broadloom_ptx::select::nearest(name, names.iter().copied()) {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None => diagnostic.note(format!("it has {}", list())),
            }
        }
    };
    Err(diagnostic.into())
}

fn count_misfit(kernel: &Kernel, spec: &LaunchSpec, params: &[&Variable]) -> Diagnostic {
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let (takes, given) = (params.len(), spec.arguments.len());
    let message = format!("kernel `{}` takes {takes} argument{}, not {given}", kernel.name(), plural(takes));
    let diagnostic = Diagnostic::error(MISFIT, message);
    match spec.arguments.get(takes) {
        Some(extra) => diagnostic.at(extra.span, "one too many").label(kernel.function().span, "this kernel"),
        None => {
            let missing: Vec<String> = params[given..].iter().map(|variable| suggestion(variable)).collect();
            diagnostic.at(params[given].span, "no argument for this").help(format!("add `{}`", missing.join(" ")))
        }
    }
}

/// Returns an argument that would match a parameter.
fn suggestion(variable: &Variable) -> String {
    let scalar = Element::from_name(variable.ty.name()).filter(|_| variable.dims.is_empty());
    match scalar {
        Some(_) if is_address(variable) => "--arg f32[64]:zero".to_owned(),
        Some(element) => format!("--arg {element}:0"),
        None => "--arg '{…}'".to_owned(),
    }
}

/// Tests if a parameter can hold an address: a single integer of 64 bits, or 32 bits in old code.
fn is_address(variable: &Variable) -> bool {
    let wide = matches!(variable.ty, Type::U64 | Type::B64 | Type::S64);
    variable.pointer.is_some() || (wide && variable.dims.is_empty() && variable.vector == 1)
}

struct Builder<'m> {
    module: &'m Module,
    folder: &'m Path,
    buffers: Vec<LaunchBuffer>,
    images: Images,
}

impl Builder<'_> {
    fn address_bytes(&self) -> u64 {
        u64::from(self.module.code().address_size / 8)
    }

    fn argument(&mut self, argument: &ArgumentSpec, variable: &Variable, info: &ParamInfo) -> Result<Argument, LaunchError> {
        self.check(argument, variable, info)?;
        Ok(match &argument.value {
            ArgumentValue::Scalar { bytes, .. } => Argument::Bytes(bytes.clone()),
            ArgumentValue::Buffer(buffer) => Argument::Address(self.buffer(buffer, info.name.clone(), argument.span)?),
            ArgumentValue::Struct(members) => Argument::Bytes(self.members(members, info)?),
        })
    }

    /// Checks size and kind of an argument against its parameter.
    fn check(&self, argument: &ArgumentSpec, variable: &Variable, info: &ParamInfo) -> Result<(), LaunchError> {
        let misfit = |message: String, label: String| {
            let there =
                format!("`{}` is `{}`{}", info.name, variable.ty, if variable.dims.is_empty() { "" } else { ", an array" });
            Diagnostic::error(MISFIT, message).at(argument.span, label).label(variable.span, there)
        };
        let bytes = match &argument.value {
            ArgumentValue::Scalar { bytes, .. } => bytes.len() as u64,
            ArgumentValue::Buffer(_) => self.address_bytes(),
            ArgumentValue::Struct(members) => self.layout(members).1,
        };
        if bytes != info.bytes {
            let what =
                if matches!(argument.value, ArgumentValue::Buffer(_)) { "the address of a buffer" } else { "the argument" };
            let message = format!("{what} has {bytes} bytes, but the parameter `{}` has {}", info.name, info.bytes);
            let diagnostic = misfit(message, format!("{bytes} bytes"));
            return Err(diagnostic.help(format!("what would fit is `{}`", suggestion(variable))).into());
        }
        let kinds = match &argument.value {
            ArgumentValue::Scalar { element, .. } => (element.ty().kind(), variable.ty.kind()),
            ArgumentValue::Buffer(_) => (TypeKind::Unsigned, variable.ty.kind()),
            ArgumentValue::Struct(_) => return Ok(()),
        };
        let integer = |kind| matches!(kind, TypeKind::Unsigned | TypeKind::Signed);
        let diagnostic = match kinds {
            (TypeKind::Float, kind) if integer(kind) => {
                misfit(format!("a float for the integer `{}`", info.name), "a float".to_owned())
                    .help("to pass the bits of a float as an integer, write them as `b32:0x…`")
            }
            (kind, TypeKind::Float) if integer(kind) => {
                misfit(format!("an integer for the float `{}`", info.name), "an integer".to_owned())
                    .help(format!("write `{}:…`", variable.ty.name()))
            }
            _ if variable.dims.is_empty() || variable.bytes() == Some(variable.element_bytes()) => return Ok(()),
            _ => misfit(format!("`{}` is an array of {} bytes", info.name, info.bytes), "one value".to_owned())
                .help("pass its members in braces: `{i32:1; f32:2}`"),
        };
        Err(diagnostic.into())
    }

    /// Returns the offsets of a struct's members and its size, with C layout.
    fn layout(&self, members: &[ArgumentSpec]) -> (Vec<u64>, u64) {
        let (mut offsets, mut end, mut most) = (vec![], 0u64, 1u64);
        for member in members {
            let size = match &member.value {
                ArgumentValue::Scalar { bytes, .. } => bytes.len() as u64,
                ArgumentValue::Buffer(_) => self.address_bytes(),
                ArgumentValue::Struct(inner) => self.layout(inner).1,
            }
            .max(1);
            // Members are scalars and addresses, so the alignment of each is its size.
            end = end.next_multiple_of(size);
            offsets.push(end);
            end += size;
            most = most.max(size);
        }
        (offsets, end.next_multiple_of(most))
    }

    fn members(&mut self, members: &[ArgumentSpec], info: &ParamInfo) -> Result<Vec<u8>, LaunchError> {
        let (offsets, size) = self.layout(members);
        let mut block = vec![0; size as usize];
        for (index, (member, offset)) in members.iter().zip(offsets).enumerate() {
            let bytes = match &member.value {
                ArgumentValue::Scalar { bytes, .. } => bytes.clone(),
                ArgumentValue::Buffer(buffer) => {
                    let address = self.buffer(buffer, format!("{}.{index}", info.name), member.span)?;
                    address.to_le_bytes()[..self.address_bytes() as usize].to_vec()
                }
                // The grammar has no nested structs.
                ArgumentValue::Struct(_) => vec![],
            };
            let start = offset as usize;
            block[start..start + bytes.len()].copy_from_slice(&bytes);
        }
        Ok(block)
    }

    /// Allocates and fills a buffer. Returns its address.
    fn buffer(&mut self, spec: &BufferSpec, name: String, place: Span) -> Result<u64, LaunchError> {
        let Start { element, shape, bytes } = self.start(spec, place)?;
        let count = shape.iter().product::<u64>();
        let length = usize::try_from(count.saturating_mul(element.bytes() as u64)).unwrap_or(usize::MAX);
        let memory = self.module.device().allocate::<u8>(length)?;
        match (&spec.contents, bytes) {
            (Contents::Zero, _) => memory.fill_bytes(0)?,
            (_, Some(bytes)) => memory.write(&bytes)?,
            (_, None) => {}
        }
        let mut address = memory.address();
        if let Some(image) = &spec.image {
            address = image.create(self.module.device(), address, element, &shape, place)?;
            self.images.handles.push(address);
        }
        self.buffers.push(LaunchBuffer { name, element, shape, memory, output: spec.output.clone() });
        Ok(address)
    }

    fn start(&self, spec: &BufferSpec, place: Span) -> Result<Start, LaunchError> {
        if let Contents::File(path) = &spec.contents {
            return self.file(spec, path, place);
        }
        let element = spec.element.unwrap_or(Element::B8);
        let shape = spec.shape.clone().unwrap_or_default();
        let room = || {
            let length = shape.iter().product::<u64>() as usize * element.bytes();
            let mut bytes = vec![];
            bytes.try_reserve_exact(length).map_err(|_| {
                Diagnostic::error(TOO_LARGE, format!("no room for {length} bytes on this machine")).at(place, "this buffer")
            })?;
            bytes.resize(length, 0);
            Ok::<_, LaunchError>(bytes)
        };
        let bytes = match &spec.contents {
            Contents::Uninitialised | Contents::Zero | Contents::File(_) => None,
            Contents::Values(bytes) => Some(bytes.clone()),
            Contents::Iota => {
                let mut bytes = room()?;
                fill_iota(&mut bytes, element);
                Some(bytes)
            }
            Contents::Random(seed) => {
                let mut bytes = room()?;
                fill_random(&mut bytes, element, *seed);
                Some(bytes)
            }
        };
        Ok(Start { element, shape, bytes })
    }

    fn file(&self, spec: &BufferSpec, path: &Path, place: Span) -> Result<Start, LaunchError> {
        let array = read_npy(&self.folder.join(path)).map_err(|error| {
            Diagnostic::error(BAD_FILE, format!("cannot read `{}`: {error}", path.display())).at(place, "this file")
        })?;
        let misfit = |message: String| {
            LaunchError::from(Diagnostic::error(MISFIT, message).at(place, "what the file holds is something else"))
        };
        let element = spec.element.unwrap_or(array.element);
        if array.bytes.len() % element.bytes() != 0 {
            return Err(misfit(format!(
                "`{}` holds {} bytes, which are no whole number of `{element}`",
                path.display(),
                array.bytes.len()
            )));
        }
        let count = (array.bytes.len() / element.bytes()) as u64;
        let shape = match &spec.shape {
            Some(shape) if shape.iter().product::<u64>() == count => shape.clone(),
            Some(shape) => {
                let wanted: u64 = shape.iter().product();
                return Err(misfit(format!("`{}` holds {count} values, not {wanted}", path.display())));
            }
            None if element.bytes() == array.element.bytes() => array.shape,
            None => vec![count],
        };
        Ok(Start { element, shape, bytes: Some(array.bytes) })
    }
}

impl PreparedLaunch {
    /// Returns the kernel that the launch runs.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Launches and waits.
    pub fn launch(&self) -> device::Result<()> {
        self.kernel.launch(&self.launch, &self.arguments)?;
        self.images.device.synchronise()
    }

    /// Reads the buffers to be printed or written.
    pub fn outputs(&self) -> device::Result<Vec<Output>> {
        let mut outputs = vec![];
        for bound in &self.buffers {
            let Some(destination) = bound.output.clone() else { continue };
            let array = HostArray { element: bound.element, shape: bound.shape.clone(), bytes: bound.memory.read()? };
            outputs.push(Output { name: bound.name.clone(), destination, array });
        }
        Ok(outputs)
    }
}
