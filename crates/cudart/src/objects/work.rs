//! Work of streams, graphs of work, captures into graphs, and events. These types refer to each other: work
//! may be a graph, and an event may be a position in a capture.

use crate::handles::Handle;
use crate::objects::boxes::{CopyBox, FillBox, Side};
use crate::objects::kernels::Kernel;
use crate::objects::shared_files::SharedEvent;
use crate::objects::user_objects::RetainedReferences;
use crate::objects::words::WordOperation;
use crate::status::{Outcome, Status};
use broadloom_device::{Argument, EventId, Launch};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Piece of work.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// No operation: joins its predecessors.
    Empty,
    /// Kernel launch on the stream that it is submitted to.
    Launch {
        kernel: Arc<Kernel>,
        /// Shape of the launch.
        launch: Launch,
        arguments: Vec<Argument>,
    },
    Copy(CopyBox),
    /// Fill with bytes or larger values.
    Fill(FillBox),
    /// Call of a host function.
    Host(HostFunction),
    /// Record of an event.
    Record(Arc<Event>),
    /// Wait for an event.
    Wait(Arc<Event>),
    /// Memory that a graph allocated when the node was created.
    Allocated(u64),
    /// Memory that a graph frees.
    Freed(u64),
    /// All work of a child graph, in topological order.
    Child(Vec<Work>),
    /// Conditional node: a value in memory selects one of its graphs.
    Conditional(Conditional),
    /// Conditional node of an instantiated graph, with the work of each body.
    Decision(Decision),
    /// Stream memory operations, in order.
    Words(Vec<WordOperation>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostFunction {
    /// Address of the function.
    pub(crate) function: usize,
    /// Argument of the function.
    pub(crate) data: usize,
    /// Stream to pass first, followed by a status; `None` for a function that takes only the data.
    pub(crate) stream: Option<usize>,
}

impl Work {
    /// Keeps the launch attributes of the work that this work replaces in a graph.
    pub(crate) fn with_attributes_of(mut self, other: &Work) -> Work {
        if let (Work::Launch { launch, .. }, Work::Launch { launch: old, .. }) = (&mut self, other) {
            launch.cooperative = old.cooperative;
            launch.cluster = launch.cluster.or(old.cluster);
        }
        self
    }
}

#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) id: EventId,
    pub(crate) flags: u32,
    pub(crate) recorded: AtomicBool,
    /// State shared with other processes.
    pub(crate) shared: Option<SharedEvent>,
    /// Position in a capture, if the last record was captured.
    pub(crate) captured: Mutex<Option<CapturedEvent>>,
}

impl Event {
    /// Returns the executor's event.
    pub(crate) fn id(&self) -> EventId {
        self.id
    }

    /// Tests if the event was ever recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        self.recorded.load(Ordering::Relaxed)
    }

    /// Marks the event as recorded outside of any capture.
    pub(crate) fn note_recorded(&self) {
        self.recorded.store(true, Ordering::Relaxed);
        *self.captured.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Tests if the last record was captured.
    pub(crate) fn in_capture(&self) -> bool {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// Kind of a conditional node. The values are the headers' numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Runs the first body if the value is not 0, otherwise the second one if it exists.
    If = 0,
    /// Repeats the first body while the value is not 0.
    While = 1,
    /// Runs the body whose index is the value.
    Switch = 2,
}

/// A conditional node.
#[derive(Clone, Debug)]
pub(crate) struct Conditional {
    /// Address of the value.
    pub(crate) address: u64,
    /// Kind of the node.
    pub(crate) choice: Choice,
    /// Graphs to select from.
    pub(crate) bodies: Vec<Arc<Graph>>,
    /// Handles of the bodies.
    pub(crate) handles: Arc<[Handle]>,
}

/// Conditional node of an instantiated graph.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    pub(crate) address: u64,
    pub(crate) choice: Choice,
    pub(crate) bodies: Vec<Vec<Work>>,
}

/// Value that conditional nodes read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    /// Address of the value.
    pub(crate) address: u64,
    /// Value assigned at the start of every launch, if any.
    pub(crate) default: Option<u32>,
}

impl Condition {
    /// Returns the work that assigns the default value.
    pub(crate) fn assign(&self) -> Option<Work> {
        let to = Side::linear(self.address);
        self.default.map(|value| Work::Fill(FillBox { to, value, size: 4, width: 1, height: 1, depth: 1 }))
    }
}

impl Conditional {
    /// Freezes the node with the current work of its bodies.
    pub(crate) fn frozen(&self) -> Outcome<Decision> {
        let bodies = self.bodies.iter().map(|body| body.work()).collect::<Outcome<_>>()?;
        Ok(Decision { address: self.address, choice: self.choice, bodies })
    }
}

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
    pub(crate) original: Option<Handle>,
    /// Child graph that exposes its nodes.
    pub(crate) child: Option<Arc<Graph>>,
    /// Launch attributes set by the program, by number.
    pub(crate) attributes: BTreeMap<u32, [u32; 16]>,
}

#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Mutex<Vec<Node>>,
    /// Values that the conditional nodes read.
    pub(crate) conditions: Mutex<Vec<Condition>>,
    /// User objects retained by the graph.
    pub(crate) objects: Mutex<Vec<RetainedReferences>>,
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
    pub(crate) steps: Mutex<Vec<Step>>,
    /// Work that runs before all steps of a launch.
    pub(crate) assigned: Vec<Work>,
    /// User objects retained by the graph.
    pub(crate) _objects: Vec<RetainedReferences>,
    /// Flags given by the program.
    pub(crate) flags: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) node: Handle,
    pub(crate) work: Work,
    pub(crate) enabled: bool,
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
    pub(crate) fn bodies(&self) -> Vec<Arc<Graph>> {
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
    pub(crate) fn all_conditions(&self) -> Vec<Condition> {
        let mut all = self.conditions.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.extend(self.bodies().iter().flat_map(|body| body.all_conditions()));
        all
    }
}

/// Converts work to the form that instantiated graphs use.
pub(crate) fn frozen(work: Work) -> Outcome<Work> {
    match work {
        Work::Conditional(conditional) => conditional.frozen().map(Work::Decision),
        other => Ok(other),
    }
}

pub(crate) fn steps(graph: &Graph) -> Outcome<Vec<Step>> {
    let ordered = graph.ordered()?.into_iter().filter_map(|node| Some((node.handle, node.work?)));
    ordered.map(|(node, work)| Ok(Step { node, work: frozen(work)?, enabled: true })).collect()
}

impl Exec {
    pub(crate) fn steps(&self) -> MutexGuard<'_, Vec<Step>> {
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
pub(crate) struct CapturedEvent {
    pub(crate) capture: Arc<Capture>,
    /// Nodes that the event stands for.
    pub(crate) after: Vec<usize>,
}

/// Tests if a node is one of `from` or a predecessor of one of them.
pub(crate) fn reaches(graph: &Graph, from: &[usize], node: usize) -> bool {
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
