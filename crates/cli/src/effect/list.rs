//! The catalogue as text and as JSON.

use crate::terminal::{Style, Terminal};
use broadloom::effect::catalogue::{EFFECTS, Effect, Inputs, Kind, Parameter};
use serde_json::{Value, json};

/// Lists all effects.
pub fn all(as_json: bool, terminal: &mut Terminal) {
    if as_json {
        let effects: Vec<Value> = EFFECTS.iter().map(to_json).collect();
        terminal.write(&format!("{:#}\n", json!({ "effects": effects })));
        return;
    }
    for effect in EFFECTS {
        let name = terminal.styled(Style::Bold, &format!("{:<17}", effect.name));
        let parameters: Vec<String> = effect.parameters.iter().map(short).collect();
        let parameters = terminal.styled(Style::Dim, &parameters.join(" "));
        terminal.write(&format!("{name}{}\n", effect.summary));
        if !effect.parameters.is_empty() {
            terminal.write(&format!("{:17}{parameters}\n", ""));
        }
    }
}

/// Explains one effect.
pub fn one(effect: &Effect, as_json: bool, terminal: &mut Terminal) {
    if as_json {
        terminal.write(&format!("{:#}\n", to_json(effect)));
        return;
    }
    let name = terminal.styled(Style::Bold, effect.name);
    let files = match effect.inputs {
        Inputs::Images(roles) => roles.join(" "),
        Inputs::Frames(_) => "frames.%04d".to_owned(),
    };
    terminal.write(&format!("{name}: {}\n\n", effect.summary));
    terminal.write(&format!("broadloom effect {} {files} result [--set name=value]…\n\n", effect.name));
    terminal.write(&format!("{}\n", wrapped(effect.formula)));
    let parameters: Vec<Parameter> = effect.all_parameters().collect();
    if !parameters.is_empty() {
        terminal.write("\n");
    }
    for parameter in parameters {
        let title = terminal.styled(Style::Bold, &format!("  {:<22}", short(&parameter)));
        terminal.write(&format!("{title} {}: {}\n", parameter.doc, parameter.kind));
    }
}

/// Formats a parameter with its default.
fn short(parameter: &Parameter) -> String {
    format!("{}={}", parameter.name, parameter.default.unwrap_or("…"))
}

/// Wraps a text at 100 columns.
fn wrapped(text: &str) -> String {
    let (mut lines, mut line) = (vec![], String::new());
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + word.chars().count() >= 100 {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines.join("\n")
}

fn to_json(effect: &Effect) -> Value {
    let parameters: Vec<Value> = effect.all_parameters().map(|parameter| parameter_to_json(&parameter)).collect();
    let inputs = match effect.inputs {
        Inputs::Images(roles) => json!(roles),
        Inputs::Frames(_) => json!(["frames"]),
    };
    json!({
        "name": effect.name, "summary": effect.summary, "formula": effect.formula, "inputs": inputs,
        "boundary": effect.boundary, "parameters": parameters,
    })
}

fn parameter_to_json(parameter: &Parameter) -> Value {
    let mut value = json!({
        "name": parameter.name, "type": parameter.kind.name(), "default": parameter.default, "doc": parameter.doc,
    });
    match parameter.kind {
        Kind::Integer(low, high) | Kind::Odd(low, high) => value["range"] = json!([low, high]),
        Kind::Number(low, high) => value["range"] = json!([low, high]),
        Kind::Choice(words) => value["values"] = json!(words),
        Kind::Numbers(count) if count > 0 => value["count"] = json!(count),
        Kind::Numbers(_) | Kind::Planes | Kind::File => {}
    }
    value
}
