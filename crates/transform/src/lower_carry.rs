//! `lower_carry`: lowers carry chains to plain arithmetic and a predicate (manual: "Extended-Precision
//! Integer Arithmetic Instructions").
//!
//! **In**: register form. **Out**: register form without `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`,
//! `madc`. Keeps every value. Loses the chains, which machines with a carry flag could use.
//!
//! The flag is always a carry, as `eval` defines it: after a subtraction it is set if there was no borrow. It
//! starts as false, and does not survive a call.

use crate::names::Names;
use crate::write::Writer;
use broadloom_ptx::{Function, Guard, Inst, InstData, Modifier, Module, Opcode, Operand, Reg, Type};

/// Name of the pass.
pub const NAME: &str = "lower_carry";

/// Operation of a link: plus or minus.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LinkOperation {
    Plus,
    Minus,
}

/// Instruction of a chain.
struct Link {
    sum: LinkOperation,
    takes_carry: bool,
    gives_carry: bool,
    /// Mnemonic of the product that comes first.
    product: Option<&'static str>,
    ty: Type,
}

/// Returns the role of an instruction in a chain, if it has one.
fn link(data: &InstData) -> Option<Link> {
    let gives = data.has(Modifier::Cc);
    let (sum, takes_carry, gives_carry, multiplies) = match data.opcode()? {
        Opcode::AddCc => (LinkOperation::Plus, false, true, false),
        Opcode::Addc => (LinkOperation::Plus, true, gives, false),
        Opcode::SubCc => (LinkOperation::Minus, false, true, false),
        Opcode::Subc => (LinkOperation::Minus, true, gives, false),
        Opcode::Mad if gives => (LinkOperation::Plus, false, true, true),
        Opcode::Madc => (LinkOperation::Plus, true, gives, true),
        _ => return None,
    };
    let ty = data.types().next()?;
    let product = match (data.has(Modifier::Hi), ty.is_signed(), ty.bits()) {
        _ if !multiplies => None,
        (false, _, 32) => Some("mul.lo.u32"),
        (false, _, _) => Some("mul.lo.u64"),
        (true, false, 32) => Some("mul.hi.u32"),
        (true, false, _) => Some("mul.hi.u64"),
        (true, true, 32) => Some("mul.hi.s32"),
        (true, true, _) => Some("mul.hi.s64"),
    };
    Some(Link { sum, takes_carry, gives_carry, product, ty })
}

/// Lowers all chains of a function.
pub fn run(module: &Module, function: &mut Function) {
    if !function.instructions().any(|(_, data)| link(data).is_some()) {
        return;
    }
    let mut names = Names::all(module, function);
    let mut writer = Writer::new(function);
    let carry = writer.reg(names.take("%cc"), Type::Pred);
    let mut lowering = CarryLowering { writer, names, number: 1, carry };
    for block in lowering.writer.function.layout.clone() {
        for inst in std::mem::take(&mut lowering.writer.function.blocks[block].insts) {
            match link(&lowering.writer.function.insts[inst]) {
                Some(link) => lowering.lower(inst, &link),
                None => lowering.writer.insts.push(inst),
            }
        }
        lowering.writer.function.blocks[block].insts = lowering.writer.take();
    }
}

struct CarryLowering<'f, 'm> {
    writer: Writer<'f>,
    names: Names<'m>,
    number: u32,
    carry: Reg,
}

impl CarryLowering<'_, '_> {
    fn temporary(&mut self, ty: Type) -> Reg {
        let name = self.names.next("%cc", &mut self.number);
        self.writer.reg(name, ty)
    }

    /// Lowers a link. Values are computed first, in new registers, then carry and result under the guard:
    /// both may be among the operands.
    fn lower(&mut self, inst: Inst, link: &Link) {
        let InstData { guard, operands, .. } = self.writer.function.insts[inst].clone();
        self.writer.at(inst);
        let wide = link.ty.bits() == 64;
        let word = if wide { Type::B64 } else { Type::B32 };
        let of = |narrow: &'static str, long: &'static str| if wide { long } else { narrow };
        let (add, sub) = (of("add.u32", "add.u64"), of("sub.u32", "sub.u64"));
        let (below, not_below) = (of("setp.lo.u32", "setp.lo.u64"), of("setp.hs.u32", "setp.hs.u64"));
        let (result, a, b) = match link.product {
            None => (operands[0].clone(), operands[1].clone(), operands[2].clone()),
            Some(multiply) => {
                let product = self.temporary(word);
                self.writer.emit(multiply, [product.into(), operands[1].clone(), operands[2].clone()]);
                (operands[0].clone(), product.into(), operands[3].clone())
            }
        };
        let total = self.temporary(word);
        self.writer.emit(if link.sum == LinkOperation::Plus { add } else { sub }, [total.into(), a.clone(), b.clone()]);
        let first = match (link.gives_carry, link.sum) {
            (false, _) => None,
            (true, LinkOperation::Plus) => Some((below, [total.into(), a])),
            (true, LinkOperation::Minus) => Some((not_below, [a, b])),
        };
        let total = if link.takes_carry { self.add_carry(link, first, total, guard) } else { self.set(first, total, guard) };
        self.writer.emit_guarded(guard, of("mov.b32", "mov.b64"), [result, total.into()]);
    }

    /// Sets the flag for an instruction that takes none.
    fn set(&mut self, compared: Option<(&'static str, [Operand; 2])>, total: Reg, guard: Option<Guard>) -> Reg {
        if let Some((compare, [a, b])) = compared {
            self.writer.emit_guarded(guard, compare, [self.carry.into(), a, b]);
        }
        total
    }

    /// Adds the flag to a sum, or subtracts the borrow from a difference. The total carries if one of the two
    /// steps does; there is no borrow if neither step borrows.
    fn add_carry(&mut self, link: &Link, first: Option<(&'static str, [Operand; 2])>, before: Reg, guard: Option<Guard>) -> Reg {
        let wide = link.ty.bits() == 64;
        let of = |narrow: &'static str, long: &'static str| if wide { long } else { narrow };
        let word = if wide { Type::B64 } else { Type::B32 };
        let [step, total] = [self.temporary(word), self.temporary(word)];
        let carry = self.carry;
        let (held, other, combine, compare, both) = match link.sum {
            LinkOperation::Plus => (1, 0, of("add.u32", "add.u64"), of("setp.lo.u32", "setp.lo.u64"), "or.pred"),
            LinkOperation::Minus => (0, 1, of("sub.u32", "sub.u64"), of("setp.hs.u32", "setp.hs.u64"), "and.pred"),
        };
        self.writer.emit(of("selp.b32", "selp.b64"), [step.into(), held.into(), other.into(), carry.into()]);
        self.writer.emit(combine, [total.into(), before.into(), step.into()]);
        if let Some((first_compare, [a, b])) = first {
            let [one, two] = [self.temporary(Type::Pred), self.temporary(Type::Pred)];
            self.writer.emit(first_compare, [one.into(), a, b]);
            let compared = match link.sum {
                LinkOperation::Plus => [two.into(), total.into(), before.into()],
                LinkOperation::Minus => [two.into(), before.into(), step.into()],
            };
            self.writer.emit(compare, compared);
            self.writer.emit_guarded(guard, both, [carry.into(), one.into(), two.into()]);
        }
        total
    }
}
