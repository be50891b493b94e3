//! Conditions on integers that hold when control takes an edge.

use crate::integer::{Arg, InstructionReader, Op, Relation, Words};
use broadloom_ptx::{Block, Function, Inst, Opcode, Operand, Reg};
use cranelift_entity::SecondaryMap;

/// Comparison that holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Test {
    pub(crate) relation: Relation,
    pub(crate) signed: bool,
    pub(crate) bits: u32,
    pub(crate) a: Arg,
    pub(crate) b: Arg,
    /// True if a vote only tells that it holds in some lane of the warp.
    pub(crate) in_some_lane: bool,
}

/// Maximum depth to which predicates of predicates are followed.
const DEPTH: u32 = 8;

/// State of the backward search from a predicate: the remaining depth, and whether its value is that of some
/// lane only.
#[derive(Clone, Copy)]
struct SearchState {
    depth: u32,
    in_some_lane: bool,
}

/// Finder of the conditions that edges imply.
pub(crate) struct Conditions<'a> {
    function: &'a Function,
    reader: &'a InstructionReader<'a>,
    definition: SecondaryMap<Reg, Option<Inst>>,
}

impl<'a> Conditions<'a> {
    pub(crate) fn new(function: &'a Function, reader: &'a InstructionReader<'a>) -> Self {
        let mut definition = SecondaryMap::new();
        for (inst, data) in function.instructions() {
            for reg in data.writes() {
                definition[reg] = Some(inst);
            }
        }
        Conditions { function, reader, definition }
    }

    /// Returns the instruction that writes a register.
    pub(crate) fn definition(&self, reg: Reg) -> Option<Inst> {
        self.definition[reg]
    }

    /// Returns the conditions on the edge with an index: the guard of a branch on the edge to its target, its
    /// negation where control continues after a guarded branch, return or exit.
    pub(crate) fn on_edge(&self, block: Block, index: usize) -> Vec<Test> {
        let mut tests = vec![];
        let data = &self.function.blocks[block];
        let Some(last) = data.insts.last().map(|inst| &self.function.insts[*inst]) else { return tests };
        let Some(guard) = last.guard.filter(|_| last.is_control()) else { return tests };
        let goes_on = index + 1 == data.edges.len();
        match last.opcode() {
            Some(Opcode::Bra | Opcode::Ret | Opcode::Exit | Opcode::Trap) => {
                self.implied(guard.reg, goes_on == guard.negated, SearchState { depth: DEPTH, in_some_lane: false }, &mut tests);
            }
            _ if goes_on => {
                self.implied(guard.reg, guard.negated, SearchState { depth: DEPTH, in_some_lane: false }, &mut tests);
            }
            _ => {}
        }
        tests
    }

    /// Collects the conditions that follow from the value of a predicate.
    fn implied(&self, reg: Reg, value: bool, known: SearchState, tests: &mut Vec<Test>) {
        let Some(inst) = self.definition[reg].filter(|_| known.depth > 0) else { return };
        let data = &self.function.insts[inst];
        let operand = |index: usize| data.operands.get(index);
        let mut known = SearchState { depth: known.depth - 1, ..known };
        let also = |operand: Option<&Operand>, value: bool, known: SearchState, tests: &mut Vec<Test>| match operand {
            Some(Operand::Reg(reg)) => self.implied(*reg, value, known, tests),
            Some(Operand::Not(reg)) => self.implied(*reg, !value, known, tests),
            _ => {}
        };
        match data.opcode() {
            // The result of a guarded instruction is known only if its guard holds; otherwise it must not be
            // read.
            Some(Opcode::Setp) => {
                let step = self.reader.step(inst);
                let second = operand(1) == Some(&Operand::Reg(reg));
                let joined = ["and", "or", "xor"].into_iter().find(|word| data.has_word(word));
                let decided = match joined {
                    None => true,
                    Some("and") => value,
                    Some("or") => !value,
                    Some(_) => false,
                };
                if !decided {
                    return;
                }
                if let Op::Compare(relation) = step.op {
                    let relation = if value != second { relation } else { relation.negated() };
                    let [a, b, _] = step.args;
                    let (signed, bits) = (step.ty.is_signed(), step.ty.bits());
                    tests.push(Test { relation, signed, bits, a, b, in_some_lane: known.in_some_lane });
                }
                also(operand(4), value, known, tests);
            }
            Some(Opcode::And) if value => {
                also(operand(1), true, known, tests);
                also(operand(2), true, known, tests);
            }
            Some(Opcode::Or) if !value => {
                also(operand(1), false, known, tests);
                also(operand(2), false, known, tests);
            }
            // Some lane had a true predicate. (If none had, this lane had not either.)
            Some(Opcode::Vote | Opcode::VoteSync) if data.has_word("any") => {
                known.in_some_lane |= value;
                also(operand(1), value, known, tests);
            }
            Some(Opcode::Not) => also(operand(1), !value, known, tests),
            Some(Opcode::Mov) => also(operand(1), value, known, tests),
            _ => {}
        }
    }
}
