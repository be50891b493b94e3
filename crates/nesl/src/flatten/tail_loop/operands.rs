//! Values of loop forms, and the operands of their calls.

use crate::core::{Body, ExprId, LocalId, PatternId};
use crate::vcode::{LoopOperand, Reg, Shape, Type};
use broadloom_diag::Span;
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

/// Code, or the reason why there is no loop form.
pub(in super::super) type LoopResult<T> = Result<T, String>;

/// A value of a round.
#[derive(Clone)]
pub(in super::super) enum Val {
    Scalar(Reg),
    /// The parts of a pair, or the captured variables of a function.
    Tuple(Rc<[Val]>),
    Seq(Rc<Sequence>),
}

/// A sequence of a round. Only [`Sequence::Part`] is in memory.
pub(in super::super) enum Sequence {
    Part(Part),
    /// Ints from a start on.
    Range {
        start: Reg,
        length: Reg,
    },
    /// Equal elements.
    Equal {
        value: Val,
        length: Reg,
    },
    /// Elements that are written out.
    List {
        items: Vec<Val>,
        length: Reg,
    },
    /// The elements of a sequence at the indices in another one.
    Gather {
        values: Rc<Sequence>,
        indices: Rc<Sequence>,
        span: Span,
    },
    /// The elements of a sequence from an index on.
    Cut {
        values: Rc<Sequence>,
        from: Reg,
        length: Reg,
    },
    /// The elements of an apply-to-each, computed where they are used.
    Each(Rc<Delayed>),
}

/// A part of tables. The tables of nested sequences are those of starts and lengths, then those of elements.
#[derive(Clone)]
pub(in super::super) struct Part {
    pub(super) start: Reg,
    pub(super) length: Reg,
    /// The number of its first table.
    pub(super) table: usize,
    pub(super) element: Shape,
}

/// Apply-to-each whose elements are computed where they are used.
pub(in super::super) struct Delayed {
    pub(super) generators: Vec<(PatternId, Rc<Sequence>)>,
    pub(super) filter: Option<ExprId>,
    pub(super) item: ExprId,
    pub(super) body: Rc<Body>,
    pub(super) locals: HashMap<LocalId, Val>,
    pub(super) length: Reg,
    /// Number of folds around it.
    pub(super) depth: u32,
    /// Number of places that compute its elements.
    pub(super) uses: Cell<u32>,
    /// True if an element takes a loop.
    pub(super) is_long: Cell<bool>,
}

/// Operands of a call under construction.
#[derive(Default)]
pub(in super::super) struct Operands {
    pub(in super::super) list: Vec<LoopOperand>,
    pub(in super::super) params: Vec<Type>,
    /// Parameters that are lengths of sequences.
    pub(super) lengths: Vec<Reg>,
    tables: usize,
}

impl Operands {
    fn param(&mut self, ty: Type) -> Reg {
        self.list.push(LoopOperand::Param);
        self.params.push(ty);
        self.params.len() as Reg - 1
    }

    /// Returns the number of tables so far.
    pub(in super::super) fn tables(&self) -> usize {
        self.tables
    }

    /// Adds the operands of a value whose sequences are not nested.
    pub(super) fn add(&mut self, shape: &Shape) -> LoopResult<Val> {
        self.add_value(shape, false)
    }

    /// Adds the operands of a value.
    pub(in super::super) fn add_nested(&mut self, shape: &Shape) -> LoopResult<Val> {
        self.add_value(shape, true)
    }

    fn add_value(&mut self, shape: &Shape, is_nested: bool) -> LoopResult<Val> {
        Ok(match shape {
            Shape::Int => Val::Scalar(self.param(Type::Int)),
            Shape::Float => Val::Scalar(self.param(Type::Float)),
            Shape::Bool => Val::Scalar(self.param(Type::Bool)),
            Shape::Tuple(parts) => {
                Val::Tuple(parts.iter().map(|part| self.add_value(part, is_nested)).collect::<LoopResult<Rc<[Val]>>>()?)
            }
            Shape::Seq(element) if is_nested || element.is_scalar() => {
                let (start, length) = (self.param(Type::Int), self.param(Type::Int));
                self.lengths.push(length);
                self.list.push(LoopOperand::Pool);
                let table = self.tables;
                self.add_tables(element);
                Val::Seq(Rc::new(Sequence::Part(Part { start, length, table, element: (**element).clone() })))
            }
            Shape::Seq(_) => return Err("it has nested sequences".to_owned()),
        })
    }

    fn table(&mut self, ty: Type) {
        self.list.push(LoopOperand::Table(ty));
        self.tables += 1;
    }

    fn add_tables(&mut self, shape: &Shape) {
        match shape {
            Shape::Int => self.table(Type::Int),
            Shape::Float => self.table(Type::Float),
            Shape::Bool => self.table(Type::Bool),
            Shape::Tuple(parts) => parts.iter().for_each(|part| self.add_tables(part)),
            Shape::Seq(element) => {
                self.table(Type::Int);
                self.table(Type::Int);
                self.list.push(LoopOperand::Pool);
                self.add_tables(element);
            }
        }
    }
}

/// Returns the number of tables of elements of a shape.
pub(super) fn tables_of(shape: &Shape) -> usize {
    match shape {
        Shape::Int | Shape::Float | Shape::Bool => 1,
        Shape::Tuple(parts) => parts.iter().map(tables_of).sum(),
        Shape::Seq(element) => 2 + tables_of(element),
    }
}
