//! The list of benchmarks, by group and name.

use crate::benchmark::Benchmark;
use crate::error::Error;
use crate::{arrays, compile, effects, group, interp, kernels, nesl, overhead, programs, segments, start, streams};

/// A benchmark of any group.
#[derive(Clone, Copy)]
pub(crate) enum Entry {
    /// A job with a peer.
    Contest(&'static Benchmark),
    /// A program of `examples/nesl`.
    NeslProgram(&'static nesl::Example),
    /// Time of the command for a small NESL program, and compile time of a larger one.
    NeslFront,
    /// Compile times of kernels.
    Compile,
    /// Time of the command until its first result.
    Start,
    /// Host overhead of array expressions.
    Overhead,
    /// Segmented operations compared with unsegmented ones.
    Segments,
    /// The speed of the interpreter.
    Interp(&'static interp::InterpBenchmark),
}

impl Entry {
    pub(crate) fn group(self) -> &'static str {
        match self {
            Entry::Contest(benchmark) => benchmark.group,
            Entry::NeslProgram(_) => group::NESL_PROGRAMS,
            Entry::NeslFront => group::START,
            Entry::Compile => group::COMPILE,
            Entry::Start => group::START,
            Entry::Overhead => group::OVERHEAD,
            Entry::Segments => group::SEGMENTS,
            Entry::Interp(_) => group::INTERP,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Entry::Contest(benchmark) => benchmark.name,
            Entry::NeslProgram(example) => example.name,
            Entry::NeslFront => nesl::FRONT_NAME,
            Entry::Compile => compile::NAME,
            Entry::Start => start::NAME,
            Entry::Overhead => overhead::NAME,
            Entry::Segments => segments::NAME,
            Entry::Interp(benchmark) => benchmark.name,
        }
    }

    fn is_called(self, name: &str) -> bool {
        let full = name.split_once('/').is_some_and(|(group, name)| group == self.group() && name == self.name());
        name == self.group() || name == self.name() || full
    }
}

/// Returns all benchmarks, in run order.
pub(crate) fn entries() -> impl Iterator<Item = Entry> {
    let contests = [kernels::ALL, arrays::ALL, programs::ALL, &effects::ALL, nesl::ALL, streams::ALL]
        .into_iter()
        .flatten()
        .map(Entry::Contest);
    let programs = nesl::PROGRAMS.iter().map(Entry::NeslProgram);
    contests
        .chain(programs)
        .chain([Entry::Segments, Entry::Overhead, Entry::Compile, Entry::Start, Entry::NeslFront])
        .chain(interp::ALL.iter().map(Entry::Interp))
}

/// Returns the groups, each with its benchmarks.
pub fn groups() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = vec![];
    for entry in entries() {
        match groups.last_mut().filter(|(group, _)| *group == entry.group()) {
            Some((_, names)) => names.push(entry.name()),
            None => groups.push((entry.group(), vec![entry.name()])),
        }
    }
    groups
}

/// The selected benchmarks.
pub(crate) struct Selection {
    /// The benchmarks, in catalogue order.
    pub(crate) entries: Vec<Entry>,
    /// True if the figures at the end of the group `kernels` are selected.
    pub(crate) with_figures: bool,
}

/// Selects benchmarks by names of groups, of benchmarks, or `GROUP/BENCHMARK`. No names select all.
pub(crate) fn select(names: &[String]) -> Result<Selection, Error> {
    for name in names {
        if !entries().any(|entry| entry.is_called(name)) {
            let groups = groups();
            let available =
                groups.iter().map(|(group, _)| *group).chain(groups.iter().flat_map(|(_, names)| names.iter().copied()));
            let mut available: Vec<String> = available.map(str::to_owned).collect();
            let mut seen = std::collections::BTreeSet::new();
            available.retain(|name| seen.insert(name.clone()));
            return Err(Error::UnknownName { name: name.clone(), available });
        }
    }
    let chosen = |entry: &Entry| names.is_empty() || names.iter().any(|name| entry.is_called(name));
    let with_figures = names.is_empty() || names.iter().any(|name| name == group::KERNELS);
    Ok(Selection { entries: entries().filter(chosen).collect(), with_figures })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(names: &[&str]) -> Vec<String> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        select(&names).unwrap().entries.iter().map(|entry| format!("{}/{}", entry.group(), entry.name())).collect()
    }

    #[test]
    fn names_choose_groups_and_benchmarks() {
        assert_eq!(chosen(&[]).len(), entries().count());
        assert_eq!(chosen(&["kernels"]).len(), kernels::ALL.len());
        assert_eq!(chosen(&["scan", "life"]), ["kernels/scan", "kernels/life", "arrays/scan", "arrays/life"]);
        assert_eq!(chosen(&["saxpy"]), ["kernels/saxpy", "interp/saxpy"]);
        assert_eq!(chosen(&["interp/saxpy"]), ["interp/saxpy"]);
    }

    #[test]
    fn unknown_names_are_told_with_what_there_is() {
        for name in ["scna", "kernels/shuffles", "kernels/", "", "/"] {
            let Err(Error::UnknownName { name: told, available }) = select(&[name.to_owned()]) else { panic!("{name} exists") };
            assert_eq!(told, name);
            assert!(available.contains(&"scan".to_owned()) && available.contains(&"interp".to_owned()));
            assert_eq!(available.iter().filter(|name| *name == "saxpy").count(), 1);
        }
    }
}
