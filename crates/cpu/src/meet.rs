//! Operations on mbarriers and on the cluster barrier (manual: "mbarrier", "barrier.cluster", "st.bulk").
//!
//! Blocks of a cluster run on one thread, and no strand is interrupted here, so an mbarrier is updated with
//! plain reads and writes. A strand that polls an incomplete phase yields to the others first. Then it polls
//! once more and returns the answer.

use crate::abi::{Kind, Meeting, Warp};
use crate::execute::{Block, Strand, Wait, fail, hand_over, pause};
use crate::grid::Failure;
use crate::service::{enter, leave, meeting_kind, of_lane};
use broadloom_device::FaultKind;
use broadloom_eval::mbarrier::{Mbarrier, Misuse, Step};

/// Bytes of an mbarrier, and its alignment.
const BYTES: u64 = 8;

/// Error: kind, message, and the address, if there is one.
type MeetingFault = (FaultKind, String, Option<u64>);

/// Implements the service `meet`.
pub(crate) unsafe extern "C" fn meet(warp: *mut Warp, what: u32, site: u32, mask: u32, inputs: *const u64, outputs: *mut u64) {
    // SAFETY: called by generated code with its warp and arrays as `Services::meet` describes them. A failure
    // is moved into the block before the stack is left.
    unsafe {
        let strand = enter(warp);
        let block = (*strand).block;
        let what = meeting_kind(what).unwrap_or(Meeting::Look);
        let outcome = match what {
            Meeting::ArriveAtCluster => arrive(&mut *block, strand, mask),
            Meeting::WaitForCluster => wait(&mut *block, strand),
            Meeting::Ask | Meeting::AskParity => match each(&mut *block, what, mask, inputs, outputs) {
                Ok(true) => Ok(()),
                Ok(false) => {
                    (*strand).asks = true;
                    pause(strand);
                    (*strand).asks = false;
                    each(&mut *block, what, mask, inputs, outputs).map(drop)
                }
                Err(wrong) => Err(wrong),
            },
            _ => {
                (*block).events += 1;
                each(&mut *block, what, mask, inputs, outputs).map(drop)
            }
        };
        if let Err((lane, (kind, message, address))) = outcome {
            let failure = {
                let grid = &*(*block).grid;
                let site = grid.ready.code.sites.get(site as usize).cloned();
                Failure { site: site.map(Box::new), address, ..of_lane(strand, 1 << lane, kind, message) }
            };
            fail(strand, failure);
        }
        if (*strand).wait != Wait::Nothing {
            hand_over(strand, (*block).kind != Kind::Threads);
        }
        leave(strand);
    }
}

/// Records the arrival of threads at the cluster barrier.
///
/// # Safety
///
/// `strand` is one of the block, and runs.
unsafe fn arrive(block: &mut Block, strand: *mut Strand, mask: u32) -> Result<(), (u32, MeetingFault)> {
    // SAFETY: as promised; the block does not refer to the strand here.
    let (index, arrived, exited) = unsafe { ((*strand).number as usize, (*strand).arrived, (*strand).warp.exited) };
    let exited = exited & block.lane_mask(index) & !mask;
    if exited != 0 {
        block.count_ended(index, exited);
    }
    if arrived.is_some() {
        let message = "the thread has arrived at the barrier of the cluster and not waited since".to_owned();
        return Err((mask.trailing_zeros() & 31, (FaultKind::BadBarrier, message, None)));
    }
    block.strands[index].arrived = Some((block.cluster.phase, mask));
    block.cluster.arrived += mask.count_ones();
    block.events += 1;
    block.complete_cluster();
    Ok(())
}

/// Makes threads wait for the cluster barrier.
///
/// # Safety
///
/// As [`arrive`].
unsafe fn wait(block: &mut Block, strand: *mut Strand) -> Result<(), (u32, MeetingFault)> {
    // SAFETY: as promised.
    let index = unsafe { (*strand).number as usize };
    block.events += 1;
    let phase = block.cluster.phase;
    let strand = &mut block.strands[index];
    match strand.arrived {
        None => {
            let message = "the thread waits at the barrier of the cluster and has not arrived".to_owned();
            Err((0, (FaultKind::BadBarrier, message, None)))
        }
        Some((arrived, _)) if arrived < phase => {
            strand.arrived = None;
            Ok(())
        }
        Some(_) => {
            strand.wait = Wait::Cluster;
            Ok(())
        }
    }
}

/// Does the operation for each lane, lowest first. Returns whether all polled phases are complete. The error
/// holds the lane.
///
/// # Safety
///
/// Inputs and outputs are as `Services::meet` describes them.
unsafe fn each(
    block: &mut Block,
    what: Meeting,
    mask: u32,
    inputs: *const u64,
    outputs: *mut u64,
) -> Result<bool, (u32, MeetingFault)> {
    // SAFETY: the grid is alive while its blocks run.
    let lanes = unsafe { (*block.grid).lanes() };
    let mut all = true;
    for lane in (0..lanes).filter(|lane| mask >> lane & 1 == 1) {
        // SAFETY: there are two rows of `lanes` lanes, and one of outputs.
        let (address, operand) = unsafe { (*inputs.add(lane as usize), *inputs.add((lanes + lane) as usize)) };
        let value = one(block, what, address, operand).map_err(|wrong| (lane, wrong))?;
        // SAFETY: as above.
        unsafe { *outputs.add(lane as usize) = value };
        all &= value != 0;
    }
    Ok(all)
}

fn one(block: &mut Block, what: Meeting, address: u64, operand: u64) -> Result<u64, MeetingFault> {
    if what == Meeting::Zero {
        return zero(block, address, operand).map(|()| 0);
    }
    let place = mbarrier_at(block, address)?;
    let misuse = |misuse: Misuse| (FaultKind::BadBarrier, misuse.to_string(), Some(address));
    // SAFETY: `mbarrier_at` found eight aligned bytes of live shared memory; no other strand runs.
    let bits = unsafe { place.read() };
    let put = |bits: u64| {
        // SAFETY: as above.
        unsafe { place.write(bits) };
    };
    let number = operand as u32;
    if what == Meeting::Init {
        put(Mbarrier::new(number).map_err(misuse)?.bits());
        return Ok(0);
    }
    let barrier = Mbarrier::from_bits(bits).map_err(misuse)?;
    let step = |step: Result<Step, Misuse>| -> Result<u64, MeetingFault> {
        put(step.map_err(misuse)?.object.bits());
        Ok(bits)
    };
    match what {
        Meeting::Invalidate => {
            put(0);
            Ok(0)
        }
        Meeting::ExpectBytes => step(barrier.expect(number)),
        Meeting::CompleteBytes => step(barrier.complete(number)),
        Meeting::Arrive => step(barrier.arrive(number, 0, false)),
        Meeting::ArriveExpecting => step(barrier.arrive(1, number, false)),
        Meeting::ArriveBefore => step(barrier.arrive_without_completing(number, false)),
        Meeting::Drop => step(barrier.arrive(number, 0, true)),
        Meeting::DropExpecting => step(barrier.arrive(1, number, true)),
        Meeting::DropBefore => step(barrier.arrive_without_completing(number, true)),
        Meeting::Ask => barrier.is_complete(operand).map(u64::from).map_err(misuse),
        Meeting::AskParity => Ok(u64::from(barrier.is_complete_parity(number))),
        Meeting::Init | Meeting::Look | Meeting::ArriveAtCluster | Meeting::WaitForCluster | Meeting::Zero => Ok(1),
    }
}

/// Finds the target of an address: the rank of a block of the cluster, and the offset in its shared memory.
fn place(block: &Block, address: u64) -> Option<(usize, u64)> {
    // SAFETY: the grid is alive while its blocks run.
    let bytes = unsafe { (*block.grid).shared_bytes };
    block.ctas.iter().enumerate().find_map(|(rank, cta)| {
        let offset = address.wrapping_sub(cta.shared as u64);
        (offset < bytes).then_some((rank, offset))
    })
}

fn mbarrier_at(block: &Block, address: u64) -> Result<*mut u64, MeetingFault> {
    // SAFETY: the grid is alive while its blocks run.
    let bytes = unsafe { (*block.grid).shared_bytes };
    let Some((rank, offset)) = place(block, address) else {
        let message = format!("{address:#x} is not in shared memory, where mbarriers live");
        return Err((FaultKind::WrongSpace, message, Some(address)));
    };
    if !address.is_multiple_of(BYTES) {
        return Err((FaultKind::Misaligned, format!("{offset:#x} is not a multiple of {BYTES}"), Some(address)));
    }
    if offset + BYTES > bytes {
        let message = format!("{BYTES} bytes at {offset:#x} are outside of the block's {bytes} bytes of shared memory");
        return Err((FaultKind::OutOfBounds, message, Some(address)));
    }
    if block.ctas[rank].alive == 0 {
        let message = format!("block {rank} of the cluster has ended, and its shared memory with it");
        return Err((FaultKind::OutOfBounds, message, Some(address)));
    }
    Ok(address as *mut u64)
}

/// Zeroes some bytes of the own block's shared memory.
fn zero(block: &Block, address: u64, bytes: u64) -> Result<(), MeetingFault> {
    // SAFETY: the grid is alive while its blocks run.
    let size = unsafe { (*block.grid).shared_bytes };
    if !bytes.is_multiple_of(BYTES) {
        return Err((FaultKind::Misaligned, format!("{bytes} bytes are not a multiple of {BYTES}"), Some(address)));
    }
    let own = block.rank(block.current);
    let Some((_, offset)) = place(block, address).filter(|(rank, _)| *rank == own) else {
        let message = format!("{address:#x} is not in the shared memory of the block");
        return Err((FaultKind::WrongSpace, message, Some(address)));
    };
    if !address.is_multiple_of(BYTES) {
        return Err((FaultKind::Misaligned, format!("{offset:#x} is not a multiple of {BYTES}"), Some(address)));
    }
    if bytes > size - offset {
        let message = format!("{bytes} bytes at {offset:#x} are outside of the block's {size} bytes of shared memory");
        return Err((FaultKind::OutOfBounds, message, Some(address)));
    }
    // SAFETY: the bytes lie in the shared memory of the block that runs.
    unsafe { std::ptr::write_bytes(address as *mut u8, 0, bytes as usize) };
    Ok(())
}
