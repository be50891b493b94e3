//! Code of a module: from the cache that all devices share, or compiled by the driver.
//!
//! The driver's own cache misses when only a comment changes and does not report why. Here the key of a
//! module is its canonical text, and the entry is the image that the driver's linker produces. **Images are
//! optional: if the driver makes none or rejects one, the module is loaded from its text,** and that reports
//! errors in the text.
//!
//! The linker compiles functions separately from their callers. Its assembler then keeps values of theirs in
//! uniform registers across divergent branches, and the results are wrong. Modules with functions are
//! therefore passed to the driver as text. The driver compiles them together with their callers, and uses its
//! own cache.

use crate::ffi::{ModuleHandle, code};
use crate::fit;
use crate::inner::Inner;
use broadloom_device::cache::{Key, Miss, Origin, digest};
use broadloom_device::{Error, Result, trace};
use broadloom_diag::{Code, Diagnostic, Diagnostics};
use broadloom_ptx::Verified;
use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const NOT_TAKEN: Code = Code("cuda-compile");
/// Maximum number of lines shown of the driver's log.
const LOG_LINES: usize = 20;
/// Version of the entries' format.
const FORMAT: u32 = 1;
/// Options that images are built with: the linker's defaults.
const LINK_OPTIONS: &str = "link";

/// Facts on the load of a module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadFacts {
    /// Reason for a cache miss, if it was one.
    pub(crate) miss: Option<Miss>,
    /// Load time, including compilation.
    pub(crate) time: Duration,
}

/// Returns the target of images: the GPU's architecture and the driver's release.
pub(crate) fn target(inner: &Inner) -> String {
    let driver = &inner.context.driver;
    let release = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    let release = release.lines().next().unwrap_or_default().trim();
    format!("sm_{} {} {} {release}", inner.machine.sm, driver.library, driver.version)
}

/// Loads a module. The context must be current.
pub(crate) fn load(inner: &Inner, module: &Verified) -> Result<(ModuleHandle, LoadFacts)> {
    let started = Instant::now();
    let mut span = trace::span("make code");
    let text = fit::text(module, inner.machine.sm, inner.machine.isa)?;
    let text = CString::new(text).map_err(|_| not_taken("the text of the module holds a zero", "", ""))?;
    let version = format!("{FORMAT} {}", env!("CARGO_PKG_VERSION"));
    let machine = inner.target.get_or_init(|| target(inner));
    let code = digest(text.as_bytes());
    if let Some(folder) = &inner.options.texts {
        write_text(folder, module, &text, &code);
    }
    let key = Key::new(&Origin { device: "cuda", code, version: &version, machine, options: LINK_OPTIONS });
    let facts = |miss| LoadFacts { miss, time: started.elapsed() };
    let images = &inner.images;
    let has_functions = module.functions.values().any(|function| !function.is_kernel && function.has_body);
    if has_functions || inner.options.level.is_some() {
        let handle = loaded_text(inner, &text)?;
        images.count(Err(Miss::Unkept));
        return Ok((handle, facts(Some(Miss::Unkept))));
    }
    let miss = match images.find(&key, 0, |body| Some((body.to_vec(), body.len()))) {
        Ok(image) => {
            if let Some(handle) = loaded_image(inner, &image)? {
                images.count(Ok(()));
                return Ok((handle, facts(None)));
            }
            images.discard(&key);
            Miss::Corrupt
        }
        Err(miss) => miss,
    };
    span.note_with("not in the cache", || miss.to_string());
    if let Some(image) = compiled(inner, &text)?
        && let Some(handle) = loaded_image(inner, &image)?
    {
        images.count(Err(miss));
        images.store(&key, &image);
        let bytes = image.len();
        images.keep(&key, 0, &Arc::new(image), bytes);
        return Ok((handle, facts(Some(miss))));
    }
    let handle = loaded_text(inner, &text)?;
    images.count(Err(miss));
    Ok((handle, facts(Some(miss))))
}

/// Writes the text of a module for inspection. Write errors are ignored.
fn write_text(folder: &Path, module: &Verified, text: &CStr, code: &[u8; 32]) {
    let kernels = module.functions.values().filter(|function| function.is_kernel);
    let name = kernels.map(|kernel| kernel.name.to_string()).next().unwrap_or_default();
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(64).collect();
    let number: String = code[..6].iter().map(|byte| format!("{byte:02x}")).collect();
    let _ = std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(folder.join(format!("{name}-{number}.ptx")), text.to_bytes()));
}

fn compiled(inner: &Inner, text: &CStr) -> Result<Option<Vec<u8>>> {
    let _span = trace::span("compile");
    inner.context.unless_lost(inner.context.driver.compile(text))
}

/// Loads an image. If memory is short, cached memory is released and the call is repeated.
fn loaded_image(inner: &Inner, image: &[u8]) -> Result<Option<ModuleHandle>> {
    // SAFETY: the driver's linker produced the image, here or for another process of this user, as the tag of
    // its entry proves.
    let load = || unsafe { inner.context.driver.load_image(image) };
    let mut outcome = load();
    if matches!(&outcome, Err(failed) if failed.code == code::OUT_OF_MEMORY) {
        inner.reclaim()?;
        outcome = load();
    }
    inner.context.unless_lost(outcome)
}

fn loaded_text(inner: &Inner, text: &CStr) -> Result<ModuleHandle> {
    // The driver may lack memory for the module while the pool holds some.
    let mut outcome = inner.context.driver.load_module(text, inner.options.level);
    if matches!(&outcome, Err((failed, _)) if failed.code == code::OUT_OF_MEMORY) {
        inner.reclaim()?;
        outcome = inner.context.driver.load_module(text, inner.options.level);
    }
    outcome.map_err(|(failed, log)| {
        let compiles =
            [code::INVALID_IMAGE, code::NO_BINARY_FOR_GPU, code::INVALID_PTX, code::UNSUPPORTED_PTX_VERSION, code::NOT_FOUND];
        if !compiles.contains(&failed.code) && log.is_empty() {
            return inner.context.error(failed);
        }
        let said = inner.context.driver.describe(failed);
        // Fatal errors stay fatal.
        match inner.context.error(failed) {
            Error::Driver { .. } => {
                not_taken(&format!("the driver does not take the module: {said}"), &log, &text.to_string_lossy())
            }
            other => other,
        }
    })
}

/// Builds the error for a module that the driver did not compile: its log, and the lines of the text that the
/// log names.
fn not_taken(message: &str, log: &str, text: &str) -> Error {
    let mut diagnostic = Diagnostic::error(NOT_TAKEN, message.to_owned());
    let mut shown = HashSet::new();
    for line in log.lines().map(str::trim).filter(|line| !line.is_empty()).take(LOG_LINES) {
        diagnostic = diagnostic.note(line.to_owned());
        let number = line.split_once("line ").and_then(|(_, rest)| {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest[..end].parse::<usize>().ok()
        });
        if let Some(number) = number.filter(|number| shown.insert(*number))
            && let Some(source) = number.checked_sub(1).and_then(|index| text.lines().nth(index))
        {
            diagnostic = diagnostic.note(format!("line {number} of the printed module: {}", source.trim()));
        }
    }
    let mut diagnostics = Diagnostics::new();
    diagnostics.push(diagnostic);
    Error::Unsupported(diagnostics)
}
