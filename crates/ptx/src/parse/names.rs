//! Names inside a function. Scopes of the text are flattened to one table of unique names.
//!
//! `{ }` opens a scope for registers, variables, labels, prototypes and target lists. The module in memory
//! has no scopes, so a conflicting name gets a suffix. A register or `.param` variable with the name and type
//! of one in a closed scope *is* that one. Compilers open a scope per call with the same `param0` each time,
//! and a hundred calls should not need a hundred variables.
//!
//! Registers of a range (`%r<1000>`) are created on first use.

use crate::ids::{Block, Proto, Reg, Targets, Var};
use crate::inst::Symbol;
use crate::literal::split_number;
use crate::module::{Function, Param, RegData, Variable};
use crate::types::{Space, Type};
use broadloom_diag::Span;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Returns the most similar name. Large sets are skipped, because the search would be too slow.
fn nearest_of<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    const MOST: usize = 1000;
    if known.clone().nth(MOST).is_some() { None } else { crate::select::nearest(name, known) }
}

/// Meaning of a name.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    /// Register, created on first use.
    Reg { ty: Type, reg: Option<Reg> },
    /// Vector of registers (`.reg .v4 .f32 v`).
    Vector { ty: Type, regs: Vec<Option<Reg>> },
    /// A variable or parameter.
    Local(Var),
    /// A prototype.
    Proto(Proto),
    /// A list of labels.
    Targets(Targets),
}

/// Properties that two `.param` variables must share to be merged.
#[derive(PartialEq, Eq, Hash)]
struct ParamKey {
    name: String,
    ty: Type,
    vector: u8,
    dims: Vec<Option<u64>>,
    align: Option<u32>,
}

impl ParamKey {
    /// Creates a key. `name` is the name in the text.
    fn new(name: &str, variable: &Variable) -> Self {
        let Variable { ty, vector, dims, align, .. } = variable;
        ParamKey { name: name.to_owned(), ty: *ty, vector: *vector, dims: dims.clone(), align: *align }
    }
}

#[derive(Default)]
struct NameScope<'a> {
    entries: HashMap<&'a str, (Entry, Span)>,
    ranges: HashMap<&'a str, (u64, Type, Span)>,
    /// Single names that end in a number, by prefix.
    numbered: HashMap<&'a str, Vec<(u64, Span)>>,
    range_regs: HashMap<(&'a str, u64), Reg>,
    labels: HashMap<&'a str, (Block, Span)>,
    wanted: HashMap<&'a str, (Block, Span)>,
}

/// All names of a function that is being parsed.
pub(super) struct Names<'a> {
    scopes: Vec<NameScope<'a>>,
    taken: HashSet<String>,
    /// Names of the module so far.
    globals: Rc<HashMap<&'a str, Symbol>>,
    /// Last suffix of each name, so that the next one is found directly.
    suffixes: HashMap<String, usize>,
    /// Registers of closed scopes, by their names in the text.
    closed_regs: HashMap<(String, Type), Reg>,
    closed_params: HashMap<ParamKey, Vec<Var>>,
    /// Names and labels of closed scopes, for messages.
    closed_names: HashMap<&'a str, Span>,
    closed_labels: HashMap<&'a str, Span>,
    /// Blocks created for labels that turned out to be another block.
    pub(super) same: HashMap<Block, Block>,
    temporaries: bool,
}

impl<'a> Names<'a> {
    pub(super) fn new(globals: Rc<HashMap<&'a str, Symbol>>) -> Self {
        Names {
            globals,
            scopes: vec![NameScope::default()],
            taken: HashSet::new(),
            suffixes: HashMap::new(),
            closed_regs: HashMap::new(),
            closed_params: HashMap::new(),
            closed_names: HashMap::new(),
            closed_labels: HashMap::new(),
            same: HashMap::new(),
            temporaries: false,
        }
    }

    fn top(&mut self) -> &mut NameScope<'a> {
        if self.scopes.is_empty() {
            self.scopes.push(NameScope::default());
        }
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    /// Returns a similar name that is unique in the function and in the module so far. The declarations of a
    /// function move to its top, where they would shadow a name of the module.
    fn unique(&mut self, name: &str) -> String {
        if !self.globals.contains_key(name) && self.taken.insert(name.to_owned()) {
            return name.to_owned();
        }
        let mut count = self.suffixes.get(name).copied().unwrap_or(0);
        let free = loop {
            count += 1;
            let free = format!("{name}_{count}");
            if !self.globals.contains_key(free.as_str()) && self.taken.insert(free.clone()) {
                break free;
            }
        };
        self.suffixes.insert(name.to_owned(), count);
        free
    }

    pub(super) fn open(&mut self) {
        self.scopes.push(NameScope::default());
    }

    pub(super) fn depth(&self) -> usize {
        self.scopes.len()
    }

    /// Closes the innermost scope. Labels used but not defined in it are looked up in the next one.
    pub(super) fn close(&mut self, function: &Function) {
        let Some(scope) = self.scopes.pop() else { return };
        for (name, (entry, _)) in &scope.entries {
            match entry {
                Entry::Reg { ty, reg: Some(reg) } => {
                    self.closed_regs.insert(((*name).to_owned(), *ty), *reg);
                }
                Entry::Local(var) if function.variables[*var].space == Space::Param => {
                    self.closed_params.entry(ParamKey::new(name, &function.variables[*var])).or_default().push(*var);
                }
                Entry::Reg { .. } | Entry::Vector { .. } | Entry::Local(_) | Entry::Proto(_) | Entry::Targets(_) => {}
            }
        }
        for (name, (_, span)) in &scope.entries {
            self.closed_names.entry(name).or_insert(*span);
        }
        for (name, (_, span)) in &scope.labels {
            self.closed_labels.entry(name).or_insert(*span);
        }
        for ((prefix, number), reg) in scope.range_regs {
            self.closed_regs.insert((format!("{prefix}{number}"), function.regs[reg].ty), reg);
        }
        let mut left: Vec<(&str, (Block, Span))> = scope.wanted.into_iter().collect();
        left.sort_by_key(|(_, (block, _))| *block);
        let outer = self.top();
        let mut same = vec![];
        for (name, (block, span)) in left {
            match outer.labels.get(name).or_else(|| outer.wanted.get(name)) {
                Some((other, _)) => same.push((block, *other)),
                None => {
                    outer.wanted.insert(name, (block, span));
                }
            }
        }
        self.same.extend(same);
    }

    /// Returns the undefined labels, in text order.
    pub(super) fn undefined_labels(&mut self) -> Vec<(&'a str, Span)> {
        let mut left: Vec<(&'a str, Span)> = self.top().wanted.iter().map(|(name, (_, span))| (*name, *span)).collect();
        left.sort_by_key(|(_, span)| *span);
        left
    }

    /// Declares a name. Returns the location of the earlier declaration if the scope has it already.
    pub(super) fn declare(&mut self, name: &'a str, entry: Entry, span: Span) -> Result<(), Span> {
        let scope = self.top();
        if let Some((_, earlier)) = scope.entries.get(name) {
            return Err(*earlier);
        }
        if let Some((prefix, number)) = split_number(name)
            && let Some((count, _, earlier)) = scope.ranges.get(prefix)
            && number < *count
        {
            return Err(*earlier);
        }
        if let Some((prefix, number)) = split_number(name) {
            scope.numbered.entry(prefix).or_default().push((number, span));
        }
        scope.entries.insert(name, (entry, span));
        Ok(())
    }

    /// Declares `prefix<count>`. Returns the location of an earlier declaration of it or of one of its
    /// registers.
    pub(super) fn declare_range(&mut self, prefix: &'a str, count: u64, ty: Type, span: Span) -> Result<(), Span> {
        let scope = self.top();
        // NVIDIA's assembler allows a single register of number 0 before a range.
        let inside = |number: u64| number > 0 && number < count;
        let single = scope.numbered.get(prefix).and_then(|list| list.iter().find(|(number, _)| inside(*number)));
        let earlier = scope.ranges.get(prefix).map(|(_, _, earlier)| *earlier).or(single.map(|(_, earlier)| *earlier));
        match earlier {
            Some(earlier) => Err(earlier),
            None => {
                scope.ranges.insert(prefix, (count, ty, span));
                Ok(())
            }
        }
    }

    /// Returns the range with the prefix of a name whose number is missing or out of range: its length and
    /// location.
    pub(super) fn range_before(&self, name: &str) -> Option<(&'a str, u64, Span)> {
        let (prefix, number) = split_number(name).unwrap_or((name, u64::MAX));
        let (known, (count, _, span)) = self.scopes.iter().rev().find_map(|scope| scope.ranges.get_key_value(prefix))?;
        (number >= *count).then_some((*known, *count, *span))
    }

    /// Returns the location of a name in a closed scope.
    pub(super) fn closed_name(&self, name: &str) -> Option<Span> {
        self.closed_names.get(name).copied()
    }

    /// Returns the location of a label, in an open scope or else in a closed one.
    pub(super) fn label_place(&self, name: &str) -> Option<Span> {
        let open = self.scopes.iter().rev().find_map(|scope| scope.labels.get(name)).map(|(_, span)| *span);
        open.or_else(|| self.closed_labels.get(name).copied())
    }

    /// Returns the declared name most similar to a misspelt one.
    pub(super) fn nearest_name(&self, name: &str) -> Option<&'a str> {
        let known = self.scopes.iter().flat_map(|scope| scope.entries.keys().copied());
        nearest_of(name, known)
    }

    /// Returns the label most similar to a misspelt one.
    pub(super) fn nearest_label(&self, name: &str) -> Option<&'a str> {
        let known = self.scopes.iter().flat_map(|scope| scope.labels.keys().copied());
        nearest_of(name, known)
    }

    fn make_reg(&mut self, function: &mut Function, name: &str, ty: Type) -> Reg {
        if let Some(reg) = self.closed_regs.remove(&(name.to_owned(), ty)) {
            return reg;
        }
        let name = self.unique(name);
        function.regs.push(RegData { name, ty })
    }

    /// Creates a register that the text does not name.
    pub(super) fn make_temporary(&mut self, function: &mut Function, name: &str, ty: Type) -> Reg {
        self.temporaries = true;
        let name = self.unique(name);
        function.regs.push(RegData { name, ty })
    }

    /// Tests if there are registers that the text does not name.
    pub(super) fn has_temporaries(&self) -> bool {
        self.temporaries
    }

    /// Returns an element of a vector of registers and creates it on first use.
    pub(super) fn vector_element(&mut self, function: &mut Function, name: &str, index: usize) -> Option<Reg> {
        let scope = self.scopes.iter().rposition(|scope| scope.entries.contains_key(name))?;
        let Some((Entry::Vector { ty, regs }, _)) = self.scopes[scope].entries.get(name) else { return None };
        let (ty, known) = (*ty, *regs.get(index)?);
        let reg = known.unwrap_or_else(|| {
            let part = ["x", "y", "z", "w"][index % 4];
            self.make_reg(function, &format!("{name}_{part}"), ty)
        });
        if let Some((Entry::Vector { regs, .. }, _)) = self.scopes[scope].entries.get_mut(name) {
            regs[index] = Some(reg);
        }
        Some(reg)
    }

    /// Adds a variable, or reuses one of a closed scope.
    pub(super) fn make_local(&mut self, function: &mut Function, mut variable: Variable) -> Var {
        if variable.space == Space::Param
            && let Some(list) = self.closed_params.get_mut(&ParamKey::new(&variable.name, &variable))
            && let Some(var) = list.pop()
        {
            return var;
        }
        variable.name = self.unique(&variable.name);
        function.variables.push(variable)
    }

    /// Returns a unique name for a prototype or target list.
    pub(super) fn make_name(&mut self, name: &str) -> String {
        self.unique(name)
    }

    /// Looks up a name, from the innermost scope outwards.
    pub(super) fn find(&mut self, function: &mut Function, name: &'a str) -> Option<Entry> {
        let number = split_number(name);
        for index in (0..self.scopes.len()).rev() {
            let scope = &self.scopes[index];
            if let Some((entry, _)) = scope.entries.get(name) {
                let entry = entry.clone();
                let Entry::Reg { ty, reg: None } = entry else { return Some(entry) };
                let reg = Some(self.make_reg(function, name, ty));
                let entry = Entry::Reg { ty, reg };
                if let Some(slot) = self.scopes[index].entries.get_mut(name) {
                    slot.0 = entry.clone();
                }
                return Some(entry);
            }
            let Some((prefix, number)) = number else { continue };
            let Some((count, ty, _)) = scope.ranges.get(prefix).copied() else { continue };
            if number < count {
                let known = scope.range_regs.get(&(prefix, number)).copied();
                let reg = known.unwrap_or_else(|| self.make_reg(function, name, ty));
                self.scopes[index].range_regs.insert((prefix, number), reg);
                return Some(Entry::Reg { ty, reg: Some(reg) });
            }
        }
        None
    }

    /// Returns the block of a label that is known in the innermost scope.
    pub(super) fn find_label(&mut self, name: &str) -> Option<Block> {
        let scope = self.top();
        scope.labels.get(name).or_else(|| scope.wanted.get(name)).map(|(block, _)| *block)
    }

    /// Returns the block of a label that is used here, which may be defined later or never.
    pub(super) fn want_label(&mut self, function: &mut Function, name: &'a str, span: Span) -> Block {
        let scope = self.top();
        if let Some((block, _)) = scope.labels.get(name).or_else(|| scope.wanted.get(name)) {
            return *block;
        }
        let block = function.blocks.push(Default::default());
        self.top().wanted.insert(name, (block, span));
        block
    }

    /// Returns the block that a label starts, or the location of the earlier label if the scope has it
    /// already.
    pub(super) fn define_label(&mut self, function: &mut Function, name: &'a str, span: Span) -> Result<Block, Span> {
        let scope = self.top();
        if let Some((_, earlier)) = scope.labels.get(name) {
            return Err(*earlier);
        }
        let block = match scope.wanted.remove(name) {
            Some((block, _)) => block,
            None => function.blocks.push(Default::default()),
        };
        self.top().labels.insert(name, (block, span));
        let label = self.unique(name);
        function.blocks[block].label = Some(label);
        Ok(block)
    }

    /// Declares the parameters of a function after its head was parsed.
    pub(super) fn declare_params(&mut self, function: &Function, names: &[(Param, &'a str, Span)]) -> Vec<(&'a str, Span, Span)> {
        let mut twice = vec![];
        for (param, name, span) in names {
            let entry = match param {
                Param::Memory(var) => {
                    self.taken.insert(function.variables[*var].name.clone());
                    Entry::Local(*var)
                }
                Param::Reg(reg) => {
                    self.taken.insert(function.regs[*reg].name.clone());
                    Entry::Reg { ty: function.regs[*reg].ty, reg: Some(*reg) }
                }
            };
            if let Err(earlier) = self.declare(name, entry, *span) {
                twice.push((*name, *span, earlier));
            }
        }
        twice
    }
}
