//! One instruction: guard, mnemonic, operands, and the form of the table that they fit.

use super::body::Body;
use super::lexer::{TokenKind, shorten};
use super::operand::Raw;
use super::{Parsed, Parser, Reported, codes};
use crate::inst::{Guard, InstData, Mnemonic, Modifiers, Operand};
use crate::select;
use crate::table::{FormId, Modifier, OperandKind};
use crate::types::Type;
use broadloom_diag::{Diagnostic, Span};
use smallvec::SmallVec;

impl<'a> Parser<'a> {
    pub(super) fn instruction(&mut self, body: &mut Body<'_, 'a>) -> Parsed<InstData> {
        let start = self.here();
        let guard = self.guard(body)?;
        let (root, root_span) = self.expect_name("an instruction")?;
        let mut words = vec![];
        let mut word_spans = vec![];
        while let Some(word) = self.dotted() {
            word_spans.push(self.here());
            words.push(word);
            self.bump();
            if words.len() > 24 {
                return Err(self.report(Diagnostic::error(codes::LIMIT, "more than 24 modifiers").at(root_span, "behind this")));
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
            self.expect(b';')?;
            return Ok(data(Mnemonic::Opaque(text.into()), operands, start.to(self.last())));
        }
        let found = select::candidates(root, &words);
        if found.is_empty() {
            return Err(self.no_form(root, &words, &word_spans, mnemonic_span));
        }
        if found.iter().any(|(form, _)| form.get().operands.iter().any(|spec| spec.kind == OperandKind::Call)) {
            let call = self.call_operands(body)?;
            self.expect(b';')?;
            let (form, modifiers) = found[0].clone();
            let operands = SmallVec::from_iter([Operand::Call(Box::new(call))]);
            return Ok(data(Mnemonic::Known { form, modifiers }, operands, start.to(self.last())));
        }
        let raw = self.operands(body)?;
        self.expect(b';')?;
        let span = start.to(self.last());
        let (form, modifiers, operands) = self.fit(body, found, raw, mnemonic_span)?;
        Ok(data(Mnemonic::Known { form, modifiers }, operands, span))
    }

    fn guard(&mut self, body: &mut Body<'_, 'a>) -> Parsed<Option<Guard>> {
        if !self.eat(b'@') {
            return Ok(None);
        }
        let negated = self.eat(b'!');
        let place = self.here();
        let reg = self.register(body)?;
        if body.function.regs[reg].ty != Type::Pred {
            let message = format!("`{}` guards an instruction but is no predicate", body.function.regs[reg].name);
            return Err(self.report(Diagnostic::error(codes::WRONG_NAME, message).at(place, "expected a `.pred` register")));
        }
        Ok(Some(Guard { reg, negated }))
    }

    fn opaque_operands(&mut self, body: &mut Body<'_, 'a>, root: &str, root_span: Span) -> Parsed<SmallVec<[Operand; 4]>> {
        // A word that is no instruction at all, such as a stray name, should not be taken for a new one.
        if self.kind() == TokenKind::Sign(b':') || root.starts_with(['%', '$']) {
            return Err(self.report(
                Diagnostic::error(codes::UNEXPECTED, format!("expected an instruction, found `{}`", shorten(root)))
                    .at(root_span, "not an instruction"),
            ));
        }
        let mut operands: SmallVec<[Operand; 4]> = SmallVec::new();
        for (raw, paired, span) in self.operands(body)? {
            let operand = match raw {
                Raw::Known(operand) => operand,
                Raw::Name(name) => match select::nearest_root(root) {
                    // Most likely a misspelt branch or a misspelt register of a misspelt instruction.
                    Some(near) => {
                        let message = format!("`{}` is not an instruction", shorten(root));
                        return Err(self.report(
                            Diagnostic::error(codes::UNEXPECTED, message)
                                .at(root_span, "not known")
                                .help(format!("did you mean `{near}`?")),
                        ));
                    }
                    None => return Err(self.undeclared(name, span)),
                },
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

    /// The first candidate whose operands fit.
    fn fit(
        &mut self,
        body: &mut Body<'_, 'a>,
        found: Vec<(FormId, Modifiers)>,
        raw: Vec<(Raw<'a>, bool, Span)>,
        mnemonic: Span,
    ) -> Parsed<(FormId, Modifiers, SmallVec<[Operand; 4]>)> {
        let takes_label = found.iter().any(|(form, _)| form.get().operands.iter().any(|spec| spec.kind == OperandKind::Label));
        let mut operands = vec![];
        for (raw, _, span) in &raw {
            operands.push(match raw {
                Raw::Known(operand) => operand.clone(),
                Raw::Name(name) if takes_label => Operand::Label(body.names.want_label(body.function, name, *span)),
                Raw::Name(name) => return Err(self.undeclared(name, *span)),
            });
        }
        let pairs: Vec<bool> = raw.iter().map(|(_, paired, _)| *paired).collect();
        for (form, modifiers) in &found {
            let Some(places) = select::fill_operands(*form, modifiers, &operands, &pairs) else { continue };
            let specs = form.get().operands;
            let filled = places.iter().zip(specs).map(|(place, spec)| match place {
                Some(operand) => select::narrow_float(spec, modifiers, (*operand).clone()),
                None => Operand::Absent,
            });
            return Ok((*form, modifiers.clone(), filled.collect()));
        }
        Err(self.misfit(&found, &raw, mnemonic))
    }

    fn misfit(&mut self, found: &[(FormId, Modifiers)], raw: &[(Raw<'a>, bool, Span)], mnemonic: Span) -> Reported {
        let form = found[0].0.get();
        let name = shorten(&self.text[mnemonic.start as usize..mnemonic.end as usize]);
        let count = raw.len();
        let required = form.operands.iter().filter(|spec| spec.presence == crate::table::Presence::Required).count();
        let most = form.operands.len();
        let message = if count < required || count > most {
            let takes = if required == most { format!("{most}") } else { format!("{required} to {most}") };
            format!("`{name}` takes {takes} operand{}, not {count}", if most == 1 { "" } else { "s" })
        } else {
            format!("these operands do not fit `{name}`")
        };
        let place = match (raw.first(), raw.last()) {
            (Some(first), Some(last)) => first.2.to(last.2),
            _ => mnemonic,
        };
        let mut diagnostic = Diagnostic::error(codes::BAD_OPERANDS, message).at(place, "these operands");
        for (form, _) in found.iter().take(3) {
            let operands = form.get().operand_notation();
            diagnostic = diagnostic.note(format!("it is written `{name} {operands}`"));
        }
        self.report(diagnostic)
    }

    fn no_form(&mut self, root: &str, words: &[&str], spans: &[Span], mnemonic: Span) -> Reported {
        let rows: Vec<_> = select::rows(root).collect();
        let known: Vec<&str> = rows
            .iter()
            .flat_map(|row| {
                row.name
                    .split('.')
                    .skip(1)
                    .chain(row.forms().flat_map(|form| form.get().slots).flat_map(|slot| slot.choices).map(|m| m.text()))
            })
            .collect();
        let bad = words.iter().position(|word| !known.contains(word));
        let mut diagnostic = match bad {
            Some(index) => {
                let message = format!("`{root}` has no modifier `.{}`", shorten(words[index]));
                let mut diagnostic =
                    Diagnostic::error(codes::BAD_MODIFIER, message).at(spans[index], "not a modifier of this instruction");
                if let Some(near) = select::nearest(words[index], known.iter().copied()) {
                    diagnostic = diagnostic.help(format!("did you mean `.{near}`?"));
                }
                diagnostic
            }
            None if words.is_empty() => Diagnostic::error(codes::BAD_MODIFIER, format!("`{root}` needs modifiers"))
                .at(mnemonic, "a type or another modifier is missing"),
            None => {
                let all: Option<Vec<Modifier>> = words.iter().map(|word| Modifier::from_text(word)).collect();
                let why =
                    if all.is_some() { "these do not go together, or not in this order" } else { "these do not go together" };
                Diagnostic::error(codes::BAD_MODIFIER, format!("`{root}` does not take these modifiers")).at(mnemonic, why)
            }
        };
        for form in rows.iter().flat_map(|row| row.forms()).take(6) {
            diagnostic = diagnostic.note(format!("a form is `{}{}`", form.get().opcode.name(), form.get().notation));
        }
        self.report(diagnostic)
    }
}
