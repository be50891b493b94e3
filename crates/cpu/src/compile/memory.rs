//! Loads and stores (manual: "Data Movement and Conversion Instructions").
//!
//! The translation of an access depends on the relative addresses of the lanes. Equal addresses become one
//! scalar access, adjacent addresses one vector access, and adjacent groups of lanes a few vector accesses.
//! All others become a gather or scatter.
//!
//! Lanes whose guard is false never touch memory. A single access for the whole warp is redirected to the
//! warp's own state if no lane is active; that memory is always readable.

use super::Checks;
use super::emit::{Emitted, Emitter, Untranslated};
use super::layout::Place;
use super::llvm::{IntPred, Ty, Val};
use super::operand::bits_type;
use crate::abi::offset;
use broadloom_ptx::{Address, Base, InstData, Modifier, Opcode, Operand, Reg, Space, Type};

/// Maximum bytes of a row that is prefetched.
const ROW_AHEAD: i64 = 8 * LINE as i64;

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

/// Parts of a vector access.
pub(super) struct Parts {
    /// One register or value per element.
    pub(super) elements: Vec<Operand>,
    pub(super) ty: Type,
    /// Bytes of one element.
    pub(super) bytes: u64,
}

impl Parts {
    pub(super) fn of(inst: &InstData, operand: &Operand) -> Parts {
        let ty = inst.types().next().unwrap_or(Type::B32);
        Parts { elements: operand.elements().to_vec(), ty, bytes: u64::from(ty.bytes()) }
    }

    pub(super) fn total(&self) -> u64 {
        self.bytes * self.elements.len() as u64
    }
}

impl Emitter<'_> {
    /// Returns the operand in brackets.
    pub(crate) fn address_of(&self, inst: &InstData) -> Emitted<Address> {
        inst.address().ok_or_else(|| Untranslated("an access without an address".into()))
    }

    /// Prefetches the lines of a row; scattered addresses are not prefetched. Hosts accept any address in a
    /// prefetch, so no mask is needed.
    pub(crate) fn prefetch(&mut self, inst: &InstData) -> Emitted<()> {
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

    /// Returns the addresses of an access.
    pub(crate) fn reach(&self, inst: &InstData, address: &Address) -> Emitted<Reach> {
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
    fn is_in_cluster(&self, inst: &InstData, space: Space) -> bool {
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
            Base::Symbol(symbol) => matches!(self.layout.place(symbol), Some(Place::Frame(_))),
            Base::Reg(_) | Base::Absolute => false,
        }
    }

    /// Splits a register that is the sum of a uniform value and another value.
    fn split(&self, reg: Reg) -> Emitted<Option<(Val, Val)>> {
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

    pub(crate) fn load(&mut self, inst: &InstData) -> Emitted<()> {
        let parts = Parts::of(inst, inst.operands.first().ok_or_else(|| Untranslated("a load without a result".into()))?);
        let address = self.address_of(inst)?;
        self.check_access(inst, &address, parts.total())?;
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
        let undivided = self.is_undivided(inst, space, &parts);
        let values = match &reach {
            Reach::Uniform(pointer) => {
                self.loads.uniform += 1;
                // At least one lane is always active: the first lane of a warp, or a calling lane.
                let guard = self.own_guard(inst)?;
                self.load_one(&parts, *pointer, guard, invariant, undivided)
            }
            Reach::Known(_, offsets) if undivided && !matches!(pieces(offsets, parts.total()), Pieces::Row) => {
                self.loads.strided += 1;
                self.load_undivided(inst, &parts, &reach)?
            }
            Reach::Grouped(..) | Reach::Any(_) if undivided => {
                self.loads.scattered += 1;
                self.load_undivided(inst, &parts, &reach)?
            }
            Reach::Known(pointer, offsets) => {
                let pointer_of = |lane: u32| ir.offset_by(*pointer, offsets[lane as usize] as u64);
                match pieces(offsets, parts.total()) {
                    Pieces::Row => {
                        self.loads.contiguous += 1;
                        let lanes = self.lanes.unwrap_or(1);
                        if let Base::Reg(reg) = address.base {
                            self.look_ahead(reg, address.offset, u64::from(lanes) * parts.total())?;
                        }
                        self.load_row(&parts, *pointer, lanes, guard, invariant)
                    }
                    Pieces::Rows(group) => {
                        self.loads.strided += 1;
                        self.load_groups(&parts, (group, false), &pointer_of, guard, invariant)
                    }
                    Pieces::Same(group) => {
                        self.loads.strided += 1;
                        self.load_groups(&parts, (group, true), &pointer_of, guard, invariant)
                    }
                    Pieces::Span { start, elements, picks }
                        if parts.elements.len() == 1 && (guard.is_none() || are_apart(&picks)) =>
                    {
                        self.loads.strided += 1;
                        vec![self.load_spread(&parts, ir.offset_by(*pointer, start as u64), elements, &picks, guard)]
                    }
                    Pieces::Span { .. } | Pieces::Apart => {
                        self.loads.strided += 1;
                        self.load_quads(&parts, &pointer_of, guard, &|| self.gather(&parts, self.pointers(&reach), guard))
                    }
                }
            }
            Reach::Grouped(pointers, group, stride) if [0, parts.total() as i64].contains(stride) && *group >= 4 => {
                self.loads.strided += 1;
                self.load_groups(&parts, (*group, *stride == 0), &|start| ir.extract_at(*pointers, start), guard, invariant)
            }
            Reach::Grouped(pointers, ..) | Reach::Any(pointers) => {
                self.loads.scattered += 1;
                let sum = match address.base {
                    Base::Reg(reg) if self.lanes.is_some() && !self.is_in_cluster(inst, space) => self.sum_of(space, reg)?,
                    Base::Reg(_) | Base::Symbol(_) | Base::Absolute => None,
                };
                match address.base {
                    Base::Reg(reg) if self.lanes.is_some() && !self.is_loaded(reg) && !self.is_rounded(reg) => {
                        self.load_perhaps_row(&parts, sum.as_ref(), address.offset, *pointers, guard, invariant)?
                    }
                    Base::Reg(_)
                        if let Some(sum) = &sum
                            && let Some(value) = self.load_at_index(&parts, sum, address.offset, guard)? =>
                    {
                        vec![value]
                    }
                    _ => self.gather(&parts, *pointers, guard),
                }
            }
        };
        if ordered {
            self.ir.compiler_fence();
        }
        let on_stack = self.may_be_on_stack(space, &address);
        for (operand, value) in parts.elements.iter().zip(values) {
            let value = if on_stack { self.ir.freeze(value) } else { value };
            self.assign(operand, parts.ty, value)?;
        }
        Ok(())
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

    /// Loads with one access for all lanes.
    fn load_one(&self, parts: &Parts, pointer: Val, guard: Option<Val>, invariant: bool, undivided: bool) -> Vec<Val> {
        let ir = self.ir;
        let pointer = match guard {
            Some(guard) => ir.select(self.any(guard), pointer, self.warp),
            None => pointer,
        };
        let ty = self.register_type(parts.ty);
        let count = parts.elements.len() as u32;
        let whole = if count == 1 { ty } else { ir.vector(ty, count) };
        let align = parts.bytes as u32;
        let value = if undivided { ir.load_as_is(whole, pointer, align) } else { ir.load(whole, pointer, align) };
        if invariant && guard.is_none() {
            ir.mark_invariant(value);
        }
        if count == 1 { vec![value] } else { (0..count).map(|index| ir.extract_at(value, index)).collect() }
    }

    /// Repeats each lane of a mask for each element of a vector access.
    pub(super) fn widened_mask(&self, mask: Val, count: usize) -> Val {
        if count == 1 {
            return mask;
        }
        let lanes = self.ir.lanes(mask).unwrap_or(1);
        let picks: Vec<u32> = (0..lanes).flat_map(|lane| std::iter::repeat_n(lane, count)).collect();
        self.ir.pick(mask, &picks)
    }

    pub(super) fn whole_guard(&self, guard: Val, lanes: u32) -> Val {
        if self.ir.lanes(guard).is_some() { guard } else { self.ir.splat(guard, lanes) }
    }

    /// Loads a row of `lanes` lanes side by side.
    pub(super) fn load_row(&self, parts: &Parts, pointer: Val, lanes: u32, guard: Option<Val>, invariant: bool) -> Vec<Val> {
        let ir = self.ir;
        let count = parts.elements.len();
        let element = self.register_type(parts.ty);
        let ty = ir.vector(element, lanes * count as u32);
        let align = parts.bytes as u32;
        let all = match guard {
            None => ir.load(ty, pointer, align),
            Some(guard) => {
                let mask = self.widened_mask(self.whole_guard(guard, lanes), count);
                ir.intrinsic(
                    "llvm.masked.load",
                    &[ty, ir.pointer()],
                    &[pointer, ir.constant(ir.int(32), u64::from(align)), mask, ir.zero(ty)],
                )
            }
        };
        if invariant {
            ir.mark_invariant(all);
        }
        self.apart(all, lanes, count)
    }

    /// Splits interleaved elements of lanes into one vector per element.
    fn apart(&self, all: Val, lanes: u32, count: usize) -> Vec<Val> {
        if count == 1 {
            return vec![all];
        }
        let count = count as u32;
        let part = |index: u32| -> Vec<u32> { (0..lanes).map(|lane| lane * count + index).collect() };
        (0..count).map(|index| self.ir.pick(all, &part(index))).collect()
    }

    /// Concatenates vectors of fewer lanes.
    pub(super) fn joined(&self, mut pieces: Vec<Val>) -> Val {
        while pieces.len() > 1 {
            pieces = pieces
                .chunks(2)
                .map(|pair| match pair {
                    [a, b] => {
                        let lanes = self.ir.lanes(*a).unwrap_or(1);
                        self.ir.shuffle(*a, *b, &(0..2 * lanes).collect::<Vec<u32>>())
                    }
                    one => one[0],
                })
                .collect();
        }
        pieces[0]
    }

    pub(super) fn slice(&self, value: Val, start: u32, lanes: u32) -> Val {
        self.ir.pick(value, &(start..start + lanes).collect::<Vec<u32>>())
    }

    /// Loads in groups of lanes: `load` gives the elements of a group, from its pointer and its part of the guard.
    fn in_groups_of(
        &self,
        group: u32,
        pointer_of: &dyn Fn(u32) -> Val,
        guard: Option<Val>,
        load: &dyn Fn(Val, Option<Val>) -> Vec<Val>,
    ) -> Vec<Val> {
        let lanes = self.lanes.unwrap_or(1);
        let mut pieces: Vec<Vec<Val>> = vec![];
        for start in (0..lanes).step_by(group as usize) {
            let pointer = pointer_of(start);
            let guard = guard.map(|guard| self.slice(self.whole_guard(guard, lanes), start, group));
            let values = load(pointer, guard);
            pieces.resize(values.len(), vec![]);
            pieces.iter_mut().zip(values).for_each(|(pieces, value)| pieces.push(value));
        }
        pieces.into_iter().map(|pieces| self.joined(pieces)).collect()
    }

    /// Loads in groups of lanes. The lanes of a group are a row, or have one address, which the flag says.
    fn load_groups(
        &self,
        parts: &Parts,
        (group, is_broadcast): (u32, bool),
        pointer_of: &dyn Fn(u32) -> Val,
        guard: Option<Val>,
        invariant: bool,
    ) -> Vec<Val> {
        let ir = self.ir;
        self.in_groups_of(group, pointer_of, guard, &|pointer, guard| {
            if !is_broadcast {
                return self.load_row(parts, pointer, group, guard, invariant);
            }
            let guard = guard.map(|piece| ir.intrinsic("llvm.vector.reduce.or", &[ir.type_of(piece)], &[piece]));
            let values = self.load_one(parts, pointer, guard, invariant, false);
            values.into_iter().map(|value| ir.splat(value, group)).collect()
        })
    }

    pub(crate) fn store(&mut self, inst: &InstData) -> Emitted<()> {
        let source = inst.operands.get(1).ok_or_else(|| Untranslated("a store without a value".into()))?;
        let parts = Parts::of(inst, source);
        let address = self.address_of(inst)?;
        if self.store_row_whole(inst, &address, source, parts.ty)? {
            return Ok(());
        }
        self.check_access(inst, &address, parts.total())?;
        let reach = self.reach(inst, &address)?;
        let guard = self.guard(inst)?;
        let ordered = inst.is_ordered();
        if ordered {
            self.ir.compiler_fence();
        }
        let undivided = self.is_undivided(inst, self.space_of(inst, &address), &parts);
        match &reach {
            Reach::Uniform(_) if undivided => {
                self.stores.uniform += 1;
                self.store_undivided(inst, &parts, &reach)?;
            }
            Reach::Known(_, offsets) if undivided && !matches!(pieces(offsets, parts.total()), Pieces::Row) => {
                self.stores.strided += 1;
                self.store_undivided(inst, &parts, &reach)?;
            }
            Reach::Grouped(..) | Reach::Any(_) if undivided => {
                self.stores.scattered += 1;
                self.store_undivided(inst, &parts, &reach)?;
            }
            Reach::Uniform(pointer) => {
                self.stores.uniform += 1;
                let around = self.streams.are_free && inst.has(Modifier::Cs);
                self.store_one(&parts, *pointer, guard, around)?;
            }
            Reach::Known(pointer, offsets) => match pieces(offsets, parts.total()) {
                Pieces::Row => {
                    self.stores.contiguous += 1;
                    let lanes = self.lanes.unwrap_or(1);
                    let values = self.stored(&parts)?;
                    match address.base {
                        Base::Reg(reg) if self.is_streamed(reg) => self.stream_row(&parts, *pointer, lanes, &values, guard),
                        _ => self.store_row(&parts, *pointer, lanes, &values, guard),
                    }
                }
                Pieces::Rows(group) => {
                    self.stores.strided += 1;
                    let ir = self.ir;
                    self.store_groups(&parts, &|start| ir.offset_by(*pointer, offsets[start as usize] as u64), group, guard)?;
                }
                Pieces::Span { start, elements, picks }
                    if parts.elements.len() == 1 && (guard.is_none() || are_apart(&picks)) =>
                {
                    self.stores.strided += 1;
                    let values = self.stored(&parts)?;
                    // A store whose range overlaps the next warp's reads makes those wait, even if the
                    // overlapping lanes are masked off. Memory after a structure's start usually belongs to
                    // the structure.
                    let spare = i64::from(elements.next_power_of_two() - elements);
                    let back = (address.offset / parts.bytes as i64).clamp(0, spare);
                    let place = self.ir.offset_by(*pointer, (start - back * parts.bytes as i64) as u64);
                    let picks: Vec<u32> = picks.iter().map(|pick| pick + back as u32).collect();
                    self.store_spread(&parts, place, elements + back as u32, &picks, values[0], guard);
                }
                Pieces::Span { .. } | Pieces::Same(_) | Pieces::Apart => {
                    self.stores.strided += 1;
                    let pointer_of = |lane: u32| self.ir.offset_by(*pointer, offsets[lane as usize] as u64);
                    self.store_quads(&parts, &pointer_of, guard, &|| self.scatter(&parts, self.pointers(&reach), guard))?;
                }
            },
            Reach::Grouped(pointers, group, stride) if *stride == parts.total() as i64 && *group >= 4 => {
                self.stores.strided += 1;
                let ir = self.ir;
                self.store_groups(&parts, &|start| ir.extract_at(*pointers, start), *group, guard)?;
            }
            Reach::Grouped(pointers, ..) | Reach::Any(pointers) => {
                self.stores.scattered += 1;
                let ranked = match (address.base, self.space_of(inst, &address)) {
                    (Base::Reg(reg), Space::Global | Space::Generic) => self.ranked(reg)?,
                    _ => None,
                };
                match (ranked, guard) {
                    (Some(ranked), Some(guard)) => self.store_compact(&parts, &ranked, address.offset, *pointers, guard)?,
                    _ => self.scatter(&parts, *pointers, guard)?,
                }
            }
        }
        if ordered {
            self.ir.compiler_fence();
        }
        Ok(())
    }

    /// Returns the values that a store writes, in all lanes.
    pub(super) fn stored(&self, parts: &Parts) -> Emitted<Vec<Val>> {
        parts.elements.iter().map(|element| self.fetch(element, bits_type(parts.ty), false)).collect()
    }

    /// Stores with one access for all lanes. The last active lane wins, as if they had stored one after the
    /// other. With `around`, the store is non-temporal.
    fn store_one(&mut self, parts: &Parts, pointer: Val, guard: Option<Val>, around: bool) -> Emitted<()> {
        let ir = self.ir;
        let is_uniform = |element: &Operand| match element {
            Operand::Reg(reg) => self.shapes.shape(*reg).is_uniform(),
            _ => true,
        };
        let scalar = self.lanes.is_none() || parts.elements.iter().all(is_uniform);
        let (condition, last) = match (guard, self.lanes) {
            (Some(guard), Some(_)) if ir.lanes(guard).is_some() => {
                let mask = self.as_mask(guard);
                let zeros = ir.intrinsic("llvm.ctlz", &[ir.int(32)], &[mask, ir.constant(ir.int(1), 0)]);
                (Some(self.any(guard)), Some(ir.sub(ir.constant(ir.int(32), 31), zeros)))
            }
            (Some(guard), _) => (Some(guard), None),
            (None, _) => (None, None),
        };
        let after = condition.map(|condition| {
            let (store, after) = (ir.block("store"), ir.block("stored"));
            ir.branch_if(condition, store, after);
            ir.go_on_in(store);
            after
        });
        let mut values = vec![];
        for element in &parts.elements {
            // Fetched as bits, so that NaNs are canonical.
            let value = self.fetch(element, bits_type(parts.ty), scalar)?;
            values.push(match (ir.lanes(value), last) {
                (None, _) => value,
                (Some(lanes), None) => ir.extract_at(value, lanes - 1),
                (Some(_), Some(last)) => ir.extract(value, last),
            });
        }
        let value = match values[..] {
            [one] => one,
            _ => {
                let empty = ir.poison(ir.vector(ir.type_of(values[0]), values.len() as u32));
                (0..).zip(&values).fold(empty, |all, (index, value)| ir.insert(all, *value, ir.constant(ir.int(32), index)))
            }
        };
        if around && parts.total() >= AROUND {
            ir.store_around(value, pointer, parts.total() as u32);
        } else {
            ir.store(value, pointer, parts.bytes as u32);
        }
        if let Some(after) = after {
            ir.branch(after);
            ir.go_on_in(after);
        }
        Ok(())
    }

    fn store_row(&self, parts: &Parts, pointer: Val, lanes: u32, values: &[Val], guard: Option<Val>) {
        let ir = self.ir;
        let count = values.len();
        let all = self.together(values, lanes);
        let align = parts.bytes as u32;
        match guard {
            None => ir.store(all, pointer, align),
            Some(guard) => {
                let mask = self.widened_mask(self.whole_guard(guard, lanes), count);
                let align = ir.constant(ir.int(32), u64::from(align));
                ir.intrinsic("llvm.masked.store", &[ir.type_of(all), ir.pointer()], &[all, pointer, align, mask]);
            }
        }
    }

    /// Stores a row that is not read soon. If it fills whole cache lines, the stores are non-temporal.
    fn stream_row(&self, parts: &Parts, pointer: Val, lanes: u32, values: &[Val], guard: Option<Val>) {
        let ir = self.ir;
        let (i32, i64) = (ir.int(32), ir.int(64));
        let bytes = u64::from(lanes) * parts.total();
        if !bytes.is_multiple_of(LINE) {
            return self.store_row(parts, pointer, lanes, values, guard);
        }
        let (around, through, after) = (ir.block("around"), ir.block("through"), ir.block("stored"));
        let wanted = ir.icmp(IntPred::LLVMIntNE, self.field(i32, offset::STREAMS), ir.constant(i32, 0));
        let low = ir.and(ir.ptrtoint(pointer, i64), ir.constant(i64, LINE - 1));
        let mut whole = ir.and(wanted, ir.icmp(IntPred::LLVMIntEQ, low, ir.constant(i64, 0)));
        if let Some(guard) = guard {
            let all = ir.constant(i32, u64::from(u32::MAX));
            whole = ir.and(whole, ir.icmp(IntPred::LLVMIntEQ, self.as_mask(self.whole_guard(guard, lanes)), all));
        }
        ir.branch_if(whole, around, through);
        ir.go_on_in(around);
        ir.store_around(self.together(values, lanes), pointer, LINE as u32);
        ir.branch(after);
        ir.go_on_in(through);
        self.store_row(parts, pointer, lanes, values, guard);
        ir.branch(after);
        ir.go_on_in(after);
    }

    fn store_groups(&self, parts: &Parts, pointer_of: &dyn Fn(u32) -> Val, group: u32, guard: Option<Val>) -> Emitted<()> {
        let lanes = self.lanes.unwrap_or(1);
        let values = self.stored(parts)?;
        for start in (0..lanes).step_by(group as usize) {
            let guard = guard.map(|guard| self.slice(self.whole_guard(guard, lanes), start, group));
            let values: Vec<Val> = values.iter().map(|value| self.slice(*value, start, group)).collect();
            self.store_row(parts, pointer_of(start), group, &values, guard);
        }
        Ok(())
    }

    /// Returns the lane of each element of a span, and a mask of the elements that are touched. If several
    /// lanes have the same element, the last one is taken. The length is padded to a power of two with
    /// untouched elements.
    fn spread_over(&self, elements: u32, picks: &[u32], guard: Option<Val>) -> (Vec<u32>, Option<Val>) {
        let ir = self.ir;
        // Elements outside the mask are not accessed, and LLVM compiles vectors of odd lengths slowly.
        let mut sources: Vec<Option<u32>> = vec![None; elements.next_power_of_two() as usize];
        for (lane, pick) in (0..).zip(picks) {
            sources[*pick as usize] = Some(lane);
        }
        let lanes: Vec<u32> = sources.iter().map(|source| source.unwrap_or(0)).collect();
        let i1 = ir.int(1);
        let taken: Vec<Val> = sources.iter().map(|source| ir.constant(i1, u64::from(source.is_some()))).collect();
        let all = sources.iter().all(Option::is_some);
        let mask = match guard {
            Some(guard) => {
                let guard = self.whole_guard(guard, picks.len() as u32);
                Some(ir.and(ir.pick(guard, &lanes), ir.constants(&taken)))
            }
            None if all => None,
            None => Some(ir.constants(&taken)),
        };
        (lanes, mask)
    }

    /// Loads lanes that lie apart, with the elements between them, in one access.
    fn load_spread(&self, parts: &Parts, place: Val, elements: u32, picks: &[u32], guard: Option<Val>) -> Val {
        let ir = self.ir;
        let element = self.register_type(parts.ty);
        let all = match guard {
            None => ir.load(ir.vector(element, elements), place, parts.bytes as u32),
            Some(_) => {
                let (lanes, mask) = self.spread_over(elements, picks, guard);
                let ty = ir.vector(element, lanes.len() as u32);
                let mask = mask.unwrap_or_else(|| ir.constant(ir.like(ty, ir.int(1)), 1));
                let align = ir.constant(ir.int(32), parts.bytes);
                ir.intrinsic("llvm.masked.load", &[ty, ir.pointer()], &[place, align, mask, ir.zero(ty)])
            }
        };
        ir.pick(all, picks)
    }

    /// Stores lanes that lie apart, without the elements between them. Of lanes with one address the last
    /// wins.
    fn store_spread(&self, parts: &Parts, place: Val, elements: u32, picks: &[u32], value: Val, guard: Option<Val>) {
        let ir = self.ir;
        let (lanes, mask) = self.spread_over(elements, picks, guard);
        let spread = ir.pick(value, &lanes);
        match mask {
            None => ir.store(spread, place, parts.bytes as u32),
            Some(mask) => {
                let align = ir.constant(ir.int(32), parts.bytes);
                ir.intrinsic("llvm.masked.store", &[ir.type_of(spread), ir.pointer()], &[spread, place, align, mask]);
            }
        }
    }

    /// Interleaves the elements of lanes.
    pub(super) fn together(&self, values: &[Val], lanes: u32) -> Val {
        match values {
            [one] => *one,
            values => {
                let count = values.len() as u32;
                let joined = self.joined(self.padded(values));
                let picks: Vec<u32> = (0..lanes).flat_map(|lane| (0..count).map(move |index| index * lanes + lane)).collect();
                self.ir.pick(joined, &picks)
            }
        }
    }

    /// Pads a list of vectors to a power of two.
    fn padded(&self, values: &[Val]) -> Vec<Val> {
        let mut all = values.to_vec();
        while !all.len().is_power_of_two() {
            all.push(self.ir.poison(self.ir.type_of(values[0])));
        }
        all
    }

    /// Emits `mov`: copies, packs and unpacks.
    pub(crate) fn mov(&mut self, inst: &InstData) -> Emitted<()> {
        let ty = inst.types().next().unwrap_or(Type::B32);
        let [to, from] = inst.operands.as_slice() else { return Err(Untranslated("a `mov` without operands".into())) };
        let scalar = inst.writes().iter().all(|reg| self.is_kept_as_scalar(*reg));
        match (to, from) {
            (Operand::Vector(to), Operand::Vector(from)) => {
                for (to, from) in to.iter().zip(from) {
                    let value = self.fetch(from, ty, scalar)?;
                    self.assign(to, ty, value)?;
                }
                Ok(())
            }
            (to, Operand::Vector(from)) => {
                let value = self.pack(ty, from, scalar)?;
                self.assign(to, ty, value)
            }
            (Operand::Vector(to), from) => {
                let value = self.fetch(from, bits_type(ty), scalar)?;
                self.unpack(ty, value, to)
            }
            (to, from) => {
                let value = if inst.writes().iter().any(|reg| self.is_noisy(*reg)) {
                    self.fetch_as_is(from, ty, scalar)?
                } else {
                    self.fetch(from, ty, scalar)?
                };
                self.assign(to, ty, value)
            }
        }
    }

    fn pack(&self, ty: Type, from: &[Operand], scalar: bool) -> Emitted<Val> {
        let ir = self.ir;
        let bits = ty.bits();
        let each = bits / from.len().max(1) as u32;
        let part = Type::bits_of(each).ok_or_else(|| Untranslated("parts of no width".into()))?;
        let mut all = None;
        for (index, operand) in from.iter().enumerate() {
            let value = ir.resize(self.fetch(operand, part, scalar)?, ir.int(bits), false);
            let moved = self.shifted(value, u64::from(each) * index as u64);
            all = Some(all.map_or(moved, |all| ir.or(all, moved)));
        }
        all.ok_or_else(|| Untranslated("nothing to pack".into()))
    }

    fn shifted(&self, value: Val, by: u64) -> Val {
        if by == 0 { value } else { self.ir.shl(value, self.ir.constant(self.ir.type_of(value), by)) }
    }

    fn unpack(&mut self, ty: Type, value: Val, to: &[Operand]) -> Emitted<()> {
        let ir = self.ir;
        let each = ty.bits() / to.len().max(1) as u32;
        let part = Type::bits_of(each).ok_or_else(|| Untranslated("parts of no width".into()))?;
        for (index, operand) in to.iter().enumerate() {
            let down = ir.constant(ir.type_of(value), u64::from(each) * index as u64);
            let piece = ir.resize(ir.lshr(value, down), ir.int(each), false);
            self.assign(operand, part, piece)?;
        }
        Ok(())
    }

    /// Emits `cvta` and `cvta.to`. Generic addresses are pointers; those of shared and local memory are
    /// offsets from their window.
    pub(crate) fn convert_address(&mut self, inst: &InstData) -> Emitted<()> {
        let ir = self.ir;
        let to = inst.opcode() == Some(Opcode::CvtaTo);
        let [result, from] = inst.operands.as_slice() else { return Err(Untranslated("a `cvta` without operands".into())) };
        let ty = inst.types().next().unwrap_or(Type::U64);
        let scalar = inst.writes().iter().all(|reg| self.is_kept_as_scalar(*reg));
        let value = self.fetch(from, ty, scalar)?;
        let value = ir.resize(value, ir.int(64), false);
        let lanes = ir.lanes(value);
        let spread = |base: Val| match lanes {
            Some(lanes) => ir.splat(base, lanes),
            None => base,
        };
        let i64 = ir.int(64);
        if inst.space() == Space::Shared && self.cluster.has_others() {
            let value = if to { self.find_in_shared(value) } else { self.follow_shared(value) };
            let value = ir.resize(value, ir.int(ty.bits()), false);
            return self.assign(result, ty, value);
        }
        let base = match inst.space() {
            Space::Shared => Some(spread(ir.ptrtoint(self.pointer_field(offset::SHARED), i64))),
            Space::Local => {
                let base = spread(self.local_memory());
                Some(match lanes {
                    Some(lanes) => ir.add(base, ir.steps(i64, lanes, self.layout.local_bytes)),
                    None => base,
                })
            }
            Space::Global | Space::Const | Space::Param | Space::Generic | Space::Reg | Space::Tex => None,
        };
        let value = match (base, to) {
            (None, _) => value,
            (Some(base), true) => ir.sub(value, base),
            (Some(base), false) => ir.add(value, base),
        };
        let value = ir.resize(value, ir.int(ty.bits()), false);
        self.assign(result, ty, value)
    }

    /// Emits `isspacep`: tests whether a generic address lies in a window of the warp.
    pub(crate) fn is_space(&mut self, inst: &InstData) -> Emitted<()> {
        let ir = self.ir;
        let i64 = ir.int(64);
        let [result, from] = inst.operands.as_slice() else { return Err(Untranslated("an `isspacep` without operands".into())) };
        let scalar = inst.writes().iter().all(|reg| self.is_kept_as_scalar(*reg));
        let address = ir.resize(self.fetch(from, self.operand_type(from), scalar)?, i64, false);
        let ty = ir.type_of(address);
        let inside = |start: Val, bytes: Val| {
            let (start, bytes) = (self.as_wide(start, ty), self.as_wide(bytes, ty));
            ir.icmp(IntPred::LLVMIntULT, ir.sub(address, start), bytes)
        };
        let whole_cluster = inst.space() != Space::Shared || inst.has(Modifier::SharedCluster);
        let window = |space: Space| -> Val {
            match space {
                Space::Shared if whole_cluster && self.cluster.has_others() => {
                    let (start, bytes) = self.cluster_windows();
                    inside(start, bytes)
                }
                Space::Shared => {
                    let start = ir.ptrtoint(self.pointer_field(offset::SHARED), i64);
                    let fixed = ir.zext(self.field(ir.int(32), offset::DYNAMIC_SHARED_OFFSET), i64);
                    let more = ir.zext(self.field(ir.int(32), offset::DYNAMIC_SHARED_BYTES), i64);
                    inside(start, ir.add(fixed, more))
                }
                Space::Local => {
                    let start = ir.ptrtoint(self.pointer_field(offset::LOCAL), i64);
                    inside(start, self.field(i64, offset::LOCAL_BYTES))
                }
                _ => {
                    let start = ir.ptrtoint(self.pointer_field(offset::PARAMS), i64);
                    inside(start, ir.constant(i64, self.layout.param_bytes))
                }
            }
        };
        let space = inst.space();
        let value = match space {
            Space::Shared | Space::Local | Space::Param => window(space),
            Space::Const => self.is_constant_memory(address),
            Space::Global | Space::Generic | Space::Reg | Space::Tex => {
                let elsewhere = ir.or(ir.or(window(Space::Shared), window(Space::Local)), window(Space::Param));
                ir.not(ir.or(elsewhere, self.is_constant_memory(address)))
            }
        };
        self.assign(result, Type::Pred, value)
    }

    /// Broadcasts a scalar to the number of lanes of a type.
    pub(crate) fn as_wide(&self, value: Val, like: Ty) -> Val {
        match (self.ir.lanes(value), self.ir.lanes_in(like)) {
            (None, Some(lanes)) => self.ir.splat(value, lanes),
            _ => value,
        }
    }

    /// Tests whether an address lies in a constant variable. Constant variables are tested one by one.
    fn is_constant_memory(&self, address: Val) -> Val {
        let ir = self.ir;
        let i64 = ir.int(64);
        let ty = ir.type_of(address);
        let mut found = ir.constant(ir.like(ty, ir.int(1)), 0);
        for (index, bytes) in self.layout.constants() {
            let table = self.pointer_field(offset::VARIABLES);
            let start = ir.load_invariant(i64, ir.offset_by(table, 8 * u64::from(index)), 8);
            let start = self.as_wide(start, ty);
            let inside = ir.icmp(IntPred::LLVMIntULT, ir.sub(address, start), ir.constant(ty, bytes));
            found = ir.or(found, inside);
        }
        found
    }

    /// Returns the type of an operand if the instruction form does not specify it.
    fn operand_type(&self, operand: &Operand) -> Type {
        match operand {
            Operand::Reg(reg) => bits_type(self.function.regs[*reg].ty),
            _ => Type::B64,
        }
    }
}

/// Returns whether no two lanes have the same element.
fn are_apart(picks: &[u32]) -> bool {
    let mut sorted = picks.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

/// Access patterns for known offsets of lanes.
enum Pieces {
    /// One vector access.
    Row,
    /// One vector access for each group of this many lanes.
    Rows(u32),
    /// One scalar access for each group of this many lanes.
    Same(u32),
    /// One vector access over all lanes: the lowest element, and each lane's element counted from there.
    Span { start: i64, elements: u32, picks: Vec<u32> },
    /// One access per lane.
    Apart,
}

/// Bytes of a cache line.
pub(super) const LINE: u64 = 64;
/// Minimum bytes of a non-temporal store.
const AROUND: u64 = 16;

/// Returns whether lanes of `bytes` bytes lie side by side.
pub(crate) fn is_row(offsets: &[i64], bytes: u64) -> bool {
    matches!(pieces(offsets, bytes), Pieces::Row)
}

/// Maximum elements of a vector access over lanes that lie apart. They span less than a page, so that the
/// elements between two readable addresses are readable too.
const MOST_SPANNED: i64 = 128;

fn pieces(offsets: &[i64], bytes: u64) -> Pieces {
    let bytes = bytes as i64;
    let in_groups = |group: usize, step: i64| {
        offsets.chunks(group).all(|lanes| lanes.iter().zip(0..).all(|(offset, lane)| *offset == lanes[0] + lane * step))
    };
    if in_groups(offsets.len(), bytes) {
        return Pieces::Row;
    }
    let (start, end) = (offsets.iter().copied().min().unwrap_or(0), offsets.iter().copied().max().unwrap_or(0));
    let elements = (end - start) / bytes + 1;
    let near = elements <= MOST_SPANNED && bytes <= 8 && offsets.iter().all(|offset| (offset - start) % bytes == 0);
    for group in [16, 8, 4] {
        if in_groups(group, bytes) && !(near && group < 16) {
            return Pieces::Rows(group as u32);
        }
        if in_groups(group, 0) && !near {
            return Pieces::Same(group as u32);
        }
    }
    if near {
        let picks = offsets.iter().map(|offset| ((offset - start) / bytes) as u32).collect();
        return Pieces::Span { start, elements: elements as u32, picks };
    }
    Pieces::Apart
}
