//! Range checks of immediates.

use super::instruction::CheckedInstruction;
use super::{BodyChecker, codes};
use crate::inst::{Imm, Operand};
use crate::table::{Modifier, Opcode};
use broadloom_diag::Diagnostic;

/// Rule for an immediate.
enum Rule {
    /// Maximum value.
    UpTo(u64),
    /// Multiple of this number; zero is allowed only if the flag is set.
    MultipleOf(u64, bool),
    PowerOfTwo,
    /// Exact value.
    Is(u64),
}

impl Rule {
    fn holds(&self, value: u64) -> bool {
        match self {
            Rule::UpTo(most) => value <= *most,
            Rule::MultipleOf(unit, zero) => value.is_multiple_of(*unit) && (*zero || value > 0),
            Rule::PowerOfTwo => value.is_power_of_two(),
            Rule::Is(only) => value == *only,
        }
    }

    fn words(&self) -> String {
        match self {
            Rule::UpTo(most) => format!("from 0 to {most}"),
            Rule::MultipleOf(unit, true) => format!("a multiple of {unit}"),
            Rule::MultipleOf(unit, false) => format!("a multiple of {unit} above 0"),
            Rule::PowerOfTwo => "a power of two".to_owned(),
            Rule::Is(only) => format!("{only}"),
        }
    }
}

/// Returns the rule for an operand by its name in the table.
fn rule(known: CheckedInstruction<'_>, operand: &str) -> Option<(&'static str, Rule)> {
    match (known.form.get().opcode, operand) {
        (Opcode::Bar | Opcode::Barrier, "a") => Some(("the number of a barrier", Rule::UpTo(15))),
        (Opcode::Bar | Opcode::Barrier, "b") => {
            let may_be_zero = !known.data.has(Modifier::Arrive);
            Some(("the number of threads at a barrier", Rule::MultipleOf(32, may_be_zero)))
        }
        (Opcode::Bfe, "b") | (Opcode::Bfi, "c") => Some(("the position of a bit field", Rule::UpTo(255))),
        (Opcode::Bfe, "c") | (Opcode::Bfi, "e") => Some(("the length of a bit field", Rule::UpTo(255))),
        (Opcode::Pmevent, _) if known.data.has(Modifier::Mask) => Some(("a mask of events", Rule::UpTo(0xffff))),
        (Opcode::Pmevent, _) => Some(("the number of an event", Rule::UpTo(15))),
        (Opcode::Alloca, "a") => Some(("an alignment", Rule::PowerOfTwo)),
        (Opcode::Discard | Opcode::Applypriority, "n") => Some(("the size of a cache line", Rule::Is(128))),
        _ => None,
    }
}

impl BodyChecker<'_, '_> {
    pub(super) fn ranges(&mut self, known: CheckedInstruction<'_>) {
        for (spec, operand) in known.form.get().operands.iter().zip(&known.data.operands) {
            let Operand::Imm(imm @ (Imm::Int(_) | Imm::Uint(_))) = operand else { continue };
            let Some((what, rule)) = rule(known, spec.name).filter(|_| !spec.written) else { continue };
            if !imm.integer_bits().is_some_and(|value| rule.holds(value)) {
                let message = format!("`{imm}` in `{}`: {what} is {}", known.data.mnemonic_text(), rule.words());
                self.push(known.inst, Diagnostic::error(codes::OUT_OF_RANGE, message), "out of range");
            }
        }
    }
}
