//! The typed program: the output of inference, and the input of later stages.
//!
//! Names are resolved, operators are calls, generators are explicit and optional arguments are filled in.
//! Types are in tables of their own beside the expressions, and so are spans.
//!
//! Invariants of a [`Body`]:
//! - `types` and `spans` have an entry for every expression, `locals` for every variable of every pattern;
//! - variables of its types are those of the scheme of its definition;
//! - an expression refers to expressions with lesser ids only, so a pass can go through the table in order;
//! - a function value refers to outer variables only through its captures.

mod environment;
mod monomorphise;
mod primitive;
mod verify;

pub use crate::types::{DatatypeId, DefId, LambdaId};
pub use environment::{Datatype, Definition, DefinitionKind, Environment, Optional, Origin};
pub use monomorphise::Instantiate;
pub use primitive::Primitive;
pub use verify::{verify, verify_all};

use crate::syntax::Name;
use crate::types::TypeId;
use broadloom_diag::Span;
use cranelift_entity::{PrimaryMap, entity_impl};
use std::sync::Arc;

/// Names an expression of a [`Body`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(u32);
entity_impl!(ExprId, "e");

/// Names a pattern of a [`Body`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PatternId(u32);
entity_impl!(PatternId, "p");

/// Names a variable of a [`Body`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalId(u32);
entity_impl!(LocalId, "v");

/// The code of a function, of a function value, or of a top-level expression.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// The expressions.
    pub exprs: PrimaryMap<ExprId, Expr>,
    /// The type of each expression.
    pub types: PrimaryMap<ExprId, TypeId>,
    /// The place of each expression.
    pub spans: PrimaryMap<ExprId, Span>,
    /// All patterns; expressions refer to them by id.
    pub patterns: PrimaryMap<PatternId, Pattern>,
    /// The variables.
    pub locals: PrimaryMap<LocalId, Local>,
    /// The parameter; absent for a top-level expression.
    pub parameter: Option<PatternId>,
    /// The expression that is the result.
    pub result: Option<ExprId>,
}

/// A variable.
#[derive(Clone, Debug)]
pub struct Local {
    /// The name in the program.
    pub name: Name,
    /// Its type.
    pub ty: TypeId,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// An integer.
    Int(i64),
    /// A literal floating-point number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A character.
    Char(u8),
    /// A string, the same as a sequence of characters.
    Text(Arc<[u8]>),
    /// A variable.
    Local(LocalId),
    /// A definition with the types that replace its type variables.
    Definition(DefId, Vec<TypeId>),
    /// Two expressions as one value.
    Pair(ExprId, ExprId),
    /// A call: function and argument.
    Call(ExprId, ExprId),
    /// Condition and branches; one branch is evaluated.
    If(ExprId, ExprId, ExprId),
    /// Pattern, value, and the expression in whose scope the pattern is.
    Let(PatternId, ExprId, ExprId),
    /// An apply-to-each.
    Each(Box<Each>),
    /// A sequence of these elements.
    Sequence(Vec<ExprId>),
    /// A function value.
    Lambda(LambdaId),
    /// The value of an expression and the time of its evaluation in seconds.
    Time(ExprId),
}

/// An apply-to-each. The body is evaluated for every element, including those that the filter drops.
#[derive(Clone, Debug, PartialEq)]
pub struct Each {
    /// True if elements are computed one after the other.
    pub serial: bool,
    /// Patterns, each with the sequence whose elements it is bound to; all sequences have one length.
    pub generators: Vec<(PatternId, ExprId)>,
    /// The condition under which an element is kept.
    pub filter: Option<ExprId>,
    /// The value of an element.
    pub body: ExprId,
}

/// A pattern. Constructors are not represented: the value of a datatype is its content.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// The whole value.
    Local(LocalId),
    /// The parts of a pair.
    Pair(PatternId, PatternId),
}

/// A function value.
#[derive(Clone, Debug)]
pub struct Lambda {
    /// Variables of the surrounding body, with the variables of the own body that hold their values.
    pub captures: Vec<(LocalId, LocalId)>,
    /// The code.
    pub body: Arc<Body>,
}
