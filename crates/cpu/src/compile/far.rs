//! Loops that all warps of a block run in lockstep.
//!
//! In a grid-stride loop, a warp reads one row and the next row far away; the memory between is for the other
//! warps. If each warp ran the loop to its end before the next one starts, the host would never read two
//! adjacent rows in sequence. Caches, prefetchers and pages all expect that. Such a loop is therefore split
//! at its head, as if there were a barrier without waiting, and all warps of the block do one iteration
//! before the next.

use super::emitter::{Emitter, TranslationResult};
use super::moves::is_computed;
use super::pattern::{LINE, is_row};
use super::state::NextAddress;
use broadloom_analysis::{Cfg, Dominators, Loop, Loops};
use broadloom_ptx::{Address, Base, Block, InstData, Opcode, Operand, Reg, Space};
use broadloom_transform::split_at_barriers::waits;
use cranelift_entity::SecondaryMap;
use std::collections::HashSet;
use std::rc::Rc;

/// Row of memory that all lanes of a warp access side by side.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct FarRow {
    /// Address register of the access.
    reg: Reg,
    /// Offset from the register.
    offset: i64,
    bytes: u64,
}

/// Change of a register in one iteration of a loop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Known(i64),
    /// Constant but unknown.
    Same,
    Any,
}

impl Step {
    fn plus(self, other: Step) -> Step {
        match (self, other) {
            (Step::Any, _) | (_, Step::Any) => Step::Any,
            (Step::Known(a), Step::Known(b)) => Step::Known(a.wrapping_add(b)),
            (Step::Same, _) | (_, Step::Same) => Step::Same,
        }
    }

    fn times(self, factor: Option<i64>) -> Step {
        match (self, factor) {
            (Step::Any, _) => Step::Any,
            (Step::Known(0), _) => Step::Known(0),
            (Step::Known(step), Some(factor)) => Step::Known(step.wrapping_mul(factor)),
            (Step::Known(_), None) | (Step::Same, _) => Step::Same,
        }
    }
}

struct Search<'s> {
    emitter: &'s Emitter<'s>,
    homes: SecondaryMap<Reg, Option<Block>>,
    cfg: &'s Cfg,
    loops: &'s Loops,
    header: Block,
    inside: Loop,
}

/// Maximum length of the instruction chains that are followed.
const DEPTH: u32 = 12;

impl Search<'_> {
    fn step(&self, reg: Reg, depth: u32) -> Step {
        let Some(home) = self.homes[reg] else { return Step::Known(0) };
        if !self.loops.contains(self.inside, home) {
            return Step::Known(0);
        }
        if depth == 0 {
            return Step::Any;
        }
        let Some(inst) = self.emitter.definition(reg) else {
            return if home == self.header { self.round(reg, depth) } else { Step::Any };
        };
        let operand = |index: usize| inst.operands.get(index).map_or(Step::Any, |operand| self.of(operand, depth - 1));
        let number = |index: usize| match inst.operands.get(index) {
            Some(Operand::Imm(imm)) => imm.integer_bits().map(|bits| bits as i64),
            _ => None,
        };
        let product = |a: usize, b: usize| match (number(a), number(b)) {
            (_, Some(factor)) => operand(a).times(Some(factor)),
            (Some(factor), None) => operand(b).times(Some(factor)),
            (None, None) if operand(b) == Step::Known(0) => operand(a).times(None),
            (None, None) if operand(a) == Step::Known(0) => operand(b).times(None),
            (None, None) => Step::Any,
        };
        let is = |opcodes: &[Opcode]| inst.opcode().is_some_and(|opcode| opcodes.contains(&opcode));
        if is(&[Opcode::Add]) {
            operand(1).plus(operand(2))
        } else if is(&[Opcode::Sub]) {
            operand(1).plus(operand(2).times(Some(-1)))
        } else if is(&[Opcode::Mul]) {
            product(1, 2)
        } else if is(&[Opcode::Mad]) {
            product(1, 2).plus(operand(3))
        } else if is(&[Opcode::Shl]) {
            operand(1).times(number(2).filter(|by| (0..32).contains(by)).map(|by| 1 << by))
        } else if is(&[Opcode::Mov, Opcode::Cvt, Opcode::Cvta, Opcode::CvtaTo]) {
            operand(1)
        } else if inst.reads().iter().all(|read| self.step(*read, depth - 1) == Step::Known(0)) {
            Step::Known(0)
        } else {
            Step::Any
        }
    }

    fn of(&self, operand: &Operand, depth: u32) -> Step {
        match operand {
            Operand::Reg(reg) => self.step(*reg, depth),
            Operand::Imm(_) | Operand::Special(_) | Operand::Symbol(..) => Step::Known(0),
            _ => Step::Any,
        }
    }

    /// Returns the change of a parameter of the loop's head in one iteration.
    fn round(&self, param: Reg, depth: u32) -> Step {
        let function = self.emitter.function;
        let Some(index) = function.blocks[self.header].params.iter().position(|other| *other == param) else { return Step::Any };
        let mut found = None;
        for from in self.cfg.predecessors(self.header).iter().filter(|from| self.loops.contains(self.inside, **from)) {
            for edge in function.blocks[*from].edges.iter().filter(|edge| edge.target == self.header) {
                let gain = edge.args.get(index).map_or(Step::Any, |arg| self.gain(*arg, param, depth));
                if found.is_some_and(|other| other != gain) {
                    return Step::Any;
                }
                found = Some(gain);
            }
        }
        found.unwrap_or(Step::Any)
    }

    /// Returns the difference between a register and the parameter whose next value it is.
    fn gain(&self, reg: Reg, param: Reg, depth: u32) -> Step {
        if reg == param {
            return Step::Known(0);
        }
        if depth == 0 {
            return Step::Any;
        }
        let Some(inst) = self.emitter.definition(reg) else { return Step::Any };
        let [_, Operand::Reg(a), b] = inst.operands.as_slice() else { return Step::Any };
        if inst.opcode() != Some(Opcode::Add) {
            return Step::Any;
        }
        let by = |operand: &Operand| match operand {
            Operand::Imm(imm) => imm.integer_bits().map_or(Step::Any, |bits| Step::Known(bits as i64)),
            Operand::Reg(reg) if self.step(*reg, depth - 1) == Step::Known(0) => Step::Same,
            _ => Step::Any,
        };
        match b {
            Operand::Reg(b) if *b == param => by(&Operand::Reg(*a)),
            b => by(b).plus(self.gain(*a, param, depth - 1)),
        }
    }
}

impl Search<'_> {
    /// Returns the recipe for an address in the next iteration.
    fn ahead(&self, reg: Reg) -> Option<NextAddress> {
        let mut ahead = NextAddress { params: vec![], chain: vec![] };
        self.follow(reg, &mut ahead, DEPTH).then_some(ahead)
    }

    fn follow(&self, reg: Reg, ahead: &mut NextAddress, depth: u32) -> bool {
        if depth == 0 {
            return false;
        }
        if self.step(reg, depth) == Step::Known(0) {
            return true;
        }
        match self.emitter.definitions[reg] {
            None => {
                let function = self.emitter.function;
                let params = &function.blocks[self.header].params;
                let Some(index) = params.iter().position(|param| *param == reg) else { return false };
                if ahead.params.iter().any(|(param, _)| *param == reg) {
                    return true;
                }
                // All back edges change the parameter by the same amount, so any of them will do.
                let back = self.cfg.predecessors(self.header).iter().find(|from| self.loops.contains(self.inside, **from));
                let edge = back.and_then(|from| function.blocks[*from].edges.iter().find(|edge| edge.target == self.header));
                let Some(inst) = edge.and_then(|edge| self.emitter.definitions[*edge.args.get(index)?]) else { return false };
                let data = &function.insts[inst];
                let others = |read: &Reg| *read == reg || self.step(*read, depth) == Step::Known(0);
                ahead.params.push((reg, inst));
                data.opcode() == Some(Opcode::Add) && data.guard.is_none() && data.reads().iter().all(others)
            }
            Some(inst) => {
                let data = &self.emitter.function.insts[inst];
                let sound = data.guard.is_none() && data.effects().is_pure() && is_computed(data);
                let sound = sound && self.emitter.is_kept_as_scalar(reg);
                if !sound || !data.reads().iter().all(|read| self.follow(*read, ahead, depth - 1)) {
                    return false;
                }
                if !ahead.chain.contains(&inst) {
                    ahead.chain.push(inst);
                }
                true
            }
        }
    }
}

impl Emitter<'_> {
    /// Prefetches the row that an access uses in the next iteration, if it is known.
    pub(crate) fn look_ahead(&mut self, reg: Reg, offset: i64, bytes: u64) -> TranslationResult<()> {
        let Some(ahead) = self.ahead[reg].clone() else { return Ok(()) };
        let function = self.function;
        let results: Vec<Reg> = ahead
            .params
            .iter()
            .map(|(_, inst)| inst)
            .chain(&ahead.chain)
            .flat_map(|inst| function.insts[*inst].writes())
            .collect();
        let touched: Vec<Reg> = ahead.params.iter().map(|(param, _)| *param).chain(results.iter().copied()).collect();
        let reads = ahead.params.iter().map(|(_, inst)| inst).chain(&ahead.chain).flat_map(|inst| function.insts[*inst].reads());
        let known = |read: &Reg| results.contains(read) || self.has_value(*read) || self.current.variables[*read].is_some();
        if !reads.collect::<Vec<_>>().iter().all(known) {
            return Ok(());
        }
        let before: Vec<_> = touched.iter().map(|reg| (*reg, self.values[*reg], self.current.variables[*reg])).collect();
        for reg in &touched {
            if self.current.variables[*reg].is_some() {
                self.values[*reg] = Some(self.kept(*reg)?);
                self.current.variables[*reg] = None;
            }
        }
        let mut next = vec![];
        for (param, inst) in &ahead.params {
            let data = &function.insts[*inst];
            self.compute(data)?;
            next.push((*param, self.lane0(data.writes()[0])?));
        }
        for (param, value) in next {
            self.values[param] = Some(value);
        }
        for inst in &ahead.chain {
            self.compute(&function.insts[*inst])?;
        }
        let ir = self.ir;
        let place = ir.as_pointer(ir.add(self.lane0(reg)?, ir.constant(ir.int(64), offset as u64)));
        for line in (0..bytes).step_by(LINE as usize) {
            ir.prefetch(ir.offset_by(place, line), 1);
        }
        for (reg, value, variable) in before {
            (self.values[reg], self.current.variables[reg]) = (value, variable);
        }
        Ok(())
    }

    /// Returns the heads of loops in which the rows of a warp lie far apart.
    pub(crate) fn far_loops(&mut self, cfg: &Cfg) -> Vec<Block> {
        let function = self.function;
        let loops = Loops::new(cfg, &Dominators::new(cfg));
        let mut homes = SecondaryMap::new();
        for block in cfg.order() {
            let data = &function.blocks[*block];
            data.params.iter().for_each(|param| homes[*param] = Some(*block));
            for inst in &data.insts {
                function.insts[*inst].each_written(|reg| homes[reg] = Some(*block));
            }
        }
        let mut search = Search { emitter: self, homes, cfg, loops: &loops, header: cfg.entry(), inside: Loop::from_u32(0) };
        let (mut found, mut ahead) = (vec![], vec![]);
        for (inside, data) in loops.iter() {
            (search.header, search.inside) = (data.header, inside);
            let own = data.blocks.iter().filter(|block| loops.innermost(**block) == Some(inside));
            let insts = own.flat_map(|block| &function.blocks[*block].insts).map(|inst| &function.insts[*inst]);
            // All warps run the code between two barriers together anyway, and the next iteration is far away
            // in time.
            let waits = data.blocks.iter().any(|block| waits(function, *block));
            let rows: HashSet<FarRow> = insts.filter_map(|inst| self.memory_row(inst)).collect();
            // If a warp reads several adjacent rows, no gap is left between one iteration and the next.
            let beside = |row: &FarRow| rows.iter().filter(|other| other.reg == row.reg).map(|other| other.bytes).sum::<u64>();
            let is_far = |row: &&FarRow| match search.step(row.reg, DEPTH) {
                Step::Known(step) => step != 0 && (waits || step.unsigned_abs() > beside(row)),
                Step::Same => true,
                Step::Any => false,
            };
            let mut far: Vec<Reg> = rows.iter().filter(is_far).map(|row| row.reg).collect();
            far.sort();
            far.dedup();
            if !far.is_empty() && !waits {
                found.push(data.header);
            }
            ahead.extend(far.into_iter().filter_map(|reg| Some((reg, search.ahead(reg)?))));
        }
        for (reg, way) in ahead {
            self.ahead[reg] = Some(Rc::new(way));
        }
        found
    }

    /// Returns the row of global memory that an instruction accesses.
    fn memory_row(&self, inst: &InstData) -> Option<FarRow> {
        if !matches!(inst.opcode(), Some(Opcode::Ld | Opcode::St)) {
            return None;
        }
        let address = inst.address()?;
        let Address { base: Base::Reg(reg), offset } = address else { return None };
        let in_memory = matches!(self.space_of(inst, &address), Space::Global | Space::Generic);
        let bytes = inst.accessed_bytes()?;
        let offsets = if self.is_kept_as_scalar(reg) { self.offsets(reg)? } else { return None };
        (in_memory && is_row(&offsets, bytes)).then_some(FarRow { reg, offset, bytes: 32 * bytes })
    }
}
