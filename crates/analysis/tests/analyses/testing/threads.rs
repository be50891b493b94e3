//! Executes kernels in SSA form thread by thread and records the value of every register at every block, to
//! check shapes and ranges.

use broadloom_analysis::facts::param_offsets;
use broadloom_analysis::loops::Loops;
use broadloom_analysis::{Cfg, KnownParams};
use broadloom_eval::{Operation, immediate, inputs};
use broadloom_ptx::{Base, Block, Function, InstData, Opcode, Operand, Reg, Space, Special, Symbol, Type};
use std::collections::BTreeMap;

/// Launch of which single threads are run.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) block: [u32; 3],
    pub(crate) grid: [u32; 3],
    pub(crate) params: KnownParams,
}

/// Visit of a block, with the visit counts of the headers of the loops around it, from the outermost in.
pub(crate) type Visit = (Block, Vec<u32>);

/// Registers at the end of each visit of a block.
pub(crate) type Trace = BTreeMap<Visit, Vec<Option<u64>>>;

pub(crate) struct Thread<'a> {
    pub(crate) function: &'a Function,
    pub(crate) cfg: &'a Cfg,
    pub(crate) loops: &'a Loops,
    pub(crate) launch: &'a Launch,
    pub(crate) ctaid: [u32; 3],
    /// Number of the thread in its block.
    pub(crate) number: u32,
}

fn cut(value: u64, bits: u32) -> u64 {
    broadloom_eval::truncate(value, bits)
}

/// Returns the contents of memory: an arbitrary function of the address.
fn memory(address: u64) -> u64 {
    let mixed = (address ^ 0x5bd1_e995).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

impl Thread<'_> {
    /// Runs the thread; returns `None` if it visits too many blocks.
    pub(crate) fn run(&self) -> Option<Trace> {
        let mut trace = Trace::new();
        let mut regs: Vec<Option<u64>> = vec![None; self.function.regs.len()];
        let mut counts: BTreeMap<Block, u32> = BTreeMap::new();
        let mut block = self.cfg.entry();
        loop {
            if trace.len() > 120 {
                return None;
            }
            if let Some(id) = self.loops.headed_by(block) {
                // Inner loops start anew.
                for inner in &self.loops[id].blocks[1..] {
                    counts.remove(inner);
                }
                *counts.entry(block).or_default() += 1;
            }
            let mut visit: Vec<u32> = self.loops.around(block).map(|id| counts[&self.loops[id].header]).collect();
            visit.reverse();
            let data = &self.function.blocks[block];
            for inst in &data.insts {
                let data = &self.function.insts[*inst];
                if !data.is_control() {
                    let values = self.execute(data, |reg| regs[reg.as_u32() as usize].unwrap());
                    for (reg, value) in data.writes().into_iter().zip(values) {
                        regs[reg.as_u32() as usize] = Some(cut(value, self.function.regs[reg].ty.bits()));
                    }
                }
            }
            let old = trace.insert((block, visit), regs.clone());
            assert!(old.is_none(), "one visit of {block} per iteration");
            let taken = match data.insts.last().map(|inst| &self.function.insts[*inst]) {
                Some(last) if last.is_control() => {
                    let holds = last.guard.is_none_or(|guard| (regs[guard.reg.as_u32() as usize] == Some(1)) != guard.negated);
                    match (holds, last.opcode()) {
                        (true, Some(Opcode::Bra)) => Some(0),
                        (true, _) => None,
                        (false, _) => data.edges.len().checked_sub(1),
                    }
                }
                _ => data.edges.len().checked_sub(1),
            };
            let Some(edge) = taken.map(|index| &data.edges[index]) else { return Some(trace) };
            // A loop that is left and entered again counts from the start.
            for id in self.loops.around(block).filter(|id| !self.loops.contains(*id, edge.target)) {
                counts.remove(&self.loops[id].header);
            }
            let values: Vec<Option<u64>> = edge.args.iter().map(|arg| regs[arg.as_u32() as usize]).collect();
            for (param, value) in self.function.blocks[edge.target].params.iter().zip(values) {
                regs[param.as_u32() as usize] = value;
            }
            block = edge.target;
        }
    }

    /// Returns the results of an instruction, given the values of registers.
    pub(crate) fn execute(&self, data: &InstData, read: impl Fn(Reg) -> u64) -> Vec<u64> {
        let value = |operand: &Operand, ty: Type| match operand {
            Operand::Reg(reg) => read(*reg),
            Operand::Not(reg) => 1 - read(*reg),
            Operand::Imm(imm) => immediate(*imm, ty),
            Operand::Special(special) => self.special(*special),
            _ => 0,
        };
        match data.opcode().unwrap() {
            Opcode::Mov => vec![value(&data.operands[1], data.types().next().unwrap_or(Type::Pred))],
            Opcode::Cvta | Opcode::CvtaTo => vec![value(&data.operands[1], Type::U64)],
            Opcode::Ld => {
                let Operand::Memory(address) = &data.operands[1] else { panic!("{data:?}") };
                let bytes = data.types().last().unwrap().bytes() as usize;
                let loaded = match (data.space(), address.base) {
                    (Space::Param, Base::Symbol(Symbol::Local(var))) => {
                        self.launch.params.get(param_offsets(self.function)[&var], bytes).unwrap()
                    }
                    (Space::Local, Base::Reg(reg)) => memory(read(reg) ^ u64::from(self.number) << 40),
                    (_, Base::Reg(reg)) => memory(read(reg).wrapping_add_signed(address.offset)),
                    other => panic!("{other:?}"),
                };
                vec![cut(loaded, 8 * bytes as u32)]
            }
            Opcode::St => vec![],
            _ => {
                let mut given = [0; 6];
                for (index, (operand, ty)) in inputs(data).enumerate() {
                    given[index] = value(operand, ty);
                }
                let operation = Operation::of(data).unwrap();
                let outcome = operation.evaluate(&given, false).unwrap_or_else(|| panic!("{}", data.mnemonic_text()));
                match outcome {
                    broadloom_eval::Outcome::One(value) | broadloom_eval::Outcome::Carry(value, _) => vec![value],
                    broadloom_eval::Outcome::Pair(values) => values.to_vec(),
                }
            }
        }
    }

    fn special(&self, special: Special) -> u64 {
        let ([x, y, _], number) = (self.launch.block, self.number);
        u64::from(match special {
            Special::TidX => number % x,
            Special::TidY => number / x % y,
            Special::TidZ => number / (x * y),
            Special::NtidX => self.launch.block[0],
            Special::NtidY => self.launch.block[1],
            Special::NtidZ => self.launch.block[2],
            Special::CtaidX => self.ctaid[0],
            Special::CtaidY => self.ctaid[1],
            Special::CtaidZ => self.ctaid[2],
            Special::NctaidX => self.launch.grid[0],
            Special::NctaidY => self.launch.grid[1],
            Special::NctaidZ => self.launch.grid[2],
            Special::Laneid => number % 32,
            other => panic!("{other:?}"),
        })
    }
}
