//! Statistics of a launch and its kernel: `broadloom run --stats`.

use crate::launching::{CompletedLaunch, Executor};
use crate::terminal::{Terminal, counted};
use broadloom::cpu::KernelStatistics;
use broadloom::cpu::abi::Kind;
use broadloom::cpu::code::Accesses;
use broadloom::cuda;
use broadloom::device::cache::Miss;
use std::time::Duration;

/// Prints the executor's statistics on standard error.
pub fn write(launched: &CompletedLaunch, terminal: &mut Terminal) {
    match &launched.executor {
        Executor::Cpu(cpu) => cpu.statistics().iter().for_each(|kernel| of_cpu(launched, kernel, terminal)),
        Executor::Cuda(cuda) => cuda.statistics().iter().for_each(|kernel| of_cuda(launched, kernel, terminal)),
        Executor::Interp(interp) => {
            let seconds = launched.time.as_secs_f64();
            let instructions = interp.statistics().instructions;
            let rate = instructions as f64 / seconds.max(1e-9) / 1e6;
            let milliseconds = seconds * 1e3;
            let text = format!("{instructions} instructions in {milliseconds:.3} ms, {rate:.1} million per second");
            terminal.remark(&format!("{}, {}, {text}", head(launched, &launched.kernel), launches(interp.statistics().launches)));
        }
    }
}

fn head(launched: &CompletedLaunch, kernel: &str) -> String {
    let (blocks, threads) = (launched.launch.blocks(), launched.launch.threads_per_block());
    format!("kernel {kernel}: {} of {}", counted(blocks, "block"), counted(threads, "thread"))
}

fn launches(count: u64) -> String {
    format!("{count} launch{}", if count == 1 { "" } else { "es" })
}

fn of_cpu(launched: &CompletedLaunch, kernel: &KernelStatistics, terminal: &mut Terminal) {
    let milliseconds = kernel.run_time.as_secs_f64() * 1e3;
    terminal.remark(&format!("{}, {} in {milliseconds:.3} ms", head(launched, &kernel.kernel), launches(kernel.launches)));
    let mut line = |name: &str, text: String| terminal.remark(&format!("  {name:<12}{text}"));
    line("code", format!("{} bytes, {}", kernel.code_bytes, origin(kernel.miss, kernel.compile_time)));
    let vectorised = match (&kernel.not_vectorised, kernel.kind) {
        (Some(reason), _) => format!("no, one thread at a time: {reason}"),
        (None, Kind::Block) => "yes, the warps of a block one after the other".to_owned(),
        (None, Kind::Warps) => "yes, the warps of a block by turns: they wait for each other".to_owned(),
        (None, Kind::Threads) => "no, one thread at a time".to_owned(),
    };
    line("vectorised", vectorised);
    // The slow path has no access patterns.
    if kernel.kind != Kind::Threads {
        line("loads", accesses(kernel.loads, "gather"));
        line("stores", accesses(kernel.stores, "scatter"));
    }
}

/// Describes the origin of code, its time, and the reason for a cache miss.
fn origin(miss: Option<Miss>, time: Duration) -> String {
    let milliseconds = time.as_secs_f64() * 1e3;
    match miss {
        None => format!("from the cache in {milliseconds:.3} ms"),
        Some(reason) => format!("compiled in {milliseconds:.3} ms; not in the cache: {reason}"),
    }
}

fn of_cuda(launched: &CompletedLaunch, kernel: &cuda::KernelStatistics, terminal: &mut Terminal) {
    let time = match kernel.timed {
        0 => String::new(),
        _ => format!(" in {:.4} ms by the GPU's clock", kernel.run_time.as_secs_f64() * 1e3),
    };
    terminal.remark(&format!("{}, {}{time}", head(launched, &kernel.kernel), launches(kernel.launches)));
    let mut line = |name: &str, text: String| terminal.remark(&format!("  {name:<12}{text}"));
    line("code", origin(kernel.miss, kernel.load_time));
    line("registers", format!("{} per thread", kernel.registers));
    line("memory", format!("{} bytes shared per block, {} bytes local per thread", kernel.shared_bytes, kernel.local_bytes));
}

/// Lists the access patterns of a kind that occur.
fn accesses(accesses: Accesses, scattered: &str) -> String {
    let Accesses { uniform, contiguous, strided, scattered: count } = accesses;
    let scattered = if count == 1 { scattered.to_owned() } else { format!("{scattered}s") };
    let kinds = [(contiguous, "contiguous"), (uniform, "uniform"), (strided, "strided"), (count, scattered.as_str())];
    let parts: Vec<String> =
        kinds.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}
