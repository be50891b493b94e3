//! Decisions of the cost model for sequential calls on machines.

use crate::support::interp;
use broadloom_device::{Machine, MachineKind};
use broadloom_graph::Costs;
use broadloom_nesl::run::SEQUENTIAL_CALLS;
use libtest_mimic::Failed;

/// A warp of a GPU waits for each access, so only short calls run in one. A core of a CPU takes its share
/// of all elements.
pub(crate) fn short_on_gpus() -> Result<(), Failed> {
    let device = interp()?;
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
        let limit = gpu.sequential_limit(&SEQUENTIAL_CALLS, elements, false);
        assert!((10_000..=60_000).contains(&limit) || elements > 1_000_000, "{limit} of {elements}");
        assert!(limit < 400_000, "{limit} of {elements}");
    }
    assert!(!gpu.separates_calls(&SEQUENTIAL_CALLS, 1_000_000, 900_000), "launches take longer than bytes");
    assert!(
        gpu.separates_calls(&SEQUENTIAL_CALLS, 100_000_000, 90_000_000)
            && !gpu.separates_calls(&SEQUENTIAL_CALLS, 100_000_000, 10_000_000)
    );
    let workers = gpu.sequential_workers(&SEQUENTIAL_CALLS, 1_000_000, 1000, false);
    assert_eq!((workers.count(), workers.lanes, workers.threads), (132 * 32, 32, 64));
    // Many short calls run in threads, few of which share a warp.
    let workers = gpu.sequential_workers(&SEQUENTIAL_CALLS, 1_000_000, 64, false);
    assert_eq!((workers.count(), workers.lanes, workers.threads), (132 * 256, 1, 8));
    let scalars = gpu.sequential_workers(&SEQUENTIAL_CALLS, 10_000, 2, false);
    assert_eq!((scalars.count(), scalars.lanes, scalars.threads), (10_000, 1, 2));
    let few = gpu.sequential_workers(&SEQUENTIAL_CALLS, 3, 64, false);
    assert_eq!((few.blocks, few.threads, few.count(), few.callers()), (2, 64, 4, 3));
    assert_eq!(gpu.sequential_workers(&SEQUENTIAL_CALLS, 1, 64, false).threads, 32);
    // Other workers take parts of a few large calls.
    let parts = gpu.sequential_workers(&SEQUENTIAL_CALLS, 10, 8000, false);
    assert_eq!((parts.callers(), parts.count()), (10, 10 * (1 + 8000 / 96)));
    assert!(parts.task_arena <= parts.arena && parts.bytes() < 1 << 30, "{parts:?}");
    let parts = gpu.sequential_workers(&SEQUENTIAL_CALLS, 40, 60_000, false);
    assert!(parts.task_arena < parts.arena && parts.task_arena > 8000 * 96, "{parts:?}");
    assert_eq!(parts.count(), 132 * 32);
    // Arenas use a fraction of the memory.
    let large = gpu.sequential_workers(&SEQUENTIAL_CALLS, 1_000_000, 1 << 20, false);
    assert!(large.bytes() <= h200.memory_bytes / 8, "{large:?}");
    assert_eq!(gpu.sequential_workers(&SEQUENTIAL_CALLS, 10, u64::MAX, false).callers, 1);
    // Teams run a few large calls on the whole machine, and the arena is a fraction of the memory.
    let teams = gpu.sequential_teams(&SEQUENTIAL_CALLS.teams, 2, 1_000_000, 600_000, false).expect("teams");
    assert_eq!((teams.blocks, teams.threads, teams.depth), (264, 512, 80));
    assert!(teams.arena > 1_000_000_000 && teams.arena < h200.memory_bytes / 32, "{teams:?}");
    assert_eq!(gpu.sequential_teams(&SEQUENTIAL_CALLS.teams, 100_000, 1_000_000, 600_000, false), None);
    assert_eq!(gpu.sequential_teams(&SEQUENTIAL_CALLS.teams, 500, 1_000_000, 2000, false), None);
    assert_eq!(gpu.sequential_teams(&SEQUENTIAL_CALLS.teams, 2, 100_000_000, 60_000_000, false), None);
    assert_eq!(gpu.sequential_teams(&SEQUENTIAL_CALLS.teams, 2, u64::MAX, u64::MAX, false), None);
    let small = Machine { memory_bytes: 8 << 30, ..h200.clone() };
    assert_eq!(
        Costs::of(&small).sequential_teams(&SEQUENTIAL_CALLS.teams, 2, 100_000, 60_000, false).map(|teams| teams.depth),
        Some(16)
    );

    let xeon = Machine { kind: MachineKind::Cpu, multiprocessors: 2, ..device.machine().clone() };
    let cpu = Costs::of(&xeon);
    assert_eq!(cpu.sequential_teams(&SEQUENTIAL_CALLS.teams, 2, 1_000_000, 600_000, false), None);
    assert_eq!(cpu.sequential_limit(&SEQUENTIAL_CALLS, 1_000_000, false), 750_000);
    assert!(
        (30_000..35_000).contains(&cpu.sequential_limit(&SEQUENTIAL_CALLS, 10_000, false)),
        "{}",
        cpu.sequential_limit(&SEQUENTIAL_CALLS, 10_000, false)
    );
    assert!(cpu.separates_calls(&SEQUENTIAL_CALLS, 100_000, 50_000) && !cpu.separates_calls(&SEQUENTIAL_CALLS, 100_000, 49_999));
    let workers = cpu.sequential_workers(&SEQUENTIAL_CALLS, 10, 1000, false);
    assert_eq!((workers.blocks, workers.threads, workers.lanes, workers.callers(), workers.grain), (2, 1, 1, 2, 0));
    // One core takes the call, and the other takes parts of it.
    assert_eq!(cpu.sequential_limit(&SEQUENTIAL_CALLS, 1_000_000, true), 1_000_000);
    let parts = cpu.sequential_workers(&SEQUENTIAL_CALLS, 1, 1_000_000, true);
    assert_eq!((parts.blocks, parts.threads, parts.lanes, parts.callers()), (2, 1, 1, 1));
    assert!(parts.grain > 0 && parts.task_arena <= parts.arena && parts.arena > 192_000_000, "{parts:?}");
    assert_eq!(cpu.sequential_workers(&SEQUENTIAL_CALLS, 1, 1000, true).blocks, 1);
    Ok(())
}
