//! Lookup of functions by name and version.
//!
//! A program requests a name without a version, such as `cuMemAlloc`, and the CUDA version that it was
//! written for. The result is the newest function in that version, as listed in `functions/versions.txt`. **A
//! function of a newer version is never returned, because its parameters may differ.**

use crate::boundary::{Call, DefaultStream};
use crate::functions::{address_of, exported_at, versions_of};
use crate::pointer::{Out, Text};
use crate::status::{Outcome, Status};
use crate::version::DRIVER_VERSION;

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`. `CU_GET_PROC_ADDRESS_LEGACY_STREAM` is 1, and 0 means the
/// caller's own default stream.
const PER_THREAD: u64 = 2;

/// Result of the lookup of a driver function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookupResult {
    /// Address of the function.
    Function(usize),
    /// No function has the name.
    Unknown,
    /// The name is newer than the version.
    Newer,
}

/// Finds a driver function by its name and CUDA version.
pub(crate) fn find(name: &str, version: i32, per_thread: bool) -> LookupResult {
    let versions = versions_of(name);
    let newest = |per_thread: bool| {
        versions.iter().rev().find(|known| known.per_thread == per_thread && known.since <= version).map(|known| known.index)
    };
    let index = if per_thread { newest(true).or_else(|| newest(false)) } else { newest(false) };
    match index {
        Some(index) => LookupResult::Function(exported_at(index) as usize),
        None if !versions.is_empty() => LookupResult::Newer,
        // Names without versions in the headers, and exact names of exported symbols.
        None => match address_of(name).filter(|_| name.starts_with("cu") && !name.starts_with("cuda")) {
            Some(address) => LookupResult::Function(address as usize),
            None => LookupResult::Unknown,
        },
    }
}

/// Looks up a function for a call. `place` receives its address, or 0 if there is none, and `found` the
/// result.
pub(crate) fn look_up(
    call: &Call,
    name: Text,
    place: Out<usize>,
    version: i32,
    flags: u64,
    found: Out<u32>,
) -> Outcome<LookupResult> {
    place.wanted()?;
    if flags > PER_THREAD || version > DRIVER_VERSION {
        return Err(Status::INVALID_VALUE);
    }
    let per_thread = flags == PER_THREAD || flags == 0 && call.default == DefaultStream::PerThread;
    let result = find(&name.get()?, version, per_thread);
    let (address, code) = match result {
        LookupResult::Function(address) => (address, 0),
        LookupResult::Unknown => (0, 1),
        LookupResult::Newer => (0, 2),
    };
    found.set_if_wanted(code);
    place.set(address)?;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::{FUNCTIONS, VERSIONS};
    use std::collections::BTreeSet;

    fn of(symbol: &str) -> LookupResult {
        LookupResult::Function(address_of(symbol).expect(symbol) as usize)
    }

    /// Each row of the table holds from its version up to the next row of its kind.
    #[test]
    fn every_version_of_every_name_is_found() {
        for row in VERSIONS {
            let symbol = FUNCTIONS[row.index].name;
            let next = versions_of(row.name).iter().filter(|other| other.per_thread == row.per_thread && other.since > row.since);
            let next = next.map(|other| other.since).min();
            let until = next.map_or(DRIVER_VERSION, |next| next - 1);
            for version in [row.since, until] {
                assert_eq!(find(row.name, version, row.per_thread), of(symbol), "{} at {version}", row.name);
            }
            let earlier = find(row.name, row.since - 1, row.per_thread);
            assert_ne!(earlier, of(symbol), "{} before {}", row.name, row.since);
            if !row.per_thread {
                let has_own = versions_of(row.name).iter().any(|other| other.per_thread && other.since <= row.since);
                assert_eq!(find(row.name, row.since, true) == of(symbol), !has_own, "{} at {}", row.name, row.since);
            }
        }
    }

    #[test]
    fn every_function_of_the_driver_has_a_version() {
        /// Exported function for which the headers have no type.
        const WITHOUT: &str = "cuGetProcAddress_v2_ptsz";
        let dated: BTreeSet<usize> = VERSIONS.iter().map(|row| row.index).collect();
        let driver = FUNCTIONS.iter().enumerate().filter(|(_, function)| function.library == "driver");
        let undated: Vec<&str> = driver.filter(|(index, _)| !dated.contains(index)).map(|(_, function)| function.name).collect();
        assert_eq!(undated, [WITHOUT], "functions/versions.txt has no row for the others");
    }

    /// Sample rows, copied by hand from the CUDA headers.
    #[test]
    fn names_mean_the_version_that_was_asked_for() {
        assert_eq!(find("cuMemAlloc", 13000, false), of("cuMemAlloc_v2"));
        assert_eq!(find("cuCtxSynchronize", 2000, false), of("cuCtxSynchronize"));
        assert_eq!(find("cuCtxSynchronize", 12090, false), of("cuCtxSynchronize"));
        assert_eq!(find("cuCtxSynchronize", 13000, false), of("cuCtxSynchronize_v2"));
        assert_eq!(find("cuCtxGetDevice", 12090, false), of("cuCtxGetDevice"));
        assert_eq!(find("cuCtxCreate", 11030, false), of("cuCtxCreate_v2"));
        assert_eq!(find("cuCtxCreate", 12050, false), of("cuCtxCreate_v4"));
        assert_eq!(find("cuGetProcAddress", 11040, false), of("cuGetProcAddress"));
        assert_eq!(find("cuGetProcAddress", 12000, false), of("cuGetProcAddress_v2"));
        assert_eq!(find("cuGetProcAddress", 11020, false), LookupResult::Newer);
        assert_eq!(find("cuLaunchKernel", 12000, true), of("cuLaunchKernel_ptsz"));
        assert_eq!(find("cuMemcpy", 12000, true), of("cuMemcpy_ptds"));
        assert_eq!(find("cuMemcpy", 4000, true), of("cuMemcpy"));
        assert_eq!(find("cuInit", 12000, true), of("cuInit"));
        assert_eq!(find("cuMemcpyBatchAsync", 12080, false), of("cuMemcpyBatchAsync"));
        assert_eq!(find("cuMemcpyBatchAsync", 13000, true), of("cuMemcpyBatchAsync_v2_ptsz"));
        assert_eq!(find("cuMemAlloc_v2", 12000, false), of("cuMemAlloc_v2"));
        assert_eq!(find("cuNothing", 12000, false), LookupResult::Unknown);
        assert_eq!(find("cudaMalloc", 12000, false), LookupResult::Unknown);
    }
}
