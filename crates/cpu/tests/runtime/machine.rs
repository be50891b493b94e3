//! Machines that code is compiled for.

use broadloom_cpu::compile::Machine;

#[test]
fn a_cpu_has_the_features_of_its_name_and_those_that_are_added() {
    let haswell = Machine::named("haswell").unwrap();
    assert_eq!((haswell.cpu.as_str(), haswell.has("avx2"), haswell.has("avx512f")), ("haswell", true, false));
    assert!(!haswell.facts().avx512 && haswell.facts().wide_atomics);
    let skylake = Machine::named("skylake-avx512").unwrap();
    assert!(skylake.facts().avx512 && !skylake.facts().conflicts);
    assert!(Machine::named("skylake-avx512,+avx512vpopcntdq").unwrap().facts().conflicts);
    // An added feature adds those that it requires, and a removed one removes those that require it.
    assert!(Machine::named("x86-64,+avx2").unwrap().has("sse4.2"));
    let without = Machine::named("sapphirerapids,-avx512f").unwrap();
    assert!(without.has("avx2") && !without.has("avx512fp16") && !without.facts().avx512);
    assert!(Machine::named("znver4, -sse4a,+sse4a").unwrap().has("sse4a"));
    assert!(Machine::avx2().has("fma") && !Machine::avx2().has("avx512f") && !Machine::sse().has("avx"));
}

#[test]
fn a_name_that_is_not_known_is_told() {
    assert!(Machine::named("z80").unwrap_err().to_string().contains("no CPU `z80` is known; known are x86-64, "));
    assert!(Machine::named("").unwrap_err().to_string().contains("no CPU `` is known"));
    assert_eq!(Machine::named("haswell,+swimming").unwrap_err().to_string(), "no feature `swimming` is known");
    assert_eq!(Machine::named("haswell,avx").unwrap_err().to_string(), "`avx` is not a feature with `+` or `-` before it");
}

#[test]
fn code_to_be_run_has_no_feature_that_the_host_lacks() {
    let [zen, sapphire, haswell] = ["znver4", "sapphirerapids", "haswell"].map(|name| Machine::named(name).unwrap());
    assert_eq!(zen.beyond(&sapphire), ["sse4a"]);
    assert_eq!(zen.within(&sapphire), Machine::named("znver4,-sse4a").unwrap());
    assert!(haswell.beyond(&sapphire).is_empty());
    assert_eq!(haswell.within(&sapphire), haswell);
    let within = sapphire.within(&haswell);
    assert!(within.beyond(&haswell).is_empty() && within.has("fma") && !within.facts().avx512);
    assert!(Machine::host().runs_here().is_ok());
    let other = Machine { features: "+swimming".into(), ..Machine::detected().clone() };
    assert!(other.runs_here().unwrap_err().to_string().ends_with("needs swimming, which this host lacks"));
}
