//! Kernels from text, and the CPU for tests that inspect code.

use broadloom_cpu::compile::{CompileOptions, Machine};
use broadloom_diag::Sources;

/// Returns options for one fixed CPU, independent of this host: one with AVX-512 and nothing newer.
pub(crate) fn for_avx512() -> CompileOptions {
    CompileOptions { machine: Machine::named("skylake-avx512").unwrap(), ..CompileOptions::default() }
}

pub(crate) fn parsed(text: String) -> broadloom_ptx::Module {
    let mut sources = Sources::new();
    let id = sources.add("test.ptx", text);
    broadloom_ptx::parse(&sources, id).unwrap()
}
