//! Forms of instructions by their modifiers, and suggestions for unknown words.

use broadloom_ptx::select::{candidates, nearest_root};

#[test]
fn finds_forms_by_modifiers() {
    assert!(!candidates("add", &["rn", "ftz", "f32"]).is_empty());
    assert!(!candidates("bar", &["warp", "sync"]).is_empty());
    assert!(!candidates("atom", &["add", "acquire", "gpu", "u32"]).is_empty());
    assert!(!candidates("cvt", &["f32", "rn", "s32"]).is_empty());
    assert!(candidates("cvt", &["s32", "rn", "f32"]).is_empty());
    assert!(candidates("add", &["rn", "rz", "f32"]).is_empty());
    assert_eq!(candidates("cvt", &["sat", "s8", "u8"]).len(), 1);
    assert!(candidates("add", &["f33"]).is_empty());
    assert!(candidates("nothing", &[]).is_empty());
}

#[test]
fn the_order_of_types_and_layouts_is_kept() {
    let narrowed = candidates("cvt", &["sat", "s8", "u32"]);
    assert_eq!(narrowed.len(), 1);
    assert_eq!(narrowed[0].1.iter().flatten().map(|modifier| modifier.text()).collect::<Vec<_>>(), ["sat", "s8", "u32"]);
    assert!(candidates("mma", &["sync", "aligned", "m16n8k16", "col", "row", "f32", "f16", "f16", "f32"]).is_empty());
    assert!(!candidates("mma", &["sync", "aligned", "row", "col", "m16n8k16", "f32", "f16", "f16", "f32"]).is_empty());
}

#[test]
fn suggests_near_words() {
    assert_eq!(nearest_root("mvo"), Some("mov"));
    assert_eq!(nearest_root("addd"), Some("add"));
    assert_eq!(nearest_root("frobnicate"), None);
}
