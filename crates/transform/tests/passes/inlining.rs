//! Size of kernels after inlining.

use broadloom_analysis::calls::{CallGraph, Calls};
use broadloom_diag::Sources;
use broadloom_ptx::Module;
use broadloom_ptx::{parse, verify};
use broadloom_transform::inline_calls;
use broadloom_transform::inline_calls::{Choice, MOST_COPIED, MOST_INSTRUCTIONS};
use std::collections::HashSet;
use std::fmt::Write as _;

/// Builds a module whose function `f0` calls `f1` several times, and so on, down to a leaf with more
/// instructions.
fn levels(count: usize, calls: usize, leaf: usize) -> Module {
    let mut text = ".version 8.0 .target sm_80 .address_size 64\n".to_owned();
    let add = "add.u32 %r, %r, 1; ".repeat(leaf);
    writeln!(text, ".func (.reg .u32 %r) f{count}(.reg .u32 %x) {{ mov.u32 %r, %x; {add} ret; }}").unwrap();
    for level in (0..count).rev() {
        let call = format!("call (%r), f{}, (%r); ", level + 1).repeat(calls);
        writeln!(text, ".func (.reg .u32 %r) f{level}(.reg .u32 %x) {{ mov.u32 %r, %x; {call} ret; }}").unwrap();
    }
    text += ".visible .entry k() { .reg .u32 %r; mov.u32 %r, 0; call (%r), f0, (%r); ret; }";
    let mut sources = Sources::new();
    let id = sources.add("levels.ptx", text.as_str());
    verify(parse(&sources, id).unwrap()).unwrap().into_module()
}

/// Returns the total size of the kernel and of all functions that are still called, and their number.
fn sizes(module: &Module) -> (usize, usize) {
    let kernel = module.function("k").unwrap();
    let (graph, mut choice) = (CallGraph::new(module, [kernel]), Choice::new(module, [kernel]));
    let (mut work, mut seen, mut size) = (vec![kernel], HashSet::new(), 0);
    while let Some(func) = work.pop() {
        if seen.insert(func) {
            let mut function = module.functions[func].clone();
            inline_calls::run_chosen(module, &mut function, &mut choice);
            broadloom_transform::check(inline_calls::NAME, module, &function).unwrap();
            size += function.instructions().count();
            work.extend(Calls::of(&function, module, &graph).callees.into_iter().map(|(callee, _)| callee));
        }
    }
    (size, seen.len())
}

#[test]
fn what_is_small_is_inlined_whole() {
    assert_eq!(sizes(&levels(10, 2, 1)).1, 1);
    assert_eq!(sizes(&levels(60, 1, 1)).1, 1);
}

#[test]
fn a_tree_of_calls_does_not_grow_with_its_leaves() {
    let (size, functions) = sizes(&levels(40, 2, 3));
    assert!(size < 2 * MOST_INSTRUCTIONS && functions > 3, "{size} instructions in {functions} functions");
    // Many calls on each level do not increase the size either.
    let (size, _) = sizes(&levels(12, 100, 30));
    assert!(size < 2 * MOST_COPIED, "{size} instructions");
}

#[test]
fn a_chain_of_calls_is_cut() {
    let (size, functions) = sizes(&levels(2_000, 1, 3));
    assert!(size < 40_000, "{size} instructions");
    assert!((20..60).contains(&functions), "{functions} functions");
}
