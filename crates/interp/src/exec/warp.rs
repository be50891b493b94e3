//! Warp instructions (manual: "shfl", "vote", "match", "redux", "elect", "activemask", "bar.warp.sync").
//!
//! With a mask, an instruction runs when all threads of the mask that have not exited have reached an equal
//! one: same opcode, same modifiers, same mask. Without one (before sm_70, and `activemask`) it runs for all
//! threads at the same instruction with the same call stack, once no other thread of the warp can run: they
//! are as converged as they get.

use super::{Engine, NextAction, Stop, converges};
use crate::cta::{CodeSite, Cta, Wait};
use crate::op::{Exchange, Handler, Machine, Op};
use crate::watch::Watch;
use broadloom_device::FaultKind;
use broadloom_eval::sign_extend;
use broadloom_ptx::{Modifier, Type};

/// Input of a lane of a group.
struct Lane {
    index: usize,
    number: u32,
    registers: usize,
    inputs: [u64; 6],
}

impl<W: Watch> Engine<'_, W> {
    /// Handles a thread that reaches a warp instruction.
    pub(super) fn come_to_warp(&mut self, cta: &mut Cta, site: CodeSite<'_>, registers: usize) -> Result<NextAction, Stop> {
        let (op, index) = (site.op, site.thread);
        if converges(op.opcode) {
            cta.threads[index].wait = Wait::Convergence;
            return Ok(NextAction::Stop);
        }
        let mask = match op.reads.last() {
            _ if op.matrix.is_some() => u32::MAX,
            Some(arg) => self.read(cta, site, registers, arg) as u32,
            None => u32::MAX,
        };
        if mask >> (index % 32) & 1 == 0 {
            let message = format!("lane {} is not in the mask {mask:#010x} that it gives", index % 32);
            return Err(self.fault(cta, site, FaultKind::BadBarrier, None, message));
        }
        cta.threads[index].wait = Wait::Lanes(mask);
        Ok(NextAction::Stop)
    }

    /// Releases every complete group of a warp. Returns whether any was.
    pub(crate) fn meet(&mut self, cta: &mut Cta, warp: usize) -> Result<bool, Stop> {
        let mut any = false;
        for first in cta.lanes(warp) {
            let Wait::Lanes(mask) = cta.threads[first].wait else { continue };
            let members: Vec<usize> =
                cta.lanes(warp).filter(|index| mask >> (index % 32) & 1 == 1 && !cta.threads[*index].exited()).collect();
            let waits = |index: &usize| cta.threads[*index].wait == Wait::Lanes(mask);
            if !members.iter().all(waits) {
                continue;
            }
            let Some(op) = self.op_at(cta, first) else { continue };
            let alike = |index: &usize| {
                self.op_at(cta, *index).is_some_and(|other| other.opcode == op.opcode && other.modifiers == op.modifiers)
            };
            if !members.iter().all(alike) {
                continue;
            }
            if op.matrix.is_some() {
                self.matrix(cta, &members)?;
            } else {
                self.together(cta, &members, mask)?;
            }
            any = true;
        }
        Ok(any)
    }

    /// Releases threads that wait for any lanes at the same instruction. Called when no other thread of the
    /// warp can run, or all have had a turn.
    pub(crate) fn converge(&mut self, cta: &mut Cta, warp: usize) -> Result<bool, Stop> {
        let mut any = false;
        for first in cta.lanes(warp) {
            if cta.threads[first].wait != Wait::Convergence {
                continue;
            }
            // The same instruction reached by another call is another place: the callers have diverged.
            let place = |index: usize| cta.threads[index].frames.iter().map(|frame| (frame.func, frame.pc));
            let members: Vec<usize> = cta
                .lanes(warp)
                .filter(|index| cta.threads[*index].wait == Wait::Convergence && place(*index).eq(place(first)))
                .collect();
            let mask = members.iter().fold(0, |mask, index| mask | 1 << (index % 32));
            self.together(cta, &members, mask)?;
            any = true;
        }
        Ok(any)
    }

    fn op_at(&self, cta: &Cta, index: usize) -> Option<&Op> {
        let frame = cta.threads[index].frames.last()?;
        self.program.routine(frame.func).ops.get(frame.pc)
    }

    /// Runs the instruction for all lanes of a group.
    fn together(&mut self, cta: &mut Cta, members: &[usize], mask: u32) -> Result<(), Stop> {
        let program = self.program;
        let mut lanes = Vec::with_capacity(members.len());
        for &index in members {
            let Some(frame) = cta.threads[index].frames.last() else { continue };
            let (func, registers) = (frame.func, frame.registers);
            let op = &program.routine(func).ops[frame.pc];
            let site = CodeSite { func, op, thread: index };
            let inputs = self.inputs(cta, site, registers);
            lanes.push(Lane { index, number: index as u32 % 32, registers, inputs });
        }
        for position in 0..lanes.len() {
            let lane = &lanes[position];
            let (index, registers) = (lane.index, lane.registers);
            let Some(frame) = cta.threads[index].frames.last() else { continue };
            let op = &program.routine(frame.func).ops[frame.pc];
            let site = CodeSite { func: frame.func, op, thread: index };
            if position == 0 {
                self.watch.warp(cta, site, members, mask);
            }
            let values = self.lane_results(cta, site, &lanes, position);
            for (place, value) in op.writes.iter().zip(values) {
                self.write(cta, index, registers, place, value);
            }
        }
        if W::ON {
            self.note_absent(cta, members, mask);
        }
        for lane in &lanes {
            self.resume(cta, lane.index);
        }
        Ok(())
    }

    /// Reports exited lanes that a mask names to the watcher. Lanes that the block never had do not count:
    /// masks of whole warps are used for all blocks.
    fn note_absent(&mut self, cta: &Cta, members: &[usize], mask: u32) {
        let program = self.program;
        let Some(&first) = members.first() else { return };
        let Some(frame) = cta.threads[first].frames.last() else { return };
        let ended = cta.lanes(first / 32).filter(|index| mask >> (index % 32) & 1 == 1 && !members.contains(index));
        let absent = ended.fold(0, |lanes, index| lanes | 1 << (index % 32));
        if absent != 0 {
            let site = CodeSite { func: frame.func, op: &program.routine(frame.func).ops[frame.pc], thread: first };
            self.watch.absent_lanes(cta, site, mask, absent);
        }
    }

    /// Returns the lanes of a mask for which a thread waits in vain: they have not exited, and are elsewhere.
    pub(crate) fn missing_lanes(&self, cta: &Cta, index: usize, mask: u32) -> u32 {
        let waits = cta.threads[index].wait;
        let Some(op) = self.op_at(cta, index) else { return 0 };
        let here = |other: usize| {
            let alike = |there: &Op| there.opcode == op.opcode && there.modifiers == op.modifiers;
            cta.threads[other].wait == waits && self.op_at(cta, other).is_some_and(alike)
        };
        let named = cta.lanes(index / 32).filter(|other| mask >> (other % 32) & 1 == 1 && !cta.threads[*other].exited());
        named.filter(|other| !here(*other)).fold(0, |lanes, other| lanes | 1 << (other % 32))
    }

    /// Returns the results of one lane.
    fn lane_results(&mut self, cta: &Cta, site: CodeSite<'_>, lanes: &[Lane], position: usize) -> [u64; 2] {
        let op = site.op;
        let Handler::Machine(Machine::Warp(exchange)) = op.handler else { return [0, 0] };
        let lane = &lanes[position];
        let members = lanes.iter().fold(0u64, |mask, lane| mask | 1 << lane.number);
        let holders = |value: u64| lanes.iter().filter(|l| l.inputs[0] == value).fold(0u64, |mask, l| mask | 1 << l.number);
        let trues = || lanes.iter().filter(|lane| lane.inputs[0] != 0).fold(0u64, |mask, lane| mask | 1 << lane.number);
        match exchange {
            Exchange::Shuffle => {
                let (source, in_range) = shuffle_source(op, lane.number, lane.inputs[1] as u32, lane.inputs[2] as u32);
                let value = match lanes.iter().find(|other| other.number == source) {
                    Some(other) => other.inputs[0],
                    // The manual leaves the value from an inactive lane undefined; machines give 0.
                    None => {
                        self.watch.inactive_lane(cta, site, source);
                        0
                    }
                };
                [value, u64::from(in_range)]
            }
            Exchange::Vote => {
                let trues = trues();
                let value = if op.has(Modifier::Ballot) {
                    trues
                } else if op.has(Modifier::All) {
                    u64::from(trues == members)
                } else if op.has(Modifier::Any) {
                    u64::from(trues != 0)
                } else {
                    u64::from(trues == members || trues == 0)
                };
                [value, 0]
            }
            Exchange::MatchAny => [holders(lane.inputs[0]), 0],
            Exchange::MatchAll => {
                let same = holders(lane.inputs[0]) == members;
                [if same { members } else { 0 }, u64::from(same)]
            }
            Exchange::Reduce => [redux(op, lanes), 0],
            Exchange::Elect => {
                let leader = u64::from(members.trailing_zeros());
                [leader, u64::from(u64::from(lane.number) == leader)]
            }
            Exchange::Members => [members, 0],
            Exchange::Nothing | Exchange::Matrix => [0, 0],
        }
    }
}

/// Lists lanes by number: `lane 3`, `lanes 0, 4 and 16 to 31`.
pub(crate) fn lane_names(lanes: u32) -> String {
    let mut runs: Vec<(u32, u32)> = vec![];
    for lane in (0..32).filter(|lane| lanes >> lane & 1 == 1) {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == lane => *last = lane,
            _ => runs.push((lane, lane)),
        }
    }
    let name = |(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    };
    let word = if lanes.count_ones() == 1 { "lane" } else { "lanes" };
    match runs.iter().map(name).collect::<Vec<_>>().as_slice() {
        [most @ .., last] if !most.is_empty() => format!("{word} {} and {last}", most.join(", ")),
        all => format!("{word} {}", all.concat()),
    }
}

/// Returns the lane that a lane reads from, and whether it was in range (the manual's pseudocode).
fn shuffle_source(op: &Op, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (bval, cval, segments) = (b & 0x1f, c & 0x1f, c >> 8 & 0x1f);
    let max = (lane & segments) | (cval & !segments & 0x1f);
    let min = lane & segments;
    let (source, in_range) = if op.has(Modifier::Up) {
        let source = lane as i32 - bval as i32;
        (source, source >= max as i32)
    } else if op.has(Modifier::Down) {
        let source = (lane + bval) as i32;
        (source, source <= max as i32)
    } else if op.has(Modifier::Bfly) {
        let source = (lane ^ bval) as i32;
        (source, source <= max as i32)
    } else {
        let source = (min | (bval & !segments & 0x1f)) as i32;
        (source, source <= max as i32)
    };
    if in_range { (source as u32, true) } else { (lane, false) }
}

fn redux(op: &Op, lanes: &[Lane]) -> u64 {
    let values = lanes.iter().map(|lane| lane.inputs[0]);
    if op.ty == Type::F32 {
        return redux_float(op, values);
    }
    let signed = |value: u64| sign_extend(value, 32);
    let folded = if op.has(Modifier::Add) {
        values.reduce(u64::wrapping_add)
    } else if op.has(Modifier::And) {
        values.reduce(|a, b| a & b)
    } else if op.has(Modifier::Or) {
        values.reduce(|a, b| a | b)
    } else if op.has(Modifier::Xor) {
        values.reduce(|a, b| a ^ b)
    } else if op.has(Modifier::Min) {
        values.reduce(|a, b| if op.ty.is_signed() { signed(a).min(signed(b)) as u64 } else { a.min(b) })
    } else {
        values.reduce(|a, b| if op.ty.is_signed() { signed(a).max(signed(b)) as u64 } else { a.max(b) })
    };
    folded.unwrap_or(0)
}

fn redux_float(op: &Op, values: impl Iterator<Item = u64>) -> u64 {
    const CANONICAL_NAN: u32 = 0x7fff_ffff;
    let numbers = values.map(|value| f32::from_bits(value as u32)).map(|x| if op.has(Modifier::Abs) { x.abs() } else { x });
    let folded = numbers.reduce(|a, b| {
        if a.is_nan() || b.is_nan() {
            return if a.is_nan() == op.has(Modifier::NaN) { a } else { b };
        }
        // -0 is below +0.
        let a_first = a < b || (a == b && a.is_sign_negative());
        if a_first == op.has(Modifier::Min) { a } else { b }
    });
    // The only value may be a NaN with a payload.
    folded.map_or(0, |value| u64::from(if value.is_nan() { CANONICAL_NAN } else { value.to_bits() }))
}
