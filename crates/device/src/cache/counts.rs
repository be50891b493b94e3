//! Cache statistics: hits, and misses by reason, stored beside the entries of a device.
//!
//! The file has a line for each kind: its name and a number. Processes add to it in turn under a file lock.
//! **Counts that cannot be written are lost, and counts that cannot be read are zero.**

use super::miss::Miss;
use crate::private::Folder;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::time::Duration;

/// Wait time for the lock, and maximum number of waits.
const WAIT: Duration = Duration::from_millis(1);
const MOST_WAITS: u32 = 500;
/// Name of the file.
pub(super) const NAME: &str = "counts";
const FOUND: &str = "found";
/// Maximum size of the file in bytes.
const MOST_BYTES: u64 = 4096;

/// Hits, and misses by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of hits.
    pub found: u64,
    missed: [u64; Miss::ALL.len()],
}

impl Counts {
    /// Returns the number of misses for a reason.
    pub fn missed(&self, reason: Miss) -> u64 {
        self.missed[reason as usize]
    }

    /// Returns the number of all misses.
    pub fn all_missed(&self) -> u64 {
        self.missed.iter().sum()
    }

    pub(super) fn add(&mut self, outcome: Result<(), Miss>) {
        match outcome {
            Ok(()) => self.found += 1,
            Err(reason) => self.missed[reason as usize] += 1,
        }
    }

    fn plus(&self, other: &Counts) -> Counts {
        let mut sum = *self;
        sum.found = sum.found.saturating_add(other.found);
        sum.missed.iter_mut().zip(other.missed).for_each(|(count, more)| *count = count.saturating_add(more));
        sum
    }

    fn parse(text: &str) -> Counts {
        let mut counts = Counts::default();
        for (name, number) in text.lines().filter_map(|line| line.split_once(' ')) {
            let Ok(number) = number.trim().parse::<u64>() else { continue };
            if name == FOUND {
                counts.found = number;
            } else if let Some(reason) = Miss::ALL.into_iter().find(|reason| reason.name() == name) {
                counts.missed[reason as usize] = number;
            }
        }
        counts
    }

    fn text(&self) -> String {
        let missed = Miss::ALL.into_iter().filter(|reason| self.missed(*reason) > 0);
        let lines = missed.map(|reason| format!("{} {}\n", reason.name(), self.missed(reason)));
        std::iter::once(format!("{FOUND} {}\n", self.found)).chain(lines).collect()
    }
}

/// Reads the counts in a folder.
pub(super) fn read(folder: &Folder) -> Counts {
    let text = folder.read(NAME, MOST_BYTES).ok().flatten();
    text.and_then(|text| String::from_utf8(text).ok()).map_or_else(Counts::default, |text| Counts::parse(&text))
}

/// Adds to the counts in a folder.
pub(super) fn add(folder: &Folder, more: &Counts) {
    let Ok(mut file) = folder.file_to_change(NAME) else { return };
    if !locked(&file) {
        return;
    }
    let mut text = String::new();
    // A file that is not text is overwritten.
    let _ = (&mut file).take(MOST_BYTES).read_to_string(&mut text);
    let sum = Counts::parse(&text).plus(more).text();
    let _ = file.rewind().and_then(|()| file.write_all(sum.as_bytes())).and_then(|()| file.set_len(sum.len() as u64));
}

/// Locks a file, with a time limit: any user who can read a file can keep it locked.
fn locked(file: &File) -> bool {
    for _ in 0..MOST_WAITS {
        match file.try_lock() {
            Ok(()) => return true,
            Err(TryLockError::WouldBlock) => std::thread::sleep(WAIT),
            Err(TryLockError::Error(_)) => return false,
        }
    }
    false
}
