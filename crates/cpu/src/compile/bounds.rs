//! Checks of addresses before accesses, as [`Checks`] says.
//!
//! | checks | an access goes ahead at once if | else |
//! | --- | --- | --- |
//! | `Confined` | its address lies in the arena of the device (`crates/cpu/src/arena.rs`) | the runtime looks it up |
//! | `Strict` | it is aligned and inside of the memory that the runtime admitted last at this instruction | the runtime looks it up |
//!
//! The runtime ([`crate::admit`]) knows every allocation. It returns, or ends the launch with an error.
//!
//! Confined code needs no check of `.shared` and `.local` addresses: they have 32 bits, and no such address
//! leaves the arena. For the same reason one check serves all accesses of a block that have one base register
//! and near offsets.

use super::address::{LaneAccess, Reach};
use super::emitter::{Emitter, TranslationResult};
use super::layout::SymbolPlace;
use super::llvm::{IntPred, Val};
use super::options::Checks;
use super::runtime::Service;
use super::state::SharedCheck;
use crate::abi::{Access, AccessSpace, AdmittedRange, Bounds, offset};
use broadloom_ptx::{Address, Base, Inst, InstData, Opcode, Space};
use std::mem::offset_of;

/// Distance, as a power of two, within which accesses with one base register share a check.
const NEAR: u32 = 20;
/// Distance between the first and the last lane up to which confined code checks the first one alone. It is
/// less than a guard of the arena.
const FAR: i64 = 1 << 30;

/// Addresses of an access.
struct Addresses {
    /// Address of each lane; a scalar if they are equal.
    lanes: Val,
    /// Lowest and highest address, if they are known.
    ends: Option<(Val, Val)>,
    /// True if the distance of each lane from the first is a multiple of the alignment.
    in_steps: bool,
}

impl Emitter<'_> {
    /// Emits the check of an access of `bytes` bytes at the address of an instruction. Matrices are checked where
    /// their rows are accessed ([`Emitter::check_lanes`]), and the runtime checks mbarriers and textures.
    pub(super) fn check_access(&mut self, inst: &InstData, address: &Address, bytes: u64) -> TranslationResult<()> {
        if self.checks == Checks::None || self.row_of(address.base).is_some() || self.is_inside(address, bytes) {
            return Ok(());
        }
        let space = match self.space_of(inst, address) {
            Space::Shared => AccessSpace::Shared,
            Space::Local => AccessSpace::Local,
            Space::Param if self.is_in_frame(address) => AccessSpace::Local,
            Space::Param | Space::Global | Space::Const | Space::Generic => AccessSpace::Device,
            Space::Tex | Space::Reg => return Ok(()),
        };
        match self.checks {
            Checks::None => Ok(()),
            Checks::Confined => self.confine(inst, address, bytes, space),
            Checks::Strict => {
                let align = u16::try_from(bytes).unwrap_or(1);
                self.check_strictly(inst, address, Access { bytes: bytes as u32, align, space })
            }
        }
    }

    /// Emits the check of one of several loads that are emitted together.
    pub(super) fn check_load(&mut self, id: Inst) -> TranslationResult<()> {
        if self.checks == Checks::None {
            return Ok(());
        }
        let function = self.function;
        let inst = &function.insts[id];
        let (address, bytes) = (self.address_of(inst)?, accessed(inst).unwrap_or(1));
        let before = self.at.replace(id);
        let checked = self.check_access(inst, &address, bytes);
        self.at = before;
        checked
    }

    /// Emits the check of an access of `bytes` aligned bytes by the active lanes.
    pub(super) fn check_lanes(&mut self, inst: &InstData, pointers: Val, bytes: u64, active: Val) -> TranslationResult<()> {
        let ir = self.ir;
        let space = match self.space_of(inst, &self.address_of(inst)?) {
            Space::Shared => AccessSpace::Shared,
            Space::Local | Space::Param | Space::Global | Space::Const | Space::Generic | Space::Tex | Space::Reg => {
                AccessSpace::Device
            }
        };
        let access = Access { bytes: bytes as u32, align: bytes as u16, space };
        let lanes = ir.ptrtoint(pointers, ir.int(64));
        let stray = match self.checks {
            Checks::None => return Ok(()),
            Checks::Confined if space == AccessSpace::Shared => return Ok(()),
            Checks::Confined => self.is_outside(lanes, self.bounds(false)),
            Checks::Strict => {
                let site = self.site_of(inst);
                self.is_refused(lanes, site, access)
            }
        };
        let stray = ir.and(stray, active);
        self.admit_unless_fine(inst, self.any(stray), None, lanes, access)
    }

    /// Returns whether the address of a variable with a constant offset is known to be fine.
    fn is_inside(&self, address: &Address, bytes: u64) -> bool {
        let Base::Symbol(symbol) = address.base else { return false };
        match self.layout.place(symbol) {
            Some(SymbolPlace::Param(start)) => {
                let inside = |offset: u64| offset.saturating_add(start).saturating_add(bytes) <= self.layout.param_bytes;
                u64::try_from(address.offset).is_ok_and(inside)
            }
            // The host's memory protection finds the rest in the guards of the arena.
            Some(SymbolPlace::Table(_)) => self.checks == Checks::Confined && address.offset.abs() < FAR,
            Some(SymbolPlace::Argument(_) | SymbolPlace::Result(_) | SymbolPlace::Row(_)) => true,
            Some(SymbolPlace::Shared(_) | SymbolPlace::Dynamic | SymbolPlace::Frame(_)) | None => false,
        }
    }

    /// Emits the check of confined code.
    fn confine(&mut self, inst: &InstData, address: &Address, bytes: u64, space: AccessSpace) -> TranslationResult<()> {
        if space != AccessSpace::Device {
            return Ok(());
        }
        let in_data = is_data(inst);
        let (mut low, mut high) = (address.offset, address.offset + bytes as i64);
        if let Base::Reg(reg) = address.base {
            let shared: SharedCheck = (reg, inst.guard, address.offset >> NEAR, in_data);
            if !self.checked.done.insert(shared) {
                return Ok(());
            }
            let (function, at) = (self.function, self.at);
            let later = self.checked.insts.iter().skip_while(|other| Some(**other) != at).map(|other| &function.insts[*other]);
            for (other, size) in later.filter_map(|other| Some((other, accessed(other)?))) {
                let Some(Address { base: Base::Reg(base), offset }) = other.address() else { continue };
                if (base, other.guard, offset >> NEAR, is_data(other)) == shared {
                    (low, high) = (low.min(offset), high.max(offset + size as i64));
                }
            }
        }
        let ir = self.ir;
        let reach = self.reach(inst, address)?;
        let at = self.addresses_of(&reach, 1);
        let bounds = self.bounds(in_data);
        let stray = match (at.ends, &reach) {
            (Some((first, _)), Reach::Uniform(_)) => self.is_outside(first, bounds),
            (Some(_), Reach::Known(pointer, offsets)) if offsets.iter().all(|offset| offset.abs() < FAR) => {
                self.is_outside(ir.ptrtoint(*pointer, ir.int(64)), bounds)
            }
            (Some((first, last)), _) => ir.or(self.is_outside(first, bounds), self.is_outside(last, bounds)),
            (None, _) => ir.and(self.is_outside(at.lanes, bounds), self.active(inst)?),
        };
        let stray = self.among_active(inst, &reach, stray)?;
        let lanes = ir.add(at.lanes, ir.constant(ir.type_of(at.lanes), (low - address.offset) as u64));
        let access = Access { bytes: u32::try_from(high - low).unwrap_or(u32::MAX), align: 1, space };
        self.admit_unless_fine(inst, stray, None, lanes, access)
    }

    /// Emits the check of strict code.
    fn check_strictly(&mut self, inst: &InstData, address: &Address, access: Access) -> TranslationResult<()> {
        let ir = self.ir;
        let reach = self.reach(inst, address)?;
        let at = self.addresses_of(&reach, access.align.into());
        let active = self.active(inst)?;
        if access.space == AccessSpace::Local {
            let stray = ir.and(self.is_outside_local(at.lanes, access), active);
            return self.admit_unless_fine(inst, self.any(stray), None, at.lanes, access);
        }
        let site = self.site_of(inst);
        let Some((first, last)) = at.ends.filter(|_| at.in_steps) else {
            let stray = ir.and(self.is_refused(at.lanes, site, access), active);
            return self.admit_unless_fine(inst, self.any(stray), None, at.lanes, access);
        };
        let mut stray = self.is_refused(first, site, access);
        if ir.lanes(at.lanes).is_some() {
            stray = ir.or(stray, self.is_refused(last, site, access));
        }
        let stray = self.among_active(inst, &reach, stray)?;
        // Of the lanes at the ends, some need not be active.
        let refined = (ir.lanes(at.lanes).is_some() && self.guard(inst)?.is_some()).then_some((site, active));
        self.admit_unless_fine(inst, stray, refined, at.lanes, access)
    }

    /// Restricts a condition on a whole access to the case that a lane is active.
    fn among_active(&self, inst: &InstData, reach: &Reach, stray: Val) -> TranslationResult<Val> {
        if self.ir.lanes(stray).is_some() {
            return Ok(self.any(stray));
        }
        // At least one lane runs the function.
        let guard = match reach {
            Reach::Uniform(_) => self.own_guard(inst)?,
            Reach::Known(..) | Reach::Grouped(..) | Reach::Any(_) => self.guard(inst)?,
        };
        Ok(guard.map_or(stray, |guard| self.ir.and(stray, self.any(guard))))
    }

    fn addresses_of(&self, reach: &Reach, align: i64) -> Addresses {
        let ir = self.ir;
        let lanes = self.addresses(reach);
        match reach {
            Reach::Uniform(_) => Addresses { lanes, ends: Some((lanes, lanes)), in_steps: true },
            Reach::Known(pointer, offsets) => {
                let first = ir.ptrtoint(*pointer, ir.int(64));
                let at = |offset: i64| ir.add(first, ir.constant(ir.int(64), offset as u64));
                let (low, high) = (offsets.iter().min(), offsets.iter().max());
                let ends = low.zip(high).map(|(low, high)| (at(*low), at(*high)));
                Addresses { lanes, ends, in_steps: offsets.iter().all(|offset| offset % align == 0) }
            }
            Reach::Grouped(..) | Reach::Any(_) => Addresses { lanes, ends: None, in_steps: false },
        }
    }

    /// Returns the first address of the device's memory and the number of addresses.
    fn bounds(&self, is_data: bool) -> (Val, Val) {
        let i64 = self.ir.int(64);
        let part = if is_data { offset_of!(Bounds, data) } else { offset_of!(Bounds, all) };
        let at = |field: usize| self.field(i64, offset::BOUNDS + (part + field) as u64);
        (at(offset_of!(AdmittedRange, start)), at(offset_of!(AdmittedRange, count)))
    }

    /// Returns whether addresses are outside of some bounds.
    fn is_outside(&self, addresses: Val, bounds: (Val, Val)) -> Val {
        let (start, count) = bounds;
        let ir = self.ir;
        let ty = ir.type_of(addresses);
        ir.icmp(IntPred::LLVMIntUGE, ir.sub(addresses, self.as_wide(start, ty)), self.as_wide(count, ty))
    }

    /// Returns whether addresses are misaligned, or outside of the memory that was admitted last.
    fn is_refused(&self, addresses: Val, site: u64, access: Access) -> Val {
        let (ir, i64) = (self.ir, self.ir.int(64));
        let entry = ir.offset_by(self.pointer_field(offset::ADMITTED), site * size_of::<AdmittedRange>() as u64);
        let at = |field: usize| ir.load(i64, ir.offset_by(entry, field as u64), 8);
        let bounds = (at(offset_of!(AdmittedRange, start)), at(offset_of!(AdmittedRange, count)));
        let outside = self.is_outside(addresses, bounds);
        self.or_misaligned(outside, addresses, access)
    }

    fn or_misaligned(&self, stray: Val, addresses: Val, access: Access) -> Val {
        let ir = self.ir;
        if access.align <= 1 {
            return stray;
        }
        let ty = ir.type_of(addresses);
        let low = ir.and(addresses, ir.constant(ty, u64::from(access.align) - 1));
        ir.or(stray, ir.icmp(IntPred::LLVMIntNE, low, ir.zero(ty)))
    }

    /// Returns whether addresses are misaligned, or outside of the local memory of their lanes.
    fn is_outside_local(&self, addresses: Val, access: Access) -> Val {
        let (ir, i64) = (self.ir, self.ir.int(64));
        let bytes = u64::from(access.bytes);
        let (start, size) = match self.lanes {
            // The frame of a thread lies on its stack.
            None => {
                let size = self.field(i64, offset::LOCAL_BYTES);
                (ir.ptrtoint(self.pointer_field(offset::LOCAL), i64), ir.sub(size, ir.constant(i64, bytes - 1)))
            }
            Some(lanes) => {
                let size = (self.layout.local_bytes + 1).saturating_sub(bytes);
                let start = self.as_wide(self.local_memory(), ir.vector(i64, lanes));
                (ir.add(start, ir.steps(i64, lanes, self.layout.local_bytes)), ir.constant(i64, size))
            }
        };
        let addresses = self.as_wide(addresses, ir.type_of(start));
        let offsets = ir.sub(addresses, start);
        let outside = ir.icmp(IntPred::LLVMIntUGE, offsets, self.as_wide(size, ir.type_of(offsets)));
        self.or_misaligned(outside, offsets, access)
    }

    /// Returns the number of an instruction for messages. All checks of an instruction share one.
    fn site_of(&mut self, inst: &InstData) -> u64 {
        if let Some((id, site)) = self.checked.site
            && self.at == Some(id)
        {
            return site;
        }
        let site = self.site(inst);
        self.checked.site = self.at.map(|id| (id, site));
        site
    }

    /// Asks the runtime if a condition holds. If it may hold for inactive lanes alone, `refined` has the site
    /// and the active lanes, and the condition is tested again in each of them.
    fn admit_unless_fine(
        &mut self,
        inst: &InstData,
        stray: Val,
        refined: Option<(u64, Val)>,
        addresses: Val,
        access: Access,
    ) -> TranslationResult<()> {
        let ir = self.ir;
        let (i1, i32, i64) = (ir.int(1), ir.int(32), ir.int(64));
        let site = self.site_of(inst);
        let rarely = |condition: Val| ir.intrinsic("llvm.expect", &[i1], &[condition, ir.constant(i1, 0)]);
        let (ask, after) = (ir.block("ask"), ir.block("admitted"));
        ir.branch_if(rarely(stray), ask, after);
        ir.go_on_in(ask);
        if let Some((site, active)) = refined {
            let really = ir.block("ask_really");
            let stray = ir.and(self.is_refused(addresses, site, access), active);
            ir.branch_if(self.any(stray), really, after);
            ir.go_on_in(really);
        }
        let row = ir.lanes_of(i64, self.lanes);
        let room = self.room(row);
        ir.store(self.as_wide(addresses, row), room, 8);
        let mask = self.as_mask(self.active(inst)?);
        let access = ir.constant(i64, access.bits());
        self.serve(Service::Admit, ir.void(), &[self.warp, ir.constant(i32, site), mask, access, room]);
        ir.branch(after);
        ir.go_on_in(after);
        Ok(())
    }
}

/// Returns whether an instruction accesses `.global` or `.const`.
fn is_data(inst: &InstData) -> bool {
    matches!(inst.space(), Space::Global | Space::Const)
}

/// Returns the bytes that each lane accesses at the address of a load, store or atomic.
fn accessed(inst: &InstData) -> Option<u64> {
    let places = [(Opcode::Ld, 0), (Opcode::Ldu, 0), (Opcode::St, 1), (Opcode::Red, 1), (Opcode::Atom, 2)];
    let opcode = inst.opcode()?;
    let (_, place) = places.into_iter().find(|(other, _)| *other == opcode)?;
    Some(LaneAccess::of(inst, inst.operands.get(place)?).total())
}
