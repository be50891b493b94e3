//! Rows that wait to be written: bands of an image, from the thread that computes them to those that encode them.
//!
//! A band is kept until all of its rows and the first row of the next band were taken, because filters look at the row
//! above. Whoever adds bands waits while [`AHEAD`] of them are kept. Encoders take rows in their order, several at a time,
//! and never wait for rows behind those that others wait for, so the first band that is kept is always being taken.

use super::{Format, Problem};
use crate::image::{Image, ImageError, Rect};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Number of bands that are kept before another one is added.
const AHEAD: usize = 2;

/// Bands of an image that is written.
#[derive(Debug)]
pub struct RowQueue {
    format: Format,
    bounds: Rect,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bands: VecDeque<Band>,
    /// Number of rows that were added.
    added: u32,
    /// True if one side has failed and the other must not wait.
    is_stopped: bool,
}

#[derive(Debug)]
struct Band {
    first: u32,
    image: Image,
    /// Number of rows that were taken.
    taken: u32,
    /// True if the first row was taken.
    has_begun: bool,
}

impl RowQueue {
    /// Creates a queue for an image that is written in a format.
    pub fn new(format: Format, bounds: Rect) -> RowQueue {
        RowQueue { format, bounds, state: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves the state intact.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the next rows, with the alpha of the format. Waits for a place. Returns false if the writer has failed.
    pub fn push(&self, band: Image) -> Result<bool, ImageError> {
        let image = self.format.with_alpha(&band)?;
        let state = self.changed.wait_while(self.lock(), |state| state.bands.len() >= AHEAD && !state.is_stopped);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let first = state.added;
        state.added += image.height();
        state.bands.push_back(Band { first, image, taken: 0, has_begun: false });
        self.changed.notify_all();
        Ok(!state.is_stopped)
    }

    /// Ends the work of the other side.
    pub fn stop(&self) {
        self.lock().is_stopped = true;
        self.changed.notify_all();
    }

    /// Passes rows to a function, band by band: the band and the rows in it. Waits for rows that are not there.
    pub(super) fn take(&self, rows: Range<u32>, mut each: impl FnMut(&Image, Range<u32>)) -> Result<(), Problem> {
        let mut at = rows.start;
        while at < rows.end {
            let (first, image) = self.band(at)?;
            let end = rows.end.min(first + image.height());
            each(&image, at - first..end - first);
            let mut state = self.lock();
            if let Some(band) = state.bands.iter_mut().find(|band| band.first == first) {
                band.taken += end - at;
                band.has_begun |= at == first;
            }
            let height = self.bounds.height;
            while state.bands.front().is_some_and(|band| band.taken == band.image.height())
                && (state.bands.get(1).is_some_and(|next| next.has_begun) || state.bands.len() == 1 && state.added == height)
            {
                state.bands.pop_front();
            }
            self.changed.notify_all();
            at = end;
        }
        Ok(())
    }

    /// Passes the row before rows that are not taken yet to a function: the band and the row in it.
    pub(super) fn above(&self, row: u32, each: impl FnOnce(&Image, Range<u32>)) -> Result<(), Problem> {
        let (first, image) = self.band(row)?;
        each(&image, row - first..row - first + 1);
        Ok(())
    }

    /// Waits for a row. Returns its band, and the first row of that.
    fn band(&self, row: u32) -> Result<(u32, Image), Problem> {
        let state = self.changed.wait_while(self.lock(), |state| state.added <= row && !state.is_stopped);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        let band = state.bands.iter().rev().find(|band| band.first <= row).filter(|_| state.added > row);
        let band = band.ok_or_else(|| Problem::Write(io::Error::new(io::ErrorKind::Interrupted, "its rows are not computed")));
        band.map(|band| (band.first, band.image.clone()))
    }
}
