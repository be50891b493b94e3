//! Selection of a kernel, and example calls.

use crate::failure::codes;
use crate::pointers::pointees;
use broadloom::diag::Diagnostic;
use broadloom::launch::Element;
use broadloom::ptx::{Function, Module, Param, Type, Var, Variable, select::nearest};
use std::fmt::Write as _;

/// Maximum number of kernels listed in a message.
const SHOWN: usize = 12;

/// Returns the kernel with the given name, or the only kernel. An unambiguous C++ name is sufficient.
pub fn choose<'m>(module: &'m Module, name: Option<&str>) -> Result<&'m Function, Box<Diagnostic>> {
    let kernels: Vec<&Function> = module.kernels().map(|(_, function)| function).collect();
    let wrong = |message: String| Diagnostic::error(codes::WHICH_KERNEL, message);
    if kernels.is_empty() {
        return Err(Box::new(wrong("the module has no kernel: nothing in it is an `.entry` with a body".to_owned())));
    }
    let Some(name) = name else {
        return match kernels.as_slice() {
            [only] => Ok(only),
            all => Err(Box::new(
                list(wrong("the module has several kernels: which one?".to_owned()), all)
                    .help(format!("add `--kernel {}`, say", spoken(&all[0].name))),
            )),
        };
    };
    let exact = kernels.iter().filter(|function| function.name == name);
    let plain = kernels.iter().filter(|function| plain_name(&function.name) == Some(name));
    let found: Vec<&Function> = exact.chain(plain).copied().collect();
    match found.as_slice() {
        [only] => Ok(only),
        [first, ..] if first.name == name => Ok(first),
        [_, ..] => {
            let diagnostic = wrong(format!("`{name}` is the name of several kernels of the module"));
            Err(Box::new(list(diagnostic, &found).help("give the whole name, as the module has it")))
        }
        [] => {
            let mut diagnostic = list(wrong(format!("the module has no kernel `{name}`")), &kernels);
            if let Some(near) = nearest(name, kernels.iter().map(|function| spoken(&function.name))) {
                diagnostic = diagnostic.help(format!("did you mean `--kernel {near}`?"));
            }
            Err(Box::new(diagnostic))
        }
    }
}

fn list(diagnostic: Diagnostic, kernels: &[&Function]) -> Diagnostic {
    let names: Vec<String> = kernels.iter().take(SHOWN).map(|function| format!("`{}`", function.name)).collect();
    let more = if kernels.len() > SHOWN { format!(", and {} more", kernels.len() - SHOWN) } else { String::new() };
    diagnostic.note(format!("it has {}{more}", names.join(", ")))
}

/// Returns the C++ name of a mangled function: `_Z3addPfi` and `_ZN4math3addEPfi` are `add`.
pub fn plain_name(mangled: &str) -> Option<&str> {
    let rest = mangled.strip_prefix("_Z")?;
    let Some(mut rest) = rest.strip_prefix('N') else { return Some(length_prefixed(rest)?.0) };
    let mut last = None;
    while let Some((name, tail)) = length_prefixed(rest) {
        (last, rest) = (Some(name), tail);
    }
    last
}

fn length_prefixed(text: &str) -> Option<(&str, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let length: usize = text[..digits].parse().ok()?;
    text[digits..].split_at_checked(length)
}

/// Returns the shortest usable name.
fn spoken(name: &str) -> &str {
    plain_name(name).unwrap_or(name)
}

/// Returns the parameters of a kernel in memory, in order.
pub fn params(function: &Function) -> impl Iterator<Item = Var> + '_ {
    function.params.iter().filter_map(|param| match param {
        Param::Memory(var) => Some(*var),
        Param::Reg(_) => None,
    })
}

/// Formats the type of a variable with its dimensions: `.v4.f32[16]`.
pub fn type_text(variable: &Variable) -> String {
    let vector = if variable.vector > 1 { format!(".v{}", variable.vector) } else { String::new() };
    let dims: String = variable.dims.iter().map(|dim| format!("[{}]", dim.map(|n| n.to_string()).unwrap_or_default())).collect();
    format!("{vector}{}{dims}", variable.ty)
}

/// Builds the error for missing arguments: all parameters, and a complete call.
pub fn missing_arguments(verb: &str, file: &str, module: &Module, kernel: &Function, given: usize) -> Diagnostic {
    let takes = params(kernel).count();
    let plural = if takes == 1 { "" } else { "s" };
    let message = format!("kernel `{}` takes {takes} argument{plural}, not {given}", kernel.name);
    let mut diagnostic = Diagnostic::error(codes::MISSING_ARGUMENTS, message);
    if let Some(first) = params(kernel).nth(given) {
        diagnostic = diagnostic.at(kernel.variables[first].span, "no argument for this");
    }
    let pointees = pointees(kernel);
    for (index, var) in params(kernel).enumerate() {
        let variable = &kernel.variables[var];
        let usage = pointees.get(&var).map(|pointee| format!(", the address of a buffer: it {pointee}")).unwrap_or_default();
        let note = format!("argument {} is for `{}`: {}{usage}", index + 1, variable.name, type_text(variable));
        diagnostic = diagnostic.note(note);
    }
    diagnostic.help(format!("for example: {}", example_call(verb, file, module, kernel)))
}

/// Returns a command line that runs the kernel.
fn example_call(verb: &str, file: &str, module: &Module, kernel: &Function) -> String {
    let mut call = format!("broadloom {verb} {}", quoted(file));
    if module.kernels().count() > 1 {
        let _ = write!(call, " --kernel {}", quoted(spoken(&kernel.name)));
    }
    call.push_str(" --grid 4 --block 64");
    for argument in example_arguments(kernel) {
        let _ = write!(call, " --arg {}", quoted(&argument));
    }
    call
}

fn quoted(word: &str) -> String {
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "._-/+:@%[]=".contains(c));
    if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Returns an argument of the right type for each parameter.
fn example_arguments(kernel: &Function) -> Vec<String> {
    let pointees = pointees(kernel);
    let example = |var: Var| {
        let variable = &kernel.variables[var];
        match pointees.get(&var) {
            Some(pointee) => {
                let contents = if pointee.read { "iota" } else { "zero" };
                let shown = if pointee.written { "=" } else { "" };
                format!("{}[256]:{contents}{shown}", pointee.element().and_then(element_of).unwrap_or(Element::F32))
            }
            None => match element_of(variable.ty).filter(|_| variable.dims.is_empty()) {
                Some(element) => format!("{element}:{}", if element.ty().is_float() { "1.5" } else { "256" }),
                None => format!("{{{}}}", vec!["b8:0"; variable.bytes().unwrap_or(1).min(64) as usize].join("; ")),
            },
        }
    };
    params(kernel).map(example).collect()
}

fn element_of(ty: Type) -> Option<Element> {
    Element::from_name(ty.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_out_of_their_mangling() {
        assert_eq!(plain_name("_Z6vecaddPKfS0_Pfi"), Some("vecadd"));
        assert_eq!(plain_name("_ZN4math6detail3addEPfi"), Some("add"));
        assert_eq!(plain_name("saxpy"), None);
        assert_eq!(plain_name("_Z99x"), None);
        assert_eq!(plain_name("_Z"), None);
    }

    #[test]
    fn odd_words_are_quoted() {
        assert_eq!(quoted("a/b.ptx"), "a/b.ptx");
        assert_eq!(quoted("it's.ptx"), r"'it'\''s.ptx'");
    }
}
