//! Tolerances for floats.

use broadloom_filetest::Tolerance;

fn same(tolerance: &str, expected: &str, found: &str) -> bool {
    Tolerance::parse(tolerance).unwrap().same(expected, found)
}

#[test]
fn floats_may_differ_by_as_much_as_said() {
    let expected = "out: f32[4]\n  0: 1.0 0.0 inf -2.5\n";
    assert!(same("1 ulp", expected, expected));
    assert!(same("1 ulp", expected, "out: f32[4]\n  0: 1.0000001 0.0 inf -2.5000002\n"));
    assert!(!same("1 ulp", expected, "out: f32[4]\n  0: 1.0000002 0.0 inf -2.5\n"));
    assert!(same("0.1 relative", expected, "out: f32[4]\n  0: 1.1 0.0 inf -2.75\n"));
    assert!(!same("0.1 relative", expected, "out: f32[4]\n  0: 1.11 0.0 inf -2.75\n"));
    // One unit apart, though more in the digits shown.
    assert!(same("1 ulp", "out: f32[1]\n  0: 1.1304742\n", "out: f32[1]\n  0: 1.1304743\n"));
    assert!(same("2^-2 absolute", expected, "out: f32[4]\n  0: 0.75 0.0 inf -2.5\n"));
    assert!(!same("2^-2 absolute", expected, "out: f32[4]\n  0: 0.7 0.0 inf -2.5\n"));
}

#[test]
fn nothing_else_may() {
    let expected = "out: f32[4]\n  0: 1.0 0.0 inf nan(0x7fffffff)\n";
    for found in [
        "out: f32[4]\n  0: 1.0 -0.0 inf nan(0x7fffffff)\n",
        "out: f32[4]\n  0: 1.0 1e-40 inf nan(0x7fffffff)\n",
        "out: f32[4]\n  0: 1.0 0.0 3.4028235e38 nan(0x7fffffff)\n",
        "out: f32[4]\n  0: 1.0 0.0 inf nan(0x7fc00000)\n",
        "out: f32[4]\n  0: 1.0 0.0 inf\n",
        "out: f32[4]\n  4: 1.0 0.0 inf nan(0x7fffffff)\n",
        "",
    ] {
        assert!(!same("2 ulp", expected, found), "{found}");
    }
    assert!(!same("2 ulp", "out: i32[1]\n  0: 100\n", "out: i32[1]\n  0: 101\n"), "integers are exact");
}

#[test]
fn what_is_no_tolerance_is_said() {
    for text in ["", "2", "ulp", "two ulp", "-1 ulp", "2 units", "3^-4 relative", "0 ulp"] {
        assert!(Tolerance::parse(text).is_err(), "{text}");
    }
}
