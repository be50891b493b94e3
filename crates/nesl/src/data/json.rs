//! JSON lines: a value on each line. An object gives the fields with the names that are asked for; without names, a
//! tuple is an array.

use super::cells::{Cells, Read, fail, rounded};
use crate::infer::Widths;

/// Maximum depth of values that are skipped.
const MAX_DEPTH: usize = 200;

/// Reads lines into cells; returns their number.
pub(super) fn read(text: &[u8], cells: &mut Cells, names: &[Vec<u8>], widths: Widths) -> Read<usize> {
    let mut reader = JsonReader { text, at: 0, widths };
    let mut count = 0;
    loop {
        reader.blanks(true);
        if reader.at >= text.len() {
            return Ok(count);
        }
        if names.is_empty() {
            reader.value(cells)?;
        } else {
            reader.object(cells, names)?;
        }
        reader.blanks(false);
        if reader.at < text.len() && text[reader.at] != b'\n' {
            return fail(reader.at, "a line holds one value");
        }
        count += 1;
    }
}

struct JsonReader<'a> {
    text: &'a [u8],
    at: usize,
    widths: Widths,
}

impl JsonReader<'_> {
    fn byte(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn blanks(&mut self, newlines: bool) {
        while self.byte().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\r') || newlines && byte == b'\n') {
            self.at += 1;
        }
    }

    /// Takes a byte behind blanks if it is there.
    fn takes(&mut self, byte: u8) -> bool {
        self.blanks(false);
        let is_here = self.byte() == Some(byte);
        self.at += usize::from(is_here);
        is_here
    }

    fn expect(&mut self, byte: u8) -> Read<()> {
        if self.takes(byte) { Ok(()) } else { fail(self.at, format!("expected `{}`", char::from(byte))) }
    }

    /// Reads an object; its fields may come in any order.
    fn object(&mut self, cells: &mut Cells, names: &[Vec<u8>]) -> Read<()> {
        let mut fields = vec![];
        cells.fields(&mut fields);
        let start = self.at;
        if fields.len() != names.len() {
            return fail(start, format!("{} names are given for {} fields", names.len(), fields.len()));
        }
        let mut found = vec![false; names.len()];
        self.expect(b'{')?;
        let mut more = !self.takes(b'}');
        while more {
            self.blanks(false);
            let at = self.at;
            let mut name = vec![];
            self.string(&mut name)?;
            self.expect(b':')?;
            match names.iter().position(|own| *own == name) {
                Some(index) if std::mem::replace(&mut found[index], true) => {
                    return fail(at, format!("the field `{}` occurs twice", String::from_utf8_lossy(&name)));
                }
                Some(index) => self.value(fields[index])?,
                None => self.skip(0)?,
            }
            more = self.takes(b',');
            if !more {
                self.expect(b'}')?;
            }
        }
        match found.iter().position(|found| !found) {
            Some(missing) => fail(start, format!("the field `{}` is missing", String::from_utf8_lossy(&names[missing]))),
            None => Ok(()),
        }
    }

    /// Reads a value of the type of cells.
    fn value(&mut self, cells: &mut Cells) -> Read<()> {
        self.blanks(false);
        let at = self.at;
        match cells {
            Cells::Pair(_) => {
                let mut fields = vec![];
                cells.fields(&mut fields);
                self.expect(b'[')?;
                for (number, field) in fields.into_iter().enumerate() {
                    if number > 0 {
                        self.expect(b',')?;
                    }
                    self.value(field)?;
                }
                self.expect(b']')
            }
            Cells::Seq(lengths, element) => {
                if let Cells::Char(characters) = &mut **element {
                    let before = characters.len();
                    self.string(characters)?;
                    lengths.push(characters.len() - before);
                    return Ok(());
                }
                self.expect(b'[')?;
                let mut count = 0;
                let mut more = !self.takes(b']');
                while more {
                    self.value(element)?;
                    count += 1;
                    more = self.takes(b',');
                    if !more {
                        self.expect(b']')?;
                    }
                }
                lengths.push(count);
                Ok(())
            }
            Cells::Char(characters) => {
                let before = characters.len();
                self.string(characters)?;
                if characters.len() == before + 1 { Ok(()) } else { fail(at, "a string of one character is expected") }
            }
            Cells::Float(values) if self.text[at..].starts_with(b"NaN") => {
                self.at += 3;
                values.push(rounded(f64::NAN, self.widths));
                Ok(())
            }
            Cells::Int(_) | Cells::Float(_) | Cells::Bool(_) => {
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
                let length = self.text[at..].iter().position(|byte| !is_part(byte)).unwrap_or(self.text.len() - at);
                self.at += length;
                cells.push_word(&self.text[at..at + length], self.widths, at)
            }
        }
    }

    /// Reads a string and adds its bytes.
    fn string(&mut self, out: &mut Vec<u8>) -> Read<()> {
        self.expect(b'"')?;
        let start = self.at - 1;
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    let code = self.escape()?;
                    out.extend_from_slice(code.encode_utf8(&mut [0; 4]).as_bytes());
                }
                None | Some(b'\n') => return fail(start, "the string has no end"),
                Some(byte) => {
                    out.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self) -> Read<char> {
        let at = self.at;
        self.at += 1;
        Ok(match self.text.get(at) {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(&byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'u') => {
                let first = self.unit()?;
                let mut units = vec![first];
                if (0xD800..0xDC00).contains(&first) && self.text[self.at..].starts_with(b"\\u") {
                    self.at += 2;
                    units.push(self.unit()?);
                }
                char::decode_utf16(units).next().and_then(Result::ok).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            _ => return fail(at, "an unknown escape in a string"),
        })
    }

    /// Reads the four digits of an escape.
    fn unit(&mut self) -> Read<u16> {
        let digits = self.text.get(self.at..self.at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u16::from_str_radix(digits, 16).ok()) {
            Some(unit) => {
                self.at += 4;
                Ok(unit)
            }
            None => fail(self.at, "four digits belong behind `\\u`"),
        }
    }

    /// Skips a value of any type.
    fn skip(&mut self, depth: usize) -> Read<()> {
        self.blanks(false);
        if depth > MAX_DEPTH {
            return fail(self.at, "the value is nested too deeply");
        }
        let end = match self.byte() {
            Some(b'"') => return self.string(&mut vec![]),
            Some(b'[') => b']',
            Some(b'{') => b'}',
            Some(byte) if byte.is_ascii_alphanumeric() || byte == b'-' => {
                while self.byte().is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')) {
                    self.at += 1;
                }
                return Ok(());
            }
            _ => return fail(self.at, "expected a value"),
        };
        self.at += 1;
        let mut more = !self.takes(end);
        while more {
            if end == b'}' {
                self.blanks(false);
                self.string(&mut vec![])?;
                self.expect(b':')?;
            }
            self.skip(depth + 1)?;
            more = self.takes(b',');
            if !more {
                self.expect(end)?;
            }
        }
        Ok(())
    }
}
