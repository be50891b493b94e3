//! Kernels: lookup, and launches as programs request them.

use crate::objects::image::Image;
use crate::objects::kernels::{Kernel, ResolvedKernel};
use crate::objects::streams::Stream;
use crate::objects::work::Work;
use crate::pointer::{In, bytes_at};
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use crate::types::Dim3;
use broadloom_device::{Argument, Launch};
use broadloom_ptx::{Space, Variable};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

impl Kernel {
    /// Returns the resolved kernel and loads its module on first use.
    pub(crate) fn resolved(&self, runtime: &Runtime) -> Outcome<&ResolvedKernel> {
        self.resolved.get_or_init(|| self.resolve(runtime)).as_ref().map_err(|status| *status)
    }

    fn resolve(&self, runtime: &Runtime) -> Outcome<ResolvedKernel> {
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
        Ok(ResolvedKernel { kernel, static_shared, local, constant, max_threads, version: loaded.version })
    }

    /// Sets the maximum dynamic shared memory of a launch.
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

impl Runtime {
    /// Adds a kernel of a module.
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
            settings: Mutex::default(),
        });
        self.kernels.handles.put(handle, kernel.clone());
        kernel
    }

    /// Returns the kernel of a host function or handle.
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

    /// Returns the host function or the handle by which the program refers to a kernel.
    pub(crate) fn function_of(&self, kernel: &Arc<Kernel>) -> usize {
        let by_host = self.kernels.by_host.lock().unwrap_or_else(PoisonError::into_inner);
        by_host.iter().find(|(_, known)| Arc::ptr_eq(known, kernel)).map_or(kernel.handle(), |(host, _)| *host)
    }

    /// Removes the kernels of an unloaded module and their host functions.
    pub(crate) fn forget_kernels(&self, image: &Arc<Image>) {
        self.kernels
            .by_host
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|_, kernel| !Arc::ptr_eq(kernel.image(), image));
        self.kernels.handles.retain(|kernel| !Arc::ptr_eq(kernel.image(), image));
    }
}

/// Location of a launch's arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arguments {
    /// Array of pointers, one per argument.
    Places(In<usize>),
    /// Address and size of one block, laid out like the kernel's parameters.
    Block(usize, usize),
}

impl Arguments {
    /// Parses a list of extra parameters, terminated by 0: 1 precedes the address of the argument block, and
    /// 2 the address of its size.
    pub(crate) fn from_list(list: usize) -> Outcome<Arguments> {
        let (mut start, mut size, mut place) = (0, 0, list);
        loop {
            let word = In::<usize>::at(place).get()?;
            let value = In::<usize>::at(place + size_of::<usize>());
            match word {
                0 => return Ok(Arguments::Block(start, size)),
                1 => start = value.get()?,
                2 => size = In::<usize>::at(value.get()?).get()?,
                _ => return Err(Status::INVALID_VALUE),
            }
            place += 2 * size_of::<usize>();
        }
    }
}

/// Launch as requested by a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// Size of the grid in blocks.
    pub(crate) grid: [u32; 3],
    /// Size of a block in threads.
    pub(crate) block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub(crate) shared: usize,
    /// True for a cooperative launch: all blocks are resident at the same time.
    pub(crate) cooperative: bool,
    /// Size of a cluster in blocks.
    pub(crate) cluster: Option<[u32; 3]>,
}

impl Request {
    /// Returns a launch that is neither cooperative nor in clusters.
    pub(crate) fn plain(grid: Dim3, block: Dim3, shared: usize) -> Request {
        Request { grid: grid.list(), block: block.list(), shared, cooperative: false, cluster: None }
    }
}

impl Runtime {
    /// Checks a launch and copies its arguments.
    pub(crate) fn prepare(&self, kernel: &Arc<Kernel>, request: &Request, arguments: Arguments) -> Outcome<Work> {
        let machine = self.device()?.machine();
        let resolved = kernel.resolved(self)?;
        let threads: u64 = request.block.iter().map(|n| u64::from(*n)).product();
        let shape = (0..3).all(|axis| {
            (1..=machine.max_grid[axis]).contains(&request.grid[axis])
                && (1..=machine.max_block[axis]).contains(&request.block[axis])
        });
        crate::check::about(|| {
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
        // Shape and memory were checked before, so the only remaining cause is the number of blocks.
        let too_large = |status| request.cooperative && status == Status::LAUNCH_OUT_OF_RESOURCES;
        outcome.map_err(|status| if too_large(status) { Status::COOPERATIVE_LAUNCH_TOO_LARGE } else { status })
    }
}
