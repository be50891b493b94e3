//! Loops that wait become loops of their own.

use broadloom_analysis::{Cfg, Dominators, Loops};
use broadloom_diag::Sources;
use broadloom_ptx::parse;
use broadloom_transform::nest_loops::{NAME, run};
use broadloom_transform::{check, to_ssa};

fn headers(body: &str) -> usize {
    let text = format!(
        ".version 8.0 .target sm_80 .address_size 64 .visible .entry k(.param .u64 out) {{
         .reg .b32 %r<9>; .reg .b64 %l<9>; .reg .pred %p<9>; ld.param.u64 %l0, [out]; mov.u32 %r1, 9; {body} ret; }}"
    );
    let mut sources = Sources::new();
    let id = sources.add("k.ptx", text);
    let module = parse(&sources, id).unwrap_or_else(|errors| panic!("{}", sources.render_all(&errors)));
    let mut function = module.kernels().next().unwrap().1.clone();
    to_ssa::run(&module, &mut function).unwrap();
    run(&module, &mut function);
    check(NAME, &module, &function).unwrap();
    let cfg = Cfg::new(&function).unwrap();
    Loops::new(&cfg, &Dominators::new(&cfg)).len()
}

#[test]
fn a_wait_is_a_loop_of_its_own() {
    let again =
        "A: ld.volatile.u32 %r2, [%l0]; setp.eq.u32 %p1, %r2, 0; @%p1 bra A; add.u32 %r1, %r1, -1; setp.ne.u32 %p2, %r1, 0;";
    assert_eq!(headers(&format!("{again} @%p2 bra A;")), 2);
    assert_eq!(headers(&format!("{again} @!%p2 bra B; bra A; B:")), 2);
    assert_eq!(headers("A: ld.volatile.u32 %r2, [%l0]; setp.eq.u32 %p1, %r2, 0; @%p1 bra A;"), 1, "nothing else comes round");
    let both = "A: add.u32 %r1, %r1, -1; setp.eq.u32 %p1, %r1, 5; @%p1 bra A; setp.ne.u32 %p2, %r1, 0; @%p2 bra A;";
    assert_eq!(headers(both), 1, "both ways change something");
}
