//! Selection of the forms that a mnemonic can mean.
//!
//! The parser (words of text) and the builder (modifiers of a program) use it. Modifiers are matched in the
//! order of the form's slots. If several forms of an instruction take the same modifiers, the operands
//! decide.

use crate::inst::{Imm, InstData, Mnemonic, Modifiers, Operand};
use crate::table::{Class, FormId, Length, Modifier, OperandKind, OperandSpec, Presence, ROOTS, Row, Slot, rows_of_root};
use crate::types::Type;
use broadloom_diag::Span;

/// Tests if the name of a table row starts with this word.
pub fn is_known_root(word: &str) -> bool {
    !rows_of_root(word).is_empty()
}

/// Returns the rows whose name starts with a word, longest names first.
pub fn rows(root: &str) -> impl Iterator<Item = &'static Row> {
    rows_of_root(root).iter().map(|&index| &Row::all()[usize::from(index)])
}

/// Returns the words of a row's name after the first: `warp`, `sync` of `bar.warp.sync`.
fn name_tail(row: &Row) -> impl Iterator<Item = &'static str> + use<> {
    row.name.split('.').skip(1)
}

/// Returns all forms that a root and its dotted words can mean, each with its modifiers in slots, in table
/// order. Rows with longer names come first. Forms that need another order of the modifiers count only if no
/// form takes them as written.
pub fn candidates(root: &str, words: &[&str]) -> Vec<(FormId, Modifiers)> {
    let found = candidates_by(root, words, fill_in_order);
    if found.is_empty() { candidates_by(root, words, fill_in_any_order) } else { found }
}

type Fill = fn(&[Slot], &[Modifier]) -> Option<Modifiers>;

fn candidates_by(root: &str, words: &[&str], fill: Fill) -> Vec<(FormId, Modifiers)> {
    let mut found = vec![];
    for row in rows(root) {
        let Some(rest) = without_name(row, words) else { continue };
        let Some(modifiers) = rest.iter().map(|word| Modifier::from_text(word)).collect::<Option<Vec<_>>>() else { continue };
        for form in row.forms() {
            found.extend(fill(form.get().slots, &modifiers).map(|slots| (form, slots)));
        }
    }
    found
}

/// Removes the words of the row's name, which may be anywhere among the words: compilers write
/// `vote.ballot.sync.b32` for `vote.sync.ballot.b32`.
fn without_name<'w>(row: &Row, words: &[&'w str]) -> Option<Vec<&'w str>> {
    let mut rest = words.to_vec();
    for word in name_tail(row) {
        let at = rest.iter().position(|other| *other == word)?;
        rest.remove(at);
    }
    Some(rest)
}

/// Assigns modifiers to slots, in their order or else in any order. Returns `None` if they do not fit.
pub fn fill_slots(slots: &[Slot], modifiers: &[Modifier]) -> Option<Modifiers> {
    fill_in_order(slots, modifiers).or_else(|| fill_in_any_order(slots, modifiers))
}

fn fill_in_order(slots: &[Slot], modifiers: &[Modifier]) -> Option<Modifiers> {
    let mut filled = Modifiers::new();
    fill(slots, modifiers, &mut filled).then_some(filled)
}

/// Assigns each modifier to the first free slot that has it, since NVIDIA's compilers write
/// `atom.add.acquire.gpu.u32` for `atom.acquire.gpu.add.u32`. Words with a significant order keep it:
/// `cvt.sat.s8.u8` is not `cvt.sat.u8.s8`.
fn fill_in_any_order(slots: &[Slot], modifiers: &[Modifier]) -> Option<Modifiers> {
    let mut filled: Modifiers = slots.iter().map(|_| None).collect();
    let mut behind_last = [0; Sequence::COUNT];
    for modifier in modifiers {
        let sequence = Sequence::of(*modifier).map(|sequence| sequence as usize);
        let first = sequence.map_or(0, |sequence| behind_last[sequence]);
        let at = (first..slots.len()).find(|&at| filled[at].is_none() && slots[at].choices.contains(modifier))?;
        filled[at] = Some(*modifier);
        if let Some(sequence) = sequence {
            behind_last[sequence] = at + 1;
        }
    }
    let complete = slots.iter().zip(&filled).all(|(slot, place)| slot.optional || place.is_some());
    complete.then_some(filled)
}

/// Kinds of modifiers with a significant order.
#[derive(Clone, Copy)]
enum Sequence {
    /// Type of the result, then of the operands.
    Types,
    /// Layout of matrix A, then of matrix B.
    Layouts,
    /// Destination of a copy, then source.
    Spaces,
}

impl Sequence {
    const COUNT: usize = 3;

    fn of(modifier: Modifier) -> Option<Sequence> {
        match modifier.text() {
            "row" | "col" => Some(Sequence::Layouts),
            _ if modifier.ty().is_some() => Some(Sequence::Types),
            _ if modifier.space().is_some() => Some(Sequence::Spaces),
            _ => None,
        }
    }
}

fn fill(slots: &[Slot], modifiers: &[Modifier], filled: &mut Modifiers) -> bool {
    let Some((slot, later)) = slots.split_first() else { return modifiers.is_empty() };
    if let Some((first, rest)) = modifiers.split_first()
        && slot.choices.contains(first)
    {
        filled.push(Some(*first));
        if fill(later, rest, filled) {
            return true;
        }
        filled.pop();
    }
    if slot.optional {
        filled.push(None);
        if fill(later, modifiers, filled) {
            return true;
        }
        filled.pop();
    }
    false
}

/// Tests if an operand has the shape that a place requires. The verifier checks types.
pub fn shape_fits(spec: &OperandSpec, modifiers: &Modifiers, operand: &Operand) -> bool {
    let vector = |operand: &Operand| matches!(operand, Operand::Vector(_));
    let scalar = |operand: &Operand| match operand {
        Operand::Reg(_) => spec.kind != OperandKind::Immediate,
        Operand::Part { .. } => spec.kind == OperandKind::Value,
        Operand::Not(_) => spec.kind == OperandKind::Negatable,
        Operand::Imm(_) => {
            !spec.written && matches!(spec.kind, OperandKind::Value | OperandKind::Immediate | OperandKind::Negatable)
        }
        Operand::Special(_) => !spec.written && (spec.kind == OperandKind::Value || spec.symbol),
        Operand::Symbol(..) => !spec.written && spec.symbol,
        Operand::Sink => spec.written,
        _ => false,
    };
    match spec.kind {
        OperandKind::Value | OperandKind::Immediate | OperandKind::Negatable => match spec.length {
            Length::One => scalar(operand),
            Length::Exactly(count) => matches!(operand, Operand::Vector(list) if list.len() == usize::from(count)),
            Length::Any => vector(operand) || scalar(operand),
            Length::Parts => vector(operand),
            Length::Slot(slot) => match modifiers[usize::from(slot)].and_then(Modifier::vector_length) {
                Some(count) => matches!(operand, Operand::Vector(list) if list.len() == usize::from(count)),
                None => scalar(operand),
            },
        },
        OperandKind::Memory => matches!(operand, Operand::Memory(_)),
        OperandKind::Texture | OperandKind::Tensor => matches!(operand, Operand::Texture(_)),
        OperandKind::Label => matches!(operand, Operand::Label(_)),
        OperandKind::Targets => matches!(operand, Operand::Targets(_)),
        OperandKind::Call => matches!(operand, Operand::Call(_)),
    }
}

/// Assigns operands to the places of a form, with [`Operand::Absent`] for a missing paired one. Returns
/// `None` if they do not fit. `pairs[i]` is true if operand `i` was joined to the previous one with `|`.
pub fn fill_operands<'a>(
    form: FormId,
    modifiers: &Modifiers,
    operands: &'a [Operand],
    pairs: &[bool],
) -> Option<Vec<Option<&'a Operand>>> {
    let specs = form.get().operands;
    let mut places: Vec<Option<&Operand>> = Vec::with_capacity(specs.len());
    let mut next = 0;
    for spec in specs {
        let here = operands.get(next).filter(|_| pairs[next] == spec.paired);
        match here.map(|operand| unwrap_single(form, spec, modifiers, operand)) {
            Some(operand) if shape_fits(spec, modifiers, operand) => {
                places.push(Some(operand));
                next += 1;
            }
            _ if spec.paired && spec.presence == Presence::Optional => places.push(None),
            // If no operand is left, the remaining places may be omitted.
            _ if spec.presence == Presence::Optional && next == operands.len() => break,
            _ => return None,
        }
    }
    (next == operands.len()).then_some(places)
}

/// Returns the only element of `{x}` where a scalar is allowed. Compilers write `ld.global.b16 { %rs1 },
/// [%rd1]`, and put the scale of a matrix product in braces.
fn unwrap_single<'a>(form: FormId, spec: &OperandSpec, modifiers: &Modifiers, operand: &'a Operand) -> &'a Operand {
    let one = match spec.length {
        Length::Slot(slot) => modifiers[usize::from(slot)].and_then(Modifier::vector_length).is_none(),
        Length::One => form.get().opcode.row().class == Class::Matrix,
        Length::Exactly(_) | Length::Any | Length::Parts => false,
    };
    match operand {
        Operand::Vector(list) if one && list.len() == 1 => &list[0],
        operand => operand,
    }
}

/// Converts a float to the type's width. Decimal floats are doubles, and floats written as bits have their
/// own width; the assembler accepts either for either type.
pub(crate) fn fit_float(ty: Type, imm: Imm) -> Imm {
    match (ty, imm) {
        (Type::F32, Imm::F64(bits)) => Imm::F32((f64::from_bits(bits) as f32).to_bits()),
        (Type::F64, Imm::F32(bits)) => Imm::F64(f64::from(f32::from_bits(bits)).to_bits()),
        (_, imm) => imm,
    }
}

/// Converts the floats of an operand to the width that the place requires.
pub(crate) fn fit_floats(spec: &OperandSpec, modifiers: &Modifiers, operand: Operand) -> Operand {
    let Some(ty @ (Type::F32 | Type::F64)) = spec.type_in(modifiers) else { return operand };
    match operand {
        Operand::Imm(imm) => Operand::Imm(fit_float(ty, imm)),
        Operand::Vector(list) => Operand::Vector(
            list.into_iter()
                .map(|element| match element {
                    Operand::Imm(imm) => Operand::Imm(fit_float(ty, imm)),
                    element => element,
                })
                .collect(),
        ),
        operand => operand,
    }
}

/// Returns the known first word that is most similar to a misspelt one.
pub fn nearest_root(word: &str) -> Option<&'static str> {
    nearest(word, ROOTS.iter().copied())
}

/// Returns the most similar word, if one is similar enough.
pub fn nearest<'a>(word: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > 64 {
        return None;
    }
    // A third of the letters may be wrong, but never all.
    let letters = word.chars().count();
    let limit = (letters / 3).clamp(1, 2).min(letters.saturating_sub(1));
    words.map(|other| (distance(word, other), other)).filter(|(distance, _)| *distance <= limit).min().map(|(_, other)| other)
}

/// Returns the edit distance: letters to insert, delete, change or swap with a neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let change = last[j] + usize::from(a[i] != b[j]);
            let mut best = change.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

impl InstData {
    /// Builds the instruction for a mnemonic such as `selp.b32` and its operands, without a guard. Returns
    /// `None` if the table has no such instruction. A second result joined by `|` follows the first.
    ///
    /// ```
    /// use broadloom_ptx::{InstData, Opcode, Operand, Reg};
    /// let (a, b) = (Reg::from_u32(0), Reg::from_u32(1));
    /// let add = InstData::of("add.u32", [Operand::Reg(a), Operand::Reg(b), Operand::from(1)]).unwrap();
    /// assert_eq!(add.opcode(), Some(Opcode::Add));
    /// assert!(InstData::of("add.u33", []).is_none());
    /// ```
    pub fn of(mnemonic: &str, operands: impl IntoIterator<Item = Operand>) -> Option<InstData> {
        let mut words = mnemonic.split('.');
        let root = words.next()?;
        let words: Vec<&str> = words.collect();
        let operands: Vec<Operand> = operands.into_iter().collect();
        candidates(root, &words).into_iter().find_map(|(form, modifiers)| {
            let pairs: Vec<bool> = form.get().operands.iter().map(|spec| spec.paired).take(operands.len()).collect();
            let pairs = if pairs.len() == operands.len() { pairs } else { vec![false; operands.len()] };
            let apart = vec![false; operands.len()];
            let places = fill_operands(form, &modifiers, &operands, &apart)
                .or_else(|| fill_operands(form, &modifiers, &operands, &pairs))?;
            let operands = places.into_iter().map(|place| place.cloned().unwrap_or(Operand::Absent)).collect();
            Some(InstData {
                guard: None,
                mnemonic: Mnemonic::Known { form, modifiers },
                operands,
                loc: None,
                span: Span::default(),
            })
        })
    }
}
