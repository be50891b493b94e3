//! Loops that the threads of a block share.
//!
//! A firing with a long loop runs in a block of its own. All threads execute the same code, except such
//! loops. There each thread runs a share of the rounds, and sums over the rounds are reduced over the threads
//! after the loop. Elements of an array of integers that rounds add to are counted in shared memory. Only
//! thread 0 pushes, except in loops whose rounds push independently.
//!
//! If a loop is very long, several blocks run *parts* of it and store their partial results. Another kernel
//! adds those up and runs the rest of the firing. Integers of an array are instead added to a common total
//! with atomics.
//!
//! If a round pops one word, a thread takes neighbouring rounds and loads their words together. It can
//! prefetch the words of its next rounds before it runs the current ones.

use super::cooperation::{Cooperation, Fold, LoopShare, PartSize, Rows};
use super::position::{ItemCounts, TapePosition};
use super::reason::Reason;
use super::stmt::Reachability;
use super::translator::{CountedLoop, Local, Translator};
use super::value::{Atom, Leaf, Ref, Term};
use crate::language::core::{
    Access, Binary, Expr, ExprKind, FunctionId, Layout, Place, Program, Root, Stmt, StmtKind, Type, Value,
};
use crate::language::core::{each_index, each_operand};
use broadloom_scalar::{
    AtomicOp, Element, Literal, Memory, Order, Scope, Type as ScalarType, Unroll, Value as ScalarValue, Variable,
};
use broadloom_skeleton::cost::dataflow;
use std::rc::Rc;

/// Effects of the rounds of a loop on variables outside of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LoopEffects {
    scalars: Vec<(usize, Fold)>,
    arrays: Vec<usize>,
}

/// Walks over the body of a loop.
#[derive(Default)]
struct LoopWalk {
    shape: LoopEffects,
    own: Vec<usize>,
    reads: Vec<usize>,
    fits: bool,
    /// Arrays outside of the loop whose elements the rounds set, if requested.
    outs: Option<Vec<usize>>,
    /// Nesting depth of conditions and loops within the body.
    nesting: u32,
    pushes: bool,
    /// True if it peeks, or calls a function that may.
    peeks: bool,
}

/// Returns the integers and arrays of integers to which the rounds of a loop add. Returns `None` if the
/// rounds do anything else or depend on anything but the items that they pop.
pub(super) fn sums_of(program: &Program, id: FunctionId, body: &Stmt) -> Option<Vec<usize>> {
    let found = shape(program, body)?;
    let mut walk = LoopWalk { fits: true, ..LoopWalk::default() };
    walk.stmt(program, body);
    let locals = &program.functions[id].locals;
    let is_sum = |(local, fold): &(usize, Fold)| *fold == Fold::Add && locals[*local].ty == Type::Int;
    let fits = !walk.pushes && !walk.peeks && found.scalars.iter().all(is_sum);
    let sums = found.scalars.iter().map(|(local, _)| *local).chain(found.arrays.iter().copied());
    Some(sums.collect::<Vec<usize>>()).filter(|sums| fits && !sums.is_empty())
}

/// Returns the arrays outside of a loop whose elements its rounds set, and whether the rounds push. Returns
/// `None` if the rounds have other effects outside of the loop.
pub(super) fn main_shape(program: &Program, body: &Stmt) -> Option<(Vec<usize>, bool)> {
    let mut walk = LoopWalk { fits: true, outs: Some(vec![]), ..LoopWalk::default() };
    walk.stmt(program, body);
    let mut outs = walk.outs?;
    outs.sort_unstable();
    outs.dedup();
    let untouched = outs.iter().all(|array| !walk.reads.contains(array));
    (walk.fits && untouched && walk.shape == LoopEffects::default()).then_some((outs, walk.pushes))
}

fn fold_of(operator: Binary, ty: &Type) -> Option<Fold> {
    Some(match (operator, ty) {
        (Binary::Add, Type::Int | Type::Float | Type::Double) => Fold::Add,
        (Binary::Multiply, Type::Int | Type::Float | Type::Double) => Fold::Multiply,
        (Binary::BitAnd, Type::Int) => Fold::And,
        (Binary::BitOr, Type::Int) => Fold::Or,
        (Binary::BitXor, Type::Int) => Fold::Xor,
        _ => return None,
    })
}

/// Returns the effects of the rounds of a loop if they can run in any order.
fn shape(program: &Program, body: &Stmt) -> Option<LoopEffects> {
    let mut walk = LoopWalk { fits: true, ..LoopWalk::default() };
    walk.stmt(program, body);
    let LoopWalk { shape, reads, fits, .. } = walk;
    let untouched = shape.scalars.iter().map(|(local, _)| local).chain(&shape.arrays).all(|local| !reads.contains(local));
    let once = shape.scalars.iter().all(|(local, fold)| shape.scalars.iter().all(|(other, how)| other != local || how == fold));
    (fits && untouched && once && shape.scalars.iter().all(|(local, _)| !shape.arrays.contains(local))).then_some(shape)
}

impl LoopWalk {
    fn scalar(&mut self, local: usize, fold: Fold) {
        if !self.shape.scalars.contains(&(local, fold)) {
            self.shape.scalars.push((local, fold));
        }
    }

    /// Records an update of a place. Returns whether the update can be shared.
    fn update(&mut self, program: &Program, place: &Place, fold: Option<Fold>) -> bool {
        each_index(place, &mut |index| self.expr(program, index));
        match (place.root, &place.path[..], fold) {
            (Root::Local(local), _, _) if self.own.contains(&local) => true,
            (Root::Local(local), [], Some(fold)) => {
                self.scalar(local, fold);
                true
            }
            (Root::Local(local), [Access::Index(_)], Some(Fold::Add)) if place.ty == Type::Int => {
                if !self.shape.arrays.contains(&local) {
                    self.shape.arrays.push(local);
                }
                true
            }
            _ => false,
        }
    }

    fn stmt(&mut self, program: &Program, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Block(inner) => inner.iter().for_each(|stmt| self.stmt(program, stmt)),
            StmtKind::Declare(local, declared, value) => {
                declared.lengths.iter().chain(value).for_each(|expr| self.expr(program, expr));
                self.own.push(*local);
            }
            StmtKind::Assign(place, Some(operator), value) => {
                self.fits &= self.update(program, place, fold_of(*operator, &place.ty));
                self.expr(program, value);
            }
            StmtKind::Assign(place, None, value) => {
                let is_own = matches!(place.root, Root::Local(local) if self.own.contains(&local));
                let reads =
                    |expr: &Expr| matches!(&expr.kind, ExprKind::Read(read) if read.root == place.root && read.path.is_empty());
                match &value.kind {
                    ExprKind::Binary(operator, ty, left, right)
                        if !is_own && place.path.is_empty() && (reads(left) || reads(right)) =>
                    {
                        self.fits &= self.update(program, place, fold_of(*operator, ty));
                        self.expr(program, if reads(left) { right } else { left });
                    }
                    _ => {
                        let array = match (place.root, &place.path[..]) {
                            (Root::Local(array), [Access::Index(_)]) if !is_own && self.nesting == 0 => Some(array),
                            _ => None,
                        };
                        match (array, &mut self.outs) {
                            (Some(array), Some(outs)) => {
                                outs.push(array);
                                each_index(place, &mut |index| self.expr(program, index));
                            }
                            _ => self.fits &= is_own && self.update(program, place, None),
                        }
                        self.expr(program, value);
                    }
                }
            }
            StmtKind::Expr(Expr { kind: ExprKind::Step(place, ..), .. }) => {
                self.fits &= self.update(program, place, fold_of(Binary::Add, &place.ty));
            }
            StmtKind::Expr(value) => self.expr(program, value),
            StmtKind::Push(value) => {
                self.pushes = true;
                self.expr(program, value);
            }
            StmtKind::If(condition, then, otherwise) => {
                self.nesting += 1;
                self.expr(program, condition);
                self.stmt(program, then);
                otherwise.iter().for_each(|stmt| self.stmt(program, stmt));
                self.nesting -= 1;
            }
            StmtKind::Loop(condition, step, body, _) => {
                self.nesting += 1;
                condition.iter().for_each(|condition| self.expr(program, condition));
                step.iter().for_each(|stmt| self.stmt(program, stmt));
                self.stmt(program, body);
                self.nesting -= 1;
            }
            StmtKind::Print(..)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_)
            | StmtKind::Send(_)
            | StmtKind::Create(..)
            | StmtKind::Split(_)
            | StmtKind::Join(_)
            | StmtKind::Enqueue(_) => self.fits = false,
        }
    }

    fn expr(&mut self, program: &Program, expr: &Expr) {
        match &expr.kind {
            ExprKind::Read(place) => {
                if let Root::Local(local) = place.root {
                    self.reads.push(local);
                }
                each_index(place, &mut |index| self.expr(program, index));
            }
            ExprKind::Step(place, ..) => {
                // The value of a step is used, which is only allowed for a variable of the round.
                self.fits &= matches!(place.root, Root::Local(local) if self.own.contains(&local));
                each_index(place, &mut |index| self.expr(program, index));
            }
            ExprKind::Call(id, args) => {
                self.peeks = true;
                self.fits &= !writes_arguments(program, *id, args.len());
            }
            ExprKind::Peek(_) => self.peeks = true,
            _ => {}
        }
        each_operand(expr, &mut |operand| self.expr(program, operand));
    }
}

fn writes_arguments(program: &Program, id: FunctionId, count: usize) -> bool {
    program.functions[id].written.iter().take(count).any(|written| *written)
}

/// Calls a function with every loop at the top level of statements.
fn each_loop<'s>(body: &'s [Stmt], visit: &mut dyn FnMut(&'s Stmt)) {
    for stmt in body {
        match &stmt.kind {
            StmtKind::Loop(_, _, body, _) => visit(body),
            StmtKind::Block(inner) => each_loop(inner, visit),
            _ => {}
        }
    }
}

/// Returns whether a function has a loop at its top level that threads can share, and the arrays in which
/// such loops count.
pub(super) fn shared_loops(program: &Program, id: FunctionId) -> (bool, Vec<usize>) {
    let (mut any, mut arrays) = (false, vec![]);
    if let Some(body) = &program.functions[id].body {
        each_loop(body, &mut |body| {
            if let Some(shape) = shape(program, body) {
                any |= !shape.scalars.is_empty() || !shape.arrays.is_empty();
                arrays.extend(shape.arrays);
            }
        });
    }
    (any, arrays)
}

impl<'a> Translator<'a> {
    /// Returns the shape of a loop that the threads share: one at the top level of `work` with enough rounds.
    pub(super) fn shared_shape(&mut self, body: &'a Stmt, rounds: u32) -> Option<LoopEffects> {
        let is_open = self.frames.last()?.left.is_none();
        self.cooperation.filter(|_| self.nesting == 1 && self.frames.len() == 1 && !self.sharing && is_open)?;
        let shape = shape(self.subject.program, body)?;
        let moved = self.moved(body);
        let fixed = |head: &TapePosition| matches!(head, TapePosition::Fixed(_));
        let counted = moved.pops.is_some() && moved.pushes.is_some() && fixed(&self.popped) && fixed(&self.pushed);
        let locals = &self.frames.last()?.locals;
        let is_variable = |local: &usize| {
            let own = &locals[*local];
            let place = own.place.as_ref().filter(|_| own.set && own.flag.is_none());
            place.is_some_and(|place| matches!(place.store[place.first], Leaf::Variable(_)))
        };
        let arrays = shape.arrays.iter().all(|local| self.shared_arrays.contains(local));
        let fits = rounds >= dataflow::SHARED_LOOP_ROUNDS
            && counted
            && arrays
            && shape.scalars.iter().all(|(local, _)| is_variable(local));
        fits.then_some(shape)
    }

    /// Declares an array in shared memory, initialised to zero.
    pub(super) fn shared_array(&mut self, local: usize, layout: &Layout) -> Result<Option<Ref>, Reason> {
        let Some(cooperation) = self.cooperation.filter(|_| self.shared_arrays.contains(&local)) else { return Ok(None) };
        let Layout::Array(inner, length) = layout else { return Ok(None) };
        if **inner != Layout::Scalar(Type::Int)
            || *length > dataflow::SHARED_ARRAY_ELEMENTS
            || self.nesting > 0
            || self.frames.len() > 1
        {
            return Err("an array that rounds of a loop add to is not one of integers at the top of its function".into());
        }
        let b = self.b;
        let zeros = |length: u32| {
            let memory = (cooperation.array)(length);
            b.for_step(cooperation.thread, b.literal(length as i32), cooperation.threads, Unroll::Never, |index| {
                b.store(memory, index, b.literal(0i32));
            });
            memory
        };
        let memory = zeros(*length);
        if cooperation.copies > 1 {
            self.counters.push((local, zeros(*length * cooperation.copies)));
        }
        b.barrier();
        let store = Rc::new(vec![Leaf::Memory(memory, 0, Element::I32)]);
        Ok(Some(Ref { layout: layout.clone(), store, first: 0, at: Atom::Known(Value::Int(0)) }))
    }

    /// Returns whether a place is in an array in shared memory.
    pub(super) fn is_shared(&self, place: &Place) -> bool {
        let is_own = matches!(place.root, Root::Local(local) if self.shared_arrays.contains(&local));
        is_own && self.cooperation.is_some() && self.frames.len() == 1
    }

    /// Adds to an element of an array in shared memory.
    pub(super) fn add_to_shared(
        &mut self,
        place: &'a Place,
        value: impl FnOnce(&mut Self) -> Result<Atom, Reason>,
    ) -> Result<(), Reason> {
        if !self.sharing {
            return Err("it changes an array that rounds of a loop add to outside of the loop".into());
        }
        let at = self.resolve(place)?;
        let value = value(self)?;
        let Leaf::Memory(memory, ..) = at.store[at.first] else { return Err("it adds up in an array that is not shared".into()) };
        let (b, index, value) = (self.b, self.made(&at.at), self.made(&value));
        let own = self.cooperation.map(|cooperation| {
            let measure = cooperation.measure.get();
            cooperation.measure.set(PartSize { added: measure.added.saturating_add(1), ..measure });
            b.rem(cooperation.thread, cooperation.copies as i32)
        });
        let counters = self.counters.iter().find(|(local, _)| Root::Local(*local) == place.root);
        let (memory, index) = match (counters, own, self.cooperation) {
            (Some((_, counters)), Some(own), Some(cooperation)) => {
                (*counters, b.add(b.mul(index, cooperation.copies as i32), own))
            }
            _ => (memory, index),
        };
        // Adding unsigned integers by ones has an instruction of its own.
        let memory = b.shared_view(memory, Element::U32, 0u32);
        b.atomic(AtomicOp::Add, memory, index, b.convert(value, ScalarType::U32), Order::Relaxed(Scope::Block));
        Ok(())
    }

    fn folded(&self, fold: Fold, left: ScalarValue, right: ScalarValue) -> ScalarValue {
        let b = self.b;
        match fold {
            Fold::Add => b.add(left, right),
            Fold::Multiply => b.mul(left, right),
            Fold::And => b.and(left, right),
            Fold::Or => b.or(left, right),
            Fold::Xor => b.xor(left, right),
        }
    }

    fn identity(&self, fold: Fold, element: Element) -> ScalarValue {
        let b = self.b;
        match fold {
            Fold::Add | Fold::Or | Fold::Xor => b.literal(Literal::zero(element)),
            Fold::Multiply => match element {
                Element::F32 => b.literal(1.0f32),
                Element::F64 => b.literal(1.0f64),
                _ => b.literal(1i32),
            },
            Fold::And => b.literal(-1i32),
        }
    }

    /// Writes a loop that the threads share.
    pub(super) fn shared_loop(
        &mut self,
        body: &'a Stmt,
        shape: &LoopEffects,
        counted: CountedLoop,
    ) -> Result<Reachability, Reason> {
        let Some(cooperation) = self.cooperation else { return Err("a loop is shared by one thread".into()) };
        self.shared_rounds(&cooperation, body, shape, counted)
    }

    fn shared_rounds(
        &mut self,
        cooperation: &Cooperation<'a>,
        body: &'a Stmt,
        shape: &LoopEffects,
        counted: CountedLoop,
    ) -> Result<Reachability, Reason> {
        let CountedLoop { local, start, stride, count } = counted;
        let b = self.b;
        let moved = self.moved(body);
        let heads = (self.popped.clone(), self.pushed.clone());
        let end = start.wrapping_add((count as i32).wrapping_mul(stride));
        let adds_up = !shape.scalars.is_empty() || !shape.arrays.is_empty();
        // Firings with merged loops: the loops contain all their pops.
        let firings = if adds_up && !self.split { cooperation.firings } else { 1 };
        let total = u32::try_from(u64::from(count) * u64::from(firings)).ok().filter(|total| *total < 1 << 30);
        let Some(total) = total else { return Err("its loops are too long together".into()) };
        if firings > 1 {
            let is_start = matches!(heads.0, TapePosition::Fixed(Atom::Known(Value::Int(0))));
            let all = moved.pops.map(|pops| u64::from(pops) * u64::from(total));
            if !is_start || all != Some(u64::from(self.window.pop)) {
                return Err("it pops items outside of its loop".into());
            }
        }
        let share = if adds_up && !self.split { cooperation.share } else { LoopShare::Whole };
        self.split |= adds_up;
        if share == LoopShare::Whole && cooperation.share == LoopShare::Part {
            return Err("a loop before the one that is split is long as well".into());
        }
        // Each thread adds up separately.
        let mut own: Vec<(usize, Fold, Ref, Variable, Element)> = vec![];
        for (acc, fold) in &shape.scalars {
            let entry = &mut self.frame()?.locals[*acc];
            let Some(place) = entry.place.clone() else { return Err("it adds up in a constant".into()) };
            let Leaf::Variable(variable) = place.store[place.first] else { return Err("it adds up in an array".into()) };
            let element = variable.ty().element();
            let private = b.variable_with(self.identity(*fold, element));
            let store = Rc::new(vec![Leaf::Variable(private)]);
            self.frame()?.locals[*acc].place = Some(Ref { store, first: 0, ..place.clone() });
            own.push((*acc, *fold, place, private, element));
        }
        let mut arrays: Vec<(Memory, u32)> = vec![];
        for array in &shape.arrays {
            let place = self.frame()?.locals[*array].place.clone();
            let (Some(Leaf::Memory(memory, ..)), Some(Layout::Array(_, length))) =
                (place.as_ref().map(|place| place.store[place.first].clone()), place.as_ref().map(|place| &place.layout))
            else {
                return Err("it adds up in an array that is not shared".into());
            };
            arrays.push((memory, *length));
        }
        if share != LoopShare::Whole && own.iter().any(|(.., element)| *element == Element::F64) {
            return Err("it adds up doubles".into());
        }
        let to_word =
            |value: ScalarValue| if b.type_of(value).element() == Element::F32 { b.bitcast(value, Element::I32) } else { value };
        let of_word = |word: ScalarValue, element: Element| if element == Element::F32 { b.bitcast(word, element) } else { word };
        if !arrays.is_empty() {
            b.barrier();
        }
        let counters: Vec<Option<Memory>> = shape
            .arrays
            .iter()
            .map(|array| self.counters.iter().find(|(local, _)| local == array).map(|(_, counters)| *counters))
            .collect();
        // Integers are added to the total of all parts. Floats are added up in the order of the parts.
        let is_sum =
            |(_, fold, _, _, element): &(usize, Fold, Ref, Variable, Element)| *fold == Fold::Add && *element == Element::I32;
        let adds = share != LoopShare::Whole && !arrays.is_empty() && own.iter().all(is_sum);
        let keep = |slot: ScalarValue, word: ScalarValue| match adds {
            true => (cooperation.add)(slot, word),
            false => (cooperation.keep)(slot, word),
        };
        let parts = if adds { 1 } else { cooperation.parts };
        if share == LoopShare::Rest {
            for (slot, (_, fold, _, private, element)) in own.iter().enumerate() {
                b.for_step(cooperation.thread, b.literal(parts), cooperation.threads, Unroll::Never, |part| {
                    let word = (cooperation.kept)(part, b.literal(slot as i32));
                    b.set(*private, self.folded(*fold, b.get(*private), of_word(word, *element)));
                });
            }
            let mut slot = own.len() as i32;
            for (memory, length) in &arrays {
                b.for_step(cooperation.thread, b.literal(*length as i32), cooperation.threads, Unroll::Never, |index| {
                    let sum = b.variable_with(b.load(*memory, index));
                    b.for_step(0, b.literal(parts), 1, Unroll::By(4), |part| {
                        b.set(sum, b.add(b.get(sum), (cooperation.kept)(part, b.add(index, slot))));
                    });
                    b.store(*memory, index, b.get(sum));
                });
                slot += *length as i32;
            }
        } else {
            let rounds = SharedRounds { body, counted, total, firings, moved, heads: heads.clone() };
            self.sharing = true;
            let inner = self.run_rounds(cooperation, share, &rounds);
            self.sharing = false;
            inner?;
        }
        if share == LoopShare::Part {
            for (slot, (_, fold, _, private, _)) in own.iter().enumerate() {
                let all = (cooperation.reduce)(*fold, b.get(*private));
                b.if_then(b.eq(cooperation.thread, 0), || keep(b.literal(slot as i32), to_word(all)));
            }
        }
        if share != LoopShare::Rest && (share == LoopShare::Part || counters.iter().any(Option::is_some)) {
            let mut slot = own.len() as i32;
            if !arrays.is_empty() {
                b.barrier();
            }
            for ((memory, length), counters) in arrays.iter().zip(&counters) {
                b.for_step(cooperation.thread, b.literal(*length as i32), cooperation.threads, Unroll::Never, |index| {
                    let sum = b.variable_with(b.load(*memory, index));
                    if let Some(counters) = counters {
                        // Neighbouring threads begin with different copies, which are in different banks.
                        let (copies, first) = (cooperation.copies as i32, b.mul(index, cooperation.copies as i32));
                        b.for_step(0, b.literal(copies), 1, Unroll::By(8), |copy| {
                            let copy = b.rem(b.add(copy, cooperation.thread), copies);
                            b.set(sum, b.add(b.get(sum), b.load(*counters, b.add(first, copy))));
                        });
                    }
                    match share {
                        LoopShare::Part => keep(b.add(index, slot), b.get(sum)),
                        _ => b.store(*memory, index, b.get(sum)),
                    }
                });
                slot += *length as i32;
            }
            if share == LoopShare::Part {
                let measure = cooperation.measure.get();
                cooperation.measure.set(PartSize { words: slot as u32, adds, rounds: total, ..measure });
                self.stopped = true;
                return Ok(Reachability::Closed);
            }
        }
        for (acc, fold, place, private, _) in own {
            let all = (cooperation.reduce)(fold, b.get(private));
            let old = self.made(&self.load_leaf(&place.store[place.first], &place.at));
            let new = self.folded(fold, old, all);
            self.frame()?.locals[acc].place = Some(place.clone());
            self.store_part(&place, 0, &Atom::ScalarValue(new))?;
        }
        if !arrays.is_empty() {
            b.barrier();
        }
        let behind = |translator: &Self, head: &TapePosition, moved: Option<u32>| match (head, moved) {
            (TapePosition::Fixed(_), Some(moved)) => translator.advanced(head, (moved * total) as i32),
            _ => head.clone(),
        };
        self.popped = behind(self, &heads.0, moved.pops);
        self.pushed = behind(self, &heads.1, moved.pushes);
        let place = self.frame()?.locals[local].place.clone();
        if let Some(place) = place {
            self.store(&place, &Term::Atom(Atom::Known(Value::Int(end))))?;
            let entry = &mut self.frame()?.locals[local];
            entry.known = Some(Value::Int(end));
            entry.set = true;
        }
        Ok(Reachability::Open)
    }

    /// Writes the rounds of a part, or of a whole loop.
    fn run_rounds(&mut self, cooperation: &Cooperation<'a>, share: LoopShare, rounds: &SharedRounds<'a>) -> Result<(), Reason> {
        let b = self.b;
        let (together, total) = (cooperation.together, rounds.total as i32);
        let plain = self.input.is_some_and(|(_, words)| words.count == 1 && words.element.bytes() == 4);
        let at_start = matches!(rounds.heads.0, TapePosition::Fixed(Atom::Known(Value::Int(0))));
        let one_word = rounds.moved == ItemCounts { pops: Some(1), pushes: Some(0) };
        let rows = cooperation.rows.filter(|_| plain && at_start && one_word && together == cooperation.threads);
        let unit = rows.map_or(together, |rows| together * (dataflow::ROW_WORDS * rows.pieces) as i32);
        // The rounds of a stretch are consecutive.
        let groups = (cooperation.threads / together).max(1);
        let (stretches, stretch) = match share {
            LoopShare::Part => (cooperation.parts * groups, b.mul(cooperation.part, groups)),
            _ => (groups, b.literal(0i32)),
        };
        let lane = if groups == 1 { cooperation.thread } else { b.rem(cooperation.thread, together) };
        let stretch = if groups == 1 { stretch } else { b.add(stretch, b.div(cooperation.thread, together)) };
        let (from, to) = match stretches {
            1 => (b.literal(0i32), b.literal(total)),
            _ => {
                let run = rounds.total.div_ceil(unit as u32).div_ceil(stretches as u32) as i32 * unit;
                let from = b.min(b.mul(stretch, run), total);
                (from, b.min(b.add(from, run), total))
            }
        };
        let from = match rows {
            None => from,
            Some(rows) => self.run_rows(cooperation, &rows, rounds, from, to, unit)?,
        };
        let round = b.begin_for(b.add(from, lane), to, together, Unroll::By(4));
        let done = self.run_round(rounds, b.assume(round, 0, i128::from(total) - 1));
        b.end_for();
        done
    }

    /// Writes the rounds of whole rows. Returns the first remaining round.
    fn run_rows(
        &mut self,
        cooperation: &Cooperation<'a>,
        rows: &Rows<'a>,
        rounds: &SharedRounds<'a>,
        from: ScalarValue,
        to: ScalarValue,
        unit: i32,
    ) -> Result<ScalarValue, Reason> {
        let (b, most) = (self.b, i128::from(rounds.total) - 1);
        let whole = b.sub(to, b.rem(b.sub(to, from), unit));
        let end = b.select(rows.aligned, whole, from);
        let first_of = |first: ScalarValue, piece: u32| {
            let row = b.add(cooperation.thread, piece as i32 * cooperation.threads);
            b.add(first, b.mul(row, dataflow::ROW_WORDS as i32))
        };
        let load = |first: ScalarValue| -> Vec<ScalarValue> {
            (0..rows.pieces).map(|piece| (rows.load)(first_of(first, piece))).collect()
        };
        let next = rows.prefetched.then(|| {
            let element = self.input.map_or(Element::I32, |(_, words)| words.element);
            let ty = ScalarType::vector(element, dataflow::ROW_WORDS as usize).unwrap_or(ScalarType::of(element));
            let next: Vec<Variable> = (0..rows.pieces).map(|_| b.variable(ty)).collect();
            b.if_then(b.lt(from, end), || next.iter().zip(load(from)).for_each(|(next, row)| b.set(*next, row)));
            next
        });
        let first = b.begin_for(from, end, unit, Unroll::Never);
        let loaded = match &next {
            None => load(first),
            Some(next) => {
                let now = next.iter().map(|next| b.get(*next)).collect();
                // At the end, the last rows are loaded again, because there are no rows after them.
                let ahead = load(b.min(b.add(first, unit), b.sub(end, unit)));
                next.iter().zip(ahead).for_each(|(next, row)| b.set(*next, row));
                now
            }
        };
        let mut done = Ok(());
        for (piece, row) in loaded.into_iter().enumerate() {
            for word in 0..dataflow::ROW_WORDS {
                let round = b.assume(b.add(first_of(first, piece as u32), word as i32), 0, most);
                self.loaded = Some((round, b.lane(row, word as usize)));
                done = done.and_then(|()| self.run_round(rounds, round));
            }
        }
        self.loaded = None;
        b.end_for();
        done.map(|()| end)
    }

    /// Writes the round with a given number.
    fn run_round(&mut self, rounds: &SharedRounds<'a>, round: ScalarValue) -> Result<(), Reason> {
        let b = self.b;
        let at = |translator: &Self, head: &TapePosition, moved: Option<u32>| match (head, moved) {
            (TapePosition::Fixed(Atom::Known(Value::Int(0))), Some(1)) => TapePosition::Fixed(Atom::ScalarValue(round)),
            (TapePosition::Fixed(atom), Some(moved @ 1..)) => {
                TapePosition::Fixed(Atom::ScalarValue(b.add(b.mul(round, moved as i32), translator.made(atom))))
            }
            _ => head.clone(),
        };
        self.popped = at(self, &rounds.heads.0, rounds.moved.pops);
        self.pushed = at(self, &rounds.heads.1, rounds.moved.pushes);
        let own = if rounds.firings == 1 { round } else { b.rem(round, rounds.counted.count as i32) };
        let counter = b.add(b.mul(own, rounds.counted.stride), rounds.counted.start);
        let entry = &mut self.frame()?.locals[rounds.counted.local];
        let counter = Local { term: Some(Term::Atom(Atom::ScalarValue(counter))), set: true, ..Local::default() };
        let hidden = std::mem::replace(entry, counter);
        let inner = self.stmt(rounds.body);
        self.frame()?.locals[rounds.counted.local] = hidden;
        inner.map(drop)
    }
}

/// A loop whose rounds are shared.
struct SharedRounds<'a> {
    body: &'a Stmt,
    counted: CountedLoop,
    /// Rounds of all firings with merged loops.
    total: u32,
    firings: u32,
    /// Items that a round moves, and the positions before the loop.
    moved: ItemCounts,
    heads: (TapePosition, TapePosition),
}
