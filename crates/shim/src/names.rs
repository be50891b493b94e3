//! Functions of NVIDIA's libraries.

/// Functions of the driver and of the runtime, one per line, with areas and comments.
const DRIVER: &str = include_str!("../../cudart/functions/driver.txt");
const RUNTIME: &str = include_str!("../../cudart/functions/runtime.txt");

/// Functions of NVIDIA's linker, which are exported once per release.
const LINKER: [&str; 15] = [
    "AddData",
    "AddFile",
    "Complete",
    "Create",
    "Destroy",
    "GetErrorLog",
    "GetErrorLogSize",
    "GetInfoLog",
    "GetInfoLogSize",
    "GetLinkedCubin",
    "GetLinkedCubinSize",
    "GetLinkedLTOIR",
    "GetLinkedLTOIRSize",
    "GetLinkedPtx",
    "GetLinkedPtxSize",
];

/// Prefix of the names of NVIDIA's linker; the release number follows.
pub const LINKER_NAME: &str = "libnvJitLink.so.";

/// Returns the functions that a library exports: those of the linker, the runtime or the driver by NVIDIA's
/// names, and for any other name those of runtime and driver.
pub fn functions(library: &str) -> Vec<String> {
    if let Some(release) = library.strip_prefix(LINKER_NAME) {
        let of_minor = |minor| LINKER.iter().map(move |function| format!("__nvJitLink{function}_{release}_{minor}"));
        return (0..10).flat_map(of_minor).collect();
    }
    let lists: &[&str] = match library {
        name if name.starts_with("libcudart.so") => &[RUNTIME],
        name if name.starts_with("libcuda.so") => &[DRIVER],
        _ => &[RUNTIME, DRIVER],
    };
    let lines = lists.iter().flat_map(|list| list.lines()).filter(|line| !line.starts_with(['[', '#']));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Returns the `SONAME` of a library. Programs linked with it request this name.
pub(crate) fn own_name(name: &str) -> &str {
    if name == "libcuda.so" { "libcuda.so.1" } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_those_of_the_library() {
        let has = |library: &str, function: &str| functions(library).iter().any(|name| name == function);
        assert!(has("libcuda.so.1", "cuMemAlloc_v2") && has("libcudart.so.12", "cudaMalloc"));
        assert!(functions("libcuda.so.1").iter().all(|name| name.starts_with("cu") && !name.starts_with("cuda")));
        assert!(functions("libcudart.so.12").iter().all(|name| name.starts_with("cuda") || name.starts_with("__cuda")));
        assert!(has("libbroadloom_shim.so", "cuMemAlloc_v2") && has("libbroadloom_shim.so", "cudaMalloc"));
        assert!(has("libnvJitLink.so.13", "__nvJitLinkCreate_13_2"));
        assert!(functions("libnvJitLink.so.13").iter().all(|name| !name.contains("Version")));
    }
}
