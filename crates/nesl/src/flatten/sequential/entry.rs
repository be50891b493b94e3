//! The kernel: workers take calls one by one, load their arguments, call the function and store its results.
//! A worker is a thread or a warp.

use super::code::{Class, Code, Kind, Reg, emit, slots};
use super::lanes::LANES;
use super::tasks::{Worker, end_call};
use super::{CallResults, FrameRegisters, Module, Signature};
use crate::vcode::Shape;
use crate::vcode::task::{ARENA, CALLERS};

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
        emit!(e.code, "cvt.u32.u64 {calls}, {wide};");
        let deep = e.code.reg(Class::B64);
        e.load_param(deep);
        emit!(e.code, "cvt.u32.u64 {depth}, {deep};");
        let all = e.code.reg(Class::B64);
        e.load_param(all);
        let queue = e.address_param();
        let queue = self.has_queue().then_some(queue);
        let [block, threads, thread, worker] = [(); 4].map(|()| e.code.reg(Class::B32));
        emit!(e.code, "mov.u32 {block}, %ctaid.x;");
        emit!(e.code, "mov.u32 {threads}, %ntid.x;");
        emit!(e.code, "mov.u32 {thread}, %tid.x;");
        emit!(e.code, "mad.lo.u32 {worker}, {block}, {threads}, {thread};");
        if self.in_warps() {
            emit!(e.code, "shr.u32 {worker}, {worker}, 5;");
        }
        let (number, base, done) = (e.code.reg(Class::B64), e.code.reg(Class::B64), e.code.reg(Class::Pred));
        let takes_tasks = e.code.reg(Class::Pred);
        match queue {
            None => {
                emit!(e.code, "cvt.u64.u32 {number}, {worker};");
                emit!(e.code, "mad.lo.u64 {base}, {number}, {stride}, {arena};");
                emit!(e.code, "add.u64 {limit}, {base}, {stride};");
            }
            Some(queue) => {
                // Arenas of workers that take calls come first.
                let [callers, before, behind] = [(); 3].map(|()| e.code.reg(Class::B32));
                let [small, own] = [(); 2].map(|()| e.code.reg(Class::B64));
                emit!(e.code, "ld.global.u32 {callers}, [{queue}+{CALLERS}];");
                emit!(e.code, "ld.global.u64 {small}, [{queue}+{ARENA}];");
                emit!(e.code, "setp.ge.u32 {takes_tasks}, {worker}, {callers};");
                emit!(e.code, "min.u32 {before}, {worker}, {callers};");
                emit!(e.code, "sub.u32 {behind}, {worker}, {before};");
                emit!(e.code, "cvt.u64.u32 {number}, {before};");
                emit!(e.code, "mad.lo.u64 {base}, {number}, {stride}, {arena};");
                emit!(e.code, "cvt.u64.u32 {number}, {behind};");
                emit!(e.code, "mad.lo.u64 {base}, {number}, {small}, {base};");
                emit!(e.code, "selp.u64 {own}, {small}, {stride}, {takes_tasks};");
                emit!(e.code, "add.u64 {limit}, {base}, {own};");
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
        emit!(e.code, "setp.ge.u32 {done}, {call}, {calls};");
        e.code.go_if(done, taken_all);
        emit!(e.code, "mov.b64 {top}, {base};");
        emit!(e.code, "mov.b64 {fuel}, {all};");
        let mut regs = vec![];
        e.arguments(argument, &mut given.into_iter(), &mut regs);
        e.pass_bools(&mut regs, &signature.params);
        let given = FrameRegisters { top, limit, depth, fuel, queue, team: None };
        let CallResults { status, mut results, .. } = self.call(&mut e.code, signature, &given, &regs);
        let is_failed = e.code.reg(Class::Pred);
        emit!(e.code, "setp.ne.u32 {is_failed}, {status}, 0;");
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
        emit!(e.code, "ret;");
        let params: Vec<String> = e.params.iter().map(|param| format!(".param .u64 {param}")).collect();
        let (declarations, text) = (e.code.declarations(), &e.code.text);
        format!(".visible .entry {name}({})\n{{\n{declarations}{text}}}\n", params.join(", "))
    }
}

impl Entry {
    pub(super) fn load_param(&mut self, to: Reg) {
        let name = format!("p{}", self.params.len());
        emit!(self.code, "ld.param.u64 {to}, [{name}];");
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
            emit!(self.code, "setp.ne.u32 {pred}, {reg}, 0;");
            *reg = pred;
        }
    }

    /// Takes the number of the next call.
    fn take_call(&mut self) {
        let (call, state) = (self.call, self.state);
        emit!(self.code, "mov.u32 {call}, 0;");
        self.code.in_first_lane(|code| emit!(code, "atom.global.add.u32 {call}, [{state}], 1;"));
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
        self.code.in_first_lane(|code| emit!(code, "atom.global.or.b32 {old}, [{state}+4], {bit};"));
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
                emit!(self.code, "add.u32 {behind}, {start}, {length};");
                let last = self.code.load_at(Kind::Pointer, offsets, behind);
                let (all, number) = (self.code.reg(Class::B64), self.code.reg(Class::B32));
                emit!(self.code, "sub.u64 {all}, {last}, {first};");
                emit!(self.code, "cvt.u32.u64 {number}, {all};");
                emit!(self.code, "cvt.u32.u64 {from}, {first};");
                let mut inner = vec![];
                self.elements(element, from, number, given, &mut inner);
                let mut kinds = vec![];
                slots(element, &mut kinds);
                let lengths = self.room(length, 4);
                let rooms: Vec<Reg> = kinds.iter().map(|_| self.room(length, 8)).collect();
                let (index, done) = (self.code.length(0), self.code.reg(Class::Pred));
                let (head, end) = (self.code.label(), self.code.label());
                self.code.place(head);
                emit!(self.code, "setp.ge.u32 {done}, {index}, {length};");
                self.code.go_if(done, end);
                let (at, behind) = (self.code.reg(Class::B32), self.code.reg(Class::B32));
                emit!(self.code, "add.u32 {at}, {start}, {index};");
                emit!(self.code, "add.u32 {behind}, {at}, 1;");
                let (from, to) =
                    (self.code.load_at(Kind::Pointer, offsets, at), self.code.load_at(Kind::Pointer, offsets, behind));
                let (size, own, moved) = (self.code.reg(Class::B64), self.code.reg(Class::B32), self.code.reg(Class::B64));
                emit!(self.code, "sub.u64 {size}, {to}, {from};");
                emit!(self.code, "cvt.u32.u64 {own}, {size};");
                self.code.store_at(Kind::Length, lengths, index, own);
                emit!(self.code, "sub.u64 {moved}, {from}, {first};");
                for ((kind, room), pointer) in kinds.iter().zip(&rooms).zip(&inner) {
                    let bytes = self.code.bytes(*kind);
                    let address = self.code.address(*pointer, moved, bytes);
                    self.code.store_at(Kind::Pointer, *room, index, address);
                }
                emit!(self.code, "add.u32 {index}, {index}, 1;");
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
        emit!(self.code, "mad.wide.u32 {top}, {length}, {bytes}, {top};");
        emit!(self.code, "add.u64 {top}, {top}, 7;");
        emit!(self.code, "and.b64 {top}, {top}, -8;");
        emit!(self.code, "setp.gt.u64 {full}, {top}, {};", self.limit);
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
        emit!(self.code, "setp.ge.u32 {done}, {index}, {length};");
        self.code.go_if(done, end);
        let inner = self.code.load_at(Kind::Length, arrays[slot], index);
        let pointers: Vec<Reg> =
            (0..count).map(|number| self.code.load_at(Kind::Pointer, arrays[slot + 1 + number], index)).collect();
        self.for_each(path, inner, &pointers, depth + 1, write);
        emit!(self.code, "add.u32 {index}, {index}, 1;");
        self.code.go(head);
        self.code.place(end);
    }

    /// Stores all sequences that a path leads to contiguously, and the sequences inside them. `outer` is the
    /// start of the lengths of inner sequences.
    fn sequence(&mut self, element: &Shape, path: &Path, taken: &mut dyn Iterator<Item = Reg>, outer: Option<(Reg, &Path)>) {
        let (Some(counts), Some(places), Some(most)) = (taken.next(), taken.next(), taken.next()) else { return };
        let total = self.code.length(0);
        self.for_each(path, path.length, &path.arrays, 0, &mut |e, length, _| {
            emit!(e.code, "add.u32 {total}, {total}, {length};");
        });
        let number = self.sequences;
        self.sequences += 1;
        let [all, place, behind] = [(); 3].map(|()| self.code.reg(Class::B64));
        emit!(self.code, "cvt.u64.u32 {all}, {total};");
        let (state, counter) = (self.state, 8 + 8 * number);
        emit!(self.code, "mov.u64 {place}, 0;");
        self.code.in_first_lane(|code| emit!(code, "atom.global.add.u64 {place}, [{state}+{counter}], {all};"));
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
        emit!(self.code, "add.u64 {behind}, {place}, {all};");
        emit!(self.code, "setp.gt.u64 {beyond}, {behind}, {most};");
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
        emit!(self.code, "cvt.u64.u32 {wide}, {length};");
        emit!(self.code, "add.u64 {at}, {at}, {wide};");
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
            emit!(self.code, "mov.u32 {index}, {lane};");
            emit!(self.code, "mov.u32 {step}, {LANES};");
        }
        if let Some(team) = self.code.team {
            emit!(self.code, "mad.lo.u32 {index}, {}, {LANES}, {index};", team.own);
            emit!(self.code, "mul.lo.u32 {step}, {}, {LANES};", team.warps);
        }
        let (head, end) = (self.code.label(), self.code.label());
        self.code.place(head);
        emit!(self.code, "setp.ge.u32 {done}, {index}, {length};");
        self.code.go_if(done, end);
        let mut value = self.code.load_at(kind, array, index);
        if is_length {
            value = self.code.as_int(value);
        }
        self.code.store_at(to_kind, to, index, value);
        emit!(self.code, "add.u32 {index}, {index}, {step};");
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
