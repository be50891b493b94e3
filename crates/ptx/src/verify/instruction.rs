//! Checks of one instruction: guard, form, operands.

use super::{BodyChecker, codes};
use crate::ids::Inst;
use crate::inst::{InstData, Mnemonic, Modifiers, Operand};
use crate::select;
use crate::table::{FormId, Presence};
use crate::types::Type;
use broadloom_diag::Diagnostic;

/// Facts about an instruction for the checks of its operands.
#[derive(Clone, Copy)]
pub(super) struct CheckedInstruction<'i> {
    pub(super) inst: Inst,
    pub(super) data: &'i InstData,
    pub(super) form: FormId,
    pub(super) modifiers: &'i Modifiers,
}

impl<'m> BodyChecker<'_, 'm> {
    pub(super) fn instruction(&mut self, inst: Inst) {
        let data = &self.function.insts[inst];
        if let Some(guard) = data.guard
            && self.function.regs[guard.reg].ty != Type::Pred
        {
            let reg = &self.function.regs[guard.reg];
            let message = format!("`{}` guards an instruction but is no predicate", reg.name);
            let diagnostic = Diagnostic::error(codes::BAD_GUARD, message).help("`setp` compares and gives a predicate");
            self.push(inst, diagnostic, "expected a `.pred` register");
        }
        let Mnemonic::Known { form, modifiers } = &data.mnemonic else { return };
        let known = CheckedInstruction { inst, data, form: *form, modifiers };
        if !fits_form(known) {
            let message = format!("`{}` does not have the shape `{:?}` of the table", data.mnemonic_text(), form);
            // A malformed instruction cannot be printed, so only its name is shown.
            let diagnostic = Diagnostic::error(codes::BAD_FORM, message).note(format!("in `{}`", self.function.name));
            return self.checker.push(diagnostic, data.span, "");
        }
        self.available(inst, *form);
        for (spec, operand) in form.get().operands.iter().zip(&data.operands) {
            self.operand(known, spec, operand);
        }
        self.parameter_use(known);
        self.ranges(known);
    }
}

/// Checks that modifiers and operands match the form. The parser and the builder guarantee this, but other
/// programs may not.
fn fits_form(known: CheckedInstruction<'_>) -> bool {
    let form = known.form.get();
    let slots_fit = known.modifiers.len() == form.slots.len()
        && form.slots.iter().zip(known.modifiers).all(|(slot, modifier)| match modifier {
            Some(modifier) => slot.choices.contains(modifier),
            None => slot.optional,
        });
    if !slots_fit || known.data.operands.len() > form.operands.len() {
        return false;
    }
    let operands = known.data.operands.iter().map(Some).chain(std::iter::repeat(None));
    let mut before = true;
    for (spec, operand) in form.operands.iter().zip(operands) {
        let there = operand.is_some_and(|operand| *operand != Operand::Absent);
        let presence_fits = match spec.presence {
            Presence::Required => there,
            Presence::Optional if spec.paired => operand.is_some(),
            Presence::Optional => operand != Some(&Operand::Absent),
            Presence::WithPrevious => there == before,
        };
        let shape_fits = match operand {
            Some(Operand::Absent) | None => true,
            Some(operand) => select::shape_fits(spec, known.modifiers, operand),
        };
        if !presence_fits || !shape_fits {
            return false;
        }
        before = there;
    }
    true
}
