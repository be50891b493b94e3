//! Shapes of results from the shapes of operands.
//!
//! Every pure instruction computes equal results in lanes with equal operands. Integers have more precise
//! rules. Exchanged values are equal in lanes that request the same.

use crate::facts::Facts;
use crate::integer::{Arg, InstructionReader, Op, Relation, Step, Words, mask};
use crate::obligations::Obligation;
use crate::ranges::Ranges;
use crate::shape::{LANE_BITS, Shape};
use broadloom_ptx::{
    Base, Block, Class, Effects, Function, Inst, InstData, Opcode, Operand, Param, Reg, Space, Special, Symbol, Type, Variable,
};
use std::cell::RefCell;

/// Input of the rules besides shapes.
pub(crate) struct Rules<'a> {
    pub(crate) function: &'a Function,
    pub(crate) facts: &'a Facts,
    pub(crate) reader: InstructionReader<'a>,
    pub(crate) ranges: &'a Ranges<'a>,
    /// Ranges of a small launch, if lanes may be assumed not to wrap.
    pub(crate) modest: Option<&'a Ranges<'a>>,
    /// True if a variable of the function is `.param` memory that its body writes.
    pub(crate) has_call_params: bool,
    special: Vec<(Special, Shape)>,
}

/// Place of an instruction, and the facts there.
pub(crate) struct InstructionSite<'a> {
    pub(crate) inst: Inst,
    pub(crate) block: Block,
    /// True if all lanes run this block.
    pub(crate) whole: bool,
    /// Shape of a register as read here; `None` while it is unknown.
    pub(crate) shape: &'a dyn Fn(Reg) -> Option<Shape>,
    /// True if all lanes run the block in which a register is defined.
    pub(crate) whole_at: &'a dyn Fn(Reg) -> bool,
    /// Assumptions made here.
    pub(crate) assumed: RefCell<Vec<Obligation>>,
}

impl<'a> Rules<'a> {
    pub(crate) fn new(function: &'a Function, facts: &'a Facts, ranges: &'a Ranges<'a>, modest: Option<&'a Ranges<'a>>) -> Self {
        let is_call_param = |(var, variable): (broadloom_ptx::Var, &Variable)| {
            variable.space == Space::Param && !function.params.contains(&Param::Memory(var))
        };
        let axes = [Special::TidX, Special::TidY, Special::TidZ];
        let special = axes.into_iter().enumerate().map(|(axis, special)| (special, thread_index(facts, axis))).collect();
        Rules {
            function,
            facts,
            reader: InstructionReader::new(function),
            ranges,
            modest,
            has_call_params: function.variables.iter().any(is_call_param),
            special,
        }
    }

    /// Returns the width of a register's shape.
    pub(crate) fn bits(&self, reg: Reg) -> u32 {
        self.function.regs[reg].ty.bits().min(64)
    }

    /// Returns the shapes of an instruction's results, in the order of [`InstData::writes`]; `None` while one
    /// of its operands is unknown.
    pub(crate) fn results(&self, site: &InstructionSite<'_>) -> Option<Vec<Shape>> {
        let data = &self.function.insts[site.inst];
        let written = data.writes();
        let step = self.reader.step(site.inst);
        if let [reg] = written[..]
            && step.result == Some(reg)
            && step.op != Op::Other
        {
            return Some(vec![self.integer(site, &step, data)?.truncated(self.bits(reg))]);
        }
        if let (Some(Opcode::Cvta | Opcode::CvtaTo), [_, Operand::Reg(from)], [reg]) =
            (data.opcode(), &data.operands[..], &written[..])
            && data.space() != Space::Local
            && !(data.space() == Space::Shared && self.function.directive("reqnctapercluster").is_some())
        {
            // Another window is an unknown constant away; shared memory of a cluster lies in several windows.
            let zeros = if data.space() == Space::Global { 64 } else { 0 };
            return Some(vec![(site.shape)(*from)?.truncated(self.bits(*reg)).with_zeros_at_most(zeros)]);
        }
        let group = self.same_in(site, data, &step)?;
        let one = |reg: &Reg| Shape::same_in_groups(self.bits(*reg), group);
        Some(written.iter().map(one).collect())
    }

    /// Returns the size of the lane groups in which the results of an instruction are equal.
    fn same_in(&self, site: &InstructionSite<'_>, data: &InstData, step: &Step) -> Option<u32> {
        let (Some(class), Some(opcode)) = (data.class(), data.opcode()) else { return Some(0) };
        match class {
            Class::Arith | Class::Float | Class::Half | Class::Logic | Class::Shift | Class::Bits | Class::Video => {
                self.operands(site, data)
            }
            Class::Compare => match step.op {
                Op::Compare(relation) => self.comparison(site, data, step, relation),
                _ => self.operands(site, data),
            },
            Class::Convert | Class::Move => self.operands(site, data),
            Class::Carry => match opcode {
                Opcode::AddCc | Opcode::SubCc => self.operands(site, data),
                // They read a carry that is not an operand.
                _ => Some(0),
            },
            Class::Address => match opcode {
                // Each thread has its own local memory.
                Opcode::Cvta if data.space() == Space::Local => Some(0),
                _ => self.operands(site, data),
            },
            Class::Memory => self.load(site, data),
            Class::Barrier => {
                let words = data.operands.iter().skip(1).filter_map(|operand| match operand {
                    Operand::Reg(reg) if self.function.regs[*reg].ty != Type::Pred => Some(*reg),
                    _ => None,
                });
                self.least(site, words)
            }
            Class::Warp => self.exchanged(site, data, opcode),
            Class::Control | Class::Fence | Class::Misc | Class::Atomic => Some(0),
            Class::Texture | Class::Surface | Class::Matrix | Class::Async | Class::Cluster => Some(0),
            Class::Mbarrier => match opcode {
                // Lanes in lockstep that poll the same phase of the same mbarrier get the same answer.
                Opcode::MbarrierTestWait | Opcode::MbarrierTryWait => {
                    self.least(site, data.reads().into_iter().skip(usize::from(data.guard.is_some())))
                }
                Opcode::MbarrierPendingCount => self.operands(site, data),
                _ => Some(0),
            },
            Class::Multimem => Some(0),
        }
    }

    fn least(&self, site: &InstructionSite<'_>, mut regs: impl Iterator<Item = Reg>) -> Option<u32> {
        regs.try_fold(LANE_BITS, |least, reg| Some(least.min((site.shape)(reg)?.uniform_group())))
    }

    /// Returns the size of the groups in which all operands are equal. The guard is not one of them: it
    /// selects the lanes that run.
    fn operands(&self, site: &InstructionSite<'_>, data: &InstData) -> Option<u32> {
        if !data.effects().is_pure() {
            return Some(0);
        }
        let read = data.reads().into_iter().skip(usize::from(data.guard.is_some()));
        let least = self.least(site, read)?;
        let specials = data.operands.iter().filter_map(|operand| match operand {
            Operand::Special(special) => Some(self.special(*special).uniform_group()),
            _ => None,
        });
        Some(specials.fold(least, u32::min))
    }

    /// Handles a load. Its result is equal in lanes that read the same address, if the memory is not private
    /// to a lane and is not written between their reads.
    fn load(&self, site: &InstructionSite<'_>, data: &InstData) -> Option<u32> {
        let effects = data.effects();
        let only_reads = effects.has(Effects::READ) && !effects.writes_memory();
        if !only_reads || data.is_ordered() {
            return Some(0);
        }
        let mut group = LANE_BITS;
        for base in data.addresses().map(|address| address.base) {
            let own = match (data.space(), base) {
                (Space::Local | Space::Tex | Space::Reg, _) => true,
                (Space::Param, Base::Symbol(Symbol::Local(var))) => !self.reader.is_kernel_param(var),
                (Space::Param, Base::Symbol(Symbol::Var(_) | Symbol::Func(_)) | Base::Reg(_) | Base::Absolute) => {
                    !self.function.is_kernel || self.has_call_params
                }
                // Without a space, a local variable's name is an address in no window; a register with one
                // comes from `cvta`.
                (Space::Generic, Base::Symbol(Symbol::Local(_))) => true,
                (Space::Generic | Space::Const | Space::Global | Space::Shared, _) => false,
            };
            if own {
                return Some(0);
            }
            if let Base::Reg(reg) = base {
                group = group.min((site.shape)(reg)?.uniform_group());
            }
        }
        Some(group)
    }

    fn exchanged(&self, site: &InstructionSite<'_>, data: &InstData, opcode: Opcode) -> Option<u32> {
        let group = |operand: Option<&Operand>| match operand {
            Some(Operand::Reg(reg) | Operand::Not(reg)) => Some((site.shape)(*reg)?.uniform_group()),
            _ => Some(LANE_BITS),
        };
        match opcode {
            Opcode::Activemask | Opcode::Vote => Some(LANE_BITS),
            Opcode::VoteSync | Opcode::MatchAllSync | Opcode::ReduxSync => group(data.operands.last()),
            Opcode::Shfl | Opcode::ShflSync => {
                // Results: the value, and possibly whether the source was in range, which differs between
                // lanes.
                if data.writes().len() > 1 {
                    return Some(0);
                }
                // Even a uniform value is not received by all lanes: reading from an inactive lane gives 0.
                let [b, c] = [3, 4].map(|index| data.operands.get(index));
                let Some(Operand::Imm(imm)) = c else { return Some(0) };
                let control = imm.integer_bits().unwrap_or(0);
                let (clamp, segments) = (control & 31, control >> 8 & 31);
                // Segments of 2^n lanes, none of which is out of range: lanes that name the same lane of
                // their segment.
                let size = segments.trailing_zeros().min(LANE_BITS);
                let regular = segments == 31 & !mask(size) && clamp == 31;
                if !data.has_word("idx") || !regular {
                    return Some(0);
                }
                let members = if opcode == Opcode::ShflSync { group(data.operands.last())? } else { LANE_BITS };
                Some(group(b)?.min(size).min(members))
            }
            Opcode::MatchAnySync | Opcode::ElectSync | Opcode::BarWarpSync => Some(0),
            _ => Some(0),
        }
    }

    /// Returns the shape of a special register.
    pub(crate) fn special(&self, special: Special) -> Shape {
        let bits = special.row().ty.bits().min(64);
        if let Some((_, shape)) = self.special.iter().find(|(known, _)| *known == special) {
            return *shape;
        }
        match special {
            Special::Laneid => Shape::of_threads(32, 32, |lane| lane),
            Special::LanemaskEq | Special::LanemaskLe | Special::LanemaskLt | Special::LanemaskGe | Special::LanemaskGt => {
                Shape::varying(bits)
            }
            // All others belong to the warp, the block or the launch; a counter is read once for all lanes.
            _ => match self.facts.special(special, self.facts.grid) {
                Some((low, high)) if low == high => Shape::constant(bits, low),
                _ => Shape::uniform(bits),
            },
        }
    }

    /// Returns the shape of an integer operand in a width.
    fn arg(&self, site: &InstructionSite<'_>, arg: Arg, bits: u32) -> Option<Shape> {
        Some(match arg {
            Arg::Reg(reg) => {
                let shape = (site.shape)(reg)?;
                // For a uniform register, facts about its values hold for its first value.
                let shape = if shape.is_uniform() { shape.with_zeros(self.ranges.range(reg).zeros()) } else { shape };
                shape.truncated(bits)
            }
            Arg::Const(value) => Shape::constant(bits, value),
            Arg::Special(special) => self.special(special).truncated(bits),
            Arg::Other => Shape::uniform(bits),
        })
    }

    /// Returns the only value of an operand, if it is known.
    fn value(&self, arg: Arg, bits: u32) -> Option<u64> {
        match arg {
            Arg::Reg(reg) => self.ranges.range(reg).value().map(|value| value & mask(bits)),
            Arg::Const(value) => Some(value),
            Arg::Special(special) => match self.facts.special(special, self.facts.grid) {
                Some((low, high)) if low == high => Some(low),
                _ => None,
            },
            Arg::Other => None,
        }
    }

    /// Returns whether lanes of a register keep their distances when it is read as a wider integer: proved,
    /// or assumed.
    fn stays(&self, site: &InstructionSite<'_>, arg: Arg, signed: bool, shape: &Shape) -> bool {
        let Arg::Reg(reg) = arg else { return false };
        let (least, most) = shape.spread();
        let (Ok(least), Ok(most)) = (i64::try_from(least), i64::try_from(most)) else { return false };
        if shape.bits() != self.bits(reg) || shape.bits() > 32 {
            return false;
        }
        let whole_at_definition = (site.whole_at)(reg);
        let InstructionSite { inst, block, whole: whole_here, .. } = *site;
        let obligation = Obligation { inst, block, reg, signed, least, most, whole_at_definition, whole_here };
        if obligation.holds(self.ranges) {
            return true;
        }
        let assumed = self.modest.is_some_and(|modest| obligation.holds(modest));
        if assumed {
            site.assumed.borrow_mut().push(obligation);
        }
        assumed
    }

    /// Returns the shape of an operand in more bits.
    fn wide(&self, site: &InstructionSite<'_>, arg: Arg, from: u32, to: u32, signed: bool) -> Option<Shape> {
        let shape = self.arg(site, arg, from)?;
        Some(shape.extended(to, |shape| self.stays(site, arg, signed, shape)))
    }

    fn product(&self, a: (Shape, Option<u64>), b: (Shape, Option<u64>)) -> Shape {
        match (a, b) {
            ((a, _), (_, Some(factor))) => a.times(factor),
            ((_, Some(factor)), (b, _)) => b.times(factor),
            ((a, None), (b, None)) => {
                let group = a.uniform_group().min(b.uniform_group());
                let zeros = a.reduced(group).zeros() + b.reduced(group).zeros();
                Shape::same_in_groups(a.bits(), group).with_zeros(zeros)
            }
        }
    }

    fn integer(&self, site: &InstructionSite<'_>, step: &Step, data: &InstData) -> Option<Shape> {
        let bits = step.ty.bits();
        let signed = step.ty.is_signed();
        let [x, y, z] = step.args;
        let arg = |arg: Arg| self.arg(site, arg, bits);
        let same = |group: u32| Shape::same_in_groups(bits, group);
        let value = |arg: Arg| self.value(arg, bits);
        Some(match step.op {
            Op::Copy => match data.operands.get(1) {
                Some(Operand::Symbol(..)) => Shape::uniform(bits),
                _ => arg(x)?,
            },
            Op::Add => arg(x)?.plus(&arg(y)?),
            Op::Sub => arg(x)?.minus(&arg(y)?),
            Op::Neg => arg(x)?.times(u64::MAX),
            Op::Not => Shape::constant(bits, u64::MAX).minus(&arg(x)?),
            Op::Mul => self.product((arg(x)?, value(x)), (arg(y)?, value(y))),
            Op::Mad => self.product((arg(x)?, value(x)), (arg(y)?, value(y))).plus(&arg(z)?),
            Op::MulWide | Op::MadWide => {
                let wide = |arg: Arg| self.wide(site, arg, bits, 2 * bits, signed);
                let number = |arg: Arg| self.value(arg, bits).map(|value| extend(value, bits, signed));
                let product = self.product((wide(x)?, number(x)), (wide(y)?, number(y)));
                match step.op {
                    Op::MadWide => product.plus(&self.arg(site, z, 2 * bits)?),
                    _ => product,
                }
            }
            Op::Shl => match self.value(y, 32) {
                Some(by) if by >= u64::from(bits) => Shape::constant(bits, 0),
                Some(by) => arg(x)?.times(1 << by),
                None => {
                    let group = arg(x)?.uniform_group().min(self.arg(site, y, 32)?.uniform_group());
                    let zeros = arg(x)?.reduced(group).zeros();
                    same(group).with_zeros(zeros)
                }
            },
            Op::Shr => match self.value(y, 32) {
                Some(by) if by < u64::from(bits) => arg(x)?.shifted_right(by as u32, |shape| self.stays(site, x, signed, shape)),
                _ => same(arg(x)?.uniform_group().min(self.arg(site, y, 32)?.uniform_group())),
            },
            Op::Div | Op::Rem => match value(y).filter(|_| self.reads_alike(site, x, signed)) {
                Some(by) if by.is_power_of_two() => {
                    let power = by.trailing_zeros();
                    match step.op {
                        Op::Div => arg(x)?.shifted_right(power, |shape| self.stays(site, x, false, shape)),
                        _ => arg(x)?.low_part(power),
                    }
                }
                _ => same(arg(x)?.uniform_group().min(arg(y)?.uniform_group())),
            },
            Op::And => {
                let (a, b) = (arg(x)?, arg(y)?);
                let masked = match (value(x), value(y)) {
                    (_, Some(ones)) => a.masked(ones),
                    (Some(ones), None) => b.masked(ones),
                    (None, None) => None,
                };
                let zeros = a.low_zeros().max(b.low_zeros());
                masked.unwrap_or_else(|| same(a.uniform_group().min(b.uniform_group())).with_zeros(zeros))
            }
            Op::Or | Op::Xor => {
                let (a, b) = (arg(x)?, arg(y)?);
                let disjoint = self.most(&b, y) < 1u128 << a.low_zeros() || self.most(&a, x) < 1u128 << b.low_zeros();
                let zeros = a.low_zeros().min(b.low_zeros());
                if disjoint { a.plus(&b) } else { same(a.uniform_group().min(b.uniform_group())).with_zeros(zeros) }
            }
            Op::Select => {
                let decides = self.arg(site, z, 1)?.uniform_group();
                let (a, b) = (arg(x)?, arg(y)?);
                a.meet(&b).reduced(decides)
            }
            Op::BitField => match (self.value(y, 32), self.value(z, 32)) {
                (Some(at), Some(length)) if !signed && at < 256 && length < 256 && at + length <= u64::from(bits) => {
                    // A field that ends below the top cannot wrap.
                    let ends_below = at + length < u64::from(bits);
                    let field = arg(x)?.low_part((at + length) as u32);
                    field.shifted_right(at as u32, |shape| ends_below || self.stays(site, x, false, shape))
                }
                _ => {
                    let places = self.arg(site, y, 32)?.uniform_group().min(self.arg(site, z, 32)?.uniform_group());
                    same(arg(x)?.uniform_group().min(places))
                }
            },
            Op::Convert(from) => self.converted(site, step, from, x)?,
            Op::Min | Op::Max => {
                let (a, b) = (arg(x)?, arg(y)?);
                let zeros = a.low_zeros().min(b.low_zeros());
                same(a.uniform_group().min(b.uniform_group())).with_zeros(zeros)
            }
            Op::Abs => {
                let a = arg(x)?;
                same(a.uniform_group()).with_zeros(a.low_zeros())
            }
            Op::Count => Shape::same_in_groups(32, arg(x)?.uniform_group()),
            Op::Compare(relation) => Shape::same_in_groups(1, self.comparison(site, data, step, relation)?),
            Op::Param(_) | Op::Load => {
                let group = self.load(site, data)?;
                let bits = step.result.map_or(bits, |reg| self.bits(reg));
                Shape::same_in_groups(bits, group)
            }
            Op::Other => same(self.same_in(site, data, step)?),
        })
    }

    /// Returns whether the signed and unsigned readings of a value agree, in all lanes that compute with it.
    fn reads_alike(&self, site: &InstructionSite<'_>, arg: Arg, signed: bool) -> bool {
        match arg {
            _ if !signed => true,
            // The first value counts too: it must be one that a lane has.
            Arg::Reg(reg) => (site.whole_at)(reg) && self.ranges.range(reg).signed().0 >= 0,
            Arg::Const(_) | Arg::Special(_) | Arg::Other => false,
        }
    }

    /// Returns the largest value of an operand in any lane, including first values.
    fn most(&self, shape: &Shape, arg: Arg) -> u128 {
        let all = u128::from(mask(shape.bits()));
        if shape.zeros() == shape.bits() && shape.known() == LANE_BITS {
            let (least, most) = shape.spread();
            return if least == 0 { most as u128 } else { all };
        }
        match arg {
            Arg::Const(value) => u128::from(value),
            Arg::Reg(reg) if shape.is_uniform() => u128::from(self.ranges.range(reg).unsigned().1),
            Arg::Reg(_) | Arg::Special(_) | Arg::Other => all,
        }
    }

    fn converted(&self, site: &InstructionSite<'_>, step: &Step, from: Type, x: Arg) -> Option<Shape> {
        let register = step.result.map_or(step.ty.bits(), |reg| self.bits(reg));
        let source = self.arg(site, x, from.bits())?;
        let stays = |shape: &Shape| self.stays(site, x, from.is_signed(), shape);
        let value = source.extended(step.ty.bits(), stays);
        // A register wider than the type is extended as the type says.
        Some(value.extended(register, |_| false))
    }

    /// Returns the size of the groups in which a comparison has the same result: both sides are equal, or all
    /// lanes of a group are on the same side of a multiple of a power of two.
    fn comparison(&self, site: &InstructionSite<'_>, data: &InstData, step: &Step, relation: Relation) -> Option<u32> {
        let bits = step.ty.bits();
        let [x, y, _] = step.args;
        let (a, b) = (self.arg(site, x, bits)?, self.arg(site, y, bits)?);
        let mut group = a.uniform_group().min(b.uniform_group());
        group = group.max(self.one_side(relation, &a, &b, self.value(y, bits)));
        group = group.max(self.one_side(relation.swapped(), &b, &a, self.value(x, bits)));
        if let Some(Operand::Reg(reg) | Operand::Not(reg)) = data.operands.get(4) {
            group = group.min((site.shape)(*reg)?.uniform_group());
        }
        Some(group)
    }

    fn one_side(&self, relation: Relation, a: &Shape, b: &Shape, value: Option<u64>) -> u32 {
        let fits = |group: u32| {
            let (a, b) = (a.reduced(group), b.reduced(group));
            let (least, most) = a.spread();
            // All lanes lie between two multiples of this power.
            let power = 128 - most.leading_zeros();
            let within = least == 0 && power <= a.zeros().min(a.bits() - 1);
            let parted = match relation {
                Relation::Lt | Relation::Ge => b.zeros() >= power,
                Relation::Le | Relation::Gt => value.is_some_and(|value| value & mask(power) == mask(power)),
                Relation::Eq | Relation::Ne => false,
            };
            a.known() == group && b.uniform_group() >= group && within && parted
        };
        (1..=LANE_BITS).rev().find(|group| fits(*group)).unwrap_or(0)
    }
}

/// Extends a number of some width to 64 bits.
fn extend(value: u64, bits: u32, signed: bool) -> u64 {
    if signed { crate::range::sign_extended(value, bits) as u64 } else { value & mask(bits) }
}

/// Returns the shape of a thread's index in its block along an axis.
fn thread_index(facts: &Facts, axis: usize) -> Shape {
    let [x, y, _] = facts.block.map(|count| u64::from(count.max(1)));
    // Manual, "Thread Hierarchy": threads are numbered along x first, and 32 in a row are a warp.
    let threads = facts.threads().min(1024);
    Shape::of_threads(32, threads, |thread| match axis {
        0 => thread % x,
        1 => thread / x % y,
        _ => thread / (x * y),
    })
}
