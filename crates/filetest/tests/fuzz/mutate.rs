//! Small changes to a text: bytes, tokens, lines.

use broadloom_random::Random;

/// Words that matter to the parser, and numbers at limits.
const WORDS: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    ":",
    "@",
    "!",
    "|",
    "<",
    ">",
    "=",
    "-",
    "+",
    "_",
    "%",
    "\"",
    "/*",
    "*/",
    "//",
    "\n",
    ".entry",
    ".func",
    ".visible",
    ".extern",
    ".weak",
    ".common",
    ".global",
    ".shared",
    ".local",
    ".const",
    ".param",
    ".reg",
    ".align",
    ".v2",
    ".v4",
    ".b8",
    ".b16",
    ".b32",
    ".b64",
    ".b128",
    ".f16",
    ".f32",
    ".f64",
    ".pred",
    ".s32",
    ".u64",
    ".loc",
    ".file",
    ".section",
    ".pragma",
    ".alias",
    ".version",
    ".target",
    ".address_size",
    ".maxntid",
    ".callprototype",
    ".calltargets",
    ".branchtargets",
    ".ptr",
    "generic",
    "WARP_SZ",
    "%tid.x",
    "%r1",
    "%rd1",
    "%f1",
    "%p1",
    "add.s32",
    "ld.global.f32",
    "st.shared.b32",
    "bra",
    "call",
    "ret",
    "mov.b64",
    "tex.2d.v4.f32.f32",
    "vadd.s32.u32.u32",
    "wmma.load",
    "0",
    "1",
    "-1",
    "64",
    "0x7fffffff",
    "0xffffffff",
    "2147483648",
    "9223372036854775807",
    "18446744073709551615",
    "99999999999999999999",
    "0f7FC00000",
    "0d7FF0000000000000",
    "1e400",
    "1.",
    ".5",
    "<65536>",
    "[0]",
    "[]",
    "{}",
    "()",
];

/// Splits a text roughly into tokens: words, numbers, single characters. White space belongs to the following
/// token.
fn tokens(text: &str) -> Vec<&str> {
    let mut found = vec![];
    let mut start = 0;
    let mut in_word = false;
    for (at, letter) in text.char_indices() {
        let word = letter.is_alphanumeric() || matches!(letter, '_' | '$' | '%' | '.');
        if at > start && !(word && in_word) && !text[start..at].trim_start().is_empty() {
            found.push(&text[start..at]);
            start = at;
        }
        in_word = word;
    }
    found.push(&text[start..]);
    found
}

/// Returns the nearest character boundary at or before `at`.
fn boundary(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Returns a text with one change; `other` provides pieces for splices.
pub(crate) fn mutate(text: &str, other: &str, random: &mut Random) -> String {
    match random.below(10) {
        0 => flip_bytes(text, random),
        1 => text[..boundary(text, random.below(text.len() + 1))].to_owned(),
        2 => splice(text, other, random),
        3 => shuffle_lines(text, random),
        4 => repeat_piece(text, random),
        5 => nest(text, random),
        _ => change_tokens(text, random),
    }
}

/// Returns a text with one change that often keeps it valid: a token replaced by one of its kind, or lines of
/// a body reordered.
pub(crate) fn nudge(text: &str, random: &mut Random) -> String {
    if random.below(3) == 0 {
        return shuffle_lines(text, random);
    }
    let mut list: Vec<&str> = tokens(text);
    let kind = |token: &str| match token.trim_start().bytes().next() {
        Some(b'0'..=b'9') => 1,
        Some(b'%') => 2,
        Some(b'.') => 3,
        Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$') => 4,
        other => 256 + i32::from(other.unwrap_or(0)),
    };
    for _ in 0..1 + random.below(3) {
        let at = random.below(list.len());
        let wanted = kind(list[at]);
        // The next token of its kind from anywhere.
        let from = random.below(list.len());
        let alike =
            (0..list.len()).map(|step| (from + step) % list.len()).find(|&other| other != at && kind(list[other]) == wanted);
        if let Some(other) = alike {
            list[at] = list[other];
        }
    }
    list.concat()
}

fn flip_bytes(text: &str, random: &mut Random) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..1 + random.below(8) {
        let at = random.below(bytes.len());
        if let Some(byte) = bytes.get_mut(at) {
            *byte = if random.below(2) == 0 { *byte ^ (1 << random.below(8)) } else { random.bits() as u8 };
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Joins the start of one text and a part of another.
fn splice(text: &str, other: &str, random: &mut Random) -> String {
    let cut = boundary(text, random.below(text.len() + 1));
    let from = boundary(other, random.below(other.len() + 1));
    let to = boundary(other, from + random.below(2000));
    let resume = boundary(text, cut + random.below(200));
    [&text[..cut], &other[from..to.max(from)], &text[resume..]].concat()
}

fn shuffle_lines(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    for _ in 0..1 + random.below(4) {
        let (a, b) = (random.below(lines.len()), random.below(lines.len()));
        match random.below(3) {
            0 if !lines.is_empty() => lines.swap(a, b),
            1 if !lines.is_empty() => drop(lines.remove(a)),
            _ if !lines.is_empty() => lines.insert(a, lines[b]),
            _ => {}
        }
    }
    lines.concat()
}

/// Repeats a piece of the text many times.
fn repeat_piece(text: &str, random: &mut Random) -> String {
    let start = boundary(text, random.below(text.len() + 1));
    let end = boundary(text, start + random.below(80)).max(start);
    let times = 1 + random.below(200);
    [&text[..start], &text[start..end].repeat(times), &text[end..]].concat()
}

/// Nests brackets or operators around a place many times.
fn nest(text: &str, random: &mut Random) -> String {
    let (open, close) = [("{", "}"), ("(", ")"), ("[", "]"), ("-", ""), ("{ ", " }\n"), ("1 ? (", ") : 2")][random.below(6)];
    let at = boundary(text, random.below(text.len() + 1));
    let depth = 1 + random.below(120);
    [&text[..at], &open.repeat(depth), "1", &close.repeat(depth), &text[at..]].concat()
}

fn change_tokens(text: &str, random: &mut Random) -> String {
    let mut list: Vec<&str> = tokens(text);
    for _ in 0..1 + random.below(4) {
        if list.is_empty() {
            break;
        }
        let (a, b) = (random.below(list.len()), random.below(list.len()));
        match random.below(5) {
            0 => drop(list.remove(a)),
            1 => list.insert(a, list[b]),
            2 => list.swap(a, b),
            3 => list[a] = list[b],
            _ => list[a] = WORDS[random.below(WORDS.len())],
        }
    }
    list.concat()
}
