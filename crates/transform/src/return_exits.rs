//! `return_exits`: lets a function that ends threads return instead, and its caller end them.
//!
//! Works on a whole module in register form and leaves it in that form. **Out**: only kernels contain `exit`.
//!
//! A function that may end a thread, directly or by a call, gets one more parameter: the address of a word of
//! the kernel in local memory. It sets the word and returns, and each call of such a function is followed by
//! a test of the word. Functions whose address is taken are called through shared prototypes. If one of them
//! may end a thread, all of them get the parameter. The pass keeps the behaviour of all threads; the place
//! where they end changes.
//!
//! Lanes in lockstep cannot exit from within a call while others have yet to return.

use crate::names::Names;
use crate::write::Writer;
use broadloom_ptx::{
    Address, Base, BlockData, Callee, Func, Function, Guard, Inst, InstData, Item, Module, Opcode, Operand, Param, Reg, RegData,
    Space, Symbol, Type, Variable,
};
use std::collections::{BTreeSet, HashMap};

/// Returns the module without `exit` in called functions; `None` if it has none there.
pub fn run(module: &Module) -> Option<Module> {
    let ending = EndingFunctions::new(module);
    if ending.functions.is_empty() {
        return None;
    }
    let mut changed = module.clone();
    for func in module.functions.keys().filter(|func| module.functions[*func].has_body) {
        let function = &mut changed.functions[func];
        if ending.functions.contains(&func) {
            add_parameter(module, function);
        }
        Rewriting::new(module, &ending, function).run();
    }
    // An alias has a separate signature.
    for item in &module.items {
        if let Item::Alias(alias) = item
            && ending.functions.contains(&alias.aliasee)
            && !module.functions[alias.alias].has_body
        {
            add_parameter(module, &mut changed.functions[alias.alias]);
        }
    }
    Some(changed)
}

/// Functions that may end a thread.
struct EndingFunctions {
    functions: BTreeSet<Func>,
    /// True if a function that is called through a pointer may.
    through_pointers: bool,
}

impl EndingFunctions {
    fn new(module: &Module) -> EndingFunctions {
        let pointed = addressed(module);
        let mut ending = EndingFunctions { functions: BTreeSet::new(), through_pointers: false };
        // Callers of each function, and functions that call through pointers.
        let mut callers: HashMap<Func, Vec<Func>> = HashMap::new();
        let (mut through_pointers, mut work) = (vec![], vec![]);
        for (func, function) in module.functions.iter().filter(|(_, function)| function.has_body && !function.is_kernel) {
            for (_, data) in function.instructions() {
                match data.callee() {
                    Some(Callee::Direct(callee)) => callers.entry(resolve(module, callee)).or_default().push(func),
                    Some(Callee::Indirect { .. }) => through_pointers.push(func),
                    None if data.opcode() == Some(Opcode::Exit) => work.push(func),
                    None => {}
                }
            }
        }
        while let Some(func) = work.pop() {
            if !ending.functions.insert(func) {
                continue;
            }
            work.extend(callers.remove(&func).unwrap_or_default());
            if !ending.through_pointers && pointed.contains(&func) {
                ending.through_pointers = true;
                work.extend(pointed.iter().chain(&through_pointers));
            }
        }
        ending
    }

    /// Returns whether an instruction calls a function that may end a thread.
    fn may_end(&self, module: &Module, data: &InstData) -> bool {
        match data.callee() {
            Some(Callee::Direct(func)) => self.functions.contains(&resolve(module, func)),
            Some(Callee::Indirect { .. }) => self.through_pointers,
            None => false,
        }
    }
}

/// Returns the functions with a body whose address is taken, so that they may be called through a pointer.
pub fn addressed(module: &Module) -> BTreeSet<Func> {
    let mut found = BTreeSet::new();
    let mut note = |symbol: Symbol| {
        if let Symbol::Func(func) = symbol {
            let func = resolve(module, func);
            if module.functions[func].has_body && !module.functions[func].is_kernel {
                found.insert(func);
            }
        }
    };
    for variable in module.variables.values() {
        variable.init.iter().for_each(|init| init.each_symbol(&mut note));
    }
    for function in module.functions.values() {
        for variable in function.variables.values() {
            variable.init.iter().for_each(|init| init.each_symbol(&mut note));
        }
        function.instructions().for_each(|(_, data)| data.each_symbol(&mut note));
    }
    found
}

/// Resolves a name to its function, following aliases.
pub fn resolve(module: &Module, func: Func) -> Func {
    // An alias has no body.
    if module.functions[func].has_body {
        return func;
    }
    let alias = module.items.iter().find_map(|item| match item {
        Item::Alias(alias) if alias.alias == func => Some(alias.aliasee),
        _ => None,
    });
    alias.unwrap_or(func)
}

fn address_type(module: &Module) -> Type {
    if module.address_size == 32 { Type::B32 } else { Type::B64 }
}

fn add_parameter(module: &Module, function: &mut Function) {
    let name = Names::all(module, function).take("ended");
    let var = function.variables.push(Variable::new(name, Space::Param, address_type(module)));
    function.params.push(Param::Memory(var));
}

fn place(base: Base) -> Operand {
    Operand::Memory(Address { base, offset: 0 })
}

/// Function being rewritten.
struct Rewriting<'m> {
    module: &'m Module,
    ending: &'m EndingFunctions,
    function: &'m mut Function,
    names: Names<'m>,
    /// Address of the word.
    word: Reg,
}

impl<'m> Rewriting<'m> {
    fn new(module: &'m Module, ending: &'m EndingFunctions, function: &'m mut Function) -> Self {
        let mut names = Names::all(module, function);
        let word = function.regs.push(RegData { name: names.take("%ended"), ty: address_type(module) });
        Rewriting { module, ending, function, names, word }
    }

    fn run(mut self) {
        let calls = self.function.instructions().any(|(_, data)| self.ending.may_end(self.module, data));
        if self.function.is_kernel && !calls {
            return;
        }
        self.test_calls();
        if !self.function.is_kernel {
            self.give_back();
        }
        self.find_word();
    }

    /// Finds the word. In a function its address is a parameter; a kernel owns the word, which is initially
    /// clear.
    fn find_word(&mut self) {
        let Some(entry) = self.function.entry() else { return };
        // No edge leads back to the place where it is cleared.
        let start = self.function.blocks.push(BlockData::default());
        let at = self.function.layout.iter().position(|block| *block == entry).unwrap_or(0);
        self.function.layout.insert(at, start);
        let ty = address_type(self.module);
        let word = self.word;
        let is_kernel = self.function.is_kernel;
        let var = match self.function.params.last() {
            Some(Param::Memory(var)) if !is_kernel => *var,
            _ => self.function.variables.push(Variable::new(self.names.take("ended"), Space::Local, Type::B32)),
        };
        let symbol = Symbol::Local(var);
        let mut writer = Writer::new(self.function);
        if is_kernel {
            writer.emit(&format!("mov.{}", ty.name()), [word.into(), Operand::Symbol(symbol, 0)]);
            writer.emit("st.local.b32", [place(Base::Reg(word)), 0.into()]);
        } else {
            writer.emit(&format!("ld.param.{}", ty.name()), [word.into(), place(Base::Symbol(symbol))]);
        }
        let insts = writer.take();
        self.function.blocks[start].insts = insts;
    }

    /// Replaces `exit` by `ret` with the word set.
    fn give_back(&mut self) {
        for block in self.function.layout.clone() {
            let Some(last) = self.function.blocks[block].insts.last().copied() else { continue };
            if self.function.insts[last].opcode() != Some(Opcode::Exit) {
                continue;
            }
            let guard = self.function.insts[last].guard;
            let mut writer = Writer::new(self.function);
            writer.at(last);
            writer.emit_guarded(guard, "st.local.b32", [place(Base::Reg(self.word)), 1.into()]);
            writer.emit_guarded(guard, "ret", []);
            let insts = writer.take();
            let old = &mut self.function.blocks[block].insts;
            old.pop();
            old.extend(insts);
        }
    }

    /// Passes the word on to callees that may set it, and tests it after the call.
    fn test_calls(&mut self) {
        let mut protos = BTreeSet::new();
        let ty = address_type(self.module);
        let mut at = 0;
        while let Some(block) = self.function.layout.get(at).copied() {
            at += 1;
            let insts = self.function.blocks[block].insts.clone();
            let ends = |inst: &Inst| self.ending.may_end(self.module, &self.function.insts[*inst]);
            let Some(index) = insts.iter().position(ends) else { continue };
            let call = insts[index];
            let var = self.function.variables.push(Variable::new(self.names.take("ended"), Space::Param, ty));
            for operand in &mut self.function.insts[call].operands {
                if let Operand::Call(call) = operand {
                    call.arguments.push(Operand::Symbol(Symbol::Local(var), 0));
                    if let Callee::Indirect { proto: Some(proto), .. } = call.callee {
                        protos.insert(proto);
                    }
                }
            }
            let mut writer = Writer::new(self.function);
            writer.at(call);
            let (set, ends) = (writer.reg(self.names.take("%set"), Type::B32), writer.reg(self.names.take("%ends"), Type::Pred));
            let store = format!("st.param.{}", ty.name());
            writer.emit(&store, [place(Base::Symbol(Symbol::Local(var))), self.word.into()]);
            let before = writer.take();
            writer.emit("ld.local.b32", [set.into(), place(Base::Reg(self.word))]);
            writer.emit("setp.ne.u32", [ends.into(), set.into(), 0.into()]);
            let leave = if writer.function.is_kernel { "exit" } else { "ret" };
            writer.emit_guarded(Some(Guard { reg: ends, negated: false }), leave, []);
            let behind = writer.take();
            let rest = BlockData { insts: insts[index + 1..].to_vec(), ..BlockData::default() };
            let rest = self.function.blocks.push(rest);
            self.function.layout.insert(at, rest);
            let head = insts[..index].iter().copied().chain(before).chain([call]).chain(behind);
            self.function.blocks[block].insts = head.collect();
        }
        for proto in protos {
            self.function.protos[proto].params.push(Variable::new("_", Space::Param, ty));
        }
    }
}
