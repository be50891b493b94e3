//! Graphs of work, and capture of streams into graphs.
//!
//! A node is a piece of [`Work`] with its dependencies. A launch runs the nodes in topological order as one
//! piece of work of a stream. **A capture records exactly the work submitted to the participating streams:
//! the stream where the capture began, and every stream that waits for an event of a participating stream.**

use crate::handles::Handle;
use crate::objects::streams::Stream;
use crate::objects::user_objects::RetainedReferences;
use crate::objects::work::{Capture, CapturedEvent, Capturing, Condition, Exec, Graph, Node, NodeRef, Work, reaches, steps};
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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
        let objects =
            graph.objects.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(RetainedReferences::again).collect();
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
        let objects = objects.iter().filter_map(RetainedReferences::again).collect();
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
                let captured = CapturedEvent { capture: capturing.capture.clone(), after: capturing.after.clone() };
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
