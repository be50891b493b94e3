//! Tests of programs compiled by nvcc (`scripts/cuda-programs.sh`), unmodified: results and findings.

use crate::harness::{broadloom, empty_folder, root, shell};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Returns a program of `tests/cuda/bin`; `None` on other kinds of machines, because the programs are for one
/// kind.
pub(crate) fn program(name: &str) -> Option<String> {
    cfg!(all(target_arch = "x86_64", target_os = "linux")).then(|| root().join("tests/cuda/bin").join(name).display().to_string())
}

/// Returns the faulty programs with their expected findings.
fn faults(program: &str) -> Vec<(String, String)> {
    let list = broadloom(&["exec", "--", program]).exits(0).out;
    list.lines().filter_map(|line| line.split_once(' ')).map(|(name, kind)| (name.to_owned(), kind.to_owned())).collect()
}

#[test]
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), ignore = "skipped: the programs are for x86-64 Linux")]
fn faults_of_programs_are_found() {
    let Some(program) = program("faults") else { return };
    let folder = empty_folder("faults");
    let faults = faults(&program);
    assert!(faults.len() >= 40, "{faults:?}");
    for (name, kinds) in faults {
        let kind = kinds.split(' ').next().unwrap_or_default();
        let report = folder.join(format!("{name}.json"));
        let words = ["check", "--strict-barriers", "--json", report.to_str().unwrap(), "--", &program, &name];
        let outcome = broadloom(&words).exits(1);
        let report: Value = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
        let findings = report["findings"].as_array().unwrap();
        // The only findings are the fault and its consequences.
        let found: Vec<&str> = findings.iter().filter_map(|finding| finding["kind"].as_str()).collect();
        assert!(
            found.contains(&kind) && found.iter().all(|found| kinds.split(' ').any(|known| known == *found)),
            "{name}: {report:#}"
        );
        let count = if findings.len() == 1 { "1 finding".to_owned() } else { format!("{} findings", findings.len()) };
        let outcome = outcome.complains(&[&format!("error[{kind}]: "), &format!("faults`: {count}")]);
        // Findings in kernels include the source line.
        assert!(kind == "api-error" || outcome.err.contains("= note: from "), "{name}: {}", outcome.err);
        // The cause is reported before its consequences.
        assert_eq!(found[0], kind, "{name}: {report:#}");
    }
}

#[test]
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), ignore = "skipped: the programs are for x86-64 Linux")]
fn programs_without_faults_are_silent() {
    let Some(program) = program("faults") else { return };
    for (name, _) in faults(&program) {
        let outcome = broadloom(&["check", "--", &program, &name, "fixed"]);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(0), ""), "{name}: {}", outcome.err);
        assert_eq!(outcome.err, format!("`{program}`: no findings\n"), "{name}");
    }
}

/// A missing barrier is one finding, and threads that end before a barrier are one on request only.
#[test]
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), ignore = "skipped: the programs are for x86-64 Linux")]
fn barriers_are_checked_as_hardware_runs_them() {
    let Some(program) = program("faults") else { return };
    let outcome = broadloom(&["check", "--", &program, "transpose_without_barrier"]).exits(1);
    outcome.complains(&["error[race]", "faults`: 1 finding\n"]);
    let outcome = broadloom(&["check", "--", &program, "barrier_in_a_branch"]).exits(0);
    assert_eq!(outcome.err, format!("`{program}`: no findings\n"));
}

/// Refused calls name the function and describe the pointer.
#[test]
fn refused_calls_say_why() {
    let Some(program) = program("stopped") else { return };
    let report = empty_folder("refused-calls").join("report.json");
    let outcome = broadloom(&["check", "--json", report.to_str().unwrap(), "--", &program, "calls"]).exits(1);
    let report: Value = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
    let reasons = [
        (
            "cudaMemcpy",
            "the destination: 260 bytes from ADDRESS on end 4 bytes behind 256 bytes at ADDRESS, allocated by cudaMalloc",
        ),
        ("cudaMemcpy", "the source: 260 bytes from ADDRESS on end 4 bytes behind 256 bytes at ADDRESS, allocated by cudaMalloc"),
        (
            "cudaMemcpy",
            "the destination: ADDRESS is in no memory that CUDA has allocated or registered, and the direction is HostToDevice",
        ),
        ("cudaMemset", "260 bytes from ADDRESS on end 4 bytes behind 256 bytes at ADDRESS, allocated by cudaMalloc"),
        ("cudaMemcpyToSymbol", "20 bytes at offset 0 do not fit into the variable `table` of 16 bytes"),
        ("cudaFree", "ADDRESS is 16 bytes inside of 256 bytes at ADDRESS, allocated by cudaMalloc"),
        ("cudaFreeHost", "ADDRESS is the start of 256 bytes at ADDRESS, allocated by cudaMalloc"),
        ("cudaFree", "ADDRESS is the start of 256 bytes at ADDRESS, allocated by cudaHostAlloc"),
        ("cudaFree", "ADDRESS was freed before, by cudaFree: 256 bytes at ADDRESS, allocated by cudaMalloc"),
        (
            "cudaMemcpy",
            "the source: ADDRESS is in 256 bytes at ADDRESS, allocated by cudaMalloc, freed by cudaFree, and the direction is DeviceToHost",
        ),
        ("cudaMemcpy", "the source: ADDRESS is in 256 bytes at ADDRESS, allocated by cudaMalloc, freed by cudaFree"),
        ("cudaMemset", "ADDRESS is in 256 bytes at ADDRESS, allocated by cudaMalloc, freed by cudaFree"),
    ];
    let without_addresses = |text: &str| {
        let words = text.split(' ').map(|word| match word.strip_prefix("0x") {
            Some(digits) => format!("ADDRESS{}", digits.trim_start_matches(|digit: char| digit.is_ascii_hexdigit())),
            None => word.to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let findings = report["findings"].as_array().unwrap();
    let found: Vec<(&str, String)> = findings
        .iter()
        .map(|finding| (finding["call"].as_str().unwrap(), without_addresses(finding["reason"].as_str().unwrap_or_default())))
        .collect();
    let expected: Vec<(&str, String)> = reasons.iter().map(|(call, reason)| (*call, (*reason).to_owned())).collect();
    assert_eq!(found, expected, "{}", outcome.err);
    outcome.complains(&["error[api-error]: cudaFree returns cudaErrorInvalidValue: invalid argument\n  = note: 0x"]);
}

/// Tests CUDA in child processes, in libraries loaded at run time, in initialisers and in threads.
#[test]
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), ignore = "skipped: the programs are for x86-64 Linux")]
fn programs_use_cuda_from_unusual_places() {
    let Some(hosts) = program("hosts") else { return };
    let plugin = program("plugin").unwrap_or_default();
    for device in ["cpu", "interp"] {
        for name in [
            "fork-before-use",
            "fork-after-use",
            "plugin",
            "runtime-by-name",
            "threads",
            "exit-without-freeing",
            "exit-beside-a-thread",
            "bad-pointers",
        ] {
            let outcome = broadloom(&["exec", "--device", device, "--", &hosts, name, &plugin]);
            assert_eq!((outcome.code, outcome.out.as_str()), (Some(0), "ok\n"), "{name} on {device}: {}", outcome.err);
            let told = if name == "bad-pointers" { "broadloom: kernel `add(int*, int)`: " } else { "" };
            assert!(
                outcome.err.starts_with(told) && outcome.err.is_empty() == told.is_empty(),
                "{name} on {device}: {}",
                outcome.err
            );
        }
    }
    // With an empty cache, that thread is compiling when the process ends, or has not yet made its first
    // call.
    for device in ["cpu", "interp"].iter().cycle().take(30) {
        let line = format!("BROADLOOM_CACHE=off broadloom exec --device {device} -- {hosts} exit-beside-a-thread");
        let outcome = shell(&line);
        assert_eq!((outcome.code, outcome.out.as_str(), outcome.err.as_str()), (Some(0), "ok\n", ""), "{line}");
    }
    // The library cannot stop the program: an invalid variable is reported once and ignored.
    let line = format!("broadloom exec -- env BROADLOOM_THREADS=lots BROADLOOM_MEMORY_LIMIT=0 {hosts} threads");
    let outcome = shell(&line).exits(0).says(&["ok\n"]);
    let told: Vec<&str> = outcome.out.lines().filter(|line| line.contains("BROADLOOM_")).collect();
    assert_eq!(
        told,
        [
            "broadloom: BROADLOOM_THREADS is `lots`, and it takes a number of threads from 1 to 4096; as many threads run as the host runs at once",
            "broadloom: BROADLOOM_MEMORY_LIMIT is `0`, and it takes a number of bytes above 0, with `K`, `M`, `G` or `T` behind it if need be; memory is limited as if it were not set",
        ]
    );
    let early = shell(&format!("HOSTS_EARLY=1 broadloom exec -- {hosts} launched-before-main"));
    assert_eq!((early.code, early.out.as_str()), (Some(0), "ok\n"));
}

/// Tests conditional nodes, memory of another process, driver textures, stream memory operations, and
/// batches. Each program checks itself.
#[test]
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), ignore = "skipped: the programs are for x86-64 Linux")]
fn newer_parts_of_cuda_run() {
    let Some(groups) = program("groups") else { return };
    let list = broadloom(&["exec", "--", &groups]).exits(1).out;
    assert_eq!(list.lines().count(), 5, "{list}");
    for name in list.lines() {
        let outcome = shell(&format!("BROADLOOM_THREADS=2 broadloom exec -- {groups} {name}"));
        assert_eq!((outcome.code, outcome.out.as_str(), outcome.err.as_str()), (Some(0), "ok\n", ""), "{name}");
    }
    // The interpreter has its own address space. It can share nothing with other processes, and no stream can
    // wait for a word.
    for name in ["conditions", "textures", "batches"] {
        let outcome = broadloom(&["exec", "--device", "interp", "--", &groups, name]);
        assert_eq!(
            (outcome.code, outcome.out.as_str(), outcome.err.as_str()),
            (Some(0), "ok\n", ""),
            "{name} on the interpreter"
        );
    }
}

#[test]
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), ignore = "skipped: the programs are for x86-64 Linux")]
fn what_a_program_does_is_recorded() {
    let Some(faults) = program("faults") else { return };
    let trace = empty_folder("exec-trace").join("trace.json");
    for device in ["cpu", "interp"] {
        let file = trace.to_str().unwrap();
        let arguments = ["exec", "--device", device, "--stats", "--trace", file, "--", &faults, "managed_overrun", "fixed"];
        let outcome = broadloom(&arguments).exits(0);
        outcome.complains(&[&format!("work of {device}"), "_Z5scalePfib", "calls", "cudaMallocManaged"]);
        let text = fs::read_to_string(&trace).unwrap();
        let events: Value = serde_json::from_str(&text).unwrap();
        let events = events["traceEvents"].as_array().unwrap();
        let spans = |name: &str| events.iter().filter(|event| event["ph"] == "X" && event["name"] == *name).count();
        assert!(spans("_Z5scalePfib") >= 1 && spans("cudaMallocManaged") == 1 && spans("cudaDeviceSynchronize") == 2, "{text}");
    }
    broadloom(&["exec", "--trace", "/no/such/folder/trace.json", "--", &faults]).exits(3).complains(&["cannot be written"]);
}

/// A fat binary with an overstated size causes an error message, not a crash.
#[test]
fn broken_fat_binaries_are_told() {
    let Some(says) = program("says") else { return };
    let bytes = fs::read(says).unwrap();
    let magic = 0xba55_ed50u32.to_le_bytes();
    let containers: Vec<usize> = (0..bytes.len()).step_by(8).filter(|at| bytes[*at..].starts_with(&magic)).collect();
    let path = empty_folder("broken").join("says");
    for size in [1 << 20, 243 << 40, u64::MAX] {
        let mut broken = bytes.clone();
        containers.iter().for_each(|at| broken[at + 8..at + 16].copy_from_slice(&size.to_le_bytes()));
        fs::write(&path, broken).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let outcome = broadloom(&["exec", "--", path.to_str().unwrap()]);
        assert!(outcome.code.is_some_and(|code| code != 0), "{outcome:?}");
        outcome.complains(&["the kernels of says cannot be run: ", "fat binary"]);
    }
}
