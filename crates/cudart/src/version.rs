//! Versions of CUDA: of the program's runtime library, and of the driver.

/// CUDA version that the driver reports.
pub(crate) const DRIVER_VERSION: i32 = 13040;

/// Returns the version of the runtime that the program was linked with. Functions of the same name differ
/// between versions.
pub(crate) fn runtime_version() -> u32 {
    static VERSION: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *VERSION.get_or_init(|| loaded_runtimes().into_iter().max().unwrap_or(13))
}

/// Returns the versions of all runtime libraries in this process, from the loader's list. Opening a library
/// by name, even a loaded one, would run its initialisers again in a process that is about to exit.
fn loaded_runtimes() -> Vec<u32> {
    unsafe extern "C" fn look(library: *mut libc::dl_phdr_info, _: usize, versions: *mut libc::c_void) -> i32 {
        // SAFETY: the loader passes an entry of its list, whose name is zero-terminated if present, and the
        // list given below.
        let (name, versions) = unsafe { ((*library).dlpi_name, &mut *versions.cast::<Vec<u32>>()) };
        if !name.is_null() {
            // SAFETY: as above.
            let path = unsafe { std::ffi::CStr::from_ptr(name) }.to_bytes();
            let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
            let known = [(11, "libcudart.so.11"), (12, "libcudart.so.12"), (13, "libcudart.so.13")];
            versions.extend(known.iter().filter(|(_, start)| file.starts_with(start.as_bytes())).map(|(version, _)| version));
        }
        0
    }
    let mut versions = Vec::new();
    // SAFETY: the function takes the loader's entry and a list of versions, which lives until the call
    // returns.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut versions).cast()) };
    versions
}

/// Returns the CUDA release that the program was linked with: 12090 is 12.9.
pub(crate) fn release() -> i32 {
    match runtime_version() {
        11 => 11080,
        12 => 12090,
        _ => DRIVER_VERSION,
    }
}
