//! SSA construction during emission.
//!
//! Code is emitted block by block, and values are read and written as *variables*. The value of a variable at
//! a point is found when it is read: in the block itself, in its single predecessor, or as a block parameter
//! if there are several predecessors. The method follows Braun et al., "Simple and Efficient Construction of
//! Static Single Assignment Form". A block is *sealed* when all its predecessors are known. Before that, each
//! variable read in it is a parameter whose arguments follow. Parameters with only one value, and unused
//! code, are removed at the end.
//!
//! A conditional branch leads to two new blocks, so all other blocks are entered by jumps only.

use super::levels::Node;
use crate::names::Names;
use crate::purity::is_speculable;
use crate::write::{Writer, made};
use broadloom_ptx::{Block, BlockData, BodyForm, Edge, Function, Guard, Inst, InstData, Module, Operand, Reg, RegData, Type};
use cranelift_entity::{PrimaryMap, SecondaryMap};
use std::collections::HashMap;

/// Item that can be read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Variable {
    /// Value of the original function.
    Value(Reg),
    /// Value for lanes that have left the loop that it was computed in.
    Out(usize, Reg),
    /// Argument of lanes at an exit of a loop, for a parameter of its target.
    In(usize, Node, Reg),
    /// Argument of lanes at the join of a line of code, for one of its parameters.
    Join(usize, Reg),
    /// Lanes that wait for a node.
    Mask(usize, Node),
    /// Lanes that run the next iteration of a loop.
    Lanes(usize),
}

/// End of a block.
#[derive(Clone, Copy, Debug)]
enum End {
    Jump(Block),
    Branch {
        guard: Guard,
        holds: Block,
        fails: Block,
    },
    /// Its last instruction.
    Leave,
}

#[derive(Clone, Debug, Default)]
struct State {
    before: Vec<Block>,
    sealed: bool,
    end: Option<End>,
    /// Parameters of an unsealed block.
    open: Vec<Reg>,
}

#[derive(Clone, Debug)]
struct Phi {
    block: Block,
    variable: Variable,
    /// One argument for each predecessor.
    args: Vec<(Block, Reg)>,
    complete: bool,
}

/// Builder of the body of a function.
pub(super) struct Builder<'m> {
    /// The function. Its registers and instructions are the original ones, and new ones.
    pub(super) function: Function,
    names: Names<'m>,
    next_name: u32,
    states: SecondaryMap<Block, State>,
    held: HashMap<(Variable, Block), Reg>,
    phis: HashMap<Reg, Phi>,
    /// Parameters in the order of their creation.
    phi_order: Vec<Reg>,
    /// Parameters that are known to equal another value.
    same: HashMap<Reg, Reg>,
    entry: Block,
    zeros: HashMap<Type, Reg>,
    /// Instructions at the start of the entry.
    prologue: Vec<Inst>,
}

impl<'m> Builder<'m> {
    /// Starts a new body of a function, with a sealed first block.
    pub(super) fn new(module: &'m Module, function: &Function) -> Builder<'m> {
        let names = Names::all(module, function);
        let mut function = function.clone();
        function.blocks = PrimaryMap::new();
        function.layout = vec![];
        function.targets = PrimaryMap::new();
        function.form = BodyForm::Ssa;
        let mut builder = Builder {
            function,
            names,
            next_name: 0,
            states: SecondaryMap::new(),
            held: HashMap::new(),
            phis: HashMap::new(),
            phi_order: vec![],
            same: HashMap::new(),
            entry: Block::from_u32(0),
            zeros: HashMap::new(),
            prologue: vec![],
        };
        builder.entry = builder.block();
        builder.seal(builder.entry);
        builder
    }

    /// Returns the first block.
    pub(super) fn entry(&self) -> Block {
        self.entry
    }

    /// Adds a block without predecessors.
    pub(super) fn block(&mut self) -> Block {
        let block = self.function.blocks.push(BlockData::default());
        self.function.layout.push(block);
        block
    }

    /// Adds a register of a type.
    pub(super) fn reg(&mut self, ty: Type) -> Reg {
        let base = if ty == Type::Pred { "%lanes" } else { "%step" };
        let name = self.names.next(base, &mut self.next_name);
        self.function.regs.push(RegData { name, ty })
    }

    /// Appends an instruction to a block.
    pub(super) fn push(&mut self, block: Block, data: InstData) -> Inst {
        let inst = self.function.insts.push(data);
        self.function.blocks[block].insts.push(inst);
        inst
    }

    /// Appends an instruction with one result of a type, which becomes its first operand.
    pub(super) fn compute<const N: usize>(
        &mut self,
        block: Block,
        ty: Type,
        mnemonic: &'static str,
        mut operands: [Operand; N],
    ) -> Reg {
        let result = self.reg(ty);
        operands[0] = Operand::Reg(result);
        self.push(block, made(mnemonic, operands));
        result
    }

    /// Adds an instruction with one result of a type at the start of the entry.
    pub(super) fn first<const N: usize>(&mut self, ty: Type, mnemonic: &'static str, mut operands: [Operand; N]) -> Reg {
        let result = self.reg(ty);
        operands[0] = Operand::Reg(result);
        let inst = self.function.insts.push(made(mnemonic, operands));
        self.prologue.push(inst);
        result
    }

    /// Selects one of two values of the same type, by a predicate.
    pub(super) fn select(&mut self, block: Block, by: Reg, holds: Reg, fails: Reg) -> Reg {
        let ty = self.function.regs[holds].ty;
        let result = self.reg(ty);
        let Builder { function, names, next_name, .. } = self;
        let mut temporary = |function: &mut Function, ty: Type| {
            let name = names.next("%step", next_name);
            function.regs.push(RegData { name, ty })
        };
        let mut writer = Writer::new(function);
        writer.select(result, Guard { reg: by, negated: false }, [holds, fails], &mut temporary);
        let insts = writer.take();
        self.function.blocks[block].insts.extend(insts);
        result
    }

    /// Returns zero, or false. It is also the value of a variable that was never written.
    pub(super) fn zero(&mut self, ty: Type) -> Reg {
        if let Some(zero) = self.zeros.get(&ty) {
            return *zero;
        }
        let zero = self.reg(ty);
        let Builder { function, names, next_name, .. } = self;
        let mut temporary = |function: &mut Function, ty: Type| {
            let name = names.next("%step", next_name);
            function.regs.push(RegData { name, ty })
        };
        let mut writer = Writer::new(function);
        writer.zero(zero, &mut temporary);
        let insts = writer.take();
        self.prologue.extend(insts);
        self.zeros.insert(ty, zero);
        zero
    }

    /// Ends a block with a jump to another.
    pub(super) fn jump(&mut self, from: Block, to: Block) {
        self.states[from].end = Some(End::Jump(to));
        self.states[to].before.push(from);
    }

    /// Ends a block with a branch to two new blocks. The first is taken if the guard holds.
    pub(super) fn branch(&mut self, from: Block, guard: Guard) -> [Block; 2] {
        let [holds, fails] = [self.block(), self.block()];
        self.states[from].end = Some(End::Branch { guard, holds, fails });
        for to in [holds, fails] {
            self.states[to].before.push(from);
            self.seal(to);
        }
        [holds, fails]
    }

    /// Ends a block with its last instruction.
    pub(super) fn leave(&mut self, from: Block) {
        self.states[from].end = Some(End::Leave);
    }

    /// Declares that all predecessors of a block are known.
    pub(super) fn seal(&mut self, block: Block) {
        self.states[block].sealed = true;
        let open = std::mem::take(&mut self.states[block].open);
        self.complete(open);
    }

    /// Sets the value of a variable from here on.
    pub(super) fn write(&mut self, variable: Variable, block: Block, value: Reg) {
        self.held.insert((variable, block), value);
    }

    /// Declares that a variable has no relevant value from here on. Otherwise a read of a variable that was
    /// not written on some path would search, and create parameters, back to the entry.
    pub(super) fn clear(&mut self, variable: Variable, block: Block) {
        let zero = self.zero(self.type_of(variable));
        self.write(variable, block, zero);
    }

    /// Returns the value of a variable at the current end of a block.
    pub(super) fn read(&mut self, variable: Variable, block: Block) -> Reg {
        let mut work = vec![];
        let found = self.find(variable, block, &mut work);
        self.complete(work);
        self.resolve(found)
    }

    /// Returns a value, or the value it is known to equal.
    pub(super) fn resolve(&self, mut value: Reg) -> Reg {
        while let Some(same) = self.same.get(&value) {
            value = *same;
        }
        value
    }

    fn type_of(&self, variable: Variable) -> Type {
        match variable {
            Variable::Value(reg) | Variable::Out(_, reg) | Variable::In(_, _, reg) | Variable::Join(_, reg) => {
                self.function.regs[reg].ty
            }
            Variable::Mask(..) | Variable::Lanes(_) => Type::Pred,
        }
    }

    /// Searches back through single predecessors. Creates an incomplete parameter where there are several.
    fn find(&mut self, variable: Variable, block: Block, work: &mut Vec<Reg>) -> Reg {
        let mut passed = vec![];
        let mut at = block;
        let value = loop {
            if let Some(value) = self.held.get(&(variable, at)) {
                break self.resolve(*value);
            }
            passed.push(at);
            match self.states[at].before.as_slice() {
                [from] if self.states[at].sealed => at = *from,
                [] if self.states[at].sealed => {
                    let ty = self.type_of(variable);
                    break self.zero(ty);
                }
                _ => {
                    let ty = self.type_of(variable);
                    let phi = self.reg(ty);
                    self.phis.insert(phi, Phi { block: at, variable, args: vec![], complete: false });
                    self.phi_order.push(phi);
                    if self.states[at].sealed {
                        work.push(phi)
                    } else {
                        self.states[at].open.push(phi)
                    }
                    break phi;
                }
            }
        };
        for block in passed {
            self.held.insert((variable, block), value);
        }
        value
    }

    /// Finds the arguments of parameters of sealed blocks.
    fn complete(&mut self, mut work: Vec<Reg>) {
        let mut done = vec![];
        while let Some(reg) = work.pop() {
            let Some(Phi { block, variable, .. }) = self.phis.get(&reg).cloned() else { continue };
            let before = self.states[block].before.clone();
            let args = before.into_iter().map(|from| (from, self.find(variable, from, &mut work))).collect();
            if let Some(phi) = self.phis.get_mut(&reg) {
                phi.args = args;
                phi.complete = true;
            }
            done.push(reg);
        }
        // Parameters found last are resolved first.
        let mut changed = true;
        while changed {
            changed = false;
            for reg in done.iter().rev() {
                changed |= self.simplify(*reg);
            }
        }
    }

    /// Returns whether a parameter is newly known to equal another value.
    fn simplify(&mut self, reg: Reg) -> bool {
        let Some(phi) = self.phis.get(&reg).filter(|phi| phi.complete) else { return false };
        let mut value = None;
        for (_, arg) in &phi.args {
            let arg = self.resolve(*arg);
            if arg != reg && value.replace(arg).is_some_and(|other| other != arg) {
                return false;
            }
        }
        let Some(value) = value else { return false };
        self.phis.remove(&reg);
        self.same.insert(reg, value);
        true
    }

    /// Returns the function, with parameters and edges of its blocks, without unused code. Branch targets
    /// have no labels yet.
    pub(super) fn finish(mut self) -> Function {
        let mut changed = true;
        while changed {
            changed = false;
            for reg in self.phi_order.clone() {
                changed |= self.simplify(reg);
            }
        }
        let same = std::mem::take(&mut self.same);
        let resolve = |reg: Reg| {
            let mut reg = reg;
            while let Some(value) = same.get(&reg) {
                reg = *value;
            }
            reg
        };
        let mut prologue = std::mem::take(&mut self.prologue);
        prologue.append(&mut self.function.blocks[self.entry].insts);
        self.function.blocks[self.entry].insts = prologue;
        for block in self.function.layout.clone() {
            for inst in self.function.blocks[block].insts.clone() {
                self.function.insts[inst].change_reads(|reg| *reg = resolve(*reg));
            }
            if let Some(End::Branch { guard, .. }) = &mut self.states[block].end {
                guard.reg = resolve(guard.reg);
            }
        }
        for phi in self.phis.values_mut() {
            phi.args.iter_mut().for_each(|(_, arg)| *arg = resolve(*arg));
        }
        let needed = self.needed();
        self.drop_unneeded(&needed);
        self.connect(&needed);
        self.function
    }

    /// Returns the registers that are needed.
    fn needed(&self) -> SecondaryMap<Reg, bool> {
        let mut makers: SecondaryMap<Reg, Option<Inst>> = SecondaryMap::new();
        let mut work = vec![];
        for block in &self.function.layout {
            for inst in &self.function.blocks[*block].insts {
                let data = &self.function.insts[*inst];
                data.writes().into_iter().for_each(|reg| makers[reg] = Some(*inst));
                if !is_speculable(data) {
                    work.extend(data.reads());
                }
            }
            if let Some(End::Branch { guard, .. }) = &self.states[*block].end {
                work.push(guard.reg);
            }
        }
        let mut needed: SecondaryMap<Reg, bool> = SecondaryMap::new();
        while let Some(reg) = work.pop() {
            if std::mem::replace(&mut needed[reg], true) {
                continue;
            }
            if let Some(inst) = makers[reg] {
                work.extend(self.function.insts[inst].reads());
            }
            if let Some(phi) = self.phis.get(&reg) {
                work.extend(phi.args.iter().map(|(_, arg)| *arg));
            }
        }
        needed
    }

    fn drop_unneeded(&mut self, needed: &SecondaryMap<Reg, bool>) {
        let insts = &self.function.insts;
        let keep = |inst: &Inst| {
            let data = &insts[*inst];
            !is_speculable(data) || data.writes().into_iter().any(|reg| needed[reg])
        };
        for block in self.function.blocks.values_mut() {
            block.insts.retain(keep);
        }
    }

    fn connect(&mut self, needed: &SecondaryMap<Reg, bool>) {
        let mut params: SecondaryMap<Block, Vec<Reg>> = SecondaryMap::new();
        for reg in &self.phi_order {
            if let Some(phi) = self.phis.get(reg).filter(|_| needed[*reg]) {
                params[phi.block].push(*reg);
            }
        }
        for block in self.function.layout.clone() {
            self.function.blocks[block].params = params[block].clone();
            let edge = |to: Block| {
                let args = params[to].iter().filter_map(|reg| {
                    let phi = self.phis.get(reg)?;
                    phi.args.iter().find(|(from, _)| *from == block).map(|(_, arg)| *arg)
                });
                Edge { target: to, args: args.collect() }
            };
            let edges = match self.states[block].end {
                Some(End::Jump(to)) => vec![edge(to)],
                Some(End::Branch { guard, holds, fails }) => {
                    let edges = vec![edge(holds), edge(fails)];
                    self.push(block, InstData { guard: Some(guard), ..made("bra", [Operand::Label(holds)]) });
                    edges
                }
                Some(End::Leave) | None => vec![],
            };
            self.function.blocks[block].edges = edges;
        }
    }
}
