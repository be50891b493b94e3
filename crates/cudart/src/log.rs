//! What went wrong, kept for programs that ask for it: calls that failed, and what was told on standard error.
//!
//! The latest entries are kept, as many as [`ROOM`] bytes hold. Functions that the program registered are called by the thread that failed, **with nothing locked**.

use crate::handles::{Handle, Handles};
use crate::status::{Outcome, Status};
use std::collections::VecDeque;
use std::ffi::CString;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes that are kept, as NVIDIA's driver does.
const ROOM: usize = 25_600;
/// What stands before entries when some were lost.
const LOST: &str = "[older entries are gone]\n";

#[derive(Debug, Default)]
struct Kept {
    entries: VecDeque<String>,
    bytes: usize,
    /// How many entries there were before those that are kept.
    gone: u32,
}

fn kept() -> MutexGuard<'static, Kept> {
    static KEPT: OnceLock<Mutex<Kept>> = OnceLock::new();
    KEPT.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// A function of the program (`CUlogsCallback`), and what it is given.
#[derive(Clone, Copy, Debug)]
struct Listener {
    function: usize,
    data: usize,
}

fn listeners() -> &'static Handles<Listener> {
    static LISTENERS: OnceLock<Handles<Listener>> = OnceLock::new();
    LISTENERS.get_or_init(|| Handles::new(16))
}

/// Calls a function of the program with each entry from now on.
pub(crate) fn listen(function: usize, data: usize) -> Outcome<Handle> {
    if function == 0 {
        return Err(Status::INVALID_VALUE);
    }
    Ok(listeners().insert(Listener { function, data }))
}

/// Calls it no more.
pub(crate) fn ignore(handle: Handle) -> Outcome {
    listeners().remove(handle).map(drop).map_err(|_| Status::INVALID_VALUE)
}

/// A call failed.
pub(crate) fn failed(name: &str, status: Status) {
    note(&format!(
        "{name}: {} ({})",
        status.text().unwrap_or("unknown error"),
        status.name_for(name).unwrap_or("unknown status")
    ));
}

/// Adds an entry: an error.
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

/// The number of the next entry.
pub(crate) fn end() -> u32 {
    let kept = kept();
    kept.gone.wrapping_add(kept.entries.len() as u32)
}

/// The entries from one on, each with a line break: as many of the latest as fit into so many bytes, and the number of the next.
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
