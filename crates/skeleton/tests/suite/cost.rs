//! Costs of operations and predictions for machines.

use broadloom_device::{Machine, MachineKind};
use broadloom_scalar::{BinaryOp, Builder, Type};
use broadloom_skeleton::cost::{Blocking, Costs, DIVISION, KernelWork, binary, function};

fn cost(write: impl FnOnce(&Builder)) -> u64 {
    let b = Builder::function("f");
    write(&b);
    function(&b.finish_function(&[]).unwrap())
}

/// Loops count their iterations, and a division costs the same inside and outside of a function.
#[test]
fn loops_count_their_rounds() {
    let looped = |rounds: i32| {
        cost(|b| {
            let x = b.parameter("x", Type::F32);
            let sum = b.variable(Type::F32);
            b.for_range(0, rounds, |i| b.set(sum, b.div(b.convert(i, Type::F32), b.add(x, b.get(sum)))));
        })
    };
    // Each iteration has a division, a conversion, an addition and a read of the variable. The counter adds
    // one more.
    assert_eq!(looped(200) - looped(100), 100 * (DIVISION + 4));
    let b = Builder::function("g");
    let x = b.parameter("x", Type::F32);
    let quotient = b.div(x, 3.0);
    assert_eq!(function(&b.finish_function(&[quotient]).unwrap()), DIVISION);
    assert_eq!(binary(BinaryOp::Div), DIVISION);
}

/// Figures are computed from the description of a machine. Missing entries take the values of the reference
/// machines.
#[test]
fn costs_follow_the_description() {
    let device = broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default()));
    let xeon = Machine { kind: MachineKind::Cpu, multiprocessors: 2, ..device.machine().clone() };
    let known = Machine { core_cache_bytes: Some(2 << 20), vector_registers: Some((64, 32)), ..xeon.clone() };
    assert_eq!(Costs::of(&xeon).blocking(4), Blocking { rows: 12, strips: 86, panels: 16, depth: 512 });
    assert_eq!(Costs::of(&known).blocking(4), Costs::of(&xeon).blocking(4));
    let small = Machine { core_cache_bytes: Some(512 << 10), vector_registers: Some((32, 16)), ..xeon.clone() };
    assert_eq!(Costs::of(&small).blocking(4), Blocking { rows: 12, strips: 86, panels: 16, depth: 128 });
    assert_eq!((Costs::of(&xeon).balance(), Costs::of(&small).balance()), (8, 4));
    assert_eq!((Costs::of(&xeon).read_twice(), Costs::of(&small).read_twice()), (128 << 10, 32 << 10));
    assert_eq!(Costs::of(&xeon).balance_in_cache(), 3);

    let h200 = Machine {
        kind: MachineKind::Cuda,
        multiprocessors: 132,
        resident_threads: Some(2048),
        peak_operations: Some(2.0 * 132.0 * 128.0 * 1.98e9),
        peak_bandwidth: Some(2.0 * 3.201e9 * 768.0),
        ..device.machine().clone()
    };
    let unknown = Machine { resident_threads: None, peak_operations: None, ..h200.clone() };
    for machine in [&h200, &unknown] {
        let costs = Costs::of(machine);
        assert_eq!((costs.balance(), costs.blocks(1, 256), costs.enough_columns()), (15, 132 * 8, 132 * 1024));
        assert_eq!((costs.enough_rows(), costs.enough_scan_columns()), (132 * 8, 132 * 512));
    }
    // An RTX 4090 has fewer resident threads, and its ratio of compute to bandwidth is much higher.
    let consumer = Machine {
        multiprocessors: 128,
        resident_threads: Some(1536),
        peak_operations: Some(2.0 * 128.0 * 128.0 * 2.52e9),
        peak_bandwidth: Some(2.0 * 10.501e9 * 48.0),
        ..h200.clone()
    };
    assert_eq!((Costs::of(&consumer).balance(), Costs::of(&consumer).blocks(1, 256)), (91, 128 * 6));
}

#[test]
fn predictions_follow_the_slower_of_memory_and_arithmetic() {
    let device = broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default()));
    let plain = device.machine().clone();
    let cpu = Machine {
        kind: MachineKind::Cpu,
        bandwidth: Some(1e10),
        launch_cost: Some(1e-6),
        cache_bytes: Some(1 << 20),
        ..plain.clone()
    };
    let predicted = |work: KernelWork| Costs::of(&cpu).predict(&work).unwrap().as_nanos();
    assert_eq!(predicted(KernelWork { launches: 1, bytes: 10_000_000, operations: 0 }), 1_001_000);
    assert_eq!(predicted(KernelWork { launches: 1, bytes: 10_000_000, operations: 160_000_000 }), 2_001_000);
    assert_eq!(predicted(KernelWork { launches: 2, bytes: 300_000, operations: 0 }), 2_000 + 10_000);
    let work = KernelWork { launches: 1, bytes: 1, operations: 1 };
    assert_eq!(Costs::of(&plain).predict(&work), None, "the interpreter");
    // Without a measurement, the peaks count.
    let large = KernelWork { launches: 1, bytes: 90_000_000_000, operations: 0 };
    let described = Machine { bandwidth: None, launch_cost: None, peak_bandwidth: Some(1e11), ..cpu.clone() };
    assert_eq!(Costs::of(&described).predict(&large).unwrap().as_millis(), 1000);
    for kind in [MachineKind::Cpu, MachineKind::Cuda] {
        let unknown = Machine { kind, bandwidth: None, launch_cost: None, ..plain.clone() };
        assert!(Costs::of(&unknown).predict(&work).is_some(), "{kind:?}");
    }
}
