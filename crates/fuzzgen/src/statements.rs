//! The structure of a kernel: what comes around the pure instructions.

use crate::forms::{drawable, instantiate, is_there, may_be_guarded};
use crate::pools::{POOLS, Pool, pool_of};
use crate::random::Random;
use crate::{Config, Kernel};
use broadloom_ptx::table::{Length, OperandKind};
use broadloom_ptx::{FormId, Modifier, Opcode, Type};
use std::fmt::Write as _;

/// Bytes of global memory that each thread has for itself.
const OWN_BYTES: usize = 64;
/// Bytes of the accumulators that all threads share.
const SHARED_SUMS: usize = 64;
/// Words of input per thread.
const INPUT_WORDS: usize = 16;

/// Writes one kernel.
pub(crate) struct Writer<'c> {
    config: &'c Config,
    random: Random,
    seed: u64,
    forms: Vec<FormId>,
    atomics: Vec<FormId>,
    body: String,
    labels: usize,
    threads: u32,
    blocks: u32,
    /// Loop counters of the loops around the current place.
    loops: usize,
    most_loops: usize,
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
            is_there(form, config) && scalar && private && plain && !(config.portable && doubles)
        });
        // Whole warps, or one that is not.
        let threads = if random.one_in(3) {
            1 + random.below(config.threads as usize) as u32
        } else {
            32 * (1 + random.below(config.threads as usize / 32) as u32)
        };
        Writer {
            forms: drawable(config),
            atomics: atomics.collect(),
            threads: threads.min(config.threads),
            blocks: 1 + random.below(config.blocks as usize) as u32,
            config,
            random,
            seed,
            body: String::new(),
            labels: 0,
            loops: 0,
            most_loops: 0,
        }
    }

    fn line(&mut self, text: &str) {
        self.body.push('\t');
        self.body.push_str(text);
        self.body.push_str(";\n");
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("$L{}", self.labels)
    }

    fn reg(&mut self, ty: Type) -> String {
        pool_of(ty, false).map_or_else(String::new, |pool| pool.pick(&mut self.random))
    }

    pub(crate) fn kernel(mut self) -> Kernel {
        self.prologue();
        for _ in 0..self.config.statements {
            self.statement(self.config.depth, true);
        }
        self.epilogue();
        let words = self.threads as usize * self.blocks as usize * INPUT_WORDS;
        let input = (0..words).map(|_| self.random.corner32()).collect();
        Kernel {
            text: self.module(),
            seed: self.seed,
            blocks: self.blocks,
            threads: self.threads,
            input,
            output_bytes: SHARED_SUMS + self.threads as usize * self.blocks as usize * (OWN_BYTES + Self::dump_bytes()),
        }
    }

    /// Bytes that a thread's registers take in the output.
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
        let _ = writeln!(text, ".visible .entry fuzz(\n\t.param .u64 input,\n\t.param .u64 output\n)\n{{");
        for pool in POOLS {
            let _ = writeln!(text, "\t.reg {} {}<{}>;", pool.ty, pool.prefix, pool.count);
        }
        let _ = writeln!(text, "\t.reg .b64 %in, %out, %own, %sums, %local, %address, %generic;");
        let _ = writeln!(text, "\t.reg .b32 %thread, %slot, %other, %lane, %mask, %n<{}>, %x<4>;", self.most_loops + 1);
        let _ = writeln!(text, "\t.reg .pred %c, %q;");
        let _ = writeln!(text, "\t.shared .align 16 .b8 exchange[{}];", self.threads as usize * 16);
        let _ = writeln!(text, "\t.local .align 16 .b8 scratch[64];");
        text.push_str(&self.body);
        text.push_str("\tret;\n}\n");
        text
    }

    fn prologue(&mut self) {
        let threads = self.threads;
        for line in [
            "ld.param.u64 %in, [input]".to_owned(),
            "ld.param.u64 %out, [output]".to_owned(),
            "cvta.to.global.u64 %in, %in".to_owned(),
            "cvta.to.global.u64 %out, %out".to_owned(),
            "mov.u64 %sums, %out".to_owned(),
            "mov.u32 %x0, %tid.x".to_owned(),
            "mov.u32 %x1, %ctaid.x".to_owned(),
            "mov.u32 %x2, %ntid.x".to_owned(),
            "mad.lo.u32 %thread, %x1, %x2, %x0".to_owned(),
            format!("mad.wide.u32 %in, %thread, {}, %in", INPUT_WORDS * 4),
            format!("mad.wide.u32 %own, %thread, {OWN_BYTES}, %out"),
            format!("add.u64 %own, %own, {SHARED_SUMS}"),
            format!("mad.wide.u32 %out, %thread, {}, %out", Self::dump_bytes()),
            format!("add.u64 %out, %out, {}", SHARED_SUMS + threads as usize * self.blocks as usize * OWN_BYTES),
            "shl.b32 %slot, %x0, 4".to_owned(),
            "mov.u32 %x3, exchange".to_owned(),
            "add.u32 %slot, %slot, %x3".to_owned(),
            // The slot of a neighbour: the next thread, the last one's is the first.
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
        for offset in (0..64).step_by(16) {
            self.line(&format!("st.local.v4.u32 [%local+{offset}], {{%thread, %lane, %x0, %x1}}"));
        }
        for pool in POOLS {
            for index in 0..pool.count {
                let word = self.random.below(INPUT_WORDS / 2) * 8;
                let name = format!("{}{index}", pool.prefix);
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
            }
        }
    }

    /// The lanes of the thread's warp that exist.
    fn warp_mask(&mut self) {
        let (whole, rest) = (self.threads / 32 * 32, self.threads % 32);
        let partial: u32 = if rest == 0 { u32::MAX } else { (1 << rest) - 1 };
        self.line("mov.u32 %x0, %tid.x");
        self.line(&format!("setp.ge.u32 %c, %x0, {whole}"));
        self.line(&format!("selp.b32 %mask, {}, -1, %c", partial as i32));
    }

    /// Everything computed goes to memory.
    fn epilogue(&mut self) {
        let mut offset = 0;
        for pool in POOLS {
            for index in 0..pool.count {
                let name = format!("{}{index}", pool.prefix);
                match pool.ty {
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

    /// One statement. `together` says that all threads of the block come by.
    fn statement(&mut self, depth: usize, together: bool) {
        match self.random.below(if together { 26 } else { 18 }) {
            0..=10 => self.pure(),
            11 if depth > 0 => self.branch(depth, together),
            12 if depth > 0 => self.count_down(depth, together),
            13 => self.own_memory(),
            14 => self.atomic(),
            15 => self.local_memory(),
            16 => self.call(),
            17 if depth > 0 => self.switch(depth),
            18 | 19 => self.exchange(),
            20 | 21 => self.shuffle(),
            22 => self.vote(),
            23 => self.barrier_reduction(),
            24 => self.redux(),
            25 => self.carry_chain(),
            _ => self.pure(),
        }
    }

    fn pure(&mut self) {
        // Some choices of modifiers have no registers here; others do.
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
            if let Some(text) = instantiate(form, &mut self.random, &mut written) {
                let guard = if self.config.portable && !may_be_guarded(form) { 7 } else { self.random.below(8) };
                let text = match guard {
                    0 => format!("@{} {text}", self.reg(Type::Pred)),
                    1 => format!("@!{} {text}", self.reg(Type::Pred)),
                    _ => text,
                };
                self.line(&text);
                if self.config.portable {
                    taken.iter().for_each(|name| self.canonical_nan(name));
                }
                return;
            }
        }
    }

    /// Makes a NaN in a float register the one NaN.
    fn canonical_nan(&mut self, name: &str) {
        let (ty, nan) = match &name[..2] {
            "%f" => ("f32", "0f7FFFFFFF"),
            "%g" => ("f64", "0d7FFFFFFFFFFFFFFF"),
            _ => return,
        };
        self.line(&format!("setp.nan.{ty} %q, {name}, {name}"));
        self.line(&format!("@%q mov.{ty} {name}, {nan}"));
    }

    fn branch(&mut self, depth: usize, together: bool) {
        let (otherwise, end) = (self.label(), self.label());
        // A condition that is the same for all threads keeps them together.
        let uniform = together && self.random.one_in(3);
        let condition = if uniform {
            let limit = self.random.below(self.blocks as usize + 1);
            self.line("mov.u32 %x0, %ctaid.x");
            self.line(&format!("setp.lt.u32 %c, %x0, {limit}"));
            "%c".to_owned()
        } else {
            self.reg(Type::Pred)
        };
        self.line(&format!("@{condition} bra {otherwise}"));
        for _ in 0..1 + self.random.below(3) {
            self.statement(depth - 1, uniform);
        }
        self.line(&format!("bra{} {end}", if uniform { ".uni" } else { "" }));
        let _ = writeln!(self.body, "{otherwise}:");
        for _ in 0..self.random.below(3) {
            self.statement(depth - 1, uniform);
        }
        let _ = writeln!(self.body, "{end}:");
    }

    fn count_down(&mut self, depth: usize, together: bool) {
        let start = self.label();
        let counter = format!("%n{}", self.loops);
        self.loops += 1;
        self.most_loops = self.most_loops.max(self.loops);
        // Threads that count the same stay together.
        let uniform = together && self.random.one_in(2);
        if uniform {
            let count = 1 + self.random.below(4);
            self.line(&format!("mov.u32 {counter}, {count}"));
        } else {
            let register = self.reg(Type::B32);
            self.line(&format!("and.b32 {counter}, {register}, 3"));
        }
        let _ = writeln!(self.body, "{start}:");
        for _ in 0..1 + self.random.below(3) {
            self.statement(depth - 1, uniform);
        }
        self.line(&format!("sub.s32 {counter}, {counter}, 1"));
        self.line(&format!("setp.gt.s32 %c, {counter}, 0"));
        self.line(&format!("@%c bra {start}"));
        self.loops -= 1;
    }

    /// A jump through a table.
    fn switch(&mut self, depth: usize) {
        let labels: Vec<String> = (0..4).map(|_| self.label()).collect();
        let (table, end) = (self.label(), self.label());
        let register = self.reg(Type::B32);
        self.line(&format!("and.b32 %x0, {register}, 3"));
        let _ = writeln!(self.body, "{table}: .branchtargets {};", labels.join(", "));
        self.line(&format!("brx.idx %x0, {table}"));
        for label in &labels {
            let _ = writeln!(self.body, "{label}:");
            self.statement(depth - 1, false);
            self.line(&format!("bra {end}"));
        }
        let _ = writeln!(self.body, "{end}:");
    }

    /// Loads and stores of the thread's own global memory, in all widths and vectors.
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
        let space = *self.random.pick(&[".global", "", ".volatile.global", ".relaxed.gpu.global"]);
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

    /// Atomics on memory that only this thread touches: every operation, old value and all. Or on a sum that all share.
    fn atomic(&mut self) {
        if self.random.one_in(4) {
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

    /// An array of the thread's own, indexed by a value.
    fn local_memory(&mut self) {
        let (index, value, result) = (self.reg(Type::B32), self.reg(Type::B32), self.reg(Type::B32));
        self.line(&format!("and.b32 %x0, {index}, 15"));
        self.line("mad.wide.u32 %address, %x0, 4, %local");
        self.line(&format!("st.local.u32 [%address], {value}"));
        let other = self.reg(Type::B32);
        self.line(&format!("and.b32 %x0, {other}, 15"));
        self.line("mad.wide.u32 %address, %x0, 4, %local");
        self.line("cvta.local.u64 %generic, %address");
        self.line(&format!("ld.u32 {result}, [%generic]"));
    }

    fn call(&mut self) {
        let (left, right, result) = (self.reg(Type::B32), self.reg(Type::B64), self.reg(Type::B32));
        self.body.push_str("\t{\n\t.param .b32 p0;\n\t.param .b64 p1;\n\t.param .b32 r0;\n");
        self.line(&format!("st.param.b32 [p0], {left}"));
        self.line(&format!("st.param.b64 [p1], {right}"));
        if self.random.one_in(3) {
            self.body.push_str("proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _);\n");
            self.line("mov.u64 %address, mix");
            self.line("call (r0), %address, (p0, p1), proto");
        } else {
            self.line("call.uni (r0), mix, (p0, p1)");
        }
        self.line(&format!("ld.param.b32 {result}, [r0]"));
        self.body.push_str("\t}\n");
    }

    /// Each thread leaves a value, all wait, each takes its neighbour's.
    fn exchange(&mut self) {
        let ty = *self.random.pick(&[Type::B32, Type::B64, Type::F32]);
        let (value, result) = (self.reg(ty), self.reg(ty));
        let barrier = match self.random.below(3) {
            0 => "bar.sync 0".to_owned(),
            1 => "barrier.sync 1".to_owned(),
            _ if self.threads.is_multiple_of(32) => format!("bar.sync 2, {}", self.threads),
            _ => "bar.sync 0".to_owned(),
        };
        self.line(&barrier);
        self.line(&format!("st.shared{ty} [%slot], {value}"));
        self.line(&barrier);
        self.line(&format!("ld.shared{ty} {result}, [%other]"));
        self.line(&barrier);
    }

    fn shuffle(&mut self) {
        let mode = *self.random.pick(&["up", "down", "bfly", "idx"]);
        let (result, value) = (self.reg(Type::B32), self.reg(Type::B32));
        let with_predicate = if self.random.one_in(2) { format!("|{}", self.reg(Type::Pred)) } else { String::new() };
        // Only whole warps: a lane that does not exist has no value.
        let (amount, clamp) = if self.threads.is_multiple_of(32) {
            let amount =
                if mode == "idx" && self.random.one_in(2) { "%lane".to_owned() } else { self.random.below(32).to_string() };
            let segments = *self.random.pick(&[0, 0x1000, 0x1800, 0x1c00, 0x1e00]);
            (amount, if mode == "up" { segments } else { segments | 31 })
        } else {
            ("0".to_owned(), if mode == "up" { 0 } else { 31 })
        };
        let mode = if self.threads.is_multiple_of(32) { mode } else { "bfly" };
        self.line(&format!("shfl.sync.{mode}.b32 {result}{with_predicate}, {value}, {amount}, {clamp}, %mask"));
    }

    fn vote(&mut self) {
        let (value, word) = (self.reg(Type::Pred), self.reg(Type::B32));
        match self.random.below(4) {
            0 => self.line(&format!("vote.sync.ballot.b32 {word}, {value}, %mask")),
            1 => {
                let mode = *self.random.pick(&["all", "any", "uni"]);
                let result = self.reg(Type::Pred);
                self.line(&format!("vote.sync.{mode}.pred {result}, !{value}, %mask"));
            }
            2 => {
                let input = self.reg(Type::B32);
                self.line(&format!("match.any.sync.b32 {word}, {input}, %mask"));
            }
            _ => {
                let input = self.reg(Type::B64);
                self.line(&format!("match.all.sync.b64 {word}|{value}, {input}, %mask"));
            }
        }
        self.line("bar.warp.sync %mask");
    }

    fn barrier_reduction(&mut self) {
        let value = self.reg(Type::Pred);
        if self.random.one_in(2) {
            let word = self.reg(Type::B32);
            self.line(&format!("bar.red.popc.u32 {word}, 3, {value}"));
        } else {
            let mode = *self.random.pick(&["and", "or"]);
            let result = self.reg(Type::Pred);
            self.line(&format!("barrier.red.{mode}.pred {result}, 4, !{value}"));
        }
    }

    fn redux(&mut self) {
        if self.config.sm < 80 {
            return self.vote();
        }
        let operation = *self.random.pick(&["add.u32", "add.s32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32"]);
        let (result, value) = (self.reg(Type::B32), self.reg(Type::B32));
        self.line(&format!("redux.sync.{operation} {result}, {value}, %mask"));
    }

    /// 128-bit sums and differences over the carry flag.
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
