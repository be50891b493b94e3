//! Loads and stores (manual: "Data Movement and Conversion Instructions").
//!
//! The translation of an access depends on the relative addresses of the lanes. Equal addresses become one
//! scalar access, adjacent addresses one vector access, and adjacent groups of lanes a few vector accesses.
//! All others become a gather or scatter.
//!
//! Lanes whose guard is false never touch memory. A single access for the whole warp is redirected to the
//! warp's own state if no lane is active; that memory is always readable.

use super::address::{LaneAccess, Reach};
use super::emitter::{Emitter, TranslationError, TranslationResult};
use super::pattern::{LINE, Pattern, are_apart};
use crate::abi::offset;
use broadloom_ptx::{Base, InstData, Modifier, Space};

/// Maximum bytes of a row that is prefetched.
const ROW_AHEAD: i64 = 8 * LINE as i64;

impl Emitter<'_> {
    /// Prefetches the lines of a row; scattered addresses are not prefetched. Hosts accept any address in a
    /// prefetch, so no mask is needed.
    pub(crate) fn prefetch(&mut self, inst: &InstData) -> TranslationResult<()> {
        if inst.has(Modifier::Tensormap) {
            return Ok(());
        }
        let address = self.address_of(inst)?;
        let (place, last) = match self.reach(inst, &address)? {
            Reach::Uniform(place) => (place, 0),
            Reach::Known(place, offsets) => (place, offsets.last().copied().unwrap_or(0)),
            Reach::Grouped(..) | Reach::Any(_) => return Ok(()),
        };
        if !(0..ROW_AHEAD).contains(&last) {
            return Ok(());
        }
        let level = if inst.has(Modifier::L2) { 2 } else { 1 };
        for line in (0..=last as u64).step_by(LINE as usize) {
            self.ir.prefetch(self.ir.offset_by(place, line), level);
        }
        Ok(())
    }

    pub(crate) fn load(&mut self, inst: &InstData) -> TranslationResult<()> {
        let access =
            LaneAccess::of(inst, inst.operands.first().ok_or_else(|| TranslationError("a load without a result".into()))?);
        let address = self.address_of(inst)?;
        self.check_access(inst, &address, access.total())?;
        let reach = self.reach(inst, &address)?;
        // Arguments and results of calls have memory for all lanes.
        let guard = if self.row_of(address.base).is_some() { None } else { self.guard(inst)? };
        let ordered = inst.is_ordered();
        if ordered {
            self.ir.compiler_fence();
        }
        let space = self.space_of(inst, &address);
        let invariant =
            !ordered && (matches!(space, Space::Const) || inst.has(Modifier::Nc) || self.is_kernel_param(space, &address));
        let ir = self.ir;
        let undivided = self.is_undivided(inst, space, &access);
        let values = match &reach {
            Reach::Uniform(pointer) => {
                self.loads.uniform += 1;
                // At least one lane is always active: the first lane of a warp, or a calling lane.
                let guard = self.own_guard(inst)?;
                self.load_one(&access, *pointer, guard, invariant, undivided)
            }
            Reach::Known(_, offsets) if undivided && !matches!(Pattern::of(offsets, access.total()), Pattern::Row) => {
                self.loads.strided += 1;
                self.load_undivided(inst, &access, &reach)?
            }
            Reach::Grouped(..) | Reach::Any(_) if undivided => {
                self.loads.scattered += 1;
                self.load_undivided(inst, &access, &reach)?
            }
            Reach::Known(pointer, offsets) => {
                let pointer_of = |lane: u32| ir.offset_by(*pointer, offsets[lane as usize] as u64);
                match Pattern::of(offsets, access.total()) {
                    Pattern::Row => {
                        self.loads.contiguous += 1;
                        let lanes = self.lanes.unwrap_or(1);
                        if let Base::Reg(reg) = address.base {
                            self.look_ahead(reg, address.offset, u64::from(lanes) * access.total())?;
                        }
                        self.load_row(&access, *pointer, lanes, guard, invariant)
                    }
                    Pattern::Rows(group) => {
                        self.loads.strided += 1;
                        self.load_groups(&access, group, false, &pointer_of, guard, invariant)
                    }
                    Pattern::Same(group) => {
                        self.loads.strided += 1;
                        self.load_groups(&access, group, true, &pointer_of, guard, invariant)
                    }
                    Pattern::Span { start, elements, picks }
                        if access.operands.len() == 1 && (guard.is_none() || are_apart(&picks)) =>
                    {
                        self.loads.strided += 1;
                        vec![self.load_spread(&access, ir.offset_by(*pointer, start as u64), elements, &picks, guard)]
                    }
                    Pattern::Span { .. } | Pattern::Apart => {
                        self.loads.strided += 1;
                        self.load_quads(&access, &pointer_of, guard, &|| self.gather(&access, self.pointers(&reach), guard))
                    }
                }
            }
            Reach::Grouped(pointers, group, stride) if [0, access.total() as i64].contains(stride) && *group >= 4 => {
                self.loads.strided += 1;
                self.load_groups(&access, *group, *stride == 0, &|start| ir.extract_at(*pointers, start), guard, invariant)
            }
            Reach::Grouped(pointers, ..) | Reach::Any(pointers) => {
                self.loads.scattered += 1;
                let sum = match address.base {
                    Base::Reg(reg) if self.lanes.is_some() && !self.is_in_cluster(inst, space) => self.sum_of(space, reg)?,
                    Base::Reg(_) | Base::Symbol(_) | Base::Absolute => None,
                };
                match address.base {
                    Base::Reg(reg) if self.lanes.is_some() && !self.is_loaded(reg) && !self.is_rounded(reg) => {
                        self.load_perhaps_row(&access, sum.as_ref(), address.offset, *pointers, guard, invariant)?
                    }
                    Base::Reg(_)
                        if let Some(sum) = &sum
                            && let Some(value) = self.load_at_index(&access, sum, address.offset, guard)? =>
                    {
                        vec![value]
                    }
                    _ => self.gather(&access, *pointers, guard),
                }
            }
        };
        if ordered {
            self.ir.compiler_fence();
        }
        let on_stack = self.may_be_on_stack(space, &address);
        for (operand, value) in access.operands.iter().zip(values) {
            let value = if on_stack { self.ir.freeze(value) } else { value };
            self.assign(operand, access.ty, value)?;
        }
        Ok(())
    }

    pub(crate) fn store(&mut self, inst: &InstData) -> TranslationResult<()> {
        let source = inst.operands.get(1).ok_or_else(|| TranslationError("a store without a value".into()))?;
        let access = LaneAccess::of(inst, source);
        let address = self.address_of(inst)?;
        if self.store_row_whole(inst, &address, source, access.ty)? {
            return Ok(());
        }
        self.check_access(inst, &address, access.total())?;
        let reach = self.reach(inst, &address)?;
        let guard = self.guard(inst)?;
        let ordered = inst.is_ordered();
        if ordered {
            self.ir.compiler_fence();
        }
        let undivided = self.is_undivided(inst, self.space_of(inst, &address), &access);
        match &reach {
            Reach::Uniform(_) if undivided => {
                self.stores.uniform += 1;
                self.store_undivided(inst, &access, &reach)?;
            }
            Reach::Known(_, offsets) if undivided && !matches!(Pattern::of(offsets, access.total()), Pattern::Row) => {
                self.stores.strided += 1;
                self.store_undivided(inst, &access, &reach)?;
            }
            Reach::Grouped(..) | Reach::Any(_) if undivided => {
                self.stores.scattered += 1;
                self.store_undivided(inst, &access, &reach)?;
            }
            Reach::Uniform(pointer) => {
                self.stores.uniform += 1;
                let around = self.streams.are_free && inst.has(Modifier::Cs);
                self.store_one(&access, *pointer, guard, around)?;
            }
            Reach::Known(pointer, offsets) => match Pattern::of(offsets, access.total()) {
                Pattern::Row => {
                    self.stores.contiguous += 1;
                    let lanes = self.lanes.unwrap_or(1);
                    let values = self.stored(&access)?;
                    match address.base {
                        Base::Reg(reg) if self.is_streamed(reg) => self.stream_row(&access, *pointer, lanes, &values, guard),
                        _ => self.store_row(&access, *pointer, lanes, &values, guard),
                    }
                }
                Pattern::Rows(group) => {
                    self.stores.strided += 1;
                    let ir = self.ir;
                    self.store_groups(&access, &|start| ir.offset_by(*pointer, offsets[start as usize] as u64), group, guard)?;
                }
                Pattern::Span { start, elements, picks }
                    if access.operands.len() == 1 && (guard.is_none() || are_apart(&picks)) =>
                {
                    self.stores.strided += 1;
                    let values = self.stored(&access)?;
                    // A store whose range overlaps the next warp's reads makes those wait, even if the
                    // overlapping lanes are masked off. Memory after a structure's start usually belongs to
                    // the structure.
                    let spare = i64::from(elements.next_power_of_two() - elements);
                    let back = (address.offset / access.bytes as i64).clamp(0, spare);
                    let place = self.ir.offset_by(*pointer, (start - back * access.bytes as i64) as u64);
                    let picks: Vec<u32> = picks.iter().map(|pick| pick + back as u32).collect();
                    self.store_spread(&access, place, elements + back as u32, &picks, values[0], guard);
                }
                Pattern::Span { .. } | Pattern::Same(_) | Pattern::Apart => {
                    self.stores.strided += 1;
                    let pointer_of = |lane: u32| self.ir.offset_by(*pointer, offsets[lane as usize] as u64);
                    self.store_quads(&access, &pointer_of, guard, &|| self.scatter(&access, self.pointers(&reach), guard))?;
                }
            },
            Reach::Grouped(pointers, group, stride) if *stride == access.total() as i64 && *group >= 4 => {
                self.stores.strided += 1;
                let ir = self.ir;
                self.store_groups(&access, &|start| ir.extract_at(*pointers, start), *group, guard)?;
            }
            Reach::Grouped(pointers, ..) | Reach::Any(pointers) => {
                self.stores.scattered += 1;
                let ranked = match (address.base, self.space_of(inst, &address)) {
                    (Base::Reg(reg), Space::Global | Space::Generic) => self.ranked(reg)?,
                    _ => None,
                };
                match (ranked, guard) {
                    (Some(ranked), Some(guard)) => self.store_compact(&access, &ranked, address.offset, *pointers, guard)?,
                    _ => self.scatter(&access, *pointers, guard)?,
                }
            }
        }
        if ordered {
            self.ir.compiler_fence();
        }
        Ok(())
    }

    /// Emits `stacksave` and `stackrestore`. Memory of `alloca` is released when the function ends, so the
    /// top is only a number.
    pub(super) fn stack_top(&mut self, inst: &InstData) -> TranslationResult<()> {
        for (operand, ty) in self.written(inst) {
            let zero = self.constant(0, ty, true);
            self.assign(&operand, ty, zero)?;
        }
        Ok(())
    }

    /// Emits `alloca`, on the slow path only: an offset in the local window.
    pub(super) fn allocate_on_stack(&mut self, inst: &InstData) -> TranslationResult<()> {
        let ir = self.ir;
        if self.lanes.is_some() {
            return Err(TranslationError("`alloca` in vector code".into()));
        }
        let inputs = self.inputs(inst, true)?;
        let size = inputs.first().copied().ok_or_else(|| TranslationError("an `alloca` without a size".into()))?;
        let align = inputs.get(1).and_then(|align| ir.as_constant(*align)).unwrap_or(8).clamp(1, 4096);
        let pointer = ir.stack_bytes(ir.resize(size, ir.int(64), false), align as u32);
        let start = ir.ptrtoint(self.pointer_field(offset::LOCAL), ir.int(64));
        let value = ir.sub(ir.ptrtoint(pointer, ir.int(64)), start);
        for (operand, ty) in self.written(inst) {
            let value = ir.resize(value, ir.int(ty.bits()), false);
            self.assign(&operand, ty, value)?;
        }
        Ok(())
    }
}
