//! Checks of addresses (manual: "Addresses as Operands").

use super::instruction::CheckedInstruction;
use super::{BodyChecker, article, codes};
use crate::ids::Var;
use crate::inst::{Address, Base, Operand, Symbol};
use crate::module::{Param, Variable};
use crate::table::{Class, Modifier, Opcode};
use crate::types::{Space, TypeKind};
use broadloom_diag::Diagnostic;

impl BodyChecker<'_, '_> {
    pub(super) fn address(&mut self, known: CheckedInstruction<'_>, address: Address) {
        let name = known.data.mnemonic_text();
        let spaces: Vec<Space> = known.data.modifiers().filter_map(Modifier::space).collect();
        match address.base {
            Base::Reg(reg) => {
                let data = &self.function.regs[reg];
                let integer = matches!(data.ty.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed);
                // Without a space, addresses are generic. Matrix and asynchronous instructions have implied
                // spaces.
                let own_space = matches!(
                    known.data.class(),
                    Some(Class::Matrix | Class::Async | Class::Mbarrier | Class::Cluster | Class::Multimem)
                );
                let wide = if spaces.is_empty() { !own_space } else { spaces.iter().all(|space| *space == Space::Global) };
                let needed = if wide { u32::from(self.module.address_size) } else { 32 };
                let narrow = data.ty.bits() < needed || data.ty.bits() > 64;
                if integer && !narrow {
                    return;
                }
                let message = format!(
                    "`{}` is {} `{}` register, and an address of `{name}` has {needed} bits",
                    data.name,
                    article(data.ty.name()),
                    data.ty
                );
                let mut diagnostic = Diagnostic::error(codes::BAD_ADDRESS, message);
                if integer && narrow {
                    diagnostic = diagnostic.help(format!("`cvt.u{needed}.u{}` widens it", data.ty.bits()));
                }
                self.push(known.inst, diagnostic, "not an address");
            }
            Base::Symbol(Symbol::Func(func)) => {
                let message = format!("`{}` is a function, and `{name}` takes a variable", self.module.functions[func].name);
                self.report(known.inst, codes::BAD_ADDRESS, message, "not an address of memory");
            }
            Base::Symbol(Symbol::Var(var)) => self.variable_address(known, &self.module.variables[var], address.offset, &spaces),
            Base::Symbol(Symbol::Local(var)) => {
                self.variable_address(known, &self.function.variables[var], address.offset, &spaces)
            }
            Base::Absolute => {
                let handle = matches!(known.data.class(), Some(Class::Texture | Class::Surface));
                if handle || spaces.first() != Some(&Space::Local) {
                    let message = format!("`{name}` takes no number as an address");
                    let diagnostic =
                        Diagnostic::error(codes::BAD_ADDRESS, message).help("put the address in a register, or name a variable");
                    self.push(known.inst, diagnostic, "only `.local` does");
                }
            }
        }
    }

    fn variable_address(&mut self, known: CheckedInstruction<'_>, variable: &Variable, offset: i64, spaces: &[Space]) {
        let name = known.data.mnemonic_text();
        // Textures, surfaces and samplers are named, not addressed.
        if variable.ty.kind() == TypeKind::Opaque {
            if matches!(known.data.class(), Some(Class::Memory | Class::Atomic)) && variable.space != Space::Param {
                let message = format!("`{name}` of `{}`, which is a `{}`", variable.name, variable.ty);
                self.report(known.inst, codes::BAD_ADDRESS, message, "a handle has no contents to load or store");
            }
            return;
        }
        let fits = match spaces {
            [] => !matches!(variable.space, Space::Param | Space::Tex) || known.data.class() != Some(Class::Memory),
            spaces => spaces.contains(&variable.space),
        };
        if !fits {
            let message = format!("`{name}` of `{}`, which is in `{}`", variable.name, variable.space);
            let mut diagnostic = Diagnostic::error(codes::WRONG_SPACE, message);
            if let (Some(Class::Memory), Some(opcode)) = (known.data.class(), known.data.opcode()) {
                diagnostic = diagnostic.help(format!("use `{}{}`", opcode.name(), variable.space));
            }
            if !variable.span.is_synthetic() {
                diagnostic = diagnostic.label(variable.span, "declared here");
            }
            return self.push(known.inst, diagnostic, "another state space");
        }
        self.alignment(known, variable, offset);
    }

    /// Checks that an access is aligned to its size. This is decidable for a constant offset if the variable
    /// is sufficiently aligned.
    fn alignment(&mut self, known: CheckedInstruction<'_>, variable: &Variable, offset: i64) {
        if !matches!(known.data.class(), Some(Class::Memory | Class::Atomic)) {
            return;
        }
        let Some(ty) = known.data.types().next() else { return };
        let elements = known.data.modifiers().find_map(Modifier::vector_length).unwrap_or(1);
        let size = u64::from(ty.bytes()) * u64::from(elements);
        if size == 0 || !size.is_power_of_two() || variable.alignment() < size {
            return;
        }
        if offset.rem_euclid(size as i64) != 0 {
            let message =
                format!("`{}` at `{}{offset:+}` is not aligned to its {size} bytes", known.data.mnemonic_text(), variable.name);
            let note = format!("`{}` is aligned to {} bytes", variable.name, variable.alignment());
            self.push(known.inst, Diagnostic::error(codes::MISALIGNED, message).note(note), "never aligned");
        }
    }

    /// Checks the use of parameters: inputs are only read, results only written. Arguments of calls are
    /// stored and their results loaded without a guard.
    pub(super) fn parameter_use(&mut self, known: CheckedInstruction<'_>) {
        let function = self.function;
        let (writes, reads) = match known.form.get().opcode {
            Opcode::St => (true, false),
            Opcode::Ld => (false, true),
            Opcode::Mov => {
                for operand in &known.data.operands {
                    if let Operand::Symbol(Symbol::Local(var), _) = operand
                        && function.variables[*var].space == Space::Param
                        && !self.is_param(*var)
                    {
                        let message = format!("`{}` is an argument of a call and has no address", function.variables[*var].name);
                        self.report(known.inst, codes::BAD_PARAM_USE, message, "only `st.param` and `ld.param` reach it");
                    }
                }
                return;
            }
            _ => return,
        };
        for operand in &known.data.operands {
            let Operand::Memory(Address { base: Base::Symbol(Symbol::Local(var)), .. }) = operand else { continue };
            let variable = &function.variables[*var];
            if variable.space != Space::Param {
                continue;
            }
            let is_input = function.params.contains(&Param::Memory(*var));
            let is_result = function.results.contains(&Param::Memory(*var));
            let (message, label) = if writes && is_input {
                (format!("`{}` is an input of `{}` and cannot be written", variable.name, function.name), "writes an input")
            } else if reads && is_result {
                (format!("`{}` is a result of `{}` and cannot be read", variable.name, function.name), "reads a result")
            } else if writes && !is_result && known.data.guard.is_some() {
                (format!("`{}` is an argument of a call and cannot be stored under a guard", variable.name), "guarded")
            } else if reads && !is_input && known.data.guard.is_some() {
                (format!("`{}` is a result of a call and cannot be loaded under a guard", variable.name), "guarded")
            } else {
                continue;
            };
            self.report(known.inst, codes::BAD_PARAM_USE, message, label);
        }
    }

    /// Tests if a variable is a parameter or result of this function.
    pub(super) fn is_param(&self, var: Var) -> bool {
        let param = Param::Memory(var);
        self.function.params.contains(&param) || self.function.results.contains(&param)
    }
}
