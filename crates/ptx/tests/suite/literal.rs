//! Numbers in texts, and numbers at the end of names.

use broadloom_ptx::Imm;
use broadloom_ptx::literal::{LiteralError, read, split_number};

#[test]
fn reads_every_notation() {
    assert_eq!(read("0"), Ok(Imm::Int(0)));
    assert_eq!(read("42"), Ok(Imm::Int(42)));
    assert_eq!(read("0x1F"), Ok(Imm::Int(31)));
    assert_eq!(read("017"), Ok(Imm::Int(15)));
    assert_eq!(read("0b101"), Ok(Imm::Int(5)));
    assert_eq!(read("7U"), Ok(Imm::Int(7)));
    assert_eq!(read("18446744073709551615"), Ok(Imm::Uint(u64::MAX)));
    assert_eq!(read("0f3F800000"), Ok(Imm::F32(0x3f80_0000)));
    assert_eq!(read("0d3FF0000000000000"), Ok(Imm::F64(1f64.to_bits())));
    assert_eq!(read("1.5e3"), Ok(Imm::F64(1500f64.to_bits())));
    assert_eq!(read("2."), Ok(Imm::F64(2f64.to_bits())));
    assert_eq!(read(".5"), Ok(Imm::F64(0.5f64.to_bits())));
}

#[test]
fn refuses_the_rest() {
    assert_eq!(read("18446744073709551616"), Err(LiteralError::TooLarge));
    assert_eq!(read("08"), Err(LiteralError::Digit { letter: '8', base: 8 }));
    assert_eq!(read("0x"), Err(LiteralError::NoDigits));
    assert_eq!(read("1.5f"), Err(LiteralError::Float));
    assert_eq!(read("0f3F8"), Err(LiteralError::FloatDigits));
    assert_eq!(read("0d3F800000"), Err(LiteralError::FloatDigits));
    assert_eq!(read("12ab"), Err(LiteralError::Digit { letter: 'a', base: 10 }));
}

#[test]
fn numbers_of_names_have_no_leading_zero() {
    assert_eq!(split_number("%r12"), Some(("%r", 12)));
    assert_eq!(split_number("%r0"), Some(("%r", 0)));
    assert_eq!(split_number("%r01"), None);
    assert_eq!(split_number("%r"), None);
    assert_eq!(split_number("%r99999999999999999999"), None);
}
