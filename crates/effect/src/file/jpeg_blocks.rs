//! Samples of JPEG blocks: the inverse cosine transform of Arai, Agui and Nakajima, and colours from brightness and two
//! differences (ITU-T T.871).

/// Scales of the transform along an axis, by frequency: √2·cos(k·π/16), and 1 for 0.
const SCALES: [f64; 8] = [1.0, 1.387_039_845, 1.306_562_965, 1.175_875_602, 1.0, 0.785_694_958, 0.541_196_1, 0.275_899_379];

/// Factors of the coefficients of a block, with those of the transform.
pub(super) fn factors(table: &[u16; 64]) -> [f32; 64] {
    std::array::from_fn(|at| (f64::from(table[at]) * SCALES[at / 8] * SCALES[at % 8] / 8.0) as f32)
}

/// Values of a row of a block. Loops instead of closures for arrays, which the compiler does not always inline.
pub(super) type Lane = [f32; 8];

#[inline(always)]
fn zip(mut a: Lane, b: Lane, of: impl Fn(f32, f32) -> f32) -> Lane {
    for (a, b) in a.iter_mut().zip(b) {
        *a = of(*a, b);
    }
    a
}

#[inline(always)]
pub(super) fn add(a: Lane, b: Lane) -> Lane {
    zip(a, b, |a, b| a + b)
}

#[inline(always)]
pub(super) fn sub(a: Lane, b: Lane) -> Lane {
    zip(a, b, |a, b| a - b)
}

#[inline(always)]
pub(super) fn scaled(mut a: Lane, by: f32) -> Lane {
    for a in &mut a {
        *a *= by;
    }
    a
}

#[inline(always)]
pub(super) fn transposed(x: [Lane; 8]) -> [Lane; 8] {
    let mut out = [[0.0; 8]; 8];
    for (row, out) in out.iter_mut().enumerate() {
        for (out, lane) in out.iter_mut().zip(&x) {
            *out = lane[row];
        }
    }
    out
}

/// Transforms along columns, eight at once.
#[inline(always)]
fn transformed(x: [Lane; 8]) -> [Lane; 8] {
    let (even0, even1) = (add(x[0], x[4]), sub(x[0], x[4]));
    let even3 = add(x[2], x[6]);
    let even2 = sub(scaled(sub(x[2], x[6]), std::f32::consts::SQRT_2), even3);
    let (t0, t3, t1, t2) = (add(even0, even3), sub(even0, even3), add(even1, even2), sub(even1, even2));
    let (z13, z10, z11, z12) = (add(x[5], x[3]), sub(x[5], x[3]), add(x[1], x[7]), sub(x[1], x[7]));
    let t7 = add(z11, z13);
    let odd = scaled(sub(z11, z13), std::f32::consts::SQRT_2);
    let z5 = scaled(add(z10, z12), 1.847_759_1);
    let odd0 = sub(z5, scaled(z12, 1.082_392_2));
    let odd2 = sub(z5, scaled(z10, 2.613_126));
    let t6 = sub(odd2, t7);
    let t5 = sub(odd, t6);
    let t4 = sub(odd0, t5);
    [add(t0, t7), add(t1, t6), add(t2, t5), add(t3, t4), sub(t3, t4), sub(t2, t5), sub(t1, t6), sub(t0, t7)]
}

/// Sums with this number have no bits behind the point.
const ROUNDING: f32 = 8_388_608.0;

/// Middle of the samples, with a little more so that halves are rounded up.
const MIDDLE: f32 = 128.0 + 1.0 / 32768.0;

/// Returns the sample of a value around 0. The sum has the nearest integer in its lowest bits: a cast would check for
/// values that are not there, one sample at a time.
#[inline(always)]
fn sample(value: f32) -> u8 {
    ((value + MIDDLE).clamp(0.0, 255.0) + ROUNDING).to_bits() as u8
}

/// Writes the samples of a block to eight rows of `out`, `pitch` samples apart. `end` is the place behind the last
/// coefficient that is not 0, in the order of the file.
pub(super) fn write_block(coefficients: &[i16; 64], end: u8, factors: &[f32; 64], out: &mut [u8], pitch: usize) {
    if end <= 1 {
        let value = sample(f32::from(coefficients[0]) * factors[0]);
        out.chunks_mut(pitch).take(8).for_each(|row| row[..8].fill(value));
        return;
    }
    let mut columns = [[0.0; 8]; 8];
    for ((value, coefficient), factor) in columns.as_flattened_mut().iter_mut().zip(coefficients).zip(factors) {
        *value = f32::from(*coefficient) * factor;
    }
    let rows = transposed(transformed(transposed(transformed(columns))));
    for (row, values) in out.chunks_mut(pitch).zip(rows) {
        for (place, value) in row[..8].iter_mut().zip(values) {
            *place = sample(value);
        }
    }
}

/// Doubles a row of samples: three quarters of a sample and a quarter of its neighbour.
pub(super) fn double_row(row: &[u8], out: &mut [u8]) {
    let last = row.len() - 1;
    out[0] = row[0];
    out[2 * last + 1] = row[last];
    let (firsts, seconds) = (&row[..last], &row[1..]);
    for ((pair, first), second) in out[1..2 * last + 1].as_chunks_mut::<2>().0.iter_mut().zip(firsts).zip(seconds) {
        let (first, second) = (u16::from(*first), u16::from(*second));
        *pair = [((3 * first + second + 2) >> 2) as u8, ((3 * second + first + 1) >> 2) as u8];
    }
}

/// Doubles a row of samples along both axes: three quarters of `near` and a quarter of `far`, then along the row.
pub(super) fn double_rows(near: &[u8], far: &[u8], mixed: &mut [u16], out: &mut [u8]) {
    for ((mixed, near), far) in mixed.iter_mut().zip(near).zip(far) {
        *mixed = 3 * u16::from(*near) + u16::from(*far);
    }
    let mixed = &mixed[..near.len()];
    let last = mixed.len() - 1;
    out[0] = ((4 * mixed[0] + 8) >> 4) as u8;
    out[2 * last + 1] = ((4 * mixed[last] + 7) >> 4) as u8;
    let inner = out[1..2 * last + 1].as_chunks_mut::<2>().0;
    for ((pair, first), second) in inner.iter_mut().zip(&mixed[..last]).zip(&mixed[1..]) {
        *pair = [((3 * first + second + 7) >> 4) as u8, ((3 * second + first + 8) >> 4) as u8];
    }
}

/// Mixes two rows: three quarters of `near` and a quarter of `far`. `bias` rounds the lower row up.
pub(super) fn mix_rows(near: &[u8], far: &[u8], bias: u16, out: &mut [u8]) {
    for ((out, near), far) in out.iter_mut().zip(near).zip(far) {
        *out = ((3 * u16::from(*near) + u16::from(*far) + bias) >> 2) as u8;
    }
}

/// Returns the product of a difference, times 128, and a factor, times 2¹⁴: with 5 bits behind the point.
#[inline(always)]
fn product(difference: i16, factor: i16) -> i16 {
    ((i32::from(difference) * i32::from(factor)) >> 16) as i16
}

/// Appends red, green and blue of brightness and the differences of blue and red.
pub(super) fn append_colors(luma: &[u8], blue: &[u8], red: &[u8], out: [&mut Vec<u8>; 3]) {
    let factor = |value: f64| (value * 16384.0).round() as i16;
    let (red_of_red, blue_of_blue) = (factor(0.402), factor(0.772));
    let (green_of_blue, green_of_red) = (factor(0.344_136_286), factor(0.714_136_286));
    let starts = out.each_ref().map(|plane| plane.len());
    let [r, g, b] = out;
    for plane in [&mut *r, &mut *g, &mut *b] {
        plane.resize(plane.len() + luma.len(), 0);
    }
    let places = r[starts[0]..].iter_mut().zip(&mut g[starts[1]..]).zip(&mut b[starts[2]..]);
    for (((r, g), b), ((y, cb), cr)) in places.zip(luma.iter().zip(blue).zip(red)) {
        let (y, cb, cr) = (i16::from(*y), i16::from(*cb) - 128, i16::from(*cr) - 128);
        let (cb7, cr7) = (cb << 7, cr << 7);
        let byte = |value: i16| value.clamp(0, 255) as u8;
        *r = byte(y + cr + ((product(cr7, red_of_red) + 16) >> 5));
        *g = byte(y - ((product(cb7, green_of_blue) + product(cr7, green_of_red) + 16) >> 5));
        *b = byte(y + cb + ((product(cb7, blue_of_blue) + 16) >> 5));
    }
}
