//! The end of a command from outside: its time limit, and signals that ask it to end.
//!
//! A thread waits for either. At the time limit it requests a stop, which the evaluators and the interpreter
//! poll; the handler of a signal has done so already. The command then ends by itself, with its findings and
//! its output. If it does not within [`GRACE`], because it plans, compiles or waits for a device, the thread
//! ends the process: it runs the prepared actions, writes the output so far, and names the activities in
//! progress.

use crate::failure::{Exit, codes};
use crate::terminal::Terminal;
use broadloom::cpu::signals::{self, Signals};
use broadloom::cpu::supervise::kill_descendants;
use broadloom::device::{Stop, StopReason, activity};
use broadloom::diag::{Diagnostic, Sources};
use std::mem::take;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time that a command has to end by itself after a stop.
pub const GRACE: Duration = Duration::from_millis(500);
/// Time that the last actions have. Standard output may be a pipe that nobody reads.
const LAST_ACTIONS: Duration = Duration::from_secs(2);
/// Maximum number of activities that a message names.
const SHOWN: usize = 6;

/// Action before the process ends.
type LastAction = Box<dyn FnOnce(&mut Terminal, StopReason) + Send>;

/// Actions for the end of the process, if it does not end by itself.
static ACTIONS: Mutex<Vec<LastAction>> = Mutex::new(vec![]);

/// Adds an action for the end of the process, if the command does not end by itself.
pub fn before_end(action: impl FnOnce(&mut Terminal, StopReason) + Send + 'static) {
    ACTIONS.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(action));
}

/// Reason why a watch ends.
enum Event {
    Signal,
    Ended,
}

/// Watch over a piece of work, until it is dropped.
#[derive(Debug)]
pub struct Watch {
    events: Sender<Event>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts the time limit of a piece of work, if there is one. `subject` is the start of the message.
    pub fn start(limit: Option<Duration>, stop: &'static Stop, subject: &str, terminal: &Terminal) -> Option<Watch> {
        limit.and_then(|limit| Watch::new(Some(limit), None, stop, subject, terminal))
    }

    /// Starts the time limit of a check, if there is one, and catches signals.
    pub fn check(limit: Option<Duration>, subject: &str, terminal: &Terminal) -> Option<Watch> {
        Watch::new(limit, signals::catch(), &signals::STOP, subject, terminal)
    }

    fn new(
        limit: Option<Duration>,
        signals: Option<Signals>,
        stop: &'static Stop,
        subject: &str,
        terminal: &Terminal,
    ) -> Option<Watch> {
        activity::note();
        let (events, ended) = channel();
        if let Some(mut signals) = signals {
            let events = events.clone();
            let wait = move || {
                if signals.wait().is_some() {
                    // The work may have ended.
                    let _ = events.send(Event::Signal);
                }
            };
            thread::Builder::new().name("signals".into()).spawn(wait).ok()?;
        }
        let (subject, mut terminal) = (subject.to_owned(), terminal.clone());
        let body = move || {
            let event = match limit {
                Some(limit) => ended.recv_timeout(limit),
                None => ended.recv().map_err(RecvTimeoutError::from),
            };
            match event {
                Ok(Event::Signal) => {}
                Err(RecvTimeoutError::Timeout) => drop(stop.request_by_time_limit()),
                Ok(Event::Ended) | Err(RecvTimeoutError::Disconnected) => return,
            }
            if let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(GRACE) {
                end_process(stop.reason().unwrap_or(StopReason::TimeLimit), limit, &subject, &mut terminal);
            }
        };
        let thread = thread::Builder::new().name("time limit".into()).spawn(body).ok()?;
        Some(Watch { events, thread: Some(thread) })
    }
}

impl Drop for Watch {
    /// Ends the watch. A watch that is ending the process does so.
    fn drop(&mut self) {
        let _ = self.events.send(Event::Ended);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns the message for work that did not end within its time limit.
pub fn late_message(subject: &str, limit: Duration) -> Diagnostic {
    let message = format!("{subject} did not end within {limit:?}");
    Diagnostic::error(codes::TIME_LIMIT, message)
}

fn end_process(reason: StopReason, limit: Option<Duration>, subject: &str, terminal: &mut Terminal) -> ! {
    let mut diagnostic = match (reason, limit) {
        (StopReason::TimeLimit, Some(limit)) => late_message(subject, limit),
        _ => Diagnostic::error(codes::INTERRUPTED, format!("{subject} was stopped by {reason} before its end")),
    };
    let activities = activity::current();
    for activity in activities.iter().take(SHOWN) {
        diagnostic = diagnostic.note(format!("in progress: {activity}"));
    }
    if activities.len() > SHOWN {
        diagnostic = diagnostic.note(format!("and {} more activities", activities.len() - SHOWN));
    }
    kill_descendants();
    terminal.announce(&Sources::new(), &diagnostic);
    let (done, finished) = channel();
    let mut own = terminal.clone();
    let last = move || {
        let actions = take(&mut *ACTIONS.lock().unwrap_or_else(PoisonError::into_inner));
        actions.into_iter().for_each(|action| action(&mut own, reason));
        own.flush();
        let _ = done.send(());
    };
    if thread::Builder::new().spawn(last).is_ok() {
        let _ = finished.recv_timeout(LAST_ACTIONS);
    }
    let exit = match reason {
        StopReason::Signal(signal) => Exit::stopped(signal),
        StopReason::TimeLimit => Exit::Failed,
    };
    signals::leave(exit as u8)
}
