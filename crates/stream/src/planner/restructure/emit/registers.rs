//! Tapes of global memory in registers, in kernels by thread whose firings are unrolled.
//!
//! The words of one or several units are loaded before the first firing that reads them, with vector loads
//! for contiguous words. They are stored together after the last firing. Local arrays with constant indices
//! become registers.

use super::emitter::Emitter;
use super::memory::{BufferMemory, KernelBuffer};
use crate::planner::restructure::cut::BufferPlace;
use crate::planner::restructure::registers::Registers;
use crate::planner::restructure::wiring::{Range, Step, apply, keeps_runs, target};
use broadloom_scalar::{Array, Unroll, Value};
use broadloom_skeleton::cost::dataflow;

struct BufferRegisters {
    registers: Registers,
    array: Array,
    global: KernelBuffer,
    /// Items of a unit.
    items: i64,
    /// Words of an access.
    lanes: i64,
    /// Accesses that were already written, by number.
    done: Vec<bool>,
}

impl BufferRegisters {
    /// Writes the load or the store of an access.
    fn access(&mut self, e: &Emitter<'_>, number: i64, inward: bool) {
        let k = e.k;
        let (first, count) = (number * self.lanes, i64::from(self.global.words.count));
        let index = match &self.registers.post {
            None => {
                let own = k.mul(e.unit, self.items * count);
                k.add(own, (self.registers.first - self.global.start) * count + first)
            }
            Some(post) => {
                let item = k.add(k.mul(e.unit, self.items), self.registers.first + first / count);
                let item = apply(k, post, item, self.registers.first);
                k.add(k.mul(item, count), first % count - self.global.start * count)
            }
        };
        let BufferMemory::Memory(memory) = self.global.store else { return };
        let lanes = self.lanes as usize;
        let element = |lane: usize| k.literal((first + lane as i64) as i32);
        if inward {
            let value = if lanes == 1 { k.load(memory, index) } else { k.load_vector(memory, index, lanes) };
            (0..lanes).for_each(|lane| k.set_element(self.array, element(lane), k.lane(value, lane)));
        } else {
            let values: Vec<Value> = (0..lanes).map(|lane| k.element(self.array, element(lane))).collect();
            let value = if lanes == 1 { values[0] } else { k.vector(&values) };
            k.store(memory, index, value);
        }
    }
}

impl Emitter<'_> {
    /// Writes the code of a thread that runs all firings of its units. Their tapes are kept in registers
    /// where possible.
    pub(super) fn by_registers(&self, number: Value, whole: Value) {
        let (k, units) = (self.k, self.cut.per_thread);
        if units == 1 {
            k.if_then(k.lt(self.unit, whole), || self.in_registers(number));
            return;
        }
        let all = k.le(k.add(self.unit, units), whole);
        k.if_else(
            all,
            || self.in_registers(number),
            || {
                k.for_step(self.unit, whole, 1, Unroll::Never, |unit| {
                    // Words of global memory, accessed one by one.
                    let base = |held: Option<KernelBuffer>, items: i64| {
                        held.map(|held| KernelBuffer { base: held.base.map(|_| k.mul(unit, items)), ..held })
                    };
                    let items = self.section.buffers.iter().map(|buffer| buffer.items);
                    let held = self.held.iter().zip(items).map(|(held, items)| base(*held, items)).collect();
                    Emitter { unit, held, global: self.global.clone(), ..*self }.by_thread(number);
                });
            },
        );
    }

    fn in_registers(&self, number: Value) {
        let (k, units) = (self.k, self.cut.per_thread);
        let mut section = self.section.clone();
        let mut banks: Vec<Option<BufferRegisters>> = vec![];
        for (buffer, place) in self.cut.places.iter().enumerate() {
            let kept = matches!(place, BufferPlace::Loaded | BufferPlace::Kept);
            let registers = if kept { Registers::of(self.section, self.cut, buffer) } else { None };
            banks.push(registers.zip(self.global[buffer]).map(|(registers, global)| {
                let own = &self.section.buffers[buffer];
                let count = i64::from(own.words.count);
                let words = units * own.items * count;
                let array = k.array(own.words.element, words as u32);
                let most = if self.wide { i64::from(dataflow::ACCESS_BYTES / own.words.element.bytes()) } else { 1 };
                let start = (registers.first - global.start) * count;
                let fits = |lanes: &i64| {
                    let run = (lanes / count).max(1);
                    let even = lanes % count == 0 || count % lanes == 0;
                    let runs =
                        |post: &Vec<Step>| even && registers.first % run == 0 && own.items % run == 0 && keeps_runs(post, run);
                    *lanes <= most && words % lanes == 0 && start % lanes == 0 && registers.post.as_ref().is_none_or(runs)
                };
                let lanes = [4, 2].into_iter().find(fits).unwrap_or(1);
                BufferRegisters { registers, array, global, items: own.items, lanes, done: vec![false; (words / lanes) as usize] }
            }));
        }
        // Within the thread, steps end in the order of registers.
        for actor in &mut section.actors {
            for port in [&mut actor.input, &mut actor.output].into_iter().flatten() {
                if let Some(post) = banks[port.buffer].as_ref().and_then(|bank| bank.registers.post.as_ref()) {
                    port.steps.truncate(port.steps.len() - post.len());
                    port.absolute = false;
                }
            }
        }
        for unit in 0..units {
            let mut held = self.held.clone();
            for (held, bank) in held.iter_mut().zip(&banks) {
                if let Some(bank) = bank {
                    let start = bank.registers.first - unit * bank.items;
                    *held = Some(KernelBuffer { store: BufferMemory::Local(bank.array), start, base: None, ..bank.global });
                }
            }
            let at = k.add(self.unit, unit);
            let one = Emitter { section: &section, unit: at, held, global: self.global.clone(), anchors: &[], ..*self };
            for index in &self.cut.actors {
                let (Some(firings), actor) = (self.cut.unit.firings[*index], &section.actors[*index]) else { continue };
                for firing in firings.start..firings.end {
                    let range = Range::new(firing, firing + 1);
                    if let Some(port) = &actor.input
                        && let Some(bank) = banks[port.buffer].as_mut()
                    {
                        let items = port.items(range);
                        for item in items.start..items.end {
                            let count = i64::from(bank.global.words.count);
                            let word = (target(&port.steps, item) - bank.registers.first + unit * bank.items) * count;
                            for access in word / bank.lanes..=(word + count - 1) / bank.lanes {
                                if !std::mem::replace(&mut bank.done[access as usize], true) {
                                    bank.access(self, access, true);
                                }
                            }
                        }
                    }
                    one.fire(*index, actor, k.literal(firing as i32), number, range);
                }
            }
        }
        for (bank, place) in banks.iter_mut().zip(&self.cut.places) {
            if let (Some(bank), BufferPlace::Kept) = (bank, place) {
                (0..bank.done.len() as i64).for_each(|access| bank.access(self, access, false));
            }
        }
    }
}
