//! Parser of one form: modifiers, operands, attributes. See `instructions/README.md`.

use crate::table::Sets;

pub(crate) struct Form {
    pub(crate) text: String,
    pub(crate) slots: Vec<Slot>,
    pub(crate) operands: Vec<Operand>,
    pub(crate) attributes: Attributes,
}

pub(crate) struct Slot {
    pub(crate) name: Option<char>,
    pub(crate) choices: Vec<String>,
    pub(crate) optional: bool,
}

#[derive(Default)]
pub(crate) struct Operand {
    pub(crate) name: String,
    pub(crate) written: bool,
    pub(crate) kind: Kind,
    pub(crate) ty: Ty,
    pub(crate) length: Length,
    pub(crate) wider: bool,
    pub(crate) sink: bool,
    pub(crate) symbol: bool,
    /// True if joined to the previous operand with `|`.
    pub(crate) paired: bool,
    pub(crate) optional: bool,
    /// True if present exactly when the previous operand is.
    pub(crate) with_previous: bool,
}

#[derive(Default, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    #[default]
    Value,
    Immediate,
    Negatable,
    Memory,
    Texture,
    Tensor,
    Label,
    Targets,
    Call,
}

#[derive(Default)]
pub(crate) enum Ty {
    #[default]
    Untyped,
    Slot(char),
    Wide(char),
    Fixed(String),
}

#[derive(Default)]
pub(crate) enum Length {
    #[default]
    One,
    Slot(char),
    Exactly(u8),
    Any,
    Parts,
}

#[derive(Default)]
pub(crate) struct Attributes {
    pub(crate) isa: (u8, u8),
    pub(crate) sm: u16,
    pub(crate) error: Option<String>,
    pub(crate) only: Option<String>,
}

pub(crate) fn read_form(line: &str, sets: &Sets) -> Result<Form, String> {
    let (body, attributes) = line.split_once(';').unwrap_or((line, ""));
    let body = body.trim();
    let (modifiers, operands) = body.split_once(char::is_whitespace).ok_or("a form is `modifiers operands`")?;
    let slots = read_slots(modifiers, sets)?;
    let operands = read_operands(operands.trim())?;
    let known = |name: char| slots.iter().any(|slot| slot.name == Some(name));
    for operand in &operands {
        if let Ty::Slot(name) | Ty::Wide(name) = operand.ty
            && !known(name)
        {
            return Err(format!("operand `{}` refers to slot `{name}`, which no modifier has", operand.name));
        }
        if let Length::Slot(name) = operand.length
            && !known(name)
        {
            return Err(format!("operand `{}` is as long as slot `{name}`, which no modifier has", operand.name));
        }
    }
    Ok(Form { text: body.to_owned(), slots, operands, attributes: read_attributes(attributes)? })
}

pub(crate) fn read_attributes(text: &str) -> Result<Attributes, String> {
    let mut attributes = Attributes { isa: (1, 0), sm: 10, ..Attributes::default() };
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (word, tail) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let tail = tail.trim_start();
        if word == "exact" {
            rest = tail;
            continue;
        }
        let (value, after) = match tail.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or("a closing quote is missing")?,
            None => tail.split_once(char::is_whitespace).unwrap_or((tail, "")),
        };
        match word {
            "isa" => {
                let (major, minor) = value.split_once('.').ok_or_else(|| format!("bad version `{value}`"))?;
                let number = |text: &str| text.parse().map_err(|_| format!("bad version `{value}`"));
                attributes.isa = (number(major)?, number(minor)?);
            }
            "sm" => attributes.sm = value.parse().map_err(|_| format!("bad target `{value}`"))?,
            "error" => attributes.error = Some(value.to_owned()),
            "only" => attributes.only = Some(value.to_owned()),
            other => return Err(format!("unknown attribute `{other}`")),
        }
        rest = after.trim_start();
    }
    Ok(attributes)
}

fn read_slots(text: &str, sets: &Sets) -> Result<Vec<Slot>, String> {
    let mut slots = vec![];
    if text == "-" {
        return Ok(slots);
    }
    let mut rest = text;
    while !rest.is_empty() {
        let optional = rest.starts_with('[');
        rest = rest.strip_prefix('[').unwrap_or(rest);
        rest = rest.strip_prefix('.').ok_or_else(|| format!("a dot is missing before `{rest}` in `{text}`"))?;
        let mut letters = rest.chars();
        let (first, second) = (letters.next(), letters.next());
        let name = first.filter(|c| c.is_ascii_uppercase() && matches!(second, Some('{' | '$')));
        if name.is_some() {
            rest = &rest[1..];
        }
        let choices;
        if let Some(list) = rest.strip_prefix('{') {
            let (list, tail) = list.split_once('}').ok_or_else(|| format!("a `}}` is missing in `{text}`"))?;
            choices = expand(list.split(','), sets)?;
            rest = tail;
        } else {
            let end = rest.find(['.', '[', ']']).unwrap_or(rest.len());
            choices = expand(std::iter::once(&rest[..end]), sets)?;
            rest = &rest[end..];
        }
        if optional {
            rest = rest.strip_prefix(']').ok_or_else(|| format!("a `]` is missing in `{text}`"))?;
        }
        slots.push(Slot { name, choices, optional });
    }
    Ok(slots)
}

fn expand<'a>(words: impl Iterator<Item = &'a str>, sets: &Sets) -> Result<Vec<String>, String> {
    let mut list: Vec<String> = vec![];
    for word in words.map(str::trim) {
        match word.strip_prefix('$') {
            Some(name) => list.extend(sets.get(name).ok_or_else(|| format!("no set `{name}`"))?.iter().cloned()),
            None if word.is_empty() => return Err("an empty modifier".into()),
            None => list.push(word.to_owned()),
        }
    }
    Ok(list)
}

fn read_operands(text: &str) -> Result<Vec<Operand>, String> {
    let mut operands: Vec<Operand> = vec![];
    match text {
        "-" => return Ok(operands),
        "call" => return Ok(vec![Operand { name: "call".into(), kind: Kind::Call, ..Operand::default() }]),
        _ => {}
    }
    let (mut rest, mut depth, mut fresh_group) = (text, 0usize, false);
    let mut paired_brackets = 0usize;
    while !rest.is_empty() {
        rest = rest.trim_start();
        if let Some(tail) = rest.strip_prefix("[|") {
            let (mut operand, tail) = read_operand(tail)?;
            operand.paired = true;
            operand.optional = true;
            operands.push(operand);
            rest = tail.trim_start().strip_prefix(']').ok_or("a `]` is missing after a paired operand")?;
        } else if let Some(tail) = rest.strip_prefix('|') {
            let (mut operand, tail) = read_operand(tail)?;
            operand.paired = true;
            operands.push(operand);
            rest = tail;
        } else if let Some(tail) = rest.strip_prefix('[').filter(|tail| tail.trim_start().starts_with(',')) {
            depth += 1;
            fresh_group = true;
            rest = tail;
        } else if let Some(tail) = rest.strip_prefix(']') {
            depth = depth.checked_sub(1).ok_or("a `]` too many")?;
            rest = tail;
        } else {
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
            let (mut operand, tail) = read_operand(rest)?;
            operand.optional = depth > 0;
            operand.with_previous = depth > 0 && !std::mem::take(&mut fresh_group);
            operands.push(operand);
            rest = tail;
        }
        paired_brackets += 1;
        if paired_brackets > 200 {
            return Err(format!("cannot read operands `{text}`"));
        }
    }
    Ok(operands)
}

fn read_operand(text: &str) -> Result<(Operand, &str), String> {
    let mut operand = Operand::default();
    if let Some(tail) = text.strip_prefix('[') {
        let (name, tail) = tail.split_once(']').ok_or("a `]` is missing after a memory operand")?;
        operand.name = name.trim().to_owned();
        operand.kind = Kind::Memory;
        if let Some(tail) = tail.strip_prefix("*tex") {
            operand.kind = Kind::Texture;
            return Ok((operand, tail));
        }
        if let Some(tail) = tail.strip_prefix("*tensor") {
            operand.kind = Kind::Tensor;
            return Ok((operand, tail));
        }
        return Ok((operand, tail));
    }
    let text = match text.strip_prefix('=') {
        Some(tail) => {
            operand.written = true;
            tail
        }
        None => text,
    };
    let (name, tail) = text.split_once(':').ok_or_else(|| format!("`:type` is missing at `{text}`"))?;
    operand.name = name.trim().to_owned();
    let mut rest = tail;
    if let Some(tail) = rest.strip_prefix('!') {
        operand.kind = Kind::Negatable;
        rest = tail;
    } else if let Some(tail) = rest.strip_prefix('#') {
        operand.kind = Kind::Immediate;
        rest = tail;
    }
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let (word, tail) = rest.split_at(end);
    rest = tail;
    let slot = |text: &str| text.chars().next().filter(|c| c.is_ascii_uppercase() && text.len() == 1);
    match word {
        "label" => operand.kind = Kind::Label,
        "targets" => operand.kind = Kind::Targets,
        "wide" | "parts" => {
            let (inner, tail) =
                rest.strip_prefix('(').and_then(|inner| inner.split_once(')')).ok_or_else(|| format!("`({word}…)` expected"))?;
            let name = slot(inner).ok_or_else(|| format!("`{inner}` is not the name of a slot"))?;
            rest = tail;
            if word == "wide" {
                operand.ty = Ty::Wide(name);
            } else {
                operand.ty = Ty::Slot(name);
                operand.length = Length::Parts;
            }
        }
        word => operand.ty = slot(word).map_or_else(|| Ty::Fixed(word.to_owned()), Ty::Slot),
    }
    loop {
        let mut letters = rest.chars();
        match letters.next() {
            Some('+') => operand.wider = true,
            Some('@') => operand.symbol = true,
            Some('_') => operand.sink = true,
            Some('*') => match letters.next() {
                Some('n') => operand.length = Length::Any,
                Some(c) if c.is_ascii_digit() => {
                    let digits = &rest[1..];
                    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
                    operand.length = Length::Exactly(digits[..end].parse().map_err(|_| "a length too large")?);
                    rest = &digits[end..];
                    continue;
                }
                Some(c) if c.is_ascii_uppercase() => operand.length = Length::Slot(c),
                _ => return Err(format!("bad length at `{rest}`")),
            },
            _ => break,
        }
        rest = letters.as_str();
    }
    Ok((operand, rest))
}
