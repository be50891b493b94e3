//! Findings of the checker, as data.

use broadloom_device::place::{InlinedCall, SourcePlace, party};
use broadloom_device::{Fault, FaultKind};
use broadloom_diag::{Code, Diagnostic, Sources, Span};
use serde_json::{Value, json};
use std::fmt;

broadloom_diag::named! {
    /// Kind of fault.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum FindingKind {
        /// Access outside all memory.
        OutOfBounds = "out-of-bounds",
        /// Access whose address is not a multiple of its size.
        Misaligned = "misaligned",
        /// Access through an address of another state space.
        WrongSpace = "wrong-space",
        /// Access to freed memory.
        UseAfterFree = "use-after-free",
        /// Invalid free: a second free, or a pointer from elsewhere.
        BadFree = "bad-free",
        /// Read of memory that was never written.
        UninitialisedMemory = "uninitialised-memory",
        /// Use of a register that was never written.
        UninitialisedRegister = "uninitialised-register",
        /// Accesses of two threads to the same memory without an order between them, at least one a write.
        Race = "race",
        /// Read, through a cache that is not coherent, of memory that the launch has written.
        NonCoherent = "non-coherent",
        /// Barrier that only some threads of a block or warp reach, or different barriers at the same time.
        DivergentBarrier = "divergent-barrier",
        /// Barrier used against its rules.
        BadBarrier = "bad-barrier",
        /// Shuffle from an inactive lane.
        InactiveLane = "inactive-lane",
        /// Memory from `malloc` that is never freed.
        Leak = "leak",
        /// Kernel that stopped: `trap`, a failed assertion, a deadlock, the time limit, a bad call.
        Stopped = "stopped",
    }
}

impl From<FaultKind> for FindingKind {
    fn from(kind: FaultKind) -> Self {
        match kind {
            FaultKind::OutOfBounds => FindingKind::OutOfBounds,
            FaultKind::Misaligned => FindingKind::Misaligned,
            FaultKind::WrongSpace => FindingKind::WrongSpace,
            FaultKind::UseAfterFree => FindingKind::UseAfterFree,
            FaultKind::BadFree => FindingKind::BadFree,
            FaultKind::BadBarrier => FindingKind::BadBarrier,
            FaultKind::Trap
            | FaultKind::Assert
            | FaultKind::Deadlock
            | FaultKind::BadCall
            | FaultKind::StackOverflow
            | FaultKind::Unsupported
            | FaultKind::TimeLimit
            | FaultKind::Interrupted => FindingKind::Stopped,
        }
    }
}

/// Thread at an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Name of the function that contains the instruction.
    pub function: String,
    /// Index of the block in the grid.
    pub block: [u32; 3],
    /// The thread within its block.
    pub thread: [u32; 3],
    /// The instruction as text.
    pub instruction: String,
    /// Span in the PTX text.
    pub span: Span,
    /// Position in the high-level source.
    pub source: Option<SourcePlace>,
}

/// Fault of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Kind of fault.
    pub kind: FindingKind,
    /// Name of the launched kernel.
    pub kernel: String,
    /// Description in one sentence.
    pub message: String,
    /// Thread and instruction. Leaks name the `malloc`.
    pub location: Option<Location>,
    /// Other party of a race.
    pub other: Option<Location>,
    /// Faulty address.
    pub address: Option<u64>,
    /// Number of occurrences at this place; the first one is described.
    pub count: u64,
}

impl Finding {
    pub(crate) fn from_fault(fault: &Fault) -> Finding {
        let location = match (fault.block, fault.thread, &fault.instruction, fault.span) {
            (Some(block), Some(thread), Some(instruction), Some(span)) => Some(Location {
                function: fault.function.clone().unwrap_or_else(|| fault.kernel.clone()),
                block,
                thread,
                instruction: instruction.clone(),
                span,
                source: fault.source.clone(),
            }),
            _ => None,
        };
        Finding {
            kind: fault.kind.into(),
            kernel: fault.kernel.clone(),
            message: fault.message.clone(),
            location,
            other: None,
            address: fault.address,
            count: 1,
        }
    }

    /// Returns the finding as JSON, with lines of the PTX text.
    pub fn to_json(&self, sources: &Sources) -> Value {
        let inlined = |source: &SourcePlace| -> Vec<Value> {
            let call = |call: &InlinedCall| json!({ "function": call.function, "at": call.at.to_string(), "from": call.from.to_string() });
            source.calls.iter().map(call).collect()
        };
        let location = |location: &Location| {
            let source = (!location.span.is_synthetic()).then(|| sources.get(location.span.source)).flatten();
            json!({
                "function": location.function,
                "block": location.block,
                "thread": location.thread,
                "instruction": location.instruction,
                "ptx_file": source.map(|source| source.name()),
                "ptx_line": source.map(|source| source.position(location.span.start).line),
                "source": location.source.as_ref().map(|source| source.to_string()),
                "inlined": location.source.as_ref().map(&inlined),
            })
        };
        json!({
            "kind": self.kind.name(),
            "kernel": self.kernel,
            "message": self.message,
            "location": self.location.as_ref().map(location),
            "other": self.other.as_ref().map(location),
            "address": self.address,
            "count": self.count,
        })
    }

    /// Returns the finding as a diagnostic at the places of its parties.
    pub fn diagnostic(&self) -> Diagnostic {
        let message = format!("kernel `{}`: {}", self.kernel, self.message);
        let mut diagnostic = Diagnostic::error(Code(self.kind.name()), message);
        let parties = self.location.iter().chain(&self.other);
        for (index, location) in parties.clone().enumerate() {
            let who = party(location.block, location.thread);
            let function = if location.function == self.kernel { String::new() } else { format!(", in `{}`", location.function) };
            diagnostic = match (location.span.is_synthetic(), index) {
                (true, _) => diagnostic.note(format!("{who}{function}: `{}`", location.instruction)),
                (false, 0) => diagnostic.at(location.span, format!("{who}{function}")),
                (false, _) => diagnostic.label(location.span, format!("{who}{function}")),
            };
        }
        let mut sources: Vec<&SourcePlace> = parties.filter_map(|location: &Location| location.source.as_ref()).collect();
        sources.dedup();
        for note in sources.iter().flat_map(|source| source.notes()) {
            diagnostic = diagnostic.note(note);
        }
        match self.count {
            0 | 1 => diagnostic,
            count => diagnostic.note(format!("seen {count} times; this is the first")),
        }
    }

    /// Returns the finding as text, with lines of the PTX text.
    pub fn render(&self, sources: &Sources) -> String {
        let mut text = format!("{}: kernel `{}`: {}", self.kind.name(), self.kernel, self.message);
        let mut tell = |who: &str, location: &Location| {
            let [bx, by, bz] = location.block;
            let [tx, ty, tz] = location.thread;
            text.push_str(&format!("\n  {who} block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz})"));
            if location.function != self.kernel {
                text.push_str(&format!(", in function `{}`", location.function));
            }
            text.push_str(&format!("\n    `{}`", location.instruction));
            if !location.span.is_synthetic() {
                text.push_str(&format!("\n    at {}", sources.place(location.span)));
            }
            if let Some(source) = &location.source {
                for note in source.notes() {
                    text.push_str(&format!("\n    {note}"));
                }
            }
        };
        if let Some(location) = &self.location {
            tell("in", location);
        }
        if let Some(other) = &self.other {
            tell("and", other);
        }
        if self.count > 1 {
            text.push_str(&format!("\n  seen {} times", self.count));
        }
        text.push('\n');
        text
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: kernel `{}`: {}", self.kind.name(), self.kernel, self.message)
    }
}
