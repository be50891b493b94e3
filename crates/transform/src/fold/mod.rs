//! `fold`: constant folding, copy propagation and branch simplification.
//!
//! **In**: SSA form. **Out**: SSA form. Keeps every value that memory, branches and results see, bit for bit.
//! Removes unreachable blocks, block parameters that have only one value, and empty blocks. Unused registers
//! are left to `remove_dead`.
//!
//! - Instructions with known inputs become their result, as `eval` computes it. Special registers that the
//!   facts name are known.
//! - Identities that hold bit for bit for every input (`identities`) are applied: many for integers and
//!   predicates, hardly any for floats, because of NaNs, signed zeros and `.ftz`.
//! - Copies of a register of the same type, and block parameters that always get the same value, are
//!   propagated.
//! - Known values become immediates where instructions accept them, and known offsets become part of
//!   addresses.
//! - A branch on a known predicate becomes unconditional or is removed. A branch with two equal targets
//!   becomes unconditional. An instruction whose guard is known to be false is removed; a guard that is known
//!   to be true is dropped.
//!
//! A value carried by a loop is not assumed to be constant. Each round visits every instruction once, in an
//! order in which definitions come before uses. Rounds end when nothing changes, and after a maximum number.

mod identities;
mod immediate;
mod known;

use crate::blocks::{control, drop_params, drop_unreachable, join_runs, leave_by, thread_empty};
use crate::facts::Facts;
use crate::purity::is_speculable;
use crate::substitution::Substitution;
use crate::write::{Writer, constant};
use broadloom_analysis::Cfg;
use broadloom_ptx::table::OperandKind;
use broadloom_ptx::{
    Address, Base, Block, Class, Function, Guard, Inst, InstData, Mnemonic, Module, Opcode, Operand, Param, Reg, Type,
};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use identities::Simplification;
pub(crate) use immediate::immediate;
pub(crate) use known::KnownValues;

/// Name of the pass.
pub const NAME: &str = "fold";

/// Maximum number of rounds. Further rounds find almost nothing.
const ROUNDS: usize = 4;

/// Folds a function, given some facts.
pub fn run(_module: &Module, function: &mut Function, facts: &Facts) {
    let facts = if function.is_kernel { facts.with_directives(function) } else { *facts };
    for _ in 0..ROUNDS {
        let around = Folding::new(function, facts).round();
        let unreachable = drop_unreachable(function);
        let threaded = thread_empty(function);
        let joined = join_runs(function);
        // Within a round definitions come before uses, except for values carried by a loop.
        if !(around || unreachable || threaded || joined) {
            return;
        }
    }
}

struct Folding<'f> {
    function: &'f mut Function,
    facts: Facts,
    /// Known values, as a register holds them.
    known: KnownValues,
    substitution: Substitution,
    /// Instruction that defines each register.
    definition: SecondaryMap<Reg, PackedOption<Inst>>,
    /// Result registers of the function, which are written several times and read by no instruction.
    results: Vec<Reg>,
    changed: bool,
}

impl<'f> Folding<'f> {
    fn new(function: &'f mut Function, facts: Facts) -> Self {
        let results = function.results.iter().filter_map(|param| match param {
            Param::Reg(reg) => Some(*reg),
            Param::Memory(_) => None,
        });
        Folding {
            results: results.collect(),
            function,
            facts,
            known: KnownValues::default(),
            substitution: Substitution::default(),
            definition: SecondaryMap::new(),
            changed: false,
        }
    }

    /// Folds once. Returns whether another round may find more.
    fn round(mut self) -> bool {
        let Some(cfg) = Cfg::new(self.function) else { return false };
        for block in cfg.order().iter().copied() {
            self.params(&cfg, block);
            let insts = std::mem::take(&mut self.function.blocks[block].insts);
            let mut kept = Vec::with_capacity(insts.len());
            for inst in insts {
                self.instruction(inst, &mut kept);
            }
            self.function.blocks[block].insts = kept;
            self.branch(block);
        }
        let Folding { function, mut substitution, changed, .. } = self;
        let replaced = !substitution.is_empty();
        substitution.apply(function);
        drop_params(function, |reg| substitution.replaces(reg));
        let goes_around = |block: &Block| {
            let behind = |edge: &broadloom_ptx::Edge| cfg.position(edge.target) <= cfg.position(*block) && !edge.args.is_empty();
            function.blocks[*block].edges.iter().any(behind)
        };
        (changed || replaced) && cfg.order().iter().any(goes_around)
    }

    /// Replaces parameters that always get the same argument.
    fn params(&mut self, cfg: &Cfg, block: Block) {
        let params = self.function.blocks[block].params.clone();
        if params.is_empty() {
            return;
        }
        let mut from: Vec<Block> = cfg.predecessors(block).to_vec();
        from.sort_unstable();
        from.dedup();
        for (index, param) in params.into_iter().enumerate() {
            let mut given: Option<Reg> = None;
            let (mut same, mut same_value) = (true, true);
            for edge in from.iter().flat_map(|from| &self.function.blocks[*from].edges).filter(|edge| edge.target == block) {
                let arg = self.substitution.resolve(edge.args[index]);
                match given {
                    _ if arg == param => {}
                    None => given = Some(arg),
                    Some(other) if other == arg => {}
                    Some(other) => {
                        same = false;
                        same_value &= self.known.get(arg).is_some() && self.known.get(arg) == self.known.get(other);
                    }
                }
            }
            let Some(given) = given else { continue };
            if same {
                self.substitution.replace(param, given);
            } else if let Some(value) = self.known.get(given).filter(|_| same_value) {
                self.known.set(param, value);
            }
        }
    }

    fn instruction(&mut self, inst: Inst, kept: &mut Vec<Inst>) {
        let substitution = &mut self.substitution;
        self.function.insts[inst].change_reads(|reg| *reg = substitution.resolve(*reg));
        if let Some(guard) = self.function.insts[inst].guard {
            self.guarded(inst, guard, kept);
        } else {
            self.unguarded(inst, kept);
        }
        let Folding { function, definition, .. } = self;
        function.insts[inst].each_written(|reg| definition[reg] = inst.into());
    }

    fn guarded(&mut self, inst: Inst, guard: Guard, kept: &mut Vec<Inst>) {
        let guard = self.without_not(guard);
        self.function.insts[inst].guard = Some(guard);
        let holds = self.known.get(guard.reg).map(|value| (value == 1) != guard.negated);
        match holds {
            // Control instructions are handled with the edges.
            Some(_) if self.function.insts[inst].is_control() => kept.push(inst),
            Some(true) => {
                self.function.insts[inst].guard = None;
                self.changed = true;
                self.unguarded(inst, kept);
            }
            Some(false) => {
                self.changed = true;
                for reg in self.function.insts[inst].writes() {
                    self.define(inst, reg, 0, kept);
                }
            }
            None => {
                self.take_arms(inst, guard);
                self.immediates(inst);
                self.addresses(inst);
                kept.push(inst);
            }
        }
    }

    /// Returns a guard with the negations of its predicate resolved.
    fn without_not(&mut self, mut guard: Guard) -> Guard {
        while let Some(not) = self.definition[guard.reg].expand().map(|inst| &self.function.insts[inst])
            && not.opcode() == Some(Opcode::Not)
            && let Some(Operand::Reg(inner)) = not.operands.get(1)
            && not.guard.is_none()
        {
            guard = Guard { reg: *inner, negated: !guard.negated };
            self.changed = true;
        }
        guard
    }

    /// Replaces selections by the guard's own predicate. Their outcome is known where the instruction runs.
    fn take_arms(&mut self, inst: Inst, guard: Guard) {
        let Folding { function, definition, changed, .. } = self;
        let Function { insts, regs, .. } = &mut **function;
        let mut data = insts[inst].clone();
        data.guard = None;
        data.change_reads(|reg| {
            let Some(choice) = definition[*reg].expand().map(|inst| &insts[inst]) else { return };
            if choice.opcode() != Some(Opcode::Selp) || choice.guard.is_some() {
                return;
            }
            let holds = match choice.operands.get(3) {
                Some(Operand::Reg(predicate)) if *predicate == guard.reg => !guard.negated,
                Some(Operand::Not(predicate)) if *predicate == guard.reg => guard.negated,
                _ => return,
            };
            if let Some(Operand::Reg(arm)) = choice.operands.get(if holds { 1 } else { 2 })
                && regs[*arm].ty == regs[*reg].ty
            {
                *reg = *arm;
                *changed = true;
            }
        });
        data.guard = Some(guard);
        insts[inst] = data;
    }

    fn unguarded(&mut self, inst: Inst, kept: &mut Vec<Inst>) {
        let data = &self.function.insts[inst];
        if is_speculable(data) {
            if let Some(values) = self.known.evaluate(self.function, &self.facts, data) {
                for (reg, value) in values {
                    self.define(inst, reg, value, kept);
                }
                return;
            }
            let simpler = identities::simplify(self.function, &self.known, &self.definition, data);
            match simpler {
                Some(Simplification::Value(value)) => {
                    let reg = data.writes()[0];
                    return self.define(inst, reg, value, kept);
                }
                Some(Simplification::Instruction(other)) => {
                    let InstData { loc, span, .. } = *data;
                    self.function.insts[inst] = InstData { loc, span, ..other };
                    self.changed = true;
                }
                None => {}
            }
            if self.copied(inst) {
                return;
            }
        }
        self.immediates(inst);
        self.addresses(inst);
        kept.push(inst);
    }

    /// Returns whether an instruction only copies a register to another of the same type. If so, uses are
    /// replaced by the source.
    fn copied(&mut self, inst: Inst) -> bool {
        let data = &self.function.insts[inst];
        let (Some(Opcode::Mov), [Operand::Reg(to), Operand::Reg(from)]) = (data.opcode(), data.operands.as_slice()) else {
            return false;
        };
        let (to, from) = (*to, *from);
        let regs = &self.function.regs;
        if regs[to].ty != regs[from].ty || self.results.contains(&to) {
            return false;
        }
        self.substitution.replace(to, from);
        true
    }

    /// Assigns a known value to a register, in place of an instruction.
    fn define(&mut self, inst: Inst, reg: Reg, value: u64, kept: &mut Vec<Inst>) {
        if !self.results.contains(&reg) {
            self.known.set(reg, value);
        }
        let data = &self.function.insts[inst];
        if is_constant(self.function, data) && data.writes() == [reg] {
            return kept.push(inst);
        }
        self.changed = true;
        let mut writer = Writer::new(self.function);
        writer.at(inst);
        constant(&mut writer, reg, value);
        for made in writer.take() {
            self.definition[reg] = made.into();
            kept.push(made);
        }
    }

    /// Replaces known registers by immediates, where the instruction accepts them.
    fn immediates(&mut self, inst: Inst) {
        let data = &mut self.function.insts[inst];
        let Some(form) = data.form() else { return };
        let is_known = |operand: &Operand| matches!(operand, Operand::Reg(reg) if self.known.get(*reg).is_some());
        if !data.operands.iter().any(is_known) {
            return;
        }
        let takes = match form.opcode.row().class {
            Class::Arith | Class::Float | Class::Compare | Class::Logic | Class::Shift | Class::Bits => true,
            Class::Move | Class::Memory | Class::Atomic => true,
            Class::Half | Class::Carry | Class::Video | Class::Convert | Class::Address | Class::Control => false,
            Class::Barrier | Class::Warp | Class::Fence | Class::Misc | Class::Texture | Class::Surface => false,
            Class::Matrix | Class::Async | Class::Mbarrier | Class::Cluster | Class::Multimem => false,
        };
        if !takes || form.opcode == Opcode::Mov && matches!(data.operands.get(1), Some(Operand::Vector(_))) {
            return;
        }
        let Mnemonic::Known { modifiers, .. } = &data.mnemonic else { return };
        let modifiers = modifiers.clone();
        for (spec, operand) in form.operands.iter().zip(&mut data.operands) {
            let Operand::Reg(reg) = operand else { continue };
            let Some(value) = self.known.get(*reg) else { continue };
            // Cache hints must be in registers.
            if spec.written || spec.kind != OperandKind::Value || spec.name == "p" {
                continue;
            }
            let Some(ty) = spec.type_in(&modifiers) else { continue };
            let narrow = matches!(form.opcode, Opcode::Bfe | Opcode::Bfi) && ty == Type::U32;
            let fits = !narrow || matches!(spec.name, "a") || value <= 255;
            if let Some(imm) = immediate(value, ty).filter(|_| fits) {
                *operand = Operand::Imm(imm);
                self.changed = true;
            }
        }
    }

    /// Folds constant addends into the offsets of addresses.
    fn addresses(&mut self, inst: Inst) {
        for index in 0..self.function.insts[inst].operands.len() {
            while let Operand::Memory(address) = self.function.insts[inst].operands[index]
                && let Base::Reg(base) = address.base
                && let Some((inner, more)) = identities::sum(self.function, &self.definition, base, 64)
                && let Some(offset) = address.offset.checked_add(more as i64)
                && i32::try_from(offset).is_ok()
                && self.function.regs[inner].ty.bits() == 64
            {
                let moved = Address { base: Base::Reg(inner), offset };
                self.function.insts[inst].operands[index] = Operand::Memory(moved);
                self.changed = true;
            }
        }
    }

    /// Simplifies the branch of a block whose predicate or index is known or irrelevant.
    fn branch(&mut self, block: Block) {
        let Some(last) = control(self.function, block) else { return };
        let data = &self.function.insts[last];
        let edges = &self.function.blocks[block].edges;
        if let Some(guard) = data.guard {
            let same = |substitution: &mut Substitution| {
                edges[0].target == edges[1].target
                    && edges[0].args.iter().zip(&edges[1].args).all(|(a, b)| substitution.resolve(*a) == substitution.resolve(*b))
            };
            match self.known.get(guard.reg).map(|value| (value == 1) != guard.negated) {
                Some(true) => {
                    self.function.insts[last].guard = None;
                    self.function.blocks[block].edges.pop();
                    self.changed = true;
                }
                Some(false) => self.go_on(block),
                None if edges.len() == 2 && same(&mut self.substitution) => self.go_on(block),
                None => {}
            }
        } else if data.opcode() == Some(Opcode::BrxIdx) {
            let index = match data.operands.first() {
                Some(Operand::Reg(reg)) => self.known.get(*reg),
                Some(Operand::Imm(imm)) => imm.integer_bits(),
                _ => None,
            };
            if let Some(edge) = index.and_then(|index| edges.get(usize::try_from(index & 0xffff_ffff).ok()?)).cloned() {
                leave_by(self.function, block, edge);
                self.changed = true;
            }
        }
    }

    /// Removes the guarded end of a block, which never executes.
    fn go_on(&mut self, block: Block) {
        let data = &mut self.function.blocks[block];
        data.insts.pop();
        data.edges = data.edges.pop().into_iter().collect();
        self.changed = true;
    }
}

/// Returns whether an instruction sets one register to an immediate.
fn is_constant(function: &Function, data: &InstData) -> bool {
    let copies = match (data.opcode(), data.operands.first()) {
        (Some(Opcode::Mov), _) => true,
        // `mov` has no 8-bit form.
        (Some(Opcode::Cvt), Some(Operand::Reg(reg))) => function.regs[*reg].ty.bits() == 8,
        _ => false,
    };
    copies && matches!(data.operands.get(1), Some(Operand::Imm(_)))
}
