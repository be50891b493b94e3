//! Sampling of texels (CUDA programming guide: "Texture Fetching").
//!
//! A coordinate `x` in texels (a normalised one times the number of texels) selects texel `floor(x)` with
//! nearest filtering. Linear filtering uses texels `i` and `i + 1` with `i = floor(x - 0.5)` and the weights
//! `1 - a` and `a`. `a` is the fraction of `x - 0.5` rounded to eight bits, so that it has 257 values from 0
//! to 1. Weights of several axes are multiplied. Coordinates are computed in `f64`, sums in `f32`, along the
//! first axis first. A texel whose weight is zero is not read. Cubes are filtered within a face.

use super::fetch::{Fetch, Geometry, LevelBy, Result4};
use super::{AddressMode, Channel, Filter, Image, Layers, Sampler, TexelFormat};

/// Texture to sample.
#[derive(Clone, Copy, Debug)]
pub struct SampledTexture<'s, L> {
    /// Levels, the largest first.
    pub levels: &'s [L],
    /// Relation of its images.
    pub layers: Layers,
    /// True if texels out of range read as zeros.
    pub is_buffer: bool,
    /// Filter, addressing and coordinates.
    pub sampler: &'s Sampler,
}

/// Texels in memory.
pub trait Texels<L> {
    /// Returns the layout of a level's texels.
    fn image<'l>(&self, level: &'l L) -> &'l Image;

    /// Returns the bits of the texel at a byte offset in a level. The texel is inside the level.
    fn texel(&mut self, level: &L, offset: u64, bytes: u32) -> u128;
}

/// Sampled value, as floats or as integers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Floats([f32; 4]),
    Words([u32; 4]),
}

/// Texels along one axis: indices, `None` beyond the border, and the weight of the second.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tap {
    texels: [Option<u32>; 2],
    weight: f32,
}

/// Texels that contribute to a value.
#[derive(Clone, Copy, Debug)]
struct Taps {
    axes: [Tap; 3],
    slice: Option<u32>,
    mixes: bool,
    zeros_outside: bool,
}

/// Bound of coordinates; beyond it they have the same effect.
const FAR: f64 = 1e9;

/// Returns the index of a texel on an axis of `count` texels; `None` beyond the border.
fn on_axis(number: i64, count: u32, mode: AddressMode) -> Option<u32> {
    let length = i64::from(count.max(1));
    match mode {
        AddressMode::Wrap => Some(number.rem_euclid(length) as u32),
        AddressMode::Mirror => {
            let place = number.rem_euclid(2 * length);
            Some(if place < length { place } else { 2 * length - 1 - place } as u32)
        }
        AddressMode::Clamp => Some(number.clamp(0, length - 1) as u32),
        AddressMode::Border => (0..length).contains(&number).then_some(number as u32),
    }
}

/// Rounds a fraction to steps of 1/256, from 0 to 1.
fn weight(fraction: f64) -> f32 {
    ((fraction * 256.0 + 0.5).floor() / 256.0) as f32
}

impl Taps {
    fn new(
        fetch: &Fetch,
        image: &Image,
        sampler: &Sampler,
        is_buffer: bool,
        position: [u32; 3],
        slice: u32,
        offsets: [i32; 3],
    ) -> Taps {
        let counts = [image.width, image.height, image.depth];
        let is_cube = matches!(fetch.geometry, Geometry::Cube | Geometry::Cubes);
        let mixes = !fetch.by_index && (fetch.gather.is_some() || is_mixed(image.format, sampler));
        let mut axes = [Tap { texels: [Some(0); 2], weight: 0.0 }; 3];
        for axis in 0..fetch.geometry.axes() {
            let (count, offset) = (counts[axis], i64::from(offsets[axis]));
            let mode = if is_cube { AddressMode::Clamp } else { sampler.address[axis] };
            // Only normalised coordinates wrap.
            let normalised = is_cube || sampler.normalised_coordinates && !fetch.by_index;
            let mode = match mode {
                AddressMode::Wrap | AddressMode::Mirror if !normalised => AddressMode::Clamp,
                mode => mode,
            };
            axes[axis] = if fetch.by_index {
                let mode = if is_buffer { AddressMode::Border } else { mode };
                let number = i64::from(position[axis] as i32) + offset;
                Tap { texels: [on_axis(number, count, mode); 2], weight: 0.0 }
            } else {
                let x = f64::from(f32::from_bits(position[axis]));
                let x = if x.is_nan() { 0.0 } else { x.clamp(-FAR, FAR) };
                let x = if normalised { folded(x, mode) * f64::from(count) } else { x };
                if mixes {
                    let left = (x - 0.5).floor();
                    let number = |more: i64| on_axis(left as i64 + offset + more, count, mode);
                    Tap { texels: [number(0), number(1)], weight: weight(x - 0.5 - left) }
                } else {
                    Tap { texels: [on_axis(x.floor() as i64 + offset, count, mode); 2], weight: 0.0 }
                }
            };
        }
        let slices = image.depth.max(1);
        let slice = match fetch.geometry {
            Geometry::Volume => None,
            Geometry::Line | Geometry::Plane | Geometry::Lines | Geometry::Planes | Geometry::Cube | Geometry::Cubes => {
                Some(slice.min(slices - 1))
            }
        };
        Taps { axes, slice, mixes, zeros_outside: is_buffer }
    }

    /// Returns a texel, or the border.
    fn texel<L, T: Texels<L>>(&self, texels: &mut T, level: &L, sampled: &SampledTexture<'_, L>, at: [Option<u32>; 3]) -> Value {
        let image = *texels.image(level);
        let float = is_float(image.format, sampled.sampler);
        let z = if self.slice.is_some() { self.slice } else { at[2] };
        let (Some(x), Some(y), Some(z)) = (at[0], at[1], z) else {
            let border = if self.zeros_outside { [0.0; 4] } else { sampled.sampler.border };
            return if float { Value::Floats(border) } else { Value::Words(border.map(|channel| channel as i64 as u32)) };
        };
        let bits = texels.texel(level, image.offset(x, y, z), image.format.texel_bytes());
        if float { Value::Floats(floats(bits, image.format, sampled.sampler)) } else { Value::Words(words(bits, image.format)) }
    }

    fn value<L, T: Texels<L>>(&self, texels: &mut T, level: &L, sampled: &SampledTexture<'_, L>) -> Value {
        let [x, y, z] = self.axes;
        if !self.mixes {
            return self.texel(texels, level, sampled, [x.texels[0], y.texels[0], z.texels[0]]);
        }
        let mut sum = [0f32; 4];
        for (k, j, i) in (0..8).map(|tap| (tap >> 2, tap >> 1 & 1, tap & 1)) {
            let share = |tap: Tap, side: usize| if side == 1 { tap.weight } else { 1.0 - tap.weight };
            let weight = share(x, i) * share(y, j) * share(z, k);
            if weight == 0.0 {
                continue;
            }
            if let Value::Floats(channels) = self.texel(texels, level, sampled, [x.texels[i], y.texels[j], z.texels[k]]) {
                for (sum, channel) in sum.iter_mut().zip(channels) {
                    *sum += weight * channel;
                }
            }
        }
        Value::Floats(sum)
    }

    /// Returns one component of the four texels around, counter-clockwise from the lower left.
    fn gather<L, T: Texels<L>>(&self, texels: &mut T, level: &L, sampled: &SampledTexture<'_, L>, component: usize) -> Value {
        let [x, y, z] = self.axes;
        let mut one = |i: usize, j: usize| self.texel(texels, level, sampled, [x.texels[i], y.texels[j], z.texels[0]]);
        let four = [one(0, 1), one(1, 1), one(1, 0), one(0, 0)];
        let floats = four.iter().all(|value| matches!(value, Value::Floats(_)));
        let words = four.map(|value| match value {
            Value::Floats(channels) => channels[component & 3].to_bits(),
            Value::Words(words) => words[component & 3],
        });
        if floats { Value::Floats(words.map(f32::from_bits)) } else { Value::Words(words) }
    }
}

/// Folds a normalised coordinate into the image by its addressing mode.
fn folded(x: f64, mode: AddressMode) -> f64 {
    let (whole, fraction) = (x.floor(), x - x.floor());
    match mode {
        AddressMode::Wrap => fraction,
        AddressMode::Mirror if whole.rem_euclid(2.0) == 1.0 => 1.0 - fraction,
        AddressMode::Mirror => fraction,
        AddressMode::Clamp | AddressMode::Border => x,
    }
}

/// Returns the bits of a channel.
fn channel(bits: u128, format: TexelFormat, number: u8) -> u32 {
    let width = u32::from(format.bits);
    (bits >> (width * u32::from(number)) & ((1 << width) - 1)) as u32
}

/// Returns the channels of a texel as integers; missing ones are 0, the last one 1.
fn words(bits: u128, format: TexelFormat) -> [u32; 4] {
    let mut all = [0, 0, 0, 1];
    for number in 0..format.channels {
        let word = channel(bits, format, number);
        all[usize::from(number)] = match format.channel {
            Channel::Signed => crate::sign_extend(u64::from(word), u32::from(format.bits)) as u32,
            Channel::Unsigned | Channel::Float => word,
        };
    }
    all
}

/// Returns the channels of a texel as floats; missing ones are 0, the last one 1.
fn floats(bits: u128, format: TexelFormat, sampler: &Sampler) -> [f32; 4] {
    let mut all = [0.0, 0.0, 0.0, 1.0];
    for number in 0..format.channels {
        let word = channel(bits, format, number);
        let value = match (format.channel, format.bits) {
            (Channel::Float, 16) => half::f16::from_bits(word as u16).to_f32(),
            (Channel::Float, _) => f32::from_bits(word),
            (Channel::Unsigned, bits) => word as f32 / ((1u32 << bits) - 1) as f32,
            (Channel::Signed, bits) => {
                let number = crate::sign_extend(u64::from(word), u32::from(bits)) as f32;
                (number / ((1u32 << (bits - 1)) - 1) as f32).max(-1.0)
            }
        };
        let is_colour = number < 3 && sampler.srgb && format.channel == Channel::Unsigned && format.bits == 8;
        all[usize::from(number)] = if is_colour { linear(value) } else { value };
    }
    all
}

/// Converts an sRGB colour to linear.
fn linear(value: f32) -> f32 {
    if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
}

/// Returns the face of a cube that a direction hits, and the position there, from 0 to 1.
fn face([x, y, z]: [f32; 3]) -> (u32, f32, f32) {
    let (ax, ay, az) = (x.abs(), y.abs(), z.abs());
    let (face, major, s, t) = if ax >= ay && ax >= az {
        if x >= 0.0 { (0, ax, -z, -y) } else { (1, ax, z, -y) }
    } else if ay >= az {
        if y >= 0.0 { (2, ay, x, z) } else { (3, ay, x, -z) }
    } else if z >= 0.0 {
        (4, az, x, -y)
    } else {
        (5, az, -x, -y)
    };
    (face, (s / major + 1.0) / 2.0, (t / major + 1.0) / 2.0)
}

/// Returns the level at which neighbouring threads are about one texel apart.
fn level_of_gradient(image: &Image, sampler: &Sampler, is_cube: bool, x: [f32; 3], y: [f32; 3]) -> f32 {
    let counts = match is_cube {
        // A direction component changes by two over the width of a face.
        true => [image.width as f32 / 2.0; 3],
        false => [image.width, image.height, image.depth].map(|count| count as f32),
    };
    let scale = |axis: usize| if is_cube || sampler.normalised_coordinates { counts[axis] } else { 1.0 };
    let length = |change: [f32; 3]| (0..3).map(|axis| (change[axis] * scale(axis)).powi(2)).sum::<f32>().sqrt();
    length(x).max(length(y)).log2()
}

/// Returns the value of the requested level, or interpolates between two levels.
fn between_levels<L>(sampled: &SampledTexture<'_, L>, number: Option<f32>, mut at: impl FnMut(&L) -> Value) -> Value {
    let Some(first) = sampled.levels.first() else { return Value::Words([0; 4]) };
    let most = sampled.levels.len() - 1;
    let Some(number) = number.filter(|_| most > 0) else { return at(first) };
    let sampler = sampled.sampler;
    let number = number + sampler.level_bias;
    let number = if number.is_nan() { 0.0 } else { number };
    let number = number.min(sampler.most_level).max(sampler.least_level).clamp(0.0, most as f32);
    if sampler.level_filter == Filter::Point {
        return at(&sampled.levels[((number + 0.5).floor() as usize).min(most)]);
    }
    let (below, share) = (number.floor() as usize, weight(f64::from(number - number.floor())));
    if share == 0.0 || below >= most {
        return at(&sampled.levels[below.min(most)]);
    }
    match (at(&sampled.levels[below]), at(&sampled.levels[below + 1])) {
        (Value::Floats(a), Value::Floats(b)) => Value::Floats(std::array::from_fn(|i| (1.0 - share) * a[i] + share * b[i])),
        (a, _) => a,
    }
}

impl Fetch {
    /// Runs the fetch and returns its result words. `inputs` has [`Fetch::words`] words.
    pub fn run<L, T: Texels<L>>(&self, sampled: &SampledTexture<'_, L>, texels: &mut T, inputs: &[u64]) -> [u32; 4] {
        let word = |index: usize| inputs.get(index).copied().unwrap_or(0) as u32;
        let [coordinates, level_words, _] = self.counts.map(usize::from);
        let (first, last) = (usize::from(self.geometry.has_layer()), coordinates + level_words);
        let layer = if first == 1 { word(0) } else { 0 };
        let offset = |axis: usize| if axis < usize::from(self.counts[2]) { word(last + axis) as i32 } else { 0 };
        let offsets = [offset(0), offset(1), offset(2)];
        let position = [word(first), word(first + 1), word(first + 2)];
        let is_cube = matches!(self.geometry, Geometry::Cube | Geometry::Cubes);
        let (position, slice) = match is_cube {
            false => (position, layer),
            true => {
                let (face, s, t) = face(position.map(f32::from_bits));
                ([s.to_bits(), t.to_bits(), 0], layer.saturating_mul(6).saturating_add(face))
            }
        };
        let number = match self.level {
            LevelBy::Base => None,
            LevelBy::Number if self.by_index => Some(word(coordinates) as i32 as f32),
            LevelBy::Number => Some(f32::from_bits(word(coordinates))),
            LevelBy::Gradient => sampled.levels.first().map(|level| {
                let image = texels.image(level);
                let half = level_words / 2;
                let changes = |from: usize| -> [f32; 3] {
                    std::array::from_fn(|axis| if axis < half { f32::from_bits(word(coordinates + from + axis)) } else { 0.0 })
                };
                level_of_gradient(image, sampled.sampler, is_cube, changes(0), changes(half))
            }),
        };
        let at = |texels: &mut T, level: &L| {
            let taps = Taps::new(self, texels.image(level), sampled.sampler, sampled.is_buffer, position, slice, offsets);
            match self.gather {
                Some(component) => taps.gather(texels, level, sampled, usize::from(component)),
                None => taps.value(texels, level, sampled),
            }
        };
        let value = between_levels(sampled, number, |level| at(texels, level));
        self.pack(value)
    }

    fn pack(&self, value: Value) -> [u32; 4] {
        let words = match value {
            Value::Floats(values) => values.map(f32::to_bits),
            Value::Words(words) => words,
        };
        let half = |word: u32| u32::from(half::f16::from_f32(f32::from_bits(word)).to_bits());
        match self.result {
            Result4::Words => words,
            Result4::Halves => words.map(half),
            Result4::Pairs => [half(words[0]) | half(words[1]) << 16, half(words[2]) | half(words[3]) << 16, 0, 0],
        }
    }
}

/// Returns whether texels of a format are returned as floats.
fn is_float(format: TexelFormat, sampler: &Sampler) -> bool {
    format.channel == Channel::Float || (sampler.normalised_values && format.bits < 32)
}

/// Returns whether neighbouring texels are interpolated.
fn is_mixed(format: TexelFormat, sampler: &Sampler) -> bool {
    sampler.filter == Filter::Linear && is_float(format, sampler)
}
