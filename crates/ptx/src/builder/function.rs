//! Builder of a function: parameters, registers, variables, blocks.

use super::codes;
use crate::ids::{Block, Func, Loc, Reg, Targets};
use crate::inst::{InstData, Operand, Symbol};
use crate::module::{BlockData, Directive, Function, Linkage, LocData, Param, RegData, TargetList, Variable};
use crate::types::{Space, Type};
use broadloom_diag::{Diagnostic, Diagnostics};
use std::collections::{HashMap, HashSet};

/// Builder of one kernel or function. [`ModuleBuilder::kernel`](super::ModuleBuilder::kernel) and
/// [`ModuleBuilder::function`](super::ModuleBuilder::function) create it, and
/// [`ModuleBuilder::define`](super::ModuleBuilder::define) takes it back.
///
/// Instructions are the methods of [`Instructions`]. A mistake is recorded, and a register is returned
/// nevertheless. [`ModuleBuilder::finish`](super::ModuleBuilder::finish) reports all mistakes at once.
#[derive(Debug)]
pub struct FunctionBuilder {
    pub(super) function: Function,
    pub(super) func: Func,
    pub(super) diagnostics: Diagnostics,
    current: Option<Block>,
    placed: HashSet<Block>,
    loc: Option<Loc>,
    locs: HashMap<LocData, Loc>,
    names: HashSet<String>,
    register_numbers: HashMap<&'static str, u32>,
}

/// Returns the prefix of register names of a type. Each type has its own, so that a function prints one range
/// per type.
const fn prefix(ty: Type) -> &'static str {
    match ty {
        Type::Pred => "%p",
        Type::B8 => "%rc",
        Type::U8 => "%uc",
        Type::S8 => "%sc",
        Type::B16 => "%rs",
        Type::U16 => "%us",
        Type::S16 => "%ss",
        Type::B32 => "%r",
        Type::U32 => "%u",
        Type::S32 => "%s",
        Type::B64 => "%rd",
        Type::U64 => "%ud",
        Type::S64 => "%sd",
        Type::B128 => "%rq",
        Type::F16 => "%h",
        Type::F16x2 => "%hh",
        Type::F32 => "%f",
        Type::F64 => "%fd",
        _ => "%x",
    }
}

impl FunctionBuilder {
    pub(super) fn new(name: &str, is_kernel: bool, func: Func) -> Self {
        let mut function = Function::new(name, is_kernel);
        function.has_body = true;
        function.linkage = if is_kernel { Linkage::Visible } else { Linkage::Private };
        FunctionBuilder {
            function,
            func,
            diagnostics: Diagnostics::new(),
            current: None,
            placed: HashSet::new(),
            loc: None,
            locs: HashMap::new(),
            names: HashSet::new(),
            register_numbers: HashMap::new(),
        }
    }

    /// Returns the name that was asked for.
    pub fn name(&self) -> &str {
        &self.function.name
    }

    /// Returns the code emitted so far.
    pub fn function(&self) -> &Function {
        &self.function
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Sets the linkage. By default kernels are visible and functions private.
    pub fn linkage(&mut self, linkage: Linkage) {
        self.function.linkage = linkage;
    }

    /// Adds a directive: `.maxntid 256`, `.reqntid 32, 4`, `.minnctapersm 2`, `.maxnreg 64`, `.noreturn`, …
    pub fn directive(&mut self, word: &'static str, numbers: &[u32]) {
        self.function.directives.push(Directive::Words(word, numbers.to_vec()));
    }

    /// Returns a name that is unique in this function: the requested one, or that with a number appended.
    pub(super) fn unique(&mut self, wish: &str) -> String {
        let mut name = wish.to_owned();
        let mut count = 0usize;
        while !self.names.insert(name.clone()) {
            count += 1;
            name = format!("{wish}_{count}");
        }
        name
    }

    // Parameters and variables.

    /// Declares a parameter in memory. [`arg`](Self::arg) loads it at once.
    pub fn param(&mut self, name: &str, ty: Type) -> Symbol {
        self.param_variable(Variable::new(name, Space::Param, ty))
    }

    /// Declares a parameter in memory that is more than one value: a struct as an aligned array of bytes, or
    /// a pointer with `.ptr`.
    pub fn param_variable(&mut self, mut variable: Variable) -> Symbol {
        variable.space = Space::Param;
        variable.name = self.unique(&variable.name.clone());
        let var = self.function.variables.push(variable);
        self.function.params.push(Param::Memory(var));
        Symbol::Local(var)
    }

    /// Declares a result in memory. Store it with `st.param` before `ret`.
    pub fn result(&mut self, name: &str, ty: Type) -> Symbol {
        let name = self.unique(name);
        let var = self.function.variables.push(Variable::new(name, Space::Param, ty));
        self.function.results.push(Param::Memory(var));
        Symbol::Local(var)
    }

    /// Declares a variable of the function.
    pub fn variable(&mut self, mut variable: Variable) -> Symbol {
        variable.name = self.unique(&variable.name.clone());
        Symbol::Local(self.function.variables.push(variable))
    }

    fn array(&mut self, space: Space, name: &str, ty: Type, dims: &[u64]) -> Symbol {
        let dims = dims.iter().copied().map(Some).collect();
        self.variable(Variable { dims, ..Variable::new(name, space, ty) })
    }

    /// Declares a variable in shared memory. An empty `dims` means a single element.
    pub fn shared(&mut self, name: &str, ty: Type, dims: &[u64]) -> Symbol {
        self.array(Space::Shared, name, ty, dims)
    }

    /// Declares a variable in local memory. An empty `dims` means a single element.
    pub fn local(&mut self, name: &str, ty: Type, dims: &[u64]) -> Symbol {
        self.array(Space::Local, name, ty, dims)
    }

    // Registers.

    /// Creates a register.
    pub fn reg(&mut self, ty: Type) -> Reg {
        let prefix = prefix(ty);
        let number = self.register_numbers.entry(prefix).or_insert(0);
        let name = loop {
            let name = format!("{prefix}{number}");
            *number += 1;
            if self.names.insert(name.clone()) {
                break name;
            }
        };
        self.function.regs.push(RegData { name, ty })
    }

    /// Creates a register with a given name, which gets a suffix if it is taken.
    pub fn named_reg(&mut self, name: &str, ty: Type) -> Reg {
        let name = self.unique(name);
        self.function.regs.push(RegData { name, ty })
    }

    /// Returns the type of a register.
    pub fn type_of(&self, reg: Reg) -> Option<Type> {
        self.function.regs.get(reg).map(|data| data.ty)
    }

    /// Creates the register that stands for a result after a mistake.
    pub(super) fn spare(&mut self) -> Reg {
        self.reg(Type::B32)
    }

    // Blocks.

    /// Creates a block with a label, which can be branched to and is placed later.
    pub fn block(&mut self, label: &str) -> Block {
        let label = self.unique(label);
        self.function.blocks.push(BlockData { label: Some(label), ..BlockData::default() })
    }

    /// Places a block: the next instruction is its first. Control falls into it from the preceding code.
    pub fn place(&mut self, block: Block) {
        if !self.placed.insert(block) {
            let label = self.function.blocks.get(block).and_then(|data| data.label.as_deref()).unwrap_or("?");
            let message = format!("in `{}`: block `{label}` is placed twice", self.function.name);
            return self.report(Diagnostic::error(codes::BAD_BLOCK, message));
        }
        self.function.layout.push(block);
        self.current = Some(block);
    }

    /// Creates a block and places it here, for example as the head of a loop.
    pub fn label(&mut self, label: &str) -> Block {
        let block = self.block(label);
        self.place(block);
        block
    }

    /// Creates a list of blocks for `brx.idx`.
    pub fn branch_targets(&mut self, name: &str, blocks: &[Block]) -> Targets {
        let name = self.unique(name);
        self.function.targets.push(TargetList { name, blocks: blocks.to_vec() })
    }

    /// Tests if control can fall through to the next instruction.
    pub fn falls_through(&self) -> bool {
        let Some(block) = self.function.layout.last() else { return true };
        let last = self.function.blocks[*block].insts.last();
        last.is_none_or(|inst| !self.function.insts[*inst].is_terminator())
    }

    fn open_block(&mut self) -> Block {
        match self.current {
            Some(block) => block,
            None => {
                let block = self.function.blocks.push(BlockData::default());
                self.placed.insert(block);
                self.function.layout.push(block);
                self.current = Some(block);
                block
            }
        }
    }

    /// Adds `.pragma "…";` before the next instruction.
    pub fn pragma(&mut self, text: &str) {
        let mut block = self.open_block();
        if !self.function.blocks[block].insts.is_empty() {
            self.current = None;
            block = self.open_block();
        }
        self.function.blocks[block].pragmas.push(text.to_owned());
    }

    /// Sets the source line of the following instructions. Other lines may be inlined at it.
    pub fn loc(&mut self, loc: LocData) -> Loc {
        let entry = *self.locs.entry(loc).or_insert_with_key(|data| self.function.locs.push(data.clone()));
        self.loc = Some(entry);
        entry
    }

    pub(super) fn push(&mut self, mut data: InstData) {
        data.loc = self.loc;
        let ends = data.is_control();
        let block = self.open_block();
        let inst = self.function.insts.push(data);
        self.function.blocks[block].insts.push(inst);
        if ends {
            self.current = None;
        }
    }

    /// Checks conditions that are known only at the end.
    pub(super) fn close(&mut self) {
        if self.function.layout.is_empty() {
            self.open_block();
        }
        let mut used: Vec<Block> = self.function.targets.values().flat_map(|list| list.blocks.iter().copied()).collect();
        for data in self.function.insts.values() {
            used.extend(data.operands.iter().filter_map(|operand| match operand {
                Operand::Label(block) => Some(*block),
                _ => None,
            }));
        }
        let mut missing: Vec<Block> = used.into_iter().filter(|block| !self.placed.contains(block)).collect();
        missing.sort();
        missing.dedup();
        for block in missing {
            let label = self.function.blocks.get(block).and_then(|data| data.label.as_deref()).unwrap_or("?");
            let message = format!("in `{}`: block `{label}` is branched to and never placed", self.function.name);
            self.report(Diagnostic::error(codes::BAD_BLOCK, message));
        }
    }
}
