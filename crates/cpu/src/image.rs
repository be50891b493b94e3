//! Textures and surfaces (manual: "Texture Instructions", "Surface Instructions"): the runtime reads and
//! writes texels for the lanes of a warp.
//!
//! The memory of a handle lies inside one allocation when the handle is made. It is kept until all launches
//! submitted before it was freed are done. Later launches find nothing behind the handle.

use crate::abi::{ImageKind, Warp};
use crate::execute::{Strand, fail};
use crate::grid::{Failure, Grid};
use crate::service::{enter, image_kind, leave, of_lane};
use crate::texels;
use broadloom_device::FaultKind;
use broadloom_device::texture::{Level, Sampler, Texture};
use broadloom_eval::texture::{
    Fetch, Image, MOST_WORDS, OutsideSurface, Query, SampledTexture, SurfaceAccess, SurfaceOperation, Texels,
};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Texels in memory of this process.
pub(crate) struct HostTexels;

impl Texels<Level> for HostTexels {
    #[inline(always)]
    fn image<'l>(&self, level: &'l Level) -> &'l Image {
        &level.image
    }

    #[inline(always)]
    fn texel(&mut self, level: &Level, offset: u64, bytes: u32) -> u128 {
        let place = (level.address + offset) as *const u8;
        // SAFETY: the texel is inside the image, whose memory is kept while the launch runs, and is aligned
        // to its size. Threads of kernels may race, as they may with each other.
        unsafe {
            match bytes {
                1 => u128::from(place.read()),
                2 => u128::from(place.cast::<u16>().read()),
                4 => u128::from(place.cast::<u32>().read()),
                8 => u128::from(place.cast::<u64>().read()),
                _ => u128::from(place.cast::<u64>().read()) | u128::from(place.cast::<u64>().add(1).read()) << 64,
            }
        }
    }
}

/// Error: kind and message.
type LaneFault = (FaultKind, String);

/// Implements the service `image`.
pub(crate) unsafe extern "C" fn image(
    warp: *mut Warp,
    kind: u32,
    bits: u64,
    site: u32,
    mask: u32,
    inputs: *const u64,
    outputs: *mut u64,
) {
    // SAFETY: called by generated code with its warp and arrays as `Services::image` describes them. A
    // failure is moved into the block before the stack is left.
    unsafe {
        let strand = enter(warp);
        let outcome = {
            let grid = &*(*(*strand).block).grid;
            each(grid, kind, bits, mask, inputs, outputs)
        };
        if let Err((lane, (kind, message))) = outcome {
            failed(strand, site, lane, kind, message);
        }
        leave(strand);
    }
}

/// Fails the strand at a site and lane.
///
/// # Safety
///
/// `strand` runs, with its block.
#[cold]
unsafe fn failed(strand: *mut Strand, site: u32, lane: usize, kind: FaultKind, message: String) -> ! {
    // SAFETY: passed on; nothing on the stack must be dropped once the failure is moved.
    unsafe {
        let failure = {
            let grid = &*(*(*strand).block).grid;
            let site = grid.ready.code.sites.get(site as usize).cloned();
            Failure { site: site.map(Box::new), ..of_lane(strand, 1 << lane, kind, message) }
        };
        fail(strand, failure)
    }
}

/// Does the operation for each lane, lowest first. The error holds the lane.
///
/// # Safety
///
/// Inputs and outputs are as `Services::image` describes them.
unsafe fn each(
    grid: &Grid,
    kind: u32,
    bits: u64,
    mask: u32,
    inputs: *const u64,
    outputs: *mut u64,
) -> Result<(), (usize, LaneFault)> {
    let lanes = grid.lanes() as usize;
    let table = &grid.opaques;
    let here = (0..lanes).filter(|lane| mask >> lane & 1 == 1);
    let word = |row: usize, lane: usize| {
        // SAFETY: as promised.
        unsafe { *inputs.add(row * lanes + lane) }
    };
    let put = |row: usize, lane: usize, value: u64| {
        // SAFETY: as promised.
        unsafe { *outputs.add(row * lanes + lane) = value };
    };
    match image_kind(kind) {
        Some(ImageKind::Fetch) => {
            let Some(fetch) = Fetch::from_bits(bits) else { return Ok(()) };
            let mut found: Option<(u64, &Texture)> = None;
            let lead = mask.trailing_zeros() as usize;
            if lanes == texels::LANES && lead < lanes && here.clone().all(|lane| word(0, lane) == word(0, lead)) {
                let texture = table.texture(word(0, lead)).map_err(|why| (lead, (FaultKind::OutOfBounds, why.to_string())))?;
                // SAFETY: rows are as promised, and the memory of a texture is kept while the launch runs.
                if unsafe { texels::fetch(&fetch, texture, inputs, outputs) } {
                    return Ok(());
                }
                found = Some((word(0, lead), texture));
            }
            for lane in here {
                let handle = word(0, lane);
                let texture = match found {
                    Some((same, texture)) if same == handle => texture,
                    _ => {
                        let texture = table.texture(handle).map_err(|why| (lane, (FaultKind::OutOfBounds, why.to_string())))?;
                        found = Some((handle, texture));
                        texture
                    }
                };
                let mut words = [0; MOST_WORDS];
                for (row, place) in words.iter_mut().enumerate().take(fetch.words()) {
                    *place = word(row + 1, lane);
                }
                let sampled = SampledTexture {
                    levels: &texture.levels,
                    layers: texture.layers,
                    is_buffer: texture.is_buffer,
                    sampler: &texture.sampler,
                };
                for (row, value) in fetch.run(&sampled, &mut HostTexels, &words).into_iter().enumerate().take(fetch.results()) {
                    put(row, lane, u64::from(value));
                }
            }
        }
        Some(what @ (ImageKind::TextureQuery | ImageKind::SurfaceQuery)) => {
            let Some(query) = Query::from_bits(bits) else { return Ok(()) };
            for lane in here {
                let (handle, level) = (word(0, lane), word(1, lane) as usize);
                let answer = if what == ImageKind::TextureQuery {
                    table.texture(handle).ok().and_then(|texture| {
                        let image = &texture.levels.get(level)?.image;
                        Some(query.answer(image, texture.layers, texture.levels.len(), &texture.sampler))
                    })
                } else {
                    let surface = table.surface(handle).ok();
                    surface.map(|surface| query.answer(&surface.level.image, surface.layers, 1, &Sampler::default()))
                };
                // An invalid handle has no properties.
                put(0, lane, u64::from(answer.unwrap_or(0)));
            }
        }
        Some(ImageKind::Surface) => {
            let Some(access) = SurfaceAccess::from_bits(bits) else { return Ok(()) };
            for lane in here {
                let handle = word(0, lane);
                let surface = table.surface(handle).map_err(|why| (lane, (FaultKind::OutOfBounds, why.to_string())))?;
                let mut words = [0; MOST_WORDS];
                for (row, place) in words.iter_mut().enumerate().take(access.words()) {
                    *place = word(row + 1, lane);
                }
                let results = touch(&access, &surface.level, &words).map_err(|why| (lane, (FaultKind::Trap, why.to_string())))?;
                for (row, value) in results.into_iter().enumerate().take(access.results()) {
                    put(row, lane, value);
                }
            }
        }
        None => {}
    }
    Ok(())
}

/// Reads or writes a surface, whose memory is kept while the launch runs.
fn touch(access: &SurfaceAccess, level: &Level, words: &[u64]) -> Result<[u64; 4], OutsideSurface> {
    let Some(offset) = access.place(&level.image, words)? else { return Ok([0; 4]) };
    let values = &words[usize::from(access.coordinates)..access.words().max(usize::from(access.coordinates))];
    let total = access.total(&level.image) as usize;
    let place = (level.address + offset) as *mut u8;
    let first = values.first().copied().unwrap_or(0);
    match access.doing {
        SurfaceOperation::Load => {
            let mut bytes = [0; 16];
            // SAFETY: `place` is inside the surface, with `total` bytes, and its memory is kept.
            unsafe { std::ptr::copy_nonoverlapping(place, bytes.as_mut_ptr(), total.min(16)) };
            let (bits, width) = (u128::from_le_bytes(bytes), 8 * u32::from(access.bytes));
            let element = |index: usize| broadloom_eval::truncate((bits >> (width * index as u32).min(127)) as u64, width);
            return Ok(std::array::from_fn(element));
        }
        SurfaceOperation::Store | SurfaceOperation::StoreTexel => {
            let bytes = access.stored(&level.image, values).to_le_bytes();
            // SAFETY: as above.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, total.min(16)) };
        }
        SurfaceOperation::Add | SurfaceOperation::Min | SurfaceOperation::Max | SurfaceOperation::And | SurfaceOperation::Or
            if access.bytes == 8 =>
        {
            // SAFETY: as above; it is aligned to its size.
            let cell = unsafe { AtomicU64::from_ptr(place.cast()) };
            let step = |old| Some(access.reduced(&level.image, old, first));
            let _ = cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
        }
        SurfaceOperation::Add | SurfaceOperation::Min | SurfaceOperation::Max | SurfaceOperation::And | SurfaceOperation::Or => {
            // SAFETY: as above; it is aligned to its size.
            let cell = unsafe { AtomicU32::from_ptr(place.cast()) };
            let step = |old: u32| Some(access.reduced(&level.image, u64::from(old), first) as u32);
            let _ = cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
        }
    }
    Ok([0; 4])
}
