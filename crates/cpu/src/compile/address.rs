//! Addresses of all lanes of an access, relative to each other.

use super::emitter::{Emitter, TranslationError, TranslationResult};
use super::layout::SymbolPlace;
use super::llvm::{IntPred, Val};
use super::options::Checks;
use crate::abi::{FAR, WINDOW, offset};
use broadloom_ptx::{Address, Base, InstData, Modifier, Opcode, Operand, Reg, Space, Type};

/// Relative addresses of all lanes.
pub(crate) enum Reach {
    /// All lanes use one address, or there is one lane.
    Uniform(Val),
    /// Address of the first lane, and the offset of each lane from it in bytes.
    Known(Val, Vec<i64>),
    /// Groups of lanes with a fixed stride: size of a group, and stride in bytes within it.
    Grouped(Val, u32, i64),
    /// Arbitrary address in each lane.
    Any(Val),
}

/// Access of one lane: one element, or several adjacent ones.
pub(super) struct LaneAccess {
    /// One register or value per element.
    pub(super) operands: Vec<Operand>,
    pub(super) ty: Type,
    /// Bytes of one element.
    pub(super) bytes: u64,
}

impl LaneAccess {
    pub(super) fn of(inst: &InstData, operand: &Operand) -> LaneAccess {
        let ty = inst.types().next().unwrap_or(Type::B32);
        LaneAccess { operands: operand.elements().to_vec(), ty, bytes: u64::from(ty.bytes()) }
    }

    /// Returns the bytes of all elements.
    pub(super) fn total(&self) -> u64 {
        self.bytes * self.operands.len() as u64
    }
}

impl Emitter<'_> {
    /// Returns the operand in brackets.
    pub(crate) fn address_of(&self, inst: &InstData) -> TranslationResult<Address> {
        inst.address().ok_or_else(|| TranslationError("an access without an address".into()))
    }

    /// Returns the addresses of an access.
    pub(crate) fn reach(&self, inst: &InstData, address: &Address) -> TranslationResult<Reach> {
        let ir = self.ir;
        let i64 = ir.int(64);
        if let Some((row, bytes)) = self.row_of(address.base) {
            return Ok(self.affine(ir.offset_by(row, address.offset as u64), bytes as i64));
        }
        let space = self.space_of(inst, address);
        if self.is_in_cluster(inst, space)
            && let Base::Reg(reg) = address.base
        {
            return self.reach_cluster(reg, address.offset);
        }
        let window = match space {
            Space::Shared => Some(ir.ptrtoint(self.pointer_field(offset::SHARED), i64)),
            Space::Local => Some(self.local_memory()),
            Space::Param if self.is_in_frame(address) => Some(self.local_memory()),
            Space::Param | Space::Global | Space::Const | Space::Generic | Space::Tex | Space::Reg => None,
        };
        // Each lane has its own frame.
        let in_frame = space == Space::Local || space == Space::Param && self.is_in_frame(address);
        let frame_stride = if in_frame && self.lanes.is_some() { self.layout.local_bytes as i64 } else { 0 };
        let more = ir.constant(i64, address.offset as u64);
        // Offsets in a window are small and signed: an inactive lane may lie before its start. Shared
        // addresses have 32 bits.
        let widened = |value: Val| match space {
            Space::Shared => ir.resize(ir.resize(value, ir.int(32), false), i64, true),
            // No address of a confined kernel leaves the part of the arena that local memory is in.
            Space::Local if self.checks == Checks::Confined => ir.resize(ir.resize(value, ir.int(32), false), i64, true),
            _ => ir.resize(value, i64, window.is_some()),
        };
        let complete = |value: Val| {
            let value = widened(value);
            let more = ir.constant(ir.type_of(value), address.offset as u64);
            ir.add(value, more)
        };
        let from_window = |value: Val| match window {
            Some(base) => ir.add(base, value),
            None => value,
        };
        match address.base {
            Base::Absolute => Ok(self.affine(ir.as_pointer(from_window(more)), frame_stride)),
            Base::Symbol(symbol) => {
                let value = self.symbol_address(symbol, true)?;
                Ok(self.affine(ir.as_pointer(from_window(complete(value))), frame_stride))
            }
            Base::Reg(reg) if self.is_kept_as_scalar(reg) => {
                let pointer = ir.as_pointer(from_window(complete(self.lane0(reg)?)));
                Ok(match (self.offsets(reg), frame_stride) {
                    (None, stride) => self.affine(pointer, stride),
                    (Some(offsets), stride) => {
                        Reach::Known(pointer, (0..).zip(offsets).map(|(lane, offset)| offset + lane * stride).collect())
                    }
                })
            }
            Base::Reg(reg) => {
                let shape = self.shapes.shape(reg);
                let lanes = self.lanes.unwrap_or(1);
                let pointers = match self.split(reg)? {
                    // Hosts gather from a scalar base with 32-bit offsets.
                    Some((base, offsets)) if window.is_none() => {
                        let base = ir.as_pointer(ir.add(base, more));
                        ir.offset(base, offsets)
                    }
                    _ => {
                        let value = self.all_lanes(reg)?;
                        let value = widened(value);
                        let base = match window {
                            Some(base) => ir.as_pointer(ir.add(base, more)),
                            None => ir.as_pointer(more),
                        };
                        match window {
                            Some(_) => ir.offset(base, value),
                            None => {
                                let more = ir.constant(ir.type_of(value), address.offset as u64);
                                ir.as_pointer(ir.add(value, more))
                            }
                        }
                    }
                };
                let pointers = match frame_stride {
                    0 => pointers,
                    stride => ir.offset(pointers, ir.steps(i64, lanes, stride as u64)),
                };
                let group = 1u32 << shape.group();
                Ok(if group > 1 && frame_stride == 0 {
                    Reach::Grouped(pointers, group, shape.stride())
                } else {
                    Reach::Any(pointers)
                })
            }
        }
    }

    /// Returns whether an access may go to the shared memory of another block.
    pub(super) fn is_in_cluster(&self, inst: &InstData, space: Space) -> bool {
        space == Space::Shared && inst.has(Modifier::SharedCluster) && self.cluster.has_others()
    }

    fn affine(&self, pointer: Val, stride: i64) -> Reach {
        match self.lanes {
            Some(lanes) if stride != 0 => Reach::Known(pointer, (0..i64::from(lanes)).map(|lane| lane * stride).collect()),
            _ => Reach::Uniform(pointer),
        }
    }

    /// Returns whether an address in the parameter space is a variable of the function itself: an argument of
    /// a call.
    pub(super) fn is_in_frame(&self, address: &Address) -> bool {
        match address.base {
            Base::Symbol(symbol) => matches!(self.layout.place(symbol), Some(SymbolPlace::Frame(_))),
            Base::Reg(_) | Base::Absolute => false,
        }
    }

    /// Splits a register that is the sum of a uniform value and another value.
    fn split(&self, reg: Reg) -> TranslationResult<Option<(Val, Val)>> {
        let Some(inst) = self.definition(reg).filter(|_| self.shows(reg)) else { return Ok(None) };
        if inst.opcode() != Some(Opcode::Add) || inst.types().next().is_none_or(|ty| ty.bits() != 64) {
            return Ok(None);
        }
        let [_, Operand::Reg(a), Operand::Reg(b)] = inst.operands.as_slice() else { return Ok(None) };
        let (a_uniform, b_uniform) = (self.shapes.shape(*a).is_uniform(), self.shapes.shape(*b).is_uniform());
        let (base, rest) = match (a_uniform, b_uniform) {
            (true, false) => (*a, *b),
            (false, true) => (*b, *a),
            _ => return Ok(None),
        };
        Ok(Some((self.lane0(base)?, self.all_lanes(rest)?)))
    }

    /// Returns the pointers of all lanes.
    pub(crate) fn pointers(&self, reach: &Reach) -> Val {
        let ir = self.ir;
        let lanes = self.lanes.unwrap_or(1);
        match reach {
            Reach::Uniform(pointer) if self.lanes.is_none() => *pointer,
            Reach::Uniform(pointer) => ir.splat(*pointer, lanes),
            Reach::Known(pointer, offsets) => ir.offset(*pointer, self.numbers(ir.int(64), offsets)),
            Reach::Grouped(pointers, ..) | Reach::Any(pointers) => *pointers,
        }
    }

    /// Returns the addresses of all lanes as integers; a scalar if they are equal.
    pub(crate) fn addresses(&self, reach: &Reach) -> Val {
        let i64 = self.ir.int(64);
        match reach {
            Reach::Uniform(pointer) => self.ir.ptrtoint(*pointer, i64),
            Reach::Known(..) | Reach::Grouped(..) | Reach::Any(_) => self.ir.ptrtoint(self.pointers(reach), i64),
        }
    }

    /// Returns whether an access may go to the host's stack, whose contents LLVM treats as undefined until
    /// they are written.
    pub(super) fn may_be_on_stack(&self, space: Space, address: &Address) -> bool {
        let in_frame = matches!(space, Space::Local | Space::Generic | Space::Param) && self.frame.is_some();
        in_frame || self.row_of(address.base).is_some()
    }

    pub(super) fn is_kernel_param(&self, space: Space, address: &Address) -> bool {
        space == Space::Param && !self.is_in_frame(address) && self.row_of(address.base).is_none()
    }

    /// Returns the address of the shared memory of the cluster's first block, as a number.
    pub(super) fn cluster_start(&self) -> Val {
        let ir = self.ir;
        let i64 = ir.int(64);
        let own = ir.ptrtoint(self.pointer_field(offset::SHARED), i64);
        ir.sub(own, ir.mul(ir.zext(self.cluster_rank(), i64), ir.constant(i64, WINDOW)))
    }

    /// Translates an address of the shared window that may belong to another block to a host address, as a
    /// number.
    pub(crate) fn follow_shared(&self, value: Val) -> Val {
        let ir = self.ir;
        let (i64, ty) = (ir.int(64), ir.type_of(value));
        let own = ir.add(self.as_wide(ir.ptrtoint(self.pointer_field(offset::SHARED), i64), ty), value);
        if !self.cluster.has_others() {
            return own;
        }
        let start = ir.sub(self.cluster_start(), ir.constant(i64, FAR * WINDOW));
        let other = ir.add(self.as_wide(start, ty), value);
        ir.select(ir.icmp(IntPred::LLVMIntUGE, value, ir.constant(ty, FAR * WINDOW)), other, own)
    }

    /// Translates a host address to an address in the shared window.
    pub(crate) fn find_in_shared(&self, value: Val) -> Val {
        let ir = self.ir;
        let (i64, ty) = (ir.int(64), ir.type_of(value));
        let own = ir.sub(value, self.as_wide(ir.ptrtoint(self.pointer_field(offset::SHARED), i64), ty));
        if !self.cluster.has_others() {
            return own;
        }
        let start = ir.sub(self.cluster_start(), ir.constant(i64, FAR * WINDOW));
        let other = ir.sub(value, self.as_wide(start, ty));
        ir.select(ir.icmp(IntPred::LLVMIntULT, own, ir.constant(ty, WINDOW)), own, other)
    }

    /// Returns the target of an access that may go to shared memory of another block.
    pub(crate) fn reach_cluster(&self, reg: broadloom_ptx::Reg, more: i64) -> TranslationResult<Reach> {
        let ir = self.ir;
        let uniform = self.lanes.is_none() || self.shapes.shape(reg).is_uniform();
        let value = if uniform { self.lane0(reg)? } else { self.all_lanes(reg)? };
        let value = ir.resize(value, ir.int(64), true);
        let value = ir.add(value, ir.constant(ir.type_of(value), more as u64));
        let pointer = ir.as_pointer(self.follow_shared(value));
        Ok(if uniform { Reach::Uniform(pointer) } else { Reach::Any(pointer) })
    }

    /// Returns the start and the bytes of the shared windows of all blocks of the cluster.
    pub(crate) fn cluster_windows(&self) -> (Val, Val) {
        (self.cluster_start(), self.ir.constant(self.ir.int(64), self.cluster.blocks() * WINDOW))
    }
}
