//! Error log that programs can query: failed calls, and messages written to standard error.
//!
//! The latest entries that fit into [`ROOM`] bytes are kept. Callbacks of the program run on the failing
//! thread, **with no lock held**.

use crate::handles::{Handle, Handles};
use crate::status::{Outcome, Status};
use std::collections::VecDeque;
use std::ffi::CString;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Capacity of the log in bytes, the same as in NVIDIA's driver.
const ROOM: usize = 25_600;
/// Line shown before the entries when older ones were dropped.
const LOST: &str = "[older entries are gone]\n";

/// Latest entries of the log, of bounded size.
#[derive(Debug, Default)]
struct LogEntries {
    entries: VecDeque<String>,
    bytes: usize,
    /// Number of dropped entries.
    gone: u32,
}

fn kept() -> MutexGuard<'static, LogEntries> {
    static KEPT: OnceLock<Mutex<LogEntries>> = OnceLock::new();
    KEPT.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Callback of the program (`CUlogsCallback`) and its argument.
#[derive(Clone, Copy, Debug)]
struct Listener {
    function: usize,
    data: usize,
}

fn listeners() -> &'static Handles<Listener> {
    static LISTENERS: OnceLock<Handles<Listener>> = OnceLock::new();
    LISTENERS.get_or_init(|| Handles::new(16))
}

/// Registers a callback for all later entries.
pub(crate) fn listen(function: usize, data: usize) -> Outcome<Handle> {
    if function == 0 {
        return Err(Status::INVALID_VALUE);
    }
    Ok(listeners().insert(Listener { function, data }))
}

/// Unregisters a callback.
pub(crate) fn ignore(handle: Handle) -> Outcome {
    listeners().remove(handle).map(drop).map_err(|_| Status::INVALID_VALUE)
}

/// Logs a failed call.
pub(crate) fn failed(name: &str, status: Status) {
    note(&format!(
        "{name}: {} ({})",
        status.text().unwrap_or("unknown error"),
        status.name_for(name).unwrap_or("unknown status")
    ));
}

/// Appends an entry of level error.
pub(crate) fn note(text: &str) {
    const ERROR: u32 = 0;
    let text = text.trim_end().replace('\0', " ");
    {
        let mut kept = kept();
        kept.bytes += text.len() + 1;
        kept.entries.push_back(text.clone());
        while kept.bytes > ROOM
            && let Some(oldest) = kept.entries.pop_front()
        {
            kept.bytes -= oldest.len() + 1;
            kept.gone = kept.gone.wrapping_add(1);
        }
    }
    let Ok(message) = CString::new(text) else { return };
    for listener in listeners().all() {
        type Function = extern "C" fn(usize, u32, *const std::ffi::c_char, usize);
        // SAFETY: the program gave a function of this type, which is not 0.
        let function: Function = unsafe { std::mem::transmute(listener.function) };
        function(listener.data, ERROR, message.as_ptr(), message.as_bytes().len());
    }
}

/// Returns the number of the next entry.
pub(crate) fn end() -> u32 {
    let kept = kept();
    kept.gone.wrapping_add(kept.entries.len() as u32)
}

/// Returns the entries starting with `first`, one per line, and the number of the next entry. Only the latest
/// entries that fit into `most` bytes are returned.
pub(crate) fn entries(first: Option<u32>, most: usize) -> (String, u32) {
    let kept = kept();
    let end = kept.gone.wrapping_add(kept.entries.len() as u32);
    let wanted = first.map_or(u32::MAX, |first| end.wrapping_sub(first)) as usize;
    let mut lost = first.map_or(kept.gone > 0, |_| wanted > kept.entries.len());
    let wanted = wanted.min(kept.entries.len());
    let last: Vec<&String> = kept.entries.iter().rev().take(wanted).collect();
    let fit = |room: usize| {
        let sizes = last.iter().scan(0, |sum, entry| {
            *sum += entry.len() + 1;
            Some(*sum)
        });
        sizes.take_while(|sum| *sum <= room).count()
    };
    let mut count = fit(most);
    lost |= count < wanted;
    if lost {
        count = fit(most.saturating_sub(LOST.len()));
    }
    let mut text = if lost && most >= LOST.len() && count > 0 { LOST.to_owned() } else { String::new() };
    for entry in last[..count].iter().rev() {
        text += entry;
        text.push('\n');
    }
    (text, end)
}
