//! Activities of this process that are in progress: open spans of a trace and work of devices. A time limit
//! names them in its message.
//!
//! **Activities are only noted after [`note`] was called. Before, an activity costs the test of one flag.**

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

static NOTED: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
struct Entry {
    number: u64,
    thread: ThreadId,
    name: Cow<'static, str>,
}

/// Activities in progress in the order of their start, and the number of the next one.
#[derive(Debug)]
struct ActivityState {
    entries: Vec<Entry>,
    next: u64,
}

fn state() -> MutexGuard<'static, ActivityState> {
    static STATE: Mutex<ActivityState> = Mutex::new(ActivityState { entries: vec![], next: 0 });
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Activity of the creating thread, which ends on drop.
#[derive(Debug)]
#[must_use = "an activity ends when it is dropped"]
pub struct Activity(Option<u64>);

/// Notes activities from now on.
pub fn note() {
    NOTED.store(true, Ordering::Relaxed);
}

/// Tests if activities are noted.
#[inline]
pub fn is_noted() -> bool {
    NOTED.load(Ordering::Relaxed)
}

/// Begins an activity of this thread.
#[inline]
pub fn begin<N: Into<Cow<'static, str>>>(name: impl FnOnce() -> N) -> Activity {
    if is_noted() { Activity(Some(add(name().into()))) } else { Activity(None) }
}

#[cold]
fn add(name: Cow<'static, str>) -> u64 {
    let mut state = state();
    let number = state.next;
    state.next += 1;
    state.entries.push(Entry { number, thread: std::thread::current().id(), name });
    number
}

impl Drop for Activity {
    fn drop(&mut self) {
        if let Some(number) = self.0 {
            state().entries.retain(|entry| entry.number != number);
        }
    }
}

/// Returns the activities in progress, one text per thread: the outer ones before the inner ones. Equal texts
/// are listed once.
pub fn current() -> Vec<String> {
    let mut threads: Vec<(ThreadId, String)> = vec![];
    for Entry { thread, name, .. } in &state().entries {
        match threads.iter_mut().find(|(own, _)| own == thread) {
            Some((_, text)) => {
                text.push_str(" > ");
                text.push_str(name);
            }
            None => threads.push((*thread, name.clone().into_owned())),
        }
    }
    let mut texts: Vec<String> = vec![];
    for (_, text) in threads {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::span;

    #[test]
    fn activities_in_progress_are_named() {
        let before = begin(|| "not noted");
        assert!(before.0.is_none());
        note();
        let _outer = begin(|| "an outer activity");
        {
            let _inner = span("an inner span");
            let other = std::thread::spawn(|| {
                let _own = begin(|| format!("work of thread {}", 2));
                current()
            });
            let seen = other.join().unwrap();
            assert!(seen.contains(&"an outer activity > an inner span".to_owned()), "{seen:?}");
            assert!(seen.contains(&"work of thread 2".to_owned()), "{seen:?}");
        }
        let seen = current();
        assert!(seen.contains(&"an outer activity".to_owned()), "{seen:?}");
        assert!(!seen.iter().any(|text| text.contains("work of thread 2")), "{seen:?}");
    }
}
