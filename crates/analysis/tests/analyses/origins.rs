//! Parameters from which addresses are computed.

use broadloom_analysis::cfg::Cfg;
use broadloom_analysis::origins::Origins;
use broadloom_diag::Sources;
use broadloom_ptx::{parse, verify};

/// Returns the origin of a named register, in a kernel whose text is already in SSA form.
fn origin(body: &str, name: &str) -> Option<u64> {
    let mut sources = Sources::new();
    let text = format!(
        ".version 8.0 .target sm_80 .address_size 64
         .entry k(.param .u32 n, .param .u64 a, .param .u64 b) {{
             .reg .b32 %r<8>; .reg .b64 %d<16>; .reg .pred %p<4>;
             ld.param.u32 %r0, [n]; ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b];
             {body} ret; }}"
    );
    let id = sources.add("k.ptx", text);
    let module = verify(parse(&sources, id).unwrap()).unwrap();
    let function = &module.functions[module.functions.keys().next().unwrap()];
    let origins = Origins::new(function, &Cfg::new(function).unwrap());
    let reg = function.regs.iter().find(|(_, data)| data.name == name).unwrap().0;
    origins.param(reg)
}

#[test]
fn numbers_are_added_to_pointers() {
    assert_eq!(origin("", "%d0"), Some(8));
    assert_eq!(origin("cvta.to.global.u64 %d2, %d1; mul.wide.s32 %d3, %r0, 4; add.s64 %d4, %d3, %d2;", "%d4"), Some(16));
    assert_eq!(origin("mad.wide.u32 %d2, %r0, 4, %d0; add.s64 %d3, %d2, 16; sub.s64 %d4, %d3, 8;", "%d4"), Some(8));
    assert_eq!(origin("cvt.s64.s32 %d2, %r0; shl.b64 %d3, %d2, 2; add.s64 %d4, %d1, %d3;", "%d4"), Some(16));
    assert_eq!(origin("setp.eq.u32 %p0, %r0, 0; add.s64 %d2, %d0, 8; selp.b64 %d3, %d0, %d2, %p0;", "%d3"), Some(8));
}

#[test]
fn of_other_addresses_nothing_is_said() {
    assert_eq!(origin("setp.eq.u32 %p0, %r0, 0; selp.b64 %d3, %d0, %d1, %p0;", "%d3"), None);
    assert_eq!(origin("sub.s64 %d2, %d1, %d0; add.s64 %d3, %d0, %d2;", "%d3"), None);
    assert_eq!(origin("ld.global.u64 %d2, [%d0];", "%d2"), None);
    assert_eq!(origin("ld.global.u64 %d2, [%d0]; add.s64 %d3, %d2, %d1;", "%d3"), None);
    assert_eq!(origin("mov.b64 %d2, {%r0, %r0};", "%d2"), None);
    assert_eq!(origin("add.s64 %d2, %d0, %d1;", "%d2"), None);
    assert_eq!(origin("shl.b64 %d2, %d0, 1;", "%d2"), None);
}
