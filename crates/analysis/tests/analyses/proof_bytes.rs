//! Proofs for launches, and their bytes.

use crate::testing::checks::{Kernel, params};
use broadloom_analysis::{Assume, Facts, Obligation, Proof, rounded_up};

const TEXT: &str = ".entry k(.param .u32 n, .param .u32 m, .param .u64 base) {
    .reg .pred p, q; .reg .b32 nn, t, i, j, k, r, w; .reg .b64 d, e, unused; ld.param.u32 nn, [n]; mov.u32 t, %tid.x;
    cvt.u64.u32 unused, nn; mov.u32 i, 0; mov.u32 k, 5; mov.u32 w, %laneid; max.s32 w, w, 3;
    L: add.s32 j, i, t; mul.wide.s32 d, j, 4; mad.lo.s32 r, k, 2, t; cvt.s64.s32 e, r; add.s64 unused, unused, d;
    add.s32 i, i, 1; add.s32 k, k, 3; setp.lt.s32 p, i, nn; @p bra L; ret; }";

fn proof_of(text: &str) -> (Kernel, Proof, Vec<Obligation>) {
    let kernel = Kernel::new(text);
    let obligations = kernel.shapes(&Facts::new([64, 1, 1]), Assume::NoWrap).obligations().to_vec();
    let proof = Proof::new(&kernel.plan, &obligations).unwrap();
    (kernel, proof, obligations)
}

fn proof() -> (Kernel, Proof, Vec<Obligation>) {
    proof_of(TEXT)
}

#[test]
fn a_proof_for_rounded_sizes_holds_for_all_of_them() {
    let (_, proof, _) = proof();
    // The other two parameters do not matter.
    assert_eq!(proof.params(), [(0, 4)]);
    let facts = |grid: u32, n: u32| Facts::new([64, 1, 1]).with_grid([grid, 1, 1]).with_params(params(n, 0, 0));
    for n in [0, 1, 2, 3, 100, 128, 129, 1 << 20, 0x2000_0000, 0x5555_5555, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
        let rounded = facts(5, n).with_rounded_sizes();
        let like = [n, rounded_up(n.into()) as u32, (rounded_up(n.into()) / 2 + 1).min(n.into()) as u32];
        let alike = like.into_iter().filter(|m| rounded_up(u64::from(*m)) == rounded_up(n.into()));
        let mut all = alike.flat_map(|m| [5, 6, 8].map(|grid| facts(grid, m)));
        assert!(!proof.holds(&rounded) || all.all(|facts| proof.holds(&facts)), "{n}");
    }
    assert!(proof.holds(&facts(5, 1000).with_rounded_sizes()));
    assert!(!proof.holds(&facts(5, 0x7fff_ffff).with_rounded_sizes()));
}

#[test]
fn a_proof_holds_when_the_whole_plan_proves_it() {
    let (kernel, proof, obligations) = proof();
    for n in [0, 1, 100, 1 << 20, 0x2000_0000, 0x5555_5555, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
        let facts = Facts::new([64, 1, 1]).with_grid([4, 1, 1]).with_params(params(n, 0, 0));
        assert_eq!(proof.holds(&facts), kernel.plan.ranges(&facts).proves(&obligations), "{n}");
    }
    // Steps that no obligation needs are not in the proof.
    let unneeded = "mov.u32 w, %laneid; max.s32 w, w, 3;";
    for others in [String::new(), unneeded.repeat(5)] {
        assert_eq!(proof.encode().len(), proof_of(&TEXT.replace(unneeded, &others)).1.encode().len(), "{others}");
    }
    assert_eq!(Proof::new(&kernel.plan, &[]), None);
}

#[test]
fn bytes_give_the_proof_back_or_nothing() {
    let (_, proof, _) = proof();
    let whole = proof.encode();
    assert_eq!(Proof::decode(&whole), Some(proof));
    assert!((0..whole.len()).all(|length| Proof::decode(&whole[..length]).is_none()));
    // Other bytes decode to a proof with valid indices or to nothing.
    let facts = Facts::new([64, 1, 1]).with_grid([4, 1, 1]).with_params(params(7, 0, 0));
    for at in 0..whole.len() {
        for flip in [1, 2, 4, 0x10, 0x7f, 0x80] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            if let Some(other) = Proof::decode(&bytes) {
                let _ = other.holds(&facts);
            }
        }
    }
}
