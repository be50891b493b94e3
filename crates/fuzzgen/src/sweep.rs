//! Every form once: kernels that go through the pure instructions of the table one by one.
//!
//! A random kernel shows *that* two executors differ, a sweep shows *where*: each instruction works on the
//! same inputs and its results have their own place.

use crate::forms::{drawable, instantiate};
use crate::nans::{computed, reads_sign};
use crate::pools::{POOLS, Pool};
use crate::{Config, Kernel};
use broadloom_ptx::Type;
use broadloom_random::Random;
use std::fmt::Write as _;

/// Number of threads of a sweep, each with its own inputs.
const THREADS: usize = 64;
/// Number of instructions per kernel.
const PER_KERNEL: usize = 48;
/// Bytes of an instruction's results per thread: up to four of 8 bytes.
const RESULT_BYTES: usize = 32;
/// Number of input words per thread: one pair per register.
const INPUT_WORDS: usize = 128;
/// Number of choices of a form that reads a sign, for each choice of another: most operands are numbers.
const SIGN_CHOICES: usize = 4;
/// NaN as arithmetic of hosts makes it, with the sign that the canonical NaN does not have.
const NEGATIVE_NAN: u32 = 0xffc0_0000;

/// Kernel of a sweep.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The kernel with the swept instruction.
    pub kernel: Kernel,
    /// Instructions. Thread `t` stores the results of instruction `i` at byte
    /// `(t * instructions.len() + i) * 32`, up to four of 8 bytes.
    pub instructions: Vec<String>,
}

/// Returns kernels with all forms, each with `choices` random choices of modifiers and operands.
pub fn sweep(seed: u64, config: &Config, choices: usize) -> Vec<Sweep> {
    let mut random = Random::new(seed);
    let mut all: Vec<(String, Vec<&'static Pool>)> = vec![];
    for form in drawable(config) {
        let times = if !config.portable && reads_sign(form.get()) { SIGN_CHOICES } else { 1 };
        for _ in 0..choices * times {
            let mut results: Vec<&'static Pool> = vec![];
            let mut written = |pool: &'static Pool, _: &mut Random| {
                let same = results.iter().filter(|other| other.prefix == pool.prefix).count();
                results.push(pool);
                format!("{}o{same}", pool.prefix)
            };
            if let Some(text) = instantiate(form.get(), config, &mut random, &mut written) {
                all.push((text, results));
            }
        }
    }
    all.chunks(PER_KERNEL)
        .enumerate()
        .map(|(number, chunk)| one(seed.wrapping_add(number as u64), config, chunk, &mut random))
        .collect()
}

fn one(seed: u64, config: &Config, instructions: &[(String, Vec<&'static Pool>)], random: &mut Random) -> Sweep {
    let mut body = String::new();
    let mut line = |text: String| {
        let _ = writeln!(body, "\t{text};");
    };
    let stride = instructions.len() * RESULT_BYTES;
    line("ld.param.u64 %in, [input]".into());
    line("ld.param.u64 %out, [output]".into());
    line("cvta.to.global.u64 %in, %in".into());
    line("cvta.to.global.u64 %out, %out".into());
    line("mov.u32 %x, %tid.x".into());
    line(format!("mad.wide.u32 %in, %x, {}, %in", INPUT_WORDS * 4));
    line(format!("mad.wide.u32 %out, %x, {stride}, %out"));
    let mut place = 0;
    for pool in POOLS {
        for index in 0..pool.count {
            let name = format!("{}{index}", pool.prefix);
            match pool.ty {
                Type::Pred => {
                    line(format!("ld.global.u32 %x, [%in+{place}]"));
                    line(format!("setp.lt.s32 {name}, %x, 0"));
                }
                ty => line(format!("ld.global{ty} {name}, [%in+{place}]")),
            }
            if let Some(text) = computed(pool, index).filter(|_| !config.portable) {
                line(text);
            }
            place += 8;
        }
    }
    for (number, (text, results)) in instructions.iter().enumerate() {
        for pool in results {
            let zero = if pool.ty == Type::Pred { "setp.ne.u32" } else { "" };
            for index in 0..2 {
                match zero {
                    "" => line(format!(
                        "mov{} {}o{index}, {}",
                        pool.ty,
                        pool.prefix,
                        if pool.ty.is_float() { float_zero(pool.ty) } else { "0" }
                    )),
                    compare => line(format!("{compare} {}o{index}, 0, 0", pool.prefix)),
                }
            }
        }
        line(text.clone());
        for (index, pool) in results.iter().enumerate() {
            let same = results[..index].iter().filter(|other| other.prefix == pool.prefix).count();
            let (name, offset) = (format!("{}o{same}", pool.prefix), number * RESULT_BYTES + index * 8);
            match pool.ty {
                Type::Pred => {
                    line(format!("selp.u32 %x, 1, 0, {name}"));
                    line(format!("st.global.u32 [%out+{offset}], %x"));
                }
                ty => line(format!("st.global{ty} [%out+{offset}], {name}")),
            }
        }
    }
    let word_of = |word: usize| {
        let is_computed = register(word % INPUT_WORDS / 2).is_some_and(|(pool, index)| computed(pool, index).is_some());
        if is_computed && !config.portable && random.one_in(4) { NEGATIVE_NAN } else { random.corner32() }
    };
    let input = (0..THREADS * INPUT_WORDS).map(word_of).collect();
    let (major, minor) = config.isa;
    let mut text = format!(".version {major}.{minor}\n.target sm_{}\n.address_size 64\n\n", config.sm);
    text.push_str(".visible .entry fuzz(\n\t.param .u64 input,\n\t.param .u64 output\n)\n{\n");
    for pool in POOLS {
        let _ = writeln!(text, "\t.reg {} {}<{}>;", pool.ty, pool.prefix, pool.count);
        let _ = writeln!(text, "\t.reg {} {}o<4>;", pool.ty, pool.prefix);
    }
    text.push_str("\t.reg .b64 %in, %out;\n\t.reg .b32 %x;\n");
    text.push_str(&body);
    text.push_str("\tret;\n}\n");
    let kernel = Kernel { text, seed, grid: [1, 1, 1], block: [THREADS as u32, 1, 1], input, output_bytes: THREADS * stride };
    Sweep { kernel, instructions: instructions.iter().map(|(text, _)| text.clone()).collect() }
}

/// Returns the register that is loaded from a pair of input words.
fn register(pair: usize) -> Option<(&'static Pool, usize)> {
    POOLS.iter().flat_map(|pool| (0..pool.count).map(move |index| (pool, index))).nth(pair)
}

fn float_zero(ty: Type) -> &'static str {
    if ty == Type::F64 { "0d0000000000000000" } else { "0f00000000" }
}
