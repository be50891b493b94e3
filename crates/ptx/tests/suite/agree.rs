//! Registers that operands of a type may have.

use broadloom_ptx::Type;
use broadloom_ptx::verify::agree::Disagreement::{Kind, Width};
use broadloom_ptx::verify::agree::disagreement;

/// Every case was checked with NVIDIA's assembler.
#[test]
fn agrees_as_the_assembler_does() {
    let cases = [
        (Type::U32, Type::B32, false, None),
        (Type::U32, Type::S32, false, None),
        (Type::U32, Type::F32, false, Some(Kind)),
        (Type::U32, Type::B64, false, Some(Width)),
        (Type::U32, Type::F16x2, false, None),
        (Type::U16, Type::F16, false, Some(Kind)),
        (Type::F32, Type::B32, false, None),
        (Type::F32, Type::U32, false, Some(Kind)),
        (Type::F16, Type::B16, false, None),
        (Type::F16, Type::U16, false, Some(Kind)),
        (Type::Bf16, Type::B16, false, None),
        (Type::Bf16, Type::F16, false, Some(Kind)),
        (Type::F16x2, Type::F16x2, false, None),
        (Type::F16x2, Type::F32, false, Some(Kind)),
        (Type::Bf16x2, Type::F16x2, false, Some(Kind)),
        (Type::U16x2, Type::F16x2, false, None),
        (Type::U16x2, Type::U32, false, Some(Kind)),
        (Type::B32, Type::F32, false, None),
        (Type::B32, Type::F16x2, false, None),
        (Type::B16, Type::B8, false, Some(Width)),
        (Type::Pred, Type::Pred, false, None),
        (Type::Pred, Type::B32, false, Some(Kind)),
        (Type::U32, Type::Pred, false, Some(Kind)),
        (Type::U8, Type::B8, true, None),
        (Type::U8, Type::B64, true, None),
        (Type::U8, Type::F32, true, Some(Kind)),
        (Type::B8, Type::F32, true, None),
        (Type::B32, Type::F64, true, None),
        (Type::F32, Type::B64, true, None),
        (Type::F32, Type::F64, true, Some(Width)),
        (Type::F16, Type::F32, true, Some(Width)),
        (Type::U16, Type::F16, true, Some(Kind)),
        (Type::U16, Type::B8, true, Some(Width)),
        (Type::Tf32, Type::B32, false, None),
        (Type::Tf32, Type::F32, false, Some(Kind)),
        (Type::E4m3x2, Type::B16, false, None),
        (Type::E4m3x2, Type::U16, false, Some(Kind)),
    ];
    for (want, reg, wider, expected) in cases {
        assert_eq!(disagreement(want, reg, wider), expected, "{want} with {reg}, wider: {wider}");
    }
}
