//! Generated kernels have the promised properties.
//!
//! `BROADLOOM_FUZZ_KERNELS=n` generates n of them, starting at the seed `BROADLOOM_FUZZ_SEED`.

use broadloom_device::Device;
use broadloom_diag::Sources;
use broadloom_fuzzgen::{Config, Kernel, generate, module, run, survey, sweep};
use broadloom_interp::{Interp, Options};
use broadloom_ptx::{Verified, parse, print};
use std::sync::Arc;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`, and it takes a number")))
}

fn seeds(default: u64) -> std::ops::Range<u64> {
    let first = setting("BROADLOOM_FUZZ_SEED", 0);
    first..first + setting("BROADLOOM_FUZZ_KERNELS", default)
}

#[test]
fn round_trips() {
    let config = Config { approximate: true, portable: false, isa: (9, 0), ..Config::default() };
    let report = survey(seeds(300), &config, |kernel, module| {
        let printed = print(module);
        let mut sources = Sources::new();
        let id = sources.add("printed", printed.as_str());
        let mut again = parse(&sources, id).map_err(|diagnostics| sources.render_all(&diagnostics))?;
        if print(&again) != printed {
            return Err(format!("the print is not a fixed point:\n{}", kernel.text));
        }
        again.strip_spans();
        let mut first = (***module).clone();
        first.strip_spans();
        if first != again { Err(format!("the printed module differs:\n{}", kernel.text)) } else { Ok(true) }
    });
    let report = report.unwrap_or_else(|why| panic!("{why}"));
    assert!(report.opcodes.len() > 80, "only {} instructions were drawn: {:?}", report.opcodes.len(), report.opcodes.keys());
}

#[test]
fn run_the_same_twice_and_have_no_faults() {
    let checked = Interp::new(Options { check: true, ..Options::default() });
    let (plain, watched) = (Device::new(Interp::new(Options::default())), Device::new(checked.clone()));
    let compare = |kernel: &Kernel, module: &Arc<Verified>| {
        let first = run(&plain, kernel, module).map_err(|error| format!("{error}\n{}", kernel.text))?;
        let second = run(&watched, kernel, module).map_err(|error| format!("{error}\n{}", kernel.text))?;
        if first.output != second.output {
            return Err("two runs differ".to_owned());
        }
        let findings = checked.findings();
        match findings.first() {
            Some(finding) => Err(format!("{}\n{}", finding.render(&Sources::new()), kernel.text)),
            None => Ok(first.useful),
        }
    };
    for (portable, count) in [(true, 100), (false, 50)] {
        let report = survey(seeds(count), &Config { portable, ..Config::default() }, compare);
        let report = report.unwrap_or_else(|why| panic!("{why}"));
        assert!(report.useful * 10 >= report.kernels * 9, "only {} of {} kernels are useful", report.useful, report.kernels);
    }
}

/// Every kind of instruction that reads the sign of a NaN gets one that arithmetic has just made.
#[test]
fn signs_of_computed_nans_are_read() {
    let config = Config { portable: false, ..Config::default() };
    let texts: String = (0..400).map(|seed| generate(seed, &config).text).collect();
    let (mut readers, mut computed) = (std::collections::BTreeSet::new(), String::new());
    for line in texts.lines().map(|line| line.trim().trim_end_matches(';')) {
        let Some((name, operands)) = line.split_once(' ') else { continue };
        let mut registers = operands.split([',', ' ', '{', '}', '[', ']']).filter(|word| word.starts_with('%'));
        let result = registers.next().unwrap_or_default();
        let makes = matches!(name, "sub.f32" | "mul.f32" | "div.rn.f32" | "fma.rn.f32" | "sqrt.rn.f32");
        if operands.contains(&computed) && !computed.is_empty() && !makes {
            readers.insert(name.to_owned());
        }
        computed = match makes && registers.any(|source| source == result) {
            true => result.to_owned(),
            false => String::new(),
        };
    }
    let missing: Vec<&str> = [
        "min.xorsign.abs.f32",
        "max.xorsign.abs.f32",
        "min.ftz.xorsign.abs.f32",
        "max.NaN.xorsign.abs.f32",
        "copysign.f32",
        "abs.f32",
        "neg.f32",
        "mov.b32",
        "mov.b64",
        "testp.number.f32",
        "selp.f32",
        "cvt.f64.f32",
        "cvt.rn.f16.f32",
        "st.global.f32",
        "st.local.f32",
        "atom.global.exch.b32",
        "atom.global.add.f32",
        "shfl.sync.bfly.b32",
        "and.b32",
    ]
    .into_iter()
    .filter(|name| !readers.contains(*name))
    .collect();
    assert!(missing.is_empty(), "not after a computed NaN: {missing:?}; {readers:?}");
}

#[test]
fn sweeps_go_through_every_pure_instruction() {
    let device = Device::new(Interp::new(Options::default()));
    let config = Config { portable: false, ..Config::default() };
    let sweeps = sweep(setting("BROADLOOM_FUZZ_SEED", 0), &config, setting("BROADLOOM_SWEEP", 1) as usize);
    let mut drawn = std::collections::BTreeSet::new();
    for sweep in &sweeps {
        let module = module(&sweep.kernel).unwrap_or_else(|why| panic!("{why}"));
        run(&device, &sweep.kernel, &module).unwrap_or_else(|error| panic!("{error}\n{}", sweep.kernel.text));
        drawn.extend(module.kernels().flat_map(|(_, function)| function.instructions()).filter_map(|(_, data)| data.opcode()));
    }
    let missing: Vec<&str> = broadloom_ptx::Row::all()
        .iter()
        .filter(|row| row.effects.is_pure() && row.class.is_general() && !drawn.contains(&row.opcode))
        .map(|row| row.name)
        .collect();
    // Approximate ones are not drawn, carry chains are not single instructions, and these need addresses,
    // mbarriers or later targets.
    let known = [
        "sin",
        "cos",
        "lg2",
        "ex2",
        "tanh",
        "rsqrt",
        "addc",
        "add.cc",
        "sub.cc",
        "subc",
        "madc",
        "cvta",
        "cvta.to",
        "isspacep",
        "istypep",
        "mapa",
        "getctarank",
        "mbarrier.pending_count",
        "clmad",
        "createpolicy.range",
        "createpolicy.fractional",
        "createpolicy.cvt",
        "alloca",
        "stacksave",
        "stackrestore",
    ];
    let lost: Vec<&&str> = missing.iter().filter(|name| !known.contains(name)).collect();
    assert!(lost.is_empty(), "never drawn: {lost:?}");
}

#[test]
fn seeds_differ() {
    let config = Config::default();
    let texts: std::collections::HashSet<String> = (0..50).map(|seed| broadloom_fuzzgen::generate(seed, &config).text).collect();
    assert_eq!(texts.len(), 50);
    assert!(module(&broadloom_fuzzgen::generate(1, &config)).is_ok());
}
