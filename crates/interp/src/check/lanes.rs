//! Volatile loads that read data, for lanes of a warp that rely on lockstep execution.
//!
//! Volatile accesses do not race: each is atomic and visible to all threads. But the order in which two lanes
//! of a warp execute theirs is undefined (CUDA programming guide: "Independent Thread Scheduling"). A lane
//! that reads a value that another one has just written, as in `s[t] += s[t + 16]; s[t] += s[t + 8];`, may
//! read the old value. Two lanes clash if one writes what the other reads, both volatile, without a barrier
//! of the warp or block and without another warp instruction at which both have met in between, and if the
//! value read *becomes data*: it reaches memory, an address, an atomic or a call.
//!
//! Waiting is not a fault. A load waits for another lane if its value only decides a branch, or if its thread
//! repeats it with the same address until the value changes. Atomic operations are exempt: in any order, each
//! sees the one before.

use crate::decode::Routine;
use crate::op::{Arg, Handler, Machine, Op, PassedValue};
use crate::program::Program;
use broadloom_ptx::{Func, Inst};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

/// Facts about volatile loads, computed on demand.
#[derive(Debug, Default)]
pub(super) struct VolatileLoads {
    reads_data: RefCell<HashMap<(Func, Inst), bool>>,
}

impl VolatileLoads {
    /// Returns whether the value of a load becomes data.
    pub(super) fn reads_data(&self, program: &Program, func: Func, inst: Inst) -> bool {
        *self.reads_data.borrow_mut().entry((func, inst)).or_insert_with(|| {
            let routine = program.routine(func);
            let at = routine.ops.iter().position(|op| op.inst == inst);
            at.is_some_and(|at| becomes_data(routine, at))
        })
    }
}

/// Adds the register slots of an operand.
fn slots_of(arg: &Arg, into: &mut Vec<u32>) {
    match arg {
        Arg::Reg { slot, .. } | Arg::Wide { slot } | Arg::Not { slot } | Arg::Part { slot } => into.push(*slot),
        Arg::Memory { base, .. } => slots_of(base, into),
        Arg::Vector(list) => list.iter().for_each(|arg| slots_of(arg, into)),
        Arg::Imm(_)
        | Arg::Special(_)
        | Arg::Shared { .. }
        | Arg::Frame { .. }
        | Arg::FrameParam { .. }
        | Arg::Target(_)
        | Arg::Targets(_)
        | Arg::Sink => {}
    }
}

fn slots<'a>(args: impl IntoIterator<Item = &'a Arg>) -> Vec<u32> {
    let mut found = vec![];
    args.into_iter().for_each(|arg| slots_of(arg, &mut found));
    found
}

/// Returns the registers that an instruction reads, except its guard.
fn taken(op: &Op) -> Vec<u32> {
    let arguments = op.call.iter().flat_map(|call| call.arguments.iter()).filter_map(|passed| match passed {
        PassedValue::Value(arg) => Some(arg),
        PassedValue::Memory { .. } => None,
    });
    let words = op.image.iter().flat_map(|image| image.words.iter());
    slots(op.reads.iter().chain(arguments).chain(words))
}

/// Use of an instruction's registers.
enum Use {
    /// Its results depend on them.
    Computes,
    /// They reach memory, determine an address, or leave the function.
    Keeps,
    /// They decide the control flow.
    Decides,
}

fn use_of(op: &Op) -> Use {
    match op.handler {
        Handler::Pure(_) | Handler::Pair(_) | Handler::Carry(_) => Use::Computes,
        Handler::Machine(Machine::Move | Machine::Convert | Machine::IsSpace | Machine::Warp(_)) => Use::Computes,
        Handler::Machine(
            Machine::Load
            | Machine::Store
            | Machine::Atomic
            | Machine::Call
            | Machine::Image
            | Machine::Fragment
            | Machine::Mbarrier(_)
            | Machine::Copy(_)
            | Machine::MapAddress
            | Machine::RankOfAddress
            | Machine::StoreAsync
            | Machine::ReduceAsync
            | Machine::StoreBulk
            | Machine::Allocate
            | Machine::RestoreStack,
        ) => Use::Keeps,
        Handler::Machine(
            Machine::Branch
            | Machine::BranchIndexed
            | Machine::Return
            | Machine::Exit
            | Machine::Trap
            | Machine::Barrier
            | Machine::ClusterArrive
            | Machine::ClusterWait
            | Machine::Fence
            | Machine::Sleep
            | Machine::Nothing
            | Machine::SaveStack,
        )
        | Handler::Refused => Use::Decides,
    }
}

/// Returns the registers that depend on the result of a load, for any order of instructions.
fn followers(routine: &Routine, load: usize) -> HashSet<u32> {
    let mut from: HashSet<u32> = slots(&routine.ops[load].writes).into_iter().collect();
    loop {
        let before = from.len();
        for op in routine.ops.iter().filter(|op| matches!(use_of(op), Use::Computes)) {
            if taken(op).iter().any(|slot| from.contains(slot)) {
                from.extend(slots(&op.writes));
            }
        }
        if from.len() == before {
            return from;
        }
    }
}

fn becomes_data(routine: &Routine, load: usize) -> bool {
    let from = followers(routine, load);
    let kept = |op: &Op| matches!(use_of(op), Use::Keeps) && taken(op).iter().any(|slot| from.contains(slot));
    routine.ops.iter().any(kept) && !waits(routine, load, &from)
}

/// Returns the successors of an instruction.
fn successors(ops: &[Op], at: usize) -> Vec<usize> {
    let op = &ops[at];
    let mut next: Vec<usize> = match &op.handler {
        Handler::Machine(Machine::Branch | Machine::BranchIndexed) => op
            .reads
            .iter()
            .flat_map(|arg| match arg {
                Arg::Target(target) => vec![*target as usize],
                Arg::Targets(targets) => targets.iter().map(|target| *target as usize).collect(),
                _ => vec![],
            })
            .collect(),
        Handler::Machine(Machine::Return | Machine::Exit | Machine::Trap) => vec![],
        _ => vec![at + 1],
    };
    if op.guard.is_some() {
        next.push(at + 1);
    }
    next.retain(|to| *to < ops.len());
    next
}

/// Returns the instructions that a thread can run after a load and before it reaches the load again.
fn cycle(ops: &[Op], load: usize) -> HashSet<usize> {
    let mut forward = HashSet::new();
    let mut open = successors(ops, load);
    while let Some(at) = open.pop() {
        if forward.insert(at) && at != load {
            open.extend(successors(ops, at));
        }
    }
    let mut comes_from: HashMap<usize, Vec<usize>> = HashMap::new();
    for &at in &forward {
        for to in successors(ops, at) {
            comes_from.entry(to).or_default().push(at);
        }
    }
    let mut back = HashSet::new();
    let mut open = vec![load];
    while let Some(at) = open.pop() {
        if forward.contains(&at) && back.insert(at) {
            open.extend(comes_from.get(&at).into_iter().flatten());
        }
    }
    back
}

/// Returns whether a thread repeats a load with the same address until its value changes.
fn waits(routine: &Routine, load: usize, from: &HashSet<u32>) -> bool {
    let round = cycle(&routine.ops, load);
    let base = slots(&routine.ops[load].reads);
    let moved = |at: &usize| slots(&routine.ops[*at].writes).iter().any(|slot| base.contains(slot));
    let decides = |at: &usize| {
        let op = &routine.ops[*at];
        matches!(op.handler, Handler::Machine(Machine::Branch)) && op.guard.is_some_and(|(slot, _)| from.contains(&slot))
    };
    !round.iter().any(moved) && round.iter().any(decides)
}
