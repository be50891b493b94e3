//! Special registers (manual: "Special Registers"). They are read at the start of the warp, so that they are
//! available in every block.
//!
//! Lanes after the last thread of a block do not exist; their thread ids continue to count in `z`.

use super::emitter::{Emitter, TranslationError, TranslationResult};
use super::llvm::Val;
use super::state::SpecialValue;
use crate::abi::offset;
use broadloom_ptx::{Mention, Operand, Special, specials};

impl Emitter<'_> {
    /// Reads all special registers that the kernel names, except those that change.
    pub(crate) fn prepare_specials(&mut self) {
        let function = self.function;
        let mut named = vec![];
        for (_, inst) in function.instructions() {
            inst.each_mention(|mention| {
                if let Mention::Operand(Operand::Special(special), _) = mention {
                    named.push(*special);
                }
            });
        }
        for special in named {
            if !self.specials.0.contains_key(&special)
                && let Some(held) = self.hold(special)
            {
                self.specials.0.insert(special, held);
            }
        }
    }

    /// Returns the value of a special register: of lane 0, or of all lanes.
    pub(crate) fn special(&self, special: Special, scalar: bool) -> TranslationResult<Val> {
        let held = match self.specials.0.get(&special) {
            Some(held) => *held,
            None => SpecialValue::Scalar(self.changing(special)?, 0),
        };
        Ok(match (held, scalar, self.lanes) {
            (SpecialValue::Scalar(value, stride), false, Some(lanes)) => self.spread(value, stride, lanes),
            (SpecialValue::Scalar(value, _), _, _) => value,
            (SpecialValue::Vector(value), true, _) => self.ir.extract_at(value, 0),
            (SpecialValue::Vector(value), false, _) => value,
        })
    }

    /// Reads a clock, which has another value each time.
    fn changing(&self, special: Special) -> TranslationResult<Val> {
        let ir = self.ir;
        let (timer, high) = match special {
            Special::Clock | Special::Clock64 => (false, false),
            Special::ClockHi => (false, true),
            Special::Globaltimer | Special::GlobaltimerLo => (true, false),
            Special::GlobaltimerHi => (true, true),
            other => return Err(TranslationError(format!("the special register `{}`", other.text()))),
        };
        let which = ir.constant(ir.int(32), u64::from(timer));
        let value = self.serve(super::runtime::Service::Clock, ir.int(64), &[which]);
        let value = if high { ir.lshr(value, ir.constant(ir.int(64), 32)) } else { value };
        let wide = matches!(special, Special::Clock64 | Special::Globaltimer);
        Ok(if wide { value } else { ir.trunc(value, ir.int(32)) })
    }

    fn number(&self, value: u32) -> SpecialValue {
        SpecialValue::Scalar(self.ir.constant(self.ir.int(32), u64::from(value)), 0)
    }

    fn of_warp(&self, place: u64) -> SpecialValue {
        SpecialValue::Scalar(self.field(self.ir.int(32), place), 0)
    }

    /// Returns the linear index of the thread in the block, of all lanes.
    fn linear(&self) -> Val {
        match self.lanes {
            Some(lanes) => self.spread(self.first, 1, lanes),
            None => self.first,
        }
    }

    fn tid(&self, axis: usize) -> SpecialValue {
        let ir = self.ir;
        let [x, y, z] = self.block.map(u64::from);
        if y == 1 && z == 1 {
            return if axis == 0 { SpecialValue::Scalar(self.first, 1) } else { self.number(0) };
        }
        let rows = x % 32 == 0 || self.lanes.is_none();
        let all = if rows { self.first } else { self.linear() };
        let number = |value: u64| ir.constant(ir.type_of(all), value);
        let value = match axis {
            0 => ir.urem(all, number(x)),
            1 if z == 1 => ir.udiv(all, number(x)),
            1 => ir.urem(ir.udiv(all, number(x)), number(y)),
            _ => ir.udiv(all, number(x * y)),
        };
        if rows { SpecialValue::Scalar(value, i64::from(axis == 0)) } else { SpecialValue::Vector(value) }
    }

    fn lane(&self) -> SpecialValue {
        let ir = self.ir;
        match self.lanes {
            Some(_) => SpecialValue::Scalar(ir.constant(ir.int(32), 0), 1),
            None => SpecialValue::Scalar(ir.and(self.first, ir.constant(ir.int(32), 31)), 0),
        }
    }

    /// Returns a lane mask computed from the number of the lane.
    fn lane_mask(&self, make: impl Fn(u64) -> u64) -> SpecialValue {
        let ir = self.ir;
        let i32 = ir.int(32);
        match self.lanes {
            Some(lanes) => {
                let masks: Vec<Val> = (0..u64::from(lanes)).map(|lane| ir.constant(i32, make(lane) & 0xffff_ffff)).collect();
                SpecialValue::Vector(ir.constants(&masks))
            }
            None => {
                // One thread: the mask is computed from the lane number.
                let SpecialValue::Scalar(lane, _) = self.lane() else { return self.number(0) };
                let one = ir.shl(ir.constant(i32, 1), lane);
                let below = ir.sub(one, ir.constant(i32, 1));
                let up_to = ir.or(below, one);
                let value = match (make(1) & 0xff, make(2) & 0xff) {
                    (0x02, _) => one,
                    (0x03, _) => up_to,
                    (0x01, _) => below,
                    (0xfe, _) => ir.not(below),
                    _ => ir.not(up_to),
                };
                SpecialValue::Scalar(value, 0)
            }
        }
    }

    /// Returns the value of a special register that is constant throughout the kernel; `None` for those that
    /// change.
    fn hold(&self, special: Special) -> Option<SpecialValue> {
        let ir = self.ir;
        let threads: u32 = self.block.iter().product();
        Some(match special {
            Special::TidX => self.tid(0),
            Special::TidY => self.tid(1),
            Special::TidZ => self.tid(2),
            Special::NtidX => self.number(self.block[0]),
            Special::NtidY => self.number(self.block[1]),
            Special::NtidZ => self.number(self.block[2]),
            Special::CtaidX => self.of_warp(offset::CTAID),
            Special::CtaidY => self.of_warp(offset::CTAID + 4),
            Special::CtaidZ => self.of_warp(offset::CTAID + 8),
            Special::NctaidX => self.of_warp(offset::NCTAID),
            Special::NctaidY => self.of_warp(offset::NCTAID + 4),
            Special::NctaidZ => self.of_warp(offset::NCTAID + 8),
            Special::ClusteridX => SpecialValue::Scalar(self.in_clusters(offset::CTAID, 0), 0),
            Special::ClusteridY => SpecialValue::Scalar(self.in_clusters(offset::CTAID, 1), 0),
            Special::ClusteridZ => SpecialValue::Scalar(self.in_clusters(offset::CTAID, 2), 0),
            Special::NclusteridX => SpecialValue::Scalar(self.in_clusters(offset::NCTAID, 0), 0),
            Special::NclusteridY => SpecialValue::Scalar(self.in_clusters(offset::NCTAID, 1), 0),
            Special::NclusteridZ => SpecialValue::Scalar(self.in_clusters(offset::NCTAID, 2), 0),
            Special::TidW | Special::CtaidW | Special::ClusteridW | Special::ClusterCtaidW => self.number(0),
            Special::NtidW | Special::NctaidW | Special::NclusteridW | Special::ClusterNctaidW => self.number(1),
            Special::ClusterCtaidX => SpecialValue::Scalar(self.cluster_ctaid(0), 0),
            Special::ClusterCtaidY => SpecialValue::Scalar(self.cluster_ctaid(1), 0),
            Special::ClusterCtaidZ => SpecialValue::Scalar(self.cluster_ctaid(2), 0),
            Special::ClusterNctaidX => self.number(self.cluster.size[0]),
            Special::ClusterNctaidY => self.number(self.cluster.size[1]),
            Special::ClusterNctaidZ => self.number(self.cluster.size[2]),
            Special::ClusterCtarank => SpecialValue::Scalar(self.cluster_rank(), 0),
            Special::ClusterNctarank => self.number(self.cluster.blocks() as u32),
            Special::IsExplicitCluster => SpecialValue::Scalar(ir.constant(ir.int(1), u64::from(self.cluster.explicit)), 0),
            Special::Laneid => self.lane(),
            Special::Warpid => SpecialValue::Scalar(ir.lshr(self.first, ir.constant(ir.int(32), 5)), 0),
            Special::Nwarpid => self.number(threads.div_ceil(32)),
            Special::Smid => self.number(0),
            Special::Nsmid => self.number(1),
            Special::Gridid => SpecialValue::Scalar(ir.constant(ir.int(64), 1), 0),
            Special::LanemaskEq => self.lane_mask(|lane| 1 << lane),
            Special::LanemaskLe => self.lane_mask(|lane| (2 << lane) - 1),
            Special::LanemaskLt => self.lane_mask(|lane| (1 << lane) - 1),
            Special::LanemaskGe => self.lane_mask(|lane| !((1 << lane) - 1)),
            Special::LanemaskGt => self.lane_mask(|lane| !((2 << lane) - 1)),
            Special::TotalSmemSize | Special::AggrSmemSize => {
                let SpecialValue::Scalar(start, _) = self.of_warp(offset::DYNAMIC_SHARED_OFFSET) else { return None };
                let SpecialValue::Scalar(more, _) = self.of_warp(offset::DYNAMIC_SHARED_BYTES) else { return None };
                SpecialValue::Scalar(ir.add(start, more), 0)
            }
            Special::DynamicSmemSize => self.of_warp(offset::DYNAMIC_SHARED_BYTES),
            Special::Clock | Special::ClockHi | Special::Clock64 => return None,
            Special::Globaltimer | Special::GlobaltimerLo | Special::GlobaltimerHi => return None,
            Special::Envreg1 => SpecialValue::Scalar(self.workspace_half(true), 0),
            Special::Envreg2 => SpecialValue::Scalar(self.workspace_half(false), 0),
            specials!(zero) => SpecialValue::Scalar(ir.constant(ir.int(special.row().ty.bits()), 0), 0),
        })
    }

    /// Returns half of the address of the workspace for grid-wide barriers.
    fn workspace_half(&self, high: bool) -> Val {
        let ir = self.ir;
        let address = self.field(ir.int(64), offset::WORKSPACE);
        let address = if high { ir.lshr(address, ir.constant(ir.int(64), 32)) } else { address };
        ir.trunc(address, ir.int(32))
    }

    /// Returns the index of the block in its cluster.
    pub(crate) fn cluster_ctaid(&self, axis: usize) -> Val {
        let i32 = self.ir.int(32);
        let ctaid = self.field(i32, offset::CTAID + 4 * axis as u64);
        self.ir.urem(ctaid, self.ir.constant(i32, u64::from(self.cluster.size[axis])))
    }

    /// Returns the index of the cluster, or the number of clusters. `place` is the offset of the block's
    /// index or of the number of blocks.
    pub(crate) fn in_clusters(&self, place: u64, axis: usize) -> Val {
        let i32 = self.ir.int(32);
        let number = self.field(i32, place + 4 * axis as u64);
        self.ir.udiv(number, self.ir.constant(i32, u64::from(self.cluster.size[axis])))
    }

    /// Returns the rank of the block in its cluster.
    pub(crate) fn cluster_rank(&self) -> Val {
        let ir = self.ir;
        let times = |value: Val, axis: usize| ir.mul(value, ir.constant(ir.int(32), u64::from(self.cluster.size[axis])));
        let rows = ir.add(self.cluster_ctaid(1), times(self.cluster_ctaid(2), 1));
        ir.add(self.cluster_ctaid(0), times(rows, 0))
    }
}
