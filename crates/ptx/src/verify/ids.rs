//! Checks that every ID is valid, and that the items of the module name everything once.

use super::{Checker, codes};
use crate::ids::{Func, Var};
use crate::inst::{Address, Base, Callee, InstData, Operand, Symbol};
use crate::module::{Function, Init, Item, Module, Param};
use crate::types::Space;
use broadloom_diag::Span;
use cranelift_entity::{EntityRef, PrimaryMap};
use std::collections::HashSet;

/// Maximum nesting depth of operands and initialisers.
const MAX_DEPTH: usize = 64;

fn inside<K: EntityRef, V>(map: &PrimaryMap<K, V>, id: K) -> bool {
    id.index() < map.len()
}

/// Description of the object that an invalid ID should name.
type ExpectedObject = Option<&'static str>;

fn unless(ok: bool, what: &'static str) -> ExpectedObject {
    (!ok).then_some(what)
}

impl Checker<'_> {
    pub(super) fn ids(&mut self) {
        self.items();
        let module = self.module;
        for variable in module.variables.values() {
            if let Some(what) = variable.init.as_ref().and_then(|init| init_ids(module, None, init, 0)) {
                self.lost(format!("the initialiser of `{}`", variable.name), what, variable.span);
            }
        }
        for function in module.functions.values() {
            self.function_ids(function);
        }
    }

    fn lost(&mut self, place: String, what: &str, span: Span) {
        self.report(codes::BAD_ID, format!("{place} names {what} that does not exist"), span, "");
    }

    fn items(&mut self) {
        let module = self.module;
        let (mut variables, mut definitions): (HashSet<Var>, HashSet<Func>) = (HashSet::new(), HashSet::new());
        let mut declared: HashSet<Func> = HashSet::new();
        let mut wrong = vec![];
        for item in &module.items {
            match item {
                Item::Variable(var) => match module.variables.get(*var) {
                    None => self.lost("an item".into(), "a variable", Span::default()),
                    Some(variable) if !variables.insert(*var) => wrong.push(format!("`{}` is an item twice", variable.name)),
                    Some(_) => {}
                },
                Item::Declaration(func) => {
                    declared.insert(*func);
                    if !inside(&module.functions, *func) {
                        self.lost("an item".into(), "a function", Span::default());
                    }
                }
                Item::Definition(func) => match module.functions.get(*func) {
                    None => self.lost("an item".into(), "a function", Span::default()),
                    Some(function) if !definitions.insert(*func) => wrong.push(format!("`{}` is defined twice", function.name)),
                    Some(function) if !function.has_body => wrong.push(format!("`{}` is defined without a body", function.name)),
                    Some(_) => {}
                },
                Item::Alias(alias) => {
                    if !inside(&module.functions, alias.alias) || !inside(&module.functions, alias.aliasee) {
                        self.lost("an alias".into(), "a function", Span::default());
                    }
                }
                Item::File(_) | Item::Section(_) | Item::Pragma(_) => {}
            }
        }
        let unnamed = module.variables.iter().filter(|(var, _)| !variables.contains(var));
        wrong.extend(unnamed.map(|(_, variable)| format!("the variable `{}` is no item of the module", variable.name)));
        for (func, function) in &module.functions {
            let named = if function.has_body { definitions.contains(&func) } else { declared.contains(&func) };
            if !named {
                wrong.push(format!("the function `{}` is no item of the module", function.name));
            }
        }
        for message in wrong {
            self.report(codes::BAD_ITEMS, message, Span::default(), "");
        }
    }

    pub(super) fn function_ids(&mut self, function: &Function) {
        let module = self.module;
        let mut seen = HashSet::new();
        for param in function.results.iter().chain(&function.params) {
            let wrong = match param {
                Param::Memory(var) => match function.variables.get(*var) {
                    None => Some("a variable"),
                    Some(variable) => unless(variable.space == Space::Param, "a variable in `.param`"),
                },
                Param::Reg(reg) => unless(inside(&function.regs, *reg), "a register"),
            };
            let key = match param {
                Param::Memory(var) => (0, var.index()),
                Param::Reg(reg) => (1, reg.index()),
            };
            if let Some(what) = wrong {
                self.lost(format!("a parameter of `{}`", function.name), what, function.span);
            } else if !seen.insert(key) {
                let message = format!("two parameters of `{}` are the same", function.name);
                self.report(codes::BAD_PARAM, message, function.span, "");
            }
        }
        for variable in function.variables.values() {
            let init = variable.init.as_ref();
            if let Some(what) = init.and_then(|init| init_ids(module, Some(function), init, 0)) {
                self.lost(format!("the initialiser of `{}`", variable.name), what, variable.span);
            }
        }
        for block in &function.layout {
            if !inside(&function.blocks, *block) {
                self.lost(format!("the layout of `{}`", function.name), "a block", function.span);
            }
        }
        for block in function.blocks.values() {
            let edges = block
                .edges
                .iter()
                .all(|edge| inside(&function.blocks, edge.target) && edge.args.iter().all(|reg| inside(&function.regs, *reg)));
            if !edges || !block.params.iter().all(|reg| inside(&function.regs, *reg)) {
                self.lost(format!("a block of `{}`", function.name), "a block or register", function.span);
            }
        }
        for list in function.targets.values() {
            if !list.blocks.iter().all(|block| inside(&function.blocks, *block)) {
                self.lost(format!("the list `{}` of `{}`", list.name, function.name), "a block", function.span);
            }
        }
        for inst in function.blocks.values().flat_map(|block| &block.insts) {
            if !inside(&function.insts, *inst) {
                self.lost(format!("a block of `{}`", function.name), "an instruction", function.span);
            }
        }
        for (loc, data) in &function.locs {
            if data.inlined.as_ref().is_some_and(|inlined| inlined.at >= loc) {
                self.lost(format!("a line of `{}`", function.name), "a line before it", function.span);
            }
        }
        for data in function.insts.values() {
            if let Some(what) = inst_ids(module, function, data) {
                self.lost(format!("`{}` in `{}`", data.mnemonic_text(), function.name), what, data.span);
            }
        }
    }
}

fn inst_ids(module: &Module, function: &Function, data: &InstData) -> ExpectedObject {
    let guard = data.guard.and_then(|guard| unless(inside(&function.regs, guard.reg), "a register"));
    let loc = data.loc.and_then(|loc| unless(inside(&function.locs, loc), "a line of the source"));
    guard.or(loc).or_else(|| data.operands.iter().find_map(|operand| operand_ids(module, function, operand, 0)))
}

fn operand_ids(module: &Module, function: &Function, operand: &Operand, depth: usize) -> ExpectedObject {
    if depth > MAX_DEPTH {
        return Some("something nested so deep");
    }
    let each = |list: &[Operand]| list.iter().find_map(|operand| operand_ids(module, function, operand, depth + 1));
    match operand {
        Operand::Reg(reg) | Operand::Not(reg) | Operand::Part { reg, .. } => unless(inside(&function.regs, *reg), "a register"),
        Operand::Symbol(symbol, _) => symbol_id(module, Some(function), *symbol),
        Operand::Memory(address) => address_ids(module, function, *address),
        Operand::Texture(texture) => address_ids(module, function, texture.base).or_else(|| each(&texture.rest)),
        Operand::Vector(list) => each(list),
        Operand::Label(block) => unless(inside(&function.blocks, *block), "a block"),
        Operand::Targets(targets) => unless(inside(&function.targets, *targets), "a list of labels"),
        Operand::Pair(pair) => each(&**pair),
        Operand::Call(call) => {
            let callee = match call.callee {
                Callee::Direct(func) => unless(inside(&module.functions, func), "a function"),
                Callee::Indirect { reg, proto } => unless(inside(&function.regs, reg), "a register")
                    .or_else(|| proto.and_then(|proto| unless(inside(&function.protos, proto), "a prototype"))),
            };
            callee.or_else(|| each(&call.results)).or_else(|| each(&call.arguments))
        }
        Operand::Imm(_) | Operand::Special(_) | Operand::Sink | Operand::Absent => None,
    }
}

fn address_ids(module: &Module, function: &Function, address: Address) -> ExpectedObject {
    match address.base {
        Base::Reg(reg) => unless(inside(&function.regs, reg), "a register"),
        Base::Symbol(symbol) => symbol_id(module, Some(function), symbol),
        Base::Absolute => None,
    }
}

fn symbol_id(module: &Module, function: Option<&Function>, symbol: Symbol) -> ExpectedObject {
    match symbol {
        Symbol::Var(var) => unless(inside(&module.variables, var), "a variable"),
        Symbol::Local(var) => unless(function.is_some_and(|function| inside(&function.variables, var)), "a variable"),
        Symbol::Func(func) => unless(inside(&module.functions, func), "a function"),
    }
}

fn init_ids(module: &Module, function: Option<&Function>, init: &Init, depth: usize) -> ExpectedObject {
    if depth > MAX_DEPTH {
        return Some("something nested so deep");
    }
    match init {
        Init::Imm(_) | Init::Settings(_) => None,
        Init::Address { symbol, .. } => symbol_id(module, function, *symbol),
        Init::List(list) => list.iter().find_map(|init| init_ids(module, function, init, depth + 1)),
    }
}
