//! `// let: name = "text" * count`: texts too long or too unusual to stand in a file.
//!
//! `<<name>>` in the text of a case is replaced by the string, repeated. Strings know the escapes `\n`, `\r`,
//! `\t`, `\0`, `\\`, `\"`, `\xNN` (ASCII) and `\u{…}`; `{#}` in a string is the number of the repetition,
//! from 0. `<<eof>>` ends the text there, without a newline.

use crate::failure::Failure;
use std::borrow::Cow;

/// Maximum bytes of a text after replacements.
pub const MAX_TEXT: usize = 64 << 20;

/// Replacement of a `// let:` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// Text between `<<` and `>>`.
    pub name: String,
    /// Its replacement.
    pub text: String,
    /// Number of repetitions.
    pub count: usize,
}

impl Replacement {
    /// Parses the text after `let:`.
    pub fn parse(line: &str) -> Result<Replacement, Failure> {
        let wrong = || "a replacement is written `let: name = \"text\" * count`".to_owned();
        let (name, rest) = line.split_once('=').ok_or_else(wrong)?;
        let rest = rest.trim().strip_prefix('"').ok_or_else(wrong)?;
        let (text, rest) = rest.rsplit_once('"').ok_or_else(wrong)?;
        let count = match rest.trim() {
            "" => 1,
            rest => rest.strip_prefix('*').and_then(|count| count.trim().parse().ok()).ok_or_else(wrong)?,
        };
        let name = name.trim();
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(wrong().into());
        }
        Ok(Replacement { name: name.to_owned(), text: unescape(text)?, count })
    }

    fn value(&self) -> Cow<'_, str> {
        if !self.text.contains("{#}") {
            return Cow::Owned(self.text.repeat(self.count));
        }
        (0..self.count).map(|index| self.text.replace("{#}", &index.to_string())).collect()
    }
}

fn unescape(text: &str) -> Result<String, Failure> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let code = |digits: &str| u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
        let (letter, used) = match rest.chars().next() {
            Some('n') => ('\n', 1),
            Some('r') => ('\r', 1),
            Some('t') => ('\t', 1),
            Some('0') => ('\0', 1),
            Some(same @ ('\\' | '"')) => (same, 1),
            Some('x') => match rest.get(1..3).and_then(code) {
                Some(letter) if letter.is_ascii() => (letter, 3),
                _ => return Err("`\\x` takes two hexadecimal digits up to 7F".into()),
            },
            Some('u') => match rest[1..].strip_prefix('{').and_then(|digits| digits.split_once('}')) {
                Some((digits, _)) => (code(digits).ok_or("`\\u{…}` names no character")?, digits.len() + 3),
                None => return Err("`\\u` takes a number in braces".into()),
            },
            _ => return Err("an escape that is not known".into()),
        };
        out.push(letter);
        rest = &rest[used..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Applies replacements to a text.
pub fn expand(text: &str, replacements: &[Replacement]) -> Result<String, Failure> {
    let mut text = match text.find("<<eof>>") {
        Some(end) => text[..end].to_owned(),
        None => text.to_owned(),
    };
    for replacement in replacements {
        let mark = format!("<<{}>>", replacement.name);
        let uses = text.matches(&mark).count();
        let each = replacement.text.len().saturating_add(20).saturating_mul(replacement.count);
        if uses.saturating_mul(each) > MAX_TEXT {
            return Err(format!("`{}` makes a text of more than {MAX_TEXT} bytes", replacement.name).into());
        }
        if uses > 0 {
            text = text.replace(&mark, &replacement.value());
        }
    }
    Ok(text)
}
