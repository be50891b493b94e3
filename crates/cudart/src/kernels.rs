//! Kernels as programs hold them: by the host's function that stands for one, or by a handle.

use crate::driver::parameters::Prepared;
use crate::handles::{Handle, Handles};
use crate::image::Image;
use crate::pointer::{In, bytes_at};
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use crate::streams::Stream;
use crate::work::Work;
use broadloom_device::{Argument, Launch};
use broadloom_ptx::{Space, Variable};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Dynamic shared memory that a launch may ask for before the program says more.
pub(crate) const DEFAULT_SHARED: u32 = 48 << 10;

/// A kernel.
#[derive(Debug)]
pub(crate) struct Kernel {
    handle: Handle,
    image: Arc<Image>,
    name: String,
    resolved: OnceLock<Outcome<Resolved>>,
    /// Dynamic shared memory that the program raised the limit to; negative when it has not.
    max_dynamic: AtomicI32,
    /// The part of the cache that it prefers as shared memory.
    pub(crate) carveout: AtomicI32,
    /// Blocks of a cluster that launches must have, as the program set them; 0 where it has not.
    pub(crate) required_cluster: [AtomicU32; 3],
    /// Whether clusters may be larger than every device has them.
    pub(crate) large_clusters: AtomicBool,
    /// How the blocks of a cluster are to be spread, which makes no difference here.
    pub(crate) spread: AtomicU32,
    /// What was set for launches of the old kind.
    prepared: Mutex<Prepared>,
}

/// A kernel of a module that is ready.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// The device's kernel.
    pub(crate) kernel: broadloom_device::Kernel,
    /// Shared memory that is not dynamic, in bytes.
    pub(crate) static_shared: u32,
    /// Local memory of a thread.
    pub(crate) local: u32,
    /// Constant memory of the module.
    pub(crate) constant: u32,
    /// Most threads of a block.
    pub(crate) max_threads: u32,
    /// The PTX that it was compiled from: 75 is 7.5.
    pub(crate) version: u32,
}

impl Kernel {
    /// The module that it is in.
    pub(crate) fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// What was set for launches of the old kind.
    pub(crate) fn prepared(&self) -> MutexGuard<'_, Prepared> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What the program calls it.
    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    /// The kernel, made ready by whoever needs it first.
    pub(crate) fn resolved(&self, runtime: &Runtime) -> Outcome<&Resolved> {
        self.resolved.get_or_init(|| self.resolve(runtime)).as_ref().map_err(|status| *status)
    }

    fn resolve(&self, runtime: &Runtime) -> Outcome<Resolved> {
        let loaded = self.image.loaded(runtime)?;
        let kernel = loaded.module.kernel(&self.name).map_err(|_| Status::INVALID_DEVICE_FUNCTION)?;
        let function = kernel.function();
        let code = loaded.module.code();
        let end =
            |end: u64, variable: &Variable| end.next_multiple_of(variable.alignment().max(1)) + variable.bytes().unwrap_or(0);
        let own = |space: Space| function.variables.values().filter(|variable| variable.space == space).fold(0, end);
        let constant = code.variables.values().filter(|variable| variable.space == Space::Const).fold(0, end);
        let clamp = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let most = runtime.device()?.machine().max_threads_per_block;
        let max_threads = function
            .directive("maxntid")
            .or(function.directive("reqntid"))
            .map_or(most, |list| list.iter().product::<u32>().min(most));
        let shared = code.function(&self.name).map_or(0, |func| code.static_shared_bytes(func));
        let (static_shared, local, constant) = (clamp(shared), clamp(own(Space::Local)), clamp(constant));
        Ok(Resolved { kernel, static_shared, local, constant, max_threads, version: loaded.version })
    }

    /// Most dynamic shared memory that a launch may ask for.
    pub(crate) fn max_dynamic(&self, resolved: &Resolved) -> u32 {
        match u32::try_from(self.max_dynamic.load(Ordering::Relaxed)) {
            Ok(raised) => raised,
            Err(_) => DEFAULT_SHARED.saturating_sub(resolved.static_shared),
        }
    }

    /// Raises, or lowers, that limit.
    pub(crate) fn set_max_dynamic(&self, runtime: &Runtime, bytes: i32) -> Outcome {
        let resolved = self.resolved(runtime)?;
        let most = runtime.device()?.machine().max_shared_bytes;
        let fits = u32::try_from(bytes).is_ok_and(|bytes| bytes.saturating_add(resolved.static_shared) <= most);
        if !fits {
            return Err(Status::INVALID_VALUE);
        }
        self.max_dynamic.store(bytes, Ordering::Relaxed);
        Ok(())
    }
}

/// Blocks of a cluster that every device with clusters runs, and that this one does.
const CLUSTER_BLOCKS: [u64; 2] = [8, 16];

impl Kernel {
    /// The clusters that a kernel must be launched in: those that it was compiled for, or that the program set.
    pub(crate) fn required(&self, resolved: &Resolved) -> Option<[u32; 3]> {
        let compiled = Launch::linear(1, 1).cluster_of(resolved.kernel.function());
        let set = self.required_cluster.each_ref().map(|blocks| blocks.load(Ordering::Relaxed));
        compiled.or_else(|| (set != [0; 3]).then(|| set.map(|blocks| blocks.max(1))))
    }

    /// Most blocks of a cluster.
    pub(crate) fn most_cluster_blocks(&self) -> u64 {
        CLUSTER_BLOCKS[usize::from(self.large_clusters.load(Ordering::Relaxed))]
    }

    /// The clusters of a launch that asks for some, or for none.
    pub(crate) fn cluster(&self, resolved: &Resolved, wanted: Option<[u32; 3]>) -> Outcome<Option<[u32; 3]>> {
        let required = self.required(resolved);
        let Some(size) = wanted.or(required) else { return Ok(None) };
        let blocks: u64 = size.iter().map(|blocks| u64::from(*blocks)).product();
        // What it was compiled for it may have.
        let most = if required.is_some() { CLUSTER_BLOCKS[1] } else { self.most_cluster_blocks() };
        if required.is_some_and(|required| required != size) || blocks == 0 || blocks > most {
            return Err(Status::INVALID_CLUSTER_SIZE);
        }
        Ok(Some(size))
    }
}

/// All kernels that programs hold.
#[derive(Debug)]
pub(crate) struct Kernels {
    handles: Handles<Kernel>,
    by_host: Mutex<HashMap<usize, Arc<Kernel>>>,
}

impl Kernels {
    pub(crate) fn new() -> Kernels {
        Kernels { handles: Handles::new(8), by_host: Mutex::default() }
    }
}

impl Runtime {
    /// A handle to a kernel of a module.
    pub(crate) fn add_kernel(&self, image: &Arc<Image>, name: String) -> Arc<Kernel> {
        let handle = self.kernels.handles.reserve();
        let kernel = Arc::new(Kernel {
            handle,
            image: image.clone(),
            name,
            resolved: OnceLock::new(),
            max_dynamic: AtomicI32::new(-1),
            carveout: AtomicI32::new(-1),
            required_cluster: Default::default(),
            large_clusters: AtomicBool::new(false),
            spread: AtomicU32::new(0),
            prepared: Mutex::default(),
        });
        self.kernels.handles.put(handle, kernel.clone());
        kernel
    }

    /// The kernel that a function of the host, or a handle, stands for.
    pub(crate) fn kernel(&self, function: usize) -> Outcome<Arc<Kernel>> {
        let mut by_host = self.kernels.by_host.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = by_host.get(&function) {
            return Ok(kernel.clone());
        }
        if let Some((image, name)) = self.registry.function(function) {
            let kernel = self.add_kernel(&image, name);
            by_host.insert(function, kernel.clone());
            return Ok(kernel);
        }
        self.kernels.handles.find(function).ok_or(Status::INVALID_DEVICE_FUNCTION)
    }

    /// What a program knows a kernel by: the function of the host, or the handle.
    pub(crate) fn function_of(&self, kernel: &Arc<Kernel>) -> usize {
        let by_host = self.kernels.by_host.lock().unwrap_or_else(PoisonError::into_inner);
        by_host.iter().find(|(_, known)| Arc::ptr_eq(known, kernel)).map_or(kernel.handle(), |(host, _)| *host)
    }

    /// Forgets kernels, and which functions of the host stood for them: their module is gone.
    pub(crate) fn forget_kernels(&self, image: &Arc<Image>) {
        self.kernels
            .by_host
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|_, kernel| !Arc::ptr_eq(kernel.image(), image));
        self.kernels.handles.retain(|kernel| !Arc::ptr_eq(kernel.image(), image));
    }
}

/// Where the arguments of a launch are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arguments {
    /// A list of places, one for each.
    Places(In<usize>),
    /// All of them in one block, as the kernel's parameters are laid out.
    Block(usize, usize),
}

/// A launch as a program asks for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// Blocks.
    pub(crate) grid: [u32; 3],
    /// Threads of a block.
    pub(crate) block: [u32; 3],
    /// Dynamic shared memory.
    pub(crate) shared: usize,
    /// All blocks at the same time.
    pub(crate) cooperative: bool,
    /// Blocks of a cluster.
    pub(crate) cluster: Option<[u32; 3]>,
}

impl Runtime {
    /// Checks a launch and takes its arguments.
    pub(crate) fn prepare(&self, kernel: &Arc<Kernel>, request: &Request, arguments: Arguments) -> Outcome<Work> {
        let machine = self.device()?.machine();
        let resolved = kernel.resolved(self)?;
        let threads: u64 = request.block.iter().map(|n| u64::from(*n)).product();
        let shape = (0..3).all(|axis| {
            (1..=machine.max_grid[axis]).contains(&request.grid[axis])
                && (1..=machine.max_block[axis]).contains(&request.block[axis])
        });
        crate::check::about(self.device()?, || {
            let show = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
            let (name, grid, block) = (kernel.name(), show(request.grid), show(request.block));
            format!(" of kernel `{name}` with grid {grid}, block {block} and {} bytes of dynamic shared memory", request.shared)
        });
        if !shape || threads > u64::from(machine.max_threads_per_block) {
            return Err(Status::INVALID_CONFIGURATION);
        }
        if threads > u64::from(resolved.max_threads) || request.shared > kernel.max_dynamic(resolved) as usize {
            return Err(Status::INVALID_VALUE);
        }
        let mut launch = Launch::new(request.grid, request.block).shared(request.shared as u32);
        launch.time_limit = crate::state::time_limit();
        if request.cooperative {
            launch = launch.cooperative();
        }
        if let Some(size) = kernel.cluster(resolved, request.cluster)? {
            if !(0..3).all(|axis| request.grid[axis].is_multiple_of(size[axis])) {
                return Err(Status::INVALID_CLUSTER_SIZE);
            }
            launch = launch.cluster(size);
        }
        let params = resolved.kernel.params();
        let mut taken = Vec::with_capacity(params.len());
        for (index, param) in params.iter().enumerate() {
            let bytes = usize::try_from(param.bytes).map_err(|_| Status::INVALID_VALUE)?;
            let place = match arguments {
                Arguments::Places(list) => In::<usize>::at(match list.address() {
                    0 => return Err(Status::INVALID_VALUE),
                    start => start + index * size_of::<usize>(),
                })
                .get()?,
                Arguments::Block(start, size) => {
                    let offset = usize::try_from(param.offset).map_err(|_| Status::INVALID_VALUE)?;
                    if offset + bytes > size {
                        return Err(Status::INVALID_VALUE);
                    }
                    start + offset
                }
            };
            taken.push(Argument::Bytes(bytes_at(place, bytes)?));
        }
        Ok(Work::Launch { kernel: kernel.clone(), launch, arguments: taken })
    }

    /// Launches a kernel.
    pub(crate) fn launch(&self, kernel: &Arc<Kernel>, request: &Request, arguments: Arguments, stream: &Stream) -> Outcome {
        let work = self.prepare(kernel, request, arguments)?;
        let outcome = self.submit(stream, work);
        // Shapes and memory are right; what is left are too many blocks.
        let too_large = |status| request.cooperative && status == Status::LAUNCH_OUT_OF_RESOURCES;
        outcome.map_err(|status| if too_large(status) { Status::COOPERATIVE_LAUNCH_TOO_LARGE } else { status })
    }
}
