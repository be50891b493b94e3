//! Phases and counts of mbarriers.

use broadloom_eval::mbarrier::{MOST, Mbarrier, Misuse};

#[test]
fn a_phase_is_complete_when_all_have_arrived() {
    let mut barrier = Mbarrier::new(3).unwrap();
    for phase in 0..9u32 {
        let state = barrier.bits();
        assert_eq!(Mbarrier::from_bits(state), Ok(barrier));
        for arrival in 0..3 {
            assert_eq!(barrier.is_complete(state), Ok(false), "phase {phase}");
            assert!(!barrier.is_complete_parity(phase), "phase {phase}");
            assert_eq!(Mbarrier::pending_count(barrier.bits()), 3 - arrival);
            let step = barrier.arrive(1, 0, false).unwrap();
            assert_eq!(step.completed, arrival == 2);
            barrier = step.object;
        }
        assert_eq!(barrier.is_complete(state), Ok(true));
        assert!(barrier.is_complete_parity(phase));
    }
}

#[test]
fn bytes_count_either_way() {
    let barrier = Mbarrier::new(1).unwrap();
    // Bytes may arrive before they are expected.
    let early = barrier.complete(64).unwrap();
    assert_eq!(Mbarrier::from_bits(early.object.bits()), Ok(early.object));
    let arrived = early.object.arrive(1, 0, false).unwrap();
    assert!(!arrived.completed);
    assert!(arrived.object.expect(64).unwrap().completed);
    let expecting = barrier.arrive(1, MOST, false).unwrap();
    assert!(!expecting.completed);
    assert_eq!(expecting.object.expect(1), Err(Misuse::Bytes(i64::from(MOST) + 1)));
    assert!(expecting.object.complete(MOST).unwrap().completed);
    assert_eq!(barrier.expect(MOST + 1), Err(Misuse::Bytes(i64::from(MOST) + 1)));
}

#[test]
fn whoever_drops_out_is_no_longer_expected() {
    let step = Mbarrier::new(MOST).unwrap().arrive(MOST - 2, 0, true).unwrap();
    assert_eq!(Mbarrier::pending_count(step.object.bits()), 2);
    let next = step.object.arrive(2, 0, false).unwrap();
    assert!(next.completed);
    assert_eq!(Mbarrier::pending_count(next.object.bits()), 2);
}

#[test]
fn misuse_is_told() {
    assert_eq!(Mbarrier::from_bits(0), Err(Misuse::NotAlive));
    assert_eq!(Mbarrier::new(0), Err(Misuse::Count(0)));
    assert_eq!(Mbarrier::new(MOST + 1), Err(Misuse::Count(MOST + 1)));
    let barrier = Mbarrier::new(2).unwrap();
    assert_eq!(barrier.arrive(3, 0, false), Err(Misuse::TooMany { count: 3, pending: 2 }));
    assert_eq!(barrier.arrive_without_completing(2, false), Err(Misuse::Completes));
    let old = barrier.bits();
    let again = barrier.arrive(2, 0, false).unwrap().object.arrive(2, 0, false).unwrap().object;
    assert_eq!(again.is_complete(old), Err(Misuse::Stale));
    let leaving = barrier.arrive(1, 0, true).unwrap().object.arrive(1, 0, false).unwrap().object;
    assert_eq!(leaving.arrive(1, 0, true).unwrap().object.arrive(1, 0, true), Err(Misuse::TooMany { count: 1, pending: 0 }));
}
