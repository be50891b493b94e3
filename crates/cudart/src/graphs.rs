//! Graphs of work, and streams captured into them.
//!
//! A node is a piece of [`Work`] and the nodes that it comes behind. Launching does the work in one order that fits, as one piece of a stream.
//! **A capture notes exactly what would have been given to the streams that take part: the stream where it began, and every stream that waits
//! for an event of one of them.**

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

/// A node of a graph.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// What the program calls it.
    pub(crate) handle: Handle,
    /// What it does; `None` once it is destroyed.
    pub(crate) work: Option<Work>,
    /// The nodes that it comes behind.
    pub(crate) after: Vec<usize>,
    /// The node of which it is a copy, when its graph is one.
    original: Option<Handle>,
    /// Where a graph that is a node of its own shows its nodes.
    pub(crate) child: Option<Arc<Graph>>,
    /// Attributes of a launch that the program set, by their numbers.
    pub(crate) attributes: BTreeMap<u32, [u32; 16]>,
}

/// A graph.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: Mutex<Vec<Node>>,
    /// Values that its conditional nodes look at.
    pub(crate) conditions: Mutex<Vec<Condition>>,
    /// What the program wants to live as long.
    pub(crate) objects: Mutex<Vec<Retained>>,
}

/// What is behind the handle of a node.
#[derive(Debug)]
pub(crate) struct NodeRef {
    /// Its graph.
    pub(crate) graph: Arc<Graph>,
    /// Its place in there.
    pub(crate) index: usize,
}

/// A graph that can be launched.
#[derive(Debug)]
pub(crate) struct Exec {
    steps: Mutex<Vec<Step>>,
    /// What is done before all steps of a launch.
    assigned: Vec<Work>,
    /// What the program wants to live as long.
    _objects: Vec<Retained>,
    /// As the program gave them.
    pub(crate) flags: u64,
}

#[derive(Clone, Debug)]
struct Step {
    node: Handle,
    work: Work,
    enabled: bool,
}

impl Graph {
    /// Its nodes.
    pub(crate) fn nodes(&self) -> MutexGuard<'_, Vec<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its nodes in an order that fits; an error when there is none.
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

    /// The work in an order that fits, as it is now.
    pub(crate) fn work(&self) -> Outcome<Vec<Work>> {
        self.ordered()?.into_iter().filter_map(|node| node.work).map(frozen).collect()
    }

    /// The graphs that its conditional nodes choose from.
    fn bodies(&self) -> Vec<Arc<Graph>> {
        let nodes = self.nodes();
        let bodies = nodes.iter().filter_map(|node| match &node.work {
            Some(Work::Conditional(conditional)) => Some(conditional.bodies.clone()),
            _ => None,
        });
        bodies.flatten().collect()
    }

    /// Whether it has conditional nodes: such a graph is neither copied nor part of another one.
    pub(crate) fn has_conditions(&self) -> bool {
        !self.bodies().is_empty()
    }

    /// The values that its conditional nodes look at, and those of the graphs inside of them.
    fn all_conditions(&self) -> Vec<Condition> {
        let mut all = self.conditions.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.extend(self.bodies().iter().flat_map(|body| body.all_conditions()));
        all
    }
}

/// Work as a graph that is ready has it.
fn frozen(work: Work) -> Outcome<Work> {
    match work {
        Work::Conditional(conditional) => conditional.frozen().map(Work::Decision),
        other => Ok(other),
    }
}

impl Runtime {
    /// Adds a node; its place and its handle.
    pub(crate) fn add_node(&self, graph: &Arc<Graph>, work: Work, after: Vec<usize>) -> (usize, Handle) {
        let handle = self.nodes.reserve();
        let mut nodes = graph.nodes();
        let index = nodes.len();
        nodes.push(Node { handle, work: Some(work), after, original: None, child: None, attributes: BTreeMap::new() });
        drop(nodes);
        self.nodes.put(handle, Arc::new(NodeRef { graph: graph.clone(), index }));
        (index, handle)
    }

    /// The places of nodes of a graph.
    pub(crate) fn places(&self, graph: &Arc<Graph>, handles: &[Handle]) -> Outcome<Vec<usize>> {
        let place = |handle: &Handle| {
            let node = self.nodes.find(*handle).filter(|node| Arc::ptr_eq(&node.graph, graph));
            node.map(|node| node.index).ok_or(Status::INVALID_VALUE)
        };
        handles.iter().map(place).collect()
    }

    /// A copy of a graph, each node of which remembers where it came from.
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

    /// The node of a copy that came from a node.
    pub(crate) fn node_in_clone(&self, original: Handle, clone: &Graph) -> Outcome<Handle> {
        let nodes = clone.nodes();
        let found = nodes.iter().find(|node| node.original == Some(original) && node.work.is_some());
        found.map(|node| node.handle).ok_or(Status::INVALID_VALUE)
    }

    /// A handle of a graph: the one that it has, or another one.
    pub(crate) fn handle_of_graph(&self, graph: &Arc<Graph>) -> Handle {
        self.graphs.handle_of(graph).unwrap_or_else(|| {
            let handle = self.graphs.reserve();
            self.graphs.put(handle, graph.clone());
            handle
        })
    }

    /// Gives a graph back, with its nodes.
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

    /// A graph made ready.
    pub(crate) fn instantiate(&self, graph: &Graph, flags: u64) -> Outcome<Handle> {
        let steps = steps(graph)?;
        let assigned = graph.all_conditions().iter().filter_map(Condition::assign).collect();
        let objects = graph.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let objects = objects.iter().filter_map(Retained::again).collect();
        Ok(self.execs.insert(Exec { steps: Mutex::new(steps), assigned, _objects: objects, flags }))
    }

    /// Does the work of a graph.
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

    /// Changes what one node does; the kind of work stays.
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

    /// What a node does.
    pub(crate) fn work_of(&self, node: Handle) -> Outcome<Work> {
        self.steps().iter().find(|step| step.node == node).map(|step| step.work.clone()).ok_or(Status::INVALID_VALUE)
    }

    /// Whether a node's work is done.
    pub(crate) fn enabled(&self, node: Handle) -> Outcome<bool> {
        self.steps().iter().find(|step| step.node == node).map(|step| step.enabled).ok_or(Status::INVALID_VALUE)
    }

    /// Says whether a node's work is done.
    pub(crate) fn set_enabled(&self, node: Handle, enabled: bool) -> Outcome {
        self.steps().iter_mut().find(|step| step.node == node).map(|step| step.enabled = enabled).ok_or(Status::INVALID_VALUE)
    }

    /// Takes what the nodes of a graph of the same structure do; the first node that does not fit, or 0 when their number differs.
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

/// A capture that is under way.
#[derive(Debug)]
pub(crate) struct Capture {
    /// What it becomes.
    pub(crate) graph: Arc<Graph>,
    /// A number that no other has.
    pub(crate) id: u64,
    /// The stream where it began.
    pub(crate) origin: Handle,
    /// Whether something was done that cannot be captured.
    pub(crate) invalid: AtomicBool,
}

/// Where a stream stands in a capture.
#[derive(Clone, Debug)]
pub(crate) struct Capturing {
    /// The capture.
    pub(crate) capture: Arc<Capture>,
    /// The nodes that its next work comes behind.
    pub(crate) after: Vec<usize>,
}

/// Where an event stands in a capture.
#[derive(Clone, Debug)]
pub(crate) struct Captured {
    /// The capture.
    capture: Arc<Capture>,
    /// The nodes that it stands for.
    after: Vec<usize>,
}

impl Runtime {
    /// Begins to capture a stream, into a graph that is there or a new one.
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

    /// Ends a capture where it began.
    pub(crate) fn end_capture(&self, stream: &Stream) -> Outcome<Arc<Graph>> {
        let capturing = stream.capturing().clone().ok_or(Status::ILLEGAL_STATE)?;
        let capture = &capturing.capture;
        if capture.origin != stream.handle {
            return Err(Status::STREAM_CAPTURE_UNMATCHED);
        }
        *stream.capturing() = None;
        // What other streams did must have come back to this one.
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

    /// Notes work in the capture that a stream takes part in; whether there is one.
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

/// Whether a node comes before, or is, one of some others.
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
