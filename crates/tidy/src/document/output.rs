//! Comparison of an output with the lines that a document shows of it.
//!
//! - `…` in a line stands for any text of that line. Runs of blanks in such a line count as one, since columns
//!   move with the width of a number.
//! - A line of `…` alone stands for any number of lines.
//!
//! [`blessed`] rewrites the lines to an output. It keeps lines that agree, so the marks of volatile text
//! survive, and sets the marks again in a line of which other words changed.

/// Mark for volatile text.
const ANY: char = '…';

/// Tests if an output agrees with the shown lines.
pub fn agrees(shown: &[String], printed: &[&str]) -> bool {
    // `open[j]`: the shown lines so far agree with the first `j` printed lines.
    let mut open = vec![false; printed.len() + 1];
    open[0] = true;
    for line in shown {
        let mut next = vec![false; printed.len() + 1];
        if is_gap(line) {
            let mut reached = false;
            for (after, before) in next.iter_mut().zip(&open) {
                reached |= *before;
                *after = reached;
            }
        } else {
            for (j, text) in printed.iter().enumerate() {
                next[j + 1] = open[j] && line_agrees(line, text);
            }
        }
        open = next;
    }
    open[printed.len()]
}

fn is_gap(line: &str) -> bool {
    line.trim().chars().eq([ANY])
}

/// Tests if a printed line agrees with a shown line.
fn line_agrees(shown: &str, printed: &str) -> bool {
    if !shown.contains(ANY) {
        return shown.trim_end() == printed.trim_end();
    }
    let single = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (shown, printed) = (single(shown), single(printed));
    let mut pieces = shown.split(ANY);
    let Some(mut rest) = printed.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

/// Steps of the cheapest way from the shown lines to the printed ones.
#[derive(Clone, Copy)]
enum Edit {
    /// The shown line agrees.
    Keep,
    /// The line of `…` takes one more printed line.
    Skip,
    /// The line of `…` ends.
    Close,
    /// The printed line takes the place of the shown one.
    Replace,
    /// The shown line is gone.
    Remove,
    /// The printed line is new.
    Add,
}

/// Returns the lines that a document shows of an output, with the marks of the lines that it showed before.
pub fn blessed(shown: &[String], printed: &[&str]) -> Vec<String> {
    let (rows, columns) = (shown.len() + 1, printed.len() + 1);
    let mut best = vec![(u32::MAX, Edit::Keep); rows * columns];
    best[0].0 = 0;
    for i in 0..rows {
        for j in 0..columns {
            let Some(cost) = Some(best[i * columns + j].0).filter(|cost| *cost != u32::MAX) else { continue };
            let mut offer = |i: usize, j: usize, more: u32, edit: Edit| {
                let cell = &mut best[i * columns + j];
                if cost + more < cell.0 {
                    *cell = (cost + more, edit);
                }
            };
            if let (Some(line), Some(text)) = (shown.get(i), printed.get(j)) {
                if is_gap(line) {
                    offer(i, j + 1, 1, Edit::Skip);
                } else if line_agrees(line, text) {
                    offer(i + 1, j + 1, 0, Edit::Keep);
                } else {
                    let alike = line.split_whitespace().next() == text.split_whitespace().next();
                    offer(i + 1, j + 1, if alike { 4 } else { 10 }, Edit::Replace);
                }
            }
            if let Some(line) = shown.get(i) {
                let edit = if is_gap(line) { (0, Edit::Close) } else { (5, Edit::Remove) };
                offer(i + 1, j, edit.0, edit.1);
            }
            if j < printed.len() {
                offer(i, j + 1, 5, Edit::Add);
            }
        }
    }
    let (mut i, mut j) = (shown.len(), printed.len());
    let mut lines = vec![];
    while i > 0 || j > 0 {
        match best[i * columns + j].1 {
            Edit::Keep => {
                (i, j) = (i - 1, j - 1);
                lines.push(shown[i].clone());
            }
            Edit::Skip => j -= 1,
            Edit::Close => {
                i -= 1;
                lines.push(shown[i].clone());
            }
            Edit::Replace => {
                (i, j) = (i - 1, j - 1);
                lines.push(marked(&shown[i], printed[j]));
            }
            Edit::Remove => i -= 1,
            Edit::Add => {
                j -= 1;
                lines.push(printed[j].trim_end().to_owned());
            }
        }
    }
    lines.reverse();
    lines
}

/// Returns a printed line with the marks of the line that it replaces: words of the two lines are aligned, and
/// a word that agrees with one with a mark becomes that.
fn marked(shown: &str, printed: &str) -> String {
    let printed = printed.trim_end();
    let words: Vec<&str> = shown.split_whitespace().collect();
    let texts: Vec<&str> = printed.split_whitespace().collect();
    // `gain[i][j]`: the best alignment of the words from `i` on with the texts from `j` on.
    let gain_of = |word: &str, text: &str| match (line_agrees(word, text), word.contains(ANY)) {
        (false, _) => 0,
        (true, true) => 1,
        (true, false) => 2,
    };
    let mut gain = vec![vec![0; texts.len() + 1]; words.len() + 1];
    for i in (0..words.len()).rev() {
        for j in (0..texts.len()).rev() {
            let aligned = match gain_of(words[i], texts[j]) {
                0 => 0,
                more => more + gain[i + 1][j + 1],
            };
            gain[i][j] = aligned.max(gain[i + 1][j]).max(gain[i][j + 1]);
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut line = String::new();
    let mut rest = printed;
    while j < texts.len() {
        let at = rest.find(texts[j]).unwrap_or_default();
        let aligned = i < words.len() && gain_of(words[i], texts[j]) > 0;
        if aligned && gain[i][j] == gain_of(words[i], texts[j]) + gain[i + 1][j + 1] {
            line.push_str(&rest[..at]);
            line.push_str(words[i]);
            i += 1;
        } else if i < words.len() && gain[i][j] == gain[i + 1][j] {
            i += 1;
            continue;
        } else {
            line.push_str(&rest[..at + texts[j].len()]);
        }
        rest = &rest[at + texts[j].len()..];
        j += 1;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn agree(shown: &str, printed: &str) -> bool {
        agrees(&lines(shown), &printed.lines().collect::<Vec<_>>())
    }

    #[test]
    fn marks_stand_for_any_text() {
        assert!(agree("launch in … ms", "launch in 0.05 ms") && agree("read   … ms", "read      12.5 ms"));
        assert!(agree("a\n…\nz", "a\nb\nc\nz") && agree("a\n…", "a") && agree("…: map … over", "0: map x over"));
        assert!(!agree("launch in … ms", "launch in 0.05 µs") && !agree("a\n…\nz", "a\nb") && !agree("a b", "a  b"));
        assert!(!agree("a", "a\nb") && !agree("a\nb", "a") && !agree("", "a") && agree("", ""));
        assert!(!agree("…ab…ab", "xab"), "the end of a line is not also its middle");
    }

    #[test]
    fn blessing_keeps_marks() {
        let bless = |shown: &str, printed: &str| blessed(&lines(shown), &printed.lines().collect::<Vec<_>>()).join("\n");
        assert_eq!(bless("x … ms\nb", "x 5 ms\nc"), "x … ms\nc");
        assert_eq!(bless("in … ms: map of 3", "in 7 ms: fold of 4"), "in … ms: fold of 4");
        assert_eq!(bless("a\n…\nz 1", "a\nb\nc\nz 2"), "a\n…\nz 2");
        assert_eq!(bless("", "a\nb"), "a\nb");
        assert_eq!(bless("a\nb", ""), "");
        assert_eq!(
            bless("code  … bytes, cached in … ms", "code  12 bytes, compiled in 3.5 ms"),
            "code  … bytes, compiled in … ms"
        );
    }
}
