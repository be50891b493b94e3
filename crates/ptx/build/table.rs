//! Parser of the table: groups, classes, sets, instructions with their forms, special registers.

use crate::notation::{self, Form};
use std::collections::BTreeMap;

pub(crate) type Sets = BTreeMap<String, Vec<String>>;

pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) summary: String,
    pub(crate) group: String,
    pub(crate) class: String,
    pub(crate) effects: Vec<String>,
    /// True if the result depends only on the inputs.
    pub(crate) function: bool,
    /// True if host executors refuse it.
    pub(crate) refused: bool,
    pub(crate) forms: Vec<Form>,
}

impl Row {
    /// Tests if an operand is the mask of participating lanes. The table calls it `m`.
    pub(crate) fn has_members(&self) -> bool {
        let named = || self.forms.iter().any(|form| form.operands.iter().any(|operand| operand.name == "m"));
        self.effects.iter().any(|effect| effect == "warp") && matches!(self.class.as_str(), "warp" | "barrier") && named()
    }
}

/// Class of instructions.
pub(crate) struct Class {
    pub(crate) name: String,
    pub(crate) title: String,
    /// True if the results of its instructions depend only on their inputs.
    pub(crate) function: bool,
    /// True if executors refuse some of its forms.
    pub(crate) partly: bool,
}

pub(crate) struct Special {
    pub(crate) name: String,
    pub(crate) ty: String,
    pub(crate) summary: String,
    pub(crate) isa: (u8, u8),
    pub(crate) sm: u16,
    /// Threads that share the value: a word of [`SCOPES`].
    pub(crate) scope: String,
    pub(crate) varies: bool,
    pub(crate) zero: bool,
}

#[derive(Default)]
pub(crate) struct Table {
    pub(crate) classes: Vec<Class>,
    pub(crate) rows: Vec<Row>,
    pub(crate) specials: Vec<Special>,
}

pub(crate) const EFFECTS: &[&str] =
    &["none", "read", "write", "atomic", "barrier", "warp", "control", "call", "trap", "fence", "varies", "visible", "poll"];

pub(crate) const SCOPES: &[&str] = &["thread", "warp", "block", "launch"];

pub(crate) fn read(files: &[(String, String)]) -> Result<Table, String> {
    let sets = read_sets(files)?;
    let mut table = Table { classes: read_classes(files)?, ..Table::default() };
    for (file, text) in files {
        let (mut group, mut class, mut refused) = (String::new(), String::new(), false);
        for (number, line) in text.lines().enumerate() {
            let at = |what: String| format!("{file}:{}: {what}", number + 1);
            let line = line.trim_end();
            if line.is_empty()
                || line.trim_start().starts_with("# ")
                || line.trim() == "#"
                || set_line(line).is_some()
                || class_line(line).is_some()
            {
                continue;
            }
            if let Some(name) = line.strip_prefix("group ") {
                group = name.trim().to_owned();
            } else if let Some(name) = line.strip_prefix("class ") {
                class = name.trim().to_owned();
                if !table.classes.iter().any(|known| known.name == class) {
                    return Err(at(format!("unknown class `{class}`")));
                }
            } else if let Some(word) = line.strip_prefix("host ") {
                refused = match word.trim() {
                    "runs" => false,
                    "refuses" => true,
                    other => return Err(at(format!("`host runs` or `host refuses`, not `{other}`"))),
                };
            } else if line.starts_with('%') {
                table.specials.extend(read_special(line).map_err(at)?);
            } else if line.starts_with([' ', '\t']) {
                let row = table.rows.last_mut().ok_or_else(|| at("a form before any row".into()))?;
                if let Some(effects) = line.trim().strip_prefix("effects ") {
                    row.effects = effects.split_whitespace().map(str::to_owned).collect();
                    if let Some(bad) = row.effects.iter().find(|e| !EFFECTS.contains(&e.as_str())) {
                        return Err(at(format!("unknown effect `{bad}`")));
                    }
                } else if line.trim() == "function" {
                    row.function = true;
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
                    function: table.classes.iter().any(|known| known.name == class && known.function),
                    refused,
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

/// Returns the rest of a line that defines a set. The row of the instruction `set` continues with a quote
/// instead.
fn set_line(line: &str) -> Option<&str> {
    line.strip_prefix("set ").filter(|rest| !rest.trim_start().starts_with('"'))
}

/// Returns the rest of a line that defines a class. A line that starts the rows of a class has no quote.
fn class_line(line: &str) -> Option<&str> {
    line.strip_prefix("class ").filter(|rest| rest.contains('"'))
}

fn read_classes(files: &[(String, String)]) -> Result<Vec<Class>, String> {
    let mut classes = vec![];
    for (file, text) in files {
        for (number, line) in text.lines().enumerate() {
            let Some(rest) = class_line(line) else { continue };
            let at = |what: String| format!("{file}:{}: {what}", number + 1);
            let mut parts = rest.split('"');
            let (Some(name), Some(title), Some(words)) = (parts.next(), parts.next(), parts.next()) else {
                return Err(at("a class is `class name \"title\" words`".into()));
            };
            let (mut function, mut partly) = (false, false);
            for word in words.split_whitespace() {
                match word {
                    "function" => function = true,
                    "partly" => partly = true,
                    other => return Err(at(format!("unknown word `{other}` of a class"))),
                }
            }
            classes.push(Class { name: name.trim().to_owned(), title: title.to_owned(), function, partly });
        }
    }
    Ok(classes)
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
    let (mut scope, mut varies, mut zero, mut others) = ("launch", false, false, vec![]);
    for word in attributes.trim().trim_start_matches(';').split_whitespace() {
        match word {
            "varies" => varies = true,
            "zero" => zero = true,
            word if SCOPES.contains(&word) => scope = word,
            word => others.push(word),
        }
    }
    let attributes = notation::read_attributes(&others.join(" "))?;
    let names: Vec<String> = match name.split_once(".{") {
        Some((base, parts)) => parts.trim_end_matches('}').split(',').map(|part| format!("{base}.{part}")).collect(),
        None => match name.split_once('<') {
            // `%pm<4>` stands for `%pm0` to `%pm3`, `%envreg<3..32>` for `%envreg3` to `%envreg31`.
            Some((base, range)) => {
                let range = range.trim_end_matches('>');
                let (start, end) = range.split_once("..").unwrap_or(("0", range));
                let number = |text: &str| text.parse::<usize>().map_err(|_| format!("bad range in `{name}`"));
                (number(start)?..number(end)?).map(|index| format!("{base}{index}")).collect()
            }
            None => vec![name.to_owned()],
        },
    };
    let special = |name| Special {
        name,
        ty: ty.to_owned(),
        summary: summary.to_owned(),
        isa: attributes.isa,
        sm: attributes.sm,
        scope: scope.to_owned(),
        varies,
        zero,
    };
    Ok(names.into_iter().map(special).collect())
}
