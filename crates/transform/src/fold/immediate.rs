//! Known values as immediates.

use broadloom_eval::{sign_extend, truncate};
use broadloom_ptx::{Imm, Type, TypeKind};

/// Returns the immediate with these bits for an operand of a type; `None` if the type takes none.
pub(crate) fn immediate(value: u64, ty: Type) -> Option<Imm> {
    let value = truncate(value, ty.bits());
    match (ty.kind(), ty.bits()) {
        (TypeKind::Signed, bits @ ..=64) => Some(Imm::Int(sign_extend(value, bits))),
        (TypeKind::Unsigned | TypeKind::Bits, ..=64) => Some(Imm::from_u64(value)),
        (TypeKind::Float, 32) => Some(Imm::F32(value as u32)),
        (TypeKind::Float, 64) => Some(Imm::F64(value)),
        (TypeKind::Signed | TypeKind::Unsigned | TypeKind::Bits | TypeKind::Float, _) => None,
        (TypeKind::Predicate | TypeKind::Packed | TypeKind::Alternate | TypeKind::Opaque, _) => None,
    }
}
