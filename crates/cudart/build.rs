//! Generates code from `functions/*.txt`, the list of all functions: a table, stubs for unimplemented
//! functions, and the exported symbols.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() {
    let mut rows = String::new();
    let mut refused = String::new();
    let mut own = String::new();
    let mut symbols = String::new();
    let mut exported = String::new();
    let mut indices = String::new();
    let mut index = 0;
    let mut places = BTreeMap::new();
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
            let state = if state == "done" {
                writeln!(own, "FunctionAddress(crate::{library}::{area}::{name} as *const ()),").unwrap();
                "ImplementationState::Done".to_owned()
            } else {
                assert!(!reason.is_empty(), "{path}:{}: an error without a reason", number + 1);
                writeln!(refused, "refused!({name}, {state:?}, {reason:?});").unwrap();
                writeln!(own, "FunctionAddress({name} as *const ()),").unwrap();
                format!("ImplementationState::Refused {{ status: {state:?}, reason: {reason:?} }}")
            };
            writeln!(rows, "Function {{ name: {name:?}, library: {library:?}, area: {area:?}, state: {state} }},").unwrap();
            writeln!(symbols, "symbol!({name}, {index});").unwrap();
            writeln!(exported, "FunctionAddress(symbols::{name} as *const ()),").unwrap();
            writeln!(indices, "{name:?} => {index},").unwrap();
            places.insert(name.to_owned(), index);
            index += 1;
        }
    }
    let versions = versions(&places);
    let code = format!(
        "/// Every function, as the lists have it.\npub const FUNCTIONS: &[Function] = &[\n{rows}];\n\n\
         {refused}\n\
         /// Implementation of each function, in the order of the list.\npub(crate) static OWN: [FunctionAddress; {index}] = [\n{own}];\n\n\
         /// The symbol of each function.\nstatic EXPORTED: [FunctionAddress; {index}] = [\n{exported}];\n\n\
         mod symbols {{\nuse crate::pass::entry::symbol;\n{symbols}}}\n\n\
         /// The place of a function in the list.\npub(crate) fn index_of(name: &str) -> Option<usize> {{\n\
         Some(match name {{\n{indices}_ => return None,\n}})\n}}\n\n\
         /// Functions of the driver by name and version, sorted.\npub(crate) static VERSIONS: &[Version] = &[\n{versions}];\n"
    );
    let out = env::var("OUT_DIR").unwrap();
    fs::write(Path::new(&out).join("functions.rs"), code).unwrap();
}

/// Renders the rows of `functions/versions.txt` as code, sorted by name and version.
fn versions(places: &BTreeMap<String, usize>) -> String {
    let path = "functions/versions.txt";
    println!("cargo::rerun-if-changed={path}");
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut rows = vec![];
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, since, symbol] = words[..] else { panic!("{path}:{}: not a name, a version and a function", number + 1) };
        let since: i32 = since.parse().unwrap_or_else(|error| panic!("{path}:{}: {error}", number + 1));
        let index = places.get(symbol).unwrap_or_else(|| panic!("{path}:{}: {symbol} is not in the list", number + 1));
        let per_thread = symbol.ends_with("_ptsz") || symbol.ends_with("_ptds");
        rows.push((name, since, per_thread, *index));
    }
    rows.sort_unstable();
    rows.iter().fold(String::new(), |code, (name, since, per_thread, index)| {
        code + &format!("Version {{ name: {name:?}, since: {since}, per_thread: {per_thread}, index: {index} }},\n")
    })
}
