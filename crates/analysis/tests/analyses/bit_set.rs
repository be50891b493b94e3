//! Sets of bits, compared with ordinary sets.

use crate::testing::Random;
use broadloom_analysis::bit_set::BitSet;
use broadloom_ptx::Reg;
use std::collections::BTreeSet;

#[test]
fn behaves_as_a_set() {
    let mut random = Random::new(5);
    let reg = |random: &mut Random| Reg::from_u32(random.below(200) as u32);
    let mut sets: Vec<(BitSet<Reg>, BTreeSet<Reg>)> = vec![Default::default(); 3];
    for _ in 0..5000 {
        let (which, id) = (random.below(3), reg(&mut random));
        let (other, without) = (sets[random.below(3)].clone(), sets[random.below(3)].clone());
        let (bits, plain) = &mut sets[which];
        match random.below(8) {
            0..=2 => assert_eq!(bits.insert(id), plain.insert(id)),
            3..=5 => assert_eq!(bits.remove(id), plain.remove(&id)),
            6 if random.below(10) == 0 => {
                assert_eq!(bits.union_with(&other.0), !other.1.is_subset(plain));
                plain.extend(&other.1);
            }
            7 if random.below(10) == 0 => {
                let added: BTreeSet<Reg> = other.1.difference(&without.1).copied().collect();
                assert_eq!(bits.union_with_difference(&other.0, &without.0), !added.is_subset(plain));
                plain.extend(&added);
            }
            _ => {}
        }
        assert_eq!(bits.contains(id), plain.contains(&id));
        assert!(bits.iter().eq(plain.iter().copied()) && bits.len() == plain.len() && bits.is_empty() == plain.is_empty());
    }
    assert_eq!(BitSet::<Reg>::with_capacity(100), BitSet::new());
}
