//! Summary of a plan: its kernels, their work, and the reasons for the cuts.

use crate::emit::patch::Patch;
use crate::expr::error::Result;
use crate::expr::shape::Shape;
use crate::plan::cut::Reason;
use crate::plan::group::GroupKind;
use crate::plan::kernel::Kernel;
use crate::plan::kernels::Plan;
use crate::tape::bindings::Bindings;
use crate::tape::entries::Id;
use broadloom_device::{Device, Machine};
use broadloom_scalar::Type;
use broadloom_skeleton::LoadedProgram;
use broadloom_skeleton::cost::{Costs, KernelWork};
use smallvec::SmallVec;
use std::fmt::Write;
use std::time::Duration;

/// A result of a kernel, with the reason why it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultSummary {
    /// The operation that gives it.
    pub operation: String,
    /// The type of its elements.
    pub ty: String,
    /// Extents of the computed array.
    pub shape: Shape,
    /// The reason why it is kept in memory.
    pub reason: Reason,
}

/// The work of a kernel of a plan.
#[derive(Clone, Debug)]
pub struct KernelSummary {
    /// The pattern.
    pub name: String,
    /// The extents of its positions.
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
    /// Work beyond one pass over inputs and results: rounds of a sort, sums of a product.
    pub further: KernelWork,
    /// Kernels that a chain consists of; none for other kernels.
    pub links: usize,
    /// Kernels that are one row by row; none for other kernels.
    pub row_stages: usize,
    /// True if boundary rules are applied near edges only.
    pub interior: bool,
    /// Rows and columns that a thread computes together, if it computes a patch.
    pub patch: Option<Patch>,
    /// The arrays that the kernel writes.
    pub results: Vec<ResultSummary>,
    /// Its code, loaded on the device.
    pub code: LoadedProgram,
}

impl KernelSummary {
    /// Predicts its time on a machine. Returns `None` for the interpreter. A measured machine
    /// ([`Device::measured_machine`]) gives a better prediction. Temporary memory counts as written and read.
    pub fn predicted(&self, machine: &Machine) -> Option<Duration> {
        let bytes = (self.bytes_read + self.bytes_written + 2 * self.bytes_besides).saturating_add(self.further.bytes);
        let calls = self.operations.saturating_mul(self.domain.count() as u64);
        let operations = calls.saturating_add(self.further.operations);
        Costs::of(machine).predict(&KernelWork { launches: self.launches as u64, bytes, operations })
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
    /// Maximum bytes that are live at a time: results, arrays between kernels, and temporary memory. Inputs
    /// are not counted.
    pub peak_bytes: u64,
}

impl Summary {
    /// Bytes read and written by all kernels.
    pub fn bytes_moved(&self) -> u64 {
        self.kernels.iter().map(|kernel| kernel.bytes_read + kernel.bytes_written).sum()
    }

    /// Predicts the time of all kernels on a machine. Returns `None` for the interpreter.
    pub fn predicted(&self, machine: &Machine) -> Option<Duration> {
        self.kernels.iter().map(|kernel| kernel.predicted(machine)).sum()
    }

    /// Returns the PTX of all kernels as passed to the device. Equal code is there once.
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

    /// Returns the plan as text.
    pub fn text(&self) -> String {
        self.text_with(|_| None)
    }

    /// Returns the plan as text, with the estimated time of each kernel on a device. The first call for a
    /// device measures its bandwidth and the cost of a launch.
    pub fn text_on(&self, device: &Device) -> String {
        // Only a machine whose times are shown is measured.
        if self.kernels.is_empty() || self.predicted(device.machine()).is_none() {
            return self.text();
        }
        let machine = device.measured_machine();
        self.text_with(|kernel| self.kernels[kernel].estimate(&machine))
    }

    /// Returns the plan as text, with a remark for each kernel, such as its time.
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
            let stages = match kernel.row_stages {
                0 => String::new(),
                stages => format!(", {stages} kernels in one row by row"),
            };
            let patch = kernel.patch.map_or(String::new(), |patch| format!(", {patch}"));
            let besides = match kernel.bytes_besides {
                0 => String::new(),
                bytes => format!(", {bytes} bytes besides"),
            };
            let _ = writeln!(
                text,
                "{number}: {} over {}: {launches}reads {} ({} bytes), writes {} bytes{besides}, {} operations a position{edges}{patch}{links}{stages}{}",
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

impl Plan {
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
            // A kernel that does not run takes no temporary memory.
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
                links: if kernel.group.kind == GroupKind::Chain { kernel.group.links.len() } else { 0 },
                row_stages: if kernel.group.kind == GroupKind::Rows { kernel.group.links.len() } else { 0 },
                interior: kernel.codes.iter().any(|code| code.interior),
                patch: self.patched(kernel, &sizes)?.map(|patched| patched.patch),
                results: kernel.group.made().map(|root| self.result(root, bindings)).collect(),
                code: loaded,
            });
        }
        Ok(summary)
    }

    /// Returns the work of a kernel beyond one pass over inputs and results.
    fn further_work(&self, kernel: &Kernel, sizes: &[u64]) -> KernelWork {
        match (kernel.group.operation(&self.tape), kernel.group.combined.first()) {
            (Some(operation), Some(first)) => {
                let inputs = self.tape.entry(*first).inputs.iter();
                let types: SmallVec<[Type; 4]> = inputs.map(|input| self.tape.entry(*input).ty).collect();
                operation.further_work(&types, sizes)
            }
            _ => KernelWork::default(),
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
