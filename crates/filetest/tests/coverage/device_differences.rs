//! Outputs that may differ between devices.

use broadloom_filetest::device_differences::same;

#[test]
fn nans_and_faults_may_differ_and_nothing_else() {
    assert!(same("out: b64[1]\n 0: 0x7ff8000000000001\n", "out: b64[1]\n 0: 0xfff8000000000000\n"));
    assert!(!same(" 0: 0x7ff8000000000001\n", " 0: 0x7ff0000000000000\n"));
    assert!(!same(" 0: 0x7fffffff\n", " 0: 0x7fc00000\n"), "those of 32 bits are canonical");
    assert!(same("error: kernel `k`: a\n  in block\n# next\n1\n", "error: kernel `k`: b\n# next\n1\n"));
    assert!(!same("error: kernel `k`: a\n", "out: 1\n"));
    let refused = |who: &str, what: &str| format!("error[{who}]: the {who} does not run `{what}`\n  --> k.ptx:1:2\n");
    assert!(same(&refused("A", "tex"), &refused("B", "tex")));
    assert!(!same(&refused("A", "tex"), &refused("B", "suld")));
    assert!(!same(&refused("A", "tex"), "out: 1\n"));
    assert!(!same("error: kernel `k`: a\n# next\n1\n", "error: kernel `k`: b\n# next\n2\n"));
}
