//! Waiting for compilations.

use broadloom_cpu::background::wait_for;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

#[test]
fn waiting_ends_with_the_work_or_with_the_time() {
    assert_eq!(wait_for("k", None, None, || 7).ok(), Some(7));
    let (go, gone) = channel::<()>();
    let until = Instant::now() + Duration::from_millis(5);
    let late = wait_for("k", Some(until), None, move || gone.recv().is_ok());
    assert!(late.is_err());
    drop(go);
    // Deep recursion fits the stack.
    fn deep(levels: u32) -> u32 {
        let room = std::hint::black_box([levels; 64]);
        if levels == 0 { 0 } else { 1 + deep(room[7] - 1) }
    }
    assert_eq!(wait_for("k", None, None, || deep(200_000)).ok(), Some(200_000));
    let panicked = catch_unwind(|| wait_for("k", None, None, || -> u32 { resume_unwind(Box::new("told")) }).is_ok());
    assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"told"));
}
