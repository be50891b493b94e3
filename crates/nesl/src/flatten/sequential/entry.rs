//! The kernel: workers take calls one by one, load their arguments, call the function and store its results.
//! A worker is a thread or a warp.

use super::code::{Class, Code, Kind, Reg, slots};
use super::lanes::LANES;
use super::tasks::{Worker, end_call};
use super::{CallResults, FrameRegisters, Module, Signature};
use crate::vcode::Shape;
use crate::vcode::task::{ARENA, CALLERS};
use broadloom_ptx::builder::Instructions;
use broadloom_ptx::{Modifier as M, Special, Type};

/// Callback that writes code for every sequence of some depth, given its length and its arrays.
type ForEach<'a> = &'a mut dyn FnMut(&mut Entry, Reg, &[Reg]);

/// Path to all sequences of some depth in a result. Each step goes from a sequence to a slot of its elements:
/// the length of a sequence, or a pointer after it.
#[derive(Clone)]
struct Path {
    length: Reg,
    arrays: Vec<Reg>,
    /// The first slot of the inner sequence, and the number of its arrays.
    steps: Vec<(usize, usize)>,
}

pub(super) struct Entry {
    pub(super) code: Code,
    pub(super) params: Vec<String>,
    pub(super) state: Reg,
    pub(super) call: Reg,
    pub(super) top: Reg,
    pub(super) limit: Reg,
    pub(super) failed: super::code::Label,
    pub(super) next: super::code::Label,
    /// Sequences of the result so far.
    pub(super) sequences: u32,
}

impl Module<'_, '_> {
    /// Writes the kernel for a function.
    pub(super) fn entry(&self, name: &str, signature: &Signature, argument: &Shape, result: &Shape) -> String {
        let mut code = Code::new(self.widths, self.in_warps());
        let [state, arena, stride, top, limit, fuel] = [(); 6].map(|()| code.reg(Class::B64));
        let [calls, depth, call] = [(); 3].map(|()| code.reg(Class::B32));
        let (failed, next, finished) = (code.label(), code.label(), code.label());
        let mut e = Entry { code, params: vec![], state, call, top, limit, failed, next: finished, sequences: 0 };
        for to in [state, arena, stride] {
            e.load_param(to);
        }
        let wide = e.code.reg(Class::B64);
        e.load_param(wide);
        e.code.to(calls).cvt((M::U32, M::U64), wide);
        let deep = e.code.reg(Class::B64);
        e.load_param(deep);
        e.code.to(depth).cvt((M::U32, M::U64), deep);
        let all = e.code.reg(Class::B64);
        e.load_param(all);
        let queue = e.address_param();
        let queue = self.has_queue().then_some(queue);
        let [block, threads, thread, worker] = [(); 4].map(|()| e.code.reg(Class::B32));
        e.code.to(block).mov(M::U32, Special::CtaidX);
        e.code.to(threads).mov(M::U32, Special::NtidX);
        e.code.to(thread).mov(M::U32, Special::TidX);
        e.code.to(worker).mad((M::Lo, M::U32), block, threads, thread);
        if self.in_warps() {
            e.code.to(worker).shr(M::U32, worker, 5);
        }
        let (number, base, done) = (e.code.reg(Class::B64), e.code.reg(Class::B64), e.code.reg(Class::Pred));
        let takes_tasks = e.code.reg(Class::Pred);
        match queue {
            None => {
                e.code.to(number).cvt((M::U64, M::U32), worker);
                e.code.to(base).mad((M::Lo, M::U64), number, stride, arena);
                e.code.to(limit).add(M::U64, base, stride);
            }
            Some(queue) => {
                // Arenas of workers that take calls come first.
                let [callers, before, behind] = [(); 3].map(|()| e.code.reg(Class::B32));
                let [small, own] = [(); 2].map(|()| e.code.reg(Class::B64));
                e.code.to(callers).ld((M::Global, M::U32), queue.at(CALLERS));
                e.code.to(small).ld((M::Global, M::U64), queue.at(ARENA));
                e.code.to(takes_tasks).setp((M::Ge, M::U32), worker, callers);
                e.code.to(before).min(M::U32, worker, callers);
                e.code.to(behind).sub(M::U32, worker, before);
                e.code.to(number).cvt((M::U64, M::U32), before);
                e.code.to(base).mad((M::Lo, M::U64), number, stride, arena);
                e.code.to(number).cvt((M::U64, M::U32), behind);
                e.code.to(base).mad((M::Lo, M::U64), number, small, base);
                e.code.to(own).selp(M::U64, small, stride, takes_tasks);
                e.code.to(limit).add(M::U64, base, own);
            }
        }
        // Addresses are loaded before the loop.
        let mut given = vec![];
        e.given(argument, false, &mut given);
        let mut taken = vec![];
        e.taken(result, false, &mut taken);
        let (end, taken_all) = (e.code.label(), e.code.label());
        if queue.is_some() {
            e.code.go_if(takes_tasks, taken_all);
        }
        e.code.place(next);
        e.take_call();
        e.code.to(done).setp((M::Ge, M::U32), call, calls);
        e.code.go_if(done, taken_all);
        e.code.to(top).mov(M::B64, base);
        e.code.to(fuel).mov(M::B64, all);
        let mut regs = vec![];
        e.arguments(argument, &mut given.into_iter(), &mut regs);
        e.pass_bools(&mut regs, &signature.params);
        let given = FrameRegisters { top, limit, depth, fuel, queue, team: None };
        let CallResults { status, mut results, .. } = self.call(&mut e.code, signature, &given, &regs);
        let is_failed = e.code.reg(Class::Pred);
        e.code.to(is_failed).setp((M::Ne, M::U32), status, 0);
        e.code.go_if(is_failed, failed);
        e.take_bools(&mut results, &signature.results);
        e.results(result, &mut results.into_iter(), &mut taken.into_iter());
        e.code.go(finished);
        e.code.place(failed);
        e.flag(1);
        match queue {
            // Other warps may read the arena of a failed call, so it is not used again.
            Some(queue) => {
                end_call(&mut e.code, queue);
                e.code.go(end);
                e.code.place(finished);
                end_call(&mut e.code, queue);
                e.code.go(next);
                e.code.place(taken_all);
                self.take_tasks(&mut e.code, queue, &Worker { base, limit, state, calls, end });
            }
            None => {
                e.code.place(finished);
                e.code.go(next);
                e.code.place(taken_all);
            }
        }
        e.code.place(end);
        e.code.run().ret(());
        let params: Vec<String> = e.params.iter().map(|param| format!(".param .u64 {param}")).collect();
        let (declarations, text) = (e.code.declarations(), &e.code.text);
        format!(".visible .entry {name}({})\n{{\n{declarations}{text}}}\n", params.join(", "))
    }
}

impl Entry {
    pub(super) fn load_param(&mut self, to: Reg) {
        let name = format!("p{}", self.params.len());
        self.code.load_param(to, Type::U64, &name);
        self.params.push(name);
    }

    /// Converts bools to numbers, as parameters of a function.
    pub(super) fn pass_bools(&mut self, regs: &mut [Reg], kinds: &[Kind]) {
        for (reg, _) in regs.iter_mut().zip(kinds).filter(|(_, kind)| **kind == Kind::Bool) {
            *reg = self.code.number(*reg);
        }
    }

    /// Converts the numbers that a function returns to bools.
    pub(super) fn take_bools(&mut self, regs: &mut [Reg], kinds: &[Kind]) {
        for (reg, _) in regs.iter_mut().zip(kinds).filter(|(_, kind)| **kind == Kind::Bool) {
            let pred = self.code.reg(Class::Pred);
            self.code.to(pred).setp((M::Ne, M::U32), *reg, 0);
            *reg = pred;
        }
    }

    /// Takes the number of the next call.
    fn take_call(&mut self) {
        let (call, state) = (self.call, self.state);
        self.code.to(call).mov(M::U32, 0);
        self.code.in_first_lane(|code| code.to(call).atom((M::Global, M::Add, M::U32), state.at(0), 1));
        if self.code.lane.is_some() {
            let first = self.code.lane_value(Kind::Length, call, None);
            self.code.set(Kind::Length, call, first);
        }
    }

    fn address_param(&mut self) -> Reg {
        let to = self.code.reg(Class::B64);
        self.load_param(to);
        to
    }

    /// Loads the addresses of arguments.
    pub(super) fn given(&mut self, shape: &Shape, inside: bool, out: &mut Vec<Reg>) {
        match shape {
            Shape::Int | Shape::Float | Shape::Bool => out.push(self.address_param()),
            Shape::Tuple(parts) => parts.iter().for_each(|part| self.given(part, inside, out)),
            Shape::Seq(element) => {
                out.push(self.address_param());
                if !inside {
                    out.push(self.address_param());
                }
                self.given(element, true, out);
            }
        }
    }

    /// Loads the addresses of results, and for each sequence the number of elements that fit into its memory.
    pub(super) fn taken(&mut self, shape: &Shape, inside: bool, out: &mut Vec<Reg>) {
        match shape {
            Shape::Int | Shape::Float | Shape::Bool => out.push(self.address_param()),
            Shape::Tuple(parts) => parts.iter().for_each(|part| self.taken(part, inside, out)),
            Shape::Seq(element) => {
                (0..3 + usize::from(inside)).for_each(|_| out.push(self.address_param()));
                self.taken(element, true, out);
            }
        }
    }

    pub(super) fn flag(&mut self, bit: u32) {
        let (old, state) = (self.code.reg(Class::B32), self.state);
        self.code.in_first_lane(|code| code.to(old).atom((M::Global, M::Or, M::B32), state.at(4), bit));
    }

    /// Loads the slots of the arguments of a call.
    pub(super) fn arguments(&mut self, shape: &Shape, given: &mut dyn Iterator<Item = Reg>, out: &mut Vec<Reg>) {
        let Some(kind) = base(shape) else {
            match shape {
                Shape::Tuple(parts) => parts.iter().for_each(|part| self.arguments(part, given, out)),
                Shape::Seq(element) => {
                    let (Some(starts), Some(lengths)) = (given.next(), given.next()) else { return };
                    let start = self.code.load_at(Kind::Int, starts, self.call);
                    let length = self.code.load_at(Kind::Int, lengths, self.call);
                    let (start, length) = (self.code.as_length(start), self.code.as_length(length));
                    out.push(length);
                    self.elements(element, start, length, given, out);
                }
                _ => {}
            }
            return;
        };
        if let Some(base) = given.next() {
            out.push(self.code.load_at(kind, base, self.call));
        }
    }

    /// Computes the pointers of elements from an index on. Pointers to inner sequences are stored in the
    /// arena.
    fn elements(&mut self, shape: &Shape, start: Reg, length: Reg, given: &mut dyn Iterator<Item = Reg>, out: &mut Vec<Reg>) {
        if let Some(kind) = base(shape) {
            if let Some(base) = given.next() {
                let bytes = self.code.bytes(kind);
                out.push(self.code.address(base, start, bytes));
            }
            return;
        }
        match shape {
            Shape::Tuple(parts) => parts.iter().for_each(|part| self.elements(part, start, length, given, out)),
            Shape::Seq(element) => {
                let Some(offsets) = given.next() else { return };
                // The inner elements of this call are contiguous: each pointer is that of the first element
                // plus an offset.
                let first = self.code.load_at(Kind::Pointer, offsets, start);
                let (behind, from) = (self.code.reg(Class::B32), self.code.reg(Class::B32));
                self.code.to(behind).add(M::U32, start, length);
                let last = self.code.load_at(Kind::Pointer, offsets, behind);
                let (all, number) = (self.code.reg(Class::B64), self.code.reg(Class::B32));
                self.code.to(all).sub(M::U64, last, first);
                self.code.to(number).cvt((M::U32, M::U64), all);
                self.code.to(from).cvt((M::U32, M::U64), first);
                let mut inner = vec![];
                self.elements(element, from, number, given, &mut inner);
                let mut kinds = vec![];
                slots(element, &mut kinds);
                let lengths = self.room(length, 4);
                let rooms: Vec<Reg> = kinds.iter().map(|_| self.room(length, 8)).collect();
                let (index, done) = (self.code.length(0), self.code.reg(Class::Pred));
                let (head, end) = (self.code.label(), self.code.label());
                self.code.place(head);
                self.code.to(done).setp((M::Ge, M::U32), index, length);
                self.code.go_if(done, end);
                let (at, behind) = (self.code.reg(Class::B32), self.code.reg(Class::B32));
                self.code.to(at).add(M::U32, start, index);
                self.code.to(behind).add(M::U32, at, 1);
                let (from, to) =
                    (self.code.load_at(Kind::Pointer, offsets, at), self.code.load_at(Kind::Pointer, offsets, behind));
                let (size, own, moved) = (self.code.reg(Class::B64), self.code.reg(Class::B32), self.code.reg(Class::B64));
                self.code.to(size).sub(M::U64, to, from);
                self.code.to(own).cvt((M::U32, M::U64), size);
                self.code.store_at(Kind::Length, lengths, index, own);
                self.code.to(moved).sub(M::U64, from, first);
                for ((kind, room), pointer) in kinds.iter().zip(&rooms).zip(&inner) {
                    let bytes = self.code.bytes(*kind);
                    let address = self.code.address(*pointer, moved, bytes);
                    self.code.store_at(Kind::Pointer, *room, index, address);
                }
                self.code.to(index).add(M::U32, index, 1);
                self.code.go(head);
                self.code.place(end);
                out.push(lengths);
                out.extend(rooms);
            }
            _ => {}
        }
    }

    /// Allocates memory of the arena.
    fn room(&mut self, length: Reg, bytes: u32) -> Reg {
        let (pointer, full) = (self.code.copy(Kind::Pointer, self.top), self.code.reg(Class::Pred));
        let (top, failed) = (self.top, self.failed);
        self.code.to(top).mad((M::Wide, M::U32), length, bytes, top);
        self.code.to(top).add(M::U64, top, 7);
        self.code.to(top).and(M::B64, top, -8);
        self.code.to(full).setp((M::Gt, M::U64), top, self.limit);
        self.code.go_if(full, failed);
        pointer
    }

    /// Stores the results of a call.
    pub(super) fn results(&mut self, shape: &Shape, regs: &mut dyn Iterator<Item = Reg>, taken: &mut dyn Iterator<Item = Reg>) {
        if let Some(kind) = base(shape) {
            if let (Some(reg), Some(base)) = (regs.next(), taken.next()) {
                self.code.store_at(kind, base, self.call, reg);
            }
            return;
        }
        match shape {
            Shape::Tuple(parts) => parts.iter().for_each(|part| self.results(part, regs, taken)),
            Shape::Seq(element) => {
                let Some(length) = regs.next() else { return };
                let mut kinds = vec![];
                slots(element, &mut kinds);
                let arrays: Vec<Reg> = kinds.iter().filter_map(|_| regs.next()).collect();
                let path = Path { length, arrays, steps: vec![] };
                self.sequence(element, &path, taken, None);
            }
            _ => {}
        }
    }

    /// Writes code for all sequences that a path leads to.
    fn for_each(&mut self, path: &Path, length: Reg, arrays: &[Reg], depth: usize, write: ForEach<'_>) {
        let Some(&(slot, count)) = path.steps.get(depth) else { return write(self, length, arrays) };
        let (index, done) = (self.code.length(0), self.code.reg(Class::Pred));
        let (head, end) = (self.code.label(), self.code.label());
        self.code.place(head);
        self.code.to(done).setp((M::Ge, M::U32), index, length);
        self.code.go_if(done, end);
        let inner = self.code.load_at(Kind::Length, arrays[slot], index);
        let pointers: Vec<Reg> =
            (0..count).map(|number| self.code.load_at(Kind::Pointer, arrays[slot + 1 + number], index)).collect();
        self.for_each(path, inner, &pointers, depth + 1, write);
        self.code.to(index).add(M::U32, index, 1);
        self.code.go(head);
        self.code.place(end);
    }

    /// Stores all sequences that a path leads to contiguously, and the sequences inside them. `outer` is the
    /// start of the lengths of inner sequences.
    fn sequence(&mut self, element: &Shape, path: &Path, taken: &mut dyn Iterator<Item = Reg>, outer: Option<(Reg, &Path)>) {
        let (Some(counts), Some(places), Some(most)) = (taken.next(), taken.next(), taken.next()) else { return };
        let total = self.code.length(0);
        self.for_each(path, path.length, &path.arrays, 0, &mut |e, length, _| {
            e.code.to(total).add(M::U32, total, length);
        });
        let number = self.sequences;
        self.sequences += 1;
        let [all, place, behind] = [(); 3].map(|()| self.code.reg(Class::B64));
        self.code.to(all).cvt((M::U64, M::U32), total);
        let (state, counter) = (self.state, 8 + 8 * number);
        self.code.to(place).mov(M::U64, 0);
        self.code.in_first_lane(|code| code.to(place).atom((M::Global, M::Add, M::U64), state.at(counter), all));
        if self.code.lane.is_some() {
            let first = self.code.first_value(Kind::Pointer, place);
            self.code.set(Kind::Pointer, place, first);
        }
        let count = self.code.as_int(total);
        self.code.store_at(Kind::Int, counts, self.call, count);
        self.code.store_at(Kind::Pointer, places, self.call, place);
        if let Some((start, path)) = outer
            && let Some(lengths) = taken.next()
        {
            // The lengths of the sequences are a column of the outer sequence, which is known to fit.
            let at = self.code.copy(Kind::Pointer, start);
            let last = path.steps.len() - 1;
            let parents = Path { steps: path.steps[..last].to_vec(), ..path.clone() };
            let (slot, _) = path.steps[last];
            self.for_each(&parents, path.length, &path.arrays, 0, &mut |e, length, arrays| {
                e.column(Kind::Length, arrays[slot], length, lengths, at, true);
                e.advance(at, length);
            });
        }
        let (fits, beyond) = (self.code.label(), self.code.reg(Class::Pred));
        self.code.to(behind).add(M::U64, place, all);
        self.code.to(beyond).setp((M::Gt, M::U64), behind, most);
        self.code.go_unless(beyond, fits);
        self.flag(2);
        let next = self.next;
        // Nested sequences are counted in the next run.
        self.code.go(next);
        self.code.place(fits);
        self.columns(element, path, place, &mut 0, taken);
    }

    /// Stores the columns of elements from an index on.
    fn columns(&mut self, shape: &Shape, path: &Path, place: Reg, slot: &mut usize, taken: &mut dyn Iterator<Item = Reg>) {
        if let Some(kind) = base(shape) {
            let Some(base) = taken.next() else { return };
            let (at, own) = (self.code.copy(Kind::Pointer, place), *slot);
            self.for_each(path, path.length, &path.arrays, 0, &mut |e, length, arrays| {
                e.column(kind, arrays[own], length, base, at, false);
                e.advance(at, length);
            });
            *slot += 1;
            return;
        }
        match shape {
            Shape::Tuple(parts) => parts.iter().for_each(|part| self.columns(part, path, place, slot, taken)),
            Shape::Seq(element) => {
                let mut kinds = vec![];
                slots(element, &mut kinds);
                let mut inner = path.clone();
                inner.steps.push((*slot, kinds.len()));
                self.sequence(element, &inner, taken, Some((place, &inner)));
                *slot += 1 + kinds.len();
            }
            _ => {}
        }
    }

    fn advance(&mut self, at: Reg, length: Reg) {
        let wide = self.code.reg(Class::B64);
        self.code.to(wide).cvt((M::U64, M::U32), length);
        self.code.to(at).add(M::U64, at, wide);
    }

    /// Copies an array to a column from an index on; lengths become ints.
    fn column(&mut self, kind: Kind, array: Reg, length: Reg, base: Reg, at: Reg, is_length: bool) {
        let to_kind = if is_length { Kind::Int } else { kind };
        let bytes = self.code.bytes(to_kind);
        let to = self.code.address(base, at, bytes);
        self.code.sync();
        let (index, done) = (self.code.length(0), self.code.reg(Class::Pred));
        let step = self.code.length(1);
        if let Some(lane) = self.code.lane {
            self.code.to(index).mov(M::U32, lane);
            self.code.to(step).mov(M::U32, LANES);
        }
        if let Some(team) = self.code.team {
            self.code.to(index).mad((M::Lo, M::U32), team.own, LANES, index);
            self.code.to(step).mul((M::Lo, M::U32), team.warps, LANES);
        }
        let (head, end) = (self.code.label(), self.code.label());
        self.code.place(head);
        self.code.to(done).setp((M::Ge, M::U32), index, length);
        self.code.go_if(done, end);
        let mut value = self.code.load_at(kind, array, index);
        if is_length {
            value = self.code.as_int(value);
        }
        self.code.store_at(to_kind, to, index, value);
        self.code.to(index).add(M::U32, index, step);
        self.code.go(head);
        self.code.place(end);
        self.code.sync();
    }
}

fn base(shape: &Shape) -> Option<Kind> {
    match shape {
        Shape::Int => Some(Kind::Int),
        Shape::Float => Some(Kind::Float),
        Shape::Bool => Some(Kind::Bool),
        Shape::Tuple(_) | Shape::Seq(_) => None,
    }
}
