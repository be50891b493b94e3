//! Generator of the builder's trait `Instructions`: one method per row of the table.
//!
//! A method takes the modifiers and as many sources as the shortest form needs. If the forms differ in their
//! number of sources, a second method, `name_with`, takes all sources as one tuple. An instruction without a
//! result returns `()`. If only some forms have a result, `name_result` is for those.

use crate::emit::camel;
use crate::notation::{Form, Kind, Operand};
use crate::table::{Row, Table};
use std::fmt::Write as _;

/// Words that cannot be names of methods or arguments.
const KEYWORDS: &[&str] = &[
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern", "false", "fn", "for", "gen",
    "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return", "self", "static", "struct",
    "super", "trait", "true", "type", "unsafe", "use", "where", "while", "yield",
];

const HEAD: &str = "\
/// Every instruction of the table as a method: modifiers, then sources; the result is returned.
///
/// [`FunctionBuilder`] puts the result in a register of its own, of the type that the instruction gives. In front of the
/// instruction, [`guard`](FunctionBuilder::guard), [`to`](FunctionBuilder::to), [`vector`](FunctionBuilder::vector),
/// [`pair`](FunctionBuilder::pair) and [`discard`](FunctionBuilder::discard) say otherwise.
#[allow(clippy::too_many_arguments, reason = \"as many as the instruction has\")]
pub trait Instructions {
    /// The type that an instruction with a result returns.
    type Result;

    /// Any instruction of the table that has a result.
    fn instruction(&mut self, opcode: Opcode, modifiers: impl IntoModifiers, sources: impl IntoOperands) -> Self::Result;

    /// Any instruction of the table, its result, if there is one, thrown away.
    fn effect(&mut self, opcode: Opcode, modifiers: impl IntoModifiers, sources: impl IntoOperands);

";

pub(crate) fn emit(table: &Table) -> String {
    let mut out = String::from(HEAD);
    for row in table.rows.iter().filter(|row| !is_call(row)) {
        emit_row(&mut out, row);
    }
    out.push_str("}\n");
    out
}

fn is_call(row: &Row) -> bool {
    row.forms.iter().any(|form| form.operands.iter().any(|operand| operand.kind == Kind::Call))
}

/// Returns the Rust name of an opcode or operand: `bar.warp.sync` is `bar_warp_sync`.
fn snake(word: &str) -> String {
    let mut name: String = word.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    while name.contains("__") {
        name = name.replace("__", "_");
    }
    if KEYWORDS.contains(&name.as_str()) || name.starts_with(|c: char| c.is_ascii_digit()) || name == "_" {
        name.push('_');
    }
    name
}

fn sources(form: &Form) -> impl Iterator<Item = &Operand> {
    form.operands.iter().filter(|operand| !operand.written)
}

fn emit_row(out: &mut String, row: &Row) {
    let has_result = |form: &&Form| form.operands.iter().any(|operand| operand.written);
    let (with, without): (Vec<&Form>, Vec<&Form>) = row.forms.iter().partition(has_result);
    let (name, opcode) = (snake(&row.name), camel(&row.name));
    match (with.is_empty(), without.is_empty()) {
        (false, true) => emit_methods(out, row, &with, "instruction", " -> Self::Result"),
        (_, false) => emit_methods(out, row, &without, "effect", ""),
        (true, true) => {}
    }
    if !with.is_empty() && !without.is_empty() {
        let _ = writeln!(
            out,
            "/// A form of `{}` that has a result, with all its sources in one tuple: see [`Instructions::{name}`].",
            row.name
        );
        let _ = writeln!(
            out,
            "fn {name}_result(&mut self, modifiers: impl IntoModifiers, sources: impl IntoOperands) -> Self::Result {{\n    self.instruction(Opcode::{opcode}, modifiers, sources)\n}}\n"
        );
    }
}

fn emit_methods(out: &mut String, row: &Row, forms: &[&Form], call: &str, result: &str) {
    let required = |form: &Form| sources(form).filter(|operand| !operand.optional).count();
    let least = forms.iter().map(|form| required(form)).min().unwrap_or(0);
    let most = forms.iter().map(|form| sources(form).count()).max().unwrap_or(0);
    let (name, opcode) = (snake(&row.name), camel(&row.name));
    let mut names: Vec<String> = vec![];
    let shortest = forms.iter().find(|form| required(form) == least);
    for operand in shortest.into_iter().flat_map(|form| sources(form)).take(least) {
        let mut argument = snake(&operand.name);
        while names.contains(&argument) {
            argument.push('_');
        }
        names.push(argument);
    }
    let arguments: String = names.iter().map(|name| format!(", {name}: impl Into<Operand>")).collect();
    let tuple: String = names.iter().map(|name| format!("{name}, ")).collect();
    emit_doc(out, row);
    let _ = writeln!(
        out,
        "fn {name}(&mut self, modifiers: impl IntoModifiers{arguments}){result} {{\n    self.{call}(Opcode::{opcode}, modifiers, ({tuple}))\n}}\n"
    );
    if most > least {
        let _ = writeln!(
            out,
            "/// `{}` with all its sources in one tuple, those that may be left out included: see [`Instructions::{name}`].",
            row.name
        );
        let _ = writeln!(
            out,
            "fn {name}_with(&mut self, modifiers: impl IntoModifiers, sources: impl IntoOperands){result} {{\n    self.{call}(Opcode::{opcode}, modifiers, sources)\n}}\n"
        );
    }
}

fn emit_doc(out: &mut String, row: &Row) {
    let _ = writeln!(out, "/// {}\n///\n/// ```text", row.summary.replace('[', "\\[").replace(']', "\\]"));
    const SHOWN: usize = 24;
    for form in row.forms.iter().take(SHOWN) {
        let _ = writeln!(out, "/// {}{}", row.name, form.text.strip_prefix('-').unwrap_or(&form.text));
    }
    if row.forms.len() > SHOWN {
        let _ = writeln!(out, "/// … and {} more", row.forms.len() - SHOWN);
    }
    out.push_str("/// ```\n");
}
