//! Statements: pure instructions, memory of a thread, and control flow.

use crate::forms::{instantiate, may_be_guarded};
use crate::pools::{Pool, pool_of};
use crate::writer::{Convergence, OWN_BYTES, Writer};
use broadloom_ptx::Type;
use broadloom_ptx::table::OperandKind;
use broadloom_random::Random;
use std::fmt::Write as _;

impl Writer<'_> {
    /// Writes one statement, at a place that threads reach together or not.
    pub(crate) fn statement(&mut self, depth: usize, convergence: Convergence) {
        let kinds = match convergence {
            Convergence::Diverged => 22,
            Convergence::Warp => 27,
            Convergence::Block => 32,
        };
        match self.random.below(kinds) {
            0..=7 => self.pure(),
            8..=10 if !self.config.portable && self.config.sm >= 90 => self.computed_nan(convergence),
            8..=10 => self.pure(),
            11 | 12 if depth > 0 => self.branch(depth, convergence),
            13 | 14 if depth > 0 => self.count_down(depth, convergence),
            15 => self.own_memory(),
            16 => self.atomic(),
            17 => self.local_memory(convergence),
            18 if self.call_function() => {}
            18 if self.config.portable && self.functions.calls_left.is_some() => self.pure(),
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
    fn branch(&mut self, depth: usize, convergence: Convergence) {
        let (otherwise, end) = (self.label(), self.label());
        let (condition, inside) = match (convergence, self.random.below(4)) {
            (Convergence::Block, 0) => {
                let limit = self.random.below(self.blocks as usize + 1);
                self.line(&format!("setp.lt.u32 %c, %home, {limit}"));
                ("%c".to_owned(), Convergence::Block)
            }
            (Convergence::Block | Convergence::Warp, 1) => {
                let mode = *self.random.pick(&["any", "all"]);
                let value = self.reg(Type::Pred);
                self.line(&format!("vote.sync.{mode}.pred %c, {value}, %mask"));
                ("%c".to_owned(), Convergence::Warp)
            }
            _ => {
                let value = self.reg(Type::Pred);
                (self.condition(value), Convergence::Diverged)
            }
        };
        let bang = if self.random.one_in(2) { "!" } else { "" };
        self.line(&format!("@{bang}{condition} bra {otherwise}"));
        for _ in 0..1 + self.random.below(3) {
            self.statement(depth - 1, inside);
        }
        self.line(&format!("bra{} {end}", if inside == Convergence::Block { ".uni" } else { "" }));
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
    fn count_down(&mut self, depth: usize, convergence: Convergence) {
        let (start, next, end) = (self.label(), self.label(), self.label());
        let counter = format!("%n{}", self.loops);
        self.loops += 1;
        self.most_loops = self.most_loops.max(self.loops);
        let inside = match (convergence, self.random.below(4)) {
            (Convergence::Block, 0) => {
                let count = 1 + self.random.below(4);
                self.line(&format!("mov.u32 {counter}, {count}"));
                Convergence::Block
            }
            (Convergence::Block | Convergence::Warp, 1) => {
                let register = self.reg(Type::B32);
                self.line(&format!("shfl.sync.idx.b32 {counter}, {register}, 0, 31, %mask"));
                self.line(&format!("and.b32 {counter}, {counter}, 3"));
                Convergence::Warp
            }
            _ => {
                let register = self.reg(Type::B32);
                self.line(&format!("and.b32 {counter}, {register}, 3"));
                Convergence::Diverged
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
            if inside == Convergence::Diverged && self.random.one_in(3) {
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
        self.statement(depth - 1, Convergence::Diverged);
        let two = self.condition(two);
        self.line(&format!("@{two} bra {second}"));
        self.statement(depth - 1, Convergence::Diverged);
        let _ = writeln!(self.body, "{first}:");
        self.statement(depth - 1, Convergence::Diverged);
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
            self.statement(depth - 1, Convergence::Diverged);
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
        let known = if self.functions.calls_left.is_some() { 2 } else { spaces.len() };
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
        if self.functions.calls_left.is_some() || self.random.one_in(4) {
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
    fn local_memory(&mut self, convergence: Convergence) {
        let (index, value, result) = (self.reg(Type::B32), self.reg(Type::B32), self.reg(Type::B32));
        self.line(&format!("and.b32 %x0, {index}, 15"));
        self.line("mad.wide.u32 %address, %x0, 4, %local");
        self.line(&format!("st.local.u32 [%address], {value}"));
        let other = self.reg(Type::B32);
        self.line(&format!("and.b32 %x0, {other}, 15"));
        self.line("mad.wide.u32 %address, %x0, 4, %local");
        // The assembler keeps the start of the local window in a register of the whole warp, also where lanes
        // have diverged: one side overwrites it for the other.
        if self.config.portable && convergence == Convergence::Diverged {
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
