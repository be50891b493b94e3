//! List of all functions of the runtime and the driver, each implemented or with the error that it returns.
//!
//! The list itself is `functions/runtime.txt` and `functions/driver.txt`; `functions/README.md` explains how
//! to extend it. Functions that are not implemented are defined here. The exported symbols lead to these, to
//! the implementations, or to NVIDIA's functions (`pass`).

use crate::status::Status;
use std::collections::BTreeMap;

/// State of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImplementationState {
    /// Implemented as in NVIDIA's manual.
    Done,
    /// Not implemented: the function returns an error.
    Refused {
        /// Name of the error.
        status: &'static str,
        /// Reason for the refusal.
        reason: &'static str,
    },
}

/// Function of the runtime or of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Exported name.
    pub name: &'static str,
    /// Library: `runtime` or `driver`.
    pub library: &'static str,
    /// Area of the function: the name of the file that implements it.
    pub area: &'static str,
    /// State of the function.
    pub state: ImplementationState,
}

/// Versioned name of a driver function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// Name without the version suffix of the exported function.
    pub(crate) name: &'static str,
    /// First CUDA version in which the name means this function: 12030 is 12.3.
    pub(crate) since: i32,
    /// True if stream 0 is the default stream of the calling thread.
    pub(crate) per_thread: bool,
    /// Index of the function in the list.
    pub(crate) index: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionAddress(pub(crate) *const ());

// SAFETY: code is valid in all threads and is never written.
unsafe impl Sync for FunctionAddress {}

macro_rules! refused {
    ($name:ident, $status:literal, $reason:literal) => {
        #[allow(non_snake_case, reason = "the name is NVIDIA's")]
        extern "C" fn $name() -> u32 {
            crate::boundary::refused(stringify!($name), Status::of_name($status).unwrap_or(Status::NOT_SUPPORTED), $reason)
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/functions.rs"));

/// Returns the address of an exported function by its name.
pub(crate) fn address_of(name: &str) -> Option<*const ()> {
    index_of(name).map(exported_at)
}

/// Returns the versions of a driver function, oldest first.
pub(crate) fn versions_of(name: &str) -> &'static [Version] {
    let start = VERSIONS.partition_point(|version| version.name < name);
    let count = VERSIONS[start..].partition_point(|version| version.name == name);
    &VERSIONS[start..start + count]
}

/// Returns the address of an exported function by its index in the list.
pub(crate) fn exported_at(index: usize) -> *const () {
    EXPORTED[index].0
}

/// Renders the list as a Markdown page: counts, then the implemented and the missing functions of each area,
/// with reasons.
pub fn supported() -> String {
    let mut text = String::new();
    for (library, title) in [("runtime", "The runtime, `libcudart`"), ("driver", "The driver, `libcuda`")] {
        let all: Vec<&Function> = FUNCTIONS.iter().filter(|function| function.library == library).collect();
        let done = all.iter().filter(|function| function.state == ImplementationState::Done).count();
        text += &format!(
            "### {title}\n\n{done} of {} functions are done.\n\n| area | done | error instead |\n| --- | --- | --- |\n",
            all.len()
        );
        let mut areas: Vec<&str> = all.iter().map(|function| function.area).collect();
        areas.dedup();
        areas.sort_unstable();
        areas.dedup();
        for area in areas {
            let of_area = || all.iter().filter(|function| function.area == area);
            let done: Vec<String> = of_area()
                .filter(|function| function.state == ImplementationState::Done && !is_twin(function.name))
                .map(|function| format!("`{}`", function.name))
                .collect();
            let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
            for function in of_area() {
                if let ImplementationState::Refused { reason, .. } = function.state {
                    *reasons.entry(reason).or_default() += 1;
                }
            }
            let refused: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count}: {reason}")).collect();
            let listed = |list: &[String], between: &str| if list.is_empty() { "–".to_owned() } else { list.join(between) };
            text += &format!("| {area} | {} | {} |\n", listed(&done, ", "), listed(&refused, "; "));
        }
        text += "\n";
    }
    text
}

/// Tests if a name is the per-thread-default-stream variant of another function in the list.
fn is_twin(name: &str) -> bool {
    name.ends_with("_ptsz") || name.ends_with("_ptds")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Names that the headers of CUDA 12.9 and 13.4 declare and the libraries export.
    const NAMES: &str = include_str!("../functions/names.txt");

    #[test]
    fn every_function_of_the_headers_is_in_the_list_once() {
        let listed: BTreeSet<&str> = FUNCTIONS.iter().map(|function| function.name).collect();
        assert_eq!(listed.len(), FUNCTIONS.len(), "a function stands twice in the list");
        let missing: Vec<&str> = NAMES.lines().filter(|name| !name.is_empty() && !listed.contains(name)).collect();
        assert!(missing.is_empty(), "not in the list: {missing:?}");
    }

    #[test]
    fn every_error_has_a_name_and_a_reason() {
        for function in FUNCTIONS {
            if let ImplementationState::Refused { status, reason } = function.state {
                assert!(Status::of_name(status).is_some_and(|status| status != Status::SUCCESS), "{}: {status}", function.name);
                assert!(!reason.is_empty());
            }
            assert!(address_of(function.name).is_some());
        }
        assert!(address_of("cudaNoSuchFunction").is_none());
    }
}
