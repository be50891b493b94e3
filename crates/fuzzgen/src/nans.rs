//! NaNs that arithmetic makes, and instructions that read their bits.
//!
//! The manual's arithmetic gives the canonical NaN. That of a host gives another one, mostly with another
//! sign. An executor that computes with the host's NaNs must make them canonical before their bits are read:
//! as a sign, by a move, in memory, by another thread.

use crate::pools::Pool;
use crate::writer::{Convergence, Writer};
use broadloom_ptx::{Form, Modifier, Opcode, Type};

/// Formats of halves, with the bits of infinity and the sign bits in a register.
const HALVES: [(&str, Type, u32, u32); 4] = [
    ("f16", Type::B16, 0x7c00, 0x8000),
    ("bf16", Type::B16, 0x7f80, 0x8000),
    ("f16x2", Type::B32, 0x7c00_7c00, 0x8000_8000),
    ("bf16x2", Type::B32, 0x7f80_7f80, 0x8000_8000),
];

/// Returns an instruction that makes the value of a register the result of arithmetic and keeps every number.
/// Every second register of floats has one; NaNs in the others keep the bits that they were loaded with.
pub(crate) fn computed(pool: &Pool, index: usize) -> Option<String> {
    let name = format!("{}{index}", pool.prefix);
    (pool.ty == Type::F32 && index % 2 == 1).then(|| format!("mul.f32 {name}, {name}, 0f3F800000"))
}

/// Returns whether an instruction reads the sign of a float.
pub(crate) fn reads_sign(form: &Form) -> bool {
    let takes = |modifier: Modifier| form.slots.iter().any(|slot| slot.choices.contains(&modifier));
    matches!(form.opcode, Opcode::Copysign | Opcode::Abs | Opcode::Neg | Opcode::Testp) || takes(Modifier::Xorsign)
}

impl Writer<'_> {
    /// Writes an operation that makes a NaN, and instructions that read its bits.
    pub(crate) fn computed_nan(&mut self, convergence: Convergence) {
        if self.random.one_in(6) {
            return self.half_nan();
        }
        let (nan, source, other) = (self.reg(Type::F32), self.reg(Type::B32), self.reg(Type::F32));
        let root = self.random.one_in(5);
        // A number of -1 or less, or infinity. Its sign or its magnitude depends on the thread.
        let (set, kept) = if root { (0xbf80_0000u32, u32::MAX) } else { (0x7f80_0000, 0xff80_0000) };
        self.line(&format!("or.b32 %x0, {source}, {}", set as i32));
        self.line(&format!("and.b32 %x0, %x0, {}", kept as i32));
        self.line(&format!("mov.b32 {nan}, %x0"));
        let operation = match self.random.below(4) {
            _ if root => format!("sqrt.rn.f32 {nan}, {nan}"),
            0 => format!("sub.f32 {nan}, {nan}, {nan}"),
            1 => format!("mul.f32 {nan}, 0f00000000, {nan}"),
            2 => format!("div.rn.f32 {nan}, {nan}, {nan}"),
            _ => format!("fma.rn.f32 {nan}, {nan}, 0f80000000, {other}"),
        };
        self.line(&operation);
        for _ in 0..1 + self.random.below(3) {
            self.read_nan(&nan, convergence);
        }
    }

    /// Returns a register other than a given one.
    fn reg_but(&mut self, ty: Type, other: &str) -> String {
        loop {
            let name = self.reg(ty);
            if name != other {
                return name;
            }
        }
    }

    /// Writes an instruction that depends on the bits of a float, or must not.
    fn read_nan(&mut self, nan: &str, convergence: Convergence) {
        let (number, float, word) = (self.reg_but(Type::F32, nan), self.reg_but(Type::F32, nan), self.reg(Type::B32));
        let (flag, place) = (self.reg(Type::Pred), self.random.below(16) * 4);
        let operands = if self.random.one_in(2) { format!("{nan}, {number}") } else { format!("{number}, {nan}") };
        match self.random.below(if convergence == Convergence::Diverged { 14 } else { 16 }) {
            0..=2 => {
                let opcode = self.minimum_or_maximum(true);
                self.line(&format!("{opcode}.f32 {float}, {operands}"));
            }
            3 => self.line(&format!("copysign.f32 {float}, {operands}")),
            4 => {
                let opcode = *self.random.pick(&["abs", "neg", "abs.ftz", "neg.ftz"]);
                self.line(&format!("{opcode}.f32 {float}, {nan}"));
                self.line(&format!("mov.b32 {word}, {float}"));
            }
            5 => self.line(&format!("mov.b32 {word}, {nan}")),
            6 => {
                let pair = self.reg(Type::B64);
                self.line(&format!("mov.b64 {pair}, {{{operands}}}"));
            }
            7 => {
                let class = *self.random.pick(&["finite", "infinite", "number", "notanumber", "normal", "subnormal"]);
                self.line(&format!("testp.{class}.f32 {flag}, {nan}"));
            }
            8 => {
                let comparison = *self.random.pick(&["lt", "ge", "neu", "ltu", "nan"]);
                match self.random.below(3) {
                    0 => self.line(&format!("setp.{comparison}.f32 {flag}, {operands}")),
                    1 => self.line(&format!("set.{comparison}.u32.f32 {word}, {operands}")),
                    _ => self.line(&format!("slct.b32.f32 {word}, {word}, %x0, {nan}")),
                }
            }
            9 => {
                let ty = *self.random.pick(&["f32", "b32"]);
                self.line(&format!("selp.{ty} {float}, {operands}, {flag}"));
                self.line(&format!("mov.b32 {word}, {float}"));
            }
            10 => {
                let (half, double) = (self.reg(Type::B16), self.reg(Type::F64));
                match self.random.below(4) {
                    0 => self.line(&format!("cvt.f64.f32 {double}, {nan}")),
                    1 => self.line(&format!("cvt.rn.f16.f32 {half}, {nan}")),
                    2 => self.line(&format!("cvt.rn.bf16x2.f32 {word}, {operands}")),
                    _ => self.line(&format!("cvt.rzi.s32.f32 {word}, {nan}")),
                }
            }
            11 => {
                let (space, base) = *self.random.pick(&[("global", "own"), ("local", "local")]);
                self.line(&format!("st.{space}.f32 [%{base}+{place}], {nan}"));
                self.line(&format!("ld.{space}.b32 {word}, [%{base}+{place}]"));
            }
            12 => match self.random.below(3) {
                0 => self.line(&format!("atom.global.exch.b32 {word}, [%own+{place}], {nan}")),
                1 => self.line(&format!("atom.global.add.f32 {float}, [%own+{place}], {nan}")),
                _ => self.line(&format!("atom.global.cas.b32 {word}, [%own+{place}], {word}, {nan}")),
            },
            13 => self.line(&format!("and.b32 {word}, {nan}, {}", i32::MIN)),
            14 => {
                self.line(&format!("shfl.sync.bfly.b32 {word}, {nan}, 0, 31, %mask"));
                self.line(&format!("redux.sync.xor.b32 {word}, {nan}, %mask"));
            }
            _ => {
                self.line(&format!("mov.b32 %x0, {nan}"));
                self.line("setp.lt.s32 %q, %x0, 0");
                self.line(&format!("vote.sync.ballot.b32 {word}, %q, %mask"));
                self.line("bar.warp.sync %mask");
            }
        }
    }

    fn minimum_or_maximum(&mut self, may_flush: bool) -> String {
        let opcode = *self.random.pick(&["min", "max"]);
        let flush = if may_flush && self.random.one_in(2) { ".ftz" } else { "" };
        let nan = if self.random.one_in(4) { ".NaN" } else { "" };
        format!("{opcode}{flush}{nan}.xorsign.abs")
    }

    /// Writes an operation that makes a NaN of halves, and an instruction that reads its sign.
    fn half_nan(&mut self) {
        let (format, ty, infinity, sign) = *self.random.pick(&HALVES);
        let (nan, source) = (self.reg(ty), self.reg(ty));
        let (number, result) = (self.reg_but(ty, &nan), self.reg(ty));
        let literal = |bits: u32| if ty == Type::B16 { i32::from(bits as i16) } else { bits as i32 };
        self.line(&format!("or{ty} {nan}, {source}, {}", literal(infinity)));
        self.line(&format!("and{ty} {nan}, {nan}, {}", literal(infinity | sign)));
        self.line(&format!("sub.{format} {nan}, {nan}, {nan}"));
        let operands = if self.random.one_in(2) { format!("{nan}, {number}") } else { format!("{number}, {nan}") };
        match self.random.below(3) {
            0 => {
                let opcode = *self.random.pick(&["abs", "neg"]);
                self.line(&format!("{opcode}.{format} {result}, {nan}"));
            }
            _ => {
                let opcode = self.minimum_or_maximum(!format.starts_with('b'));
                self.line(&format!("{opcode}.{format} {result}, {operands}"));
            }
        }
    }
}
