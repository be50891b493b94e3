//! Blocks of each kind, made by hand: orders at barriers, exchanges, yields, faults, limits.

use crate::testing::{code, device, launch};
use broadloom_cpu::Cpu;
use broadloom_cpu::abi::{BarrierKind, Kind};
use broadloom_cpu::grid::Ready;
use broadloom_device::{Backend, Error, Fault, FaultKind, Launch, Result, Stream};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn buffer(cpu: &Cpu, words: usize) -> u64 {
    let address = cpu.allocate(4 * words as u64).unwrap();
    cpu.fill(Stream(0), address, 0, 4 * words as u64).unwrap();
    address
}

fn read(cpu: &Cpu, address: u64, words: usize) -> Result<Vec<u32>> {
    let mut bytes = vec![0; 4 * words];
    cpu.read(Stream(0), address, &mut bytes)?;
    Ok(bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
}

fn fault(outcome: Result<()>) -> Fault {
    match outcome {
        Err(Error::Fault(fault)) => *fault,
        other => panic!("a fault was expected: {other:?}"),
    }
}

/// Kernel that adds one to the element of its block.
const COUNT: &str = r#"
define void @kernel(ptr %w) {
  %b = call i64 @param(ptr %w, i64 0)
  %c = call i32 @ctaid(ptr %w)
  %i = zext i32 %c to i64
  %o = mul i64 %i, 4
  %a = add i64 %b, %o
  %p = inttoptr i64 %a to ptr
  %x = atomicrmw add ptr %p, i32 1 seq_cst
  ret void
}
"#;

#[test]
fn every_block_runs_once() {
    for threads in [1, 2, 4] {
        let cpu = device(threads);
        let code = code(Kind::Block, COUNT);
        for blocks in [1, 2, 7, 1000, 100_000] {
            let out = buffer(&cpu, blocks);
            launch(&cpu, &code, &Launch::linear(blocks as u32, 32), &[out]).unwrap();
            assert!(read(&cpu, out, blocks).unwrap().iter().all(|count| *count == 1), "{blocks} blocks on {threads} threads");
            cpu.free(out).unwrap();
        }
    }
}

/// Kernel that adds one to a counter, for grids larger than any buffer.
const COUNT_ALL: &str = r#"
define void @kernel(ptr %w) {
  %b = call i64 @param(ptr %w, i64 0)
  %p = inttoptr i64 %b to ptr
  %c = call i32 @ctaid(ptr %w)
  %x = load i32, ptr %p
  %y = add i32 %x, 1
  store i32 %y, ptr %p
  ret void
}
"#;

#[test]
fn a_large_grid_takes_no_more_than_a_small_one() {
    let cpu = device(1);
    let out = buffer(&cpu, 1);
    let code = code(Kind::Block, COUNT_ALL);
    launch(&cpu, &code, &Launch::new([100, 100, 30], [1, 1, 1]), &[out]).unwrap();
    assert_eq!(read(&cpu, out, 1).unwrap(), [300_000]);
    // The largest possible grid, stopped after a while: it starts, runs and ends.
    let largest = Launch::new([i32::MAX as u32, 65535, 65535], [1, 1, 1]).time_limit(Duration::from_millis(300));
    launch(&cpu, &code, &largest, &[out]).unwrap();
    let fault = fault(cpu.synchronise());
    assert_eq!((fault.kind, fault.message.as_str()), (FaultKind::TimeLimit, "it did not end within 300ms"));
    assert!(read(&cpu, out, 1).unwrap()[0] > 301_000);
}

/// Kernel in which each warp writes its turn before and after a barrier: `out[2 * warp] = turn`,
/// `out[2 * warp + 1] = turn`.
const TURNS: &str = r#"
define internal i32 @turn(ptr %w) {
  %s = call ptr @shared(ptr %w)
  %x = load i32, ptr %s
  %y = add i32 %x, 1
  store i32 %y, ptr %s
  ret i32 %x
}
define void @kernel(ptr %w) {
  %b = call i64 @param(ptr %w, i64 0)
  %f = call i32 @first(ptr %w)
  %n = lshr i32 %f, 5
  %i = zext i32 %n to i64
  %o = mul i64 %i, 8
  %a = add i64 %b, %o
  %p = inttoptr i64 %a to ptr
  %t = call i32 @turn(ptr %w)
  store i32 %t, ptr %p
  %r = call i32 @barrier(ptr %w, i32 0, i32 0, i32 0, i32 -1, i32 0)
  %u = call i32 @turn(ptr %w)
  %q = getelementptr i32, ptr %p, i64 1
  store i32 %u, ptr %q
  ret void
}
"#;

#[test]
fn nobody_passes_a_barrier_before_all_have_come() {
    let cpu = device(2);
    let out = buffer(&cpu, 64);
    let mut turns = code(Kind::Warps, TURNS);
    turns.shared_bytes = 4;
    launch(&cpu, &turns, &Launch::linear(1, 1024), &[out]).unwrap();
    let words = read(&cpu, out, 64).unwrap();
    for pair in words.chunks_exact(2) {
        assert!(pair[0] < 32 && (32..64).contains(&pair[1]), "{words:?}");
    }
    // Shared memory starts out as zeros for every block.
    launch(&cpu, &turns, &Launch::linear(500, 1024), &[out]).unwrap();
    assert!(read(&cpu, out, 64).unwrap().iter().all(|turn| *turn < 64));
}

fn reduction(kind: BarrierKind, threads: u32) -> Vec<u32> {
    let text = format!(
        r#"
define void @kernel(ptr %w) {{
  %b = call i64 @param(ptr %w, i64 0)
  %f = call i32 @first(ptr %w)
  %n = lshr i32 %f, 5
  %i = zext i32 %n to i64
  %o = mul i64 %i, 4
  %a = add i64 %b, %o
  %p = inttoptr i64 %a to ptr
  %m = shl i32 1, %n
  %r = call i32 @barrier(ptr %w, i32 3, i32 {threads}, i32 {}, i32 -1, i32 %m)
  store i32 %r, ptr %p
  ret void
}}
"#,
        kind as u32
    );
    let cpu = device(1);
    let out = buffer(&cpu, 4);
    launch(&cpu, &code(Kind::Warps, &text), &Launch::linear(1, 128), &[out]).unwrap();
    read(&cpu, out, 4).unwrap()
}

#[test]
fn barriers_reduce() {
    assert_eq!(reduction(BarrierKind::Count, 0), [4; 4]);
    assert_eq!(reduction(BarrierKind::Any, 128), [1; 4]);
    assert_eq!(reduction(BarrierKind::All, 0), [0; 4]);
    // Two by two.
    assert_eq!(reduction(BarrierKind::Count, 64), [2; 4]);
}

#[test]
fn who_waits_forever_is_told() {
    // The first warp waits at another barrier than the rest.
    let text = r#"
define void @kernel(ptr %w) {
  %f = call i32 @first(ptr %w)
  %z = icmp eq i32 %f, 0
  %id = select i1 %z, i32 1, i32 2
  %r = call i32 @barrier(ptr %w, i32 %id, i32 0, i32 0, i32 -1, i32 0)
  ret void
}
"#;
    let cpu = device(2);
    launch(&cpu, &code(Kind::Warps, text), &Launch::linear(3, 64), &[]).unwrap();
    let fault = fault(cpu.synchronise());
    assert_eq!(fault.kind, FaultKind::Deadlock);
    let message = "no thread of the block can go on: 0 of 64 have ended, 64 wait; the first one waits for barrier 1, thread (32, 0, 0) for barrier 2";
    assert_eq!(fault.message, message);
    assert!(cpu.synchronise().is_ok(), "told once");
}

/// Runs an exchange in which lane `l` of each warp provides `l` and writes its result. Odd lanes take part or
/// exit.
fn exchange(kind: u32, members: u32, select: u32, odd_end: bool, convergent: bool) -> Result<Vec<u32>> {
    let ends = if odd_end { "br i1 %odd, label %end, label %go" } else { "br label %go" };
    let text = format!(
        r#"
define void @kernel(ptr %w) {{
  %e = alloca [32 x i8], align 8
  %b = call i64 @param(ptr %w, i64 0)
  %f = call i32 @first(ptr %w)
  %l = and i32 %f, 31
  %bit = and i32 %f, 1
  %odd = icmp ne i32 %bit, 0
  {ends}
go:
  store i32 {members}, ptr %e
  %p1 = getelementptr i32, ptr %e, i64 1
  store i32 {select}, ptr %p1
  %p2 = getelementptr i32, ptr %e, i64 2
  store i32 31, ptr %p2
  %p4 = getelementptr i32, ptr %e, i64 4
  store i32 7, ptr %p4
  %p5 = getelementptr i32, ptr %e, i64 5
  store i32 {}, ptr %p5
  %p6 = getelementptr i64, ptr %e, i64 3
  %lw = zext i32 %l to i64
  store i64 %lw, ptr %p6
  %s = call ptr @service(ptr %w, i64 4)
  call void %s(ptr %w, i32 {kind}, ptr %e)
  %i = zext i32 %f to i64
  %o = mul i64 %i, 4
  %a = add i64 %b, %o
  %p = inttoptr i64 %a to ptr
  %v = load i32, ptr %p6
  store i32 %v, ptr %p
  br label %end
end:
  ret void
}}
"#,
        u32::from(convergent)
    );
    let cpu = device(1);
    let out = buffer(&cpu, 64);
    launch(&cpu, &code(Kind::Threads, &text), &Launch::linear(1, 64), &[out]).unwrap();
    read(&cpu, out, 64)
}

#[test]
fn threads_meet_in_exchanges() {
    let (xor, ballot, add, members) = (3, 8, 11, 22);
    let pairs = exchange(xor, u32::MAX, 1, false, false).unwrap();
    assert_eq!(pairs[..6], [1, 0, 3, 2, 5, 4]);
    assert_eq!(pairs[32..38], [1, 0, 3, 2, 5, 4]);
    // Lane 0 provides zero.
    assert_eq!(exchange(ballot, u32::MAX, 0, false, false).unwrap(), [0xffff_fffe; 64]);
    // Exited lanes are not waited for.
    let even: Vec<u32> = exchange(add, u32::MAX, 0, true, false).unwrap().into_iter().step_by(2).collect();
    assert_eq!(even, [240; 32]);
    // Lanes that arrive together form a group.
    let even: Vec<u32> = exchange(members, 0, 0, true, true).unwrap().into_iter().step_by(2).collect();
    assert_eq!(even, [0x5555_5555; 32]);
    let fault = fault(exchange(add, 0xf0, 0, false, false).map(drop));
    assert_eq!(fault.kind, FaultKind::BadBarrier);
    assert_eq!(fault.message, "lane 0 is not in the mask 0x000000f0 that it gives");
    assert_eq!(fault.thread, Some([0, 0, 0]));
}

/// Kernel whose blocks wait for the block after them: each spins until the counter has passed its number.
const CHAIN: &str = r#"
define void @kernel(ptr %w) {
  %b = call i64 @param(ptr %w, i64 0)
  %last = call i64 @param(ptr %w, i64 1)
  %p = inttoptr i64 %b to ptr
  %c = call i32 @ctaid(ptr %w)
  %l = trunc i64 %last to i32
  %want = sub i32 %l, %c
  br label %spin
spin:
  %x = load atomic i32, ptr %p seq_cst, align 4
  %ok = icmp eq i32 %x, %want
  br i1 %ok, label %go, label %again
again:
  call void @pause(ptr %w)
  br label %spin
go:
  %y = atomicrmw add ptr %p, i32 1 seq_cst
  ret void
}
"#;

#[test]
fn blocks_that_wait_for_later_ones_let_them_start() {
    for kind in [Kind::Warps, Kind::Threads] {
        let cpu = device(2);
        let out = buffer(&cpu, 1);
        launch(&cpu, &code(kind, CHAIN), &Launch::linear(40, 1), &[out, 39]).unwrap();
        assert_eq!(read(&cpu, out, 1).unwrap(), [40], "{kind:?}");
        // All blocks of a cooperative launch run together, for any number of blocks.
        let out = buffer(&cpu, 1);
        launch(&cpu, &code(kind, CHAIN), &Launch::linear(1000, 1).cooperative(), &[out, 999]).unwrap();
        assert_eq!(read(&cpu, out, 1).unwrap(), [1000], "{kind:?}");
    }
}

#[test]
fn an_endless_loop_meets_its_limit() {
    let silent = "define void @kernel(ptr %w) { br label %l l: br label %l }";
    let pausing = "define void @kernel(ptr %w) { br label %l l: call void @pause(ptr %w) br label %l }";
    for kind in [Kind::Block, Kind::Warps, Kind::Threads] {
        for text in [silent, pausing] {
            let cpu = device(2);
            let limit = Duration::from_millis(30);
            let start = Instant::now();
            launch(&cpu, &code(kind, text), &Launch::linear(5, 64).time_limit(limit), &[]).unwrap();
            let fault = fault(cpu.synchronise());
            assert_eq!(fault.kind, FaultKind::TimeLimit, "{kind:?}");
            assert!(start.elapsed() >= limit);
            // The device remains usable.
            let out = buffer(&cpu, 3);
            launch(&cpu, &code(Kind::Block, COUNT), &Launch::linear(3, 32), &[out]).unwrap();
            assert_eq!(read(&cpu, out, 3).unwrap(), [1, 1, 1]);
        }
    }
}

#[test]
fn a_stray_access_ends_the_launch_and_nothing_else() {
    let text = r#"
define void @kernel(ptr %w) {
  %b = call i64 @param(ptr %w, i64 0)
  %c = call i32 @ctaid(ptr %w)
  %z = icmp eq i32 %c, 5
  br i1 %z, label %bad, label %end
bad:
  %p = inttoptr i64 %b to ptr
  store volatile i32 1, ptr %p
  br label %end
end:
  ret void
}
"#;
    let cpu = device(2);
    let victim = cpu.allocate(1 << 20).unwrap();
    for kind in [Kind::Block, Kind::Warps, Kind::Threads] {
        for (address, what) in [
            (16, "0x10 is near the null pointer".to_owned()),
            (
                victim + (1 << 20),
                format!("{:#x} is right behind the end of a buffer of 1048576 bytes at {victim:#x}", victim + (1 << 20)),
            ),
        ] {
            launch(&cpu, &code(kind, text), &Launch::linear(100, 64), &[address]).unwrap();
            let fault = fault(cpu.synchronise());
            assert_eq!((fault.kind, fault.address), (FaultKind::OutOfBounds, Some(address)));
            assert_eq!((fault.kernel.as_str(), fault.block), ("kernel", Some([5, 0, 0])));
            assert!(fault.message.contains(&what), "{}", fault.message);
        }
        // An address that no x86 machine has.
        launch(&cpu, &code(kind, text), &Launch::linear(100, 64), &[1 << 63]).unwrap();
        assert_eq!(fault(cpu.synchronise()).kind, FaultKind::OutOfBounds);
    }
    let out = buffer(&cpu, 100);
    launch(&cpu, &code(Kind::Block, COUNT), &Launch::linear(100, 32), &[out]).unwrap();
    assert_eq!(read(&cpu, out, 100).unwrap(), [1; 100]);
}

/// Threads have small stacks and warps large ones. In any order of kernels, each warp has a stack of its own
/// size.
#[test]
fn warps_have_their_stacks_behind_threads() {
    // About four megabytes, of the 32 that a warp has and the one of a thread.
    let deep = r#"
define internal i32 @deep(i32 %n) noinline {
  %a = alloca [1024 x i32]
  store volatile i32 %n, ptr %a
  %end = icmp eq i32 %n, 0
  br i1 %end, label %done, label %on
on:
  %m = sub i32 %n, 1
  %r = call i32 @deep(i32 %m)
  %v = load volatile i32, ptr %a
  %s = add i32 %r, %v
  ret i32 %s
done:
  ret i32 0
}
define void @kernel(ptr %w) { %r = call i32 @deep(i32 1000) ret void }
"#;
    let cpu = device(1);
    let out = buffer(&cpu, 1);
    for warps in [1, 4] {
        launch(&cpu, &code(Kind::Warps, deep), &Launch::linear(1, 32 * warps), &[]).unwrap();
        cpu.synchronise().unwrap();
        launch(&cpu, &code(Kind::Threads, COUNT), &Launch::linear(1, 256), &[out]).unwrap();
        cpu.synchronise().unwrap();
    }
}

#[test]
fn endless_recursion_and_bad_instructions_are_faults() {
    let deep = r#"
define internal i32 @deep(i32 %n) noinline {
  %a = alloca [64 x i32]
  %p = getelementptr i32, ptr %a, i32 %n
  store volatile i32 %n, ptr %p
  %m = add i32 %n, 0
  %r = call i32 @deep(i32 %m)
  %v = load volatile i32, ptr %p
  %s = add i32 %r, %v
  ret i32 %s
}
define void @kernel(ptr %w) { %r = call i32 @deep(i32 1) ret void }
"#;
    let illegal = "declare void @llvm.trap()\ndefine void @kernel(ptr %w) { call void @llvm.trap() unreachable }";
    for kind in [Kind::Block, Kind::Warps, Kind::Threads] {
        let cpu = device(1);
        launch(&cpu, &code(kind, deep), &Launch::linear(1, 32), &[]).unwrap();
        assert_eq!(fault(cpu.synchronise()).kind, FaultKind::StackOverflow);
        launch(&cpu, &code(kind, illegal), &Launch::linear(1, 32), &[]).unwrap();
        assert_eq!(fault(cpu.synchronise()).kind, FaultKind::Trap);
    }
}

#[test]
fn launches_behind_a_failed_one_wait_until_it_was_told() {
    let trap = "define void @kernel(ptr %w) {\n %f = call ptr @service(ptr %w, i64 2)\n call void %f(ptr %w, i32 0, i32 0, i32 4, i64 0)\n unreachable }";
    let cpu = device(2);
    let out = buffer(&cpu, 1);
    let other = cpu.create_stream().unwrap();
    launch(&cpu, &code(Kind::Block, trap), &Launch::linear(1, 32), &[]).unwrap();
    launch(&cpu, &code(Kind::Block, COUNT), &Launch::linear(1, 32), &[out]).unwrap();
    cpu.synchronise_stream(other).unwrap();
    let fault = fault(read(&cpu, out, 1).map(drop));
    assert_eq!((fault.kind, fault.thread), (FaultKind::Trap, Some([2, 0, 0])));
    assert_eq!(read(&cpu, out, 1).unwrap(), [0]);
    launch(&cpu, &code(Kind::Block, COUNT), &Launch::linear(1, 32), &[out]).unwrap();
    assert_eq!(read(&cpu, out, 1).unwrap(), [1]);
}

#[test]
fn launching_takes_microseconds_of_the_caller() {
    let cpu = device(2);
    let ready = Arc::new(Ready::new("kernel", code(Kind::Block, "define void @kernel(ptr %w) { ret void }")).unwrap());
    let once = |blocks: u32| {
        let start = Instant::now();
        // SAFETY: the kernel does nothing.
        unsafe { cpu.launch_code(&ready, &Launch::linear(blocks, 32), &[]) }.unwrap();
        start.elapsed()
    };
    for (blocks, wait) in [(1, false), (1, true), (64, true)] {
        let mut times = vec![];
        for _ in 0..500 {
            times.push(once(blocks));
            if wait {
                cpu.synchronise().unwrap();
            }
        }
        cpu.synchronise().unwrap();
        times.sort();
        // The launch takes about two microseconds in a quiet process. The bound is for unoptimised code, and
        // the percentile for a busy machine.
        let time = times[times.len() / 10];
        assert!(time < Duration::from_micros(100), "{time:?} for a launch of {blocks} blocks");
    }
}
