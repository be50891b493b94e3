//! Entries of chains.

use broadloom_scalar::Type;
use broadloom_skeleton::kit::{Draft, TileChain};
use broadloom_skeleton::{Operator, Result};

#[test]
fn values_are_cut_into_words() -> Result<()> {
    let words = |types: &[Type]| -> Result<u32> {
        let sums: Vec<Operator> = types.iter().map(|ty| Operator::sum(*ty)).collect::<Result<_>>()?;
        let mut draft = Draft::new("chain", 0);
        Ok(TileChain::new(&mut draft, &Operator::all(&sums)?, Type::U32, &1u32.into(), &1u32.into()).words())
    };
    assert_eq!(words(&[Type::F32])?, 1);
    assert_eq!(words(&[Type::BOOL, Type::F32])?, 1);
    assert_eq!(words(&[Type::F32, Type::F32])?, 2);
    assert_eq!(words(&[Type::F64])?, 2);
    assert_eq!(words(&[Type::BOOL, Type::I64])?, 2);
    assert_eq!(words(&[Type::U8, Type::U8, Type::U16, Type::BOOL])?, 1);
    assert_eq!(words(&[Type::BOOL, Type::I64, Type::F16, Type::F64])?, 4);
    Ok(())
}
