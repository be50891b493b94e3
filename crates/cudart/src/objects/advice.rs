//! Advice on managed memory: read-mostly, preferred location, accessing processors and last prefetch
//! location.
//!
//! Managed memory lies where both host and device reach it, so advice changes no behaviour. **An attribute of
//! a range is reported only when it holds for the whole range**, as the headers require of
//! `cudaMemRangeGetAttribute`.

use crate::location::{HOST, MemLocation};
use crate::status::{Outcome, Status};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Device number for "no location".
pub(crate) const NOWHERE: i32 = -2;

/// Advice recorded for a range of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeAdvice {
    pub(crate) mostly_read: bool,
    pub(crate) preferred: Option<MemLocation>,
    /// Access flags of the device and of the host.
    pub(crate) used_by: [bool; 2],
    pub(crate) fetched: Option<MemLocation>,
}

impl RangeAdvice {
    /// Returns one attribute (`cudaMemRangeAttribute`) as `count` values of type `int`.
    pub(crate) fn attribute(&self, attribute: u32, count: usize) -> Outcome<Vec<i32>> {
        let kind = |location: Option<MemLocation>| location.map_or(0, |location| location.kind as i32);
        let id = |location: Option<MemLocation>| location.map_or(NOWHERE, |location| location.id);
        let value = match attribute {
            1 => i32::from(self.mostly_read),
            2 => device_of(self.preferred),
            3 => {
                let users = [(self.used_by[0], 0), (self.used_by[1], HOST)];
                let users = users.into_iter().filter_map(|(uses, who)| uses.then_some(who));
                return Ok(users.chain(std::iter::repeat(NOWHERE)).take(count).collect());
            }
            4 => device_of(self.fetched),
            5 => kind(self.preferred),
            6 => id(self.preferred),
            7 => kind(self.fetched),
            8 => id(self.fetched),
            _ => return Err(Status::INVALID_VALUE),
        };
        if count == 1 { Ok(vec![value]) } else { Err(Status::INVALID_VALUE) }
    }
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
pub(crate) fn device_of(location: Option<MemLocation>) -> i32 {
    match location {
        Some(MemLocation { kind: 1, id }) => id,
        Some(_) => HOST,
        None => NOWHERE,
    }
}

/// Recorded advice: disjoint pieces, keyed by start address, with their ends.
#[derive(Debug, Default)]
pub(crate) struct AdviceTable(Mutex<BTreeMap<u64, (u64, RangeAdvice)>>);

impl AdviceTable {
    fn pieces(&self) -> MutexGuard<'_, BTreeMap<u64, (u64, RangeAdvice)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Splits the piece that contains an address.
    fn cut(pieces: &mut BTreeMap<u64, (u64, RangeAdvice)>, at: u64) {
        if let Some((start, (end, recorded))) = pieces.range_mut(..at).next_back().map(|(start, piece)| (*start, piece))
            && *end > at
        {
            let rest = (*end, *recorded);
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
        pieces.extend(gaps.into_iter().map(|(from, to)| (from, (to, RangeAdvice::default()))));
        for (_, (_, recorded)) in pieces.range_mut(start..end) {
            match advice {
                Advice::MostlyRead(holds) => recorded.mostly_read = holds,
                Advice::Preferred(location) => recorded.preferred = location,
                Advice::UsedBy(location, holds) => recorded.used_by[usize::from(location.kind != 1)] = holds,
                Advice::Fetched(location) => recorded.fetched = Some(location),
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
    pub(crate) fn of(&self, start: u64, bytes: u64) -> RangeAdvice {
        let end = start.saturating_add(bytes);
        let pieces = self.pieces();
        let first = pieces.range(..=start).next_back().filter(|(_, (piece_end, _))| *piece_end > start).map(|(piece, _)| *piece);
        let (mut at, mut all): (u64, Option<RangeAdvice>) = (start, None);
        for (piece, (piece_end, recorded)) in pieces.range(first.unwrap_or(start)..end) {
            if *piece > at {
                return RangeAdvice::default();
            }
            all = Some(all.map_or(*recorded, |all| RangeAdvice {
                mostly_read: all.mostly_read && recorded.mostly_read,
                preferred: all.preferred.filter(|location| Some(*location) == recorded.preferred),
                used_by: [0, 1].map(|who| all.used_by[who] && recorded.used_by[who]),
                fetched: all.fetched.filter(|location| Some(*location) == recorded.fetched),
            }));
            at = *piece_end;
        }
        if at < end { RangeAdvice::default() } else { all.unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_for_all_of_a_range_is_told() {
        let all = AdviceTable::default();
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
        assert_eq!(all.of(100, 1), RangeAdvice::default());
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
