//! Calls that run as loops, one for each element: see [`TailLoop`].
//!
//! Short loops of vectors of the host run on the host. If they take longer than starting the device does,
//! and for vectors of the device, each element is a thread of the device. A launch there executes a limited
//! number of rounds, so that a loop without end can be stopped: the host looks at the limits between launches.
//! After an error on the device the host repeats the loop of the element, which gives the message.

use super::Machine;
use crate::eval::{Fault, Run, conditions};
use crate::run::{Entry, LoopOutcome, LoopRun};
use crate::vcode::elementwise::ScalarResult;
use crate::vcode::{Check, FuncId, LoopBlock, LoopCall, LoopEnd, LoopFold, LoopOperand, Op, Reg, Step, TailLoop, Type};
use broadloom_diag::Span;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Steps of loops on the host before the device takes over.
const HOST_STEPS: u64 = 1 << 20;

/// Steps between two looks at the limits of the run.
const CHUNK: u64 = 1 << 16;

/// Duration of a launch below which the next one has more rounds, and above which it has fewer.
const SHORT: Duration = Duration::from_millis(60);
const LONG: Duration = Duration::from_millis(250);

/// Maximum number of rounds of a launch.
const MAX_ROUNDS: u64 = 1 << 30;

/// Minimum number of elements that keep a device busy with a loop each, and length of a sequence from which on
/// fewer elements are better flattened.
const BUSY: usize = 1 << 10;
const LONG_SEQUENCE: usize = 1 << 15;

/// Progress of loops on the host.
struct HostLoop<'a> {
    form: &'a TailLoop,
    tables: &'a [Entry],
    /// Registers: ints, bits of floats, and bools as 0 or 1.
    regs: Vec<i64>,
    next: Vec<i64>,
    /// Steps since the last look at the limits.
    steps: u64,
    /// Steps until the device takes over.
    left: u64,
}

/// Reason why steps on the host end early.
enum Stopped {
    /// The device must take over.
    TakeOver,
    Fault(Box<Fault>),
}

impl From<Box<Fault>> for Stopped {
    fn from(fault: Box<Fault>) -> Stopped {
        Stopped::Fault(fault)
    }
}

/// Returns the bits of an element of the host; `None` for vectors of the device.
fn element_of(entry: &Entry, index: usize) -> Option<i64> {
    match entry {
        Entry::Int(values) => values.get(index).copied(),
        Entry::Bytes(values) => values.get(index).map(|value| i64::from(*value)),
        Entry::Float(values) => values.get(index).map(|value| value.to_bits() as i64),
        Entry::Bool(values) => values.get(index).map(|value| i64::from(*value)),
        Entry::Segdes(_) | Entry::Pair(_) | Entry::Device(_) | Entry::DeviceSegdes(_) => None,
    }
}

impl Machine<'_, '_, '_> {
    /// Executes a call by its loop form. Returns the function to call instead, if the form cannot be used.
    pub(super) fn tail_loop(&mut self, call: &LoopCall) -> Run<Option<FuncId>> {
        let range = self.range(call.form.operands.len() as u32 + 1, 0)?;
        let operands = self.stack[range.clone()].to_vec();
        let Some(results) = self.looped(&call.form, &operands)? else { return Ok(Some(call.fallback)) };
        self.stack.truncate(range.start);
        self.stack.extend(results);
        Ok(None)
    }

    fn looped(&mut self, form: &Arc<TailLoop>, operands: &[Entry]) -> Run<Option<Vec<Entry>>> {
        let Some((context, operands)) = operands.split_first() else { return Ok(None) };
        let (mut params, mut tables) = (vec![], vec![]);
        for (entry, operand) in operands.iter().zip(&form.operands) {
            match operand {
                LoopOperand::Param => params.push(entry.clone()),
                LoopOperand::Pool => {}
                LoopOperand::Table(_) => tables.push(entry.clone()),
            }
        }
        let is_host = |entry: &Entry| matches!(entry, Entry::Int(_) | Entry::Bytes(_) | Entry::Float(_) | Entry::Bool(_));
        if !self.is_loop(form, context, (&params, &tables))? {
            return Ok(None);
        }
        if let (Entry::Segdes(segments), true) = (context, params.iter().chain(&tables).all(is_host)) {
            let calls = segments.total;
            let threshold = self.accelerator.as_deref().map_or(usize::MAX, |accelerator| accelerator.threshold());
            if calls < threshold
                && let Some(results) = self.loops_on_host(form, calls, (&params, &tables))?
            {
                return Ok(Some(results));
            }
        }
        self.loops_on_device(form, context, (&params, &tables))
    }

    /// Tells whether elements are executed by loops: a device is not busy with few long ones.
    fn is_loop(&mut self, form: &TailLoop, context: &Entry, (params, tables): (&[Entry], &[Entry])) -> Run<bool> {
        if form.repeats {
            return Ok(true);
        }
        let calls = match context {
            Entry::Segdes(segments) => segments.total,
            _ => BUSY,
        };
        if calls == 0 {
            return Ok(false);
        }
        if calls >= BUSY || self.accelerator.is_none() {
            return Ok(true);
        }
        if tables.iter().any(|table| table.len() >= LONG_SEQUENCE) {
            return Ok(false);
        }
        for extent in &form.extents {
            let Some(param) = params.get(*extent as usize) else { continue };
            if let Entry::Int(lengths) = self.local(param.clone())?
                && lengths.iter().any(|length| *length >= LONG_SEQUENCE as i64)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs the loops of all elements on the host. Returns `None` if the device must take over.
    fn loops_on_host(
        &mut self,
        form: &TailLoop,
        calls: usize,
        (params, tables): (&[Entry], &[Entry]),
    ) -> Run<Option<Vec<Entry>>> {
        self.reserve(calls.saturating_mul(form.results.len()))?;
        let left = if self.accelerator.is_some() { HOST_STEPS } else { u64::MAX };
        let mut run = HostLoop { form, tables, regs: vec![0; form.registers.len()], next: vec![], steps: 0, left };
        let mut columns: Vec<Vec<i64>> = form.results.iter().map(|_| Vec::with_capacity(calls)).collect();
        for index in 0..calls {
            for (reg, param) in run.regs.iter_mut().zip(params) {
                *reg = element_of(param, index).unwrap_or(0);
            }
            let Some(results) = self.loop_on_host(&mut run)? else { return Ok(None) };
            for (column, reg) in columns.iter_mut().zip(results) {
                column.push(run.regs[*reg as usize]);
            }
        }
        self.count(run.steps as usize + calls)?;
        let mut results = vec![];
        for (ty, column) in form.results.iter().zip(columns) {
            results.push(match ty {
                Type::Float => self.floats(column.into_iter().map(|bits| f64::from_bits(bits as u64)).collect())?,
                Type::Bool => self.bools(column.into_iter().map(|bits| bits != 0).collect())?,
                Type::Int | Type::Char | Type::Segdes => self.ints(column)?,
            });
        }
        Ok(Some(results))
    }

    /// Runs the loop of one element, whose parameters are in the registers. Returns the registers of the
    /// results, or `None` if the device must take over.
    fn loop_on_host<'f>(&mut self, run: &mut HostLoop<'f>) -> Run<Option<&'f [Reg]>> {
        match self.rounds_on_host(run) {
            Ok(results) => Ok(Some(results)),
            Err(Stopped::TakeOver) => Ok(None),
            Err(Stopped::Fault(fault)) => Err(fault),
        }
    }

    fn rounds_on_host<'f>(&mut self, run: &mut HostLoop<'f>) -> Result<&'f [Reg], Stopped> {
        let form = run.form;
        loop {
            let mut block: &LoopBlock = &form.round;
            loop {
                run.steps += 1 + block.steps.len() as u64;
                self.steps_on_host(run, &block.steps)?;
                match &block.end {
                    LoopEnd::If(condition, branches) => {
                        block = if run.regs[*condition as usize] != 0 { &branches.0 } else { &branches.1 };
                    }
                    LoopEnd::Return(results) => return Ok(results),
                    LoopEnd::Again(params) => {
                        run.next.clear();
                        run.next.extend(params.iter().map(|reg| run.regs[*reg as usize]));
                        run.regs[..run.next.len()].copy_from_slice(&run.next);
                        break;
                    }
                }
            }
            self.pause(run)?;
        }
    }

    /// Looks at the limits of the run after some steps.
    fn pause(&mut self, run: &mut HostLoop<'_>) -> Result<(), Stopped> {
        if run.steps >= CHUNK {
            if run.left <= run.steps {
                return Err(Stopped::TakeOver);
            }
            self.look_at_limits(run.form, run.steps)?;
            run.left -= run.steps;
            run.steps = 0;
        }
        Ok(())
    }

    /// Counts steps of a loop, and ends the run at a limit or a stop.
    fn look_at_limits(&mut self, form: &TailLoop, steps: u64) -> Run<()> {
        let options = *self.world.options();
        if options.is_stopped() {
            let mut fault = options.stopped();
            fault.message = format!("{}, in a call of `{}`", fault.message, form.source);
            return Err(fault);
        }
        self.count(usize::try_from(steps).unwrap_or(usize::MAX)).map_err(|mut fault| {
            fault.message = format!("`{}` was stopped after {} steps", form.source, options.max_steps);
            fault
        })
    }

    fn steps_on_host(&mut self, run: &mut HostLoop<'_>, steps: &[Step]) -> Result<(), Stopped> {
        let at = |mut fault: Box<Fault>, span: &Span| {
            fault.span = Some(*span);
            fault
        };
        let failed = |message: &str, span: &Span| Err(at(Fault::new(crate::codes::RUN_TIME, message), span).into());
        for step in steps {
            match step {
                Step::Const(to, bits) => {
                    run.regs[*to as usize] = *bits;
                }
                Step::Copy(to, from) => run.regs[*to as usize] = run.regs[*from as usize],
                Step::Op { to, op, ty, args, span } => {
                    let [a, b, c] = args.map(|reg| run.regs[reg as usize]);
                    match self.scalar_op(*op, *ty, [a, b, c]) {
                        Ok(value) => run.regs[*to as usize] = value,
                        Err(message) => return failed(message, span),
                    }
                }
                Step::Choose(condition, then, otherwise) => {
                    let chosen = if run.regs[*condition as usize] != 0 { then } else { otherwise };
                    self.steps_on_host(run, chosen)?;
                }
                Step::Load { to, table, args } => {
                    let [index, start] = args.map(|reg| run.regs[reg as usize]);
                    let place = usize::try_from(start + index).unwrap_or(usize::MAX);
                    run.regs[*to as usize] = run.tables.get(*table).and_then(|table| element_of(table, place)).unwrap_or(0);
                }
                Step::Check(check, args, span) => {
                    let args = args.map(|reg| run.regs[reg as usize]);
                    self.check_of_scalars(*check, args).map_err(|fault| at(fault, span))?;
                }
                Step::Require(reg, message, span) => {
                    if run.regs[*reg as usize] == 0 {
                        return failed(message, span);
                    }
                }
                Step::Fold(fold) => self.fold_on_host(run, fold)?,
            }
        }
        Ok(())
    }

    fn fold_on_host(&mut self, run: &mut HostLoop<'_>, fold: &LoopFold) -> Result<(), Stopped> {
        for carried in &fold.carried {
            run.regs[carried.reg as usize] = run.regs[carried.start as usize];
        }
        let mut next = Vec::with_capacity(fold.carried.len());
        for index in 0..run.regs[fold.length as usize] {
            run.regs[fold.index as usize] = index;
            run.steps += 1 + fold.steps.len() as u64;
            self.steps_on_host(run, &fold.steps)?;
            next.clear();
            next.extend(fold.carried.iter().map(|carried| run.regs[carried.next as usize]));
            for (carried, value) in fold.carried.iter().zip(&next) {
                run.regs[carried.reg as usize] = *value;
            }
            self.pause(run)?;
        }
        Ok(())
    }

    fn check_of_scalars(&mut self, check: Check, [a, b, c]: [i64; 3]) -> Run<()> {
        match check {
            Check::Index => super::check::place(a, b),
            Check::Part => conditions::part(a, b, c),
            Check::Code => conditions::character(a).map(drop),
            Check::Range => self.check_ranges(&[a], &[b], &[c]),
            Check::Each => conditions::same_length("the sequences of an apply-to-each", a, b),
            Check::Count => conditions::count("`dist`", a).map(drop),
            _ => Fault::at_run_time(format!("internal error: the check {} of a loop; please report it", check.name())),
        }
    }

    /// Executes an elementwise instruction on scalars: ints, bits of floats, and bools as 0 or 1.
    fn scalar_op(&self, op: Op, ty: Type, [a, b, c]: [i64; 3]) -> Result<i64, &'static str> {
        if op == Op::Select {
            return Ok(if a != 0 { b } else { c });
        }
        let computed = op.elementwise().and_then(|operation| operation.of_scalars(ty, self.world.widths(), [a, b]));
        computed.unwrap_or(Err("internal error: an instruction of a loop; please report it")).map(ScalarResult::bits)
    }

    /// Runs the loops of all elements on the device. Returns `None` if there are no elements, or no device.
    fn loops_on_device(
        &mut self,
        form: &Arc<TailLoop>,
        context: &Entry,
        (params, tables): (&[Entry], &[Entry]),
    ) -> Run<Option<Vec<Entry>>> {
        let Some(accelerator) = self.accelerator.as_deref_mut() else { return Ok(None) };
        let Some(mut run) = LoopRun::new(accelerator, form, context, (params, tables))? else { return Ok(None) };
        let mut rounds = run.first_rounds();
        let made = loop {
            let start = Instant::now();
            let Some(accelerator) = self.accelerator.as_deref_mut() else { return Ok(None) };
            let outcome = run.launch(accelerator, rounds)?;
            match outcome {
                LoopOutcome::Done(made) => break made,
                LoopOutcome::Failed(index) => return Err(self.loop_fault(form, &run, (index, tables))?),
                LoopOutcome::Open => self.look_at_limits(form, rounds)?,
            }
            rounds = match start.elapsed() {
                time if time < SHORT => rounds * 4,
                time if time > LONG => rounds.div_ceil(2),
                _ => rounds,
            };
            rounds = rounds.min(MAX_ROUNDS);
        };
        let mut results = vec![];
        for made in made {
            results.push(self.entry(made)?);
        }
        self.count(0)?;
        Ok(Some(results))
    }

    /// Returns the error of an element, found by repeating its loop on the host.
    fn loop_fault(&mut self, form: &TailLoop, run: &LoopRun, (index, tables): (usize, &[Entry])) -> Run<Box<Fault>> {
        let Some(accelerator) = self.accelerator.as_deref_mut() else { return Fault::at_run_time("there is no device") };
        let mut regs = run.params_of(accelerator, index)?;
        regs.resize(form.registers.len(), 0);
        let mut local = vec![];
        for table in tables {
            local.push(self.local(table.clone())?);
        }
        let mut host = HostLoop { form, tables: &local, regs, next: vec![], steps: 0, left: u64::MAX };
        match self.loop_on_host(&mut host) {
            Err(fault) => Ok(fault),
            Ok(_) => Fault::at_run_time(format!("`{}` divides by zero, or takes the root of a negative number", form.source)),
        }
    }
}
