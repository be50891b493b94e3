//! Tests of programs compiled by `nvcc` (`scripts/cuda-programs.sh`), run unmodified: results, output and
//! errors.

use crate::harness::{Outcome, broadloom, empty_folder, shell};
use crate::programs::program;

/// Runs a program if it is for this kind of machine.
fn run(name: &str) -> Option<Outcome> {
    program(name).map(|program| broadloom(&["exec", "--", &program]))
}

/// Runs a self-checking program, which must print no message.
fn passes(name: &str) {
    let Some(outcome) = run(name) else { return };
    assert_eq!((outcome.out.as_str(), outcome.err.as_str()), ("ok\n", ""), "{name}");
    outcome.exits(0);
}

#[test]
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), ignore = "skipped: the programs are for x86-64 Linux")]
fn streams_events_symbols_and_shared_memory() {
    passes("streams");
}

#[test]
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), ignore = "skipped: the programs are for x86-64 Linux")]
fn two_files_linked_for_the_device() {
    passes("linked");
}

#[test]
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), ignore = "skipped: the programs are for x86-64 Linux")]
fn a_grid_that_waits_for_itself() {
    passes("grid");
}

#[test]
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), ignore = "skipped: the programs are for x86-64 Linux")]
fn tensor_cores() {
    passes("matrix");
}

#[test]
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), ignore = "skipped: the programs are for x86-64 Linux")]
fn textures_and_surfaces() {
    passes("image");
}

#[test]
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), ignore = "skipped: the programs are for x86-64 Linux")]
fn what_kernels_print_and_assert() {
    let Some(outcome) = run("says") else { return };
    let outcome = outcome.exits(0);
    let lines = ["before", "thread 0 of block:  1.25 a 10000000000", "thread 1 of block:  1.25 b 10000000000", "after", "ok", ""];
    assert_eq!(outcome.out, lines.join("\n"));
    outcome.complains(&["assertion `int(threadIdx.x) < n` failed", "thread (3, 0, 0)"]);
}

/// The program ignores errors and returns 0, but its kernels did not run.
#[test]
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), ignore = "skipped: the programs are for x86-64 Linux")]
fn kernels_that_launch_kernels_are_refused() {
    let Some(outcome) = run("launches") else { return };
    let outcome = outcome.exits(1);
    assert_eq!(outcome.out, "done\n");
    outcome.complains(&["the kernels of launches cannot be run: they launch kernels themselves (dynamic parallelism)"]);
}

/// What the library writes beside the program, compiled code and traces, does not end the program at its limit on files
/// (`ulimit -f`). What the program writes does.
#[test]
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), ignore = "skipped: the programs are for x86-64 Linux")]
fn a_limit_on_files_ends_only_what_the_program_writes() {
    let Some(program) = program("streams") else { return };
    let folder = empty_folder("file-limit");
    let place = folder.display();
    let exec = format!("BROADLOOM_CACHE={place}/cache broadloom exec");
    let limited = |line: &str| shell(&format!("{{ ulimit -f 1; {line}; echo code $?; }} 2>&1 | cat"));
    shell(&format!("{exec} -- true")).exits(0);
    let cached = limited(&format!("{exec} -- {program}"));
    assert_eq!(cached.out, "ok\ncode 0\n");
    let traced = limited(&format!("{exec} --trace {place}/trace.json -- {program}"));
    assert!(
        traced.out.contains("trace.json cannot be written: File too large") && traced.out.ends_with("code 0\n"),
        "{}",
        traced.out
    );
    let own = limited(&format!("{exec} -- sh -c 'head -c 100000 /dev/zero > {place}/zeros'"));
    assert!(own.out.ends_with("code 153\n"), "{}", own.out);
}
