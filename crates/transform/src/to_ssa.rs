//! `to_ssa`: registers to SSA form.
//!
//! **In**: register form without carry chains (`lower_carry`). **Out**: SSA form with reachable blocks only.
//! Keeps every value and every branch; values that shared a register are separated.
//!
//! - A register gets a block parameter where several of its values meet and it is still read.
//! - A guarded instruction writes its result or leaves the old value. If the new value is read later, a
//!   selection between the two follows the instruction. A pure instruction then loses its guard. Others keep
//!   it, and their result is never selected if the guard is false.
//! - A guarded branch, `ret`, `exit` or `trap` still ends its block, with an edge to the continuation.
//! - A register that is read before any write holds zero, as in a thread that starts.
//! - Control that falls off the end reaches a `ret`. Results of the function that are registers are written
//!   right before it.
//!
//! The first value of a register keeps its name; later ones get a number after a `$`.

use crate::purity::is_speculable;
use crate::write::{Writer, made};
use broadloom_analysis::{BlockParameters, Cfg, Dominators, Liveness};
use broadloom_diag::{Code, Diagnostic, Diagnostics};
use broadloom_ptx::{
    Block, BlockData, BodyForm, Edge, Function, Guard, Inst, InstData, Mnemonic, Module, Opcode, Param, Reg, RegData, Type,
};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use std::collections::HashMap;

/// Name of the pass.
pub const NAME: &str = "to_ssa";

/// Error code for an unknown instruction, whose operands cannot be classified as read or written.
pub const OPAQUE: Code = Code("T0001");

/// Converts a function to SSA form, or reports the unknown instructions.
pub fn run(_module: &Module, function: &mut Function) -> Result<(), Diagnostics> {
    refuse_opaque(function)?;
    if function.form == BodyForm::Ssa || function.layout.is_empty() {
        function.form = BodyForm::Ssa;
        return Ok(());
    }
    end_with_ret(function);
    enter_once(function);
    let Some(cfg) = Cfg::new(function) else { return Ok(()) };
    let dominators = Dominators::new(&cfg);
    let liveness = Liveness::new(function, &cfg);
    let parameters = BlockParameters::new(function, &cfg, &dominators, &liveness);
    drop_unreachable(function, &cfg);
    Renaming::new(function, &cfg, &liveness, &parameters).run(&dominators);
    function.form = BodyForm::Ssa;
    Ok(())
}

fn refuse_opaque(function: &Function) -> Result<(), Diagnostics> {
    let mut refused = Diagnostics::new();
    for (_, data) in function.instructions() {
        if let Mnemonic::Opaque(text) = &data.mnemonic {
            let message = format!("`{text}` in `{}` is not an instruction that Broadloom knows", function.name);
            let diagnostic = Diagnostic::error(OPAQUE, message);
            refused.push(if data.span.is_synthetic() { diagnostic } else { diagnostic.at(data.span, "unknown") });
        }
    }
    if refused.has_errors() { Err(refused) } else { Ok(()) }
}

/// Appends a `ret` where control falls off the end.
fn end_with_ret(function: &mut Function) {
    let Some(last) = function.layout.last().copied() else { return };
    let end = function.blocks[last].insts.last().map(|inst| &function.insts[*inst]);
    if end.is_some_and(|end| end.is_terminator()) {
        return;
    }
    let controls = end.is_some_and(|end| end.is_control());
    let ret = function.insts.push(made("ret", []));
    if controls {
        let block = function.blocks.push(BlockData { insts: vec![ret], ..BlockData::default() });
        function.layout.push(block);
    } else {
        function.blocks[last].insts.push(ret);
    }
}

/// Ensures that no edge leads to the first block, which has no parameters.
fn enter_once(function: &mut Function) {
    let Some(entry) = function.entry() else { return };
    if function.layout.iter().any(|block| function.jump_targets(*block).contains(&entry)) {
        let before = function.blocks.push(BlockData::default());
        function.layout.insert(0, before);
    }
}

fn drop_unreachable(function: &mut Function, cfg: &Cfg) {
    let (kept, dropped) = function.layout.iter().copied().partition(|block| cfg.is_reachable(*block));
    function.layout = kept;
    let dropped: Vec<Block> = dropped;
    for block in dropped {
        function.blocks[block] = BlockData { label: function.blocks[block].label.take(), ..BlockData::default() };
    }
}

struct Renaming<'f, 'a> {
    writer: Writer<'f>,
    cfg: &'a Cfg,
    liveness: &'a Liveness,
    parameters: &'a BlockParameters,
    /// Current value of each register.
    current: SecondaryMap<Reg, PackedOption<Reg>>,
    /// Previous values of [`Renaming::current`], to restore when the walk leaves a block.
    undo: Vec<(Reg, PackedOption<Reg>)>,
    /// Number of values that each register has had.
    values: SecondaryMap<Reg, u32>,
    /// Zero of each type that is read somewhere.
    zeros: HashMap<Type, Reg>,
    /// Results of the function that are registers.
    results: Vec<Reg>,
}

/// Step of the walk over the dominator tree.
enum TreeStep {
    Enter(Block),
    Leave(usize),
}

impl<'f, 'a> Renaming<'f, 'a> {
    fn new(function: &'f mut Function, cfg: &'a Cfg, liveness: &'a Liveness, parameters: &'a BlockParameters) -> Self {
        let mut current: SecondaryMap<Reg, PackedOption<Reg>> = SecondaryMap::new();
        let mut values: SecondaryMap<Reg, u32> = SecondaryMap::new();
        for reg in register_params(&function.params) {
            current[reg] = reg.into();
            values[reg] = 1;
        }
        let results: Vec<Reg> = register_params(&function.results).collect();
        // The register of a result is written before each `ret`; its values get other names.
        for reg in &results {
            values[*reg] = 1;
        }
        let writer = Writer::new(function);
        Renaming { writer, cfg, liveness, parameters, current, undo: vec![], values, zeros: HashMap::new(), results }
    }

    fn run(mut self, dominators: &Dominators) {
        let mut steps = vec![TreeStep::Enter(self.cfg.entry())];
        while let Some(step) = steps.pop() {
            match step {
                TreeStep::Leave(mark) => {
                    while self.undo.len() > mark {
                        let Some((reg, before)) = self.undo.pop() else { break };
                        self.current[reg] = before;
                    }
                }
                TreeStep::Enter(block) => {
                    steps.push(TreeStep::Leave(self.undo.len()));
                    self.block(block);
                    steps.extend(dominators.children(block).iter().rev().map(|child| TreeStep::Enter(*child)));
                }
            }
        }
        self.define_zeros();
    }

    /// Creates a new value of a register.
    fn value_of(&mut self, reg: Reg) -> Reg {
        let count = self.values[reg];
        self.values[reg] += 1;
        if count == 0 {
            return reg;
        }
        let RegData { name, ty } = &self.writer.function.regs[reg];
        let data = RegData { name: format!("{name}${count}"), ty: *ty };
        self.writer.function.regs.push(data)
    }

    fn set(&mut self, reg: Reg, value: Reg) {
        self.undo.push((reg, self.current[reg]));
        self.current[reg] = value.into();
    }

    /// Returns the current value of a register.
    fn get(&mut self, reg: Reg) -> Reg {
        match self.current[reg].expand() {
            Some(value) => value,
            None => {
                let ty = self.writer.function.regs[reg].ty;
                let regs = &mut self.writer.function.regs;
                *self.zeros.entry(ty).or_insert_with(|| regs.push(RegData { name: format!("%zero${}", ty.name()), ty }))
            }
        }
    }

    fn block(&mut self, block: Block) {
        let params: Vec<Reg> = self.parameters.of(block).to_vec();
        for reg in params {
            let value = self.value_of(reg);
            self.set(reg, value);
            self.writer.function.blocks[block].params.push(value);
        }
        let read_later = self.read_later(block);
        for (index, inst) in std::mem::take(&mut self.writer.function.blocks[block].insts).into_iter().enumerate() {
            self.instruction(inst, read_later.get(&index).map_or(&[], Vec::as_slice));
        }
        self.writer.function.blocks[block].insts = self.writer.take();
        for target in self.cfg.successors(block) {
            let args = self.parameters.of(*target).iter().map(|reg| self.get(*reg)).collect();
            self.writer.function.blocks[block].edges.push(Edge { target: *target, args });
        }
    }

    /// Returns, for each guarded instruction of a block, those of its results that are read later.
    fn read_later(&self, block: Block) -> HashMap<usize, Vec<Reg>> {
        let mut later = HashMap::new();
        let function = &*self.writer.function;
        let insts = &function.blocks[block].insts;
        let guarded = |inst: &Inst| function.insts[*inst].guard.is_some() && !function.insts[*inst].is_control();
        if insts.iter().any(guarded) {
            self.liveness.walk_back(function, block, |index, live| {
                if guarded(&insts[index]) {
                    let written = function.insts[insts[index]].writes();
                    later.insert(index, written.into_iter().filter(|reg| live.contains(*reg)).collect());
                }
            });
        }
        later
    }

    fn instruction(&mut self, inst: Inst, read_later: &[Reg]) {
        self.writer.at(inst);
        let mut data = std::mem::replace(&mut self.writer.function.insts[inst], nothing());
        data.change_reads(|reg| *reg = self.get(*reg));
        if data.opcode() == Some(Opcode::Ret) {
            self.give_results();
        }
        let guard = data.guard;
        if guard.is_some() && !data.is_control() && is_speculable(&data) {
            data.guard = None;
        }
        let old: Vec<Reg> = if guard.is_some() { read_later.iter().map(|reg| self.get(*reg)).collect() } else { vec![] };
        data.change_writes(|reg| {
            let value = self.value_of(*reg);
            self.set(*reg, value);
            *reg = value;
        });
        self.writer.function.insts[inst] = data;
        self.writer.insts.push(inst);
        if let Some(guard) = guard {
            for (index, (reg, old)) in read_later.iter().zip(old).enumerate() {
                // An instruction may write a register twice; the last write counts.
                if !read_later[index + 1..].contains(reg) {
                    self.merge(*reg, guard, old);
                }
            }
        }
    }

    /// Selects the new value if the guard holds, else the old one.
    fn merge(&mut self, reg: Reg, guard: Guard, old: Reg) {
        let new = self.get(reg);
        let merged = self.value_of(reg);
        let name = self.writer.function.regs[merged].name.clone();
        let mut number = 0;
        self.writer.select(merged, guard, [new, old], &mut |function, ty| {
            number += 1;
            function.regs.push(RegData { name: format!("{name}${number}"), ty })
        });
        self.set(reg, merged);
    }

    fn give_results(&mut self) {
        for result in self.results.clone() {
            let value = self.get(result);
            self.writer.copy(result, value);
        }
    }

    /// Defines zeros at the start of the first block, which dominates all others.
    fn define_zeros(mut self) {
        let mut zeros: Vec<Reg> = self.zeros.values().copied().collect();
        zeros.sort();
        self.writer = Writer::new(self.writer.function);
        for zero in zeros {
            self.writer.zero(zero, &mut |function, ty| function.regs.push(RegData { name: "%zero$half".into(), ty }));
        }
        let mut insts = self.writer.take();
        let entry = self.cfg.entry();
        insts.append(&mut self.writer.function.blocks[entry].insts);
        self.writer.function.blocks[entry].insts = insts;
    }
}

/// Returns a placeholder for an instruction while it is changed.
fn nothing() -> InstData {
    InstData {
        guard: None,
        mnemonic: Mnemonic::Opaque(Box::default()),
        operands: Default::default(),
        loc: None,
        span: broadloom_diag::Span::default(),
    }
}

fn register_params(params: &[Param]) -> impl Iterator<Item = Reg> {
    params.iter().filter_map(|param| match param {
        Param::Reg(reg) => Some(*reg),
        Param::Memory(_) => None,
    })
}
