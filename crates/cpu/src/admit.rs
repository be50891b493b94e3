//! Admission of accesses: the runtime's part of [`crate::compile::Checks`].
//!
//! Generated code asks here if an address is not where it expects it. The runtime looks up the memory that
//! contains the address and either lets the access happen or ends the launch with an error. In strict mode the
//! memory found is what the code compares addresses with from then on, at that instruction and in that block.

use crate::abi::{Access, AccessSpace, AdmittedRange, Kind, Warp};
use crate::compile::Checks;
use crate::execute::{Block, Strand, Surroundings, fail};
use crate::grid::Failure;
use crate::memory::AddressSurroundings;
use crate::service::{enter, leave, of_lane};
use broadloom_device::FaultKind;
use std::ops::Range;

/// Error: kind and message.
type Refusal = (FaultKind, String);

/// Implements the service `admit`.
pub(crate) unsafe extern "C" fn admit(warp: *mut Warp, site: u32, mask: u32, access: u64, addresses: *const u64) {
    // SAFETY: called by generated code with its warp and addresses as `Services::admit` describes them. A
    // failure is moved into the block before the stack is left.
    unsafe {
        let strand = enter(warp);
        let block = (*strand).block;
        let access = Access::from_bits(access);
        let grid = &*(*block).grid;
        let lanes = grid.lanes();
        for lane in (0..lanes).filter(|lane| mask >> lane & 1 == 1) {
            let address = *addresses.add(lane as usize);
            match memory_of(&*block, &*strand, lane, address, access) {
                Ok(None) => {}
                Ok(Some(range)) => {
                    let count = (range.end - range.start).saturating_add(1).saturating_sub(access.bytes.into());
                    let known = AdmittedRange { start: range.start, count };
                    let block: &mut Block = &mut *block;
                    if let Some(place) = block.admitted.get_mut(site as usize) {
                        *place = known;
                    }
                }
                Err((kind, message)) => {
                    let failure = {
                        let site = grid.ready.code.sites.get(site as usize).cloned();
                        let address = Some(address);
                        Failure { site: site.map(Box::new), address, ..of_lane(strand, 1 << lane, kind, message) }
                    };
                    fail(strand, failure);
                }
            }
        }
        leave(strand);
    }
}

/// Returns the memory that contains an access. `None` if later accesses must be looked up again.
fn memory_of(block: &Block, strand: &Strand, lane: u32, address: u64, access: Access) -> Result<Option<Range<u64>>, Refusal> {
    // SAFETY: grid and surroundings are alive while blocks run.
    let (grid, surroundings) = unsafe { (&*block.grid, &*block.surroundings) };
    let bytes = u64::from(access.bytes);
    let inside = |range: &Range<u64>| range.contains(&address) && range.end - address >= bytes;
    let aligned = |offset: u64| match offset.is_multiple_of(access.align.max(1).into()) {
        true => Ok(()),
        false => Err((FaultKind::Misaligned, format!("{offset:#x} is not a multiple of {}", access.align))),
    };
    let shared = |rank: usize| {
        let start = block.ctas[rank].shared as u64;
        start..start + grid.shared_bytes
    };
    let local = strand.warp.local as u64..(strand.warp.local as u64).saturating_add(strand.warp.local_bytes);
    match access.space {
        AccessSpace::Local => {
            let size = match block.kind {
                Kind::Threads => strand.warp.local_bytes,
                Kind::Block | Kind::Warps => grid.ready.code.local_bytes,
            };
            // The warps of a block that one call runs have their windows one after the other.
            let offset = match block.kind {
                Kind::Threads => address.wrapping_sub(local.start),
                Kind::Block | Kind::Warps if local.contains(&address) => {
                    (address - local.start).wrapping_sub(u64::from(lane) * size) % (32 * size.max(1))
                }
                Kind::Block | Kind::Warps => address.wrapping_sub(local.start),
            };
            aligned(offset)?;
            if offset.checked_add(bytes).is_some_and(|end| end <= size) {
                return Ok(None);
            }
            let message = format!("{bytes} bytes at {offset:#x} are outside of the thread's {size} bytes of local memory");
            Err((FaultKind::OutOfBounds, message))
        }
        AccessSpace::Shared => {
            let own = shared(block.rank(strand.number as usize));
            let offset = address.wrapping_sub(own.start);
            aligned(offset)?;
            if inside(&own) {
                return Ok((block.ctas.len() == 1).then_some(own));
            }
            if (0..block.ctas.len()).any(|rank| inside(&shared(rank))) {
                return Ok(None);
            }
            let size = grid.shared_bytes;
            let offset = offset as u32;
            let message = format!("{bytes} bytes at {offset:#x} are outside of the block's {size} bytes of shared memory");
            Err((FaultKind::OutOfBounds, message))
        }
        AccessSpace::Device => {
            aligned(address)?;
            if (0..block.ctas.len()).any(|rank| inside(&shared(rank))) || inside(&local) {
                return Ok(None);
            }
            let params = grid.params.as_ptr() as u64;
            if inside(&(params..params + size_of_val(&grid.params[..]) as u64)) {
                return Ok(None);
            }
            device_memory(surroundings, address, bytes)
        }
    }
}

/// Returns the allocation that contains an access.
fn device_memory(surroundings: &Surroundings, address: u64, bytes: u64) -> Result<Option<Range<u64>>, Refusal> {
    let inside = |range: &Range<u64>| range.contains(&address) && range.end - address >= bytes;
    let found = surroundings.memory.containing(address);
    if let Some((range, is_heap)) = found.clone().filter(|(range, _)| inside(range)) {
        // A kernel may free what it allocated while others run.
        return Ok((!is_heap).then_some(range));
    }
    if surroundings.checks == Checks::Confined && surroundings.memory.is_accessible(address, bytes) {
        return Ok(None);
    }
    let foreign = surroundings.foreign.as_ref().and_then(|foreign| foreign.containing(address));
    if let Some(range) = foreign.as_ref().filter(|range| inside(range)) {
        return Ok(Some(range.clone()));
    }
    if let Some(range) = found.map(|(range, _)| range).or(foreign) {
        let (start, size) = (range.start, range.end - range.start);
        let message = format!("{bytes} bytes at {address:#x} are partly behind the end of {size} bytes at {start:#x}");
        return Err((FaultKind::OutOfBounds, message));
    }
    Err(match surroundings.memory.near(address) {
        AddressSurroundings::Freed(text) => (FaultKind::UseAfterFree, text),
        AddressSurroundings::Outside(text) => (FaultKind::OutOfBounds, text),
        AddressSurroundings::Nowhere if surroundings.foreign.is_some() => {
            let message = format!("{address:#x} is in no memory that was allocated for kernels or registered");
            (FaultKind::OutOfBounds, message)
        }
        AddressSurroundings::Nowhere => (FaultKind::OutOfBounds, format!("{address:#x} is not in any memory")),
    })
}
