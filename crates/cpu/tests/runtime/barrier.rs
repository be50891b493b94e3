//! Barriers of a block.

use broadloom_cpu::barrier::{Arrival, Barriers};

fn come(strand: u32, threads: u32, expected: Option<u32>) -> Arrival {
    Arrival { strand, threads, trues: strand & 1, expected, waits: true }
}

#[test]
fn a_barrier_takes_all_that_live_or_as_many_as_said() {
    let mut barriers = Barriers::default();
    barriers.arrive(0, come(0, 32, None), 96).unwrap();
    barriers.arrive(3, come(1, 32, Some(64)), 96).unwrap();
    assert_eq!(barriers.take_complete(96, 96), []);
    barriers.arrive(3, Arrival { waits: false, ..come(2, 32, Some(64)) }, 96).unwrap();
    assert_eq!(barriers.take_complete(96, 96), [(vec![1], (1, 64))]);
    // The other threads have exited.
    assert_eq!(barriers.take_complete(32, 96), [(vec![0], (0, 32))]);
    assert_eq!(barriers.take_complete(32, 96), []);
}

#[test]
fn misuse_is_named() {
    let mut barriers = Barriers::default();
    let error = barriers.arrive(16, come(0, 32, None), 64).unwrap_err().to_string();
    assert_eq!(error, "a block has 16 barriers; 16 is none of them");
    let error = barriers.arrive(1, come(0, 32, Some(96)), 64).unwrap_err().to_string();
    assert_eq!(error, "a barrier for 96 threads in a block of 64");
    barriers.arrive(1, come(0, 32, Some(64)), 64).unwrap();
    let error = barriers.arrive(1, come(1, 32, None), 64).unwrap_err().to_string();
    assert_eq!(error, "barrier 1 is used with different numbers of threads at the same time: 64 threads and all threads");
    barriers.reset();
    assert_eq!(barriers.take_complete(1, 64), []);
}
