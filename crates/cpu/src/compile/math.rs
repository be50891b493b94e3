//! Approximate functions of `f32` in vector code (manual: `ex2`, `lg2`, `sin`, `cos`, `tanh`), each within
//! the manual's error. Sine and cosine keep the manual's tightest bound for arguments of any size.
//!
//! The functions are polynomials on a reduced range, the same for scalars and vectors. The coefficients are
//! those of the Cephes library (Moshier), whose error on the reduced range is below one unit in the last
//! place.

use super::emitter::Emitter;
use super::evaluate::LoweringResult;
use super::llvm::{IntPred, RealPred, Ty, Val};
use broadloom_eval::Operation;
use broadloom_ptx::{Modifier, Type};

/// Coefficients of 2^x on [-0.5, 0.5], highest power first.
const EX2: [f64; 7] = [
    1.535_336_188_319_5e-4,
    1.339_887_440_266_574e-3,
    9.618_437_357_674_64e-3,
    5.550_332_471_162_809e-2,
    2.402_264_791_363_012e-1,
    6.931_472_028_550_42e-1,
    1.0,
];

/// Coefficients of (log(1 + x) - x + x²/2) / x³ on [√½ - 1, √2 - 1], highest power first.
const LOG: [f64; 9] = [
    7.037_683_629_2e-2,
    -1.151_461_031_0e-1,
    1.167_699_874_0e-1,
    -1.242_014_084_6e-1,
    1.424_932_278_7e-1,
    -1.666_805_766_5e-1,
    2.000_071_476_5e-1,
    -2.499_999_399_3e-1,
    3.333_333_117_4e-1,
];

/// Coefficients of (sin(x) - x) / x³ in x² on [-π/4, π/4], highest power first.
const SIN: [f64; 3] = [-1.951_529_589_1e-4, 8.332_160_873_6e-3, -1.666_665_461_1e-1];

/// Coefficients of (cos(x) - 1 + x²/2) / x⁴ in x² on [-π/4, π/4], highest power first.
const COS: [f64; 3] = [2.443_315_711_809_948e-5, -1.388_731_625_493_765e-3, 4.166_664_568_298_827e-2];

/// π/2 in three parts. The first two have so few bits that their products with small integers are exact.
const HALF_PI: [f64; 3] = [1.570_312_5, 4.837_512_969_970_703e-4, 7.549_789_954_891_882e-8];

/// Magnitude above which angles are reduced with [`quarter_turns`].
const FAR: f64 = 1.0e5;

/// Biased `f32` exponent of the first entry of [`quarter_turns`]: that of 2^16, the greatest power of two
/// below [`FAR`].
const FIRST_FAR: u64 = 127 + 16;

/// Binary digits of 2/π after the point.
const TWO_OVER_PI: [u64; 3] = [0xa2f9_836e_4e44_1529, 0xfc27_57d1_f534_ddc0, 0xdb62_9599_3c43_9041];

/// Returns, for each exponent from [`FIRST_FAR`] on, the quarter turns in one unit in the last place: 2^k ·
/// 2/π, reduced by the nearest multiple of 4, as `f64`. The product with a 24-bit mantissa is below 2^25 and
/// exact to 2^-27. Entries for exponents of no finite number are zero.
fn quarter_turns() -> [f64; 128] {
    std::array::from_fn(|index| {
        // The number is the mantissa as an integer times 2^scale. The reduced part begins two bits before the
        // point.
        let scale = FIRST_FAR as i32 + index as i32 - 150;
        let first = scale - 2;
        let bit = |at: i32| match usize::try_from(at) {
            Ok(at) => TWO_OVER_PI[at / 64] >> (63 - at % 64) & 1,
            Err(_) => 0,
        };
        if FIRST_FAR as usize + index > 254 {
            return 0.0;
        }
        let window = (first..first + 64).fold(0u64, |bits, at| bits << 1 | bit(at));
        window as i64 as f64 / (1u64 << 62) as f64
    })
}

/// Coefficients of (tanh(x) - x) / x³ in x² for |x| < 0.625, highest power first.
const TANH: [f64; 5] =
    [-5.704_988_727_459_8e-3, 2.063_908_979_643e-2, -5.373_971_426_92e-2, 1.333_144_219_983e-1, -3.333_328_196_28e-1];

impl Emitter<'_> {
    /// Emits `ex2`, `lg2`, `sin`, `cos` or `tanh` of `f32`.
    pub(crate) fn approximate(&self, op: &Operation, inputs: &[Val], function: impl Fn(&Self, Val) -> Val) -> LoweringResult {
        if op.ty != Type::F32 {
            return None;
        }
        let flush = op.has(Modifier::Ftz);
        let x = if flush { self.flushed(inputs[0]) } else { inputs[0] };
        let value = function(self, x);
        Some(if flush { self.flushed(value) } else { value })
    }

    /// Evaluates a polynomial, highest power first.
    fn polynomial(&self, x: Val, coefficients: &[f64]) -> Val {
        let ty = self.ir.type_of(x);
        let constant = |value: f64| self.ir.real(ty, value);
        let mut value = constant(coefficients[0]);
        for coefficient in &coefficients[1..] {
            value = self.fma(value, x, constant(*coefficient));
        }
        value
    }

    fn ints(&self, like: Ty) -> Ty {
        self.ir.like(like, self.ir.int(32))
    }

    /// Converts an integral float to an integer. Values that do not fit give 0; the caller discards them.
    fn small_integer(&self, whole: Val) -> Val {
        let ir = self.ir;
        let ty = ir.type_of(whole);
        let magnitude = ir.intrinsic("llvm.fabs", &[ty], &[whole]);
        let fits = ir.fcmp(RealPred::LLVMRealOLT, magnitude, ir.real(ty, f64::from(1u32 << 30)));
        ir.fptosi(ir.select(fits, whole, ir.real(ty, 0.0)), ir.int(32))
    }

    /// Returns 2 to the power of an integer between -126 and 127.
    fn power_of_two(&self, exponent: Val) -> Val {
        let ir = self.ir;
        let ty = ir.type_of(exponent);
        let biased = ir.add(exponent, ir.constant(ty, 127));
        ir.bitcast(ir.shl(biased, ir.constant(ty, 23)), ir.float())
    }

    pub(crate) fn ex2(&self, x: Val) -> Val {
        let ir = self.ir;
        let ty = ir.type_of(x);
        // Beyond these bounds the result is 0 or infinity anyway, and the two halves of the exponent stay in
        // range.
        let bounded = {
            let low = ir.fcmp(RealPred::LLVMRealOLT, x, ir.real(ty, -160.0));
            let x = ir.select(low, ir.real(ty, -160.0), x);
            let high = ir.fcmp(RealPred::LLVMRealOGT, x, ir.real(ty, 130.0));
            ir.select(high, ir.real(ty, 130.0), x)
        };
        let whole = ir.intrinsic("llvm.rint", &[ty], &[bounded]);
        let rest = ir.fsub(bounded, whole);
        let power = self.polynomial(rest, &EX2);
        let exponent = self.small_integer(whole);
        let int = ir.type_of(exponent);
        let half = ir.ashr(exponent, ir.constant(int, 1));
        let other = ir.sub(exponent, half);
        let value = ir.fmul(ir.fmul(power, self.power_of_two(half)), self.power_of_two(other));
        // 2^-151 and less is nearer to 0 than to the smallest subnormal number. The polynomial cannot
        // represent that.
        let gone = ir.fcmp(RealPred::LLVMRealOLE, x, ir.real(ty, -150.0));
        ir.select(gone, ir.real(ty, 0.0), value)
    }

    pub(crate) fn lg2(&self, x: Val) -> Val {
        let ir = self.ir;
        let ty = ir.type_of(x);
        let int = self.ints(ty);
        // Subnormal numbers are made normal first.
        let small = ir.fcmp(RealPred::LLVMRealOLT, x, ir.real(ty, f64::from(f32::MIN_POSITIVE)));
        let scaled = ir.select(small, ir.fmul(x, ir.real(ty, f64::from(1u32 << 24))), x);
        let bits = ir.bitcast(scaled, ir.int(32));
        // The exponent for which the fraction lies in [√½, √2).
        let root = ir.constant(int, 0x3f35_04f3);
        let exponent = ir.ashr(ir.sub(bits, root), ir.constant(int, 23));
        let fraction = ir.bitcast(ir.sub(bits, ir.shl(exponent, ir.constant(int, 23))), ir.float());
        let down = ir.select(small, ir.constant(int, 24), ir.constant(int, 0));
        let exponent = ir.sitofp(ir.sub(exponent, down), ir.float());
        let f = ir.fsub(fraction, ir.real(ty, 1.0));
        let square = ir.fmul(f, f);
        let curve = self.fma(ir.fmul(f, square), self.polynomial(f, &LOG), ir.fmul(square, ir.real(ty, -0.5)));
        // log2(e) = 1 + 0.4427. The exact terms are added last.
        let part = ir.real(ty, std::f64::consts::LOG2_E - 1.0);
        let sum = self.fma(curve, part, ir.fmul(f, part));
        let value = ir.fadd(ir.fadd(ir.fadd(sum, curve), f), exponent);
        let infinite = ir.fcmp(RealPred::LLVMRealOEQ, x, ir.real(ty, f64::INFINITY));
        let value = ir.select(infinite, x, value);
        let zero = ir.fcmp(RealPred::LLVMRealOEQ, x, ir.real(ty, 0.0));
        let value = ir.select(zero, ir.real(ty, f64::NEG_INFINITY), value);
        let undefined = ir.fcmp(RealPred::LLVMRealULT, x, ir.real(ty, 0.0));
        ir.select(undefined, ir.real(ty, f64::NAN), value)
    }

    pub(crate) fn sine(&self, x: Val, cosine: bool) -> Val {
        let ir = self.ir;
        let ty = ir.type_of(x);
        let int = self.ints(ty);
        let turns = ir.fmul(x, ir.real(ty, std::f64::consts::FRAC_2_PI));
        let whole = ir.intrinsic("llvm.rint", &[ty], &[turns]);
        let back = ir.fneg(whole);
        let rest = HALF_PI.iter().fold(x, |rest, part| self.fma(back, ir.real(ty, *part), rest));
        let magnitude = ir.intrinsic("llvm.fabs", &[ty], &[x]);
        let far = ir.fcmp(RealPred::LLVMRealOGT, magnitude, ir.real(ty, FAR));
        let (rest, quadrant) = self.near_angle_or(far, x, rest, self.small_integer(whole));
        let square = ir.fmul(rest, rest);
        let sin = self.fma(ir.fmul(rest, square), self.polynomial(square, &SIN), rest);
        let flat = self.fma(square, ir.real(ty, -0.5), ir.real(ty, 1.0));
        let cos = self.fma(ir.fmul(square, square), self.polynomial(square, &COS), flat);
        let quadrant = if cosine { ir.add(quadrant, ir.constant(int, 1)) } else { quadrant };
        let odd = ir.icmp(IntPred::LLVMIntNE, ir.and(quadrant, ir.constant(int, 1)), ir.constant(int, 0));
        let value = ir.select(odd, cos, sin);
        let below = ir.icmp(IntPred::LLVMIntNE, ir.and(quadrant, ir.constant(int, 2)), ir.constant(int, 0));
        let value = ir.select(below, ir.fneg(value), value);
        let endless = ir.fcmp(RealPred::LLVMRealUEQ, magnitude, ir.real(ty, f64::INFINITY));
        let value = ir.select(endless, ir.real(ty, f64::NAN), value);
        if cosine {
            return value;
        }
        let zero = ir.fcmp(RealPred::LLVMRealOEQ, x, ir.real(ty, 0.0));
        ir.select(zero, x, value)
    }

    /// Replaces the reduced angle and its quadrant in lanes with a large argument. The computation is skipped
    /// if there is no such lane.
    fn near_angle_or(&self, far: Val, x: Val, rest: Val, quadrant: Val) -> (Val, Val) {
        let ir = self.ir;
        let (start, reduce, after) = (ir.here(), ir.block("far"), ir.block("reduced"));
        ir.branch_if(self.any(far), reduce, after);
        ir.go_on_in(reduce);
        let (far_rest, far_quadrant) = self.far_angle(x);
        let chosen = [(rest, far_rest), (quadrant, far_quadrant)].map(|(near, new)| (near, ir.select(far, new, near)));
        let end = ir.here();
        ir.branch(after);
        ir.go_on_in(after);
        let [rest, quadrant] = chosen.map(|(near, new)| {
            let phi = ir.phi(ir.type_of(near));
            ir.incoming(phi, near, start);
            ir.incoming(phi, new, end);
            phi
        });
        (rest, quadrant)
    }

    /// Returns a large angle reduced by a multiple of π/2, and that multiple. The result for small angles is
    /// unspecified.
    fn far_angle(&self, x: Val) -> (Val, Val) {
        let ir = self.ir;
        let bits = ir.bitcast(x, ir.int(32));
        let ty = ir.type_of(bits);
        let number = |value: u64| ir.constant(ty, value);
        let exponent = ir.and(ir.lshr(bits, number(23)), number(0xff));
        let index = ir.and(ir.sub(exponent, number(FIRST_FAR)), number(127));
        let mantissa = ir.or(ir.and(bits, number(0x007f_ffff)), number(0x0080_0000));
        let negative = ir.icmp(IntPred::LLVMIntSLT, bits, number(0));
        let mantissa = ir.sitofp(ir.select(negative, ir.neg(mantissa), mantissa), ir.double());
        let double = ir.type_of(mantissa);
        let place = ir.elements_at(ir.table("quarter_turns", &quarter_turns()), ir.double(), ir.zext(index, ir.int(64)));
        let unit = match ir.lanes_in(ty) {
            None => ir.load_invariant(ir.double(), place, 8),
            Some(lanes) => {
                let all = ir.constant(ir.vector(ir.int(1), lanes), 1);
                let align = ir.constant(ir.int(32), 8);
                ir.intrinsic("llvm.masked.gather", &[double, ir.type_of(place)], &[place, align, all, ir.zero(double)])
            }
        };
        let turns = ir.fmul(mantissa, unit);
        let whole = ir.intrinsic("llvm.rint", &[double], &[turns]);
        let angle = ir.fmul(ir.fsub(turns, whole), ir.real(double, std::f64::consts::FRAC_PI_2));
        (ir.fptrunc(angle, ir.float()), ir.fptosi(whole, ir.int(32)))
    }

    pub(crate) fn tanh(&self, x: Val) -> Val {
        let ir = self.ir;
        let ty = ir.type_of(x);
        let magnitude = ir.intrinsic("llvm.fabs", &[ty], &[x]);
        let square = ir.fmul(x, x);
        let near = self.fma(ir.fmul(x, square), self.polynomial(square, &TANH), x);
        let power = self.ex2(ir.fmul(magnitude, ir.real(ty, 2.0 * std::f64::consts::LOG2_E)));
        let one = ir.real(ty, 1.0);
        let far = ir.fsub(one, ir.fdiv(ir.real(ty, 2.0), ir.fadd(power, one)));
        let far = ir.intrinsic("llvm.copysign", &[ty], &[far, x]);
        let small = ir.fcmp(RealPred::LLVMRealOLT, magnitude, ir.real(ty, 0.625));
        // The reduction loses the sign of zero.
        ir.intrinsic("llvm.copysign", &[ty], &[ir.select(small, near, far), x])
    }
}
