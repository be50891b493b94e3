//! Matrix products as vector code: one function for each kind of product, shared by all instructions of a
//! kernel.
//!
//! A row of 32 lanes is a tile of 8 rows by 4 groups of the result. For each `k`, the element of the left
//! factor is equal in the four lanes of a group, and the element of the right factor is equal in all groups.
//! Both are permutations of the registers. Each row of accumulators then takes one multiplication. The order
//! of the sums is that of [`broadloom_eval::matrix`].
//!
//! Products of 8-bit integers are computed as floats, in which they and their sums are exact, and added to
//! the accumulators at the end.

use super::llvm::{Ir, RealPred, Ty, Val};
use broadloom_eval::matrix::{Logic, Product, per_accumulator, per_register};
use broadloom_ptx::Type;

/// Number of lanes of a warp.
const LANES: u32 = 32;

/// Returns whether there is vector code for a product.
pub(crate) fn has_code(product: &Product) -> bool {
    let known = matches!(product.a, Type::F16 | Type::Bf16 | Type::Tf32 | Type::F64 | Type::S8 | Type::U8 | Type::B1);
    known && product.is_regular()
}

/// Returns the bytes of a row of registers.
pub(crate) fn row_bytes(product: &Product) -> u64 {
    u64::from(LANES) * if product.d == Type::F64 { 8 } else { 4 }
}

/// Returns the number of registers of each factor that are read. Fragments of `wmma` may hold a matrix
/// several times.
fn factors(product: &Product) -> [u32; 2] {
    let deep = product.shape.k / (4 * per_register(product.a));
    [product.shape.m / 8 * deep, product.shape.n / 8 * deep]
}

/// Returns whether the function of a product reads one of the inputs.
pub(crate) fn reads(product: &Product, input: u32) -> bool {
    let [left, right] = factors(product);
    let [_, in_a, in_b, _] = product.registers;
    input < left || (in_a..in_a + right).contains(&input) || input >= in_a + in_b
}

/// Emits the body of a function that takes pointers to the rows of inputs and of outputs.
pub(crate) fn emit(ir: &Ir, product: &Product) {
    ir.go_on_in(ir.block("entry"));
    Body { ir, product, from: ir.argument(0), to: ir.argument(1) }.run();
    ir.ret();
}

struct Body<'b> {
    ir: &'b Ir,
    product: &'b Product,
    from: Val,
    to: Val,
}

impl Body<'_> {
    /// Returns the type of a register.
    fn word(&self) -> Ty {
        self.ir.int(if self.product.d == Type::F64 { 64 } else { 32 })
    }

    /// Loads a register of the inputs, all lanes.
    fn input(&self, register: u32) -> Val {
        let row = self.ir.vector(self.word(), LANES);
        self.ir.load(row, self.ir.offset_by(self.from, u64::from(register) * row_bytes(self.product)), 64)
    }

    fn output(&self, register: u32, value: Val) {
        let bits = self.ir.bitcast(value, self.word());
        self.ir.store(bits, self.ir.offset_by(self.to, u64::from(register) * row_bytes(self.product)), 64);
    }

    /// Extracts an element of a register, in the type of the multiplication.
    fn element(&self, ty: Type, register: Val, part: u32) -> Val {
        let ir = self.ir;
        let row = ir.type_of(register);
        let shifted = |by: u32| ir.constant(row, u64::from(by));
        match ty {
            Type::F16 => {
                let half = ir.trunc(ir.lshr(register, shifted(16 * part)), ir.int(16));
                ir.fpext(ir.bitcast(half, ir.half()), ir.float())
            }
            Type::Bf16 if part == 0 => ir.bitcast(ir.shl(register, shifted(16)), ir.float()),
            Type::Bf16 => ir.bitcast(ir.and(register, ir.constant(row, 0xffff_0000)), ir.float()),
            Type::Tf32 => ir.bitcast(ir.and(register, ir.constant(row, 0xffff_e000)), ir.float()),
            Type::F64 => ir.bitcast(register, ir.double()),
            Type::S8 => {
                let bits = ty.bits();
                let top = ir.shl(register, shifted(32 - bits * (part + 1)));
                ir.sitofp(ir.ashr(top, shifted(32 - bits)), ir.float())
            }
            Type::U8 => {
                let bits = ty.bits();
                let low = ir.and(ir.lshr(register, shifted(bits * part)), ir.constant(row, (1 << bits) - 1));
                ir.sitofp(low, ir.float())
            }
            // Single bits are processed as whole words.
            _ => register,
        }
    }

    /// Returns the initial values of the accumulators; each tile of the result has two.
    fn start(&self, tile: u32, side: u32, first: u32) -> Val {
        let ir = self.ir;
        match self.product.c {
            Type::F16 => self.element(Type::F16, self.input(first + tile), side),
            Type::F32 => ir.bitcast(self.input(first + 2 * tile + side), ir.float()),
            Type::F64 => ir.bitcast(self.input(first + 2 * tile + side), ir.double()),
            _ => self.input(first + 2 * tile + side),
        }
    }

    /// Returns the number of parts of a register of a factor: its elements, or one word for single bits.
    fn parts(&self, ty: Type) -> u32 {
        if ty == Type::B1 { 1 } else { per_register(ty) }
    }

    fn run(&self) {
        let ir = self.ir;
        let product = self.product;
        let (high, wide, deep) = (product.shape.m / 8, product.shape.n / 8, product.shape.k / (4 * per_register(product.a)));
        let parts = self.parts(product.a);
        let [_, in_a, in_b, _] = product.registers;
        let [left, right] = factors(product);
        let elements = |ty: Type, first: u32, count: u32| -> Vec<Vec<Val>> {
            let registers = (0..count).map(|register| self.input(first + register));
            registers.map(|register| (0..parts).map(|part| self.element(ty, register, part)).collect()).collect()
        };
        let (a, b) = (elements(product.a, 0, left), elements(product.b, in_a, right));
        let of_groups: Vec<Vec<u32>> = (0..4).map(|member| (0..LANES).map(|lane| lane / 4 * 4 + member).collect()).collect();
        // Four columns, equal in all groups.
        let of_columns = |member: u32, side: u32| -> Vec<u32> { (0..4).map(|column| 4 * (2 * column + side) + member).collect() };
        let in_groups: Vec<u32> = (0..LANES).map(|lane| lane % 4).collect();
        let tiles = high * wide;
        let integers = product.d == Type::S32;
        let counts = product.logic.is_some();
        let mut sums: Vec<[Val; 2]> = (0..tiles)
            .map(|tile| {
                [0, 1].map(|side| match (integers, counts) {
                    (true, false) => ir.zero(ir.vector(ir.float(), LANES)),
                    (true, true) => ir.zero(ir.vector(ir.int(32), LANES)),
                    (false, _) => self.start(tile, side, in_a + in_b),
                })
            })
            .collect();
        for along in 0..deep {
            for member in 0..4 {
                for part in 0..parts as usize {
                    let rows: Vec<Val> = (0..high)
                        .map(|tile| ir.pick(a[(along * high + tile) as usize][part], &of_groups[member as usize]))
                        .collect();
                    for column in 0..wide {
                        let source = b[(column * deep + along) as usize][part];
                        for side in 0..2u32 {
                            let columns = ir.pick(ir.pick(source, &of_columns(member, side)), &in_groups);
                            for (row, left) in (0..high).zip(&rows) {
                                let sum = &mut sums[(column * high + row) as usize][side as usize];
                                *sum = self.step(*left, columns, *sum);
                            }
                        }
                    }
                }
            }
        }
        for (tile, sums) in (0..tiles).zip(sums) {
            self.finish(tile, sums, in_a + in_b);
        }
    }

    fn step(&self, left: Val, right: Val, sum: Val) -> Val {
        let ir = self.ir;
        let ty = ir.type_of(left);
        let counted = |bits: Val| ir.add(sum, ir.intrinsic("llvm.ctpop", &[ty], &[bits]));
        match self.product.logic {
            Some(Logic::And) => counted(ir.and(left, right)),
            Some(Logic::Xor) => counted(ir.xor(left, right)),
            None => ir.intrinsic("llvm.fma", &[ty], &[left, right, sum]),
        }
    }

    /// Stores the sums of a tile.
    fn finish(&self, tile: u32, sums: [Val; 2], first: u32) {
        let ir = self.ir;
        if per_accumulator(self.product.d) == 2 {
            let [low, high] = sums.map(|sum| {
                let bits = ir.bitcast(ir.fptrunc(sum, ir.half()), ir.int(16));
                let nan = ir.constant(ir.type_of(bits), 0x7fff);
                let bits = ir.select(ir.fcmp(RealPred::LLVMRealUNO, sum, sum), nan, bits);
                ir.zext(bits, ir.int(32))
            });
            let high = ir.shl(high, ir.constant(ir.type_of(high), 16));
            return self.output(tile, ir.or(low, high));
        }
        for (side, sum) in (0..2).zip(sums) {
            let ty = ir.type_of(sum);
            let value = match self.product.d {
                Type::S32 => {
                    let more = if self.product.logic.is_some() { sum } else { ir.fptosi(sum, ir.int(32)) };
                    let before = self.start(tile, side, first);
                    match self.product.saturates {
                        true => ir.intrinsic("llvm.sadd.sat", &[ir.type_of(more)], &[before, more]),
                        false => ir.add(before, more),
                    }
                }
                d => {
                    let (word, nan) = if d == Type::F64 { (64, 0xfff8_0000_0000_0000) } else { (32, 0x7fff_ffff) };
                    let nan = ir.bitcast(ir.constant(ir.like(ty, ir.int(word)), nan), ir.element(ty));
                    ir.select(ir.fcmp(RealPred::LLVMRealUNO, sum, sum), nan, sum)
                }
            };
            self.output(2 * tile + side, value);
        }
    }
}
