//! `broadloom devices`: what is here, and what it can do.

use crate::failure::Exit;
use crate::terminal::{Style, Terminal};
use broadloom::device::{Machine, MachineKind};

/// Lists the devices.
pub fn run(terminal: &mut Terminal) -> Exit {
    for machine in broadloom::machines() {
        describe(&measured(machine), terminal);
    }
    if let Err(error) = broadloom::cuda::machines() {
        terminal.write(&format!("{error}\n"));
    }
    Exit::Done
}

/// A GPU with what has to be measured; others as they are.
fn measured(machine: Machine) -> Machine {
    match broadloom::gpu_ordinal(&machine.id) {
        Some(_) => broadloom::open(&machine.id).map_or(machine, |device| device.machine().clone()),
        None => machine,
    }
}

fn describe(machine: &Machine, terminal: &mut Terminal) {
    let title = terminal.styled(Style::Bold, &machine.id);
    terminal.write(&format!("{title}: {}\n", machine.name));
    let [x, y, z] = machine.max_block;
    let mut line = |name: &str, text: String| {
        let name = terminal.styled(Style::Dim, &format!("  {name:<14}"));
        terminal.write(&format!("{name}{text}\n"));
    };
    let what = match machine.kind {
        MachineKind::Interp => "one thread at a time, exactly as the manual says; finds faults with `check`",
        MachineKind::Cpu => "vector code on the cores of this machine",
        MachineKind::Cuda => "an NVIDIA GPU",
    };
    line("kind", what.to_owned());
    if machine.kind == MachineKind::Cpu {
        let threads = machine.multiprocessors;
        line("cores", format!("{threads} thread{} that run blocks", if threads == 1 { "" } else { "s" }));
        line("vectors", vectors());
    }
    if machine.kind == MachineKind::Cuda {
        line("processors", machine.multiprocessors.to_string());
    }
    line("takes", format!("PTX up to {}, targets up to sm_{}", machine.isa, machine.sm));
    line("warp", format!("{} threads", machine.warp_size));
    line("block", format!("at most {} threads, at most {x} × {y} × {z}", machine.max_threads_per_block));
    line("shared memory", format!("{} KiB per block", machine.max_shared_bytes >> 10));
    line("memory", format!("{:.1} GiB", machine.memory_bytes as f64 / (1u64 << 30) as f64));
    if let Some(bytes) = machine.cache_bytes {
        line("cache", format!("{:.1} MiB", bytes as f64 / (1u64 << 20) as f64));
    }
    if let Some(bandwidth) = machine.bandwidth {
        line("bandwidth", format!("{:.0} GB/s", bandwidth / 1e9));
    }
    if let Some(cost) = machine.launch_cost {
        line("launch", format!("{:.1} µs", cost * 1e6));
    }
}

fn vectors() -> String {
    let features = broadloom::cpu::Options::default().vector_features();
    if features.is_empty() { "none that are known".to_owned() } else { features.join(", ") }
}
