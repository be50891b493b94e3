//! Matrices held jointly by the lanes of a warp: the layout of their elements, and their products (manual:
//! "Warp Level Matrix Instructions").
//!
//! A *fragment* is the part of one matrix that all lanes hold: registers, each with one or more elements side
//! by side, the lowest first. Values of fragments are passed as `[register][lane]`, as registers hold them.
//!
//! **Numbers.** The manual leaves the order and the rounding of float sums open. Here a product of two
//! elements is exact, and sums go along `k` from 0 on: each product is added to the accumulator by a fused
//! multiply-add of `f32`, rounded to nearest, denormals kept. An `f16` accumulator is kept in `f32` and
//! rounded once, at the end. `f64` is added with the rounding of the instruction. Integer sums are exact, and
//! truncated or clamped to 32 bits at the end. NaN results are canonical.
//!
//! The layout of `wmma` fragments, which the manual leaves open, is that of `mma`: the same register by
//! register, with more registers for more rows or columns, repeated from the start if there are more
//! registers than elements.

mod product;
mod transfer;

pub use product::{Logic, Product};
pub use transfer::{ROW_BYTES, Rows, Transfer, transpose};

use broadloom_ptx::{InstData, Modifier, Type};

/// Number of lanes of a warp.
pub const LANES: usize = 32;

/// Role of a matrix in a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Left factor, `m` rows of `k`.
    A,
    /// Right factor, `k` rows of `n`.
    B,
    /// Addend, and the result, `m` rows of `n`.
    C,
}

/// Sizes of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProductShape {
    /// Rows of the result.
    pub m: u32,
    /// Columns of the result.
    pub n: u32,
    /// Columns of the left factor, rows of the right one.
    pub k: u32,
}

impl ProductShape {
    /// Returns the shape among the modifiers of an instruction: `.m16n8k16`.
    fn of(inst: &InstData) -> Option<ProductShape> {
        inst.modifiers().find_map(|modifier| ProductShape::from_text(modifier.text()))
    }

    /// Returns the shape that a text such as `m16n8k16` names.
    pub fn from_text(text: &str) -> Option<ProductShape> {
        let (m, rest) = text.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some(ProductShape { m: m.parse().ok()?, n: n.parse().ok()?, k: k.parse().ok()? })
    }

    /// Returns the rows and columns of one of the matrices.
    pub fn extent(self, role: Role) -> (u32, u32) {
        match role {
            Role::A => (self.m, self.k),
            Role::B => (self.k, self.n),
            Role::C => (self.m, self.n),
        }
    }

    /// Returns the row and the column of an element of a fragment, by lane and element index. `per_register`
    /// is the number of elements in a register of a factor.
    ///
    /// A factor is split into tiles of 8 rows (for `B` columns) by four registers along `k`; each lane has
    /// one register of each tile. Tiles follow each other along the 8 first for `A`, along `k` first for `B`.
    /// The result is split into tiles of 8 by 8 with two elements for each lane, those below each other
    /// first.
    pub fn place(self, role: Role, lane: u32, element: u32, per_register: u32) -> (u32, u32) {
        let (group, member) = (lane / 4, lane % 4);
        match role {
            Role::A | Role::B => {
                let (wide, deep) = (if role == Role::A { self.m } else { self.n } / 8, self.k / (4 * per_register));
                let (tile, within) = (element / per_register % (wide * deep), element % per_register);
                let (across, along) = if role == Role::A { (tile % wide, tile / wide) } else { (tile / deep, tile % deep) };
                let (outer, inner) = (8 * across + group, 4 * per_register * along + per_register * member + within);
                if role == Role::A { (outer, inner) } else { (inner, outer) }
            }
            Role::C => {
                let (high, wide) = (self.m / 8, self.n / 8);
                let tile = element / 2 % (high * wide);
                (8 * (tile % high) + group, 8 * (tile / high) + 2 * member + element % 2)
            }
        }
    }
}

/// Returns the number of elements of a factor in one register.
pub fn per_register(ty: Type) -> u32 {
    if ty == Type::F64 { 1 } else { 32 / ty.bits() }
}

/// Returns the number of elements of an accumulator in one register.
pub fn per_accumulator(ty: Type) -> u32 {
    if ty == Type::F16 { 2 } else { 1 }
}

/// Returns whether this module describes an instruction with a shape: no sparse matrix, no scaled blocks,
/// none of the formats of 4 and 6 bits.
fn is_plain(inst: &InstData) -> bool {
    !inst.modifiers().any(|modifier: Modifier| {
        let text = modifier.text();
        text == "sp" || text.starts_with("sp::") || text.starts_with("kind::") || text.starts_with("block_scale")
    })
}
