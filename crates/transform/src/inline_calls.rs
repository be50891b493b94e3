//! `inline_calls`: inlines called functions.
//!
//! **In**: register form, of a module whose static variables are hoisted (`hoist_statics`). **Out**: register
//! form. Keeps all computations, and the source line of each instruction. Loses function boundaries. The
//! `.param` variables of the calls become `.local` variables, for `promote_locals`.
//!
//! The following calls are kept:
//! - calls through a pointer, and of a function without a body here, such as `vprintf` and `malloc`;
//! - calls of a function that may be recursive;
//! - calls that [`Choice`] does not select, so that code stays small;
//! - calls of a function with static variables, with unknown instructions, or that accesses its `.param`
//!   variables through registers;
//! - calls that pass a `.param` variable that is a parameter of the caller, or that another kept call uses
//!   too.
//!
//! A guarded call becomes a branch around the code.

mod choice;

pub use choice::{Choice, DEEPEST, MOST_COPIED, MOST_INSTRUCTIONS, SMALL};

use crate::compact::compact;
use crate::names::Names;
use crate::write::{Writer, copy, made};
use broadloom_ptx::{
    Address, Base, Block, BlockData, Call, Callee, Func, Function, Guard, Inlined, Inst, InstData, Loc, MentionMut, Module,
    Opcode, Operand, Param, Proto, Reg, RegData, Space, Symbol, TargetList, Targets, Type, Var, Variable,
};
use cranelift_entity::SecondaryMap;
use std::collections::{HashMap, HashSet, VecDeque};

/// Name of the pass.
pub const NAME: &str = "inline_calls";

/// Inlines calls of a function, selected for it alone.
pub fn run(module: &Module, function: &mut Function) {
    if function.instructions().any(|(_, data)| data.call().is_some()) {
        run_chosen(module, function, &mut Choice::alone(module, function));
    }
}

/// Inlines the selected calls of a function.
pub fn run_chosen(module: &Module, function: &mut Function, choice: &mut Choice) {
    let calls = function.instructions().any(|(_, data)| data.call().is_some());
    if !calls {
        return;
    }
    let chosen = choice.begin(module, function);
    let mut inliner = Inliner {
        module,
        names: Names::all(module, function),
        numbers: [0; 3],
        passed: HashMap::new(),
        local: HashSet::new(),
        decided: HashMap::new(),
        owners: HashMap::new(),
        choice,
        chosen,
        function,
    };
    inliner.count_passed();
    inliner.run();
    inliner.move_to_local();
    compact(function);
}

struct Inliner<'m> {
    module: &'m Module,
    function: &'m mut Function,
    names: Names<'m>,
    /// Next number to try for names of registers, variables and labels.
    numbers: [u32; 3],
    /// Calls that each variable is passed to or from.
    passed: HashMap<Var, Vec<Inst>>,
    /// Variables that are no longer `.param` variables: all calls that use them must be inlined.
    local: HashSet<Var>,
    /// Calls that were decided together with another one.
    decided: HashMap<Inst, bool>,
    /// Functions that inlined calls come from. Calls of the function itself are not included.
    owners: HashMap<Inst, Func>,
    choice: &'m Choice,
    chosen: choice::InlinedCalls,
}

/// Renaming of a function's items at the place where it is inlined.
struct RenamedItems {
    regs: SecondaryMap<Reg, Option<Reg>>,
    vars: HashMap<Var, Var>,
    blocks: HashMap<Block, Block>,
    locs: HashMap<Loc, Loc>,
    protos: HashMap<Proto, Proto>,
    targets: HashMap<Targets, Targets>,
}

impl Inliner<'_> {
    fn run(&mut self) {
        let mut waiting: VecDeque<Block> = self.function.layout.iter().copied().collect();
        let mut placed = vec![];
        while let Some(block) = waiting.pop_front() {
            placed.push(block);
            let count = self.function.blocks[block].insts.len();
            let found = (0..count).find_map(|index| {
                let inst = self.function.blocks[block].insts[index];
                self.callee(inst).map(|func| (index, func))
            });
            if let Some((index, func)) = found {
                let (inside, behind) = self.inline(block, index, func);
                waiting.push_front(behind);
                inside.into_iter().rev().for_each(|block| waiting.push_front(block));
            }
        }
        self.function.layout = placed;
    }

    /// Returns the function that a call is to be replaced by.
    fn callee(&mut self, inst: Inst) -> Option<Func> {
        let func = self.replaceable(inst)?;
        let begun = self.passed_by(inst).iter().any(|var| self.local.contains(var));
        (begun || self.is_decided(inst)).then_some(func)
    }

    /// Returns whether a call is inlined, together with all calls that share variables with it.
    fn is_decided(&mut self, inst: Inst) -> bool {
        if let Some(decided) = self.decided.get(&inst) {
            return *decided;
        }
        let group = self.group(inst);
        let is_chosen = |inst: &Inst| {
            let func = self.replaceable(*inst);
            func.is_some_and(|func| self.choice.is_chosen(&self.chosen, self.owners.get(inst).copied(), func))
        };
        let decided = group.iter().all(is_chosen);
        self.decided.extend(group.into_iter().map(|inst| (inst, decided)));
        decided
    }

    /// Returns the function that a call could be replaced by, regardless of other calls.
    fn replaceable(&self, inst: Inst) -> Option<Func> {
        let call = self.function.insts[inst].call()?;
        let Callee::Direct(func) = call.callee else { return None };
        let func = self.choice.graph().resolve(func);
        let callee = &self.module.functions[func];
        let alike = call.results.len() == callee.results.len() && call.arguments.len() == callee.params.len();
        let own = |var: Var| self.function.params.iter().chain(&self.function.results).any(|param| *param == Param::Memory(var));
        let free = !self.passed_by(inst).into_iter().any(own);
        (alike && free && self.choice.is_fit(func)).then_some(func)
    }

    fn passed_by(&self, inst: Inst) -> Vec<Var> {
        let call = self.function.insts[inst].call();
        call.into_iter().flat_map(|call| call.results.iter().chain(&call.arguments)).filter_map(variable).collect()
    }

    /// Returns a call and all that share variables with it. They are decided together.
    fn group(&self, inst: Inst) -> HashSet<Inst> {
        let mut group = HashSet::new();
        let mut work = vec![inst];
        while let Some(inst) = work.pop() {
            if group.insert(inst) {
                let sharing = self.passed_by(inst).into_iter().filter_map(|var| self.passed.get(&var));
                work.extend(sharing.flatten());
            }
        }
        group
    }

    fn count_passed(&mut self) {
        let insts: Vec<Inst> = self.function.instructions().map(|(inst, _)| inst).collect();
        insts.into_iter().for_each(|inst| self.count_passed_by(inst));
    }

    fn count_passed_by(&mut self, inst: Inst) {
        for var in self.passed_by(inst) {
            let sharing = self.passed.entry(var).or_default();
            if !sharing.is_empty() {
                // The groups of calls have changed.
                self.decided.clear();
            }
            sharing.push(inst);
        }
    }

    fn label(&mut self) -> String {
        self.names.next("$inlined_", &mut self.numbers[2])
    }

    fn block(&mut self) -> Block {
        let label = Some(self.label());
        self.function.blocks.push(BlockData { label, ..BlockData::default() })
    }

    /// Replaces a call by the code of a function. Returns the blocks of the function, and the block after it.
    fn inline(&mut self, block: Block, index: usize, func: Func) -> (Vec<Block>, Block) {
        let callee = &self.module.functions[func];
        let behind = self.block();
        let mut insts = std::mem::take(&mut self.function.blocks[block].insts);
        let rest = insts.split_off(index + 1);
        let call_inst = insts.pop();
        self.function.blocks[behind].insts = rest;
        self.function.blocks[block].insts = insts;
        let Some(call_inst) = call_inst else { return (vec![], behind) };
        let guard = self.function.insts[call_inst].guard;
        let Some(call) = self.function.insts[call_inst].call().cloned() else { return (vec![], behind) };
        let mut places = self.places(callee, &call);
        let landing = self.block();
        let mut writer = Writer::new(self.function);
        writer.at(call_inst);
        if let Some(guard) = guard {
            writer.emit_guarded(Some(Guard { negated: !guard.negated, ..guard }), "bra", [Operand::Label(behind)]);
        }
        let around = writer.take();
        for (param, argument) in callee.params.iter().zip(&call.arguments) {
            bring(&mut writer, callee, &places, *param, argument);
        }
        let bringing = writer.take();
        for (param, result) in callee.results.iter().zip(&call.results) {
            fetch(&mut writer, callee, &places, *param, result);
        }
        let fetching = writer.take();
        self.function.blocks[block].insts.extend(around);
        self.function.blocks[landing].insts = fetching;
        let mut inside = vec![];
        if guard.is_some() {
            let start = self.block();
            inside.push(start);
            self.function.blocks[start].insts = bringing;
        } else {
            self.function.blocks[block].insts.extend(bringing);
        }
        for old in &callee.layout {
            let new = places.blocks[old];
            for inst in &callee.blocks[*old].insts {
                self.copy(&callee.insts[*inst], func, new, landing, &mut places);
            }
            inside.push(new);
        }
        inside.push(landing);
        (inside, behind)
    }

    /// Allocates registers, variables and blocks for a function.
    fn places(&mut self, callee: &Function, call: &Call) -> RenamedItems {
        let mut places = RenamedItems {
            regs: SecondaryMap::new(),
            vars: HashMap::new(),
            blocks: HashMap::new(),
            locs: HashMap::new(),
            protos: HashMap::new(),
            targets: HashMap::new(),
        };
        let formals = callee.results.iter().zip(&call.results).chain(callee.params.iter().zip(&call.arguments));
        for (formal, actual) in formals {
            if let (Param::Memory(var), Some(passed)) = (formal, variable(actual)) {
                places.vars.insert(*var, passed);
                self.local.insert(passed);
            }
        }
        for (var, data) in callee.variables.iter() {
            if places.vars.contains_key(&var) {
                continue;
            }
            let name = self.names.next("inlined_", &mut self.numbers[1]);
            let is_formal = callee.params.iter().chain(&callee.results).any(|param| *param == Param::Memory(var));
            let space = if is_formal { Space::Local } else { data.space };
            places.vars.insert(var, self.function.variables.push(Variable { name, space, pointer: None, ..data.clone() }));
        }
        for (reg, data) in callee.regs.iter() {
            let name = self.names.next("%inlined", &mut self.numbers[0]);
            places.regs[reg] = Some(self.function.regs.push(RegData { name, ty: data.ty }));
        }
        for block in &callee.layout {
            let new = self.block();
            self.function.blocks[new].pragmas = callee.blocks[*block].pragmas.clone();
            places.blocks.insert(*block, new);
        }
        for (loc, data) in callee.locs.iter() {
            let mut data = data.clone();
            // A line is inlined at one that stands before it.
            data.inlined = data.inlined.and_then(|inlined| Some(Inlined { at: *places.locs.get(&inlined.at)?, ..inlined }));
            places.locs.insert(loc, self.function.locs.push(data));
        }
        for (proto, data) in callee.protos.iter() {
            let mut data = data.clone();
            data.name = self.names.take(&data.name);
            places.protos.insert(proto, self.function.protos.push(data));
        }
        for (targets, data) in callee.targets.iter() {
            let name = self.names.take(&data.name);
            let blocks = data.blocks.iter().map(|block| places.blocks[block]).collect();
            places.targets.insert(targets, self.function.targets.push(TargetList { name, blocks }));
        }
        places
    }

    /// Copies an instruction of a function into a block. `ret` becomes a jump to `landing`.
    fn copy(&mut self, data: &InstData, from: Func, block: Block, landing: Block, places: &mut RenamedItems) {
        let mut data = data.clone();
        let rename = |reg: &mut Reg| *reg = places.regs[*reg].unwrap_or(*reg);
        data.change_reads(rename);
        data.change_writes(rename);
        data.loc = data.loc.and_then(|loc| places.locs.get(&loc).copied());
        if data.opcode() == Some(Opcode::Ret) {
            let InstData { mnemonic, operands, .. } = made("bra", [Operand::Label(landing)]);
            (data.mnemonic, data.operands) = (mnemonic, operands);
        } else {
            places.rename(&mut data);
        }
        let inst = self.function.insts.push(data);
        self.function.blocks[block].insts.push(inst);
        if self.function.insts[inst].call().is_some() {
            self.owners.insert(inst, from);
            self.count_passed_by(inst);
        }
    }

    /// Converts accesses to variables that no call uses any more to accesses to local memory.
    fn move_to_local(&mut self) {
        for var in &self.local {
            self.function.variables[*var].space = Space::Local;
        }
        let locals: HashSet<Var> =
            self.function.variables.iter().filter(|(_, data)| data.space == Space::Local).map(|(var, _)| var).collect();
        for data in self.function.insts.values_mut() {
            let names_local = data.operands.iter().any(|operand| match operand {
                Operand::Memory(Address { base: Base::Symbol(Symbol::Local(var)), .. }) => locals.contains(var),
                Operand::Symbol(Symbol::Local(var), _) => locals.contains(var),
                _ => false,
            });
            if names_local && data.space() == Space::Param {
                let words: Vec<String> = data
                    .mnemonic_text()
                    .split('.')
                    .map(|word| if word.starts_with("param") { "local" } else { word }.to_owned())
                    .collect();
                if let Some(InstData { mnemonic, .. }) = InstData::of(&words.join("."), data.operands.iter().cloned()) {
                    data.mnemonic = mnemonic;
                }
            }
        }
    }
}

impl RenamedItems {
    fn rename(&self, data: &mut InstData) {
        data.change_mentions(|mention| match mention {
            MentionMut::Operand(Operand::Label(block), _) => *block = self.blocks[block],
            MentionMut::Operand(Operand::Targets(targets), _) => *targets = self.targets[targets],
            MentionMut::Callee(Callee::Indirect { proto: Some(proto), .. }) => *proto = self.protos[proto],
            mention => {
                if let Some(Symbol::Local(var)) = mention.symbol() {
                    *var = self.vars.get(var).copied().unwrap_or(*var);
                }
            }
        });
    }
}

/// Returns the variable that is passed to or from a call.
fn variable(operand: &Operand) -> Option<Var> {
    match operand {
        Operand::Symbol(Symbol::Local(var), 0) => Some(*var),
        _ => None,
    }
}

/// Assigns an argument to a parameter, unless the variable itself is passed.
fn bring(writer: &mut Writer<'_>, callee: &Function, places: &RenamedItems, param: Param, argument: &Operand) {
    match (param, variable(argument)) {
        (Param::Memory(_), Some(_)) => {}
        (Param::Memory(var), None) => {
            let place = Operand::Memory(Address { base: Base::Symbol(Symbol::Local(places.vars[&var])), offset: 0 });
            let mnemonic = format!("st.local.{}", callee.variables[var].ty.name());
            if let Some(data) = InstData::of(&mnemonic, [place, argument.clone()]) {
                writer.push(data);
            }
        }
        (Param::Reg(reg), Some(var)) => {
            let Some(to) = places.regs[reg] else { return };
            load(writer, to, var, callee.regs[reg].ty);
        }
        (Param::Reg(reg), None) => {
            let Some(to) = places.regs[reg] else { return };
            match argument {
                Operand::Reg(from) => writer.copy(to, *from),
                other => {
                    let set = format!("mov.{}", callee.regs[reg].ty.name());
                    if let Some(data) = InstData::of(&set, [to.into(), other.clone()]) {
                        writer.push(data);
                    }
                }
            }
        }
    }
}

/// Assigns a result to its destination, unless it is already in the right variable.
fn fetch(writer: &mut Writer<'_>, callee: &Function, places: &RenamedItems, param: Param, result: &Operand) {
    match (param, result) {
        (Param::Reg(reg), Operand::Reg(to)) => {
            if let Some(from) = places.regs[reg] {
                let ty = writer.function.regs[*to].ty;
                writer.push(copy(ty, *to, from));
            }
        }
        (Param::Reg(reg), Operand::Symbol(Symbol::Local(var), _)) => {
            let place = Operand::Memory(Address { base: Base::Symbol(Symbol::Local(*var)), offset: 0 });
            let mnemonic = format!("st.local.{}", callee.regs[reg].ty.name());
            if let (Some(from), true) = (places.regs[reg], callee.regs[reg].ty != Type::Pred)
                && let Some(data) = InstData::of(&mnemonic, [place, from.into()])
            {
                writer.push(data);
            }
        }
        (Param::Memory(var), Operand::Reg(to)) => load(writer, *to, places.vars[&var], callee.variables[var].ty),
        (Param::Memory(_) | Param::Reg(_), _) => {}
    }
}

fn load(writer: &mut Writer<'_>, to: Reg, var: Var, ty: Type) {
    let place = Operand::Memory(Address { base: Base::Symbol(Symbol::Local(var)), offset: 0 });
    if let Some(data) = InstData::of(&format!("ld.local.{}", ty.name()), [to.into(), place]) {
        writer.push(data);
    }
}
