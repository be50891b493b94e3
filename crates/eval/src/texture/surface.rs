//! Surfaces: texels by index, and properties of textures and surfaces: `suld`, `sust`, `sured`, `txq`, `suq`.

use super::{AddressMode, Channel, Filter, Geometry, Image, Layers, Sampler, channel_codes};
use broadloom_ptx::{InstData, Modifier, Opcode, Operand, Type};

/// Treatment of an access beyond the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Beyond {
    /// The launch ends.
    Trap,
    /// The nearest texel is accessed.
    Clamp,
    /// A load returns zero, a store does nothing.
    Zero,
}

/// Operation on a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SurfaceOperation {
    /// `suld.b`
    Load,
    /// `sust.b`
    Store,
    /// `sust.p`: the first coordinate counts texels, and values are converted.
    StoreTexel,
    /// `sured.*.add`
    Add,
    /// `sured.*.min`
    Min,
    /// `sured.*.max`
    Max,
    /// `sured.*.and`
    And,
    /// `sured.*.or`
    Or,
}

const DOINGS: [SurfaceOperation; 8] = [
    SurfaceOperation::Load,
    SurfaceOperation::Store,
    SurfaceOperation::StoreTexel,
    SurfaceOperation::Add,
    SurfaceOperation::Min,
    SurfaceOperation::Max,
    SurfaceOperation::And,
    SurfaceOperation::Or,
];

/// Instruction that reads or writes a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SurfaceAccess {
    /// Operation.
    pub doing: SurfaceOperation,
    /// Meaning of coordinates.
    pub geometry: Geometry,
    /// Treatment beyond the edge.
    pub beyond: Beyond,
    /// True if the first coordinate counts texels, not bytes.
    pub by_texel: bool,
    /// True for signed numbers; for `sured.p` the format of the surface decides.
    pub signed: bool,
    /// Bytes of an element.
    pub bytes: u8,
    /// Number of elements.
    pub elements: u8,
    /// Number of coordinates.
    pub coordinates: u8,
}

/// Access outside of a surface that ends the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("({}, {}, {}) is outside of a surface of {row} bytes, {} rows, {} slices", at[0], at[1], at[2], image.height, image.depth)]
pub struct OutsideSurface {
    /// Byte in a row, row and slice.
    pub at: [i64; 3],
    /// Bytes of a row.
    pub row: i64,
    /// The surface.
    pub image: Image,
}

impl SurfaceAccess {
    /// Returns the access of an instruction; `None` for other instructions.
    pub fn of(inst: &InstData) -> Option<SurfaceAccess> {
        let by_texel = inst.has(Modifier::P);
        let doing = match inst.opcode()? {
            Opcode::Suld => SurfaceOperation::Load,
            Opcode::Sust if by_texel => SurfaceOperation::StoreTexel,
            Opcode::Sust => SurfaceOperation::Store,
            Opcode::Sured => {
                let kinds = [
                    (Modifier::Add, SurfaceOperation::Add),
                    (Modifier::Min, SurfaceOperation::Min),
                    (Modifier::Max, SurfaceOperation::Max),
                    (Modifier::And, SurfaceOperation::And),
                    (Modifier::Or, SurfaceOperation::Or),
                ];
                kinds.iter().find(|(modifier, _)| inst.has(*modifier))?.1
            }
            _ => return None,
        };
        let (coordinates, values) = SurfaceAccess::inputs(inst)?;
        let geometry = Geometry::of(inst)?;
        if coordinates.len() < geometry.coordinates()
            || coordinates.len() > 4
            || matches!(geometry, Geometry::Cube | Geometry::Cubes)
        {
            return None;
        }
        let ty = inst.types().next()?;
        let count = match doing {
            SurfaceOperation::Load => inst.operands.first()?.elements().len(),
            _ => values.len(),
        };
        Some(SurfaceAccess {
            doing,
            geometry,
            beyond: match (inst.has(Modifier::Clamp), inst.has(Modifier::Zero)) {
                (true, _) => Beyond::Clamp,
                (_, true) => Beyond::Zero,
                (false, false) => Beyond::Trap,
            },
            by_texel,
            signed: ty.is_signed(),
            bytes: ty.bytes() as u8,
            elements: count as u8,
            coordinates: coordinates.len() as u8,
        })
    }

    /// Returns the coordinates and the stored values; `None` for other instructions.
    pub fn inputs(inst: &InstData) -> Option<(&[Operand], &[Operand])> {
        let place = inst.operands.iter().position(|operand| matches!(operand, Operand::Texture(_)))?;
        let Operand::Texture(texture) = &inst.operands[place] else { return None };
        let [coordinates] = texture.rest.as_slice() else { return None };
        let values = inst.operands.get(place + 1).map_or(&[] as &[Operand], Operand::elements);
        Some((coordinates.elements(), values))
    }

    /// Returns the number of input words: coordinates, then values.
    pub fn words(&self) -> usize {
        usize::from(self.coordinates) + if self.doing == SurfaceOperation::Load { 0 } else { usize::from(self.elements) }
    }

    /// Returns the number of result words.
    pub fn results(&self) -> usize {
        if self.doing == SurfaceOperation::Load { usize::from(self.elements) } else { 0 }
    }

    /// Returns the bytes of memory that are accessed in an image.
    pub fn total(&self, image: &Image) -> u32 {
        match self.doing {
            SurfaceOperation::StoreTexel => image.format.texel_bytes(),
            _ => u32::from(self.bytes) * u32::from(self.elements),
        }
    }

    /// Encodes the access as a number.
    pub fn bits(&self) -> u64 {
        self.doing as u64
            | (self.geometry as u64) << 4
            | (self.beyond as u64) << 8
            | u64::from(self.by_texel) << 12
            | u64::from(self.signed) << 13
            | u64::from(self.bytes) << 16
            | u64::from(self.elements) << 24
            | u64::from(self.coordinates) << 32
    }

    /// Decodes an access from a number.
    pub fn from_bits(bits: u64) -> Option<SurfaceAccess> {
        Some(SurfaceAccess {
            doing: *DOINGS.get((bits & 15) as usize)?,
            geometry: Geometry::from_bits(bits >> 4 & 15)?,
            beyond: *[Beyond::Trap, Beyond::Clamp, Beyond::Zero].get((bits >> 8 & 15) as usize)?,
            by_texel: bits >> 12 & 1 == 1,
            signed: bits >> 13 & 1 == 1,
            bytes: (bits >> 16) as u8,
            elements: (bits >> 24) as u8,
            coordinates: (bits >> 32) as u8,
        })
    }

    /// Returns the address in bytes from the first texel; `Ok(None)` if nothing is accessed, an error if the
    /// launch ends.
    pub fn place(&self, image: &Image, coordinates: &[u64]) -> Result<Option<u64>, OutsideSurface> {
        let number = |index: usize| i64::from(coordinates.get(index).copied().unwrap_or(0) as i32);
        let first = usize::from(self.geometry.has_layer());
        let axes = self.geometry.axes();
        let y = if axes > 1 { number(first + 1) } else { 0 };
        let z = match (first, axes) {
            (1, _) => number(0),
            (_, 3) => number(2),
            (_, _) => 0,
        };
        let unit = match (self.by_texel, self.doing) {
            (false, _) => 1,
            (true, SurfaceOperation::StoreTexel) => i64::from(image.format.texel_bytes()),
            // A reduction determines its own size.
            (true, _) => i64::from(self.bytes),
        };
        let x = number(first).saturating_mul(unit);
        let total = i64::from(self.total(image));
        let row = i64::from(image.width) * i64::from(image.format.texel_bytes());
        let most = [(row - total).max(0), i64::from(image.height) - 1, i64::from(image.depth) - 1];
        let at = [x, y, z];
        let inside = total <= row && at.iter().zip(most).all(|(at, most)| (0..=most).contains(at));
        let at = match self.beyond {
            _ if inside => at,
            Beyond::Zero => return Ok(None),
            // An access wider than a row has no valid address.
            Beyond::Clamp if total > row => return Ok(None),
            Beyond::Clamp => std::array::from_fn(|axis| at[axis].clamp(0, most[axis])),
            Beyond::Trap => return Err(OutsideSurface { at, row, image: *image }),
        };
        let [x, y, z] = at.map(|at| at as u64);
        // Addresses are multiples of the size of an access.
        let x = x / total.max(1) as u64 * total.max(1) as u64;
        Ok(Some(z * image.slice_pitch + y * image.row_pitch + x))
    }

    /// Returns the stored bits for some values, in a surface of a format.
    pub fn stored(&self, image: &Image, values: &[u64]) -> u128 {
        let pack = |width: u32, values: &mut dyn Iterator<Item = u64>| {
            (0..).zip(values).fold(0u128, |bits, (index, value)| {
                let mask = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
                bits | u128::from(value & mask) << (width * index).min(127)
            })
        };
        if self.doing != SurfaceOperation::StoreTexel {
            return pack(8 * u32::from(self.bytes), &mut values.iter().copied());
        }
        let format = image.format;
        let limit = |value: i64, low: i64, high: i64| value.clamp(low, high) as u64;
        let convert = |value: u64| match (format.channel, format.bits) {
            (Channel::Float, 16) => u64::from(half::f16::from_f32(f32::from_bits(value as u32)).to_bits()),
            (_, 32) => value,
            (Channel::Signed, bits) => {
                let top = 1i64 << (bits - 1);
                limit(i64::from(value as u32 as i32), -top, top - 1)
            }
            (Channel::Unsigned | Channel::Float, bits) => limit(i64::from(value as u32), 0, (1i64 << bits) - 1),
        };
        let channels = usize::from(format.channels);
        pack(u32::from(format.bits), &mut values.iter().copied().chain(std::iter::repeat(0)).take(channels).map(convert))
    }

    /// Returns the result of a reduction.
    pub fn reduced(&self, image: &Image, old: u64, value: u64) -> u64 {
        let bits = 8 * u32::from(self.bytes);
        let signed = if self.by_texel { image.format.channel == Channel::Signed } else { self.signed };
        let order = |a: u64, b: u64| match signed {
            true => crate::sign_extend(a, bits) <= crate::sign_extend(b, bits),
            false => crate::truncate(a, bits) <= crate::truncate(b, bits),
        };
        let result = match self.doing {
            SurfaceOperation::Add => old.wrapping_add(value),
            SurfaceOperation::Min => {
                if order(old, value) {
                    old
                } else {
                    value
                }
            }
            SurfaceOperation::Max => {
                if order(old, value) {
                    value
                } else {
                    old
                }
            }
            SurfaceOperation::And => old & value,
            SurfaceOperation::Or => old | value,
            SurfaceOperation::Load | SurfaceOperation::Store | SurfaceOperation::StoreTexel => value,
        };
        crate::truncate(result, bits)
    }
}

/// Property that `txq` or `suq` queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Query {
    /// Texels of a row.
    Width,
    /// Rows.
    Height,
    /// Slices.
    Depth,
    /// Contents of a channel.
    ChannelType,
    /// The order of channels in a texel.
    ChannelOrder,
    /// True if coordinates go from 0 to 1.
    Normalised,
    /// True if coordinates are forced to be unnormalised, independent of the texture.
    ForceUnnormalised,
    /// Interpolation between texels.
    Filter,
    /// Addressing beyond the edges of the first axis.
    Address0,
    /// Addressing beyond the edges of the second axis.
    Address1,
    /// Addressing beyond the edges of the third axis.
    Address2,
    /// Number of layers.
    Layers,
    /// Number of levels.
    Levels,
    /// Number of samples of a texel.
    Samples,
    /// True if rows follow each other in memory.
    Linear,
}

const QUERIES: [(Modifier, Query); 15] = [
    (Modifier::Width, Query::Width),
    (Modifier::Height, Query::Height),
    (Modifier::Depth, Query::Depth),
    (Modifier::ChannelDataType, Query::ChannelType),
    (Modifier::ChannelOrder, Query::ChannelOrder),
    (Modifier::NormalizedCoords, Query::Normalised),
    (Modifier::ForceUnnormalizedCoords, Query::ForceUnnormalised),
    (Modifier::FilterMode, Query::Filter),
    (Modifier::AddrMode0, Query::Address0),
    (Modifier::AddrMode1, Query::Address1),
    (Modifier::AddrMode2, Query::Address2),
    (Modifier::ArraySize, Query::Layers),
    (Modifier::NumMipmapLevels, Query::Levels),
    (Modifier::NumSamples, Query::Samples),
    (Modifier::MemoryLayout, Query::Linear),
];

impl Query {
    /// Returns the query of an instruction; `None` for other instructions.
    pub fn of(inst: &InstData) -> Option<Query> {
        if !matches!(inst.opcode()?, Opcode::Txq | Opcode::Suq) {
            return None;
        }
        QUERIES.iter().find(|(modifier, _)| inst.has(*modifier)).map(|(_, query)| *query)
    }

    /// Decodes a query from a number.
    pub fn from_bits(bits: u64) -> Option<Query> {
        QUERIES.get(bits as usize).map(|(_, query)| *query)
    }

    /// Returns the answer for a texture or surface with `levels` levels; `image` is one of them.
    pub fn answer(self, image: &Image, layers: Layers, levels: usize, sampler: &Sampler) -> u32 {
        let (kind, order) = channel_codes(image.format, sampler.normalised_values);
        let address = |axis: usize| match sampler.address[axis] {
            AddressMode::Wrap => 0,
            AddressMode::Mirror => 1,
            AddressMode::Clamp => 3,
            AddressMode::Border => 4,
        };
        match self {
            Query::Width => image.width,
            Query::Height => image.height,
            Query::Depth => match layers {
                Layers::None => image.depth,
                Layers::Array | Layers::Cube | Layers::CubeArray => 0,
            },
            Query::ChannelType => kind,
            Query::ChannelOrder => order,
            Query::Normalised => u32::from(sampler.normalised_coordinates),
            Query::ForceUnnormalised | Query::Samples => 0,
            Query::Filter => u32::from(sampler.filter == Filter::Linear),
            Query::Address0 => address(0),
            Query::Address1 => address(1),
            Query::Address2 => address(2),
            Query::Layers => match layers {
                Layers::None | Layers::Cube => 0,
                Layers::Array => image.depth,
                Layers::CubeArray => image.depth / 6,
            },
            Query::Levels => {
                if levels > 1 {
                    levels as u32
                } else {
                    0
                }
            }
            Query::Linear => 1,
        }
    }
}

/// Returns the type of a register that holds an element of a surface.
pub fn element_type(access: &SurfaceAccess) -> Type {
    Type::bits_of(8 * u32::from(access.bytes)).unwrap_or(Type::B32)
}
