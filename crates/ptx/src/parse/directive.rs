//! Header and debug directives (manual: "PTX Module Directives", "Debugging Directives").

use super::lexer::{TokenKind, shorten};
use super::{Parsed, Parser, codes};
use crate::inst::Imm;
use crate::module::{FileEntry, Inlined, Item, LocData, Section, Target};
use crate::types::IsaVersion;
use broadloom_diag::Diagnostic;

/// The newest version of PTX whose text is read. Newer ones are read too, with a warning left to the verifier.
const OPTIONS: &[&str] = &["texmode_unified", "texmode_independent", "debug", "map_f64_to_f32"];

impl Parser<'_> {
    pub(super) fn version(&mut self) -> Parsed<()> {
        let place = self.here();
        self.bump();
        if std::mem::replace(&mut self.seen.version, true) {
            return Err(self.report(Diagnostic::error(codes::BAD_HEADER, "a second `.version`").at(place, "a module has one")));
        }
        let number = self.token();
        let text = self.text_of(number);
        let parts = text.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        match (self.kind(), parts) {
            (TokenKind::Imm(Imm::F64(_)), Some((major, minor))) => {
                self.bump();
                self.module.version = IsaVersion::new(major, minor);
                Ok(())
            }
            _ => Err(self.unexpected("a version such as `8.0`")),
        }
    }

    pub(super) fn target(&mut self) -> Parsed<()> {
        self.bump();
        let (name, span) = self.expect_name("a target such as `sm_75`")?;
        let digits = name.strip_prefix("sm_").or_else(|| name.strip_prefix("compute_")).unwrap_or("");
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let suffix = &digits[end..];
        let (Ok(sm), true) = (digits[..end].parse::<u16>(), matches!(suffix, "" | "a" | "f")) else {
            let message = format!("`{}` is not a target", shorten(name));
            return Err(self
                .report(Diagnostic::error(codes::BAD_HEADER, message).at(span, "expected `sm_` and a number, such as `sm_75`")));
        };
        let mut target = Target { sm, suffix: suffix.chars().next(), options: vec![] };
        while self.eat(b',') {
            let (option, span) = self.expect_name("an option of the target")?;
            if !OPTIONS.contains(&option) {
                let message = format!("`{}` is not an option of `.target`", shorten(option));
                self.report(
                    Diagnostic::error(codes::BAD_HEADER, message)
                        .at(span, "not known")
                        .note(format!("the options are {}", OPTIONS.join(", "))),
                );
                continue;
            }
            target.options.push(option.to_owned());
        }
        self.seen.target = true;
        self.module.target = target;
        Ok(())
    }

    pub(super) fn address_size(&mut self) -> Parsed<()> {
        self.bump();
        let place = self.here();
        match self.expect_integer("32 or 64")? {
            size @ (32 | 64) => {
                self.module.address_size = size as u8;
                Ok(())
            }
            size => {
                let message = format!("addresses have 32 or 64 bits, not {size}");
                Err(self.report(Diagnostic::error(codes::BAD_HEADER, message).at(place, "neither 32 nor 64")))
            }
        }
    }

    pub(super) fn file(&mut self) -> Parsed<()> {
        self.bump();
        let number = self.expect_u32("the number of a file")?;
        let name = self.expect_text("the name of a file in quotes")?;
        let mut stamp = None;
        if self.eat(b',') {
            let time = self.expect_integer("a time")?;
            self.expect(b',')?;
            stamp = Some((time, self.expect_integer("a size")?));
        }
        self.eat(b';');
        self.module.items.push(Item::File(FileEntry { number, name, stamp }));
        Ok(())
    }

    /// `.loc file line column[, function_name label[+n], inlined_at file line column]`
    pub(super) fn loc_directive(&mut self) -> Parsed<LocData> {
        self.bump();
        let file = self.expect_u32("the number of a file")?;
        let line = self.expect_u32("a line")?;
        let column = self.expect_u32("a column")?;
        let mut inlined = None;
        if self.is_sign(b',') {
            self.bump();
            self.expect_word("function_name")?;
            let (label, _) = self.expect_name("a label")?;
            let offset = if self.eat(b'+') { self.expect_integer("an offset")? } else { 0 };
            self.expect(b',')?;
            self.expect_word("inlined_at")?;
            let (file, line) = (self.expect_u32("the number of a file")?, self.expect_u32("a line")?);
            inlined = Some(Inlined { function: (label.to_owned(), offset), file, line, column: self.expect_u32("a column")? });
        }
        self.eat(b';');
        Ok(LocData { file, line, column, inlined })
    }

    fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.kind() == TokenKind::Name && self.text_of(self.token()) == word {
            self.bump();
            return Ok(());
        }
        Err(self.unexpected(&format!("`{word}`")))
    }

    /// `.section .name { lines }`. Lines are kept as text: labels, `.b8 1, 2`, `.b32 label+4`, …
    pub(super) fn section(&mut self) -> Parsed<()> {
        self.bump();
        let Some(name) = self.dotted() else { return Err(self.unexpected("the name of a section, such as `.debug_info`")) };
        self.bump();
        self.expect(b'{')?;
        let mut lines = vec![];
        let mut line = String::new();
        loop {
            let token = self.token();
            match token.kind {
                TokenKind::End => return Err(self.unexpected("`}` at the end of the section")),
                TokenKind::Sign(b'}') => break,
                TokenKind::Dotted if Self::starts_section_line(self.word_of(token)) && !line.is_empty() => {
                    lines.push(std::mem::take(&mut line));
                }
                TokenKind::Name if self.kind_ahead(1) == TokenKind::Sign(b':') && !line.is_empty() => {
                    lines.push(std::mem::take(&mut line))
                }
                TokenKind::Dotted
                | TokenKind::Name
                | TokenKind::Imm(_)
                | TokenKind::Text
                | TokenKind::Sign(_)
                | TokenKind::Dwarf => {}
            }
            self.bump();
            let text = self.text_of(token);
            match token.kind {
                TokenKind::Sign(b':') => {
                    line.push(':');
                    lines.push(std::mem::take(&mut line));
                }
                TokenKind::Sign(sign) => line.push(char::from(sign)),
                _ => {
                    if !line.is_empty() && !line.ends_with(['+', '-']) {
                        line.push(' ');
                    }
                    line.push_str(text);
                }
            }
        }
        self.bump();
        lines.extend((!line.is_empty()).then_some(line));
        self.module.items.push(Item::Section(Section { name: format!(".{name}"), lines }));
        Ok(())
    }

    fn starts_section_line(word: &str) -> bool {
        matches!(word, "b8" | "b16" | "b32" | "b64")
    }
}
