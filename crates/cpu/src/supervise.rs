//! Supervision of a child program: signals that ask the parent to end reach it, and it does not outlive its
//! parent.
//!
//! A signal is forwarded to every descendant, unless the terminal has already sent it to all of them.
//! Descendants that still run after a grace period are killed. The first Ctrl-C at the terminal does not
//! start that period, since a program may treat it as a command. Descendants are found by their parents in
//! `/proc`. Orphans become children of this process meanwhile (`PR_SET_CHILD_SUBREAPER`), so none is lost.
//! Process groups stay unchanged, so the terminal's job control keeps working.

use crate::signals::{self, ReceivedSignal, STOP, Signals};
use broadloom_device::StopReason;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between two checks for running processes.
const LOOK: Duration = Duration::from_millis(20);

/// Exit status of a supervised program, and why it was asked to end.
#[derive(Clone, Copy, Debug)]
pub struct ProgramEnd {
    /// Exit status.
    pub status: ExitStatus,
    /// Reason why the program was asked to end: a signal to this process, or the time limit.
    pub stopped: Option<StopReason>,
}

/// Runs a program and waits for its end. If a signal asks this process to end, or if the time limit has
/// passed, the program and its descendants are asked to end, and killed after `grace`. A program whose parent
/// dies is killed.
///
/// Must be called by the main thread: the system kills the child when the thread that started it ends.
pub fn supervise(command: &mut Command, grace: Duration, limit: Option<Duration>) -> io::Result<ProgramEnd> {
    let signals = signals::catch();
    // SAFETY: a flag of this process.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
    let parent = std::process::id() as libc::pid_t;
    let die_with_parent = move || {
        // SAFETY: `prctl`, `getppid` and `raise` are allowed between `fork` and `exec`.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // It may have died before.
            if libc::getppid() != parent {
                libc::raise(libc::SIGKILL);
            }
        }
        Ok(())
    };
    // SAFETY: the closure does nothing but the calls above, and allocates nothing.
    unsafe { command.pre_exec(die_with_parent) };
    let mut child = command.spawn()?;
    if let Some(signals) = signals {
        thread::Builder::new().name("signals".into()).spawn(move || pass_on(signals, grace))?;
    }
    if let Some(limit) = limit {
        thread::Builder::new().name("time limit".into()).spawn(move || {
            thread::sleep(limit);
            if STOP.request_by_time_limit() {
                send(&descendants(), libc::SIGTERM);
                end_all(grace);
            }
        })?;
    }
    let status = child.wait()?;
    // Processes that it has started end with it.
    if STOP.is_requested() {
        end_all(grace);
    }
    // A program that continued after Ctrl-C and ended successfully was not stopped.
    let went_on = signals::from_terminal() && status.success();
    Ok(ProgramEnd { status, stopped: STOP.reason().filter(|_| !went_on) })
}

/// Kills all live descendants of this process.
pub fn kill_descendants() {
    send(&descendants(), libc::SIGKILL);
}

fn pass_on(mut signals: Signals, grace: Duration) {
    let Some(ReceivedSignal { signal, from_terminal, .. }) = signals.wait() else { return };
    // A program that treats Ctrl-C as a command continues. The next one ends this process, and the program
    // with it.
    if from_terminal && signal == libc::SIGINT {
        return;
    }
    if !from_terminal {
        send(&descendants(), signal);
    }
    end_all(grace);
}

/// Waits until all descendants have ended, and kills them after a grace period.
fn end_all(grace: Duration) {
    let deadline = Instant::now() + grace;
    loop {
        let processes = descendants();
        if processes.is_empty() {
            return;
        }
        if Instant::now() > deadline {
            send(&processes, libc::SIGKILL);
        }
        thread::sleep(LOOK);
    }
}

fn send(processes: &[libc::pid_t], signal: i32) {
    for process in processes {
        // SAFETY: a signal to a process that was a descendant a moment ago; one that has ended is an error
        // that does not matter.
        unsafe { libc::kill(*process, signal) };
    }
}

/// Returns all live descendants of this process.
fn descendants() -> Vec<libc::pid_t> {
    let mut children: HashMap<libc::pid_t, Vec<libc::pid_t>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse::<libc::pid_t>().ok()) else { continue };
        let Ok(text) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name, in parentheses, may contain anything. The state and the parent follow it.
        let Some((_, rest)) = text.rsplit_once(") ") else { continue };
        let mut fields = rest.split(' ');
        let (Some(state), Some(parent)) = (fields.next(), fields.next().and_then(|parent| parent.parse().ok())) else { continue };
        if !matches!(state, "Z" | "X") {
            children.entry(parent).or_default().push(process);
        }
    }
    let mut found = children.remove(&(std::process::id() as libc::pid_t)).unwrap_or_default();
    let mut next = 0;
    while let Some(process) = found.get(next) {
        found.extend(children.remove(process).unwrap_or_default());
        next += 1;
    }
    found
}
