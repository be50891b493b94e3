//! Services of the runtime for generated code.

use crate::abi::{BarrierKind, Builtin, Clock, Exchange, ExchangeOperands, Kind, Reason, Services, Warp};
use crate::admit::admit;
use crate::barrier::Arrival;
use crate::builtin;
use crate::execute::{Block, Wait, end, fail, hand_over, pause as pause_strand};
use crate::grid::{EvaluatedInstruction, Failure};
use crate::image::image;
use crate::meet::meet;
use crate::service::{barrier_kind, builtin_kind, enter, exchange_kind, leave, of_lane, reason_kind};
use broadloom_device::FaultKind;
use broadloom_eval::{Function, truncate};
use std::arch::naked_asm;
use std::sync::OnceLock;
use std::time::Instant;

/// All services.
pub(crate) const SERVICES: Services =
    Services { barrier, pause, fault, evaluate, exchange, builtin: call_builtin, clock, exit, meet, image, admit };

/// Start value of the timer, so that it never reads as zero.
const TIMER_START: u64 = 1_000_000_000;

unsafe extern "C" fn barrier(warp: *mut Warp, id: u32, threads: u32, kind: u32, mask: u32, predicates: u32) -> u32 {
    // SAFETY: called by generated code with its warp; the block is touched only between switches.
    unsafe {
        let strand = enter(warp);
        let block = (*strand).block;
        let index = (*strand).number;
        let simple = id == 0 && threads == 0 && kind == BarrierKind::Sync as u32 && mask == u32::MAX;
        if simple && (&*block).gathers() {
            if !(&mut *block).gather(index as usize) {
                hand_over(strand, true);
            }
            leave(strand);
            return 0;
        }
        let kind = barrier_kind(kind).unwrap_or(BarrierKind::Sync);
        let outcome = {
            let block: &mut Block = &mut *block;
            if block.gathered > 0 {
                block.disperse();
            }
            let exited = (*strand).warp.exited & block.lane_mask(index as usize) & !mask;
            if exited & !(*strand).counted != 0 {
                block.count_ended(index as usize, exited);
            }
            let all = (*block.grid).threads;
            block.events += 1;
            let rank = block.rank(index as usize);
            let cta = &mut block.ctas[rank];
            let waits = kind != BarrierKind::Arrive;
            let arrival = Arrival {
                strand: index,
                threads: mask.count_ones(),
                trues: (mask & predicates).count_ones(),
                expected: (threads != 0).then_some(threads),
                waits,
            };
            cta.barriers.arrive(id, arrival, all).map(|()| {
                if waits {
                    (*strand).wait = Wait::Barrier(id as u8);
                }
                if let Some((strands, reduced)) = cta.barriers.take(id as usize, cta.alive, all) {
                    for waiting in &strands {
                        let waiting = &mut block.strands[*waiting as usize];
                        (waiting.wait, waiting.reduced) = (Wait::Nothing, reduced);
                    }
                    cta.barriers.recycle(id as usize, strands);
                }
            })
        };
        if let Err(error) = outcome {
            let failure = of_lane(strand, mask, FaultKind::BadBarrier, error.to_string());
            fail(strand, failure);
        }
        if (*strand).wait != Wait::Nothing {
            hand_over(strand, (*block).kind != Kind::Threads);
        }
        let (trues, all) = (*strand).reduced;
        leave(strand);
        match kind {
            BarrierKind::Sync | BarrierKind::Arrive => 0,
            BarrierKind::Count => trues,
            BarrierKind::All => u32::from(trues == all),
            BarrierKind::Any => u32::from(trues > 0),
        }
    }
}

unsafe extern "C" fn pause(warp: *mut Warp) {
    // SAFETY: called by generated code with its warp.
    unsafe {
        let strand = enter(warp);
        (*(*strand).block).events += 1;
        pause_strand(strand);
        leave(strand);
    }
}

unsafe extern "C" fn fault(warp: *mut Warp, reason: u32, site: u32, mask: u32, address: u64) -> ! {
    // SAFETY: called by generated code with its warp.
    unsafe {
        let strand = enter(warp);
        let failure = {
            let grid = &*(*(*strand).block).grid;
            let site = grid.ready.code.sites.get(site as usize).cloned();
            let (kind, message) = match reason_kind(reason) {
                Some(Reason::Trap) | None => (FaultKind::Trap, "the kernel ran into a `trap`".to_owned()),
                Some(Reason::BadCall) => (FaultKind::BadCall, format!("{address:#x} is not the address of a function")),
                Some(Reason::StackOverflow) => {
                    (FaultKind::StackOverflow, format!("a thread needs more than the {} bytes that it has", grid.stack_bytes))
                }
                Some(Reason::Undefined) => (FaultKind::BadCall, "the function is declared but defined nowhere".to_owned()),
                Some(Reason::BadTarget) => (FaultKind::BadCall, format!("the index {address} is outside of the list of targets")),
                Some(Reason::BadStack) => (FaultKind::BadCall, format!("{address:#x} is not a saved top of the stack")),
                Some(Reason::MissingLanes) => {
                    (FaultKind::BadBarrier, format!("{address} lanes of the warp come to it, and all 32 must"))
                }
                Some(Reason::BadRank) => {
                    (FaultKind::OutOfBounds, format!("rank {address} in a cluster of {} blocks", grid.cluster.blocks()))
                }
            };
            let address = matches!(reason_kind(reason), Some(Reason::BadCall | Reason::BadStack)).then_some(address);
            Failure { site: site.map(Box::new), address, ..of_lane(strand, mask, kind, message) }
        };
        fail(strand, failure)
    }
}

unsafe extern "C" fn exit(warp: *mut Warp) -> ! {
    // SAFETY: called by generated code with its warp; what is on its stack needs no dropping.
    unsafe {
        let strand = enter(warp);
        end(strand)
    }
}

unsafe extern "C" fn evaluate(warp: *mut Warp, operation: u32, mask: u32, inputs: *const u64, outputs: *mut u64) {
    // SAFETY: called by generated code with its warp and arrays as `Services::evaluate` describes them.
    unsafe {
        let strand = enter(warp);
        let grid = &*(*(*strand).block).grid;
        let lanes = grid.lanes() as usize;
        let Some(Some(evaluated)) = grid.ready.operations.get(operation as usize) else {
            let rare = grid.ready.code.operations.get(operation as usize);
            let message = format!("the runtime cannot evaluate {rare:?}");
            let failure = of_lane(strand, mask, FaultKind::Unsupported, message);
            fail(strand, failure)
        };
        let (op, function, count) = match evaluated {
            EvaluatedInstruction::Function { operation, function, inputs } => (operation, *function, *inputs),
            EvaluatedInstruction::Product(product) => {
                let inputs = std::slice::from_raw_parts(inputs, product.inputs() * lanes);
                product.multiply(inputs, std::slice::from_raw_parts_mut(outputs, product.outputs() * lanes));
                return leave(strand);
            }
        };
        for lane in (0..lanes).filter(|lane| mask >> lane & 1 == 1) {
            let mut values = [0; 6];
            for (index, value) in values.iter_mut().enumerate().take(count) {
                *value = *inputs.add(index * lanes + lane);
            }
            match function {
                Function::One(run) => *outputs.add(lane) = run(op, &values),
                Function::Pair(run) => {
                    let [first, second] = run(op, &values);
                    *outputs.add(lane) = first;
                    *outputs.add(lanes + lane) = second;
                }
                Function::Carry(run) => {
                    let carry = op.reads_carry() && truncate(*inputs.add(count * lanes + lane), 1) != 0;
                    let (value, carry) = run(op, &values, carry);
                    *outputs.add(lane) = value;
                    if op.writes_carry() {
                        *outputs.add(lanes + lane) = u64::from(carry);
                    }
                }
            }
        }
        leave(strand);
    }
}

/// Passes on the frame pointer of the caller.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn exchange(warp: *mut Warp, kind: u32, exchanged: *mut ExchangeOperands) {
    naked_asm!("mov rcx, rbp", "jmp {}", sym exchange_in)
}

/// Passes on the frame pointer of the caller.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn exchange(warp: *mut Warp, kind: u32, exchanged: *mut ExchangeOperands) {
    naked_asm!("mov x3, x29", "b {}", sym exchange_in)
}

unsafe extern "C" fn exchange_in(warp: *mut Warp, kind: u32, exchanged: *mut ExchangeOperands, frame: usize) {
    // SAFETY: called by generated code with its warp and a place on its stack; the block is touched only
    // between switches.
    unsafe {
        let strand = enter(warp);
        let block = (*strand).block;
        let index = (*strand).number as usize;
        let kind = exchange_kind(kind).unwrap_or(Exchange::Wait);
        if (*exchanged).convergent != 0 {
            (*strand).note_calls(frame);
            (*strand).bring(kind, exchanged, Wait::Convergence);
        } else {
            let members = (*exchanged).members;
            let lane = (*block).lane(index);
            if members >> lane & 1 == 0 {
                let message = format!("lane {lane} is not in the mask {members:#010x} that it gives");
                let failure = of_lane(strand, 0, FaultKind::BadBarrier, message);
                fail(strand, failure);
            }
            (*strand).bring(kind, exchanged, Wait::Lanes(members));
            (*block).meet(index);
        }
        if (*strand).wait != Wait::Nothing {
            hand_over(strand, false);
        }
        leave(strand);
    }
}

unsafe extern "C" fn call_builtin(warp: *mut Warp, which: u32, mask: u32, arguments: *const u64, result: *mut u64) {
    // SAFETY: called by generated code with its warp and arrays as `Services::builtin` describes them. A
    // failure is moved into the block before the stack is left.
    unsafe {
        let strand = enter(warp);
        let lanes = (*(*(*strand).block).grid).lanes() as usize;
        for lane in (0..lanes).filter(|lane| mask >> lane & 1 == 1) {
            let argument = |index: usize| *arguments.add(index * lanes + lane);
            let outcome = match builtin_kind(which) {
                Some(Builtin::Printf) => builtin::printf(strand, argument(0), argument(1)),
                Some(Builtin::Malloc) => Ok(builtin::malloc(strand, argument(0))),
                Some(Builtin::Free) => builtin::free(strand, argument(0)),
                Some(Builtin::Assert) => builtin::assert([argument(0), argument(1), argument(2), argument(3)]),
                None => Err(Failure::new(FaultKind::BadCall, "a function that the device does not have")),
            };
            match outcome {
                Ok(value) => *result.add(lane) = value,
                Err(mut failure) => {
                    failure.thread = Some((*strand).warp.first + lane as u32);
                    fail(strand, failure);
                }
            }
        }
        leave(strand);
    }
}

extern "C" fn clock(which: u32) -> u64 {
    if which == Clock::Ticks as u32 {
        return ticks();
    }
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64 + TIMER_START
}

#[cfg(target_arch = "x86_64")]
fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
fn ticks() -> u64 {
    let ticks: u64;
    // SAFETY: every process may read the virtual counter.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}
