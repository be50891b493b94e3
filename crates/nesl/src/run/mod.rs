//! Execution on a device: vectors as lazy arrays of `graph`.
//!
//! ```text
//! flat → vcode → Machine ─┬─ small operands ─→ operations of the host
//!                         └─ large operands ─→ Accelerator → graph → kernels
//! ```
//!
//! The VCODE machine owns control flow, limits and the places of errors, both for compiled programs and for
//! `.vcode` files. An [`Accelerator`] gives it a second kind of vector: a [`DeviceVector`] is a node of a
//! graph. An operation is executed on the device if one of its operands is there, or if one has at least
//! [`Accelerator::threshold`] elements. Until then no device is opened.
//!
//! - Operations on device vectors make nodes and return. The planner fuses elementwise work into the
//!   reductions, scans, packs and permutations around it.
//! - The host waits if control flow, output or a size needs a value of the device. All live device vectors
//!   are then computed in the same plan, so nothing is computed twice. Vectors that depend only on an index
//!   are left out: computing them is cheaper than reading them.
//! - A condition becomes a flag, and the flags of a line become a trap: the kernel over its positions writes
//!   a word if one is set. The host reads the word when it waits anyway. If it is written, the operations of
//!   the flags are repeated on the host, in order; the first that fails gives the error and its place.
//! - The number of elements that a `PACK` keeps stays on the device as a [`Length`](broadloom_graph::Length).
//! - A vector of equal elements (`DIST` of a scalar) is one element and a length.
//! - A repeated call with columns of the same types is launched from a template: see [`template`]. Inside
//!   other calls, the instructions between two waits are launched from one: see [`region_values`].
//!
//! The machine executes VCODE, not flattened code: the emitter of VCODE drops each vector at its last use, so
//! the stack contains exactly the live vectors.

mod bound;
mod call_costs;
mod column;
mod conditions;
mod device_loops;
mod elementwise;
mod entry;
mod extent;
mod fault;
mod fold;
mod ledger;
mod loop_functions;
mod moves;
mod product_loop;
mod region_values;
mod segdes;
mod segments;
mod sequential;
mod sequential_work;
mod target;
mod template;
mod transfer;
mod vector;

use bound::Bound;
pub use call_costs::SEQUENTIAL_CALLS;
pub use column::Column;
pub(crate) use device_loops::{LoopOutcome, LoopRun};
pub(crate) use entry::{Charged, DeviceVector, Entry, Segments};
pub(crate) use extent::Extent;
pub(crate) use fault::{device_error, on_device};
use ledger::Ledger;
pub(crate) use ledger::{ELEMENTS_OF_A_STEP, VectorCharge};
use loop_functions::LoopFunctions;
pub(crate) use region_values::{
    Count, Ending, Inputs, OffsetsResult, Reading, Results, SegdesPart, Symbols, VectorPart, VectorResult, uncharged,
};
pub(crate) use segdes::DeviceSegdes;
pub use target::{Opener, THRESHOLD, Target};
pub(crate) use template::{CallTemplate, LaunchedCall, Templates};
pub(crate) use transfer::Elements;
pub(crate) use vector::Vector;

use crate::codes;
use crate::eval::{Fault, Run};
use crate::infer::Widths;
use crate::vcode::{Inst, Op, Type};
use broadloom_diag::Span;
use broadloom_graph::{Amount, Combine, Context, Elementwise, Length, Node, Shape};
use broadloom_scalar::{self as scalar, BinaryOp, Builder, Element, Function, Literal, Value};
use sequential_work::SequentialWork;
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

/// Maximum number of new nodes before live ones are computed, anywhere in the program. Longer plans cost more
/// planning time than they save.
const MAX_NODES: usize = 480;

/// Number of new nodes from which on live ones are computed at the end of a function.
const MUCH: usize = 64;

/// Maximum number of unread conditions.
const MAX_PENDING: usize = 64;

/// Maximum number of element counts that the host learns in one wait.
const MAX_LEARNED: usize = 40;

/// Maximum number of sums that the host learns in one wait.
const MAX_SUMS: usize = 8;

/// Maximum number of ints and bools that the host learns in one wait.
const MAX_NUMBERS: usize = 16;

/// Executor of operations on large vectors on a device. The first such operation opens the device.
pub struct Accelerator {
    target: Target,
    context: Option<Context>,
    widths: Widths,
    /// True while a call is executed on symbols, to become a template.
    tracing: bool,
    /// The memory and the steps of a call that is traced for all sizes.
    pub(crate) ledger: Option<Rc<Ledger>>,
    /// Numbers of a traced call that are results, as columns of the device.
    counts: Vec<Node>,
    /// Inputs of a traced call that represent ints of the host.
    sizes: Vec<Node>,
    /// Number of host vectors copied to the device.
    copies: u64,
    /// Number of executed instructions.
    pub(crate) instructions: u64,
    /// Number of regions launched from templates.
    pub(crate) regions: u64,
    /// True for programs of the compiler: their indices and lengths are valid. Those of parsed programs are
    /// checked.
    pub(crate) trusted: bool,
    /// Conditions that have not been evaluated.
    pending: Vec<Pending>,
    /// Bools of the elements that violate a condition. Lines of one length are one node, so one pass tests
    /// them.
    failed: Vec<Node>,
    /// The word that the device writes if a condition does not hold, a `u32` without axes.
    word: Option<Node>,
    /// True if the word may have been written since the host read it.
    is_trapped: bool,
    /// True if a condition was found not to hold.
    pub(crate) has_failed: bool,
    /// Vectors and segment descriptors that may have to be computed.
    vectors: Vec<Weak<DeviceVector>>,
    segdes: Vec<Weak<DeviceSegdes>>,
    /// Vectors whose number of elements, or whose sum, the host may learn when it waits.
    unknown: Vec<Weak<DeviceVector>>,
    /// Nodes that were made since the last evaluation.
    made: usize,
    /// The largest numbers of elements of vectors whose lengths the host knows: one that is constant, and
    /// those that depend on the sizes of columns.
    largest: Vec<Amount>,
    functions: HashMap<(&'static str, Vec<scalar::Type>), Function>,
    loops: LoopFunctions,
    loop_calls: u64,
    waits: u64,
    waited: Duration,
    summaries: Vec<String>,
    ptx: Vec<String>,
    sequential: SequentialWork,
}

/// Place in the program, and the calls around it.
type CallTrace = (Option<Span>, Vec<(String, Span)>);

/// A condition whose flag is on the device.
pub(crate) struct Pending {
    /// The instruction of the condition, with its operands. Repeated on the host it gives the error.
    pub(crate) inst: Inst,
    pub(crate) operands: Vec<Entry>,
    flag: Node,
    /// The place and the functions around it, set by the machine.
    pub(crate) place: Option<CallTrace>,
}

/// Counters of the work of an accelerator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The name of the device; `None` if none was opened.
    pub device: Option<String>,
    /// Plans that were made; all other evaluations reused one.
    pub plans: u64,
    /// Number of times that nodes were evaluated on the device.
    pub evaluations: u64,
    /// Launches of kernels.
    pub launches: u64,
    /// Programs that were compiled or found in the cache.
    pub programs: usize,
    /// Vectors of the host that were copied to the device.
    pub copies: u64,
    /// Instructions of VCODE that were executed.
    pub instructions: u64,
    /// Regions between two waits that were launched from a template; the machine executed all others.
    pub regions: u64,
    /// Calls that were launched from a template; the machine executed all others.
    pub templates: u64,
    /// Calls and regions that were traced to become templates.
    pub traces: u64,
    /// Waits of the host for the device.
    pub waits: u64,
    /// Calls that ran sequentially, each in one thread or one warp.
    pub sequential_calls: u64,
    /// Those that ran in teams of warps.
    pub team_calls: u64,
    /// Calls that ran as loops of elements on the device.
    pub loop_calls: u64,
    /// Time that the host spent planning, compiling and waiting.
    pub waited: Duration,
    /// Plans as text, in the order of their creation, if the [`Target`] requests them.
    pub summaries: Vec<String>,
    /// PTX of the kernels of these plans and of sequential calls.
    pub ptx: Vec<String>,
}

/// A number that the host learns when it waits.
pub(crate) enum Unknown {
    /// A number of elements.
    Length(Length),
    /// The sum of a vector, and its node.
    Sum(bound::Sum, Node),
    /// The only element of a vector.
    Value(Rc<DeviceVector>),
}

impl Unknown {
    /// Tells whether twice the number is exact.
    fn is_narrow(&self) -> bool {
        match self {
            Unknown::Length(_) | Unknown::Sum(..) => true,
            Unknown::Value(vector) => vector.vector.node.ty().bytes() < 8,
        }
    }

    /// Tells whether it is the only element of an entry.
    fn is_value_of(&self, entry: &Entry) -> bool {
        matches!((self, entry), (Unknown::Value(own), Entry::Device(vector)) if Rc::ptr_eq(own, vector))
    }
}

/// A result of an operation.
pub(crate) enum OpResult {
    Vector(Type, Vector),
    Segdes(DeviceSegdes),
}

impl Accelerator {
    /// Makes an accelerator. It opens no device yet.
    pub fn new(target: Target) -> Accelerator {
        Accelerator {
            target,
            context: None,
            widths: Widths { wide_int: false, narrow_float: false },
            tracing: false,
            ledger: None,
            counts: vec![],
            sizes: vec![],
            copies: 0,
            instructions: 0,
            regions: 0,
            trusted: false,
            pending: vec![],
            failed: vec![],
            word: None,
            is_trapped: false,
            has_failed: false,
            vectors: vec![],
            segdes: vec![],
            unknown: vec![],
            made: 0,
            largest: vec![],
            functions: HashMap::new(),
            loops: vec![],
            loop_calls: 0,
            waits: 0,
            waited: Duration::ZERO,
            summaries: vec![],
            ptx: vec![],
            sequential: SequentialWork::default(),
        }
    }

    /// Returns the minimum number of elements of operations on the device.
    pub fn threshold(&self) -> usize {
        self.target.threshold
    }

    /// Returns the counters of the work done so far.
    pub fn statistics(&self) -> Statistics {
        let Some(context) = &self.context else { return Statistics::default() };
        let done = context.statistics();
        Statistics {
            device: Some(context.device().machine().id.clone()),
            plans: done.plans,
            evaluations: done.evaluations,
            launches: done.kernels + self.sequential.launches,
            programs: done.programs,
            copies: self.copies,
            instructions: self.instructions,
            regions: self.regions,
            templates: 0,
            traces: done.traces,
            waits: done.waits + self.waits,
            sequential_calls: self.sequential.calls,
            team_calls: self.sequential.team_calls,
            loop_calls: self.loop_calls,
            waited: self.waited,
            summaries: self.summaries.clone(),
            ptx: self.ptx.clone(),
        }
    }

    /// Begins a run of a program.
    pub(crate) fn begin(&mut self, widths: Widths, trusted: bool) {
        (self.widths, self.trusted) = (widths, trusted);
        self.sequential.begin();
        self.pending.clear();
        self.failed.clear();
        self.has_failed = false;
        if std::mem::take(&mut self.is_trapped) {
            self.word = None;
        }
        self.vectors.clear();
        self.segdes.clear();
        self.unknown.clear();
        self.largest.clear();
        self.made = 0;
    }

    pub(crate) fn context(&mut self) -> Run<Context> {
        if let Some(context) = &self.context {
            return Ok(context.clone());
        }
        let device = (self.target.open)().map_err(|reason| Fault::new(codes::DEVICE, reason))?;
        Ok(self.context.insert(Context::with_few_launches(&device, self.target.precision)).clone())
    }

    /// Returns the element type of vectors on the device.
    pub(crate) fn element_of(&self, ty: Type) -> Element {
        match ty {
            Type::Int | Type::Segdes | Type::Char if self.widths.wide_int => Element::I64,
            Type::Int | Type::Segdes | Type::Char => Element::I32,
            Type::Float if self.widths.narrow_float => Element::F32,
            Type::Float => Element::F64,
            Type::Bool => Element::Bool,
        }
    }

    pub(crate) fn int(&self) -> Element {
        self.element_of(Type::Int)
    }

    /// Executes an instruction of the table that has no effect outside the program.
    pub(crate) fn op(&mut self, op: Op, ty: Type, operands: &[Entry]) -> Run<Vec<OpResult>> {
        if op.is_elementwise() {
            let result = self.element(op, ty, operands)?;
            return Ok(vec![result]);
        }
        self.segmented(op, ty, operands)
    }

    /// Applies a function of elements. Its name and the types of the inputs identify it.
    pub(crate) fn call(
        &mut self,
        name: &'static str,
        inputs: &[&Node],
        body: impl FnOnce(&Builder, &[Value]) -> Value,
    ) -> Run<Node> {
        let types: Vec<scalar::Type> = inputs.iter().map(|input| input.ty()).collect();
        let key = (name, types);
        let function = match self.functions.get(&key) {
            Some(function) => function.clone(),
            None => {
                let f = Builder::function(name);
                let parameters: Vec<Value> = key.1.iter().map(|ty| f.parameter("x", *ty)).collect();
                let result = body(&f, &parameters);
                let function = f.finish_function(&[result]).map_err(|error| device_error(error.into()))?;
                self.functions.insert(key, function.clone());
                function
            }
        };
        self.elementwise(Elementwise::Call(function, 0), inputs)
    }

    pub(crate) fn elementwise(&mut self, op: Elementwise, inputs: &[&Node]) -> Run<Node> {
        self.made += 1;
        on_device(Node::elementwise(op, inputs))
    }

    pub(crate) fn convert(&mut self, node: &Node, element: Element) -> Run<Node> {
        if node.ty().element() == element {
            return Ok(node.clone());
        }
        self.elementwise(Elementwise::Convert(element), &[node])
    }

    /// Makes a vector of one element.
    pub(crate) fn one(&mut self, value: Literal) -> Run<Node> {
        let context = self.context()?;
        on_device(Node::fill(&context, Shape::from(1), &[value]))
    }

    /// Records a vector of the stack.
    pub(crate) fn register(&mut self, vector: &Rc<DeviceVector>) {
        if let Extent::Host(count) = &vector.vector.extent {
            self.note_largest(count);
        }
        self.vectors.push(Rc::downgrade(vector));
        let own = &vector.vector;
        if own.extent.unknown().is_some() || own.facts.loose || own.facts.has_unknown() || vector.is_number() {
            self.unknown.push(Rc::downgrade(vector));
        }
    }

    /// Records a segment descriptor of the stack.
    pub(crate) fn register_segdes(&mut self, segdes: &Rc<DeviceSegdes>) {
        self.segdes.push(Rc::downgrade(segdes));
    }

    /// Adds a condition. The line `flag` is true where the condition does not hold.
    pub(crate) fn require(&mut self, inst: Inst, operands: &[Entry], flag: Node) -> Run<()> {
        let is_alike = |other: &Node| match (other.length(), flag.length()) {
            (None, None) => other.bound() == flag.bound(),
            (Some(a), Some(b)) => a.is_same(b) && other.bound() == flag.bound(),
            _ => false,
        };
        match self.failed.iter().position(is_alike) {
            None => self.failed.push(flag.clone()),
            Some(index) => {
                let failed = self.failed[index].clone();
                self.failed[index] = self.elementwise(Elementwise::Binary(BinaryOp::Or), &[&failed, &flag])?;
            }
        }
        if self.tracing {
            // The machine repeats the call when a condition does not hold.
            return Ok(());
        }
        // A vector that only a message needs is not computed for its own sake.
        let operands = operands.iter().map(Entry::detached).collect();
        self.pending.push(Pending { inst, operands, flag, place: None });
        Ok(())
    }

    /// Returns conditions that have no place yet.
    pub(crate) fn unplaced(&mut self) -> impl Iterator<Item = &mut Pending> {
        self.pending.iter_mut().rev().take_while(|pending| pending.place.is_none())
    }

    /// Tells whether conditions have no place yet.
    pub(crate) fn has_unplaced(&self) -> bool {
        self.pending.last().is_some_and(|pending| pending.place.is_none())
    }

    /// Tells whether a condition does not hold; waits.
    pub(crate) fn is_set(&mut self, condition: &Pending) -> bool {
        let flag = condition.flag.reduce(Combine::Any, &[0]).and_then(|flag| flag.evaluate());
        flag.is_ok_and(|buffer| buffer.read().is_ok_and(|bytes| bytes.first() != Some(&0)))
    }

    pub(crate) fn has_wide_ints(&self) -> bool {
        self.widths.wide_int
    }

    /// Waits for the value of a vector of one element, an int of 32 bits or a bool, and evaluates the
    /// conditions.
    pub(crate) fn wait_for_one(&mut self, vector: &Vector) -> Run<i64> {
        self.untraced()?;
        let value = on_device(vector.node.reshape(Shape::from([])))?;
        // The number of this wait is not learned a second time.
        self.unknown.retain(|known| known.upgrade().is_some_and(|known| !known.vector.node.is_same(&vector.node)));
        self.wait_for(Some(&value))
    }

    /// Takes the conditions that may not hold, in order.
    pub(crate) fn take_pending(&mut self) -> Vec<Pending> {
        self.failed.clear();
        (self.word, self.is_trapped) = (None, false);
        std::mem::take(&mut self.pending)
    }

    /// Tells whether there are unevaluated conditions.
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Tells whether enough new nodes exist to compute the live ones.
    pub(crate) fn is_full(&self) -> bool {
        self.made >= MAX_NODES
    }

    /// Tells whether enough new nodes exist to compute the live ones at the end of a function.
    pub(crate) fn has_much(&self) -> bool {
        self.made >= MUCH
    }

    /// Computes a result and returns it with a length that the host knows.
    pub(crate) fn finished(&mut self, node: &Node) -> Run<Node> {
        if self.tracing {
            // All results of a template are computed in one plan.
            return Ok(node.clone());
        }
        self.evaluate(std::slice::from_ref(node))?;
        on_device(node.hosted())
    }

    /// Computes nodes and all live vectors; does not wait.
    fn evaluate(&mut self, wanted: &[Node]) -> Run<()> {
        let context = self.context()?;
        let mut nodes: Vec<Node> = wanted.to_vec();
        for vector in std::mem::take(&mut self.vectors).iter().filter_map(Weak::upgrade) {
            if !vector.vector.generated {
                nodes.push(vector.vector.stored().clone());
            }
        }
        // A descriptor may get another form later, so it stays in the list.
        self.segdes.retain(|segdes| segdes.strong_count() > 0);
        for segdes in self.segdes.iter().filter_map(Weak::upgrade) {
            segdes.forms(&mut nodes);
        }
        if self.tracing {
            // A trace launches nothing, since it may be in vain. Other nodes are part of kernels, or computed
            // on use.
            nodes.retain(Node::is_symbolic);
        }
        self.made = 0;
        if self.target.explained {
            let before = context.statistics().plans;
            let summary = on_device(context.explain(&nodes))?;
            if context.statistics().plans > before {
                self.summaries.push(summary.text_on(context.device()));
                self.ptx.push(on_device(summary.ptx())?);
            }
        }
        on_device(context.evaluate(&nodes))
    }

    /// Waits for a value without axes and evaluates the conditions. The value is an int below 2^62 or a bool.
    pub(crate) fn wait_for(&mut self, value: Option<&Node>) -> Run<i64> {
        self.wait_with(value, &[], None)
    }

    /// Lists the numbers of elements and sums of lengths of all live vectors that the host does not know.
    fn unknown(&mut self, length: Option<&Length>) -> Run<Vec<Unknown>> {
        let mut lengths: Vec<Length> = length.into_iter().cloned().collect();
        let mut add = |extent: &Extent| {
            if let Some(length) = extent.unknown()
                && lengths.len() < MAX_LEARNED
                && !lengths.iter().any(|known| known.is_same(length))
            {
                lengths.push(length.clone());
            }
        };
        let (mut summed, mut numbers, mut kept) = (vec![], vec![], vec![]);
        for weak in std::mem::take(&mut self.unknown) {
            let Some(vector) = weak.upgrade() else { continue };
            let own = &vector.vector;
            add(&own.extent);
            if vector.is_number() && vector.host.get().is_none() {
                numbers.push(vector.clone());
            }
            let has_sum = own.facts.bound.is_none() || !own.facts.loose || own.is_uniform();
            if let (false, None) = (has_sum, own.facts.sum.get()) {
                summed.push(vector.clone());
            }
            own.facts.sum.get().into_iter().for_each(&mut add);
            // Vectors with these sums may be gone, but a bound is only as tight as the known sums.
            own.facts.bound.iter().flat_map(Bound::sums).for_each(&mut add);
            if own.extent.unknown().is_some() || own.facts.has_unknown() || !has_sum {
                kept.push(weak);
            }
        }
        self.unknown = kept;
        for segdes in self.segdes.iter().filter_map(Weak::upgrade) {
            add(segdes.count());
            segdes.known_total().into_iter().for_each(&mut add);
        }
        let mut unknown: Vec<Unknown> = lengths.into_iter().map(Unknown::Length).collect();
        for vector in summed.into_iter().take(MAX_SUMS) {
            let current = vector.current()?;
            let sum = self.sum_node(&current)?;
            unknown.push(Unknown::Sum(vector.vector.facts.sum.clone(), sum));
        }
        unknown.extend(numbers.into_iter().take(MAX_NUMBERS).map(Unknown::Value));
        Ok(unknown)
    }

    /// Waits for a value, computes other nodes in the same plan, and learns `length` and the numbers of
    /// elements of all live vectors: all in one transfer.
    fn wait_with(&mut self, value: Option<&Node>, others: &[Node], length: Option<&Length>) -> Run<i64> {
        self.untraced()?;
        let start = Instant::now();
        let (traps, failed) = self.traps()?;
        if value.is_none() && failed.is_none() && length.is_none() && !self.is_trapped {
            return Ok(0);
        }
        let unknown = self.unknown(length)?;
        if value.is_none() && failed.is_none() && unknown.is_empty() {
            // The host needs only the word.
            self.evaluate(&[&traps, others].concat())?;
            let is_set = self.read_word()?;
            self.waits += 1;
            self.waited += start.elapsed();
            return self.looked_at(is_set, 0);
        }
        let value = match value {
            Some(value) => Some(self.convert(value, Element::I64)?),
            None => None,
        };
        let failed = match (self.trapped(&traps)?, failed) {
            (Some(word), Some(failed)) => Some(self.call("either", &[&word, &failed], |f, x| f.or(f.ne(x[0], 0), x[1]))?),
            (Some(word), None) => Some(self.call("written", &[&word], |f, x| f.ne(x[0], 0))?),
            (None, failed) => failed,
        };
        let status = self.with_status(value.as_ref(), failed.as_ref())?;
        let mut numbers = vec![on_device(status.reshape(Shape::from(1)))?];
        for number in &unknown {
            let number = self.number_of(number)?;
            numbers.push(self.as_vector(&number)?);
        }
        let numbers = on_device(Node::concatenate(0, &numbers.iter().collect::<Vec<&Node>>()))?;
        let mut wanted = vec![numbers.clone()];
        wanted.extend_from_slice(others);
        self.evaluate(&wanted)?;
        let bytes = on_device(numbers.evaluate())?.read().map_err(|error| device_error(error.into()))?;
        self.waits += 1;
        self.waited += start.elapsed();
        let mut numbers = bytes.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes));
        let status = numbers.next().unwrap_or(0);
        for (number, value) in unknown.iter().zip(numbers) {
            let count = usize::try_from(value).unwrap_or(0);
            match number {
                Unknown::Length(length) => length.learn(count),
                Unknown::Sum(sum, _) => {
                    let _ = sum.set(Extent::host(count));
                }
                Unknown::Value(vector) => {
                    let _ = vector.value.set(value);
                }
            }
        }
        self.looked_at(status & 1 != 0, status >> 1)
    }

    /// Returns one number for a value and for the conditions: twice the value, an `i64`, plus one if a
    /// condition does not hold.
    fn with_status(&mut self, value: Option<&Node>, failed: Option<&Node>) -> Run<Node> {
        match (value, failed) {
            (None, None) => self.one(Literal::from(0i64)),
            (Some(value), None) => self.call("status", &[value], |f, x| f.add(x[0], x[0])),
            (None, Some(failed)) => self.convert(failed, Element::I64),
            (Some(value), Some(failed)) => {
                self.call("status", &[value, failed], |f, x| f.add(f.add(x[0], x[0]), f.convert(x[1], scalar::Type::I64)))
            }
        }
    }

    /// Returns the node of a number that the host learns, an `i64`.
    fn number_of(&mut self, unknown: &Unknown) -> Run<Node> {
        match unknown {
            Unknown::Length(length) => self.convert(length.count(), Element::I64),
            Unknown::Sum(_, sum) => Ok(sum.clone()),
            Unknown::Value(vector) => self.convert(&vector.vector.node, Element::I64),
        }
    }

    /// Ends a wait: reports a violated condition, or returns the value.
    fn looked_at(&mut self, is_set: bool, value: i64) -> Run<i64> {
        self.is_trapped = false;
        if is_set {
            (self.has_failed, self.word) = (true, None);
            return Fault::at_run_time("a condition does not hold");
        }
        self.pending.clear();
        Ok(value)
    }

    /// Takes the new conditions: makes traps of those on lines, and combines those on single elements into a
    /// bool without axes.
    fn traps(&mut self) -> Run<(Vec<Node>, Option<Node>)> {
        let (mut traps, mut any): (Vec<Node>, Option<Node>) = (vec![], None);
        for failed in std::mem::take(&mut self.failed) {
            if failed.length().is_some() || !failed.bound().size().equals(&1.into()) {
                let word = self.word()?;
                traps.push(on_device(failed.trap(&word))?);
                self.is_trapped = true;
                continue;
            }
            let flag = on_device(failed.reshape(Shape::from([])))?;
            any = Some(match any {
                None => flag,
                Some(any) => self.elementwise(Elementwise::Binary(BinaryOp::Or), &[&any, &flag])?,
            });
        }
        Ok((traps, any))
    }

    /// Returns the word that traps write.
    fn word(&mut self) -> Run<Node> {
        if let Some(word) = &self.word {
            return Ok(word.clone());
        }
        let context = self.context()?;
        let word = on_device(Node::upload(&context, Element::U32.into(), Shape::from([]), &[0; 4]))?;
        Ok(self.word.insert(word).clone())
    }

    /// Returns the word after all traps, including those of earlier plans; `None` if there was none.
    fn trapped(&mut self, traps: &[Node]) -> Run<Option<Node>> {
        let mut all: Option<Node> = None;
        for trap in traps {
            all = Some(match all {
                None => trap.clone(),
                Some(all) => self.elementwise(Elementwise::Binary(BinaryOp::Or), &[&all, trap])?,
            });
        }
        Ok(all.or_else(|| self.word.clone().filter(|_| self.is_trapped)))
    }

    fn read_word(&mut self) -> Run<bool> {
        let Some(word) = self.word.clone() else { return Ok(false) };
        let bytes = on_device(word.evaluate())?.read().map_err(|error| device_error(error.into()))?;
        Ok(bytes.iter().any(|byte| *byte != 0))
    }

    /// Evaluates the conditions; waits if there are any.
    pub(crate) fn look(&mut self) -> Run<()> {
        if self.has_pending() { self.wait_for(None).map(|_| ()) } else { Ok(()) }
    }

    /// Computes all live vectors, so that plans stay small. Waits only if many conditions keep vectors alive.
    pub(crate) fn flush(&mut self) -> Run<()> {
        if self.pending.len() > MAX_PENDING {
            return self.look();
        }
        // The conditions on single elements become one flag.
        let (mut nodes, failed) = self.traps()?;
        if let Some(failed) = failed {
            self.failed = vec![on_device(failed.reshape(Shape::from(1)))?];
            nodes.extend(self.failed.iter().cloned());
        }
        self.evaluate(&nodes)
    }

    /// Returns the bytes of a vector; waits for them. Conditions are evaluated first.
    pub(crate) fn read(&mut self, node: &Node) -> Run<Vec<u8>> {
        self.untraced()?;
        let start = Instant::now();
        let length = node.length().filter(|length| length.known().is_none()).cloned();
        let waited = self.has_pending() || length.is_some();
        if waited {
            // Everything is computed in one plan.
            self.wait_with(None, std::slice::from_ref(node), length.as_ref())?;
        }
        let hosted = match (node.length(), node.buffer()) {
            (None, Some(_)) => node.clone(),
            _ => {
                self.evaluate(std::slice::from_ref(node))?;
                on_device(node.hosted())?
            }
        };
        let bytes = on_device(hosted.evaluate())?.read().map_err(|error| device_error(error.into()))?;
        self.waits += u64::from(!waited);
        self.waited += start.elapsed();
        Ok(bytes)
    }
}
