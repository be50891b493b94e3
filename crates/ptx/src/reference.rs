//! The instruction table as a page to read: `docs/INSTRUCTIONS.md`.
//!
//! A test compares the page with the table and rewrites it on demand, so the page is never older than the parser.

use crate::table::{Effects, Exactness, Form, Row, Special, SpecialRow};
use crate::types::IsaVersion;
use std::fmt::Write as _;

/// Effects and their names, in the order in which they are told.
const EFFECTS: &[(Effects, &str)] = &[
    (Effects::READ, "reads memory"),
    (Effects::WRITE, "writes memory"),
    (Effects::ATOMIC, "in one step"),
    (Effects::BARRIER, "waits for threads of the CTA"),
    (Effects::WARP, "works with other lanes of the warp"),
    (Effects::CONTROL, "ends a block"),
    (Effects::CALL, "calls a function"),
    (Effects::TRAP, "ends the kernel with an error"),
    (Effects::FENCE, "orders memory"),
    (Effects::VARIES, "gives another result each time"),
    (Effects::VISIBLE, "is seen from outside"),
];

/// The whole page, as Markdown.
pub fn reference_page() -> String {
    let rows = Row::all();
    let forms: usize = rows.iter().map(|row| row.forms().count()).sum();
    let mut page = format!(
        "# Instructions\n\n\
         Every instruction of the table (`crates/ptx/instructions/`): {} instructions in {forms} forms. The notation is that of the \
         table, explained in `crates/ptx/instructions/README.md`: `[.x]` may be left out, `.{{a,b}}` is a choice, `=d` is written, `a:T` has the type \
         that slot `T` names. This page is made from the table: `BLESS=1 cargo test -p broadloom-ptx --test reference` rewrites it.\n",
        rows.len()
    );
    for group in groups(rows) {
        let _ = write!(page, "\n## {group}\n");
        for row in rows.iter().filter(|row| row.group == group) {
            write_row(&mut page, row);
        }
    }
    page.push_str("\n## Special registers\n\n| register | type | what it holds | since |\n| --- | --- | --- | --- |\n");
    for special in Special::ALL {
        let SpecialRow { name, ty, summary, isa, sm } = special.row();
        let _ = writeln!(page, "| `{name}` | `{ty}` | {summary} | {} |", since(*isa, *sm, None));
    }
    page
}

/// The headings, in the order of their first row.
fn groups(rows: &[Row]) -> Vec<&'static str> {
    let mut groups: Vec<&'static str> = vec![];
    for row in rows {
        if !groups.contains(&row.group) {
            groups.push(row.group);
        }
    }
    groups
}

fn write_row(page: &mut String, row: &Row) {
    let _ = write!(page, "\n### `{}`\n\n{}", row.name, row.summary);
    let effects: Vec<&str> = EFFECTS.iter().filter(|(effect, _)| row.effects.has(*effect)).map(|(_, name)| *name).collect();
    if !effects.is_empty() {
        let _ = write!(page, " It {}.", effects.join(", "));
    }
    if !row.class.is_general() {
        page.push_str(" Executors may refuse it.");
    }
    page.push_str("\n\n| form | since | exact |\n| --- | --- | --- |\n");
    for form in row.forms() {
        let form: &Form = form.get();
        let notation: Vec<&str> = form.notation.split_whitespace().collect();
        let exact = match form.exactness {
            Exactness::Exact => "yes".to_owned(),
            Exactness::Error(bound) => escape(bound),
        };
        let _ = writeln!(page, "| `{}` | {} | {exact} |", escape(&notation.join(" ")), since(form.isa, form.sm, form.only));
    }
}

/// Bars would end a cell of the table.
fn escape(text: &str) -> String {
    text.replace('|', "\\|")
}

fn since(isa: IsaVersion, sm: u16, only: Option<&str>) -> String {
    let mut parts = vec![];
    if isa > IsaVersion::new(1, 0) {
        parts.push(format!("PTX {isa}"));
    }
    match only {
        Some(targets) => parts.push(format!("only {targets}")),
        None if sm > 10 => parts.push(format!("sm_{sm}")),
        None => {}
    }
    if parts.is_empty() { "always".to_owned() } else { parts.join(", ") }
}
