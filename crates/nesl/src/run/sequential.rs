//! Sequential calls: the selection of small calls, and the kernel that runs each of them in one thread, or in
//! one warp of a GPU. Threads of a CPU, and warps, take parts of each other's calls.
//!
//! A sequential call saves all launches and waits of the flattened levels below it. The cost model gives the
//! maximum size for which that pays on a machine ([`Costs::sequential_limit`]). Larger calls run in teams of
//! warps if the function has a form for them and the machine can start all warps at the same time
//! ([`Costs::sequential_teams`]).
//!
//! Workers take calls from a counter, so a long call does not delay others. Each has an arena for all of its
//! calls. Results go to one piece of memory, in the order in which calls end; a gather restores the order of
//! calls. If memory for results is short, the kernel reports the required size and runs again. If a call
//! fails, or there is no memory for arenas and results, no calls of the form run sequentially for the rest of
//! the run.

use super::Entry;
use super::call_costs::SEQUENTIAL_CALLS;
use super::extent::Extent;
use super::target::Limits;
use super::vector::Vector;
use super::{Accelerator, DeviceSegdes, OpResult, device_error, on_device};
use crate::codes;
use crate::eval::{Fault, Run};
use crate::vcode::{FuncId, PAUSE_FUEL, Sequential, Shape, Type, task, team};
use broadloom_device::{Argument, Buffer, Device, Error, Kernel, Launch};
use broadloom_diag::Sources;
use broadloom_graph::{Boundary, Combine, Costs, Node, Segments, Shape as Extents, Teams, Total, Workers, are_large_calls};
use broadloom_scalar::{self as scalar, Element, Literal};
use std::sync::Arc;
use std::time::Instant;

/// Limits of loop rounds and calls: per element of a call, and in addition.
const FUEL_OF_ELEMENT: u64 = 512;
const FUEL: u64 = 1 << 18;

/// Maximum number of runs of a kernel because memory for results is short: each run finds the size for one
/// more level of nesting.
const MAX_RUNS: usize = 6;

/// Task capacity: number of tasks per worthwhile part of all elements, with its minimum and maximum.
const TASKS_OF_GRAIN: u64 = 4;
const MIN_TASKS: u64 = 1 << 8;
const MAX_TASKS: u64 = 1 << 16;

/// Name of the worker of a large call.
const TEAM: &str = "team of warps";

/// Maximum number of loaded kernels that are kept. The least recently used one is removed.
const MAX_KERNELS: usize = 64;

/// Results of a kernel: addresses and sizes.
#[derive(Default)]
struct ResultMemory {
    arguments: Vec<Argument>,
    buffers: Vec<Buffer<u8>>,
    /// The number of sequences.
    sequences: usize,
}

/// Buffers in the order of their allocation.
struct ResultBuffers {
    buffers: std::vec::IntoIter<Buffer<u8>>,
    /// Elements of the sequences, in order.
    totals: std::vec::IntoIter<usize>,
    calls: usize,
}

/// Function that launches a kernel with arguments; the queue is at an index among them.
type LaunchCalls<'a> = &'a mut dyn FnMut(&mut [Argument], usize) -> Run<bool>;

fn internal<T>(reason: &str) -> Run<T> {
    Fault::at_run_time(format!("internal error: {reason} of a sequential call; please report it"))
}

impl Accelerator {
    /// Enables or disables sequential calls.
    pub(crate) fn set_sequential(&mut self, on: bool) {
        self.target.sequential = on.then(Limits::default);
    }

    /// Tells whether calls may run sequentially.
    pub(crate) fn is_sequential(&self) -> bool {
        self.target.sequential.is_some()
    }

    /// Tells whether a call is executed on symbols, to become a template.
    pub(crate) fn is_tracing(&self) -> bool {
        self.tracing
    }

    /// Tells whether the size of small calls does not depend on the device.
    pub(crate) fn has_fixed_limit(&self) -> bool {
        self.target.sequential.is_some_and(|limits| limits.fixed.is_some())
    }

    /// Tells whether the last call was a loop that paused.
    pub(crate) fn has_paused(&self) -> bool {
        self.sequential.has_paused
    }

    /// Keeps notes of the compiler if plans are explained.
    pub(crate) fn note(&mut self, notes: Vec<String>) {
        if self.target.explained {
            self.summaries.extend(notes.into_iter().map(|note| note + "\n"));
        }
    }

    /// Returns the execution mode of calls of these sizes, and the largest small size. The mode is 2 if all
    /// are small, 1 if some are, 0 if none or only few are. `place` is the requesting instruction, `form` the
    /// sequential form of the called function.
    ///
    /// Each request takes a wait. If small calls alone do not justify a kernel, the next request comes when
    /// the largest call can be small.
    pub(crate) fn small(&mut self, sizes: &Entry, place: (FuncId, usize), form: Option<&Sequential>) -> Run<(i64, i64)> {
        let Some(limits) = self.target.sequential else { return Ok((0, 0)) };
        let has_teams =
            form.is_some_and(|form| form.text_for_teams.is_some() && !self.sequential.failed.contains(&of_teams(form)));
        self.sequential.teams = None;
        let vector = self.vector(sizes)?;
        let calls = self.known(&vector.extent)?;
        if calls == 0 {
            return Ok((0, 0));
        }
        let vector = vector.learned()?;
        let has_tasks = form.is_some_and(|form| form.text_for_cores.is_some());
        let bound = vector.sum_bound().map(|bound| bound.get() as usize);
        let may_team = has_teams && self.teams(limits, calls, (bound.unwrap_or(0), bound.unwrap_or(usize::MAX)))?.is_some();
        if let Some(total) = bound
            && !may_team
            && are_large_calls(total, calls, self.limit(limits, total, has_tasks)?)
        {
            return Ok((0, 0));
        }
        if let Some(asked) = self.sequential.asked.get_mut(&place)
            && asked.left > 0
            && !may_team
        {
            asked.left -= 1;
            return Ok((0, 0));
        }
        let whole = self.whole(&vector)?;
        let wide = self.convert(&whole, Element::I64)?;
        let (sum, most) = (on_device(wide.reduce(Combine::Sum, &[0]))?, on_device(wide.reduce(Combine::Max, &[0]))?);
        let [sum, most] = self.two_numbers(&sum, &most)?;
        let limit = self.limit(limits, sum, has_tasks)?;
        (self.sequential.largest, self.sequential.total, self.sequential.limit) = (most.min(limit), sum, limit);
        if has_teams && let Some(teams) = self.teams(limits, calls, (sum, most))? {
            (self.sequential.largest, self.sequential.teams) = (most, Some(teams));
            self.sequential.asked.remove(&place);
            return Ok((2, i64::try_from(most).unwrap_or(i64::MAX)));
        }
        if most <= limit {
            self.sequential.asked.remove(&place);
            return Ok((2, limit as i64));
        }
        let context = self.context()?;
        let costs = Costs::of(context.device().machine());
        if limits.fixed.is_none() && !costs.separates_calls(&SEQUENTIAL_CALLS, sum as u64, sum as u64) {
            self.sequential.asked.entry(place).or_default().note(most, limit);
            return Ok((0, limit as i64));
        }
        let bound = self.one(Literal::from(limit as i64))?;
        let kept = self.call("size of small", &[&wide, &bound], |f, x| f.select(f.le(x[0], x[1]), x[0], 0i64))?;
        let count = self.call("is small", &[&wide, &bound], |f, x| f.convert(f.le(x[0], x[1]), scalar::Type::I64))?;
        let (kept, count) = (on_device(kept.reduce(Combine::Sum, &[0]))?, on_device(count.reduce(Combine::Sum, &[0]))?);
        let [kept, count] = self.two_numbers(&kept, &count)?;
        let is_worth = count > 0 && (limits.fixed.is_some() || costs.separates_calls(&SEQUENTIAL_CALLS, sum as u64, kept as u64));
        self.sequential.total = kept;
        Ok((i64::from(is_worth), limit as i64))
    }

    /// Returns the largest size of a small call, for calls whose sizes have this sum and this maximum, and prepares
    /// for them. Returns `None` if no calls run sequentially.
    pub(crate) fn limit_of_small(&mut self, form: &Sequential, (sum, most): (usize, usize)) -> Run<Option<usize>> {
        let Some(limits) = self.target.sequential else { return Ok(None) };
        if self.tracing || self.sequential.failed.contains(&form.name) {
            return Ok(None);
        }
        let limit = match limits.fixed {
            None if form.is_loop => {
                let context = self.context()?;
                let limit = Costs::of(context.device().machine()).sequential_loop_limit(&SEQUENTIAL_CALLS, sum as u64);
                usize::try_from(limit).unwrap_or(usize::MAX)
            }
            _ => self.limit(limits, sum, form.text_for_cores.is_some())?,
        };
        self.sequential.teams = None;
        (self.sequential.largest, self.sequential.total, self.sequential.limit) = (most, sum, limit);
        Ok(Some(limit))
    }

    /// Reads two numbers without axes that are not negative.
    pub(super) fn two_numbers(&mut self, first: &Node, second: &Node) -> Run<[usize; 2]> {
        let (first, second) = (self.as_vector(first)?, self.as_vector(second)?);
        let both = on_device(Node::concatenate(0, &[&first, &second]))?;
        let bytes = self.read(&both)?;
        let mut numbers = bytes.as_chunks::<8>().0.iter().map(|bytes| usize::try_from(i64::from_le_bytes(*bytes)).unwrap_or(0));
        Ok([numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)])
    }

    /// Returns the largest size of a small call. `total` is the number of elements of all calls. Threads may
    /// take parts of calls that have tasks.
    fn limit(&mut self, limits: Limits, total: usize, has_tasks: bool) -> Run<usize> {
        if let Some(fixed) = limits.fixed {
            return Ok(fixed);
        }
        let context = self.context()?;
        let limit = Costs::of(context.device().machine()).sequential_limit(&SEQUENTIAL_CALLS, total as u64, has_tasks);
        Ok(usize::try_from(limit).unwrap_or(usize::MAX))
    }

    /// Returns the configuration of teams for this number of calls, with `total` elements together and `most`
    /// in the largest; `None` if teams do not run them.
    fn teams(&mut self, limits: Limits, calls: usize, (total, most): (usize, usize)) -> Run<Option<Teams>> {
        // With a fixed limit, teams run the calls beyond it.
        if limits.in_teams && limits.fixed.is_some_and(|fixed| most <= fixed) || limits.fixed.is_some() && !limits.in_teams {
            return Ok(None);
        }
        let context = self.context()?;
        let costs = Costs::of(context.device().machine());
        Ok(costs.sequential_teams(&SEQUENTIAL_CALLS.teams, calls as u64, total as u64, most as u64, limits.in_teams))
    }

    /// Runs calls sequentially. Returns `None` if the flattened function must be called.
    pub(crate) fn sequential(&mut self, form: &Arc<Sequential>, operands: &[Entry]) -> Run<Option<Vec<OpResult>>> {
        if self.sequential.failed.contains(&form.name) || form.widths != self.widths || self.target.sequential.is_none() {
            return Ok(None);
        }
        self.untraced()?;
        let Some((context, operands)) = operands.split_first() else { return internal("no operands") };
        let segdes = self.segdes(context)?;
        let calls = self.total(&segdes)?;
        let calls = self.known(&calls)?;
        if calls == 0 || calls > i32::MAX as usize {
            return Ok(None);
        }
        let mut nodes = vec![];
        self.columns(&form.argument, calls, false, &mut operands.iter(), &mut nodes)?;
        self.evaluate(&nodes)?;
        let inputs = nodes.iter().map(|node| on_device(node.evaluate())).collect::<Run<Vec<Buffer<u8>>>>()?;
        let start = Instant::now();
        let teams = self.sequential.teams.take();
        let made = match teams {
            Some(teams) => self.run_in_teams(form, calls, &inputs, &teams),
            None => self.run_calls(form, calls, &inputs),
        };
        self.waits += 1;
        self.waited += start.elapsed();
        let made = made?;
        match (&made, teams) {
            (Some(_), teams) => {
                self.sequential.calls += calls as u64;
                self.sequential.team_calls += if teams.is_some() { calls as u64 } else { 0 };
            }
            // If calls of teams fail, later calls may still be small enough for warps.
            (None, Some(_)) => drop(self.sequential.failed.insert(of_teams(form))),
            (None, None) => drop(self.sequential.failed.insert(form.name.clone())),
        }
        Ok(made)
    }

    /// Lists the columns of arguments.
    fn columns(
        &mut self,
        shape: &Shape,
        calls: usize,
        inside: bool,
        operands: &mut dyn Iterator<Item = &'_ Entry>,
        out: &mut Vec<Node>,
    ) -> Run<()> {
        match shape {
            Shape::Int | Shape::Float | Shape::Bool => out.push(self.column(calls, inside, operands)?),
            Shape::Tuple(parts) => {
                for part in parts {
                    self.columns(part, calls, inside, operands, out)?;
                }
            }
            Shape::Seq(element) => {
                if inside {
                    let Some(segdes) = operands.next() else { return internal("too few operands") };
                    let segdes = self.segdes(segdes)?;
                    let offsets = Vector::of(on_device(self.segments(&segdes)?.offsets())?);
                    let offsets = self.padded(&offsets)?;
                    out.push(self.convert(&offsets, Element::I64)?);
                } else {
                    out.push(self.column(calls, false, operands)?);
                    out.push(self.column(calls, false, operands)?);
                    // The segment of the pool.
                    operands.next();
                }
                self.columns(element, calls, true, operands, out)?;
            }
        }
        Ok(())
    }

    fn column(&mut self, calls: usize, inside: bool, operands: &mut dyn Iterator<Item = &'_ Entry>) -> Run<Node> {
        let Some(operand) = operands.next() else { return internal("too few operands") };
        let vector = self.vector(operand)?;
        if inside {
            return self.padded(&vector);
        }
        let vector = self.with_extent(&vector, &Extent::host(calls))?;
        self.whole(&vector)
    }

    fn kernel(&mut self, form: &Sequential, text: &str, worker: &str) -> Run<Kernel> {
        let launches = self.sequential.launches;
        if let Some((kernel, used)) = self.sequential.kernels.get_mut(text) {
            *used = launches;
            return Ok(kernel.clone());
        }
        let mut sources = Sources::new();
        let id = sources.add(form.name.clone(), text);
        let broken = |errors: broadloom_diag::Diagnostics| {
            let text = sources.render_all(&errors);
            Fault::new(codes::DEVICE, format!("internal error: the sequential form of `{}` is wrong: {text}", form.source))
        };
        let module = broadloom_ptx::parse(&sources, id).and_then(broadloom_ptx::verify).map_err(broken)?;
        let context = self.context()?;
        let module = context.device().load(&Arc::new(module)).map_err(|error| device_error(error.into()))?;
        let kernel = module.kernel(&form.name).map_err(|error| device_error(error.into()))?;
        if self.target.explained {
            self.ptx.push(text.to_owned());
            let (source, name) = (&form.source, &form.name);
            let limit = match worker {
                TEAM => String::new(),
                _ => format!(" with at most {} elements", self.sequential.limit),
            };
            self.summaries.push(format!("calls of `{source}`{limit} run in one {worker} each, kernel `{name}`\n"));
        }
        let kernels = &mut self.sequential.kernels;
        if kernels.len() >= MAX_KERNELS
            && let Some(oldest) = kernels.iter().min_by_key(|(_, (_, used))| *used).map(|(text, _)| text.clone())
        {
            kernels.remove(&oldest);
        }
        kernels.insert(text.to_owned(), (kernel.clone(), launches));
        Ok(kernel)
    }

    /// Launches the kernel, again with more memory for results if it was short, and makes vectors from the
    /// results.
    fn run_calls(&mut self, form: &Sequential, calls: usize, inputs: &[Buffer<u8>]) -> Run<Option<Vec<OpResult>>> {
        let context = self.context()?;
        let device = context.device().clone();
        let failed = |error: broadloom_device::Error| device_error(error.into());
        let largest = self.sequential.largest as u64;
        let mut workers = Costs::of(device.machine()).sequential_workers(
            &SEQUENTIAL_CALLS,
            calls as u64,
            largest,
            form.text_for_cores.is_some(),
        );
        let limits = self.target.sequential.unwrap_or_default();
        if workers.lanes == 1 && limits.in_warps && !form.is_loop {
            workers.lanes = device.machine().warp_size;
            (workers.blocks, workers.threads) = (workers.blocks.div_ceil(2), 2 * workers.threads * workers.lanes);
            // One worker would take parts only.
            (workers.grain, workers.callers) = (2, workers.callers.div_ceil(2));
        } else if workers.lanes == 1 && workers.grain > 0 && limits.fixed.is_some() {
            // Below a fixed limit, the shortest parts are tasks, too.
            (workers.grain, workers.callers) = (2, workers.callers.div_ceil(2));
        }
        let (text, worker) = match &form.text_for_cores {
            _ if workers.lanes > 1 && !form.is_loop => (&form.text_for_warps, "warp"),
            Some(text) if workers.grain > 0 => (text, "thread"),
            _ => (&form.text, "thread"),
        };
        let kernel = self.kernel(form, text, worker)?;
        let arena = loop {
            match usize::try_from(workers.bytes()).ok().map(|bytes| device.allocate::<u8>(bytes)) {
                Some(Ok(arena)) => break arena,
                Some(Err(Error::OutOfMemory { .. })) | None if workers.blocks > 1 => workers.blocks /= 2,
                Some(Err(Error::OutOfMemory { .. })) | None => return Ok(None),
                Some(Err(error)) => return Err(failed(error)),
            }
        };
        let (total, mut held) = (self.sequential.total as u64, None);
        self.launch_calls(form, calls, inputs, (largest, workers.depth), (&arena, workers.arena), &mut |arguments, queue_at| {
            let queue = match workers.grain {
                0 => None,
                _ => match task_queue(&device, total, &workers) {
                    Err(Error::OutOfMemory { .. }) => return Ok(false),
                    queue => Some(queue.map_err(failed)?),
                },
            };
            arguments[queue_at] = queue.as_ref().map_or_else(|| Argument::from(0u64), Argument::from);
            kernel.launch(&Launch::linear(workers.blocks, workers.threads), arguments).map_err(failed)?;
            held = queue;
            Ok(true)
        })
    }

    /// Runs calls in teams.
    fn run_in_teams(
        &mut self,
        form: &Sequential,
        calls: usize,
        inputs: &[Buffer<u8>],
        teams: &Teams,
    ) -> Run<Option<Vec<OpResult>>> {
        let Some(text) = &form.text_for_teams else { return Ok(None) };
        let context = self.context()?;
        let device = context.device().clone();
        let failed = |error: broadloom_device::Error| device_error(error.into());
        let kernel = self.kernel(form, text, TEAM)?;
        let launch = |blocks: u32| Launch::linear(blocks, teams.threads).cooperative();
        let mut blocks = teams.blocks;
        if let Some(resident) = kernel.occupancy(&launch(blocks)).map_err(failed)? {
            let all = Costs::of(device.machine()).busy(resident.into());
            blocks = blocks.min(u32::try_from(all).unwrap_or(u32::MAX));
        }
        if blocks == 0 {
            return Ok(None);
        }
        let arena = match usize::try_from(teams.arena).ok().map(|bytes| device.allocate::<u8>(bytes)) {
            Some(Ok(arena)) => arena,
            Some(Err(Error::OutOfMemory { .. })) | None => return Ok(None),
            Some(Err(error)) => return Err(failed(error)),
        };
        let (total, mut held) = (self.sequential.total as u64, None);
        self.launch_calls(form, calls, inputs, (total, teams.depth), (&arena, teams.arena), &mut |arguments, queue_at| {
            let queue = match team_queue(&device, blocks, teams) {
                Err(Error::OutOfMemory { .. }) => return Ok(false),
                queue => queue.map_err(failed)?,
            };
            arguments[queue_at] = Argument::from(&queue);
            kernel.launch(&launch(blocks), arguments).map_err(failed)?;
            held = Some(queue);
            Ok(true)
        })
    }

    /// Launches a kernel, again with more memory for results if it was short, and makes vectors from the
    /// results. `launch` receives the arguments, and the index of the queue among them; it returns false if
    /// memory is short.
    fn launch_calls(
        &mut self,
        form: &Sequential,
        calls: usize,
        inputs: &[Buffer<u8>],
        (elements, depth): (u64, u64),
        (arena, bytes): (&Buffer<u8>, u64),
        launch: LaunchCalls<'_>,
    ) -> Run<Option<Vec<OpResult>>> {
        let context = self.context()?;
        let device = context.device().clone();
        let failed = |error: broadloom_device::Error| device_error(error.into());
        let fuel = match form.is_loop {
            true => 2 * PAUSE_FUEL,
            false => FUEL + elements.saturating_mul(FUEL_OF_ELEMENT),
        };
        let mut most: Vec<usize> = vec![];
        for _ in 0..MAX_RUNS {
            let mut places = ResultMemory::default();
            if !self.room_for(&device, &form.result, (calls, None), &mut most, &mut places)? {
                return Ok(None);
            }
            let state = device.zeros::<u8>(8 + 8 * places.sequences).map_err(failed)?;
            let number = |value: u64| Argument::from(value);
            let mut arguments =
                vec![(&state).into(), arena.into(), number(bytes), number(calls as u64), number(depth), number(fuel)];
            let queue_at = arguments.len();
            arguments.push(number(0));
            arguments.extend(inputs.iter().map(Argument::from));
            arguments.append(&mut places.arguments);
            if !launch(&mut arguments, queue_at)? {
                return Ok(None);
            }
            self.sequential.launches += 1;
            let words = state.read().map_err(failed)?;
            let flags = words.get(4).copied().unwrap_or(1);
            let totals: Vec<usize> = words
                .get(8..)
                .unwrap_or_default()
                .as_chunks::<8>()
                .0
                .iter()
                .map(|bytes| u64::from_le_bytes(*bytes) as usize)
                .collect();
            if flags & 1 != 0 {
                return Ok(None);
            }
            if flags & 2 != 0 {
                for (most, total) in most.iter_mut().zip(&totals) {
                    *most = (*most).max(*total);
                }
                // Sequences after one that did not fit were not counted.
                let scale = most.iter().copied().max().unwrap_or(0);
                if scale > i32::MAX as usize {
                    return Ok(None);
                }
                continue;
            }
            self.sequential.has_paused = match places.buffers.first() {
                Some(is_done) if form.is_loop => is_done.read().map_err(failed)?.first() == Some(&0),
                _ => false,
            };
            let mut taken = ResultBuffers { buffers: places.buffers.into_iter(), totals: totals.into_iter(), calls };
            let mut out = vec![];
            self.made(&form.result, &mut taken, None, &mut out)?;
            return Ok(Some(out));
        }
        Ok(None)
    }

    /// Allocates memory for results. `most` has the number of elements of each allocation. `outer` is the
    /// number of elements of the enclosing sequence. Returns false if there is not enough memory.
    fn room_for(
        &mut self,
        device: &Device,
        shape: &Shape,
        (calls, outer): (usize, Option<usize>),
        most: &mut Vec<usize>,
        out: &mut ResultMemory,
    ) -> Run<bool> {
        let take = |out: &mut ResultMemory, count: usize, bytes: u32| match device
            .allocate::<u8>(count.max(1).saturating_mul(bytes as usize))
        {
            Ok(buffer) => {
                out.arguments.push((&buffer).into());
                out.buffers.push(buffer);
                Ok(true)
            }
            Err(Error::OutOfMemory { .. }) => Ok(false),
            Err(error) => Err(device_error(error.into())),
        };
        match shape {
            Shape::Int | Shape::Float | Shape::Bool => take(out, outer.unwrap_or(calls), self.element_of(base(shape)).bytes()),
            Shape::Tuple(parts) => {
                for part in parts {
                    if !self.room_for(device, part, (calls, outer), most, out)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Shape::Seq(element) => {
                let number = out.sequences;
                out.sequences += 1;
                if number == most.len() {
                    most.push(self.sequential.total + 2 * calls + 64);
                }
                let (room, int) = (most[number], self.int().bytes());
                if !take(out, calls, int)? || !take(out, calls, 8)? {
                    return Ok(false);
                }
                out.arguments.push(Argument::from(room as u64));
                if let Some(outer) = outer
                    && !take(out, outer, int)?
                {
                    return Ok(false);
                }
                self.room_for(device, element, (calls, Some(room)), most, out)
            }
        }
    }

    /// Makes vectors from results. `order` has the number of elements of the enclosing sequence and the index
    /// of each.
    fn made(
        &mut self,
        shape: &Shape,
        taken: &mut ResultBuffers,
        order: Option<(usize, &Node)>,
        out: &mut Vec<OpResult>,
    ) -> Run<()> {
        match shape {
            Shape::Int | Shape::Float | Shape::Bool => {
                let ty = base(shape);
                let vector = self.returned(self.element_of(ty), taken, order)?;
                out.push(OpResult::Vector(ty, vector));
            }
            Shape::Tuple(parts) => {
                for part in parts {
                    self.made(part, taken, order, out)?;
                }
            }
            Shape::Seq(element) => {
                let counts = self.returned(self.int(), taken, None)?;
                let places = self.returned(Element::I64, taken, None)?;
                let Some(total) = taken.totals.next() else { return internal("too few results") };
                let lengths = match order {
                    None => counts.clone(),
                    Some(_) => self.returned(self.int(), taken, order)?,
                };
                out.push(OpResult::Segdes(DeviceSegdes::with_total(lengths, Extent::host(total))));
                if taken.calls == 1 && order.is_none() && element.is_scalar() {
                    return self.made_by_one_call(element, taken, total, out);
                }
                let calls = on_device(Segments::from_lengths(&counts.node, Total::Host(total)))?;
                let starts = on_device(calls.starts())?;
                let starts = self.convert(&starts, Element::I64)?;
                let moved = self.call("moved by", &[&places.node, &starts], |f, x| f.sub(x[0], x[1]))?;
                let moved = on_device(calls.distribute(&moved))?;
                let positions = self.positions(&Extent::host(total), Element::I64)?;
                let index = self.call("moved", &[&moved, &positions], |f, x| f.add(x[0], x[1]))?;
                self.made(element, taken, Some((total, &index)), out)?;
            }
        }
        Ok(())
    }

    /// Makes vectors from the elements of the only call, which are in order.
    fn made_by_one_call(&mut self, shape: &Shape, taken: &mut ResultBuffers, total: usize, out: &mut Vec<OpResult>) -> Run<()> {
        let mut types = vec![];
        shape.results(&mut types);
        for ty in types {
            let element = self.element_of(ty);
            let Some(buffer) = taken.buffers.next() else { return internal("too few results") };
            let vector = match buffer.slice(0, total * element.bytes() as usize) {
                Some(_) if total == 0 => Vector::new(self.one(Literal::zero(element))?, Extent::host(0)).generated(true),
                Some(part) => {
                    let context = self.context()?;
                    Vector::of(on_device(Node::from_buffer(&context, element.into(), Extents::from(total), part))?)
                }
                None => return internal("a short result"),
            };
            out.push(OpResult::Vector(ty, vector));
        }
        Ok(())
    }

    /// Returns a column of results, in the order of calls.
    fn returned(&mut self, element: Element, taken: &mut ResultBuffers, order: Option<(usize, &Node)>) -> Run<Vector> {
        let Some(buffer) = taken.buffers.next() else { return internal("too few results") };
        let context = self.context()?;
        let count = order.map_or(taken.calls, |(count, _)| count);
        let zero = Literal::zero(element);
        if count == 0 {
            return Ok(Vector::new(self.one(zero)?, Extent::host(0)).generated(true));
        }
        let Some(part) = buffer.slice(0, count * element.bytes() as usize) else { return internal("a short result") };
        let node = on_device(Node::from_buffer(&context, element.into(), Extents::from(count), part))?;
        match order {
            None => Ok(Vector::of(node)),
            Some((_, index)) => Ok(Vector::of(on_device(node.gather(&[index], &Boundary::Constant([zero].as_slice().into())))?)),
        }
    }
}

/// Returns the name under which failures of a form in teams are recorded.
fn of_teams(form: &Sequential) -> String {
    format!("{} in teams", form.name)
}

/// Makes the memory for barriers of teams, after a queue that takes no tasks.
fn team_queue(device: &Device, blocks: u32, teams: &Teams) -> Result<Buffer<u8>, Error> {
    let warps = blocks * teams.threads.div_ceil(device.machine().warp_size);
    let queue = device.zeros::<u8>(team::SYNC as usize + team::RECORD as usize * (warps as usize + 1))?;
    if let Some(place) = queue.slice(task::GRAIN as usize, 4) {
        place.write(&u32::MAX.to_le_bytes())?;
    }
    Ok(queue)
}

/// Makes an empty queue of tasks for calls with this total number of elements.
fn task_queue(device: &Device, elements: u64, workers: &Workers) -> Result<Buffer<u8>, Error> {
    let capacity = (elements / u64::from(workers.grain.max(1)) * TASKS_OF_GRAIN).clamp(MIN_TASKS, MAX_TASKS) as u32;
    let queue = device.zeros::<u8>(task::FIRST as usize + task::RECORD as usize * capacity as usize)?;
    let callers = u32::try_from(workers.callers()).unwrap_or(u32::MAX);
    let mut header: Vec<u8> = [workers.grain, capacity, callers].iter().flat_map(|number| number.to_le_bytes()).collect();
    header.extend(workers.task_arena.to_le_bytes());
    if let Some(place) = queue.slice(task::GRAIN as usize, header.len()) {
        place.write(&header)?;
    }
    Ok(queue)
}

fn base(shape: &Shape) -> Type {
    match shape {
        Shape::Float => Type::Float,
        Shape::Bool => Type::Bool,
        Shape::Int | Shape::Tuple(_) | Shape::Seq(_) => Type::Int,
    }
}
