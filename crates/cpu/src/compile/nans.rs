//! Registers that may hold a NaN of `f32` that is not the canonical NaN of the manual.
//!
//! The manual's arithmetic gives the canonical NaN; hosts give others. The difference is invisible until the
//! bits of a NaN are used. A NaN is therefore made canonical whenever an operand is fetched, unless vector
//! code computes with it and its bits do not matter ([`sees_nan_bits`]). A register that may hold
//! another NaN until then is called noisy. If a noisy value is merged with a value that was only moved, whose
//! NaNs keep their bits, it must be made canonical before: after the merge the two cannot be told apart. Such
//! a merge is a copy, a selection, or a block parameter. Copies of bits, also between lanes, stay noisy if
//! their bits are never seen.

use broadloom_eval::{immediate, inputs};
use broadloom_ptx::{Function, InstData, Modifier, Opcode, Operand, Reg, Type};
use cranelift_entity::SecondaryMap;

/// NaN facts of a function's registers.
pub(crate) struct Nans {
    noisy: SecondaryMap<Reg, bool>,
}

impl Nans {
    pub(crate) fn new(function: &Function) -> Nans {
        let moved = find_moved(function);
        let seen = find_seen(function);
        let mut noisy: SecondaryMap<Reg, bool> = SecondaryMap::new();
        // If the bits are never seen, a mixture is harmless.
        spread(
            function,
            &mut noisy,
            |noisy, reg| !moved[reg] || !seen[reg] || noisy,
            |inst, noisy| {
                if is_choice(inst) {
                    let unseen = carries_bits(inst) && inst.writes().iter().all(|reg| !seen[*reg]);
                    sources(inst).any(|(reg, ty)| (ty == Type::F32 || unseen) && noisy[reg])
                } else {
                    may_be_noisy(inst)
                }
            },
        );
        Nans { noisy }
    }

    /// Returns whether a register may hold another NaN where the canonical one is required.
    pub(crate) fn is_noisy(&self, reg: Reg) -> bool {
        self.noisy[reg]
    }
}

/// Returns whether an instruction returns one of its inputs unchanged.
pub(crate) fn is_choice(inst: &InstData) -> bool {
    matches!(inst.opcode(), Some(Opcode::Mov | Opcode::Selp | Opcode::Slct | Opcode::Shfl | Opcode::ShflSync)) || is_copy(inst)
}

/// Returns whether an instruction moves 32 bits as a whole.
fn carries_bits(inst: &InstData) -> bool {
    let parts = |operand: &Operand| matches!(operand, Operand::Vector(_) | Operand::Part { .. });
    is_choice(inst) && inst.types().next().is_some_and(|ty| ty.bits() == 32) && !inst.operands.iter().any(parts)
}

/// Returns the registers that an instruction reads, with the types it reads them in.
fn sources(inst: &InstData) -> impl Iterator<Item = (Reg, Type)> {
    inputs(inst).filter_map(|(operand, ty)| match operand {
        Operand::Reg(reg) | Operand::Part { reg, .. } => Some((*reg, ty)),
        _ => None,
    })
}

/// Marks registers until a fixed point. An instruction's results are marked if `makes` returns true, and a
/// block parameter is marked if an argument is. Registers for which `may` returns false stay unmarked.
fn spread(
    function: &Function,
    marks: &mut SecondaryMap<Reg, bool>,
    may: impl Fn(bool, Reg) -> bool,
    makes: impl Fn(&InstData, &SecondaryMap<Reg, bool>) -> bool,
) {
    let mut changed = true;
    while changed {
        changed = false;
        let mut mark = |marks: &mut SecondaryMap<Reg, bool>, reg: Reg, is_merged: bool| {
            if !marks[reg] && function.regs[reg].ty.bits() == 32 && may(!is_merged, reg) {
                marks[reg] = true;
                changed = true;
            }
        };
        for block in &function.layout {
            for inst in &function.blocks[*block].insts {
                let inst = &function.insts[*inst];
                if makes(inst, marks) {
                    inst.writes().into_iter().for_each(|reg| mark(marks, reg, is_choice(inst)));
                }
            }
            for edge in &function.blocks[*block].edges {
                for (arg, param) in edge.args.iter().zip(&function.blocks[edge.target].params) {
                    if marks[*arg] {
                        mark(marks, *param, true);
                    }
                }
            }
        }
    }
}

/// Returns the registers that may hold a NaN whose bits came from elsewhere.
fn find_moved(function: &Function) -> SecondaryMap<Reg, bool> {
    let mut moved: SecondaryMap<Reg, bool> = SecondaryMap::new();
    for param in &function.params {
        if let broadloom_ptx::Param::Reg(reg) = param {
            moved[*reg] = true;
        }
    }
    spread(
        function,
        &mut moved,
        |_, _| true,
        |inst, moved| {
            if !is_choice(inst) {
                return !may_be_noisy(inst);
            }
            inputs(inst).any(|(operand, ty)| match operand {
                Operand::Reg(reg) | Operand::Part { reg, .. } => moved[*reg],
                Operand::Imm(imm) => f32::from_bits(immediate(*imm, ty) as u32).is_nan(),
                _ => true,
            })
        },
    );
    moved
}

/// Returns the registers whose bits may be seen, directly or after moves.
fn find_seen(function: &Function) -> SecondaryMap<Reg, bool> {
    let mut seen: SecondaryMap<Reg, bool> = SecondaryMap::new();
    for result in &function.results {
        if let broadloom_ptx::Param::Reg(reg) = result {
            seen[*reg] = true;
        }
    }
    let mut changed = true;
    while changed {
        changed = false;
        let mut mark = |seen: &mut SecondaryMap<Reg, bool>, reg: Reg| {
            changed |= !std::mem::replace(&mut seen[reg], true);
        };
        for block in function.layout.iter().rev() {
            for edge in &function.blocks[*block].edges {
                for (arg, param) in edge.args.iter().zip(&function.blocks[edge.target].params) {
                    if seen[*param] {
                        mark(&mut seen, *arg);
                    }
                }
            }
            for inst in function.blocks[*block].insts.iter().rev() {
                let inst = &function.insts[*inst];
                let sees = if is_choice(inst) { inst.writes().iter().any(|reg| seen[*reg]) } else { sees(inst) };
                if sees {
                    inst.reads().into_iter().for_each(|reg| mark(&mut seen, reg));
                } else if !carries_bits(inst) {
                    let as_bits: Vec<Reg> = sources(inst).filter(|(_, ty)| *ty != Type::F32).map(|(reg, _)| reg).collect();
                    as_bits.into_iter().for_each(|reg| mark(&mut seen, reg));
                }
            }
        }
    }
    seen
}

/// Returns whether the effect of an instruction depends on the bits of a NaN operand.
fn sees(inst: &InstData) -> bool {
    !inst.effects().is_pure() || sees_nan_bits(inst)
}

/// Returns whether an instruction may give a NaN of `f32` that is not canonical.
pub(crate) fn may_be_noisy(inst: &InstData) -> bool {
    inst.types().next() == Some(Type::F32)
        && inst.effects().is_pure()
        && match inst.opcode() {
            Some(Opcode::Mov | Opcode::Setp | Opcode::Set | Opcode::Copysign | Opcode::Testp) => false,
            // From `f64` and `bf16`, NaNs keep the part of their payload that fits.
            Some(Opcode::Cvt) => !matches!(inst.types().nth(1), Some(Type::F64 | Type::Bf16)) && !is_copy(inst),
            Some(_) => true,
            None => false,
        }
}

/// Returns whether the result of a pure instruction depends on the bits of an operand of `f32` that is NaN.
pub(crate) fn sees_nan_bits(inst: &InstData) -> bool {
    match inst.opcode() {
        Some(Opcode::Copysign) => true,
        // The result may be a number with the sign of a NaN.
        Some(Opcode::Min | Opcode::Max) => inst.has(Modifier::Xorsign),
        // A wider format keeps sign and payload.
        Some(Opcode::Cvt) => inst.types().next() == Some(Type::F64),
        Some(_) | None => false,
    }
}

/// Returns whether a conversion has no effect.
pub(crate) fn is_copy(inst: &InstData) -> bool {
    inst.opcode() == Some(Opcode::Cvt) && inst.modifiers().all(|modifier| modifier == Modifier::F32)
}
