//! The part of the machine that uses a device: it selects the operations for the device, copies vectors back,
//! and evaluates conditions.

use super::{Machine, wrong_types};
use crate::codes;
use crate::eval::{Fault, Run};
use crate::run::{
    Accelerator, DeviceSegdes, DeviceVector, ELEMENTS_OF_A_STEP, Elements, Entry, Extent, OpResult, Vector, VectorCharge,
};
use crate::vcode::{Check, FuncId, Inst, Op, PAUSE_FUEL, Sequential, SequentialCall, Slot, Type};
use broadloom_graph::Amount;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A function whose vectors have fewer elements than this in total continues on the host.
const SMALL: usize = 1 << 12;

/// Time that the host spends on a recursion of small vectors before threads of the device take over. To open a
/// device takes about as long.
const PATIENCE: Duration = Duration::from_millis(16);

/// Steps counted for a loop that has paused: few for each unit of fuel, since a thread of the device is fast.
const STEPS_OF_PAUSE: usize = PAUSE_FUEL as usize / 4;

/// Returns the value of all elements of a vector if the host knows it.
fn each(entry: &Entry) -> Option<Entry> {
    match entry {
        Entry::Device(vector) => vector.each.clone(),
        Entry::Int(_) | Entry::Bytes(_) | Entry::Float(_) | Entry::Bool(_) => {
            Some(entry.clone()).filter(|entry| entry.len() == 1)
        }
        Entry::Segdes(_) | Entry::DeviceSegdes(_) | Entry::Pair(_) => None,
    }
}

impl<'p, 'w, 'e> Machine<'p, 'w, 'e> {
    /// Sets the device of the machine. `trusted`: the program was made by the compiler, so indices and
    /// lengths are valid.
    pub(crate) fn on(mut self, accelerator: &'w mut Accelerator, trusted: bool) -> Self {
        accelerator.begin(self.world.options().widths, trusted);
        self.accelerator = Some(accelerator);
        self
    }

    /// Tells whether an operation on the top entries of the stack is executed on the device.
    fn goes_to_device(&self, count: usize) -> bool {
        let Some(accelerator) = &self.accelerator else { return false };
        let threshold = accelerator.threshold();
        let start = self.stack.len().saturating_sub(count);
        self.stack[start..].iter().any(|entry| match entry {
            Entry::Device(vector) => {
                let is_known = vector.host.get().is_some() || vector.value.get().is_some();
                !is_known || entry.len() >= threshold
            }
            Entry::DeviceSegdes(_) => true,
            // The template computes vectors of such lengths.
            Entry::Int(_) | Entry::Segdes(_) if entry.amount().is_some() => true,
            Entry::Segdes(segments) => segments.total.max(segments.lengths.len()) >= threshold,
            Entry::Int(_) | Entry::Bytes(_) | Entry::Float(_) | Entry::Bool(_) => entry.len() >= threshold,
            Entry::Pair(_) => false,
        })
    }

    /// Returns the result of an operation that reads one number of elements, if the host knows it. Later
    /// operations on such numbers, and the conditions on them, need no kernel.
    fn known_number(&self, op: Op) -> Option<Amount> {
        match (op, self.stack.last()?) {
            (Op::Length, Entry::Device(vector)) => vector.vector.extent.number(),
            (Op::Lengths, Entry::DeviceSegdes(segdes)) if segdes.is_single() => segdes.known_total()?.number(),
            (Op::Lengths, Entry::Segdes(segments)) => segments.single(),
            _ => None,
        }
    }

    /// Executes an instruction on the device. Returns false if the host must execute it.
    pub(super) fn op_on_device(&mut self, op: Op, ty: Type) -> Run<bool> {
        let count = op.operands().len();
        if op.has_effect() || count == 0 || !self.goes_to_device(count) {
            return Ok(false);
        }
        if let Some(number) = self.known_number(op) {
            let number = self.number(&number)?;
            self.stack.pop();
            self.stack.push(number);
            self.count(1)?;
            return Ok(true);
        }
        if op.is_elementwise() && self.equal_elements(op, ty)? {
            return Ok(true);
        }
        let range = self.range(count as u32, 0)?;
        let operands: Vec<Entry> = self.stack.drain(range).collect();
        let wanted = |slot: &Slot| match slot {
            Slot::Given => ty.stacked(),
            Slot::Is(ty) => *ty,
        };
        if !op.operands().iter().zip(&operands).all(|(slot, operand)| operand.ty() == Some(wanted(slot))) {
            return wrong_types(op, &operands);
        }
        let Some(accelerator) = self.accelerator.as_deref_mut() else { return Ok(false) };
        let made = accelerator.op(op, ty, &operands)?;
        let mut results = Vec::with_capacity(made.len());
        let each = operands.first().filter(|_| op == Op::Distribute).and_then(each);
        for made in made {
            results.push(match made {
                OpResult::Vector(ty, vector) if vector.is_uniform() => self.device_vector(ty, vector, each.clone())?,
                made => self.entry(made)?,
            });
        }
        self.count_elements(&results)?;
        self.stack.extend(results);
        // Operands that have left the stack are not computed for their own sake.
        drop(operands);
        if let Some(accelerator) = self.accelerator.as_deref_mut().filter(|accelerator| accelerator.is_full()) {
            accelerator.flush()?;
        }
        Ok(true)
    }

    /// Makes an entry from a result and charges it to the run.
    pub(super) fn entry(&mut self, made: OpResult) -> Run<Entry> {
        match made {
            OpResult::Vector(ty, vector) => self.device_vector(ty, vector, None),
            OpResult::Segdes(segdes) => self.device_segdes(segdes),
        }
    }

    /// Executes an elementwise instruction on vectors of equal elements that the host knows: once, on the
    /// host. Returns false for others.
    fn equal_elements(&mut self, op: Op, ty: Type) -> Run<bool> {
        if !self.accelerator.as_ref().is_some_and(|accelerator| accelerator.trusted) {
            return Ok(false);
        }
        let count = op.operands().len();
        let operands = &self.stack[self.range(count as u32, 0)?];
        let Some(values) = operands.iter().map(each).collect::<Option<Vec<Entry>>>() else { return Ok(false) };
        let extent = |entry: &Entry| match entry {
            Entry::Device(vector) => Some(vector.vector.extent.learned()),
            _ => None,
        };
        let Some(extent) = operands.iter().find_map(extent) else { return Ok(false) };
        // An empty vector cannot have an invalid element.
        if op.failure().is_some() && !matches!(&extent, Extent::Host(count) if !count.is_less(&1.into())) {
            return Ok(false);
        }
        if values.iter().any(|value| value.amount().is_some()) {
            let Some(value) = self.of_amounts(op, &values)? else { return Ok(false) };
            return self.push_equal(count, value, extent, ty);
        }
        let start = self.stack.len() - count;
        self.stack.splice(start.., values);
        self.op_on_host(op, ty)?;
        let [value] = self.take::<1>()?;
        self.push_equal(0, value, extent, ty)
    }

    /// Replaces operands by a vector of equal elements.
    fn push_equal(&mut self, operands: usize, value: Entry, extent: Extent, ty: Type) -> Run<bool> {
        let Some(accelerator) = self.accelerator.as_deref_mut() else { return Ok(false) };
        let vector = Vector { extent, ..accelerator.vector(&value)? };
        let result = self.device_vector(value.ty().unwrap_or(ty), vector, Some(value))?;
        self.stack.truncate(self.stack.len() - operands);
        self.stack.push(result);
        Ok(true)
    }

    fn device_vector(&mut self, ty: Type, vector: Vector, each: Option<Entry>) -> Run<Entry> {
        let charge = self.held(vector.extent.bound(), vector.node.ty().bytes() as usize)?;
        let vector = Rc::new(DeviceVector {
            ty,
            vector,
            kept: OnceCell::new(),
            learned: OnceCell::new(),
            value: OnceCell::new(),
            each,
            host: OnceCell::new(),
            wide: RefCell::default(),
            _charge: Some(charge),
        });
        if let Some(accelerator) = &mut self.accelerator {
            accelerator.register(&vector);
        }
        Ok(Entry::Device(vector))
    }

    /// Charges a vector of this length to the run.
    pub(super) fn held(&mut self, length: &Amount, bytes: usize) -> Run<VectorCharge> {
        let count = usize::try_from(length.value()).unwrap_or(0);
        let Some(charge) = self.world.meter().charge(count.saturating_mul(bytes)) else {
            return self.world.out_of_memory(length.get() as usize);
        };
        let ledger = self.accelerator.as_ref().and_then(|accelerator| accelerator.ledger.clone());
        if let Some(ledger) = &ledger {
            ledger.charge(length, bytes, self.world.meter().live());
        }
        Ok(VectorCharge::new(charge, ledger.map(|ledger| (ledger, length.clone(), bytes))))
    }

    /// Counts the work of an operation on the device by the elements of its results or operands.
    fn count_elements(&mut self, entries: &[Entry]) -> Run<()> {
        let mut work = 0;
        for size in entries.iter().map(Entry::size) {
            if let Some(ledger) = self.accelerator.as_ref().and_then(|accelerator| accelerator.ledger.as_ref()) {
                ledger.count(&size);
            }
            work += usize::try_from(size.value()).unwrap_or(0) / ELEMENTS_OF_A_STEP;
        }
        self.count(work)
    }

    /// Compares the memory and the steps of a traced call with the limits of the run.
    pub(crate) fn conclude(&mut self) {
        if let Some(ledger) = self.accelerator.as_ref().and_then(|accelerator| accelerator.ledger.as_ref()) {
            ledger.conclude(self.world.meter().limit(), self.steps, self.world.options().max_steps);
        }
    }

    fn device_segdes(&mut self, segdes: DeviceSegdes) -> Run<Entry> {
        let charge = self.held(segdes.count().bound(), 8)?;
        let _ = segdes.charge.set(charge);
        let segdes = Rc::new(segdes);
        if let Some(accelerator) = &mut self.accelerator {
            accelerator.register_segdes(&segdes);
        }
        Ok(Entry::DeviceSegdes(segdes))
    }

    /// Adds a condition on the device. Returns false if the host must check the operands.
    pub(super) fn check_on_device(&mut self, check: Check) -> Run<bool> {
        let count = check.operands().len();
        if !self.goes_to_device(count) {
            return Ok(false);
        }
        let range = self.range(count as u32, 0)?;
        if !self.stack[range.clone()].iter().zip(check.operands()).all(|(entry, ty)| entry.ty() == Some(ty.stacked())) {
            return Ok(false);
        }
        let operands = self.stack[range.clone()].to_vec();
        let Some(accelerator) = self.accelerator.as_deref_mut() else { return Ok(false) };
        if !accelerator.check(check, &operands)? {
            return Ok(false);
        }
        self.stack.truncate(range.start);
        self.count_elements(&operands[..1])?;
        Ok(true)
    }

    /// Copies the top entries of the stack to the host.
    pub(super) fn operands_to_host(&mut self, count: usize) -> Run<()> {
        let start = self.stack.len().saturating_sub(count);
        for index in start..self.stack.len() {
            if matches!(self.stack[index], Entry::Device(_) | Entry::DeviceSegdes(_) | Entry::Pair(_)) {
                self.stack[index] = self.local(self.stack[index].clone())?;
            }
        }
        Ok(())
    }

    /// Moves the vectors of the running function to the host if all of them are small: the host finishes
    /// small work before a device has started it. A recursion leaves the device at the level from which on
    /// its data is small.
    pub(super) fn retire(&mut self) -> Run<()> {
        let Some(accelerator) = self.accelerator.as_deref_mut() else { return Ok(()) };
        let limit = accelerator.threshold().min(SMALL);
        let base = self.base.min(self.stack.len());
        let (mut total, mut vectors, mut places) = (0, vec![], vec![]);
        for (place, entry) in self.stack.iter().enumerate().skip(base) {
            match entry {
                Entry::Device(vector) => {
                    let vector = vector.current()?;
                    if !matches!(vector.extent, Extent::Host(_)) {
                        return Ok(());
                    }
                    vectors.push(vector);
                    places.push(place);
                }
                Entry::DeviceSegdes(segdes) => {
                    let segdes = accelerator.current_segdes(segdes)?;
                    let elements = segdes.known_total().map_or(Some(0), |total| total.number().map(|total| total.get() as usize));
                    let (Extent::Host(_), Some(elements)) = (segdes.count(), elements) else { return Ok(()) };
                    total += elements;
                    vectors.push(segdes.lengths());
                    places.push(place);
                }
                Entry::Segdes(segments) => total += segments.total,
                Entry::Int(_) | Entry::Bytes(_) | Entry::Float(_) | Entry::Bool(_) | Entry::Pair(_) => {}
            }
            total += entry.len();
            if total >= limit {
                return Ok(());
            }
        }
        if vectors.is_empty() {
            return Ok(());
        }
        let elements = accelerator.fetch(&vectors)?;
        for (place, elements) in places.into_iter().zip(elements) {
            let entry = match self.stack[place].ty() {
                Some(Type::Segdes) => self.segdes(elements.ints())?,
                Some(Type::Float) => self.floats(elements.floats())?,
                Some(Type::Bool) => self.bools(elements.bools())?,
                Some(Type::Int | Type::Char) | None => self.ints_of(elements)?,
            };
            if let Entry::Device(vector) = &self.stack[place] {
                let _ = vector.host.set(entry.clone());
            }
            self.stack[place] = entry;
        }
        Ok(())
    }

    /// Makes a vector of the host from ints that were read.
    fn ints_of(&mut self, elements: Elements) -> Run<Entry> {
        match elements.into_bytes() {
            Ok(bytes) => self.bytes(bytes.into()),
            Err(elements) => self.ints(elements.ints()),
        }
    }

    /// Copies an entry to the host; waits for it.
    pub(super) fn local(&mut self, entry: Entry) -> Run<Entry> {
        let Some(accelerator) = self.accelerator.as_deref_mut() else { return Ok(entry) };
        match entry {
            Entry::Device(vector) => {
                if let Some(known) = vector.host.get() {
                    return Ok(known.clone());
                }
                if let Some(value) = vector.value.get() {
                    let known = match vector.ty {
                        Type::Bool => self.bools(vec![*value != 0])?,
                        _ => self.ints(vec![*value])?,
                    };
                    return Ok(vector.host.get_or_init(|| known).clone());
                }
                let current = vector.current()?;
                let is_one = current.extent.is_host(1);
                let known = match vector.ty {
                    // Conditions are read in the same wait.
                    Type::Bool if is_one => {
                        let value = accelerator.wait_for_one(&current)?;
                        self.bools(vec![value != 0])?
                    }
                    Type::Int if is_one && !accelerator.has_wide_ints() => {
                        let value = accelerator.wait_for_one(&current)?;
                        self.ints(vec![value])?
                    }
                    Type::Int | Type::Char | Type::Segdes => {
                        let elements = accelerator.elements(&current)?;
                        self.ints_of(elements)?
                    }
                    Type::Float => {
                        let values = accelerator.elements(&current)?.floats();
                        self.floats(values)?
                    }
                    Type::Bool => {
                        let values = accelerator.elements(&current)?.bools();
                        self.bools(values)?
                    }
                };
                Ok(vector.host.get_or_init(|| known).clone())
            }
            Entry::DeviceSegdes(segdes) => {
                let segdes = accelerator.current_segdes(&segdes)?;
                let lengths = accelerator.elements(&segdes.lengths)?.ints();
                self.segdes(lengths)
            }
            Entry::Pair(parts) => {
                let (first, second) = (self.local(parts.0.clone())?, self.local(parts.1.clone())?);
                Ok(Entry::Pair(Rc::new((first, second))))
            }
            Entry::Int(_) | Entry::Bytes(_) | Entry::Float(_) | Entry::Bool(_) | Entry::Segdes(_) => Ok(entry),
        }
    }

    /// Computes the pending work after a call if there is much of it. Few vectors are alive between calls,
    /// and calls of one function leave equal work, so one plan serves all of them.
    pub(super) fn flush_behind_call(&mut self) -> Run<()> {
        match self.accelerator.as_deref_mut() {
            Some(accelerator) if accelerator.has_much() => accelerator.flush(),
            _ => Ok(()),
        }
    }

    /// Evaluates the conditions before a visible effect. A call with an effect has no template.
    pub(super) fn look_before_effect(&mut self) -> Run<()> {
        let Some(accelerator) = self.accelerator.as_deref_mut() else { return Ok(()) };
        accelerator.untraced()?;
        accelerator.look()
    }

    /// Evaluates the conditions.
    pub(super) fn look(&mut self) -> Run<()> {
        self.accelerator.as_deref_mut().map_or(Ok(()), Accelerator::look)
    }

    /// Copies the results of the program to the host.
    pub(super) fn finish(&mut self) -> Run<()> {
        if self.keeps_results {
            return self.look();
        }
        self.operands_to_host(self.stack.len())?;
        self.look()
    }

    /// Sets the place of new conditions.
    pub(super) fn place_conditions(&mut self, function: FuncId, at: usize) {
        if !self.accelerator.as_deref().is_some_and(Accelerator::has_unplaced) {
            return;
        }
        let located = self.locate(Fault::new(codes::RUN_TIME, ""), function, at);
        if let Some(accelerator) = &mut self.accelerator {
            for condition in accelerator.unplaced() {
                condition.place = Some((located.span, located.trace.clone()));
            }
        }
    }

    /// Adds the place to a fault. An earlier condition that does not hold takes precedence.
    pub(super) fn failure(&mut self, fault: Box<Fault>, function: FuncId, at: usize) -> Box<Fault> {
        self.place_conditions(function, at);
        if let Some(accelerator) = &mut self.accelerator
            && !accelerator.has_failed
            && accelerator.look().is_err()
            && !accelerator.has_failed
        {
            accelerator.take_pending();
        }
        match self.failed_condition() {
            Some(earlier) => earlier,
            None => self.locate(fault, function, at),
        }
    }

    /// Repeats the operations of conditions on the host until one fails.
    fn failed_condition(&mut self) -> Option<Box<Fault>> {
        let accelerator = self.accelerator.as_deref_mut().filter(|accelerator| accelerator.has_failed)?;
        let pending = accelerator.take_pending();
        for condition in pending {
            if self.accelerator.as_deref_mut().is_some_and(|accelerator| !accelerator.is_set(&condition)) {
                continue;
            }
            self.stack = condition.operands;
            let outcome = self.operands_to_host(self.stack.len()).and_then(|()| match condition.inst {
                Inst::Op(op, ty) => self.op_on_host(op, ty),
                Inst::Check(check) => self.check_on_host(check),
                _ => Ok(()),
            });
            if let Err(mut fault) = outcome {
                (fault.span, fault.trace) = condition.place.unwrap_or_default();
                return Some(fault);
            }
        }
        None
    }

    /// Takes the sizes of calls and pushes their execution mode. `place` is the instruction.
    pub(super) fn small(&mut self, place: (FuncId, usize)) -> Run<()> {
        let [sizes] = self.take::<1>()?;
        let form = self.form_of_small(place).cloned();
        let is_loop = form.as_deref().is_some_and(|form| form.is_loop);
        let (way, limit) = match self.accelerator.as_deref_mut() {
            // A round does not wait to learn how large it is.
            Some(accelerator) if is_loop && (accelerator.is_tracing() || matches!(sizes, Entry::Device(_))) => (0, 0),
            Some(accelerator) if matches!(sizes, Entry::Device(_)) => accelerator.small(&sizes, place, form.as_deref())?,
            Some(_) => self.small_on_host(&sizes, place, form.as_deref())?,
            None => (0, 0),
        };
        let (way, limit) = (self.ints(vec![way])?, self.ints(vec![limit])?);
        self.stack.extend([way, limit]);
        self.count(1)
    }

    /// Returns the form of the calls that an instruction chooses the execution mode of. They follow it.
    fn form_of_small(&self, place: (FuncId, usize)) -> Option<&'p Arc<Sequential>> {
        let code = self.program.functions[place.0].code.get(place.1..).unwrap_or_default();
        code.iter().find_map(|inst| match inst {
            Inst::Sequential(call) => Some(&call.form),
            _ => None,
        })
    }

    /// Tells whether an instruction chooses the execution mode of a loop.
    pub(super) fn is_small_of_loop(&self, place: (FuncId, usize)) -> bool {
        self.form_of_small(place).is_some_and(|form| form.is_loop)
    }

    /// Returns the execution mode of calls whose sizes are on the host: a recursion that takes the host some
    /// milliseconds goes on in threads of the device.
    fn small_on_host(&mut self, sizes: &Entry, place: (FuncId, usize), form: Option<&Sequential>) -> Run<(i64, i64)> {
        let (Some(form), None, Entry::Int(sizes)) = (form, sizes.amount(), sizes) else { return Ok((0, 0)) };
        let since = self.small_since.entry(place).or_insert_with(Instant::now).elapsed();
        let Some(accelerator) = self.accelerator.as_deref_mut() else { return Ok((0, 0)) };
        let is_early = since < PATIENCE && !(form.is_loop && accelerator.has_fixed_limit());
        if sizes.is_empty() || is_early {
            return Ok((0, 0));
        }
        let (sum, most) = sizes.iter().fold((0, 0), |(sum, most), size| (sum + *size as usize, (*size as usize).max(most)));
        let limit = accelerator.limit_of_small(form, (sum, most))?;
        Ok(if limit.is_some_and(|limit| most <= limit) { (2, i64::from(i32::MAX)) } else { (0, 0) })
    }

    /// Executes a call sequentially. Returns false if the flattened function must be called instead; the
    /// operands are then on the stack.
    pub(super) fn sequential(&mut self, call: &SequentialCall) -> Run<bool> {
        let Some((operands, _)) = &self.program.functions[call.fallback].signature else { return Ok(false) };
        let range = self.range(operands.len() as u32, 0)?;
        let operands = self.stack[range.clone()].to_vec();
        let Some(accelerator) = self.accelerator.as_deref_mut() else { return Ok(false) };
        let Some(made) = accelerator.sequential(&call.form, &operands)? else { return Ok(false) };
        let has_paused = accelerator.has_paused();
        let mut results = Vec::with_capacity(made.len());
        for made in made {
            results.push(self.entry(made)?);
        }
        self.stack.truncate(range.start);
        self.count(results.iter().map(Entry::len).sum())?;
        self.stack.extend(results);
        if call.form.is_loop {
            self.stack[range.start] = self.bools(vec![!has_paused])?;
            self.count(if has_paused { STEPS_OF_PAUSE } else { 0 })?;
            self.retire()?;
        }
        Ok(true)
    }

    /// Returns the function to call instead of a sequential form; `None` if the form was executed.
    pub(super) fn instead(&mut self, call: &SequentialCall) -> Run<Option<FuncId>> {
        if self.world.options().is_stopped() {
            return Err(self.world.options().stopped());
        }
        Ok((!self.sequential(call)?).then_some(call.fallback))
    }
}
