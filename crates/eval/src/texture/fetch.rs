//! Texture fetches: `tex`, `tld4`.

use super::sample::Taps;
use super::{Channel, Filter, Format, Image, Layers, Sampler};
use broadloom_ptx::{InstData, Modifier, Opcode, Operand, Type};

/// Meaning of coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Geometry {
    /// `.1d`.
    Line,
    /// `.2d`.
    Plane,
    /// `.3d`.
    Volume,
    /// `.a1d`: the layer comes first.
    Lines,
    /// `.a2d`: the layer comes first.
    Planes,
    /// `.cube`: a direction.
    Cube,
    /// `.acube`: the index of the cube comes first.
    Cubes,
}

impl Geometry {
    const ALL: [(Modifier, Geometry); 7] = [
        (Modifier::N1d, Geometry::Line),
        (Modifier::N2d, Geometry::Plane),
        (Modifier::N3d, Geometry::Volume),
        (Modifier::A1d, Geometry::Lines),
        (Modifier::A2d, Geometry::Planes),
        (Modifier::Cube, Geometry::Cube),
        (Modifier::Acube, Geometry::Cubes),
    ];

    /// Returns the geometry among the modifiers of an instruction; `None` if it has none of these.
    pub fn of(inst: &InstData) -> Option<Geometry> {
        Geometry::ALL.iter().find(|(modifier, _)| inst.has(*modifier)).map(|(_, geometry)| *geometry)
    }

    /// Returns whether the first coordinate is the index of a layer.
    pub fn has_layer(self) -> bool {
        matches!(self, Geometry::Lines | Geometry::Planes | Geometry::Cubes)
    }

    /// Returns the number of axes of an image.
    pub fn axes(self) -> usize {
        match self {
            Geometry::Line | Geometry::Lines => 1,
            Geometry::Plane | Geometry::Planes | Geometry::Cube | Geometry::Cubes => 2,
            Geometry::Volume => 3,
        }
    }

    /// Returns the minimum number of coordinates, including the layer.
    pub(super) fn coordinates(self) -> usize {
        match self {
            Geometry::Line => 1,
            Geometry::Plane | Geometry::Lines => 2,
            Geometry::Volume | Geometry::Planes | Geometry::Cube => 3,
            Geometry::Cubes => 4,
        }
    }

    pub(super) fn from_bits(bits: u64) -> Option<Geometry> {
        Geometry::ALL.get(bits as usize).map(|(_, geometry)| *geometry)
    }
}

/// Selection of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LevelBy {
    /// The first.
    Base,
    /// By its number.
    Number,
    /// By the gradients of the coordinates.
    Gradient,
}

/// Form of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Result4 {
    /// Four words.
    Words,
    /// Four halves.
    Halves,
    /// Two pairs of halves.
    Pairs,
}

/// Instruction that fetches from a texture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fetch {
    /// Meaning of coordinates.
    pub geometry: Geometry,
    /// True if coordinates are integers.
    pub by_index: bool,
    /// Selection of a level.
    pub level: LevelBy,
    /// Form of the result.
    pub result: Result4,
    /// `tld4`: the component that is gathered.
    pub gather: Option<u8>,
    /// Number of coordinates, of words for the level, and of words for an offset.
    counts: [u8; 3],
}

/// Maximum number of words of an instruction: four coordinates, two gradients of four, an offset of three and
/// one ignored word.
pub const MOST_WORDS: usize = 16;

impl Fetch {
    /// Returns the fetch of an instruction. Returns `None` for other instructions, and for fetches with a
    /// separate sampler, with a depth comparison, or with several samples.
    pub fn of(inst: &InstData) -> Option<Fetch> {
        let gather = match inst.opcode()? {
            Opcode::Tex => None,
            Opcode::Tld4 => {
                let components = [Modifier::R, Modifier::G, Modifier::B, Modifier::A];
                Some(components.iter().position(|modifier| inst.has(*modifier))? as u8)
            }
            _ => return None,
        };
        let (inputs, geometry) = (Fetch::inputs(inst)?, Geometry::of(inst)?);
        if inputs.coordinates.len() < geometry.coordinates() || inputs.words() > MOST_WORDS {
            return None;
        }
        let types: Vec<Type> = inst.types().collect();
        let [result, .., coordinates] = types.as_slice() else { return None };
        let level = match (inst.has(Modifier::Level), inst.has(Modifier::Grad)) {
            (true, _) => LevelBy::Number,
            (_, true) => LevelBy::Gradient,
            (false, false) => LevelBy::Base,
        };
        Some(Fetch {
            geometry,
            by_index: *coordinates == Type::S32,
            level,
            result: match result {
                Type::F16 => Result4::Halves,
                Type::F16x2 => Result4::Pairs,
                _ => Result4::Words,
            },
            gather,
            counts: [inputs.coordinates.len() as u8, inputs.level.len() as u8, inputs.offset.len() as u8],
        })
    }

    /// Returns the operands of a fetch; `None` like [`Fetch::of`].
    pub fn inputs(inst: &InstData) -> Option<FetchInputs<'_>> {
        let form = inst.form()?;
        let mut inputs = FetchInputs::default();
        for (spec, operand) in form.operands.iter().zip(&inst.operands) {
            match (operand, spec.name) {
                (Operand::Absent, _) => {}
                (Operand::Texture(texture), _) => {
                    let [coordinates] = texture.rest.as_slice() else { return None };
                    inputs.coordinates = coordinates.elements();
                }
                (operand, "l") => inputs.level = vec![operand],
                (operand, "x" | "y") if !spec.written => inputs.level.extend(operand.elements()),
                (operand, "e") => inputs.offset = operand.elements(),
                (_, "f") => return None,
                (_, _) => {}
            }
        }
        Some(inputs)
    }

    /// Returns the number of input words: coordinates, the level, an offset.
    pub fn words(&self) -> usize {
        self.counts.iter().map(|count| usize::from(*count)).sum()
    }

    /// Returns whether an offset is added to texel indices.
    pub fn has_offset(&self) -> bool {
        self.counts[2] > 0
    }

    /// Returns the number of result words.
    pub fn results(&self) -> usize {
        if self.result == Result4::Pairs { 2 } else { 4 }
    }

    /// Encodes the fetch as a number.
    pub fn bits(&self) -> u64 {
        let gather = self.gather.map_or(0, |component| u64::from(component) + 1);
        let counts = self.counts.map(u64::from);
        self.geometry as u64
            | u64::from(self.by_index) << 4
            | (self.level as u64) << 5
            | (self.result as u64) << 8
            | gather << 12
            | counts[0] << 16
            | counts[1] << 20
            | counts[2] << 24
    }

    /// Decodes a fetch from a number.
    pub fn from_bits(bits: u64) -> Option<Fetch> {
        let level = [LevelBy::Base, LevelBy::Number, LevelBy::Gradient];
        let result = [Result4::Words, Result4::Halves, Result4::Pairs];
        Some(Fetch {
            geometry: Geometry::from_bits(bits & 15)?,
            by_index: bits >> 4 & 1 == 1,
            level: *level.get((bits >> 5 & 7) as usize)?,
            result: *result.get((bits >> 8 & 15) as usize)?,
            gather: (bits >> 12 & 15).checked_sub(1).map(|component| component as u8),
            counts: [(bits >> 16 & 15) as u8, (bits >> 20 & 15) as u8, (bits >> 24 & 15) as u8],
        })
    }
}

/// Operands of a fetch.
#[derive(Debug, Default)]
pub struct FetchInputs<'i> {
    /// Coordinates, after the layer.
    pub coordinates: &'i [Operand],
    /// Level, or gradients of the coordinates.
    pub level: Vec<&'i Operand>,
    /// Offset of texel indices.
    pub offset: &'i [Operand],
}

impl FetchInputs<'_> {
    fn words(&self) -> usize {
        self.coordinates.len() + self.level.len() + self.offset.len()
    }
}

/// Texture to sample.
#[derive(Clone, Copy, Debug)]
pub struct Sampled<'s, L> {
    /// Levels, the largest first.
    pub levels: &'s [L],
    /// Relation of its images.
    pub layers: Layers,
    /// True if texels out of range read as zeros.
    pub is_buffer: bool,
    /// Sampler.
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
pub(super) enum Value {
    Floats([f32; 4]),
    Words([u32; 4]),
}

impl Fetch {
    /// Runs the fetch and returns its result words. `inputs` has [`Fetch::words`] words.
    pub fn run<L, T: Texels<L>>(&self, sampled: &Sampled<'_, L>, texels: &mut T, inputs: &[u64]) -> [u32; 4] {
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
                let (face, s, t) = super::sample::face(position.map(f32::from_bits));
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
                super::sample::level_of_gradient(image, sampled.sampler, is_cube, changes(0), changes(half))
            }),
        };
        let at = |texels: &mut T, level: &L| {
            let taps = Taps::new(self, texels.image(level), sampled.sampler, sampled.is_buffer, position, slice, offsets);
            match self.gather {
                Some(component) => taps.gather(texels, level, sampled, usize::from(component)),
                None => taps.value(texels, level, sampled),
            }
        };
        let value = super::sample::between_levels(sampled, number, |level| at(texels, level));
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
pub(super) fn is_float(format: Format, sampler: &Sampler) -> bool {
    format.channel == Channel::Float || (sampler.normalised_values && format.bits < 32)
}

/// Returns whether neighbouring texels are interpolated.
pub(super) fn is_mixed(format: Format, sampler: &Sampler) -> bool {
    sampler.filter == Filter::Linear && is_float(format, sampler)
}
