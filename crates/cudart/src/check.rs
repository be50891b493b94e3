//! Checking mode, `BROADLOOM_CHECK`: kernels run on the interpreter, which watches them, and what is found is told as soon as a launch is over.
//!
//! A call that the program got wrong (a launch that is too large, a pointer that was freed) is a finding as well: programs often do not look at
//! what a call returns. Leaks of the device's heap are told at the end, when nobody can free it any more. `BROADLOOM_CHECK_REPORT` names a file
//! to which each finding is appended as a line of JSON: `broadloom check` reads it.

use crate::image::Image;
use crate::kernels::Kernel;
use crate::state::{Opened, Runtime};
use crate::status::Status;
use crate::tell::tell;
use broadloom_device::trace::Value;
use broadloom_diag::Sources;
use broadloom_interp::Interp;
use broadloom_interp::check::{Finding, FindingKind};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whether an environment asks for it.
pub(crate) fn is_wanted() -> bool {
    broadloom_device::settings::check()
}

#[derive(Debug, Default)]
struct State {
    /// How many of the interpreter's findings were told.
    seen: usize,
    /// How many were told in all.
    told: u64,
    launches: u64,
    /// Where kernels that were launched come from.
    images: HashMap<String, Arc<Image>>,
    /// Calls that went wrong, and how.
    calls: HashSet<(&'static str, u32, String)>,
    ended: bool,
}

/// What is known of a program that is checked.
#[derive(Debug)]
pub(crate) struct Checking {
    interp: Interp,
    report: Option<PathBuf>,
    state: Mutex<State>,
}

thread_local! {
    /// What the running call was about.
    static ABOUT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The program ends.
pub(crate) extern "C" fn at_exit() {
    // A panic must not meet C; nobody is left to tell of one.
    let _ = std::panic::catch_unwind(|| {
        if let Some(Opened { checking: Some(checking), .. }) = Runtime::get().opened() {
            checking.end();
        }
    });
}

impl Checking {
    pub(crate) fn new(interp: Interp) -> Checking {
        // SAFETY: a function that is there until the end. When there is no room for it, leaks are not told.
        unsafe { libc::atexit(at_exit) };
        let report = std::env::var_os("BROADLOOM_CHECK_REPORT").map(PathBuf::from);
        Checking { interp, report, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a line to the report. A report that cannot be written is told by who waits for it.
    fn note(&self, line: &Value) {
        let Some(path) = &self.report else { return };
        if let Ok(mut file) = std::fs::File::options().append(true).create(true).open(path) {
            let _ = file.write_all(format!("{line}\n").as_bytes());
        }
    }

    /// Lets a launch happen, alone, and tells what was found.
    pub(crate) fn launch<T>(&self, runtime: &Runtime, kernel: &Kernel, launch: impl FnOnce() -> T) -> T {
        let mut state = self.state();
        let outcome = launch();
        state.launches += 1;
        if state.launches == 1 {
            self.note(&[("started".to_owned(), Value::from(std::process::id()))].into_iter().collect());
        }
        state.images.insert(kernel.name().to_owned(), kernel.image().clone());
        let found = self.interp.findings_behind(state.seen);
        state.seen += found.len();
        for finding in &found {
            self.tell(runtime, &mut state, finding);
        }
        outcome
    }

    fn tell(&self, runtime: &Runtime, state: &mut State, finding: &Finding) {
        state.told += 1;
        let none = Sources::new();
        let image = state.images.get(&finding.kernel).cloned();
        let sources = image.as_ref().and_then(|image| image.loaded(runtime).ok()).map_or(&none, |loaded| &loaded.sources);
        tell(&sources.render(&finding.diagnostic()));
        self.note(&finding.to_json(sources));
    }

    /// A call that the program got wrong.
    fn call_failed(&self, name: &'static str, status: Status) {
        let about = ABOUT.try_with(RefCell::take).unwrap_or_default();
        // What a program asks for may be answered with no.
        let asks = ["Get", "Query", "Can", "IsCapturing"].iter().any(|word| name.contains(word));
        if asks || !is_mistake(status) {
            return;
        }
        let mut state = self.state();
        if !state.calls.insert((name, status.0, about.clone())) {
            return;
        }
        state.told += 1;
        let (error, words) = (status.name().unwrap_or_default(), status.text().unwrap_or_default());
        let message = format!("{name}{about} returns {error}: {words}");
        tell(&format!("error[api-error]: {message}"));
        let fields = [("kind", "api-error"), ("call", name), ("status", error), ("message", &message)];
        self.note(&fields.into_iter().map(|(field, text)| (field.to_owned(), Value::from(text))).collect());
    }

    /// Tells what is left to tell, once.
    fn end(&self) {
        let mut state = self.state();
        if std::mem::replace(&mut state.ended, true) {
            return;
        }
        let leaks: Vec<Finding> =
            self.interp.findings().into_iter().filter(|finding| finding.kind == FindingKind::Leak).collect();
        for leak in &leaks {
            self.tell(Runtime::get(), &mut state, leak);
        }
        self.note(&[("launches".to_owned(), Value::from(state.launches))].into_iter().collect());
        if self.report.is_none() {
            let plural = |count: u64, what: &str| if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") };
            let launches = plural(state.launches, "launch").replace("launchs", "launches");
            tell(&match state.told {
                0 => format!("no findings in {launches}"),
                told => format!("{} in {launches}", plural(told, "finding")),
            });
        }
    }
}

/// Says what the running call is about, for the message when it fails.
pub(crate) fn about(opened: &Opened, words: impl FnOnce() -> String) {
    if opened.checking.is_some() {
        let _ = ABOUT.try_with(|about| about.replace(words()));
    }
}

/// A call returned an error.
pub(crate) fn call_failed(name: &'static str, status: Status) {
    if let Some(Opened { checking: Some(checking), .. }) = Runtime::get().opened() {
        checking.call_failed(name, status);
    }
}

/// Whether an error says that the program did something wrong, not that something is not to be had.
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
