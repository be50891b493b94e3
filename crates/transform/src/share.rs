//! `share`: common subexpression elimination.
//!
//! **In**: SSA form. **Out**: SSA form. Keeps every value. Removes instructions that compute the same as a
//! dominating one, and block parameters that always get the same argument as another one of the block. Loads
//! are not shared.
//!
//! The blocks are visited along the dominator tree. Two instructions are equal if name, modifiers and
//! operands are, after substitution of their operands. Operands of commutative integer instructions are
//! compared in a canonical order. Instructions of a block are forgotten when the walk leaves its subtree.

use crate::blocks::drop_params;
use crate::purity::is_pure;
use crate::substitution::Substitution;
use broadloom_analysis::{Cfg, Dominators};
use broadloom_ptx::{Base, Block, Function, Inst, InstData, Mnemonic, Module, Opcode, Operand, Param, Reg, Symbol, TypeKind};
use rustc_hash::FxHasher;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};

/// Name of the pass.
pub const NAME: &str = "share";

/// Removes common subexpressions of a function.
pub fn run(_module: &Module, function: &mut Function) {
    let Some(cfg) = Cfg::new(function) else { return };
    let dominators = Dominators::new(&cfg);
    let mut sharing = Sharing { function, substitution: Substitution::default(), found: HashMap::new(), order: vec![] };
    sharing.walk(&cfg, &dominators);
    let Sharing { function, mut substitution, .. } = sharing;
    substitution.apply(function);
    drop_params(function, |reg| substitution.replaces(reg));
}

/// Step of the walk over the dominator tree.
enum TreeStep {
    Enter(Block),
    Leave(usize),
}

struct Sharing<'f> {
    function: &'f mut Function,
    substitution: Substitution,
    /// Instructions by hash of what they compute.
    found: HashMap<u64, SmallVec<[Inst; 2]>>,
    /// Inserted hashes, in order.
    order: Vec<u64>,
}

impl Sharing<'_> {
    fn walk(&mut self, cfg: &Cfg, dominators: &Dominators) {
        let mut steps = vec![TreeStep::Enter(cfg.entry())];
        while let Some(step) = steps.pop() {
            match step {
                TreeStep::Leave(mark) => {
                    for key in self.order.drain(mark..) {
                        if let Some(list) = self.found.get_mut(&key) {
                            list.pop();
                        }
                    }
                }
                TreeStep::Enter(block) => {
                    steps.push(TreeStep::Leave(self.order.len()));
                    self.params(cfg, block);
                    self.block(block);
                    steps.extend(dominators.children(block).iter().rev().map(|child| TreeStep::Enter(*child)));
                }
            }
        }
    }

    /// Replaces parameters that every edge gives the same argument as another one.
    fn params(&mut self, cfg: &Cfg, block: Block) {
        let params = self.function.blocks[block].params.clone();
        if params.len() < 2 {
            return;
        }
        let mut from: Vec<Block> = cfg.predecessors(block).to_vec();
        from.sort_unstable();
        from.dedup();
        let mut first: HashMap<Vec<Reg>, Reg> = HashMap::new();
        for (index, param) in params.iter().enumerate() {
            let edges = from.iter().flat_map(|from| &self.function.blocks[*from].edges).filter(|edge| edge.target == block);
            let given: Vec<Reg> = edges.map(|edge| self.substitution.resolve(edge.args[index])).collect();
            match first.get(&given) {
                Some(other) if self.function.regs[*other].ty == self.function.regs[*param].ty => {
                    self.substitution.replace(*param, *other);
                }
                Some(_) => {}
                None => {
                    first.insert(given, *param);
                }
            }
        }
    }

    fn block(&mut self, block: Block) {
        let mut insts = std::mem::take(&mut self.function.blocks[block].insts);
        insts.retain(|inst| {
            let substitution = &mut self.substitution;
            let data = &mut self.function.insts[*inst];
            data.change_reads(|reg| *reg = substitution.resolve(*reg));
            if !is_pure(data) || data.guard.is_some() || self.gives(&self.function.insts[*inst]) {
                return true;
            }
            let key = key(&self.function.insts[*inst]);
            let list = self.found.entry(key).or_default();
            let same = list.iter().copied().find(|other| same(self.function, *other, *inst));
            if let Some(same) = same {
                let [mine, theirs] = [*inst, same].map(|inst| self.function.insts[inst].writes());
                mine.into_iter().zip(theirs).for_each(|(mine, theirs)| self.substitution.replace(mine, theirs));
                return false;
            }
            list.push(*inst);
            self.order.push(key);
            true
        });
        self.function.blocks[block].insts = insts;
        let substitution = &mut self.substitution;
        for edge in &mut self.function.blocks[block].edges {
            edge.args.iter_mut().for_each(|reg| *reg = substitution.resolve(*reg));
        }
    }

    /// Returns whether an instruction writes a result of the function.
    fn gives(&self, data: &InstData) -> bool {
        let results = &self.function.results;
        !results.is_empty() && data.writes().into_iter().any(|reg| results.contains(&Param::Reg(reg)))
    }
}

/// Returns whether the first two inputs commute.
fn commutes(data: &InstData) -> bool {
    let whole = data.types().next().is_some_and(|ty| match ty.kind() {
        TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed | TypeKind::Predicate => true,
        // The resulting NaN of two may depend on the order.
        TypeKind::Float | TypeKind::Packed | TypeKind::Alternate | TypeKind::Opaque => false,
    });
    let opcode = data.opcode();
    whole
        && matches!(
            opcode,
            Some(Opcode::Add | Opcode::Mul | Opcode::Mad | Opcode::And | Opcode::Or | Opcode::Xor | Opcode::Min | Opcode::Max)
        )
}

/// Returns the operands in canonical order.
fn operands(data: &InstData) -> impl Iterator<Item = &Operand> {
    let swapped = commutes(data)
        && data.operands.len() > 2
        && match (&data.operands[1], &data.operands[2]) {
            (Operand::Reg(a), Operand::Reg(b)) => a > b,
            (Operand::Imm(_), Operand::Reg(_)) => true,
            _ => false,
        };
    let place = move |index: usize| match index {
        1 if swapped => 2,
        2 if swapped => 1,
        index => index,
    };
    (0..data.operands.len()).map(move |index| &data.operands[place(index)])
}

/// Returns whether an operand is written. All registers of a type are equal there.
fn is_written(data: &InstData, index: usize) -> bool {
    data.form().is_some_and(|form| form.operands.get(index).is_some_and(|spec| spec.written))
}

fn same(function: &Function, a: Inst, b: Inst) -> bool {
    let (a, b) = (&function.insts[a], &function.insts[b]);
    if a.mnemonic != b.mnemonic || a.operands.len() != b.operands.len() {
        return false;
    }
    let ty = |reg: Reg| function.regs[reg].ty;
    let written = |a: &Operand, b: &Operand| match (a, b) {
        (Operand::Reg(a), Operand::Reg(b)) => ty(*a) == ty(*b),
        (Operand::Vector(a), Operand::Vector(b)) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|pair| matches!(pair, (Operand::Reg(a), Operand::Reg(b)) if ty(*a) == ty(*b)))
        }
        (Operand::Part { selector: a, reg: x, .. }, Operand::Part { selector: b, reg: y, .. }) => a == b && ty(*x) == ty(*y),
        (Operand::Absent, Operand::Absent) => true,
        // A result that one discards, the other may need.
        _ => false,
    };
    operands(a).zip(operands(b)).enumerate().all(|(index, (x, y))| if is_written(a, index) { written(x, y) } else { x == y })
}

/// Returns a hash that is equal for equal instructions.
fn key(data: &InstData) -> u64 {
    let mut hasher = FxHasher::default();
    if let Mnemonic::Known { form, modifiers } = &data.mnemonic {
        form.hash(&mut hasher);
        modifiers.hash(&mut hasher);
    }
    for (index, operand) in operands(data).enumerate() {
        if !is_written(data, index) {
            hash(operand, &mut hasher);
        }
    }
    hasher.finish()
}

fn hash(operand: &Operand, hasher: &mut FxHasher) {
    std::mem::discriminant(operand).hash(hasher);
    match operand {
        Operand::Reg(reg) | Operand::Not(reg) | Operand::Part { reg, .. } => reg.hash(hasher),
        Operand::Imm(imm) => imm.hash(hasher),
        Operand::Special(special) => special.hash(hasher),
        Operand::Symbol(symbol, offset) => {
            match symbol {
                Symbol::Var(var) | Symbol::Local(var) => var.hash(hasher),
                Symbol::Func(func) => func.hash(hasher),
            }
            offset.hash(hasher);
        }
        Operand::Memory(address) => {
            if let Base::Reg(reg) = address.base {
                reg.hash(hasher);
            }
            address.offset.hash(hasher);
        }
        Operand::Vector(list) => list.iter().for_each(|operand| hash(operand, hasher)),
        // No pure instruction has these, and equal hashes are compared in full.
        Operand::Texture(_) | Operand::Label(_) | Operand::Targets(_) | Operand::Pair(_) | Operand::Call(_) => {}
        Operand::Sink | Operand::Absent => {}
    }
}
