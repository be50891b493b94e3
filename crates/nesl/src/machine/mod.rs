//! The reference executor of VCODE: vectors of the host, one instruction after the other.
//!
//! Every operand is checked for its type and its length, every index for its bounds. A run has the limits of
//! the evaluator: instructions and elements count as steps, vectors count as bytes, calls count as depth. A
//! tail call does not count as depth.
//!
//! With an [`Accelerator`], large vectors are on a device; see [`crate::run`].

mod amounts;
mod check;
mod columns;
mod device;
mod element;
mod foreign;
mod frame;
mod io;
mod program;
mod region;
mod region_template;
mod segment;
mod tail_loop;

pub(crate) use foreign::to_values;
pub(crate) use frame::Constants;
pub use program::{ProgramOutcome, run, run_on};
pub(crate) use region_template::Regions;

use crate::codes;
use crate::eval::{self, Fault, Run};
use crate::run::{Accelerator, Entry};
use crate::vcode::{Constant, FuncId, Inst, Op, Program, Type};
use broadloom_diag::Span;
use frame::Frame;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// A run of a program.
pub(crate) struct Machine<'p, 'w, 'e> {
    program: &'p Program,
    /// Files, random numbers, primitives and limits are those of the evaluator.
    world: &'w mut eval::Evaluation<'e>,
    stack: Vec<Entry>,
    /// The callers.
    frames: Vec<Frame>,
    /// Entries of the stack below the operands of the running function.
    base: usize,
    /// The place outside the library that the running function was called from.
    site: Span,
    constants: Constants,
    regions: Regions,
    /// The first execution of each `SMALL` whose sizes were on the host.
    small_since: HashMap<(FuncId, usize), Instant>,
    pub(crate) steps: u64,
    accelerator: Option<&'w mut Accelerator>,
    /// True if results stay on the device.
    keeps_results: bool,
}

impl<'p, 'w, 'e> Machine<'p, 'w, 'e> {
    pub(crate) fn new(program: &'p Program, world: &'w mut eval::Evaluation<'e>) -> Self {
        Machine {
            program,
            world,
            stack: vec![],
            frames: vec![],
            base: 0,
            site: Span::default(),
            constants: HashMap::new(),
            regions: Regions::default(),
            small_since: HashMap::new(),
            steps: 0,
            accelerator: None,
            keeps_results: false,
        }
    }

    /// Sets the constants, those of an earlier run.
    pub(crate) fn with_constants(mut self, constants: Constants) -> Self {
        self.constants = constants;
        self
    }

    /// Sets the templates, those of an earlier run.
    pub(crate) fn with_regions(mut self, regions: Regions) -> Self {
        self.regions = regions;
        self
    }

    /// Returns the templates, for a later run.
    pub(crate) fn take_regions(&mut self) -> Regions {
        std::mem::take(&mut self.regions)
    }

    /// Returns the vectors among the constants, for a later run. Segment descriptors are dropped: they may
    /// have learned facts of this run.
    pub(crate) fn take_constants(&mut self) -> Constants {
        let mut constants = std::mem::take(&mut self.constants);
        constants.retain(|_, entry| matches!(entry, Entry::Int(_) | Entry::Bytes(_) | Entry::Float(_) | Entry::Bool(_)));
        constants
    }

    /// Executes the program on a stack and returns the stack at its end.
    pub(crate) fn execute(&mut self, stack: Vec<Entry>) -> Run<Vec<Entry>> {
        self.stack = stack;
        let Some(main) = self.program.main else { return Fault::at_run_time("the program has no function") };
        let mut at = (main, 0usize);
        // True if a region may begin: the host has waited, or a region has ended at the last instruction.
        let mut is_start = false;
        loop {
            let is_behind = is_start && self.region(at).map(|end| at = end).is_some();
            let place = at.1;
            if self.world.options().is_stopped() {
                return Err(self.locate(self.world.options().stopped(), at.0, place));
            }
            let (from, waits) = (at, self.waits());
            match self.step(&mut at) {
                Ok(None) => self.place_conditions(at.0, place),
                Ok(Some(stack)) => return Ok(stack),
                Err(fault) => return Err(self.failure(fault, at.0, place)),
            }
            let has_waited = self.waits() > waits;
            if has_waited {
                self.note_walk(from);
            }
            is_start = is_behind || has_waited;
        }
    }

    /// Returns the number of waits of the host for the device.
    fn waits(&self) -> u64 {
        self.accelerator.as_deref().map_or(0, Accelerator::waits)
    }

    /// Executes the instruction at a place and goes to the next one. Returns the stack at the end of the
    /// program.
    fn step(&mut self, next: &mut (FuncId, usize)) -> Run<Option<Vec<Entry>>> {
        let program = self.program;
        let (function, place) = *next;
        let code = &program.functions[function];
        let Some(inst) = code.code.get(place) else {
            return Fault::at_run_time(format!("the function `{}` ends without `RET`", code.name));
        };
        let at = place + 1;
        *next = (function, at);
        if let Some(accelerator) = &mut self.accelerator {
            accelerator.instructions += 1;
        }
        match inst {
            Inst::Return => match self.frames.pop() {
                Some(caller) => {
                    *next = (caller.function, caller.back);
                    (self.site, self.base) = (caller.site, caller.base);
                    self.flush_behind_call()?;
                }
                None => {
                    self.finish()?;
                    return Ok(Some(std::mem::take(&mut self.stack)));
                }
            },
            Inst::Call(callee) => self.call(*callee, (function, place), next)?,
            Inst::Sequential(call) => {
                if let Some(callee) = self.instead(call)? {
                    self.call(callee, (function, place), next)?;
                }
            }
            Inst::Loop(call) => {
                if let Some(callee) = self.tail_loop(call)? {
                    self.call(callee, (function, place), next)?;
                }
            }
            Inst::Small => self.small((function, place))?,
            Inst::If(target) => {
                if !self.condition()? {
                    *next = (function, *target as usize);
                }
            }
            Inst::Else(target) => *next = (function, *target as usize),
            Inst::EndIf => {}
            Inst::Exit => {
                self.stack.clear();
                self.finish()?;
                return Ok(Some(vec![]));
            }
            Inst::Const(constant) => self.constant((function, place), constant)?,
            Inst::Copy(count, from) => {
                let copies: Vec<Entry> = self.stack[self.range(*count, *from)?].to_vec();
                self.stack.extend(copies);
            }
            Inst::Pop(count, from) => {
                let range = self.range(*count, *from)?;
                drop(self.stack.drain(range));
            }
            Inst::CopyPop(count, from) => {
                let range = self.range(*count, *from)?;
                let count = range.len();
                self.stack[range.start..].rotate_left(count);
            }
            Inst::Pair => {
                let [first, second] = self.take::<2>()?;
                self.stack.push(Entry::Pair(Rc::new((first, second))));
            }
            Inst::Unpair => match self.take::<1>()? {
                [Entry::Pair(parts)] => {
                    self.stack.push(parts.0.clone());
                    self.stack.push(parts.1.clone());
                }
                [other] => return Fault::at_run_time(format!("UNPAIR needs a pair, this is {}", other.type_name())),
            },
            Inst::Op(op, ty) => self.op(*op, *ty)?,
            Inst::Check(check) => self.check(*check)?,
            Inst::Foreign(call) => self.foreign(call)?,
        }
        Ok(None)
    }

    /// Calls a function. `from` is the instruction, `next` the place after it.
    fn call(&mut self, callee: FuncId, from: (FuncId, usize), next: &mut (FuncId, usize)) -> Run<()> {
        let (program, (function, back)) = (self.program, *next);
        let site = program.functions[function].spans.get(from.1).copied().filter(|span| self.is_usable(*span));
        let mut entered = Ok(());
        // A tail call needs no frame.
        if matches!(self.next_of(function, back), Inst::Return) {
            self.site = site.unwrap_or(self.site);
        } else {
            entered = self.enter(callee);
            self.frames.push(Frame { function, back, site: self.site, base: self.base });
            self.site = site.unwrap_or_default();
        }
        *next = (callee, 0);
        let operands = program.functions[callee].signature.as_ref().map_or(usize::MAX, |(operands, _)| operands.len());
        self.base = self.stack.len().saturating_sub(operands);
        entered.and_then(|()| self.count(1))
    }

    /// Returns the next instruction to be executed from an index on, after jumps.
    fn next_of(&self, function: FuncId, mut at: usize) -> &'p Inst {
        let code = &self.program.functions[function].code;
        for _ in 0..code.len() {
            match code.get(at) {
                Some(Inst::Else(target)) => at = *target as usize,
                Some(Inst::EndIf) => at += 1,
                Some(inst) => return inst,
                None => return &Inst::Exit,
            }
        }
        &Inst::Exit
    }

    fn enter(&mut self, callee: FuncId) -> Run<()> {
        if self.frames.len() < self.world.options().max_depth as usize {
            return Ok(());
        }
        let function = &self.program.functions[callee];
        let name = function.source.as_ref().unwrap_or(&function.name);
        let mut fault = Fault::new(codes::RECURSION, format!("`{name}` calls itself too deeply: {} calls", self.frames.len()));
        fault.help = Some("does the recursion end? A call that is the last thing a function does is not counted".to_owned());
        Err(fault)
    }

    /// Counts work: instructions and elements.
    fn count(&mut self, work: usize) -> Run<()> {
        self.steps += 1 + work as u64;
        let limit = self.world.options().max_steps;
        if self.steps <= limit {
            return Ok(());
        }
        let mut fault = Fault::new(codes::STEPS, format!("the program was stopped after {limit} steps"));
        fault.help = Some("does a recursion never end?".to_owned());
        Err(fault)
    }

    /// Tells whether a place is in the text of the program.
    fn is_usable(&self, span: Span) -> bool {
        !span.is_synthetic() && !self.world.is_library(span)
    }

    /// Adds to a fault the innermost place in the text of the program, and the functions around it.
    fn locate(&self, mut fault: Box<Fault>, function: FuncId, at: usize) -> Box<Fault> {
        let functions = &self.program.functions;
        let place = |function: FuncId, at: usize| functions[function].spans.get(at).copied().unwrap_or_default();
        if fault.code == codes::STEPS && fault.message.starts_with("the program") {
            let name = functions[function].source.as_ref().unwrap_or(&functions[function].name);
            fault.message = format!("`{name}` was stopped after {} steps", self.world.options().max_steps);
        }
        let mut span = fault.span.filter(|span| self.is_usable(*span));
        let outer = self.frames.iter().rev().map(|frame| (frame.function, frame.back.saturating_sub(1), frame.site));
        for (function, at, site) in std::iter::once((function, at, self.site)).chain(outer) {
            let known = span.is_some();
            if known && fault.trace.len() >= 4 {
                break;
            }
            let own = place(function, at);
            span = span.or(self.is_usable(own).then_some(own));
            if let (true, Some(name)) = (span.is_some(), &functions[function].source)
                && fault.trace.len() < 4
                && fault.trace.last().is_none_or(|(last, _)| last != name)
                && (known || self.is_usable(own))
            {
                fault.trace.push((name.clone(), site));
            }
            span = span.or(self.is_usable(site).then_some(site));
        }
        fault.span = span.or(fault.span);
        fault
    }

    fn range(&self, count: u32, from: u32) -> Run<std::ops::Range<usize>> {
        let (count, from, size) = (count as usize, from as usize, self.stack.len());
        if count + from > size {
            return Fault::at_run_time(format!("{count} entries below {from} are wanted of a stack that has {size}"));
        }
        Ok(size - from - count..size - from)
    }

    fn take<const N: usize>(&mut self) -> Run<[Entry; N]> {
        let range = self.range(N as u32, 0)?;
        let taken: Vec<Entry> = self.stack.drain(range).collect();
        taken.try_into().map_err(|_| Fault::new(codes::RUN_TIME, "internal error: the stack; please report it"))
    }

    fn condition(&mut self) -> Run<bool> {
        let [condition] = self.take::<1>()?;
        let is_device = matches!(condition, Entry::Device(_));
        match [self.local(condition)?] {
            [Entry::Bool(values)] if values.len() == 1 => {
                if is_device {
                    self.retire()?;
                }
                Ok(values[0])
            }
            [other] => {
                Fault::at_run_time(format!("IF needs one BOOL, this is {} with {} elements", other.type_name(), other.len()))
            }
        }
    }

    fn constant(&mut self, place: (FuncId, usize), constant: &Constant) -> Run<()> {
        let entry = self.constant_at(place, constant)?;
        self.stack.push(entry);
        self.count(0)
    }

    /// Returns the constant of an instruction. It is made once.
    fn constant_at(&mut self, place: (FuncId, usize), constant: &Constant) -> Run<Entry> {
        if let Some(entry) = self.constants.get(&place) {
            return Ok(entry.clone());
        }
        let entry = self.made(constant)?;
        self.constants.insert(place, entry.clone());
        Ok(entry)
    }

    fn made(&mut self, constant: &Constant) -> Run<Entry> {
        match constant {
            Constant::Int(values) => self.ints(values.iter().map(|&value| self.world.wrap(value)).collect()),
            Constant::Float(values) => self.floats(values.iter().map(|&value| self.world.round(value)).collect()),
            Constant::Bool(values) => self.bools(values.to_vec()),
            Constant::Segdes(values) => self.segdes(values.to_vec()),
            Constant::Text(bytes) => self.bytes(bytes.clone()),
        }
    }

    fn charged(&mut self, length: usize, entry: Option<Entry>) -> Run<Entry> {
        match entry {
            Some(entry) => Ok(entry),
            None => self.world.out_of_memory(length),
        }
    }

    pub(crate) fn ints(&mut self, values: Vec<i64>) -> Run<Entry> {
        let (length, entry) = (values.len(), Entry::ints(self.world.meter(), values));
        self.charged(length, entry)
    }

    /// Makes a vector of ints from 0 to 255, a byte for each.
    pub(crate) fn bytes(&mut self, values: Arc<[u8]>) -> Run<Entry> {
        if let [value] = values[..] {
            return self.ints(vec![i64::from(value)]);
        }
        let (length, entry) = (values.len(), Entry::bytes(self.world.meter(), values));
        self.charged(length, entry)
    }

    /// Replaces bytes among the operands of an instruction by ints. Instructions that only move elements keep
    /// bytes.
    fn agree_on_bytes(&mut self, op: Op) -> Run<()> {
        let count = op.operands().len();
        let values: &[usize] = match op {
            Op::Length | Op::Pack | Op::Distribute | Op::BackPermute | Op::BackFlagPermute => &[0],
            Op::Permute | Op::FlagPermute | Op::Extract => &[0],
            Op::DefaultPermute | Op::Replace => &[0, 2],
            Op::DefaultFlagPermute => &[0, 3],
            Op::Select => &[1, 2],
            _ => &[],
        };
        let start = self.range(count as u32, 0)?.start;
        let is_bytes = |entry: &Entry| matches!(entry, Entry::Bytes(_));
        if !self.stack[start..].iter().any(is_bytes) {
            return Ok(());
        }
        let is_byte = |value: &i64| (0..256).contains(value);
        let fits = |index: &usize| match &self.stack[start + index] {
            Entry::Int(codes) => codes.iter().all(is_byte),
            entry => is_bytes(entry),
        };
        let keeps = values.iter().any(|index| is_bytes(&self.stack[start + index])) && values.iter().all(fits);
        for index in 0..count {
            let place = start + index;
            if !keeps || !values.contains(&index) {
                self.widen(place)?;
            } else if let (Entry::Int(_), Some(text)) = (&self.stack[place], self.stack[place].text()) {
                let made = Entry::bytes(self.world.meter(), text);
                self.stack[place] = self.charged(self.stack[place].len(), made)?;
            }
        }
        Ok(())
    }

    /// Replaces bytes among the top entries of the stack by ints.
    fn widen_top(&mut self, count: usize) -> Run<()> {
        (self.stack.len().saturating_sub(count)..self.stack.len()).try_for_each(|index| self.widen(index))
    }

    /// Replaces bytes by ints.
    fn widen(&mut self, index: usize) -> Run<()> {
        if let Entry::Bytes(values) = &self.stack[index] {
            let values = values.clone();
            self.reserve(values.len())?;
            self.stack[index] = self.ints(values.iter().map(|&value| i64::from(value)).collect())?;
        }
        Ok(())
    }

    pub(crate) fn floats(&mut self, values: Vec<f64>) -> Run<Entry> {
        let (length, entry) = (values.len(), Entry::floats(self.world.meter(), values));
        self.charged(length, entry)
    }

    pub(crate) fn bools(&mut self, values: Vec<bool>) -> Run<Entry> {
        let (length, entry) = (values.len(), Entry::bools(self.world.meter(), values));
        self.charged(length, entry)
    }

    /// Makes a segment descriptor from lengths, which must not be negative.
    pub(crate) fn segdes(&mut self, lengths: Vec<i64>) -> Run<Entry> {
        if let Some(length) = lengths.iter().find(|length| **length < 0) {
            return Fault::at_run_time(format!("a segment cannot have {length} elements"));
        }
        let lengths: Vec<usize> = lengths.iter().map(|&length| length as usize).collect();
        self.segments(lengths)
    }

    pub(crate) fn segments(&mut self, lengths: Vec<usize>) -> Run<Entry> {
        let (length, entry) = (lengths.len(), Entry::segdes(self.world.meter(), lengths));
        match &entry {
            // Indices of elements are ints.
            Some(Entry::Segdes(segments)) if segments.total > self.world.widths().largest_int() as usize => {
                Err(Fault::too_many(segments.total))
            }
            _ => self.charged(length, entry),
        }
    }

    /// Checks that memory for a vector is available before it is filled.
    fn reserve(&mut self, length: usize) -> Run<()> {
        if self.world.meter().room(length.saturating_mul(8)) { Ok(()) } else { self.world.out_of_memory(length) }
    }

    /// Executes an instruction of the table, on the device if that pays.
    fn op(&mut self, op: Op, ty: Type) -> Run<()> {
        if self.accelerator.is_some() {
            if self.op_on_amounts(op)? || self.op_on_device(op, ty)? {
                return Ok(());
            }
            self.operands_to_host(op.operands().len())?;
            if op.has_effect() {
                self.look_before_effect()?;
            }
        }
        self.op_on_host(op, ty)
    }

    fn op_on_host(&mut self, op: Op, ty: Type) -> Run<()> {
        self.agree_on_bytes(op)?;
        let results = if op.is_elementwise() {
            vec![self.element(op, ty)?]
        } else if op.has_effect() {
            self.outside(op, ty)?
        } else {
            self.segment(op, ty)?
        };
        self.count(results.iter().map(Entry::len).sum())?;
        self.stack.extend(results);
        Ok(())
    }
}

/// Returns the error of an instruction whose operands have wrong types.
fn wrong_types<T>(op: Op, operands: &[Entry]) -> Run<T> {
    let names: Vec<&str> = operands.iter().map(Entry::type_name).collect();
    Fault::at_run_time(format!("{} cannot take operands of the types {}", op.name(), names.join(", ")))
}

/// Returns the error of an instruction whose operands have wrong lengths.
fn wrong_lengths<T>(op: Op, a: usize, b: usize) -> Run<T> {
    Fault::at_run_time(format!("the operands of {} do not fit each other: {a} and {b} elements", op.name()))
}
