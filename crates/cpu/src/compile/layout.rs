//! Where the variables that a kernel names lie.
//!
//! Shared variables lie one behind the other from the start of the block's shared memory, those without a size behind all others.
//! Local variables lie in a frame that each lane has for itself. Everything else is found through a table of addresses that the
//! runtime fills, because generated code holds no address.

use broadloom_device::param_layout;
use broadloom_ptx::{Base, Callee, Function, InstData, Linkage, Module, Opcode, Operand, Param, Space, Symbol, Variable};
use std::collections::HashMap;

/// Where a name leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// An offset in shared memory.
    Shared(u64),
    /// An offset in the frame of the function, which each lane has for itself.
    Frame(u64),
    /// The start of dynamic shared memory.
    Dynamic,
    /// An offset in the parameters of the kernel.
    Param(u64),
    /// An entry of the table of addresses.
    Table(u32),
    /// An offset in what a function was passed.
    Argument(u64),
    /// An offset in what a function gives back.
    Result(u64),
}

/// The places of all names of a kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    places: HashMap<Symbol, Place>,
    /// Bytes of local memory of one lane.
    pub(crate) local_bytes: u64,
    /// Bytes of the kernel's parameters.
    pub(crate) param_bytes: u64,
    /// Constant variables: their entry of the table and their bytes.
    constants: Vec<(u32, u64)>,
}

impl Layout {
    /// Lays out what a function names. The table of addresses and shared memory go on from what other functions of the kernel
    /// have there.
    pub(crate) fn new(module: &Module, function: &Function, table: &mut Vec<Symbol>, shared: &mut Shared) -> Layout {
        let mut layout = Layout::default();
        if !function.is_kernel {
            for (params, is_result) in [(&function.params, false), (&function.results, true)] {
                for (param, (offset, _)) in params.iter().zip(passed(function, params).0) {
                    if let Param::Memory(var) = param {
                        let place = if is_result { Place::Result(offset) } else { Place::Argument(offset) };
                        layout.places.insert(Symbol::Local(*var), place);
                    }
                }
            }
        } else {
            let infos = param_layout(function);
            let memory = function.params.iter().filter_map(|param| match param {
                Param::Memory(var) => Some(*var),
                Param::Reg(_) => None,
            });
            for (var, info) in memory.zip(infos) {
                layout.places.insert(Symbol::Local(var), Place::Param(info.offset));
                layout.param_bytes = info.offset + info.bytes;
            }
        }
        let mut named = vec![];
        for (_, inst) in function.instructions() {
            symbols(inst, &mut |symbol| named.push(symbol));
        }
        for symbol in named {
            layout.add(module, function, symbol, table, shared);
        }
        let asks = |inst: &InstData| inst.opcode() == Some(Opcode::Isspacep);
        if function.instructions().any(|(_, inst)| asks(inst)) {
            layout.add_constants(module, table);
        }
        layout.local_bytes = layout.local_bytes.next_multiple_of(16);
        layout
    }

    fn add(&mut self, module: &Module, function: &Function, symbol: Symbol, table: &mut Vec<Symbol>, shared: &mut Shared) {
        if self.places.contains_key(&symbol) {
            return;
        }
        let place = match variable(module, function, symbol) {
            Some(variable) => match variable.space {
                Space::Shared if is_dynamic(variable) => Place::Dynamic,
                Space::Shared => Place::Shared(shared.place(symbol, variable)),
                Space::Local | Space::Param => Place::Frame(put(&mut self.local_bytes, variable)),
                Space::Global | Space::Const | Space::Tex | Space::Generic | Space::Reg => entry(table, symbol),
            },
            None => entry(table, symbol),
        };
        self.places.insert(symbol, place);
    }

    /// `isspacep` must know all constant variables.
    fn add_constants(&mut self, module: &Module, table: &mut Vec<Symbol>) {
        for (var, variable) in &module.variables {
            if variable.space == Space::Const {
                let symbol = Symbol::Var(var);
                let place = self.places.get(&symbol).copied().unwrap_or_else(|| entry(table, symbol));
                self.places.insert(symbol, place);
                if let Place::Table(index) = place {
                    self.constants.push((index, variable.bytes().unwrap_or(0)));
                }
            }
        }
    }

    /// Constant variables: their entry of the table and their bytes.
    pub(crate) fn constants(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.constants.iter().copied()
    }

    /// Where a name leads.
    pub(crate) fn place(&self, symbol: Symbol) -> Option<Place> {
        self.places.get(&symbol).copied()
    }

    /// The space that a name is in.
    pub(crate) fn space(&self, module: &Module, function: &Function, symbol: Symbol) -> Space {
        variable(module, function, symbol).map_or(Space::Generic, |variable| variable.space)
    }
}

/// Static shared memory of a block.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    places: HashMap<Symbol, u64>,
    end: u64,
}

impl Shared {
    /// Bytes in all.
    pub(crate) fn bytes(&self) -> u64 {
        self.end.next_multiple_of(16)
    }

    fn place(&mut self, symbol: Symbol, variable: &Variable) -> u64 {
        *self.places.entry(symbol).or_insert_with(|| put(&mut self.end, variable))
    }
}

fn entry(table: &mut Vec<Symbol>, symbol: Symbol) -> Place {
    let index = table.iter().position(|other| *other == symbol).unwrap_or_else(|| {
        table.push(symbol);
        table.len() - 1
    });
    Place::Table(index as u32)
}

/// Where parameters lie that are passed side by side: offset and bytes of each, and bytes of all.
pub(crate) fn passed(function: &Function, params: &[Param]) -> (Vec<(u64, u64)>, u64) {
    let mut end = 0u64;
    let places = params
        .iter()
        .map(|param| {
            let (bytes, align) = match param {
                Param::Memory(var) => {
                    let variable = &function.variables[*var];
                    (variable.bytes().unwrap_or(0), variable.alignment().max(1))
                }
                Param::Reg(reg) => (u64::from(function.regs[*reg].ty.bytes()), u64::from(function.regs[*reg].ty.bytes())),
            };
            let start = end.next_multiple_of(align.max(1));
            end = start + bytes;
            (start, bytes)
        })
        .collect();
    (places, end)
}

/// An array without a size takes what the launch gives, however it is linked.
fn is_dynamic(variable: &Variable) -> bool {
    let open = variable.dims.first() == Some(&None);
    open || variable.linkage == Linkage::Extern && variable.bytes() == Some(0)
}

fn put(end: &mut u64, variable: &Variable) -> u64 {
    let start = end.next_multiple_of(variable.alignment().max(1));
    *end = start + variable.bytes().unwrap_or(0);
    start
}

fn variable<'m>(module: &'m Module, function: &'m Function, symbol: Symbol) -> Option<&'m Variable> {
    match symbol {
        Symbol::Var(var) => module.variables.get(var),
        Symbol::Local(var) => function.variables.get(var),
        Symbol::Func(_) => None,
    }
}

/// All names of an instruction.
fn symbols(inst: &InstData, found: &mut dyn FnMut(Symbol)) {
    for operand in &inst.operands {
        in_operand(operand, found);
    }
}

fn in_operand(operand: &Operand, found: &mut dyn FnMut(Symbol)) {
    match operand {
        Operand::Symbol(symbol, _) => found(*symbol),
        Operand::Memory(address) => {
            if let Base::Symbol(symbol) = address.base {
                found(symbol);
            }
        }
        Operand::Vector(list) => list.iter().for_each(|operand| in_operand(operand, found)),
        Operand::Pair(pair) => pair.iter().for_each(|operand| in_operand(operand, found)),
        Operand::Call(call) => {
            if let Callee::Direct(func) = call.callee {
                found(Symbol::Func(func));
            }
            call.arguments.iter().chain(&call.results).for_each(|operand| in_operand(operand, found));
        }
        Operand::Texture(texture) => {
            if let Base::Symbol(symbol) = texture.base.base {
                found(symbol);
            }
            texture.rest.iter().for_each(|operand| in_operand(operand, found));
        }
        Operand::Reg(_)
        | Operand::Not(_)
        | Operand::Part { .. }
        | Operand::Imm(_)
        | Operand::Special(_)
        | Operand::Label(_)
        | Operand::Targets(_)
        | Operand::Sink
        | Operand::Absent => {}
    }
}
