//! Environment variables with a format.
//!
//! The command checks all of them at start, and an invalid value is an error ([`problems`]). A library cannot
//! stop its program: there the first use of an invalid value is reported once on standard error, and the
//! value counts as unset. An empty value counts as unset.

use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Maximum number of threads that run blocks.
const MOST_THREADS: usize = 4096;

/// Environment variable with a format.
#[derive(Clone, Copy, Debug)]
struct Setting {
    name: &'static str,
    /// Description of valid values.
    takes: &'static str,
    /// Behaviour of a library for an invalid value.
    otherwise: &'static str,
    is_right: fn(&str) -> bool,
}

const FLAG: &str = "`1` or `on`, `0` or `off`";

/// Defines the variables, and a function that returns the value of each. A flag is false if it is not set.
macro_rules! settings {
    (
        values { $($(#[$doc:meta])* $function:ident -> $ty:ty = $name:literal $parse:ident: $takes:literal, $otherwise:literal;)* }
        flags { $($(#[$flag_doc:meta])* $flag:ident = $flag_name:literal: $unset:literal;)* }
    ) => {
        /// All variables with a format.
        const ALL: &[Setting] = &[
            $(Setting { name: $name, takes: $takes, otherwise: $otherwise, is_right: |text| $parse(text).is_some() },)*
            $(Setting { name: $flag_name, takes: FLAG, otherwise: $unset, is_right: |text| parse_flag(text).is_some() },)*
        ];

        $($(#[$doc])* pub fn $function() -> Option<$ty> { value($name, $parse) })*

        $($(#[$flag_doc])* pub fn $flag() -> bool { value($flag_name, parse_flag).unwrap_or(false) })*
    };
}

settings! {
    values {
        /// Returns the number of threads that run blocks on the CPU: `BROADLOOM_THREADS`.
        threads -> usize = "BROADLOOM_THREADS" parse_threads:
            "a number of threads from 1 to 4096", "as many threads run as the host runs at once";
        /// Returns the memory limit of a device: `BROADLOOM_MEMORY_LIMIT`, a number with suffix `K`, `M`, `G` or `T`.
        memory_limit -> u64 = "BROADLOOM_MEMORY_LIMIT" parse_limit:
            "a number of bytes above 0, with `K`, `M`, `G` or `T` behind it if need be", "memory is limited as if it were not set";
        /// Returns the time limit of a CUDA program's launch, including compilation: `BROADLOOM_TIME_LIMIT`, in
        /// seconds.
        time_limit -> Duration = "BROADLOOM_TIME_LIMIT" parse_seconds:
            "a number of seconds", "launches take as long as they take";
        /// Returns the compute capability that CUDA programs see: `BROADLOOM_CUDA_CAPABILITY`, 75 for `7.5`.
        cuda_capability -> u32 = "BROADLOOM_CUDA_CAPABILITY" parse_capability:
            "a compute capability from 2.0 to 20.0, such as `8.0`",
            "the device has the capability that the program was compiled for";
        /// Returns the optimisation level of the driver's assembler: `BROADLOOM_CUDA_LEVEL`.
        cuda_level -> u8 = "BROADLOOM_CUDA_LEVEL" parse_level:
            "a level of optimisation from 0 to 4", "the driver chooses the level";
    }
    flags {
        /// Tests if every launch on a GPU is synchronous: `BROADLOOM_CUDA_SYNC`.
        cuda_sync = "BROADLOOM_CUDA_SYNC": "launches return at once";
        /// Tests if kernels of CUDA programs are checked: `BROADLOOM_CHECK`.
        check = "BROADLOOM_CHECK": "kernels are not checked";
        /// Tests if a barrier that threads of the block have left out by ending is a finding:
        /// `BROADLOOM_STRICT_BARRIERS`.
        strict_barriers = "BROADLOOM_STRICT_BARRIERS": "threads may end before a barrier of their block";
        /// Tests if libraries print nothing on standard error: `BROADLOOM_QUIET`.
        is_quiet = "BROADLOOM_QUIET": "failures are told";
    }
}

/// Variable with an invalid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Name of the variable.
    pub name: &'static str,
    /// Value; bytes that are not text are replaced.
    pub value: String,
    /// Description of valid values.
    pub takes: &'static str,
    /// Behaviour of a library.
    pub otherwise: &'static str,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is `{}`, and it takes {}", self.name, self.value, self.takes)
    }
}

/// Returns the variables of this process with invalid values.
pub fn problems() -> Vec<Problem> {
    ALL.iter().filter_map(|setting| setting.problem(std::env::var_os(setting.name)?)).collect()
}

impl Setting {
    fn problem(&self, value: OsString) -> Option<Problem> {
        let Setting { name, takes, otherwise, is_right } = *self;
        let value = value.to_string_lossy();
        if value.trim().is_empty() || is_right(&value) {
            return None;
        }
        Some(Problem { name, value: value.into_owned(), takes, otherwise })
    }
}

fn setting(name: &str) -> Option<&'static Setting> {
    ALL.iter().find(|setting| setting.name == name)
}

/// Returns the value of a variable if it is set and valid. An invalid value is reported.
fn value<T>(name: &str, parse: fn(&str) -> Option<T>) -> Option<T> {
    let value = std::env::var_os(name)?;
    if let Some(problem) = setting(name)?.problem(value.clone()) {
        tell(&problem);
        return None;
    }
    value.to_str().and_then(parse)
}

/// Reports a problem on standard error, once per variable.
fn tell(problem: &Problem) {
    static TOLD: Mutex<Vec<&str>> = Mutex::new(vec![]);
    {
        let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
        if told.contains(&problem.name) {
            return;
        }
        told.push(problem.name);
    }
    if problem.name == "BROADLOOM_QUIET" || !is_quiet() {
        let line = format!("broadloom: {problem}; {}\n", problem.otherwise);
        // A closed standard error is ignored.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }
}

fn parse_seconds(text: &str) -> Option<Duration> {
    text.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

fn parse_threads(text: &str) -> Option<usize> {
    text.trim().parse().ok().filter(|threads| (1..=MOST_THREADS).contains(threads))
}

fn parse_limit(text: &str) -> Option<u64> {
    parse_bytes(text).filter(|bytes| *bytes > 0)
}

fn parse_capability(text: &str) -> Option<u32> {
    let number = |text: &str| text.bytes().all(|c| c.is_ascii_digit()).then(|| text.parse::<u32>().ok())?;
    let capability = match text.trim().split_once('.') {
        Some((major, minor)) => number(major)?.checked_mul(10)?.checked_add(number(minor).filter(|minor| *minor < 10)?)?,
        None => number(text.trim())?,
    };
    Some(capability).filter(|capability| (20..=200).contains(capability))
}

fn parse_level(text: &str) -> Option<u8> {
    text.trim().parse().ok().filter(|level| *level <= 4)
}

fn parse_flag(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "on" | "true" | "yes" => Some(true),
        "0" | "off" | "false" | "no" => Some(false),
        _ => None,
    }
}

/// Parses a number of bytes with an optional unit: `4096`, `512M`, `2GiB`.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let text = text.strip_suffix(['B', 'b']).unwrap_or(text);
    let (text, is_binary) = text.strip_suffix('i').map_or((text, false), |text| (text, true));
    let (number, shift) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 10),
        (at, 'm' | 'M') => (&text[..at], 20),
        (at, 'g' | 'G') => (&text[..at], 30),
        (at, 't' | 'T') => (&text[..at], 40),
        // `i` must follow a unit.
        _ if is_binary => return None,
        _ => (text, 0),
    };
    number.trim().parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        assert_eq!(parse_bytes("4096"), Some(4096));
        assert_eq!(parse_bytes(" 2G\n"), Some(2 << 30));
        assert_eq!(parse_bytes("512MiB"), Some(512 << 20));
        assert_eq!(parse_bytes("32K"), Some(32 << 10));
        for bad in ["", "G", "-1", "1.5G", "99999999999999999999", "18446744073709551615K", "12BBB", "12i", "4 apples"] {
            assert_eq!(parse_bytes(bad), None, "{bad}");
        }
    }

    #[test]
    fn nonsense_is_a_problem() {
        for (name, right, wrong) in [
            (
                "BROADLOOM_THREADS",
                &["1", " 16\n", "", "4096"][..],
                &["0", "-1", "two", "1.5", "4097", "99999999999999999999"][..],
            ),
            ("BROADLOOM_MEMORY_LIMIT", &["1", "4G", ""], &["0", "0K", "lots", "4 apples", "-1", "1.5G", "16E"]),
            (
                "BROADLOOM_CUDA_CAPABILITY",
                &["7.5", "75", "12.0", "9.0"],
                &["7,5", "7.55", "7..5", ".5", "7.", "1.0", "21.0", "+7.5", "sm_75"],
            ),
            ("BROADLOOM_CUDA_LEVEL", &["0", "4"], &["5", "-1", "O3"]),
            ("BROADLOOM_CUDA_SYNC", &["0", "1", "on", "OFF", "true"], &["2", "maybe", "10"]),
            ("BROADLOOM_CHECK", &["0", "off", "1"], &["memcheck"]),
            ("BROADLOOM_QUIET", &["1", "yes"], &["please"]),
        ] {
            let problem = |value: &str| setting(name).unwrap().problem(value.into());
            for right in right {
                assert_eq!(problem(right), None, "{name}={right}");
            }
            for wrong in wrong {
                let problem = problem(wrong).unwrap_or_else(|| panic!("{name}={wrong}"));
                assert!(problem.to_string().starts_with(&format!("{name} is `{wrong}`, and it takes ")));
            }
        }
        use std::os::unix::ffi::OsStringExt;
        assert!(setting("BROADLOOM_THREADS").unwrap().problem(OsString::from_vec(b"\xff".to_vec())).is_some());
        assert_eq!(parse_capability("7.5"), Some(75));
    }
}
