//! Search for NVIDIA's libraries and their functions.
//!
//! A library that the program has already loaded is used. Otherwise the search follows the system's loader:
//! the folders of `LD_LIBRARY_PATH`, the loader's cache, and the usual installation folders. Folders where
//! this library replaces NVIDIA's are skipped. `BROADLOOM_NVIDIA` names folders to search first.

use crate::functions::{FUNCTIONS, Function};
use crate::status::Status;
use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// File names of the runtime, newest first.
const RUNTIME: &[&str] = &["libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so"];
/// File names of the driver.
const DRIVER: &[&str] = &["libcuda.so.1", "libcuda.so"];
/// Usual installation folders.
const FOLDERS: &[&str] = &[
    "/usr/local/cuda/lib64",
    "/usr/local/nvidia/lib64",
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib",
];

#[derive(Debug)]
pub(super) struct OpenedLibrary {
    /// Addresses of the functions in the order of the list; 0 for missing ones.
    functions: Vec<usize>,
    /// Indices in the list by address.
    places: HashMap<usize, usize>,
}

impl OpenedLibrary {
    /// Opens a library and looks up the functions of one part of the list.
    fn open(path: &Path, part: &str) -> Option<OpenedLibrary> {
        // SAFETY: the library's initialisers are trusted as much as the program trusts them.
        let opened = unsafe { libloading::os::unix::Library::open(Some(path), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        let opened = ManuallyDrop::new(opened.ok()?);
        let address = |name: &str| {
            // SAFETY: only the address of the symbol is used.
            let found = unsafe { opened.get::<usize>(name) }.map_or(0, |found| *found);
            // The lookup may find this library's own symbol through dependencies.
            if is_here(found) { 0 } else { found }
        };
        let of_list = |function: &Function| if function.library == part { address(function.name) } else { 0 };
        let functions: Vec<usize> = FUNCTIONS.iter().map(of_list).collect();
        let places = functions.iter().enumerate().filter(|(_, address)| **address != 0).map(|(place, at)| (*at, place)).collect();
        Some(OpenedLibrary { functions, places })
    }

    /// Returns the address of a function of the list.
    pub(super) fn find(&self, index: usize) -> Option<*const ()> {
        let address = self.functions[index];
        (address != 0).then_some(address as *const ())
    }

    /// Returns the index of the function at an address.
    pub(super) fn place_of(&self, address: usize) -> Option<usize> {
        self.places.get(&address).copied()
    }
}

/// Returns NVIDIA's library: `runtime` or `driver`.
pub(super) fn of(library: &str) -> Option<&'static OpenedLibrary> {
    static RUNTIME_LIBRARY: OnceLock<Option<OpenedLibrary>> = OnceLock::new();
    static DRIVER_LIBRARY: OnceLock<Option<OpenedLibrary>> = OnceLock::new();
    let (place, names) = if library == "runtime" { (&RUNTIME_LIBRARY, RUNTIME) } else { (&DRIVER_LIBRARY, DRIVER) };
    place.get_or_init(|| candidates(names).iter().find_map(|path| OpenedLibrary::open(path, library))).as_ref()
}

/// Returns the file that contains an address.
fn file_of(address: usize) -> Option<PathBuf> {
    let mut facts = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the output is zero-initialised, and any address may be queried.
    let facts = unsafe {
        libc::dladdr(address as *const c_void, facts.as_mut_ptr());
        facts.assume_init()
    };
    if facts.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name of a loaded file is zero-terminated and valid while the file is loaded.
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(unsafe { CStr::from_ptr(facts.dli_fname) }.to_bytes())))
}

/// Tests if an address is in the file of this code or in a shim library that leads here.
fn is_here(address: usize) -> bool {
    static HERE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let Some(file) = (address != 0).then(|| file_of(address)).flatten() else { return false };
    HERE.get_or_init(|| file_of(of as *const () as usize)).as_ref() == Some(&file) || is_beside_own(&file)
}

/// Tests if a file is in a folder where this library, or a link to it, replaces NVIDIA's.
fn is_beside_own(file: &Path) -> bool {
    file.parent().is_some_and(|folder| folder.join(crate::LIBRARY).exists())
}

/// Returns the candidate files for a library, best first.
fn candidates(names: &[&str]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = loaded().into_iter().filter(|path| is_called(path, names)).collect();
    let folders = |variable: &str| -> Vec<PathBuf> {
        std::env::var_os(variable).map(|list| std::env::split_paths(&list).collect()).unwrap_or_default()
    };
    let named = [folders("BROADLOOM_NVIDIA"), folders("LD_LIBRARY_PATH")].concat();
    found.extend(named.iter().flat_map(|folder| names.iter().map(|name| folder.join(name))));
    let cache = std::fs::read("/etc/ld.so.cache").unwrap_or_default();
    found.extend(in_cache(&cache, names));
    found.extend(FOLDERS.iter().flat_map(|folder| names.iter().map(|name| Path::new(folder).join(name))));
    found.retain(|path| path.is_file() && !is_beside_own(path));
    found
}

/// Tests if a file has one of the names, possibly with further version numbers.
fn is_called(path: &Path, names: &[&str]) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    names.iter().any(|known| name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// Returns the paths of the named files in the loader's cache, a binary file that contains zero-terminated
/// texts.
fn in_cache(cache: &[u8], names: &[&str]) -> Vec<PathBuf> {
    let texts = cache.split(|byte| *byte == 0).filter(|text| text.starts_with(b"/"));
    let paths: Vec<PathBuf> = texts.map(|text| PathBuf::from(std::ffi::OsStr::from_bytes(text))).collect();
    let of = |name: &&str| paths.iter().filter(|path| path.ends_with(name)).cloned().collect::<Vec<_>>();
    names.iter().flat_map(of).collect()
}

/// Returns the loaded files.
fn loaded() -> Vec<PathBuf> {
    unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _size: usize, list: *mut c_void) -> c_int {
        // SAFETY: the loader passes one of its files and the list given to it below.
        let (info, list) = unsafe { (&*info, &mut *list.cast::<Vec<PathBuf>>()) };
        if !info.dlpi_name.is_null() {
            // SAFETY: the name of a loaded file is zero-terminated.
            let name = unsafe { CStr::from_ptr(info.dlpi_name) };
            list.push(PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes())));
        }
        0
    }
    let mut list: Vec<PathBuf> = vec![];
    // SAFETY: the function has the right type, and the list lives until the call returns.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut list).cast()) };
    list
}

/// Stands for a function that NVIDIA's library does not have.
pub(super) extern "C" fn missing() -> u32 {
    Status::CALL_REQUIRES_NEWER_DRIVER.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_of_the_loader_holds_paths() {
        let cache =
            b"glibc-ld.so.cache1.1\0\0\x05\0libcuda.so.1\0/opt/a/libcuda.so.1\0/opt/b/libcuda.so\0/opt/a/libcuda.so.100\0";
        assert_eq!(in_cache(cache, DRIVER), [PathBuf::from("/opt/a/libcuda.so.1"), PathBuf::from("/opt/b/libcuda.so")]);
        assert_eq!(in_cache(b"", DRIVER), Vec::<PathBuf>::new());
    }

    #[test]
    fn libraries_are_known_by_their_names() {
        assert!(is_called(Path::new("/x/libcudart.so.12.9.79"), RUNTIME) && is_called(Path::new("libcuda.so.1"), DRIVER));
        assert!(!is_called(Path::new("/x/libcuda.so.1"), RUNTIME) && !is_called(Path::new("/x/libcudart.so.12"), DRIVER));
        assert!(!is_called(Path::new("/x/libcudartx.so.12"), RUNTIME));
        assert!(loaded().iter().any(|path| path.to_string_lossy().contains("libc.so")));
    }

    #[test]
    fn what_is_here_is_not_nvidias() {
        assert!(is_here(candidates as *const () as usize) && !is_here(libc::getpid as *const () as usize) && !is_here(0));
    }
}
