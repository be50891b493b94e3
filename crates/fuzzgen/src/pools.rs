//! Registers of a kernel: a few of each kind, all of them live from beginning to end.

use broadloom_ptx::{Type, TypeKind};
use broadloom_random::Random;

/// Kind of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    /// Their prefix.
    pub(crate) prefix: &'static str,
    /// Their type.
    pub(crate) ty: Type,
    /// Number of registers.
    pub(crate) count: usize,
}

/// All kinds.
pub(crate) const POOLS: &[Pool] = &[
    Pool { prefix: "%p", ty: Type::Pred, count: 6 },
    Pool { prefix: "%h", ty: Type::B16, count: 6 },
    Pool { prefix: "%r", ty: Type::B32, count: 12 },
    Pool { prefix: "%d", ty: Type::B64, count: 8 },
    Pool { prefix: "%f", ty: Type::F32, count: 8 },
    Pool { prefix: "%g", ty: Type::F64, count: 6 },
];

/// Returns the kind of registers that hold values of a type; `None` for types that no register here can hold.
pub(crate) fn pool_of(ty: Type, wider: bool) -> Option<&'static Pool> {
    let by = |wanted: Type| POOLS.iter().find(|pool| pool.ty == wanted);
    match (ty, ty.kind(), ty.bits()) {
        (Type::F32, ..) => by(Type::F32),
        (Type::F64, ..) => by(Type::F64),
        (_, TypeKind::Predicate, _) => by(Type::Pred),
        (_, TypeKind::Opaque, _) => None,
        (_, _, 8) if wider => by(Type::B32),
        (_, _, 16) => by(Type::B16),
        (_, _, 32) => by(Type::B32),
        (_, _, 64) => by(Type::B64),
        _ => None,
    }
}

impl Pool {
    /// Returns one of its registers at random.
    pub(crate) fn pick(&self, random: &mut Random) -> String {
        format!("{}{}", self.prefix, random.below(self.count))
    }
}
