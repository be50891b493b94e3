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

/// Pattern of a `match`, with its position.
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

/// Words that say nothing about an item.
const EMPTY_WORDS: &[&str] = &["a", "an", "and", "are", "for", "in", "is", "it", "of", "return", "the", "to", "with"];

/// Returns the lines, from 0, of doc comments whose words are all in the name below them, as in
/// `/// The kernel.` above `kernel: String`. Code between backquotes counts as another word.
pub fn repeated_names(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let comment = |line: usize| lines.get(line).and_then(|line| line.strip_prefix("///"));
    let repeats = |line: &usize| {
        let alone = comment(line + 1).is_none() && line.checked_sub(1).and_then(comment).is_none();
        let Some(text) = comment(*line).filter(|_| alone) else { return false };
        let item = lines[line + 1..].iter().find(|line| !line.starts_with("#["));
        let name: Vec<String> = item.and_then(|item| name_of(item)).map(|name| words_of(name).collect()).unwrap_or_default();
        let said: Vec<String> = words_of(text).filter(|word| !EMPTY_WORDS.contains(&word.as_str())).collect();
        !text.contains('`') && !said.is_empty() && said.iter().all(|word| name.contains(word))
    };
    (0..lines.len()).filter(repeats).collect()
}

/// Returns the name that a line declares: of an item, a field or a variant.
fn name_of(line: &str) -> Option<&str> {
    const KEYWORDS: &[&str] = &["const", "enum", "fn", "mod", "pub", "static", "struct", "trait", "type", "unsafe"];
    let rest = line.strip_prefix("pub(").and_then(|rest| rest.split_once(')')).map_or(line, |(_, rest)| rest);
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').find(|word| !word.is_empty() && !KEYWORDS.contains(word))
}

/// Returns the words of a text or of a name in any case, in lower case and singular.
fn words_of(text: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    for (at, c) in text.char_indices() {
        let after_lower = at > 0 && text.as_bytes()[at - 1].is_ascii_lowercase();
        if !c.is_alphanumeric() || (c.is_uppercase() && after_lower) {
            words.push(String::new());
        }
        words.last_mut().expect("one at least").extend(c.to_lowercase().filter(|c| c.is_alphanumeric()));
    }
    let singular = |word: String| match word.strip_suffix('s') {
        Some(one) if !one.ends_with('s') && one.len() > 1 => one.to_owned(),
        _ => word,
    };
    words.into_iter().filter(|word| !word.is_empty()).map(singular)
}

/// Returns the positions of functions with a parameter that is a pattern of a tuple:
/// `fn f((a, b): (u8, u8))`. Such a parameter hides names and the number of parameters.
pub fn tuple_parameters(code: &str) -> Vec<usize> {
    words(code, "fn").filter(|at| has_tuple_parameter(&code[at + "fn".len()..])).collect()
}

/// Returns whether the function whose name starts code has such a parameter.
fn has_tuple_parameter(code: &str) -> bool {
    let Some(mut open) = code.find(['(', '<']) else { return false };
    if code[open..].starts_with('<') {
        // Arrows in bounds such as `Fn(u8) -> u8` close no list.
        let (mut depth, bytes) = (0, code.as_bytes());
        let end = (open..bytes.len()).find(|&at| {
            match bytes[at] {
                b'<' => depth += 1,
                b'>' if bytes[at - 1] != b'-' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        let Some(end) = end else { return false };
        open = end + 1;
    }
    let Some(list) = code[open..].strip_prefix('(') else { return false };
    let end = walk(list.as_bytes(), |rest, depth| depth == 0 && rest[0] == b')').unwrap_or(list.len());
    let mut starts = list[..end].match_indices(',').map(|(at, _)| at + 1).chain([0]);
    starts.any(|at| {
        let Some(pattern) = list[at..end].trim_start().strip_prefix('(') else { return false };
        let close = walk(pattern.as_bytes(), |rest, depth| depth == 0 && rest[0] == b')');
        close.is_some_and(|close| pattern[close + 1..].trim_start().starts_with(':'))
    })
}

/// Returns the positions of comparisons by a factor: one side is a product with a number, or a quotient by
/// one, as in `x * 10 < y * 9`. A bare number that is compared is none.
pub fn scaled_comparisons(code: &str) -> Vec<usize> {
    let operators = [" < ", " > ", " <= ", " >= "];
    let mut found: Vec<usize> = operators.iter().flat_map(|operator| code.match_indices(operator)).map(|(at, _)| at).collect();
    found.retain(|&at| {
        let end = at + 2 + code[at + 2..].find(' ').unwrap_or(0);
        is_scaled(left_side(&code[..at])) || is_scaled(right_side(&code[end..]))
    });
    found.sort_unstable();
    found
}

/// Returns the expression at the end of code that an operator of comparison takes.
fn left_side(code: &str) -> &str {
    let (bytes, mut depth) = (code.as_bytes(), 0);
    for at in (0..bytes.len()).rev() {
        match bytes[at] {
            b')' | b']' | b'}' => depth += 1,
            b'(' | b'[' | b'{' if depth == 0 => return &code[at + 1..],
            b'(' | b'[' | b'{' => depth -= 1,
            _ if depth == 0 && ends_side(&bytes[at..]) => return &code[at + 1..],
            _ => {}
        }
    }
    code
}

/// Returns the expression at the start of code that an operator of comparison takes.
fn right_side(code: &str) -> &str {
    let end =
        walk(code.as_bytes(), |rest, depth| depth == 0 && (matches!(rest[0], b')' | b']' | b'}' | b'{') || ends_side(rest)));
    &code[..end.unwrap_or(code.len())]
}

/// Returns whether an expression that is compared ends here, or starts behind this byte.
fn ends_side(rest: &[u8]) -> bool {
    matches!(rest[0], b',' | b';' | b'=' | b'|') || rest.starts_with(b"&&") || rest.starts_with(b"& ")
}

/// Returns whether an expression is a product with a number other than 0 and 1, or a quotient by one.
fn is_scaled(side: &str) -> bool {
    let (bytes, mut depth, mut words) = (side.as_bytes(), 0, vec![]);
    let mut start = None;
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        match (byte.is_ascii_whitespace(), start) {
            (false, None) => start = Some((at, depth)),
            (true, Some((first, 0))) if depth == 0 => words.push(&side[first..at]),
            _ => {}
        }
        if byte.is_ascii_whitespace() {
            start = None;
        }
    }
    words.extend(start.map(|(first, _)| &side[first..]));
    let is_number = |word: &str| word.starts_with(|first: char| first.is_ascii_digit()) && !matches!(word, "0" | "1");
    words.windows(2).any(|pair| match pair {
        ["*" | "/", number] => is_number(number),
        [number, "*"] => is_number(number),
        _ => false,
    })
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
    fn comparisons_by_a_factor() {
        let scaled =
            ["x * 10 < y * 9", "if 2 * a > b {", "a && (f(b) - c) * 8 <= d)", "let x = a >= b / 2;", "(g(1, 2) / 4) < h * 3"];
        for code in scaled {
            assert_eq!(scaled_comparisons(code).len(), 1, "{code}");
        }
        let plain = ["x < 10", "a < b && c * 2 == d", "f(a * 2) < b", "a * b > c", "let x = a * 2; b < c", "a < b.max(c / 2)"];
        for code in plain {
            assert!(scaled_comparisons(code).is_empty(), "{code}");
        }
    }

    #[test]
    fn comments_that_repeat_a_name() {
        let text = "/// The kernel.\npub kernel: String,\n/// Sizes of a call.\n#[must_use]\npub(crate) fn call_sizes() {}\n\
                    /// The kernel\n/// that runs.\nkernel: u8,\n/// Name of the kernel.\nkernel: u8,\n///
                    /// `if`\nIf,\n/// A value.\nValue(u8),";
        assert_eq!(repeated_names(text), [0, 2, 13]);
    }

    #[test]
    fn parameters_that_are_tuples() {
        let hidden =
            ["fn f((a, b): (u8, u8)) {", "fn f<T: Fn(u8) -> u8>(x: T, (a, b): (u8, u8))", "fn f(\n    &self,\n    (a, b): P,\n)"];
        for code in hidden {
            assert_eq!(tuple_parameters(code), [0], "{code}");
        }
        let named =
            ["fn f(a: (u8, u8), b: fn((u8, u8)) -> u8)", "fn f<T>(x: Vec<(A, (B, C))>, y: T)", "fn() -> u8", "x: fn(A), (y): z"];
        for code in named {
            assert!(tuple_parameters(code).is_empty(), "{code}");
        }
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
