//! Operations, and the nodes made of them.
//!
//! A [`Node`] is an operation on earlier nodes with the type of its result. *Pure* nodes depend only on their
//! operands and never fail. They have no place: equal ones are one node. They are computed at the best place,
//! before all their uses and outside of the loops that do not change them. All other nodes are *placed*: they
//! happen at a statement, each time it is reached.
//!
//! Every pure operation has a defined result for all operands:
//!
//! | operation | result |
//! | --- | --- |
//! | integer `+ - *`, negation, absolute value | modulo the width |
//! | integer `x / 0`, `x % 0` | 0 and `x` |
//! | integer `MIN / -1`, `MIN % -1` | `MIN` and 0 |
//! | shifts by the width or more | 0, or the sign for signed `>>` |
//! | `min`, `max` of floats | a number is preferred to NaN; -0 is less than +0 |
//! | float to integer | rounded towards zero, clamped to the range, NaN to 0: as Rust's `as` |
//! | integer to narrower integer | modulo the width |
//! | number to `bool` | true if it is not zero; true for NaN |
//! | a table at an index beyond its end | its last entry |
//!
//! Float arithmetic follows IEEE 754: rounding to nearest even, with subnormal numbers. The bits of a NaN
//! result are not specified.

use crate::id::{AccessorId, ArrayId, BlockId, Id, Ids, SharedId, TableId, Var};
use crate::math_function::{MathFunction, Precision};
use crate::memory::{Access, Base};
use crate::types::{Literal, Type};

macro_rules! operations {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// All variants.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// Returns its name in printed code.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}

operations! {
    /// An operation on one value.
    UnaryOp {
        /// Negation. Integers and floats.
        Neg "neg",
        /// All bits inverted; logical not for `bool`. Integers and `bool`.
        Not "not",
        /// The absolute value. Integers and floats.
        Abs "abs",
        /// Number of one bits, in the same type. Integers.
        Popcount "popcount",
        /// Number of leading zero bits, in the same type. Integers.
        LeadingZeros "leading_zeros",
        /// Number of trailing zero bits, in the same type. Integers.
        TrailingZeros "trailing_zeros",
        /// The bits in reverse order. Integers.
        ReverseBits "reverse_bits",
        /// Rounded down. Floats.
        Floor "floor",
        /// Rounded up. Floats.
        Ceil "ceil",
        /// Rounded towards zero. Floats.
        Trunc "trunc",
        /// Rounded to the nearest integer, halves to the even one. Floats.
        RoundEven "round_even",
        /// The square root, correctly rounded. Floats.
        Sqrt "sqrt",
        /// Approximation of 1/x: at most 1 ulp, `rcp.approx`. `f32`.
        RcpApprox "rcp_approx",
        /// Approximation of the square root: 2^-23 relative, `sqrt.approx`. `f32`.
        SqrtApprox "sqrt_approx",
        /// Approximation of the reciprocal square root: 2^-22.9 relative, `rsqrt.approx`. `f32` and `f64`.
        RsqrtApprox "rsqrt_approx",
        /// Approximation of 2 to the power of x: 2 ulp, `ex2.approx`. `f32`.
        Exp2Approx "exp2_approx",
        /// Approximation of the logarithm to base 2: 2^-22, `lg2.approx`. `f32`.
        Log2Approx "log2_approx",
        /// Approximation of the sine, for small angles: 2^-20.5 absolute within one turn, `sin.approx`.
        /// `f32`.
        SinApprox "sin_approx",
        /// Approximation of the cosine, for small angles: 2^-20.5 absolute within one turn, `cos.approx`.
        /// `f32`.
        CosApprox "cos_approx",
        /// Approximation of the hyperbolic tangent: 2^-11 relative, `tanh.approx`. `f32`.
        TanhApprox "tanh_approx",
    }
}

operations! {
    /// An operation on two values of one type, which is the type of the result. The amount of a shift is `u32`.
    BinaryOp {
        /// The sum. Integers and floats.
        Add "+",
        /// The difference. Integers and floats.
        Sub "-",
        /// The product. Integers and floats.
        Mul "*",
        /// The upper half of the product. Integers.
        MulHigh "mul_high",
        /// The quotient. Integers (towards zero) and floats.
        Div "/",
        /// The remainder, with the sign of the dividend. Integers.
        Rem "%",
        /// The minimum. Integers and floats.
        Min "min",
        /// The maximum. Integers and floats.
        Max "max",
        /// Bitwise and. Integers and `bool`.
        And "&",
        /// Bitwise or. Integers and `bool`.
        Or "|",
        /// Bitwise exclusive or. Integers and `bool`.
        Xor "^",
        /// Shift left. Integers.
        Shl "<<",
        /// Shift right; arithmetic for signed types. Integers.
        Shr ">>",
        /// The sum, clamped to the range of the type. Integers.
        AddSaturating "add_saturating",
        /// The difference, clamped to the range of the type. Integers.
        SubSaturating "sub_saturating",
        /// The magnitude of the first with the sign of the second. Floats.
        CopySign "copysign",
        /// Approximation of the quotient: 2 ulp, `div.full`. `f32`.
        DivApprox "div_approx",
    }
}

operations! {
    /// A comparison. All except `Ne` are false if an operand is NaN.
    CompareOp {
        /// Equal.
        Eq "==",
        /// Not equal.
        Ne "!=",
        /// Less. Not `bool`.
        Lt "<",
        /// Less or equal. Not `bool`.
        Le "<=",
        /// Greater. Not `bool`.
        Gt ">",
        /// Greater or equal. Not `bool`.
        Ge ">=",
    }
}

impl CompareOp {
    /// Returns the comparison with the operands exchanged.
    #[must_use]
    pub const fn swapped(self) -> CompareOp {
        match self {
            CompareOp::Eq => CompareOp::Eq,
            CompareOp::Ne => CompareOp::Ne,
            CompareOp::Lt => CompareOp::Gt,
            CompareOp::Le => CompareOp::Ge,
            CompareOp::Gt => CompareOp::Lt,
            CompareOp::Ge => CompareOp::Le,
        }
    }

    /// Returns the comparison that is true exactly if this one is false, for operands other than NaN.
    #[must_use]
    pub const fn inverse(self) -> CompareOp {
        match self {
            CompareOp::Eq => CompareOp::Ne,
            CompareOp::Ne => CompareOp::Eq,
            CompareOp::Lt => CompareOp::Ge,
            CompareOp::Le => CompareOp::Gt,
            CompareOp::Gt => CompareOp::Le,
            CompareOp::Ge => CompareOp::Lt,
        }
    }
}

/// A direction of blocks and grids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are PTX's own")]
pub enum Axis {
    X,
    Y,
    Z,
}

impl Axis {
    /// All directions.
    pub const ALL: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Axis::X => "x",
            Axis::Y => "y",
            Axis::Z => "z",
        }
    }
}

/// Special registers of a thread. All are `u32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Special {
    /// Index of the thread in its block.
    Thread(Axis),
    /// Number of threads of a block.
    BlockSize(Axis),
    /// Index of the block in its grid.
    Block(Axis),
    /// Number of blocks of the grid.
    GridSize(Axis),
    /// Lane of the thread in its warp.
    Lane,
    /// Bit of this lane.
    LaneMaskEq,
    /// Bits of the lower lanes.
    LaneMaskLt,
    /// Bits of this lane and the lower ones.
    LaneMaskLe,
    /// Bits of the higher lanes.
    LaneMaskGt,
    /// Bits of this lane and the higher ones.
    LaneMaskGe,
    /// Number of bytes of dynamic shared memory of the launch.
    DynamicSharedBytes,
}

/// The source lane of a shuffle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shuffle {
    /// The lane at this distance below. A lane without a source keeps its own value.
    Up,
    /// The lane at this distance above. A lane without a source keeps its own value.
    Down,
    /// The lane whose number is the exclusive or with this mask.
    Xor,
    /// The lane with this number.
    Index,
}

/// A vote of all lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Vote {
    /// True if the predicate is true in all lanes.
    All,
    /// True if the predicate is true in some lane.
    Any,
    /// True if the predicate is the same in all lanes.
    Uniform,
}

/// A reduction over the lanes of a warp, of `i32` or `u32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum WarpReduce {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
}

/// Atomic operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AtomicOp {
    /// Addition. `i32 u32 i64 u64 f16 f32 f64`.
    Add,
    /// Minimum. `i32 u32 i64 u64`.
    Min,
    /// Maximum. `i32 u32 i64 u64`.
    Max,
    /// Bitwise and. 32- and 64-bit integers.
    And,
    /// Bitwise or. 32- and 64-bit integers.
    Or,
    /// Bitwise exclusive or. 32- and 64-bit integers.
    Xor,
    /// Replaces the value. All types of 32 and 64 bits.
    Exchange,
    /// Replaces the value if it equals the expected one. All types of 16, 32 and 64 bits except floats.
    CompareExchange,
}

/// An operation with its operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    // Pure.
    /// A constant.
    Literal(Literal),
    /// A parameter of the function or kernel. A pointer is a `u64`.
    Parameter(u32),
    /// A special register of the thread.
    Special(Special),
    /// An operation on one value.
    Unary(UnaryOp, Id),
    /// An operation on two values.
    Binary(BinaryOp, Id, Id),
    /// A comparison.
    Compare(CompareOp, Id, Id),
    /// `a * b + c`, rounded once. Floats.
    Fma(Id, Id, Id),
    /// The second operand if the first is true, otherwise the third.
    Select(Id, Id, Id),
    /// A conversion to another type.
    Convert(Id),
    /// The bits as another type of the same width.
    Bitcast(Id),
    /// An elementary function.
    Math(MathFunction, Precision, Ids),
    /// A vector from its lanes.
    Vector(Ids),
    /// A lane of a vector.
    Lane(Id, u8),
    /// An entry of a constant table.
    Table(TableId, Id),
    /// A value that is promised to be in this range.
    Assume(Id, i128, i128),
    /// The address of an array in shared memory, a `u32`.
    SharedAddress(SharedId),
    /// The address of a local array, a `u64`.
    LocalAddress(ArrayId),

    // Placed.
    /// The counter of a loop.
    Counter(BlockId),
    /// The value of a variable.
    Get(Var),
    /// An element of a local array.
    Element(ArrayId, Id),
    /// Memory at an index, in elements of the access's type.
    Load(Base, Id, Access),
    /// An input at a position.
    Read(AccessorId, Ids),
    /// An input at offsets from the position of the thread.
    Window(AccessorId, Ids),
    /// The next element of a queue, which advances.
    Pop(AccessorId),
    /// An element of a queue, counted from the next one.
    Peek(AccessorId, Id),
    /// A value of another lane: group size, value, amount or lane, members. Groups have 32, 16, 8, 4 or 2
    /// lanes.
    Shuffle(Shuffle, u8, Id, Id, Id),
    /// A vote: predicate, members.
    Vote(Vote, Id, Id),
    /// The mask of lanes in which the predicate is true: predicate, members.
    Ballot(Id, Id),
    /// The mask of lanes with the same value: value, members.
    Match(Id, Id),
    /// A reduction over the warp: value, members.
    WarpReduce(WarpReduce, Id, Id),
    /// The mask of active lanes.
    ActiveMask,
    /// An atomic operation on memory at an index. Its result is the old value. The last operand is the
    /// expected value.
    Atomic(AtomicOp, Base, Id, Access, Id, Option<Id>),
    /// A block barrier. Its result is the number of threads whose predicate is true.
    BarrierCount(Id),
}

/// An operation and the type of its result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// The operation.
    pub op: Op,
    /// The type of the result.
    pub ty: Type,
}

/// Pattern of all pure operations, for matches that treat them alike.
macro_rules! pure_op {
    () => {
        Op::Literal(_)
            | Op::Parameter(_)
            | Op::Special(_)
            | Op::Unary(..)
            | Op::Binary(..)
            | Op::Compare(..)
            | Op::Fma(..)
            | Op::Select(..)
            | Op::Convert(_)
            | Op::Bitcast(_)
            | Op::Math(..)
            | Op::Vector(_)
            | Op::Lane(..)
            | Op::Table(..)
            | Op::Assume(..)
            | Op::SharedAddress(_)
            | Op::LocalAddress(_)
    };
}

/// Pattern of all placed operations, for matches that treat them alike.
macro_rules! placed_op {
    () => {
        Op::Counter(_)
            | Op::Get(_)
            | Op::Element(..)
            | Op::Load(..)
            | Op::Read(..)
            | Op::Window(..)
            | Op::Pop(_)
            | Op::Peek(..)
            | Op::Shuffle(..)
            | Op::Vote(..)
            | Op::Ballot(..)
            | Op::Match(..)
            | Op::WarpReduce(..)
            | Op::ActiveMask
            | Op::Atomic(..)
            | Op::BarrierCount(_)
    };
}

/// Calls a function for each operand of an operation, in order. The function takes `&Id` or `&mut Id`,
/// depending on the borrow of the operation.
macro_rules! visit_operands {
    ($base:expr) => {
        match $base {
            Base::Global(id) | Base::SharedAt(id) | Base::Shared(_, Some(id)) => Some(id),
            Base::Shared(_, None) => None,
        }
    };
    ($op:expr, $see:expr) => {
        match $op {
            Op::Literal(_)
            | Op::Parameter(_)
            | Op::Special(_)
            | Op::SharedAddress(_)
            | Op::LocalAddress(_)
            | Op::Counter(_)
            | Op::Get(_)
            | Op::Pop(_)
            | Op::ActiveMask => {}
            Op::Unary(_, a)
            | Op::Convert(a)
            | Op::Bitcast(a)
            | Op::Lane(a, _)
            | Op::Table(_, a)
            | Op::Assume(a, _, _)
            | Op::Element(_, a)
            | Op::Peek(_, a)
            | Op::BarrierCount(a) => [a].into_iter().for_each($see),
            Op::Binary(_, a, b)
            | Op::Compare(_, a, b)
            | Op::Vote(_, a, b)
            | Op::Ballot(a, b)
            | Op::Match(a, b)
            | Op::WarpReduce(_, a, b) => [a, b].into_iter().for_each($see),
            Op::Fma(a, b, c) | Op::Select(a, b, c) | Op::Shuffle(_, _, a, b, c) => [a, b, c].into_iter().for_each($see),
            Op::Math(_, _, list) | Op::Vector(list) | Op::Read(_, list) | Op::Window(_, list) => list.into_iter().for_each($see),
            Op::Load(base, index, _) => visit_operands!(base).into_iter().chain([index]).for_each($see),
            Op::Atomic(_, base, index, _, value, expected) => {
                visit_operands!(base).into_iter().chain([index, value]).chain(expected).for_each($see)
            }
        }
    };
}

pub(crate) use {placed_op, pure_op};

impl Op {
    /// Returns true if the operation depends only on its operands and may be computed anywhere.
    pub fn is_pure(&self) -> bool {
        match self {
            pure_op!() => true,
            placed_op!() => false,
        }
    }

    /// Returns true if the operation may be removed when its result is not used.
    pub fn is_removable(&self) -> bool {
        match self {
            Op::Get(_) | Op::Element(..) | Op::Read(..) | Op::Window(..) | Op::Peek(..) => true,
            Op::Load(_, _, access) => access.is_plain(),
            other => other.is_pure(),
        }
    }

    /// Calls a function for each operand, in order.
    pub fn each_operand(&self, mut see: impl FnMut(Id)) {
        visit_operands!(self, |id: &Id| see(*id));
    }

    /// Returns the operation with other operands.
    #[must_use]
    pub fn with_operands(&self, mut change: impl FnMut(Id) -> Id) -> Op {
        let mut op = self.clone();
        visit_operands!(&mut op, |id: &mut Id| *id = change(*id));
        op
    }
}
