//! Templates of straight-line regions: the instructions between two waits of the host are traced once and
//! then launched.
//!
//! A region begins after an instruction that waited for the device. It ends before the next instruction that
//! would wait, before an effect, and before the return of the function that it began in. Within a region the
//! machine makes nodes, and its decisions depend only on numbers of the host. The region is traced when its
//! start is reached again: the machine executes its instructions on symbols, and [`Context::template_with`]
//! plans the resulting nodes. A later round binds buffers, launches, reads the numbers that the next
//! instruction waits for, and continues at the end of the region.
//!
//! - The vectors of the running function are the inputs. A template depends on their types and on facts of
//!   the host ([`EntryPart`]); sizes, and single ints of the host, are terms. A decision of the host that depends
//!   on them is a condition of the template.
//! - The entries of the stack at the end are the results, together with the calls that are open there.
//!   Offsets and numbers of segments that the region computes are results, too, as the machine keeps them.
//! - A template launches no more kernels than the machine did, including those that compute its inputs. An
//!   input that is not in memory is computed only if kernels of the template read it. A trace launches
//!   nothing.
//! - A region that reads numbers ends before a branch that needs no additional wait.
//! - A template is removed if the machine launches more kernels after it than after its own work: facts were
//!   lost.
//! - Steps and memory depend on sizes. A round that would reach a limit is executed by the machine, which
//!   stops at the right place. So is a round in which a condition on elements does not hold: it has had no
//!   visible effect.
//!
//! [`Context::template_with`]: broadloom_graph::Context::template_with

use super::Machine;
use super::frame::{Constants, Frame};
use super::region_template::{End, EntryPart, EntryResult, ExecutedRegion, InstPosition, MAX_REFUSED, Region, WeakVector};
use crate::eval::{Fault, Run};
use crate::run::{Accelerator, Count, Ending, Entry, Extent, Inputs, Results, Symbols, Vector, uncharged};
use crate::vcode::{Inst, Type};
use broadloom_graph::{Amount, FittedTemplate};
use std::cell::OnceCell;
use std::rc::Rc;

/// Instructions of a region.
const MIN_INSTRUCTIONS: usize = 4;
const MAX_INSTRUCTIONS: usize = 2048;

/// Maximum number of elements of a host vector that is a constant of a template.
const MAX_CONSTANT: usize = 64;

/// Maximum number of templates with the same start.
const MAX_OF_START: usize = 4;

/// Maximum number of templates of a program.
const MAX_TEMPLATES: usize = 64;

/// Returns the int of an entry that the host knows: its only element, or the value of all elements.
fn known_int(entry: &Entry) -> Option<i64> {
    match entry {
        Entry::Int(values) if values.len() == 1 => Some(values[0]),
        Entry::Device(vector) if vector.ty == Type::Int => match (&vector.each, vector.value.get()) {
            (Some(each), _) => known_int(each),
            (None, value) => value.copied(),
        },
        _ => None,
    }
}

/// Tests if a vector of the host is too long for a constant.
fn is_long(entry: &Entry) -> bool {
    !matches!(entry, Entry::Device(_) | Entry::DeviceSegdes(_)) && entry.len() > MAX_CONSTANT
}

/// Tests if two entries are the same.
fn is_one(a: &Entry, b: &Entry) -> bool {
    match (a, b) {
        (Entry::Int(a), Entry::Int(b)) => Rc::ptr_eq(a, b),
        (Entry::Bytes(a), Entry::Bytes(b)) => Rc::ptr_eq(a, b),
        (Entry::Float(a), Entry::Float(b)) => Rc::ptr_eq(a, b),
        (Entry::Bool(a), Entry::Bool(b)) => Rc::ptr_eq(a, b),
        (Entry::Segdes(a), Entry::Segdes(b)) => Rc::ptr_eq(a, b),
        (Entry::Pair(a), Entry::Pair(b)) => Rc::ptr_eq(a, b),
        (Entry::Device(a), Entry::Device(b)) => Rc::ptr_eq(a, b),
        (Entry::DeviceSegdes(a), Entry::DeviceSegdes(b)) => Rc::ptr_eq(a, b),
        _ => false,
    }
}

impl Machine<'_, '_, '_> {
    /// Executes the region at a place from its template. Returns the place at which the machine continues;
    /// `None` if it must execute the region itself.
    pub(super) fn region(&mut self, place: InstPosition) -> Option<InstPosition> {
        let end = self.served(place);
        let behind = std::mem::replace(&mut self.regions.served, end.map(|_| place));
        self.regions.walk = match &self.accelerator {
            Some(accelerator) if end.is_none() => Some(ExecutedRegion { start: place, launches: accelerator.launches(), behind }),
            _ => None,
        };
        end
    }

    /// Records that an instruction executed by the machine has waited.
    pub(super) fn note_walk(&mut self, end: InstPosition) {
        let launches = self.accelerator.as_deref().map_or(0, Accelerator::launches);
        let Some(ExecutedRegion { start, launches: before, behind }) = self.regions.walk.take() else { return };
        let launches = launches.saturating_sub(before);
        let Some(own) = self.regions.starts.get_mut(&start) else { return };
        let known = own.walked.iter().find(|(other, _)| *other == end).map(|(_, launches)| *launches);
        match (behind, known) {
            // The previous template lost facts, which has cost kernels.
            (Some(behind), Some(known)) if launches > known => {
                if let Some(behind) = self.regions.starts.get_mut(&behind) {
                    self.regions.templates -= behind.regions.len();
                    behind.regions.clear();
                    behind.refused = MAX_REFUSED;
                }
            }
            (Some(_), _) => {}
            (None, _) => {
                own.walked.retain(|(other, _)| *other != end);
                own.walked.push((end, launches));
            }
        }
    }

    fn served(&mut self, place: InstPosition) -> Option<InstPosition> {
        if !self.accelerator.as_deref()?.may_begin_region() || self.world.options().is_stopped() {
            return None;
        }
        let start = self.regions.starts.entry(place).or_default();
        start.met = start.met.saturating_add(1);
        start.note(self.stack.iter().skip(self.base).map(known_int));
        if start.met < self.accelerator.as_deref()?.region_from() || start.is_closed() {
            return None;
        }
        let fixed: Vec<bool> = start.ints.iter().map(|(_, has_changed)| !has_changed).collect();
        let mut inputs = Inputs::new(self.accelerator.as_deref_mut()?).ok()?;
        let parts = self.parts(&mut inputs, &fixed);
        let found = parts.as_ref().and_then(|parts| self.fitting(place, parts, &inputs));
        let found = found.or_else(|| self.trace(place, parts?, &inputs));
        let start = self.regions.starts.get_mut(&place)?;
        let Some((index, fitted)) = found else {
            start.missed += 1;
            return None;
        };
        start.served += 1;
        self.replay(place, index, &inputs, fitted)
    }

    /// Returns the template for a round, fitted to its inputs.
    fn fitting(&self, place: InstPosition, parts: &[EntryPart], inputs: &Inputs) -> Option<(usize, FittedTemplate)> {
        let regions = &self.regions.starts.get(&place)?.regions;
        regions.iter().enumerate().find_map(|(index, region)| {
            let is_alike = region.site == self.site && region.parts == parts;
            let fitted = if is_alike { region.template.fitted(&inputs.nodes) } else { None };
            fitted.map(|fitted| (index, fitted))
        })
    }

    /// Lists the entries of the running function. `fixed`: the ints of these entries are constants.
    fn parts(&mut self, inputs: &mut Inputs, fixed: &[bool]) -> Option<Vec<EntryPart>> {
        let base = self.base.min(self.stack.len());
        let mut parts = vec![];
        for index in base..self.stack.len() {
            let entry = self.stack[index].clone();
            let known = self.stack[base..index].iter().position(|other| is_one(other, &entry));
            parts.push(match known {
                Some(known) => EntryPart::Again(known),
                None => {
                    let is_fixed = fixed.get(index - base).copied().unwrap_or(false);
                    self.part(&entry, is_fixed, inputs).ok().flatten()?
                }
            });
        }
        Some(parts)
    }

    fn part(&mut self, entry: &Entry, is_fixed: bool, inputs: &mut Inputs) -> Run<Option<EntryPart>> {
        if is_long(entry) {
            return self.long_part(entry, inputs);
        }
        Ok(match entry {
            Entry::Int(values) if !is_fixed && values.len() == 1 && inputs.number(values[0].saturating_abs())? => {
                Some(EntryPart::Int(values[0] < 0))
            }
            Entry::Segdes(segments) if segments.lengths.len() == 1 && inputs.number(segments.total as i64)? => {
                Some(EntryPart::Single)
            }
            Entry::Int(values) => Some(EntryPart::Ints(values.to_vec())),
            Entry::Bytes(values) => Some(EntryPart::Bytes((***values).clone())),
            Entry::Float(values) => Some(EntryPart::Floats(values.iter().map(|value| value.to_bits()).collect())),
            Entry::Bool(values) => Some(EntryPart::Bools(values.to_vec())),
            Entry::Segdes(segments) => Some(EntryPart::Segments(segments.lengths.clone())),
            Entry::Pair(pair) => match (self.part(&pair.0, false, inputs)?, self.part(&pair.1, false, inputs)?) {
                (Some(first), Some(second)) => Some(EntryPart::Pair(Box::new((first, second)))),
                _ => None,
            },
            Entry::Device(vector) => {
                let current = vector.current()?;
                match (vector.ty, vector.value.get()) {
                    (Type::Bool, Some(value)) => return Ok(Some(EntryPart::Bools(vec![*value != 0]))),
                    (Type::Int, Some(value)) if is_fixed => return Ok(Some(EntryPart::Ints(vec![*value]))),
                    (Type::Int, Some(value)) if inputs.number(value.saturating_abs())? => {
                        return Ok(Some(EntryPart::Int(*value < 0)));
                    }
                    _ => {}
                }
                if let (Some(each), Extent::Host(count)) = (&vector.each, &current.extent) {
                    let part = self.part(each, is_fixed, inputs)?;
                    let is_given = inputs.number(count.value())?;
                    return Ok(part.filter(|_| is_given).map(|part| EntryPart::Equal(vector.ty, Box::new(part))));
                }
                if let (Some((start, step)), Extent::Host(count)) = (current.progression(), &current.extent) {
                    return Ok(inputs.number(count.value())?.then_some(EntryPart::Progression(start, step)));
                }
                inputs.vector(vector.ty, &current)?.map(|part| EntryPart::Vector(vector.ty, part))
            }
            Entry::DeviceSegdes(segdes) => {
                let Some(accelerator) = self.accelerator.as_deref_mut() else { return Ok(None) };
                let segdes = accelerator.current_segdes(segdes)?;
                let total = segdes.known_total().and_then(Extent::number);
                if let Some(total) = total.filter(|_| segdes.is_single()) {
                    return Ok(inputs.number(total.value())?.then_some(EntryPart::Single));
                }
                inputs.segdes(&segdes)?.map(EntryPart::Segdes)
            }
        })
    }

    /// Describes a long vector of the host. If operations of the device would take it, its copy on the device
    /// is an input.
    fn long_part(&mut self, entry: &Entry, inputs: &mut Inputs) -> Run<Option<EntryPart>> {
        let size = match entry {
            Entry::Segdes(segments) => segments.total.max(entry.len()),
            _ => entry.len(),
        };
        let (Some(accelerator), Some(ty)) = (self.accelerator.as_deref_mut(), entry.ty()) else { return Ok(None) };
        if size < accelerator.threshold() {
            return Ok(WeakVector::of(entry).map(EntryPart::Long));
        }
        Ok(match entry {
            Entry::Segdes(_) => {
                let segdes = accelerator.segdes(entry)?;
                inputs.segdes(&segdes)?.map(EntryPart::Segdes)
            }
            _ => {
                let vector = accelerator.stored_vector(entry)?;
                inputs.vector(ty, &vector)?.map(|part| EntryPart::Vector(ty, part))
            }
        })
    }

    /// Makes an entry from symbols.
    fn symbolic(&mut self, part: &EntryPart, symbols: &mut Symbols<'_>, below: &[Entry]) -> Run<Entry> {
        Ok(match part {
            EntryPart::Int(is_negative) => {
                let (sign, size) = (Amount::from(if *is_negative { -1 } else { 1 }), symbols.number()?);
                self.number(&size.times(&sign))?
            }
            EntryPart::Single => self.single(&symbols.number()?)?,
            EntryPart::Ints(values) => self.ints(values.clone())?,
            EntryPart::Bytes(values) => self.bytes(values.clone())?,
            EntryPart::Floats(values) => self.floats(values.iter().map(|bits| f64::from_bits(*bits)).collect())?,
            EntryPart::Bools(values) => self.bools(values.clone())?,
            EntryPart::Segments(lengths) => self.segments(lengths.clone())?,
            EntryPart::Long(long) => match long.entry() {
                Some(entry) => entry,
                None => return no_device(),
            },
            EntryPart::Equal(ty, part) => {
                let value = self.symbolic(part, symbols, below)?;
                let extent = Extent::Host(symbols.number()?);
                let Some(accelerator) = self.accelerator.as_deref_mut() else { return no_device() };
                let vector = Vector { extent, ..accelerator.vector(&value)? };
                let mut vector = uncharged(*ty, vector);
                vector.each = Some(value);
                Entry::Device(Rc::new(vector))
            }
            EntryPart::Progression(start, step) => {
                let extent = Extent::Host(symbols.number()?);
                let Some(accelerator) = self.accelerator.as_deref_mut() else { return no_device() };
                Entry::Device(Rc::new(uncharged(Type::Int, accelerator.progression(*start, *step, extent)?)))
            }
            EntryPart::Vector(ty, part) => Entry::Device(Rc::new(uncharged(*ty, symbols.vector(part)?))),
            EntryPart::Segdes(part) => {
                let Some(accelerator) = self.accelerator.as_deref_mut() else { return no_device() };
                Entry::DeviceSegdes(symbols.segdes(accelerator, part)?)
            }
            EntryPart::Pair(pair) => {
                let first = self.symbolic(&pair.0, symbols, below)?;
                let second = self.symbolic(&pair.1, symbols, below)?;
                Entry::Pair(Rc::new((first, second)))
            }
            EntryPart::Again(index) => match below.get(*index) {
                Some(entry) => entry.clone(),
                None => return no_device(),
            },
        })
    }

    /// Traces a region. Returns its template, fitted to the inputs of this round; `None` if it has none.
    fn trace(&mut self, place: InstPosition, parts: Vec<EntryPart>, inputs: &Inputs) -> Option<(usize, FittedTemplate)> {
        let start = self.regions.starts.get(&place)?;
        let is_full = self.regions.templates >= MAX_TEMPLATES || start.regions.len() >= MAX_OF_START;
        if is_full || start.refused >= MAX_REFUSED {
            return None;
        }
        let live = self.world.meter().live();
        let aside = self.accelerator.as_deref_mut()?.begin_region(live);
        let (stack, frames) = (std::mem::take(&mut self.stack), std::mem::take(&mut self.frames));
        let (base, site, steps) = (std::mem::take(&mut self.base), self.site, std::mem::take(&mut self.steps));
        let constants = self.constants.clone();
        self.forget_segdes();
        let mut end = None;
        let template = inputs.context().template_with(&inputs.nodes, |symbols| {
            let traced = self.traced(place, &parts, Symbols(symbols.iter()));
            // Vectors of the trace are released before it ends.
            self.stack.clear();
            match traced {
                Ok((ending, made)) => {
                    end = Some(made);
                    Ok((ending.nodes, ending.amounts))
                }
                Err(_) => Err(broadloom_graph::Error::Symbolic { operation: "region".to_owned() }),
            }
        });
        (self.stack, self.frames) = (stack, frames);
        (self.base, self.site, self.steps, self.constants) = (base, site, steps, constants);
        self.accelerator.as_deref_mut()?.end_region(aside);
        let region = match (template, end) {
            (Ok(template), Some(end)) => Some(Region { site, parts, template, end }),
            _ => None,
        };
        let fitted = region.as_ref().and_then(|region| region.template.fitted(&inputs.nodes));
        let start = self.regions.starts.get_mut(&place)?;
        let (Some(region), Some(fitted)) = (region, fitted) else {
            start.refused += 1;
            return None;
        };
        // The machine may save kernels and waits through facts that a template does not have.
        let kernels = inputs.launches(&region.template).map_or(u64::MAX, |others| others + region.template.kernels());
        let walked = start.walked.iter().find(|(end, _)| *end == region.end.place);
        if walked.is_some_and(|(_, launches)| kernels > *launches) {
            start.refused = MAX_REFUSED;
            return None;
        }
        if walked.is_none() && !start.walked.is_empty() {
            start.refused += 1;
            return None;
        }
        start.regions.push(Rc::new(region));
        self.regions.templates += 1;
        Some((start.regions.len() - 1, fitted))
    }

    /// Drops constants that may learn facts from a trace.
    fn forget_segdes(&mut self) {
        let constants: Constants = self.take_constants();
        self.constants = constants;
    }

    /// Executes a region on symbols.
    fn traced(&mut self, place: InstPosition, parts: &[EntryPart], mut symbols: Symbols<'_>) -> Run<(Ending, End)> {
        let mut given: Vec<Entry> = vec![];
        for part in parts {
            let entry = self.symbolic(part, &mut symbols, &given)?;
            given.push(entry);
        }
        self.stack.clone_from(&given);
        let (mut at, mut depth, mut count) = (place, 0, 0);
        while count < MAX_INSTRUCTIONS && !self.ends_region(at) {
            let before = (self.stack.clone(), self.frames.clone(), self.base, self.site, self.steps, at);
            let stepped = self.step(&mut at);
            if !matches!(stepped, Ok(None)) {
                (self.stack, self.frames, self.base, self.site, self.steps, at) = before;
                break;
            }
            (depth, count) = (depth.max(self.frames.len()), count + 1);
        }
        if count < MIN_INSTRUCTIONS {
            return Fault::at_run_time("a region is too short");
        }
        let steps = self.steps;
        let stack = std::mem::take(&mut self.stack);
        let Some(accelerator) = self.accelerator.as_deref_mut() else { return no_device() };
        let mut ending = accelerator.ending(stack.last())?;
        let mut answers = vec![];
        for (index, entry) in stack.iter().enumerate() {
            let same = given.iter().position(|own| is_one(own, entry)).map(EntryResult::Same);
            let again = || stack[..index].iter().position(|own| is_one(own, entry)).map(EntryResult::Again);
            let constant =
                || self.constants.iter().find(|(_, own)| is_one(own, entry)).map(|(place, _)| EntryResult::Constant(*place));
            let answer = same.or_else(again).or_else(constant).or_else(|| answer(entry, &mut ending));
            answers.push(answer.ok_or_else(|| Fault::new(crate::codes::RUN_TIME, "a vector of a region has no known length"))?);
        }
        let reading = accelerator.reading(&mut ending)?;
        // If an instruction at the end waits for something else, that is an additional wait.
        let is_served = match (self.program.functions[at.0].code.get(at.1), answers.last()) {
            (Some(Inst::If(_)), Some(answer)) => matches!(answer, EntryResult::Value(..) | EntryResult::Bools(_)),
            _ => false,
        };
        if reading.waits() && !is_served {
            return Fault::at_run_time("a region ends before another wait");
        }
        for (entry, answer) in stack.iter().zip(&mut answers) {
            keep_offsets(entry, answer, &mut ending);
        }
        if ending.nodes.is_empty() {
            return Fault::at_run_time("a region leaves nothing to the device");
        }
        let Some(ledger) = accelerator.ledger.clone() else { return no_device() };
        let (steps, peaks) = ledger.of_sizes(steps);
        let steps = ending.amount(&steps);
        let peaks = peaks.iter().map(|peak| ending.amount(peak)).collect();
        let frames = std::mem::take(&mut self.frames);
        let end = End { place: at, frames, base: self.base, site: self.site, depth, answers, reading, steps, peaks };
        Ok((ending, end))
    }

    /// Tells whether a region must end before an instruction.
    fn ends_region(&self, (function, at): InstPosition) -> bool {
        let is_sequential = || self.accelerator.as_deref().is_some_and(Accelerator::is_sequential);
        match self.program.functions[function].code.get(at) {
            None | Some(Inst::Exit | Inst::Foreign(_)) => true,
            Some(Inst::Return) => self.frames.is_empty(),
            Some(Inst::Op(op, _)) => op.has_effect(),
            // The answer depends on earlier requests.
            Some(Inst::Small) => is_sequential() && !self.is_small_of_loop((function, at)),
            Some(Inst::Sequential(_)) => is_sequential(),
            // The host reads whether all elements are finished.
            Some(Inst::Loop(_)) => true,
            Some(Inst::If(_)) => matches!(self.stack.last(), Some(Entry::Device(_))),
            Some(
                Inst::Call(_)
                | Inst::Else(_)
                | Inst::EndIf
                | Inst::Const(_)
                | Inst::Copy(..)
                | Inst::Pop(..)
                | Inst::CopyPop(..)
                | Inst::Pair
                | Inst::Unpair
                | Inst::Check(_),
            ) => false,
        }
    }

    /// Launches a template, waits for its numbers and goes to the end of the region. Returns `None` if the
    /// machine must execute the region; its state is then that of the start.
    fn replay(&mut self, place: InstPosition, index: usize, inputs: &Inputs, fitted: FittedTemplate) -> Option<InstPosition> {
        let region = self.regions.starts.get(&place)?.regions.get(index)?.clone();
        let gone_on = self.replay_region(&region, inputs, fitted);
        if let (Err(_), Some(start)) = (&gone_on, self.regions.starts.get_mut(&place)) {
            // The word of a condition stays set, so the template cannot be used again.
            start.regions.remove(index);
            start.refused += 1;
            self.regions.templates -= 1;
        }
        gone_on.ok().flatten()
    }

    fn replay_region(&mut self, region: &Region, inputs: &Inputs, fitted: FittedTemplate) -> Run<Option<InstPosition>> {
        let (end, amounts) = (&region.end, fitted.amounts());
        let options = *self.world.options();
        let steps = u64::try_from(amounts[end.steps]).unwrap_or(u64::MAX);
        let is_within = |peak: &usize| {
            let bytes = usize::try_from(amounts[*peak].max(0)).unwrap_or(usize::MAX);
            self.world.meter().room(bytes)
        };
        let is_small = self.steps.saturating_add(steps) <= options.max_steps && end.peaks.iter().all(is_within);
        if !is_small || self.frames.len() + end.depth > options.max_depth as usize {
            return Ok(None);
        }
        inputs.store(&region.template)?;
        let nodes = crate::run::on_device(region.template.call_fitted(&fitted, &inputs.nodes))?;
        let Some(accelerator) = self.accelerator.as_deref_mut() else { return no_device() };
        let Some(results) = accelerator.read_numbers(&end.reading, nodes, fitted)? else {
            return Fault::at_run_time("a condition does not hold");
        };
        let base = self.base.min(self.stack.len());
        let mut entries: Vec<Entry> = Vec::with_capacity(end.answers.len());
        for answer in &end.answers {
            let entry = match answer {
                EntryResult::Same(index) => self.stack[base + index].clone(),
                EntryResult::Again(index) => entries[*index].clone(),
                answer => self.answered(answer, &results)?,
            };
            entries.push(entry);
        }
        self.stack.truncate(base);
        self.stack.extend(entries);
        self.frames.extend(end.frames.iter().map(|frame| Frame { base: base + frame.base, ..frame.clone() }));
        (self.base, self.site) = (base + end.base, end.site);
        self.steps += steps;
        if let Some(accelerator) = self.accelerator.as_deref_mut() {
            accelerator.regions += 1;
        }
        Ok(Some(end.place))
    }

    /// Makes an entry of the end of a region.
    fn answered(&mut self, answer: &EntryResult, results: &Results) -> Run<Entry> {
        Ok(match answer {
            EntryResult::Int(amount) => self.ints(vec![results.amount(*amount)])?,
            EntryResult::Single(amount) => self.segdes(vec![results.amount(*amount)])?,
            EntryResult::Ints(values) => self.ints(values.clone())?,
            EntryResult::Bytes(values) => self.bytes(values.clone())?,
            EntryResult::Floats(values) => self.floats(values.clone())?,
            EntryResult::Bools(values) => self.bools(values.clone())?,
            EntryResult::Segments(lengths) => self.segments(lengths.clone())?,
            EntryResult::Equal(ty, value, count, held) => {
                let value = self.answered(value, results)?;
                let Some(accelerator) = self.accelerator.as_deref_mut() else { return no_device() };
                let vector = Vector { extent: Extent::host(results.count(*count)), ..accelerator.vector(&value)? };
                let bytes = vector.node.ty().bytes() as usize;
                let held = self.held(&results.count(Count::Amount(*held)).into(), bytes)?;
                let mut vector = uncharged(*ty, vector);
                (vector.each, vector._charge) = (Some(value), Some(held));
                Entry::Device(Rc::new(vector))
            }
            EntryResult::One(count) => self.segments(vec![results.count(*count)])?,
            EntryResult::Progression(start, step, count, held) => {
                let Some(accelerator) = self.accelerator.as_deref_mut() else { return no_device() };
                let vector = accelerator.progression(*start, *step, Extent::host(results.count(*count)))?;
                let bytes = vector.node.ty().bytes() as usize;
                let held = self.held(&results.count(Count::Amount(*held)).into(), bytes)?;
                let mut vector = uncharged(Type::Int, vector);
                vector._charge = Some(held);
                Entry::Device(Rc::new(vector))
            }
            EntryResult::Value(ty, number) => {
                let value = results.number(*number);
                let known = match ty {
                    Type::Bool => self.bools(vec![value != 0])?,
                    _ => self.ints(vec![value])?,
                };
                let Some(accelerator) = self.accelerator.as_deref_mut() else { return no_device() };
                let vector = accelerator.vector(&known)?;
                let held = self.held(&1.into(), vector.node.ty().bytes() as usize)?;
                let mut vector = uncharged(*ty, vector);
                (vector.value, vector._charge) = (OnceCell::from(value), Some(held));
                Entry::Device(Rc::new(vector))
            }
            EntryResult::Vector(answer) => {
                let vector = results.vector(answer)?;
                let (count, bytes) = answer.held(results);
                let held = self.held(&count.into(), bytes)?;
                let Some(accelerator) = self.accelerator.as_deref_mut() else { return no_device() };
                Entry::Device(accelerator.resulting(answer.ty(), vector, held))
            }
            EntryResult::Segdes(answer, offsets) => {
                let lengths = results.vector(answer)?;
                let (count, bytes) = answer.held(results);
                let held = self.held(&count.into(), bytes)?;
                let segdes = crate::run::DeviceSegdes::of_lengths(lengths);
                if let Some(offsets) = offsets {
                    segdes.set_segments(results.segments(offsets)?);
                }
                let _ = segdes.charge.set(held);
                Entry::DeviceSegdes(Rc::new(segdes))
            }
            EntryResult::Offsets(offsets) => {
                let (segments, count, total) = (results.segments(offsets)?, offsets.segments(results), offsets.total(results));
                let held = self.held(&count.into(), 8)?;
                let Some(accelerator) = self.accelerator.as_deref_mut() else { return no_device() };
                let mut segdes = crate::run::DeviceSegdes::of_segments(accelerator, segments, total.into())?;
                segdes.lengths.facts.nonzero = offsets.nonzero;
                let _ = segdes.charge.set(held);
                Entry::DeviceSegdes(Rc::new(segdes))
            }
            EntryResult::Pair(pair) => {
                let (first, second) = (self.answered(&pair.0, results)?, self.answered(&pair.1, results)?);
                Entry::Pair(Rc::new((first, second)))
            }
            EntryResult::Constant(place) => match self.program.functions[place.0].code.get(place.1) {
                Some(Inst::Const(constant)) => self.constant_at(*place, constant)?,
                _ => return no_device(),
            },
            EntryResult::Same(_) | EntryResult::Again(_) => return no_device(),
        })
    }
}

/// Describes an entry of the end of a region. Returns `None` if the host does not learn its length.
fn answer(entry: &Entry, ending: &mut Ending) -> Option<EntryResult> {
    if let Some(amount) = entry.amount() {
        let amount = ending.amount(&amount);
        return Some(if matches!(entry, Entry::Int(_)) { EntryResult::Int(amount) } else { EntryResult::Single(amount) });
    }
    if is_long(entry) {
        return None;
    }
    Some(match entry {
        Entry::Int(values) => EntryResult::Ints(values.to_vec()),
        Entry::Bytes(values) => EntryResult::Bytes((***values).clone()),
        Entry::Float(values) => EntryResult::Floats(values.to_vec()),
        Entry::Bool(values) => EntryResult::Bools(values.to_vec()),
        Entry::Segdes(segments) => EntryResult::Segments(segments.lengths.clone()),
        Entry::Pair(pair) => EntryResult::Pair(Box::new((answer(&pair.0, ending)?, answer(&pair.1, ending)?))),
        Entry::Device(vector) => {
            let own = &vector.vector;
            if let Some(each) = &vector.each {
                let (value, count) = (answer(each, ending)?, ending.count(&own.extent)?);
                let held = ending.amount(own.extent.bound());
                return Some(EntryResult::Equal(vector.ty, Box::new(value), count, held));
            }
            if let Some(number) = ending.value(vector) {
                return Some(EntryResult::Value(vector.ty, number));
            }
            if let Some((start, step)) = own.progression() {
                let (count, held) = (ending.count(&own.extent)?, ending.amount(own.extent.bound()));
                return Some(EntryResult::Progression(start, step, count, held));
            }
            let bytes = own.node.ty().bytes() as usize;
            EntryResult::Vector(ending.vector(vector.ty, own, bytes)?)
        }
        Entry::DeviceSegdes(segdes) if segdes.is_single() && segdes.known_total().is_some() => {
            EntryResult::One(ending.count(segdes.known_total()?)?)
        }
        Entry::DeviceSegdes(segdes) if segdes.lengths.generated => match ending.offsets(segdes) {
            Some(offsets) => EntryResult::Offsets(offsets),
            None => EntryResult::Segdes(ending.vector(Type::Segdes, &segdes.lengths(), 8)?, None),
        },
        Entry::DeviceSegdes(segdes) => EntryResult::Segdes(ending.vector(Type::Segdes, &segdes.lengths(), 8)?, None),
    })
}

/// Adds the offsets of segments to the results of a region that computes them, because the machine keeps
/// them, too.
fn keep_offsets(entry: &Entry, answer: &mut EntryResult, ending: &mut Ending) {
    match (entry, answer) {
        (Entry::Pair(entries), EntryResult::Pair(answers)) => {
            keep_offsets(&entries.0, &mut answers.0, ending);
            keep_offsets(&entries.1, &mut answers.1, ending);
        }
        (Entry::DeviceSegdes(segdes), EntryResult::Segdes(_, kept)) => *kept = ending.offsets(segdes),
        _ => {}
    }
}

fn no_device<T>() -> Run<T> {
    Fault::at_run_time("internal error: a region without a device; please report it")
}
