//! The group `compile`: the time to compile the kernels of the corpus on a device.
//!
//! The measured time of a kernel is its share of loading the module, plus its preparation. Reading and
//! verifying PTX is not included. Compiled code may be cached on disk. A figure therefore needs its own
//! process with an empty cache. A second process with a filled cache gives the figures for that case.

use crate::error::Failure;
use crate::report::Row;
use crate::{group, module};
use broadloom::device::{self, Device, Launch};
use broadloom::ptx::Function;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) const NAME: &str = "corpus";

/// The corpus, relative to the root of the repository.
const FOLDER: &str = "corpus/ptx";

/// A kernel and its compile time.
struct CompiledKernel {
    name: String,
    time: Duration,
}

/// Measures in this process, with the cache as it is. Returns rows for the median and the maximum.
pub(crate) fn run(device: &Device) -> Result<Vec<Row>, Failure> {
    let (mut compiled, mut refused) = (vec![], 0);
    for path in modules(Path::new(FOLDER))? {
        match compile(device, &path) {
            Ok(kernels) => compiled.extend(kernels),
            Err(Failure::Device(device::Error::Unsupported(_))) => refused += 1,
            Err(failure) => return Err(failure),
        }
    }
    compiled.sort_by_key(|kernel| kernel.time);
    let (Some(middle), Some(worst)) = (compiled.get(compiled.len() / 2), compiled.last()) else {
        return Err(Failure::Outside("no kernel of the corpus was accepted".to_owned()));
    };
    let mut size = format!("{} kernels", compiled.len());
    if refused > 0 {
        size += &format!(", {refused} modules refused");
    }
    let row = |name: &str, size: String, time: Duration| row(device.machine().id.clone(), name, size, time.as_secs_f64() * 1e3);
    Ok(vec![row("corpus_median", size, middle.time), row("corpus_worst", worst.name.clone(), worst.time)])
}

/// Returns a row of the group.
pub(crate) fn row(device: String, name: &str, size: String, ms: f64) -> Row {
    let time = Duration::from_secs_f64(ms / 1e3);
    Row { ms, compile_ms: Some(ms), ..Row::timed(group::COMPILE, name, size, device, time) }
}

/// Returns the optimised modules of the corpus. Debug modules are left out.
fn modules(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = std::fs::read_dir(folder).map_err(|error| {
        Failure::Outside(format!("{} cannot be read: {error}; run this in the root of the repository", folder.display()))
    })?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".ptx") && !name.ends_with(".g.ptx")
    };
    let mut paths: Vec<PathBuf> = paths.filter(is_wanted).collect();
    paths.sort();
    Ok(paths)
}

/// Compiles the kernels of a file.
fn compile(device: &Device, path: &Path) -> Result<Vec<CompiledKernel>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::Outside(format!("{}: {error}", path.display())))?;
    let module = module::parse(&path.display().to_string(), &text)?;
    let kernels: Vec<(String, Launch)> =
        module.kernels().map(|(_, function)| (function.name.clone(), launch(function))).collect();
    let start = Instant::now();
    let loaded = device.load(&module)?;
    let share = start.elapsed() / kernels.len().max(1) as u32;
    let mut compiled = vec![];
    for (name, launch) in kernels {
        let start = Instant::now();
        loaded.kernel(&name)?.prepare(&launch)?;
        compiled.push(CompiledKernel { name, time: start.elapsed() + share });
    }
    Ok(compiled)
}

/// Returns a launch of one cluster of blocks, with the block shape that the kernel declares or a default one.
fn launch(function: &Function) -> Launch {
    let axes = |given: &[u32]| [0, 1, 2].map(|axis| given.get(axis).copied().unwrap_or(1));
    let block = function.directive("reqntid").or_else(|| function.directive("maxntid"));
    let cluster = function.directive("reqnctapercluster");
    Launch::new(cluster.map_or([1; 3], axes), block.map_or([256, 1, 1], axes))
}
