//! Blocks that wait for values of earlier blocks, as shown by addresses.
//!
//! Blocks that pass sums on wait for a word of an earlier block and write their own word after that. Lanes of
//! one warp that wait for other blocks then never wait for each other. The condition is that every address
//! that a block waits for lies below all addresses that it writes afterwards. Then the writer of an awaited
//! word waits for a lower address, and so on, until one does not wait.
//!
//! An address is split into a sum of terms, each times a constant. The terms are values that are uniform in a
//! block, `%tid.x`, and the iteration counts of the loops around the wait. Indices are assumed not to wrap
//! around. A store that is not meant for waiting threads (neither volatile nor atomic), through another
//! parameter of the kernel, does not count.

use super::polls::waits;
use crate::purity::{is_plain_load, is_plain_store, is_pure};
use broadloom_analysis::{Cfg, Dominators, Loop, Loops};
use broadloom_ptx::{Address, Base, Block, Function, Inst, InstData, Modifier, Opcode, Operand, Reg, Space, Special, Type};
use cranelift_entity::SecondaryMap;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Maximum length of the chains of instructions that are followed.
const DEEPEST: usize = 32;

/// Term of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Term {
    /// Value that is uniform in the block, and constant in the loops around the wait.
    Equal(Reg),
    /// `%tid.x`.
    Thread,
    /// Number of iterations of the loop with this header, for the waiting lane.
    Rounds(Block),
}

#[derive(Clone, Debug, Default)]
struct Sum {
    terms: BTreeMap<Term, i64>,
    constant: i64,
}

impl Sum {
    fn of(term: Term) -> Sum {
        Sum { terms: BTreeMap::from([(term, 1)]), constant: 0 }
    }

    /// Returns this sum plus another one times a number.
    fn plus(mut self, other: &Sum, times: i64) -> Option<Sum> {
        for (term, count) in &other.terms {
            let sum = self.terms.entry(*term).or_default();
            *sum = sum.checked_add(count.checked_mul(times)?)?;
        }
        self.terms.retain(|_, count| *count != 0);
        self.constant = self.constant.checked_add(other.constant.checked_mul(times)?)?;
        Some(self)
    }
}

/// Addresses that the threads of a kernel wait for and write.
pub(super) struct WaitAddresses<'f> {
    function: &'f Function,
    cfg: &'f Cfg,
    loops: Loops,
    makers: SecondaryMap<Reg, Option<(Block, Inst)>>,
    homes: HashMap<Reg, Block>,
    /// First register into which each parameter was loaded.
    params: HashMap<(Base, i64), Reg>,
    /// Maximum difference between `%tid.x` of two threads.
    spread: i64,
}

impl<'f> WaitAddresses<'f> {
    pub(super) fn new(function: &'f Function, cfg: &'f Cfg, dominators: &Dominators, shape: Option<[u32; 3]>) -> Self {
        let mut makers = SecondaryMap::new();
        let mut homes = HashMap::new();
        let mut params = HashMap::new();
        for block in cfg.order() {
            for inst in &function.blocks[*block].insts {
                let data = &function.insts[*inst];
                data.writes().into_iter().for_each(|reg| makers[reg] = Some((*block, *inst)));
                if let (Some((base, offset)), Some(Operand::Reg(reg))) = (param(data), data.operands.first()) {
                    params.entry((base, offset)).or_insert(*reg);
                }
            }
            homes.extend(function.blocks[*block].params.iter().map(|reg| (*reg, *block)));
        }
        let loops = Loops::new(cfg, dominators);
        let spread = i64::from(shape.map_or(1024, |[x, ..]| x)) - 1;
        WaitAddresses { function, cfg, loops, makers, homes, params, spread }
    }

    /// Returns whether all addresses that threads poll in loops, except in shared memory, lie below those
    /// that they write after the loop.
    pub(super) fn are_awaited_upwards(&self) -> bool {
        self.cfg.order().iter().all(|block| {
            let Some(around) = self.loops.innermost(*block) else { return true };
            let insts = self.function.blocks[*block].insts.iter().map(|inst| &self.function.insts[*inst]);
            let mut waiting = insts.filter(|data| waits(data) && data.space() != Space::Shared);
            waiting.all(|load| {
                load.opcode() == Some(Opcode::Ld) && load.space() == Space::Global && self.is_below(around, *block, load)
            })
        })
    }

    /// Returns whether the address of a load in a loop lies below those that are written after the loop.
    fn is_below(&self, around: Loop, wait: Block, load: &InstData) -> bool {
        let mut work: Vec<Block> = self.loops[around].exits.iter().map(|(_, to)| *to).collect();
        let mut behind = BTreeSet::new();
        while let Some(block) = work.pop() {
            if behind.insert(block) {
                work.extend(self.cfg.successors(block));
            }
        }
        let insts = behind.iter().flat_map(|block| &self.function.blocks[*block].insts);
        let mut writes = insts.map(|inst| &self.function.insts[*inst]).filter(|data| may_write_globally(data));
        let awaited = self.address(load, wait);
        let elements = load.operands.first().map_or(1, |held| held.elements().len());
        let bytes = load.types().map(|ty| i64::from(ty.bits() / 8)).max().unwrap_or(0) * elements as i64;
        writes.all(|write| self.is_for_others(load, write) || self.lies_below(awaited.as_ref(), self.address(write, wait), bytes))
    }

    /// Returns whether it is a plain store through another parameter.
    fn is_for_others(&self, load: &InstData, write: &InstData) -> bool {
        let param = |data: &InstData| match data.address()?.base {
            Base::Reg(reg) => self.pointer(reg, DEEPEST),
            Base::Symbol(_) | Base::Absolute => None,
        };
        let differ = || param(load).zip(param(write)).is_some_and(|(a, b)| a != b);
        is_plain_store(write) && differ()
    }

    /// Returns the parameter that a register's global address is derived from by additions.
    fn pointer(&self, reg: Reg, depth: usize) -> Option<Address> {
        let depth = depth.checked_sub(1)?;
        let data = &self.function.insts[self.makers[reg]?.1];
        let of = |operand: &Operand| if let Operand::Reg(reg) = operand { self.pointer(*reg, depth) } else { None };
        match (data.opcode()?, data.operands.as_slice()) {
            (Opcode::CvtaTo, [_, Operand::Reg(param)]) if data.space() == Space::Global => {
                let data = &self.function.insts[self.makers[*param]?.1];
                data.address().filter(|_| data.space() == Space::Param && is_plain_load(data))
            }
            (Opcode::Mov, [_, a]) => of(a),
            (Opcode::Add, [_, a, b]) => match (of(a), of(b)) {
                (Some(_), Some(_)) => None,
                (a, b) => a.or(b),
            },
            _ => None,
        }
    }

    /// Returns whether `bytes` bytes that one thread waits for lie below everything that any thread of its
    /// block writes.
    fn lies_below(&self, awaited: Option<&Sum>, written: Option<Sum>, bytes: i64) -> bool {
        let far = || {
            let (awaited, written) = (awaited?, written?);
            let thread = *written.terms.get(&Term::Thread).unwrap_or(&0);
            // The iteration count of the writing thread is unknown here.
            let knows = written.terms.keys().all(|term| !matches!(term, Term::Rounds(_)));
            let distance = written.plus(awaited, -1)?;
            let grows = distance.terms.iter().all(|(term, count)| matches!(term, Term::Rounds(_)) && *count > 0);
            let spread = thread.checked_abs()?.checked_mul(self.spread)?;
            Some(knows && grows && distance.constant.checked_sub(spread)? >= bytes)
        };
        far().unwrap_or(false)
    }

    fn address(&self, data: &InstData, wait: Block) -> Option<Sum> {
        let place = data.address()?;
        let Base::Reg(reg) = place.base else { return None };
        let mut sum = self.sum(reg, wait, None, DEEPEST)?;
        sum.constant = sum.constant.checked_add(place.offset)?;
        Some(sum)
    }

    /// Splits a register into a sum. `open` is a parameter of a loop under examination and is taken as a
    /// term.
    fn sum(&self, reg: Reg, wait: Block, open: Option<Reg>, depth: usize) -> Option<Sum> {
        if open == Some(reg) {
            return Some(Sum::of(Term::Equal(reg)));
        }
        let depth = depth.checked_sub(1)?;
        if let Some(header) = self.homes.get(&reg) {
            return self.counter(reg, *header, wait, depth);
        }
        let (home, inst) = self.makers[reg]?;
        let data = &self.function.insts[inst];
        if let Some(first) = param(data).and_then(|param| self.params.get(&param)) {
            return Some(Sum::of(Term::Equal(*first)));
        }
        let is_narrow = data.types().all(|ty| ty.bits() == 32);
        let constant = |operand: &Operand| match operand {
            Operand::Imm(imm) => imm.integer_bits().map(|bits| if is_narrow { i64::from(bits as i32) } else { bits as i64 }),
            _ => None,
        };
        let of = |operand: &Operand| match operand {
            Operand::Reg(reg) => self.sum(*reg, wait, open, depth),
            operand => Some(Sum { constant: constant(operand)?, ..Sum::default() }),
        };
        let times = |a: &Operand, b: &Operand| match (constant(a), constant(b)) {
            (_, Some(times)) => Sum::default().plus(&of(a)?, times),
            (Some(times), None) => Sum::default().plus(&of(b)?, times),
            (None, None) => None,
        };
        let whole = data.guard.is_none()
            && data.types().all(|ty| matches!(ty, Type::B32 | Type::B64) || ty.is_integer() && ty.bits() >= 32);
        let parts = || match (data.opcode()?, data.operands.as_slice()) {
            (Opcode::Mov, [_, Operand::Special(Special::TidX)]) => Some(Sum::of(Term::Thread)),
            (Opcode::Mov | Opcode::Cvt | Opcode::CvtaTo, [_, a @ Operand::Reg(_)]) => of(a),
            (Opcode::Add, [_, a, b]) => of(a)?.plus(&of(b)?, 1),
            (Opcode::Sub, [_, a, b]) => of(a)?.plus(&of(b)?, -1),
            (Opcode::Shl, [_, a, b]) => Sum::default().plus(&of(a)?, 1i64.checked_shl(u32::try_from(constant(b)?).ok()?)?),
            (Opcode::Mul, [_, a, b]) if !data.has(Modifier::Hi) => times(a, b),
            (Opcode::Mad, [_, a, b, c]) if !data.has(Modifier::Hi) => times(a, b)?.plus(&of(c)?, 1),
            _ => None,
        };
        let sum = if whole { parts() } else { None };
        sum.or_else(|| {
            let again = self.loops.around(wait).any(|around| self.loops.contains(around, home));
            (!again && self.is_equal(reg, depth)).then(|| Sum::of(Term::Equal(reg)))
        })
    }

    /// Matches a parameter of a loop around the wait that changes by a constant in every iteration.
    fn counter(&self, reg: Reg, header: Block, wait: Block, depth: usize) -> Option<Sum> {
        let around = self.loops.headed_by(header).filter(|around| self.loops.contains(*around, wait))?;
        let index = self.function.blocks[header].params.iter().position(|param| *param == reg)?;
        let (mut start, mut step) = (None, None);
        for from in self.cfg.predecessors(header) {
            for edge in self.function.blocks[*from].edges.iter().filter(|edge| edge.target == header) {
                let arg = *edge.args.get(index)?;
                let (known, value) = if self.loops.contains(around, *from) {
                    let next = self.sum(arg, wait, Some(reg), depth)?.plus(&Sum::of(Term::Equal(reg)), -1)?;
                    (&mut step, next)
                } else {
                    (&mut start, self.sum(arg, wait, None, depth)?)
                };
                if known.replace(value).is_some() {
                    return None;
                }
            }
        }
        let step = step.filter(|step: &Sum| step.terms.is_empty())?;
        start?.plus(&Sum::of(Term::Rounds(header)), step.constant)
    }

    /// Returns whether a register that is computed once is uniform in the block. Without a race, threads read
    /// the same value at one address.
    fn is_equal(&self, reg: Reg, depth: usize) -> bool {
        let (Some((_, inst)), Some(depth)) = (self.makers[reg], depth.checked_sub(1)) else { return false };
        let data = &self.function.insts[inst];
        let own = |operand: &Operand| match operand {
            Operand::Special(special) => !special.is_same_in_block(),
            Operand::Vector(_) | Operand::Call(_) => true,
            _ => false,
        };
        let shared = !matches!(data.space(), Space::Local | Space::Generic);
        data.guard.is_none()
            && (is_pure(data) || is_plain_load(data) && shared)
            && !data.operands.iter().any(own)
            && data.reads().into_iter().all(|reg| self.is_equal(reg, depth))
    }
}

/// Returns whether other threads may see its effect in global memory.
fn may_write_globally(data: &InstData) -> bool {
    data.effects().may_write() && !matches!(data.space(), Space::Shared | Space::Local | Space::Param)
}

/// Returns the kernel parameter that an instruction loads.
fn param(data: &InstData) -> Option<(Base, i64)> {
    let place = data.address().filter(|_| data.space() == Space::Param && is_plain_load(data) && data.guard.is_none())?;
    Some((place.base, place.offset))
}
