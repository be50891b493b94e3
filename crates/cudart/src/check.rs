//! Checking mode, `BROADLOOM_CHECK`: kernels run on the checking interpreter, and findings are reported after
//! each launch.
//!
//! Calls with wrong arguments (a launch that is too large, a freed pointer) are findings too, because
//! programs often ignore return values. Such a finding names the call and describes its pointers. A
//! termination signal stops the running launch, and its findings are reported before the program ends. Leaks
//! of the device heap are reported at exit, when no one can free the memory any more.
//! `BROADLOOM_CHECK_REPORT` names a file to which each finding is appended as a line of JSON. `broadloom
//! check` reads this file.

use crate::status::{Outcome, Status};
use crate::tell::tell;
use broadloom_cpu::signals::{self, Signals, without_file_size_signal};
use broadloom_device::trace::Value;
use broadloom_device::{Error, FaultKind, signal_name};
use broadloom_diag::Sources;
use broadloom_interp::Interp;
use broadloom_interp::check::{Finding, FindingKind};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Tests if the environment enables checking mode.
pub(crate) fn is_wanted() -> bool {
    broadloom_device::settings::check()
}

#[derive(Debug, Default)]
struct ReportedFindings {
    /// Number of the interpreter's findings reported so far.
    seen: usize,
    /// Number of all findings reported so far.
    told: u64,
    launches: u64,
    /// Sources of the launched kernels, by kernel name.
    sources: HashMap<String, Arc<Sources>>,
    /// Failed calls that were reported: function, status and description.
    calls: HashSet<(&'static str, u32, String)>,
    ended: bool,
}

/// State of checking mode.
#[derive(Debug)]
pub(crate) struct Checking {
    interp: Interp,
    process: u32,
    report: Option<PathBuf>,
    state: Mutex<ReportedFindings>,
}

/// State of checking mode, once the device is open.
static CHECKING: OnceLock<Checking> = OnceLock::new();

/// Returns the state of checking mode if it is active in this process.
pub(crate) fn active() -> Option<&'static Checking> {
    CHECKING.get().filter(|checking| checking.process == std::process::id())
}

thread_local! {
    /// Name of the current or last call of the program.
    static CALL: Cell<&'static str> = const { Cell::new("the program") };
    /// Description of the current call's arguments.
    static ABOUT: RefCell<String> = const { RefCell::new(String::new()) };
    /// Reason for refusing the current call.
    static REASON: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Reports the remaining findings at exit.
extern "C" fn at_exit() {
    // A panic must not unwind into C. At exit it cannot be reported either.
    let _ = std::panic::catch_unwind(|| {
        if let Some(checking) = active() {
            checking.end();
        }
    });
}

/// Waits for a termination signal, reports the findings so far, and lets the signal end the program. A
/// program with its own signal handler decides itself when it ends.
fn end_by_signal(mut signals: Signals) {
    let Some(received) = signals.wait() else { return };
    let _ = std::panic::catch_unwind(|| {
        if received.ends
            && let Some(checking) = active()
        {
            // The running launch sees the flag, stops, and reports its findings.
            checking.end();
        }
    });
    if received.ends {
        crate::exit::write_reports();
        signals::end_by(received.signal);
    }
}

/// Starts checking mode on an interpreter.
pub(crate) fn start(interp: Interp) {
    if let Some(signals) = signals::catch() {
        // Without this thread a signal stops only the running launch, not the program.
        let _ = std::thread::Builder::new().name("signals".into()).spawn(move || end_by_signal(signals));
    }
    crate::exit::write_at_exit(at_exit);
    let report = std::env::var_os("BROADLOOM_CHECK_REPORT").map(PathBuf::from);
    CHECKING.get_or_init(|| Checking { interp, process: std::process::id(), report, state: Mutex::default() });
}

impl Checking {
    fn state(&self) -> MutexGuard<'_, ReportedFindings> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a line to the report. Write errors are ignored here; the reader of the report notices a
    /// missing file.
    fn note(&self, line: &Value) {
        let Some(path) = &self.report else { return };
        if let Ok(mut file) = std::fs::File::options().append(true).create(true).open(path) {
            let _ = without_file_size_signal(|| file.write_all(format!("{line}\n").as_bytes()));
        }
    }

    /// Runs one launch exclusively and reports its findings.
    pub(crate) fn launch(
        &self,
        kernel: &str,
        sources: &Arc<Sources>,
        launch: impl FnOnce() -> Outcome<broadloom_device::Result<()>>,
    ) -> Outcome<broadloom_device::Result<()>> {
        let mut state = self.state();
        let outcome = launch();
        state.launches += 1;
        if state.launches == 1 {
            self.note(&[("started".to_owned(), Value::from(std::process::id()))].into_iter().collect());
        }
        state.sources.insert(kernel.to_owned(), sources.clone());
        let found = self.interp.findings_behind(state.seen);
        state.seen += found.len();
        for finding in &found {
            self.tell(&mut state, finding);
        }
        if let Ok(Err(Error::Fault(fault))) = &outcome
            && fault.kind == FaultKind::Interrupted
        {
            tell(&fault.to_string());
        }
        outcome
    }

    fn tell(&self, state: &mut ReportedFindings, finding: &Finding) {
        state.told += 1;
        let none = Sources::new();
        let sources = state.sources.get(&finding.kernel).map_or(&none, |sources| &**sources);
        tell(&sources.render(&finding.diagnostic()));
        self.note(&finding.to_json(sources));
    }

    /// Reports a call with wrong arguments.
    fn call_failed(&self, name: &'static str, status: Status) {
        let about = ABOUT.try_with(RefCell::take).unwrap_or_default();
        let reason = REASON.try_with(RefCell::take).unwrap_or_default();
        // A failing query is a normal answer, not a mistake.
        let asks = ["Get", "Query", "Can", "IsCapturing"].iter().any(|word| name.contains(word));
        if asks || !is_mistake(status) {
            return;
        }
        let mut state = self.state();
        if !state.calls.insert((name, status.0, format!("{about}{reason}"))) {
            return;
        }
        state.told += 1;
        let (error, words) = (status.name_for(name).unwrap_or_default(), status.text().unwrap_or_default());
        let message = format!("{name}{about} returns {error}: {words}");
        let note = if reason.is_empty() { String::new() } else { format!("\n  = note: {reason}") };
        tell(&format!("error[api-error]: {message}{note}"));
        let fields = [("kind", "api-error"), ("call", name), ("status", error), ("message", &message), ("reason", &reason)];
        let fields = fields.into_iter().filter(|(_, text)| !text.is_empty());
        self.note(&fields.map(|(field, text)| (field.to_owned(), Value::from(text))).collect());
    }

    /// Reports the remaining findings, once.
    fn end(&self) {
        let mut state = self.state();
        if std::mem::replace(&mut state.ended, true) {
            return;
        }
        let leaks: Vec<Finding> =
            self.interp.findings().into_iter().filter(|finding| finding.kind == FindingKind::Leak).collect();
        for leak in &leaks {
            self.tell(&mut state, leak);
        }
        self.note(&[("launches".to_owned(), Value::from(state.launches))].into_iter().collect());
        if self.report.is_none() {
            let plural = |count: u64, what: &str| if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") };
            let launches = plural(state.launches, "launch").replace("launchs", "launches");
            let stopped = signals::STOP.signal().map(signal_name);
            let stopped = stopped.map(|by| format!("; the check was stopped before its end by {by}")).unwrap_or_default();
            tell(&match state.told {
                0 => format!("no findings in {launches}{stopped}"),
                told => format!("{} in {launches}{stopped}", plural(told, "finding")),
            });
        }
    }
}

/// Starts a new call: sets its name and clears its description and reason.
pub(crate) fn begin(name: &'static str) {
    let _ = CALL.try_with(|call| call.set(name));
    let _ = ABOUT.try_with(|about| about.borrow_mut().clear());
    let _ = REASON.try_with(|reason| reason.borrow_mut().clear());
}

/// Returns the name of the running call.
pub(crate) fn running_call() -> &'static str {
    CALL.try_with(Cell::get).unwrap_or("the program")
}

/// Records the reason for refusing the current call, for the error message.
pub(crate) fn because(words: impl FnOnce() -> String) {
    if active().is_some() {
        let _ = REASON.try_with(|reason| reason.replace(words()));
    }
}

/// Records a description of the current call's arguments, for the error message.
pub(crate) fn about(words: impl FnOnce() -> String) {
    if active().is_some() {
        let _ = ABOUT.try_with(|about| about.replace(words()));
    }
}

/// Handles a call that returned an error.
pub(crate) fn call_failed(name: &'static str, status: Status) {
    if let Some(checking) = active() {
        checking.call_failed(name, status);
    }
}

/// Tests if an error means a mistake of the program, not a missing resource.
fn is_mistake(status: Status) -> bool {
    matches!(
        status,
        Status::INVALID_VALUE
            | Status::INVALID_CONFIGURATION
            | Status::INVALID_PITCH_VALUE
            | Status::INVALID_SYMBOL
            | Status::INVALID_MEMCPY_DIRECTION
            | Status::INVALID_DEVICE_FUNCTION
            | Status::INVALID_HANDLE
            | Status::LAUNCH_OUT_OF_RESOURCES
            | Status::HOST_MEMORY_ALREADY_REGISTERED
            | Status::HOST_MEMORY_NOT_REGISTERED
            | Status::STREAM_CAPTURE_UNSUPPORTED
            | Status::STREAM_CAPTURE_IMPLICIT
    )
}
