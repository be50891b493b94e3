//! Lowering from kernels to PTX.
//!
//! A node that [`Schedule`] places becomes one or more registers. Variables are registers that are written
//! repeatedly, so control flow needs no phi nodes. Integers of 8 and 16 bits are in 32-bit registers, always
//! sign- or zero-extended. `f16` values are in 16-bit registers, and `bool` values are predicates. Float
//! instructions state their rounding, so that no later stage contracts them.
//!
//! Invariant: for code that the builder accepted, the verifier refuses only what is too large
//! ([`Error::TooLarge`]). Any other refusal is a fault of this module and is reported as such.

mod arith;
mod control;
mod convert;
mod fuse;
mod memory;
mod stream;
mod uniform;
mod warp;

use crate::body::Body;
use crate::declaration::ParameterKind;
use crate::error::{Error, Result};
use crate::id::Id;
use crate::kernel::Kernel;
use crate::op::{Op, Special, placed_op};
use crate::range::Ranges;
use crate::schedule::Schedule;
use crate::structure::Structure;
use crate::types::{Element, Literal};
use broadloom_diag::Diagnostics;
use broadloom_ptx::builder::{FunctionBuilder, Instructions, ModuleBuilder};
use broadloom_ptx::verify::codes;
use broadloom_ptx::{Block, Imm, Init, IsaVersion, Operand, PointerInfo, Reg, Space, Symbol, Target, Type, Variable, Verified};
use fuse::{FusedInstruction, Fusion};
use smallvec::SmallVec;

/// Options of lowering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lowering {
    /// PTX version.
    pub version: IsaVersion,
    /// Target machine.
    pub target: Target,
    /// True if code is simplified first. Results stay the same bit for bit.
    pub simplify: bool,
    /// True if products whose only use is a sum are fused with it, as C compilers for GPUs do. Requires
    /// `simplify`.
    pub contract: bool,
    /// True if kernels may start while earlier kernels still run, which GPUs support from `sm_90` on. Such a
    /// kernel itself waits until all earlier work is done, and at once allows later kernels to start in this
    /// way.
    pub overlap: bool,
    /// True if approximate operations treat subnormal numbers as zero, and divisors above 2¹²⁶ as infinite. A
    /// GPU has instructions for this.
    pub flush: bool,
}

impl Default for Lowering {
    /// Returns the options for machines from `sm_80` on, with all optimisations.
    fn default() -> Self {
        Lowering {
            version: IsaVersion::new(7, 8),
            target: Target::sm(80),
            simplify: true,
            contract: true,
            overlap: false,
            flush: false,
        }
    }
}

/// Lowers several kernels to one module for machines from `sm_80` on.
pub fn lower(kernels: &[Kernel]) -> Result<Verified> {
    lower_with(kernels, &Lowering::default())
}

/// Lowers several kernels to one module.
pub fn lower_with(kernels: &[Kernel], lowering: &Lowering) -> Result<Verified> {
    let mut module = ModuleBuilder::new(lowering.version, lowering.target.clone());
    let names: Vec<&str> = kernels.iter().map(Kernel::name).collect();
    let failed = |diagnostics: &Diagnostics| {
        let (name, reason) = (names.join("`, `"), messages(diagnostics));
        let limits = diagnostics.iter().all(|diagnostic| diagnostic.code == codes::LIMIT);
        if limits { Error::TooLarge { name, reason } } else { Error::Lowering { name, reason } }
    };
    let words: Vec<String> = names.iter().map(|name| word(name)).collect();
    if let Some((index, name)) = words.iter().enumerate().find(|(index, name)| words[..*index].contains(name)) {
        let problems = vec![format!(
            "kernels `{}` and `{}` of one module have one name in PTX, `{name}`",
            first(&words, name, &names),
            names[index]
        )];
        return Err(Error::Invalid { name: names[index].to_owned(), problems });
    }
    let dynamic = kernels.iter().any(|kernel| kernel.body().shared.iter().any(|shared| shared.length.is_none()));
    let dynamic = dynamic.then(|| module.dynamic_shared("dynamic_shared", Type::B8, 16));
    for kernel in kernels {
        emit(&mut module, &prepare(kernel, lowering)?, dynamic, lowering);
    }
    module.verified().map_err(|diagnostics| failed(&diagnostics))
}

/// Returns the kernel in the form that is emitted.
fn prepare(kernel: &Kernel, lowering: &Lowering) -> Result<Kernel> {
    if !lowering.simplify {
        return kernel.expand_math(false);
    }
    let kernel = kernel.simplify()?;
    // Before elementary functions are expanded: their expansions state where a product is rounded.
    let kernel = if lowering.contract { kernel.contract()? } else { kernel };
    kernel.guard().expand_math(true)?.address()
}

/// Returns the name of the first kernel with this PTX name.
fn first<'n>(words: &[String], word: &str, names: &[&'n str]) -> &'n str {
    words.iter().position(|own| own == word).map_or("", |index| names[index])
}

fn messages(diagnostics: &Diagnostics) -> String {
    diagnostics.iter().take(3).map(|diagnostic| diagnostic.message.clone()).collect::<Vec<_>>().join("; ")
}

/// The operands of a node, one for each lane.
type LaneOperands = SmallVec<[Operand; 1]>;

/// Blocks of an open loop.
struct OpenLoop {
    again: Block,
    end: Block,
}

struct Emitter<'a> {
    f: FunctionBuilder,
    kernel: &'a Kernel,
    body: &'a Body,
    schedule: Schedule,
    fusion: Fusion,
    flush: bool,
    ranges: Ranges,
    values: Vec<Option<LaneOperands>>,
    vars: Vec<Reg>,
    arrays: Vec<Option<Symbol>>,
    shared: Vec<Symbol>,
    /// Tables, and their state space.
    tables: Vec<(Symbol, Space)>,
    params: Vec<Symbol>,
    loops: Vec<OpenLoop>,
}

/// Converts a name to a PTX identifier.
fn word(name: &str) -> String {
    let mut word: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if !word.starts_with(|c: char| c.is_ascii_alphabetic()) {
        word.insert(0, 'k');
    }
    word
}

/// Chooses the order of a kernel. The default is its own order with nodes as late as possible. The streamed
/// form with nodes as early as possible is chosen if fewer values are live at once.
fn scheduled<'b>(body: &'b Body, streamed: Option<&'b Body>) -> (&'b Body, Structure, Schedule) {
    let structure = Structure::of(body);
    let late = Schedule::of(body, &structure, &[]);
    if let Some(streamed) = streamed {
        let own = Structure::of(streamed);
        let early = Schedule::of(streamed, &own, &[]).eager(streamed);
        if early.pressure(streamed, &own) < late.pressure(body, &structure) {
            return (streamed, own, early);
        }
    }
    (body, structure, late)
}

fn emit(module: &mut ModuleBuilder, kernel: &Kernel, dynamic: Option<Symbol>, lowering: &Lowering) {
    let streamed = stream::streamed(kernel.body());
    let (body, structure, schedule) = scheduled(kernel.body(), streamed.as_ref());
    let name = word(kernel.name());
    let spaces = uniform::varying_tables(body).into_iter().map(|varies| if varies { Space::Global } else { Space::Const });
    let tables = body.tables.iter().zip(spaces).enumerate();
    let tables = tables.map(|(index, (table, space))| (table_variable(module, &name, index, space, table), space)).collect();
    let mut f = module.kernel(&name);
    let bounds = kernel.bounds();
    match (bounds.block, bounds.max_threads) {
        (Some(block), _) => f.directive("reqntid", &block),
        (None, Some(threads)) => f.directive("maxntid", &[threads]),
        (None, None) => {}
    }
    if let Some(blocks) = bounds.min_blocks
        && (bounds.block.is_some() || bounds.max_threads.is_some())
    {
        f.directive("minnctapersm", &[blocks]);
    }
    let params = kernel.parameters().iter().enumerate().map(|(index, parameter)| {
        let name = format!("{name}_{index}_{}", word(&parameter.name));
        let variable = match parameter.kind {
            ParameterKind::Value => Variable::new(name, Space::Param, memory_type(parameter.ty.element())),
            ParameterKind::Pointer(element) => Variable {
                pointer: Some(PointerInfo { space: Space::Global, align: Some(element.bytes()) }),
                ..Variable::new(name, Space::Param, Type::U64)
            },
        };
        f.param_variable(variable)
    });
    let params = params.collect();
    let shared = body.shared.iter().enumerate().map(|(index, shared)| match (shared.length, dynamic) {
        (None, Some(symbol)) => symbol,
        (length, _) => {
            let dims = vec![Some(u64::from(length.unwrap_or(1)))];
            let variable = Variable::new(format!("{name}_shared_{index}"), Space::Shared, memory_type(shared.element));
            f.variable(Variable { dims, align: Some(16), ..variable })
        }
    });
    let shared = shared.collect();
    let fusion = Fusion::of(body, &schedule);
    let ranges = Ranges::of(body, &structure, bounds);
    let mut emitter = Emitter {
        f,
        kernel,
        body,
        schedule,
        fusion,
        flush: lowering.flush,
        ranges,
        values: vec![None; body.nodes.len()],
        vars: vec![],
        arrays: vec![None; body.arrays.len()],
        shared,
        tables,
        params,
        loops: vec![],
    };
    emitter.vars = body.vars.iter().map(|element| emitter.f.reg(register_type(*element))).collect();
    if lowering.overlap {
        emitter.f.griddepcontrol(broadloom_ptx::Modifier::Wait);
        emitter.f.griddepcontrol(broadloom_ptx::Modifier::LaunchDependents);
    }
    emitter.begin_variables();
    emitter.block(Body::ENTRY);
    emitter.f.ret(());
    module.define(emitter.f);
}

fn table_variable(module: &mut ModuleBuilder, kernel: &str, index: usize, space: Space, table: &crate::body::Table) -> Symbol {
    let entries = table.entries.iter().map(|entry| Init::Imm(initial(*entry))).collect();
    module.variable(Variable {
        dims: vec![Some(table.entries.len() as u64)],
        align: Some(16),
        init: Some(Init::List(entries)),
        ..Variable::new(format!("{kernel}_table_{index}"), space, memory_type(table.element))
    })
}

fn initial(literal: Literal) -> Imm {
    match literal.element() {
        Element::F32 => Imm::F32(literal.bits() as u32),
        Element::F64 => Imm::F64(literal.bits()),
        _ => integer_imm(literal),
    }
}

fn integer_imm(literal: Literal) -> Imm {
    let value = literal.as_i128().unwrap_or(i128::from(literal.bits()));
    i64::try_from(value).map_or(Imm::Uint(value as u64), Imm::Int)
}

/// Returns the type of registers that hold an element.
fn register_type(element: Element) -> Type {
    match element {
        Element::Bool => Type::Pred,
        Element::I8 | Element::I16 | Element::I32 | Element::U8 | Element::U16 | Element::U32 => Type::B32,
        Element::I64 | Element::U64 => Type::B64,
        Element::F16 => Type::B16,
        Element::F32 => Type::F32,
        Element::F64 => Type::F64,
    }
}

/// Returns the type in which instructions compute an element.
fn compute_type(element: Element) -> Type {
    match element {
        Element::Bool => Type::Pred,
        Element::I8 | Element::I16 | Element::I32 => Type::S32,
        Element::U8 | Element::U16 | Element::U32 => Type::U32,
        Element::I64 => Type::S64,
        Element::U64 => Type::U64,
        Element::F16 => Type::F16,
        Element::F32 => Type::F32,
        Element::F64 => Type::F64,
    }
}

/// Returns the type of an element in memory.
fn memory_type(element: Element) -> Type {
    match element {
        Element::Bool | Element::U8 => Type::U8,
        Element::I8 => Type::S8,
        Element::I16 => Type::S16,
        Element::U16 => Type::U16,
        Element::I32 => Type::S32,
        Element::U32 => Type::U32,
        Element::I64 => Type::S64,
        Element::U64 => Type::U64,
        Element::F16 => Type::B16,
        Element::F32 => Type::F32,
        Element::F64 => Type::F64,
    }
}

/// Returns the bit type as wide as the registers of an element.
fn bits_type(element: Element) -> Type {
    match register_type(element).bits() {
        16 => Type::B16,
        32 => Type::B32,
        _ => Type::B64,
    }
}

impl Emitter<'_> {
    fn element(&self, id: Id) -> Element {
        self.body.type_of(id).element()
    }

    fn register(&mut self, element: Element) -> Reg {
        self.f.reg(register_type(element))
    }

    /// Returns a literal as an operand: an immediate if possible, otherwise a register.
    fn literal(&mut self, literal: Literal) -> Operand {
        match literal.element() {
            Element::F32 => Operand::Imm(Imm::F32(literal.bits() as u32)),
            Element::F64 => Operand::Imm(Imm::F64(literal.bits())),
            Element::F16 => self.f.mov(Type::B16, literal.bits() as u32).into(),
            Element::Bool => self.f.mov(Type::Pred, literal.bits() as u32).into(),
            _ => Operand::Imm(integer_imm(literal)),
        }
    }

    /// Returns all lanes of a node.
    fn lanes(&mut self, id: Id) -> LaneOperands {
        if let Some(lowered) = &self.values[id.index()] {
            return lowered.clone();
        }
        match &self.body.node(id).op {
            Op::Literal(literal) => SmallVec::from_iter([self.literal(*literal)]),
            Op::Vector(ids) => ids.iter().map(|lane| self.operand(*lane)).collect(),
            // Unreachable code: a register without a value.
            _ => SmallVec::from_iter([Operand::Reg(self.register(self.body.type_of(id).element()))]),
        }
    }

    /// Returns a node of one lane as an operand.
    fn operand(&mut self, id: Id) -> Operand {
        self.lanes(id).into_iter().next().unwrap_or(Operand::Imm(Imm::Int(0)))
    }

    /// Returns a node of one lane in a register.
    fn reg(&mut self, id: Id) -> Reg {
        let operand = self.operand(id);
        self.in_register(operand, self.element(id))
    }

    fn in_register(&mut self, operand: Operand, element: Element) -> Reg {
        match operand {
            Operand::Reg(reg) => reg,
            other => {
                let reg = self.register(element);
                self.f.to(reg).mov(move_type(element), other)
            }
        }
    }

    fn give(&mut self, id: Id, value: impl Into<Operand>) {
        self.values[id.index()] = Some(SmallVec::from_iter([value.into()]));
    }

    /// Computes a pure node.
    fn pure(&mut self, id: Id) {
        let body = self.body;
        let node = body.node(id);
        let element = node.ty.element();
        if !self.fusion.needed[id.index()] {
            return;
        }
        if let Some(fused) = self.fusion.fused[id.index()] {
            let value = self.fused(fused, element);
            return self.give(id, value);
        }
        match &node.op {
            Op::Literal(_) | Op::Vector(_) => {}
            Op::Parameter(index) => {
                let param = self.params[*index as usize];
                let ty = memory_type(element);
                let value = match element {
                    Element::Bool => {
                        let byte = self.f.reg(Type::B32);
                        self.f.to(byte).ld((Space::Param, Type::U8), param);
                        self.f.setp((broadloom_ptx::Modifier::Ne, Type::U32), byte, 0)
                    }
                    _ => {
                        let reg = self.register(element);
                        self.f.to(reg).ld((Space::Param, ty), param)
                    }
                };
                let is_pointer = matches!(self.kernel.parameters()[*index as usize].kind, ParameterKind::Pointer(_));
                let value = if is_pointer { self.f.cvta_to((broadloom_ptx::Modifier::Global, Type::U64), value) } else { value };
                self.give(id, value);
            }
            Op::Special(special) => {
                let value = self.special(*special);
                self.give(id, value);
            }
            Op::Unary(op, x) => {
                let value = self.unary(*op, element, *x);
                self.give(id, value);
            }
            Op::Binary(op, x, y) => {
                let value = self.binary(*op, element, *x, *y);
                self.give(id, value);
            }
            Op::Compare(op, x, y) => {
                let value = self.compare(*op, *x, *y);
                self.give(id, value);
            }
            Op::Fma(x, y, z) => {
                let (x, y, z) = (self.operand(*x), self.operand(*y), self.operand(*z));
                let reg = self.register(element);
                self.f.to(reg).fma((broadloom_ptx::Modifier::Rn, compute_type(element)), x, y, z);
                self.give(id, reg);
            }
            Op::Select(c, x, y) => {
                let value = self.select(element, *c, *x, *y);
                self.give(id, value);
            }
            Op::Convert(x) => {
                let value = self.convert(*x, element);
                self.give(id, value);
            }
            Op::Bitcast(x) => {
                let value = self.bitcast(*x, element);
                self.give(id, value);
            }
            Op::Lane(vector, lane) => {
                let lanes = self.lanes(*vector);
                if let Some(operand) = lanes.get(usize::from(*lane)) {
                    self.give(id, operand.clone());
                }
            }
            Op::Assume(x, _, _) => {
                let value = self.operand(*x);
                self.give(id, value);
            }
            Op::Table(table, index) => {
                let value = self.table_entry(*table, *index);
                self.give(id, value);
            }
            Op::SharedAddress(shared) => {
                let symbol = self.shared[shared.index()];
                let value = self.f.mov(Type::U32, symbol);
                self.give(id, value);
            }
            Op::LocalAddress(array) => {
                let symbol = self.array_symbol(*array);
                let value = self.f.mov(Type::U64, symbol);
                self.give(id, value);
            }
            // Expanded before, or placed by statements.
            Op::Math(..) | placed_op!() => {}
        }
    }

    fn fused(&mut self, fused: FusedInstruction, element: Element) -> Reg {
        use broadloom_ptx::Modifier::{Hi, Lo, NaN, Wide};
        let reg = self.register(element);
        let narrow = |this: &Self, id: Id| if this.element(id).is_signed() { Type::S32 } else { Type::U32 };
        match fused {
            FusedInstruction::Mad(x, y, z) => {
                let (x, y, z) = (self.operand(x), self.operand(y), self.operand(z));
                self.f.to(reg).mad((Lo, compute_type(element)), x, y, z)
            }
            FusedInstruction::MadHigh(x, y, z) => {
                let (x, y, z) = (self.operand(x), self.operand(y), self.operand(z));
                self.f.to(reg).mad((Hi, compute_type(element)), x, y, z)
            }
            FusedInstruction::MulWide(x, factor) => {
                let (ty, x) = (narrow(self, x), self.operand(x));
                self.f.to(reg).mul((Wide, ty), x, factor)
            }
            FusedInstruction::MadWide(x, factor, z) => {
                let (ty, x, z) = (narrow(self, x), self.operand(x), self.operand(z));
                self.f.to(reg).mad((Wide, ty), x, factor, z)
            }
            FusedInstruction::MinNan(x, y) => {
                let (x, y) = (self.operand(x), self.operand(y));
                self.f.to(reg).min((NaN, compute_type(element)), x, y)
            }
            FusedInstruction::MaxNan(x, y) => {
                let (x, y) = (self.operand(x), self.operand(y));
                self.f.to(reg).max((NaN, compute_type(element)), x, y)
            }
        }
    }

    fn special(&mut self, special: Special) -> Reg {
        use broadloom_ptx::Special as Ptx;
        let axes = |axis: crate::op::Axis, list: [Ptx; 3]| list[axis as usize];
        self.f.special(match special {
            Special::Thread(axis) => axes(axis, [Ptx::TidX, Ptx::TidY, Ptx::TidZ]),
            Special::BlockSize(axis) => axes(axis, [Ptx::NtidX, Ptx::NtidY, Ptx::NtidZ]),
            Special::Block(axis) => axes(axis, [Ptx::CtaidX, Ptx::CtaidY, Ptx::CtaidZ]),
            Special::GridSize(axis) => axes(axis, [Ptx::NctaidX, Ptx::NctaidY, Ptx::NctaidZ]),
            Special::Lane => Ptx::Laneid,
            Special::LaneMaskEq => Ptx::LanemaskEq,
            Special::LaneMaskLt => Ptx::LanemaskLt,
            Special::LaneMaskLe => Ptx::LanemaskLe,
            Special::LaneMaskGt => Ptx::LanemaskGt,
            Special::LaneMaskGe => Ptx::LanemaskGe,
            Special::DynamicSharedBytes => Ptx::DynamicSmemSize,
        })
    }
}

/// Returns the type of moves between registers of an element.
fn move_type(element: Element) -> Type {
    match element {
        Element::Bool => Type::Pred,
        Element::F32 => Type::F32,
        Element::F64 => Type::F64,
        _ => bits_type(element),
    }
}
