//! The list of all functions: done, or the error that each returns.
//!
//! The list itself is `functions/runtime.txt` and `functions/driver.txt`; `functions/README.md` says how to add to it. Functions that are not
//! done are here; the symbols that programs link with lead to these, to those of the areas, or to NVIDIA's (`pass`).

use crate::status::Status;
use std::collections::BTreeMap;

/// What a function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// What NVIDIA's manual says.
    Done,
    /// It returns an error.
    Refused {
        /// The error's name.
        status: &'static str,
        /// Why.
        reason: &'static str,
    },
}

/// A function of the runtime or of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name, as the library exports it.
    pub name: &'static str,
    /// `runtime` or `driver`.
    pub library: &'static str,
    /// The area that it belongs to: the file that has it.
    pub area: &'static str,
    /// What it does.
    pub state: State,
}

/// A name of the driver's in a version of CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// The name, without the version that exported functions have at their end.
    pub(crate) name: &'static str,
    /// The version of CUDA from which on the name means this function: 12030 is 12.3.
    pub(crate) since: i32,
    /// Whether stream 0 is the calling thread's own.
    pub(crate) per_thread: bool,
    /// The function's place in the list.
    pub(crate) index: usize,
}

/// The address of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own(pub(crate) *const ());

// SAFETY: code is there for all threads, and nobody writes to it.
unsafe impl Sync for Own {}

macro_rules! refused {
    ($name:ident, $status:literal, $reason:literal) => {
        #[allow(non_snake_case, reason = "the name is NVIDIA's")]
        extern "C" fn $name() -> u32 {
            crate::boundary::refused(stringify!($name), Status::of_name($status).unwrap_or(Status::NOT_SUPPORTED), $reason)
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/functions.rs"));

/// Where the function of a name is, as the library exports it.
pub(crate) fn address_of(name: &str) -> Option<*const ()> {
    index_of(name).map(exported_at)
}

/// The versions of a function of the driver, from the oldest to the newest.
pub(crate) fn versions_of(name: &str) -> &'static [Version] {
    let start = VERSIONS.partition_point(|version| version.name < name);
    let count = VERSIONS[start..].partition_point(|version| version.name == name);
    &VERSIONS[start..start + count]
}

/// Where a function of the list is, as the library exports it.
pub(crate) fn exported_at(index: usize) -> *const () {
    EXPORTED[index].0
}

/// The list as a page of Markdown: counts, then by area what is done and what is not, with the reasons.
pub fn supported() -> String {
    let mut text = String::new();
    for (library, title) in [("runtime", "The runtime, `libcudart`"), ("driver", "The driver, `libcuda`")] {
        let all: Vec<&Function> = FUNCTIONS.iter().filter(|function| function.library == library).collect();
        let done = all.iter().filter(|function| function.state == State::Done).count();
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
                .filter(|function| function.state == State::Done && !is_twin(function.name))
                .map(|function| format!("`{}`", function.name))
                .collect();
            let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
            for function in of_area() {
                if let State::Refused { reason, .. } = function.state {
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

/// Whether it is a function for programs with a default stream per thread, whose like for all others is in the list as well.
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
            if let State::Refused { status, reason } = function.state {
                assert!(Status::of_name(status).is_some_and(|status| status != Status::SUCCESS), "{}: {status}", function.name);
                assert!(!reason.is_empty());
            }
            assert!(address_of(function.name).is_some());
        }
        assert!(address_of("cudaNoSuchFunction").is_none());
    }
}
