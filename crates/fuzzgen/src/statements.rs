//! Structure of a kernel: everything around the pure instructions.

use crate::forms::{drawable, instantiate, is_there, may_be_guarded};
use crate::functions::Functions;
use crate::nans::computed;
use crate::pools::{POOLS, Pool, pool_of};
use crate::{Config, Kernel};
use broadloom_ptx::table::{Length, OperandKind};
use broadloom_ptx::{FormId, Modifier, Opcode, Type};
use broadloom_random::Random;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Bytes of each thread's own global memory.
const OWN_BYTES: usize = 64;
/// Bytes of the accumulators that all threads share.
const SHARED_SUMS: usize = 64;
/// Number of words of shared memory that all threads of a block count in.
pub(crate) const BINS: usize = 8;
/// Number of input words per thread.
pub(crate) const INPUT_WORDS: usize = 16;

/// Threads that reach a place together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Together {
    /// Some threads.
    No,
    /// All threads of the warp.
    Warp,
    /// All threads of the block.
    Block,
}

/// Writer of one kernel.
pub(crate) struct Writer<'c> {
    pub(crate) config: &'c Config,
    pub(crate) random: Random,
    seed: u64,
    forms: Vec<FormId>,
    atomics: Vec<FormId>,
    body: String,
    labels: usize,
    pub(crate) threads: u32,
    blocks: u32,
    block: [u32; 3],
    grid: [u32; 3],
    /// True if functions are called through pointers.
    pointers: bool,
    /// True if parts of a warp do collective operations.
    parts: bool,
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

    pub(crate) fn kernel(mut self) -> Kernel {
        if self.random.one_in(4) {
            let count = 1 + self.random.below(3);
            self.write_functions(count);
            // Ensures that they are called.
            self.walk();
        }
        for _ in 0..self.config.statements {
            self.statement(self.config.depth, Together::Block);
        }
        let middle = std::mem::take(&mut self.body);
        let used = used_registers(&middle);
        self.prologue(&used);
        self.body.push_str(&middle);
        self.epilogue(&used);
        let words = self.threads as usize * self.blocks as usize * INPUT_WORDS;
        let input = (0..words).map(|_| self.random.corner32()).collect();
        Kernel {
            text: self.module(),
            seed: self.seed,
            grid: self.grid,
            block: self.block,
            input,
            output_bytes: SHARED_SUMS + self.threads as usize * self.blocks as usize * (OWN_BYTES + Self::dump_bytes()),
        }
    }

    /// Returns the bytes of a thread's registers in the output.
    fn dump_bytes() -> usize {
        POOLS.iter().map(|pool| pool.count * 8).sum()
    }

    fn module(&self) -> String {
        let (major, minor) = self.config.isa;
        let mut text = format!(".version {major}.{minor}\n.target sm_{}\n.address_size 64\n\n", self.config.sm);
        text.push_str(
            ".func (.param .b32 result) mix(.param .b32 left, .param .b64 right)\n{\n\t.reg .b32 %a<3>;\n\t.reg .b64 %b;\n\
             \tld.param.b32 %a0, [left];\n\tld.param.b64 %b, [right];\n\tcvt.u32.u64 %a1, %b;\n\txor.b32 %a2, %a0, %a1;\n\
             \tst.param.b32 [result], %a2;\n\tret;\n}\n\n",
        );
        text.push_str(&self.functions.text());
        let _ = writeln!(text, ".visible .entry fuzz(\n\t.param .u64 input,\n\t.param .u64 output\n)\n{{");
        for pool in POOLS {
            let _ = writeln!(text, "\t.reg {} {}<{}>;", pool.ty, pool.prefix, pool.count);
        }
        let _ = writeln!(text, "\t.reg .b64 %in, %out, %own, %sums, %local, %address, %generic;");
        let _ = writeln!(
            text,
            "\t.reg .b32 %me, %home, %thread, %slot, %other, %lane, %mask, %some, %n<{}>, %x<4>;",
            self.most_loops + 1
        );
        let _ = writeln!(text, "\t.reg .pred %c, %q;");
        let _ = writeln!(text, "\t.shared .align 16 .b8 exchange[{}];", self.threads as usize * 16);
        let _ = writeln!(text, "\t.shared .align 4 .b32 bins[{BINS}];");
        let _ = writeln!(text, "\t.local .align 16 .b8 scratch[64];");
        text.push_str(&self.body);
        text.push_str("\tret;\n}\n");
        text
    }

    fn prologue(&mut self, used: &BTreeSet<String>) {
        let threads = self.threads;
        for line in [
            "ld.param.u64 %in, [input]".to_owned(),
            "ld.param.u64 %out, [output]".to_owned(),
            "cvta.to.global.u64 %in, %in".to_owned(),
            "cvta.to.global.u64 %out, %out".to_owned(),
            "mov.u64 %sums, %out".to_owned(),
        ] {
            self.line(&line);
        }
        self.linear("%me", "tid", self.block);
        self.linear("%home", "ctaid", self.grid);
        for line in [
            "mov.u32 %x0, %me".to_owned(),
            "mov.u32 %x1, %home".to_owned(),
            format!("mad.lo.u32 %thread, %home, {threads}, %me"),
            format!("mad.wide.u32 %in, %thread, {}, %in", INPUT_WORDS * 4),
            format!("mad.wide.u32 %own, %thread, {OWN_BYTES}, %out"),
            format!("add.u64 %own, %own, {SHARED_SUMS}"),
            format!("mad.wide.u32 %out, %thread, {}, %out", Self::dump_bytes()),
            format!("add.u64 %out, %out, {}", SHARED_SUMS + threads as usize * self.blocks as usize * OWN_BYTES),
            "shl.b32 %slot, %x0, 4".to_owned(),
            "mov.u32 %x3, exchange".to_owned(),
            "add.u32 %slot, %slot, %x3".to_owned(),
            // The slot of a neighbour: the next thread; the last one's neighbour is the first.
            "add.u32 %other, %x0, 1".to_owned(),
            format!("setp.eq.u32 %c, %other, {threads}"),
            "selp.b32 %other, 0, %other, %c".to_owned(),
            "shl.b32 %other, %other, 4".to_owned(),
            "add.u32 %other, %other, %x3".to_owned(),
            "mov.u64 %local, scratch".to_owned(),
            "and.b32 %lane, %x0, 31".to_owned(),
        ] {
            self.line(&line);
        }
        self.warp_mask();
        self.line("setp.eq.u32 %c, %me, 0");
        for number in 0..BINS {
            self.line(&format!("@%c st.shared.u32 [bins+{}], {number}", number * 4));
        }
        self.line("bar.sync 0");
        for offset in (0..64).step_by(16) {
            self.line(&format!("st.local.v4.u32 [%local+{offset}], {{%thread, %lane, %x0, %x1}}"));
        }
        for pool in POOLS {
            for index in 0..pool.count {
                let word = self.random.below(INPUT_WORDS / 2) * 8;
                let name = format!("{}{index}", pool.prefix);
                if !used.contains(&name) {
                    continue;
                }
                match pool.ty {
                    Type::Pred => {
                        self.line(&format!("ld.global.u32 %x0, [%in+{word}]"));
                        let limit = self.random.corner32() as i32;
                        self.line(&format!("setp.lt.s32 {name}, %x0, {limit}"));
                    }
                    ty => self.line(&format!(
                        "ld.global{} {name}, [%in+{word}]",
                        Type::bits_of(ty.bits()).map_or(ty, |bits| if ty.is_float() { ty } else { bits })
                    )),
                }
                if !self.config.portable
                    && let Some(line) = computed(pool, index)
                {
                    self.line(&line);
                }
            }
        }
    }

    /// Computes a linear index in the grid or the block, first dimension first.
    fn linear(&mut self, to: &str, special: &str, shape: [u32; 3]) {
        self.line(&format!("mov.u32 {to}, %{special}.x"));
        if shape[1..] != [1, 1] {
            self.line(&format!("mov.u32 %x0, %{special}.y"));
            self.line(&format!("mov.u32 %x1, %{special}.z"));
            self.line(&format!("mov.u32 %x2, %n{special}.y"));
            self.line("mad.lo.u32 %x0, %x1, %x2, %x0");
            self.line(&format!("mov.u32 %x2, %n{special}.x"));
            self.line(&format!("mad.lo.u32 {to}, %x0, %x2, {to}"));
        }
    }

    /// Computes the lanes of the thread's warp that exist.
    fn warp_mask(&mut self) {
        let (whole, rest) = (self.threads / 32 * 32, self.threads % 32);
        let partial: u32 = if rest == 0 { u32::MAX } else { (1 << rest) - 1 };
        self.line(&format!("setp.ge.u32 %c, %me, {whole}"));
        self.line(&format!("selp.b32 %mask, {}, -1, %c", partial as i32));
        if self.config.portable {
            // The assembler omits a known mask of all lanes where it assumes that the lanes are together, and
            // then moves a vote past a branch at which they diverge.
            self.line("st.volatile.shared.u32 [%slot], %mask");
            self.line("ld.volatile.shared.u32 %mask, [%slot]");
        }
    }

    /// Writes everything computed to memory.
    fn epilogue(&mut self, used: &BTreeSet<String>) {
        let mut offset = 0;
        for pool in POOLS {
            for index in 0..pool.count {
                let name = format!("{}{index}", pool.prefix);
                match pool.ty {
                    _ if !used.contains(&name) => {}
                    Type::Pred => {
                        self.line(&format!("selp.u32 %x0, 1, 0, {name}"));
                        self.line(&format!("st.global.u32 [%out+{offset}], %x0"));
                    }
                    ty => self.line(&format!("st.global{ty} [%out+{offset}], {name}")),
                }
                offset += 8;
            }
        }
    }

    /// Writes one statement, at a place that threads reach together or not.
    pub(crate) fn statement(&mut self, depth: usize, together: Together) {
        let kinds = match together {
            Together::No => 22,
            Together::Warp => 27,
            Together::Block => 32,
        };
        match self.random.below(kinds) {
            0..=7 => self.pure(),
            8..=10 if !self.config.portable && self.config.sm >= 90 => self.computed_nan(together),
            8..=10 => self.pure(),
            11 | 12 if depth > 0 => self.branch(depth, together),
            13 | 14 if depth > 0 => self.count_down(depth, together),
            15 => self.own_memory(),
            16 => self.atomic(),
            17 => self.local_memory(together),
            18 if self.walk() => {}
            18 if self.config.portable && self.functions.left.is_some() => self.pure(),
            18 => self.call(),
            19 if depth > 0 => self.switch(depth),
            20 => self.carry_chain(),
            21 if depth > 0 => self.leap(depth),
            22 | 23 => self.shuffle("%mask", true),
            24 => self.vote("%mask"),
            25 => self.redux("%mask"),
            26 if self.parts => self.part_of_warp(depth),
            27 | 28 => self.exchange(),
            29 => self.barrier_reduction(),
            30 => self.count_in_bins(),
            31 => self.gather(),
            _ => self.pure(),
        }
    }

    fn pure(&mut self) {
        // Some combinations of modifiers have no registers here; others do.
        for _ in 0..20 {
            let form = self.random.pick(&self.forms).get();
            let mut taken: Vec<String> = vec![];
            let mut written = |pool: &'static Pool, random: &mut Random| loop {
                let name = pool.pick(random);
                if !taken.contains(&name) {
                    taken.push(name.clone());
                    return name;
                }
            };
            if let Some(text) = instantiate(form, self.config, &mut self.random, &mut written) {
                let guard = if self.config.portable && !may_be_guarded(form) { 7 } else { self.random.below(8) };
                let text = match guard {
                    0 => format!("@{} {text}", self.reg(Type::Pred)),
                    1 => format!("@!{} {text}", self.reg(Type::Pred)),
                    _ => text,
                };
                self.line(&text);
                taken.iter().for_each(|name| self.canonical_nan(name));
                return;
            }
        }
    }

    /// Makes a NaN in a float register canonical, if another must not be visible.
    fn canonical_nan(&mut self, name: &str) {
        let (ty, nan) = match &name[..2] {
            "%f" if self.config.portable => ("f32", "0f7FFFFFFF"),
            "%g" if self.config.portable || !self.config.nan_payloads => ("f64", "0d7FFFFFFFFFFFFFFF"),
            _ => return,
        };
        self.line(&format!("setp.nan.{ty} %q, {name}, {name}"));
        self.line(&format!("@%q mov.{ty} {name}, {nan}"));
    }

    /// Writes a two-sided branch, sometimes uniform in the block or the warp.
    fn branch(&mut self, depth: usize, together: Together) {
        let (otherwise, end) = (self.label(), self.label());
        let (condition, inside) = match (together, self.random.below(4)) {
            (Together::Block, 0) => {
                let limit = self.random.below(self.blocks as usize + 1);
                self.line(&format!("setp.lt.u32 %c, %home, {limit}"));
                ("%c".to_owned(), Together::Block)
            }
            (Together::Block | Together::Warp, 1) => {
                let mode = *self.random.pick(&["any", "all"]);
                let value = self.reg(Type::Pred);
                self.line(&format!("vote.sync.{mode}.pred %c, {value}, %mask"));
                ("%c".to_owned(), Together::Warp)
            }
            _ => {
                let value = self.reg(Type::Pred);
                (self.condition(value), Together::No)
            }
        };
        let bang = if self.random.one_in(2) { "!" } else { "" };
        self.line(&format!("@{bang}{condition} bra {otherwise}"));
        for _ in 0..1 + self.random.below(3) {
            self.statement(depth - 1, inside);
        }
        self.line(&format!("bra{} {end}", if inside == Together::Block { ".uni" } else { "" }));
        let _ = writeln!(self.body, "{otherwise}:");
        for _ in 0..self.random.below(3) {
            self.statement(depth - 1, inside);
        }
        let _ = writeln!(self.body, "{end}:");
    }

    /// Returns a predicate on which each thread branches individually.
    fn condition(&mut self, predicate: String) -> String {
        if !self.config.portable {
            return predicate;
        }
        // After a branch the assembler assumes that the predicate is known, also in a loop that changes it.
        // The branch predicate must therefore be independent of the computed values.
        let number: usize = predicate.trim_start_matches("%p").parse().unwrap_or(0);
        self.line(&format!("selp.b32 %x3, %r{number}, %r{}, {predicate}", number + 6));
        self.line("setp.lt.s32 %c, %x3, 1");
        "%c".to_owned()
    }

    /// Writes a loop that counts down. Threads with the same count stay together, unless one leaves early.
    fn count_down(&mut self, depth: usize, together: Together) {
        let (start, next, end) = (self.label(), self.label(), self.label());
        let counter = format!("%n{}", self.loops);
        self.loops += 1;
        self.most_loops = self.most_loops.max(self.loops);
        let inside = match (together, self.random.below(4)) {
            (Together::Block, 0) => {
                let count = 1 + self.random.below(4);
                self.line(&format!("mov.u32 {counter}, {count}"));
                Together::Block
            }
            (Together::Block | Together::Warp, 1) => {
                let register = self.reg(Type::B32);
                self.line(&format!("shfl.sync.idx.b32 {counter}, {register}, 0, 31, %mask"));
                self.line(&format!("and.b32 {counter}, {counter}, 3"));
                Together::Warp
            }
            _ => {
                let register = self.reg(Type::B32);
                self.line(&format!("and.b32 {counter}, {register}, 3"));
                Together::No
            }
        };
        let tested_first = self.random.one_in(3);
        let _ = writeln!(self.body, "{start}:");
        if tested_first {
            self.line(&format!("setp.le.s32 %c, {counter}, 0"));
            self.line(&format!("@%c bra {end}"));
        }
        for _ in 0..1 + self.random.below(3) {
            self.statement(depth - 1, inside);
            // Each thread individually continues with the next iteration, or leaves.
            if inside == Together::No && self.random.one_in(3) {
                let (value, target) = (self.reg(Type::Pred), if self.random.one_in(2) { &next } else { &end });
                let value = self.condition(value);
                self.line(&format!("@{value} bra {target}"));
            }
        }
        let _ = writeln!(self.body, "{next}:");
        self.line(&format!("sub.s32 {counter}, {counter}, 1"));
        if tested_first {
            self.line(&format!("bra {start}"));
        } else {
            self.line(&format!("setp.gt.s32 %c, {counter}, 0"));
            self.line(&format!("@%c bra {start}"));
        }
        let _ = writeln!(self.body, "{end}:");
        self.loops -= 1;
    }

    /// Writes overlapping forward jumps: control flow that is not made of `if` and `else`.
    fn leap(&mut self, depth: usize) {
        let (first, second) = (self.label(), self.label());
        let (one, two) = (self.reg(Type::Pred), self.reg(Type::Pred));
        let one = self.condition(one);
        self.line(&format!("@{one} bra {first}"));
        self.statement(depth - 1, Together::No);
        let two = self.condition(two);
        self.line(&format!("@{two} bra {second}"));
        self.statement(depth - 1, Together::No);
        let _ = writeln!(self.body, "{first}:");
        self.statement(depth - 1, Together::No);
        let _ = writeln!(self.body, "{second}:");
    }

    /// Writes a jump through a table.
    fn switch(&mut self, depth: usize) {
        let labels: Vec<String> = (0..4).map(|_| self.label()).collect();
        let (table, end) = (self.label(), self.label());
        let register = self.reg(Type::B32);
        self.line(&format!("and.b32 %x0, {register}, 3"));
        let _ = writeln!(self.body, "{table}: .branchtargets {};", labels.join(", "));
        self.line(&format!("brx.idx %x0, {table}"));
        for label in &labels {
            let _ = writeln!(self.body, "{label}:");
            self.statement(depth - 1, Together::No);
            self.line(&format!("bra {end}"));
        }
        let _ = writeln!(self.body, "{end}:");
    }

    /// Writes loads and stores of the thread's own global memory, in all widths and vectors.
    fn own_memory(&mut self) {
        let (ty, count) = *self.random.pick(&[
            (Type::B16, 1),
            (Type::B32, 1),
            (Type::B64, 1),
            (Type::F32, 1),
            (Type::F64, 1),
            (Type::B32, 2),
            (Type::B32, 4),
            (Type::F32, 4),
            (Type::B64, 2),
            (Type::B16, 4),
        ]);
        let bytes = ty.bytes() as usize * count;
        let offset = self.random.below(OWN_BYTES / bytes) * bytes;
        let spaces = [".global", "", ".volatile.global", ".relaxed.gpu.global"];
        let known = if self.functions.left.is_some() { 2 } else { spaces.len() };
        let space = *self.random.pick(&spaces[..known]);
        let vector = if count > 1 { format!(".v{count}") } else { String::new() };
        let store: Vec<String> = (0..count).map(|_| self.reg(ty)).collect();
        let mut load: Vec<String> = vec![];
        while load.len() < count {
            let name = self.reg(ty);
            if !load.contains(&name) {
                load.push(name);
            }
        }
        let braced = |names: &[String]| if count > 1 { format!("{{{}}}", names.join(", ")) } else { names[0].clone() };
        let address = if space.is_empty() {
            self.line("cvta.global.u64 %generic, %own");
            "%generic"
        } else {
            "%own"
        };
        self.line(&format!("st{space}{vector}{ty} [{address}+{offset}], {}", braced(&store)));
        self.line(&format!("ld{space}{vector}{ty} {}, [{address}+{offset}]", braced(&load)));
        // A narrow load extends.
        let narrow = *self.random.pick(&[Type::U8, Type::S8, Type::U16, Type::S16]);
        let register = self.reg(Type::B32);
        let inside = offset + self.random.below(bytes / narrow.bytes() as usize) * narrow.bytes() as usize;
        self.line(&format!("ld{space}{narrow} {register}, [{address}+{inside}]"));
    }

    /// Writes atomics on memory that only this thread accesses, in every operation and with the old value, or
    /// on a shared sum.
    fn atomic(&mut self) {
        if self.functions.left.is_some() || self.random.one_in(4) {
            let (operation, ty) = *self.random.pick(&[
                ("add", "u32"),
                ("xor", "b32"),
                ("max", "s32"),
                ("min", "u32"),
                ("or", "b32"),
                ("and", "b32"),
                ("add", "u64"),
            ]);
            let slot = ["add u32", "xor b32", "max s32", "min u32", "or b32", "and b32", "add u64"]
                .iter()
                .position(|known| *known == format!("{operation} {ty}"))
                .unwrap_or(0);
            let register = self.reg(if ty == "u64" { Type::B64 } else { Type::B32 });
            self.line(&format!("red.global.{operation}.{ty} [%sums+{}], {register}", slot * 8));
            return;
        }
        for _ in 0..20 {
            let form = self.random.pick(&self.atomics).get();
            let Some(text) = self.instantiate_atomic(form) else { continue };
            self.line(&text);
            return;
        }
    }

    fn instantiate_atomic(&mut self, form: &broadloom_ptx::Form) -> Option<String> {
        let mut text = form.opcode.name().to_owned();
        let mut ty = None;
        let mut shared = false;
        for slot in form.slots {
            if slot.optional && self.random.one_in(2) {
                continue;
            }
            let modifier = *self.random.pick(slot.choices);
            shared |= modifier.text().starts_with("shared");
            ty = modifier.ty().or(ty);
            text.push('.');
            text.push_str(modifier.text());
        }
        let ty = ty?;
        let pool = pool_of(ty, false)?;
        let generic = !shared && !text.contains(".global");
        if generic {
            self.line("cvta.global.u64 %generic, %own");
        }
        let address = match (shared, generic) {
            (true, _) => "[%slot]".to_owned(),
            (false, true) => format!("[%generic+{}]", self.random.below(4) * 16),
            (false, false) => format!("[%own+{}]", self.random.below(4) * 16),
        };
        if shared {
            let register = self.reg(Type::B32);
            self.line(&format!("st.shared.v2.b32 [%slot], {{{register}, %thread}}"));
        }
        let mut separator = " ";
        for spec in form.operands {
            let operand = match spec.kind {
                OperandKind::Memory => address.clone(),
                _ => pool.pick(&mut self.random),
            };
            text.push_str(separator);
            text.push_str(&operand);
            separator = ", ";
        }
        Some(text)
    }

    /// Writes accesses to an array of the thread, indexed by a value.
    fn local_memory(&mut self, together: Together) {
        let (index, value, result) = (self.reg(Type::B32), self.reg(Type::B32), self.reg(Type::B32));
        self.line(&format!("and.b32 %x0, {index}, 15"));
        self.line("mad.wide.u32 %address, %x0, 4, %local");
        self.line(&format!("st.local.u32 [%address], {value}"));
        let other = self.reg(Type::B32);
        self.line(&format!("and.b32 %x0, {other}, 15"));
        self.line("mad.wide.u32 %address, %x0, 4, %local");
        // The assembler keeps the start of the local window in a register of the whole warp, also where lanes
        // have diverged: one side overwrites it for the other.
        if self.config.portable && together == Together::No {
            return self.line(&format!("ld.local.u32 {result}, [%address]"));
        }
        self.line("cvta.local.u64 %generic, %address");
        self.line(&format!("ld.u32 {result}, [%generic]"));
    }

    fn call(&mut self) {
        let (left, right, result) = (self.reg(Type::B32), self.reg(Type::B64), self.reg(Type::B32));
        self.body.push_str("\t{\n\t.param .b32 p0;\n\t.param .b64 p1;\n\t.param .b32 r0;\n");
        self.line(&format!("st.param.b32 [p0], {left}"));
        self.line(&format!("st.param.b64 [p1], {right}"));
        if self.pointers && self.random.one_in(2) {
            self.body.push_str("proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _);\n");
            self.line("mov.u64 %address, mix");
            self.line("call (r0), %address, (p0, p1), proto");
        } else {
            self.line("call.uni (r0), mix, (p0, p1)");
        }
        self.line(&format!("ld.param.b32 {result}, [r0]"));
        self.body.push_str("\t}\n");
    }

    /// Writes 128-bit sums and differences with the carry flag.
    fn carry_chain(&mut self) {
        let (a, b, low, high) = (self.reg(Type::B64), self.reg(Type::B64), self.reg(Type::B64), self.reg(Type::B64));
        let (first, second) =
            *self.random.pick(&[("add.cc.u64", "addc.u64"), ("sub.cc.u64", "subc.u64"), ("mad.lo.cc.u64", "madc.hi.u64")]);
        let third = if first.starts_with("mad") { format!(", {a}") } else { String::new() };
        self.line(&format!("{first} %address, {a}, {b}{third}"));
        self.line(&format!("{second} {high}, {b}, {a}{third}"));
        self.line(&format!("mov.u64 {low}, %address"));
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

/// Describes a byte of the output, for a number of threads.
pub(crate) fn place(threads: usize, byte: usize) -> String {
    let Some(own) = byte.checked_sub(SHARED_SUMS) else { return format!("byte {byte} of the sums") };
    let Some(dump) = own.checked_sub(threads * OWN_BYTES) else {
        return format!("byte {} of the memory of thread {}", own % OWN_BYTES, own / OWN_BYTES);
    };
    let bytes = Writer::dump_bytes();
    let mut registers = POOLS.iter().flat_map(|pool| (0..pool.count).map(move |index| format!("{}{index}", pool.prefix)));
    let name = registers.nth(dump % bytes / 8).unwrap_or_default();
    format!("register {name} of thread {}", dump / bytes)
}
