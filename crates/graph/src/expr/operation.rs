//! Operations that combine elements of several positions, with the properties that the planner reads.
//!
//! Reductions, scans, sorts and the like end a kernel: a parallel pattern of `skeleton` computes them. Each
//! is one type in one file of [`operations`](crate::expr::operations) that implements [`Operation`]: the work
//! fused before and after it, its pattern, and its naive definition. [`Typing`](crate::Typing) has its
//! checks, and the types and shapes of its results. Another crate adds an operation in the same way and
//! applies it with [`Node::apply`](crate::Node::apply); the planner has no list of operations.
//!
//! Elementwise operations, views, gathers and concatenations are functions of a position. They never need a
//! kernel of their own, and are part of the language of [traces](crate::emit::trace) instead.

use crate::expr::error::{Error, Result};
use crate::expr::host_array::HostArray;
use crate::expr::shape::{Axes, Shape};
use crate::expr::spelling::Spelling;
use broadloom_device::Machine;
use broadloom_scalar::{Lanes, Type};
use broadloom_skeleton::cost::KernelWork;
use broadloom_skeleton::{Domain, Key, Operator, Pattern, Sink, SortKey, Source};
use smallvec::SmallVec;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Operation that combines elements of several positions. Its equality and hash ([`Key`]) cover everything
/// that its code depends on, but neither sizes nor scalars.
pub trait Operation: Key + fmt::Debug + Send + Sync {
    /// Returns the name in plans and errors.
    fn name(&self) -> String;

    /// Returns the operation in the [textual form](crate::text) of graphs, which
    /// [`Vocabulary`](crate::text::Vocabulary) reads; `None` if it has none.
    fn spelling(&self) -> Option<Spelling> {
        None
    }

    /// Returns the sizes of the extents of a result, for inputs with these ranks. An operation whose results
    /// share a kernel or are used together need not implement it. Plans are better if sizes are known to be
    /// equal to others.
    fn extents(&self, result: u8, _ranks: &[usize], rank: usize) -> SmallVec<[Extent; 4]> {
        (0..rank).map(|axis| Extent::New(u16::from(result) << 8 | axis as u16)).collect()
    }

    /// Returns a neutral value for each input of these types: as padding after the last element along the
    /// first axis, it changes no result. An input with such a value may have a length that only the device
    /// knows; the host reads the length of any other input first. The first axis of such an input is the
    /// first axis of a result ([`Operation::extents`]), or is removed.
    fn absent(&self, _types: &[Type]) -> SmallVec<[Option<Lanes>; 4]> {
        SmallVec::new()
    }

    /// Returns the inputs that are known to have the same shape, because
    /// [`Typing::results`](crate::Typing::results) refuses others.
    fn alike(&self, _inputs: usize) -> SmallVec<[usize; 4]> {
        SmallVec::new()
    }

    /// Computes a result on the host, by the definition and without regard for speed.
    fn naive(&self, result: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray>;

    /// Returns the functions that feed the pattern, in the order of its sources, each with the inputs that it
    /// reads together.
    fn feeds(&self, application: &Application) -> Vec<Feed>;

    /// Returns the pattern that computes the operation.
    fn pattern(&self, parts: PatternParts) -> Result<OperationPattern>;

    /// Returns the types of the values that the pattern produces at a position. Elementwise work can be fused
    /// to them. An operation without such values stores its results itself, in the order of their numbers.
    fn values(&self, application: &Application) -> Vec<Type> {
        vec![application.ty]
    }

    /// Returns the index of a result among the values at a position.
    fn value(&self, _application: &Application, result: u8) -> usize {
        usize::from(result)
    }

    /// Returns which other results can come from the same kernel.
    fn joining(&self) -> SharedKernel {
        SharedKernel::Alone
    }

    /// Returns the operator that combines values, if the pattern takes one operator for all applications that
    /// share its pass. `in_order` promises that values are combined in the order of their positions.
    fn operator(&self, _application: &Application, _in_order: bool) -> Result<Option<Operator>> {
        Ok(None)
    }

    /// Returns the axes of the domain that the operation reduces, if it is a reduction.
    fn reduced(&self) -> Option<&[u8]> {
        None
    }

    /// Returns whether the pattern reads an element of its inputs many times, so that keeping them in memory
    /// pays.
    fn rereads(&self) -> bool {
        false
    }

    /// Returns whether the pattern calls the first of its functions at every position of its domain. Traps
    /// are placed in such functions.
    fn visits_all(&self) -> bool {
        matches!(self.joining(), SharedKernel::Pass(..))
    }

    /// Returns whether the pattern knows the first result of the other operation at each position of its
    /// first function, if one input of each is the same node: the numbers of these inputs. Called if the
    /// machine [knows segments](broadloom_skeleton::cost::Costs::knows_segments).
    fn knows(&self, _other: &dyn Operation) -> Option<(usize, usize)> {
        None
    }

    /// Returns whether the operation only writes its second input, a word in memory, if an element of the
    /// first is true. The planner places it in another kernel over the positions of the first input.
    fn is_trap(&self) -> bool {
        false
    }

    /// Returns the order of the key, if the operation sorts whole lines by the first of them.
    fn sorted_by(&self) -> Option<SortKey> {
        None
    }

    /// Returns a result that the kernel produces in any case: its number, type and shape.
    fn always(&self) -> Option<(u8, Type, Shape)> {
        None
    }

    /// Returns the result that counts the leading elements of a result that are defined, if the elements
    /// behind them are arbitrary.
    fn counted_by(&self, _result: u8) -> Option<u8> {
        None
    }

    /// Returns the additional work of its kernel, from the types of the inputs and the sizes of the pattern.
    /// Predictions add it to one call of its functions at each position and one pass over inputs and results.
    fn further_work(&self, _types: &[Type], _sizes: &[u64]) -> KernelWork {
        KernelWork::default()
    }

    /// Returns the largest number, besides the sizes of inputs and results, that indices of the kernel must
    /// hold.
    fn counted(&self, _inputs: &[&Shape]) -> usize {
        0
    }

    /// Returns the sizes of a call of the pattern, from the extents of its domain, the shapes of the inputs
    /// and the shape of the first result that the kernel produces.
    fn sizes(&self, domain: &[u64], _inputs: &[&Shape], _result: &Shape) -> Vec<u64> {
        domain.to_vec()
    }
}

/// Size of an extent of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Extent of an input along an axis.
    Of(usize, usize),
    /// New size. Results of one application that use the same number share it.
    New(u16),
}

impl Extent {
    /// Returns all extents of an input of this rank.
    pub fn all_of(input: usize, rank: usize) -> SmallVec<[Extent; 4]> {
        (0..rank).map(|axis| Extent::Of(input, axis)).collect()
    }

    /// Returns the extents of an input of this rank without some axes.
    pub fn without(input: usize, rank: usize, axes: &[u8]) -> SmallVec<[Extent; 4]> {
        (0..rank).filter(|axis| !axes.contains(&(*axis as u8))).map(|axis| Extent::Of(input, axis)).collect()
    }
}

/// The results that can share a kernel with those of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedKernel {
    /// A kernel produces one result.
    Alone,
    /// A kernel produces all results of one application of the operation.
    Results,
    /// Applications to several inputs over one domain share a pass, each value combined by its own operator.
    /// Applications share a pass if its name and its axes are equal.
    Pass(&'static str, Axes),
}

/// Inputs that one function reads for a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feed {
    /// The numbers of the inputs.
    pub inputs: SmallVec<[usize; 2]>,
    /// True if the pattern treats the domain as one-dimensional.
    pub line: bool,
    /// True if all applications that share a pass read the same inputs here. The pattern takes these inputs
    /// once.
    pub common: bool,
}

impl Feed {
    /// Creates a feed from inputs of an application. `line`: the domain is treated as one-dimensional.
    pub fn new(inputs: impl IntoIterator<Item = usize>, line: bool) -> Feed {
        Feed { inputs: inputs.into_iter().collect(), line, common: false }
    }

    /// Marks the inputs as common to all applications that share a pass.
    pub fn in_common(self) -> Feed {
        Feed { common: true, ..self }
    }
}

/// Facts about an application of an operation during the planning of its kernel.
#[derive(Clone, Debug)]
pub struct Application {
    /// The types of the inputs.
    pub types: SmallVec<[Type; 4]>,
    /// The ranks of the inputs.
    pub ranks: SmallVec<[usize; 4]>,
    /// For each input: true if it is the position along an axis.
    pub positions: SmallVec<[bool; 4]>,
    /// The type of the result.
    pub ty: Type,
    /// True if indices have 64 bits.
    pub wide: bool,
    /// The results that are used, for an operation whose results come from one kernel.
    pub wanted: SmallVec<[u8; 4]>,
}

/// What the planner passes to an operation that makes its pattern.
#[derive(Clone, Debug)]
pub struct PatternParts {
    /// The application of the kernel; the first one if several share a pass.
    pub application: Application,
    /// The index space of the results.
    pub domain: Domain,
    /// Number of axes of the domain.
    pub axes: usize,
    /// True if the domain is treated as one-dimensional.
    pub line: bool,
    /// The functions of [`Operation::feeds`].
    pub sources: Vec<Source>,
    /// The use of the values that the pattern produces.
    pub sink: Sink,
    /// Operator of all values that share the pass, if [`Operation::operator`] returns one.
    pub operator: Option<Operator>,
    /// True if the functions are small enough to be repeated for several rows of results.
    pub repeats: bool,
}

impl PatternParts {
    /// Takes the source of the next feed.
    pub fn source(&mut self) -> Result<Source> {
        if self.sources.is_empty() {
            return Err(Error::Plan { what: "a kernel".into(), reason: "it computes nothing".into() });
        }
        Ok(self.sources.remove(0))
    }

    /// Takes the operator of all applications that share the pass.
    pub fn operator(&mut self) -> Result<Operator> {
        let none = || Error::Plan { what: "a kernel".into(), reason: "it combines nothing".into() };
        self.operator.take().ok_or_else(none)
    }
}

/// What an operation makes from its [`PatternParts`]: one pattern, or several.
#[derive(Debug)]
pub enum OperationPattern {
    /// One pattern for all sizes.
    One(Pattern),
    /// Several patterns; the sizes of a run select one.
    Several(Box<dyn Variants>),
}

/// Patterns for the same work, each best for some sizes.
pub trait Variants: fmt::Debug + Send + Sync {
    /// Returns the number of the best variant for these sizes. `shares`: results are computed from mostly the
    /// same elements.
    fn best(&self, machine: &Machine, sizes: &[u64], shares: bool) -> u64;

    /// Returns the variant with this number.
    fn pattern(&self, variant: u64) -> Pattern;
}

/// Operation with the number of one of its results.
#[derive(Clone, Debug)]
pub struct OperationResult {
    operation: Arc<dyn Operation>,
    result: u8,
}

impl OperationResult {
    /// Returns the operation whose result this is.
    pub fn operation(&self) -> &dyn Operation {
        &*self.operation
    }

    /// Returns the number of the result.
    pub fn result(&self) -> u8 {
        self.result
    }

    /// Creates one result of an operation.
    pub(crate) fn new(operation: &Arc<dyn Operation>, result: u8) -> OperationResult {
        OperationResult { operation: operation.clone(), result }
    }

    /// Returns another result of the same operation.
    pub(crate) fn with_result(&self, result: u8) -> OperationResult {
        OperationResult { operation: self.operation.clone(), result }
    }

    /// Returns whether both are results of equal operations.
    pub(crate) fn is_same_operation(&self, other: &OperationResult) -> bool {
        Arc::ptr_eq(&self.operation, &other.operation) || self.operation.is_equal(other.operation.as_any())
    }
}

impl PartialEq for OperationResult {
    fn eq(&self, other: &OperationResult) -> bool {
        self.result == other.result && self.is_same_operation(other)
    }
}

impl Eq for OperationResult {}

impl Hash for OperationResult {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.operation.write_hash(state);
        self.result.hash(state);
    }
}
