//! Tests of signals: a stopped check reports its findings, and no program is left running.

use crate::harness::{Outcome, empty_folder, root};
use crate::programs::program;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Kernel that writes past its buffer and then runs forever.
const ENDLESS: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .u64 %rd<2>;
    .reg .u32 %r<2>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, 1;
    st.global.u32 [%rd1+64], %r1;
$L:
    add.u32 %r1, %r1, 1;
    bra $L;
}
";

fn start(arguments: &[&str]) -> Child {
    // The test runner may ignore signals, and child processes inherit ignored signals.
    Command::new("env")
        .args(["--default-signal=INT,HUP,TERM", env!("CARGO_BIN_EXE_broadloom")])
        .args(arguments)
        .current_dir(root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn send(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap().success());
}

/// Waits until a program reports that it is ready.
fn wait_for_word(child: &mut Child) {
    let mut word = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut word).unwrap();
    assert_eq!(&word, b"ready\n");
}

/// Waits until a process has used some CPU time.
fn wait_until_busy(child: &Child) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let ticks = || {
        let text = fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?;
        text.rsplit_once(") ")?.1.split(' ').nth(11)?.parse::<u64>().ok()
    };
    while ticks().is_none_or(|ticks| ticks < 40) {
        assert!(Instant::now() < deadline, "it does not compute");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for the end of the process and of all other processes that hold its pipes.
fn end(child: Child) -> Outcome {
    let output = child.wait_with_output().unwrap();
    Outcome {
        code: output.status.code().or(output.status.signal().map(|signal| -signal)),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[track_caller]
fn report(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_stopped_run_of_a_nesl_program_names_the_function() {
    let file = empty_folder("stopped-nesl").join("endless.nesl");
    fs::write(&file, "function spin(n) = if n < 0 then n else spin(n + 1 - 1);\nspin(5);\n").unwrap();
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let child = start(&["run", file.to_str().unwrap()]);
        wait_until_busy(&child);
        send(&child, signal);
        let stopped = format!("the run was stopped by SIG{signal}");
        end(child).exits(code).complains(&[&stopped, "in the function `spin`"]);
    }
}

#[test]
fn a_stopped_check_tells_what_it_found() {
    let folder = empty_folder("stopped-check");
    let kernel = folder.join("endless.ptx");
    fs::write(&kernel, ENDLESS).unwrap();
    let signals = [("INT", 130), ("TERM", 143), ("HUP", 129)];
    let running = signals.map(|(signal, _)| {
        let json = folder.join(format!("{signal}.json"));
        (json.clone(), start(&["check", kernel.to_str().unwrap(), "--arg", "u32[8]:zero", "--json", json.to_str().unwrap()]))
    });
    for ((signal, code), (json, child)) in signals.into_iter().zip(running) {
        wait_until_busy(&child);
        send(&child, signal);
        end(child).exits(code).complains(&[
            "error[out-of-bounds]",
            "(argument 1 (`p`) of `k`)",
            &format!("error[interrupted]: kernel `k`: it was stopped by SIG{signal} before its end"),
            &format!("kernel `k`: 1 finding; the check was stopped before its end by SIG{signal}"),
        ]);
        let report = report(&json);
        assert_eq!((report["findings"].as_array().unwrap().len(), &report["stopped"]), (1, &format!("SIG{signal}").into()));
    }
    let json = folder.join("limit.json");
    // Enough for the start of the command on a busy machine.
    let limit = ["--time-limit", "2", "--json", json.to_str().unwrap()];
    let outcome = end(start(&[&["check", kernel.to_str().unwrap(), "--arg", "u32[8]:zero"], &limit[..]].concat()));
    outcome.exits(1).complains(&["error[out-of-bounds]", "2 findings; the check was stopped before its end by the time limit"]);
    let report = report(&json);
    assert_eq!(report["findings"][0]["kind"], "out-of-bounds");
    assert_eq!((&report["findings"][1]["kind"], &report["stopped"]), (&"stopped".into(), &"the time limit".into()));
}

/// The signal is sent to the command alone. A terminal would send it to the whole group.
#[test]
fn a_stopped_program_tells_what_it_found() {
    let Some(program) = program("stopped") else { return };
    let folder = empty_folder("stopped-program");
    for (mode, signal, code) in [("kernel", "INT", 130), ("host", "TERM", 143), ("kernel", "HUP", 129)] {
        let json = folder.join(format!("{mode}-{signal}.json"));
        let mut child = start(&["check", "--json", json.to_str().unwrap(), "--", &program, mode]);
        wait_for_word(&mut child);
        send(&child, signal);
        let said = format!("stopped`: 1 finding; the check was stopped before its end by SIG{signal}");
        let outcome = end(child).exits(code).complains(&["error[out-of-bounds]", "stopped.cu:", &said]);
        assert_eq!(mode == "kernel", outcome.err.contains("it was stopped by SIG"), "{}", outcome.err);
        let report = report(&json);
        assert_eq!((report["findings"].as_array().unwrap().len(), &report["stopped"]), (1, &format!("SIG{signal}").into()));
    }
    // Processes started by the program also end. A shell makes background processes ignore SIGINT.
    let mut child = start(&["check", "--", "sh", "-c", &format!("{program} kernel & wait")]);
    wait_for_word(&mut child);
    send(&child, "TERM");
    end(child).exits(143).complains(&["error[out-of-bounds]", "1 finding; the check was stopped"]);
}

#[test]
fn no_program_outlives_the_command() {
    let Some(program) = program("stopped") else { return };
    let mut killed = start(&["check", "--", &program, "host"]);
    let mut recorded = start(&["exec", "--stats", "--", &program, "host"]);
    let mut deaf = start(&["check", "--", "sh", "-c", "trap '' INT TERM; echo ready; while :; do sleep 1; done"]);
    wait_for_word(&mut killed);
    send(&killed, "KILL");
    assert_eq!(end(killed).code, Some(-9));
    wait_for_word(&mut deaf);
    send(&deaf, "TERM");
    wait_for_word(&mut recorded);
    send(&recorded, "TERM");
    end(recorded).exits(143);
    end(deaf).exits(143).complains(&["the check was stopped before its end by SIGTERM"]);
}
