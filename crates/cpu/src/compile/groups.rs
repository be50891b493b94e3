//! Several loads from one array at loaded indices, such as the pixels that a resampled one is made of. They share a
//! window ([`super::window`]).

use super::emitter::{Emitter, TranslationError, TranslationResult};
use super::llvm::IntPred;
use super::scattered::Sum;
use super::window::{IndexedWords, WordLoad};
use broadloom_ptx::{Inst, InstData, Opcode, Operand, Reg};
use std::collections::HashSet;

/// Loads that share a window, at most.
const MOST_LOADS: usize = 8;

impl Emitter<'_> {
    /// Matches a load of one word per lane at an index that depends on loaded values.
    fn at_loaded(&self, inst: &InstData) -> Option<WordLoad> {
        self.word_load(inst).filter(|single| !self.is_there(inst) && self.is_loaded(single.reg) && !self.has_rows(single.reg))
    }

    /// Returns whether two loads read one row of an array, under the same guard. Different rows have different windows.
    fn are_alike(&self, a: &WordLoad, first: &InstData, b: &WordLoad, second: &InstData) -> bool {
        let roots = self.roots(a.reg);
        let is_same = a.space == b.space && a.access.ty == b.access.ty && a.address.offset == b.address.offset;
        let is_row = || !roots.is_empty() && self.roots(b.reg) == roots && self.bases(a.reg) == self.bases(b.reg);
        is_same && first.guard == second.guard && is_row()
    }

    /// Reorders the instructions of a block, so that loads from one array at loaded indices stand next to each other, such as the pixels
    /// that a resampled one is made of. Instructions that need them follow, all others between them come before. Nothing with an
    /// effect is passed.
    pub(super) fn in_groups(&self, insts: &[Inst]) -> Vec<Inst> {
        let function = self.function;
        let mut order = insts.to_vec();
        let mut index = 0;
        while index < order.len() {
            let first = &function.insts[order[index]];
            let Some(single) = self.at_loaded(first) else {
                index += 1;
                continue;
            };
            let (mut members, mut before, mut behind) = (vec![order[index]], vec![], vec![]);
            let mut needing: HashSet<Reg> = first.writes().iter().copied().collect();
            // Instructions behind the last member keep their places.
            let (mut end, mut kept) = (index + 1, (0, 0));
            for (place, id) in order.iter().enumerate().skip(index + 1) {
                let inst = &function.insts[*id];
                let is_load = inst.opcode() == Some(Opcode::Ld) && !inst.is_ordered();
                if inst.is_control() || !(inst.effects().is_pure() || is_load) || members.len() == MOST_LOADS {
                    break;
                }
                let needs = inst.reads().iter().any(|read| needing.contains(read));
                let is_member = !needs && self.at_loaded(inst).is_some_and(|other| self.are_alike(&single, first, &other, inst));
                if needs || is_member {
                    needing.extend(inst.writes().iter().copied());
                }
                match (is_member, needs) {
                    (true, _) => {
                        members.push(*id);
                        (end, kept) = (place + 1, (before.len(), behind.len()));
                    }
                    (false, true) => behind.push(*id),
                    (false, false) => before.push(*id),
                }
            }
            before.truncate(kept.0);
            behind.truncate(kept.1);
            let after = index + before.len() + members.len();
            order.splice(index..end, before.into_iter().chain(members).chain(behind));
            index = after;
        }
        order
    }

    /// Emits the loads at the start of a list that read one array at loaded indices. Returns their number; 0 if there are fewer than two.
    pub(super) fn load_group(&mut self, insts: &[Inst]) -> TranslationResult<usize> {
        let function = self.function;
        let Some(first) = insts.first().map(|id| &function.insts[*id]) else { return Ok(0) };
        let Some(single) = self.at_loaded(first) else { return Ok(0) };
        let mut singles = vec![];
        for inst in insts.iter().take(MOST_LOADS).map(|id| &function.insts[*id]) {
            let needs = |other: &WordLoad| {
                other.access.operands.iter().any(|element| inst.reads().iter().any(|read| *element == Operand::Reg(*read)))
            };
            match self.at_loaded(inst) {
                Some(other) if self.are_alike(&single, first, &other, inst) && !singles.iter().any(|(own, _)| needs(own)) => {
                    let Some(sum) = self.sum_of(other.space, other.reg)? else { break };
                    singles.push((other, sum));
                }
                _ => break,
            }
        }
        let index_of = |sum: &Sum| sum.index.filter(|index| index.scale == 4);
        let Some(index) = singles.first().and_then(|(_, sum)| index_of(sum)) else { return Ok(0) };
        let fits = |(_, sum): &(WordLoad, Sum)| index_of(sum).is_some_and(|own| own.signed == index.signed);
        singles.truncate(singles.iter().take_while(|single| fits(single)).count());
        if singles.len() < 2 {
            return Ok(0);
        }
        for id in &insts[..singles.len()] {
            self.check_load(*id)?;
        }
        let (ir, guard, offset) = (self.ir, self.guard(first)?, single.address.offset);
        let mut indices = vec![];
        for (_, sum) in &singles {
            indices.push(self.all_lanes(sum.index.map_or(index.reg, |own| own.reg))?);
        }
        let base = singles[0].1.base;
        let same = singles[1..].iter().map(|(_, sum)| ir.icmp(IntPred::LLVMIntEQ, sum.base, base));
        let same = same.reduce(|all, one| ir.and(all, one));
        let near = IndexedWords { base, signed: index.signed, offset, indices, words: 1 };
        let gathered = || {
            let gather = |(own, sum): &(WordLoad, Sum)| {
                let word = self.gather_by_index(&own.access, sum, offset, guard)?;
                word.ok_or_else(|| TranslationError("words at indices that are not gathered".into()))
            };
            singles.iter().map(gather).collect()
        };
        let values = self.load_window(&single.access, &near, same, guard, &gathered)?;
        self.loads.scattered += singles.len() as u32;
        for ((own, _), value) in singles.iter().zip(values) {
            self.assign(&own.access.operands[0], own.access.ty, value)?;
        }
        Ok(singles.len())
    }
}
