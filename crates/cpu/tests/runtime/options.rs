//! Descriptions of this machine.

use broadloom_cpu::Options;

#[test]
fn the_machine_is_described() {
    let machine = Options::default().machine();
    assert!(machine.multiprocessors >= 1);
    assert!(machine.memory_bytes > 1 << 20);
    assert!(!machine.name.is_empty());
    assert!(machine.core_cache_bytes <= machine.cache_bytes);
    let registers = |kind: &str| Options::default().vectors(kind).map(|options| options.machine().vector_registers);
    assert!(registers("sse4.2").is_none_or(|registers| registers == Some((16, 16))));
    assert!(registers("avx2").is_none_or(|registers| registers == Some((32, 16))));
    assert!(Options::default().vectors("nonsense").is_none());
    assert!(Options::default().vectors("host").is_some());
}
