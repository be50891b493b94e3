//! Array elements as operands, `name[n]` (manual: "Arrays as Operands").
//!
//! `mov` and `cvta` take the address of the element; `ld`, `ldu` and `st` access it. An index counts elements
//! of the basic type, regardless of vectors and dimensions. A constant index becomes an offset. An index in a
//! register becomes instructions before the current one, under the same guard. As in NVIDIA's assembler, they
//! compute the offset in 32 bits and zero-extend it:
//!
//! ```text
//! cvt.u32.TYPE  %element, INDEX            unless the index has 32 bits
//! mad.lo.u32    %element_1, %element, SIZE, CONSTANT * SIZE
//! cvt.u64.u32   %element_2, %element_1
//! mov.u64       %element_3, NAME           `cvta.SPACE.u64` for an access that names no space
//! add.u64       %element_4, %element_3, %element_2
//! ```

use super::body::BodyParser;
use super::lexer::{TokenKind, shorten};
use super::{ParseResult, Parser, codes};
use crate::ids::Reg;
use crate::inst::{Address, Base, Guard, Imm, InstData, Modifiers, Operand, Symbol};
use crate::module::Variable;
use crate::table::{FormId, Modifier, Opcode};
use crate::types::{Type, TypeKind};
use broadloom_diag::{Diagnostic, Span};

/// Element of an array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    pub(super) symbol: Symbol,
    /// Constant offset in bytes from the start of the array.
    pub(super) offset: i64,
    pub(super) index: Option<Index>,
}

/// Register that selects an element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Index {
    reg: Reg,
    /// Size of an element in bytes.
    size: u32,
}

/// Properties of the instruction that contains an element.
pub(super) struct InstructionContext {
    accesses: bool,
    takes_address: bool,
    names_space: bool,
    /// Bits of its first type.
    bits: Option<u32>,
    guard: Option<Guard>,
}

impl InstructionContext {
    pub(super) fn new(found: &[(FormId, Modifiers)], guard: Option<Guard>) -> InstructionContext {
        let is = |one: fn(Opcode) -> bool| found.iter().any(|(form, _)| one(form.get().opcode));
        let modifiers = || found.iter().flat_map(|(_, modifiers)| modifiers.iter().flatten().copied());
        InstructionContext {
            accesses: is(|opcode| matches!(opcode, Opcode::Ld | Opcode::Ldu | Opcode::St)),
            takes_address: is(|opcode| matches!(opcode, Opcode::Mov | Opcode::Cvta)),
            names_space: modifiers().any(|modifier| modifier.space().is_some()),
            bits: modifiers().find_map(Modifier::ty).map(Type::bits),
            guard,
        }
    }
}

impl<'a> Parser<'a> {
    fn variable_of<'v>(&'v self, body: &'v BodyParser<'_, 'a>, symbol: Symbol) -> Option<&'v Variable> {
        match symbol {
            Symbol::Var(var) => Some(&self.module.variables[var]),
            Symbol::Local(var) => Some(&body.function.variables[var]),
            Symbol::Func(_) => None,
        }
    }

    /// Parses `[n]`, `[%r]` or `[%r+n]` after the name of an array.
    pub(super) fn element(
        &mut self,
        body: &mut BodyParser<'_, 'a>,
        symbol: Symbol,
        name: &str,
        span: Span,
    ) -> ParseResult<Element> {
        let array = self.variable_of(body, symbol);
        let array = array.filter(|variable| !variable.dims.is_empty() && variable.ty.kind() != TypeKind::Opaque);
        let Some(size) = array.map(|variable| variable.ty.bits().div_ceil(8)) else {
            let message = format!("`{}` is not an array", shorten(name));
            return Err(self.report(Diagnostic::error(codes::WRONG_NAME, message).at(span, "only arrays have elements")));
        };
        self.expect(b'[')?;
        let place = self.here();
        let index = if self.kind() == TokenKind::Name && !self.is_warp_size(0) {
            Some(Index { reg: self.index_register(body)?, size })
        } else {
            None
        };
        let constant = match index {
            None => self.integer_expression()?,
            Some(_) if self.is_sign(b'+') || self.is_sign(b'-') => self.signed_offset()?,
            Some(_) => 0,
        };
        let place = place.to(self.last());
        self.expect(b']')?;
        let Some(offset) = constant.checked_mul(i64::from(size)) else {
            let message = format!("the index {constant} is too large");
            return Err(self.report(Diagnostic::error(codes::LIMIT, message).at(place, "beyond all addresses")));
        };
        Ok(Element { symbol, offset, index })
    }

    /// Parses an integer or untyped register.
    fn index_register(&mut self, body: &mut BodyParser<'_, 'a>) -> ParseResult<Reg> {
        let place = self.here();
        let reg = self.register(body)?;
        let ty = body.function.regs[reg].ty;
        match ty.kind() {
            TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed if ty.bits() <= 64 => Ok(reg),
            _ => {
                let message = format!("a register of type `.{}` is no index", ty.name());
                let label = "expected integers or bits, at most 64";
                Err(self.report(Diagnostic::error(codes::WRONG_NAME, message).at(place, label)))
            }
        }
    }

    /// Returns the operand for an element. The instructions that compute its address are appended to the
    /// body.
    pub(super) fn fit_element(
        &mut self,
        body: &mut BodyParser<'_, 'a>,
        element: Element,
        around: &InstructionContext,
        span: Span,
    ) -> ParseResult<Operand> {
        let Element { symbol, offset, index } = element;
        let Some(index) = index else {
            let address = Address { base: Base::Symbol(symbol), offset };
            return Ok(if around.accesses { Operand::Memory(address) } else { Operand::Symbol(symbol, offset) });
        };
        if !around.accesses && !around.takes_address {
            return Err(self.lone_index(span));
        }
        let narrow = self.module.address_size == 32 || around.takes_address && around.bits == Some(32);
        let ty = if narrow { Type::U32 } else { Type::U64 };
        let space = self.variable_of(body, symbol).map(|variable| variable.space.name()).unwrap_or_default();
        let start = if around.accesses && !around.names_space { format!("cvta.{space}") } else { "mov".to_owned() };
        let from = body.function.regs[index.reg].ty;
        let mut emit = |mnemonic: &str, ty, inputs: &[Operand]| -> ParseResult<Operand> {
            let result = Operand::Reg(body.names.make_temporary(body.function, "%element", ty));
            let operands = std::iter::once(result.clone()).chain(inputs.iter().cloned());
            let Some(data) = InstData::of(mnemonic, operands) else { return Err(self.lone_index(span)) };
            body.push(InstData { guard: around.guard, span, ..data });
            Ok(result)
        };
        let constant = |value: u32| Operand::Imm(Imm::from_u64(u64::from(value)));
        let mut count = Operand::Reg(index.reg);
        if from.bits() != 32 {
            let sign = if from.is_signed() { 's' } else { 'u' };
            count = emit(&format!("cvt.u32.{sign}{}", from.bits()), Type::U32, &[count])?;
        }
        let mut bytes = emit("mad.lo.u32", Type::U32, &[count, constant(index.size), constant(offset as u32)])?;
        if !narrow {
            bytes = emit("cvt.u64.u32", Type::U64, &[bytes])?;
        }
        let start = emit(&format!("{start}.{}", ty.name()), ty, &[Operand::Symbol(symbol, 0)])?;
        let sum = emit(&format!("add.{}", ty.name()), ty, &[start, bytes])?;
        Ok(match sum {
            Operand::Reg(reg) if around.accesses => Operand::Memory(Address { base: Base::Reg(reg), offset: 0 }),
            sum => sum,
        })
    }

    /// Reports an index in a register where a constant is required.
    pub(super) fn lone_index(&mut self, span: Span) -> super::ReportedError {
        let diagnostic = Diagnostic::error(codes::UNEXPECTED, "an element whose index is in a register cannot stand here");
        let diagnostic = diagnostic.at(span, "only `mov`, `cvta`, `ld`, `ldu` and `st` take one");
        self.report(diagnostic.help("compute the address with `mad` before, and write it in brackets"))
    }
}
