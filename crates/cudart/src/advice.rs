//! Advice on managed memory: read-mostly, preferred location, accessing processors and last prefetch
//! location.
//!
//! Managed memory lies where both host and device reach it, so advice changes no behaviour. **An attribute of
//! a range is reported only when it holds for the whole range**, as the headers require of
//! `cudaMemRangeGetAttribute`.

use crate::location::{HOST, MemLocation};
use crate::memory::Kind;
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Device number for "no location".
const NOWHERE: i32 = -2;

/// Advice recorded for one piece of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Said {
    mostly_read: bool,
    preferred: Option<MemLocation>,
    /// Access flags of the device and of the host.
    used_by: [bool; 2],
    fetched: Option<MemLocation>,
}

/// One piece of advice, set or withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    MostlyRead(bool),
    Preferred(Option<MemLocation>),
    UsedBy(MemLocation, bool),
    Fetched(MemLocation),
}

impl Advice {
    /// Decodes a number of `cudaMemoryAdvise`.
    pub(crate) fn new(number: u32, location: MemLocation) -> Outcome<Advice> {
        Ok(match number {
            1 | 2 => Advice::MostlyRead(number == 1),
            3 => Advice::Preferred(Some(location.checked()?)),
            4 => Advice::Preferred(None),
            5 | 6 => Advice::UsedBy(location.checked()?, number == 5),
            _ => return Err(Status::INVALID_VALUE),
        })
    }
}

/// Converts a location to a device number.
fn device_of(location: Option<MemLocation>) -> i32 {
    match location {
        Some(MemLocation { kind: 1, id }) => id,
        Some(_) => HOST,
        None => NOWHERE,
    }
}

/// Recorded advice: disjoint pieces, keyed by start address, with their ends.
#[derive(Debug, Default)]
pub(crate) struct AllAdvice(Mutex<BTreeMap<u64, (u64, Said)>>);

impl AllAdvice {
    fn pieces(&self) -> MutexGuard<'_, BTreeMap<u64, (u64, Said)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Splits the piece that contains an address.
    fn cut(pieces: &mut BTreeMap<u64, (u64, Said)>, at: u64) {
        if let Some((start, (end, said))) = pieces.range_mut(..at).next_back().map(|(start, piece)| (*start, piece))
            && *end > at
        {
            let rest = (*end, *said);
            *end = at;
            debug_assert!(start < at);
            pieces.insert(at, rest);
        }
    }

    /// Records advice on a range.
    pub(crate) fn note(&self, start: u64, bytes: u64, advice: Advice) {
        let end = start.saturating_add(bytes);
        let mut pieces = self.pieces();
        Self::cut(&mut pieces, start);
        Self::cut(&mut pieces, end);
        // Gaps: parts of the range without advice so far.
        let (mut gaps, mut at) = (vec![], start);
        for (piece, (piece_end, _)) in pieces.range(start..end) {
            if at < *piece {
                gaps.push((at, *piece));
            }
            at = *piece_end;
        }
        if at < end {
            gaps.push((at, end));
        }
        pieces.extend(gaps.into_iter().map(|(from, to)| (from, (to, Said::default()))));
        for (_, (_, said)) in pieces.range_mut(start..end) {
            match advice {
                Advice::MostlyRead(holds) => said.mostly_read = holds,
                Advice::Preferred(location) => said.preferred = location,
                Advice::UsedBy(location, holds) => said.used_by[usize::from(location.kind != 1)] = holds,
                Advice::Fetched(location) => said.fetched = Some(location),
            }
        }
    }

    /// Removes the advice on freed memory.
    pub(crate) fn forget(&self, start: u64, bytes: u64) {
        let end = start.saturating_add(bytes);
        let mut pieces = self.pieces();
        Self::cut(&mut pieces, start);
        Self::cut(&mut pieces, end);
        pieces.retain(|piece, _| !(start..end).contains(piece));
    }

    /// Returns the advice that holds for a whole range.
    fn of(&self, start: u64, bytes: u64) -> Said {
        let end = start.saturating_add(bytes);
        let pieces = self.pieces();
        let first = pieces.range(..=start).next_back().filter(|(_, (piece_end, _))| *piece_end > start).map(|(piece, _)| *piece);
        let (mut at, mut all): (u64, Option<Said>) = (start, None);
        for (piece, (piece_end, said)) in pieces.range(first.unwrap_or(start)..end) {
            if *piece > at {
                return Said::default();
            }
            all = Some(all.map_or(*said, |all| Said {
                mostly_read: all.mostly_read && said.mostly_read,
                preferred: all.preferred.filter(|location| Some(*location) == said.preferred),
                used_by: [0, 1].map(|who| all.used_by[who] && said.used_by[who]),
                fetched: all.fetched.filter(|location| Some(*location) == said.fetched),
            }));
            at = *piece_end;
        }
        if at < end { Said::default() } else { all.unwrap_or_default() }
    }
}

impl Runtime {
    /// Checks that a range is managed memory.
    pub(crate) fn managed_range(&self, address: u64, bytes: u64) -> Outcome {
        self.device()?;
        if address == 0 || bytes == 0 || address.checked_add(bytes).is_none() {
            return Err(Status::INVALID_VALUE);
        }
        let fits = match self.memory.find(address) {
            Some(found) if matches!(found.kind, Kind::Managed | Kind::ManagedVariable) => {
                self.memory.range(address, bytes).is_some()
            }
            Some(_) | None => false,
        };
        if fits { Ok(()) } else { Err(Status::INVALID_VALUE) }
    }

    /// Records advice on a range after checking the range.
    pub(crate) fn advise(&self, address: u64, bytes: u64, advice: Advice) -> Outcome {
        self.managed_range(address, bytes)?;
        self.advice.note(address, bytes, advice);
        Ok(())
    }

    /// Returns one attribute of a range (`cudaMemRangeAttribute`) as `count` values of type `int`.
    pub(crate) fn range_attribute(&self, attribute: u32, address: u64, bytes: u64, count: usize) -> Outcome<Vec<i32>> {
        self.managed_range(address, bytes)?;
        let said = self.advice.of(address, bytes);
        let kind = |location: Option<MemLocation>| location.map_or(0, |location| location.kind as i32);
        let id = |location: Option<MemLocation>| location.map_or(NOWHERE, |location| location.id);
        let value = match attribute {
            1 => i32::from(said.mostly_read),
            2 => device_of(said.preferred),
            3 => {
                let users = [(said.used_by[0], 0), (said.used_by[1], HOST)];
                let users = users.into_iter().filter_map(|(uses, who)| uses.then_some(who));
                return Ok(users.chain(std::iter::repeat(NOWHERE)).take(count).collect());
            }
            4 => device_of(said.fetched),
            5 => kind(said.preferred),
            6 => id(said.preferred),
            7 => kind(said.fetched),
            8 => id(said.fetched),
            _ => return Err(Status::INVALID_VALUE),
        };
        if count == 1 { Ok(vec![value]) } else { Err(Status::INVALID_VALUE) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_for_all_of_a_range_is_told() {
        let all = AllAdvice::default();
        let (device, host) = (MemLocation::of_device(0), MemLocation::of_device(-1));
        all.note(100, 100, Advice::MostlyRead(true));
        all.note(150, 100, Advice::Preferred(Some(device)));
        assert!(all.of(100, 100).mostly_read && !all.of(100, 101).mostly_read && !all.of(99, 2).mostly_read);
        assert_eq!((all.of(150, 100).preferred, all.of(149, 2).preferred), (Some(device), None));
        all.note(160, 10, Advice::Preferred(Some(host)));
        assert_eq!((all.of(150, 100).preferred, all.of(162, 4).preferred), (None, Some(host)));
        all.note(0, 1000, Advice::UsedBy(host, true));
        assert_eq!((all.of(0, 1000).used_by, all.of(0, 1001).used_by), ([false, true], [false, false]));
        all.forget(0, 1000);
        assert_eq!(all.of(100, 1), Said::default());
        assert!(all.pieces().is_empty());
    }

    #[test]
    fn numbers_are_the_headers() {
        assert_eq!(Advice::new(1, MemLocation::of_device(7)), Ok(Advice::MostlyRead(true)));
        assert_eq!(Advice::new(3, MemLocation::of_device(7)), Err(Status::INVALID_DEVICE));
        assert_eq!(Advice::new(6, MemLocation::of_device(-1)), Ok(Advice::UsedBy(MemLocation { kind: 2, id: 0 }, false)));
        assert_eq!(Advice::new(9, MemLocation::of_device(0)), Err(Status::INVALID_VALUE));
        assert_eq!((device_of(Some(MemLocation::of_device(-1))), device_of(None)), (HOST, NOWHERE));
    }
}
