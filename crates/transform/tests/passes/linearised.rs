//! Results of small kernels, and rejected kernels.

use broadloom_diag::Sources;
use broadloom_ptx::{Block, Function, Module, Printer, parse};
use broadloom_transform::linearise::{Blocks, DEEPEST, run};
use broadloom_transform::{check, to_ssa, unify_exits};

/// Returns a kernel in SSA form with one exit. Conditions whose name starts with `%u` are uniform.
fn kernel(body: &str) -> (Module, Function) {
    let text = format!(
        ".version 8.0 .target sm_80 .address_size 64 .visible .entry k(.param .u64 out, .param .u32 n, .param .u64 other) {{
         .reg .b32 %r<20>; .reg .f32 %f<9>; .reg .b64 %l<9>; .reg .pred %u<9>, %d<9>;
         ld.param.u64 %l0, [out]; ld.param.u32 %r0, [n]; mov.u32 %r1, %tid.x; mul.wide.u32 %l2, %r1, 4; add.s64 %l1, %l0, %l2;
         {body} }}"
    );
    let mut sources = Sources::new();
    let id = sources.add("k.ptx", text);
    let module = parse(&sources, id).unwrap_or_else(|errors| panic!("{}", sources.render_all(&errors)));
    let mut function = module.kernels().next().unwrap().1.clone();
    to_ssa::run(&module, &mut function).unwrap();
    unify_exits::run(&module, &mut function);
    (module, function)
}

/// Returns the linearised kernel as text, or the reason for its rejection.
fn linear_in(body: &str, block: [u32; 3]) -> Result<String, String> {
    let (module, mut function) = kernel(body);
    let before = function.clone();
    let is_divergent = |block: Block| {
        let last = before.blocks[block].insts.last().and_then(|last| before.insts[*last].guard);
        last.is_none_or(|guard| !before.regs[guard.reg].name.starts_with("%u"))
    };
    run(&module, &mut function, &is_divergent, Blocks::Masked(block)).map_err(|reason| reason.text)?;
    check("linearise", &module, &function).unwrap();
    Ok(Printer::new(&module).body(&function))
}

fn linear(body: &str) -> Result<String, String> {
    linear_in(body, [64, 1, 1])
}

fn count(text: &str, word: &str) -> usize {
    text.lines().filter(|line| line.contains(word)).count()
}

/// Matrix product: a guard at the edge, and a loop over the inner dimension.
const PRODUCT: &str = "
    setp.ge.u32 %d1, %r1, %r0; @%d1 bra DONE;
    mov.u32 %r2, 0; mov.f32 %f1, 0f00000000; mov.u64 %l3, %l0; mov.u64 %l4, %l1;
    LOOP: ld.global.f32 %f2, [%l3]; ld.global.f32 %f3, [%l4]; fma.rn.f32 %f1, %f2, %f3, %f1;
    add.s64 %l3, %l3, 4; add.s64 %l4, %l4, 4096; add.u32 %r2, %r2, 1; setp.lt.u32 %u1, %r2, %r0; @%u1 bra LOOP;
    st.global.f32 [%l1], %f1;
    DONE: ret;";

#[test]
fn a_uniform_loop_in_masked_code_stays_a_loop() {
    let text = linear(PRODUCT).unwrap();
    assert_eq!(count(&text, "selp"), 0, "{text}");
    assert_eq!(count(&text, "vote"), 1, "{text}");
    // The guard around everything, and the loop.
    assert_eq!(count(&text, "bra"), 2, "{text}");
    // One address is uniform, the other is not.
    assert_eq!(count(&text, "\tld.global"), 1, "{text}");
    assert_eq!(count(&text, " ld.global"), 1, "{text}");
}

#[test]
fn without_divergence_nothing_changes() {
    let text = linear("setp.eq.u32 %u1, %r0, 3; @%u1 bra A; st.global.u32 [%l1], %r1; A: ret;").unwrap();
    assert_eq!((count(&text, "vote"), count(&text, "@"), count(&text, "bra")), (0, 1, 1), "{text}");
}

#[test]
fn threads_that_do_not_exist_do_nothing() {
    let body = "setp.eq.u32 %u1, %r0, 3; @%u1 bra A; st.global.u32 [%l1], %r1; A: ret;";
    let text = linear_in(body, [7, 3, 1]).unwrap();
    assert_eq!(count(&text, "@%lanes"), 1, "{text}");
    assert_eq!(count(&text, "setp.lt.u32"), 1, "{text}");
    assert!(text.contains(", 21;"), "{text}");
}

#[test]
fn a_loop_that_lanes_leave_one_by_one_asks_once_per_round() {
    let body = "mov.u32 %r2, %r1; HEAD: setp.gt.u32 %d1, %r2, 100; @%d1 bra DONE; add.u32 %r2, %r2, %r1; bra HEAD;
                DONE: st.global.u32 [%l1], %r2; ret;";
    let text = linear(body).unwrap();
    assert_eq!(count(&text, "vote"), 1, "{text}");
    // The value that a lane leaves with is kept.
    assert_eq!(count(&text, "selp"), 1, "{text}");
    assert_eq!(count(&text, "@%lanes"), 1, "the store is not guarded: {text}");
}

#[test]
fn a_loop_with_several_entries_is_refused() {
    let body = "setp.gt.u32 %d1, %r1, 3; @%d1 bra B; A: add.u32 %r2, %r2, 1; B: add.u32 %r2, %r2, 2;
                setp.lt.u32 %d2, %r2, 50; @%d2 bra A; st.global.u32 [%l1], %r2; ret;";
    assert_eq!(linear(body).unwrap_err(), "a loop has more than one entry");
}

#[test]
fn barriers_need_everybody_who_has_not_left() {
    let early = "setp.ge.u32 %d1, %r1, %r0; @%d1 exit; bar.sync 0; st.global.u32 [%l1], %r1; ret;";
    let text = linear(early).unwrap();
    assert!(text.contains("\tbar.sync 0;"), "all lanes of the warp come: {text}");
    let apart = "setp.ge.u32 %d1, %r1, %r0; @%d1 bra A; bar.sync 0; A: bar.sync 1; ret;";
    assert_eq!(linear(apart).unwrap_err(), "lanes may come apart to `bar.sync`");
    let together = "setp.ge.u32 %u1, %r0, 7; @%u1 bra A; bar.sync 0; A: bar.sync 1; ret;";
    linear(together).unwrap();
    let in_loop = "HEAD: add.u32 %r1, %r1, 1; bar.sync 0; setp.lt.u32 %d1, %r1, %r0; @%d1 bra HEAD; bar.sync 0; ret;";
    assert_eq!(linear(in_loop).unwrap_err(), "lanes may come apart to `bar.sync`");
}

#[test]
fn warp_operations_name_lanes_that_are_there() {
    let shuffle = |members: &str, before: &str| {
        linear(&format!(
            "{before} setp.ge.u32 %d1, %r1, %r0; @%d1 bra A; {members} shfl.sync.bfly.b32 %r2, %r1, 1, 31, %r3;
             st.global.u32 [%l1], %r2; A: bar.warp.sync -1; ret;"
        ))
    };
    let text = shuffle("activemask.b32 %r3;", "").unwrap();
    assert_eq!(count(&text, "@%lanes"), 4, "{text}");
    shuffle("", "setp.ge.u32 %d2, %r1, %r0; vote.sync.ballot.b32 %r3, !%d2, -1;").unwrap();
    let unknown = shuffle("mov.u32 %r3, 255;", "").unwrap_err();
    assert_eq!(unknown, "`shfl.sync.bfly.b32` may name lanes that are elsewhere");
    // The first lanes of each warp, by index, as in tiles of a warp.
    let tile = |members: &str, condition: &str| {
        linear(&format!(
            "mov.u32 %r1, %tid.x; mov.u32 %r4, %laneid; and.b32 %r4, %r4, 16; mov.u32 %r3, {members}; shl.b32 %r3, %r3, %r4;
             {condition} @%d1 bra A; bar.warp.sync %r3; st.global.u32 [%l1], %r2; A: bar.sync 0; ret;"
        ))
    };
    let elsewhere = "`bar.warp.sync` may name lanes that are elsewhere";
    tile("65535", "setp.gt.s32 %d1, %r1, 15;").unwrap();
    tile("65535", "and.b32 %r5, %r1, 16; setp.ne.u32 %d1, %r5, 0;").unwrap();
    assert_eq!(tile("65535", "setp.gt.s32 %d1, %r1, 14;").unwrap_err(), elsewhere);
    assert_eq!(tile("131071", "setp.gt.s32 %d1, %r1, 15;").unwrap_err(), elsewhere);
    assert_eq!(tile("65535", "ld.global.u32 %r5, [%l1]; setp.gt.s32 %d1, %r5, 15;").unwrap_err(), elsewhere);
}

#[test]
fn lanes_may_be_counted_anew_in_every_round() {
    let rounds = |before: &str, inside: &str, counted: &str| {
        linear(&format!(
            "mov.u32 %r3, -1; {before} HEAD: {inside} ld.global.u32 %r2, [%l1]; setp.gt.s32 %d1, %r2, 0; vote.sync.ballot.b32 {counted}, %d1, %r3;
             setp.le.s32 %d2, %r2, 0; @%d2 bra OUT; add.u32 %r4, %r4, 1; setp.lt.u32 %u1, %r4, %r0; @%u1 bra HEAD; OUT: bar.sync 0; ret;"
        ))
    };
    rounds("", "", "%r3").unwrap();
    let elsewhere = "`vote.sync.ballot.b32` may name lanes that are elsewhere";
    assert_eq!(rounds("", "", "%r5").unwrap_err(), elsewhere, "those who left are still named");
    assert_eq!(rounds("setp.eq.s32 %d3, %r1, %r0; @%d3 bra OUT;", "", "%r3").unwrap_err(), elsewhere, "not all come to the loop");
    let skipped = "setp.eq.s32 %d3, %r1, %r4; add.u32 %r4, %r4, 1; @%d3 bra HEAD;";
    assert_eq!(rounds("", skipped, "%r3").unwrap_err(), elsewhere, "some come a round later");
}

#[test]
fn blocks_may_wait_for_earlier_ones() {
    // Words of consecutive blocks, 64 in each: `%r4` counts blocks down from this one.
    let hand_on = |awaited: &str, step: &str, write: &str| {
        linear(&format!(
            "cvta.to.global.u64 %l7, %l0; mov.u32 %r5, %ctaid.x; mov.u32 %r4, %r5; HEAD: {awaited} mul.wide.s32 %l3, %r6, 4; add.s64 %l3, %l7, %l3;
             POLL: ld.volatile.global.u32 %r2, [%l3]; setp.eq.s32 %d1, %r2, 0; @%d1 bra POLL; setp.lt.s32 %d2, %r2, 0; @%d2 bra OUT;
             {step} setp.gt.s32 %u1, %r4, 0; @%u1 bra HEAD;
             OUT: shl.b32 %r7, %r5, 6; add.s32 %r7, %r7, %r1; mul.wide.s32 %l4, %r7, 4; add.s64 %l4, %l0, %l4; {write} ret;"
        ))
    };
    let (before, down) = ("shl.b32 %r6, %r4, 6; add.s32 %r6, %r6, %r1; add.s32 %r6, %r6, -64;", "add.s32 %r4, %r4, -1;");
    let publish = "st.volatile.global.u32 [%l4], %r2;";
    hand_on(before, down, publish).unwrap();
    let result = "ld.param.u64 %l5, [other]; cvta.to.global.u64 %l5, %l5; ld.global.u64 %l6, [%l1]; add.s64 %l5, %l5, %l6;";
    hand_on(before, down, &format!("{publish} {result} st.global.u32 [%l5], %r2;")).unwrap();
    let refused = |result: Result<String, String>| {
        assert_eq!(result.unwrap_err(), "lanes may wait for each other in a loop around `ld.volatile.global.u32`");
    };
    // After that wait lanes wait for each other.
    let shared = "mov.u32 %r8, words; POLL_SHARED: ld.volatile.shared.u32 %r9, [%r8]; setp.eq.s32 %d3, %r9, %r1; @%d3 bra POLL_SHARED; st.volatile.shared.u32 [%r8], %r1;";
    let text = hand_on(before, down, &format!("{publish} .shared .b32 words; {shared}")).unwrap_err();
    assert_eq!(text, "lanes may wait for each other in a loop around `ld.volatile.shared.u32`");
    // The words of neighbours overlap by one, the counter goes up, a word may be anywhere, another write may
    // be the awaited one.
    refused(hand_on("shl.b32 %r6, %r4, 6; add.s32 %r6, %r6, %r1; add.s32 %r6, %r6, -63;", down, publish));
    refused(hand_on(before, "add.s32 %r4, %r4, 1;", publish));
    // Here the iteration count also comes from memory that the enclosing loop waits for.
    let text = hand_on(before, "ld.global.u32 %r4, [%l1];", publish).unwrap_err();
    assert_eq!(text, "lanes may wait for each other in a loop around `ld.global.u32`");
    refused(hand_on(before, down, "st.volatile.global.u32 [%l4], %r2; atom.global.add.u32 %r8, [%l0], 1;"));
    refused(hand_on(before, down, "st.volatile.global.u32 [%l4], %r2; st.global.u32 [%l1], %r2;"));
    refused(hand_on(before, down, &format!("{publish} {result} st.volatile.global.u32 [%l5], %r2;")));
}

#[test]
fn a_lock_is_refused_and_a_retry_is_not() {
    let lock = "HEAD: atom.global.cas.b32 %r2, [%l0], 0, 1; setp.ne.s32 %d1, %r2, 0; @%d1 bra HEAD;
                st.global.u32 [%l1], %r1; atom.global.exch.b32 %r3, [%l0], 0; ret;";
    assert_eq!(linear(lock).unwrap_err(), "lanes may wait for each other in a loop around `atom.global.cas.b32`");
    let poll =
        "HEAD: ld.volatile.global.u32 %r2, [%l1]; setp.eq.s32 %d1, %r2, 0; @%d1 bra HEAD; st.global.u32 [%l1+4], %r1; ret;";
    assert_eq!(linear(poll).unwrap_err(), "lanes may wait for each other in a loop around `ld.volatile.global.u32`");
    let retry =
        "ld.global.u32 %r2, [%l0]; HEAD: add.u32 %r3, %r2, %r1; mov.u32 %r4, %r2; atom.global.cas.b32 %r2, [%l0], %r4, %r3;
                 setp.ne.s32 %d1, %r2, %r4; @%d1 bra HEAD; ret;";
    linear(retry).unwrap();
    let volatile_retry =
        "HEAD: ld.volatile.global.u32 %r4, [%l0]; add.u32 %r3, %r4, %r1; atom.global.cas.b32 %r2, [%l0], %r4, %r3;
                          setp.ne.s32 %d1, %r2, %r4; @%d1 bra HEAD; ret;";
    linear(volatile_retry).unwrap();
    let probe = "HEAD: atom.global.cas.b32 %r2, [%l1], 0, %r1; setp.ne.s32 %d1, %r2, 0; add.s64 %l1, %l1, 4; @%d1 bra HEAD; ret;";
    linear(probe).unwrap();
    let given_back = "mov.u32 %r5, 0; HEAD: atom.global.cas.b32 %r2, [%l0], 0, 1; setp.ne.s32 %d1, %r2, 0; @%d1 bra NEXT;
                      st.global.u32 [%l1], %r1; atom.global.exch.b32 %r3, [%l0], 0; mov.u32 %r5, 1;
                      NEXT: setp.eq.u32 %d2, %r5, 0; @%d2 bra HEAD; ret;";
    linear(given_back).unwrap();
    let queue = "HEAD: atom.global.add.u32 %r2, [%l0], 1; setp.lt.u32 %d1, %r2, %r0; @%d1 bra HEAD; ret;";
    linear(queue).unwrap();
}

#[test]
fn branches_are_nested_as_deep_as_it_may_be() {
    let leave = |count: usize| {
        let exits: String =
            (0..count).map(|index| format!("setp.eq.u32 %d1, %r1, {index}; @%d1 exit; st.global.u32 [%l1], %r0;")).collect();
        linear(&format!("{exits} ret;"))
    };
    let text = leave(DEEPEST).unwrap();
    assert_eq!(count(&text, "vote"), DEEPEST);
    assert_eq!(leave(400).unwrap_err(), "divergent branches are nested too deeply");
}

/// Returns the number of registers created while linearising some divergent loops with divergent branches in
/// them.
fn registers_made(loops: usize) -> usize {
    let one = |index: usize| {
        format!(
            "L{index}: mad.lo.u32 %r2, %r2, 3, {index}; and.b32 %r3, %r2, 31; setp.lt.u32 %d1, %r3, %r1; @%d1 bra E{index};
             add.u32 %r4, %r4, %r2; bra J{index}; E{index}: xor.b32 %r4, %r4, %r1; J{index}: st.global.u32 [%l1], %r4;
             setp.gt.u32 %d2, %r3, %r0; @%d2 bra O{index}; setp.gt.u32 %d3, %r3, %r1; @%d3 bra L{index}; add.u32 %r5, %r5, %r4; O{index}:"
        )
    };
    let body: String = (0..loops).map(one).collect();
    let text = linear(&format!("{body} st.global.u32 [%l1], %r2; st.global.u32 [%l1+4], %r5; ret;")).unwrap();
    let numbers = text.split(|c: char| !c.is_ascii_alphanumeric()).filter_map(|word| {
        let digits = word.strip_prefix("step").or_else(|| word.strip_prefix("lanes"))?;
        digits.parse::<usize>().ok()
    });
    numbers.max().unwrap_or(0)
}

#[test]
fn many_loops_take_as_much_work_each_as_few() {
    // Register names are numbered at creation, even if the register is dropped later.
    let (few, many) = (registers_made(25), registers_made(100));
    assert!(few > 100 && many < 5 * few, "{few} registers for 25 loops, {many} for 100");
}
