//! Linker for PTX modules, as needed by programs compiled with `-rdc=true`.
//!
//! A function that one module declares `.extern` may be defined in an earlier or a later module, but PTX
//! requires declarations before uses. The output therefore has one head, then the declarations of all
//! functions, then all variables, then the bodies. One of several weak definitions is kept. A local name that
//! occurs in several modules gets the number of its module as a suffix.
//!
//! Comments may stand anywhere, so they are blanked first. All later steps see only code and strings.

use crate::fatbin;
use crate::prototype::Prototype;
use std::collections::{BTreeMap, BTreeSet};

/// Substrings of the names of functions by which a kernel launches another kernel.
pub(crate) const LAUNCHING: [&str; 2] = ["cudaCDP", "cudaLaunchDevice"];

/// Tests if a module is the library that defines those functions.
pub(crate) fn is_device_runtime(text: &str) -> bool {
    let text = without_comments(text);
    let mut heads = text.match_indices(".func").map(|(at, _)| &text[at..]);
    heads.any(|head| {
        // A declaration ends with a semicolon before any brace.
        let end = head.find(['{', ';']).unwrap_or(head.len());
        head[end..].starts_with('{') && LAUNCHING.iter().any(|name| head[..end].contains(name))
    })
}

/// Links several modules into one.
pub(crate) fn link(texts: &[String]) -> String {
    const HEAD: [&str; 3] = [".version", ".target", ".address_size"];
    let mut head: BTreeMap<&str, String> = BTreeMap::new();
    let mut modules: Vec<Vec<ModuleDirective<'_>>> = vec![];
    let texts: Vec<String> = texts.iter().map(|text| without_comments(text)).collect();
    for text in &texts {
        let mut pieces = vec![];
        for piece in directives_of(text) {
            match HEAD.into_iter().find(|word| directive(piece.text) == Some(*word)) {
                Some(word) => {
                    let value = piece.text.split_whitespace().collect::<Vec<_>>().join(" ");
                    let kept = head.entry(word).or_insert_with(|| value.clone());
                    if number(&value) > number(kept) {
                        *kept = value;
                    }
                }
                None => pieces.push(piece),
            }
        }
        modules.push(pieces);
    }
    let defined: BTreeSet<&str> =
        modules.iter().flatten().filter(|piece| !piece.declares).filter_map(|piece| piece.name).collect();
    let functions: BTreeMap<&str, &str> = modules
        .iter()
        .flatten()
        .filter(|piece| piece.kind == DirectiveKind::Function && !piece.declares && !piece.local)
        .filter_map(|piece| Some((piece.name?, piece.text)))
        .collect();
    let (mut declarations, mut variables, mut bodies) = (vec![], vec![], vec![]);
    let (mut seen, mut declared) = (BTreeSet::new(), BTreeSet::new());
    for (number, pieces) in modules.iter().enumerate() {
        let own =
            |piece: &&ModuleDirective<'_>| piece.local && !piece.declares && piece.name.is_some_and(|name| seen.contains(name));
        let mut renamed: BTreeMap<&str, String> =
            pieces.iter().filter(own).filter_map(|piece| Some((piece.name?, format!("{}$m{number}", piece.name?)))).collect();
        // Functions that this module declares with a prototype different from the definition's.
        for piece in pieces.iter().filter(|piece| piece.kind == DirectiveKind::Function && piece.declares) {
            let Some((name, defined)) = piece.name.and_then(|name| Some((name, Prototype::of(functions.get(name)?)?))) else {
                continue;
            };
            let adapter = format!("{name}$m{number}");
            let made = Prototype::of(piece.text).and_then(|declared| declared.calling(&adapter, name, &defined));
            if let Some((head, body)) = made {
                declarations.push(head);
                bodies.push(body);
                renamed.insert(name, adapter);
            }
        }
        let text = |text: &str| if renamed.is_empty() { text.to_owned() } else { rename(text, &renamed) };
        for piece in pieces {
            let is_new = piece.name.is_none_or(|name| renamed.contains_key(name) || !seen.contains(name));
            match piece.kind {
                _ if piece.declares => {
                    let name = piece.name.unwrap_or_default();
                    if !defined.contains(name) && declared.insert(name) {
                        declarations.push(text(piece.text));
                    }
                }
                _ if piece.weak && !is_new => {}
                DirectiveKind::Function => {
                    declarations.push(text(&format!("{};", piece.text.split('{').next().unwrap_or_default().trim())));
                    bodies.push(text(piece.text));
                }
                DirectiveKind::Variable => variables.push(text(piece.text)),
                DirectiveKind::Other => bodies.push(text(piece.text)),
            }
        }
        seen.extend(pieces.iter().filter(|piece| !piece.declares).filter_map(|piece| piece.name));
    }
    let head = HEAD.iter().filter_map(|word| head.remove(word));
    let linked: Vec<String> = head.chain(declarations).chain(variables).chain(bodies).collect();
    linked.join("\n") + "\n"
}

/// Adds the library members that define symbols which are declared but not yet defined.
pub(crate) fn with_members(mut texts: Vec<String>, members: Vec<String>) -> Vec<String> {
    let (mut defined, mut wanted) = (BTreeSet::new(), BTreeSet::new());
    for text in &texts {
        let names = Names::of(text);
        defined.extend(names.defined);
        wanted.extend(names.declared);
    }
    let mut members: Vec<(Names, String)> = members.into_iter().map(|text| (Names::of(&text), text)).collect();
    let missing = |names: &Names, defined: &BTreeSet<String>, wanted: &BTreeSet<String>| {
        names.defined.iter().any(|name| wanted.contains(name) && !defined.contains(name))
    };
    while let Some(at) = members.iter().position(|(names, _)| missing(names, &defined, &wanted)) {
        let (names, text) = members.remove(at);
        defined.extend(names.defined);
        wanted.extend(names.declared);
        texts.push(text);
    }
    texts
}

/// Global names of a module.
struct Names {
    defined: BTreeSet<String>,
    declared: BTreeSet<String>,
}

impl Names {
    fn of(text: &str) -> Names {
        let code = without_comments(text);
        let (declared, defined): (Vec<_>, Vec<_>) = directives_of(&code).into_iter().partition(|piece| piece.declares);
        let names =
            |pieces: Vec<ModuleDirective<'_>>| pieces.into_iter().filter_map(|piece| piece.name.map(str::to_owned)).collect();
        Names { defined: names(defined.into_iter().filter(|piece| !piece.local).collect()), declared: names(declared) }
    }
}

/// Adds `.maxnreg` to all kernels without a register limit of their own.
pub(crate) fn limit_registers(text: &str, most: u32) -> String {
    let code = without_comments(text);
    let limited = |piece: ModuleDirective<'_>| match piece.text.split_once('{') {
        Some((head, body)) if head.contains(".entry") && !head.contains(".maxnreg") => format!("{head}.maxnreg {most}\n{{{body}"),
        _ => piece.text.to_owned(),
    };
    directives_of(&code).into_iter().map(limited).collect()
}

/// Renames identifiers in a text.
fn rename(text: &str, names: &BTreeMap<&str, String>) -> String {
    let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || c == '%' || c == '.';
    let mut renamed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(of_name) {
        let end = rest[start..].find(|c| !of_name(c)).map_or(rest.len(), |end| start + end);
        let word = &rest[start..end];
        renamed.push_str(&rest[..start]);
        renamed.push_str(names.get(word).map_or(word, String::as_str));
        rest = &rest[end..];
    }
    renamed + rest
}

/// Returns the first number of a head directive, times 100.
fn number(text: &str) -> u32 {
    let digits: String =
        text.chars().skip_while(|c| !c.is_ascii_digit()).take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    (digits.parse::<f64>().unwrap_or(0.0) * 100.0) as u32
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DirectiveKind {
    /// Callable function.
    Function,
    Variable,
    /// Kernel, or a directive without a name.
    Other,
}

/// Directive at the top level of a module.
struct ModuleDirective<'a> {
    text: &'a str,
    name: Option<&'a str>,
    kind: DirectiveKind,
    /// True for a declaration of something defined elsewhere.
    declares: bool,
    weak: bool,
    /// True if no other module can refer to it.
    local: bool,
}

/// Returns the first word of a directive.
fn directive(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let end = text[1.min(text.len())..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(text.len(), |end| end + 1);
    text.starts_with('.').then_some(&text[..end])
}

/// Returns the end of the head directive at `start`: a version, an address size, or a comma-separated list of
/// targets. Such a directive need not end with its line.
fn end_of_head(text: &str, start: usize) -> Option<usize> {
    let lead = text[start..].len() - text[start..].trim_start().len();
    let name = directive(&text[start..]).filter(|word| [".version", ".target", ".address_size"].contains(word))?;
    let mut at = start + lead + name.len();
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        at += text[at..].find(|c: char| c.is_whitespace() || c == ',').unwrap_or(text.len() - at);
        let rest = text[at..].trim_start();
        if name != ".target" || !rest.starts_with(',') {
            return Some(at);
        }
        at = text.len() - rest.len() + 1;
    }
}

/// Splits a text without comments into directives. A directive ends with its value, a line, a semicolon or a
/// body, outside of strings.
fn directives_of(text: &str) -> Vec<ModuleDirective<'_>> {
    let bytes = text.as_bytes();
    let (mut pieces, mut start, mut at, mut depth) = (vec![], 0, 0, 0usize);
    while at < bytes.len() {
        if at == start
            && let Some(end) = end_of_head(text, start)
        {
            pieces.push(read_directive(&text[start..end]));
            (start, at) = (end, end);
            continue;
        }
        match bytes[at] {
            b'"' => at = text[at + 1..].find('"').map_or(bytes.len(), |end| at + end + 2),
            byte => {
                at += 1;
                match byte {
                    b'{' | b'(' => depth += 1,
                    b'}' | b')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                let in_line = || matches!(directive(&text[start..at]), Some(".file" | ".loc"));
                // A closing brace ends a function body or a section, but not the initialiser of a variable.
                let body = byte == b'}' && !text[start..at - 1].split('{').next().unwrap_or_default().contains('=');
                if depth == 0 && (byte == b';' || body || byte == b'\n' && in_line()) {
                    pieces.push(read_directive(&text[start..at]));
                    start = at;
                }
            }
        }
    }
    if !text[start..].trim().is_empty() {
        pieces.push(read_directive(&text[start..]));
    }
    pieces
}

fn read_directive(code: &str) -> ModuleDirective<'_> {
    let words: Vec<&str> = code.split_whitespace().collect();
    let has = |word: &str| words.contains(&word);
    let function = words.iter().any(|word| *word == ".func" || *word == ".entry");
    let variable = !function && (has(".global") || has(".const") || has(".shared"));
    let declares = has(".extern") || function && !code.contains('{');
    // A function's name comes after its result and before its parameters, a variable's name before its extent
    // or value.
    let name = if function {
        let after = code.split(".func").nth(1).or_else(|| code.split(".entry").nth(1)).unwrap_or_default().trim_start();
        let after = if after.starts_with('(') { after.split_once(')').map_or("", |(_, rest)| rest) } else { after };
        after.split(|c: char| c == '(' || c.is_whitespace() || c == ';' || c == '{').find(|word| !word.is_empty())
    } else if variable {
        let before = code.split(['=', '[', ';']).next().unwrap_or_default();
        before.split_whitespace().last().filter(|word| !word.starts_with('.'))
    } else {
        None
    };
    let kind = match (has(".func"), variable) {
        (true, _) => DirectiveKind::Function,
        (_, true) => DirectiveKind::Variable,
        (false, false) => DirectiveKind::Other,
    };
    let weak = has(".weak") || has(".common");
    ModuleDirective { text: code, name, kind, declares, weak, local: !weak && !has(".visible") && !has(".extern") }
}

/// Replaces comments by blanks. Line numbers stay the same.
fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"']) {
        let (before, from) = rest.split_at(at);
        code.push_str(before);
        let comment = from.starts_with("//") || from.starts_with("/*");
        let end = if from.starts_with("//") {
            from.find('\n').unwrap_or(from.len())
        } else if comment {
            from[2..].find("*/").map_or(from.len(), |end| end + 4)
        } else if let Some(string) = from.strip_prefix('"') {
            string.find('"').map_or(from.len(), |end| end + 2)
        } else {
            1
        };
        if comment {
            code.extend(from[..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        } else {
            code.push_str(&from[..end]);
        }
        rest = &from[end..];
    }
    code + rest
}

/// Tests if a fat binary is NVIDIA's device runtime library, which `-rdc=true` adds to every program.
pub(crate) fn brings_device_runtime(container: &[u8]) -> bool {
    let entries = fatbin::entries(container).unwrap_or_default();
    entries.iter().any(|entry| entry.kind == fatbin::EntryKind::Ptx && entry.text().is_ok_and(|text| is_device_runtime(&text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_meet_their_definitions() {
        let first = "//\n.version 7.0\n.target sm_75\n.address_size 64\n.extern .func (.param .b32 r) twice\n(\n.param .b32 x\n)\n;\n\
                     .extern .global .align 4 .u32 count;\n.weak .global .u32 shared_one = 1;\n.visible .entry k()\n{\n{ call (r), twice, (x); ret; }\n}\n";
        let second = ".version 8.1\n.target sm_80\n.address_size 64\n.visible .global .align 4 .u32 count = 3;\n\
                      .weak .global .u32 shared_one = 1;\n.visible .global .u32 list[2] = {1, 2};\n\
                      .visible .func (.param .b32 r) twice\n(\n.param .b32 x\n)\n{\nret;\n}\n";
        let linked = link(&[first.into(), second.into()]);
        assert!(linked.starts_with(".version 8.1\n.target sm_80\n.address_size 64\n"), "{linked}");
        let (declared, used) = (linked.find("twice").unwrap(), linked.find("call").unwrap());
        assert!(declared < used && linked.find(" count = 3").unwrap() < used, "{linked}");
        assert_eq!(linked.matches("twice").count(), 3, "{linked}");
        assert!(!linked.contains(".extern"), "{linked}");
        assert_eq!(linked.matches("shared_one").count(), 1, "{linked}");
        assert_eq!(linked.matches(".entry k").count(), 1);
        assert!(linked.contains("list[2] = {1, 2};"), "{linked}");
    }

    #[test]
    fn comments_and_blanks_stand_anywhere() {
        let caller = "//\n// Generated by a compiler; { ( \"\n//\n\n.version 9.4\n.target sm_75\n.address_size 64\n\
                      .extern .func (.param .b32 r) bar(.param .b32 a)\n;\n.visible .entry k()\n{ call (r), bar, (a); ret; }\n";
        let body = ".visible .func (.param .b32 r) bar(.param .b32 a){ ret; }\n";
        let heads = [
            "  .version 6.5\n  .target sm_30\n.address_size 64\n",
            "/* one\n two { */\n.version 6.5\n.target sm_30\n.address_size 64\n",
            ".version\t6.5\n.target\tsm_30\n.address_size\t64\n",
            ".version 6.5 // c\n.target sm_30 /* d */ // e\n.address_size 64 // f\n",
            "/*\n * x\n */ .version 6.5 .target sm_30 .address_size 64 ",
            ".version 6.5\n.target sm_30 ,\n debug\n.address_size 64\n.file 1 \"a//b.cu\", 1, 2\n",
        ];
        for head in heads {
            for texts in [[caller.to_owned(), format!("{head}{body}")], [format!("{head}{body}"), caller.to_owned()]] {
                let linked = link(&texts);
                assert!(linked.starts_with(".version 9.4\n.target sm_75\n.address_size 64\n"), "{linked}");
                assert_eq!(linked.matches(".version").count(), 1, "{linked}");
                assert_eq!((linked.matches(".func").count(), linked.contains(".extern")), (2, false), "{linked}");
                assert_eq!(linked.contains("\"a//b.cu\""), head.contains(".file"), "{linked}");
            }
        }
    }

    #[test]
    fn a_name_of_two_modules_is_each_ones_own() {
        let module = |value: u32| {
            format!(
                ".version 8.0\n.target sm_75\n.address_size 64\n.global .align 1 .b8 $str[2] = {{{value}, 0}};\n\
                 .visible .entry k{value}()\n{{\nmov.u64 %rd1, $str;\nmov.u64 %rd2, $str$1;\nret;\n}}\n"
            )
        };
        let linked = link(&[module(1), module(2)]);
        assert!(linked.contains("$str[2] = {1, 0}") && linked.contains("$str$m1[2] = {2, 0}"), "{linked}");
        let second = linked.split("k2").nth(1).unwrap();
        assert!(second.contains("%rd1, $str$m1;") && second.contains("%rd2, $str$1;"), "{second}");
    }

    #[test]
    fn a_declared_result_may_be_missing_in_the_definition() {
        const HEAD: &str = ".version 8.0\n.target sm_75\n.address_size 64\n";
        let caller = |declared: &str, call: &str| format!("{HEAD}{declared}\n.visible .entry k()\n{{\n{call}\nret;\n}}\n");
        let with = caller(
            ".extern .func (.param .b32 r) consume(.param .b64 x, .param .align 4 .b8 y[8])\n;",
            ".param .b64 x; .param .align 4 .b8 y[8]; .param .b32 r; st.param.b64 [x], 1; call (r), consume, (x, y);",
        );
        let without = caller(".extern .func consume(.param .b32 x)\n;", ".param .b32 x; st.param.b32 [x], 1; call consume, (x);");
        let void = format!("{HEAD}.visible .func consume(.param .b64 a, .param .align 4 .b8 b[8])\n{{\nret;\n}}\n");
        let some = format!(
            "{HEAD}.visible .func (.param .b64 r) consume(.param .b32 a)\n{{\n.reg .b64 %rd; mov.b64 %rd, 1; st.param.b64 [r], %rd; ret;\n}}\n"
        );
        for texts in
            [[with.clone(), void.clone()], [void.clone(), with.clone()], [without.clone(), some.clone()], [some, without]]
        {
            let linked = link(&texts);
            let mut sources = broadloom_diag::Sources::new();
            let id = sources.add("linked.ptx", linked.clone());
            let verified = broadloom_ptx::parse(&sources, id).and_then(broadloom_ptx::verify);
            assert!(verified.is_ok(), "{linked}\n{:?}", verified.err());
        }
        // The linker does not adapt differing parameters.
        let other = caller(".extern .func (.param .b32 r) consume(.param .b32 x)\n;", "");
        assert!(!link(&[other, void]).contains("consume$m"));
    }

    #[test]
    fn kernels_get_a_limit_of_registers() {
        let text = ".version 8.0\n.target sm_75\n.address_size 64\n// { .entry x\n.func f()\n{ ret; }\n.entry k(.param .u64 p)\n.maxntid 32\n{ { ret; } }\n\
                    .entry own() .maxnreg 16 { ret; }\n";
        let limited = limit_registers(text, 40);
        assert_eq!((limited.matches(".maxnreg 40").count(), limited.matches(".maxnreg").count()), (1, 2), "{limited}");
        assert!(limited.contains(".maxntid 32\n.maxnreg 40\n{ { ret; } }"), "{limited}");
    }

    #[test]
    fn members_of_libraries_are_linked_when_they_are_needed() {
        let text =
            |declares: &str, defines: &str| format!(".extern .func {declares}();\n.visible .func {defines}()\n{{ ret; }}\n");
        let (caller, first, second, other) = (text("a", "k"), text("b", "a"), text("c", "b"), text("d", "other"));
        let members = vec![second.clone(), other, first.clone(), text("d", "a")];
        assert_eq!(with_members(vec![caller.clone()], members), [caller, first, second]);
    }

    #[test]
    fn tables_of_functions_come_behind_what_they_name() {
        let table = ".version 8.0\n.target sm_75\n.address_size 64\n.weak .func f\n(\n.param .b64 x\n)\n;\n\
                     .weak .global .align 8 .u64 table[2] = {0, f};\n.weak .func f(\n.param .b64 x\n)\n{\nret;\n}\n";
        let other = ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n";
        let linked = link(&[table.into(), table.into(), other.into()]);
        assert!(linked.find(".func f").unwrap() < linked.find("table").unwrap(), "{linked}");
        assert_eq!((linked.matches(".func f").count(), linked.matches("table").count()), (2, 1), "{linked}");
    }

    #[test]
    fn the_library_for_launches_is_what_defines_them() {
        let declares = ".version 9.0\n.target sm_75\n.address_size 64\n\
                        .extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2\n(\n.param .b64 x, .param .b64 y\n)\n;\n";
        let calls = ".visible .entry k()\n{\ncall.uni (r), __cudaCDP2LaunchDeviceV2, (x, y);\nret;\n}\n";
        assert!(!is_device_runtime(&format!("{declares}{calls}")));
        assert!(!is_device_runtime(".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"));
        let defines = ".visible .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(\n.param .b64 x, .param .b64 y\n)\n{\nret;\n}\n";
        assert!(is_device_runtime(&format!(".version 9.0\n.target sm_121\n.address_size 64\n{defines}")));
    }
}
