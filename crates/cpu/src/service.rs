//! The frame of every service: it closes the gate when it is called, and opens it when it returns.

use crate::abi::{BarrierKind, Builtin, Exchange, ImageKind, Meeting, Reason, Warp};
use crate::execute::{Strand, fail, stop};
use crate::grid::Failure;
use broadloom_device::FaultKind;

/// Defines a function that returns the variant of an enum by its number.
macro_rules! numbered {
    ($name:ident: $ty:ident { $($variant:ident),* $(,)? }) => {
        pub(crate) fn $name(number: u32) -> Option<$ty> {
            $(if number == $ty::$variant as u32 { return Some($ty::$variant); })*
            None
        }
    };
}

numbered!(barrier_kind: BarrierKind { Sync, Arrive, Count, All, Any });
numbered!(exchange_kind: Exchange {
    Wait, ShuffleUp, ShuffleDown, ShuffleXor, ShuffleIndex, VoteAll, VoteAny, VoteUniform, Ballot, MatchAny, MatchAll, Add, MinSigned,
    MaxSigned, MinUnsigned, MaxUnsigned, And, Or, Xor, MinFloat, MaxFloat, Elect, Members, Product,
});
numbered!(meeting_kind: Meeting {
    Init, Invalidate, ExpectBytes, CompleteBytes, Arrive, ArriveExpecting, ArriveBefore, Drop, DropExpecting, DropBefore, Ask, AskParity,
    Look, ArriveAtCluster, WaitForCluster, Zero,
});
numbered!(image_kind: ImageKind { Fetch, TextureQuery, SurfaceQuery, Surface });
numbered!(builtin_kind: Builtin { Printf, Malloc, Free, Assert });
numbered!(reason_kind: Reason { Trap, BadCall, StackOverflow, Undefined, BadTarget, BadStack, BadRank, MissingLanes });

/// Closes the gate and returns the strand.
///
/// # Safety
///
/// `warp` is the warp that the runtime passed to generated code, which runs on this thread.
#[inline(always)]
pub(crate) unsafe fn enter(warp: *mut Warp) -> *mut Strand {
    // SAFETY: `fit` made the strand the owner of its warp; strand, block and gate are alive while code runs.
    unsafe {
        let strand = (*warp).owner.cast::<Strand>();
        (*(*(*strand).block).gate).close();
        let here = &raw const strand as usize;
        if here < (*strand).floor {
            overflow(strand);
        }
        strand
    }
}

/// Ends a strand whose calls have left too little stack for a service.
///
/// # Safety
///
/// As [`enter`].
#[cold]
unsafe fn overflow(strand: *mut Strand) -> ! {
    // SAFETY: passed on; nothing on the stack must be dropped once the failure is moved.
    unsafe {
        let message = "nested calls need more stack than there is".to_owned();
        let failure = of_lane(strand, 0, FaultKind::StackOverflow, message);
        fail(strand, failure)
    }
}

/// Opens the gate again, or ends the strand if the launch was stopped meanwhile.
///
/// # Safety
///
/// As [`enter`], with nothing on the stack that must be dropped.
#[inline(always)]
pub(crate) unsafe fn leave(strand: *mut Strand) {
    // SAFETY: as in `enter`.
    unsafe {
        let gate = &*(*(*strand).block).gate;
        gate.open();
        if gate.must_stop() {
            stop(strand);
        }
    }
}

/// Builds a failure of the first thread of a mask.
///
/// # Safety
///
/// As [`enter`].
pub(crate) unsafe fn of_lane(strand: *mut Strand, mask: u32, kind: FaultKind, message: String) -> Failure {
    // SAFETY: as in `enter`.
    let first = unsafe { (*strand).warp.first };
    let thread = Some(first + if mask == 0 { 0 } else { mask.trailing_zeros() });
    Failure { thread, ..Failure::new(kind, message) }
}
