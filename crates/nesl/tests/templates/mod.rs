//! Calls of templates with columns of other sizes.

use crate::support::{Open, interp};
use broadloom_graph::{Node, Shape};
use broadloom_nesl::eval::Options;
use broadloom_nesl::run::Target;
use broadloom_nesl::{Column, Program};
use broadloom_scalar::Type;
use libtest_mimic::Failed;

/// Functions of a line of floats and of a ragged one, each with its number of traces for all sizes below.
const FUNCTIONS: [(&str, &str, u64); 26] = [
    ("square", "function g(a) : [float] -> [float] = {x * x + 1.0 : x in a};", 1),
    ("mean", "function g(a) : [float] -> float = sum(a) / float(#a);", 1),
    ("deviation", "function g(a) : [float] -> float = let m = sum(a) / float(#a) in sum({(x - m) * (x - m) : x in a});", 1),
    ("filter", "function g(a) : [float] -> ([float], int) = ({x in a | x > 3.0}, #a);", 1),
    ("reverse", "function g(a) : [float] -> [float] = reverse(a);", 1),
    ("scan", "function g(a) : [float] -> [float] = plus_scan(a);", 1),
    ("middle", "function g(a) : [float] -> float = a[#a / 2] + a[#a - 1];", 1),
    ("neighbours", "function g(a) : [float] -> [float] = {x - y : x in drop(a, 1); y in take(a, #a - 1)};", 1),
    ("join", "function g(a) : [float] -> [float] = a ++ {2.0 * x : x in a};", 1),
    ("positions", "function g(a) : [float] -> [int] = {2 * i + #a : i in index(#a)};", 1),
    ("table", "function g(a) : [float] -> [[float]] = {{x * y : y in a} : x in take(a, 3)};", 1),
    ("branch on a size", "function g(a) : [float] -> float = if #a > 80 then sum(a) else max_val(a);", 2),
    ("sorted", "function g(a) : [float] -> [float] = sort(a);", 1),
    ("gather", "function g(a) : [float] -> [float] = a -> {rem(i * 3 + 1, #a) : i in index(#a)};", 1),
    ("least", "function g(a) : [float] -> [float] = take(a, min(#a, 100));", 2),
    ("put", "function g(a) : [float] -> [float] = a <- [(0, 1.0), (#a - 1, 2.0)];", 1),
    ("ranks", "function g(a) : [float] -> [int] = rank(a);", 1),
    ("any", "function g(a) : [float] -> (bool, bool) = (any({x > 8.0 : x in a}), all({x > 8.0 : x in a}));", 1),
    ("outer sums", "function g(a) : [float] -> [float] = {sum({x * y : y in a}) : x in a};", 1),
    ("two filters", "function g(a) : [float] -> [float] = let b = {x in a | x > 2.0} in {x in b | x < 7.0} ++ b;", 1),
    ("flat", "function g(m) : [[float]] -> [float] = flatten(m);", 1),
    ("filtered rows", "function g(m) : [[float]] -> [[float]] = {{x in row | x > 2.0} : row in m};", 1),
    ("sums", "function g(m) : [[float]] -> [float] = {sum(row) : row in m};", 1),
    ("filtered sums", "function g(m) : [[float]] -> [float] = {sum({x in row | x > 2.0}) : row in m};", 1),
    ("lengths", "function g(m) : [[float]] -> ([int], int) = ({#row : row in m}, #m);", 1),
    ("scaled", "function g(m) : [[float]] -> [[float]] = {{x / 4.0 + float(#row) : x in row} : row in m};", 1),
];

/// Sizes of calls, in the order of the calls. Plans for fewer than 64 elements differ.
const SIZES: [usize; 9] = [70, 71, 73, 76, 90, 87, 100, 75, 130];

fn upload(program: &mut Program, ty: Type, bytes: &[u8]) -> Result<Column, Failed> {
    let count = bytes.len() / ty.bytes() as usize;
    Ok(Column::Device(Node::upload(&program.context()?, ty, Shape::from(count), bytes)?))
}

fn floats(program: &mut Program, count: usize, value: impl Fn(usize) -> f64) -> Result<Column, Failed> {
    upload(program, Type::F64, &(0..count).flat_map(|i| value(i).to_le_bytes()).collect::<Vec<u8>>())
}

/// Returns the columns of a call of a size.
fn arguments(program: &mut Program, is_ragged: bool, size: usize) -> Result<Vec<Column>, Failed> {
    let value = |i: usize| ((i * 7 + size) % 11) as f64 - 1.5;
    if !is_ragged {
        return Ok(vec![floats(program, size, value)?]);
    }
    let offsets: Vec<i64> = (0..=size as i64).map(|row| row * 3 - row % 3).collect();
    let total = offsets[size] as usize;
    let offsets = upload(program, Type::I64, &offsets.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())?;
    Ok(vec![offsets, floats(program, total, value)?])
}

fn called(program: &mut Program, is_ragged: bool, size: usize) -> Result<Vec<Vec<f64>>, Failed> {
    let columns = arguments(program, is_ragged, size)?;
    Ok(program.call(&columns)?.iter().map(crate::numbers).collect::<Result<_, _>>()?)
}

/// Checks that templates give the results of the machine for every size, and that a function is traced only
/// if it does something else.
pub(crate) fn sizes(open: Open) -> Result<(), Failed> {
    let mut wrong = vec![];
    for (name, text, traces) in FUNCTIONS {
        let is_ragged = text.contains("(m)");
        let target = || Target::new(open).with_threshold(20).without_sequential_calls();
        let mut program = Program::new(text, "g", Options::default(), target())?;
        let mut plain = Program::new(text, "g", Options::default(), target().without_templates())?;
        for size in SIZES {
            let (found, expected) = (called(&mut program, is_ragged, size)?, called(&mut plain, is_ragged, size)?);
            if found != expected {
                wrong.push(format!("{name}, {size}: {found:?}, expected {expected:?}"));
            }
        }
        let (done, machine) = (program.statistics(), plain.statistics());
        if done.traces != traces || (machine.traces, machine.templates) != (0, 0) {
            wrong.push(format!("{name}: {} traces, {} calls of templates", done.traces, done.templates));
        }
        if done.templates < SIZES.len() as u64 - traces - 1 {
            wrong.push(format!("{name}: {} calls of templates", done.templates));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Functions of a line and an int of the host.
const INTS: [(&str, &str); 5] = [
    ("taken", "function g(a, k) : ([float], int) -> [float] = take(a, k);"),
    ("one", "function g(a, k) : ([float], int) -> (float, int) = (a[k] + a[#a - k - 1], k * 2 + #a);"),
    ("repeated", "function g(a, k) : ([float], int) -> [float] = a ++ dist(2.5, k);"),
    ("moved", "function g(a, k) : ([float], int) -> [float] = {x * float(k) : x in a};"),
    ("every", "function g(a, k) : ([float], int) -> [int] = {rem(i, k) : i in index(#a)};"),
];

/// Checks that an int of the host is a size: calls with other ints need no trace.
pub(crate) fn ints() -> Result<(), Failed> {
    for (name, text) in INTS {
        let target = || Target::new(interp).with_threshold(20);
        let mut program = Program::new(text, "g", Options::default(), target())?;
        let mut plain = Program::new(text, "g", Options::default(), target().without_templates())?;
        for (size, k) in [(100, 70), (101, 71), (103, 75), (120, 73), (150, 90), (160, 150), (130, 200), (140, 80)] {
            let call = |program: &mut Program| -> Result<String, Failed> {
                let columns = [floats(program, size, |i| i as f64)?, Column::Ints(vec![k])];
                Ok(match program.call(&columns) {
                    Ok(columns) => format!("{:?}", columns.iter().map(crate::numbers).collect::<Result<Vec<_>, _>>()?),
                    Err(failure) => failure.0,
                })
            };
            let (found, expected) = (call(&mut program)?, call(&mut plain)?);
            if found != expected {
                return Err(format!("{name}, {size} and {k}: {found}, expected {expected}").into());
            }
        }
        let done = program.statistics();
        if done.traces > 2 || done.templates < 5 {
            return Err(format!("{name}: {} traces, {} calls of templates", done.traces, done.templates).into());
        }
    }
    Ok(())
}

/// Checks that a thousand calls of different sizes are traced once, and that no instruction is executed from
/// the third call on.
pub(crate) fn thousand(open: Open) -> Result<(), Failed> {
    let text = "function g(a) : [float] -> ([float], float) = let m = sum(a) / float(#a) in ({x - m : x in a}, m);";
    let mut program = Program::new(text, "g", Options::default(), Target::new(open).with_threshold(20))?;
    let mut before = program.statistics();
    for call in 0..1000 {
        let size = 100 + call;
        let column = floats(&mut program, size, |i| i as f64)?;
        let results = program.call(&[column])?;
        let found = results.iter().map(crate::numbers).collect::<Result<Vec<_>, _>>()?;
        let mean = (size - 1) as f64 / 2.0;
        if found[1] != [mean] || found[0] != (0..size).map(|i| i as f64 - mean).collect::<Vec<f64>>() {
            return Err(format!("call {call}: {found:?}").into());
        }
        if call == 1 {
            before = program.statistics();
        }
    }
    let done = program.statistics();
    if (done.traces, done.templates) != (1, 999) || done.instructions != before.instructions || done.plans != before.plans {
        return Err(format!("{done:?}").into());
    }
    Ok(())
}

/// Checks that an error of a call with another size has the text of the machine's error.
pub(crate) fn errors() -> Result<(), Failed> {
    let texts = [
        "function g(a) : [float] -> [float] =\n  {1.0 / (x - 50.0) : x in a};",
        "function g(a) : [float] -> float =\n  sum(a) + a[#a - 45];",
        "function g(a) : [float] -> [float] =\n  {x + y : x in a; y in take(a, #a - #a / 60)};",
    ];
    for text in texts {
        let target = || Target::new(interp).with_threshold(20);
        let mut program = Program::new(text, "g", Options::default(), target())?;
        let mut plain = Program::new(text, "g", Options::default(), target().without_templates())?;
        let mut failures = 0;
        for size in [50, 49, 48, 70, 47, 44, 40, 60, 46] {
            let column = floats(&mut program, size, |i| i as f64)?;
            let own = floats(&mut plain, size, |i| i as f64)?;
            let (found, expected) = (program.call(&[column]), plain.call(&[own]));
            let text_of = |result: Result<Vec<Column>, _>| match result {
                Ok(columns) => Ok(format!("{:?}", columns.iter().map(crate::numbers).collect::<Result<Vec<_>, _>>()?)),
                Err(broadloom_nesl::program::Failure(text)) => Ok(text),
            };
            failures += u64::from(expected.is_err());
            let (found, expected): (Result<String, Failed>, Result<String, Failed>) = (text_of(found), text_of(expected));
            let (found, expected) = (found?, expected?);
            if found != expected {
                return Err(format!("{text}\n{size}: {found}\nexpected {expected}").into());
            }
        }
        let done = program.statistics();
        if failures == 0 || failures == 9 || done.templates == 0 {
            return Err(format!("{text}\n{failures} failures, {} calls of templates", done.templates).into());
        }
    }
    Ok(())
}

/// Checks that a size that needs more memory or steps than allowed ends in the error of the machine.
pub(crate) fn limits() -> Result<(), Failed> {
    let text = "function g(a) : [float] -> [float] = let b = {x + 1.0 : x in a}; c = b ++ b in {x * 2.0 : x in c ++ c};";
    let few = Options { max_bytes: 1 << 16, ..Options::default() };
    let short = Options { max_steps: 150, ..Options::default() };
    for options in [few, short] {
        let target = || Target::new(interp).with_threshold(20);
        let mut program = Program::new(text, "g", options, target())?;
        let mut plain = Program::new(text, "g", options, target().without_templates())?;
        let mut failures = 0;
        for size in [50, 60, 70, 2000, 80, 3000, 90] {
            let column = floats(&mut program, size, |i| i as f64)?;
            let own = floats(&mut plain, size, |i| i as f64)?;
            let (found, expected) = (program.call(&[column]), plain.call(&[own]));
            failures += u64::from(expected.is_err());
            if found.as_ref().err() != expected.as_ref().err() {
                return Err(format!("{size}: {:?}, expected {:?}", found.err(), expected.err()).into());
            }
        }
        if failures != 2 || program.statistics().templates != 4 {
            return Err(format!("{failures} failures, {} calls of templates", program.statistics().templates).into());
        }
    }
    Ok(())
}
