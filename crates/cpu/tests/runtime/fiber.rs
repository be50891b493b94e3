//! Switches between fibers.

use broadloom_cpu::fiber::{Context, Stack, switch};
use std::ffi::c_void;
use std::time::Instant;

struct Pair {
    main: Context,
    fiber: Context,
    turns: u64,
    seen: Vec<(u64, f64)>,
}

unsafe extern "C" fn count(argument: *mut c_void) -> ! {
    let pair = argument.cast::<Pair>();
    let mut number = 0.5;
    loop {
        // SAFETY: the test keeps the pair alive, and only one of the two contexts runs at a time.
        unsafe {
            (*pair).turns += 1;
            number += 1.0;
            let turns = (*pair).turns;
            if turns < 4 {
                (*pair).seen.push((turns, number));
            }
            switch(&raw mut (*pair).fiber, (*pair).main);
        }
    }
}

#[test]
fn a_fiber_keeps_its_place() {
    let stack = Stack::new(100_000).unwrap();
    let mut pair = Pair { main: std::ptr::null_mut(), fiber: std::ptr::null_mut(), turns: 0, seen: vec![] };
    let pair = &raw mut pair;
    // SAFETY: the contexts are switched to in turns, the stack outlives the fiber.
    unsafe {
        (*pair).fiber = stack.prepare(count, pair.cast());
        for _ in 0..3 {
            switch(&raw mut (*pair).main, (*pair).fiber);
        }
        assert_eq!((*pair).seen, [(1, 1.5), (2, 2.5), (3, 3.5)]);
    }
    assert!(stack.top().is_multiple_of(16));
    assert!(stack.overflows_at(stack.top() - stack.bytes() - 8));
    assert!(!stack.overflows_at(stack.top() - 8));
}

#[test]
fn a_switch_costs_less_than_a_microsecond() {
    let stack = Stack::new(100_000).unwrap();
    let mut pair = Pair { main: std::ptr::null_mut(), fiber: std::ptr::null_mut(), turns: 0, seen: vec![] };
    let pair = &raw mut pair;
    const ROUNDS: u32 = 1_000_000;
    // SAFETY: as above.
    let each = unsafe {
        (*pair).fiber = stack.prepare(count, pair.cast());
        let start = Instant::now();
        for _ in 0..ROUNDS {
            switch(&raw mut (*pair).main, (*pair).fiber);
        }
        start.elapsed() / (2 * ROUNDS)
    };
    // Generous bound for a busy machine; a system call or an allocation would exceed it.
    assert!(each.as_nanos() < 1000, "{each:?} for a switch");
}
