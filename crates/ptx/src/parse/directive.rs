//! Header and debug directives (manual: "PTX Module Directives", "Debugging Directives").

use super::lexer::{TokenKind, shorten};
use super::locs::LocText;
use super::{ParseResult, Parser, codes};
use crate::inst::Imm;
use crate::module::{FileEntry, Item, Section, Target};
use crate::types::IsaVersion;
use broadloom_diag::{Diagnostic, Span};

/// Options after the machine in `.target`.
const OPTIONS: &[&str] = &["texmode_unified", "texmode_independent", "debug", "map_f64_to_f32"];

/// Returns the higher of two machines, with the options of both.
fn highest(mut a: Target, mut b: Target) -> Target {
    if b.sm > a.sm {
        std::mem::swap(&mut a, &mut b);
    }
    b.options.retain(|option| !a.options.contains(option));
    a.options.append(&mut b.options);
    a
}

impl Parser<'_> {
    pub(super) fn version(&mut self) -> ParseResult<()> {
        let place = self.here();
        self.bump();
        if std::mem::replace(&mut self.seen.version, true) {
            return Err(self.report(Diagnostic::error(codes::BAD_HEADER, "a second `.version`").at(place, "a module has one")));
        }
        if (self.seen.target || self.seen.address_size || !self.module.items.is_empty()) && !self.seen.complained {
            let diagnostic = Diagnostic::error(codes::BAD_HEADER, "`.version` must come before anything else");
            return Err(self.report(diagnostic.at(place, "not the first directive")));
        }
        let number = self.token();
        let text = self.text_of(number);
        let parts = text.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        match (self.kind(), parts) {
            (TokenKind::Imm(Imm::F64(_)), Some((major, minor))) => {
                self.bump();
                self.module.version = IsaVersion::new(major, minor);
                let more = self.here();
                if self.dotted().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit())) {
                    let diagnostic = Diagnostic::error(codes::BAD_HEADER, "a version has two numbers, such as `8.0`");
                    return Err(self.report(diagnostic.at(more, "one too many")));
                }
                Ok(())
            }
            _ => Err(self.unexpected("a version such as `8.0`")),
        }
    }

    /// Parses `.target sm_90[, option…]`. Of several machines, in one or several directives, the highest is
    /// used.
    pub(super) fn target(&mut self) -> ParseResult<()> {
        let place = self.here();
        self.bump();
        let again = std::mem::replace(&mut self.seen.target, true);
        if !self.seen.version && !self.seen.complained {
            self.seen.complained = true;
            let diagnostic = Diagnostic::error(codes::BAD_HEADER, "`.version` must come before anything else");
            self.report(diagnostic.at(place, "expected `.version` before this").help(super::HEADER));
        }
        let (name, span) = self.expect_name("a target such as `sm_75`")?;
        let mut target = self.machine(name, span)?;
        while self.eat(b',') {
            let (option, span) = self.expect_name("an option of the target")?;
            if option.starts_with("sm_") || option.starts_with("compute_") {
                let other = self.machine(option, span)?;
                target = highest(target, other);
                continue;
            }
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
        if again {
            let before = self.module.target.clone();
            target = highest(before, target);
        }
        self.module.target = target;
        Ok(())
    }

    /// Parses the name of a machine such as `sm_90a`.
    fn machine(&mut self, name: &str, span: Span) -> ParseResult<Target> {
        let digits = name.strip_prefix("sm_").or_else(|| name.strip_prefix("compute_")).unwrap_or("");
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let suffix = &digits[end..];
        if let (Ok(sm), true) = (digits[..end].parse::<u16>(), matches!(suffix, "" | "a" | "f")) {
            return Ok(Target { sm, suffix: suffix.chars().next(), options: vec![] });
        }
        let message = format!("`{}` is not a target", shorten(name));
        let diagnostic = Diagnostic::error(codes::BAD_HEADER, message).at(span, "expected `sm_` and a number, such as `sm_75`");
        // `sm90` and `SM_90` get a suggestion.
        let meant: String = name.chars().filter(char::is_ascii_digit).collect();
        Err(self.report(match name.to_ascii_lowercase().starts_with("sm") && (2..=3).contains(&meant.len()) {
            true => diagnostic.help(format!("did you mean `sm_{meant}`?")),
            false => diagnostic,
        }))
    }

    pub(super) fn address_size(&mut self) -> ParseResult<()> {
        let directive = self.here();
        self.bump();
        if std::mem::replace(&mut self.seen.address_size, true) {
            let diagnostic = Diagnostic::error(codes::BAD_HEADER, "a second `.address_size`");
            return Err(self.report(diagnostic.at(directive, "a module has one")));
        }
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

    pub(super) fn file(&mut self) -> ParseResult<()> {
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

    /// Parses `.loc file line column[, function_name label[+n], inlined_at file line column]`.
    pub(super) fn loc_directive(&mut self) -> ParseResult<LocText> {
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
            inlined = Some(((label.to_owned(), offset), (file, line, self.expect_u32("a column")?)));
        }
        self.eat(b';');
        Ok(LocText { place: (file, line, column), inlined })
    }

    fn expect_word(&mut self, word: &str) -> ParseResult<()> {
        if self.kind() == TokenKind::Name && self.text_of(self.token()) == word {
            self.bump();
            return Ok(());
        }
        Err(self.unexpected(&format!("`{word}`")))
    }

    /// Parses `.section .name { lines }`. Lines are kept as text: labels, `.b8 1, 2`, `.b32 label+4`, …
    pub(super) fn section(&mut self) -> ParseResult<()> {
        self.bump();
        let Some(name) = self.dotted() else { return Err(self.unexpected("the name of a section, such as `.debug_info`")) };
        self.bump();
        let open = self.expect(b'{')?;
        let mut lines = vec![];
        let mut line = String::new();
        loop {
            let token = self.token();
            match token.kind {
                TokenKind::End => {
                    let place = self.last().after();
                    let diagnostic = Diagnostic::error(codes::UNBALANCED, "the file ends inside of a section");
                    return Err(self.report(diagnostic.at(place, "expected `}`").label(open, "to close this")));
                }
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
