//! Decoding of functions for execution.

use crate::handlers::handler;
use crate::memory::PARAM_BASE;
use crate::op::{Arg, CallSite, CalleeArg, Handler, Image, ImageSite, Matrix, Op, PassedValue};
use crate::variables::{VariableAddresses, function_address};
use broadloom_device::param_layout;
use broadloom_eval::matrix::{Product, Rows, Transfer};
use broadloom_eval::texture::{Fetch, Query, SurfaceAccess, element_type};
use broadloom_eval::{Operation, immediate, is_run, truncate};
use broadloom_ptx::{
    Base, Call, Callee, Func, Function, InstData, Mnemonic, Modifier, Opcode, Operand, Param, Reg, Space, Symbol, Type, Var,
    Verified,
};
use std::collections::{HashMap, HashSet};

/// Decoded function.
pub(crate) struct Routine {
    pub(crate) ops: Vec<Op>,
    /// Number of register slots.
    pub(crate) slots: usize,
    /// Bytes of its local and `.param` variables.
    pub(crate) frame_bytes: u64,
    /// Destinations of arguments.
    pub(crate) params: Vec<PassedValue>,
    /// Sources of results.
    pub(crate) results: Vec<PassedValue>,
    /// Functions it names.
    pub(crate) calls: Vec<Func>,
    /// True if it calls through a register.
    pub(crate) calls_indirectly: bool,
    /// Shared variables it names.
    pub(crate) shared: Vec<u32>,
    pub(crate) has_body: bool,
}

impl std::fmt::Debug for Routine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Routine({} instructions)", self.ops.len())
    }
}

struct Decoder<'a> {
    module: &'a Verified,
    func: Func,
    function: &'a Function,
    places: &'a VariableAddresses,
    slots: HashMap<Reg, u32>,
    frame: HashMap<Var, u64>,
    block_starts: HashMap<broadloom_ptx::Block, u32>,
    /// Functions and shared variables that it names, each once, in the order of the code.
    calls: UniqueList<Func>,
    shared: UniqueList<u32>,
}

/// Distinct items in the order in which they were first added.
struct UniqueList<T> {
    list: Vec<T>,
    seen: HashSet<T>,
}

impl<T: Copy + Eq + std::hash::Hash> UniqueList<T> {
    fn new() -> Self {
        UniqueList { list: vec![], seen: HashSet::new() }
    }

    fn add(&mut self, thing: T) {
        if self.seen.insert(thing) {
            self.list.push(thing);
        }
    }
}

fn mask(ty: Type) -> u64 {
    truncate(u64::MAX, ty.bits())
}

pub(crate) fn decode(module: &Verified, func: Func, places: &VariableAddresses) -> Routine {
    let function = &module.functions[func];
    let mut slots = HashMap::new();
    let mut count = 0u32;
    for (reg, data) in &function.regs {
        slots.insert(reg, count);
        count += if data.ty == Type::B128 { 2 } else { 1 };
    }
    let (frame, frame_bytes) = lay_out_frame(function);
    let mut block_starts = HashMap::new();
    let mut position = 0u32;
    for block in &function.layout {
        block_starts.insert(*block, position);
        position += function.blocks[*block].insts.len() as u32;
    }
    let mut decoder = Decoder {
        module,
        func,
        function,
        places,
        slots,
        frame,
        block_starts,
        calls: UniqueList::new(),
        shared: UniqueList::new(),
    };
    let ops: Vec<Op> = function.instructions().map(|(inst, data)| decoder.op(inst, data)).collect();
    let calls_indirectly =
        ops.iter().any(|op| matches!(op.call.as_deref(), Some(CallSite { callee: CalleeArg::Indirect(_), .. })));
    let passed = |params: &[Param]| params.iter().map(|param| decoder.passed_param(*param)).collect();
    let (params, results) = (passed(&function.params), passed(&function.results));
    Routine {
        slots: count as usize,
        frame_bytes,
        params,
        results,
        calls: decoder.calls.list,
        calls_indirectly,
        shared: decoder.shared.list,
        has_body: function.has_body,
        ops,
    }
}

/// Decodes the matrix operation of an instruction.
fn matrix(data: &InstData) -> Option<Box<Matrix>> {
    let opcode = data.opcode()?;
    let rows = |rows| if opcode == Opcode::Ldmatrix { Matrix::Load(rows) } else { Matrix::Store(rows) };
    let found = (opcode == Opcode::Movmatrix).then_some(Matrix::Transpose);
    let found = found.or_else(|| Rows::of(data).map(rows));
    let found = found.or_else(|| Product::of(data).map(Matrix::Product));
    found.or_else(|| Transfer::of(data).map(Matrix::Fragment)).map(Box::new)
}

/// Returns the elements of a vector, or the operand itself.
fn elements(arg: Arg) -> Vec<Arg> {
    match arg {
        Arg::Vector(list) => list.into(),
        arg => vec![arg],
    }
}

/// Returns the offsets of local variables, and of `.param` variables unless they are a kernel's parameters.
fn lay_out_frame(function: &Function) -> (HashMap<Var, u64>, u64) {
    let kernel_params: HashSet<Var> = match function.is_kernel {
        false => HashSet::new(),
        true => function
            .params
            .iter()
            .filter_map(|param| match param {
                Param::Memory(var) => Some(*var),
                Param::Reg(_) => None,
            })
            .collect(),
    };
    let mut frame = HashMap::new();
    let mut end = 0u64;
    for (var, variable) in &function.variables {
        if matches!(variable.space, Space::Local | Space::Param) && !kernel_params.contains(&var) {
            let start = end.next_multiple_of(variable.alignment().max(1));
            frame.insert(var, start);
            end = start.saturating_add(variable.bytes().unwrap_or(0));
        }
    }
    (frame, end.next_multiple_of(16))
}

impl Decoder<'_> {
    fn op(&mut self, inst: broadloom_ptx::Inst, data: &InstData) -> Op {
        let guard = data.guard.map(|guard| (self.slots[&guard.reg], guard.negated));
        let (Mnemonic::Known { form, modifiers }, Some(operation)) = (&data.mnemonic, Operation::of(data)) else {
            return Op {
                handler: Handler::Refused,
                operation: Operation::from_opcode(Opcode::Trap),
                space: Space::Generic,
                guard,
                writes: Box::new([]),
                reads: Box::new([]),
                inst,
                call: None,
                matrix: None,
                image: None,
            };
        };
        let (mut writes, mut reads, mut call) = (vec![], vec![], None);
        // A copy names the spaces of its addresses in order. Other instructions name one for all.
        let mut spaces = data.modifiers().filter_map(Modifier::space);
        for (spec, operand) in form.get().operands.iter().zip(&data.operands) {
            if let Operand::Call(operands) = operand {
                call = Some(Box::new(self.call(operands)));
                continue;
            }
            let arg = match operand {
                Operand::Memory(address) => {
                    let space = spaces.next().unwrap_or_else(|| data.space());
                    self.memory(address.base, address.offset, space)
                }
                operand => self.arg(operand, spec.type_in(modifiers).unwrap_or(Type::B32)),
            };
            if spec.written { writes.push(arg) } else { reads.push(arg) }
        }
        let handler = if is_run(data) { handler(&operation) } else { Handler::Refused };
        if let Handler::Pure(_) | Handler::Pair(_) | Handler::Carry(_) = handler {
            // A function gets its inputs one by one.
            reads = reads.into_iter().flat_map(elements).collect();
        }
        Op {
            handler,
            operation,
            space: data.space(),
            guard,
            writes: writes.into(),
            reads: reads.into(),
            inst,
            call,
            matrix: matrix(data),
            image: self.image(data),
        }
    }

    /// Decodes the texture or surface operation of an instruction.
    fn image(&mut self, data: &InstData) -> Option<Box<ImageSite>> {
        let words = |decoder: &mut Self, operands: &[&Operand], ty: Type| -> Vec<Arg> {
            operands.iter().map(|operand| decoder.arg(operand, ty)).collect()
        };
        let (what, words) = if let Some(fetch) = Fetch::of(data) {
            let inputs = Fetch::inputs(data)?;
            let ty = if fetch.by_index { Type::S32 } else { Type::F32 };
            let mut all = words(self, &inputs.coordinates.iter().collect::<Vec<_>>(), ty);
            if fetch.geometry.has_layer() {
                all[0] = self.arg(&inputs.coordinates[0], Type::U32);
            }
            all.extend(words(self, &inputs.level, ty));
            all.extend(words(self, &inputs.offset.iter().collect::<Vec<_>>(), Type::S32));
            (Image::Fetch(fetch), all)
        } else if let Some(access) = SurfaceAccess::of(data) {
            let (coordinates, values) = SurfaceAccess::inputs(data)?;
            let mut all = words(self, &coordinates.iter().collect::<Vec<_>>(), Type::S32);
            if access.results() == 0 {
                all.extend(words(self, &values.iter().collect::<Vec<_>>(), element_type(&access)));
            }
            (Image::Surface(access), all)
        } else {
            let level = data.operands.get(2).into_iter().collect::<Vec<_>>();
            (Image::Query(Query::of(data)?), words(self, &level, Type::U32))
        };
        let base = data.bracketed()?;
        let handle = self.memory(base.base, base.offset, Space::Tex);
        Some(Box::new(ImageSite { what, handle, words: words.into() }))
    }

    fn reg(&self, reg: Reg) -> Arg {
        let slot = self.slots[&reg];
        match self.function.regs[reg].ty {
            Type::B128 => Arg::Wide { slot },
            ty => Arg::Reg { slot, mask: mask(ty) },
        }
    }

    fn arg(&mut self, operand: &Operand, ty: Type) -> Arg {
        match operand {
            Operand::Reg(reg) => self.reg(*reg),
            Operand::Not(reg) => Arg::Not { slot: self.slots[reg] },
            Operand::Part { reg, .. } => Arg::Part { slot: self.slots[reg] },
            Operand::Imm(imm) => Arg::Imm(immediate(*imm, ty)),
            Operand::Special(special) => Arg::Special(*special),
            Operand::Symbol(symbol, offset) => self.symbol(*symbol, *offset),
            Operand::Memory(address) => self.memory(address.base, address.offset, Space::Generic),
            Operand::Texture(texture) => self.memory(texture.base.base, texture.base.offset, Space::Tex),
            Operand::Vector(list) => Arg::Vector(list.iter().map(|operand| self.arg(operand, ty)).collect()),
            Operand::Label(block) => Arg::Target(self.block_starts[block]),
            Operand::Targets(targets) => {
                Arg::Targets(self.function.targets[*targets].blocks.iter().map(|block| self.block_starts[block]).collect())
            }
            Operand::Sink | Operand::Absent | Operand::Pair(_) | Operand::Call(_) => Arg::Sink,
        }
    }

    /// Decodes an operand in brackets (manual: "Addresses as Operands"). Sums wrap at the width of an
    /// address: 32 bits in a module with 32-bit addresses; 32 bits in shared memory, for any register; the
    /// register's width in the other spaces that are windows. Global and generic addresses are zero-extended
    /// before the offset is added.
    fn memory(&mut self, base: Base, offset: i64, space: Space) -> Arg {
        let narrow = match base {
            Base::Reg(reg) => self.function.regs[reg].ty.bits() <= 32,
            Base::Symbol(_) | Base::Absolute => false,
        };
        let wraps = match space {
            Space::Shared => true,
            Space::Local | Space::Const | Space::Param => narrow,
            Space::Global | Space::Generic | Space::Tex | Space::Reg => false,
        };
        let mask = if wraps || self.module.address_size == 32 { u64::from(u32::MAX) } else { u64::MAX };
        let base = match base {
            Base::Reg(reg) => self.reg(reg),
            Base::Symbol(symbol) => self.symbol(symbol, 0),
            Base::Absolute => Arg::Imm(0),
        };
        Arg::Memory { base: Box::new(base), offset, mask }
    }

    fn symbol(&mut self, symbol: Symbol, offset: i64) -> Arg {
        match symbol {
            Symbol::Func(func) => {
                self.calls.add(func);
                Arg::Imm(function_address(func).wrapping_add_signed(offset))
            }
            Symbol::Var(var) => match (self.places.addresses.get(&var), self.places.shared.get(&var)) {
                (Some(address), _) => Arg::Imm(address.wrapping_add_signed(offset)),
                (None, Some(&number)) => self.shared(number, offset),
                (None, None) => Arg::Imm(0),
            },
            Symbol::Local(var) => self.local(var, offset),
        }
    }

    fn shared(&mut self, variable: u32, offset: i64) -> Arg {
        self.shared.add(variable);
        Arg::Shared { variable, offset }
    }

    fn local(&mut self, var: Var, offset: i64) -> Arg {
        if let Some(&start) = self.frame.get(&var) {
            let offset = offset.wrapping_add_unsigned(start);
            return match self.function.variables[var].space {
                Space::Param => Arg::FrameParam { offset },
                Space::Local | Space::Generic | Space::Reg | Space::Const | Space::Global | Space::Shared | Space::Tex => {
                    Arg::Frame { offset }
                }
            };
        }
        if let Some(&number) = self.places.local_shared.get(&(self.func, var)) {
            return self.shared(number, offset);
        }
        if let Some(&address) = self.places.local_addresses.get(&(self.func, var)) {
            return Arg::Imm(address.wrapping_add_signed(offset));
        }
        let name = &self.function.variables[var].name;
        let place = param_layout(self.function).into_iter().find(|param| param.name == *name).map_or(0, |param| param.offset);
        Arg::Imm((PARAM_BASE + place).wrapping_add_signed(offset))
    }

    fn passed_param(&self, param: Param) -> PassedValue {
        match param {
            Param::Reg(reg) => PassedValue::Value(self.reg(reg)),
            Param::Memory(var) => self.passed_variable(var),
        }
    }

    fn passed_variable(&self, var: Var) -> PassedValue {
        let bytes = self.function.variables[var].bytes().unwrap_or(0);
        PassedValue::Memory { offset: self.frame.get(&var).copied().unwrap_or(0) as i64, bytes }
    }

    fn call(&mut self, call: &Call) -> CallSite {
        let callee = match call.callee {
            Callee::Direct(func) => {
                let func = self.resolve_alias(func);
                self.calls.add(func);
                CalleeArg::Direct(func.as_u32())
            }
            Callee::Indirect { reg, .. } => CalleeArg::Indirect(self.reg(reg)),
        };
        let mut passed = |operands: &[Operand]| {
            operands
                .iter()
                .map(|operand| match operand {
                    Operand::Symbol(Symbol::Local(var), _) if self.frame.contains_key(var) => self.passed_variable(*var),
                    operand => PassedValue::Value(self.arg(operand, Type::B64)),
                })
                .collect()
        };
        let (arguments, results) = (passed(&call.arguments), passed(&call.results));
        CallSite { callee, arguments, results }
    }

    fn resolve_alias(&self, func: Func) -> Func {
        // An alias has no body.
        if self.module.functions[func].has_body {
            return func;
        }
        self.module
            .items
            .iter()
            .find_map(|item| match item {
                broadloom_ptx::Item::Alias(alias) if alias.alias == func => Some(alias.aliasee),
                _ => None,
            })
            .unwrap_or(func)
    }
}
