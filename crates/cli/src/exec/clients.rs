//! Environment variables by which Python libraries find the shim libraries, so that users need not set
//! them.
//!
//! **A variable that the user has set is not changed.**

use super::shims::{NAMES, RUNTIME, SHIM, prepend};
use crate::options::ASSEMBLER;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sets the paths of the driver and the assembler for Python libraries.
pub fn set_variables(command: &mut Command, folder: &Path) {
    let assembler = folder.join(ASSEMBLER).into_os_string();
    let known: [(&str, OsString); 3] = [
        // Triton: its assemblers for GPUs before and since Hopper, and the driver that its launchers are
        // linked with.
        ("TRITON_PTXAS_PATH", assembler.clone()),
        ("TRITON_PTXAS_BLACKWELL_PATH", assembler),
        ("TRITON_LIBCUDA_PATH", folder.into()),
    ];
    for (name, value) in known.into_iter().filter(|(name, _)| env::var_os(name).is_none()) {
        command.env(name, value);
    }
}

/// Returns the libraries of the folder to preload; `None` if its path contains a blank or a colon, which the
/// loader cannot read.
///
/// A library with its own `RPATH`, such as PyTorch's, finds NVIDIA's runtime before the search path is used.
/// Its calls still go to the library that was loaded first. `cuda.core` opens NVIDIA's linker by its path,
/// unless a library of that name is loaded.
pub fn preload_list(folder: &Path, others: Option<OsString>) -> Option<OsString> {
    if folder.as_os_str().as_encoded_bytes().iter().any(|byte| byte.is_ascii_whitespace() || *byte == b':') {
        return None;
    }
    let linkers = NAMES[..RUNTIME].iter().map(|(name, _)| *name);
    let all: Vec<PathBuf> = [SHIM].into_iter().chain(linkers).map(|name| folder.join(name)).collect();
    Some(all.iter().rev().fold(others.unwrap_or_default(), |others, path| prepend(path, Some(others))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_that_the_loader_understands_are_told() {
        let own = "/f/libbroadloom_shim.so:/f/libnvJitLink.so.12:/f/libnvJitLink.so.13";
        let told = |folder: &str, others: Option<&str>| {
            preload_list(Path::new(folder), others.map(OsString::from)).map(|told| told.into_string().unwrap())
        };
        assert_eq!(told("/f", None), Some(own.to_owned()));
        assert_eq!(told("/f", Some("/c.so")), Some(format!("{own}:/c.so")));
        assert_eq!((told("/f f", None), told("/f:f", None)), (None, None));
    }
}
