//! How often code was found, and why not, kept beside the entries of a device.
//!
//! A line for each kind: its name and a number. Processes add to it one after the other, under a lock of the file; **what cannot be written is
//! not counted, and what cannot be read counts as nothing.**

use super::Miss;
use super::disk::COUNTS;
use crate::private::Folder;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::time::Duration;

/// How long and how often a process waits for others that count.
const WAIT: Duration = Duration::from_millis(1);
const MOST_WAITS: u32 = 500;
const FOUND: &str = "found";
/// No file of ours is longer.
const MOST_BYTES: u64 = 4096;

/// How often code was found, and why not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How often it was found.
    pub found: u64,
    missed: [u64; Miss::ALL.len()],
}

impl Counts {
    /// How often it was not found for a reason.
    pub fn missed(&self, reason: Miss) -> u64 {
        self.missed[reason as usize]
    }

    /// How often it was not found.
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

/// A note in a folder.
pub(super) fn read(folder: &Folder) -> Counts {
    let text = folder.read(COUNTS, MOST_BYTES).ok().flatten();
    text.and_then(|text| String::from_utf8(text).ok()).map_or_else(Counts::default, |text| Counts::parse(&text))
}

/// Adds to what a note in a folder says.
pub(super) fn add(folder: &Folder, more: &Counts) {
    let Ok(mut file) = folder.file_to_change(COUNTS) else { return };
    if !locked(&file) {
        return;
    }
    let mut text = String::new();
    // A file that is no text is begun anew.
    let _ = (&mut file).take(MOST_BYTES).read_to_string(&mut text);
    let sum = Counts::parse(&text).plus(more).text();
    let _ = file.rewind().and_then(|()| file.write_all(sum.as_bytes())).and_then(|()| file.set_len(sum.len() as u64));
}

/// Locks a file, unless that takes long: whoever can read a file can keep it locked.
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
