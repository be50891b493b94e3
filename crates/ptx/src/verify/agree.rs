//! Agreement of register types with operand types (manual: "Operand Size Exceeding Instruction-Type Size",
//! "Type Checking").

use super::article;
use crate::types::{Type, TypeKind};

/// Reason why a register does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// Different kind of value.
    Kind,
    /// Different width.
    Width,
}

/// Returns the reason why a register of type `reg` does not fit an operand of type `want`. With `wider`, it
/// may have more bits.
pub fn disagreement(want: Type, reg: Type, wider: bool) -> Option<Disagreement> {
    if (want == Type::Pred) != (reg == Type::Pred) {
        return Some(Disagreement::Kind);
    }
    let width_fits = if wider { reg.bits() >= want.bits() } else { reg.bits() == want.bits() };
    // `.f16x2` counts as untyped bits for everything but other floats.
    let kind_fits = match (want.kind(), reg.kind()) {
        (TypeKind::Predicate, TypeKind::Predicate) => true,
        (TypeKind::Bits, _) => true,
        (_, TypeKind::Bits) => true,
        (TypeKind::Unsigned | TypeKind::Signed, TypeKind::Unsigned | TypeKind::Signed | TypeKind::Packed) => true,
        (TypeKind::Float, TypeKind::Float) => {
            // A float in a wider register must be in an untyped register.
            if want.bits() == reg.bits() { want == reg } else { return Some(Disagreement::Width) }
        }
        (TypeKind::Packed, TypeKind::Packed) => want == reg || matches!(want, Type::U16x2 | Type::S16x2),
        (
            TypeKind::Unsigned
            | TypeKind::Signed
            | TypeKind::Float
            | TypeKind::Packed
            | TypeKind::Alternate
            | TypeKind::Opaque
            | TypeKind::Predicate,
            _,
        ) => false,
    };
    match (kind_fits, width_fits) {
        (_, false) => Some(Disagreement::Width),
        (false, true) => Some(Disagreement::Kind),
        (true, true) => None,
    }
}

/// Describes the registers that would fit.
pub(super) fn expectation(want: Type, wider: bool) -> String {
    let bits = Type::bits_of(want.bits()).map_or_else(|| want.to_string(), |bits| bits.to_string());
    let list = match want.kind() {
        TypeKind::Predicate => return "a `.pred` register".to_owned(),
        TypeKind::Bits => return format!("a register of {} bits{}", want.bits(), if wider { " or more" } else { "" }),
        TypeKind::Unsigned | TypeKind::Signed => {
            format!("a `.u{0}`, `.s{0}` or `.b{0}` register", want.bits())
        }
        TypeKind::Float if want == Type::Bf16 => format!("a `{bits}` register"),
        TypeKind::Float => format!("{} `{want}` or `{bits}` register", article(want.name())),
        TypeKind::Packed if want == Type::F16x2 => format!("an `{want}` or `{bits}` register"),
        TypeKind::Packed | TypeKind::Alternate | TypeKind::Opaque => format!("a `{bits}` register"),
    };
    if wider { format!("{list}, or a wider one") } else { list }
}

/// Returns advice on how to fix a disagreement.
pub(super) fn advice(want: Type, reg: Type) -> Option<String> {
    let number = |ty: Type| match ty.kind() {
        TypeKind::Bits => format!("u{}", ty.bits()),
        _ => ty.name().to_owned(),
    };
    if want == Type::Pred {
        return Some("`setp` compares and gives a predicate".into());
    }
    if reg == Type::Pred {
        return Some("`selp` turns a predicate into a value".into());
    }
    let plain = |ty: Type| {
        matches!(ty.kind(), TypeKind::Bits | TypeKind::Signed | TypeKind::Unsigned) && ty.bits() <= 64
            || matches!(ty, Type::F16 | Type::F32 | Type::F64)
    };
    if !plain(want) || !plain(reg) {
        return None;
    }
    let rounding = match (want.is_float(), reg.is_float()) {
        (true, true) if want.bits() < reg.bits() => ".rn",
        (true, false) => ".rn",
        (false, true) => ".rzi",
        (true, true) | (false, false) => "",
    };
    let convert = format!("`cvt{rounding}.{}.{}` converts the value", number(want), number(reg));
    if want.bits() == reg.bits() && want.bits() >= 16 {
        Some(format!("{convert}, `mov.b{}` copies the bits", want.bits()))
    } else {
        Some(convert)
    }
}
