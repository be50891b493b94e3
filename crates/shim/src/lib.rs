//! Shim libraries: what programs load in place of NVIDIA's libraries.
//!
//! A shim exports the names of NVIDIA's functions and nothing else. It needs no library. The first call of a
//! function opens the replacement library and jumps to the function of that name there; later calls jump
//! directly. **A process that calls no function of CUDA loads nothing but the shim.**
//!
//! The replacement library is opened with local scope. Its symbols, and those of the libraries that it needs
//! (LLVM, the C++ library), are invisible to the program. A program with an LLVM of its own therefore keeps
//! it. In the other direction, a program may export LLVM's names to all libraries: the functions for C, the
//! classes, or some of both. The shim looks for one name of each. If it finds one, the replacement library is
//! opened so that it prefers its own libraries (`RTLD_DEEPBIND`). This is not the default, because such a library
//! also ignores a preloaded allocator.
//!
//! - [`code`] is the machine code of all shims, independent of its position.
//! - [`elf`] writes a file with that code and the names.
//! - [`names`] lists the functions of each library.

#![allow(unsafe_code, reason = "it reads machine code between two symbols")]

mod code;
mod elf;
mod names;

pub use names::{LINKER_NAME, functions};

use std::path::Path;

/// Shim library to write.
#[derive(Clone, Copy, Debug)]
pub struct Shim<'a> {
    /// File name. It decides which functions the library has.
    pub name: &'a str,
    /// Version of all its symbols. Without one, the symbols satisfy references to any version.
    pub version: Option<&'a str>,
    /// Replacement library with the functions.
    pub replacement: &'a Path,
}

impl Shim<'_> {
    /// Returns the bytes of the library.
    pub fn bytes(&self) -> Vec<u8> {
        let functions = functions(self.name);
        let body = match self.name.starts_with(LINKER_NAME) {
            true => elf::FunctionBehaviour::Failing,
            false => elf::FunctionBehaviour::Forwarding(self.replacement),
        };
        elf::library(names::own_name(self.name), self.version, &functions, body)
    }
}
