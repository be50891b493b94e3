//! Strips of a file that are encoded on all cores and written in order.

use super::Problem;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Condvar, Mutex, PoisonError};

/// Number of strips per core that are encoded before the first of them is written.
const AHEAD: usize = 4;

/// Ends the work of the other threads when the thread that has it panics.
struct EndOnPanic<'a>(&'a AtomicBool, &'a Condvar);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
            self.1.notify_all();
        }
    }
}

/// Encodes strips on all cores and writes them in order. `encode` takes the number of a strip. Only a few strips per
/// core are in memory at a time. The first failure ends the work.
pub(super) fn in_order<T: Send>(
    count: usize,
    encode: impl Fn(usize) -> T + Sync,
    mut write: impl FnMut(T) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(count);
    if cores <= 1 {
        return (0..count).try_for_each(|index| write(encode(index)));
    }
    let (next, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (written, progress) = (Mutex::new(0), Condvar::new());
    let (sender, receiver) = sync_channel::<(usize, T)>(cores * AHEAD);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            let sender = sender.clone();
            let (next, has_failed, written, progress, encode) = (&next, &has_failed, &written, &progress, &encode);
            scope.spawn(move || {
                let _end = EndOnPanic(has_failed, progress);
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let is_ahead = |written: &mut usize| index >= *written + cores * AHEAD && !has_failed.load(Ordering::Relaxed);
                    let lock = written.lock().unwrap_or_else(PoisonError::into_inner);
                    drop(progress.wait_while(lock, is_ahead).unwrap_or_else(PoisonError::into_inner));
                    if index >= count || has_failed.load(Ordering::Relaxed) || sender.send((index, encode(index))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let (mut waiting, mut outcome, mut first) = (BTreeMap::new(), Ok(()), 0);
        for (index, strip) in receiver {
            waiting.insert(index, strip);
            while let (Ok(()), Some(strip)) = (&outcome, waiting.remove(&first)) {
                outcome = write(strip);
                first += 1;
            }
            has_failed.store(outcome.is_err(), Ordering::Relaxed);
            *written.lock().unwrap_or_else(PoisonError::into_inner) = first;
            progress.notify_all();
        }
        outcome
    })
}
