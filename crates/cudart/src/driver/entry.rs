//! Functions by their names.

use crate::boundary::{DefaultStream, exported};
use crate::functions::address_of;
use crate::pointer::{Out, Text};
use crate::status::Status;

/// A default stream per thread is wanted.
pub(crate) const PER_THREAD: u64 = 2;

/// What names without a version mean from a version of CUDA on, where the highest version is not it.
const SINCE: &[(&str, i32, &str)] = &[
    ("cuCtxCreate", 0, "cuCtxCreate_v2"),
    ("cuCtxCreate", 13000, "cuCtxCreate_v4"),
    ("cuMemAdvise", 0, "cuMemAdvise"),
    ("cuMemAdvise", 13000, "cuMemAdvise_v2"),
    ("cuMemPrefetchAsync", 0, "cuMemPrefetchAsync"),
    ("cuMemPrefetchAsync", 13000, "cuMemPrefetchAsync_v2"),
    ("cuMemcpyBatchAsync", 0, "cuMemcpyBatchAsync"),
    ("cuMemcpyBatchAsync", 13000, "cuMemcpyBatchAsync_v2"),
    ("cuMemcpy3DBatchAsync", 0, "cuMemcpy3DBatchAsync"),
    ("cuMemcpy3DBatchAsync", 13000, "cuMemcpy3DBatchAsync_v2"),
    ("cuLaunchHostFunc", 0, "cuLaunchHostFunc"),
    ("cuGetProcAddress", 0, "cuGetProcAddress"),
    ("cuGetProcAddress", 12000, "cuGetProcAddress_v2"),
    ("cuGraphAddKernelNode", 0, "cuGraphAddKernelNode"),
    ("cuGraphAddKernelNode", 12000, "cuGraphAddKernelNode_v2"),
    ("cuStreamGetCaptureInfo", 0, "cuStreamGetCaptureInfo"),
    ("cuStreamGetCaptureInfo", 11030, "cuStreamGetCaptureInfo_v2"),
    ("cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v3"),
];

/// The address of a function, by its name without a version, as a version of CUDA knows it.
pub(crate) fn find(name: &str, version: i32, flags: u64) -> Option<usize> {
    let dated = SINCE.iter().rev().find(|(known, since, _)| *known == name && version >= *since).map(|(_, _, symbol)| *symbol);
    let versions = [format!("{name}_v4"), format!("{name}_v3"), format!("{name}_v2"), name.to_owned()];
    let symbols: Vec<String> = dated.map_or_else(|| versions.to_vec(), |symbol| vec![symbol.to_owned()]);
    let twins = |symbol: &String| {
        let endings: &[&str] = if flags == PER_THREAD { &["_ptsz", "_ptds", ""] } else { &[""] };
        endings.iter().map(|ending| format!("{symbol}{ending}")).collect::<Vec<_>>()
    };
    symbols.iter().flat_map(twins).find_map(|symbol| address_of(&symbol)).map(|address| address as usize)
}

exported! { driver
    /// The address of a function.
    fn cuGetProcAddress(_call, name: Text, place: Out<usize>, version: i32, flags: u64) {
        place.wanted()?;
        place.set(find(&name.get()?, version, flags).ok_or(Status::NOT_FOUND)?)
    }

    /// The same; whether it was found goes to its own place.
    fn cuGetProcAddress_v2 / cuGetProcAddress_v2_ptsz(call, name: Text, place: Out<usize>, version: i32, flags: u64, found: Out<u32>) {
        place.wanted()?;
        let flags = if flags == 0 && call.default == DefaultStream::PerThread { PER_THREAD } else { flags };
        match find(&name.get()?, version, flags) {
            Some(address) => {
                found.set_if_wanted(0);
                place.set(address)
            }
            None => {
                found.set_if_wanted(1);
                place.set(0)?;
                Err(Status::NOT_FOUND)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_the_version_that_was_asked_for() {
        let of = |symbol: &str| address_of(symbol).map(|address| address as usize);
        assert!(find("cuMemAlloc", 13000, 0).is_some());
        assert_eq!(find("cuMemAlloc", 13000, 0), of("cuMemAlloc_v2"));
        assert_eq!(find("cuGetProcAddress", 11040, 0), of("cuGetProcAddress"));
        assert_eq!(find("cuGetProcAddress", 12000, 0), of("cuGetProcAddress_v2"));
        assert_eq!(find("cuLaunchKernel", 12000, PER_THREAD), of("cuLaunchKernel_ptsz"));
        assert_eq!(find("cuInit", 12000, PER_THREAD), of("cuInit"));
        assert_eq!(find("cuMemcpyBatchAsync", 12080, 0), of("cuMemcpyBatchAsync"));
        assert_eq!(find("cuMemcpyBatchAsync", 13000, PER_THREAD), of("cuMemcpyBatchAsync_v2_ptsz"));
        assert_eq!(find("cuNothing", 12000, 0), None);
    }
}
