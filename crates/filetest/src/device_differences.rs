//! Permitted differences of devices other than the reference.
//!
//! The manual leaves open which `f64` NaN results from several NaN operands, and only the interpreter knows
//! the thread and the instruction of every fault. NaNs of 64 bits therefore count as equal, and a launch that
//! fails is only expected to fail. A rejected instruction must be the same, reported in the device's own
//! name.

use crate::Case;

/// Returns the reason why a case of a test is not run on GPUs, if it is not; `name` is the file and the case.
///
/// A launch that must fail is not run: a GPU does not find most errors, and never ends some kernels that wait
/// because of one. The others are places where GPUs, or their assembler, deviate from the manual, which the
/// interpreter follows.
pub fn left_out_on_gpus(name: &str, case: &Case) -> Option<&'static str> {
    let expected = case.expectations.get("run").map_or("", String::as_str);
    if expected.lines().any(|line| line.starts_with("error")) {
        return Some("a launch that must fail");
    }
    LEFT_OUT.iter().find(|(part, _)| name.starts_with(part)).map(|(_, why)| *why)
}

const IMAGES: &str = "textures of GPUs are not made by this device";

/// Files and cases in which GPUs deviate from the manual, by the start of their names.
const LEFT_OUT: &[(&str, &str)] = &[
    ("run/arith/clmad.ptx", LATER),
    ("run/texture/", IMAGES),
    ("run/surface/", IMAGES),
    ("run/atomic/counters.ptx", "goes past a shared variable into the next, and the manual does not say where that is"),
    ("run/cluster/red.async.ptx", LATER),
    ("run/cluster/st.async.ptx", LATER),
    ("run/cluster/st.bulk.ptx", LATER),
    ("run/mbarrier/mbarrier.check_layout.ptx", LATER),
    (
        "run/control/call_lanes.ptx",
        "the assembler takes no function with several results that may call itself; `call_lanes_param.ptx` does the same with one",
    ),
    ("run/barrier/bar.guard_parts_lanes.ptx", APART),
    ("run/barrier/barrier.ptx", APART),
    ("run/warp/shfl_masks.ptx", "a lane reads from one that its mask does not name, which the manual leaves open"),
    (
        "run/mbarrier/mbarrier.try_wait.ptx::states_and_parities",
        "try_wait on a phase that nobody can complete says that it is complete",
    ),
];

const APART: &str = "barriers that lanes of one warp come to apart end in an illegal instruction";

const LATER: &str = "later than PTX 9.0 or sm_90";

/// Returns whether two outputs of launches agree, as far as devices must agree.
pub fn same(expected: &str, found: &str) -> bool {
    let (mut expected, mut found) = (expected.lines().peekable(), found.lines().peekable());
    loop {
        match (expected.next(), found.next()) {
            (None, None) => return true,
            (Some(expected_line), Some(found_line)) => {
                let fails = |line: &str| line.starts_with("error: kernel ");
                if fails(expected_line) && fails(found_line) {
                    // The lines up to the next launch describe the failure.
                    while expected.next_if(|line| !line.starts_with("# ")).is_some() {}
                    while found.next_if(|line| !line.starts_with("# ")).is_some() {}
                } else if !same_refusal(expected_line, found_line) && !same_line(expected_line, found_line) {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

/// Returns whether two devices reject the same instruction.
fn same_refusal(expected: &str, found: &str) -> bool {
    let instruction = |line: &str| -> Option<String> {
        let (_, rest) = line.strip_prefix("error[")?.split_once("]: the ")?;
        rest.split_once(" does not run ").map(|(_, instruction)| instruction.to_owned())
    };
    instruction(expected).is_some_and(|expected| instruction(found) == Some(expected))
}

fn same_line(expected: &str, found: &str) -> bool {
    let (mut expected, mut found) = (expected.split_whitespace(), found.split_whitespace());
    loop {
        match (expected.next(), found.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) if a == b || is_nan(a) && is_nan(b) => {}
            _ => return false,
        }
    }
}

/// Returns whether a word is an `f64` NaN: as bits, or as such a value is shown.
fn is_nan(word: &str) -> bool {
    let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("nan(0x").and_then(|rest| rest.strip_suffix(')')));
    match digits {
        Some(digits) if digits.len() == 16 => u64::from_str_radix(digits, 16).is_ok_and(|bits| f64::from_bits(bits).is_nan()),
        _ => false,
    }
}
