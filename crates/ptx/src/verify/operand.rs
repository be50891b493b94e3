//! Checks of operands against their specification in the form.

use super::agree::{Disagreement, advice, disagreement, expectation};
use super::instruction::CheckedInstruction;
use super::{BodyChecker, article, codes};
use crate::ids::Reg;
use crate::inst::{Base, Imm, Operand, Selector, Symbol, TextureOperand};
use crate::table::{Class, Length, Opcode, OperandKind, OperandSpec, Special};
use crate::types::{Space, Type, TypeKind};
use broadloom_diag::Diagnostic;

impl BodyChecker<'_, '_> {
    pub(super) fn operand(&mut self, known: CheckedInstruction<'_>, spec: &OperandSpec, operand: &Operand) {
        match (spec.kind, operand) {
            (_, Operand::Absent) => {}
            (OperandKind::Memory, Operand::Memory(address)) => self.address(known, *address),
            (OperandKind::Texture | OperandKind::Tensor, Operand::Texture(texture)) => self.texture(known, texture),
            (OperandKind::Call, Operand::Call(call)) => self.call(known.inst, call),
            (OperandKind::Label | OperandKind::Targets, _) => {}
            (OperandKind::Value | OperandKind::Immediate | OperandKind::Negatable, _) => {
                let Some(ty) = self.operand_type(known, spec) else { return };
                match operand {
                    Operand::Vector(list) => self.vector(known, spec, ty, list),
                    _ => self.scalar(known, spec, ty, operand),
                }
            }
            // Shapes were checked before.
            (OperandKind::Memory | OperandKind::Texture | OperandKind::Tensor | OperandKind::Call, _) => {}
        }
    }

    /// Returns the type of an operand. Address operands of `isspacep` have the address size of the module.
    fn operand_type(&self, known: CheckedInstruction<'_>, spec: &OperandSpec) -> Option<Type> {
        let ty = spec.type_in(known.modifiers)?;
        let is_address = matches!(known.form.get().opcode, Opcode::Isspacep | Opcode::Istypep) && ty == Type::U64;
        Some(if is_address && self.module.address_size == 32 { Type::U32 } else { ty })
    }

    fn name_of(&self, known: CheckedInstruction<'_>) -> String {
        known.data.mnemonic_text()
    }

    fn scalar(&mut self, known: CheckedInstruction<'_>, spec: &OperandSpec, ty: Type, operand: &Operand) {
        match operand {
            Operand::Reg(reg) | Operand::Not(reg) => self.register(known, spec, ty, *reg),
            Operand::Part { reg, negated, selector } => self.part(known, spec, ty, *reg, *negated, *selector),
            Operand::Imm(imm) => self.immediate(known, spec, ty, *imm),
            Operand::Special(special) => self.special(known, spec, ty, *special),
            Operand::Symbol(symbol, offset) => self.symbol(known, ty, *symbol, *offset),
            Operand::Sink => {
                let elements_only = matches!(spec.length, Length::Slot(_));
                if !spec.sink || elements_only {
                    let message = format!("the result of `{}` cannot be thrown away", self.name_of(known));
                    self.report(known.inst, codes::BAD_SINK, message, "`_` is not allowed here");
                }
            }
            Operand::Memory(_)
            | Operand::Texture(_)
            | Operand::Vector(_)
            | Operand::Label(_)
            | Operand::Targets(_)
            | Operand::Pair(_)
            | Operand::Absent
            | Operand::Call(_) => {}
        }
    }

    fn register(&mut self, known: CheckedInstruction<'_>, spec: &OperandSpec, ty: Type, reg: Reg) {
        let Some(why) = disagreement(ty, self.function.regs[reg].ty, spec.wider) else { return };
        self.misfit(known, spec, ty, reg, why, spec.wider);
    }

    fn misfit(&mut self, known: CheckedInstruction<'_>, spec: &OperandSpec, ty: Type, reg: Reg, why: Disagreement, wider: bool) {
        let data = &self.function.regs[reg];
        let message = format!(
            "`{}` is {} `{}` register, and `{}` of `{}` takes {}",
            data.name,
            article(data.ty.name()),
            data.ty,
            spec.name,
            self.name_of(known),
            expectation(ty, wider)
        );
        let code = match why {
            Disagreement::Kind => codes::WRONG_KIND,
            Disagreement::Width => codes::WRONG_WIDTH,
        };
        let mut diagnostic = Diagnostic::error(code, message);
        if let Some(help) = advice(ty, data.ty) {
            diagnostic = diagnostic.help(help);
        }
        self.push(known.inst, diagnostic, &format!("`{}` does not fit", data.name));
    }

    fn immediate(&mut self, known: CheckedInstruction<'_>, spec: &OperandSpec, ty: Type, imm: Imm) {
        let Some((wanted, help)) = bad_immediate(ty, imm) else { return };
        let message = format!("`{imm}` is not {wanted}, as `{}` of `{}` must be", spec.name, self.name_of(known));
        let mut diagnostic = Diagnostic::error(codes::BAD_IMMEDIATE, message);
        if let Some(help) = help {
            diagnostic = diagnostic.help(help);
        }
        self.push(known.inst, diagnostic, "this number does not fit");
    }

    fn special(&mut self, known: CheckedInstruction<'_>, spec: &OperandSpec, ty: Type, special: Special) {
        let row = special.row();
        self.special_available(known.inst, special);
        if !spec.symbol || matches!(known.data.class(), Some(Class::Address | Class::Cluster)) {
            let message = format!("`{}` cannot read the special register `{}`", self.name_of(known), row.name);
            let help = format!("copy it first: `mov.{} %x, {}`", row.ty.name(), row.name);
            let diagnostic = Diagnostic::error(codes::BAD_SPECIAL, message).help(help);
            return self.push(known.inst, diagnostic, "only `mov` and `cvt` can");
        }
        // Special registers had 16 bits in old versions, and `%gridid` had 32.
        let narrow = (ty.bits() == 16 && row.ty.bits() == 32) || (ty.bits() == 32 && row.name == "%gridid");
        let fits = disagreement(ty, row.ty, spec.wider).is_none() || (narrow && !ty.is_float());
        if !fits {
            let message = format!(
                "the special register `{}` is {} `{}`, and `{}` takes {}",
                row.name,
                article(row.ty.name()),
                row.ty,
                self.name_of(known),
                expectation(ty, spec.wider)
            );
            let help = format!("use `mov.{}`", row.ty.name());
            self.push(known.inst, Diagnostic::error(codes::BAD_SPECIAL, message).help(help), "of another width or kind");
        }
    }

    /// Checks the address of a symbol as a value.
    fn symbol(&mut self, known: CheckedInstruction<'_>, ty: Type, symbol: Symbol, offset: i64) {
        let class = known.data.class();
        if !matches!(class, Some(Class::Move | Class::Address | Class::Cluster)) {
            let message = format!("`{}` cannot take the address of a name", self.name_of(known));
            let diagnostic = Diagnostic::error(codes::BAD_SYMBOL, message).help("take it with `mov` first");
            return self.push(known.inst, diagnostic, "the address of a name");
        }
        if matches!(ty.kind(), TypeKind::Float) || ty.bits() < 32 {
            let message = format!("an address is no `{ty}`");
            let help = format!("use `mov.u{}`", self.module.address_size);
            return self.push(known.inst, Diagnostic::error(codes::BAD_SYMBOL, message).help(help), "not an address");
        }
        let variable = match symbol {
            Symbol::Var(var) => &self.module.variables[var],
            Symbol::Local(var) => &self.function.variables[var],
            Symbol::Func(func) => {
                if offset != 0 {
                    let message = format!("an offset on the function `{}`", self.module.functions[func].name);
                    self.report(known.inst, codes::BAD_SYMBOL, message, "code has no inside");
                }
                if class != Some(Class::Move) {
                    let message = format!("`{}` takes the address of a variable", self.name_of(known));
                    self.report(known.inst, codes::BAD_SYMBOL, message, "a function");
                }
                return;
            }
        };
        if class == Some(Class::Cluster) && variable.space != Space::Shared {
            let message = format!("`{}` of `{}`, which is in `{}`", self.name_of(known), variable.name, variable.space);
            let help = "only shared memory belongs to a block of a cluster";
            return self.push(known.inst, Diagnostic::error(codes::WRONG_SPACE, message).help(help), "another state space");
        }
        if class == Some(Class::Address) && known.data.space() != variable.space {
            let message = format!("`{}` of `{}`, which is in `{}`", self.name_of(known), variable.name, variable.space);
            let help = format!("use `cvta{}.u64`", variable.space);
            self.push(known.inst, Diagnostic::error(codes::WRONG_SPACE, message).help(help), "another state space");
        }
        let needed = if variable.space == Space::Global { u32::from(self.module.address_size) } else { 32 };
        if ty.bits() < needed {
            let message = format!(
                "the address of `{}` has {needed} bits, and `{}` takes {}",
                variable.name,
                self.name_of(known),
                ty.bits()
            );
            let help = format!("use `mov.u{needed}`");
            self.push(known.inst, Diagnostic::error(codes::BAD_SYMBOL, message).help(help), "too narrow for this address");
        }
    }

    fn part(
        &mut self,
        known: CheckedInstruction<'_>,
        spec: &OperandSpec,
        ty: Type,
        reg: Reg,
        negated: bool,
        selector: Option<Selector>,
    ) {
        let opcode = known.form.get().opcode;
        if known.data.class() != Some(Class::Video) {
            let message = format!("`{}` takes whole registers without a sign", self.name_of(known));
            return self.report(known.inst, codes::BAD_PART, message, "only video instructions take parts of registers");
        }
        if negated && (spec.written || !opcode.name().starts_with("vmad")) {
            let message = format!("`{}` takes no minus before a register", self.name_of(known));
            return self.report(known.inst, codes::BAD_PART, message, "only `vmad` does");
        }
        // Scalar instructions take a byte or half. SIMD instructions select a source for each lane and mask
        // the lanes of the result.
        let lanes = opcode.name().chars().last().and_then(|c| c.to_digit(10));
        let selector_fits = match (selector, lanes) {
            (None, _) => true,
            (Some(Selector::B0 | Selector::B1 | Selector::B2 | Selector::B3), None) => true,
            (Some(Selector::H0 | Selector::H1), None) => true,
            (Some(Selector::Lanes(_) | Selector::Mask(_)), None) => false,
            (Some(Selector::Lanes(lanes)), Some(2)) => {
                if spec.written {
                    lanes == 0x8010
                } else {
                    lanes & 0x8000 != 0
                }
            }
            (Some(Selector::Lanes(lanes)), Some(_)) => {
                if spec.written {
                    lanes == 0x3210
                } else {
                    lanes & 0x8000 == 0
                }
            }
            (Some(Selector::H0 | Selector::H1), Some(count)) => spec.written && count == 2,
            (Some(Selector::B0 | Selector::B1 | Selector::B2 | Selector::B3 | Selector::Mask(_)), Some(count)) => {
                spec.written && count == 4
            }
        };
        if !selector_fits {
            let message = format!("this part of a register is none that `{}` takes", self.name_of(known));
            self.report(known.inst, codes::BAD_PART, message, "");
        }
        self.register(known, spec, ty, reg);
    }

    fn vector(&mut self, known: CheckedInstruction<'_>, spec: &OperandSpec, ty: Type, list: &[Operand]) {
        let inst = known.inst;
        let element_type = match spec.length {
            Length::Parts => {
                let count = u32::try_from(list.len()).unwrap_or(u32::MAX);
                let whole = count > 0 && ty.bits().is_multiple_of(count);
                match Type::bits_of(ty.bits() / count.max(1)).filter(|_| whole) {
                    Some(part) => part,
                    None => {
                        let message = format!("{count} parts do not make the {} bits of `{}`", ty.bits(), self.name_of(known));
                        return self.report(inst, codes::BAD_VECTOR, message, "");
                    }
                }
            }
            Length::One | Length::Slot(_) | Length::Exactly(_) | Length::Any => ty,
        };
        let mut registers: Vec<Reg> = vec![];
        for element in list {
            match element {
                Operand::Reg(reg) => registers.push(*reg),
                Operand::Imm(imm) if !spec.written => self.immediate(known, spec, element_type, *imm),
                Operand::Sink if spec.sink => {}
                Operand::Sink => {
                    let message = format!("`{}` needs all elements of this vector", self.name_of(known));
                    return self.report(inst, codes::BAD_SINK, message, "`_` is not allowed here");
                }
                _ => {
                    let message = format!("a vector of `{}` holds registers", self.name_of(known));
                    return self.report(inst, codes::BAD_VECTOR, message, "something else than a register");
                }
            }
        }
        if spec.written && registers.is_empty() {
            let message = format!("all results of `{}` are thrown away", self.name_of(known));
            return self.report(inst, codes::BAD_SINK, message, "one of them must be a register");
        }
        let types: Vec<Type> = registers.iter().map(|reg| self.function.regs[*reg].ty).collect();
        if let (Some(first), Some(other)) =
            (types.first(), types.iter().position(|ty| ty.bits() != types[0].bits() && *ty != Type::Pred))
        {
            let message = format!(
                "elements of {} and {} bits in one vector: `{}` and `{}`",
                first.bits(),
                types[other].bits(),
                self.function.regs[registers[0]].name,
                self.function.regs[registers[other]].name
            );
            return self.report(inst, codes::BAD_VECTOR, message, "all elements must be as wide as each other");
        }
        // With an untyped register among them, all elements count as untyped.
        let as_bits = types.iter().any(|ty| ty.kind() == TypeKind::Bits) && types.iter().all(|ty| *ty != Type::Pred);
        let want = if as_bits && element_type != Type::Pred {
            Type::bits_of(element_type.bits()).unwrap_or(element_type)
        } else {
            element_type
        };
        for reg in registers {
            if let Some(why) = disagreement(want, self.function.regs[reg].ty, spec.wider) {
                return self.misfit(known, spec, element_type, reg, why, spec.wider);
            }
        }
    }

    /// Checks a handle and its coordinates.
    fn texture(&mut self, known: CheckedInstruction<'_>, texture: &TextureOperand) {
        match texture.base.base {
            Base::Reg(reg) => {
                let ty = self.function.regs[reg].ty;
                if disagreement(Type::B64, ty, false).is_some() || ty.is_float() {
                    let message = format!(
                        "`{}` is {} `{ty}` register, and a handle is a `.b64` one",
                        self.function.regs[reg].name,
                        article(ty.name())
                    );
                    self.report(known.inst, codes::BAD_TEXTURE, message, "not a handle");
                }
            }
            Base::Symbol(Symbol::Func(func)) => {
                let message = format!("`{}` is a function, not a texture or surface", self.module.functions[func].name);
                self.report(known.inst, codes::BAD_TEXTURE, message, "not a handle");
            }
            Base::Symbol(Symbol::Var(_) | Symbol::Local(_)) => {}
            Base::Absolute => {
                let message = format!("`{}` needs a texture, surface or tensor map", self.name_of(known));
                self.report(known.inst, codes::BAD_TEXTURE, message, "a number is none");
            }
        }
        for operand in &texture.rest {
            let scalar = |operand: &Operand| matches!(operand, Operand::Reg(_) | Operand::Imm(_) | Operand::Sink);
            let fits = match operand {
                Operand::Vector(list) => list.iter().all(scalar),
                Operand::Symbol(symbol, _) => !matches!(symbol, Symbol::Func(_)),
                operand => scalar(operand),
            };
            if !fits {
                let message = format!("the coordinates of `{}` are registers", self.name_of(known));
                self.report(known.inst, codes::BAD_TEXTURE, message, "something else than a register");
            }
        }
    }
}

/// Describes the immediate that an operand of this type takes, and how to write it. Returns `None` if the
/// given one fits.
pub(super) fn bad_immediate(ty: Type, imm: Imm) -> Option<(&'static str, Option<String>)> {
    let is_integer = imm.integer_bits().is_some();
    match ty.kind() {
        TypeKind::Unsigned | TypeKind::Signed | TypeKind::Predicate => (!is_integer).then_some(("an integer", None)),
        TypeKind::Bits => match (ty, imm) {
            (_, Imm::Int(_) | Imm::Uint(_)) | (Type::B32, Imm::F32(_)) | (Type::B64, Imm::F64(_)) if ty != Type::B128 => None,
            (Type::B32, Imm::F64(bits)) => {
                Some(("32 bits", Some(format!("write `{}`", Imm::F32((f64::from_bits(bits) as f32).to_bits())))))
            }
            (Type::B64, Imm::F32(bits)) => {
                Some(("64 bits", Some(format!("write `{}`", Imm::F64(f64::from(f32::from_bits(bits)).to_bits())))))
            }
            (Type::B128, _) => Some(("a register of 128 bits", None)),
            _ => Some(("an integer", None)),
        },
        TypeKind::Float => match (ty, imm) {
            (Type::F32, Imm::F32(_)) | (Type::F64, Imm::F64(_)) => None,
            (Type::F32, _) => {
                let help = imm.integer_bits().map(|bits| format!("write `{}.0`", bits as i64));
                Some(("an `f32`", help))
            }
            (Type::F64, _) => {
                let help = imm.integer_bits().map(|bits| format!("write `{}.0`", bits as i64));
                Some(("an `f64`", help))
            }
            _ => {
                Some(("a register of 16 bits", Some("put it in a register first: `mov.b16 %x, 0x3C00` is 1.0 as `.f16`".into())))
            }
        },
        TypeKind::Packed | TypeKind::Alternate | TypeKind::Opaque => {
            Some(("a register", Some("put it in a register first".into())))
        }
    }
}
