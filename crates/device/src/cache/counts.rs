//! How often code was found, and why not, kept beside the entries of a device.
//!
//! A line for each kind: its name and a number. Processes add to it one after the other, under a lock of the file; **what cannot be written is
//! not counted, and what cannot be read counts as nothing.**

use super::Miss;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;

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

/// What a file says.
pub(super) fn read_file(path: &Path) -> Counts {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text));
    if read.is_ok() { Counts::parse(&text) } else { Counts::default() }
}

/// Adds to what a file says. Where there is no folder for it there is nothing to count.
pub(super) fn add_to_file(path: &Path, more: &Counts) {
    let Ok(mut file) = File::options().read(true).write(true).create(true).truncate(false).open(path) else { return };
    if file.lock().is_err() {
        return;
    }
    let mut text = String::new();
    // What is no text is begun anew.
    let _ = (&mut file).take(MOST_BYTES).read_to_string(&mut text);
    let sum = Counts::parse(&text).plus(more).text();
    let _ = file.rewind().and_then(|()| file.write_all(sum.as_bytes())).and_then(|()| file.set_len(sum.len() as u64));
}
