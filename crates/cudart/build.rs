//! Turns `functions/*.txt`, the list of all functions, into code: exported functions for those that are not done, and a table of all of them.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() {
    let mut rows = String::new();
    let mut exports = String::new();
    let mut addresses = String::new();
    for library in ["runtime", "driver"] {
        let path = format!("functions/{library}.txt");
        println!("cargo::rerun-if-changed={path}");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut area = "";
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                area = name;
                continue;
            }
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut words = line.splitn(3, ' ').map(str::trim);
            let (name, state, reason) = (words.next().unwrap_or(""), words.next().unwrap_or(""), words.next().unwrap_or(""));
            assert!(!area.is_empty() && !state.is_empty(), "{path}:{}: no area or no state", number + 1);
            if state == "done" {
                writeln!(rows, "Function {{ name: {name:?}, library: {library:?}, area: {area:?}, state: State::Done }},")
                    .unwrap();
                writeln!(addresses, "{name:?} => crate::{library}::{area}::{name} as *const (),").unwrap();
            } else {
                assert!(!reason.is_empty(), "{path}:{}: an error without a reason", number + 1);
                let state = format!("State::Refused {{ status: {state:?}, reason: {reason:?} }}");
                writeln!(rows, "Function {{ name: {name:?}, library: {library:?}, area: {area:?}, state: {state} }},").unwrap();
                writeln!(exports, "refused!({name}, {:?}, {reason:?});", words_of(line).1).unwrap();
                writeln!(addresses, "{name:?} => {name} as *const (),").unwrap();
            }
        }
    }
    let code = format!(
        "/// Every function, as the lists have it.\npub const FUNCTIONS: &[Function] = &[\n{rows}];\n\n{exports}\n\
         /// Where the function of a name is.\npub(crate) fn address_of(name: &str) -> Option<*const ()> {{\n\
         Some(match name {{\n{addresses}_ => return None,\n}})\n}}\n"
    );
    let out = env::var("OUT_DIR").unwrap();
    fs::write(Path::new(&out).join("functions.rs"), code).unwrap();
}

/// Name and state of a line.
fn words_of(line: &str) -> (&str, &str) {
    let mut words = line.split_whitespace();
    (words.next().unwrap_or(""), words.next().unwrap_or(""))
}
