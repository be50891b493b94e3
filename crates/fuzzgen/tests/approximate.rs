//! Approximate instructions keep their bounds over the whole range of their operands, on the interpreter and
//! on the CPU.
//!
//! Operands are every n-th 32-bit pattern, so that all exponents occur with many mantissas and both signs,
//! and special values. `BROADLOOM_APPROXIMATE_EVERY=1` takes all 4,294,967,296 on the widest vectors of the
//! host; the others, and pairs of operands, take fewer.
//!
//! Results are compared with functions of `f64`. A relative or absolute bound applies before the final
//! rounding, so half a unit in the last place is added. The bounds are the manual's; that of `sin` and `cos`,
//! which it gives for small angles only, is checked for all.

use broadloom_cpu::{CacheFolder, Cpu};
use broadloom_device::{Device, Launch};
use broadloom_diag::Sources;
use broadloom_interp::{Interp, Options};
use broadloom_ptx::{Exactness, Row, Verified, parse, verify};
use libtest_mimic::{Arguments, Completion, Trial};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

/// Permitted difference of a result from the true value.
#[derive(Clone, Copy, Debug)]
enum Bound {
    Ulp(f64),
    Relative(f64),
    Absolute(f64),
    /// Absolute in (0.5, 2), relative elsewhere.
    Mixed(f64),
}

/// Formats of floating-point numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    F16,
    Bf16,
    F32,
    F64,
}

impl Format {
    fn value(self, bits: u64) -> f64 {
        let narrow = |mantissa: u32, bias: i32| {
            let exponent = (bits as u32 & 0x7fff) >> mantissa;
            let fraction = f64::from(bits as u32 & ((1 << mantissa) - 1)) / f64::from(1 << mantissa);
            let magnitude = match exponent {
                0 => fraction * 2f64.powi(1 - bias),
                all if all == 0x7fff >> mantissa => {
                    if fraction == 0.0 {
                        f64::INFINITY
                    } else {
                        f64::NAN
                    }
                }
                exponent => (1.0 + fraction) * 2f64.powi(exponent as i32 - bias),
            };
            if bits & 0x8000 == 0 { magnitude } else { -magnitude }
        };
        match self {
            Format::F16 => narrow(10, 15),
            Format::Bf16 => narrow(7, 127),
            Format::F32 => f32::from_bits(bits as u32).into(),
            Format::F64 => f64::from_bits(bits),
        }
    }

    /// Returns the fraction bits, and the exponents of the smallest normal number and of the first one that
    /// is too large.
    fn limits(self) -> (i32, i32, i32) {
        match self {
            Format::F16 => (10, -14, 16),
            Format::Bf16 => (7, -126, 128),
            Format::F32 => (23, -126, 128),
            Format::F64 => (52, -1022, 1024),
        }
    }

    fn least_normal(self) -> f64 {
        2f64.powi(self.limits().1)
    }

    /// Returns the distance between numbers near a value.
    fn ulp(self, value: f64) -> f64 {
        let (fraction, least, _) = self.limits();
        let exponent = (value.abs().to_bits() >> 52) as i32 - 1023;
        2f64.powi(exponent.max(least)) * 2f64.powi(-fraction)
    }

    /// Returns the largest number.
    fn most(self) -> f64 {
        let (fraction, _, beyond) = self.limits();
        2f64.powi(beyond - 1) * (2.0 - 2f64.powi(-fraction))
    }
}

/// Instruction with its function.
struct Instruction {
    mnemonic: &'static str,
    format: Format,
    /// Numbers per register.
    lanes: u32,
    flushes: bool,
    bound: Bound,
    exact: fn(f64, f64) -> f64,
}

const fn of(mnemonic: &'static str, format: Format, bound: Bound, exact: fn(f64, f64) -> f64) -> Instruction {
    Instruction { mnemonic, format, lanes: 1, flushes: false, bound, exact }
}

const fn flushing(instruction: Instruction) -> Instruction {
    Instruction { flushes: true, ..instruction }
}

const fn pair(instruction: Instruction) -> Instruction {
    Instruction { lanes: 2, ..instruction }
}

fn rsqrt(x: f64, _: f64) -> f64 {
    x.sqrt().recip()
}

/// Computes `div.approx`: divisors above 2^126 count as infinite.
fn div_approx(a: f64, b: f64) -> f64 {
    if b.is_finite() && b.abs() > 2f64.powi(126) { a * 0f64.copysign(b) } else { a / b }
}

/// 2^-20.5, 2^-22.9, 2^-9.9 and 2^-10.987.
const TO_20_5: f64 = 6.743_495_761e-7;
const TO_22_9: f64 = 1.277_653_5e-7;
const TO_9_9: f64 = 1.046_653_8e-3;
const TO_10_987: f64 = 4.927_009_9e-4;
const TO_7: f64 = 1.0 / 128.0;
const TO_8: f64 = 1.0 / 256.0;
const TO_11: f64 = 1.0 / 2048.0;
const TO_20: f64 = 1.0 / (1u32 << 20) as f64;
const TO_22: f64 = 1.0 / (1u32 << 22) as f64;
const TO_23: f64 = 1.0 / (1u32 << 23) as f64;

use Bound::{Absolute, Mixed, Relative, Ulp};
use Format::{Bf16, F16, F32, F64};

#[rustfmt::skip]
const INSTRUCTIONS: &[Instruction] = &[
    of("sin.approx.f32", F32, Absolute(TO_20_5), |x, _| x.sin()),
    flushing(of("sin.approx.ftz.f32", F32, Absolute(TO_20_5), |x, _| x.sin())),
    of("cos.approx.f32", F32, Absolute(TO_20_5), |x, _| x.cos()),
    flushing(of("cos.approx.ftz.f32", F32, Absolute(TO_20_5), |x, _| x.cos())),
    of("lg2.approx.f32", F32, Mixed(TO_22), |x, _| x.log2()),
    flushing(of("lg2.approx.ftz.f32", F32, Mixed(TO_22), |x, _| x.log2())),
    of("ex2.approx.f32", F32, Ulp(2.0), |x, _| x.exp2()),
    flushing(of("ex2.approx.ftz.f32", F32, Ulp(2.0), |x, _| x.exp2())),
    of("tanh.approx.f32", F32, Relative(TO_11), |x, _| x.tanh()),
    of("rcp.approx.f32", F32, Ulp(1.0), |x, _| x.recip()),
    flushing(of("rcp.approx.ftz.f32", F32, Ulp(1.0), |x, _| x.recip())),
    of("sqrt.approx.f32", F32, Relative(TO_23), |x, _| x.sqrt()),
    flushing(of("sqrt.approx.ftz.f32", F32, Relative(TO_23), |x, _| x.sqrt())),
    of("rsqrt.approx.f32", F32, Relative(TO_22_9), rsqrt),
    flushing(of("rsqrt.approx.ftz.f32", F32, Relative(TO_22_9), rsqrt)),
    of("div.approx.f32", F32, Ulp(2.0), div_approx),
    flushing(of("div.approx.ftz.f32", F32, Ulp(2.0), div_approx)),
    of("div.full.f32", F32, Ulp(2.0), |a, b| a / b),
    flushing(of("div.full.ftz.f32", F32, Ulp(2.0), |a, b| a / b)),
    flushing(of("rcp.approx.ftz.f64", F64, Relative(TO_20), |x, _| x.recip())),
    of("rsqrt.approx.f64", F64, Relative(TO_22_9), rsqrt),
    flushing(of("rsqrt.approx.ftz.f64", F64, Relative(TO_20), rsqrt)),
    of("ex2.approx.f16", F16, Relative(TO_9_9), |x, _| x.exp2()),
    pair(of("ex2.approx.f16x2", F16, Relative(TO_9_9), |x, _| x.exp2())),
    flushing(of("ex2.approx.ftz.bf16", Bf16, Relative(TO_7), |x, _| x.exp2())),
    pair(flushing(of("ex2.approx.ftz.bf16x2", Bf16, Relative(TO_7), |x, _| x.exp2()))),
    of("tanh.approx.f16", F16, Absolute(TO_10_987), |x, _| x.tanh()),
    pair(of("tanh.approx.f16x2", F16, Absolute(TO_10_987), |x, _| x.tanh())),
    of("tanh.approx.bf16", Bf16, Absolute(TO_8), |x, _| x.tanh()),
    pair(of("tanh.approx.bf16x2", Bf16, Absolute(TO_8), |x, _| x.tanh())),
];

impl Instruction {
    fn is_binary(&self) -> bool {
        self.mnemonic.starts_with("div")
    }

    /// Returns whether a result is close enough to the true value.
    fn is_right(&self, a: f64, b: f64, found: f64) -> bool {
        let least = self.format.least_normal();
        let seen = |x: f64| if self.flushes && x.abs() < least { 0f64.copysign(x) } else { x };
        let right = (self.exact)(seen(a), seen(b));
        if right.is_nan() || found.is_nan() {
            return right.is_nan() && found.is_nan();
        }
        if right.is_infinite() || right == 0.0 {
            return found == right && found.is_sign_negative() == right.is_sign_negative();
        }
        let ulp = self.format.ulp(right);
        let allowed = match self.bound {
            Ulp(count) => count * ulp,
            Relative(bound) => bound * right.abs() + 0.5 * ulp,
            Absolute(bound) => bound + 0.5 * ulp,
            Mixed(bound) if a > 0.5 && a < 2.0 => bound + 0.5 * ulp,
            Mixed(bound) => bound * right.abs() + 0.5 * ulp,
        };
        let most = self.format.most();
        if found.is_infinite() {
            return found.signum() == right.signum() && right.abs() + allowed + 0.5 * ulp > most;
        }
        if found == 0.0 && self.flushes && right.abs() - allowed < least {
            return found.is_sign_negative() == right.is_sign_negative();
        }
        !(self.flushes && found != 0.0 && found.abs() < least) && (found - right).abs() <= allowed
    }

    /// Returns its operand from a 32-bit pattern, as it lies in a register.
    fn operand(&self, bits: u32) -> u64 {
        match (self.format, self.lanes) {
            (F32, _) => bits.into(),
            (F64, _) => u64::from(bits) << 32 | u64::from(bits.wrapping_mul(0x9e37_79b9)),
            (F16 | Bf16, 1) => u64::from((bits >> 16) as u16),
            (F16 | Bf16, _) => u64::from((bits >> 16) as u16) | u64::from((bits >> 16) as u16 ^ 0x8155) << 16,
        }
    }
}

fn text(only: &[&Instruction]) -> String {
    let mut text = "
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 other, .param .u64 out, .param .u32 n) {
    .reg .b16 %h, %g; .reg .b32 %x, %y, %t, %n, %c, %l; .reg .f32 %f; .reg .b64 %in, %other, %out, %o, %d, %step;
    ld.param.u64 %in, [in]; ld.param.u64 %other, [other]; ld.param.u64 %out, [out]; ld.param.u32 %n, [n];
    mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %l, %ntid.x; mad.lo.u32 %t, %c, %l, %t;
    mul.wide.u32 %o, %t, 4; add.u64 %in, %in, %o; add.u64 %other, %other, %o;
    mul.wide.u32 %o, %t, 8; add.u64 %out, %out, %o; mul.wide.u32 %step, %n, 8;
    ld.global.b32 %x, [%in]; ld.global.b32 %y, [%other];
"
    .to_owned();
    for instruction in only {
        let name = instruction.mnemonic;
        let code = match (instruction.format, instruction.lanes) {
            (F32, _) if instruction.is_binary() => format!("{name} %f, %x, %y; mov.b32 %c, %f; cvt.u64.u32 %d, %c;"),
            (F32, _) => format!("{name} %f, %x; mov.b32 %c, %f; cvt.u64.u32 %d, %c;"),
            (F64, _) => format!("mul.lo.u32 %c, %x, 0x9e3779b9; mov.b64 %d, {{%c, %x}}; {name} %d, %d;"),
            (F16 | Bf16, 1) => {
                format!("shr.u32 %c, %x, 16; cvt.u16.u32 %h, %c; {name} %h, %h; cvt.u32.u16 %c, %h; cvt.u64.u32 %d, %c;")
            }
            (F16 | Bf16, _) => format!(
                "shr.u32 %c, %x, 16; cvt.u16.u32 %h, %c; xor.b16 %g, %h, 0x8155; mov.b32 %c, {{%h, %g}}; {name} %c, %c; cvt.u64.u32 %d, %c;"
            ),
        };
        let _ = writeln!(text, "    {code} st.global.u64 [%out], %d; add.u64 %out, %out, %step;");
    }
    text + "    ret;\n}"
}

/// Device with the kernel for some instructions.
struct Executor {
    name: String,
    device: Device,
    kernel: broadloom_device::Kernel,
    instructions: Vec<&'static Instruction>,
}

/// Number of threads of a block.
const BLOCK: usize = 128;

impl Executor {
    fn new(name: &str, device: Device) -> Executor {
        let instructions: Vec<&Instruction> = INSTRUCTIONS.iter().collect();
        let mut sources = Sources::new();
        let id = sources.add("approximate.ptx", text(&instructions));
        let module = parse(&sources, id).and_then(verify);
        let module: Verified = module.unwrap_or_else(|wrong| panic!("{}", sources.render_all(&wrong)));
        let kernel = device.load(&Arc::new(module)).unwrap().kernel("k").unwrap();
        Executor { name: name.to_owned(), device, kernel, instructions }
    }

    /// Returns wrong results for some operands, the first of each instruction.
    fn wrong(&self, patterns: &[u32]) -> Vec<String> {
        let padded = patterns.len().next_multiple_of(BLOCK);
        let filled = |list: Vec<u32>| self.device.upload(&list).unwrap();
        let others: Vec<u32> = (0..padded as u32).map(|index| other(index, patterns)).collect();
        let mut first = patterns.to_vec();
        first.resize(padded, 0);
        let (x, y) = (filled(first), filled(others.clone()));
        let out = self.device.zeros::<u64>(padded * self.instructions.len()).unwrap();
        let arguments = [(&x).into(), (&y).into(), (&out).into(), (padded as u32).into()];
        self.kernel.launch(&Launch::linear((padded / BLOCK) as u32, BLOCK as u32), &arguments).unwrap();
        let results = out.read().unwrap();
        let mut wrong = vec![];
        for (instruction, results) in self.instructions.iter().zip(results.chunks(padded)) {
            let format = instruction.format;
            let bits = if format == F64 { 64 } else { 16 };
            let lane = |register: u64, lane: u32| match instruction.lanes {
                1 => register,
                _ => register >> (bits * lane) & 0xffff,
            };
            let fails = |(index, register): &(usize, &u64)| {
                (0..instruction.lanes).any(|number| {
                    let a = format.value(lane(instruction.operand(patterns[*index]), number));
                    let b = format.value(u64::from(others[*index]));
                    !instruction.is_right(a, b, format.value(lane(**register, number)))
                })
            };
            if let Some((index, result)) = results.iter().take(patterns.len()).enumerate().find(fails) {
                let (name, mnemonic) = (&self.name, instruction.mnemonic);
                wrong.push(format!("{name}: `{mnemonic}` of {:#x}, {:#x}: {result:#x}", patterns[index], others[index]));
            }
        }
        wrong
    }
}

/// Returns the second operand for the pattern of an index: a pattern of the same list or a special value.
fn other(index: u32, patterns: &[u32]) -> u32 {
    match index % 8 {
        0 => SPECIAL[index as usize / 8 % SPECIAL.len()],
        _ => patterns[index.wrapping_mul(0x9e37_79b1) as usize % patterns.len()],
    }
}

/// Zeros, subnormal numbers, ones, infinities, NaNs, numbers around powers of two and multiples of π/2, the
/// largest.
const SPECIAL: [u32; 40] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x007f_ffff,
    0x807f_ffff,
    0x0080_0000,
    0x8080_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x3f7f_ffff,
    0x3f80_0001,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0xff80_0001,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7e80_0000,
    0x7e80_0001,
    0x7f00_0000,
    0x0040_0000,
    0x3fc9_0fdb,
    0x4049_0fdb,
    0x40c9_0fdb,
    0x47c3_5000,
    0x47c3_5001,
    0xc7c3_5001,
    0x4780_0000,
    0x4b80_0000,
    0x5f80_0000,
    0x7149_f2ca,
    0x6a5f_7f9a,
    0x42fe_0000,
    0x4300_0000,
    0xc316_0000,
    0xc315_ffff,
    0xc2fc_0000,
    0x3f20_0000,
    0xbf1f_ffff,
];

fn cpu(vectors: &str, vectorise: bool) -> Option<Device> {
    let options =
        broadloom_cpu::Options { memory_bytes: 2 << 30, cache: CacheFolder::Nowhere, ..broadloom_cpu::Options::default() };
    let mut options = options.vectors(vectors)?;
    options.compile.vectorise = vectorise;
    Some(Device::new(Cpu::new(options).unwrap()))
}

/// Compares special values and every `step`-th pattern.
fn compare(name: &str, device: Device, step: usize) {
    let executor = Executor::new(name, device);
    assert_eq!(executor.wrong(&SPECIAL), Vec::<String>::new());
    let mut patterns = (0..=u32::MAX).step_by(step).peekable();
    while patterns.peek().is_some() {
        let some: Vec<u32> = patterns.by_ref().take(1 << 18).collect();
        assert_eq!(executor.wrong(&some), Vec::<String>::new());
    }
}

fn main() {
    let arguments = Arguments::from_args();
    // A prime: about 32 mantissas of each exponent and sign.
    let step: usize = std::env::var("BROADLOOM_APPROXIMATE_EVERY").ok().and_then(|text| text.parse().ok()).unwrap_or(262_139);
    let fewer = step.max(65_521);
    let on = |vectors: &'static str, vectorise: bool, step: usize| {
        let name = format!("cpu, {vectors}, vectors: {vectorise}");
        Trial::ignorable_test(name.clone(), move || match cpu(vectors, vectorise) {
            Some(device) => {
                compare(&name, device, step);
                Ok(Completion::Completed)
            }
            None => Ok(Completion::ignored_with(format!("skipped: this machine has no {vectors}"))),
        })
    };
    let interp = Trial::test("interp", move || {
        compare("interp", Device::new(Interp::new(Options::default())), fewer);
        Ok(())
    });
    let forms = Trial::test("all_approximate_forms_are_compared", || {
        all_approximate_forms_are_compared();
        Ok(())
    });
    let trials =
        vec![on("host", true, step), on("avx2", true, fewer), on("sse4.2", true, fewer), on("host", false, fewer), interp, forms];
    libtest_mimic::run(&arguments, trials).exit();
}

/// The list above contains every approximate form of the table.
fn all_approximate_forms_are_compared() {
    let forms: BTreeSet<(&str, &'static str)> = Row::all()
        .iter()
        .flat_map(|row| row.forms())
        .map(|form| form.get())
        .filter(|form| matches!(form.exactness, Exactness::Error(_)))
        .map(|form| (form.opcode.name(), form.notation))
        .collect();
    // `.approx[.ftz].T{f32}` stands for names that begin with `.approx` and continue in one of several ways.
    let start = |notation: &'static str| notation.split(['[', '{', '$', ' ']).next().unwrap_or_default().trim_end_matches(".T");
    let is_compared = |(name, notation): &(&str, &'static str)| {
        INSTRUCTIONS.iter().any(|instruction| instruction.mnemonic.starts_with(&format!("{name}{}", start(notation))))
    };
    let missing: Vec<_> = forms.iter().filter(|form| !is_compared(form)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(forms.len(), 17, "{forms:?}");
}
