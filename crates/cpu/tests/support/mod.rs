//! Kernels from text, and the CPU that code is looked at for.

use broadloom_cpu::compile::{Machine, Options};
use broadloom_diag::Sources;

/// Code that is looked at is for one CPU, whatever this host has: one with AVX-512 and nothing newer.
pub(crate) fn for_avx512() -> Options {
    Options { machine: Machine::named("skylake-avx512").unwrap(), ..Options::default() }
}

pub(crate) fn parsed(text: String) -> broadloom_ptx::Module {
    let mut sources = Sources::new();
    let id = sources.add("test.ptx", text);
    broadloom_ptx::parse(&sources, id).unwrap()
}
