//! Several modules of PTX linked into one, as programs compiled with `-rdc=true` have them.
//!
//! What one module declares `.extern` another defines. The texts stand one behind the other under one head; a declaration is left out where
//! the thing itself is there, and of what several define weakly one stays.

use std::collections::{BTreeMap, BTreeSet};

/// What the names of functions have in them by which a kernel launches another one.
pub(crate) const LAUNCHING: [&str; 2] = ["cudaCDP", "cudaLaunchDevice"];

/// Whether a module is the library that defines those functions, and many kernels of its own.
pub(crate) fn is_device_runtime(text: &str) -> bool {
    let mut heads = text.match_indices(".func").map(|(at, _)| &text[at..]);
    heads.any(|head| {
        // What is declared ends with a semicolon before any brace.
        let end = head.find(['{', ';']).unwrap_or(head.len());
        head[end..].starts_with('{') && LAUNCHING.iter().any(|name| head[..end].contains(name))
    })
}

/// One module from several.
pub(crate) fn link(texts: &[String]) -> String {
    let mut head: BTreeMap<&str, String> = BTreeMap::new();
    let mut bodies: Vec<Vec<Piece<'_>>> = vec![];
    for text in texts {
        let mut pieces = vec![];
        for piece in pieces_of(text) {
            match [".version", ".target", ".address_size"].into_iter().find(|word| piece.text.trim_start().starts_with(word)) {
                Some(word) => {
                    let value = piece.text.trim().to_owned();
                    let kept = head.entry(word).or_insert_with(|| value.clone());
                    if number(&value) > number(kept) {
                        *kept = value;
                    }
                }
                None => pieces.push(piece),
            }
        }
        bodies.push(pieces);
    }
    let defined: BTreeSet<&str> =
        bodies.iter().flatten().filter(|piece| !piece.declares).filter_map(|piece| piece.name).collect();
    let mut seen = BTreeSet::new();
    let mut linked =
        [".version", ".target", ".address_size"].iter().filter_map(|word| head.get(word)).cloned().collect::<Vec<_>>().join("\n");
    linked.push('\n');
    for piece in bodies.iter().flatten() {
        let again = piece.name.is_some_and(|name| !piece.declares && !seen.insert(name) && piece.weak);
        let settled = piece.declares && piece.name.is_some_and(|name| defined.contains(name) || !seen.insert(name));
        if !again && !settled {
            linked.push_str(piece.text);
            linked.push('\n');
        }
    }
    linked
}

/// The first number of a directive of the head, in hundredths.
fn number(text: &str) -> u32 {
    let digits: String =
        text.chars().skip_while(|c| !c.is_ascii_digit()).take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    (digits.parse::<f64>().unwrap_or(0.0) * 100.0) as u32
}

/// A directive of a module.
struct Piece<'a> {
    text: &'a str,
    name: Option<&'a str>,
    /// It says that something is elsewhere.
    declares: bool,
    weak: bool,
}

/// The directives of a text: each ends with a line, a semicolon or a body, outside of comments and strings.
fn pieces_of(text: &str) -> Vec<Piece<'_>> {
    let bytes = text.as_bytes();
    let (mut pieces, mut start, mut at, mut depth) = (vec![], 0, 0, 0usize);
    while at < bytes.len() {
        match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => at = text[at..].find('\n').map_or(bytes.len(), |end| at + end),
            b'/' if bytes.get(at + 1) == Some(&b'*') => at = text[at..].find("*/").map_or(bytes.len(), |end| at + end + 2),
            b'"' => at = text[at + 1..].find('"').map_or(bytes.len(), |end| at + end + 2),
            byte => {
                at += 1;
                match byte {
                    b'{' | b'(' => depth += 1,
                    b'}' | b')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                let current = text[start..at].trim_start();
                let in_line =
                    [".version", ".target", ".address_size", ".file", ".loc"].iter().any(|word| current.starts_with(word));
                // The body of a function, and the bytes of a section, end with a brace; the values of a variable do not.
                let body = byte == b'}' && !text[start..at - 1].split('{').next().unwrap_or_default().contains('=');
                if depth == 0 && (byte == b';' || body || byte == b'\n' && in_line) {
                    pieces.push(piece(&text[start..at]));
                    start = at;
                }
            }
        }
    }
    if !text[start..].trim().is_empty() {
        pieces.push(piece(&text[start..]));
    }
    pieces
}

fn piece(text: &str) -> Piece<'_> {
    let code = without_comments(text);
    let words: Vec<&str> = code.split_whitespace().collect();
    let has = |word: &str| words.contains(&word);
    let function = words.iter().any(|word| *word == ".func" || *word == ".entry");
    let declares = has(".extern") || function && !code.contains('{');
    // The name of a function stands before its parameters and behind its result; that of a variable before its extent or its value.
    let name = if function {
        let after = code.split(".func").nth(1).or_else(|| code.split(".entry").nth(1)).unwrap_or_default().trim_start();
        let after = if after.starts_with('(') { after.split_once(')').map_or("", |(_, rest)| rest) } else { after };
        after.split(|c: char| c == '(' || c.is_whitespace() || c == ';' || c == '{').find(|word| !word.is_empty())
    } else if has(".global") || has(".const") || has(".shared") {
        let before = code.split(['=', '[', ';']).next().unwrap_or_default();
        before.split_whitespace().last().filter(|word| !word.starts_with('.'))
    } else {
        None
    };
    let name = name.and_then(|name| text.find(name).map(|at| &text[at..at + name.len()]));
    Piece { text, name, declares, weak: has(".weak") || has(".common") }
}

fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_meet_their_definitions() {
        let first = "//\n.version 7.0\n.target sm_75\n.address_size 64\n.extern .func (.param .b32 r) twice\n(\n.param .b32 x\n)\n;\n\
                     .extern .global .align 4 .u32 count;\n.weak .global .u32 shared_one = 1;\n.visible .entry k()\n{\n{ ret; }\n}\n";
        let second = ".version 8.1\n.target sm_80\n.address_size 64\n.visible .global .align 4 .u32 count = 3;\n\
                      .weak .global .u32 shared_one = 1;\n.visible .global .u32 list[2] = {1, 2};\n\
                      .visible .func (.param .b32 r) twice\n(\n.param .b32 x\n)\n{\nret;\n}\n";
        let linked = link(&[first.into(), second.into()]);
        assert!(linked.starts_with(".version 8.1\n.target sm_80\n.address_size 64\n"), "{linked}");
        assert_eq!(linked.matches("twice").count(), 1, "{linked}");
        assert!(!linked.contains(".extern"), "{linked}");
        assert_eq!(linked.matches("shared_one").count(), 1, "{linked}");
        assert_eq!(linked.matches(".entry k").count(), 1);
        assert!(linked.contains("list[2] = {1, 2};"), "{linked}");
    }

    #[test]
    fn the_library_for_launches_is_what_defines_them() {
        let declares = ".version 9.0\n.target sm_75\n.address_size 64\n\
                        .extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2\n(\n.param .b64 x, .param .b64 y\n)\n;\n";
        let calls = ".visible .entry k()\n{\ncall.uni (r), __cudaCDP2LaunchDeviceV2, (x, y);\nret;\n}\n";
        assert!(!is_device_runtime(&format!("{declares}{calls}")));
        assert!(!is_device_runtime(".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"));
        let defines = ".visible .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(\n.param .b64 x, .param .b64 y\n)\n{\nret;\n}\n";
        assert!(is_device_runtime(&format!(".version 9.0\n.target sm_121\n.address_size 64\n{defines}")));
    }
}
