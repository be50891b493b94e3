//! Plans: the launches for a tape, their order and their memory.
//!
//! A plan is data. It can be printed ([`Plan::explain`]) and asserted in tests: how many kernels, how many bytes, the reason for each cut. It
//! holds nothing of a single run, so one plan serves all expressions with the same [tape](crate::tape::entries), whatever their sizes and scalars.

use crate::emit::code::{Code, KernelScalar, interior};
use crate::emit::fused::Fused;
use crate::emit::patch::Patch;
use crate::emit::trace::Condition;
use crate::expr::error::{Error, Result};
use crate::expr::shape::Shape;
use crate::limits::{MAX_EDGE, MAX_REPEATED, MAX_STRIP};
use crate::plan::assemble::{Assembled, assemble};
use crate::plan::chain;
use crate::plan::cut::{Cut, Reason};
use crate::plan::group::{Group, GroupFunction, GroupKind};
use crate::plan::patches::{Patchable, Patched, Patches};
use crate::plan::pattern::Ready;
use crate::tape::bindings::Bindings;
use crate::tape::entries::{Id, Kind, ShapeId, Tape};
use broadloom_device::{Device, Machine};
use broadloom_scalar::Type;
use broadloom_skeleton::cost::{Costs, Work};
use broadloom_skeleton::{Library, Loaded, Stencil};
use smallvec::SmallVec;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// A kernel of a plan.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) group: Group,
    /// Functions that feed it, one or several, or the interior and the edges of strips; last the function of its results, if they are not just stored.
    pub(crate) codes: Vec<Code>,
    /// Scalars that stand before those of the codes.
    pub(crate) bounds: Vec<KernelScalar>,
    /// Cost of a position, in simple operations.
    pub(crate) cost: u64,
    pub(crate) ready: Ready,
    /// The kernel without boundary rules.
    pub(crate) inside: Option<Inside>,
    /// The kernel in patches, for sizes that have room for them.
    pub(crate) patches: Option<Patchable>,
    /// Nodes whose memory is free after it.
    pub(crate) dead: Vec<Id>,
    /// For each result, an input whose memory it takes over.
    pub(crate) reused: Vec<Option<Id>>,
}

/// A kernel for sizes at which no position is near an edge: no lane tests for that.
#[derive(Debug)]
pub(crate) struct Inside {
    codes: Vec<Code>,
    ready: Ready,
    /// Conditions that have to hold at all positions.
    conditions: Arc<Vec<Condition>>,
}

/// The kernels of an expression, in order.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The tape that the plan is found by.
    pub(crate) key: Tape,
    /// The tape that was planned: outputs are arrays that kernels write.
    pub(crate) tape: Tape,
    /// Outputs of the key that are assembled from outputs of the planned tape.
    pub(crate) assembled: Vec<Assembled>,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) reasons: HashMap<Id, Reason>,
    /// Nodes that are in memory when the kernels that read them run.
    kept: Vec<bool>,
    library: Library,
}

/// The traces of a kernel whose threads have a strip of rows each, and how many rows, where rows share enough of what they read and compute. On a CPU lanes may
/// share too, and do if that leaves less than nine tenths. There, rows that share nothing but what they read are strips of their own: registers have no room for
/// what the next rows read too, the cache has, and a core sees few rows at a time coming.
fn strip<'k>(tape: &'k Tape, cut: &'k Cut, group: &Group, parts: &[GroupFunction<'_>], cpu: bool) -> Option<(Fused<'k>, u32)> {
    let [part] = parts else { return None };
    let class = tape.shapes[part.shape as usize];
    if part.line
        || !class.rows
        || !class.tall
        || class.length.is_some()
        || !group.traps.is_empty()
        || tape.kernels.single_positions && !cpu
    {
        return None;
    }
    let folds = class.rank > 2 && group.reduced(tape) == Some(&[0]);
    let roots = match group.feeds.as_slice() {
        [feed] if group.kind == GroupKind::Map || folds => group.roots_of(feed),
        _ => return None,
    };
    // The highest strips that pay, with what a position costs, in hundredths.
    let highest = |sliding: &'k [bool]| {
        Stencil::HEIGHTS.iter().find_map(|rows| {
            let fused = Fused::strip(tape, (&cut.kept, sliding), roots, class.rank.into(), *rows)?;
            let (before, behind) = fused.reach();
            let lanes = 32u64.checked_sub((before + behind).into()).filter(|lanes| *lanes >= 16)?;
            let cost = fused.cost() * 100 * 32 / (u64::from(*rows) * lanes);
            // A twentieth less has to be left for the larger code to pay.
            (cost <= part.fused.cost() * 95 && fused.items() <= MAX_STRIP).then_some((fused, *rows, cost))
        })
    };
    let alone = highest(&cut.sliding);
    let is_map = group.kind == GroupKind::Map;
    let shared = if cpu && is_map { highest(&cut.near) } else { None };
    let ((fused, rows, _), sliding) = match (alone, shared) {
        (Some(alone), Some(shared)) if shared.2 * 10 < alone.2 * 9 && !shared.0.chooses() => (shared, &cut.near),
        (None, Some(shared)) if !shared.0.chooses() => (shared, &cut.near),
        (alone, _) => (alone?, &cut.sliding),
    };
    if cpu && is_map && !fused.calls(tape) {
        let one = Fused::strip(tape, (&cut.kept, sliding), roots, class.rank.into(), 1)?;
        if one.computing() * u64::from(rows) * 95 <= fused.computing() * 100 {
            return Some((one, 1));
        }
    }
    if cpu && is_map && rows > 1 && fused.reach() == (0, 0) && fused.edge_items() > MAX_EDGE {
        let patch = Patch { rows, ..Patch::SINGLE };
        return Some((Fused::patch(tape, (&cut.kept, sliding), roots, class.rank.into(), (patch, None), true)?, rows));
    }
    Some((fused, rows))
}

impl Plan {
    /// A plan for a machine; kernels come from the library.
    pub(crate) fn new(key: Tape, bindings: &Bindings, library: &Library) -> Result<Plan> {
        let (tape, assembled) = assemble(&key);
        let costs = Costs::of(library.device().machine());
        let cut = chain::kernels(&tape, bindings, library.device().machine());
        let order = order(&tape, &cut.groups, bindings);
        let mut kernels = vec![];
        for mut group in order.into_iter().map(|index| cut.groups[index].clone()) {
            let too_large = || Error::Plan { what: "a kernel".into(), reason: "it does not fit".into() };
            if group.kind == GroupKind::Chain {
                let (chain, codes, bounds) = group.chain_codes(&tape, &cut.kept, &costs)?;
                let (cost, ready) = (group.chain_cost(), Ready::One(library.get(&chain.into())?));
                let (inside, patches, dead, reused) = (None, None, vec![], vec![]);
                kernels.push(Kernel { group, codes, bounds, cost, ready, inside, patches, dead, reused });
                continue;
            }
            let parts = group.traced(&tape, &cut.kept).ok_or_else(too_large)?;
            let side_by_side = costs.side_by_side();
            let patchable = |strip: Option<(&Fused<'_>, u32)>| match &parts[..] {
                [part] => Patches::of(&tape, &cut.kept, &group, part, library.device().machine())?.patchable(strip),
                _ => None,
            };
            if let Some((fused, rows)) = strip(&tape, &cut, &group, &parts, costs.lanes_share()) {
                let (cost, reach) = (fused.cost() / u64::from(rows), fused.reach());
                let live = fused.live(1);
                let patches = patchable(Some((&fused, rows)));
                let (mut codes, bounds) = fused.strip_codes(&tape, side_by_side)?;
                let sink = match group.is_stored(&tape) {
                    true => None,
                    false => {
                        let fused = group.tail(&tape, &cut.kept).ok_or_else(too_large)?;
                        Some(fused.code(&tape, "tail", side_by_side, &group.values(&tape))?)
                    }
                };
                let ready = Ready::strips(&tape, &group, &codes, sink.as_ref(), (rows, reach, live), patches.is_some(), library)?;
                codes.extend(sink);
                let (inside, dead, reused) = (None, vec![], vec![]);
                kernels.push(Kernel { group, codes, bounds, cost, ready, inside, patches, dead, reused });
                continue;
            }
            // Whether the function can be there for several rows of results at once.
            let patches = patchable(None);
            let repeats = parts.iter().all(|part| part.fused.items() <= MAX_REPEATED);
            let mut codes = vec![];
            let (mut transposed, mut inside) = (None, None);
            for (number, mut part) in parts.into_iter().enumerate() {
                let given: SmallVec<[Type; 1]> = group.feeds[number].given.iter().map(|node| tape.entry(*node).ty).collect();
                let is_known = tape.shapes[part.shape as usize].length.is_none();
                if group.reduced(&tape).is_some() && is_known {
                    inside =
                        part.fused.inner_code(&tape, side_by_side)?.map(|(code, conditions)| ((code, part.line), conditions));
                }
                let rows = tape.shapes[part.shape as usize].rows && is_known && group.traps.is_empty();
                if let Some((axis, reads)) = part.fused.transposed(&tape).filter(|_| rows && group.kind == GroupKind::Map) {
                    let [read, rest] = part.fused.code_transposed(&tape, side_by_side, axis, reads)?;
                    group.kind = GroupKind::Transpose(axis);
                    codes.push((read, false));
                    transposed = Some(rest);
                    continue;
                }
                part.fused.along_last = group.kind == GroupKind::Map;
                codes.push((part.fused.code(&tape, "fused", side_by_side, &given)?, part.line));
            }
            let values = group.values(&tape);
            let sink = match (transposed, group.is_stored(&tape)) {
                (Some(rest), _) => Some(rest),
                (None, true) => None,
                (None, false) => {
                    let fused = group.tail(&tape, &cut.kept).ok_or_else(too_large)?;
                    Some(fused.code(&tape, "tail", side_by_side, &values)?)
                }
            };
            let patches = patches.filter(|_| group.kind == GroupKind::Map);
            // Patches serve most sizes, and the kernel for all others is not compiled before one of them comes.
            let ready = Ready::new(&tape, &group, &codes, sink.as_ref(), (repeats, patches.is_some()), library)?;
            let inside = match inside {
                None => None,
                Some((code, conditions)) => {
                    let code = [code];
                    let ready = Ready::new(&tape, &group, &code, sink.as_ref(), (repeats, false), library)?;
                    let codes = code.into_iter().map(|(code, _)| code).chain(sink.clone()).collect();
                    Some(Inside { codes, ready, conditions })
                }
            };
            let codes: Vec<Code> = codes.into_iter().map(|(code, _)| code).chain(sink).collect();
            let cost = codes.iter().map(|code| code.cost).sum();
            let (bounds, dead, reused) = (vec![], vec![], vec![]);
            kernels.push(Kernel { group, codes, bounds, cost, ready, inside, patches, dead, reused });
        }
        let (kept, library) = (cut.kept, library.clone());
        let mut plan = Plan { key, tape, assembled, kernels, reasons: cut.reasons, kept, library };
        for kernel in &plan.kernels {
            plan.loaded(kernel, bindings)?;
        }
        plan.lifetimes();
        Ok(plan)
    }

    /// Says when memory is free, and where a result can take the place of an input.
    fn lifetimes(&mut self) {
        let results: HashSet<Id> = self.tape.outputs.iter().map(|output| self.tape.behind(*output)).collect();
        let mut seen: HashSet<Id> = HashSet::new();
        for kernel in self.kernels.iter_mut().rev() {
            let own = kernel.group.reads.iter().chain(&kernel.group.roots);
            for id in own {
                let kept = !matches!(self.tape.entry(*id).kind, Kind::Leaf(_)) && !self.tape.is_trap(*id);
                if seen.insert(*id) && kept && !results.contains(id) {
                    kernel.dead.push(*id);
                }
            }
        }
        for kernel in &mut self.kernels {
            let mut taken: Vec<Id> = vec![];
            for root in &kernel.group.roots {
                // Element by element, each read before it is written by the same thread.
                let aligned = kernel.codes.iter().flat_map(|code| code.inputs.iter().zip(&code.aligned));
                let candidate = aligned.clone().find(|(input, aligned)| {
                    let (from, to) = (self.tape.entry(**input), self.tape.entry(*root));
                    **aligned
                        // Patches are read as memory that nobody writes.
                        && kernel.patches.is_none()
                        && kernel.group.kind == GroupKind::Map
                        && kernel.dead.contains(input)
                        && !taken.contains(input)
                        && from.ty.bytes() == to.ty.bytes()
                        && from.shape == to.shape
                });
                let found = candidate.map(|(input, _)| *input);
                taken.extend(found);
                kernel.reused.push(found);
            }
        }
    }

    /// The functions and the program of a kernel for these sizes.
    pub(crate) fn ready<'k>(
        &self,
        kernel: &'k Kernel,
        bindings: &Bindings,
    ) -> Result<(&'k [Code], &'k [KernelScalar], &'k Ready)> {
        let sizes = self.sizes(kernel, bindings);
        if let Some(patched) = self.patched(kernel, &sizes)? {
            return Ok((&patched.codes, &patched.bounds, &patched.ready));
        }
        let holds = |inside: &Inside| {
            (0..).zip(&sizes).all(|(axis, size)| {
                let (first, end) = interior(axis, &inside.conditions, bindings);
                first == 0 && end >= 0 && end as u64 >= *size
            })
        };
        Ok(match kernel.inside.as_ref().filter(|inside| holds(inside)) {
            Some(inside) => (&inside.codes, &[], &inside.ready),
            None => (&kernel.codes, &kernel.bounds, &kernel.ready),
        })
    }

    /// The best patches of a kernel that these sizes have room for.
    fn patched<'k>(&self, kernel: &'k Kernel, sizes: &[u64]) -> Result<Option<&'k Patched>> {
        let Some(patches) = &kernel.patches else { return Ok(None) };
        let all = patches.of_sizes(&self.tape, &self.kept, &kernel.group, sizes, &self.library)?;
        Ok(all.iter().find(|patched| patched.patch.fits(sizes)))
    }

    /// The program of a kernel for these sizes.
    pub(crate) fn loaded(&self, kernel: &Kernel, bindings: &Bindings) -> Result<Loaded> {
        let count = |shape: ShapeId| bindings.shapes[shape as usize].count();
        let read: usize = kernel.group.reads.iter().map(|read| count(self.tape.entry(*read).shape)).sum();
        // What is read is less than half of the positions: results have much of it in common.
        let shares = count(kernel.group.domain) / 2 >= read;
        self.ready(kernel, bindings)?.2.loaded(&self.sizes(kernel, bindings), shares)
    }

    /// The sizes that a kernel is called with.
    pub(crate) fn sizes(&self, kernel: &Kernel, bindings: &Bindings) -> Vec<u64> {
        let shape_of = |id: Id| &bindings.shapes[self.tape.entry(id).shape as usize];
        let extents = |shape: &Shape| shape.extents().iter().map(|extent| *extent as u64).collect::<Vec<u64>>();
        let domain = &bindings.shapes[kernel.group.domain as usize];
        let mut sizes = if kernel.group.line { vec![domain.count() as u64] } else { extents(domain) };
        match (&kernel.group.kind, kernel.group.operation(&self.tape), kernel.group.combined.first()) {
            (GroupKind::Pattern, Some(operation), Some(first)) => {
                let inputs = &self.tape.entry(*first).inputs;
                let inputs: SmallVec<[&Shape; 4]> = inputs.iter().map(|input| shape_of(*input)).collect();
                sizes = operation.sizes(&sizes, &inputs, shape_of(*first));
            }
            (GroupKind::Transpose(axis), ..) => {
                let last = sizes.len() - 1;
                sizes.swap(usize::from(*axis), last);
            }
            (GroupKind::Map | GroupKind::Pattern | GroupKind::Chain, ..) => {}
        }
        sizes
    }

    fn bytes(&self, id: Id, bindings: &Bindings) -> u64 {
        let entry = self.tape.entry(id);
        bindings.shapes[entry.shape as usize].count() as u64 * u64::from(entry.ty.bytes())
    }

    /// Returns a summary of a run with these bindings.
    pub(crate) fn summary(&self, bindings: &Bindings) -> Result<Summary> {
        let mut summary = Summary { kernels: vec![], peak_bytes: 0 };
        let mut live = 0u64;
        for kernel in &self.kernels {
            let bytes = |ids: &[Id]| ids.iter().map(|id| self.bytes(*id, bindings)).sum::<u64>();
            let fresh: Vec<Id> =
                kernel.group.roots.iter().zip(&kernel.reused).filter(|(_, reused)| reused.is_none()).map(|(id, _)| *id).collect();
            live += bytes(&fresh);
            let sizes = self.sizes(kernel, bindings);
            let loaded = self.loaded(kernel, bindings)?;
            // A kernel that does not run takes no memory besides.
            let besides = match sizes.contains(&0) {
                true => 0,
                false => loaded.program().temporary_bytes(&sizes)?.iter().sum(),
            };
            summary.peak_bytes = summary.peak_bytes.max(live + besides);
            let taken: Vec<Id> = kernel.reused.iter().flatten().copied().collect();
            live -= kernel.dead.iter().filter(|id| !taken.contains(id)).map(|id| self.bytes(*id, bindings)).sum::<u64>();
            summary.kernels.push(KernelSummary {
                name: loaded.program().name.clone(),
                domain: bindings.shapes[kernel.group.domain as usize].clone(),
                launches: loaded.program().steps.len(),
                operations: kernel.cost,
                reads: kernel.group.reads.len(),
                bytes_read: bytes(&kernel.group.reads),
                bytes_written: bytes(&kernel.group.roots),
                bytes_besides: besides,
                further: self.further_work(kernel, &sizes),
                links: kernel.group.links.len(),
                interior: kernel.codes.iter().any(|code| code.interior),
                patch: self.patched(kernel, &sizes)?.map(|patched| patched.patch),
                results: kernel.group.made().map(|root| self.result(root, bindings)).collect(),
                code: loaded,
            });
        }
        Ok(summary)
    }

    /// The work of a kernel beyond one pass over inputs and results.
    fn further_work(&self, kernel: &Kernel, sizes: &[u64]) -> Work {
        match (kernel.group.operation(&self.tape), kernel.group.combined.first()) {
            (Some(operation), Some(first)) => {
                let inputs = self.tape.entry(*first).inputs.iter();
                let types: SmallVec<[Type; 4]> = inputs.map(|input| self.tape.entry(*input).ty).collect();
                operation.further_work(&types, sizes)
            }
            _ => Work::default(),
        }
    }

    fn result(&self, id: Id, bindings: &Bindings) -> ResultSummary {
        let entry = self.tape.entry(id);
        ResultSummary {
            operation: entry.kind.name(),
            ty: entry.ty.to_string(),
            shape: bindings.shapes[entry.shape as usize].clone(),
            reason: self.reasons.get(&id).cloned().unwrap_or(Reason::Result),
        }
    }
}

impl Kind {
    /// Its name in plans.
    pub(crate) fn name(&self) -> String {
        match self {
            Kind::Leaf(_) => "input".into(),
            Kind::Fill(_) => "fill".into(),
            Kind::Elementwise(op) => op.to_string(),
            Kind::View(..) => "view".into(),
            Kind::Reshape(_) => "reshape".into(),
            Kind::Position(axis) => format!("position {axis}"),
            Kind::Gather(..) => "gather".into(),
            Kind::Concatenate(axis) => format!("concatenate {axis}"),
            Kind::Pattern(applied) => applied.operation().name(),
        }
    }
}

/// A result of a kernel, with the reason why it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultSummary {
    /// The operation that gives it.
    pub operation: String,
    /// The type of its elements.
    pub ty: String,
    /// Its shape.
    pub shape: Shape,
    /// Why it is kept in memory.
    pub reason: Reason,
}

/// The work of a kernel of a plan.
#[derive(Clone, Debug)]
pub struct KernelSummary {
    /// The pattern.
    pub name: String,
    /// The positions that it works on.
    pub domain: Shape,
    /// Number of launches.
    pub launches: usize,
    /// Cost of a position, in simple operations.
    pub operations: u64,
    /// Number of arrays that it reads.
    pub reads: usize,
    /// Bytes of these arrays.
    pub bytes_read: u64,
    /// Bytes of its results.
    pub bytes_written: u64,
    /// Bytes of temporary memory while it runs.
    pub bytes_besides: u64,
    /// Its work beyond one pass over inputs and results: rounds of a sort, sums of a product.
    pub further: Work,
    /// Kernels that a chain consists of; none for other kernels.
    pub links: usize,
    /// True if boundaries are looked at only near the edges.
    pub interior: bool,
    /// Rows and columns that a thread computes together, where that is a patch.
    pub patch: Option<Patch>,
    /// Its results.
    pub results: Vec<ResultSummary>,
    /// Its code, loaded on the device.
    pub code: Loaded,
}

impl KernelSummary {
    /// Predicts how long it takes on a machine; `None` for the interpreter. A machine that was measured
    /// ([`Device::measured_machine`]) gives a better prediction. What a kernel needs besides is written and
    /// read.
    pub fn predicted(&self, machine: &Machine) -> Option<Duration> {
        let bytes = (self.bytes_read + self.bytes_written + 2 * self.bytes_besides).saturating_add(self.further.bytes);
        let calls = self.operations.saturating_mul(self.domain.count() as u64);
        let operations = calls.saturating_add(self.further.operations);
        Costs::of(machine).predict(&Work { launches: self.launches as u64, bytes, operations })
    }

    /// Returns the prediction as a remark for [`Summary::text_with`]: `estimated 1.5 µs`.
    pub fn estimate(&self, machine: &Machine) -> Option<String> {
        self.predicted(machine).map(|time| format!("estimated {}", shown_time(time)))
    }
}

/// Returns a time with about three digits and its unit.
pub fn shown_time(time: Duration) -> String {
    let microseconds = time.as_secs_f64() * 1e6;
    match microseconds {
        ..1000.0 => format!("{microseconds:.1} µs"),
        _ => format!("{:.2} ms", microseconds / 1e3),
    }
}

/// The work of a plan.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The kernels, in order.
    pub kernels: Vec<KernelSummary>,
    /// Most bytes that are alive at a time: results, what is kept between kernels, what kernels need besides; inputs not counted.
    pub peak_bytes: u64,
}

impl Summary {
    /// Bytes read and written by all kernels.
    pub fn bytes_moved(&self) -> u64 {
        self.kernels.iter().map(|kernel| kernel.bytes_read + kernel.bytes_written).sum()
    }

    /// Predicts how long all kernels take on a machine; `None` for the interpreter.
    pub fn predicted(&self, machine: &Machine) -> Option<Duration> {
        self.kernels.iter().map(|kernel| kernel.predicted(machine)).sum()
    }

    /// Returns the PTX of all kernels, as the device was given it. Kernels with equal code have it once.
    pub fn ptx(&self) -> Result<String> {
        let mut texts: Vec<(Vec<String>, String)> = vec![];
        for (number, kernel) in self.kernels.iter().enumerate() {
            let (number, text) = (number.to_string(), kernel.code.ptx()?);
            match texts.iter_mut().find(|(_, known)| *known == text) {
                Some((numbers, _)) => numbers.push(number),
                None => texts.push((vec![number], text)),
            }
        }
        let shown = texts.iter().map(|(numbers, text)| format!("// kernel {} of the plan\n{text}", numbers.join(", ")));
        Ok(shown.collect::<Vec<String>>().join("\n"))
    }

    /// The plan as text.
    pub fn text(&self) -> String {
        self.text_with(|_| None)
    }

    /// The plan as text, with the estimated time of each kernel on a device. The first call for a device
    /// measures its bandwidth and the cost of a launch.
    pub fn text_on(&self, device: &Device) -> String {
        // Nothing is measured where it is of no use.
        if self.kernels.is_empty() || self.predicted(device.machine()).is_none() {
            return self.text();
        }
        let machine = device.measured_machine();
        self.text_with(|kernel| self.kernels[kernel].estimate(&machine))
    }

    /// The plan as text, with a remark behind each kernel, such as the time that it takes.
    pub fn text_with(&self, remark: impl Fn(usize) -> Option<String>) -> String {
        let mut text = String::new();
        let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        // Writing to a string never fails.
        let _ = writeln!(
            text,
            "{}, {} bytes moved, {} bytes of memory at most",
            plural(self.kernels.len(), "kernel"),
            self.bytes_moved(),
            self.peak_bytes
        );
        for (number, kernel) in self.kernels.iter().enumerate() {
            let launches = if kernel.launches == 1 { String::new() } else { format!("{} launches, ", kernel.launches) };
            let edges = if kernel.interior { ", boundaries only at the edges" } else { "" };
            let links = match kernel.links {
                0 => String::new(),
                links => format!(", {links} kernels in one with rows in rings"),
            };
            let patch = kernel.patch.map_or(String::new(), |patch| format!(", {patch}"));
            let besides = match kernel.bytes_besides {
                0 => String::new(),
                bytes => format!(", {bytes} bytes besides"),
            };
            let _ = writeln!(
                text,
                "{number}: {} over {}: {launches}reads {} ({} bytes), writes {} bytes{besides}, {} operations a position{edges}{patch}{links}{}",
                kernel.name,
                kernel.domain,
                plural(kernel.reads, "array"),
                kernel.bytes_read,
                kernel.bytes_written,
                kernel.operations,
                remark(number).map_or(String::new(), |remark| format!(", {remark}")),
            );
            for result in &kernel.results {
                let _ = writeln!(text, "   -> `{}` {}{}: {}", result.operation, result.ty, result.shape, result.reason);
            }
        }
        text
    }
}

/// The order of kernels in which least memory is alive: of those that can run, the one after which least is; of equal ones, the one that lets another run
/// after which least is.
fn order(tape: &Tape, groups: &[Group], bindings: &Bindings) -> Vec<usize> {
    let bytes = |id: Id| {
        let entry = tape.entry(id);
        bindings.shapes[entry.shape as usize].count() as i128 * i128::from(entry.ty.bytes())
    };
    let home: HashMap<Id, usize> =
        groups.iter().enumerate().flat_map(|(index, group)| group.made().map(move |made| (made, index))).collect();
    let mut readers: HashMap<Id, usize> = HashMap::new();
    groups.iter().flat_map(|group| &group.reads).for_each(|read| *readers.entry(*read).or_default() += 1);
    let results: Vec<Id> = tape.outputs.iter().map(|output| tape.behind(*output)).collect();
    // Kernels that each waits for, and those that wait for each.
    let waits: Vec<BTreeSet<usize>> =
        groups.iter().map(|group| group.reads.iter().filter_map(|read| home.get(read).copied()).collect()).collect();
    let mut followers: Vec<Vec<usize>> = vec![vec![]; groups.len()];
    waits.iter().enumerate().for_each(|(index, waits)| waits.iter().for_each(|producer| followers[*producer].push(index)));
    let mut missing: Vec<usize> = waits.iter().map(BTreeSet::len).collect();
    let mut ready: BTreeSet<usize> = (0..groups.len()).filter(|index| missing[*index] == 0).collect();
    let mut order = vec![];
    loop {
        let cost = |index: usize| {
            let group = &groups[index];
            let made: i128 = group.roots.iter().map(|root| bytes(*root)).sum();
            let freed: i128 = group
                .reads
                .iter()
                .filter(|read| home.contains_key(read) && readers[read] == 1 && !results.contains(read))
                .map(|read| bytes(*read))
                .sum();
            made - freed
        };
        let then = |index: usize| followers[index].iter().filter(|next| missing[**next] == 1).map(|next| cost(*next)).min();
        let Some(next) = ready.iter().copied().min_by_key(|index| (cost(*index), then(*index).unwrap_or(0).min(0), *index))
        else {
            break;
        };
        ready.remove(&next);
        for read in &groups[next].reads {
            if let Some(left) = readers.get_mut(read) {
                *left -= 1;
            }
        }
        for follower in &followers[next] {
            missing[*follower] -= 1;
            if missing[*follower] == 0 {
                ready.insert(*follower);
            }
        }
        order.push(next);
    }
    order
}
