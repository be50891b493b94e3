//! The table as rows: groups, classes, sets, instructions with their forms, special registers.

use crate::notation::{self, Form};
use std::collections::BTreeMap;

pub(crate) type Sets = BTreeMap<String, Vec<String>>;

pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) summary: String,
    pub(crate) group: String,
    pub(crate) class: String,
    pub(crate) effects: Vec<String>,
    pub(crate) forms: Vec<Form>,
}

pub(crate) struct Special {
    pub(crate) name: String,
    pub(crate) ty: String,
    pub(crate) summary: String,
    pub(crate) isa: (u8, u8),
    pub(crate) sm: u16,
}

#[derive(Default)]
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
    pub(crate) specials: Vec<Special>,
}

pub(crate) const CLASSES: &[&str] = &[
    "arith", "float", "half", "compare", "logic", "shift", "bits", "carry", "video", "convert", "move", "memory", "address",
    "control", "barrier", "warp", "atomic", "fence", "misc", "texture", "surface", "matrix", "mbarrier", "cluster", "async",
    "multimem",
];

pub(crate) const EFFECTS: &[&str] =
    &["none", "read", "write", "atomic", "barrier", "warp", "control", "call", "trap", "fence", "varies", "visible"];

pub(crate) fn read(files: &[(String, String)]) -> Result<Table, String> {
    let sets = read_sets(files)?;
    let mut table = Table::default();
    for (file, text) in files {
        let (mut group, mut class) = (String::new(), String::new());
        for (number, line) in text.lines().enumerate() {
            let at = |what: String| format!("{file}:{}: {what}", number + 1);
            let line = line.trim_end();
            if line.is_empty() || line.trim_start().starts_with("# ") || line.trim() == "#" || set_line(line).is_some() {
                continue;
            }
            if let Some(name) = line.strip_prefix("group ") {
                group = name.trim().to_owned();
            } else if let Some(name) = line.strip_prefix("class ") {
                class = name.trim().to_owned();
                if !CLASSES.contains(&class.as_str()) {
                    return Err(at(format!("unknown class `{class}`")));
                }
            } else if line.starts_with('%') {
                table.specials.extend(read_special(line).map_err(at)?);
            } else if line.starts_with([' ', '\t']) {
                let row = table.rows.last_mut().ok_or_else(|| at("a form before any row".into()))?;
                if let Some(effects) = line.trim().strip_prefix("effects ") {
                    row.effects = effects.split_whitespace().map(str::to_owned).collect();
                    if let Some(bad) = row.effects.iter().find(|e| !EFFECTS.contains(&e.as_str())) {
                        return Err(at(format!("unknown effect `{bad}`")));
                    }
                } else {
                    row.forms.push(notation::read_form(line.trim(), &sets).map_err(at)?);
                }
            } else {
                let (name, summary) = line.split_once(' ').ok_or_else(|| at("a row is `name \"sentence\"`".into()))?;
                if class.is_empty() || group.is_empty() {
                    return Err(at("a row before its `group` and `class`".into()));
                }
                if table.rows.iter().any(|row| row.name == name) {
                    return Err(at(format!("`{name}` has a row already")));
                }
                table.rows.push(Row {
                    name: name.to_owned(),
                    summary: summary.trim().trim_matches('"').to_owned(),
                    group: group.clone(),
                    class: class.clone(),
                    effects: vec![],
                    forms: vec![],
                });
            }
        }
    }
    match table.rows.iter().find(|row| row.forms.is_empty()) {
        Some(row) => Err(format!("`{}` has no form", row.name)),
        None => Ok(table),
    }
}

/// What follows `set` on a line that defines a set; the row of the instruction `set` goes on with a quote.
fn set_line(line: &str) -> Option<&str> {
    line.strip_prefix("set ").filter(|rest| !rest.trim_start().starts_with('"'))
}

fn read_sets(files: &[(String, String)]) -> Result<Sets, String> {
    let mut sets = Sets::new();
    for (file, text) in files {
        for (number, line) in text.lines().enumerate() {
            let Some(rest) = set_line(line) else { continue };
            let (name, words) =
                rest.split_once('=').ok_or_else(|| format!("{file}:{}: a set is `set name = words`", number + 1))?;
            let mut list = vec![];
            for word in words.split_whitespace() {
                match word.strip_prefix('$') {
                    Some(other) => list.extend(
                        sets.get(other).ok_or_else(|| format!("{file}:{}: no set `{other}` so far", number + 1))?.iter().cloned(),
                    ),
                    None => list.push(word.to_owned()),
                }
            }
            sets.insert(name.trim().to_owned(), list);
        }
    }
    Ok(sets)
}

fn read_special(line: &str) -> Result<Vec<Special>, String> {
    let (head, rest) = line.split_once('"').ok_or("a special register has a sentence in quotes")?;
    let (summary, attributes) = rest.split_once('"').ok_or("a closing quote is missing")?;
    let mut words = head.split_whitespace();
    let name = words.next().ok_or("a name is missing")?;
    let ty = words.next().ok_or("a type is missing")?;
    let attributes = notation::read_attributes(attributes.trim().trim_start_matches(';'))?;
    let names: Vec<String> = match name.split_once(".{") {
        Some((base, parts)) => parts.trim_end_matches('}').split(',').map(|part| format!("{base}.{part}")).collect(),
        None => match name.split_once('<') {
            // `%envreg<32>` stands for `%envreg0` to `%envreg31`.
            Some((base, count)) => {
                let count: usize = count.trim_end_matches('>').parse().map_err(|_| format!("bad count in `{name}`"))?;
                (0..count).map(|index| format!("{base}{index}")).collect()
            }
            None => vec![name.to_owned()],
        },
    };
    let special = |name| Special { name, ty: ty.to_owned(), summary: summary.to_owned(), isa: attributes.isa, sm: attributes.sm };
    Ok(names.into_iter().map(special).collect())
}
