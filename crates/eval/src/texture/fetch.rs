//! Texture fetches: `tex`, `tld4`.

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
    pub(super) counts: [u8; 3],
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
