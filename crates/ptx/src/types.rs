//! Types of PTX values (manual: "Types", "Packed Data Types", "Alternate Floating-Point Data Formats").

use std::fmt;

macro_rules! types {
    ($($variant:ident $name:literal $kind:ident $bits:literal,)*) => {
        /// PTX type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Type {
            $(#[doc = concat!("`.", $name, "`")] $variant,)*
        }

        impl Type {
            /// All types.
            pub const ALL: &'static [Type] = &[$(Type::$variant,)*];

            /// Returns the name, without its dot.
            pub const fn name(self) -> &'static str {
                match self { $(Type::$variant => $name,)* }
            }

            /// Returns the type of a name, without its dot.
            pub fn from_name(name: &str) -> Option<Type> {
                match name { $($name => Some(Type::$variant),)* _ => None }
            }

            /// Returns the kind of its values.
            pub const fn kind(self) -> TypeKind {
                match self { $(Type::$variant => TypeKind::$kind,)* }
            }

            /// Returns its width in bits; a predicate has one.
            pub const fn bits(self) -> u32 {
                match self { $(Type::$variant => $bits,)* }
            }
        }
    };
}

/// Kind of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TypeKind {
    /// Untyped bits.
    Bits,
    /// Unsigned integers.
    Unsigned,
    /// Integers in two's complement.
    Signed,
    /// IEEE numbers and `bf16`.
    Float,
    /// Truth values.
    Predicate,
    /// Several numbers in one register.
    Packed,
    /// Formats that only conversions and matrix instructions support, held in untyped registers.
    Alternate,
    /// Handles of textures, samplers and surfaces.
    Opaque,
}

types! {
    B1 "b1" Alternate 1,
    B4 "b4" Alternate 4,
    B8 "b8" Bits 8,
    B16 "b16" Bits 16,
    B32 "b32" Bits 32,
    B64 "b64" Bits 64,
    B128 "b128" Bits 128,
    U4 "u4" Alternate 4,
    U8 "u8" Unsigned 8,
    U16 "u16" Unsigned 16,
    U32 "u32" Unsigned 32,
    U64 "u64" Unsigned 64,
    S4 "s4" Alternate 4,
    S8 "s8" Signed 8,
    S16 "s16" Signed 16,
    S32 "s32" Signed 32,
    S64 "s64" Signed 64,
    F16 "f16" Float 16,
    F32 "f32" Float 32,
    F64 "f64" Float 64,
    Bf16 "bf16" Float 16,
    F16x2 "f16x2" Packed 32,
    Bf16x2 "bf16x2" Packed 32,
    F32x2 "f32x2" Packed 64,
    U16x2 "u16x2" Packed 32,
    S16x2 "s16x2" Packed 32,
    U8x4 "u8x4" Packed 32,
    S8x4 "s8x4" Packed 32,
    Tf32 "tf32" Alternate 32,
    E4m3 "e4m3" Alternate 8,
    E5m2 "e5m2" Alternate 8,
    E3m2 "e3m2" Alternate 8,
    E2m3 "e2m3" Alternate 8,
    E2m1 "e2m1" Alternate 8,
    Ue8m0 "ue8m0" Alternate 8,
    Ue4m3 "ue4m3" Alternate 8,
    E4m3x2 "e4m3x2" Alternate 16,
    E5m2x2 "e5m2x2" Alternate 16,
    E3m2x2 "e3m2x2" Alternate 16,
    E2m3x2 "e2m3x2" Alternate 16,
    E2m1x2 "e2m1x2" Alternate 8,
    Ue8m0x2 "ue8m0x2" Alternate 16,
    Ue5m3x2 "ue5m3x2" Alternate 16,
    E4m3x4 "e4m3x4" Alternate 32,
    E5m2x4 "e5m2x4" Alternate 32,
    E3m2x4 "e3m2x4" Alternate 32,
    E2m3x4 "e2m3x4" Alternate 32,
    E2m1x4 "e2m1x4" Alternate 16,
    E2m1p4x4 "e2m1p4x4" Alternate 32,
    Ue8m0x4 "ue8m0x4" Alternate 32,
    S2f6x2 "s2f6x2" Alternate 16,
    Pred "pred" Predicate 1,
    Texref "texref" Opaque 64,
    Samplerref "samplerref" Opaque 64,
    Surfref "surfref" Opaque 64,
}

impl Type {
    /// Returns the size in memory in bytes. Predicates cannot be in memory; they count as one byte.
    pub const fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Tests if a register can be declared with this type (manual: "Register State Space").
    pub const fn is_register(self) -> bool {
        match self.kind() {
            TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed | TypeKind::Predicate => true,
            // `bf16` and its pair are instruction types only; untyped registers hold them.
            TypeKind::Float => !matches!(self, Type::Bf16),
            TypeKind::Packed => matches!(self, Type::F16x2),
            TypeKind::Alternate | TypeKind::Opaque => false,
        }
    }

    /// Tests if a variable in memory can be declared with this type.
    pub const fn is_memory(self) -> bool {
        match self.kind() {
            TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed | TypeKind::Opaque => true,
            TypeKind::Float => !matches!(self, Type::Bf16),
            TypeKind::Packed => matches!(self, Type::F16x2),
            TypeKind::Predicate | TypeKind::Alternate => false,
        }
    }

    /// Tests if values are signed integers in two's complement.
    pub const fn is_signed(self) -> bool {
        matches!(self.kind(), TypeKind::Signed) || matches!(self, Type::S16x2 | Type::S8x4)
    }

    /// Tests if values are integers, signed or not.
    pub const fn is_integer(self) -> bool {
        matches!(self.kind(), TypeKind::Signed | TypeKind::Unsigned)
    }

    /// Tests if values are floating-point numbers, one per register.
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), TypeKind::Float)
    }

    /// Returns the type of the same kind with twice the bits, as for `mul.wide` and `mad.wide`.
    pub const fn widened(self) -> Option<Type> {
        Some(match self {
            Type::U8 => Type::U16,
            Type::U16 => Type::U32,
            Type::U32 => Type::U64,
            Type::S8 => Type::S16,
            Type::S16 => Type::S32,
            Type::S32 => Type::S64,
            Type::B8 => Type::B16,
            Type::B16 => Type::B32,
            Type::B32 => Type::B64,
            Type::B64 => Type::B128,
            Type::F16 => Type::F32,
            Type::F32 => Type::F64,
            _ => return None,
        })
    }

    /// Returns the type of a register that holds such a value. Types narrower than 16 bits are held in 16
    /// bits, halves and packed types in untyped registers.
    pub const fn register(self) -> Type {
        match self {
            Type::B8 => Type::B16,
            Type::U8 => Type::U16,
            Type::S8 => Type::S16,
            _ => match self.kind() {
                TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed | TypeKind::Predicate => self,
                TypeKind::Float if self.bits() > 16 => self,
                TypeKind::Float | TypeKind::Packed | TypeKind::Alternate | TypeKind::Opaque => match self.bits() {
                    64 => Type::B64,
                    32 => Type::B32,
                    _ => Type::B16,
                },
            },
        }
    }

    /// Returns the PTX type for a type name of another language, for suggestions.
    pub(crate) fn meant(name: &str) -> Option<&'static str> {
        Some(match name {
            "i8" | "char" | "int8" => "s8",
            "i16" | "short" | "int16" => "s16",
            "i32" | "int" | "int32" => "s32",
            "i64" | "long" | "int64" => "s64",
            "byte" | "uchar" | "uint8" | "bool" => "u8",
            "ushort" | "uint16" => "u16",
            "uint" | "unsigned" | "uint32" => "u32",
            "ulong" | "uint64" => "u64",
            "half" | "float16" => "f16",
            "bfloat16" => "bf16",
            "float" | "float32" => "f32",
            "double" | "float64" => "f64",
            "i1" | "predicate" => "pred",
            _ => return None,
        })
    }

    /// Returns the untyped register type of a width.
    pub const fn bits_of(bits: u32) -> Option<Type> {
        Some(match bits {
            8 => Type::B8,
            16 => Type::B16,
            32 => Type::B32,
            64 => Type::B64,
            128 => Type::B128,
            _ => return None,
        })
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.name())
    }
}

/// PTX state space (manual: "State Spaces").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// Generic: the address determines the space.
    Generic,
    /// Registers.
    Reg,
    /// Constants, with all banks merged.
    Const,
    /// Memory of the whole device.
    Global,
    /// Memory of one thread.
    Local,
    /// Memory of one CTA.
    Shared,
    /// Parameters of kernels and functions.
    Param,
    /// Textures, in the old style of declaration.
    Tex,
}

impl Space {
    /// Returns the word, without its dot; empty for generic.
    pub const fn name(self) -> &'static str {
        match self {
            Space::Generic => "",
            Space::Reg => "reg",
            Space::Const => "const",
            Space::Global => "global",
            Space::Local => "local",
            Space::Shared => "shared",
            Space::Param => "param",
            Space::Tex => "tex",
        }
    }

    /// Returns the state space of a word in a variable declaration, without its dot.
    pub fn from_name(name: &str) -> Option<Space> {
        Some(match name {
            "reg" => Space::Reg,
            "const" => Space::Const,
            "global" => Space::Global,
            "local" => Space::Local,
            "shared" => Space::Shared,
            "param" => Space::Param,
            "tex" => Space::Tex,
            _ => return None,
        })
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Space::Generic => f.write_str("generic"),
            Space::Reg | Space::Const | Space::Global | Space::Local | Space::Shared | Space::Param | Space::Tex => {
                write!(f, ".{}", self.name())
            }
        }
    }
}

/// Version of the PTX language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IsaVersion {
    /// Major version.
    pub major: u8,
    /// Minor version.
    pub minor: u8,
}

impl IsaVersion {
    /// Creates the version `major.minor`.
    pub const fn new(major: u8, minor: u8) -> Self {
        IsaVersion { major, minor }
    }
}

impl fmt::Display for IsaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
