//! Writes the table as Rust: enums of opcodes, modifiers and special registers, and the static rows and forms.

use crate::notation::{Kind, Length, Operand, Ty};
use crate::table::{Class, Row, Table};
use std::collections::BTreeSet;
use std::fmt::Write as _;

pub(crate) fn emit(table: &Table) -> String {
    let mut out = String::new();
    emit_opcodes(&mut out, &table.rows);
    emit_classes(&mut out, &table.classes);
    emit_modifiers(&mut out, &table.rows);
    emit_specials(&mut out, table);
    emit_rows(&mut out, &table.rows);
    emit_roots(&mut out, &table.rows);
    emit_patterns(&mut out, table);
    out
}

/// Returns the Rust name of a PTX word: `shared::cta` is `SharedCta`, `1d` is `N1d`, `bar.warp.sync` is
/// `BarWarpSync`.
pub(crate) fn camel(word: &str) -> String {
    let mut name = String::new();
    for piece in word.split(|c: char| !c.is_ascii_alphanumeric()).filter(|piece| !piece.is_empty()) {
        if name.ends_with(|c: char| c.is_ascii_digit()) && piece.starts_with(|c: char| c.is_ascii_digit()) {
            name.push('_');
        }
        let (first, rest) = piece.split_at(1);
        name.push_str(&first.to_ascii_uppercase());
        name.push_str(rest);
    }
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, 'N');
    }
    name
}

fn emit_opcodes(out: &mut String, rows: &[Row]) {
    out.push_str("/// Every instruction of the table.\n#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\n#[repr(u16)]\npub enum Opcode {\n");
    for row in rows {
        let _ = writeln!(out, "    /// `{}`: {}\n    {},", row.name, row.summary, camel(&row.name));
    }
    out.push_str("}\n\n");
}

fn emit_classes(out: &mut String, classes: &[Class]) {
    out.push_str("/// What kind of work an instruction does.\n#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\npub enum Class {\n");
    for class in classes {
        let _ = writeln!(out, "    /// `{}`: {}\n    {},", class.name, class.title, camel(&class.name));
    }
    out.push_str("}\n\nimpl Class {\n    /// The class in plain words.\n    pub const fn title(self) -> &'static str {\n        match self {\n");
    for class in classes {
        let _ = writeln!(out, "            Class::{} => {:?},", camel(&class.name), class.title);
    }
    out.push_str("        }\n    }\n\n");
    out.push_str("    /// Whether every executor runs all of it; of the others some may be refused, with their place: see [`Row::is_general`].\n");
    emit_class_predicate(out, "is_general", classes, |class| !class.partly);
    out.push_str("\n    /// Whether its instructions are functions of their inputs.\n");
    emit_class_predicate(out, "is_function", classes, |class| class.function);
    out.push_str("}\n\n");
}

fn emit_class_predicate(out: &mut String, name: &str, classes: &[Class], holds: fn(&Class) -> bool) {
    let names: Vec<String> =
        classes.iter().filter(|class| holds(class)).map(|class| format!("Class::{}", camel(&class.name))).collect();
    let _ = writeln!(out, "    pub const fn {name}(self) -> bool {{\n        matches!(self, {})\n    }}", names.join(" | "));
}

/// Writes sets of opcodes and special registers as patterns, so that a `match` can be exhaustive without
/// naming each one.
fn emit_patterns(out: &mut String, table: &Table) {
    let opcodes = |holds: &dyn Fn(&Row) -> bool| -> String {
        let names = table.rows.iter().filter(|row| holds(row)).map(|row| format!("$crate::Opcode::{}", camel(&row.name)));
        names.collect::<Vec<String>>().join(" | ")
    };
    out.push_str(
        "\n/// A set of opcodes as a pattern: `opcodes!(function)` are functions of their inputs, `opcodes!(other)` are not,\n",
    );
    out.push_str(
        "/// `opcodes!(refused)` are those that executors on the host refuse, and `opcodes!(class video)` is a class.\n",
    );
    out.push_str("#[macro_export]\nmacro_rules! opcodes {\n");
    let _ = writeln!(out, "    (function) => {{ {} }};", opcodes(&|row| row.function));
    let _ = writeln!(out, "    (other) => {{ {} }};", opcodes(&|row| !row.function));
    let _ = writeln!(out, "    (refused) => {{ {} }};", opcodes(&|row| row.refused));
    for class in &table.classes {
        let _ = writeln!(out, "    (class {}) => {{ {} }};", class.name, opcodes(&|row| row.class == class.name));
    }
    let zero = table.specials.iter().filter(|special| special.zero);
    let zero: Vec<String> = zero.map(|special| format!("$crate::Special::{}", camel(&special.name))).collect();
    out.push_str("}\n\n/// A set of special registers as a pattern: `specials!(zero)` are those that hold 0 on the host.\n");
    let _ = writeln!(out, "#[macro_export]\nmacro_rules! specials {{\n    (zero) => {{ {} }};\n}}", zero.join(" | "));
}

fn emit_modifiers(out: &mut String, rows: &[Row]) {
    let words: BTreeSet<&str> = rows
        .iter()
        .flat_map(|row| &row.forms)
        .flat_map(|form| &form.slots)
        .flat_map(|slot| &slot.choices)
        .map(String::as_str)
        .collect();
    out.push_str("/// Every word that can follow an opcode after a dot: types, roundings, state spaces, …\n");
    out.push_str("#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\n#[repr(u16)]\npub enum Modifier {\n");
    for word in &words {
        let _ = writeln!(out, "    /// `.{word}`\n    {},", camel(word));
    }
    out.push_str("}\n\nimpl Modifier {\n    /// All of them.\n    pub const ALL: &'static [Modifier] = &[\n");
    for word in &words {
        let _ = writeln!(out, "        Modifier::{},", camel(word));
    }
    out.push_str(
        "    ];\n\n    /// The word, without its dot.\n    pub const fn text(self) -> &'static str {\n        match self {\n",
    );
    for word in &words {
        let _ = writeln!(out, "            Modifier::{} => {word:?},", camel(word));
    }
    out.push_str("        }\n    }\n\n    /// The modifier that a word, without its dot, spells.\n");
    out.push_str("    pub fn from_text(word: &str) -> Option<Modifier> {\n        Some(match word {\n");
    for word in &words {
        let _ = writeln!(out, "            {word:?} => Modifier::{},", camel(word));
    }
    out.push_str("            _ => return None,\n        })\n    }\n}\n\n");
}

fn emit_specials(out: &mut String, table: &Table) {
    out.push_str("/// Every special register.\n#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\n#[repr(u16)]\npub enum Special {\n");
    for special in &table.specials {
        let _ = writeln!(out, "    /// `{}`: {}\n    {},", special.name, special.summary, camel(&special.name));
    }
    out.push_str("}\n\nimpl Special {\n    /// All of them.\n    pub const ALL: &'static [Special] = &[\n");
    for special in &table.specials {
        let _ = writeln!(out, "        Special::{},", camel(&special.name));
    }
    out.push_str("    ];\n\n    /// The name as PTX writes it, `%tid.x`.\n    pub const fn text(self) -> &'static str {\n        self.row().name\n    }\n\n");
    out.push_str("    /// The special register that a name spells.\n    pub fn from_text(name: &str) -> Option<Special> {\n        Some(match name {\n");
    for special in &table.specials {
        let _ = writeln!(out, "            {:?} => Special::{},", special.name, camel(&special.name));
    }
    out.push_str("            _ => return None,\n        })\n    }\n\n    /// Its row in the table.\n    pub const fn row(self) -> &'static SpecialRow {\n        &SPECIALS[self as usize]\n    }\n}\n\n");
    let _ = writeln!(out, "static SPECIALS: [SpecialRow; {}] = [", table.specials.len());
    for special in &table.specials {
        let _ = writeln!(
            out,
            "    SpecialRow {{ name: {:?}, ty: Type::{}, summary: {:?}, isa: IsaVersion::new({}, {}), sm: {}, scope: Scope::{}, varies: {} }},",
            special.name,
            camel(&special.ty),
            special.summary,
            special.isa.0,
            special.isa.1,
            special.sm,
            camel(&special.scope),
            special.varies
        );
    }
    out.push_str("];\n\n");
}

fn emit_rows(out: &mut String, rows: &[Row]) {
    let _ = writeln!(out, "static ROWS: [Row; {}] = [", rows.len());
    let mut first = 0;
    for row in rows {
        let effects: Vec<String> =
            row.effects.iter().filter(|e| *e != "none").map(|e| format!("Effects::{}.0", e.to_ascii_uppercase())).collect();
        let effects = if effects.is_empty() { "0".to_owned() } else { effects.join(" | ") };
        let _ = writeln!(
            out,
            "    Row {{ opcode: Opcode::{}, name: {:?}, summary: {:?}, group: {:?}, class: Class::{}, effects: Effects({effects}), is_function: {}, is_refused: {}, has_members: {}, first_form: {first}, form_count: {} }},",
            camel(&row.name),
            row.name,
            row.summary,
            row.group,
            camel(&row.class),
            row.function,
            row.refused,
            row.has_members(),
            row.forms.len()
        );
        first += row.forms.len();
    }
    let _ = writeln!(out, "];\n\nstatic FORMS: [Form; {first}] = [");
    for row in rows {
        for form in &row.forms {
            let exactness = match &form.attributes.error {
                None => "Exactness::Exact".to_owned(),
                Some(bound) => format!("Exactness::Error({bound:?})"),
            };
            let _ = writeln!(
                out,
                "    Form {{ opcode: Opcode::{}, notation: {:?}, isa: IsaVersion::new({}, {}), sm: {}, only: {:?}, exactness: {exactness}, slots: &[",
                camel(&row.name),
                form.text,
                form.attributes.isa.0,
                form.attributes.isa.1,
                form.attributes.sm,
                form.attributes.only
            );
            for slot in &form.slots {
                let choices: Vec<String> = slot.choices.iter().map(|word| format!("Modifier::{}", camel(word))).collect();
                let _ = writeln!(
                    out,
                    "        Slot {{ name: {:?}, optional: {}, choices: &[{}] }},",
                    slot.name,
                    slot.optional,
                    choices.join(", ")
                );
            }
            out.push_str("    ], operands: &[\n");
            let index = |name: char| form.slots.iter().position(|slot| slot.name == Some(name)).unwrap_or_default();
            for operand in &form.operands {
                emit_operand(out, operand, &index);
            }
            out.push_str("    ] },\n");
        }
    }
    out.push_str("];\n\n");
}

fn emit_operand(out: &mut String, operand: &Operand, slot: &dyn Fn(char) -> usize) {
    let kind = match operand.kind {
        Kind::Value => "Value",
        Kind::Immediate => "Immediate",
        Kind::Negatable => "Negatable",
        Kind::Memory => "Memory",
        Kind::Texture => "Texture",
        Kind::Tensor => "Tensor",
        Kind::Label => "Label",
        Kind::Targets => "Targets",
        Kind::Call => "Call",
    };
    let ty = match &operand.ty {
        Ty::Untyped => "TypeRule::Untyped".to_owned(),
        Ty::Slot(name) => format!("TypeRule::Slot({})", slot(*name)),
        Ty::Wide(name) => format!("TypeRule::Wide({})", slot(*name)),
        Ty::Fixed(name) => format!("TypeRule::Fixed(Type::{})", camel(name)),
    };
    let length = match operand.length {
        Length::One => "Length::One".to_owned(),
        Length::Slot(name) => format!("Length::Slot({})", slot(name)),
        Length::Exactly(count) => format!("Length::Exactly({count})"),
        Length::Any => "Length::Any".to_owned(),
        Length::Parts => "Length::Parts".to_owned(),
    };
    let presence = match (operand.optional, operand.with_previous) {
        (false, _) => "Required",
        (true, false) => "Optional",
        (true, true) => "WithPrevious",
    };
    let _ = writeln!(
        out,
        "        OperandSpec {{ name: {:?}, written: {}, kind: OperandKind::{kind}, ty: {ty}, length: {length}, wider: {}, sink: {}, symbol: {}, paired: {}, presence: Presence::{presence} }},",
        operand.name, operand.written, operand.wider, operand.sink, operand.symbol, operand.paired
    );
}

/// Writes the rows by the first word of their name: `bar` leads to `bar.sync` and to `bar.warp.sync`.
fn emit_roots(out: &mut String, rows: &[Row]) {
    let root = |row: &Row| row.name.split('.').next().unwrap_or_default().to_owned();
    let roots: BTreeSet<String> = rows.iter().map(root).collect();
    out.push_str("/// The rows whose name starts with a word, those with the longest name first.\npub(crate) fn rows_of_root(word: &str) -> &'static [u16] {\n    match word {\n");
    for word in &roots {
        let mut found: Vec<(usize, &Row)> = rows.iter().enumerate().filter(|(_, row)| root(row) == *word).collect();
        found.sort_by_key(|(index, row)| (std::cmp::Reverse(row.name.split('.').count()), *index));
        let list: Vec<String> = found.iter().map(|(index, _)| index.to_string()).collect();
        let _ = writeln!(out, "        {word:?} => &[{}],", list.join(", "));
    }
    out.push_str("        _ => &[],\n    }\n}\n\n/// Every first word of an opcode.\npub(crate) static ROOTS: &[&str] = &[");
    for word in &roots {
        let _ = write!(out, "{word:?}, ");
    }
    out.push_str("];\n");
}
