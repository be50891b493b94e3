//! Tests of `broadloom run`.

use crate::harness::{broadloom, broadloom_with_input, empty_folder, shell};
use broadloom::device::private::Temporary;

const SAXPY: [&str; 6] = ["run", "examples/saxpy.ptx", "--grid", "2", "--block", "4"];

fn saxpy(arguments: &[&str]) -> Vec<String> {
    let arguments = arguments.iter().flat_map(|argument| ["--arg", argument]);
    SAXPY.into_iter().chain(arguments).map(str::to_owned).collect()
}

fn call(words: &[String]) -> crate::harness::Outcome {
    broadloom(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Returns a module with kernels of the given names, without parameters.
fn kernels(names: &[&str]) -> String {
    let bodies: String = names.iter().map(|name| format!(".visible .entry {name}() {{ ret; }}\n")).collect();
    format!(".version 7.0\n.target sm_70\n.address_size 64\n{bodies}")
}

#[test]
fn shows_the_buffers_asked_for() {
    let outcome = call(&saxpy(&["f32:10", "f32[6]:iota", "f32[6]:iota=", "u32:6"])).exits(0);
    assert_eq!(outcome.out, "y: f32[6]\n  0: 0.0 11.0 22.0 33.0 44.0 55.0\n");
    assert_eq!(outcome.err, "");
}

#[test]
fn a_word_of_its_own_asks_for_the_buffer_before_it() {
    let words = ["f32:10", "--arg", "f32[6]:iota", "--arg", "f32[6]:iota", "=", "--arg", "u32:6"];
    let call: Vec<&str> = SAXPY.into_iter().chain(["--arg"]).chain(words).collect();
    broadloom(&call).exits(0).says(&["y: f32[6]\n  0: 0.0 11.0 22.0 33.0 44.0 55.0\n"]);
}

#[test]
fn reads_standard_input() {
    let text = std::fs::read(crate::harness::root().join("examples/saxpy.ptx")).unwrap();
    let call = ["run", "-", "--block", "2", "-a", "f32:1", "-a", "f32[2]:1,2", "-a", "f32[2]:zero=", "-a", "u32:2"];
    broadloom_with_input(&call, &text).exits(0).says(&["0: 1.0 2.0"]);
}

#[test]
fn keeps_buffers_in_files_and_reads_them_back() {
    let path = empty_folder("npy").join("y.npy");
    let path = path.to_str().unwrap();
    call(&saxpy(&["f32:10", "f32[6]:iota", &format!("f32[6]:iota={path}"), "u32:6"])).exits(0);
    assert!(std::fs::read(path).unwrap().starts_with(b"\x93NUMPY"));
    let again = call(&saxpy(&["f32:0", "f32[6]:iota", &format!("@{path}="), "u32:6"])).exits(0);
    assert!(again.out.contains("0: 0.0 11.0 22.0 33.0 44.0 55.0"), "{}", again.out);
}

#[test]
fn a_file_that_cannot_be_written_is_the_machines_fault() {
    call(&saxpy(&["f32:10", "f32[6]:iota", "f32[6]:iota=no/such/folder/y.npy", "u32:6"]))
        .exits(3)
        .complains(&["error[C0004]: no/such/folder/y.npy cannot be written"]);
}

#[test]
fn kernels_print_to_standard_output() {
    let outcome = broadloom(&["run", "examples/mandelbrot.ptx", "--block", "60", "--arg", "i32:20", "--arg", "i32:50"]).exits(0);
    assert_eq!(outcome.out.lines().count(), 20);
    assert!(outcome.out.lines().all(|line| line.chars().count() == 60), "{}", outcome.out);
    assert!(outcome.out.contains("@@@@@@@@"));
}

#[test]
fn says_how_much_was_done() {
    let mut words = saxpy(&["f32:10", "f32[6]:iota", "f32[6]:iota", "u32:6"]);
    words.extend(["--stats", "--device", "interp"].map(str::to_owned));
    // 6 threads run 18 instructions each. 2 threads leave after 7 and return.
    let parts = ["kernel saxpy: 2 blocks of 4 threads, 1 launch, 124 instructions in", "million per second"];
    call(&words).exits(0).complains(&parts);
}

#[test]
fn says_what_became_of_a_kernel() {
    let mut words = saxpy(&["f32:10", "f32[6]:iota", "f32[6]:iota", "u32:6"]);
    words.extend(["--stats", "--device", "cpu"].map(str::to_owned));
    let parts = [
        "kernel saxpy: 2 blocks of 4 threads, 1 launch in",
        "  code        ",
        "  vectorised  yes, the warps of a block one after the other\n",
        "  loads       2 contiguous, 4 uniform\n",
        "  stores      1 contiguous\n",
    ];
    call(&words).exits(0).complains(&parts);
    // The previous call compiled it at the latest.
    call(&words).exits(0).complains(&["bytes, from the cache in"]);

    let waits = ["run", "examples/reduce.ptx", "--block", "64", "--stats"];
    let arguments = ["--arg", "f32[64]:iota", "--arg", "f32[1]:zero=", "--arg", "i32:64"];
    broadloom(&[&waits[..], &arguments].concat())
        .exits(0)
        .says(&["0: 2016.0"])
        .complains(&["yes, the warps of a block one after the other\n"]);
    broadloom_with_input(&["run", "-", "--block", "64", "--stats", "--arg", "u32[64]:zero="], COUNTED.as_bytes())
        .exits(0)
        .complains(&["yes, the warps of a block by turns: they wait for each other"]);
}

/// Half of the warps wait for the other half to arrive.
const COUNTED: &str = "
    .version 7.3 .target sm_70 .address_size 64
    .visible .entry k(.param .u64 out) {
        .reg .pred %q; .reg .u32 %i; .reg .u64 %p, %o;
        ld.param.u64 %p, [out];
        mov.u32 %i, %tid.x;
        mul.wide.u32 %o, %i, 4;
        add.u64 %p, %p, %o;
        setp.lt.u32 %q, %i, 32;
        @%q bra FIRST;
        bar.sync 1, 64;
        st.global.u32 [%p], %i;
        ret;
    FIRST:
        bar.arrive 1, 64;
        st.global.u32 [%p], %i;
        ret;
    }
";

/// Kernel that calls `alloca`, which cannot run in lockstep.
const GROWING: &str = "
    .version 7.3 .target sm_70 .address_size 64
    .visible .entry sums(.param .u64 out) {
        .reg .u32 %i, %s; .reg .u64 %p, %o, %m;
        ld.param.u64 %p, [out];
        mov.u32 %i, %tid.x;
        alloca.u64 %m, 16;
        st.local.u32 [%m+4], %i;
        ld.local.u32 %s, [%m+4];
        mul.wide.u32 %o, %i, 4;
        add.u64 %p, %p, %o;
        st.global.u32 [%p], %s;
        ret;
    }";

#[test]
fn says_why_a_kernel_is_not_vectorised() {
    let words = ["run", "-", "--block", "8", "--arg", "u32[8]:zero=", "--stats"];
    broadloom_with_input(&words, GROWING.as_bytes())
        .exits(0)
        .says(&["0: 0 1 2 3 4 5 6 7"])
        .complains(&["vectorised  no, one thread at a time: it takes memory with `alloca`"]);
    let words = ["explain", "-", "--emit", "asm", "--block", "8"];
    broadloom_with_input(&words, GROWING.as_bytes())
        .exits(0)
        .complains(&["kernel `sums` does not run as vectors but one thread at a time: it takes memory with `alloca`"]);
}

#[test]
fn recursion_runs_as_vectors() {
    for (kernel, vectorised) in [("fibonacci", "yes"), ("fibonacci_one_by_one", "no, one thread at a time")] {
        let words = ["run", "examples/fibonacci.ptx", "--kernel", kernel, "--block", "8"];
        let more = ["--arg", "u32[8]:zero=", "--arg", "u32:20", "--stats"];
        broadloom(&[&words[..], &more[..]].concat())
            .exits(0)
            .says(&["0: 6765 10946 17711 28657 6765 10946 17711 28657"])
            .complains(&[&format!("vectorised  {vectorised}")]);
    }
}

#[test]
fn a_block_of_one_thread_that_calls_functions_runs_as_scalar_code() {
    let words = ["run", "examples/fibonacci.ptx", "--kernel", "fibonacci", "--block", "1"];
    let more = ["--arg", "u32[1]:zero=", "--arg", "u32:20", "--stats"];
    broadloom(&[&words[..], &more[..]].concat()).exits(0).says(&["0: 6765"]).complains(&["vectorised  no, one thread at a time"]);
}

#[test]
fn all_devices_agree_and_the_cpu_is_the_default() {
    let run = |device: &[&str]| {
        let words = ["run", "examples/mandelbrot.ptx", "--block", "60", "--arg", "i32:20", "--arg", "i32:50"];
        broadloom(&[&words[..], device].concat()).exits(0).out
    };
    let expected = run(&["--device", "interp"]);
    assert_eq!(run(&["--device", "cpu"]), expected);
    assert_eq!(run(&[]), expected);
}

#[test]
fn compiled_kernels_are_counted_and_removed() {
    // The build folder may be writable by other users of the group.
    let temporary = Temporary::new("broadloom-command-cache").unwrap();
    let folder = temporary.path();
    let call = |words: &str| shell(&format!("BROADLOOM_CACHE={} broadloom {words}", folder.display())).exits(0).out;
    assert!(call("cache").contains(": 0 pieces, 0.0 KiB of compiled code"));
    let run = |more: &str| {
        call(&format!("run examples/saxpy.ptx --arg f32:1 --arg f32[2]:1,2 --arg f32[2]:zero --arg u32:2 --stats {more}"))
    };
    assert!(run("--block 2").contains("; not in the cache: never seen before"));
    assert!(run("--block 2").contains("from the cache in "));
    assert!(run("--block 4").contains("; not in the cache: made with other options or for another shape of block"));
    std::fs::write(folder.join("notes.txt"), "mine").unwrap();
    let stats = call("cache stats");
    for part in [": 2 pieces, ", "cpu   2 kernels, ", "found 1 time, not found 2 times", "      1  never seen before"] {
        assert!(stats.contains(part), "{part:?} in {stats}");
    }
    assert!(call("cache clear --device cuda").contains(": 0 pieces, 0.0 KiB of compiled code removed"));
    assert!(call("cache clear --device cpu").contains(": 2 pieces, "));
    assert!(call("cache stats").contains(": 0 pieces"));
    // A damaged entry is compiled again.
    run("--block 2");
    let shelf = std::fs::read_dir(folder.join("cpu")).unwrap().flatten().find(|entry| entry.path().is_dir()).unwrap();
    let file = std::fs::read_dir(shelf.path()).unwrap().next().unwrap().unwrap().path();
    std::fs::write(file, "broken").unwrap();
    assert!(run("--block 2").contains("; not in the cache: what was kept was broken"));
    assert!(call("cache clear").contains(": 1 piece, "));
    assert!(folder.join("notes.txt").exists());
    shell("BROADLOOM_CACHE=off broadloom cache").exits(0).says(&["compiled code is kept nowhere: BROADLOOM_CACHE is `off`\n"]);
    shell("env -u BROADLOOM_CACHE -u XDG_CACHE_HOME -u HOME broadloom cache")
        .exits(0)
        .says(&["compiled code is kept nowhere: none of BROADLOOM_CACHE, XDG_CACHE_HOME and HOME is set\n"]);
    shell("BROADLOOM_CACHE=/proc/cache broadloom cache")
        .exits(0)
        .says(&["nothing is stored: the folder cannot be written: ", "set BROADLOOM_CACHE to a folder of your own"]);
    shell(
        "BROADLOOM_CACHE=off broadloom run examples/saxpy.ptx --arg f32:1 --arg f32[2]:1,2 --arg f32[2]:zero --arg u32:2 --stats",
    )
    .exits(0)
    .says(&["; not in the cache: nothing is kept on disk"]);
}

/// Returns the spans of a trace: process, lane, name, start and end in nanoseconds.
fn spans(file: &std::path::Path) -> Vec<(String, u64, String, i64, i64)> {
    let json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let named = |pid: &serde_json::Value| {
        let names = events.iter().filter(|event| event["ph"] == "M" && event["name"] == "process_name" && event["pid"] == *pid);
        names.map(|event| event["args"]["name"].as_str().unwrap().to_owned()).next().unwrap()
    };
    let lane = |event: &serde_json::Value| {
        let of = |other: &&serde_json::Value| other["pid"] == event["pid"] && other["tid"] == event["tid"];
        assert!(events.iter().filter(of).any(|other| other["name"] == "thread_name"), "a lane without a name: {event}");
        event["tid"].as_u64().unwrap()
    };
    let spans = events.iter().filter(|event| event["ph"] == "X").map(|event| {
        // Whole nanoseconds: floating-point sums of microseconds differ in the last bit.
        let nanoseconds = |what: &str| (event[what].as_f64().unwrap() * 1e3).round() as i64;
        let start = nanoseconds("ts");
        let end = start + nanoseconds("dur");
        (named(&event["pid"]), lane(event), event["name"].as_str().unwrap().to_owned(), start, end)
    });
    spans.collect()
}

#[test]
fn a_trace_shows_what_happened_when() {
    let folder = empty_folder("trace");
    for device in ["cpu", "interp"] {
        let file = folder.join(format!("{device}.json"));
        let path = file.to_str().unwrap();
        let arguments = ["f32:10", "f32[6]:iota", "f32[6]:iota=", "u32:6"];
        let more = ["--device", device, "--trace", path].map(str::to_owned);
        let words = [&saxpy(&arguments)[..], &more].concat();
        call(&words).exits(0);
        let spans = spans(&file);
        for name in ["read the file", "parse", "verify", "open the device", "load module", "launch saxpy", "write", "read"] {
            assert!(
                spans.iter().any(|(process, _, span, ..)| process == "host" && span == name),
                "{name} on {device}: {spans:?}"
            );
        }
        for name in ["saxpy", "write", "read"] {
            assert!(
                spans.iter().any(|(process, _, span, ..)| process == device && span == name),
                "{name} on {device}: {spans:?}"
            );
        }
        // Two spans of a host lane are disjoint or nested. Spans of a device lane are disjoint.
        for (index, (process, lane, name, start, end)) in spans.iter().enumerate() {
            for (other, other_lane, other_name, from, to) in &spans[index + 1..] {
                let behind = end <= from || to <= start;
                let inside = process == "host" && (start <= from && to <= end || from <= start && end <= to);
                let apart = process != other || lane != other_lane;
                assert!(apart || behind || inside, "{name} {start} {end}, {other_name} {from} {to}");
            }
        }
    }
}

#[test]
fn a_trace_is_written_when_the_run_fails() {
    let folder = empty_folder("trace-failed");
    for device in ["cpu", "interp"] {
        let file = folder.join(format!("{device}.json"));
        let path = file.to_str().unwrap();
        let arguments = ["--block", "32", "--arg", "i64:4096", "--arg", "i64:4096", "--arg", "i32:32"];
        let words = [&["run", "examples/off_by_one.ptx", "--device", device, "--trace", path][..], &arguments[..]].concat();
        broadloom(&words).exits(1);
        let spans = spans(&file);
        assert!(spans.iter().any(|(process, _, span, ..)| process == device && span == "differences"), "{spans:?}");
    }
    // A wrong call also writes a trace up to that point. An unwritable path is reported before anything runs.
    let file = folder.join("wrong.json");
    broadloom(&["run", "examples/no_such_file.ptx", "--trace", file.to_str().unwrap()]).exits(2);
    assert!(spans(&file).iter().any(|(_, _, span, ..)| span == "read the file"));
    let nowhere = folder.join("no/such/folder.json");
    let more = ["--trace", nowhere.to_str().unwrap()].map(str::to_owned);
    call(&[&saxpy(&["f32:1"])[..], &more].concat()).exits(3).complains(&["cannot be written"]);
}

#[test]
fn devices_are_listed_with_what_was_measured() {
    broadloom(&["devices"]).exits(0).says(&["GB/s read and written by a copy", "µs of the caller's time"]);
    let out = broadloom(&["devices", "--json"]).exits(0).out;
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let cpu = json["devices"].as_array().unwrap().iter().find(|device| device["id"] == "cpu").unwrap();
    assert!(cpu["bandwidth"].as_f64().unwrap() > 1e8, "{out}");
    assert!(cpu["launch_cost"].as_f64().is_some_and(|cost| cost > 0.0 && cost < 0.1), "{out}");
}

#[test]
fn missing_arguments_are_explained() {
    call(&saxpy(&["f32:10"])).exits(2).complains(&[
        "error[C0006]: kernel `saxpy` takes 4 arguments, not 1",
        "no argument for this",
        "argument 1 is for `a`: .f32",
        "argument 2 is for `x`: .u64, the address of a buffer: it reads .f32",
        "argument 3 is for `y`: .u64, the address of a buffer: it reads and writes .f32",
        "for example: broadloom run examples/saxpy.ptx --grid 4 --block 64 --arg f32:1.5 --arg f32[256]:iota --arg f32[256]:iota= --arg u32:256",
    ]);
}

#[test]
fn the_example_of_a_message_works() {
    let told = call(&saxpy(&[])).exits(2);
    let example = told.err.lines().find_map(|line| line.split_once("for example: broadloom ")).unwrap().1;
    let words: Vec<&str> = example.split(' ').collect();
    broadloom(&words).exits(0).says(&["y: f32[256]\n    0: 0.0 2.5 5.0"]);
}

#[test]
fn arguments_of_another_type_are_explained() {
    call(&saxpy(&["i32:10", "f32[6]:iota", "f32[6]:iota", "u32:6"])).exits(2).complains(&["an integer for the float `a`"]);
    call(&saxpy(&["f32:10", "f32:1", "f32[6]:iota", "u32:6"])).exits(2).complains(&["the parameter `x` has 8"]);
    call(&saxpy(&["f32:10", "f33[6]:iota", "f32[6]:iota", "u32:6"])).exits(2).complains(&["did you mean `f32`?"]);
    call(&saxpy(&["f32:10", "f32[6]:iota", "f32[6]:iota", "u32:6", "u32:7"])).exits(2).complains(&["one too many"]);
}

#[test]
fn the_only_kernel_needs_no_name_and_others_are_listed() {
    let run = |names: &[&str], words: &[&str]| broadloom_with_input(&[&["run", "-"], words].concat(), kernels(names).as_bytes());
    run(&["one"], &[]).exits(0);
    run(&["one", "two"], &[]).exits(2).complains(&["several kernels: which one?", "`one`, `two`", "add `--kernel one`"]);
    run(&["one", "two"], &["--kernel", "two"]).exits(0);
    run(&["one", "two"], &["--kernel", "tow"]).exits(2).complains(&[
        "no kernel `tow`",
        "`one`, `two`",
        "did you mean `--kernel two`?",
    ]);
    run(&[], &[]).exits(2).complains(&["the module has no kernel"]);
}

#[test]
fn a_plain_name_of_cpp_is_enough() {
    let run = |words: &[&str]| {
        let text = kernels(&["_Z4fillPfi", "_Z4copyPfS_", "_Z4copyPdS_"]);
        broadloom_with_input(&[&["run", "-"], words].concat(), text.as_bytes())
    };
    run(&["--kernel", "fill"]).exits(0);
    run(&["--kernel", "copy"]).exits(2).complains(&["`copy` is the name of several kernels", "_Z4copyPdS_"]);
    run(&["--kernel", "_Z4copyPdS_"]).exits(0);
}

#[test]
fn launches_that_cannot_be_are_wrong_calls() {
    let run = |words: &[&str]| broadloom_with_input(&[&["run", "-"], words].concat(), kernels(&["k"]).as_bytes());
    run(&["--block", "2000"]).exits(2).complains(&["error[C0008]", "1 to 1024 threads in x, not 2000"]);
    run(&["--grid", "0"]).exits(2).complains(&["a grid has 1 to"]);
    run(&["--grid", "1,2,3,4"]).exits(2).complains(&["more than three dimensions"]);
    run(&["--block", "many"]).exits(2).complains(&["`many` is not a number of blocks or threads"]);
    run(&["--time-limit", "soon"]).exits(2).complains(&["`soon` is not a number of seconds"]);
    run(&["--shared", "1000000"]).exits(2).complains(&["shared memory"]);
}

#[test]
fn a_required_block_is_the_default() {
    let text = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() .reqntid 32, 2 { ret; }";
    broadloom_with_input(&["run", "-", "--stats"], text.as_bytes()).exits(0).complains(&["1 block of 64 threads"]);
    broadloom_with_input(&["run", "-", "--block", "3"], text.as_bytes()).exits(2).complains(&["compiled for blocks of"]);
}

#[test]
fn a_device_that_is_not_here_is_the_machines_fault() {
    broadloom(&["run", "examples/saxpy.ptx", "--device", "abacus"])
        .exits(3)
        .complains(&["no device `abacus`", "`cpu`, `interp`"]);
}

#[test]
fn a_kernel_that_never_ends_is_given_up() {
    let text = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { again: bra again; }";
    for device in ["cpu", "interp"] {
        broadloom_with_input(&["run", "-", "--time-limit", "0.2", "--device", device], text.as_bytes())
            .exits(1)
            .complains(&["error[time-limit]", "kernel `k`"]);
    }
}

#[test]
fn a_fault_shows_its_place_in_both_sources() {
    let words = ["--block", "32", "--arg", "i32[32]:iota", "--arg", "i32[32]:zero", "--arg", "i32:100000", "--device", "interp"];
    broadloom(&[&["run", "examples/off_by_one.ptx", "--grid", "3000"], &words[..]].concat()).exits(1).complains(&[
        "error[out-of-bounds]: kernel `differences`",
        "--> examples/off_by_one.ptx:",
        "ld.global.u32",
        "from examples/off_by_one.cu:7: out[i] = in[i + 1] - in[i];",
    ]);
}

#[test]
fn a_stray_access_on_the_cpu_names_kernel_address_and_block() {
    let text = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry stray(.param .u64 at) {
        .reg .b64 %p;
        ld.param.u64 %p, [at];
        st.global.u32 [%p], 7;
        ret;
    }";
    broadloom_with_input(&["run", "-", "--block", "32", "--arg", "u64:0x1230", "--device", "cpu"], text.as_bytes())
        .exits(1)
        .complains(&["error[out-of-bounds]: kernel `stray`", "0x1230", "block 0", "`broadloom check`"]);
}

#[test]
fn devices_are_listed() {
    broadloom(&["devices"]).exits(0).says(&["interp: PTX reference interpreter", "warp", "32 threads"]);
    let listed = broadloom(&["devices"]).exits(0).says(&["  cores ", "  vectors ", "  memory "]);
    assert!(listed.out.starts_with("cpu: "), "{}", listed.out);
}

#[test]
fn help_explains_arguments() {
    broadloom(&["run", "--help"]).exits(0).says(&["Forms of an argument:", "f32[1024]:zero", "@in.npy", "Examples:", "--stats"]);
}

/// A fault in a header of the toolkit is reported at the user's line that leads to it, on every executor.
#[test]
fn a_fault_names_the_users_line() {
    let text = b".version 7.0
.target sm_70
.address_size 64
.visible .entry k()
{
    .loc 1 20 3
    .loc 2 5 1, function_name $names, inlined_at 1 20 3
    trap;
    ret;
}
.file 1 \"missing/k.cu\"
.file 2 \"/opt/cuda/include/crt/stop.hpp\"
.section .debug_str
{
$names:
.b8 95,90,52,115,116,111,112,118,0
}
";
    for device in ["cpu", "interp"] {
        broadloom_with_input(&["run", "-", "--device", device], text).exits(1).complains(&[
            "error[trap]",
            "= note: from missing/k.cu:20\n",
            "= note: in `stop` (stop.hpp:5), inlined from k.cu:20\n",
        ]);
    }
}
