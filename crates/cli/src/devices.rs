//! `broadloom devices`: list of the available devices and their properties.

use crate::failure::Exit;
use crate::options::Devices;
use crate::terminal::{Style, Terminal};
use broadloom::device::{Machine, MachineKind};
use serde_json::{Value, json};

/// Lists the devices.
pub fn run(options: &Devices, terminal: &mut Terminal) -> Exit {
    let machines = broadloom::machines().into_iter().map(measured);
    let no_gpu = broadloom::cuda::machines().err().map(|error| error.to_string());
    if options.json {
        let devices: Vec<Value> = machines.map(|machine| to_json(&machine)).collect();
        terminal.write(&format!("{:#}\n", json!({ "devices": devices, "no_gpu": no_gpu })));
        return Exit::Done;
    }
    for machine in machines {
        describe(&machine, terminal);
        terminal.flush();
    }
    if let Some(why) = no_gpu {
        terminal.write(&format!("{why}\n"));
    }
    Exit::Done
}

/// Returns a device with measured values. The interpreter is not measured.
fn measured(machine: Machine) -> Machine {
    match machine.kind {
        MachineKind::Interp => machine,
        MachineKind::Cpu | MachineKind::Cuda => broadloom::open(&machine.id).map_or(machine, |device| device.measured_machine()),
    }
}

fn to_json(machine: &Machine) -> Value {
    let kind = match machine.kind {
        MachineKind::Interp => "interp",
        MachineKind::Cpu => "cpu",
        MachineKind::Cuda => "cuda",
    };
    let vectors = (machine.kind == MachineKind::Cpu).then(|| broadloom::cpu::Options::default().vector_features());
    json!({
        "id": machine.id, "kind": kind, "name": machine.name, "warp_size": machine.warp_size,
        "multiprocessors": machine.multiprocessors, "max_threads_per_block": machine.max_threads_per_block,
        "max_block": machine.max_block, "max_grid": machine.max_grid, "max_shared_bytes": machine.max_shared_bytes,
        "registers": machine.registers, "resident_threads": machine.resident_threads,
        "vector_registers": machine.vector_registers, "memory_bytes": machine.memory_bytes,
        "cache_bytes": machine.cache_bytes, "core_cache_bytes": machine.core_cache_bytes,
        "peak_operations": machine.peak_operations, "peak_bandwidth": machine.peak_bandwidth,
        "bandwidth": machine.bandwidth, "launch_cost": machine.launch_cost, "vectors": vectors,
        "isa": machine.isa.to_string(), "sm": machine.sm,
    })
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
        line("bandwidth", format!("{:.1} GB/s read and written by a copy", bandwidth / 1e9));
    }
    if let Some(cost) = machine.launch_cost {
        line("launch", format!("{:.1} µs of the caller's time", cost * 1e6));
    }
}

fn vectors() -> String {
    let features = broadloom::cpu::Options::default().vector_features();
    if features.is_empty() { "none that are known".to_owned() } else { features.join(", ") }
}
