//! Tests of wrong calls and files: a helpful message, the right exit code, never a panic.

use crate::harness::{broadloom, broadloom_with_input, empty_folder};

#[test]
fn a_call_without_a_command_shows_the_help() {
    broadloom(&[]).exits(2).complains(&["Usage: broadloom", "Examples:", "Exit codes: 0 success"]);
}

#[test]
fn an_unknown_command_or_option_is_a_wrong_call() {
    broadloom(&["explian", "x.ptx"]).exits(2).complains(&["explian", "explain"]);
    broadloom(&["explain", "x.ptx", "--emitt", "ptx"]).exits(2).complains(&["--emitt", "--emit"]);
    broadloom(&["explain", "examples/saxpy.ptx", "--emit", "masm"]).exits(2).complains(&["masm", "ptx"]);
    broadloom(&["explain", "examples/saxpy.ptx", "--emit", "vcode"]).exits(2).complains(&["vcode", ".nesl"]);
}

#[test]
fn help_shows_examples() {
    broadloom(&["--help"]).exits(0).says(&["Examples:", "Exit codes: 0 success"]);
    broadloom(&["explain", "--help"]).exits(0).says(&["Examples:", "broadloom explain"]);
}

#[test]
fn a_missing_file_names_its_neighbours() {
    broadloom(&["explain", "examples/sxapy.ptx"]).exits(2).complains(&[
        "error[C0001]: there is no file examples/sxapy.ptx",
        "examples has",
        "saxpy.ptx",
    ]);
    broadloom(&["explain", "no/such/place.ptx"]).exits(2).complains(&["there is no folder no/such either"]);
}

#[test]
fn a_folder_is_not_a_file() {
    broadloom(&["explain", "examples"]).exits(2).complains(&["error[C0001]: examples is a folder", "saxpy.ptx"]);
}

#[test]
fn what_is_not_text_is_refused() {
    broadloom_with_input(&["explain", "-"], b".version 7.0\n\xff\xfe")
        .exits(2)
        .complains(&["error[C0002]: <stdin> is not text: byte 13 is 0xff"]);
    broadloom_with_input(&["explain", "-"], b"\x7fELF\x02\x01\x01\0\0\0\0\0\x98\x98")
        .exits(2)
        .complains(&["looks like a compiled program"]);
    let path = empty_folder("latin1").join("caf\u{e9}.nesl");
    std::fs::write(&path, b"\"caf\xe9\";").unwrap();
    broadloom(&["run", path.to_str().unwrap()]).exits(2).complains(&["is not text: byte 4 is 0xe9", "save the program as UTF-8"]);
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_text() {
    let path = empty_folder("marked").join("marked.nesl");
    std::fs::write(&path, b"\xef\xbb\xbf1 + 1;\r\n").unwrap();
    assert_eq!(broadloom(&["run", path.to_str().unwrap()]).exits(0).out, "it = 2 : int\n");
}

#[test]
fn a_word_that_begins_with_an_equals_sign_is_a_file_only_behind_a_buffer() {
    broadloom(&["effect", "box", "in.pfm", "out.pfm", "--set", "=3"]).exits(2).complains(&["has no parameter ``"]);
}

#[test]
fn what_is_too_large_is_refused() {
    // A sparse file needs no disk space.
    let path = empty_folder("too_large").join("huge.ptx");
    std::fs::File::create(&path).unwrap().set_len((256 << 20) + 1).unwrap();
    broadloom(&["explain", path.to_str().unwrap()]).exits(2).complains(&["error[C0003]", "larger than the 256 MiB"]);
}

#[test]
fn mistakes_in_a_module_show_their_places() {
    let text = ".version 7.0\n.target sm_70\n.address_size 64\n.entry k() {\n  .reg .b32 %r<3>;\n  add.s33 %r1, %r2, 7;\n  add.s32 %r1, %r2, %x;\n  ret;\n}\n";
    broadloom_with_input(&["explain", "-"], text.as_bytes()).exits(2).complains(&[
        "<stdin>:6:",
        "<stdin>:7:",
        "add.s33 %r1, %r2, 7;",
        "^",
    ]);
}

#[test]
fn an_empty_file_is_a_mistake() {
    broadloom_with_input(&["explain", "-"], b"").exits(2).complains(&["error["]);
}
