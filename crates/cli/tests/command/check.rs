//! Tests of `broadloom check`.

use crate::harness::{broadloom, empty_folder};
use serde_json::Value;

const RACE: [&str; 10] =
    ["check", "examples/race.ptx", "--block", "64", "--arg", "f32[64]:iota", "--arg", "f32[1]:zero", "--arg", "i32:64"];

#[test]
fn a_race_names_both_parties() {
    let outcome = broadloom(&RACE).exits(1).complains(&[
        "error[race]: kernel `reduce`",
        "--> examples/race.ptx:",
        "block 0, thread ",
        "from examples/race.cu:12: tile[t] += tile[t + half];",
    ]);
    let first = outcome.err.split("error[race]").nth(1).unwrap();
    assert!(first.matches("block 0, thread ").count() >= 2, "{}", outcome.err);
}

#[test]
fn a_correct_kernel_has_no_findings() {
    let words = ["--grid", "4", "--block", "64", "--arg", "f32[256]:iota", "--arg", "f32[1]:zero=", "--arg", "i32:256"];
    let outcome = broadloom(&[&["check", "examples/reduce.ptx"], &words[..]].concat()).exits(0);
    assert_eq!(outcome.out, "reduce_param_1: f32[1]\n  0: 32640.0\n");
    assert_eq!(outcome.err, "kernel `reduce`: no findings\n");
}

#[test]
fn a_stray_access_is_found_and_the_launch_goes_on() {
    let words = ["--block", "32", "--arg", "i32[32]:iota", "--arg", "i32[32]:zero=", "--arg", "i32:32"];
    broadloom(&[&["check", "examples/off_by_one.ptx"], &words[..]].concat())
        .exits(1)
        .complains(&["error[out-of-bounds]", "block 0, thread 31", "1 finding"])
        .says(&["0: 1 1 1 1 1 1 1 1"]);
}

#[test]
fn findings_are_data() {
    let path = empty_folder("findings").join("findings.json");
    broadloom(&[&RACE[..], &["--json", path.to_str().unwrap()]].concat()).exits(1);
    let told: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(told["kernel"], "reduce");
    let race = &told["findings"][0];
    assert_eq!(race["kind"], "race");
    assert_eq!(race["location"]["ptx_file"], "examples/race.ptx");
    assert_eq!(race["location"]["source"], "examples/race.cu:12");
    assert!(race["other"]["thread"][0].is_u64() && race["other"]["ptx_line"].is_u64(), "{race}");
    assert_ne!(race["other"]["thread"], race["location"]["thread"]);

    let shown = broadloom(&[&RACE[..], &["--json", "-"]].concat()).exits(1);
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(shown, told);
}

/// Hardware since Volta waits only for threads that have not ended. The option is for that before.
#[test]
fn threads_may_end_before_a_barrier() {
    let path = empty_folder("strict-barriers").join("left.ptx");
    let kernel = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{ .reg .b32 %t; .reg .pred %p;\n\
                  mov.u32 %t, %tid.x; setp.ge.u32 %p, %t, 16;\n@%p ret;\nbar.sync 0;\nret; }\n";
    std::fs::write(&path, kernel).unwrap();
    let words = ["check", path.to_str().unwrap(), "--block", "64"];
    assert_eq!(broadloom(&words).exits(0).err, "kernel `k`: no findings\n");
    broadloom(&[&words[..], &["--strict-barriers"]].concat())
        .exits(1)
        .complains(&["error[divergent-barrier]", "48 of 64 threads of the block have ended and never come to barrier 0"]);
}

#[test]
fn a_call_with_mistakes_is_not_a_finding() {
    broadloom(&RACE[..4]).exits(2).complains(&["takes 3 arguments, not 0", "broadloom check examples/race.ptx"]);
    broadloom(&[&RACE[..], &["--json", "no/such/folder/f.json"]].concat()).exits(3).complains(&["cannot be written"]);
}

#[test]
fn only_the_interpreter_watches() {
    let on = |device: &'static str| broadloom(&[&RACE[..], &["--device", device]].concat());
    on("interp").exits(1).complains(&["error[race]"]);
    on("cpu").exits(2).complains(&["the device `cpu` does not watch", "`check` runs on `interp`"]);
    on("abacus").exits(3).complains(&["no device `abacus`"]);
}
