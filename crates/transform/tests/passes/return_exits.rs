//! Exits of called functions become exits of kernels.

use broadloom_diag::Sources;
use broadloom_ptx::{Function, Module, Opcode};
use broadloom_ptx::{parse, print, verify};
use broadloom_transform::return_exits::run;

fn module(text: &str) -> Module {
    let mut sources = Sources::new();
    let id = sources.add("k.ptx", format!(".version 8.0 .target sm_80 .address_size 64\n{text}"));
    parse(&sources, id).unwrap()
}

#[test]
fn exits_go_up_to_the_kernel() {
    let module = module(
        ".func f(.param .b32 x) { .reg .b32 %r; .reg .pred %p; ld.param.b32 %r, [x]; setp.eq.u32 %p, %r, 0; @%p exit; ret; }
         .func g(.param .b32 x) { .param .b32 y; .reg .b32 %r; ld.param.b32 %r, [x]; st.param.b32 [y], %r; call f, (y); ret; }
         .func h(.param .b32 x) { ret; }
         .entry k() { .param .b32 y; .reg .b64 %d; .reg .pred %p;
            st.param.b32 [y], 1; call g, (y); call h, (y);
            mov.u64 %d, f; p: .callprototype _ (.param .b32 _); @%p call %d, (y), p; ret; }",
    );
    let changed = verify(run(&module).unwrap()).unwrap();
    let exits = |function: &Function| function.instructions().filter(|(_, data)| data.opcode() == Some(Opcode::Exit)).count();
    assert_eq!(changed.functions.values().map(exits).collect::<Vec<_>>(), [0, 0, 0, 2], "{}", print(&changed));
    let params: Vec<usize> = changed.functions.values().map(|function| function.params.len()).collect();
    assert_eq!(params, [2, 2, 1, 0]);
    assert!(run(&changed).is_none());
}

#[test]
fn where_nobody_ends_nothing_changes() {
    assert!(run(&module(".func f() { ret; } .entry k() { call f; exit; }")).is_none());
}
