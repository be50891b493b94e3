//! Random kernels of integers, branches and loops, as text. All of them terminate.

use super::Random;
use std::fmt::Write;

/// Number of registers of each width that statements use.
const WORDS: usize = 8;
const LONGS: usize = 4;

struct Program<'a> {
    random: &'a mut Random,
    text: String,
    labels: usize,
    counters: usize,
}

/// Returns a kernel `k(u32 n, u32 m, u64 base)` with at least `statements` statements.
pub(crate) fn program(random: &mut Random, statements: usize) -> String {
    let mut program = Program { random, text: String::new(), labels: 0, counters: 0 };
    for _ in 0..statements {
        program.statement(2);
    }
    let Program { text, counters, .. } = program;
    let mut all = String::from(".entry k(.param .u32 n, .param .u32 m, .param .u64 base) {\n.reg .pred p<3>;\n");
    _ = writeln!(all, ".reg .b32 a<{WORDS}>, t<4>, c<{}>; .reg .b64 d<{LONGS}>;", counters + 1);
    all += "mov.u32 a0, %tid.x; mov.u32 a1, %tid.y; mov.u32 a2, %laneid; mov.u32 a3, %ctaid.x;\n";
    all += "ld.param.u32 a4, [n]; ld.param.u32 a5, [m]; mov.u32 a6, %ntid.x; mad.lo.s32 a7, a3, a6, a0;\n";
    all += "ld.param.u64 d0, [base]; cvt.u64.u32 d1, a0; mul.wide.s32 d2, a7, 4; add.s64 d3, d0, d2;\n";
    all += "setp.lt.s32 p0, a7, a4; setp.eq.u32 p1, a1, 0; setp.gt.u32 p2, a0, 31;\n";
    all + &text + "ret;\n}\n"
}

impl Program<'_> {
    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.random.below(choices.len())]
    }

    fn line(&mut self, line: String) {
        self.text += &line;
        self.text.push('\n');
    }

    fn word(&mut self) -> String {
        format!("a{}", self.random.below(WORDS))
    }

    fn long(&mut self) -> String {
        format!("d{}", self.random.below(LONGS))
    }

    fn predicate(&mut self) -> String {
        format!("p{}", self.random.below(3))
    }

    /// Returns a register or a number.
    fn operand(&mut self) -> String {
        match self.random.below(3) {
            0 => self.pick(&["0", "1", "2", "-1", "31", "32", "63", "64", "7", "1000", "2147483647"]).to_owned(),
            _ => self.word(),
        }
    }

    fn statement(&mut self, depth: usize) {
        match self.random.below(if depth == 0 { 14 } else { 18 }) {
            0..=6 => self.word_operation(),
            7..=9 => self.long_operation(),
            10..=12 => self.comparison(),
            13 => {
                let (d, a, b, p) = (self.word(), self.word(), self.operand(), self.predicate());
                self.line(format!("selp.b32 {d}, {a}, {b}, {p};"));
            }
            14 | 15 => self.branch(depth),
            _ => self.repeat(depth),
        }
    }

    fn word_operation(&mut self) {
        let (d, a, b, c) = (self.word(), self.word(), self.operand(), self.operand());
        let amount = self.pick(&[0, 1, 2, 3, 4, 5, 6, 8, 31]);
        let ones = self.pick(&["1", "3", "7", "31", "15", "24", "-32", "-4", "255", "1023", "5", "0xffff"]);
        let factor = self.pick(&["2", "3", "4", "-1", "-4", "16", "1024", "65536"]);
        let power = self.pick(&["1", "2", "4", "8", "16", "32", "3", "10"]);
        let line = match self.random.below(22) {
            0 | 1 => format!("add.s32 {d}, {a}, {b};"),
            2 => format!("sub.s32 {d}, {a}, {b};"),
            3 => format!("mul.lo.s32 {d}, {a}, {factor};"),
            4 => format!("mul.lo.s32 {d}, {a}, {b};"),
            5 => format!("mad.lo.s32 {d}, {a}, {factor}, {c};"),
            6 => format!("mad.lo.s32 {d}, {a}, {b}, {c};"),
            7 => format!("shl.b32 {d}, {a}, {amount};"),
            8 => format!("shr.u32 {d}, {a}, {amount};"),
            9 => format!("shr.s32 {d}, {a}, {amount};"),
            10 | 11 => format!("and.b32 {d}, {a}, {ones};"),
            12 => format!("or.b32 {d}, {a}, {b};"),
            13 => format!("xor.b32 {d}, {a}, {b};"),
            14 => format!("not.b32 {d}, {a};"),
            15 => format!("min.s32 {d}, {a}, {b};"),
            16 => format!("max.u32 {d}, {a}, {b};"),
            17 => format!("div.u32 {d}, {a}, {power};"),
            18 => format!("rem.u32 {d}, {a}, {power};"),
            19 => format!("div.s32 {d}, {a}, {power};"),
            20 => format!("bfe.u32 {d}, {a}, {amount}, {power};"),
            _ => format!("mov.u32 {d}, {};", self.pick(&["%tid.x", "%tid.y", "%laneid", "%ctaid.x", "%nctaid.x", "7"])),
        };
        self.line(line);
    }

    fn long_operation(&mut self) {
        let (d, e, f, a, b) = (self.long(), self.long(), self.long(), self.word(), self.word());
        let factor = self.pick(&["4", "8", "-4", "1", "100"]);
        let line = match self.random.below(13) {
            0 => format!("cvt.s64.s32 {d}, {a};"),
            1 => format!("cvt.u64.u32 {d}, {a};"),
            2 => format!("mul.wide.s32 {d}, {a}, {factor};"),
            3 => format!("mul.wide.u32 {d}, {a}, {};", factor.trim_start_matches('-')),
            4 => format!("mad.wide.s32 {d}, {a}, {factor}, {e};"),
            5 => format!("add.s64 {d}, {e}, {f};"),
            6 => format!("shl.b64 {d}, {e}, 2;"),
            7 => format!("cvt.u32.u64 {b}, {d};"),
            8 => format!("ld.global.u32 {a}, [{d}+4];"),
            9 => format!("ld.shared.u32 {a}, [{b}];"),
            10 => format!("ld.local.u32 {a}, [{b}];"),
            11 => format!("cvta.to.global.u64 {d}, {e};"),
            _ => format!("sub.s64 {d}, {e}, {f};"),
        };
        self.line(line);
    }

    fn comparison(&mut self) {
        let (p, a, b) = (self.predicate(), self.word(), self.operand());
        let relation = self.pick(&["lt", "le", "gt", "ge", "eq", "ne"]);
        let ty = self.pick(&["s32", "u32"]);
        let line = match self.random.below(5) {
            0 => format!("and.pred {p}, {}, {};", self.predicate(), self.predicate()),
            1 => format!("setp.{relation}.and.{ty} {p}, {a}, {b}, {};", self.predicate()),
            _ => format!("setp.{relation}.{ty} {p}, {a}, {b};"),
        };
        self.line(line);
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    fn body(&mut self, depth: usize) {
        for _ in 0..1 + self.random.below(4) {
            self.statement(depth - 1);
        }
    }

    fn branch(&mut self, depth: usize) {
        let (otherwise, end, p) = (self.label(), self.label(), self.predicate());
        let not = self.pick(&["", "!"]);
        self.line(format!("@{not}{p} bra {otherwise};"));
        self.body(depth);
        if self.random.below(2) == 0 {
            self.line(format!("{otherwise}:"));
        } else {
            self.line(format!("bra {end};\n{otherwise}:"));
            self.body(depth);
        }
        self.line(format!("{end}:"));
    }

    /// Emits a loop of a few iterations by a counter that nothing else writes, with other exits and back
    /// edges.
    fn repeat(&mut self, depth: usize) {
        let (head, end) = (self.label(), self.label());
        let counter = format!("c{}", self.counters);
        self.counters += 1;
        let (start, step, limit) =
            self.pick(&[("0", 1, "3"), ("0", 4, "12"), ("5", -1, "0"), ("a0", 32, "100"), ("a2", 8, "40")]);
        let relation = if step > 0 { "lt" } else { "gt" };
        let top = self.random.below(2) == 0;
        let test = match (start, self.random.below(3)) {
            ("0" | "5", 0) => format!("setp.ne.s32 p0, {counter}, {limit};"),
            _ => format!("setp.{relation}.s32 p0, {counter}, {limit};"),
        };
        // A start value from a thread's own index may have been overwritten: it is read again.
        match start {
            "a0" => self.line(format!("mov.u32 {counter}, %tid.x;")),
            "a2" => self.line(format!("mov.u32 {counter}, %laneid;")),
            _ => self.line(format!("mov.u32 {counter}, {start};")),
        }
        self.line(format!("{head}:"));
        if top {
            self.line(format!("{test}\n@!p0 bra {end};"));
        }
        self.body(depth);
        if self.random.below(2) == 0 {
            let p = self.predicate();
            self.line(format!("@{p} bra {end};"));
            self.body(depth);
        }
        let word = self.word();
        if self.random.below(2) == 0 {
            self.line(format!("mov.u32 {word}, {counter};"));
        }
        self.line(format!("add.s32 {counter}, {counter}, {step};"));
        if top {
            self.line(format!("bra {head};\n{end}:"));
        } else {
            self.line(format!("{test}\n@p0 bra {head};\n{end}:"));
        }
    }
}
