//! Loads, stores, atomic operations, local arrays, tables.
//!
//! Several elements side by side are moved in as few accesses as there can be, of at most 16 bytes; many narrow ones travel in words
//! and are taken apart in registers.

use super::{Emitter, LaneOperands, bits_type, memory_type, register_type};
use crate::id::{ArrayId, Id, TableId};
use crate::memory::{Access, Base, Cache, Level, Order, Scope};
use crate::op::{AtomicOp, Op};
use crate::types::{Element, Literal, Type as ValueType};
use broadloom_ptx::builder::Instructions;
use broadloom_ptx::{Address, Modifier, Operand, Reg, Space, Symbol, Type, Variable};
use smallvec::SmallVec;

pub(super) const fn scope_word(scope: Scope) -> Modifier {
    match scope {
        Scope::Block => Modifier::Cta,
        Scope::Device => Modifier::Gpu,
        Scope::System => Modifier::Sys,
    }
}

/// The modifiers of an access: order, scope, space, cache.
struct Words {
    list: SmallVec<[Modifier; 8]>,
}

impl Words {
    fn of(access: Access, space: Space, is_load: bool) -> Words {
        let mut list = SmallVec::new();
        match access.order {
            Order::Weak => {}
            Order::Volatile => list.push(Modifier::Volatile),
            Order::Relaxed(scope) => list.extend([Modifier::Relaxed, scope_word(scope)]),
            Order::Acquire(scope) => list.extend([Modifier::Acquire, scope_word(scope)]),
            Order::Release(scope) => list.extend([Modifier::Release, scope_word(scope)]),
            Order::AcquireRelease(scope) => list.extend([Modifier::AcqRel, scope_word(scope)]),
        }
        list.extend(match space {
            Space::Shared => Some(Modifier::Shared),
            Space::Local => Some(Modifier::Local),
            Space::Const => Some(Modifier::Const),
            _ => Some(Modifier::Global),
        });
        if space == Space::Global {
            match access.cache {
                Cache::Normal => {}
                Cache::ReadOnly if is_load => list.push(Modifier::Nc),
                Cache::ReadOnlyStreaming if is_load => list.extend([Modifier::Cs, Modifier::Nc]),
                Cache::Streaming => list.push(Modifier::Cs),
                Cache::ReadOnly | Cache::ReadOnlyStreaming => {}
            }
        }
        Words { list }
    }

    fn with(&self, lanes: usize, ty: Type) -> SmallVec<[Modifier; 8]> {
        let mut list = self.list.clone();
        match lanes {
            2 => list.push(Modifier::V2),
            4 => list.push(Modifier::V4),
            _ => {}
        }
        list.extend(Modifier::from_text(ty.name()));
        list
    }
}

/// Returns how many lanes one access moves, and whether they travel in words.
fn piece(element: Element, lanes: usize) -> (usize, bool) {
    let bytes = element.bytes() as usize;
    if !lanes.is_power_of_two() {
        return (1, false);
    }
    if bytes < 4 && lanes > 4 {
        return (lanes.min(16 / bytes), true);
    }
    (lanes.min(16 / bytes).min(4), false)
}

impl Emitter<'_> {
    /// The address of an element.
    fn place(&mut self, base: Base, index: Id, access: Access) -> (Address, Space) {
        let bytes = i64::from(access.element.bytes());
        let constant = self.body.literal(index).and_then(Literal::as_i128).and_then(|index| i64::try_from(index).ok());
        let extra = i64::from(access.offset) * bytes;
        match base {
            Base::Global(address) => {
                let address = self.reg(address);
                if let Some(constant) = constant
                    && let Some(offset) = constant.checked_mul(bytes).filter(|offset| i32::try_from(*offset).is_ok())
                {
                    return (address.offset(offset + extra), Space::Global);
                }
                let element = self.element(index);
                let index = self.operand(index);
                let place = match element.bits() {
                    64 => self.f.mad((Modifier::Lo, Type::S64), index, bytes, address),
                    _ => {
                        let ty = if element.is_signed() { Type::S32 } else { Type::U32 };
                        self.f.mad((Modifier::Wide, ty), index, bytes, address)
                    }
                };
                (place.offset(extra), Space::Global)
            }
            Base::Shared(..) | Base::SharedAt(_) => {
                let (start, symbol) = match base {
                    Base::Shared(shared, offset) => {
                        let symbol = self.shared[shared.index()];
                        let offset = offset.map(|offset| self.operand(offset));
                        match offset {
                            None => (None, Some(symbol)),
                            Some(offset) => {
                                let start = self.f.mov(Type::U32, symbol);
                                (Some(self.f.add(Type::U32, start, offset)), None)
                            }
                        }
                    }
                    Base::SharedAt(address) | Base::Global(address) => match self.body.node(address).op {
                        Op::SharedAddress(shared) => (None, Some(self.shared[shared.index()])),
                        _ => (Some(self.reg(address)), None),
                    },
                };
                if let Some(constant) = constant
                    && let Some(offset) = constant.checked_mul(bytes).filter(|offset| i32::try_from(*offset).is_ok())
                {
                    let address = match (start, symbol) {
                        (Some(start), _) => start.offset(offset + extra),
                        (None, Some(symbol)) => symbol.offset(offset + extra),
                        (None, None) => return (self.f.mov(Type::U32, 0).offset(0), Space::Shared),
                    };
                    return (address, Space::Shared);
                }
                let start = match (start, symbol) {
                    (Some(start), _) => start,
                    (None, Some(symbol)) => self.f.mov(Type::U32, symbol),
                    (None, None) => self.f.mov(Type::U32, 0),
                };
                let wide = self.element(index).bits() == 64;
                let index = self.reg(index);
                let index = if wide { self.f.cvt((Type::U32, Type::U64), index) } else { index };
                (self.f.mad((Modifier::Lo, Type::U32), index, bytes, start).offset(extra), Space::Shared)
            }
        }
    }

    pub(super) fn load(&mut self, base: Base, index: Id, ty: ValueType, access: Access) -> LaneOperands {
        let (address, space) = self.place(base, index, access);
        let words = Words::of(access, space, true);
        self.load_lanes(&words, address, ty)
    }

    fn load_lanes(&mut self, words: &Words, address: Address, ty: ValueType) -> LaneOperands {
        let (element, lanes) = (ty.element(), ty.lanes());
        let (step, in_words) = piece(element, lanes);
        let mut loaded = LaneOperands::new();
        for first in (0..lanes).step_by(step) {
            let address = address.offset((first * element.bytes() as usize) as i64);
            if in_words {
                let count = step * element.bytes() as usize / 4;
                let regs: Vec<Reg> = (0..count).map(|_| self.f.reg(Type::B32)).collect();
                self.load_registers(words, address, Type::B32, &regs);
                regs.iter().for_each(|word| self.unpack(element, *word, &mut loaded));
            } else {
                let in_memory = if element == Element::Bool { Type::B32 } else { register_type(element) };
                let regs: Vec<Reg> = (0..step).map(|_| self.f.reg(in_memory)).collect();
                self.load_registers(words, address, memory_type(element), &regs);
                for reg in regs {
                    let value = if element == Element::Bool { self.f.setp((Modifier::Ne, Type::U32), reg, 0) } else { reg };
                    loaded.push(value.into());
                }
            }
        }
        loaded
    }

    fn load_registers(&mut self, words: &Words, address: Address, ty: Type, regs: &[Reg]) {
        let modifiers = words.with(regs.len(), ty);
        let to: Operand = if regs.len() == 1 { regs[0].into() } else { regs.into() };
        self.f.to_operands((to,)).ld(modifiers.as_slice(), address);
    }

    /// Takes the elements of a word apart.
    fn unpack(&mut self, element: Element, word: Reg, into: &mut LaneOperands) {
        if element == Element::F16 {
            let [low, high] = self.f.vector().mov(Type::B32, word);
            into.extend([low.into(), high.into()]);
            return;
        }
        let bits = element.bits().max(8);
        for position in (0..32).step_by(bits as usize) {
            let value = if element.is_signed() {
                let up = if position + bits == 32 { word } else { self.f.shl(Type::B32, word, 32 - bits - position) };
                self.f.shr(Type::S32, up, 32 - bits)
            } else {
                let down = if position == 0 { word } else { self.f.shr(Type::U32, word, position) };
                if position + bits == 32 { down } else { self.f.and(Type::B32, down, (1u32 << bits) - 1) }
            };
            let value = if element == Element::Bool { self.f.setp((Modifier::Ne, Type::U32), value, 0) } else { value };
            into.push(value.into());
        }
    }

    /// Stores a value at a place, where a condition holds if there is one.
    pub(super) fn store(&mut self, base: Base, index: Id, access: Access, value: Id, condition: Option<Id>) {
        let ty = self.body.type_of(value);
        let lanes = self.lanes(value);
        let condition = condition.map(|condition| self.reg(condition));
        let (address, space) = self.place(base, index, access);
        let words = Words::of(access, space, false);
        self.store_lanes(&words, address, ty, &lanes, condition);
    }

    /// Shared memory is near already.
    pub(super) fn prefetch(&mut self, base: Base, index: Id, access: Access, level: Level) {
        if let Base::Global(_) = base {
            let (address, _) = self.place(base, index, access);
            let level = match level {
                Level::First => Modifier::L1,
                Level::Second => Modifier::L2,
            };
            self.f.prefetch((Modifier::Global, level), address);
        }
    }

    fn store_lanes(&mut self, words: &Words, address: Address, ty: ValueType, values: &[Operand], condition: Option<Reg>) {
        let element = ty.element();
        let (step, in_words) = piece(element, ty.lanes());
        for (part, values) in values.chunks(step).enumerate() {
            let address = address.offset((part * step * element.bytes() as usize) as i64);
            let regs: Vec<Reg> = values.iter().map(|value| self.for_memory(element, value.clone())).collect();
            if in_words {
                let per_word = 4 / element.bytes() as usize;
                let packed: Vec<Reg> = regs.chunks(per_word).map(|parts| self.pack(element, parts)).collect();
                self.store_registers(words, address, Type::B32, &packed, condition);
            } else {
                self.store_registers(words, address, memory_type(element), &regs, condition);
            }
        }
    }

    fn store_registers(&mut self, words: &Words, address: Address, ty: Type, regs: &[Reg], condition: Option<Reg>) {
        let modifiers = words.with(regs.len(), ty);
        let from: Operand = if regs.len() == 1 { regs[0].into() } else { regs.into() };
        match condition {
            Some(condition) => self.f.guard(condition).st(modifiers.as_slice(), address, from),
            None => self.f.st(modifiers.as_slice(), address, from),
        };
    }

    /// A value in a register that can be stored.
    fn for_memory(&mut self, element: Element, value: Operand) -> Reg {
        let reg = self.in_register(value, element);
        if element == Element::Bool { self.f.selp(Type::B32, 1, 0, reg) } else { reg }
    }

    fn pack(&mut self, element: Element, parts: &[Reg]) -> Reg {
        if element == Element::F16 {
            return self.f.mov(Type::B32, Operand::from(parts));
        }
        let bits = element.bits().max(8);
        let mut word = None;
        for (index, part) in parts.iter().enumerate() {
            let is_last = (index + 1) as u32 * bits == 32;
            let clean = if element.is_signed() && !is_last { self.f.and(Type::B32, *part, (1u32 << bits) - 1) } else { *part };
            let placed = if index == 0 { clean } else { self.f.shl(Type::B32, clean, index as u32 * bits) };
            word = Some(match word {
                None => placed,
                Some(word) => self.f.or(Type::B32, word, placed),
            });
        }
        word.unwrap_or_else(|| self.f.mov(Type::B32, 0))
    }

    pub(super) fn atomic(&mut self, op: AtomicOp, base: Base, index: Id, access: Access, value: Id, expected: Option<Id>) -> Reg {
        let element = access.element;
        let (address, space) = self.place(base, index, access);
        let mut words = Words::of(access, space, false).list;
        let bits = if element == Element::U16 || element == Element::I16 { Type::B16 } else { bits_type(element) };
        let numbers = match element {
            Element::I32 => Type::S32,
            // Sums are the same with and without a sign, and PTX has the latter.
            Element::I64 if op == AtomicOp::Add => Type::U64,
            _ => memory_type(element),
        };
        let (word, ty) = match op {
            AtomicOp::Add => (Modifier::Add, if element == Element::F16 { Type::F16 } else { numbers }),
            AtomicOp::Min => (Modifier::Min, numbers),
            AtomicOp::Max => (Modifier::Max, numbers),
            AtomicOp::And => (Modifier::And, bits),
            AtomicOp::Or => (Modifier::Or, bits),
            AtomicOp::Xor => (Modifier::Xor, bits),
            AtomicOp::Exchange => (Modifier::Exch, bits),
            AtomicOp::CompareExchange => (Modifier::Cas, bits),
        };
        words.push(word);
        if ty == Type::F16 {
            words.push(Modifier::Noftz);
        }
        words.extend(Modifier::from_text(ty.name()));
        let narrow = element.is_integer() && element.bits() == 16;
        let input = |this: &mut Self, id: Id| {
            let reg = this.reg(id);
            if narrow { this.f.cvt((Type::U16, Type::U32), reg) } else { reg }
        };
        let value = input(self, value);
        let expected = expected.map(|expected| input(self, expected));
        let old = if narrow { self.f.reg(Type::B16) } else { self.register(element) };
        match expected {
            Some(expected) => {
                self.f.to(old).instruction(broadloom_ptx::Opcode::Atom, words.as_slice(), (address, expected, value))
            }
            None => self.f.to(old).instruction(broadloom_ptx::Opcode::Atom, words.as_slice(), (address, value)),
        };
        if narrow {
            let ty = if element.is_signed() { Type::S16 } else { Type::U16 };
            let wide = self.register(element);
            return self.f.to(wide).cvt((super::compute_type(element), ty), old);
        }
        old
    }

    // Local arrays.

    pub(super) fn array_symbol(&mut self, array: ArrayId) -> Symbol {
        if let Some(symbol) = self.arrays[array.index()] {
            return symbol;
        }
        let decl = self.body.array(array);
        let variable = Variable::new(format!("local_{}", array.0), Space::Local, memory_type(decl.element));
        let symbol = self.f.variable(Variable { dims: vec![Some(u64::from(decl.length))], align: Some(16), ..variable });
        self.arrays[array.index()] = Some(symbol);
        symbol
    }

    fn element_place(&mut self, array: ArrayId, index: Id) -> Address {
        let symbol = self.array_symbol(array);
        let bytes = i64::from(self.body.array(array).element.bytes());
        if let Some(index) = self.body.literal(index).and_then(Literal::as_i128) {
            return symbol.offset(index as i64 * bytes);
        }
        let element = self.element(index);
        let index = self.operand(index);
        let start = self.f.mov(Type::U64, symbol);
        match element.bits() {
            64 => self.f.mad((Modifier::Lo, Type::S64), index, bytes, start),
            _ => self.f.mad((Modifier::Wide, if element.is_signed() { Type::S32 } else { Type::U32 }), index, bytes, start),
        }
        .offset(0)
    }

    pub(super) fn get_element(&mut self, array: ArrayId, index: Id) -> Operand {
        let element = self.body.array(array).element;
        let address = self.element_place(array, index);
        let words = Words::of(Access::of(element), Space::Local, true);
        self.load_lanes(&words, address, element.into()).into_iter().next().unwrap_or_else(|| Operand::from(0))
    }

    pub(super) fn set_element(&mut self, array: ArrayId, index: Id, value: Id) {
        let element = self.body.array(array).element;
        let value = self.operand(value);
        let address = self.element_place(array, index);
        let words = Words::of(Access::of(element), Space::Local, false);
        self.store_lanes(&words, address, element.into(), &[value], None);
    }

    pub(super) fn table_entry(&mut self, table: TableId, index: Id) -> Operand {
        let (symbol, space) = self.tables[table.index()];
        let decl = self.body.table(table);
        let (element, last) = (decl.element, decl.entries.len() as u32 - 1);
        let words = Words::of(Access { cache: Cache::ReadOnly, ..Access::of(element) }, space, true);
        let (low, high) = self.ranges.get(index);
        let mut index = self.operand(index);
        if low < 0 || high > i128::from(last) {
            index = self.f.min(Type::U32, index, last).into();
        }
        let start = self.f.mov(Type::U64, symbol);
        let address = self.f.mad((Modifier::Wide, Type::U32), index, element.bytes(), start).offset(0);
        self.load_lanes(&words, address, element.into()).into_iter().next().unwrap_or_else(|| Operand::from(0))
    }
}
