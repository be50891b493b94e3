//! Parser of one instruction: guard, mnemonic, operands, and selection of the matching form of the table.

use super::body::BodyParser;
use super::element::{Element, InstructionContext};
use super::lexer::TokenKind;
use super::operand::RawOperand;
use super::{ParseResult, Parser, codes};
use crate::inst::{Guard, InstData, Mnemonic, Modifiers, Operand};
use crate::select;
use crate::table::{FormId, OperandKind, TypeRule};
use crate::types::Type;
use broadloom_diag::{Diagnostic, Span};
use smallvec::SmallVec;

impl<'a> Parser<'a> {
    pub(super) fn instruction(&mut self, body: &mut BodyParser<'_, 'a>) -> ParseResult<InstData> {
        let start = self.here();
        let guard = self.guard(body)?;
        if self.kind() != TokenKind::Name {
            return Err(self.unexpected_at(self.here(), "an instruction"));
        }
        let (root, root_span) = self.expect_name("an instruction")?;
        let mut words = vec![];
        let mut word_spans = vec![];
        while let Some(word) = self.dotted() {
            word_spans.push(self.here());
            words.push(word);
            self.bump();
            if words.len() > 24 {
                let diagnostic = Diagnostic::error(codes::LIMIT, "an instruction with more than 24 modifiers");
                return Err(self.report(diagnostic.at(root_span, "behind this")));
            }
        }
        let mnemonic_span = root_span.to(self.last());
        let data = |mnemonic, operands, span| InstData { guard, mnemonic, operands, loc: None, span };
        if !select::is_known_root(root) {
            let mut text = root.to_owned();
            for word in &words {
                text.push('.');
                text.push_str(word);
            }
            let operands = self.opaque_operands(body, root, root_span)?;
            self.end_of_instruction()?;
            return Ok(data(Mnemonic::Opaque(text.into()), operands, start.to(self.last())));
        }
        let found = select::candidates(root, &words);
        if found.is_empty() {
            return Err(self.no_form(root, &words, &word_spans, mnemonic_span));
        }
        if found.iter().any(|(form, _)| form.get().operands.iter().any(|spec| spec.kind == OperandKind::Call)) {
            let call = self.call_operands(body)?;
            self.end_of_instruction()?;
            let (form, modifiers) = found[0].clone();
            let operands = SmallVec::from_iter([Operand::Call(Box::new(call))]);
            return Ok(data(Mnemonic::Known { form, modifiers }, operands, start.to(self.last())));
        }
        let raw = self.operands(body)?;
        self.end_of_instruction()?;
        let span = start.to(self.last());
        let (form, modifiers, operands) = self.fit(body, found, raw, mnemonic_span, guard)?;
        Ok(data(Mnemonic::Known { form, modifiers }, operands, span))
    }

    fn guard(&mut self, body: &mut BodyParser<'_, 'a>) -> ParseResult<Option<Guard>> {
        if !self.eat(b'@') {
            return Ok(None);
        }
        let negated = self.eat(b'!');
        let place = self.here();
        let missing = self.kind() == TokenKind::Name && select::is_known_root(self.text_of(self.token()));
        if self.kind() != TokenKind::Name || missing && body.names.find(body.function, self.text_of(self.token())).is_none() {
            return Err(self.unexpected(if negated { "a predicate behind `@!`" } else { "a predicate behind `@`" }));
        }
        let reg = self.register(body)?;
        if body.function.regs[reg].ty != Type::Pred {
            let message = format!("`{}` guards an instruction but is no predicate", body.function.regs[reg].name);
            return Err(self.report(Diagnostic::error(codes::WRONG_NAME, message).at(place, "expected a `.pred` register")));
        }
        Ok(Some(Guard { reg, negated }))
    }

    fn opaque_operands(
        &mut self,
        body: &mut BodyParser<'_, 'a>,
        root: &str,
        root_span: Span,
    ) -> ParseResult<SmallVec<[Operand; 4]>> {
        // A stray name should not be taken for an unknown instruction. Instructions of PTX are lower case,
        // and their operands are on the same line and without parentheses.
        let small = root.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_');
        let alone = self.starts_line(self.at) || self.is_sign(b';') && !small;
        if !small || alone || matches!(self.kind(), TokenKind::Sign(b':' | b'(' | b'=')) {
            return Err(self.no_instruction(root, root_span, alone));
        }
        let mut operands: SmallVec<[Operand; 4]> = SmallVec::new();
        for (raw, paired, span) in self.operands(body)? {
            let operand = match raw {
                RawOperand::Known(operand) => operand,
                RawOperand::Element(Element { symbol, offset, index: None }) => Operand::Symbol(symbol, offset),
                RawOperand::Element(_) => return Err(self.lone_index(span)),
                RawOperand::Name(_) => return Err(self.no_instruction(root, root_span, false)),
            };
            match operands.pop() {
                Some(before) if paired => operands.push(Operand::Pair(Box::new([before, operand]))),
                before => {
                    operands.extend(before);
                    operands.push(operand);
                }
            }
        }
        Ok(operands)
    }

    /// Selects the first candidate whose operands fit: by their shape, then by the width of their registers.
    fn fit(
        &mut self,
        body: &mut BodyParser<'_, 'a>,
        found: Vec<(FormId, Modifiers)>,
        raw: Vec<(RawOperand<'a>, bool, Span)>,
        mnemonic: Span,
        guard: Option<Guard>,
    ) -> ParseResult<(FormId, Modifiers, SmallVec<[Operand; 4]>)> {
        let takes_label = found.iter().any(|(form, _)| form.get().operands.iter().any(|spec| spec.kind == OperandKind::Label));
        let around = InstructionContext::new(&found, guard);
        let mut operands = vec![];
        for (raw, _, span) in &raw {
            operands.push(match raw {
                RawOperand::Known(operand) => operand.clone(),
                RawOperand::Element(element) => self.fit_element(body, *element, &around, *span)?,
                RawOperand::Name(name) if takes_label => Operand::Label(body.names.want_label(body.function, name, *span)),
                RawOperand::Name(name) => return Err(self.undeclared(body, name, *span)),
            });
        }
        let pairs: Vec<bool> = raw.iter().map(|(_, paired, _)| *paired).collect();
        let mut fitting = found.iter().filter_map(|(form, modifiers)| {
            let places = select::fill_operands(*form, modifiers, &operands, &pairs)?;
            Some((form, modifiers, places))
        });
        let regs = &body.function.regs;
        let widths_fit = |form: &FormId, places: &[Option<&Operand>]| {
            places.iter().zip(form.get().operands).all(|(place, spec)| match (place, spec.ty) {
                (Some(Operand::Reg(reg)), TypeRule::Fixed(ty)) => regs[*reg].ty.bits() == ty.bits(),
                _ => true,
            })
        };
        let chosen = match fitting.next() {
            Some((form, modifiers, places)) if !widths_fit(form, &places) => {
                fitting.find(|(form, _, places)| widths_fit(form, places)).or(Some((form, modifiers, places)))
            }
            first => first,
        };
        if let Some((form, modifiers, places)) = chosen {
            let specs = form.get().operands;
            let filled = places.iter().zip(specs).map(|(place, spec)| match place {
                Some(operand) => select::fit_floats(spec, modifiers, (*operand).clone()),
                None => Operand::Absent,
            });
            return Ok((*form, modifiers.clone(), filled.collect()));
        }
        let spans: Vec<Span> = raw.iter().map(|(_, _, span)| *span).collect();
        Err(self.misfit(&found, &operands, &pairs, &spans, mnemonic))
    }
}
