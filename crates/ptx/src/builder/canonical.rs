//! Canonical numbering: renumbers everything as the parser would for the printed text, so that
//! `parse(print(m)) == m` also holds for built modules.
//!
//! Blocks and instructions are numbered in layout order, registers in order of first use, variables with
//! results and parameters first, functions in the order in which the text names them. Unused registers and
//! blocks are removed. Invalid IDs stay invalid, for the verifier to report.

use crate::ids::{Block, Func, Inst, Loc, Reg, Var};
use crate::inst::{Callee, Operand, Symbol};
use crate::module::{Function, Item, Linkage, LocData, Module, Param, Variable};
use crate::operands::MentionMut;
use cranelift_entity::{EntityRef, PrimaryMap};
use std::collections::{HashMap, HashSet};

/// Map from old IDs to new ones, assigned on first use.
struct Renaming<K>(HashMap<K, K>);

impl<K: EntityRef + std::hash::Hash> Renaming<K> {
    fn new() -> Self {
        Renaming(HashMap::new())
    }

    /// Moves `old` to the next number in `kept`. IDs outside `all` stay unchanged.
    fn meet<V: Clone>(&mut self, old: K, all: &PrimaryMap<K, V>, kept: &mut PrimaryMap<K, V>) -> K {
        match (self.0.get(&old), all.get(old)) {
            (Some(renamed), _) => *renamed,
            (None, Some(data)) => {
                let renamed = kept.push(data.clone());
                self.0.insert(old, renamed);
                renamed
            }
            (None, None) => old,
        }
    }

    fn get(&self, old: K) -> K {
        self.0.get(&old).copied().unwrap_or(old)
    }
}

struct FunctionNames<'f> {
    old: &'f Function,
    regs: PrimaryMap<Reg, crate::module::RegData>,
    reg_names: Renaming<Reg>,
    var_names: Renaming<Var>,
    block_names: Renaming<Block>,
}

impl FunctionNames<'_> {
    fn reg(&mut self, reg: &mut Reg) {
        *reg = self.reg_names.meet(*reg, &self.old.regs, &mut self.regs);
    }

    fn block(&self, block: &mut Block) {
        *block = self.block_names.get(*block);
    }

    fn symbol(&self, symbol: &mut Symbol) {
        if let Symbol::Local(var) = symbol {
            *var = self.var_names.get(*var);
        }
    }
}

pub(super) fn renumber_function(function: &mut Function) {
    let old = function.clone();
    let mut names = FunctionNames {
        old: &old,
        regs: PrimaryMap::new(),
        reg_names: Renaming::new(),
        var_names: Renaming::new(),
        block_names: Renaming::new(),
    };
    function.variables = PrimaryMap::new();
    for param in function.results.iter_mut().chain(&mut function.params) {
        match param {
            Param::Memory(var) => *var = names.var_names.meet(*var, &old.variables, &mut function.variables),
            Param::Reg(reg) => names.reg(reg),
        }
    }
    for var in old.variables.keys() {
        names.var_names.meet(var, &old.variables, &mut function.variables);
    }
    function.blocks = PrimaryMap::new();
    for block in &mut function.layout {
        *block = names.block_names.meet(*block, &old.blocks, &mut function.blocks);
    }
    for list in function.targets.values_mut() {
        list.blocks.iter_mut().for_each(|block| names.block(block));
    }
    let mut inst_names: Renaming<Inst> = Renaming::new();
    let mut loc_names: Renaming<Loc> = Renaming::new();
    function.insts = PrimaryMap::new();
    function.locs = PrimaryMap::new();
    for block in function.layout.clone() {
        let Some(data) = function.blocks.get_mut(block) else { continue };
        for inst in &mut data.insts {
            *inst = inst_names.meet(*inst, &old.insts, &mut function.insts);
            let Some(data) = function.insts.get_mut(*inst) else { continue };
            if let Some(loc) = &mut data.loc {
                *loc = meet_loc(&mut loc_names, *loc, &old.locs, &mut function.locs);
            }
            data.change_registers(|reg| names.reg(reg));
            data.change_symbols(|symbol| names.symbol(symbol));
            data.change_mentions(|mention| {
                if let MentionMut::Operand(Operand::Label(block), _) = mention {
                    names.block(block);
                }
            });
        }
    }
    function.regs = names.regs;
}

/// Keeps a source line, after the lines that it was inlined at.
fn meet_loc(names: &mut Renaming<Loc>, loc: Loc, all: &PrimaryMap<Loc, LocData>, kept: &mut PrimaryMap<Loc, LocData>) -> Loc {
    let mut chain = vec![loc];
    while let Some(inner) = chain.last()
        && let Some(LocData { inlined: Some(inlined), .. }) = all.get(*inner)
        && inlined.at < *inner
        && !names.0.contains_key(&inlined.at)
    {
        chain.push(inlined.at);
    }
    for loc in chain.into_iter().rev() {
        let renamed = names.meet(loc, all, kept);
        if let Some(LocData { inlined: Some(inlined), .. }) = kept.get_mut(renamed)
            && let Some(LocData { inlined: Some(before), .. }) = all.get(loc)
        {
            inlined.at = names.get(before.at);
        }
    }
    names.get(loc)
}

/// Calls `see` for every function named in the initialisers of variables.
fn each_func_of_variables<'a>(variables: impl IntoIterator<Item = &'a mut Variable>, see: &mut dyn FnMut(&mut Func)) {
    for init in variables.into_iter().filter_map(|variable| variable.init.as_mut()) {
        init.change_symbols(&mut |symbol| {
            if let Symbol::Func(func) = symbol {
                see(func);
            }
        });
    }
}

/// Calls `see` for every function named in a function's variables and code.
fn each_func(function: &mut Function, see: &mut dyn FnMut(&mut Func)) {
    each_func_of_variables(function.variables.values_mut(), see);
    for data in function.insts.values_mut() {
        data.change_mentions(|mention| match mention {
            MentionMut::Callee(Callee::Direct(func)) => see(func),
            mention => {
                if let Some(Symbol::Func(func)) = mention.symbol() {
                    see(func);
                }
            }
        });
    }
}

/// Orders items: files first, then declarations, variables and definitions. A function that is named before
/// its definition gets a declaration.
pub(super) fn order_items(module: &mut Module) {
    let (mut head, mut declared, mut variables, mut definitions, mut rest) = (vec![], vec![], vec![], vec![], vec![]);
    for item in std::mem::take(&mut module.items) {
        match item {
            Item::File(_) => head.push(item),
            Item::Declaration(_) => declared.push(item),
            Item::Variable(_) => variables.push(item),
            Item::Definition(func) => definitions.push(func),
            Item::Alias(_) | Item::Section(_) | Item::Pragma(_) => rest.push(item),
        }
    }
    let mut early: HashSet<Func> = HashSet::new();
    each_func_of_variables(module.variables.values_mut(), &mut |func| _ = early.insert(*func));
    let mut defined: HashSet<Func> = HashSet::new();
    for func in &definitions {
        let mut mentions: HashSet<Func> = HashSet::new();
        each_func(&mut module.functions[*func], &mut |func| _ = mentions.insert(*func));
        defined.insert(*func);
        early.extend(mentions.difference(&defined));
    }
    let forward = definitions.iter().filter(|func| early.contains(func)).map(|func| Item::Declaration(*func));
    declared.extend(forward);
    module.items = head;
    module.items.extend(declared);
    module.items.extend(variables);
    module.items.extend(definitions.into_iter().map(Item::Definition));
    module.items.extend(rest);
    renumber_functions(module);
}

fn renumber_functions(module: &mut Module) {
    let old = std::mem::take(&mut module.functions);
    let mut names: Renaming<Func> = Renaming::new();
    for item in &mut module.items {
        match item {
            Item::Declaration(func) | Item::Definition(func) => {
                *func = names.meet(*func, &old, &mut module.functions);
            }
            Item::Alias(alias) => {
                alias.alias = names.get(alias.alias);
                alias.aliasee = names.get(alias.aliasee);
            }
            Item::Variable(_) | Item::File(_) | Item::Section(_) | Item::Pragma(_) => {}
        }
    }
    let mut rename = |func: &mut Func| *func = names.get(*func);
    each_func_of_variables(module.variables.values_mut(), &mut rename);
    module.functions.values_mut().for_each(|function| each_func(function, &mut rename));
    // A private function without a definition cannot be printed with the same meaning.
    for function in module.functions.values_mut().filter(|function| !function.has_body) {
        if function.linkage == Linkage::Private {
            function.linkage = Linkage::Extern;
        }
    }
}
