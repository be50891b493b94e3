//! Targets that have an instruction of a family.

use broadloom_ptx::Target;
use broadloom_ptx::verify::header::is_among;

fn target(sm: u16, suffix: &str) -> Target {
    Target { sm, suffix: suffix.chars().next(), options: vec![] }
}

#[test]
fn families_hold_their_later_kin() {
    assert!(is_among(&target(100, "a"), "sm_90a, sm_100f"));
    assert!(is_among(&target(103, "f"), "sm_100f"));
    assert!(!is_among(&target(100, ""), "sm_100f"));
    assert!(!is_among(&target(100, "a"), "sm_103f"));
    assert!(!is_among(&target(110, "a"), "sm_100f"));
    assert!(is_among(&target(90, "a"), "sm_90a"));
    assert!(!is_among(&target(90, ""), "sm_90a"));
}
