//! Access patterns of lanes whose addresses are known relative to each other.

/// Bytes of a cache line.
pub(super) const LINE: u64 = 64;

/// Maximum elements of a vector access over lanes that lie apart. They span less than a page, so that the
/// elements between two readable addresses are readable too.
const MOST_SPANNED: i64 = 128;

/// Access pattern for known offsets of lanes.
pub(super) enum Pattern {
    /// One vector access.
    Row,
    /// One vector access for each group of this many lanes.
    Rows(u32),
    /// One scalar access for each group of this many lanes.
    Same(u32),
    /// One vector access over all lanes: the lowest element, and each lane's element counted from there.
    Span { start: i64, elements: u32, picks: Vec<u32> },
    /// One access per lane.
    Apart,
}

impl Pattern {
    /// Returns the pattern of lanes that access `bytes` bytes each.
    pub(super) fn of(offsets: &[i64], bytes: u64) -> Pattern {
        let bytes = bytes as i64;
        let in_groups = |group: usize, step: i64| {
            offsets.chunks(group).all(|lanes| lanes.iter().zip(0..).all(|(offset, lane)| *offset == lanes[0] + lane * step))
        };
        if in_groups(offsets.len(), bytes) {
            return Pattern::Row;
        }
        let (start, end) = (offsets.iter().copied().min().unwrap_or(0), offsets.iter().copied().max().unwrap_or(0));
        let elements = (end - start) / bytes + 1;
        let near = elements <= MOST_SPANNED && bytes <= 8 && offsets.iter().all(|offset| (offset - start) % bytes == 0);
        for group in [16, 8, 4] {
            if in_groups(group, bytes) && !(near && group < 16) {
                return Pattern::Rows(group as u32);
            }
            if in_groups(group, 0) && !near {
                return Pattern::Same(group as u32);
            }
        }
        if near {
            let picks = offsets.iter().map(|offset| ((offset - start) / bytes) as u32).collect();
            return Pattern::Span { start, elements: elements as u32, picks };
        }
        Pattern::Apart
    }
}

/// Returns whether lanes of `bytes` bytes lie side by side.
pub(crate) fn is_row(offsets: &[i64], bytes: u64) -> bool {
    matches!(Pattern::of(offsets, bytes), Pattern::Row)
}

/// Returns whether no two lanes have the same element.
pub(super) fn are_apart(picks: &[u32]) -> bool {
    let mut sorted = picks.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}
