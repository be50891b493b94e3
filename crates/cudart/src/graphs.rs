//! Graphs of work, and capture of streams into graphs.
//!
//! A node is a piece of [`Work`] with its dependencies. A launch runs the nodes in topological order as one
//! piece of work of a stream. **A capture records exactly the work submitted to the participating streams:
//! the stream where the capture began, and every stream that waits for an event of a participating stream.**

use crate::conditions::Condition;
use crate::handles::Handle;
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use crate::streams::Stream;
use crate::user_objects::Retained;
use crate::work::Work;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Node of a graph.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Handle of the node.
    pub(crate) handle: Handle,
    /// Work of the node; `None` once the node is destroyed.
    pub(crate) work: Option<Work>,
    /// Indices of the nodes that it depends on.
    pub(crate) after: Vec<usize>,
    /// Node that this one was copied from, if the graph is a clone.
    original: Option<Handle>,
    /// Child graph that exposes its nodes.
    pub(crate) child: Option<Arc<Graph>>,
    /// Launch attributes set by the program, by number.
    pub(crate) attributes: BTreeMap<u32, [u32; 16]>,
}

#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: Mutex<Vec<Node>>,
    /// Values that the conditional nodes read.
    pub(crate) conditions: Mutex<Vec<Condition>>,
    /// User objects retained by the graph.
    pub(crate) objects: Mutex<Vec<Retained>>,
}

/// Target of a node handle.
#[derive(Debug)]
pub(crate) struct NodeRef {
    /// Graph of the node.
    pub(crate) graph: Arc<Graph>,
    /// Index of the node in the graph.
    pub(crate) index: usize,
}

/// Instantiated graph, ready to launch.
#[derive(Debug)]
pub(crate) struct Exec {
    steps: Mutex<Vec<Step>>,
    /// Work that runs before all steps of a launch.
    assigned: Vec<Work>,
    /// User objects retained by the graph.
    _objects: Vec<Retained>,
    /// Flags given by the program.
    pub(crate) flags: u64,
}

#[derive(Clone, Debug)]
struct Step {
    node: Handle,
    work: Work,
    enabled: bool,
}

impl Graph {
    /// Locks and returns the nodes.
    pub(crate) fn nodes(&self) -> MutexGuard<'_, Vec<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the nodes in topological order, or an error if there is a cycle.
    pub(crate) fn ordered(&self) -> Outcome<Vec<Node>> {
        let nodes = self.nodes();
        let mut done = vec![false; nodes.len()];
        let mut order = vec![];
        let live = nodes.iter().filter(|node| node.work.is_some()).count();
        while order.len() < live {
            let before = order.len();
            for (index, node) in nodes.iter().enumerate() {
                let ready = |after: &usize| done[*after] || nodes[*after].work.is_none();
                if node.work.is_some() && !done[index] && node.after.iter().all(ready) {
                    done[index] = true;
                    order.push(node.clone());
                }
            }
            if order.len() == before {
                return Err(Status::INVALID_VALUE);
            }
        }
        Ok(order)
    }

    /// Returns the current work in topological order.
    pub(crate) fn work(&self) -> Outcome<Vec<Work>> {
        self.ordered()?.into_iter().filter_map(|node| node.work).map(frozen).collect()
    }

    /// Returns the bodies of the conditional nodes.
    fn bodies(&self) -> Vec<Arc<Graph>> {
        let nodes = self.nodes();
        let bodies = nodes.iter().filter_map(|node| match &node.work {
            Some(Work::Conditional(conditional)) => Some(conditional.bodies.clone()),
            _ => None,
        });
        bodies.flatten().collect()
    }

    /// Tests if the graph has conditional nodes. Such a graph can neither be cloned nor be a child of another
    /// graph.
    pub(crate) fn has_conditions(&self) -> bool {
        !self.bodies().is_empty()
    }

    /// Returns the values read by conditional nodes, including those in nested bodies.
    fn all_conditions(&self) -> Vec<Condition> {
        let mut all = self.conditions.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.extend(self.bodies().iter().flat_map(|body| body.all_conditions()));
        all
    }
}

/// Converts work to the form that instantiated graphs use.
fn frozen(work: Work) -> Outcome<Work> {
    match work {
        Work::Conditional(conditional) => conditional.frozen().map(Work::Decision),
        other => Ok(other),
    }
}

impl Runtime {
    /// Adds a node. Returns its index and its handle.
    pub(crate) fn add_node(&self, graph: &Arc<Graph>, work: Work, after: Vec<usize>) -> (usize, Handle) {
        let handle = self.nodes.reserve();
        let mut nodes = graph.nodes();
        let index = nodes.len();
        nodes.push(Node { handle, work: Some(work), after, original: None, child: None, attributes: BTreeMap::new() });
        drop(nodes);
        self.nodes.put(handle, Arc::new(NodeRef { graph: graph.clone(), index }));
        (index, handle)
    }

    /// Returns the indices of nodes of a graph.
    pub(crate) fn places(&self, graph: &Arc<Graph>, handles: &[Handle]) -> Outcome<Vec<usize>> {
        let place = |handle: &Handle| {
            let node = self.nodes.find(*handle).filter(|node| Arc::ptr_eq(&node.graph, graph));
            node.map(|node| node.index).ok_or(Status::INVALID_VALUE)
        };
        handles.iter().map(place).collect()
    }

    /// Clones a graph. Each node of the clone keeps the handle of its original.
    pub(crate) fn clone_graph(&self, graph: &Graph) -> Outcome<Arc<Graph>> {
        if graph.has_conditions() {
            return Err(Status::NOT_SUPPORTED);
        }
        let copy = Arc::new(Graph::default());
        let objects = graph.objects.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Retained::again).collect();
        *copy.objects.lock().unwrap_or_else(PoisonError::into_inner) = objects;
        let mut nodes = graph.nodes().clone();
        for (index, node) in nodes.iter_mut().enumerate() {
            node.original = Some(node.handle);
            node.handle = self.nodes.reserve();
            self.nodes.put(node.handle, Arc::new(NodeRef { graph: copy.clone(), index }));
        }
        *copy.nodes() = nodes;
        Ok(copy)
    }

    /// Finds the node of a clone by its original.
    pub(crate) fn node_in_clone(&self, original: Handle, clone: &Graph) -> Outcome<Handle> {
        let nodes = clone.nodes();
        let found = nodes.iter().find(|node| node.original == Some(original) && node.work.is_some());
        found.map(|node| node.handle).ok_or(Status::INVALID_VALUE)
    }

    /// Returns the handle of a graph and creates one if needed.
    pub(crate) fn handle_of_graph(&self, graph: &Arc<Graph>) -> Handle {
        self.graphs.handle_of(graph).unwrap_or_else(|| {
            let handle = self.graphs.reserve();
            self.graphs.put(handle, graph.clone());
            handle
        })
    }

    /// Destroys a graph and its nodes.
    pub(crate) fn destroy_graph(&self, handle: Handle) -> Outcome {
        let graph = self.graphs.remove(handle)?;
        for node in graph.nodes().iter() {
            let _ = self.nodes.remove(node.handle);
            if let Some(Work::Conditional(conditional)) = &node.work {
                conditional.handles.iter().try_for_each(|body| self.destroy_graph(*body))?;
            }
        }
        let conditions = std::mem::take(&mut *graph.conditions.lock().unwrap_or_else(PoisonError::into_inner));
        conditions.iter().try_for_each(|condition| self.free_condition(condition.address))
    }

    /// Instantiates a graph.
    pub(crate) fn instantiate(&self, graph: &Graph, flags: u64) -> Outcome<Handle> {
        let steps = steps(graph)?;
        let assigned = graph.all_conditions().iter().filter_map(Condition::assign).collect();
        let objects = graph.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let objects = objects.iter().filter_map(Retained::again).collect();
        Ok(self.execs.insert(Exec { steps: Mutex::new(steps), assigned, _objects: objects, flags }))
    }

    /// Launches an instantiated graph on a stream.
    pub(crate) fn launch_graph(&self, exec: &Exec, stream: &Stream) -> Outcome {
        let steps = exec.steps().clone();
        let work = steps.into_iter().filter(|step| step.enabled).map(|step| step.work);
        let work = Work::Child(exec.assigned.iter().cloned().chain(work).collect());
        self.submit(stream, work)
    }
}

fn steps(graph: &Graph) -> Outcome<Vec<Step>> {
    let ordered = graph.ordered()?.into_iter().filter_map(|node| Some((node.handle, node.work?)));
    ordered.map(|(node, work)| Ok(Step { node, work: frozen(work)?, enabled: true })).collect()
}

impl Exec {
    fn steps(&self) -> MutexGuard<'_, Vec<Step>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the work of one node. The kind of work must stay the same.
    pub(crate) fn set_work(&self, node: Handle, original: Option<Handle>, work: Work) -> Outcome {
        let mut steps = self.steps();
        let found = steps.iter_mut().find(|step| step.node == node || Some(step.node) == original);
        let step = found.ok_or(Status::INVALID_VALUE)?;
        if std::mem::discriminant(&step.work) != std::mem::discriminant(&work) {
            return Err(Status::INVALID_VALUE);
        }
        step.work = work.with_attributes_of(&step.work);
        Ok(())
    }

    /// Returns the work of a node.
    pub(crate) fn work_of(&self, node: Handle) -> Outcome<Work> {
        self.steps().iter().find(|step| step.node == node).map(|step| step.work.clone()).ok_or(Status::INVALID_VALUE)
    }

    /// Tests if a node is enabled.
    pub(crate) fn enabled(&self, node: Handle) -> Outcome<bool> {
        self.steps().iter().find(|step| step.node == node).map(|step| step.enabled).ok_or(Status::INVALID_VALUE)
    }

    /// Enables or disables a node.
    pub(crate) fn set_enabled(&self, node: Handle, enabled: bool) -> Outcome {
        self.steps().iter_mut().find(|step| step.node == node).map(|step| step.enabled = enabled).ok_or(Status::INVALID_VALUE)
    }

    /// Updates the work of all nodes from a graph of the same structure. Returns the first node that does not
    /// match, or 0 if the number of nodes differs.
    pub(crate) fn update(&self, graph: &Graph) -> Outcome<Result<(), Handle>> {
        let new = steps(graph)?;
        let mut old = self.steps();
        if new.len() != old.len() {
            return Ok(Err(0));
        }
        let differs =
            old.iter().zip(&new).find(|(old, new)| std::mem::discriminant(&old.work) != std::mem::discriminant(&new.work));
        if let Some((_, node)) = differs {
            return Ok(Err(node.node));
        }
        for (old, new) in old.iter_mut().zip(new) {
            old.work = new.work;
        }
        Ok(Ok(()))
    }
}

/// Capture in progress.
#[derive(Debug)]
pub(crate) struct Capture {
    /// Graph that receives the captured work.
    pub(crate) graph: Arc<Graph>,
    /// Unique number of the capture.
    pub(crate) id: u64,
    /// Stream where the capture began.
    pub(crate) origin: Handle,
    /// Set once an operation was requested that cannot be captured.
    pub(crate) invalid: AtomicBool,
}

/// Position of a stream in a capture.
#[derive(Clone, Debug)]
pub(crate) struct Capturing {
    pub(crate) capture: Arc<Capture>,
    /// Nodes on which the stream's next work depends.
    pub(crate) after: Vec<usize>,
}

/// Position of an event in a capture.
#[derive(Clone, Debug)]
pub(crate) struct Captured {
    capture: Arc<Capture>,
    /// Nodes that the event stands for.
    after: Vec<usize>,
}

impl Runtime {
    /// Begins to capture a stream into a given graph or a new one.
    pub(crate) fn begin_capture(&self, stream: &Stream, graph: Option<Arc<Graph>>, after: Vec<usize>) -> Outcome {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        self.device()?;
        if stream.handle <= 2 {
            return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
        }
        let mut capturing = stream.capturing();
        if capturing.is_some() {
            return Err(Status::ILLEGAL_STATE);
        }
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let graph = graph.unwrap_or_default();
        let capture = Arc::new(Capture { graph, id, origin: stream.handle, invalid: AtomicBool::new(false) });
        *capturing = Some(Capturing { capture, after });
        Ok(())
    }

    /// Ends a capture on the stream where it began.
    pub(crate) fn end_capture(&self, stream: &Stream) -> Outcome<Arc<Graph>> {
        let capturing = stream.capturing().clone().ok_or(Status::ILLEGAL_STATE)?;
        let capture = &capturing.capture;
        if capture.origin != stream.handle {
            return Err(Status::STREAM_CAPTURE_UNMATCHED);
        }
        *stream.capturing() = None;
        // All work of other streams must have been joined to this one.
        let mut unjoined = false;
        for other in self.streams.others() {
            let mut place = other.capturing();
            if let Some(found) = place.as_ref().filter(|found| Arc::ptr_eq(&found.capture, capture)) {
                unjoined |= !found.after.iter().all(|node| reaches(&capture.graph, &capturing.after, *node));
                *place = None;
            }
        }
        if capture.invalid.load(Ordering::Relaxed) {
            return Err(Status::STREAM_CAPTURE_INVALIDATED);
        }
        if unjoined {
            return Err(Status::STREAM_CAPTURE_UNJOINED);
        }
        Ok(capture.graph.clone())
    }

    /// Records work in the capture of a stream. Returns false if the stream is not being captured.
    pub(crate) fn note_in_capture(&self, stream: &Stream, work: &Work) -> Outcome<bool> {
        let mut place = stream.capturing();
        if let Work::Wait(event) = work {
            let captured = event.captured.lock().unwrap_or_else(PoisonError::into_inner).clone();
            return match (place.as_mut(), captured) {
                (None, None) => Ok(false),
                (None, Some(captured)) => {
                    *place = Some(Capturing { capture: captured.capture, after: captured.after });
                    Ok(true)
                }
                (Some(capturing), Some(captured)) if Arc::ptr_eq(&capturing.capture, &captured.capture) => {
                    for node in captured.after {
                        if !capturing.after.contains(&node) {
                            capturing.after.push(node);
                        }
                    }
                    Ok(true)
                }
                (Some(_), Some(_)) => Err(Status::STREAM_CAPTURE_MERGE),
                (Some(_), None) => Err(Status::STREAM_CAPTURE_ISOLATION),
            };
        }
        let Some(capturing) = place.as_mut() else { return Ok(false) };
        match work {
            Work::Record(event) => {
                let captured = Captured { capture: capturing.capture.clone(), after: capturing.after.clone() };
                *event.captured.lock().unwrap_or_else(PoisonError::into_inner) = Some(captured);
            }
            work => {
                let graph = capturing.capture.graph.clone();
                let (index, _) = self.add_node(&graph, work.clone(), capturing.after.clone());
                capturing.after = vec![index];
            }
        }
        Ok(true)
    }
}

/// Tests if a node is one of `from` or a predecessor of one of them.
fn reaches(graph: &Graph, from: &[usize], node: usize) -> bool {
    let nodes = graph.nodes();
    let mut open = from.to_vec();
    let mut seen = vec![false; nodes.len()];
    while let Some(index) = open.pop() {
        if index == node {
            return true;
        }
        if !std::mem::replace(&mut seen[index], true) {
            open.extend(&nodes[index].after);
        }
    }
    false
}
