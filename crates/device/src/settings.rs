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

const THREADS: Setting = Setting {
    name: "BROADLOOM_THREADS",
    takes: "a number of threads from 1 to 4096",
    otherwise: "as many threads run as the host runs at once",
    is_right: |text| parse_threads(text).is_some(),
};
const MEMORY_LIMIT: Setting = Setting {
    name: "BROADLOOM_MEMORY_LIMIT",
    takes: "a number of bytes above 0, with `K`, `M`, `G` or `T` behind it if need be",
    otherwise: "memory is limited as if it were not set",
    is_right: |text| parse_limit(text).is_some(),
};
const TIME_LIMIT: Setting = Setting {
    name: "BROADLOOM_TIME_LIMIT",
    takes: "a number of seconds",
    otherwise: "launches take as long as they take",
    is_right: |text| parse_seconds(text).is_some(),
};
const CAPABILITY: Setting = Setting {
    name: "BROADLOOM_CUDA_CAPABILITY",
    takes: "a compute capability from 2.0 to 20.0, such as `8.0`",
    otherwise: "the device has the capability that the program was compiled for",
    is_right: |text| parse_capability(text).is_some(),
};
const LEVEL: Setting = Setting {
    name: "BROADLOOM_CUDA_LEVEL",
    takes: "a level of optimisation from 0 to 4",
    otherwise: "the driver chooses the level",
    is_right: |text| parse_level(text).is_some(),
};
const SYNC: Setting = flag("BROADLOOM_CUDA_SYNC", "launches return at once");
const CHECK: Setting = flag("BROADLOOM_CHECK", "kernels are not checked");
const STRICT_BARRIERS: Setting = flag("BROADLOOM_STRICT_BARRIERS", "threads may end before a barrier of their block");
const QUIET: Setting = flag("BROADLOOM_QUIET", "failures are told");

/// All variables with a format.
const ALL: [Setting; 9] = [THREADS, MEMORY_LIMIT, TIME_LIMIT, CAPABILITY, LEVEL, SYNC, CHECK, STRICT_BARRIERS, QUIET];

const fn flag(name: &'static str, otherwise: &'static str) -> Setting {
    Setting { name, takes: FLAG, otherwise, is_right: |text| parse_flag(text).is_some() }
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
    ALL.into_iter().filter_map(|setting| setting.problem(std::env::var_os(setting.name)?)).collect()
}

impl Setting {
    fn problem(self, value: OsString) -> Option<Problem> {
        let Setting { name, takes, otherwise, is_right } = self;
        let value = value.to_string_lossy();
        if value.trim().is_empty() || is_right(&value) {
            return None;
        }
        Some(Problem { name, value: value.into_owned(), takes, otherwise })
    }

    /// Returns the value if it is set and valid. An invalid value is reported.
    fn value<T>(self, parse: fn(&str) -> Option<T>) -> Option<T> {
        let value = std::env::var_os(self.name)?;
        if let Some(problem) = self.problem(value.clone()) {
            tell(&problem);
            return None;
        }
        value.to_str().and_then(parse)
    }
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
    if problem.name == QUIET.name || !is_quiet() {
        let line = format!("broadloom: {problem}; {}\n", problem.otherwise);
        // A closed standard error is ignored.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }
}

/// Returns the number of threads that run blocks on the CPU: `BROADLOOM_THREADS`.
pub fn threads() -> Option<usize> {
    THREADS.value(parse_threads)
}

/// Returns the memory limit of a device: `BROADLOOM_MEMORY_LIMIT`, a number with suffix `K`, `M`, `G` or `T`.
pub fn memory_limit() -> Option<u64> {
    MEMORY_LIMIT.value(parse_limit)
}

/// Returns the compute capability that CUDA programs see: `BROADLOOM_CUDA_CAPABILITY`, 75 for `7.5`.
pub fn cuda_capability() -> Option<u32> {
    CAPABILITY.value(parse_capability)
}

/// Returns the optimisation level of the driver's assembler: `BROADLOOM_CUDA_LEVEL`.
pub fn cuda_level() -> Option<u8> {
    LEVEL.value(parse_level)
}

/// Tests if every launch on a GPU is synchronous: `BROADLOOM_CUDA_SYNC`.
pub fn cuda_sync() -> bool {
    SYNC.value(parse_flag).unwrap_or(false)
}

/// Tests if kernels of CUDA programs are checked: `BROADLOOM_CHECK`.
pub fn check() -> bool {
    CHECK.value(parse_flag).unwrap_or(false)
}

/// Tests if a barrier that threads of the block have left out by ending is a finding:
/// `BROADLOOM_STRICT_BARRIERS`.
pub fn strict_barriers() -> bool {
    STRICT_BARRIERS.value(parse_flag).unwrap_or(false)
}

/// Returns the time limit of a CUDA program's launch, including compilation: `BROADLOOM_TIME_LIMIT`, in
/// seconds.
pub fn time_limit() -> Option<Duration> {
    TIME_LIMIT.value(parse_seconds)
}

fn parse_seconds(text: &str) -> Option<Duration> {
    text.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

/// Tests if libraries print nothing on standard error: `BROADLOOM_QUIET`.
pub fn is_quiet() -> bool {
    QUIET.value(parse_flag).unwrap_or(false)
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
        for (setting, right, wrong) in [
            (THREADS, &["1", " 16\n", "", "4096"][..], &["0", "-1", "two", "1.5", "4097", "99999999999999999999"][..]),
            (MEMORY_LIMIT, &["1", "4G", ""], &["0", "0K", "lots", "4 apples", "-1", "1.5G", "16E"]),
            (CAPABILITY, &["7.5", "75", "12.0", "9.0"], &["7,5", "7.55", "7..5", ".5", "7.", "1.0", "21.0", "+7.5", "sm_75"]),
            (LEVEL, &["0", "4"], &["5", "-1", "O3"]),
            (SYNC, &["0", "1", "on", "OFF", "true"], &["2", "maybe", "10"]),
            (CHECK, &["0", "off", "1"], &["memcheck"]),
            (QUIET, &["1", "yes"], &["please"]),
        ] {
            for right in right {
                assert_eq!(setting.problem(right.into()), None, "{}={right}", setting.name);
            }
            for wrong in wrong {
                let problem = setting.problem(wrong.into()).unwrap_or_else(|| panic!("{}={wrong}", setting.name));
                assert!(problem.to_string().starts_with(&format!("{} is `{wrong}`, and it takes ", setting.name)));
            }
        }
        use std::os::unix::ffi::OsStringExt;
        assert!(THREADS.problem(OsString::from_vec(b"\xff".to_vec())).is_some());
        assert_eq!(parse_capability("7.5"), Some(75));
    }
}
