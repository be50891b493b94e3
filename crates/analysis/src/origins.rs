//! Kernel parameters that addresses are derived from.
//!
//! A pointer parameter of a kernel points to a buffer, and an address computed from it by adding numbers
//! points to the same buffer: a program that reaches another buffer that way is wrong. Addresses derived from
//! different parameters therefore differ if the parameters point to different buffers, which a launch can
//! check.
//!
//! An *offset* is a value that cannot hold a pointer: a number of 32 bits or less, one widened from such, a
//! constant, and sums, products and shifts of those. An *origin* is a 64-bit parameter, a copy of it, or the
//! sum of an origin and an offset. Everything else is unknown: loaded values, values assembled from halves,
//! and differences of two pointers.

use crate::cfg::Cfg;
use crate::facts::param_offsets;
use broadloom_ptx::{Base, Function, InstData, Modifier, Opcode, Operand, Param, Reg, Space, Symbol};
use cranelift_entity::SecondaryMap;

/// Buffer that a register may point into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum PointerOrigin {
    #[default]
    Unvisited,
    /// Value that cannot hold a pointer.
    Offset,
    /// Pointer into the buffer of the parameter at this offset of the parameter block.
    Param(u64),
    Unknown,
}

impl PointerOrigin {
    fn meet(self, other: PointerOrigin) -> PointerOrigin {
        match (self, other) {
            (PointerOrigin::Unvisited, known) | (known, PointerOrigin::Unvisited) => known,
            (a, b) if a == b => a,
            (PointerOrigin::Offset | PointerOrigin::Param(_) | PointerOrigin::Unknown, _) => PointerOrigin::Unknown,
        }
    }

    fn plus(self, other: PointerOrigin) -> PointerOrigin {
        match (self, other) {
            (PointerOrigin::Unknown, _) | (_, PointerOrigin::Unknown) | (PointerOrigin::Param(_), PointerOrigin::Param(_)) => {
                PointerOrigin::Unknown
            }
            (PointerOrigin::Unvisited, _) | (_, PointerOrigin::Unvisited) => PointerOrigin::Unvisited,
            (PointerOrigin::Offset, other) => other,
            (PointerOrigin::Param(param), PointerOrigin::Offset) => PointerOrigin::Param(param),
        }
    }

    /// Combines two values by any other operation.
    fn mixed(self, other: PointerOrigin) -> PointerOrigin {
        match (self, other) {
            (PointerOrigin::Offset, PointerOrigin::Offset) => PointerOrigin::Offset,
            (PointerOrigin::Unknown | PointerOrigin::Param(_), _) | (_, PointerOrigin::Unknown | PointerOrigin::Param(_)) => {
                PointerOrigin::Unknown
            }
            (PointerOrigin::Unvisited, _) | (_, PointerOrigin::Unvisited) => PointerOrigin::Unvisited,
        }
    }
}

/// Parameters that addresses of a kernel in SSA form are derived from.
#[derive(Clone, Debug)]
pub struct Origins {
    known: SecondaryMap<Reg, PointerOrigin>,
}

impl Origins {
    /// Analyses a function. A called function has no parameters of a launch.
    pub fn new(function: &Function, cfg: &Cfg) -> Origins {
        let mut search = Search { function, offsets: param_offsets(function), known: SecondaryMap::new() };
        let wide = |reg: Reg| function.regs[reg].ty.bits() == 64;
        let mut changed = true;
        while std::mem::replace(&mut changed, false) {
            for block in cfg.order() {
                for inst in &function.blocks[*block].insts {
                    let data = &function.insts[*inst];
                    let found = search.result(data);
                    data.each_written(|reg| {
                        let found = if wide(reg) { found } else { PointerOrigin::Offset };
                        changed |= search.note(reg, found);
                    });
                }
                for edge in &function.blocks[*block].edges {
                    for (param, arg) in function.blocks[edge.target].params.iter().zip(&edge.args) {
                        let found = if wide(*param) { search.known[*arg] } else { PointerOrigin::Offset };
                        changed |= search.note(*param, found);
                    }
                }
            }
        }
        Origins { known: search.known }
    }

    /// Returns the parameter that an address is derived from, by its offset in the parameter block.
    pub fn param(&self, reg: Reg) -> Option<u64> {
        match self.known[reg] {
            PointerOrigin::Param(offset) => Some(offset),
            PointerOrigin::Unvisited | PointerOrigin::Offset | PointerOrigin::Unknown => None,
        }
    }
}

struct Search<'f> {
    function: &'f Function,
    offsets: std::collections::BTreeMap<broadloom_ptx::Var, u64>,
    known: SecondaryMap<Reg, PointerOrigin>,
}

impl Search<'_> {
    fn note(&mut self, reg: Reg, found: PointerOrigin) -> bool {
        let now = self.known[reg].meet(found);
        std::mem::replace(&mut self.known[reg], now) != now
    }

    fn operand(&self, data: &InstData, index: usize) -> PointerOrigin {
        match data.operands.get(index) {
            Some(Operand::Reg(reg)) if self.function.regs[*reg].ty.bits() == 64 => self.known[*reg],
            Some(Operand::Reg(_) | Operand::Imm(_)) => PointerOrigin::Offset,
            _ => PointerOrigin::Unknown,
        }
    }

    /// Classifies a 64-bit result.
    fn result(&self, data: &InstData) -> PointerOrigin {
        let operand = |index: usize| self.operand(data, index);
        let first = data.types().next().map_or(0, |ty| ty.bits());
        let read = data.types().last().map_or(0, |ty| ty.bits());
        match data.opcode() {
            // The previous value may remain.
            _ if data.guard.is_some() => PointerOrigin::Unknown,
            Some(Opcode::Ld) => self.param(data).map_or(PointerOrigin::Unknown, PointerOrigin::Param),
            Some(Opcode::Mov) if first == 64 => operand(1),
            Some(Opcode::Cvta | Opcode::CvtaTo) if data.space() == Space::Global => operand(1),
            Some(Opcode::Cvt) if read < 64 => PointerOrigin::Offset,
            Some(Opcode::Cvt) => operand(1),
            Some(Opcode::Add) if first == 64 => operand(1).plus(operand(2)),
            Some(Opcode::Sub) if first == 64 => match operand(2) {
                PointerOrigin::Offset => operand(1),
                PointerOrigin::Unvisited => PointerOrigin::Unvisited,
                PointerOrigin::Param(_) | PointerOrigin::Unknown => PointerOrigin::Unknown,
            },
            Some(Opcode::Mul) if data.has(Modifier::Wide) => PointerOrigin::Offset,
            Some(Opcode::Mad) if data.has(Modifier::Wide) => operand(3),
            Some(Opcode::Mul | Opcode::And | Opcode::Or | Opcode::Min | Opcode::Max) if first == 64 => {
                operand(1).mixed(operand(2))
            }
            Some(Opcode::Mad) if first == 64 => operand(1).mixed(operand(2)).plus(operand(3)),
            Some(Opcode::Shl | Opcode::Shr | Opcode::Neg) if first == 64 => operand(1).mixed(PointerOrigin::Offset),
            Some(Opcode::Selp) if first == 64 => operand(1).meet(operand(2)),
            _ => PointerOrigin::Unknown,
        }
    }

    /// Returns the launch parameter that a load reads as a whole.
    fn param(&self, data: &InstData) -> Option<u64> {
        let [Operand::Reg(_), Operand::Memory(address)] = data.operands.as_slice() else { return None };
        let Base::Symbol(Symbol::Local(var)) = address.base else { return None };
        let given = self.function.is_kernel && self.function.params.contains(&Param::Memory(var));
        let whole = data.space() == Space::Param && data.types().next().is_some_and(|ty| ty.bits() == 64);
        if given && whole { self.offsets.get(&var)?.checked_add_signed(address.offset) } else { None }
    }
}
