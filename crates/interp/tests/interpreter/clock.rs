//! Clocks of threads: release and acquire.

use broadloom_interp::check::clock::Clock;

#[test]
fn a_release_reaches_who_acquires_it() {
    let writer = Clock::default();
    let known = writer.publish(0, 4, 2, 7);
    let mut same = Clock::default();
    same.acquire(0, &known);
    assert_eq!(same.of(2), 7);
    assert_eq!(same.of(1), 0);
    let mut other = Clock::default();
    other.acquire(5, &known);
    assert_eq!(other.of_foreign(0, 2), 7);
    // And onward, through a third.
    let onward = other.publish(5, 4, 0, 1);
    let mut third = Clock::default();
    third.acquire(9, &onward);
    assert_eq!(third.of_foreign(0, 2), 7);
    assert_eq!(third.of_foreign(5, 0), 1);
}

#[test]
fn merging_keeps_both() {
    let mut a = Clock::default().publish(0, 2, 0, 3);
    a.merge(&Clock::default().publish(1, 2, 1, 4));
    let mut reader = Clock::default();
    reader.acquire(7, &a);
    assert_eq!((reader.of_foreign(0, 0), reader.of_foreign(1, 1)), (3, 4));
}
