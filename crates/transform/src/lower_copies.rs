//! `lower_copies`: lowers asynchronous copies to loads and stores (manual: "cp.async").
//!
//! **In**: register form. **Out**: register form without `cp.async`, its groups and its arrivals at
//! mbarriers. A copy may be done at any time until it is waited for. It is done at once here, so there is
//! nothing left to wait for. Copies no longer overlap with other work.

use crate::names::Names;
use crate::write::Writer;
use broadloom_eval::copy::Copy;
use broadloom_eval::is_run;
use broadloom_ptx::{Address, Class, Function, Guard, Inst, InstData, Modifier, Module, Opcode, Operand, Reg, Type};

/// Name of the pass.
pub const NAME: &str = "lower_copies";

/// Returns whether this pass lowers an instruction.
fn is_copy(data: &InstData) -> bool {
    data.class() == Some(Class::Async) && is_run(data)
}

/// Lowers all copies of a function.
pub fn run(module: &Module, function: &mut Function) {
    if !function.instructions().any(|(_, data)| is_copy(data)) {
        return;
    }
    let names = Names::all(module, function);
    let mut lowering = CopyLowering { writer: Writer::new(function), names, number: 0 };
    for block in lowering.writer.function.layout.clone() {
        for inst in std::mem::take(&mut lowering.writer.function.blocks[block].insts) {
            match is_copy(&lowering.writer.function.insts[inst]) {
                true => lowering.lower(inst),
                false => lowering.writer.insts.push(inst),
            }
        }
        lowering.writer.function.blocks[block].insts = lowering.writer.take();
    }
}

struct CopyLowering<'f, 'm> {
    writer: Writer<'f>,
    names: Names<'m>,
    number: u32,
}

impl CopyLowering<'_, '_> {
    fn temporary(&mut self, ty: Type) -> Reg {
        let name = self.names.next("%copy", &mut self.number);
        self.writer.reg(name, ty)
    }

    fn lower(&mut self, inst: Inst) {
        let data = self.writer.function.insts[inst].clone();
        self.writer.at(inst);
        if let Some(copy) = Copy::of(&data) {
            let (Some(Operand::Memory(to)), Some(Operand::Memory(from))) = (data.operands.first(), data.operands.get(1)) else {
                return;
            };
            return match (copy.size, copy.ignore) {
                (None, None) => self.whole(copy.bytes, *to, *from, data.guard),
                (size, ignore) => {
                    let size = match (size, ignore) {
                        (Some(place), _) => data.operands[place].clone(),
                        (None, Some(place)) => self.unless(&data.operands[place], copy.bytes),
                        (None, None) => copy.bytes.into(),
                    };
                    self.in_part(copy.bytes, *to, *from, &size, data.guard);
                }
            };
        }
        // Groups are complete at once. So are the copies that an mbarrier would track: without `.noinc` it
        // counts one more expected arrival, and that arrival has already happened.
        if data.opcode() == Some(Opcode::CpAsyncMbarrierArrive) && data.has(Modifier::Noinc) {
            let state = self.temporary(Type::B64);
            let arrive = if data.has(Modifier::Shared) || data.has(Modifier::SharedCta) {
                "mbarrier.arrive.shared.b64"
            } else {
                "mbarrier.arrive.b64"
            };
            let mbarrier = data.operands[0].clone();
            self.writer.emit_guarded(data.guard, arrive, [state.into(), mbarrier]);
        }
    }

    fn whole(&mut self, bytes: u32, to: Address, from: Address, guard: Option<Guard>) {
        let (load, store, ty, count) = match bytes {
            4 => ("ld.global.b32", "st.shared.b32", Type::B32, 1),
            8 => ("ld.global.b64", "st.shared.b64", Type::B64, 1),
            _ => ("ld.global.v2.b64", "st.shared.v2.b64", Type::B64, 2),
        };
        let registers: Vec<Operand> = (0..count).map(|_| self.temporary(ty).into()).collect();
        let value = match registers.as_slice() {
            [one] => one.clone(),
            all => Operand::Vector(all.into()),
        };
        self.writer.emit_guarded(guard, load, [value.clone(), Operand::Memory(from)]);
        self.writer.emit_guarded(guard, store, [Operand::Memory(to), value]);
    }

    /// Returns `bytes`, or zero if a predicate holds.
    fn unless(&mut self, ignored: &Operand, bytes: u32) -> Operand {
        let size = self.temporary(Type::B32);
        self.writer.emit("selp.b32", [size.into(), 0.into(), bytes.into(), ignored.clone()]);
        size.into()
    }

    /// Copies word by word: words that begin before the end are loaded, and the rest is zero.
    fn in_part(&mut self, bytes: u32, to: Address, from: Address, size: &Operand, guard: Option<Guard>) {
        let mut words = vec![];
        for word in 0..bytes / 4 {
            let (start, value) = (4 * word, self.temporary(Type::B32));
            let wanted = self.temporary(Type::Pred);
            self.writer.emit("setp.gt.u32", [wanted.into(), size.clone(), start.into()]);
            if let Some(Guard { reg, negated }) = guard {
                let both = self.temporary(Type::Pred);
                let there = match negated {
                    false => reg,
                    true => {
                        let there = self.temporary(Type::Pred);
                        self.writer.emit("not.pred", [there.into(), reg.into()]);
                        there
                    }
                };
                self.writer.emit("and.pred", [both.into(), wanted.into(), there.into()]);
                self.load_word(value, both, from, start);
            } else {
                self.load_word(value, wanted, from, start);
            }
            let [rest, bits, cut] = [Type::B32; 3].map(|ty| self.temporary(ty));
            self.writer.emit("sub.u32", [rest.into(), size.clone(), start.into()]);
            self.writer.emit("min.u32", [rest.into(), rest.into(), 4.into()]);
            self.writer.emit("shl.b32", [bits.into(), rest.into(), 3.into()]);
            self.writer.emit("bfe.u32", [cut.into(), value.into(), 0.into(), bits.into()]);
            words.push(Operand::from(cut));
        }
        let (store, value) = match words.as_slice() {
            [one] => ("st.shared.b32", one.clone()),
            [_, _] => ("st.shared.v2.b32", Operand::Vector(words.as_slice().into())),
            _ => ("st.shared.v4.b32", Operand::Vector(words.as_slice().into())),
        };
        self.writer.emit_guarded(guard, store, [Operand::Memory(to), value]);
    }

    fn load_word(&mut self, value: Reg, wanted: Reg, from: Address, start: u32) {
        self.writer.emit("mov.b32", [value.into(), 0.into()]);
        let place = Address { offset: from.offset + i64::from(start), ..from };
        let guard = Some(Guard { reg: wanted, negated: false });
        self.writer.emit_guarded(guard, "ld.global.b32", [value.into(), Operand::Memory(place)]);
    }
}
