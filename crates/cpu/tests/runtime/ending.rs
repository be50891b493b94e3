//! The end of the process while threads compile.

use broadloom_cpu::compile::ending::{EntryGate, PATIENCE};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::channel;
use std::time::Duration;

#[test]
fn whoever_ends_the_process_waits_for_those_inside_and_lets_in_no_other() {
    static GATE: EntryGate = EntryGate::new();
    static IS_DONE: AtomicBool = AtomicBool::new(false);
    let (tell, told) = channel();
    let worker = std::thread::spawn(move || {
        let _outer = GATE.enter();
        tell.send(()).unwrap();
        while !GATE.is_closed() {
            std::thread::yield_now();
        }
        // A thread that is inside may enter again.
        let _inner = GATE.enter();
        std::thread::sleep(Duration::from_millis(50));
        IS_DONE.store(true, SeqCst);
    });
    told.recv().unwrap();
    GATE.close();
    assert!(IS_DONE.load(SeqCst), "the gate closed while somebody was inside");
    worker.join().unwrap();
    // The thread that ends the process may enter. Others may not, or only once it is clear that the
    // process continues.
    drop(GATE.enter());
    let (tell, told) = channel();
    let late = std::thread::spawn(move || {
        let _inside = GATE.enter();
        tell.send(()).unwrap();
    });
    assert!(told.recv_timeout(PATIENCE / 4).is_err(), "somebody came in behind the end");
    told.recv().unwrap();
    late.join().unwrap();
    assert!(!GATE.is_closed() && !GATE.has_others());
}
