//! x86-64 CPUs that code can be compiled for by name, and their features.
//!
//! A list holds the features from which LLVM selects instructions by itself. Features for system software,
//! cryptography and matrix tiles need intrinsics that no kernel has, so they are left out.

/// A CPU by LLVM's name, the CPU that it extends, and the features that it adds.
struct Cpu {
    name: &'static str,
    extends: Option<&'static str>,
    adds: &'static [&'static str],
}

const CPUS: &[Cpu] = &[
    // `cx16` is not in LLVM's list for this name. Every x86-64 CPU since 2006 has it, and atomics of 128 bits
    // need it.
    Cpu { name: "x86-64", extends: None, adds: &["cmov", "cx8", "cx16", "fxsr", "mmx", "sse", "sse2"] },
    Cpu { name: "x86-64-v2", extends: Some("x86-64"), adds: &["crc32", "popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2"] },
    Cpu { name: "x86-64-v3", extends: Some("x86-64-v2"), adds: &["avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"] },
    Cpu { name: "x86-64-v4", extends: Some("x86-64-v3"), adds: &["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"] },
    Cpu { name: "haswell", extends: Some("x86-64-v3"), adds: &[] },
    Cpu { name: "skylake-avx512", extends: Some("x86-64-v4"), adds: &[] },
    Cpu { name: "cascadelake", extends: Some("skylake-avx512"), adds: &["avx512vnni"] },
    Cpu {
        name: "icelake-server",
        extends: Some("cascadelake"),
        adds: &["avx512bitalg", "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vpopcntdq", "gfni"],
    },
    Cpu { name: "sapphirerapids", extends: Some("icelake-server"), adds: &["avx512bf16", "avx512fp16", "avxvnni"] },
    Cpu { name: "znver3", extends: Some("x86-64-v3"), adds: &["sse4a"] },
    Cpu {
        name: "znver4",
        extends: Some("x86-64-v4"),
        adds: &[
            "avx512bf16",
            "avx512bitalg",
            "avx512ifma",
            "avx512vbmi",
            "avx512vbmi2",
            "avx512vnni",
            "avx512vpopcntdq",
            "gfni",
            "sse4a",
        ],
    },
];

/// Pairs of a feature and one that it requires, as in LLVM. Removing the second removes the first.
const NEEDS: &[(&str, &str)] = &[
    ("sse2", "sse"),
    ("sse3", "sse2"),
    ("ssse3", "sse3"),
    ("sse4a", "sse3"),
    ("sse4.1", "ssse3"),
    ("sse4.2", "sse4.1"),
    ("avx", "sse4.2"),
    ("avx2", "avx"),
    ("f16c", "avx"),
    ("fma", "avx"),
    ("gfni", "sse2"),
    ("avxvnni", "avx2"),
    ("avx512f", "avx2"),
    ("avx512f", "f16c"),
    ("avx512f", "fma"),
    ("avx512bw", "avx512f"),
    ("avx512cd", "avx512f"),
    ("avx512dq", "avx512f"),
    ("avx512ifma", "avx512f"),
    ("avx512vl", "avx512f"),
    ("avx512vnni", "avx512f"),
    ("avx512vpopcntdq", "avx512f"),
    ("avx512bf16", "avx512bw"),
    ("avx512bitalg", "avx512bw"),
    ("avx512vbmi", "avx512bw"),
    ("avx512vbmi2", "avx512bw"),
    ("avx512fp16", "avx512bw"),
    ("avx512fp16", "avx512dq"),
    ("avx512fp16", "avx512vl"),
];

/// Returns the names of all CPUs.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    CPUS.iter().map(|cpu| cpu.name)
}

/// Returns the features of a CPU; `None` if no CPU has the name.
pub(super) fn features(name: &str) -> Option<Vec<&'static str>> {
    let cpu = CPUS.iter().find(|cpu| cpu.name == name)?;
    let mut all = cpu.extends.and_then(features).unwrap_or_default();
    all.extend(cpu.adds);
    Some(all)
}

/// Returns the feature as the table spells it; `None` if no CPU has it.
pub(super) fn feature(name: &str) -> Option<&'static str> {
    CPUS.iter().flat_map(|cpu| cpu.adds).copied().find(|feature| *feature == name)
}

/// Adds a feature and those that it requires.
pub(super) fn add(features: &mut Vec<&'static str>, feature: &'static str) {
    if !features.contains(&feature) {
        features.push(feature);
    }
    NEEDS.iter().filter(|(needing, _)| *needing == feature).for_each(|(_, needed)| add(features, needed));
}

/// Removes a feature and those that require it. Returns all removed features.
pub(super) fn remove(features: &mut Vec<&'static str>, feature: &'static str) -> Vec<&'static str> {
    let mut removed = vec![feature];
    for (needing, _) in NEEDS.iter().filter(|(_, needed)| *needed == feature) {
        removed.extend(remove(features, needing));
    }
    features.retain(|kept| *kept != feature);
    removed
}
