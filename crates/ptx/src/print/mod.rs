//! Printer from [`Module`] to text that NVIDIA's tools accept.
//!
//! The text is canonical: equal modules give equal texts, and parsing the text gives the same module. All
//! declarations of a function are at its top, with registers as ranges where their names allow it.

mod body;
mod declare;

use crate::ids::Func;
use crate::module::{Function, Item, Module, Section};
use std::collections::HashSet;
use std::fmt::Write as _;

/// Prints a module.
///
/// ```
/// # use broadloom_diag::Sources;
/// let mut sources = Sources::new();
/// let id = sources.add("k.ptx", ".version 7.0 .target sm_75 .address_size 64 .entry k() { ret ; }");
/// let module = broadloom_ptx::parse(&sources, id).unwrap();
/// assert!(broadloom_ptx::print(&module).contains("\tret;\n"));
/// ```
pub fn print(module: &Module) -> String {
    let mut printer = Printer::new(module);
    printer.print_module();
    printer.out
}

/// Printer of parts of a module: functions, single instructions.
pub struct Printer<'m> {
    module: &'m Module,
    /// Names of the module's variables and functions, collected when a function is printed.
    names: HashSet<&'m str>,
    out: String,
}

impl<'m> Printer<'m> {
    /// Creates a printer for parts of a module.
    pub fn new(module: &'m Module) -> Self {
        Printer { module, names: HashSet::new(), out: String::new() }
    }

    /// Prints one instruction, without a newline.
    pub fn instruction(mut self, function: &Function, inst: crate::ids::Inst) -> String {
        self.print_instruction(function, &function.insts[inst]);
        self.out
    }

    fn collect_names(&mut self) {
        let variables = self.module.variables.values().map(|variable| variable.name.as_str());
        let functions = self.module.functions.values().map(|function| function.name.as_str());
        self.names = variables.chain(functions).collect();
    }

    /// Prints a function with its body.
    pub fn function(mut self, func: Func) -> String {
        self.collect_names();
        self.print_function(&self.module.functions[func], true);
        self.out
    }

    /// Prints a function of either form, which need not be in the module. Only the register form can be
    /// parsed again.
    pub fn body(mut self, function: &Function) -> String {
        self.collect_names();
        self.print_function(function, true);
        self.out
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn print_module(&mut self) {
        let module = self.module;
        self.collect_names();
        let _ = writeln!(self.out, ".version {}", module.version);
        let _ = write!(self.out, ".target sm_{}", module.target.sm);
        self.out.extend(module.target.suffix);
        for option in &module.target.options {
            let _ = write!(self.out, ", {option}");
        }
        let _ = writeln!(self.out, "\n.address_size {}", module.address_size);
        for item in &module.items {
            match item {
                Item::Variable(var) => {
                    self.out.push('\n');
                    self.print_variable(&module.variables[*var], None);
                    self.line(";");
                }
                Item::Declaration(func) => self.print_function(&module.functions[*func], false),
                Item::Definition(func) => self.print_function(&module.functions[*func], true),
                Item::Alias(alias) => {
                    let (new, old) = (&module.functions[alias.alias].name, &module.functions[alias.aliasee].name);
                    let _ = writeln!(self.out, "\n.alias {new}, {old};");
                }
                Item::File(file) => {
                    let _ = write!(self.out, "\n.file {} \"{}\"", file.number, file.name);
                    if let Some((time, size)) = file.stamp {
                        let _ = write!(self.out, ", {time}, {size}");
                    }
                    self.out.push('\n');
                }
                Item::Section(section) => self.print_section(section),
                Item::Pragma(text) => {
                    let _ = writeln!(self.out, "\n.pragma \"{text}\";");
                }
            }
        }
    }

    fn print_section(&mut self, section: &Section) {
        if section.name == "@@DWARF" {
            section.lines.iter().for_each(|line| self.line(line));
            return;
        }
        let _ = writeln!(self.out, "\n.section {}\n{{", section.name);
        section.lines.iter().for_each(|line| self.line(line));
        self.line("}");
    }
}
