//! Code for CPUs by name: kernels of the corpus assemble, and use no instruction of a feature that the CPU
//! lacks. Nothing is run, so any host can check the code for all of them.

use broadloom_cpu::compile::{CompileOptions, Machine, Stage, show};
use broadloom_diag::Sources;
use broadloom_transform::hoist_statics;
use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::targets::{CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

const CPUS: [&str; 6] = ["x86-64", "haswell", "skylake-avx512", "cascadelake", "sapphirerapids", "znver4"];

/// Kernels whose instructions differ between CPUs: bits, halves, conversions, shuffles, counting, packing,
/// atomics.
const KERNELS: [&str; 9] = [
    "atomics_wide",
    "bit_tricks",
    "conversions",
    "dot_products_packed",
    "half_math",
    "histogram_shared",
    "saxpy",
    "shuffles",
    "stream_compaction",
];

/// Mnemonics that need a feature. A name that ends in `*` matches any continuation.
const INSTRUCTIONS: &[(&str, &str)] = &[
    ("cx16", "cmpxchg16b"),
    ("popcnt", "popcntl popcntq popcntw"),
    ("lzcnt", "lzcntl lzcntq lzcntw"),
    ("movbe", "movbel movbeq movbew"),
    ("crc32", "crc32*"),
    ("bmi", "andnl andnq bextrl bextrq blsil blsiq blsmskl blsmskq blsrl blsrq tzcntl tzcntq tzcntw"),
    ("bmi2", "bzhil bzhiq mulxl mulxq pdepl pdepq pextl pextq rorxl rorxq sarxl sarxq shlxl shlxq shrxl shrxq"),
    ("sse3", "addsub* haddp* hsubp* lddqu movddup movshdup movsldup fisttp*"),
    ("sse4a", "extrq insertq movntsd movntss"),
    ("ssse3", "pshufb palignr pabs* phadd* phsub* pmaddubsw pmulhrsw psign*"),
    ("sse4.1", "blend* pblend* dpp* extractps insertps movntdqa mpsadbw packusdw pcmpeqq pextrb pextrd pextrq phminposuw pinsrb"),
    (
        "sse4.1",
        "pinsrd pinsrq pmaxsb pmaxsd pmaxud pmaxuw pminsb pminsd pminud pminuw pmovsx* pmovzx* pmuldq pmulld ptest round*",
    ),
    ("sse4.2", "pcmpgtq pcmpestr* pcmpistr*"),
    ("f16c", "vcvtph2ps vcvtps2ph"),
    ("fma", "vfmadd* vfmsub* vfnmadd* vfnmsub*"),
    ("gfni", "gf2p8* vgf2p8*"),
    ("avx512bf16", "vcvtne2ps2bf16 vcvtneps2bf16* vdpbf16ps"),
    ("avx512bitalg", "vpopcntb vpopcntw vpshufbitqmb"),
    ("avx512cd", "vpconflict* vplzcnt* vpbroadcastm*"),
    ("avx512dq", "vpmullq vcvt*qq* vextractf32x8 vextracti32x8 vinsertf32x8 vinserti32x8 kmovb kortestb"),
    ("avx512fp16", "vaddph vsubph vmulph vdivph vsqrtph vmaxph vminph vcmp*ph vfmadd*ph vmovw vmovsh vcvtph2psx vcvtps2phx"),
    (
        "avx512fp16",
        "vaddsh vsubsh vmulsh vdivsh vsqrtsh vmaxsh vminsh vucomish vcvtsh* vcvtss2sh vcvtsd2sh vcvtsi2sh* vcvtdq2ph*",
    ),
    ("avx512ifma", "vpmadd52*"),
    ("avx512vbmi", "vpermb vpermi2b vpermt2b vpmultishiftqb"),
    ("avx512vbmi2", "vpcompressb vpcompressw vpexpandb vpexpandw vpshld* vpshrd*"),
    ("avx512vnni", "vpdpbusd* vpdpwssd*"),
    ("avx512vpopcntdq", "vpopcntd vpopcntq"),
];

fn is_like(mnemonic: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => mnemonic == pattern,
        Some((head, tail)) => {
            mnemonic.strip_prefix(head).is_some_and(|rest| tail.is_empty() || rest.contains(tail.trim_end_matches('*')))
        }
    }
}

/// Returns the features that an instruction needs by its name.
fn needed_by_name(mnemonic: &str) -> BTreeSet<&'static str> {
    let listed = INSTRUCTIONS.iter().filter(|(_, names)| names.split(' ').any(|name| is_like(mnemonic, name)));
    listed.map(|(feature, _)| *feature).chain(mnemonic.starts_with('v').then_some("avx")).collect()
}

/// Returns the features that a line of assembly needs. `names` caches those of earlier instructions.
fn needs<'a>(line: &'a str, names: &mut HashMap<&'a str, BTreeSet<&'static str>>) -> BTreeSet<&'static str> {
    let line = line.split('#').next().unwrap_or_default().trim();
    let (is_vex, line) = match line.strip_prefix("{vex}") {
        Some(rest) => (true, rest.trim_start()),
        None => (false, line),
    };
    let (mnemonic, operands) = line.split_once(['\t', ' ']).unwrap_or((line, ""));
    if mnemonic.is_empty() || mnemonic.starts_with('.') || mnemonic.ends_with(':') {
        return BTreeSet::new();
    }
    let mut found = names.entry(mnemonic).or_insert_with(|| needed_by_name(mnemonic)).clone();
    if is_vex && found.remove("avx512vnni") {
        found.insert("avxvnni");
    }
    let mut is_evex = false;
    for register in operands.split(|c: char| !c.is_ascii_alphanumeric()) {
        let number = |prefix: &str| register.strip_prefix(prefix).and_then(|number| number.parse::<u32>().ok());
        is_evex |= number("zmm").is_some() || number("k").is_some() || ["xmm", "ymm"].iter().any(|kind| number(kind) >= Some(16));
        if number("ymm").is_some() {
            found.insert(if mnemonic.starts_with("vp") { "avx2" } else { "avx" });
        }
    }
    if is_evex {
        // These have a separate form in AVX-512.
        found.retain(|feature| !["f16c", "fma"].contains(feature));
        found.insert("avx512f");
    }
    found
}

/// Returns the lines that need a feature, with the feature.
fn needing(text: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<(&str, &'static str)> {
    let mut names = HashMap::new();
    let pairs = text.lines().flat_map(|line| needs(line, &mut names).into_iter().map(move |feature| (line, feature)));
    pairs.filter(|(_, feature)| is_wanted(feature)).collect()
}

/// Assembles text for a machine, as LLVM does with inline assembly of a module.
fn assemble(text: &str, machine: &TargetMachine) -> Result<usize, String> {
    let context = Context::create();
    let module = context.create_module("assembly");
    module.set_triple(&machine.get_triple());
    module.set_inline_assembly(text);
    let object = machine.write_to_memory_buffer(&module, FileType::Object).map_err(|error| error.to_string())?;
    Ok(object.as_slice().len())
}

fn target(machine: &Machine) -> TargetMachine {
    Target::initialize_x86(&InitializationConfig::default());
    let triple = TargetTriple::create(&machine.triple);
    let target = Target::from_triple(&triple).unwrap();
    let (level, relocations) = (OptimizationLevel::Default, RelocMode::PIC);
    target.create_target_machine(&triple, &machine.cpu, &machine.features, level, relocations, CodeModel::Small).unwrap()
}

#[test]
fn code_for_a_cpu_has_its_instructions_only() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/ptx");
    let mut used = BTreeSet::new();
    for name in KERNELS {
        let path = folder.join(format!("{name}.sm75.ptx"));
        let mut sources = Sources::new();
        let id = sources.add(path.to_string_lossy(), std::fs::read_to_string(&path).unwrap());
        let mut module = broadloom_ptx::parse(&sources, id).unwrap();
        hoist_statics::run(&mut module);
        let (kernel, _) = module.kernels().next().unwrap();
        for cpu in CPUS {
            let machine = Machine::named(cpu).unwrap();
            let options = CompileOptions { machine: machine.clone(), ..CompileOptions::default() };
            let text = show(&module, kernel, [64, 1, 1], &options, Stage::Assembly).unwrap();
            let foreign = needing(&text, |feature| !machine.has(feature));
            assert!(foreign.is_empty(), "{name} for {cpu}: {foreign:#?}");
            assert!(assemble(&text, &target(&machine)).unwrap() > 500, "{name} for {cpu}");
            used.extend(needing(&text, |_| true).into_iter().map(|(_, feature)| (cpu, feature)));
        }
    }
    // The check finds the instructions that exist.
    let expected = [
        ("haswell", "avx2"),
        ("haswell", "fma"),
        ("skylake-avx512", "avx512f"),
        ("cascadelake", "avx512vnni"),
        ("sapphirerapids", "avx512fp16"),
        ("sapphirerapids", "avx512vpopcntdq"),
        ("znver4", "avx512vpopcntdq"),
    ];
    for pair in expected {
        assert!(used.contains(&pair), "{pair:?} in {used:?}");
    }
}

/// Functions that are one instruction if a feature is present.
const TEXT: &str = "
define i32 @popcnt(i32 %a) { %r = call i32 @llvm.ctpop.i32(i32 %a) ret i32 %r }
define i32 @lzcnt(i32 %a) { %r = call i32 @llvm.ctlz.i32(i32 %a, i1 false) ret i32 %r }
define i32 @bmi(i32 %a, i32 %b) { %n = xor i32 %a, -1 %r = and i32 %n, %b ret i32 %r }
define i32 @bmi2(i32 %a, i32 %b) { %m = and i32 %b, 31 %r = shl i32 %a, %m ret i32 %r }
define i32 @movbe(ptr %p) { %v = load i32, ptr %p %r = call i32 @llvm.bswap.i32(i32 %v) ret i32 %r }
define <16 x i8> @ssse3(<16 x i8> %a) { %r = call <16 x i8> @llvm.abs.v16i8(<16 x i8> %a, i1 false) ret <16 x i8> %r }
define <4 x i32> @sse41(<4 x i32> %a, <4 x i32> %b) { %r = mul <4 x i32> %a, %b ret <4 x i32> %r }
define <2 x i1> @sse42(<2 x i64> %a, <2 x i64> %b) { %r = icmp sgt <2 x i64> %a, %b ret <2 x i1> %r }
define void @sse4a(ptr %p, float %a) { store float %a, ptr %p, !nontemporal !0 ret void }
define <8 x i32> @avx2(<8 x i32> %a, <8 x i32> %b) { %r = add <8 x i32> %a, %b ret <8 x i32> %r }
define <4 x float> @fma(<4 x float> %a, <4 x float> %b) { %r = call <4 x float> @llvm.fma.v4f32(<4 x float> %a, <4 x float> %b, <4 x float> %b) ret <4 x float> %r }
define <4 x float> @f16c(<4 x half> %a) { %r = fpext <4 x half> %a to <4 x float> ret <4 x float> %r }
define <16 x i32> @avx512f(<16 x i32> %a, <16 x i32> %b) { %r = add <16 x i32> %a, %b ret <16 x i32> %r }
define <16 x i32> @avx512cd(<16 x i32> %a) { %r = call <16 x i32> @llvm.ctlz.v16i32(<16 x i32> %a, i1 false) ret <16 x i32> %r }
define <8 x i64> @avx512dq(<8 x i64> %a, <8 x i64> %b) { %r = mul <8 x i64> %a, %b ret <8 x i64> %r }
define <16 x i32> @vpopcntdq(<16 x i32> %a) { %r = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %a) ret <16 x i32> %r }
define <64 x i8> @bitalg(<64 x i8> %a) { %r = call <64 x i8> @llvm.ctpop.v64i8(<64 x i8> %a) ret <64 x i8> %r }
define <16 x i32> @vbmi2(<16 x i32> %a, <16 x i32> %b) { %r = call <16 x i32> @llvm.fshl.v16i32(<16 x i32> %a, <16 x i32> %b, <16 x i32> %b) ret <16 x i32> %r }
define <8 x half> @fp16(<8 x half> %a, <8 x half> %b) { %r = fadd <8 x half> %a, %b ret <8 x half> %r }
define <16 x bfloat> @bf16(<16 x float> %a) { %r = fptrunc <16 x float> %a to <16 x bfloat> ret <16 x bfloat> %r }
declare i32 @llvm.ctpop.i32(i32)
declare i32 @llvm.ctlz.i32(i32, i1)
declare i32 @llvm.bswap.i32(i32)
declare <16 x i8> @llvm.abs.v16i8(<16 x i8>, i1)
declare <4 x float> @llvm.fma.v4f32(<4 x float>, <4 x float>, <4 x float>)
declare <16 x i32> @llvm.ctlz.v16i32(<16 x i32>, i1)
declare <16 x i32> @llvm.ctpop.v16i32(<16 x i32>)
declare <64 x i8> @llvm.ctpop.v64i8(<64 x i8>)
declare <16 x i32> @llvm.fshl.v16i32(<16 x i32>, <16 x i32>, <16 x i32>)
!0 = !{i32 1}
";

/// The features of a CPU in our table are those that LLVM gives it: both select the same instructions.
#[test]
fn the_features_of_a_cpu_are_those_that_llvm_knows() {
    let selected = |machine: &Machine| {
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(format!("{TEXT}\0").as_bytes(), "instructions");
        let module = context.create_module_from_ir(buffer).unwrap_or_else(|error| panic!("{}", error.to_string_lossy()));
        let text = target(machine).write_to_memory_buffer(&module, FileType::Assembly).unwrap();
        let text = String::from_utf8_lossy(text.as_slice()).into_owned();
        needing(&text, |_| true).into_iter().map(|(_, feature)| feature).collect::<BTreeSet<_>>()
    };
    for cpu in CPUS {
        let machine = Machine::named(cpu).unwrap();
        let by_name = selected(&Machine { features: String::new(), ..machine.clone() });
        let by_features = selected(&Machine { cpu: "x86-64".into(), ..machine.clone() });
        assert_eq!(by_name, by_features, "{cpu}");
        assert!(by_name.iter().all(|feature| machine.has(feature)), "{cpu}: {by_name:?}");
    }
}
