//! Rust as text: enough structure for the laws, but no parser.
//!
//! [`code`] blanks comments and literals, so that words in them are not taken for code. All other bytes keep
//! their position. On top of it are searches for words and for `match` expressions.

/// Replaces comments, strings and characters by spaces. Newlines stay, so positions stay the same.
pub fn code(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = skipped(bytes, at);
        for byte in &mut out[at..end.max(at)] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end.max(at + 1);
    }
    String::from_utf8(out).unwrap_or_default()
}

/// Returns the end of the comment or literal that starts at `at`, or `at` if none does.
fn skipped(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let starts_word = at == 0 || !is_word(bytes[at - 1]);
    match rest {
        [b'/', b'/', ..] => at + rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => at + block_comment(rest),
        [b'"', ..] => at + string(rest),
        [b'b', b'"', ..] | [b'c', b'"', ..] if starts_word => at + 1 + string(&rest[1..]),
        [b'r', b'"' | b'#', ..] if starts_word => at + raw_string(rest, 1),
        [b'b' | b'c', b'r', b'"' | b'#', ..] if starts_word => at + raw_string(rest, 2),
        [b'\'', ..] => at + character(rest),
        _ => at,
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return at + 2,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    at
}

fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn raw_string(rest: &[u8], hashes_at: usize) -> usize {
    let hashes = rest[hashes_at..].iter().take_while(|&&byte| byte == b'#').count();
    let body = hashes_at + hashes;
    if rest.get(body) != Some(&b'"') {
        return 0; // `r#type`: a name.
    }
    let closing: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let tail = &rest[body + 1..];
    tail.windows(closing.len()).position(|window| window == closing).map_or(rest.len(), |found| body + 1 + found + closing.len())
}

/// Returns the length of a character literal. It ends within a few bytes, while a lifetime has no closing
/// quote.
fn character(rest: &[u8]) -> usize {
    match rest {
        [_, b'\\', ..] => rest.iter().skip(3).position(|&byte| byte == b'\'').map_or(0, |found| found + 4),
        _ => {
            let closing = rest.iter().take(6).skip(2).position(|&byte| byte == b'\'').map(|found| found + 2);
            let one_character = |end: &usize| std::str::from_utf8(&rest[1..*end]).is_ok_and(|text| text.chars().count() == 1);
            closing.filter(one_character).map_or(0, |end| end + 1)
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns the positions of a whole word in code.
pub fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = at == 0 || !is_word(bytes[at - 1]);
        let after = bytes.get(at + word.len()).is_none_or(|&byte| !is_word(byte));
        before && after
    })
}

/// Returns the positions of calls of a macro: the word, then `!`.
pub fn macro_calls<'a>(code: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    words(code, name).filter(move |&at| code[at + name.len()..].starts_with('!'))
}

/// Arm of a `match`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchArm {
    /// Position of its pattern.
    pub at: usize,
    /// Pattern, without its guard.
    pub pattern: String,
}

impl MatchArm {
    /// Tests if it matches everything: `_`, or a single name.
    pub fn takes_all(&self) -> bool {
        let mut bytes = self.pattern.bytes();
        bytes.next().is_some_and(|first| first == b'_' || first.is_ascii_lowercase())
            && bytes.all(is_word)
            && !matches!(self.pattern.as_str(), "true" | "false")
    }
}

/// Returns the arms of every `match` in code, one list for each.
pub fn matches(code: &str) -> Vec<Vec<MatchArm>> {
    words(code, "match").filter_map(|at| arms(code, at + "match".len())).collect()
}

fn arms(code: &str, after_keyword: usize) -> Option<Vec<MatchArm>> {
    let bytes = code.as_bytes();
    let open = after_keyword + walk(&bytes[after_keyword..], |rest, depth| depth == 0 && rest[0] == b'{')?;
    let close = open + 1 + walk(&bytes[open + 1..], |rest, depth| depth == 0 && rest[0] == b'}')?;
    let mut arms = vec![];
    let mut at = open + 1;
    while at < close {
        let blank = bytes[at..close].iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == b',').count();
        at += blank;
        let Some(arrow) = walk(&bytes[at..close], |rest, depth| depth == 0 && rest.starts_with(b"=>")) else { break };
        let pattern = &code[at..at + arrow];
        let pattern = words(pattern, "if").next().map_or(pattern, |guard| &pattern[..guard]);
        arms.push(MatchArm { at, pattern: pattern.trim().to_owned() });
        at += arrow + 2;
        at += bytes[at..close].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let is_block = bytes.get(at) == Some(&b'{');
        let end = if is_block {
            walk(&bytes[at + 1..close], |rest, depth| depth == 0 && rest[0] == b'}').map(|end| end + 2)
        } else {
            walk(&bytes[at..close], |rest, depth| depth == 0 && rest[0] == b',').map(|end| end + 1)
        };
        at += end.unwrap_or(close - at);
    }
    Some(arms)
}

/// Returns the first position at which `stop` holds, counting open brackets of all kinds.
fn walk(bytes: &[u8], stop: impl Fn(&[u8], i32) -> bool) -> Option<usize> {
    let mut depth = 0;
    for at in 0..bytes.len() {
        if stop(&bytes[at..], depth) {
            return Some(at);
        }
        match bytes[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blank() {
        let text = "a /* x /* y */ z */ b // c\n\"d \\\" e\" f r#\"g \" h\"# 'i' '\\'' &'j k b\"l\" r#type '\\u{1F600}' m";
        let blank = code(text);
        let left: String = blank.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(left, "a b f &'j k r#type m");
        assert_eq!(blank.len(), text.len());
        assert_eq!(blank.find('\n'), text.find('\n'));
    }

    #[test]
    fn arms_of_nested_matches() {
        let text = "match f({ 1 }) { A::B { x, .. } | A::C if x => { match y { 1 => 2, _ => 3 } } D(_) => g(_, 4), other => h }";
        let found = matches(text);
        let patterns: Vec<Vec<&str>> = found.iter().map(|arms| arms.iter().map(|arm| arm.pattern.as_str()).collect()).collect();
        assert_eq!(patterns[1], ["1", "_"]);
        assert_eq!(patterns[0], ["A::B { x, .. } | A::C", "D(_)", "other"]);
        assert!(found[0][2].takes_all() && !found[0][1].takes_all() && !found[0][0].takes_all());
    }
}
