//! Kernel around its statements: declarations, initial values of the registers, and the output.

use crate::nans::computed;
use crate::pools::POOLS;
use crate::writer::{BINS, Convergence, INPUT_WORDS, OWN_BYTES, SHARED_SUMS, Writer, used_registers};
use broadloom_ptx::Type;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Kernel with its launch. It takes two addresses: the data it reads (`input`) and the memory it writes
/// (`output`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The module as text; the kernel is called `fuzz`.
    pub text: String,
    /// Seed that it was generated from.
    pub seed: u64,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads per block.
    pub block: [u32; 3],
    /// Contents of the input.
    pub input: Vec<u32>,
    /// Size of the buffer that the kernel writes.
    pub output_bytes: usize,
}

impl Kernel {
    /// Returns the number of threads of the launch.
    pub fn threads(&self) -> usize {
        self.grid.iter().chain(&self.block).map(|n| *n as usize).product()
    }

    /// Describes a byte of the output of a kernel from [`generate`](crate::generate).
    pub fn describe_byte(&self, byte: usize) -> String {
        describe_byte(self.threads(), byte)
    }
}

impl Writer<'_> {
    /// Writes the kernel with random statements.
    pub(crate) fn kernel(mut self) -> Kernel {
        if self.random.one_in(4) {
            let count = 1 + self.random.below(3);
            self.write_functions(count);
            // Ensures that they are called.
            self.call_function();
        }
        for _ in 0..self.config.statements {
            self.statement(self.config.depth, Convergence::Block);
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
        text.push_str(&self.functions.module_text());
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
}

/// Describes a byte of the output, for a number of threads.
fn describe_byte(threads: usize, byte: usize) -> String {
    let Some(own) = byte.checked_sub(SHARED_SUMS) else { return format!("byte {byte} of the sums") };
    let Some(dump) = own.checked_sub(threads * OWN_BYTES) else {
        return format!("byte {} of the memory of thread {}", own % OWN_BYTES, own / OWN_BYTES);
    };
    let bytes = Writer::dump_bytes();
    let mut registers = POOLS.iter().flat_map(|pool| (0..pool.count).map(move |index| format!("{}{index}", pool.prefix)));
    let name = registers.nth(dump % bytes / 8).unwrap_or_default();
    format!("register {name} of thread {}", dump / bytes)
}
