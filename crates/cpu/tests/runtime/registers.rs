//! Estimates of registers per thread.

use crate::testing::{device, module};
use broadloom_device::Device;

fn of(text: &str) -> u32 {
    let module = module(&format!(".version 7.0\n.target sm_75\n.address_size 64\n{text}"));
    let loaded = Device::new(device(1)).load(&module).unwrap();
    loaded.kernel("k").unwrap().attributes().unwrap().registers.unwrap()
}

/// Returns a kernel that loads `count` 64-bit numbers before it stores the first, with a directive.
fn kernel(count: usize, directive: &str) -> String {
    let lines = |line: &dyn Fn(usize) -> String| (0..count).map(line).collect::<String>();
    let loads = lines(&|at| format!("ld.global.u64 %d{at}, [%a+{}];\n", 8 * at));
    let stores = lines(&|at| format!("st.global.u64 [%a+{}], %d{at};\n", 8 * (count - at)));
    format!(".entry k(.param .u64 p) {directive} {{ .reg .u64 %a, %d<{count}>; ld.param.u64 %a, [p];\n{loads}{stores} ret; }}")
}

#[test]
fn words_that_are_live_at_once_are_counted() {
    assert_eq!(of(".entry k() { ret; }"), 8);
    assert_eq!(of(&kernel(20, "")), 42);
    assert_eq!(of(&kernel(20, ".maxnreg 32")), 32);
    assert_eq!(of(&kernel(20, ".maxnreg 64")), 42);
    assert_eq!(of(&kernel(200, "")), 255);
    // The maximum of a kernel and its callees.
    let called = kernel(20, "").replace(".entry k", ".func f").replace("ld.param.u64 %a, [p]", "mov.u64 %a, 0");
    assert_eq!(of(&format!("{}\n.entry k() {{ .param .u64 q; call f, (q); ret; }}", called)), 42);
}
