//! Code as text that a person can read.
//!
//! Expressions are written out where they are used once, and named `tN` where they are used more often; variables are `vN`, local arrays
//! `aN`, shared ones `sN`, blocks are indented.

use crate::body::{Body, Statement, Unroll};
use crate::builder::{AccessorDecl, ParameterDecl, ParameterKind};
use crate::function::Function;
use crate::kernel::Kernel;
use crate::memory::{Access, Base, Cache, Order};
use crate::op::{BinaryOp, BlockId, Id, Op};
use crate::schedule::Schedule;
use crate::structure::Structure;
use std::fmt::{self, Write};

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fn {}(", self.name())?;
        parameters(f, self.parameters())?;
        let results: Vec<String> = self.result_types().iter().map(ToString::to_string).collect();
        writeln!(f, ") -> ({})", results.join(", "))?;
        for accessor in self.accessors() {
            let kind = format!("{:?}", accessor.kind).to_lowercase();
            writeln!(f, "  {kind} {}: {} of rank {}", accessor.name, accessor.ty, accessor.rank)?;
        }
        code(f, self.body(), self.parameters(), self.accessors(), Some(self.results()))
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {}(", self.name())?;
        parameters(f, self.parameters())?;
        writeln!(f, ")")?;
        if let Some(block) = self.bounds().block {
            writeln!(f, "  block {block:?}")?;
        }
        code(f, self.body(), self.parameters(), &[], None)
    }
}

fn parameters(f: &mut fmt::Formatter<'_>, parameters: &[ParameterDecl]) -> fmt::Result {
    for (index, parameter) in parameters.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        match parameter.kind {
            ParameterKind::Value => write!(f, "{separator}{}: {}", parameter.name, parameter.ty)?,
            ParameterKind::Pointer(element) => write!(f, "{separator}{}: *{element}", parameter.name)?,
        }
    }
    Ok(())
}

fn code(
    f: &mut fmt::Formatter<'_>,
    body: &Body,
    parameters: &[ParameterDecl],
    accessors: &[AccessorDecl],
    results: Option<&[Id]>,
) -> fmt::Result {
    let structure = Structure::of(body);
    let schedule = Schedule::of(body, &structure, results.unwrap_or_default());
    let mut printer = Printer { body, parameters, accessors, schedule, texts: vec![None; body.nodes.len()], out: String::new() };
    for (index, shared) in body.shared.iter().enumerate() {
        match shared.length {
            Some(length) => writeln!(printer.out, "  shared s{index}: {}[{length}]", shared.element)?,
            None => writeln!(printer.out, "  shared s{index}: {}[]", shared.element)?,
        }
    }
    for (index, array) in body.arrays.iter().enumerate() {
        writeln!(printer.out, "  local a{index}: {}[{}]", array.element, array.length)?;
    }
    printer.block(Body::ENTRY, 1)?;
    if let Some(results) = results {
        let results: Vec<String> = results.iter().map(|id| printer.text(*id)).collect();
        writeln!(printer.out, "  return {}", results.join(", "))?;
    }
    f.write_str(&printer.out)
}

struct Printer<'a> {
    body: &'a Body,
    parameters: &'a [ParameterDecl],
    accessors: &'a [AccessorDecl],
    schedule: Schedule,
    texts: Vec<Option<String>>,
    out: String,
}

/// Texts longer than this get a name.
const LONG: usize = 60;

impl Printer<'_> {
    fn text(&self, id: Id) -> String {
        match &self.texts[id.index()] {
            Some(text) => text.clone(),
            None => match &self.body.node(id).op {
                Op::Literal(literal) => literal.to_string(),
                _ => format!("t{}", id.0),
            },
        }
    }

    fn texts(&self, ids: &[Id]) -> String {
        ids.iter().map(|id| self.text(*id)).collect::<Vec<_>>().join(", ")
    }

    fn place(&self, base: Base, index: Id, access: &Access) -> String {
        let base = match base {
            Base::Global(id) => self.text(id),
            Base::Shared(shared, None) => format!("s{}", shared.0),
            Base::Shared(shared, Some(bytes)) => format!("(s{} + {} bytes)", shared.0, self.text(bytes)),
            Base::SharedAt(id) => format!("shared({})", self.text(id)),
        };
        let offset = if access.offset == 0 { String::new() } else { format!(" + {}", access.offset) };
        let order = match access.order {
            Order::Weak => String::new(),
            order => format!(" {order:?}"),
        };
        let cache = match access.cache {
            Cache::Normal => String::new(),
            cache => format!(" {cache:?}"),
        };
        format!("{base}[{}{offset}]{order}{cache}", self.text(index))
    }

    fn expression(&self, id: Id) -> String {
        let node = self.body.node(id);
        match &node.op {
            Op::Literal(literal) => literal.to_string(),
            Op::Parameter(index) => self.parameters.get(*index as usize).map_or("?".into(), |parameter| parameter.name.clone()),
            Op::Special(special) => match special {
                crate::op::Special::Thread(axis) => format!("thread.{}", axis.name()),
                crate::op::Special::Block(axis) => format!("block.{}", axis.name()),
                crate::op::Special::BlockSize(axis) => format!("block_size.{}", axis.name()),
                crate::op::Special::GridSize(axis) => format!("grid_size.{}", axis.name()),
                other => format!("{other:?}").to_lowercase(),
            },
            Op::Unary(op, x) => format!("{}({})", op.name(), self.text(*x)),
            Op::Binary(op, x, y) => match op {
                BinaryOp::Min
                | BinaryOp::Max
                | BinaryOp::MulHigh
                | BinaryOp::AddSaturating
                | BinaryOp::SubSaturating
                | BinaryOp::CopySign
                | BinaryOp::DivApprox => format!("{}({}, {})", op.name(), self.text(*x), self.text(*y)),
                BinaryOp::Add
                | BinaryOp::Sub
                | BinaryOp::Mul
                | BinaryOp::Div
                | BinaryOp::Rem
                | BinaryOp::And
                | BinaryOp::Or
                | BinaryOp::Xor
                | BinaryOp::Shl
                | BinaryOp::Shr => format!("({} {} {})", self.text(*x), op.name(), self.text(*y)),
            },
            Op::Compare(op, x, y) => format!("({} {} {})", self.text(*x), op.name(), self.text(*y)),
            Op::Fma(x, y, z) => format!("fma({}, {}, {})", self.text(*x), self.text(*y), self.text(*z)),
            Op::Select(c, x, y) => format!("select({}, {}, {})", self.text(*c), self.text(*x), self.text(*y)),
            Op::Convert(x) => format!("{}({})", node.ty, self.text(*x)),
            Op::Bitcast(x) => format!("bits_as_{}({})", node.ty, self.text(*x)),
            Op::Math(function, precision, arguments) => match precision {
                crate::math::Precision::Accurate => format!("{function}({})", self.texts(arguments)),
                crate::math::Precision::Fast => format!("{function}_fast({})", self.texts(arguments)),
            },
            Op::Vector(lanes) => format!("<{}>", self.texts(lanes)),
            Op::Lane(vector, lane) => format!("{}.{lane}", self.text(*vector)),
            Op::Table(table, index) => format!("table{}[{}]", table.0, self.text(*index)),
            Op::Assume(x, low, high) => format!("({} in {low}..={high})", self.text(*x)),
            Op::SharedAddress(shared) => format!("&s{}", shared.0),
            Op::LocalAddress(array) => format!("&a{}", array.0),
            Op::Counter(_) => format!("i{}", id.0),
            Op::Get(var) => format!("v{}", var.0),
            Op::Element(array, index) => format!("a{}[{}]", array.0, self.text(*index)),
            Op::Load(base, index, access) => match node.ty.lanes() {
                1 => self.place(*base, *index, access),
                _ => format!("{} from {}", node.ty, self.place(*base, *index, access)),
            },
            Op::Read(accessor, position) => format!("{}[{}]", self.accessor(accessor.index()), self.texts(position)),
            Op::Window(accessor, offsets) => format!("{}@[{}]", self.accessor(accessor.index()), self.texts(offsets)),
            Op::Pop(accessor) => format!("{}.pop()", self.accessor(accessor.index())),
            Op::Peek(accessor, offset) => format!("{}.peek({})", self.accessor(accessor.index()), self.text(*offset)),
            Op::Shuffle(kind, width, value, amount, members) => {
                let kind = format!("{kind:?}").to_lowercase();
                format!("shuffle_{kind}{width}({}, {}, {})", self.text(*value), self.text(*amount), self.text(*members))
            }
            Op::Vote(vote, predicate, members) => {
                format!("{}({}, {})", format!("{vote:?}").to_lowercase(), self.text(*predicate), self.text(*members))
            }
            Op::Ballot(predicate, members) => format!("ballot({}, {})", self.text(*predicate), self.text(*members)),
            Op::Match(value, members) => format!("match({}, {})", self.text(*value), self.text(*members)),
            Op::WarpReduce(op, value, members) => {
                format!("warp_{}({}, {})", format!("{op:?}").to_lowercase(), self.text(*value), self.text(*members))
            }
            Op::ActiveMask => "active_mask()".into(),
            Op::Atomic(op, base, index, access, value, expected) => {
                let expected = expected.map_or(String::new(), |expected| format!("{}, ", self.text(expected)));
                let op = format!("{op:?}").to_lowercase();
                format!("atomic_{op}({}, {expected}{})", self.place(*base, *index, access), self.text(*value))
            }
            Op::BarrierCount(predicate) => format!("barrier_count({})", self.text(*predicate)),
        }
    }

    fn accessor(&self, index: usize) -> &str {
        self.accessors.get(index).map_or("?", |accessor| &accessor.name)
    }

    fn computed(&mut self, block: BlockId, place: usize, depth: usize) -> fmt::Result {
        for id in self.schedule.before(block, place).to_vec() {
            let text = self.expression(id);
            let simple = matches!(self.body.node(id).op, Op::Parameter(_) | Op::Special(_));
            if simple || (self.schedule.uses[id.index()] <= 1 && text.len() <= LONG) {
                self.texts[id.index()] = Some(text);
            } else {
                writeln!(self.out, "{:1$}t{2} = {text}", "", depth * 2, id.0)?;
            }
        }
        Ok(())
    }

    fn block(&mut self, block: BlockId, depth: usize) -> fmt::Result {
        let body = self.body;
        let statements = &body.block(block).statements;
        for (index, statement) in statements.iter().enumerate() {
            self.computed(block, index, depth)?;
            write!(self.out, "{:1$}", "", depth * 2)?;
            match statement {
                Statement::Define(id) => {
                    let text = self.expression(*id);
                    writeln!(self.out, "t{} = {text}", id.0)?;
                }
                Statement::Set(var, value) => {
                    let text = self.text(*value);
                    writeln!(self.out, "v{} = {text}", var.0)?;
                }
                Statement::SetElement { array, index, value } => {
                    let text = format!("a{}[{}] = {}", array.0, self.text(*index), self.text(*value));
                    writeln!(self.out, "{text}")?;
                }
                Statement::Store { base, index, value, access } => {
                    let text = format!("{} = {}", self.place(*base, *index, access), self.text(*value));
                    writeln!(self.out, "{text}")?;
                }
                Statement::Prefetch { base, index, access, level } => {
                    let text = self.place(*base, *index, access);
                    writeln!(self.out, "prefetch {} {text}", format!("{level:?}").to_lowercase())?;
                }
                Statement::Write { accessor, indices, value } => {
                    let text = format!("{}[{}] = {}", self.accessor(accessor.index()), self.texts(indices), self.text(*value));
                    writeln!(self.out, "{text}")?;
                }
                Statement::Push { accessor, value } => {
                    let text = format!("{}.push({})", self.accessor(accessor.index()), self.text(*value));
                    writeln!(self.out, "{text}")?;
                }
                Statement::Barrier => writeln!(self.out, "barrier")?,
                Statement::WarpBarrier(members) => {
                    let text = self.text(*members);
                    writeln!(self.out, "warp_barrier {text}")?;
                }
                Statement::Fence(scope) => writeln!(self.out, "fence {}", format!("{scope:?}").to_lowercase())?,
                Statement::If { condition, then, otherwise } => {
                    let text = self.text(*condition);
                    writeln!(self.out, "if {text}")?;
                    self.block(*then, depth + 1)?;
                    if !body.block(*otherwise).statements.is_empty() {
                        writeln!(self.out, "{:1$}else", "", depth * 2)?;
                        self.block(*otherwise, depth + 1)?;
                    }
                }
                Statement::For { counter, start, end, step, body: inner, unroll } => {
                    let name = format!("i{}", counter.0);
                    let unrolled = match unroll {
                        Unroll::Auto => String::new(),
                        other => format!(" unroll {other:?}").to_lowercase(),
                    };
                    let text = format!("{}..{} by {}{unrolled}", self.text(*start), self.text(*end), self.text(*step));
                    writeln!(self.out, "for {name} in {text}")?;
                    self.texts[counter.index()] = Some(name);
                    self.block(*inner, depth + 1)?;
                }
                Statement::While { head, condition, body: inner } => {
                    writeln!(self.out, "loop")?;
                    self.block(*head, depth + 1)?;
                    let text = self.text(*condition);
                    writeln!(self.out, "{:1$}while {text}", "", depth * 2 + 2)?;
                    self.block(*inner, depth + 1)?;
                }
                Statement::Break => writeln!(self.out, "break")?,
                Statement::Continue => writeln!(self.out, "continue")?,
            }
        }
        self.computed(block, statements.len(), depth)
    }
}
