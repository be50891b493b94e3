//! The shim libraries in front of NVIDIA's, the replacement library behind them, and the folder that holds both.

use super::folder::ShimFolder;
use crate::failure::{Exit, Failure, codes};
use crate::options::ASSEMBLER;
use broadloom::device::private::{Reason, Refusal};
use broadloom::diag::Diagnostic;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

/// File name of the replacement library.
const LIBRARY: &str = "libbroadloom_cudart.so";

/// Name of the shim that is preloaded. It has the functions of driver and runtime.
pub const SHIM: &str = "libbroadloom_shim.so";

/// Names of the shims with their symbol versions: those that programs request, and the one that is preloaded.
pub const NAMES: [(&str, Option<&str>); 9] = [
    ("libnvJitLink.so.12", Some("libnvJitLink.so.12")),
    ("libnvJitLink.so.13", Some("libnvJitLink.so.13")),
    ("libcudart.so.11.0", Some("libcudart.so.11.0")),
    ("libcudart.so.12", Some("libcudart.so.12")),
    ("libcudart.so.13", Some("libcudart.so.13")),
    ("libcudart.so", None),
    ("libcuda.so.1", None),
    ("libcuda.so", None),
    (SHIM, None),
];

/// Index of the first runtime name.
pub const RUNTIME: usize = 2;
/// Index of the first driver name. The preloaded shim follows the driver.
pub const DRIVER: usize = 6;

/// Environment variable with the path of the replacement library.
const NAMED_LIBRARY: &str = "BROADLOOM_CUDART";

/// Prepends a folder or a file to a list for the loader.
pub fn prepend(folder: &Path, others: Option<OsString>) -> OsString {
    let mut all = folder.as_os_str().to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}

/// Returns the failure of a machine on which the replacement library cannot be used.
pub fn failed(message: String) -> Failure {
    Failure::new(Exit::Machine, Diagnostic::error(codes::STAND_IN, message))
}

/// Returns the path in an environment variable, if it is set and not empty.
pub fn path_variable(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Returns the usage error for an environment variable with an unusable path.
pub fn unusable(variable: &str, path: &Path, reason: &str, takes: &str) -> Failure {
    let message = format!("{variable} is `{}`, which cannot be used: {reason}; it takes {takes}", path.display());
    Failure::usage(Diagnostic::error(codes::SETTING, message).help(format!("correct {variable} or unset it")))
}

/// Returns the replacement library: beside this command, or in the build folder.
fn library() -> Result<PathBuf, Failure> {
    if let Some(named) = path_variable(NAMED_LIBRARY) {
        let refused = |reason: String| unusable(NAMED_LIBRARY, &named, &reason, &format!("the path of {LIBRARY}"));
        let mut magic = [0; 4];
        let read = std::fs::File::open(&named).and_then(|mut file| file.read_exact(&mut magic));
        return match read.and_then(|()| named.canonicalize()) {
            Ok(path) if magic == *b"\x7fELF" => Ok(path),
            Ok(_) => Err(refused("it is no library".into())),
            Err(error) => Err(refused(error.to_string())),
        };
    }
    let command = std::env::current_exe().map_err(|error| failed(format!("the place of this command is not known: {error}")))?;
    let folder = command.parent().unwrap_or(Path::new("."));
    let places = [folder.to_owned(), folder.join("deps"), folder.join("../lib")];
    let found = places.iter().map(|place| place.join(LIBRARY)).find(|path| path.exists());
    found.and_then(|path| path.canonicalize().ok()).ok_or_else(|| {
        let message = format!("there is no {LIBRARY} beside {}", command.display());
        let diagnostic = Diagnostic::error(codes::STAND_IN, message).help("`make build` makes it");
        Failure::new(Exit::Machine, diagnostic)
    })
}

/// Returns programs with NVIDIA's names beside the libraries, with their link targets.
fn programs() -> Result<[(&'static str, PathBuf); 1], Failure> {
    let command = std::env::current_exe().map_err(|error| failed(format!("the place of this command is not known: {error}")))?;
    Ok([(ASSEMBLER, command)])
}

/// Prepares a folder with some of NVIDIA's names.
pub fn prepare(kind: &str, names: &[(&str, Option<&str>)]) -> Result<PathBuf, Failure> {
    let (library, programs) = (library()?, programs()?);
    let (found, refused) = ShimFolder { kind, names, library: &library, link: LIBRARY, programs: &programs }.prepare();
    let Some(found) = found else {
        let places: Vec<String> = refused.iter().map(|refusal| format!("{refusal}")).collect();
        return Err(failed(format!("there is no folder for the stand-in: {}", places.join("; "))));
    };
    // Foreign files are reported. Locations that cannot be written are not.
    for refusal in refused.iter().filter(|refusal| matches!(refusal.reason, Reason::Content(_))) {
        eprintln!("broadloom: not used: {refusal}; {}", refusal.help());
    }
    Ok(found)
}

/// Returns why the folder beside compiled code is not used. Nothing is created.
pub fn refusal() -> Option<Refusal> {
    let (library, programs) = (library().ok()?, programs().ok()?);
    ShimFolder { kind: "cuda", names: &NAMES, library: &library, link: LIBRARY, programs: &programs }.refusal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_and_the_shim_are_the_end_of_the_names() {
        assert!(NAMES[DRIVER..].iter().all(|(name, _)| name.starts_with("libcuda.so") || *name == SHIM));
        assert!(NAMES[RUNTIME..DRIVER].iter().all(|(name, _)| name.starts_with("libcudart.so")));
        assert!(NAMES[..RUNTIME].iter().all(|(name, _)| name.starts_with(broadloom_shim::LINKER_NAME)));
    }
}
