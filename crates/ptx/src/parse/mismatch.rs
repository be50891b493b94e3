//! Error messages for instructions that match no form of the table.

use super::lexer::{TokenKind, shorten};
use super::{ParseResult, Parser, ReportedError, codes};
use crate::inst::{Modifiers, Operand, Symbol};
use crate::select;
use crate::table::{Form, FormId, Length, Modifier, OperandKind, OperandSpec, Presence};
use crate::types::Type;
use broadloom_diag::{Diagnostic, Span};

/// Number of operands that matched a form, and the reason for the mismatch.
struct Misfit<'t> {
    /// Number of matching operands.
    progress: usize,
    why: MismatchReason<'t>,
}

enum MismatchReason<'t> {
    /// Missing operand.
    Missing(&'t OperandSpec),
    /// Operand of the wrong kind.
    Wrong(&'t OperandSpec),
    /// Operand joined with `|` where no pair is allowed.
    Joined,
    /// Surplus operand.
    Extra,
}

impl<'a> Parser<'a> {
    /// Parses the `;` of an instruction.
    pub(super) fn end_of_instruction(&mut self) -> ParseResult<()> {
        if self.eat(b';') {
            return Ok(());
        }
        if self.starts_line(self.at) {
            return self.expect(b';').map(drop);
        }
        let (place, found) = (self.here(), self.found());
        let computed = matches!(self.kind(), TokenKind::Sign(b'+' | b'-' | b'*' | b'/' | b'<' | b'>' | b'&' | b'^' | b'='));
        let diagnostic = Diagnostic::error(codes::UNEXPECTED, format!("expected `,` or `;`, found {found}"));
        let diagnostic = diagnostic.at(place, "expected `,` or `;`");
        Err(self.report(match computed {
            true => diagnostic.help("an operand is one register or constant; compute with an instruction before"),
            false => diagnostic,
        }))
    }

    /// Reports a word that is not an instruction. `alone` is true if nothing follows it on its line.
    pub(super) fn no_instruction(&mut self, root: &str, place: Span, alone: bool) -> ReportedError {
        let message = format!("`{}` is not an instruction", shorten(root));
        let diagnostic = Diagnostic::error(codes::UNEXPECTED, message).at(place, "expected an instruction");
        let lower = root.to_ascii_lowercase();
        let help = match self.kind() {
            TokenKind::Sign(b'=') => Some("there are no assignments in PTX: `add.s32 a, b, c;` computes `a = b + c`".to_owned()),
            TokenKind::Sign(b'(') if matches!(self.globals.get(root), Some(Symbol::Func(_))) => {
                Some(format!("functions are called with `call {}, (…);`", shorten(root)))
            }
            _ if alone => Some(format!("if it is a label, write `{}:`", shorten(root))),
            _ => select::nearest_root(&lower).map(|near| format!("did you mean `{near}`?")),
        };
        self.report(match help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        })
    }

    /// Reports modifiers that no form of an instruction takes.
    pub(super) fn no_form(&mut self, root: &str, words: &[&str], spans: &[Span], mnemonic: Span) -> ReportedError {
        let name = shorten(&self.text[mnemonic.start as usize..mnemonic.end as usize]);
        let known: Vec<&str> = select::rows(root)
            .flat_map(|row| {
                let modifiers = row.forms().flat_map(|form| form.get().slots).flat_map(|slot| slot.choices).map(|m| m.text());
                row.name.split('.').skip(1).chain(modifiers)
            })
            .collect();
        let bad = |message: String, place: Span, label: String| Diagnostic::error(codes::BAD_MODIFIER, message).at(place, label);
        let fits_without = |index: usize| {
            let mut fewer = words.to_vec();
            fewer.remove(index);
            !select::candidates(root, &fewer).is_empty()
        };
        let mut corrected = words.to_vec();
        let mut diagnostic = if let Some(index) = words.iter().position(|word| !known.contains(word)) {
            let word = words[index];
            let diagnostic = bad(
                format!("`{root}` has no modifier `.{}`", shorten(word)),
                spans[index],
                "not a modifier of this instruction".to_owned(),
            );
            match near_modifier(word, &known) {
                Some(near) => {
                    corrected[index] = near;
                    diagnostic.help(format!("did you mean `.{near}`?"))
                }
                None => diagnostic,
            }
        } else if let Some(index) = (1..words.len()).find(|&index| words[..index].contains(&words[index]) && fits_without(index))
        {
            bad(format!("`.{}` stands twice", words[index]), spans[index], "once is enough".to_owned())
        } else if let Some(choices) = missing_modifier(root, words) {
            bad(format!("`{name}` lacks a modifier"), mnemonic, format!("expected {}", either(&choices)))
        } else if let Some(index) = (0..words.len()).rev().filter(|&index| fits_without(index)).min_by_key(|&index| {
            // A type is less often the mistake than a modifier that does not go with it.
            Type::from_name(words[index]).is_some()
        }) {
            let rest: String =
                words.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, w)| format!(".{w}")).collect();
            let message = format!("`{root}{rest}` does not take `.{}`", words[index]);
            bad(message, spans[index], "does not go with the others".to_owned())
        } else {
            bad(format!("`{root}` does not take these modifiers"), mnemonic, "these do not go together".to_owned())
        };
        for form in closest_forms(root, &corrected) {
            diagnostic = diagnostic.note(format!("there is `{}`", form.get().syntax()));
        }
        self.report(diagnostic)
    }

    /// Reports operands that no form takes.
    pub(super) fn misfit(
        &mut self,
        found: &[(FormId, Modifiers)],
        operands: &[Operand],
        pairs: &[bool],
        spans: &[Span],
        mnemonic: Span,
    ) -> ReportedError {
        let name = shorten(&self.text[mnemonic.start as usize..mnemonic.end as usize]);
        let tried = found.iter().map(|(form, modifiers)| (form, modifiers, try_operands(form.get(), modifiers, operands, pairs)));
        // The form with the most matching operands was probably meant, the first one on a tie.
        let best = tried.rev().max_by_key(|(_, _, misfit)| misfit.progress);
        let Some((form, modifiers, misfit)) = best else { return ReportedError };
        let form = form.get();
        // A pair counts as one.
        let count = pairs.iter().filter(|paired| !**paired).count();
        let single = |spec: &&OperandSpec| !spec.paired;
        let most = form.operands.iter().filter(single).count();
        let required = form.operands.iter().filter(single).filter(|spec| spec.presence == Presence::Required).count();
        let plural = if most == 1 { "" } else { "s" };
        let counts = match (required, most) {
            (_, 0) => format!("`{name}` takes no operands"),
            (least, most) if least == most => format!("`{name}` takes {most} operand{plural}, not {count}"),
            (least, most) => format!("`{name}` takes {least} to {most} operands, not {count}"),
        };
        let bad = |message: String, place: Span, label: String| Diagnostic::error(codes::BAD_OPERANDS, message).at(place, label);
        let here = spans.get(misfit.progress).copied();
        let diagnostic = match (misfit.why, here) {
            (MismatchReason::Missing(spec), _) | (MismatchReason::Wrong(spec), None) => {
                let place = spans.last().map_or(mnemonic.after(), |last| last.after());
                let label = format!("`{}` is missing: {}", spec.name, wanted(spec, modifiers));
                bad(counts, place, label)
            }
            (MismatchReason::Extra, Some(place)) => {
                let label = if most == 0 { "not an operand of it" } else { "one too many" };
                bad(counts, place, label.to_owned())
            }
            (MismatchReason::Joined, Some(place)) => {
                bad(format!("`{name}` takes no pair here"), place, "nothing can be joined with `|` here".to_owned())
            }
            (MismatchReason::Wrong(spec), Some(place)) => {
                let what = describe(&operands[misfit.progress]);
                let message = format!("`{name}` takes {} here, not {what}", wanted(spec, modifiers));
                bad(message, place, what)
            }
            (MismatchReason::Extra | MismatchReason::Joined, None) => {
                bad(format!("these operands do not fit `{name}`"), mnemonic, String::new())
            }
        };
        let operands = form.operand_notation(modifiers);
        self.report(diagnostic.note(format!("it is written `{}`", format!("{name} {operands}").trim_end())))
    }
}

/// Returns the modifier that was probably meant.
fn near_modifier<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let find = |wanted: &str| known.iter().find(|known| **known == wanted).copied();
    let unsigned = word.strip_prefix('b').map(|digits| format!("u{digits}"));
    let meant = Type::meant(word).and_then(find).or_else(|| find(&unsigned?));
    // Only types of the same width are candidates.
    let width = |text: &str| Type::from_name(text).map(Type::bits);
    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).collect::<Vec<u8>>();
    let near =
        known.iter().copied().filter(|other| width(other).is_none() || digits(other) == digits(word) || width(word).is_none());
    meant.or_else(|| select::nearest(word, near))
}

/// Returns the choices of the only slot that stays empty when all words are assigned to the slots of a form.
fn missing_modifier(root: &str, words: &[&str]) -> Option<Vec<&'static str>> {
    let mut best: Option<(usize, Vec<&'static str>)> = None;
    for form in select::rows(root).flat_map(|row| row.forms()) {
        let Some((slots, 0)) = lay(form, words) else { continue };
        let form = form.get();
        let empty: Vec<usize> = (0..slots.len()).filter(|&index| !slots[index] && !form.slots[index].optional).collect();
        let Some(&first) = empty.first() else { continue };
        let choices = form.slots[first].choices.iter().map(|choice| choice.text());
        match &mut best {
            Some((count, list)) if *count == empty.len() => list.extend(choices),
            Some((count, _)) if *count < empty.len() => {}
            _ => best = Some((empty.len(), choices.collect())),
        }
    }
    let (_, mut choices) = best?;
    let mut seen = std::collections::HashSet::new();
    choices.retain(|choice| seen.insert(*choice));
    Some(choices)
}

/// Assigns words to the slots of a form, each to the first free slot that has it, types in their order.
/// Returns the filled slots and the number of words left, or `None` if the words of the opcode are not
/// included.
fn lay(form: FormId, words: &[&str]) -> Option<(Vec<bool>, usize)> {
    let form = form.get();
    let mut rest = words.to_vec();
    for word in form.opcode.name().split('.').skip(1) {
        let at = rest.iter().position(|other| *other == word)?;
        rest.remove(at);
    }
    let mut filled = vec![false; form.slots.len()];
    let (mut left, mut types_from) = (0, 0);
    for word in rest {
        let modifier = Modifier::from_text(word);
        let is_type = modifier.and_then(Modifier::ty).is_some();
        let from = if is_type { types_from } else { 0 };
        let takes = |index: usize| modifier.is_some_and(|modifier| form.slots[index].choices.contains(&modifier));
        match (from..filled.len()).find(|&index| !filled[index] && takes(index)) {
            Some(index) => {
                filled[index] = true;
                types_from = if is_type { index + 1 } else { types_from };
            }
            None => left += 1,
        }
    }
    Some((filled, left))
}

/// Returns the forms that take most of the words and, among those, need the fewest others.
fn closest_forms(root: &str, words: &[&str]) -> Vec<FormId> {
    const SHOWN: usize = 3;
    let mut forms: Vec<(usize, usize, FormId)> = vec![];
    for form in select::rows(root).flat_map(|row| row.forms()) {
        let (left, empty) = match lay(form, words) {
            Some((filled, left)) => {
                let needed = form.get().slots.iter().zip(&filled).filter(|(slot, filled)| !slot.optional && !**filled).count();
                (left, needed)
            }
            None => (words.len(), form.get().slots.len() + 1),
        };
        forms.push((left, empty, form));
    }
    forms.sort();
    let best = forms.first().map(|(left, empty, _)| (*left, *empty));
    forms.into_iter().take_while(|(left, empty, _)| Some((*left, *empty)) == best).take(SHOWN).map(|(_, _, form)| form).collect()
}

/// Joins words for a message: `.a`, `.b` or `.c`.
fn either(words: &[&str]) -> String {
    const SHOWN: usize = 8;
    let mut shown: Vec<String> = words.iter().take(SHOWN).map(|word| format!("`.{word}`")).collect();
    if words.len() > SHOWN {
        shown.push("another".to_owned());
    }
    match shown.pop() {
        Some(last) if shown.is_empty() => last,
        Some(last) => format!("{} or {last}", shown.join(", ")),
        None => String::new(),
    }
}

/// Assigns operands to a form as [`select::fill_operands`] does, up to the first mismatch.
fn try_operands<'t>(form: &'t Form, modifiers: &Modifiers, operands: &[Operand], pairs: &[bool]) -> Misfit<'t> {
    let mut next = 0;
    for spec in form.operands {
        let operand = operands.get(next);
        let joined = pairs.get(next).copied().unwrap_or(false);
        match operand {
            Some(operand) if joined == spec.paired && select::shape_fits(spec, modifiers, operand) => next += 1,
            _ if spec.paired && spec.presence == Presence::Optional => {}
            None if spec.presence == Presence::Optional => break,
            None => return Misfit { progress: next, why: MismatchReason::Missing(spec) },
            Some(_) if joined && !spec.paired => return Misfit { progress: next, why: MismatchReason::Joined },
            Some(_) => return Misfit { progress: next, why: MismatchReason::Wrong(spec) },
        }
    }
    let why = if pairs.get(next).copied().unwrap_or(false) { MismatchReason::Joined } else { MismatchReason::Extra };
    Misfit { progress: next, why }
}

/// Describes the operands that a place accepts.
fn wanted(spec: &OperandSpec, modifiers: &Modifiers) -> String {
    let vector = match spec.length {
        Length::One | Length::Any => None,
        Length::Exactly(count) => Some(usize::from(count)),
        Length::Slot(slot) => modifiers[usize::from(slot)].and_then(Modifier::vector_length).map(usize::from),
        Length::Parts => return "registers in braces".to_owned(),
    };
    match (spec.kind, vector) {
        (OperandKind::Value | OperandKind::Negatable | OperandKind::Immediate, Some(count)) => {
            format!("{count} registers in braces")
        }
        (OperandKind::Value, None) if spec.written => "a register".to_owned(),
        (OperandKind::Value, None) => "a register or a constant".to_owned(),
        (OperandKind::Immediate, None) => "a constant".to_owned(),
        (OperandKind::Negatable, None) => "a predicate".to_owned(),
        (OperandKind::Memory, _) => "an address in brackets".to_owned(),
        (OperandKind::Texture, _) => "a texture and coordinates in brackets".to_owned(),
        (OperandKind::Tensor, _) => "a tensor map and coordinates in brackets".to_owned(),
        (OperandKind::Label, _) => "a label".to_owned(),
        (OperandKind::Targets, _) => "the name of a `.branchtargets` list".to_owned(),
        (OperandKind::Call, _) => "a function and its arguments".to_owned(),
    }
}

/// Describes an operand.
fn describe(operand: &Operand) -> String {
    match operand {
        Operand::Reg(_) => "a register".to_owned(),
        Operand::Not(_) => "a negated predicate".to_owned(),
        Operand::Part { negated: true, .. } => "a negated register".to_owned(),
        Operand::Part { .. } => "a part of a register".to_owned(),
        Operand::Imm(_) => "a constant".to_owned(),
        Operand::Special(special) => format!("the special register `{}`", special.text()),
        Operand::Symbol(Symbol::Func(_), _) => "the address of a function".to_owned(),
        Operand::Symbol(Symbol::Var(_) | Symbol::Local(_), _) => "the address of a variable".to_owned(),
        Operand::Memory(_) => "an address in brackets".to_owned(),
        Operand::Texture(_) => "several values in brackets".to_owned(),
        Operand::Vector(list) => match list.len() {
            1 => "1 value in braces".to_owned(),
            count => format!("{count} values in braces"),
        },
        Operand::Label(_) => "a label".to_owned(),
        Operand::Targets(_) => "a list of labels".to_owned(),
        Operand::Sink => "`_`".to_owned(),
        Operand::Pair(_) => "a pair".to_owned(),
        Operand::Absent => "nothing".to_owned(),
        Operand::Call(_) => "a call".to_owned(),
    }
}
