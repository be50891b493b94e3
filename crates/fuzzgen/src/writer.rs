//! Writer of a kernel: its state, and the functions that add lines, labels and registers.
//!
//! Other modules add statements: pure instructions and control flow (`statements`), functions, operations of
//! several threads (`collectives`), NaNs. `kernel` writes what is around them.

use crate::config::Config;
use crate::forms::{drawable, is_there};
use crate::pools::pool_of;
use broadloom_ptx::table::{Length, OperandKind};
use broadloom_ptx::{FormId, Modifier, Opcode, Type};
use broadloom_random::Random;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Bytes of each thread's own global memory.
pub(crate) const OWN_BYTES: usize = 64;
/// Bytes of the accumulators that all threads share.
pub(crate) const SHARED_SUMS: usize = 64;
/// Number of words of shared memory that all threads of a block count in.
pub(crate) const BINS: usize = 8;
/// Number of input words per thread.
pub(crate) const INPUT_WORDS: usize = 16;

/// Threads that reach a place together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Convergence {
    /// Some threads.
    Diverged,
    /// All threads of the warp.
    Warp,
    /// All threads of the block.
    Block,
}

/// Functions of a module that are written so far.
#[derive(Default)]
pub(crate) struct Functions {
    /// Number of functions.
    pub(crate) count: usize,
    /// Their definitions.
    pub(crate) text: String,
    /// Calls that the function being written may still contain; `None` in a kernel.
    pub(crate) calls_left: Option<usize>,
}

/// Writer of one kernel.
pub(crate) struct Writer<'c> {
    pub(crate) config: &'c Config,
    pub(crate) random: Random,
    pub(crate) seed: u64,
    pub(crate) forms: Vec<FormId>,
    pub(crate) atomics: Vec<FormId>,
    pub(crate) body: String,
    pub(crate) labels: usize,
    pub(crate) threads: u32,
    pub(crate) blocks: u32,
    pub(crate) block: [u32; 3],
    pub(crate) grid: [u32; 3],
    /// True if functions are called through pointers.
    pub(crate) pointers: bool,
    /// True if parts of a warp do collective operations.
    pub(crate) parts: bool,
    /// Number of loops around the current place, each with a counter.
    pub(crate) loops: usize,
    pub(crate) most_loops: usize,
    /// Functions that are not inlined.
    pub(crate) functions: Functions,
}

impl<'c> Writer<'c> {
    pub(crate) fn new(seed: u64, config: &'c Config) -> Self {
        let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9).wrapping_add(1));
        let atomics = [Opcode::Atom, Opcode::Red].into_iter().flat_map(|opcode| opcode.row().forms());
        let atomics = atomics.filter(|id| {
            let form = id.get();
            let scalar = form.operands.iter().all(|spec| matches!(spec.length, Length::One));
            let private = form
                .slots
                .iter()
                .flat_map(|slot| slot.choices)
                .all(|m| !m.text().contains("cluster") && !m.text().contains("L2::"));
            let plain = form.operands.iter().all(|spec| matches!(spec.kind, OperandKind::Value | OperandKind::Memory));
            let doubles = form.slots.iter().any(|slot| slot.choices.contains(&Modifier::F64));
            is_there(form, config) && scalar && private && plain && !(doubles && (config.portable || !config.nan_payloads))
        });
        // Whole warps, or one that is not whole.
        let threads = if random.one_in(3) {
            1 + random.below(config.threads as usize) as u32
        } else {
            32 * (1 + random.below(config.threads as usize / 32) as u32)
        };
        let threads = threads.min(config.threads);
        let blocks = 1 + random.below(config.blocks as usize) as u32;
        let (block, grid) = (shape(threads, &mut random), shape(blocks, &mut random));
        Writer {
            forms: drawable(config),
            atomics: atomics.collect(),
            threads,
            blocks,
            block,
            grid,
            pointers: random.one_in(12),
            parts: random.one_in(12),
            config,
            random,
            seed,
            body: String::new(),
            labels: 0,
            loops: 0,
            most_loops: 0,
            functions: Functions::default(),
        }
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.body.push('\t');
        self.body.push_str(text);
        self.body.push_str(";\n");
    }

    pub(crate) fn label(&mut self) -> String {
        self.labels += 1;
        format!("$L{}", self.labels)
    }

    pub(crate) fn place_label(&mut self, label: &str) {
        let _ = writeln!(self.body, "{label}:");
    }

    pub(crate) fn reg(&mut self, ty: Type) -> String {
        pool_of(ty, false).map_or_else(String::new, |pool| pool.pick(&mut self.random))
    }

    /// Writes a line without a semicolon.
    pub(crate) fn block(&mut self, text: &str) {
        let _ = writeln!(self.body, "\t{text}");
    }

    /// Returns the text written since the last call.
    pub(crate) fn take_body(&mut self) -> String {
        std::mem::take(&mut self.body)
    }
}

/// Returns the registers in a text.
pub(crate) fn used_registers(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c == '%' || c.is_ascii_alphanumeric()));
    words.filter(|word| word.starts_with('%')).map(str::to_owned).collect()
}

/// Returns a shape with `count` elements: mostly one-dimensional.
fn shape(count: u32, random: &mut Random) -> [u32; 3] {
    if !random.one_in(3) {
        return [count, 1, 1];
    }
    let mut divisor = |of: u32| {
        let all: Vec<u32> = (1..=of.min(64)).filter(|n| of.is_multiple_of(*n)).collect();
        *random.pick(&all)
    };
    let depth = divisor(count);
    let height = divisor(count / depth);
    [count / depth / height, height, depth]
}
