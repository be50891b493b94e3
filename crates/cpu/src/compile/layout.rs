//! Memory layout of the variables that a kernel names.
//!
//! Shared variables follow each other from the start of the block's shared memory, and those without a size
//! come last. Local variables lie in a frame of each lane. Arguments and results of calls lie in rows, one
//! for each variable; in vector code a row holds the variable of all lanes side by side. Everything else is
//! found through a table of addresses that the runtime fills, because generated code holds no address.

use broadloom_device::param_layout;
use broadloom_ptx::{Callee, Function, InstData, Linkage, Mention, Module, Opcode, Operand, Param, Space, Symbol, Var, Variable};
use std::collections::{HashMap, HashSet};

/// Place of a variable or parameter in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SymbolPlace {
    /// Offset in shared memory.
    Shared(u64),
    /// Offset in the function's frame of each lane.
    Frame(u64),
    /// Start of dynamic shared memory.
    Dynamic,
    /// Offset in the parameters of the kernel.
    Param(u64),
    /// Entry of the table of addresses.
    Table(u32),
    /// Offset in the function's arguments.
    Argument(u64),
    /// Offset in the function's results.
    Result(u64),
    /// Row for an argument or result of a call, in vector code.
    Row(usize),
}

/// Places of all names of a kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    places: HashMap<Symbol, SymbolPlace>,
    /// Bytes of the function's frame in local memory of one lane.
    pub(crate) frame_bytes: u64,
    /// Bytes of local memory of one lane.
    pub(crate) local_bytes: u64,
    /// Bytes of one lane in each row.
    pub(crate) rows: Vec<u64>,
    /// True for vector code.
    vector: bool,
    /// Bytes of the kernel's parameters.
    pub(crate) param_bytes: u64,
    /// Constant variables: table entry and bytes.
    constants: Vec<(u32, u64)>,
}

impl Layout {
    /// Lays out the names of a function. The table of addresses and shared memory continue those of other
    /// functions of the kernel.
    pub(crate) fn new(
        module: &Module,
        function: &Function,
        vector: bool,
        table: &mut Vec<Symbol>,
        shared: &mut SharedVariables,
    ) -> Layout {
        let mut layout = Layout { vector, ..Layout::default() };
        if !function.is_kernel {
            for (params, is_result) in [(&function.params, false), (&function.results, true)] {
                let places = if vector { rows(function, params).0 } else { passed(function, params).0 };
                for (param, (offset, _)) in params.iter().zip(places) {
                    if let Param::Memory(var) = param {
                        let place = if is_result { SymbolPlace::Result(offset) } else { SymbolPlace::Argument(offset) };
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
                layout.places.insert(Symbol::Local(var), SymbolPlace::Param(info.offset));
                layout.param_bytes = info.offset + info.bytes;
            }
        }
        let mut named = vec![];
        for (_, inst) in function.instructions() {
            inst.each_symbol(|symbol| named.push(symbol));
            if let Some(Callee::Direct(func)) = inst.callee() {
                named.push(Symbol::Func(func));
            }
        }
        let pointed = if vector { pointed_params(function) } else { HashSet::new() };
        for symbol in named {
            layout.add(module, function, symbol, &pointed, table, shared);
        }
        let asks = |inst: &InstData| inst.opcode() == Some(Opcode::Isspacep);
        if function.instructions().any(|(_, inst)| asks(inst)) {
            layout.add_constants(module, table);
        }
        layout.frame_bytes = layout.frame_bytes.next_multiple_of(16);
        layout.local_bytes = layout.frame_bytes;
        layout
    }

    fn add(
        &mut self,
        module: &Module,
        function: &Function,
        symbol: Symbol,
        pointed: &HashSet<Var>,
        table: &mut Vec<Symbol>,
        shared: &mut SharedVariables,
    ) {
        if self.places.contains_key(&symbol) {
            return;
        }
        let place = match variable(module, function, symbol) {
            Some(variable) => match variable.space {
                Space::Shared if is_dynamic(variable) => SymbolPlace::Dynamic,
                Space::Shared => SymbolPlace::Shared(shared.place(symbol, variable)),
                Space::Param if self.vector && !matches!(symbol, Symbol::Local(var) if pointed.contains(&var)) => {
                    self.rows.push(row_bytes(variable));
                    SymbolPlace::Row(self.rows.len() - 1)
                }
                Space::Local | Space::Param => SymbolPlace::Frame(put(&mut self.frame_bytes, variable)),
                Space::Global | Space::Const | Space::Tex | Space::Generic | Space::Reg => entry(table, symbol),
            },
            None => entry(table, symbol),
        };
        self.places.insert(symbol, place);
    }

    /// Adds all constant variables, which `isspacep` must know.
    fn add_constants(&mut self, module: &Module, table: &mut Vec<Symbol>) {
        for (var, variable) in &module.variables {
            if variable.space == Space::Const {
                let symbol = Symbol::Var(var);
                let place = self.places.get(&symbol).copied().unwrap_or_else(|| entry(table, symbol));
                self.places.insert(symbol, place);
                if let SymbolPlace::Table(index) = place {
                    self.constants.push((index, variable.bytes().unwrap_or(0)));
                }
            }
        }
    }

    /// Returns the constant variables: table entry and bytes.
    pub(crate) fn constants(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.constants.iter().copied()
    }

    /// Returns the place of a name.
    pub(crate) fn place(&self, symbol: Symbol) -> Option<SymbolPlace> {
        self.places.get(&symbol).copied()
    }

    /// Returns the state space of a name.
    pub(crate) fn space(&self, module: &Module, function: &Function, symbol: Symbol) -> Space {
        variable(module, function, symbol).map_or(Space::Generic, |variable| variable.space)
    }
}

/// Static shared memory of a block.
#[derive(Debug, Default)]
pub(crate) struct SharedVariables {
    places: HashMap<Symbol, u64>,
    end: u64,
}

impl SharedVariables {
    /// Returns the total bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.end.next_multiple_of(16)
    }

    fn place(&mut self, symbol: Symbol, variable: &Variable) -> u64 {
        *self.places.entry(symbol).or_insert_with(|| put(&mut self.end, variable))
    }
}

fn entry(table: &mut Vec<Symbol>, symbol: Symbol) -> SymbolPlace {
    let index = table.iter().position(|other| *other == symbol).unwrap_or_else(|| {
        table.push(symbol);
        table.len() - 1
    });
    SymbolPlace::Table(index as u32)
}

/// Returns the layout of parameters that are passed side by side: offset and bytes of each, and total bytes.
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

/// Number of lanes of a row.
pub(crate) const LANES: u64 = 32;

/// Returns the bytes of one lane in the row of a variable.
pub(crate) fn row_bytes(variable: &Variable) -> u64 {
    variable.bytes().unwrap_or(0).next_multiple_of(variable.alignment().max(1))
}

/// Returns the layout of parameter rows in vector code: offset and bytes per lane of each, and total bytes.
pub(crate) fn rows(function: &Function, params: &[Param]) -> (Vec<(u64, u64)>, u64) {
    let mut end = 0u64;
    let places = params
        .iter()
        .map(|param| {
            let bytes = match param {
                Param::Memory(var) => row_bytes(&function.variables[*var]),
                Param::Reg(reg) => u64::from(function.regs[*reg].ty.bytes()),
            };
            let start = end;
            end = (start + LANES * bytes).next_multiple_of(64);
            (start, bytes)
        })
        .collect();
    (places, end)
}

/// Returns the variables for arguments and results of calls, and parameters of the function itself, that are
/// accessed other than by their name in an access or a call.
pub(crate) fn pointed_params(function: &Function) -> HashSet<Var> {
    let mut found = HashSet::new();
    for (_, inst) in function.instructions() {
        if inst.call().is_some() {
            continue;
        }
        inst.each_mention(|mention| {
            let symbol = match mention {
                Mention::Operand(Operand::Symbol(symbol, _), _) => Some(*symbol),
                Mention::Operand(Operand::Texture(texture), _) => Mention::Address(&texture.base).symbol().copied(),
                Mention::Operand(..) | Mention::Address(_) | Mention::Callee(_) => None,
            };
            if let Some(Symbol::Local(var)) = symbol
                && function.variables[var].space == Space::Param
            {
                found.insert(var);
            }
        });
    }
    found
}

/// Returns whether a variable is dynamic shared memory. An array without a size gets the bytes of the launch,
/// with any linkage.
fn is_dynamic(variable: &Variable) -> bool {
    let open = variable.dims.first() == Some(&None);
    open || variable.linkage == Linkage::Extern && variable.bytes() == Some(0)
}

fn put(end: &mut u64, variable: &Variable) -> u64 {
    let start = end.next_multiple_of(variable.alignment().max(1));
    *end = start + variable.bytes().unwrap_or(0);
    start
}

pub(super) fn variable<'m>(module: &'m Module, function: &'m Function, symbol: Symbol) -> Option<&'m Variable> {
    match symbol {
        Symbol::Var(var) => module.variables.get(var),
        Symbol::Local(var) => function.variables.get(var),
        Symbol::Func(_) => None,
    }
}
