//! Random control flow computes the same before and after `linearise`, for any divergence.
//!
//! A program consists of statements in nested loops and labelled sections, with exits out of any of them at
//! any point. That covers every reducible graph. Conditions are uniform among the lanes that reach them (the
//! register is called `%u…`) or not (`%d…`). Threads record their actions in their own memory.

use broadloom_analysis::Facts;
use broadloom_device::{Argument, Device, Launch};
use broadloom_diag::Sources;
use broadloom_interp::{Interp, Options};
use broadloom_ptx::{Block, Function, Module, Verified, parse, print, verify};
use broadloom_random::Random;
use broadloom_transform::pipeline::{STAGES, Verification, pass, run_pass};
use broadloom_transform::{check, from_ssa, linearise};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of words that a thread may record.
const WORDS: usize = 64;
const BLOCKS: [[u32; 3]; 5] = [[32, 1, 1], [64, 1, 1], [20, 1, 1], [33, 1, 1], [7, 3, 1]];

/// Jump target: the end of a section, or the head or end of a loop.
#[derive(Clone)]
struct Place {
    label: String,
}

struct Generator {
    random: Random,
    text: String,
    places: Vec<Place>,
    /// Counters of the enclosing loops, innermost last.
    counters: Vec<usize>,
    labels: usize,
    loops: usize,
    left: usize,
    /// True if barriers and shuffles are allowed here.
    top: bool,
}

impl Generator {
    fn kernel(seed: u64) -> String {
        let random = Random::new(seed);
        let mut generator =
            Generator { random, text: String::new(), places: vec![], counters: vec![], labels: 0, loops: 0, left: 40, top: true };
        for index in 0..4 {
            generator.line(&format!("mad.lo.u32 %v{index}, %id, {}, {};", 2 * index + 1, 17 * index));
        }
        generator.line("cvt.rn.f64.u32 %w, %id;");
        generator.line("setp.eq.u32 %q, %v1, %v2;");
        while generator.left > 0 {
            generator.top = true;
            generator.statement(0);
        }
        let body = std::mem::take(&mut generator.text);
        let counters: String = (0..generator.loops).map(|index| format!(".reg .b32 %k{index};\n")).collect();
        format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 facts, .param .u32 n) {{
.reg .b32 %v<4>, %a, %b, %id, %pos, %n;\n.reg .b64 %out, %facts, %to;\n.reg .f64 %w;\n.reg .pred %d, %u, %q;\n{counters}
mov.u32 %a, %tid.y;\nmov.u32 %b, %ntid.x;\nmov.u32 %id, %tid.x;\nmad.lo.u32 %id, %a, %b, %id;
mov.u32 %a, %ctaid.x;\nmov.u32 %n, %ntid.y;\nmul.lo.u32 %b, %b, %n;\nmad.lo.u32 %id, %a, %b, %id;
ld.param.u64 %out, [out];\nld.param.u64 %facts, [facts];\nld.param.u32 %n, [n];
mul.wide.u32 %to, %id, {};\nadd.s64 %out, %out, %to;\nmov.u32 %pos, 0;\n{body}
{record}}}\n",
            4 * WORDS,
            record = "st.global.u32 [%out+8], %v0;\nst.global.u32 [%out+12], %v1;\nst.global.f64 [%out+16], %w;\nret;\n"
        )
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{text}");
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    /// Emits a condition and returns its name.
    fn condition(&mut self) -> String {
        let uniform = self.random.one_in(2);
        let (a, b) = (self.random.below(4), self.random.below(4));
        let bound = self.random.below(5);
        let sign = if self.random.one_in(3) { "!" } else { "" };
        if !uniform {
            match self.random.below(3) {
                0 => self.line(&format!("xor.b32 %a, %v{a}, %id;\nand.b32 %a, %a, 7;\nsetp.gt.u32 %d, %a, {bound};")),
                1 => self.line(&format!("add.u32 %a, %v{a}, %v{b};\nand.b32 %a, %a, 3;\nsetp.eq.u32 %d, %a, {};", bound & 3)),
                _ => self.line(&format!("shr.u32 %a, %id, {bound};\nand.b32 %a, %a, 1;\nsetp.ne.u32 %d, %a, 0;")),
            }
            return format!("{sign}%d");
        }
        match (self.random.below(3), self.counters.is_empty()) {
            (0, false) => {
                let counter = self.counters[self.random.below(self.counters.len())];
                self.line(&format!("and.b32 %a, %k{counter}, 3;\nsetp.gt.u32 %u, %a, {bound};"));
            }
            (1, false) => {
                let counter = self.counters[self.counters.len() - 1];
                self.line(&format!("and.b32 %a, %k{counter}, 7;\nmul.wide.u32 %to, %a, 4;\nadd.s64 %to, %to, %facts;"));
                self.line("ld.global.u32 %a, [%to];\nsetp.eq.u32 %u, %a, 1;");
            }
            _ => self
                .line(&format!("mov.u32 %a, %ctaid.x;\nadd.u32 %a, %a, %n;\nand.b32 %a, %a, 3;\nsetp.gt.u32 %u, %a, {bound};")),
        }
        format!("{sign}%u")
    }

    fn simple(&mut self) {
        let (a, b, c) = (self.random.below(4), self.random.below(4), self.random.below(4));
        let number = self.random.below(1000);
        match self.random.below(8) {
            0 => self.line(&format!("add.u32 %v{a}, %v{b}, {number};")),
            1 => self.line(&format!("mad.lo.u32 %v{a}, %v{b}, %v{c}, {number};")),
            2 => self.line("fma.rn.f64 %w, %w, 0d3FF8000000000000, 0d3FF0000000000000;"),
            3 => self.line(&format!("setp.lt.u32 %q, %v{a}, %v{b};")),
            4 => self.line(&format!("selp.b32 %v{a}, %v{b}, %v{c}, %q;")),
            5 => self.line(&format!("@%q xor.b32 %v{a}, %v{b}, {number};")),
            6 => self.line(&format!("ld.global.u32 %a, [%out+8];\nadd.u32 %v{a}, %v{a}, %a;")),
            _ => {
                // Recorded at the thread's current position.
                self.line(&format!("add.u32 %pos, %pos, 1;\nand.b32 %b, %pos, {};\nadd.u32 %b, %b, 8;", WORDS - 17));
                self.line(&format!("mul.wide.u32 %to, %b, 4;\nadd.s64 %to, %to, %out;\nst.global.u32 [%to], %v{a};"));
            }
        }
    }

    fn sequence(&mut self, depth: usize) {
        let top = std::mem::replace(&mut self.top, false);
        for _ in 0..1 + self.random.below(3) {
            self.statement(depth + 1);
        }
        self.top = top;
    }

    fn statement(&mut self, depth: usize) {
        self.left = self.left.saturating_sub(1);
        let deep = depth > 5 || self.left == 0;
        match self.random.below(if deep { 5 } else { 16 }) {
            0..=3 => self.simple(),
            4 | 5 => self.leave(),
            6..=8 => {
                let (other, end) = (self.label(), self.label());
                let condition = self.condition();
                self.line(&format!("@{condition} bra {other};"));
                self.sequence(depth);
                if self.random.one_in(2) {
                    self.line(&format!("bra {end};\n{other}:"));
                    self.sequence(depth);
                    self.line(&format!("{end}:"));
                } else {
                    self.line(&format!("{other}:"));
                }
            }
            9..=11 => {
                let label = self.label();
                self.places.push(Place { label: label.clone() });
                self.sequence(depth);
                self.leave();
                self.sequence(depth);
                self.places.pop();
                self.line(&format!("{label}:"));
            }
            12 if self.top => self.line("bar.sync 0;"),
            13 if self.top => self.line("shfl.sync.bfly.b32 %v3, %v3, 1, 31, -1;"),
            _ => self.a_loop(depth),
        }
    }

    fn a_loop(&mut self, depth: usize) {
        let (head, next, end) = (self.label(), self.label(), self.label());
        let counter = self.loops;
        self.loops += 1;
        let rounds = 1 + self.random.below(5);
        let limit = if self.random.one_in(2) {
            format!("setp.gt.u32 %u, %k{counter}, {rounds};\n@%u bra {end};")
        } else {
            format!("and.b32 %a, %id, 3;\nadd.u32 %a, %a, {rounds};\nsetp.gt.u32 %d, %k{counter}, %a;\n@%d bra {end};")
        };
        self.line(&format!("mov.u32 %k{counter}, 0;\n{head}:\nadd.u32 %k{counter}, %k{counter}, 1;"));
        let first = self.random.one_in(2);
        if first {
            self.line(&limit);
        }
        self.places.push(Place { label: end.clone() });
        self.places.push(Place { label: next.clone() });
        self.counters.push(counter);
        self.sequence(depth);
        self.counters.pop();
        self.places.truncate(self.places.len() - 2);
        self.line(&format!("{next}:"));
        if !first {
            self.line(&limit);
        }
        self.line(&format!("bra {head};\n{end}:"));
    }

    /// Emits an exit from an enclosing construct, or from the kernel.
    fn leave(&mut self) {
        let condition = self.condition();
        if self.places.is_empty() || self.random.one_in(8) {
            self.line(&format!("@{condition} exit;"));
            return;
        }
        let index = self.random.below(self.places.len());
        let label = self.places[index].label.clone();
        self.line(&format!("@{condition} bra {label};"));
    }
}

fn module(text: &str) -> Module {
    let mut sources = Sources::new();
    let id = sources.add("k.ptx", text);
    parse(&sources, id).unwrap_or_else(|errors| panic!("{}\n{text}", sources.render_all(&errors)))
}

/// Returns whether a block ends in a branch whose condition was generated uniform.
fn is_uniform(function: &Function, block: Block) -> bool {
    let last = function.blocks[block].insts.last().map(|last| &function.insts[*last]);
    last.and_then(|last| last.guard).is_some_and(|guard| function.regs[guard.reg].name.starts_with("%u"))
}

/// Source of the divergence information.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Divergence {
    /// Names of the conditions.
    Named,
    /// Everything is divergent.
    All,
    /// The analysis.
    Shapes,
}

/// Returns a module whose kernel is linearised.
fn linear(module: &Module, divergence: Divergence, block: [u32; 3]) -> Result<Verified, String> {
    let func = module.kernels().next().ok_or("no kernel")?.0;
    let mut function = module.functions[func].clone();
    let stages = STAGES.iter().filter(|stage| matches!(stage.name, "lowered" | "ssa"));
    for next in stages.flat_map(|stage| stage.passes).copied().chain(pass("unify_exits")) {
        run_pass(next, module, &mut function, &Default::default(), Verification::Always)
            .map_err(|failure| failure.to_string())?;
    }
    let before = function.clone();
    match divergence {
        Divergence::Named => {
            linearise::run(module, &mut function, &|at| !is_uniform(&before, at), linearise::Blocks::Masked(block))
        }
        Divergence::All => linearise::run(module, &mut function, &|_| true, linearise::Blocks::Masked(block)),
        Divergence::Shapes => linearise::run_for(module, &mut function, &Facts::new(block)),
    }
    .map_err(|reason| reason.text)?;
    let mut shown = module.clone();
    shown.functions[func] = function.clone();
    check(linearise::NAME, module, &function).map_err(|broken| format!("{broken}\n{}", print(&shown)))?;
    from_ssa::run(module, &mut function);
    check(from_ssa::NAME, module, &function).map_err(|broken| broken.to_string())?;
    let mut changed = module.clone();
    changed.functions[func] = function;
    verify(changed).map_err(|errors| format!("{errors:?}"))
}

fn run(module: Verified, block: [u32; 3]) -> Result<Vec<u32>, String> {
    let device = Device::new(Interp::new(Options::default()));
    let loaded = device.load(&Arc::new(module)).map_err(|error| error.to_string())?;
    let threads = block.iter().product::<u32>() as usize * 2;
    let out = device.zeros::<u32>(threads * WORDS).map_err(|error| error.to_string())?;
    let facts = device.upload(&[1u32, 0, 1, 1, 0, 0, 1, 0]).map_err(|error| error.to_string())?;
    let launch = Launch::new([2, 1, 1], block).time_limit(Duration::from_secs(20));
    let arguments = [Argument::from(&out), Argument::from(&facts), Argument::from(3u32)];
    let kernel = loaded.kernel("k").map_err(|error| error.to_string())?;
    kernel.launch(&launch, &arguments).map_err(|error| error.to_string())?;
    device.synchronise().map_err(|error| error.to_string())?;
    out.read().map_err(|error| error.to_string())
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`, and it takes a number")))
}

#[test]
fn random_control_flow_computes_the_same() {
    let first = setting("BROADLOOM_FUZZ_SEED", 1);
    let count = setting("BROADLOOM_FUZZ_KERNELS", 80);
    let (mut taken, mut refused) = (0, 0);
    for seed in first..first + count {
        let text = Generator::kernel(seed);
        let module = module(&text);
        let block = BLOCKS[(seed % 5) as usize];
        let plain = verify(module.clone()).unwrap_or_else(|errors| panic!("seed {seed}: {errors:?}\n{text}"));
        let expected = run(plain, block).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        for divergence in [Divergence::Named, Divergence::All, Divergence::Shapes] {
            let linear = match linear(&module, divergence, block) {
                Ok(linear) => linear,
                Err(reason) if reason.contains("lanes") => {
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("seed {seed} {block:?} {divergence:?}: {error}\n{text}"),
            };
            taken += 1;
            let shown = print(&linear);
            let found = run(linear, block)
                .unwrap_or_else(|error| panic!("seed {seed} {block:?} {divergence:?}: {error}\n{text}\n{shown}"));
            if found != expected {
                let at = found.iter().zip(&expected).position(|(a, b)| a != b).unwrap_or(0);
                panic!("seed {seed} {block:?} {divergence:?}: thread {} word {}\n{text}\n{shown}", at / WORDS, at % WORDS);
            }
        }
    }
    assert!(taken > 4 * refused, "{refused} refused, {taken} taken");
}
