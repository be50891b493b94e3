//! Expressions: nodes and the operations that construct them. Nothing here plans or runs; a node reaches its
//! [evaluator](node::Evaluator) through a trait.

pub(crate) mod amount;
pub(crate) mod apply;
pub(crate) mod arithmetic;
pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod context;
pub(crate) mod defined;
pub(crate) mod elementwise;
pub(crate) mod error;
pub(crate) mod expect;
pub(crate) mod expectation;
pub(crate) mod first_axis;
pub(crate) mod host_array;
pub(crate) mod kernel_settings;
pub(crate) mod known;
pub(crate) mod layout;
pub(crate) mod length;
pub(crate) mod node;
pub(crate) mod op;
pub(crate) mod operation;
pub(crate) mod operations;
pub(crate) mod parsed_call;
pub(crate) mod random;
pub(crate) mod runs;
pub(crate) mod segments;
mod selection;
pub(crate) mod shape;
pub(crate) mod spelling;
pub(crate) mod terms;
pub(crate) mod tracing;
pub(crate) mod view;
