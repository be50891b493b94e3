//! Suggestions for misspelt names.

/// Returns the name with the fewest edits to `word`; `None` if it needs more edits than a third of the word's
/// letters plus one.
///
/// ```
/// use broadloom_effect::catalogue::nearest;
/// assert_eq!(nearest("gausian", ["box", "gaussian"]), Some("gaussian"));
/// assert_eq!(nearest("zebra", ["box", "gaussian"]), None);
/// ```
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A word of that length is not a misspelt name.
    if word.len() > 64 {
        return None;
    }
    let limit = word.chars().count() / 3 + 1;
    let scored = names.into_iter().map(|name| (edits(word, name), name));
    scored.min_by_key(|(edits, _)| *edits).filter(|(edits, _)| *edits <= limit).map(|(_, name)| name)
}

/// Counts the insertions, deletions and replacements of letters that turn one word into the other.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}
