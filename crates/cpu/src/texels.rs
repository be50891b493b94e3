//! Texture fetches for all lanes of a warp at once, for the common modes (CUDA programming guide: "Texture
//! Fetching").
//!
//! The modes are: one image of one to three axes, clamp or wrap addressing, channels of 8, 16 or 32 bits. The
//! results are bit for bit those of `broadloom_eval::texture`, which handles all other modes lane by lane.
//! Inactive lanes read a texel as well, and the result is ignored: every coordinate is mapped to a texel
//! inside the image.

use broadloom_device::texture::{AddressMode, Channel, Filter, Image, Layers, TexelFormat, Texture};
use broadloom_eval::texture::{Fetch, Geometry, Result4};

/// Number of lanes of a warp.
pub(crate) const LANES: usize = 32;

/// Bound of coordinates; beyond it they have the same effect.
const FAR: f64 = 1e9;

/// One number per lane.
type LaneNumbers<T> = [T; LANES];

/// Fetches the texels of a warp and returns `true`, or does nothing and returns `false`.
///
/// # Safety
///
/// `inputs` has a row of [`LANES`] words for each input word of the fetch, `outputs` has space for four rows.
/// The memory of the texture is alive.
pub unsafe fn fetch(fetch: &Fetch, texture: &Texture, inputs: *const u64, outputs: *mut u64) -> bool {
    // SAFETY: passed on.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        {
            std::arch::is_x86_feature_detected!("avx2") && with_avx2(fetch, texture, inputs, outputs)
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            any(fetch, texture, inputs, outputs)
        }
    }
}

/// Runs [`any`], compiled for AVX2.
///
/// # Safety
///
/// As [`fetch`], on a host with AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn with_avx2(fetch: &Fetch, texture: &Texture, inputs: *const u64, outputs: *mut u64) -> bool {
    // SAFETY: passed on.
    unsafe { any(fetch, texture, inputs, outputs) }
}

/// Implements [`fetch`].
///
/// # Safety
///
/// As [`fetch`].
#[inline(always)]
unsafe fn any(fetch: &Fetch, texture: &Texture, inputs: *const u64, outputs: *mut u64) -> bool {
    let ([level], Layers::None, None, Result4::Words, false) =
        (texture.levels.as_slice(), texture.layers, fetch.gather, fetch.result, fetch.has_offset())
    else {
        return false;
    };
    let axes = match fetch.geometry {
        Geometry::Line => 1,
        Geometry::Plane => 2,
        Geometry::Volume => 3,
        Geometry::Lines | Geometry::Planes | Geometry::Cube | Geometry::Cubes => return false,
    };
    let (image, sampler) = (&level.image, &texture.sampler);
    let TexelFormat { channel, bits, channels } = image.format;
    let is_normalised = sampler.normalised_values && channel != Channel::Float && bits < 32;
    let is_float = channel == Channel::Float || is_normalised;
    let reads_colours = sampler.srgb && channel == Channel::Unsigned && bits == 8;
    let modes = &sampler.address[..axes];
    let again = |mode: &AddressMode| sampler.normalised_coordinates && !fetch.by_index && *mode == AddressMode::Wrap;
    let turned = |mode: &AddressMode| sampler.normalised_coordinates && *mode == AddressMode::Mirror;
    let is_bordered = modes.contains(&AddressMode::Border) && !texture.is_buffer;
    let known = !is_bordered && !modes.iter().any(turned) && !(is_normalised && (reads_colours || channel == Channel::Signed));
    if !known || (channel == Channel::Float && bits != 32) || (texture.is_buffer && !(fetch.by_index && axes == 1)) {
        return false;
    }
    let counts = [image.width, image.height, image.depth];
    if !fetch.by_index && counts.iter().any(|count| i32::try_from(*count).is_err()) {
        return false;
    }
    let pitches = [u64::from(image.format.texel_bytes()), image.row_pitch, image.slice_pitch];
    // SAFETY: rows are as promised. Texel indices are inside the image, see `places` and `numbers`.
    unsafe {
        let mut wanted = TexelRead { base: level.address, offsets: [[0; LANES]; 8], weights: [[1.0; LANES]; 8], outputs };
        if fetch.by_index || !(is_float && sampler.filter == Filter::Linear) {
            for axis in 0..axes {
                let row = row(inputs, axis + 1);
                let last = counts[axis] - 1;
                let numbers = match (fetch.by_index, again(&modes[axis])) {
                    (true, _) => numbers(&row, last),
                    (false, false) => places::<false>(&row, scale(image, axis, sampler.normalised_coordinates), last).0,
                    (false, true) => places_again::<false>(&row, last).0,
                };
                for (offset, number) in wanted.offsets[0].iter_mut().zip(numbers) {
                    *offset += u64::from(number) * pitches[axis];
                }
            }
            plain(&wanted, image.format, is_normalised);
            if texture.is_buffer {
                clear_beyond(&row(inputs, 1), image.width, outputs);
            }
            return true;
        }
        for axis in 0..axes {
            let row = row(inputs, axis + 1);
            let last = counts[axis] - 1;
            let (first, second, weight) = match again(&modes[axis]) {
                false => places::<true>(&row, scale(image, axis, sampler.normalised_coordinates), last),
                true => places_again::<true>(&row, last),
            };
            // The taps so far use the first texel of this axis, and as many follow with the second.
            let taps = 1 << axis;
            for tap in 0..taps {
                for lane in 0..LANES {
                    let (offset, share) = (wanted.offsets[tap][lane], wanted.weights[tap][lane]);
                    wanted.offsets[tap][lane] = offset + u64::from(first[lane]) * pitches[axis];
                    wanted.offsets[taps + tap][lane] = offset + u64::from(second[lane]) * pitches[axis];
                    wanted.weights[tap][lane] = share * (1.0 - weight[lane]);
                    wanted.weights[taps + tap][lane] = share * weight[lane];
                }
            }
        }
        match axes {
            1 => mixed::<2>(&wanted, channels, bits),
            2 => mixed::<4>(&wanted, channels, bits),
            _ => mixed::<8>(&wanted, channels, bits),
        }
        true
    }
}

/// Returns the factor from a coordinate to texels.
fn scale(image: &Image, axis: usize, is_normalised: bool) -> f64 {
    if is_normalised { f64::from([image.width, image.height, image.depth][axis]) } else { 1.0 }
}

/// Loads a row of the inputs.
///
/// # Safety
///
/// There are more rows than `number`.
#[inline(always)]
unsafe fn row(inputs: *const u64, number: usize) -> LaneNumbers<u32> {
    // SAFETY: as promised.
    std::array::from_fn(|lane| unsafe { *inputs.add(number * LANES + lane) as u32 })
}

/// Returns the texel indices of a row, clamped to the edges.
#[inline(always)]
fn numbers(row: &LaneNumbers<u32>, last: u32) -> LaneNumbers<u32> {
    row.map(|word| (i64::from(word as i32)).clamp(0, i64::from(last)) as u32)
}

/// Converts an integral float to a texel index.
#[inline(always)]
fn number(value: f64) -> u32 {
    // SAFETY: callers pass a value between zero and the index of the last texel, which is an `i32` (see
    // `any`).
    unsafe { value.to_int_unchecked::<i32>() as u32 }
}

/// Rounds a fraction to steps of 1/256, from 0 to 1.
#[inline(always)]
fn weight(fraction: f64) -> f32 {
    ((fraction * 256.0 + 0.5).floor() / 256.0) as f32
}

#[inline(always)]
fn coordinate(word: u32) -> f64 {
    let x = f64::from(f32::from_bits(word));
    if x.is_nan() { 0.0 } else { x.clamp(-FAR, FAR) }
}

/// Returns the texels on an axis with clamp addressing: the first, the second, and the weight of the second.
/// Without interpolation both are the nearest.
#[inline(always)]
fn places<const MIXES: bool>(
    row: &LaneNumbers<u32>,
    scale: f64,
    last: u32,
) -> (LaneNumbers<u32>, LaneNumbers<u32>, LaneNumbers<f32>) {
    let (mut first, mut second, mut weights) = ([0; LANES], [0; LANES], [0.0; LANES]);
    let last = f64::from(last);
    for lane in 0..LANES {
        let x = coordinate(row[lane]) * scale;
        let left = if MIXES { (x - 0.5).floor() } else { x.floor() };
        first[lane] = number(left.max(0.0).min(last));
        if MIXES {
            second[lane] = number((left + 1.0).max(0.0).min(last));
            weights[lane] = weight(x - 0.5 - left);
        }
    }
    (first, second, weights)
}

/// Returns the texels on an axis with wrap addressing, for normalised coordinates.
#[inline(always)]
fn places_again<const MIXES: bool>(row: &LaneNumbers<u32>, last: u32) -> (LaneNumbers<u32>, LaneNumbers<u32>, LaneNumbers<f32>) {
    let (mut first, mut second, mut weights) = ([0; LANES], [0; LANES], [0.0; LANES]);
    let count = f64::from(last) + 1.0;
    // A wrapped coordinate lies between zero and the count, so a neighbour is outside by one at most.
    let within = |place: f64| if place < 0.0 { place + count } else { place };
    let within = |place: f64| if within(place) >= count { within(place) - count } else { within(place) };
    for lane in 0..LANES {
        let x = coordinate(row[lane]);
        let x = (x - x.floor()) * count;
        let left = if MIXES { (x - 0.5).floor() } else { x.floor() };
        first[lane] = number(within(left));
        if MIXES {
            second[lane] = number(within(left + 1.0));
            weights[lane] = weight(x - 0.5 - left);
        }
    }
    (first, second, weights)
}

/// Read of texels: their addresses and weights by taps, and the destination of the values.
struct TexelRead {
    base: u64,
    offsets: [LaneNumbers<u64>; 8],
    weights: [LaneNumbers<f32>; 8],
    outputs: *mut u64,
}

/// Reader of one channel of a texel: the bits of a float or an integer.
trait Read {
    /// Bytes of a channel.
    const BYTES: usize;
    /// Value of a missing fourth channel.
    const ONE: u32;

    /// Reads a channel.
    ///
    /// # Safety
    ///
    /// `place` points to such a channel.
    unsafe fn read(place: *const u8) -> u32;
}

macro_rules! reader {
    ($name:ident, $ty:ty, $one:expr, $value:expr) => {
        struct $name;

        impl Read for $name {
            const BYTES: usize = size_of::<$ty>();
            const ONE: u32 = $one;

            #[inline(always)]
            unsafe fn read(place: *const u8) -> u32 {
                let value: fn($ty) -> u32 = $value;
                // SAFETY: as promised; texels are aligned to their size.
                value(unsafe { place.cast::<$ty>().read() })
            }
        }
    };
}

const ONE: u32 = 1.0f32.to_bits();
reader!(Float, u32, ONE, |bits| bits);
reader!(Share8, u8, ONE, |value| (f32::from(value) / 255.0).to_bits());
reader!(Share16, u16, ONE, |value| (f32::from(value) / 65535.0).to_bits());
reader!(Word, u32, 1, |bits| bits);
reader!(Unsigned8, u8, 1, u32::from);
reader!(Unsigned16, u16, 1, u32::from);
reader!(Signed8, i8, 1, |value| i32::from(value) as u32);
reader!(Signed16, i16, 1, |value| i32::from(value) as u32);

/// Reads one texel per lane.
///
/// # Safety
///
/// As [`fetch`]; all offsets are inside the image.
#[inline(always)]
unsafe fn plain(wanted: &TexelRead, format: TexelFormat, is_normalised: bool) {
    // SAFETY: passed on.
    unsafe {
        match (format.channel, format.bits, is_normalised) {
            (Channel::Float, _, _) => plain_as::<Float>(wanted, format.channels),
            (_, 8, true) => plain_as::<Share8>(wanted, format.channels),
            (_, _, true) => plain_as::<Share16>(wanted, format.channels),
            (Channel::Unsigned, 8, false) => plain_as::<Unsigned8>(wanted, format.channels),
            (Channel::Unsigned, 16, false) => plain_as::<Unsigned16>(wanted, format.channels),
            (Channel::Signed, 8, false) => plain_as::<Signed8>(wanted, format.channels),
            (Channel::Signed, 16, false) => plain_as::<Signed16>(wanted, format.channels),
            (Channel::Unsigned | Channel::Signed, _, false) => plain_as::<Word>(wanted, format.channels),
        }
    }
}

/// Reads one texel per lane, selecting the number of channels.
///
/// # Safety
///
/// As [`plain`].
#[inline(always)]
unsafe fn plain_as<R: Read>(wanted: &TexelRead, channels: u8) {
    // SAFETY: passed on.
    unsafe {
        match channels {
            1 => plain_of::<R, 1>(wanted),
            2 => plain_of::<R, 2>(wanted),
            _ => plain_of::<R, 4>(wanted),
        }
    }
}

/// Reads one texel per lane of `CHANNELS` channels.
///
/// # Safety
///
/// As [`plain`].
#[inline(always)]
unsafe fn plain_of<R: Read, const CHANNELS: usize>(wanted: &TexelRead) {
    for lane in 0..LANES {
        let place = (wanted.base + wanted.offsets[0][lane]) as *const u8;
        for channel in 0..CHANNELS {
            // SAFETY: as promised.
            unsafe { *wanted.outputs.add(channel * LANES + lane) = u64::from(R::read(place.add(channel * R::BYTES))) };
        }
    }
    // SAFETY: passed on.
    unsafe { fill::<R, CHANNELS>(wanted.outputs) }
}

/// Fills the channels that texels do not have.
///
/// # Safety
///
/// There are four rows.
#[inline(always)]
unsafe fn fill<R: Read, const CHANNELS: usize>(outputs: *mut u64) {
    for channel in CHANNELS..4 {
        for lane in 0..LANES {
            let value = if channel == 3 { R::ONE } else { 0 };
            // SAFETY: as promised.
            unsafe { *outputs.add(channel * LANES + lane) = u64::from(value) };
        }
    }
}

/// Interpolates texels that are read as floats.
///
/// # Safety
///
/// As [`plain`], of texels that are read as floats.
#[inline(always)]
unsafe fn mixed<const TAPS: usize>(wanted: &TexelRead, channels: u8, bits: u8) {
    // SAFETY: passed on.
    unsafe {
        match (bits, channels) {
            (8, 1) => mixed_of::<Share8, TAPS, 1>(wanted),
            (8, 2) => mixed_of::<Share8, TAPS, 2>(wanted),
            (8, _) => mixed_of::<Share8, TAPS, 4>(wanted),
            (16, 1) => mixed_of::<Share16, TAPS, 1>(wanted),
            (16, 2) => mixed_of::<Share16, TAPS, 2>(wanted),
            (16, _) => mixed_of::<Share16, TAPS, 4>(wanted),
            (_, 1) => mixed_of::<Float, TAPS, 1>(wanted),
            (_, 2) => mixed_of::<Float, TAPS, 2>(wanted),
            (_, _) => mixed_of::<Float, TAPS, 4>(wanted),
        }
    }
}

/// Interpolates `TAPS` texels of `CHANNELS` channels per lane.
///
/// # Safety
///
/// As [`mixed`].
#[inline(always)]
unsafe fn mixed_of<R: Read, const TAPS: usize, const CHANNELS: usize>(wanted: &TexelRead) {
    for lane in 0..LANES {
        let mut sums = [0f32; CHANNELS];
        for tap in 0..TAPS {
            let weight = wanted.weights[tap][lane];
            let place = (wanted.base + wanted.offsets[tap][lane]) as *const u8;
            for (channel, sum) in sums.iter_mut().enumerate() {
                // SAFETY: as promised.
                let value = f32::from_bits(unsafe { R::read(place.add(channel * R::BYTES)) });
                // A texel with weight zero is ignored, even if it is NaN or infinite.
                *sum += if weight == 0.0 { 0.0 } else { weight * value };
            }
        }
        for (channel, sum) in sums.into_iter().enumerate() {
            // SAFETY: as promised.
            unsafe { *wanted.outputs.add(channel * LANES + lane) = u64::from(sum.to_bits()) };
        }
    }
    // SAFETY: passed on.
    unsafe { fill::<R, CHANNELS>(wanted.outputs) }
}

/// Clears the lanes whose index is outside a buffer: they read as zeros.
///
/// # Safety
///
/// There are four rows.
#[inline(always)]
unsafe fn clear_beyond(row: &LaneNumbers<u32>, count: u32, outputs: *mut u64) {
    for channel in 0..4 {
        for (lane, number) in row.iter().enumerate() {
            let is_there = *number < count && *number as i32 >= 0;
            // SAFETY: as promised.
            unsafe {
                let place = outputs.add(channel * LANES + lane);
                *place = if is_there { *place } else { 0 };
            }
        }
    }
}
