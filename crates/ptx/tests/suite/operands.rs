//! Registers and symbols that instructions read and write.

use broadloom_diag::Sources;
use broadloom_ptx::Reg;

/// Returns the register names that each instruction of a function reads and writes.
fn of(body: &str) -> Vec<(Vec<String>, Vec<String>)> {
    let mut sources = Sources::new();
    let text = format!(
        ".version 8.0 .target sm_80 .address_size 64 .func (.reg .b32 r) callee (.reg .b32 a) {{ ret; }}
         .entry k(.param .u64 x) {{ .reg .pred p, q; .reg .b32 a, b, c, d; .reg .b64 e, f; {body} }}"
    );
    let id = sources.add("k.ptx", text);
    let module = broadloom_ptx::parse(&sources, id).unwrap_or_else(|errors| panic!("{errors:?}"));
    let function = module.kernels().next().unwrap().1;
    let names = |regs: Vec<Reg>| regs.iter().map(|reg| function.regs[*reg].name.clone()).collect();
    function.instructions().map(|(_, data)| (names(data.reads()), names(data.writes()))).collect()
}

fn is(body: &str, reads: &[&str], writes: &[&str]) {
    let found = of(body);
    assert_eq!(found[0].0, reads, "reads of {body}");
    assert_eq!(found[0].1, writes, "writes of {body}");
}

#[test]
fn every_kind_of_operand() {
    is("add.u32 a, b, c;", &["b", "c"], &["a"]);
    is("@!p add.u32 a, a, 1;", &["p", "a"], &["a"]);
    is("setp.eq.and.u32 p|q, a, b, !q;", &["a", "b", "q"], &["p", "q"]);
    is("ld.global.v2.u32 {a, b}, [e+4];", &["e"], &["a", "b"]);
    is("st.global.v2.u32 [e], {a, b};", &["e", "a", "b"], &[]);
    is("call (a), callee, (b);", &["b"], &["a"]);
    is("mov.b64 e, {a, b};", &["a", "b"], &["e"]);
    is("mov.b64 {a, _}, e;", &["e"], &["a"]);
    is("atom.global.cas.b32 a, [e], b, c;", &["e", "b", "c"], &["a"]);
    is("vadd.u32.u32.u32 a, b.b0, c.h1;", &["b", "c"], &["a"]);
    is("@p bra L; L: ret;", &["p"], &[]);
}

/// Tests that a renaming finds the same symbols as a reader, and that a callee is not an address.
#[test]
fn every_name() {
    let text = ".version 8.0 .target sm_80 .address_size 64 .global .u32 a; .global .u32 b; .func callee (.param .b32 p) { ret; }
         .entry k() { .reg .b32 x; .reg .b64 e; .param .b32 q; mov.u64 e, a; ld.global.u32 x, [b+4]; call callee, (q); ret; }";
    let mut sources = Sources::new();
    let id = sources.add("k.ptx", text.to_owned());
    let mut module = broadloom_ptx::parse(&sources, id).unwrap_or_else(|errors| panic!("{errors:?}"));
    let kernel = module.kernels().next().unwrap().0;
    let function = &mut module.functions[kernel];
    let (mut seen, mut changed) = (vec![], vec![]);
    for data in function.insts.values_mut() {
        data.each_symbol(|symbol| seen.push(symbol));
        data.change_symbols(|symbol| changed.push(*symbol));
    }
    assert_eq!(seen, changed);
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert_eq!(function.insts.values().filter(|data| data.callee().is_some()).count(), 1);
}
