//! Loaded module, compiled by the driver. Kernels are looked up on first launch.

use crate::driver::FailedCall;
use crate::ffi::{
    ATTRIBUTE_CLUSTER, ATTRIBUTE_COOPERATIVE, ATTRIBUTE_OVERLAP, AttributeValue, FunctionAttribute, FunctionHandle,
    LaunchAttribute, LaunchConfig, Limit, ModuleHandle, PARAM_END, PARAM_POINTER, PARAM_SIZE, code,
};
use crate::image::{self, LoadFacts};
use crate::inner::Inner;
use crate::machine;
use crate::statistics::{KernelStatistics, Record};
use crate::timing::TracedWork;
use broadloom_device::{Error, GlobalVariable, KernelAttributes, Launch, LoadedModule, Result};
use broadloom_ptx::{Callee, Func, Function, Modifier, Opcode, Verified};
use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Size in bytes of the heap for `malloc` in kernels.
const HEAP_BYTES: usize = 64 << 20;
/// Dynamic shared memory in bytes that every kernel may use without opting in.
const PLAIN_SHARED: u32 = 48 << 10;
/// Portable cluster size in blocks.
const PORTABLE_CLUSTER: u64 = 8;

/// Kernel that was looked up in its module.
#[derive(Debug)]
pub(crate) struct LoadedKernel {
    pub(crate) function: FunctionHandle,
    pub(crate) name: Arc<str>,
    /// Static shared memory in bytes.
    static_shared: u32,
    max_threads: u32,
    /// Dynamic shared memory granted so far.
    granted_shared: AtomicU32,
    /// Size of the parameters in bytes.
    param_bytes: usize,
    /// True if it waits for preceding kernels itself, so that it may start while they run.
    waits: bool,
    record: Arc<Record>,
}

/// Module loaded on a GPU.
#[derive(Debug)]
pub(crate) struct CudaModule {
    pub(crate) inner: Arc<Inner>,
    handle: ModuleHandle,
    code: Arc<Verified>,
    /// Facts on its load.
    facts: LoadFacts,
    kernels: HashMap<Func, OnceLock<LoadedKernel>>,
    variables: Mutex<HashMap<String, Option<GlobalVariable>>>,
}

impl CudaModule {
    pub(crate) fn new(inner: &Arc<Inner>, code: &Arc<Verified>) -> Result<CudaModule> {
        inner.context.enter()?;
        let declared: HashSet<&str> = code.functions.values().filter(|f| !f.has_body).map(|f| f.name.as_str()).collect();
        set_limits(inner, code, declared.contains("malloc"))?;
        let (handle, facts) = image::load(inner, code)?;
        if declared.contains("vprintf") {
            inner.prints.store(true, Ordering::Relaxed);
        }
        Ok(CudaModule {
            inner: inner.clone(),
            handle,
            code: code.clone(),
            facts,
            kernels: code.kernels().map(|(func, _)| (func, OnceLock::new())).collect(),
            variables: Mutex::default(),
        })
    }

    /// Returns a kernel, looked up once. The context must be current.
    #[inline]
    pub(crate) fn found(&self, kernel: Func) -> Result<&LoadedKernel> {
        let place = self.kernels.get(&kernel).ok_or_else(|| self.unknown(kernel))?;
        match place.get() {
            Some(found) => Ok(found),
            None => {
                let found = self.find(kernel)?;
                Ok(place.get_or_init(|| found))
            }
        }
    }

    fn unknown(&self, kernel: Func) -> Error {
        Error::UnknownKernel { name: format!("{kernel:?}"), available: vec![] }
    }

    fn find(&self, kernel: Func) -> Result<LoadedKernel> {
        let (context, function) = (&self.inner.context, &self.code.functions[kernel]);
        let name = CString::new(function.name.as_str()).map_err(|_| self.unknown(kernel))?;
        let handle = context.checked(context.driver.function(self.handle, &name))?;
        let attribute = |attribute| context.checked(context.driver.function_attribute(handle, attribute));
        let layout = broadloom_device::param_layout(function);
        let static_shared = attribute(FunctionAttribute::SharedBytes)?;
        let facts = KernelStatistics {
            kernel: function.name.clone(),
            registers: attribute(FunctionAttribute::Registers)?,
            shared_bytes: static_shared,
            local_bytes: attribute(FunctionAttribute::LocalBytes)?,
            load_time: self.facts.time,
            miss: self.facts.miss,
            launches: 0,
            timed: 0,
            run_time: Duration::ZERO,
        };
        let max_threads = attribute(FunctionAttribute::MaxThreadsPerBlock)?;
        self.allow_clusters(handle, function.directive("reqnctapercluster"))?;
        Ok(LoadedKernel {
            function: handle,
            name: function.name.as_str().into(),
            static_shared,
            max_threads,
            granted_shared: AtomicU32::new(PLAIN_SHARED.saturating_sub(static_shared)),
            param_bytes: layout.last().map_or(0, |last| (last.offset + last.bytes) as usize),
            waits: waits_first(function),
            record: self.inner.note_kernel(facts),
        })
    }

    /// Allows cluster sizes beyond the portable one.
    fn allow_clusters(&self, function: FunctionHandle, size: Option<&[u32]>) -> Result<()> {
        let blocks: u64 = size.unwrap_or_default().iter().map(|&n| u64::from(n)).product();
        if blocks <= PORTABLE_CLUSTER {
            return Ok(());
        }
        let context = &self.inner.context;
        context.checked(context.driver.set_function_attribute(function, FunctionAttribute::NonPortableClusters, 1))
    }

    /// Checks a launch and grants the kernel its shared memory. The context must be current.
    pub(crate) fn ready(&self, found: &LoadedKernel, launch: &Launch, params: &[u8]) -> Result<()> {
        let bad = |reason: String| Err(Error::BadLaunch { kernel: found.name.to_string(), reason });
        if params.len() != found.param_bytes {
            let reason = format!("its parameters have {} bytes, not {}", found.param_bytes, params.len());
            return Err(Error::BadArgument { kernel: found.name.to_string(), reason });
        }
        let threads = launch.threads_per_block();
        if threads > u64::from(found.max_threads) {
            return bad(format!("with the registers it needs a block has at most {} threads, not {threads}", found.max_threads));
        }
        if launch.shared_bytes > found.granted_shared.load(Ordering::Relaxed) {
            let most = self.inner.machine.max_shared_bytes;
            let total = u64::from(found.static_shared) + u64::from(launch.shared_bytes);
            if total > u64::from(most) {
                return bad(format!("it needs {total} bytes of shared memory, a block has at most {most}"));
            }
            let context = &self.inner.context;
            let attribute = FunctionAttribute::MaxDynamicSharedBytes;
            context.checked(context.driver.set_function_attribute(found.function, attribute, launch.shared_bytes))?;
            found.granted_shared.fetch_max(launch.shared_bytes, Ordering::Relaxed);
        }
        self.allow_clusters(found.function, launch.cluster.as_ref().map(|size| size.as_slice()))?;
        if launch.cooperative {
            if !self.inner.cooperative {
                return bad("this GPU has no cooperative launches".to_owned());
            }
            let most = u64::from(self.resident(found, launch)?) * u64::from(self.inner.machine.multiprocessors);
            if launch.blocks() > most {
                return bad(format!("at most {most} of its blocks run at the same time, not {}", launch.blocks()));
            }
        }
        Ok(())
    }

    /// Returns the number of resident blocks of a launch per multiprocessor. The context must be current.
    fn resident(&self, found: &LoadedKernel, launch: &Launch) -> Result<u32> {
        let context = &self.inner.context;
        let threads = u32::try_from(launch.threads_per_block()).unwrap_or(u32::MAX);
        context.checked(context.driver.occupancy(found.function, threads, launch.shared_bytes))
    }

    /// Converts the failure of a launch to an error.
    fn refused(&self, found: &LoadedKernel, failed: FailedCall) -> Error {
        match failed.code {
            code::INVALID_VALUE | code::LAUNCH_OUT_OF_RESOURCES | code::COOPERATIVE_LAUNCH_TOO_LARGE => {
                let reason = format!("the driver does not take the launch: {}", self.inner.context.driver.describe(failed));
                Error::BadLaunch { kernel: found.name.to_string(), reason }
            }
            _ => self.inner.context.error(failed),
        }
    }
}

/// Builds the driver's parameter list, which names address and size of the parameter block.
pub(crate) fn extra(params: &[u8], bytes: &usize) -> [usize; 5] {
    [PARAM_POINTER, params.as_ptr() as usize, PARAM_SIZE, std::ptr::from_ref(bytes) as usize, PARAM_END]
}

/// Tests if every thread of a kernel first waits for the preceding kernels.
fn waits_first(function: &Function) -> bool {
    let first = function.instructions().next().map(|(_, inst)| inst);
    first.is_some_and(|inst| {
        inst.opcode() == Some(Opcode::Griddepcontrol)
            && inst.guard.is_none()
            && inst.modifiers().any(|modifier| modifier == Modifier::Wait)
    })
}

/// Attribute value of a set flag: cooperative launch, or programmatic early start.
pub(crate) const IS_SO: AttributeValue = AttributeValue::new([1, 0, 0]);

/// Sets heap and stack limits for kernels that allocate or recurse, because the driver cannot know their
/// needs.
fn set_limits(inner: &Inner, code: &Verified, allocates: bool) -> Result<()> {
    let context = &inner.context;
    if allocates && !context.heap_is_set.load(Ordering::Relaxed) {
        context.checked(context.driver.set_limit(Limit::HeapBytes, HEAP_BYTES))?;
        context.heap_is_set.store(true, Ordering::Relaxed);
    }
    if calls_deeply(code) && !context.stack_is_set.load(Ordering::Relaxed) {
        // All resident threads together get a sixteenth of the GPU's memory as stack.
        let threads = context.checked(machine::resident_threads(&context.driver, context.device))?;
        let memory = context.checked(context.driver.device_memory(context.device))?;
        let each = (memory / 16 / threads.max(1)).clamp(1 << 10, 64 << 10) & !15;
        context.checked(context.driver.set_limit(Limit::StackBytes, each as usize))?;
        context.stack_is_set.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// Tests if a function may call itself, through others or through a pointer.
fn calls_deeply(module: &Verified) -> bool {
    let mut callees: HashMap<Func, HashSet<Func>> = HashMap::new();
    for (func, function) in module.functions.iter() {
        for (_, data) in function.instructions() {
            match data.callee() {
                Some(Callee::Direct(callee)) => {
                    callees.entry(func).or_default().insert(callee);
                }
                Some(Callee::Indirect { .. }) => return true,
                None => {}
            }
        }
    }
    // A function that reaches itself.
    module.functions.keys().any(|start| {
        let (mut seen, mut open) = (HashSet::new(), vec![start]);
        while let Some(func) = open.pop() {
            for &callee in callees.get(&func).into_iter().flatten() {
                if callee == start {
                    return true;
                }
                if seen.insert(callee) {
                    open.push(callee);
                }
            }
        }
        false
    })
}

impl LoadedModule for CudaModule {
    fn variable(&self, name: &str) -> Option<GlobalVariable> {
        let mut variables = self.variables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = variables.get(name) {
            return *known;
        }
        self.inner.context.enter().ok()?;
        let found = self.inner.context.driver.variable(self.handle, &CString::new(name).ok()?);
        let known = match found {
            Ok((address, bytes)) => Some(GlobalVariable { address, bytes }),
            Err(failed) if failed.code == code::NOT_FOUND => None,
            // Unavailable now, but perhaps not later.
            Err(failed) => {
                let _ = self.inner.context.error(failed);
                return None;
            }
        };
        if let Some(variable) = known {
            self.inner.pool().add_variable(variable.address, variable.bytes);
        }
        variables.insert(name.to_owned(), known);
        known
    }

    fn prepare(&self, kernel: Func, launch: &Launch) -> Result<()> {
        self.inner.context.enter()?;
        let found = self.found(kernel)?;
        let params = vec![0; found.param_bytes];
        self.ready(found, launch, &params)
    }

    fn attributes(&self, kernel: Func) -> Result<KernelAttributes> {
        let context = &self.inner.context;
        context.enter()?;
        let found = self.found(kernel)?;
        let attribute = |attribute| context.checked(context.driver.function_attribute(found.function, attribute)).map(Some);
        Ok(KernelAttributes {
            registers: attribute(FunctionAttribute::Registers)?,
            shared_bytes: Some(found.static_shared),
            local_bytes: attribute(FunctionAttribute::LocalBytes)?,
            max_threads_per_block: Some(found.max_threads),
            max_dynamic_shared_bytes: Some(self.inner.machine.max_shared_bytes.saturating_sub(found.static_shared)),
        })
    }

    fn occupancy(&self, kernel: Func, launch: &Launch) -> Result<Option<u32>> {
        self.inner.context.enter()?;
        let found = self.found(kernel)?;
        self.resident(found, launch).map(Some)
    }

    fn launch(&self, kernel: Func, launch: &Launch, params: &[u8]) -> Result<()> {
        let inner = &self.inner;
        let queue = inner.queue(launch.stream)?;
        inner.context.enter()?;
        let found = self.found(kernel)?;
        self.ready(found, launch, params)?;
        let bytes = params.len();
        let list = extra(params, &bytes);
        let extra = if params.is_empty() { std::ptr::null() } else { list.as_ptr() };
        let driver = &inner.context.driver;
        let begun = inner.begin(&queue, inner.timing.times_launches())?;
        let attribute = |id, value| LaunchAttribute { id, pad: [0; 4], value };
        let mut attributes = [attribute(0, IS_SO); 2];
        let mut count = 0;
        if launch.cooperative || found.waits {
            attributes[count] = attribute(if launch.cooperative { ATTRIBUTE_COOPERATIVE } else { ATTRIBUTE_OVERLAP }, IS_SO);
            count += 1;
        }
        if let Some(size) = launch.cluster {
            attributes[count] = attribute(ATTRIBUTE_CLUSTER, AttributeValue::new(size));
            count += 1;
        }
        let launched = if count > 0 {
            let config = LaunchConfig {
                grid: launch.grid,
                block: launch.block,
                shared_bytes: launch.shared_bytes,
                stream: queue.handle,
                attributes: attributes.as_ptr(),
                attribute_count: count as u32,
            };
            // SAFETY: the list is terminated and has the kernel's number of parameter bytes, which `ready`
            // has checked.
            unsafe { driver.launch_with(&config, found.function, extra) }
        } else {
            // SAFETY: as above.
            unsafe { driver.launch(found.function, launch.grid, launch.block, launch.shared_bytes, queue.handle, extra) }
        };
        launched.map_err(|failed| self.refused(found, failed))?;
        queue.journal().note(&found.name, launch.time_limit);
        inner.given(&queue);
        found.record.launched();
        inner.end(&queue, begun, || TracedWork::launch(&found.name, &found.record, launch))?;
        if inner.options.synchronous { inner.wait(&queue) } else { Ok(()) }
    }
}

impl Drop for CudaModule {
    fn drop(&mut self) {
        let mut pool = self.inner.pool();
        for variable in self.variables.lock().unwrap_or_else(PoisonError::into_inner).values().flatten() {
            pool.remove_variable(variable.address);
        }
        drop(pool);
        // Its kernels may still be running.
        let number = self.inner.number.load(Ordering::SeqCst);
        self.inner.dying_modules.lock().unwrap_or_else(PoisonError::into_inner).push((number, self.handle));
        if !self.inner.any_queue(|queue| queue.is_busy()) && self.inner.context.enter_to_release() {
            self.inner.unload_modules(|_| true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_wait_first_are_known() {
        let waits = |body: &str| {
            let head = ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k() {\n.reg .pred %p;\n.reg .b32 %r;\n";
            let mut sources = broadloom_diag::Sources::new();
            let id = sources.add("k.ptx", format!("{head}{body}ret;\n}}\n"));
            let module = broadloom_ptx::parse(&sources, id).unwrap();
            module.kernels().all(|(_, kernel)| waits_first(kernel))
        };
        assert!(waits("griddepcontrol.wait;\nmov.u32 %r, %tid.x;\n"));
        assert!(!waits("mov.u32 %r, %tid.x;\ngriddepcontrol.wait;\n"));
        assert!(!waits("griddepcontrol.launch_dependents;\ngriddepcontrol.wait;\n"));
        assert!(!waits("@%p griddepcontrol.wait;\n"));
        assert!(!waits(""));
    }
}
