//! Reference page: the whole instruction table as Markdown.
//!
//! `docs/INSTRUCTIONS.md` is the output of [`reference_page`]; a test fails if the two differ.

use crate::table::{
    Effects, Exactness, Form, Length, OperandKind, OperandSpec, Presence, Row, Slot, Special, SpecialRow, TypeRule,
};
use crate::types::IsaVersion;
use std::fmt::Write as _;

const HEAD: &str = "\
# The instructions

Every instruction that Broadloom knows, as its table (`crates/ptx/instructions`) describes it. This page is written by a program:
`BLESS=1 cargo test -p broadloom-ptx --test reference` rewrites it.

How to read a form:

- `[.x]` may be left out; of `.{x,y}` one must stand there; `.T{x,y}` is such a choice that operands refer to as `T`;
- `=d:T` is written, `a:T` is read and may be a number as well as a register; `a:#u32` is a number only, `c:!pred` a predicate that may be
  negated with `!`;
- `wide(T)` is twice as wide as `T`; `T+` takes a wider register too; `T@` takes the address of a name or a special register too;
  `T_` may be `_`;
- `T*V` is a vector as long as `V` says, `T*4` one of four, `T*n` of any length, `parts(T)` one that together is as wide as `T`;
- `[a]` is an address; `d|p` are two results; what stands in brackets at the end may be left out;
- behind `;` stands what brought the form, if it was not always there, and how far its result may be from the exact one.

Where the manual leaves a result open, the executors on the host agree on it:

- `mma`, `wmma.mma`: a product of two elements is exact; products are added to the accumulator one after the other, from `k` = 0 on, by fused multiply-adds of
  `f32`, rounded to nearest, denormals kept. An accumulator of `f16` is one of `f32` meanwhile and is rounded once, at the end; `f64` is added with
  the rounding that stands in the instruction. Sums of integers are exact, and cut or limited to 32 bits at the end. Of `tf32` the low 13 bits are not looked at. NaNs that come out are
  canonical. GPUs may round otherwise, and add in another order.
- `wmma`: a fragment has the layout of `mma`, tile by tile, and again from the start where there are more registers than elements.
- `tex`, `tld4`: coordinates are computed in `f64`, weights rounded to nearest in steps of 1/256, texels added up in `f32` along the first axis first; a texel of weight zero is
  not looked at. Cubes are mixed within a face. The level of `.grad` is the logarithm of the longer of both changes in texels.
- `cp.async`: the copy is done when it is issued.

By chapter:

";

/// Renders the page.
pub fn reference_page() -> String {
    let mut out = String::from(HEAD);
    let mut groups: Vec<(&str, Vec<&Row>)> = vec![];
    for row in Row::all() {
        match groups.iter_mut().find(|(group, _)| *group == row.group) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((row.group, vec![row])),
        }
    }
    for (group, rows) in &groups {
        let names: Vec<String> = rows.iter().map(|row| format!("[`{}`](#{})", row.name, anchor(row.name))).collect();
        let _ = writeln!(out, "- {group}: {}", names.join(", "));
    }
    for (group, rows) in &groups {
        let _ = writeln!(out, "\n## {group}");
        rows.iter().for_each(|row| write_row(&mut out, row));
    }
    write_specials(&mut out);
    out
}

/// Returns the link anchor of a heading.
fn anchor(name: &str) -> String {
    name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
}

fn write_row(out: &mut String, row: &Row) {
    let _ = writeln!(out, "\n### `{}`\n\n{}", row.name, row.summary);
    let effects = effect_words(row.effects);
    if !effects.is_empty() {
        let _ = writeln!(out, "It {}.", effects.join(", "));
    }
    if !row.is_general() {
        out.push_str("Executors may refuse it.\n");
    } else if !row.class.is_general() {
        out.push_str("Executors may refuse some of its forms.\n");
    }
    out.push_str("\n```text\n");
    let forms: Vec<(String, String)> =
        row.forms().map(|form| (format!("{}{}", row.name, modifiers(form.get())), operands(form.get()))).collect();
    // Columns are as wide as the longest short entry.
    let width = forms.iter().map(|(name, _)| name.chars().count()).filter(|width| *width <= 60).max().unwrap_or(0);
    let operand_width = forms.iter().map(|(_, list)| list.chars().count()).filter(|width| *width <= 48).max().unwrap_or(0);
    for ((name, list), form) in forms.iter().zip(row.forms()) {
        let attributes = attributes(form.get());
        let line = match (list.is_empty(), attributes.is_empty()) {
            (true, true) => name.clone(),
            (false, true) => format!("{name:width$} {list}"),
            (_, false) => format!("{name:width$} {list:operand_width$} ; {attributes}"),
        };
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out.push_str("```\n");
}

fn effect_words(effects: Effects) -> Vec<&'static str> {
    let words = [
        (Effects::READ, "reads memory"),
        (Effects::WRITE, "writes memory"),
        (Effects::ATOMIC, "reads and writes memory in one step"),
        (Effects::BARRIER, "waits for other threads of the CTA"),
        (Effects::WARP, "exchanges with or waits for lanes of the warp"),
        (Effects::CONTROL, "ends a block"),
        (Effects::CALL, "calls a function"),
        (Effects::TRAP, "ends the kernel with an error"),
        (Effects::FENCE, "orders memory accesses"),
        (Effects::VARIES, "gives another result each time"),
        (Effects::VISIBLE, "is seen from outside"),
        (Effects::POLL, "is asked until others have come"),
    ];
    words.into_iter().filter(|(effect, _)| effects.has(*effect)).map(|(_, word)| word).collect()
}

fn modifiers(form: &Form) -> String {
    form.slots.iter().map(modifier).collect()
}

fn modifier(slot: &Slot) -> String {
    let words: Vec<&str> = slot.choices.iter().map(|choice| choice.text()).collect();
    let choice = match (words.as_slice(), slot.name) {
        ([word], _) => format!(".{word}"),
        (words, Some(name)) => format!(".{name}{{{}}}", words.join(",")),
        (words, None) => format!(".{{{}}}", words.join(",")),
    };
    if slot.optional { format!("[{choice}]") } else { choice }
}

/// Returns the name by which operands refer to a slot: its letter, or the word itself if there is only one
/// choice.
fn slot_name(form: &Form, index: u8) -> String {
    let slot = &form.slots[usize::from(index)];
    match (slot.choices, slot.name) {
        ([only], _) if !slot.optional => only.text().to_owned(),
        (_, Some(name)) => name.to_string(),
        (_, None) => "?".to_owned(),
    }
}

fn operands(form: &Form) -> String {
    let mut text = String::new();
    let mut open = 0;
    for (index, spec) in form.operands.iter().enumerate() {
        let optional = spec.presence == Presence::Optional;
        if optional {
            text.push('[');
        }
        if index > 0 {
            text.push_str(if spec.paired { "|" } else { ", " });
        }
        text.push_str(&operand(form, spec));
        if optional && spec.paired {
            text.push(']');
        } else if optional {
            open += 1;
        }
    }
    text.push_str(&"]".repeat(open));
    text
}

fn operand(form: &Form, spec: &OperandSpec) -> String {
    let name = spec.name;
    match spec.kind {
        OperandKind::Memory => return format!("[{name}]"),
        OperandKind::Texture => return format!("[{name}, {{…}}]"),
        OperandKind::Tensor => return format!("[{name}, {{…}}]"),
        OperandKind::Label => return format!("{name}:label"),
        OperandKind::Targets => return format!("{name}:targets"),
        OperandKind::Call => return "[(results), ]function[, (arguments)][, prototype]".to_owned(),
        OperandKind::Value | OperandKind::Immediate | OperandKind::Negatable => {}
    }
    let ty = match spec.ty {
        TypeRule::Untyped => String::new(),
        TypeRule::Slot(index) => slot_name(form, index),
        TypeRule::Wide(index) => format!("wide({})", slot_name(form, index)),
        TypeRule::Fixed(ty) => ty.name().to_owned(),
    };
    let mut text = format!("{}{name}:", if spec.written { "=" } else { "" });
    match spec.kind {
        OperandKind::Immediate => text.push('#'),
        OperandKind::Negatable => text.push('!'),
        _ => {}
    }
    match spec.length {
        Length::Parts => {
            let _ = write!(text, "parts({ty})");
        }
        Length::One | Length::Slot(_) | Length::Exactly(_) | Length::Any => text.push_str(&ty),
    }
    for (mark, there) in [('+', spec.wider), ('@', spec.symbol), ('_', spec.sink)] {
        text.extend(there.then_some(mark));
    }
    match spec.length {
        Length::One | Length::Parts => {}
        Length::Slot(index) => {
            let _ = write!(text, "*{}", form.slots[usize::from(index)].name.unwrap_or('?'));
        }
        Length::Exactly(count) => {
            let _ = write!(text, "*{count}");
        }
        Length::Any => text.push_str("*n"),
    }
    text
}

/// Returns the version and target that introduced a form, or nothing if it always existed.
fn since(isa: IsaVersion, sm: u16) -> Vec<String> {
    let mut words = vec![];
    if isa > IsaVersion::new(1, 0) {
        words.push(format!("PTX {isa}"));
    }
    if sm > 10 {
        words.push(format!("sm_{sm}"));
    }
    words
}

fn attributes(form: &Form) -> String {
    let mut words = since(form.isa, form.sm);
    words.extend(form.only.map(|only| format!("only {only}")));
    match form.exactness {
        Exactness::Exact => {}
        Exactness::Error(bound) => words.push(format!("error {bound}")),
    }
    words.join(", ")
}

fn write_specials(out: &mut String) {
    out.push_str("\n## Special registers\n\n| register | type | holds | since |\n| --- | --- | --- | --- |\n");
    let same = |a: &SpecialRow, b: &SpecialRow| (a.ty, a.summary, a.isa, a.sm) == (b.ty, b.summary, b.isa, b.sm);
    let rows: Vec<&SpecialRow> = Special::ALL.iter().map(|special| special.row()).collect();
    for run in rows.chunk_by(|a, b| same(a, b)) {
        let (first, last) = (run[0], run[run.len() - 1]);
        let name = match first.name.split_once('.') {
            Some((base, _)) if run.len() > 1 => {
                let parts: Vec<&str> = run.iter().filter_map(|row| row.name.split_once('.')).map(|(_, part)| part).collect();
                format!("`{base}.{{{}}}`", parts.join(","))
            }
            _ if run.len() > 1 => format!("`{}` to `{}`", first.name, last.name),
            _ => format!("`{}`", first.name),
        };
        let _ = writeln!(out, "| {name} | `{}` | {} | {} |", first.ty, first.summary, since(first.isa, first.sm).join(", "));
    }
}
