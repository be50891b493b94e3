//! Functions that call themselves, each other, and functions from a table.
//!
//! They have the registers of a kernel, initialised from the kernel's input, their own local memory, and the
//! thread's own part of global memory. Their result is computed from everything that they computed. The first
//! parameter is the remaining call depth, and calls stand outside loops, so every call returns. No lane reads
//! memory that others change.

use crate::pools::POOLS;
use crate::writer::{Convergence, Functions, INPUT_WORDS, Writer, used_registers};
use broadloom_ptx::Type;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Maximum calls in one function: two that go three deep are seven.
const MOST_CALLS: usize = 2;
/// Maximum depth of calls from the kernel.
const DEEPEST: u32 = 3;

/// Parameters and results of a function.
const SIGNATURE: &str =
    "(.param .b32 depth, .param .b32 left, .param .b64 right, .param .b64 in, .param .b64 own, .param .b64 sums)";

impl Functions {
    /// Returns declarations, the table of all functions, and the functions.
    pub(crate) fn module_text(&self) -> String {
        if self.count == 0 {
            return String::new();
        }
        let mut text = String::new();
        for number in 0..self.count {
            let _ = writeln!(text, ".func (.param .b32 result) walk{number}{SIGNATURE};");
        }
        let names: Vec<String> = (0..self.count).map(|number| format!("walk{number}")).collect();
        let _ = writeln!(text, ".global .u64 walks[{}] = {{{}}};", self.count, names.join(", "));
        text + &self.text
    }
}

impl Writer<'_> {
    /// Writes functions before the kernel.
    pub(crate) fn write_functions(&mut self, count: usize) {
        self.functions.count = count;
        for number in 0..count {
            // Kernels with recursive functions differ on GPUs, or do not terminate; see `docs/CUDA.md`.
            self.functions.calls_left = Some(if self.config.portable { 0 } else { MOST_CALLS });
            for _ in 0..1 + self.random.below(4) {
                self.statement(self.config.depth.min(2), Convergence::Diverged);
            }
            let middle = self.take_body();
            let used = used_registers(&middle);
            self.start_function(&used);
            let start = self.take_body();
            self.finish_function(&used);
            let end = self.take_body();
            let text = &mut self.functions.text;
            let _ = writeln!(text, ".func (.param .b32 result) walk{number}{SIGNATURE}\n{{");
            for pool in POOLS {
                let _ = writeln!(text, "\t.reg {} {}<{}>;", pool.ty, pool.prefix, pool.count);
            }
            let loops = self.most_loops + 1;
            let text = &mut self.functions.text;
            let _ = writeln!(text, "\t.reg .b64 %in, %own, %sums, %local, %address, %generic;");
            let _ = writeln!(text, "\t.reg .b32 %depth, %x<4>, %n<{loops}>;\n\t.reg .pred %c, %q;");
            let _ = writeln!(text, "\t.local .align 16 .b8 scratch[64];\n{start}{middle}{end}\tret;\n}}\n");
        }
        self.functions.calls_left = None;
    }

    fn start_function(&mut self, used: &BTreeSet<String>) {
        for (register, param) in [("%in", "in"), ("%own", "own"), ("%sums", "sums")] {
            self.line(&format!("ld.param.b64 {register}, [{param}]"));
        }
        self.line("ld.param.b32 %depth, [depth]");
        self.line("ld.param.b32 %x1, [left]");
        self.line("mov.u64 %local, scratch");
        for offset in (0..64).step_by(16) {
            self.line(&format!("st.local.v4.u32 [%local+{offset}], {{%x1, %depth, %x1, {offset}}}"));
        }
        for pool in POOLS {
            for index in 0..pool.count {
                let word = self.random.below(INPUT_WORDS / 2) * 8;
                let name = format!("{}{index}", pool.prefix);
                match pool.ty {
                    _ if !used.contains(&name) => {}
                    Type::Pred => {
                        let limit = self.random.corner32() as i32;
                        self.line(&format!("ld.global.u32 %x0, [%in+{word}]"));
                        self.line(&format!("setp.lt.s32 {name}, %x0, {limit}"));
                    }
                    Type::B32 if index == 0 => self.line(&format!("mov.b32 {name}, %x1")),
                    Type::B64 if index == 0 => self.line(&format!("ld.param.b64 {name}, [right]")),
                    ty => self.line(&format!("ld.global{ty} {name}, [%in+{word}]")),
                }
            }
        }
    }

    /// Combines everything computed into the result.
    fn finish_function(&mut self, used: &BTreeSet<String>) {
        self.line("mov.b32 %x1, %depth");
        for pool in POOLS {
            for index in 0..pool.count {
                let name = format!("{}{index}", pool.prefix);
                if !used.contains(&name) {
                    continue;
                }
                match pool.ty {
                    Type::Pred => self.line(&format!("selp.u32 %x0, 1, 0, {name}")),
                    ty if ty.bits() == 64 => {
                        self.line(&format!("mov.b64 {{%x0, %x2}}, {name}"));
                        self.line("mad.lo.u32 %x1, %x1, 31, %x2");
                    }
                    ty if ty.bits() == 16 => self.line(&format!("cvt.u32.u16 %x0, {name}")),
                    _ => self.line(&format!("mov.b32 %x0, {name}")),
                }
                self.line("mad.lo.u32 %x1, %x1, 31, %x0");
            }
        }
        self.line("st.param.b32 [result], %x1");
    }

    /// Calls one of the functions, or one that a value selects. Returns `false` if no call is allowed.
    pub(crate) fn call_function(&mut self) -> bool {
        if self.functions.count == 0
            || self.functions.calls_left == Some(0)
            || (self.functions.calls_left.is_some() && self.loops > 0)
        {
            return false;
        }
        let end = self.label();
        match &mut self.functions.calls_left {
            Some(left) => {
                *left -= 1;
                self.line("setp.eq.u32 %c, %depth, 0");
                self.line(&format!("@%c bra {end}"));
                self.line("sub.u32 %x0, %depth, 1");
            }
            None => {
                let register = self.reg(Type::B32);
                self.line(&format!("and.b32 %x0, {register}, {DEEPEST}"));
            }
        }
        let (left, right, result) = (self.reg(Type::B32), self.reg(Type::B64), self.reg(Type::B32));
        let number = self.random.below(self.functions.count);
        let through_table = self.random.one_in(3);
        if through_table {
            let register = self.reg(Type::B32);
            self.line(&format!("rem.u32 %x1, {register}, {}", self.functions.count));
            self.line("mov.u64 %address, walks");
            self.line("mad.wide.u32 %address, %x1, 8, %address");
            self.line("ld.global.u64 %address, [%address]");
        }
        self.block("{\n\t.param .b32 p0, p1;\n\t.param .b64 p2, p3, p4, p5;\n\t.param .b32 r0;");
        for (index, (ty, register)) in
            [("b32", "%x0"), ("b32", left.as_str()), ("b64", right.as_str()), ("b64", "%in"), ("b64", "%own"), ("b64", "%sums")]
                .into_iter()
                .enumerate()
        {
            self.line(&format!("st.param.{ty} [p{index}], {register}"));
        }
        let all = "(p0, p1, p2, p3, p4, p5)";
        if through_table {
            let params = "(.param .b32 _, .param .b32 _, .param .b64 _, .param .b64 _, .param .b64 _, .param .b64 _)";
            self.block(&format!("proto: .callprototype (.param .b32 _) _ {params};"));
            self.line(&format!("call (r0), %address, {all}, proto"));
        } else {
            self.line(&format!("call (r0), walk{number}, {all}"));
        }
        self.line(&format!("ld.param.b32 {result}, [r0]"));
        self.block("}");
        self.place_label(&end);
        true
    }
}
