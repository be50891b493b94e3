//! Fixed sequence of work as a graph of the driver, launched with one call.
//!
//! The nodes form a chain, since a sequence is ordered. The graph is built by adding nodes, not by capturing
//! a stream, so a failing step leaves no stream in capture state.

use crate::ffi::{
    ATTRIBUTE_CLUSTER, ATTRIBUTE_COOPERATIVE, AttributeValue, CopyNode, CopySide, ExecHandle, FillNode, GraphHandle, KernelNode,
    MEMORY_DEVICE, NodeHandle,
};
use crate::inner::Inner;
use crate::module::{CudaModule, IS_SO, extra};
use crate::timing::TracedWork;
use broadloom_device::{Backend, Error, LoadedModule, MatrixProduct, Result, Sequence, Step, Stream, trace};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of kernels of a sequence in a fault message.
const MOST_NAMED: usize = 4;

/// Instantiated sequence.
#[derive(Debug)]
pub(crate) struct Graph {
    inner: Arc<Inner>,
    /// Instantiated graph; `None` if there are no steps.
    exec: Option<ExecHandle>,
    /// Name in messages.
    name: Arc<str>,
    limit: Option<Duration>,
    /// Modules, which must stay loaded as long as their kernels can be launched.
    _modules: Vec<Arc<dyn LoadedModule>>,
}

/// Graph under construction, destroyed on drop.
struct Draft<'a> {
    inner: &'a Inner,
    graph: GraphHandle,
    last: Option<NodeHandle>,
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if self.inner.context.enter_to_release() {
            let _ = self.inner.context.driver.destroy_graph(self.graph);
        }
    }
}

/// Chain of graphs and of steps that a graph cannot contain.
#[derive(Debug)]
struct Chain(Vec<Link>);

#[derive(Debug)]
enum Link {
    Graph(Graph),
    /// Matrix product: the library selects its kernels itself.
    Product(MatrixProduct),
}

impl Sequence for Chain {
    fn replay(&self, backend: &dyn Backend, stream: Stream) -> Result<()> {
        self.0.iter().try_for_each(|link| match link {
            Link::Graph(graph) => graph.replay(backend, stream),
            Link::Product(product) => backend.product(stream, product),
        })
    }
}

impl Graph {
    /// Builds a sequence as one graph, or as several with matrix products between them.
    pub(crate) fn sequence(inner: &Arc<Inner>, steps: Vec<Step>) -> Result<Arc<dyn Sequence>> {
        let mut links = vec![];
        let mut own = vec![];
        for step in steps {
            match step {
                Step::Product(product) => {
                    inner.check_product(&product)?;
                    if !own.is_empty() {
                        links.push(Link::Graph(Graph::new(inner, std::mem::take(&mut own))?));
                    }
                    links.push(Link::Product(product));
                }
                Step::Launch { .. } | Step::Copy { .. } | Step::Fill { .. } => own.push(step),
            }
        }
        let last = Graph::new(inner, own)?;
        if links.is_empty() {
            return Ok(Arc::new(last));
        }
        links.push(Link::Graph(last));
        Ok(Arc::new(Chain(links)))
    }

    fn new(inner: &Arc<Inner>, steps: Vec<Step>) -> Result<Graph> {
        inner.context.enter()?;
        let (mut modules, mut names, mut limit) = (vec![], vec![], None);
        for step in &steps {
            if let Step::Launch { module, kernel, launch, .. } = step {
                let loaded = loaded(inner, module)?;
                let name = loaded.found(*kernel)?.name.clone();
                if !names.contains(&name) {
                    names.push(name);
                }
                modules.push(module.clone());
                limit = launch.time_limit.map(|more| limit.unwrap_or(Duration::ZERO) + more).or(limit);
            }
        }
        let more = if names.len() > MOST_NAMED { ", …" } else { "" };
        let name = format!("sequence of {}{more}", names[..names.len().min(MOST_NAMED)].join(", "));
        let exec = if steps.is_empty() { None } else { Some(build(inner, &steps)?) };
        Ok(Graph { inner: inner.clone(), exec, name: name.into(), limit, _modules: modules })
    }
}

/// Returns the module of a step, which must belong to this device.
fn loaded<'a>(inner: &Arc<Inner>, module: &'a Arc<dyn LoadedModule>) -> Result<&'a CudaModule> {
    let module: &dyn Any = module.as_ref();
    match module.downcast_ref::<CudaModule>() {
        Some(loaded) if Arc::ptr_eq(&loaded.inner, inner) => Ok(loaded),
        Some(_) | None => {
            let reason = "the module of a step was loaded by another device".to_owned();
            Err(Error::BadLaunch { kernel: "sequence".to_owned(), reason })
        }
    }
}

fn build(inner: &Arc<Inner>, steps: &[Step]) -> Result<ExecHandle> {
    let driver = &inner.context.driver;
    let graph = inner.retried(|| driver.create_graph())?;
    let mut draft = Draft { inner, graph, last: None };
    for step in steps {
        let added = draft.add(inner, step)?;
        draft.last = added.or(draft.last);
    }
    inner.retried(|| driver.instantiate(draft.graph))
}

impl Draft<'_> {
    /// Adds a step after the last one. Returns `None` for an empty step.
    fn add(&self, inner: &Arc<Inner>, step: &Step) -> Result<Option<NodeHandle>> {
        let (context, driver) = (&inner.context, &inner.context.driver);
        let after: &[NodeHandle] = self.last.as_slice();
        match step {
            Step::Launch { module, kernel, launch, params } => {
                let loaded = loaded(inner, module)?;
                let found = loaded.found(*kernel)?;
                loaded.ready(found, launch, params)?;
                let bytes = params.len();
                let list = extra(params, &bytes);
                let node = KernelNode {
                    function: found.function,
                    grid: launch.grid,
                    block: launch.block,
                    shared_bytes: launch.shared_bytes,
                    params: std::ptr::null(),
                    extra: if params.is_empty() { std::ptr::null() } else { list.as_ptr() },
                    kernel: 0,
                    context: context.handle,
                };
                // SAFETY: the list is terminated and has the kernel's number of parameter bytes, which
                // `ready` has checked. The driver copies them to the node.
                let node = inner.retried(|| unsafe { driver.add_kernel(self.graph, after, &node) })?;
                if launch.cooperative {
                    context.checked(driver.set_node_attribute(node, ATTRIBUTE_COOPERATIVE, &IS_SO))?;
                }
                if let Some(size) = launch.cluster {
                    context.checked(driver.set_node_attribute(node, ATTRIBUTE_CLUSTER, &AttributeValue::new(size)))?;
                }
                Ok(Some(node))
            }
            Step::Copy { to, from, bytes } => {
                let pool = inner.pool();
                pool.check("copy", *from, *bytes)?;
                pool.check("copy", *to, *bytes)?;
                drop(pool);
                if *bytes == 0 {
                    return Ok(None);
                }
                if to.abs_diff(*from) < *bytes {
                    // The driver does not define overlapping copies.
                    return Err(Error::BadAddress { call: "copy within a sequence", address: *to, bytes: *bytes });
                }
                let width = *bytes as usize;
                let side = |device| CopySide { kind: MEMORY_DEVICE, device, pitch: width, ..CopySide::default() };
                let node = CopyNode { from: side(*from), to: side(*to), width, height: 1, depth: 1 };
                inner.retried(|| driver.add_copy(self.graph, after, &node, context.handle)).map(Some)
            }
            Step::Fill { address, byte, bytes } => {
                inner.pool().check("fill", *address, *bytes)?;
                if *bytes == 0 {
                    return Ok(None);
                }
                let node = FillNode {
                    address: *address,
                    pitch: 0,
                    value: u32::from(*byte),
                    element_bytes: 1,
                    width: *bytes as usize,
                    height: 1,
                };
                inner.retried(|| driver.add_fill(self.graph, after, &node, context.handle)).map(Some)
            }
            Step::Product(_) => {
                let reason = "a product of matrices is no part of a graph".to_owned();
                Err(Error::BadLaunch { kernel: "sequence".to_owned(), reason })
            }
        }
    }
}

impl Sequence for Graph {
    fn replay(&self, _backend: &dyn Backend, stream: Stream) -> Result<()> {
        let inner = &self.inner;
        let queue = inner.queue(stream)?;
        inner.context.enter()?;
        let Some(exec) = self.exec else { return Ok(()) };
        let begun = inner.begin(&queue, trace::is_on())?;
        inner.context.checked(inner.context.driver.launch_graph(exec, queue.handle))?;
        queue.journal().note(&self.name, self.limit);
        inner.given(&queue);
        inner.end(&queue, begun, || TracedWork { name: self.name.clone(), record: None, notes: vec![] })?;
        if inner.options.synchronous { inner.wait(&queue) } else { Ok(()) }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // The driver keeps a running graph until it is done.
        if let Some(exec) = self.exec
            && self.inner.context.enter_to_release()
        {
            let _ = self.inner.context.driver.destroy_exec(exec);
        }
    }
}
