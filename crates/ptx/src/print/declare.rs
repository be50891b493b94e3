//! Declarations as text.

use super::Printer;
use crate::ids::Reg;
use crate::inst::Symbol;
use crate::literal::split_number;
use crate::module::{Directive, Function, Init, Linkage, Param, Signature, Variable};
use crate::types::{Space, Type};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

/// Maximum ratio of numbers to used registers in a register range, so that a range never costs much more than
/// its registers.
const SPARSE: u64 = 8;

/// Returns the names of a function that are not registers.
fn other_names(function: &Function) -> HashSet<&str> {
    let variables = function.variables.values().map(|variable| variable.name.as_str());
    let protos = function.protos.values().map(|proto| proto.name.as_str());
    let targets = function.targets.values().map(|list| list.name.as_str());
    let labels = function.blocks.values().filter_map(|block| block.label.as_deref());
    variables.chain(protos).chain(targets).chain(labels).collect()
}

impl Printer<'_> {
    fn print_linkage(&mut self, linkage: Linkage) {
        self.out.push_str(match linkage {
            Linkage::Private => "",
            Linkage::Visible => ".visible ",
            Linkage::Extern => ".extern ",
            Linkage::Weak => ".weak ",
            Linkage::Common => ".common ",
        });
    }

    /// Prints a declaration without its `;`.
    pub(super) fn print_variable(&mut self, variable: &Variable, function: Option<&Function>) {
        self.print_linkage(variable.linkage);
        let _ = write!(self.out, "{}", variable.space);
        if let Some(bank) = variable.bank {
            let _ = write!(self.out, "[{bank}]");
        }
        if variable.managed {
            self.out.push_str(" .attribute(.managed)");
        }
        if let Some((a, b)) = variable.unified {
            let _ = write!(self.out, " .attribute(.unified({a}, {b}))");
        }
        // A pointer's own `.align` follows `.ptr`; the parameter's comes before the type.
        if let Some(align) = variable.align {
            let _ = write!(self.out, " .align {align}");
        }
        if variable.vector > 1 {
            let _ = write!(self.out, " .v{}", variable.vector);
        }
        let _ = write!(self.out, " {}", variable.ty);
        if let Some(pointer) = variable.pointer {
            self.out.push_str(" .ptr");
            if pointer.space != Space::Generic {
                let _ = write!(self.out, " {}", pointer.space);
            }
            if let Some(align) = pointer.align {
                let _ = write!(self.out, " .align {align}");
            }
        }
        let _ = write!(self.out, " {}", variable.name);
        for dim in &variable.dims {
            match dim {
                Some(size) => {
                    let _ = write!(self.out, "[{size}]");
                }
                None => self.out.push_str("[]"),
            }
        }
        if let Some(init) = &variable.init {
            self.out.push_str(" = ");
            self.print_init(init, function);
        }
    }

    fn print_init(&mut self, init: &Init, function: Option<&Function>) {
        match init {
            Init::Imm(imm) => {
                let _ = write!(self.out, "{imm}");
            }
            Init::List(list) => {
                self.out.push('{');
                for (index, init) in list.iter().enumerate() {
                    if index > 0 {
                        self.out.push_str(", ");
                    }
                    self.print_init(init, function);
                }
                self.out.push('}');
            }
            Init::Settings(list) => {
                let settings: Vec<String> = list.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                let _ = write!(self.out, "{{{}}}", settings.join(", "));
            }
            Init::Address { symbol, offset, generic, mask } => {
                if let Some(mask) = mask {
                    let _ = write!(self.out, "0x{mask:X}(");
                }
                if *generic {
                    self.out.push_str("generic(");
                }
                self.print_symbol(*symbol, function);
                if *generic {
                    self.out.push(')');
                }
                self.print_offset(*offset);
                if mask.is_some() {
                    self.out.push(')');
                }
            }
        }
    }

    pub(super) fn print_offset(&mut self, offset: i64) {
        match offset {
            0 => {}
            // NVIDIA's assembler only accepts a sum: `+-4`, not `-4`.
            offset => {
                let _ = write!(self.out, "+{offset}");
            }
        }
    }

    pub(super) fn print_symbol(&mut self, symbol: Symbol, function: Option<&Function>) {
        let name = match (symbol, function) {
            (Symbol::Func(func), _) => &self.module.functions[func].name,
            (Symbol::Local(var), Some(function)) => &function.variables[var].name,
            (Symbol::Var(var) | Symbol::Local(var), _) => &self.module.variables[var].name,
        };
        self.out.push_str(name);
    }

    fn print_params(&mut self, function: &Function, params: &[Param]) {
        self.out.push('(');
        for (index, param) in params.iter().enumerate() {
            self.out.push_str(if index > 0 { ",\n\t" } else { "\n\t" });
            match param {
                Param::Memory(var) => self.print_variable(&function.variables[*var], Some(function)),
                Param::Reg(reg) => {
                    let reg = &function.regs[*reg];
                    let _ = write!(self.out, ".reg {} {}", reg.ty, reg.name);
                }
            }
        }
        self.out.push_str(if params.is_empty() { ")" } else { "\n)" });
    }

    fn print_directives(&mut self, directives: &[Directive], separator: &str) {
        for directive in directives {
            match directive {
                Directive::Words("attribute.unified", _) => {}
                Directive::Words(word, numbers) => {
                    let _ = write!(self.out, "{separator}.{word}");
                    for (index, number) in numbers.iter().enumerate() {
                        let _ = write!(self.out, "{} {number}", if index > 0 { "," } else { "" });
                    }
                }
                Directive::Pragma(text) => {
                    let _ = write!(self.out, "{separator}.pragma \"{text}\";");
                }
            }
        }
    }

    pub(super) fn print_function(&mut self, function: &Function, with_body: bool) {
        self.out.push('\n');
        self.print_linkage(function.linkage);
        self.out.push_str(if function.is_kernel { ".entry " } else { ".func " });
        if let Some([a, b, c, d]) = function.directive("attribute.unified") {
            let wide = |high: u32, low: u32| (u64::from(high) << 32) | u64::from(low);
            let _ = write!(self.out, ".attribute(.unified({}, {})) ", wide(*a, *b), wide(*c, *d));
        }
        if !function.results.is_empty() {
            self.print_params(function, &function.results);
            self.out.push(' ');
        }
        self.out.push_str(&function.name);
        self.print_params(function, &function.params);
        // A kernel that is declared before its definition has its directives at the definition.
        if with_body || !function.is_kernel || !function.has_body {
            self.print_directives(&function.directives, "\n");
        }
        if !with_body {
            self.line(";");
            return;
        }
        self.line("\n{");
        self.print_registers(function);
        self.print_locals(function);
        self.print_lists(function);
        self.print_blocks(function);
        self.line("}");
    }

    /// Prints registers by type. Registers named by a prefix and a number form one range.
    fn print_registers(&mut self, function: &Function) {
        let params: HashSet<Reg> = function
            .params
            .iter()
            .chain(&function.results)
            .filter_map(|param| match param {
                Param::Reg(reg) => Some(*reg),
                Param::Memory(_) => None,
            })
            .collect();
        let mut ranges: BTreeMap<(Type, &str), Vec<u64>> = BTreeMap::new();
        let mut prefix_types: HashMap<&str, HashSet<Type>> = HashMap::new();
        let mut singles: BTreeMap<Type, Vec<&str>> = BTreeMap::new();
        for (reg, data) in &function.regs {
            if let Some((prefix, number)) = split_number(&data.name) {
                if params.contains(&reg) {
                    // A parameter of this name prevents a range that would include it.
                    prefix_types.entry(prefix).or_default().extend(Type::ALL.iter().copied());
                    continue;
                }
                ranges.entry((data.ty, prefix)).or_default().push(number);
                prefix_types.entry(prefix).or_default().insert(data.ty);
            } else if !params.contains(&reg) {
                singles.entry(data.ty).or_default().push(&data.name);
            }
        }
        let others = other_names(function);
        for ((ty, prefix), numbers) in ranges {
            let most = numbers.iter().copied().max().unwrap_or(0);
            let dense = most < SPARSE * numbers.len() as u64 + 64;
            // A range also declares the numbers in between: none of them may be the name of something else.
            let free = || {
                let known: HashSet<u64> = numbers.iter().copied().collect();
                (0..most).filter(|number| !known.contains(number)).all(|number| {
                    let name = format!("{prefix}{number}");
                    !others.contains(name.as_str()) && !self.names.contains(name.as_str())
                })
            };
            if dense && prefix_types[prefix].len() == 1 && free() {
                let _ = writeln!(self.out, "\t.reg {ty} {prefix}<{}>;", most + 1);
            } else {
                for number in numbers {
                    let _ = writeln!(self.out, "\t.reg {ty} {prefix}{number};");
                }
            }
        }
        for (ty, names) in singles {
            let _ = writeln!(self.out, "\t.reg {ty} {};", names.join(", "));
        }
    }

    fn print_locals(&mut self, function: &Function) {
        let params: HashSet<_> = function
            .params
            .iter()
            .chain(&function.results)
            .filter_map(|param| match param {
                Param::Memory(var) => Some(*var),
                Param::Reg(_) => None,
            })
            .collect();
        for (var, variable) in &function.variables {
            if !params.contains(&var) {
                self.out.push('\t');
                self.print_variable(variable, Some(function));
                self.line(";");
            }
        }
    }

    fn print_lists(&mut self, function: &Function) {
        for proto in function.protos.values() {
            self.print_prototype(proto);
        }
        for list in function.targets.values() {
            let labels: Vec<String> = list.blocks.iter().map(|block| super::body::block_name(function, *block)).collect();
            let _ = writeln!(self.out, "{}:\t.branchtargets {};", list.name, labels.join(", "));
        }
    }

    fn print_prototype(&mut self, proto: &Signature) {
        let _ = write!(self.out, "{}:\t.callprototype ", proto.name);
        if !proto.results.is_empty() {
            self.print_prototype_params(&proto.results);
            self.out.push(' ');
        }
        self.out.push('_');
        if !proto.params.is_empty() {
            self.out.push(' ');
            self.print_prototype_params(&proto.params);
        }
        self.print_directives(&proto.directives, " ");
        self.line(";");
    }

    fn print_prototype_params(&mut self, params: &[Variable]) {
        self.out.push('(');
        for (index, param) in params.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.print_variable(param, None);
        }
        self.out.push(')');
    }
}
