//! Pieces of kernels between barriers.

use broadloom_analysis::Cfg;
use broadloom_diag::Sources;
use broadloom_ptx::{Block, Function};
use broadloom_transform::split_at_barriers::{FunctionPieces, MORE, NAME, TIMES, plain_barrier, run, waits};
use broadloom_transform::to_ssa;
use std::collections::BTreeSet;

fn split(body: &str) -> Function {
    let text = format!(
        ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {{\n.reg .pred %p<4>;\n.reg .b32 %r<9>;\n\
         mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 3;\n{body}\nret;\n}}\n"
    );
    let mut sources = Sources::new();
    let id = sources.add("k.ptx", text.as_str());
    let module = broadloom_ptx::parse(&sources, id).and_then(broadloom_ptx::verify).unwrap();
    let kernel = module.function("k").unwrap();
    let mut function = module.functions[kernel].clone();
    to_ssa::run(&module, &mut function).unwrap();
    run(&module, &mut function);
    broadloom_transform::check(NAME, &module, &function).unwrap();
    function
}

fn pieces(body: &str) -> (Function, FunctionPieces) {
    let function = split(body);
    let cfg = Cfg::new(&function).unwrap();
    let pieces = FunctionPieces::new(&function, &cfg, &[]);
    (function, pieces)
}

#[test]
fn barriers_end_their_blocks() {
    let function = split("bar.sync 0;\nadd.u32 %r2, %r1, 1;\nbar.sync 0;\nbarrier.sync 1;\nadd.u32 %r3, %r2, 1;");
    for block in function.blocks.values() {
        let before = block.insts.split_last().map_or(&[][..], |(_, before)| before);
        assert!(before.iter().all(|inst| plain_barrier(&function.insts[*inst]).is_none()));
    }
    assert_eq!(function.layout.len(), 4);
}

#[test]
fn counted_barriers_and_reductions_are_not_plain() {
    let (_, pieces) = pieces("bar.sync 0, 64;\nbar.arrive 1, 64;\nbar.red.popc.u32 %r2, 0, %p1;\nbar.sync %r1;");
    assert_eq!(pieces.len(), 1);
}

#[test]
fn a_piece_reaches_from_barrier_to_barrier() {
    let (function, pieces) = pieces("@%p1 bra B;\nadd.u32 %r2, %r1, 1;\nB:\nbar.sync 0;\nadd.u32 %r3, %r1, 1;");
    assert_eq!(pieces.len(), 2);
    let reached: BTreeSet<Block> = pieces.blocks().collect();
    assert_eq!(reached.len(), function.layout.len());
    assert!(pieces.iter().all(|piece| pieces.starting_at(piece.entry).is_some() && piece.blocks.contains(&piece.entry)));
}

/// The latch of the loop continues with its head, up to the barrier: the head is in two pieces.
#[test]
fn what_is_reached_from_two_places_is_in_two_pieces() {
    let (function, pieces) =
        pieces("L:\nadd.u32 %r1, %r1, 1;\nbar.sync 0;\nsetp.lt.u32 %p2, %r1, 9;\n@%p2 bra L;\nadd.u32 %r3, %r1, 1;");
    assert_eq!(pieces.len(), 2);
    let head = function.layout.iter().find(|block| waits(&function, **block)).unwrap();
    assert_eq!(pieces.blocks().filter(|block| block == head).count(), 2);
}

#[test]
fn much_code_is_not_written_twice() {
    let much: String = (0..2 * MORE).map(|_| "add.u32 %r2, %r2, %r1;\n").collect();
    let body = format!("L:\n{much}bar.sync 0;\n{much}bar.sync 0;\nsetp.lt.u32 %p2, %r2, 9;\n@%p2 bra L;\n@%p1 bra L;");
    let (function, pieces) = pieces(&body);
    let total: usize = function.blocks.values().map(|block| block.insts.len()).sum();
    let code: usize = pieces.blocks().map(|block| function.blocks[block].insts.len()).sum();
    assert!(code <= TIMES * total + MORE, "{code} of {total}");
}
