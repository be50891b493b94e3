//! The explanation as text.

use super::inventory::Inventory;
use crate::input::Input;
use crate::kernel::{params, type_text};
use crate::pointers::{Pointee, pointees};
use crate::terminal::{Style, Terminal, counted};
use broadloom::device::param_layout;
use broadloom::diag::{Diagnostics, printable};
use broadloom::ptx::{Func, Function, Item, Linkage, Module, Param, Reach, Space, Type, Variable};

/// Column at which values start.
const COLUMN: usize = 16;

/// Writes the description of a module.
pub fn write(input: &Input, module: &Module, terminal: &mut Terminal) {
    head(input, module, terminal);
    for (func, function) in module.functions.iter().filter(|(_, function)| function.has_body) {
        body(module, func, function, terminal);
    }
    variables(module, terminal);
}

/// Writes the unsupported instructions, one line each.
pub fn write_refused(input: &Input, refused: &Diagnostics, terminal: &mut Terminal) {
    if refused.is_empty() {
        terminal.write("\nevery instruction can be executed\n");
        return;
    }
    heading(terminal, "what cannot be executed");
    for diagnostic in refused {
        let place = diagnostic.primary.as_ref().map(|label| format!("{}: ", input.sources.place(label.span)));
        terminal.write(&format!("  {}{}\n", place.unwrap_or_default(), diagnostic.message));
    }
    if refused.left_out() > 0 {
        terminal.write(&format!("  … and {} more\n", refused.left_out()));
    }
}

/// Writes a heading.
fn heading(terminal: &mut Terminal, text: &str) {
    let line = format!("\n{}\n", terminal.styled(Style::Bold, text));
    terminal.write(&line);
}

/// Writes a line with a name in the first column.
fn line(terminal: &mut Terminal, name: &str, text: &str) {
    let name = terminal.styled(Style::Dim, &format!("  {name:<width$}", width = COLUMN - 2));
    terminal.write(&format!("{name}{text}\n"));
}

fn head(input: &Input, module: &Module, terminal: &mut Terminal) {
    let target = &module.target;
    let suffix = target.suffix.map(String::from).unwrap_or_default();
    let name = terminal.styled(Style::Bold, input.name());
    terminal.write(&format!(
        "{name}: PTX {} for sm_{}{suffix}, addresses of {} bits\n",
        module.version, target.sm, module.address_size
    ));
    let files = module.items.iter().filter_map(|item| match item {
        Item::File(file) => Some(file.name.as_str()),
        Item::Variable(_) | Item::Declaration(_) | Item::Definition(_) => None,
        Item::Alias(_) | Item::Section(_) | Item::Pragma(_) => None,
    });
    let files: Vec<&str> = files.collect();
    if let [first, others @ ..] = files.as_slice() {
        let more = if others.is_empty() { String::new() } else { format!(" and {}", counted(others.len() as u64, "more file")) };
        terminal.write(&format!("compiled from {}{more}\n", printable(first)));
    }
}

fn body(module: &Module, func: Func, function: &Function, terminal: &mut Terminal) {
    heading(terminal, &format!("{} {}", if function.is_kernel { "kernel" } else { "function" }, function.name));
    if function.is_kernel {
        kernel_params(function, terminal);
        bounds(function, terminal);
    } else {
        let words = |params: &[Param]| params.iter().map(|param| param_text(function, *param)).collect::<Vec<_>>().join(", ");
        line(terminal, "signature", &format!("({}) -> ({})", words(&function.params), words(&function.results)));
    }
    memory(module, func, function, terminal);
    let inventory = Inventory::of(function);
    let total: usize = inventory.registers.values().sum();
    let registers = inventory.registers.iter().map(|(ty, count)| format!("{count} {ty}")).collect::<Vec<_>>();
    line(terminal, "registers", &format!("{total}: {}", word_list(&registers)));
    instructions(&inventory, terminal);
    let mut called: Vec<String> = inventory.functions.iter().map(|func| module.functions[*func].name.clone()).collect();
    called.extend(inventory.calls_indirectly.then(|| "whatever a register points to".to_owned()));
    if !called.is_empty() {
        line(terminal, "calls", &called.join(", "));
    }
}

fn kernel_params(function: &Function, terminal: &mut Terminal) {
    let layout = param_layout(function);
    let Some(last) = layout.last() else {
        line(terminal, "parameters", "none");
        return;
    };
    let total = counted(last.offset + last.bytes, "byte");
    line(terminal, "parameters", &format!("{}, {total}", layout.len()));
    let pointees = pointees(function);
    for (info, var) in layout.iter().zip(params(function)) {
        let ty = type_text(&function.variables[var]);
        let usage = pointees.get(&var).map(Pointee::to_string).unwrap_or_default();
        line(terminal, "", format!("+{:<5} {ty:<10} {:<24} {usage}", info.offset, info.name).trim_end());
    }
}

fn bounds(function: &Function, terminal: &mut Terminal) {
    let threads = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(" × ");
    if let Some(numbers) = function.directive("reqntid") {
        line(terminal, "launch", &format!("blocks of exactly {} threads", threads(numbers)));
    }
    if let Some(numbers) = function.directive("maxntid") {
        line(terminal, "launch", &format!("blocks of at most {} threads", threads(numbers)));
    }
}

/// Writes the shared memory of a kernel, its callees and the module, and its local memory.
fn memory(module: &Module, func: Func, function: &Function, terminal: &mut Terminal) {
    let reach = Reach::of(module, func);
    let own = reach.functions.iter().flat_map(|func| module.functions[*func].variables.values());
    let shared = own.chain(reach.variables.iter().map(|var| &module.variables[*var]));
    let shared: Vec<&Variable> = shared.filter(|variable| variable.space == Space::Shared).collect();
    let local = function.variables.values().filter(|variable| variable.space == Space::Local);
    for (name, list) in [("shared", shared), ("local", local.collect())] {
        if !list.is_empty() {
            let total = list.iter().filter_map(|variable| variable.bytes()).sum();
            let whole: Vec<String> = list.iter().map(|variable| format!("{} {}", variable.name, type_text(variable))).collect();
            line(terminal, name, &format!("{}: {}", counted(total, "byte"), word_list(&whole)));
        }
    }
}

fn instructions(inventory: &Inventory, terminal: &mut Terminal) {
    line(terminal, "instructions", &inventory.instructions().to_string());
    let known = inventory.classes.iter().map(|(class, names)| (class.title(), names));
    let opaque = (!inventory.opaque.is_empty()).then_some(("not in the table", &inventory.opaque));
    for (class, names) in known.chain(opaque) {
        let total: usize = names.values().sum();
        let mut most_used: Vec<(&String, &usize)> = names.iter().collect();
        most_used.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
        let words: Vec<String> = most_used.iter().map(|(name, count)| format!("{count} {name}")).collect();
        for (index, row) in filled(&words).iter().enumerate() {
            let label = if index == 0 { format!("{total:>5} {class:<14}") } else { " ".repeat(20) };
            line(terminal, "", &format!("{label} {row}"));
        }
    }
}

/// Joins words with commas to rows that fit a terminal.
fn filled(words: &[String]) -> Vec<String> {
    const WIDTH: usize = 76;
    let mut rows: Vec<String> = vec![];
    for (index, word) in words.iter().enumerate() {
        let word = if index + 1 < words.len() { format!("{word},") } else { word.clone() };
        match rows.last_mut() {
            Some(row) if row.len() + 1 + word.len() <= WIDTH => {
                row.push(' ');
                row.push_str(&word);
            }
            Some(_) | None => rows.push(word),
        }
    }
    rows
}

fn variables(module: &Module, terminal: &mut Terminal) {
    let lines: Vec<(String, String)> = module
        .variables
        .values()
        .map(|variable| {
            let linkage = match variable.linkage {
                Linkage::Private => "",
                Linkage::Visible => ", visible",
                Linkage::Extern => ", extern",
                Linkage::Weak => ", weak",
                Linkage::Common => ", common",
            };
            let size = variable.bytes().map_or_else(|| "too large".to_owned(), |bytes| counted(bytes, "byte"));
            (variable.space.to_string(), format!("{:<10} {}  ({size}{linkage})", type_text(variable), variable.name))
        })
        .collect();
    if !lines.is_empty() {
        heading(terminal, "variables of the module");
        lines.iter().for_each(|(space, text)| line(terminal, space, text));
    }
}

fn param_text(function: &Function, param: Param) -> String {
    match param {
        Param::Memory(var) => type_text(&function.variables[var]),
        Param::Reg(reg) => reg_type(function.regs[reg].ty),
    }
}

fn reg_type(ty: Type) -> String {
    format!(".reg {ty}")
}

/// Joins words, and shortens a long list.
fn word_list(words: &[String]) -> String {
    const SHOWN: usize = 12;
    match words.len() {
        n if n > SHOWN => format!("{}, and {} more", words[..SHOWN].join(", "), n - SHOWN),
        _ => words.join(", "),
    }
}
