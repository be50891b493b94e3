//! Costs of operations and predictions for machines.

use broadloom_device::{Machine, MachineKind};
use broadloom_scalar::{BinaryOp, Builder, Type};
use broadloom_skeleton::cost::{
    ArenaBytes, Blocking, ByWorker, Costs, DIVISION, FlattenedLevels, KernelWork, SequentialCalls, TeamCalls, binary, function,
};

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

/// Calls of a recursive function such as quicksort, with the numbers of NESL.
const CALLS: SequentialCalls = SequentialCalls {
    flattened: FlattenedLevels { launches: 24.0, bytes: 200.0, levels: 2.0 },
    accesses: ByWorker { gpu: 1.0, core: 10.0 },
    task_elements: ByWorker { gpu: 96, core: 1 << 12 },
    part_of_worker: 1.5,
    part_of_core: 2.0,
    arena: ByWorker {
        gpu: ArenaBytes { element: 96, call: 1 << 13, fixed: 0 },
        core: ArenaBytes { element: 192, call: 1 << 13, fixed: 0 },
    },
    task_arena_elements: 1 << 12,
    warps_of_block: 2,
    thread_elements: 128,
    threads_of_block: 8,
    thread_depth: 48,
    depth: ByWorker { gpu: 64, core: 96 },
    teams: TeamCalls {
        calls: 1 << 10,
        elements: 1 << 12,
        threads: 512,
        blocks: 2,
        arena: ArenaBytes { element: 1536, call: 1 << 15, fixed: 1 << 22 },
        arena_share: 4,
        frame: 384,
        depth: [16, 80],
        forced: (3, 160, 64),
    },
};

/// A warp of a GPU waits for each access, so only short calls run in one. A core of a CPU takes its share
/// of all elements.
#[test]
fn sequential_calls_are_short_on_gpus() {
    let device = broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default()));
    let h200 = Machine {
        kind: MachineKind::Cuda,
        multiprocessors: 132,
        resident_threads: Some(2048),
        peak_bandwidth: Some(2.0 * 3.201e9 * 768.0),
        memory_bytes: 139 << 30,
        ..device.machine().clone()
    };
    let gpu = Costs::of(&h200);
    for elements in [1000, 1_000_000, 100_000_000] {
        let limit = gpu.sequential_limit(&CALLS, elements, false);
        assert!((10_000..=60_000).contains(&limit) || elements > 1_000_000, "{limit} of {elements}");
        assert!(limit < 400_000, "{limit} of {elements}");
    }
    assert!(!gpu.separates_calls(&CALLS, 1_000_000, 900_000), "launches take longer than bytes");
    assert!(gpu.separates_calls(&CALLS, 100_000_000, 90_000_000) && !gpu.separates_calls(&CALLS, 100_000_000, 10_000_000));
    let workers = gpu.sequential_workers(&CALLS, 1_000_000, 1000, false);
    assert_eq!((workers.count(), workers.lanes, workers.threads), (132 * 32, 32, 64));
    // Many short calls run in threads, few of which share a warp.
    let workers = gpu.sequential_workers(&CALLS, 1_000_000, 64, false);
    assert_eq!((workers.count(), workers.lanes, workers.threads), (132 * 256, 1, 8));
    let scalars = gpu.sequential_workers(&CALLS, 10_000, 2, false);
    assert_eq!((scalars.count(), scalars.lanes, scalars.threads), (10_000, 1, 2));
    let few = gpu.sequential_workers(&CALLS, 3, 64, false);
    assert_eq!((few.blocks, few.threads, few.count(), few.callers()), (2, 64, 4, 3));
    assert_eq!(gpu.sequential_workers(&CALLS, 1, 64, false).threads, 32);
    // Other workers take parts of a few large calls.
    let parts = gpu.sequential_workers(&CALLS, 10, 8000, false);
    assert_eq!((parts.callers(), parts.count()), (10, 10 * (1 + 8000 / 96)));
    assert!(parts.task_arena <= parts.arena && parts.bytes() < 1 << 30, "{parts:?}");
    let parts = gpu.sequential_workers(&CALLS, 40, 60_000, false);
    assert!(parts.task_arena < parts.arena && parts.task_arena > 8000 * 96, "{parts:?}");
    assert_eq!(parts.count(), 132 * 32);
    // Arenas use a fraction of the memory.
    let large = gpu.sequential_workers(&CALLS, 1_000_000, 1 << 20, false);
    assert!(large.bytes() <= h200.memory_bytes / 8, "{large:?}");
    assert_eq!(gpu.sequential_workers(&CALLS, 10, u64::MAX, false).callers, 1);
    // Teams run a few large calls on the whole machine, and the arena is a fraction of the memory.
    let teams = gpu.sequential_teams(&CALLS.teams, 2, 1_000_000, 600_000, false).expect("teams");
    assert_eq!((teams.blocks, teams.threads, teams.depth), (264, 512, 80));
    assert!(teams.arena > 1_000_000_000 && teams.arena < h200.memory_bytes / 32, "{teams:?}");
    assert_eq!(gpu.sequential_teams(&CALLS.teams, 100_000, 1_000_000, 600_000, false), None);
    assert_eq!(gpu.sequential_teams(&CALLS.teams, 500, 1_000_000, 2000, false), None);
    assert_eq!(gpu.sequential_teams(&CALLS.teams, 2, 100_000_000, 60_000_000, false), None);
    assert_eq!(gpu.sequential_teams(&CALLS.teams, 2, u64::MAX, u64::MAX, false), None);
    let small = Machine { memory_bytes: 8 << 30, ..h200.clone() };
    assert_eq!(Costs::of(&small).sequential_teams(&CALLS.teams, 2, 100_000, 60_000, false).map(|teams| teams.depth), Some(16));

    let xeon = Machine { kind: MachineKind::Cpu, multiprocessors: 2, ..device.machine().clone() };
    let cpu = Costs::of(&xeon);
    assert_eq!(cpu.sequential_teams(&CALLS.teams, 2, 1_000_000, 600_000, false), None);
    assert_eq!(cpu.sequential_limit(&CALLS, 1_000_000, false), 750_000);
    assert!(
        (30_000..35_000).contains(&cpu.sequential_limit(&CALLS, 10_000, false)),
        "{}",
        cpu.sequential_limit(&CALLS, 10_000, false)
    );
    assert!(cpu.separates_calls(&CALLS, 100_000, 50_000) && !cpu.separates_calls(&CALLS, 100_000, 49_999));
    let workers = cpu.sequential_workers(&CALLS, 10, 1000, false);
    assert_eq!((workers.blocks, workers.threads, workers.lanes, workers.callers(), workers.grain), (2, 1, 1, 2, 0));
    // One core takes the call, and the other takes parts of it.
    assert_eq!(cpu.sequential_limit(&CALLS, 1_000_000, true), 1_000_000);
    let parts = cpu.sequential_workers(&CALLS, 1, 1_000_000, true);
    assert_eq!((parts.blocks, parts.threads, parts.lanes, parts.callers()), (2, 1, 1, 1));
    assert!(parts.grain > 0 && parts.task_arena <= parts.arena && parts.arena > 192_000_000, "{parts:?}");
    assert_eq!(cpu.sequential_workers(&CALLS, 1, 1000, true).blocks, 1);
}
