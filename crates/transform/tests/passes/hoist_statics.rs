//! Variables of functions become variables of the module.

use broadloom_diag::Sources;
use broadloom_ptx::{parse, print, verify};
use broadloom_transform::hoist_statics;

#[test]
fn variables_of_functions_become_those_of_the_module() {
    let mut sources = Sources::new();
    let id = sources.add(
        "k.ptx",
        ".version 8.0 .target sm_80 .address_size 64
         .func f() { .shared .u32 x; .reg .u32 a; ld.shared.u32 a, [x]; ret; }
         .entry k() { .shared .u32 x[4]; .local .u32 y; .reg .u32 a; mov.u32 a, x; st.shared.u32 [x+4], a; st.local.u32 [y], a; ret; }",
    );
    let mut module = parse(&sources, id).unwrap();
    hoist_statics::run(&mut module);
    let module = verify(module).unwrap();
    let text = print(&module);
    assert!(text.contains(".shared .u32 f$x;"), "{text}");
    assert!(text.contains("st.shared.u32 [k$x+4], a;"), "{text}");
    assert!(text.contains("st.local.u32 [y], a;"), "{text}");
    assert_eq!(module.functions.values().map(|function| function.variables.len()).collect::<Vec<_>>(), [1, 2]);
}
