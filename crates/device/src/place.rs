//! Names of threads and source locations in messages.

use crate::demangle;
use broadloom_ptx::{Function, Lines, Loc};
use std::fmt;

/// Formats `block 1, thread 5`, with all three dimensions if needed.
pub fn party(block: [u32; 3], thread: [u32; 3]) -> String {
    format!("block {}, thread {}", index(block), index(thread))
}

/// Formats the index of a block or thread: `7`, or `(7, 1, 0)`.
pub fn index([x, y, z]: [u32; 3]) -> String {
    if y == 0 && z == 0 { x.to_string() } else { format!("({x}, {y}, {z})") }
}

/// File name and line number of an instruction's source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileLine {
    /// File name as given by the compiler.
    pub file: String,
    /// Line number, starting at 1.
    pub line: u32,
}

impl fmt::Display for FileLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl FileLine {
    /// Formats `file:line`, with the text of the line if the file can be read.
    fn with_text(&self) -> String {
        let line = || {
            let text = std::fs::read_to_string(&self.file).ok()?;
            let line = text.lines().nth((self.line as usize).checked_sub(1)?)?.trim();
            (!line.is_empty()).then(|| format!("{self}: {line}"))
        };
        line().unwrap_or_else(|| self.to_string())
    }

    /// Formats `name:line` without the folders.
    fn short(&self) -> String {
        format!("{}:{}", self.file.rsplit('/').next().unwrap_or_default(), self.line)
    }
}

/// Inlined function call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InlinedCall {
    /// Name of the function, without its parameters.
    pub function: String,
    /// Line inside the function.
    pub at: FileLine,
    /// Line of the call.
    pub from: FileLine,
}

/// Location in the high-level source: the user's line, and the inlined calls around and below it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourcePlace {
    /// Innermost line of the chain that is not in a header of the toolkit or of the system. The innermost
    /// line of all if there is no such line.
    pub line: FileLine,
    /// Inlined calls, innermost first.
    pub calls: Vec<InlinedCall>,
}

impl SourcePlace {
    /// Returns the source location of an instruction.
    pub fn of(lines: &Lines<'_>, function: &Function, loc: Loc) -> Option<SourcePlace> {
        let chain = lines.chain(function, loc);
        let place = |index: usize| {
            let line = &chain[index];
            FileLine { file: line.file.unwrap_or("?").to_owned(), line: line.line }
        };
        let own = (0..chain.len()).find(|index| chain[*index].file.is_some_and(|file| !is_library(file)));
        let calls = (1..chain.len()).filter_map(|outer| {
            let function = demangle::short(chain[outer - 1].function.as_ref()?);
            Some(InlinedCall { function, at: place(outer - 1), from: place(outer) })
        });
        let calls = calls.collect();
        (!chain.is_empty()).then(|| SourcePlace { line: place(own.unwrap_or(0)), calls })
    }

    /// Returns the notes for a message: the line, with its text if the file can be read, then each inlined
    /// call.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!("from {}", self.line.with_text())];
        for InlinedCall { function, at, from } in &self.calls {
            let inside = if *at == self.line { String::new() } else { format!(" ({})", at.short()) };
            let from = if *from == self.line || is_library(&from.file) { from.short() } else { from.with_text() };
            notes.push(format!("in `{function}`{inside}, inlined from {from}"));
        }
        notes
    }
}

impl fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.line.fmt(f)
    }
}

/// Folders of the toolkit's headers, wherever it is installed.
const LIBRARY_FOLDERS: [&str; 9] =
    ["crt", "cooperative_groups", "cub", "thrust", "cccl", "libcudacxx", "cuda/std", "cuda/__cccl", "nv"];

/// Folders that contain only installed files.
const INSTALLED: [&str; 5] = ["/usr/include/", "/usr/lib/", "/usr/local/cuda", "/opt/cuda", "/opt/nvidia/"];

/// Names of the toolkit's headers, up to the first dot.
const LIBRARY_HEADERS: [&str; 32] = [
    "common_functions",
    "cooperative_groups",
    "cuComplex",
    "cuda_awbarrier",
    "cuda_awbarrier_helpers",
    "cuda_awbarrier_primitives",
    "cuda_bf16",
    "cuda_device_runtime_api",
    "cuda_fp16",
    "cuda_fp4",
    "cuda_fp6",
    "cuda_fp8",
    "cuda_pipeline",
    "cuda_pipeline_helpers",
    "cuda_pipeline_primitives",
    "cuda_runtime",
    "cuda_runtime_api",
    "cuda_texture_types",
    "cuda_surface_types",
    "cuda_tf32",
    "device_atomic_functions",
    "device_double_functions",
    "device_functions",
    "device_launch_parameters",
    "math_functions",
    "math_functions_dbl_ptx3",
    "mma",
    "surface_functions",
    "surface_indirect_functions",
    "texture_fetch_functions",
    "texture_indirect_functions",
    "vector_functions",
];

/// Tests by its path if a file is a header of the toolkit or of the system. Sources (`.cu`, `.cpp`, …) never
/// are.
fn is_library(file: &str) -> bool {
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    let (stem, ending) = name.split_once('.').unwrap_or((name, ""));
    if matches!(ending, "cu" | "c" | "cc" | "cpp" | "cxx" | "py") {
        return false;
    }
    let per_machine = || {
        let digits = stem.strip_prefix("sm_").and_then(|rest| rest.split_once('_'));
        digits.is_some_and(|(digits, rest)| {
            digits.bytes().all(|byte| byte.is_ascii_digit()) && (rest == "intrinsics" || rest == "atomic_functions")
        })
    };
    let folder = format!("{folder}/");
    let inside = |name: &&str| folder.starts_with(&format!("{name}/")) || folder.contains(&format!("/{name}/"));
    INSTALLED.iter().any(|start| folder.starts_with(start))
        || LIBRARY_FOLDERS.iter().any(inside)
        // Layouts of the toolkit's archives and of its Python packages.
        || folder.contains("/targets/") && folder.contains("-linux/include/")
        || folder.contains("/nvidia/") && folder.contains("/include/")
        || LIBRARY_HEADERS.contains(&stem)
        || per_machine()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_toolkit_are_known_wherever_it_is() {
        for file in [
            "/usr/local/cuda-12.4/bin/../targets/x86_64-linux/include/sm_30_intrinsics.hpp",
            "/opt/cuda/bin/../include/cooperative_groups/details/helpers.h",
            "/data/a/env/lib/python3.12/site-packages/nvidia/cuda_runtime/include/anything.h",
            "/data/a/toolkit/targets/x86_64-linux/include/new.h",
            "toolkit/sm_60_atomic_functions.hpp",
            "include/crt/math_functions.hpp",
            "build/_deps/cccl-src/cub/cub/block/block_reduce.cuh",
            "/usr/include/c++/13/bits/stl_algobase.h",
            "cuda_fp16.hpp",
        ] {
            assert!(is_library(file), "{file}");
        }
        for file in [
            "examples/race.cu",
            "/data/a/cuda/include/helpers.h",
            "/data/a/thrust/thrust/main.cu",
            "/data/a/project/cuda_utils.h",
            "src/sm_80_kernels.cuh",
            "kernel.py",
            "cutter/tile.h",
            "",
        ] {
            assert!(!is_library(file), "{file}");
        }
    }

    #[test]
    fn notes_tell_the_line_and_the_calls() {
        let at = |file: &str, line: u32| FileLine { file: file.into(), line };
        let call = |function: &str, at: FileLine, from: FileLine| InlinedCall { function: function.into(), at, from };
        let place = SourcePlace {
            line: at("no/such/k.cu", 9),
            calls: vec![
                call("__shfl_sync", at("/opt/cuda/include/sm_30_intrinsics.hpp", 372), at("no/such/k.cu", 9)),
                call("exchange", at("no/such/k.cu", 9), at("no/such/main.cu", 20)),
            ],
        };
        assert_eq!(place.to_string(), "no/such/k.cu:9");
        assert_eq!(
            place.notes(),
            [
                "from no/such/k.cu:9",
                "in `__shfl_sync` (sm_30_intrinsics.hpp:372), inlined from k.cu:9",
                "in `exchange`, inlined from no/such/main.cu:20"
            ]
        );
    }
}
