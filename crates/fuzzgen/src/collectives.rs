//! Work of several threads: barriers, exchange through shared memory, shuffles and votes.

use crate::writer::{BINS, Convergence, Writer};
use broadloom_ptx::Type;

impl Writer<'_> {
    /// Writes an exchange: each thread stores a value, all wait, each loads its neighbour's.
    pub(crate) fn exchange(&mut self) {
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

    /// Writes a shuffle between the lanes of a mask; between any lanes if the mask is the whole warp.
    pub(crate) fn shuffle(&mut self, mask: &str, whole: bool) {
        let mode = *self.random.pick(&["up", "down", "bfly", "idx"]);
        let (result, value) = (self.reg(Type::B32), self.reg(Type::B32));
        let with_predicate = if self.random.one_in(2) { format!("|{}", self.reg(Type::Pred)) } else { String::new() };
        // Only whole warps: a lane that does not arrive has no value. In others all take that of the first,
        // or their own.
        let (mode, amount, clamp) = if whole && self.threads.is_multiple_of(32) {
            let amount = if mode == "idx" && self.random.one_in(2) {
                if self.random.one_in(2) { "%lane".to_owned() } else { self.reg(Type::B32) }
            } else {
                self.random.below(32).to_string()
            };
            let segments = *self.random.pick(&[0, 0x1000, 0x1800, 0x1c00, 0x1e00]);
            (mode, amount, if mode == "up" { segments } else { segments | 31 })
        } else if self.random.one_in(2) {
            self.line(&format!("brev.b32 %x0, {mask}"));
            self.line("clz.b32 %x0, %x0");
            ("idx", "%x0".to_owned(), 31)
        } else {
            ("bfly", "0".to_owned(), 31)
        };
        self.line(&format!("shfl.sync.{mode}.b32 {result}{with_predicate}, {value}, {amount}, {clamp}, {mask}"));
    }

    /// Writes a vote of the lanes of a mask.
    pub(crate) fn vote(&mut self, mask: &str) {
        let (value, word) = (self.reg(Type::Pred), self.reg(Type::B32));
        match self.random.below(4) {
            0 => self.line(&format!("vote.sync.ballot.b32 {word}, {value}, {mask}")),
            1 => {
                let mode = *self.random.pick(&["all", "any", "uni"]);
                let result = self.reg(Type::Pred);
                self.line(&format!("vote.sync.{mode}.pred {result}, !{value}, {mask}"));
            }
            2 => {
                let input = self.reg(Type::B32);
                self.line(&format!("match.any.sync.b32 {word}, {input}, {mask}"));
            }
            _ => {
                let input = self.reg(Type::B64);
                self.line(&format!("match.all.sync.b64 {word}|{value}, {input}, {mask}"));
            }
        }
        self.line(&format!("bar.warp.sync {mask}"));
    }

    /// Writes code in which some lanes of a warp diverge from the others and know the mask of their side.
    pub(crate) fn part_of_warp(&mut self, depth: usize) {
        let (otherwise, end) = (self.label(), self.label());
        let value = self.reg(Type::Pred);
        let others = ["not.b32 %some, %some", "and.b32 %some, %some, %mask"];
        self.line(&format!("vote.sync.ballot.b32 %some, {value}, %mask"));
        if self.config.portable {
            // The assembler keeps a ballot in a register of the warp. If one side computes its mask from it
            // after the branch, it does so in that register: the side that runs later then waits for lanes
            // that are not its own.
            others.into_iter().for_each(|line| self.line(&format!("@!{value} {line}")));
        }
        self.line(&format!("@!{value} bra {otherwise}"));
        self.with_some(depth);
        self.line(&format!("bra {end}"));
        self.place_label(&otherwise);
        if !self.config.portable {
            others.into_iter().for_each(|line| self.line(line));
        }
        self.with_some(depth);
        self.place_label(&end);
    }

    fn with_some(&mut self, depth: usize) {
        for _ in 0..1 + self.random.below(2) {
            match self.random.below(4) {
                0 => self.shuffle("%some", false),
                1 => self.vote("%some"),
                2 => self.redux("%some"),
                _ if depth > 0 => self.statement(depth - 1, Convergence::Diverged),
                _ => self.vote("%some"),
            }
        }
    }

    pub(crate) fn barrier_reduction(&mut self) {
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

    /// Writes a histogram: threads of a block count in shared memory, all wait, and each reads one counter.
    pub(crate) fn count_in_bins(&mut self) {
        let (value, result) = (self.reg(Type::B32), self.reg(Type::B32));
        let operation = *self.random.pick(&["add.u32", "xor.b32", "max.s32", "min.u32", "or.b32"]);
        let guard = if self.random.one_in(2) { format!("@{} ", self.reg(Type::Pred)) } else { String::new() };
        let source = self.reg(Type::B32);
        self.line("mov.u32 %x1, bins");
        self.line(&format!("and.b32 %x0, {value}, {}", BINS - 1));
        self.line("mad.lo.u32 %x0, %x0, 4, %x1");
        self.line(&format!("{guard}red.shared.{operation} [%x0], {source}"));
        self.line("bar.sync 0");
        let other = self.reg(Type::B32);
        self.line(&format!("and.b32 %x0, {other}, {}", BINS - 1));
        self.line("mad.lo.u32 %x0, %x0, 4, %x1");
        self.line(&format!("ld.shared.u32 {result}, [%x0]"));
        self.line("bar.sync 0");
    }

    /// Writes a gather: each thread stores a value, all wait, each loads that of a selected thread.
    pub(crate) fn gather(&mut self) {
        let (value, wanted, result) = (self.reg(Type::B32), self.reg(Type::B32), self.reg(Type::B32));
        self.line("bar.sync 0");
        self.line(&format!("st.shared.b32 [%slot], {value}"));
        self.line("bar.sync 0");
        self.line("mov.u32 %x1, exchange");
        self.line(&format!("rem.u32 %x0, {wanted}, {}", self.threads));
        self.line("mad.lo.u32 %x0, %x0, 16, %x1");
        if self.random.one_in(3) {
            self.line("cvt.u64.u32 %address, %x0");
            self.line("cvta.shared.u64 %generic, %address");
            self.line(&format!("ld.b32 {result}, [%generic]"));
        } else {
            self.line(&format!("ld.shared.b32 {result}, [%x0]"));
        }
        self.line("bar.sync 0");
    }

    /// Writes a reduction over the lanes of a mask.
    pub(crate) fn redux(&mut self, mask: &str) {
        if self.config.sm < 80 {
            return self.vote(mask);
        }
        let operation = *self.random.pick(&["add.u32", "add.s32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32"]);
        let (result, value) = (self.reg(Type::B32), self.reg(Type::B32));
        self.line(&format!("redux.sync.{operation} {result}, {value}, {mask}"));
    }
}
