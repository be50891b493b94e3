//! Products: `mma` and `wmma.mma`.

use super::{LANES, ProductShape, Role, is_plain, per_accumulator, per_register};
use crate::soft::{Flush, Format, Number, Overflow, Rounding};
use crate::{sign_extend, truncate};
use broadloom_ptx::{InstData, Modifier, Opcode, Type};

/// Replacement of multiplication for single bits; the resulting ones are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Logic {
    /// Bits set in both.
    And,
    /// Bits that differ.
    Xor,
}

/// Product of two matrices plus a third, as an instruction describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    /// Its sizes.
    pub shape: ProductShape,
    /// Type of an element of the left factor.
    pub a: Type,
    /// Type of an element of the right factor.
    pub b: Type,
    /// Type of the addend.
    pub c: Type,
    /// Type of the result.
    pub d: Type,
    /// Number of registers of a lane for the result, the factors, and the addend, in the order of the
    /// operands.
    pub registers: [u32; 4],
    /// True if integer sums saturate.
    pub saturates: bool,
    /// Operation on single bits.
    pub logic: Option<Logic>,
    /// Rounding of `f64` sums.
    rounding: Modifier,
    /// Four products of `m8n8k4`, each by two groups of four lanes; whether the left factor is column-major,
    /// and the right one row-major.
    quads: Option<(bool, bool)>,
}

impl Product {
    /// Returns the product that an instruction computes; `None` for other instructions and for those that
    /// this does not describe.
    pub fn of(inst: &InstData) -> Option<Product> {
        let opcode = inst.opcode()?;
        if !matches!(opcode, Opcode::Mma | Opcode::WmmaMma) || !is_plain(inst) {
            return None;
        }
        let shape = ProductShape::of(inst)?;
        let types: Vec<Type> = inst.types().collect();
        let (d, a, b, c) = match types.as_slice() {
            [d, a, b, c] => (*d, *a, *b, *c),
            // `wmma.mma` of halves does not name their type.
            [d, c] => (*d, Type::F16, Type::F16, *c),
            _ => return None,
        };
        let count = |index: usize| inst.operands.get(index).map_or(0, |operand| operand.elements().len() as u32);
        let layouts: Vec<bool> = inst
            .modifiers()
            .filter(|modifier| matches!(modifier, Modifier::Row | Modifier::Col))
            .map(|modifier| modifier == Modifier::Col)
            .collect();
        let quads = (shape == ProductShape { m: 8, n: 8, k: 4 } && a == Type::F16)
            .then(|| (layouts.first() == Some(&true), layouts.get(1) == Some(&false)));
        let rounding = [Modifier::Rz, Modifier::Rm, Modifier::Rp].into_iter().find(|modifier| inst.has(*modifier));
        let product = Product {
            shape,
            a,
            b,
            c,
            d,
            registers: [count(0), count(1), count(2), count(3)],
            saturates: inst.has(Modifier::Satfinite),
            logic: (a == Type::B1).then(|| if inst.has(Modifier::Xor) { Logic::Xor } else { Logic::And }),
            rounding: rounding.unwrap_or(Modifier::Rn),
            quads,
        };
        product.holds_all().then_some(product)
    }

    /// Returns whether registers hold all elements of the matrices.
    fn holds_all(&self) -> bool {
        let per = [per_accumulator(self.d), per_register(self.a), per_register(self.b), per_accumulator(self.c)];
        let roles = [Role::C, Role::A, Role::B, Role::C];
        roles.iter().zip(per).zip(self.registers).all(|((role, per), registers)| {
            let (rows, columns) = self.shape.extent(*role);
            registers * per * LANES as u32 >= rows * columns * self.products()
        })
    }

    /// Returns the number of input rows of 32 values: all registers of both factors and of the addend.
    pub fn inputs(&self) -> usize {
        self.registers[1..].iter().sum::<u32>() as usize
    }

    /// Returns the number of result rows of 32 values.
    pub fn outputs(&self) -> usize {
        self.registers[0] as usize
    }

    /// Returns whether it is one product by all lanes, laid out by [`ProductShape::place`], in `f32`, in
    /// `f64` rounded to nearest, or in integers.
    pub fn is_regular(&self) -> bool {
        self.quads.is_none() && self.rounding == Modifier::Rn
    }

    /// Computes the product. Inputs are the registers of `a`, `b` and `c` in sequence, outputs those of `d`,
    /// each `[register][lane]`.
    pub fn multiply(&self, inputs: &[u64], outputs: &mut [u64]) {
        let [_, a, b, _] = self.registers.map(|count| count as usize * LANES);
        let (Some(left), Some(right), Some(sum)) = (inputs.get(..a), inputs.get(a..a + b), inputs.get(a + b..)) else { return };
        match self.d {
            Type::F64 => self.run(left, right, sum, outputs, |_, bits| bits, |x, y, acc| self.fma(x, y, acc), canonical_f64),
            Type::S32 if self.logic.is_some() => self.run(
                left,
                right,
                sum,
                outputs,
                integer,
                |x, y, acc| acc + i64::from(if self.logic == Some(Logic::Xor) { x != y } else { x & y != 0 }),
                |_, acc| self.limited(acc),
            ),
            Type::S32 => {
                self.run(left, right, sum, outputs, integer, |x, y, acc: i64| acc + x * y, |_, acc| self.limited(acc));
            }
            _ => self.run(left, right, sum, outputs, single, |x: f32, y, acc| x.mul_add(y, acc), from_single),
        }
    }

    fn limited(&self, sum: i64) -> u64 {
        let sum = if self.saturates { sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) } else { sum };
        truncate(sum as u64, 32)
    }

    fn fma(&self, x: u64, y: u64, acc: u64) -> u64 {
        let number = |bits| Number::of(Format::F64, bits);
        let rounding = match self.rounding {
            Modifier::Rz => Rounding::Zero,
            Modifier::Rm => Rounding::Down,
            Modifier::Rp => Rounding::Up,
            _ => return f64::from_bits(x).mul_add(f64::from_bits(y), f64::from_bits(acc)).to_bits(),
        };
        number(x).mul(number(y)).add(number(acc), rounding).to_bits(Format::F64, rounding, Overflow::Ieee, Flush::Keep)
    }

    /// Returns the position of an element: the number of the product, row and column.
    pub fn place(&self, role: Role, lane: u32, element: u32, per: u32) -> (u32, u32, u32) {
        let Some((a_by_columns, b_by_rows)) = self.quads else {
            let (row, column) = self.shape.place(role, lane, element, per);
            return (0, row, column);
        };
        let (quad, member, high) = (lane % 16 / 4, lane % 4, if lane < 16 { 0 } else { 4 });
        let (row, column) = match role {
            Role::A if a_by_columns => (element + high, member),
            Role::A => (member + high, element),
            Role::B if b_by_rows => (member, element + high),
            Role::B => (element, member + high),
            // Half accumulators are rows, those of `f32` are squares of two by two.
            Role::C if per == 2 => (member + high, element),
            Role::C => ((lane & 1) + (element & 2) + high, (element & 4) + (lane & 2) + (element & 1)),
        };
        (quad, row, column)
    }

    /// Gathers the elements of a matrix, row by row, of all products in sequence.
    fn gather<T: Copy + Default>(
        &self,
        role: Role,
        ty: Type,
        per: u32,
        registers: &[u64],
        read: impl Fn(Type, u64) -> T,
    ) -> Vec<T> {
        let (rows, columns) = self.shape.extent(role);
        let bits = if ty == Type::F64 { 64 } else { 32 / per };
        let mut all = vec![T::default(); (self.products() * rows * columns) as usize];
        for (position, value) in registers.iter().enumerate() {
            let (register, lane) = ((position / LANES) as u32, (position % LANES) as u32);
            for part in 0..per {
                let (product, row, column) = self.place(role, lane, register * per + part, per);
                all[((product * rows + row) * columns + column) as usize] = read(ty, truncate(value >> (part * bits), bits));
            }
        }
        all
    }

    fn products(&self) -> u32 {
        if self.quads.is_some() { 4 } else { 1 }
    }

    #[allow(clippy::too_many_arguments, reason = "three matrices, the result, and how elements are read, added and written")]
    fn run<T: Copy + Default>(
        &self,
        left: &[u64],
        right: &[u64],
        sum: &[u64],
        outputs: &mut [u64],
        read: impl Fn(Type, u64) -> T,
        step: impl Fn(T, T, T) -> T,
        write: impl Fn(Type, T) -> u64,
    ) {
        let ProductShape { m, n, k } = self.shape;
        let a = self.gather(Role::A, self.a, per_register(self.a), left, &read);
        let b = self.gather(Role::B, self.b, per_register(self.b), right, &read);
        let mut d = self.gather(Role::C, self.c, per_accumulator(self.c), sum, &read);
        for product in 0..self.products() {
            for row in 0..m {
                for column in 0..n {
                    let place = ((product * m + row) * n + column) as usize;
                    for inner in 0..k {
                        let x = a[((product * m + row) * k + inner) as usize];
                        let y = b[((product * k + inner) * n + column) as usize];
                        d[place] = step(x, y, d[place]);
                    }
                }
            }
        }
        let per = per_accumulator(self.d);
        for (position, value) in outputs.iter_mut().enumerate().take(self.outputs() * LANES) {
            let (register, lane) = ((position / LANES) as u32, (position % LANES) as u32);
            *value = (0..per).fold(0, |bits, part| {
                let (product, row, column) = self.place(Role::C, lane, register * per + part, per);
                bits | write(self.d, d[((product * m + row) * n + column) as usize]) << (16 * part)
            });
        }
    }
}

/// Converts an element to an integer.
fn integer(ty: Type, bits: u64) -> i64 {
    match ty {
        Type::S4 => sign_extend(bits, 4),
        Type::S8 | Type::S32 => sign_extend(bits, ty.bits()),
        _ => bits as i64,
    }
}

/// Converts an element to `f32`, which holds all values of the shorter formats.
fn single(ty: Type, bits: u64) -> f32 {
    let format = match ty {
        Type::F16 => return half::f16::from_bits(bits as u16).to_f32(),
        Type::Bf16 => return f32::from_bits((bits as u32) << 16),
        // The low 13 bits are ignored.
        Type::Tf32 => return f32::from_bits(bits as u32 & !0x1fff),
        Type::E4m3 => Format::E4M3,
        Type::E5m2 => Format::E5M2,
        _ => return f32::from_bits(bits as u32),
    };
    f32::from_bits(Number::of(format, bits).to_bits(Format::F32, Rounding::Nearest, Overflow::Ieee, Flush::Keep) as u32)
}

fn from_single(ty: Type, value: f32) -> u64 {
    match (ty, value.is_nan()) {
        (Type::F16, true) => Format::F16.canonical_nan(),
        (Type::F16, false) => u64::from(half::f16::from_f32(value).to_bits()),
        (_, true) => Format::F32.canonical_nan(),
        (_, false) => u64::from(value.to_bits()),
    }
}

fn canonical_f64(_: Type, bits: u64) -> u64 {
    if f64::from_bits(bits).is_nan() { Format::F64.canonical_nan() } else { bits }
}
