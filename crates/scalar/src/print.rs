//! Code as text that a person can read.
//!
//! Expressions are written out where they are used once, and named `tN` where they are used more often; variables are `vN`, local arrays
//! `aN`, shared ones `sN`, tables `tableN`, counters `iN`, blocks are indented. Names are numbered in the order of the text. A literal has its type
//! behind it where nothing beside it says it. [`text`](crate::text) reads functions back.

use crate::body::{Body, Statement, Unroll};
use crate::declaration::{AccessorDecl, ParameterDecl, ParameterKind};
use crate::function::Function;
use crate::id::{BlockId, Id};
use crate::kernel::Kernel;
use crate::memory::{Access, Base, Cache, Order};
use crate::op::{BinaryOp, Op};
use crate::schedule::Schedule;
use crate::structure::Structure;
use crate::text::literal_text;
use crate::types::{Element, Literal};
use std::collections::HashSet;
use std::fmt::{self, Write};

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Names::of(self.parameters(), self.accessors());
        write!(f, "fn {}(", self.name())?;
        parameters(f, self.parameters(), &names)?;
        let results: Vec<String> = self.result_types().iter().map(ToString::to_string).collect();
        writeln!(f, ") -> ({})", results.join(", "))?;
        for (accessor, name) in self.accessors().iter().zip(&names.accessors) {
            let kind = format!("{:?}", accessor.kind).to_lowercase();
            writeln!(f, "  {kind} {name}: {} of rank {}", accessor.ty, accessor.rank)?;
        }
        if self.body().keeps_products {
            writeln!(f, "  keep products")?;
        }
        code(f, self.body(), names, Some(self.results()))
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Names::of(self.parameters(), &[]);
        write!(f, "kernel {}(", self.name())?;
        parameters(f, self.parameters(), &names)?;
        writeln!(f, ")")?;
        if let Some(block) = self.bounds().block {
            writeln!(f, "  block {block:?}")?;
        }
        code(f, self.body(), names, None)
    }
}

/// The names of parameters and accessors, each of them once.
struct Names {
    parameters: Vec<String>,
    accessors: Vec<String>,
}

/// Words that are no names.
const KEYWORDS: [&str; 19] = [
    "break", "by", "continue", "else", "false", "fn", "for", "if", "in", "inf", "local", "loop", "nan", "NaN", "return", "table",
    "true", "var", "while",
];

/// Returns whether a name can be one of the code's own, or a word.
pub(crate) fn is_reserved(name: &str) -> bool {
    let numbered = |prefix: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    KEYWORDS.contains(&name) || ["t", "v", "a", "s", "i", "table"].into_iter().any(numbered)
}

impl Names {
    fn of(parameters: &[ParameterDecl], accessors: &[AccessorDecl]) -> Names {
        let mut taken: HashSet<String> = HashSet::new();
        let mut name = |wanted: &str| {
            let mut name: String = wanted.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
            if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || is_reserved(&name) {
                name.push('_');
                name = format!("_{name}");
            }
            let numbered = (2..).map(|number: u32| format!("{name}_{number}"));
            let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name)).unwrap_or(name);
            taken.insert(free.clone());
            free
        };
        Names {
            parameters: parameters.iter().map(|parameter| name(&parameter.name)).collect(),
            accessors: accessors.iter().map(|accessor| name(&accessor.name)).collect(),
        }
    }
}

fn parameters(f: &mut fmt::Formatter<'_>, parameters: &[ParameterDecl], names: &Names) -> fmt::Result {
    for (index, (parameter, name)) in parameters.iter().zip(&names.parameters).enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        match parameter.kind {
            ParameterKind::Value => write!(f, "{separator}{name}: {}", parameter.ty)?,
            ParameterKind::Pointer(element) => write!(f, "{separator}{name}: *{element}")?,
        }
    }
    Ok(())
}

fn code(f: &mut fmt::Formatter<'_>, body: &Body, names: Names, results: Option<&[Id]>) -> fmt::Result {
    let structure = Structure::of(body);
    let schedule = Schedule::of(body, &structure, results.unwrap_or_default());
    let texts = vec![None; body.nodes.len()];
    let mut printer = Printer { body, names, schedule, texts, out: String::new(), values: 0, counters: 0 };
    for (index, var) in body.vars.iter().enumerate() {
        writeln!(printer.out, "  var v{index}: {var}")?;
    }
    for (index, table) in body.tables.iter().enumerate() {
        let entries: Vec<String> = table.entries.iter().map(|entry| literal_text(*entry)).collect();
        writeln!(printer.out, "  table table{index}: {} = {}", table.element, entries.join(", "))?;
    }
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
        let results: Vec<String> = results.iter().map(|id| printer.text_of(*id, Some(body.type_of(*id).element()))).collect();
        writeln!(printer.out, "  return {}", results.join(", "))?;
    }
    f.write_str(&printer.out)
}

struct Printer<'a> {
    body: &'a Body,
    names: Names,
    schedule: Schedule,
    /// The text or the name of each node.
    texts: Vec<Option<String>>,
    out: String,
    /// Number of values and counters that have names.
    values: u32,
    counters: u32,
}

/// Texts longer than this get a name.
const LONG: usize = 60;

impl Printer<'_> {
    /// A value at a place where its type does not matter.
    fn text(&self, id: Id) -> String {
        self.text_of(id, Some(self.body.type_of(id).element()))
    }

    /// An index. A number without a type is a `u32`, an `i32` or an `i64`, whichever holds it.
    fn index(&self, id: Id) -> String {
        let value = self.body.literal(id).and_then(Literal::as_i128);
        let usual = value.map(|value| match value {
            0..=0xffff_ffff => Element::U32,
            -0x8000_0000..0 => Element::I32,
            _ => Element::I64,
        });
        self.text_of(id, usual)
    }

    fn indices(&self, ids: &[Id]) -> String {
        ids.iter().map(|id| self.index(*id)).collect::<Vec<_>>().join(", ")
    }

    /// A value at a place that wants an element type. A literal of another type names it.
    fn text_of(&self, id: Id, wanted: Option<Element>) -> String {
        match (&self.texts[id.index()], &self.body.node(id).op) {
            (Some(text), _) => text.clone(),
            (None, Op::Literal(literal)) if wanted == Some(literal.element()) => literal_text(*literal),
            (None, Op::Literal(literal)) => format!("{}{}", literal_text(*literal), literal.element()),
            (None, _) => format!("t{}", id.0),
        }
    }

    /// Values of one type: one that is no literal says it for all.
    fn alike(&self, ids: &[Id]) -> Vec<String> {
        self.alike_or(ids, None)
    }

    /// Prints values of one type; literals alone have this one.
    fn alike_or(&self, ids: &[Id], otherwise: Option<Element>) -> Vec<String> {
        let is_value = |id: &&Id| self.body.literal(**id).is_none();
        let wanted = ids.iter().find(is_value).map(|id| self.body.type_of(*id).element()).or(otherwise);
        ids.iter().map(|id| self.text_of(*id, wanted)).collect()
    }

    /// Gives a value the next name.
    fn named(&mut self, id: Id) -> String {
        let name = format!("t{}", self.values);
        self.values += 1;
        self.texts[id.index()] = Some(name.clone());
        name
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
            Op::Literal(literal) => format!("{}{}", literal_text(*literal), literal.element()),
            Op::Parameter(index) => self.names.parameters.get(*index as usize).map_or("?".into(), Clone::clone),
            Op::Special(special) => match special {
                crate::op::Special::Thread(axis) => format!("thread.{}", axis.name()),
                crate::op::Special::Block(axis) => format!("block.{}", axis.name()),
                crate::op::Special::BlockSize(axis) => format!("block_size.{}", axis.name()),
                crate::op::Special::GridSize(axis) => format!("grid_size.{}", axis.name()),
                other => format!("{other:?}").to_lowercase(),
            },
            Op::Unary(op, x) => format!("{}({})", op.name(), self.text_of(*x, None)),
            Op::Binary(op @ (BinaryOp::Shl | BinaryOp::Shr), x, y) => {
                format!("({} {} {})", self.text_of(*x, None), op.name(), self.text_of(*y, Some(Element::U32)))
            }
            Op::Binary(op, x, y) => match op {
                BinaryOp::Min
                | BinaryOp::Max
                | BinaryOp::MulHigh
                | BinaryOp::AddSaturating
                | BinaryOp::SubSaturating
                | BinaryOp::CopySign
                | BinaryOp::DivApprox => format!("{}({})", op.name(), self.alike(&[*x, *y]).join(", ")),
                BinaryOp::Add
                | BinaryOp::Sub
                | BinaryOp::Mul
                | BinaryOp::Div
                | BinaryOp::Rem
                | BinaryOp::And
                | BinaryOp::Or
                | BinaryOp::Xor
                | BinaryOp::Shl
                | BinaryOp::Shr => format!("({})", self.alike(&[*x, *y]).join(&format!(" {} ", op.name()))),
            },
            Op::Compare(op, x, y) => format!("({})", self.alike(&[*x, *y]).join(&format!(" {} ", op.name()))),
            Op::Fma(x, y, z) => format!("fma({})", self.alike(&[*x, *y, *z]).join(", ")),
            Op::Select(c, x, y) => {
                format!("select({}, {})", self.text_of(*c, Some(Element::Bool)), self.alike(&[*x, *y]).join(", "))
            }
            Op::Convert(x) => format!("{}({})", node.ty, self.text_of(*x, None)),
            Op::Bitcast(x) => format!("bits_as_{}({})", node.ty, self.text_of(*x, None)),
            Op::Math(function, precision, arguments) => match precision {
                crate::math_function::Precision::Accurate => format!("{function}({})", self.alike(arguments).join(", ")),
                crate::math_function::Precision::Fast => format!("{function}_fast({})", self.alike(arguments).join(", ")),
            },
            Op::Vector(lanes) => format!("<{}>", self.alike(lanes).join(", ")),
            Op::Lane(vector, lane) => format!("{}.{lane}", self.text(*vector)),
            Op::Table(table, index) => format!("table{}[{}]", table.0, self.index(*index)),
            Op::Assume(x, low, high) => format!("({} in {low}..={high})", self.text_of(*x, None)),
            Op::SharedAddress(shared) => format!("&s{}", shared.0),
            Op::LocalAddress(array) => format!("&a{}", array.0),
            Op::Counter(_) => self.text(id),
            Op::Get(var) => format!("v{}", var.0),
            Op::Element(array, index) => format!("a{}[{}]", array.0, self.index(*index)),
            Op::Load(base, index, access) => match node.ty.lanes() {
                1 => self.place(*base, *index, access),
                _ => format!("{} from {}", node.ty, self.place(*base, *index, access)),
            },
            Op::Read(accessor, position) => format!("{}[{}]", self.accessor(accessor.index()), self.indices(position)),
            Op::Window(accessor, offsets) => format!("{}@[{}]", self.accessor(accessor.index()), self.indices(offsets)),
            Op::Pop(accessor) => format!("{}.pop()", self.accessor(accessor.index())),
            Op::Peek(accessor, offset) => format!("{}.peek({})", self.accessor(accessor.index()), self.index(*offset)),
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
        self.names.accessors.get(index).map_or("?", String::as_str)
    }

    fn computed(&mut self, block: BlockId, place: usize, depth: usize) -> fmt::Result {
        for id in self.schedule.before(block, place).to_vec() {
            let text = self.expression(id);
            let simple = matches!(self.body.node(id).op, Op::Parameter(_) | Op::Special(_));
            if simple || (self.schedule.uses[id.index()] <= 1 && text.len() <= LONG) {
                self.texts[id.index()] = Some(text);
            } else {
                let name = self.named(id);
                writeln!(self.out, "{:1$}{name} = {text}", "", depth * 2)?;
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
                    let name = self.named(*id);
                    writeln!(self.out, "{name} = {text}")?;
                }
                Statement::Set(var, value) => {
                    let text = self.text_of(*value, Some(body.variable(*var)));
                    writeln!(self.out, "v{} = {text}", var.0)?;
                }
                Statement::SetElement { array, index, value } => {
                    let text = format!(
                        "a{}[{}] = {}",
                        array.0,
                        self.index(*index),
                        self.text_of(*value, Some(body.array(*array).element))
                    );
                    writeln!(self.out, "{text}")?;
                }
                Statement::Store { base, index, value, access, condition } => {
                    let text = format!("{} = {}", self.place(*base, *index, access), self.text(*value));
                    let text = match condition {
                        Some(condition) => format!("{text} where {}", self.text(*condition)),
                        None => text,
                    };
                    writeln!(self.out, "{text}")?;
                }
                Statement::Prefetch { base, index, access, level } => {
                    let text = self.place(*base, *index, access);
                    writeln!(self.out, "prefetch {} {text}", format!("{level:?}").to_lowercase())?;
                }
                Statement::Write { accessor, indices, value } => {
                    let text = format!("{}[{}] = {}", self.accessor(accessor.index()), self.indices(indices), self.text(*value));
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
                    let name = format!("i{}", self.counters);
                    self.counters += 1;
                    let unrolled = match unroll {
                        Unroll::Auto => String::new(),
                        other => format!(" unroll {other:?}").to_lowercase(),
                    };
                    let bounds = self.alike_or(&[*start, *end, *step], Some(Element::I32));
                    writeln!(self.out, "for {name} in {}..{} by {}{unrolled}", bounds[0], bounds[1], bounds[2])?;
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
