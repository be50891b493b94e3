//! Parser of operands (manual: "Instruction Operands").
//!
//! Operands are parsed without knowing the instruction; the form is selected afterwards. Only a single
//! undeclared name stays unresolved until then, because it may be a label that comes later.

use super::body::BodyParser;
use super::element::Element;
use super::lexer::{TokenKind, shorten};
use super::names::Entry;
use super::{MAX_DEPTH, MAX_VECTOR, ParseResult, Parser, ReportedError, codes};
use crate::ids::Reg;
use crate::inst::{Address, Base, Call, Callee, Operand, Selector, Symbol, TextureOperand};
use crate::table::Special;
use broadloom_diag::{Diagnostic, Span};

/// Help text on the form of an address.
const ADDRESS: &str = "an address is a register or a variable, and a constant; compute the rest with `add` or `mad` before";

/// Operand, or name that may be a label.
#[derive(Clone, Debug)]
pub(super) enum RawOperand<'a> {
    Known(Operand),
    /// `name[n]`: the address of an element, or for `ld` and `st` the element.
    Element(Element),
    Name(&'a str),
}

/// Meaning of a name among operands. `Nothing` means that it is not declared.
enum NameMeaning {
    Operand(Operand),
    Nothing,
}

impl<'a> Parser<'a> {
    /// Parses all operands up to the `;`. Returns each with its location and a flag for being joined to the
    /// previous one with `|`.
    pub(super) fn operands(&mut self, body: &mut BodyParser<'_, 'a>) -> ParseResult<Vec<(RawOperand<'a>, bool, Span)>> {
        let mut list = vec![];
        if self.is_sign(b';') {
            return Ok(list);
        }
        let mut paired = false;
        loop {
            let start = self.here();
            let raw = self.operand(body, 0)?;
            list.push((raw, paired, start.to(self.last())));
            if list.len() > MAX_VECTOR {
                let message = format!("more than {MAX_VECTOR} operands");
                return Err(self.report(Diagnostic::error(codes::LIMIT, message).at(start, "one too many")));
            }
            paired = self.eat(b'|');
            if !paired && !self.eat(b',') {
                return Ok(list);
            }
        }
    }

    fn too_deep(&mut self) -> ReportedError {
        let place = self.here();
        self.report(
            Diagnostic::error(codes::LIMIT, format!("operands nested deeper than {MAX_DEPTH} levels")).at(place, "too deep"),
        )
    }

    fn operand(&mut self, body: &mut BodyParser<'_, 'a>, depth: usize) -> ParseResult<RawOperand<'a>> {
        if depth > MAX_DEPTH {
            return Err(self.too_deep());
        }
        let place = self.here();
        match self.kind() {
            TokenKind::Sign(b'[') => self.bracketed(body, depth).map(RawOperand::Known),
            TokenKind::Sign(b'{') => self.vector(body, depth).map(RawOperand::Known),
            TokenKind::Sign(b'!') => {
                self.bump();
                let reg = self.register(body)?;
                Ok(RawOperand::Known(Operand::Not(reg)))
            }
            TokenKind::Sign(b'-') if self.kind_ahead(1) == TokenKind::Name && !self.is_warp_size(1) => {
                self.bump();
                let reg = self.register(body)?;
                let selector = self.selector()?;
                Ok(RawOperand::Known(Operand::Part { reg, negated: true, selector }))
            }
            TokenKind::Sign(b'(') if self.kind_ahead(1) == TokenKind::Name && !self.is_warp_size(1) => {
                let diagnostic = Diagnostic::error(codes::UNEXPECTED, "operands do not stand in parentheses");
                Err(self.report(diagnostic.at(place, "expected an operand")))
            }
            TokenKind::Imm(_) | TokenKind::Sign(b'-' | b'+' | b'(' | b'~') => {
                Ok(RawOperand::Known(Operand::Imm(self.expression()?)))
            }
            TokenKind::Name if self.is_warp_size(0) => Ok(RawOperand::Known(Operand::Imm(self.expression()?))),
            TokenKind::Name => {
                let token = self.bump();
                let name = self.text_of(token);
                if name == "_" {
                    return Ok(RawOperand::Known(Operand::Sink));
                }
                match self.named(body, name, place)? {
                    NameMeaning::Operand(Operand::Symbol(symbol, 0)) if self.is_sign(b'[') && self.last() == place => {
                        Ok(RawOperand::Element(self.element(body, symbol, name, place)?))
                    }
                    NameMeaning::Operand(operand) => Ok(RawOperand::Known(operand)),
                    // `%tid.q`: a label has no component.
                    NameMeaning::Nothing if self.dotted().is_some() => Err(self.undeclared(body, name, place)),
                    NameMeaning::Nothing => Ok(RawOperand::Name(name)),
                }
            }
            _ => Err(self.unexpected("an operand")),
        }
    }

    /// Parses a nested operand, where a name cannot be a label.
    fn inner(&mut self, body: &mut BodyParser<'_, 'a>, depth: usize) -> ParseResult<Operand> {
        let place = self.here();
        match self.operand(body, depth)? {
            RawOperand::Known(operand) => Ok(operand),
            RawOperand::Element(Element { symbol, offset, index: None }) => Ok(Operand::Symbol(symbol, offset)),
            RawOperand::Element(_) => Err(self.lone_index(place.to(self.last()))),
            RawOperand::Name(name) => Err(self.undeclared(body, name, place)),
        }
    }

    pub(super) fn is_warp_size(&self, ahead: usize) -> bool {
        let token = self.tokens[(self.at + ahead).min(self.tokens.len() - 1)];
        token.kind == TokenKind::Name && self.text_of(token) == "WARP_SZ"
    }

    /// Reports an undeclared name.
    pub(super) fn undeclared(&mut self, body: &BodyParser<'_, 'a>, name: &str, span: Span) -> ReportedError {
        let what = if name.starts_with('%') { "register" } else { "name" };
        let diagnostic = Diagnostic::error(codes::UNDECLARED, format!("no {what} `{}` is declared", shorten(name)));
        let diagnostic = diagnostic.at(span, "not declared before its use");
        if let Some(place) = body.names.label_place(name) {
            let message = format!("`{}` is a label, not a value", shorten(name));
            let diagnostic = Diagnostic::error(codes::WRONG_NAME, message);
            return self.report(diagnostic.at(span, "a label cannot stand here").label(place, "defined here"));
        }
        if let Some((prefix, count, place)) = body.names.range_before(name) {
            let text = match count {
                0 => format!("no registers `{prefix}…` are declared here"),
                1 => format!("only `{prefix}0` is declared here"),
                _ => format!("`{prefix}0` to `{prefix}{}` are declared here", count - 1),
            };
            return self.report(diagnostic.label(place, text));
        }
        if let Some(place) = body.names.closed_name(name) {
            return self.report(diagnostic.label(place, "declared here, in a scope that is closed"));
        }
        self.report(match self.special_meant(name) {
            Some(special) => diagnostic.help(format!("did you mean `{special}`?")),
            None => match body.names.nearest_name(name) {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None => diagnostic,
            },
        })
    }

    /// Returns the special register that is most similar to a name with its component.
    fn special_meant(&self, name: &str) -> Option<&'static str> {
        let name = name.strip_prefix('%').filter(|name| name.len() > 2)?;
        let part = self.dotted().filter(|part| part.len() == 1).unwrap_or("x");
        let known = || Special::ALL.iter().map(|special| special.text());
        let bare = |text: &'static str| text.trim_start_matches('%').split('.').next().unwrap_or(text);
        let near = crate::select::nearest(name, known().map(bare))?;
        let of_near = || known().filter(move |text| bare(text) == near);
        of_near().find(|text| text.split_once('.').is_some_and(|(_, word)| word == part)).or_else(|| of_near().next())
    }

    /// Resolves a name that was just parsed, with the `.x`, `.b0` or `+4` after it.
    fn named(&mut self, body: &mut BodyParser<'_, 'a>, name: &'a str, span: Span) -> ParseResult<NameMeaning> {
        let operand = match body.names.find(body.function, name) {
            Some(Entry::Reg { reg: Some(reg), .. }) => match self.selector()? {
                Some(selector) => Operand::Part { reg, negated: false, selector: Some(selector) },
                None => Operand::Reg(reg),
            },
            Some(Entry::Vector { regs, .. }) => match self.dotted() {
                Some(part @ ("x" | "y" | "z" | "w" | "r" | "g" | "b" | "a")) => {
                    let index = match part {
                        "x" | "r" => 0,
                        "y" | "g" => 1,
                        "z" | "b" => 2,
                        _ => 3,
                    };
                    self.bump();
                    match body.names.vector_element(body.function, name, index) {
                        Some(reg) => Operand::Reg(reg),
                        None => {
                            let message = format!("`{}` has no element `.{part}`", shorten(name));
                            let place = span.to(self.last());
                            let label = format!("a vector of {}", regs.len());
                            return Err(self.report(Diagnostic::error(codes::UNDECLARED, message).at(place, label)));
                        }
                    }
                }
                _ => {
                    let element = |index| body.names.vector_element(body.function, name, index).map(Operand::Reg);
                    Operand::Vector((0..regs.len()).filter_map(element).collect())
                }
            },
            Some(Entry::Local(var)) => Operand::Symbol(Symbol::Local(var), self.symbol_offset()?),
            Some(Entry::Targets(targets)) => Operand::Targets(targets),
            Some(Entry::Proto(_)) | Some(Entry::Reg { reg: None, .. }) => {
                let message = format!("`{}` cannot stand here", shorten(name));
                return Err(self.report(Diagnostic::error(codes::WRONG_NAME, message).at(span, "the name of a prototype")));
            }
            None => match self.globals.get(name).copied() {
                Some(symbol) => Operand::Symbol(symbol, self.symbol_offset()?),
                None => match self.special(name) {
                    Some(special) => Operand::Special(special),
                    None => return Ok(NameMeaning::Nothing),
                },
            },
        };
        Ok(NameMeaning::Operand(operand))
    }

    fn symbol_offset(&mut self) -> ParseResult<i64> {
        if self.is_sign(b'+') || self.is_sign(b'-') { self.signed_offset() } else { Ok(0) }
    }

    /// Parses a special register, with its component if it has one.
    fn special(&mut self, name: &str) -> Option<Special> {
        if !name.starts_with('%') {
            return None;
        }
        if let Some(part) = self.dotted()
            && let Some(special) = Special::from_text(&format!("{name}.{part}"))
        {
            self.bump();
            return Some(special);
        }
        Special::from_text(name)
    }

    /// Parses `.b0` or `.h1` after a register of a video instruction.
    fn selector(&mut self) -> ParseResult<Option<Selector>> {
        let Some(word) = self.dotted() else { return Ok(None) };
        let selector = match word {
            "b0" => Selector::B0,
            "b1" => Selector::B1,
            "b2" => Selector::B2,
            "b3" => Selector::B3,
            "h0" => Selector::H0,
            "h1" => Selector::H1,
            _ => match Selector::from_lanes(word) {
                Some(selector) => selector,
                None if matches!(word, "x" | "y" | "z" | "w" | "r" | "g" | "b" | "a") => {
                    let place = self.here();
                    let diagnostic =
                        Diagnostic::error(codes::WRONG_NAME, format!("`.{word}` of a register that is not a vector"));
                    return Err(self.report(diagnostic.at(place, "only registers declared with `.v2` or `.v4` have elements")));
                }
                None => return Err(self.unexpected("a part of a register such as `.b0`, or the next operand")),
            },
        };
        self.bump();
        Ok(Some(selector))
    }

    pub(super) fn register(&mut self, body: &mut BodyParser<'_, 'a>) -> ParseResult<Reg> {
        let (name, span) = self.expect_name("a register")?;
        match body.names.find(body.function, name) {
            Some(Entry::Reg { reg: Some(reg), .. }) => Ok(reg),
            Some(_) => {
                let message = format!("`{}` is not a register", shorten(name));
                Err(self.report(Diagnostic::error(codes::WRONG_NAME, message).at(span, "expected a register")))
            }
            None => Err(self.undeclared(body, name, span)),
        }
    }

    fn vector(&mut self, body: &mut BodyParser<'_, 'a>, depth: usize) -> ParseResult<Operand> {
        let open = self.expect(b'{')?;
        let mut list = vec![];
        if self.eat(b'}') {
            return Ok(Operand::Vector(list.into_boxed_slice()));
        }
        loop {
            list.push(self.inner(body, depth + 1)?);
            if list.len() > MAX_VECTOR {
                return Err(self.report(
                    Diagnostic::error(codes::LIMIT, format!("more than {MAX_VECTOR} elements")).at(open, "in this vector"),
                ));
            }
            if !self.eat(b',') {
                break;
            }
        }
        self.expect_end(b'}')?;
        Ok(Operand::Vector(list.into_boxed_slice()))
    }

    /// Parses `[a]`, `[a+4]`, `[16]`, `[tex, {x, y}]`.
    fn bracketed(&mut self, body: &mut BodyParser<'_, 'a>, depth: usize) -> ParseResult<Operand> {
        self.expect(b'[')?;
        let base = self.address(body)?;
        let mut rest = vec![];
        while self.eat(b',') {
            let place = self.here();
            rest.push(self.inner(body, depth + 1)?);
            if rest.len() > MAX_VECTOR {
                let message = format!("more than {MAX_VECTOR} operands in brackets");
                return Err(self.report(Diagnostic::error(codes::LIMIT, message).at(place, "one too many")));
            }
        }
        if matches!(self.kind(), TokenKind::Sign(b'*' | b'<' | b'/' | b'&' | b'|')) {
            let place = self.here();
            let diagnostic = Diagnostic::error(codes::UNEXPECTED, format!("expected `]`, found {}", self.found()));
            return Err(self.report(diagnostic.at(place, "an address is not computed here").help(ADDRESS)));
        }
        self.expect(b']')?;
        Ok(if rest.is_empty() { Operand::Memory(base) } else { Operand::Texture(Box::new(TextureOperand { base, rest })) })
    }

    fn address(&mut self, body: &mut BodyParser<'_, 'a>) -> ParseResult<Address> {
        let place = self.here();
        if matches!(self.kind(), TokenKind::Imm(_) | TokenKind::Sign(b'(' | b'-' | b'+' | b'~')) {
            return Ok(Address { base: Base::Absolute, offset: self.integer_expression()? });
        }
        if self.kind() != TokenKind::Name {
            let wanted = "an address: a register, a variable or a constant";
            return Err(self.unexpected(wanted));
        }
        let token = self.bump();
        let name = self.text_of(token);
        match self.named(body, name, place)? {
            NameMeaning::Operand(Operand::Reg(reg)) => {
                if (self.is_sign(b'+') || self.is_sign(b'-')) && self.kind_ahead(1) == TokenKind::Name && !self.is_warp_size(1) {
                    self.bump();
                    let place = self.here();
                    let message = format!("expected a constant, found {}", self.found());
                    let diagnostic = Diagnostic::error(codes::UNEXPECTED, message).at(place, "only a constant can be added");
                    return Err(self.report(diagnostic.help(ADDRESS)));
                }
                Ok(Address { base: Base::Reg(reg), offset: self.symbol_offset()? })
            }
            NameMeaning::Operand(Operand::Symbol(symbol, offset)) => Ok(Address { base: Base::Symbol(symbol), offset }),
            NameMeaning::Operand(_) => {
                let message = format!("`{}` is not an address", shorten(name));
                Err(self.report(Diagnostic::error(codes::WRONG_NAME, message).at(place, "expected a register or a variable")))
            }
            NameMeaning::Nothing => Err(self.undeclared(body, name, place)),
        }
    }

    /// Parses `(result), function, (arguments), prototype`; all but the function are optional.
    pub(super) fn call_operands(&mut self, body: &mut BodyParser<'_, 'a>) -> ParseResult<Call> {
        let mut results = vec![];
        if self.is_sign(b'(') {
            results = self.parenthesised(body)?;
            self.expect(b',')?;
        }
        let (name, span) = self.expect_name("the function to call")?;
        let mut callee = match body.names.find(body.function, name) {
            Some(Entry::Reg { reg: Some(reg), .. }) => Callee::Indirect { reg, proto: None },
            Some(_) => {
                let message = format!("`{}` cannot be called", shorten(name));
                let diagnostic = Diagnostic::error(codes::WRONG_NAME, message).at(span, "neither a function nor a register");
                return Err(self.report(match self.is_sign(b',') && self.kind_ahead(1) == TokenKind::Name {
                    true => diagnostic.help("results stand in parentheses: `call (r), f, (a);`"),
                    false => diagnostic,
                }));
            }
            None => match self.globals.get(name) {
                Some(Symbol::Func(func)) => Callee::Direct(*func),
                Some(_) => {
                    let message = format!("`{}` cannot be called", shorten(name));
                    return Err(self.report(Diagnostic::error(codes::WRONG_NAME, message).at(span, "not a function")));
                }
                None => {
                    let message = format!("no function `{}` is declared", shorten(name));
                    let diagnostic = Diagnostic::error(codes::UNDECLARED, message).at(span, "not declared before its use");
                    return Err(self.report(match name {
                        "printf" => diagnostic.help(
                            "CUDA's `printf` is `.extern .func (.param .b32 r) vprintf (.param .b64 format, .param .b64 arguments);`",
                        ),
                        _ => diagnostic
                            .help("declare it first: `.func name (…);`, or `.extern .func name (…);` if it is defined elsewhere"),
                    }));
                }
            },
        };
        let mut arguments = vec![];
        if self.eat(b',') {
            if self.is_sign(b'(') {
                arguments = self.parenthesised(body)?;
                if self.eat(b',') {
                    self.prototype(body, &mut callee)?;
                }
            } else {
                self.prototype(body, &mut callee)?;
            }
        }
        Ok(Call { results, callee, arguments })
    }

    fn prototype(&mut self, body: &mut BodyParser<'_, 'a>, callee: &mut Callee) -> ParseResult<()> {
        let (name, span) = self.expect_name("the name of a prototype")?;
        match (body.names.find(body.function, name), callee) {
            (Some(Entry::Proto(found)), Callee::Indirect { proto, .. }) => {
                *proto = Some(found);
                Ok(())
            }
            (Some(Entry::Proto(_)), Callee::Direct(_)) => {
                let diagnostic = Diagnostic::error(codes::WRONG_NAME, "a call by name takes no prototype");
                Err(self.report(diagnostic.at(span, "only calls through a register take one")))
            }
            (_, Callee::Direct(_)) => {
                let diagnostic = Diagnostic::error(codes::UNEXPECTED, format!("expected `(`, found `{}`", shorten(name)));
                Err(self.report(diagnostic.at(span, "arguments stand in parentheses")))
            }
            _ => {
                let message = format!("no prototype `{}` is declared", shorten(name));
                Err(self
                    .report(Diagnostic::error(codes::UNDECLARED, message).at(span, "expected the name of a `.callprototype`")))
            }
        }
    }

    fn parenthesised(&mut self, body: &mut BodyParser<'_, 'a>) -> ParseResult<Vec<Operand>> {
        let open = self.expect(b'(')?;
        let mut list = vec![];
        if self.eat(b')') {
            return Ok(list);
        }
        loop {
            list.push(self.inner(body, 1)?);
            if list.len() > 4096 {
                return Err(self.report(Diagnostic::error(codes::LIMIT, "more than 4096 arguments").at(open, "in this list")));
            }
            if !self.eat(b',') {
                break;
            }
        }
        self.expect_end(b')')?;
        Ok(list)
    }
}

impl Selector {
    /// Parses `.b3210` or `.h10`, the source of each lane with lane 0 last, or a mask.
    fn from_lanes(word: &str) -> Option<Selector> {
        if let Some(mask) = mask_of_bytes(word) {
            return Some(Selector::Mask(mask));
        }
        let (digits, lanes, most) = match word.as_bytes().first()? {
            b'b' => (&word[1..], 4, b'7'),
            b'h' => (&word[1..], 2, b'3'),
            _ => return None,
        };
        if digits.len() != lanes || !digits.bytes().all(|digit| (b'0'..=most).contains(&digit)) {
            return None;
        }
        let value = digits.bytes().fold(0u16, |value, digit| (value << 4) | u16::from(digit - b'0'));
        Some(Selector::Lanes(if lanes == 2 { value | 0x8000 } else { value }))
    }
}

/// Parses `.b10`, `.b320` and similar masks: two or three bytes, the highest first.
fn mask_of_bytes(word: &str) -> Option<u8> {
    let digits = word.strip_prefix('b')?.as_bytes();
    let is_mask = matches!(digits.len(), 2 | 3)
        && digits.iter().all(|digit| (b'0'..=b'3').contains(digit))
        && digits.windows(2).all(|pair| pair[0] > pair[1]);
    is_mask.then(|| digits.iter().map(|digit| 1 << (digit - b'0')).sum())
}
