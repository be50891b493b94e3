//! Counting in shared memory with a separate counter for each lane.
//!
//! If many lanes add to a small shared array that is not read before the next barrier, the conflict detection
//! costs more than the sums. Waiting for the value that another lane has just added costs more as well. Each
//! of sixteen lanes therefore gets its own copy of the array, which has no conflicts. The copies are summed
//! before the array is read. A block with few additions never makes copies: the first additions go straight
//! to the array, up to the number at which making and summing the copies would have paid off.
//!
//! A piece of a kernel ([`super::pieces`]) counts if it has such additions and no other access that might go
//! to shared memory. Copies are summed at the start of a piece that has such an access. At the end of a block
//! its shared memory is discarded, and the copies with it.

use super::emitter::{Emitter, TranslationResult};
use super::layout::{SymbolPlace, variable};
use super::llvm::{IntPred, Label, Val};
use super::state::{CounterTable, Counters};
use broadloom_ptx::{Address, Base, Block, InstData, Modifier, Opcode, Operand, Reg, Space, Symbol, Type, TypeKind, Variable};
use std::cell::Cell;
use std::collections::HashSet;

/// Number of lanes with a copy. The other lanes use the copies after them.
const COPIES: u32 = 16;
/// Number of copies used in turn when lanes add one by one.
const BESIDE: u32 = 8;
/// Maximum bytes of an array, so that the copies stay in the nearest cache.
const MOST_BYTES: u64 = 2048;
/// Maximum bytes of an array whose counter indices fit into eight bits.
const BYTES_OF_BYTES: u64 = 1024;

impl Emitter<'_> {
    /// Finds the arrays that the pieces of a kernel count in. `place` is the offset of their copies from the
    /// start of local memory.
    pub(crate) fn find_counters(&self, pieces: &[&[Block]], place: u64) -> Option<Counters> {
        if !self.host.avx512 || self.lanes.is_none() || self.cluster.has_others() || !self.callees.is_empty() {
            return None;
        }
        let function = self.function;
        let insts = |blocks: &[Block]| {
            let blocks = blocks.to_vec();
            blocks.into_iter().flat_map(|block| &function.blocks[block].insts).map(|inst| &function.insts[*inst])
        };
        let looks: Vec<bool> = pieces.iter().map(|piece| insts(piece).any(|inst| self.may_look(inst))).collect();
        let mut tables: Vec<CounterTable> = vec![];
        let mut bytes = 0;
        let mut counts = vec![false; pieces.len()];
        for (piece, blocks) in pieces.iter().enumerate().filter(|(piece, _)| !looks[*piece]) {
            for symbol in insts(blocks).filter_map(|inst| self.counted(inst)) {
                let (Some(SymbolPlace::Shared(start)), Some(size)) =
                    (self.layout.place(symbol), variable(self.module, function, symbol).and_then(Variable::bytes))
                else {
                    continue;
                };
                if size > MOST_BYTES {
                    continue;
                }
                counts[piece] = true;
                if tables.iter().all(|table| table.symbol != symbol) {
                    let table = CounterTable { symbol, start, bytes: size, place: bytes };
                    bytes += u64::from(COPIES) * table.stride();
                    tables.push(table);
                }
            }
        }
        if tables.is_empty() {
            return None;
        }
        let limit = tables.iter().map(|table| table.bytes / 32).sum::<u64>().max(16);
        let done = self.ir.stack(self.ir.int(32), 4);
        self.ir.store(self.ir.constant(self.ir.int(32), 0), done, 4);
        Some(Counters {
            tables,
            counts,
            looks,
            place: place.next_multiple_of(64),
            bytes: bytes + 64,
            limit,
            done,
            one_by_one: Cell::new(false),
        })
    }

    /// Returns whether an instruction may read or write shared memory, other than by adding to an array of
    /// counters.
    fn may_look(&self, inst: &InstData) -> bool {
        let mut addresses = inst.addresses();
        let elsewhere = |space: Space| matches!(space, Space::Global | Space::Const | Space::Param | Space::Local);
        if inst.opcode() == Some(Opcode::Ld) || inst.is_store() || inst.is_atomic() {
            return self.counted(inst).is_none() && addresses.any(|address| !elsewhere(self.space_of(inst, &address)));
        }
        // All other instructions access memory only by an address or in a function.
        addresses.next().is_some() || matches!(inst.opcode(), None | Some(Opcode::Call))
    }

    /// Returns the array that an instruction adds to, if the old value is unused.
    fn counted(&self, inst: &InstData) -> Option<Symbol> {
        let ty = inst.types().next()?;
        let is_add = inst.is_atomic() && inst.has(Modifier::Add);
        if !is_add || ty.bits() != 32 || !is_number(ty) {
            return None;
        }
        if inst.opcode() == Some(Opcode::Atom) && !matches!(inst.operands.first(), Some(Operand::Reg(reg)) if !self.is_used(*reg))
        {
            return None;
        }
        let address = self.address_of(inst).ok()?;
        match address.base {
            Base::Reg(reg) if self.space_of(inst, &address) == Space::Shared && !self.is_kept_as_scalar(reg) => {
                self.shared_root(reg)
            }
            _ => None,
        }
    }

    /// Returns the only shared variable that an address in a window is derived from.
    fn shared_root(&self, reg: Reg) -> Option<Symbol> {
        let mut found = None;
        let (mut work, mut seen) = (vec![reg], HashSet::new());
        while let Some(reg) = work.pop() {
            if !seen.insert(reg) {
                continue;
            }
            let Some(inst) = self.definition(reg) else { continue };
            if inst.opcode() == Some(Opcode::Mad) {
                // The product is an offset.
                work.extend(
                    inst.operands.get(3).and_then(|operand| if let Operand::Reg(reg) = operand { Some(*reg) } else { None }),
                );
            }
            if !matches!(inst.opcode(), Some(Opcode::Add | Opcode::Mov | Opcode::Cvt)) {
                continue;
            }
            work.extend(inst.reads());
            for operand in inst.operands.iter() {
                if let Operand::Symbol(symbol, _) = operand
                    && found.replace(*symbol).is_some_and(|other| other != *symbol)
                {
                    return None;
                }
            }
        }
        found
    }

    /// Sets properties of the whole kernel after all its pieces are emitted. If most work is scalar, wide
    /// registers are avoided, so that a core runs it at full speed.
    pub(crate) fn counted_all(&self) {
        if self.counters.as_ref().is_some_and(|counters| counters.one_by_one.get()) {
            self.ir.leave_wide_registers();
        }
    }

    /// Sums the copies at the start of a piece that reads shared memory.
    pub(crate) fn add_up_copies(&self, piece: usize) {
        let ir = self.ir;
        let Some(counters) = self.counters.as_ref().filter(|counters| counters.looks[piece]) else { return };
        let i32 = ir.int(32);
        let (add, on) = (ir.block("add_up"), ir.block("added_up"));
        let done = ir.load(i32, counters.done, 4);
        ir.store(ir.constant(i32, 0), counters.done, 4);
        ir.branch_if(ir.icmp(IntPred::LLVMIntUGT, done, ir.constant(i32, counters.limit)), add, on);
        ir.go_on_in(add);
        let shared = self.pointer_field(crate::abi::offset::SHARED);
        for table in &counters.tables {
            let copies = self.copies(counters, table);
            // One cache line of counters at a time, if the array is a multiple of it.
            let (ty, bytes) = if table.bytes.is_multiple_of(64) { (ir.vector(i32, 16), 64) } else { (i32, 4) };
            let place = |start: Val, by: u64, number: Val| {
                ir.offset(ir.offset_by(start, by), ir.mul(number, ir.constant(ir.int(64), bytes)))
            };
            self.repeat(table.bytes / bytes, |number| {
                let whole = place(shared, table.start, number);
                let copies = (0..u64::from(COPIES)).map(|copy| ir.load(ty, place(copies, copy * table.stride(), number), 4));
                let sum = copies.fold(ir.load(ty, whole, 4), |sum, own| ir.add(sum, own));
                ir.store(sum, whole, 4);
            });
        }
        ir.branch(on);
        ir.go_on_in(on);
    }

    /// Emits the addition of numbers to each lane's own copies of counters, and a branch around it for
    /// addresses outside of the tables. Returns the label behind both ways.
    pub(crate) fn count_apart(
        &self,
        inst: &InstData,
        address: &Address,
        value: Val,
        active: Val,
    ) -> TranslationResult<Option<Label>> {
        let ir = self.ir;
        let (Some(counters), Some(lanes), Some(piece), Base::Reg(reg)) =
            (self.counters.as_ref(), self.lanes, self.current.piece, address.base)
        else {
            return Ok(None);
        };
        let Some(table) = self.counted(inst).and_then(|symbol| counters.tables.iter().find(|table| table.symbol == symbol))
        else {
            return Ok(None);
        };
        if !counters.counts[piece] {
            return Ok(None);
        }
        let i32 = ir.int(32);
        let all = ir.vector(i32, lanes);
        let by = ir.constant(all, (address.offset as u64).wrapping_sub(table.start));
        let offsets = ir.add(ir.resize(self.all_lanes(reg)?, i32, false), by);
        let outside = ir.icmp(IntPred::LLVMIntUGE, offsets, ir.constant(all, table.bytes));
        let inside = ir.not(self.any(ir.and(outside, active)));
        let [ready, first, apart, here, after] = ["ready", "first", "apart", "here", "after"].map(|name| ir.block(name));
        let limit = ir.constant(i32, counters.limit);
        let done = ir.load(i32, counters.done, 4);
        let enough = ir.icmp(IntPred::LLVMIntUGE, done, limit);
        ir.branch_if(ir.and(enough, inside), ready, here);
        ir.go_on_in(ready);
        ir.branch_if(ir.icmp(IntPred::LLVMIntEQ, done, limit), first, apart);
        ir.go_on_in(first);
        ir.store(ir.constant(i32, counters.limit + 1), counters.done, 4);
        let part = ir.vector(i32, COPIES);
        let start = self.copies(counters, &counters.tables[0]);
        self.repeat((counters.bytes - 64) / 64, |number| {
            ir.store(ir.zero(part), ir.offset(start, ir.shl(number, ir.constant(ir.int(64), 6))), 64);
        });
        ir.branch(apart);
        ir.go_on_in(apart);
        let copies = self.copies(counters, table);
        if ir.lanes(value).is_none() && table.bytes <= BYTES_OF_BYTES {
            counters.one_by_one.set(true);
            self.count_one_by_one(copies, table.stride(), offsets, value, active, after);
        }
        let value = if ir.lanes(value).is_some() { value } else { ir.splat(value, lanes) };
        for start in (0..lanes).step_by(COPIES as usize) {
            let picks: Vec<u32> = (start..start + COPIES).collect();
            let [place, value, active] = [offsets, value, active].map(|value| ir.pick(value, &picks));
            let place = ir.add(place, ir.steps(i32, COPIES, table.stride()));
            let pointer = ir.offset(copies, ir.sext(place, ir.vector(ir.int(64), COPIES)));
            let (types, align) = ([part, ir.type_of(pointer)], ir.constant(i32, 4));
            let old = ir.intrinsic("llvm.masked.gather", &types, &[pointer, align, active, ir.zero(part)]);
            ir.intrinsic("llvm.masked.scatter", &types, &[ir.add(old, value), pointer, align, active]);
        }
        ir.branch(after);
        ir.go_on_in(here);
        let more = ir.select(enough, done, ir.add(done, ir.constant(i32, 1)));
        ir.store(more, counters.done, 4);
        Ok(Some(after))
    }

    /// Adds a number to the copies if all lanes are active, and continues otherwise. A core adds to memory
    /// faster than it scatters, as long as it does not wait for a value that it has just added. Eight copies
    /// are enough for that, and leave space in the nearest cache. Indices of counters fit into bytes.
    fn count_one_by_one(&self, copies: Val, stride: u64, offsets: Val, value: Val, active: Val, after: Label) {
        let ir = self.ir;
        let [i8, i32, i64] = [8, 32, 64].map(|bits| ir.int(bits));
        let (each, some) = (ir.block("each"), ir.block("some"));
        let all = ir.constant(i32, u64::from(u32::MAX));
        ir.branch_if(ir.icmp(IntPred::LLVMIntEQ, self.as_mask(active), all), each, some);
        ir.go_on_in(each);
        let lanes = self.lanes.unwrap_or(1);
        let numbers = ir.lshr(offsets, ir.constant(ir.type_of(offsets), 2));
        let bytes = ir.trunc(numbers, ir.vector(i8, lanes));
        let words = ir.bitcast_whole(bytes, ir.vector(i64, lanes / BESIDE));
        for word in 0..lanes / BESIDE {
            let word = ir.extract_at(words, word);
            for copy in 0..BESIDE {
                let number = ir.and(ir.lshr(word, ir.constant(i64, u64::from(8 * copy))), ir.constant(i64, 255));
                let counter = ir.elements_at(ir.offset_by(copies, u64::from(copy) * stride), i32, number);
                ir.store(ir.add(ir.load(i32, counter, 4), value), counter, 4);
            }
        }
        ir.branch(after);
        ir.go_on_in(some);
    }

    /// Returns a pointer to the copies of an array.
    fn copies(&self, counters: &Counters, table: &CounterTable) -> Val {
        self.ir.offset_by(self.pointer_field(crate::abi::offset::LOCAL), counters.place + table.place)
    }

    /// Emits a loop with a fixed number of iterations, at least one.
    fn repeat(&self, times: u64, act: impl FnOnce(Val)) {
        let ir = self.ir;
        let i64 = ir.int(64);
        let (start, again, after) = (ir.here(), ir.block("again"), ir.block("after"));
        ir.branch(again);
        ir.go_on_in(again);
        let number = ir.phi(i64);
        ir.incoming(number, ir.constant(i64, 0), start);
        act(number);
        let next = ir.add(number, ir.constant(i64, 1));
        ir.incoming(number, next, ir.here());
        ir.branch_if(ir.icmp(IntPred::LLVMIntULT, next, ir.constant(i64, times)), again, after);
        ir.go_on_in(after);
    }
}

/// Returns whether a type is an integer or untyped bits used as one.
pub(crate) fn is_number(ty: Type) -> bool {
    ty.is_integer() || ty.kind() == TypeKind::Bits
}
