//! Shapes: differences of a value between the lanes of a warp.
//!
//! The lane number has five bits. A shape knows, for the lowest [`known`](Shape::known) of them, by how much
//! the value grows when the bit is set: in each aligned group of `2^known` lanes the value is
//! `first + Σ step[b]·bit b of the lane`, modulo 2 to the width. A uniform value has five steps of zero; one
//! that grows by `s` from lane to lane has the steps `s, 2s, 4s, 8s, 16s`; the row of a thread in a block of
//! 8 threads per row has `0, 0, 0, 1, 2`. The first value of each group is known to be a multiple of a power
//! of two.
//!
//! A shape holds for the lanes that run the instruction. **The first value of a result is the instruction's
//! result on the first values of its operands**, whether or not the first lane is active, so code may keep a
//! first value instead of a vector.

use crate::integer::mask;
use crate::range::sign_extended;
use std::fmt;

/// Number of bits of a lane number.
pub const LANE_BITS: u32 = 5;

/// Shape of a value across the lanes of a warp.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    bits: u32,
    known: u32,
    /// Steps modulo 2 to the width; zero above the known ones.
    steps: [u64; LANE_BITS as usize],
    /// Number of zero low bits of the first value: at most the width, and the width itself if the first value
    /// is zero.
    zeros: u32,
}

impl Shape {
    /// Returns the shape of an unknown value.
    pub fn varying(bits: u32) -> Shape {
        Shape::same_in_groups(bits, 0)
    }

    /// Returns the shape of a value that is equal in all lanes.
    pub fn uniform(bits: u32) -> Shape {
        Shape::same_in_groups(bits, LANE_BITS)
    }

    /// Returns the shape of a constant.
    pub fn constant(bits: u32, value: u64) -> Shape {
        let zeros = (value & mask(bits)).trailing_zeros().min(bits);
        Shape { zeros, ..Shape::uniform(bits) }
    }

    /// Returns the shape of a value that is equal in each aligned group of 2 to the `group` lanes.
    pub fn same_in_groups(bits: u32, group: u32) -> Shape {
        Shape { bits, known: group.min(LANE_BITS), steps: [0; 5], zeros: 0 }
    }

    /// Returns the shape of a value that is a function of the thread's index in the block, for `threads`
    /// threads in warps of 32.
    pub(crate) fn of_threads(bits: u32, threads: u64, value: impl Fn(u64) -> u64) -> Shape {
        let mut shape = Shape::varying(bits);
        for bit in 0..LANE_BITS {
            let apart = 1u64 << bit;
            let mut lower = (0..threads.saturating_sub(apart)).filter(|thread| thread & apart == 0);
            let step = |thread: u64| value(thread + apart).wrapping_sub(value(thread)) & mask(bits);
            let first = match lower.next() {
                Some(thread) => step(thread),
                // No thread has this bit: any step that fits the others.
                None if bit > 0 => shape.steps[bit as usize - 1] << 1 & mask(bits),
                None => 0,
            };
            if !lower.all(|thread| step(thread) == first) {
                break;
            }
            shape.steps[bit as usize] = first;
            shape.known = bit + 1;
        }
        let firsts = (0..threads).step_by(1 << shape.known).map(|thread| value(thread) & mask(bits));
        shape.zeros = firsts.map(|first| first.trailing_zeros().min(bits)).min().unwrap_or(0);
        shape
    }

    /// Returns the width of the value.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the number of low bits of the lane number with a known step: the value is known relative to
    /// the first one in each aligned group of 2 to this many lanes.
    pub fn known(&self) -> u32 {
        self.known
    }

    /// Returns the growth of the value when a bit of the lane number is set, modulo 2 to the width; only for
    /// known bits.
    pub fn step(&self, bit: u32) -> Option<u64> {
        (bit < self.known).then(|| self.steps[bit as usize])
    }

    /// Returns the difference between a lane of a group and the first one, modulo 2 to the width; `None` for
    /// lanes in no known relation.
    pub fn offset(&self, lane_in_group: u32) -> Option<u64> {
        let sum = (0..LANE_BITS).filter(|bit| lane_in_group >> bit & 1 != 0).try_fold(0u64, |sum, bit| {
            let step = self.step(bit)?;
            Some(sum.wrapping_add(step))
        })?;
        (lane_in_group < 32).then_some(sum & mask(self.bits))
    }

    /// Returns the largest `g` such that in each aligned group of `2^g` lanes the value is
    /// `first + stride · lane in the group`.
    pub fn group(&self) -> u32 {
        let fits = |bit: u32| self.steps[bit as usize] == self.steps[0] << bit & mask(self.bits);
        (0..self.known).find(|bit| !fits(*bit)).unwrap_or(self.known)
    }

    /// Returns the signed distance from lane to lane within a [group](Shape::group); 0 in groups of one.
    pub fn stride(&self) -> i64 {
        if self.known == 0 { 0 } else { sign_extended(self.steps[0], self.bits) }
    }

    /// Returns the largest `g` such that all lanes of an aligned group of `2^g` have the same value.
    pub fn uniform_group(&self) -> u32 {
        (0..self.known).find(|bit| self.steps[*bit as usize] != 0).unwrap_or(self.known)
    }

    /// Returns whether all lanes have the same value.
    pub fn is_uniform(&self) -> bool {
        self.uniform_group() == LANE_BITS
    }

    /// Returns whether nothing is known of lanes relative to each other.
    pub fn is_varying(&self) -> bool {
        self.known == 0
    }

    /// Returns the number of low bits that are zero in the value of every lane.
    pub fn low_zeros(&self) -> u32 {
        self.reduced(0).zeros
    }

    /// Returns the number of low bits that are zero in the first value of each known group.
    pub fn zeros(&self) -> u32 {
        self.zeros
    }

    /// Returns the shape with more known zeros.
    pub(crate) fn with_zeros(self, zeros: u32) -> Shape {
        Shape { zeros: self.zeros.max(zeros.min(self.bits)), ..self }
    }

    /// Returns the shape with at most `zeros` known zeros.
    pub(crate) fn with_zeros_at_most(self, zeros: u32) -> Shape {
        Shape { zeros: self.zeros.min(zeros), ..self }
    }

    /// Returns the shape of the value in smaller groups.
    pub fn reduced(&self, group: u32) -> Shape {
        let mut shape = *self;
        while shape.known > group {
            shape.known -= 1;
            let step = std::mem::take(&mut shape.steps[shape.known as usize]);
            if step != 0 {
                shape.zeros = shape.zeros.min(step.trailing_zeros());
            }
        }
        shape
    }

    /// Returns the shape of a value that has one shape or the other, the same one in all lanes of a group.
    pub fn meet(&self, other: &Shape) -> Shape {
        let most = self.known.min(other.known);
        let same = (0..most).find(|bit| self.steps[*bit as usize] != other.steps[*bit as usize]).unwrap_or(most);
        let (a, b) = (self.reduced(same), other.reduced(same));
        Shape { zeros: a.zeros.min(b.zeros), ..a }
    }

    /// Reduces both to groups in which both are known.
    pub(crate) fn aligned(a: &Shape, b: &Shape) -> (Shape, Shape) {
        let known = a.known.min(b.known);
        (a.reduced(known), b.reduced(known))
    }

    /// Returns the steps as signed differences.
    pub(crate) fn differences(&self) -> impl Iterator<Item = i128> + '_ {
        self.steps[..self.known as usize].iter().map(|step| i128::from(sign_extended(*step, self.bits)))
    }

    /// Returns the smallest and the largest difference of a lane to the first of its group.
    pub(crate) fn spread(&self) -> (i128, i128) {
        (self.differences().filter(|step| *step < 0).sum(), self.differences().filter(|step| *step > 0).sum())
    }

    /// Returns the shape of a sum. Sum and difference are correct even with wrapping.
    pub(crate) fn plus(&self, other: &Shape) -> Shape {
        let (a, b) = Shape::aligned(self, other);
        a.with_steps(|bit, step| step.wrapping_add(b.steps[bit]), a.zeros.min(b.zeros))
    }

    pub(crate) fn minus(&self, other: &Shape) -> Shape {
        self.plus(&other.times(u64::MAX))
    }

    /// Returns the shape of the product with a constant.
    pub(crate) fn times(&self, factor: u64) -> Shape {
        let factor = factor & mask(self.bits);
        if factor == 0 {
            return Shape::constant(self.bits, 0);
        }
        let zeros = if self.zeros == self.bits { self.bits } else { (self.zeros + factor.trailing_zeros()).min(self.bits) };
        self.with_steps(|_, step| step.wrapping_mul(factor), zeros)
    }

    fn with_steps(mut self, change: impl Fn(usize, u64) -> u64, zeros: u32) -> Shape {
        for bit in 0..self.known as usize {
            self.steps[bit] = change(bit, self.steps[bit]) & mask(self.bits);
        }
        self.zeros = zeros;
        self
    }

    /// Returns the shape in the largest groups, of this or fewer lanes, for which a condition holds. It holds
    /// for single lanes.
    fn largest(&self, holds: impl Fn(&Shape) -> bool) -> Shape {
        (0..=self.known).rev().map(|group| self.reduced(group)).find(|shape| shape.known == 0 || holds(shape)).unwrap_or(*self)
    }

    /// Returns whether the low parts of the steps add up without a carry out of the zeros of the first value,
    /// and out of the part.
    fn adds_without_carry(&self, part: u32) -> bool {
        let sum: u128 = self.steps[..self.known as usize].iter().map(|step| u128::from(step & mask(part))).sum();
        sum < 1u128 << self.zeros.min(part)
    }

    /// Returns the shape of the value modulo 2 to `part`.
    pub(crate) fn low_part(&self, part: u32) -> Shape {
        if part >= self.bits {
            return *self;
        }
        if part == 0 {
            return Shape::constant(self.bits, 0);
        }
        let shape = self.largest(|shape| shape.adds_without_carry(part));
        let zeros = if shape.zeros >= part { shape.bits } else { shape.zeros };
        shape.with_steps(|_, step| step & mask(part), zeros)
    }

    /// Returns the shape of the value with its low `part` bits cleared.
    pub(crate) fn high_part(&self, part: u32) -> Shape {
        if part >= self.bits {
            return Shape::constant(self.bits, 0);
        }
        let shape = self.largest(|shape| shape.adds_without_carry(part));
        let zeros = if shape.zeros == shape.bits { shape.bits } else { shape.zeros.max(part) };
        shape.with_steps(|_, step| step & !mask(part), zeros)
    }

    /// Returns the shape of the value and a mask; `None` if the ones of the mask are not contiguous.
    pub(crate) fn masked(&self, ones: u64) -> Option<Shape> {
        let ones = ones & mask(self.bits);
        if ones == 0 {
            return Some(Shape::constant(self.bits, 0));
        }
        let (start, end) = (ones.trailing_zeros(), 64 - ones.leading_zeros());
        (ones == mask(end) & !mask(start)).then(|| self.low_part(end).high_part(start))
    }

    /// Returns the shape of the value shifted right. If steps remain after the shift, lanes must not wrap:
    /// `stays` checks that.
    pub(crate) fn shifted_right(&self, by: u32, stays: impl Fn(&Shape) -> bool) -> Shape {
        if by == 0 {
            return *self;
        }
        let bits = self.bits;
        let shape = self.largest(|shape| {
            let below = shape.steps[..shape.known as usize].iter().all(|step| *step <= mask(by));
            shape.adds_without_carry(by) && (below || shape.stays_by_alignment() || stays(shape))
        });
        let zeros = if shape.zeros == bits { bits } else { shape.zeros.saturating_sub(by) };
        shape.with_steps(|_, step| (sign_extended(step, bits) >> by) as u64, zeros)
    }

    /// Returns whether the first value is aligned such that all lanes are between it and the next multiple:
    /// then none wraps, signed or unsigned.
    pub(crate) fn stays_by_alignment(&self) -> bool {
        let (least, most) = self.spread();
        self.known == 0 || least == 0 && most < 1i128 << self.zeros.min(self.bits - 1)
    }

    /// Returns the shape of the value in more bits. Lanes must not wrap, unless they are all equal: `stays`
    /// checks that.
    pub(crate) fn extended(&self, bits: u32, stays: impl Fn(&Shape) -> bool) -> Shape {
        if bits <= self.bits {
            return self.truncated(bits);
        }
        let shape = self.largest(|shape| shape.uniform_group() == shape.known || shape.stays_by_alignment() || stays(shape));
        let zeros = if shape.zeros == shape.bits { bits } else { shape.zeros };
        let from = shape.bits;
        let wide = Shape { bits, ..shape };
        wide.with_steps(|_, step| sign_extended(step, from) as u64, zeros)
    }

    /// Returns the shape of the value's low bits.
    pub(crate) fn truncated(&self, bits: u32) -> Shape {
        let bits = bits.min(self.bits);
        let shape = Shape { bits, ..*self };
        shape.with_steps(|_, step| step, self.zeros.min(bits))
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.group(), self.stride()) {
            (LANE_BITS, 0) => write!(f, "uniform")?,
            (0, _) => write!(f, "varying")?,
            (group, stride) => write!(f, "{stride:+} per lane of {}", 1 << group)?,
        }
        if self.group() < self.known {
            write!(f, ", steps {:?}", &self.steps[..self.known as usize])?;
        }
        match self.zeros {
            0 => Ok(()),
            zeros if zeros == self.bits => write!(f, ", first 0"),
            zeros => write!(f, ", first a multiple of 2^{zeros}"),
        }
    }
}
