//! Fragments and products, tested against the manual's formulas and plain sums.

use broadloom_eval::matrix::{LANES, Product, ProductShape, Role, Rows, per_accumulator, per_register, transpose};
use broadloom_ptx::{InstData, Operand, Reg, Type};
use broadloom_random::Random;

/// Returns an instruction with the given number of registers in each operand.
fn inst(mnemonic: &str, registers: &[usize]) -> InstData {
    let operand = |count: &usize| match count {
        1 => Operand::Reg(Reg::from_u32(0)),
        count => Operand::Vector((0..*count).map(|_| Operand::Reg(Reg::from_u32(0))).collect()),
    };
    InstData::of(mnemonic, registers.iter().map(operand)).unwrap_or_else(|| panic!("{mnemonic}"))
}

fn product(mnemonic: &str, registers: &[usize]) -> Product {
    Product::of(&inst(mnemonic, registers)).unwrap_or_else(|| panic!("{mnemonic}"))
}

/// Returns a generator of pseudo-random numbers.
fn noise(seed: u64) -> impl FnMut() -> u64 {
    let mut random = Random::new(seed);
    move || random.bits()
}

/// The layouts in the manual's own formulas.
#[test]
fn elements_are_where_the_manual_says() {
    for lane in 0..32 {
        let (group, member) = (lane >> 2, lane % 4);
        let at = |text: &str, role, element, per| ProductShape::from_text(text).unwrap().place(role, lane, element, per);
        for i in 0..8 {
            let row = if i < 2 || (4..6).contains(&i) { group } else { group + 8 };
            let column = member * 2 + (i & 1) + if i < 4 { 0 } else { 8 };
            assert_eq!(at("m16n8k16", Role::A, i, 2), (row, column), "halves");
            let row = if i < 4 { group } else { group + 8 };
            assert_eq!(at("m16n8k16", Role::A, i, 4), (row, member * 4 + (i & 3)), "bytes");
            let row = if i % 2 == 0 { group } else { group + 8 };
            assert_eq!(at("m16n8k16", Role::A, i, 1), (row, (i / 2) * 4 + member), "f64");
        }
        for i in 0..4 {
            let row = member * 2 + (i & 1) + if i < 2 { 0 } else { 8 };
            assert_eq!(at("m16n8k16", Role::B, i, 2), (row, group));
            assert_eq!(at("m16n8k16", Role::B, i, 1), (member + i * 4, group), "f64");
            let row = if i < 2 { group } else { group + 8 };
            assert_eq!(at("m16n8k16", Role::C, i, 1), (row, member * 2 + (i & 1)));
        }
        for i in 0..16 {
            let row = if i < 4 || (8..12).contains(&i) { group } else { group + 8 };
            let column = member * 4 + (i & 3) + if i < 8 { 0 } else { 16 };
            assert_eq!(at("m16n8k32", Role::A, i, 4), (row, column));
        }
        for i in 0..8 {
            let row = member * 4 + (i & 3) + if i < 4 { 0 } else { 16 };
            assert_eq!(at("m16n8k32", Role::B, i, 4), (row, group));
            assert_eq!(at("m8n8k32", Role::A, i, 8), (group, member * 8 + i));
        }
        for i in 0..128 {
            let row = if i < 32 || (64..96).contains(&i) { group } else { group + 8 };
            let column = member * 32 + (i & 31) + if i < 64 { 0 } else { 128 };
            assert_eq!(at("m16n8k256", Role::A, i, 32), (row, column));
        }
    }
}

/// Every element of every matrix has at least one position, and in all shapes of `wmma` as many as registers
/// allow.
#[test]
fn fragments_hold_whole_matrices() {
    let shapes = [("m16n16k16", 2, 16), ("m8n32k16", 2, 16), ("m32n8k16", 2, 16), ("m16n16k8", 1, 4), ("m16n16k16", 4, 8)];
    for (text, per, elements) in shapes {
        let shape = ProductShape::from_text(text).unwrap();
        for (role, elements, per) in [(Role::A, elements, per), (Role::B, elements, per), (Role::C, 8, 1)] {
            let (rows, columns) = shape.extent(role);
            let places: std::collections::BTreeSet<_> = (0..32)
                .flat_map(|lane| (0..elements).map(move |i| (lane, i)))
                .map(|(lane, i)| shape.place(role, lane, i, per))
                .collect();
            assert_eq!(places.len() as u32, rows * columns, "{text} {role:?}");
            assert!(places.iter().all(|(row, column)| *row < rows && *column < columns));
        }
    }
}

/// Small integers in any format multiply without rounding: the sum is that of integers.
#[test]
fn products_of_small_numbers_are_exact() {
    let half = |x: i64| u64::from(half::f16::from_f64(x as f64).to_bits());
    let brain = |x: i64| u64::from(half::bf16::from_f64(x as f64).to_bits());
    let single = |x: i64| u64::from((x as f32).to_bits());
    let double = |x: i64| (x as f64).to_bits();
    let low = |bits: u32| move |x: i64| truncate_to(x, bits);
    type Encode = Box<dyn Fn(i64) -> u64>;
    let cases: Vec<(&str, [usize; 4], Encode, Encode)> = vec![
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", [4, 4, 2, 4], Box::new(half), Box::new(single)),
        ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", [4, 2, 1, 4], Box::new(half), Box::new(single)),
        ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", [2, 4, 2, 2], Box::new(half), Box::new(half)),
        ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", [8, 2, 2, 8], Box::new(half), Box::new(single)),
        ("mma.sync.aligned.m8n8k4.col.row.f16.f16.f16.f16", [4, 2, 2, 4], Box::new(half), Box::new(half)),
        ("mma.sync.aligned.m8n8k4.row.row.f16.f16.f16.f16", [4, 2, 2, 4], Box::new(half), Box::new(half)),
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", [4, 4, 2, 4], Box::new(brain), Box::new(single)),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", [4, 4, 2, 4], Box::new(single), Box::new(single)),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", [2, 1, 1, 2], Box::new(double), Box::new(double)),
        ("mma.sync.aligned.m16n8k16.row.col.rz.f64.f64.f64.f64", [4, 8, 4, 4], Box::new(double), Box::new(double)),
        ("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32", [4, 4, 2, 4], Box::new(low(8)), Box::new(low(32))),
        ("mma.sync.aligned.m16n8k64.row.col.s32.u4.s4.s32", [4, 4, 2, 4], Box::new(low(4)), Box::new(low(32))),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", [8, 8, 8, 8], Box::new(half), Box::new(single)),
        ("wmma.mma.sync.aligned.col.row.m32n8k16.f16.f32", [4, 8, 8, 8], Box::new(half), Box::new(single)),
        ("wmma.mma.sync.aligned.row.row.m8n32k16.s32.u8.u8.s32", [8, 1, 4, 8], Box::new(low(8)), Box::new(low(32))),
    ];
    for (mnemonic, registers, factor, sum) in cases {
        let product = product(mnemonic, &registers);
        let ProductShape { m, n, k } = product.shape;
        let mut next = noise(registers.len() as u64 + u64::from(k));
        let mut number = |ty: Type| {
            let signed = !matches!(ty, Type::U4 | Type::U8);
            (next() % 7) as i64 - if signed { 3 } else { 0 }
        };
        let products = if m == 8 && product.a == Type::F16 && n == 8 { 4 } else { 1 };
        let mut matrix =
            |rows: u32, columns: u32, ty: Type| -> Vec<i64> { (0..products * rows * columns).map(|_| number(ty)).collect() };
        let (a, b, c) = (matrix(m, k, product.a), matrix(k, n, product.b), matrix(m, n, product.c));
        let fragment = |role, per: u32, count: u32, ty: Type, values: &[i64], encode: &Encode| -> Vec<u64> {
            let (rows, columns) = product.shape.extent(role);
            let bits = if ty == Type::F64 { 64 } else { 32 / per };
            (0..count * 32)
                .map(|position| {
                    (0..per).fold(0, |word, part| {
                        let (which, row, column) = product.place(role, position % 32, position / 32 * per + part, per);
                        word | encode(values[((which * rows + row) * columns + column) as usize]) << (part * bits)
                    })
                })
                .collect()
        };
        let [_, ra, rb, rc] = product.registers;
        let mut inputs = fragment(Role::A, per_register(product.a), ra, product.a, &a, &factor);
        inputs.extend(fragment(Role::B, per_register(product.b), rb, product.b, &b, &factor));
        inputs.extend(fragment(Role::C, per_accumulator(product.c), rc, product.c, &c, &sum));
        let mut outputs = vec![0; product.outputs() * LANES];
        product.multiply(&inputs, &mut outputs);
        let expected: Vec<i64> = (0..products * m * n)
            .map(|at| {
                let (which, row, column) = (at / (m * n), at / n % m, at % n);
                let inner = |i: u32| a[((which * m + row) * k + i) as usize] * b[((which * k + i) * n + column) as usize];
                c[at as usize] + (0..k).map(inner).sum::<i64>()
            })
            .collect();
        let encode: Encode = match product.d {
            Type::F16 => Box::new(half),
            Type::F32 => Box::new(single),
            Type::F64 => Box::new(double),
            _ => Box::new(low(32)),
        };
        let wanted = fragment(Role::C, per_accumulator(product.d), product.registers[0], product.d, &expected, &encode);
        assert_eq!(outputs, wanted, "{mnemonic}");
    }
}

fn truncate_to(x: i64, bits: u32) -> u64 {
    broadloom_eval::truncate(x as u64, bits)
}

#[test]
fn bits_are_counted() {
    let xor = product("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc", &[2, 1, 1, 2]);
    let and = product("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc", &[2, 1, 1, 2]);
    let mut next = noise(5);
    let inputs: Vec<u64> = (0..64).map(|_| next() >> 32).chain((0..64).map(|i| i * 1000)).collect();
    for (product, xor) in [(xor, true), (and, false)] {
        let mut outputs = vec![0; 64];
        product.multiply(&inputs, &mut outputs);
        for row in 0..8usize {
            for column in 0..8usize {
                // Lane 4g+t holds bits 32t to 32t+31 of row g, or of column g.
                let count: u32 = (0..4)
                    .map(|word| {
                        let (x, y) = (inputs[4 * row + word], inputs[32 + 4 * column + word]);
                        (if xor { x ^ y } else { x & y }).count_ones()
                    })
                    .sum();
                let place = 32 * (column % 2) + 4 * row + column / 2;
                assert_eq!(outputs[place], inputs[64 + place] + u64::from(count));
            }
        }
    }
}

#[test]
fn sums_are_limited_where_that_is_asked_for() {
    for (text, expected) in [("", 0x8000_0000 + 16 * 127 * 127 - 1), (".satfinite", 0x7fff_ffff)] {
        let product = product(&format!("mma.sync.aligned.m8n8k16.row.col{text}.s32.s8.s8.s32"), &[2, 1, 1, 2]);
        let inputs: Vec<u64> = [0x7f7f_7f7f; 64].into_iter().chain([0x7fff_ffff; 64]).collect();
        let mut outputs = vec![0; 64];
        product.multiply(&inputs, &mut outputs);
        assert_eq!(outputs, vec![expected; 64]);
    }
}

/// Sums go along `k`, rounded to `f32` at every step. NaNs are canonical, and bits that `tf32` lacks are
/// ignored.
#[test]
fn floats_are_added_in_order() {
    let mma = product("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", &[4, 4, 2, 4]);
    let one = u64::from(1f32.to_bits()) | 0x1fff;
    let tiny = u64::from(2f32.powi(-24).to_bits());
    let mut inputs = vec![0; 10 * 32];
    // Row 0 is 1, 2^-24, 2^-24, …: each of these is lost after the first. Row 1 is 2^-24, …, 1 at the end:
    // they add up before.
    inputs[0] = one;
    for (register, lane) in [(0, 1), (0, 2), (0, 3), (2, 0), (2, 1), (2, 2), (2, 3)] {
        inputs[32 * register + lane] = tiny;
    }
    for (register, lane) in [(0, 4), (0, 5), (0, 6), (0, 7), (2, 4), (2, 5), (2, 6)] {
        inputs[32 * register + lane] = tiny;
    }
    inputs[32 * 2 + 7] = one;
    inputs[32] = 0x7f80_0001;
    inputs[4 * 32..6 * 32].fill(u64::from(1f32.to_bits()));
    let mut outputs = vec![0; 4 * 32];
    mma.multiply(&inputs, &mut outputs);
    assert_eq!(outputs[0], u64::from(1f32.to_bits()));
    // Three and a half units, rounded to even.
    assert_eq!(outputs[4], u64::from((1f32 + 2f32.powi(-21)).to_bits()));
    assert_eq!(outputs[2 * 32], u64::from(f32::INFINITY.to_bits()), "the low bits of a NaN of tf32 are not there");
    inputs[32] = 0x7fc0_0000;
    mma.multiply(&inputs, &mut outputs);
    assert_eq!(outputs[2 * 32], 0x7fff_ffff);
}

#[test]
fn rows_go_both_ways() {
    let mut next = noise(9);
    let rows: Vec<[u8; 16]> = (0..32).map(|_| std::array::from_fn(|_| next() as u8)).collect();
    for (count, transposed) in [(1, false), (2, true), (4, false), (4, true)] {
        let shape = Rows { count, transposed };
        let mut registers = vec![0; 32 * count as usize];
        shape.load(&rows, &mut registers);
        let mut back = vec![[0; 16]; 8 * count as usize];
        shape.store(&registers, &mut back);
        assert_eq!(back, rows[..8 * count as usize]);
        let word =
            |row: usize, element: usize| u64::from(u16::from_le_bytes([rows[row][2 * element], rows[row][2 * element + 1]]));
        let (first, second) = if transposed { (word(2, 1), word(3, 1)) } else { (word(1, 2), word(1, 3)) };
        assert_eq!(registers[5], first | second << 16, "lane 5 has row 1, elements 2 and 3");
    }
    let (mut plain, mut turned, mut moved) = (vec![0; 32], vec![0; 32], vec![0; 32]);
    Rows { count: 1, transposed: false }.load(&rows, &mut plain);
    Rows { count: 1, transposed: true }.load(&rows, &mut turned);
    transpose(&plain, &mut moved);
    assert_eq!(moved, turned);
}

#[test]
fn later_forms_are_not_described() {
    let register = || Operand::Reg(Reg::from_u32(0));
    let pair = || Operand::Vector([register(), register()].into());
    let operands = [pair(), pair(), pair(), pair(), register(), Operand::from(0)];
    let sparse = InstData::of("mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", operands).unwrap();
    assert!(Product::of(&sparse).is_none());
}
