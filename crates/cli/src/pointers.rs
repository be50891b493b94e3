//! Guess of the types that a kernel's parameters point to.
//!
//! The guess is only for display. It follows each parameter through moves, `cvta` and additions to the loads
//! and stores that use it. It ignores control flow, memory and calls. It makes an explanation readable and an
//! example call runnable.

use broadloom::ptx::{Base, Class, Function, InstData, Operand, Reg, Space, Symbol, Type, Var};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Use of the memory behind a parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pointee {
    /// Types of the accesses.
    pub types: BTreeSet<Type>,
    /// True if the memory is read.
    pub read: bool,
    /// True if the memory is written.
    pub written: bool,
}

impl Pointee {
    /// Returns the element type, if all accesses agree.
    pub fn element(&self) -> Option<Type> {
        let mut types = self.types.iter();
        types.next().copied().filter(|_| types.next().is_none())
    }
}

/// Formats the end of a sentence: `reads .f32`.
impl fmt::Display for Pointee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.read, self.written) {
            (true, true) => "reads and writes",
            (false, true) => "writes",
            (true, false) | (false, false) => "reads",
        })?;
        let types: Vec<String> = self.types.iter().map(Type::to_string).collect();
        write!(f, " {}", types.join(", "))
    }
}

/// Parameters into which the address in a register may point.
type Origins = BTreeMap<Reg, BTreeSet<Var>>;

/// Returns the use of each parameter that is an address.
pub fn pointees(function: &Function) -> BTreeMap<Var, Pointee> {
    let mut origins = Origins::new();
    // Addresses flow forward through few copies. Each round follows one more copy.
    while function.instructions().fold(false, |changed, (_, inst)| flow(inst, &mut origins) || changed) {}
    let mut pointees: BTreeMap<Var, Pointee> = BTreeMap::new();
    for (_, inst) in function.instructions() {
        for operand in &inst.operands {
            let Operand::Memory(address) = operand else { continue };
            let Base::Reg(reg) = address.base else { continue };
            for var in origins.get(&reg).into_iter().flatten() {
                note(inst, pointees.entry(*var).or_default());
            }
        }
    }
    pointees
}

/// Propagates origins through one instruction. Returns true if something changed.
fn flow(inst: &InstData, origins: &mut Origins) -> bool {
    let Some((Operand::Reg(written), read)) = inst.operands.split_first() else { return false };
    let mut found: BTreeSet<Var> = BTreeSet::new();
    for operand in read {
        if let (Operand::Memory(address), Space::Param) = (operand, inst.space())
            && let Base::Symbol(Symbol::Local(var)) = address.base
        {
            found.insert(var);
        } else if let Operand::Reg(reg) = operand
            && carries_addresses(inst)
        {
            found.extend(origins.get(reg).into_iter().flatten());
        }
    }
    let known = origins.entry(*written).or_default();
    let before = known.len();
    known.extend(found);
    known.len() > before
}

fn carries_addresses(inst: &InstData) -> bool {
    let wide = inst.types().all(|ty| ty.bits() == 64);
    let adds = inst.opcode().is_some_and(|opcode| matches!(opcode.name(), "add" | "sub"));
    let moves = matches!(inst.class(), Some(Class::Move | Class::Address));
    wide && (moves || adds)
}

fn note(inst: &InstData, pointee: &mut Pointee) {
    let effects = inst.effects();
    let (read, written) = (effects.reads_memory(), effects.writes_memory());
    if read || written {
        pointee.read |= read;
        pointee.written |= written;
        pointee.types.extend(inst.types().next());
    }
}
