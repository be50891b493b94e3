//! Programs on devices give the answers of the evaluator: every operation is executed on the device, however
//! small.
//!
//! `BROADLOOM_NESL_DEVICE_RANDOM` sets the number of random programs. `BROADLOOM_NESL_DEVICE_SESSIONS` names
//! a device (`interp`, `cpu`) on which all sessions of `tests/sessions` run.

mod columns;
mod costs;
mod generator;
mod loops;
mod regions;
mod rounds;
mod support;
mod teams;
mod templates;

use broadloom_device::Device;
use broadloom_diag::Sources;
use broadloom_graph::{Node, Shape};
use broadloom_interp::Interp;
use broadloom_nesl::eval::Options;
use broadloom_nesl::run::Target;
use broadloom_nesl::session::{Output, Session, Settings};
use broadloom_nesl::syntax::parse;
use broadloom_nesl::{Column, Program};
use broadloom_scalar::{Literal, Type};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::Path;
use support::{DEVICES, Open, interp};

fn main() {
    let mut trials = vec![];
    // Trials run in this order: the longest are first, so that none of them runs alone at the end.
    trials.push(Trial::test("interp: regions launch no more than the machine", || regions::economy(&regions::PROGRAMS)));
    trials.push(Trial::test("interp: regions of recursions launch no more than the machine", || {
        regions::economy(&regions::RECURSIONS)
    }));
    trials.push(Trial::test("interp: the columns of the table of primitives agree", || columns::agreement(interp)));
    for (name, device) in DEVICES {
        trials.push(Trial::test(format!("{name}: teams run large calls"), move || teams::programs(device)));
    }
    for (name, device) in DEVICES {
        let count = if name == "cpu" { 7 } else { SMALL.len() };
        trials
            .push(Trial::test(format!("{name}: small programs"), move || programs(device, Settings::default(), &SMALL[..count])));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions");
    for session in ["nesting", "sequences", "functions"] {
        let path = root.join(session).with_extension("nesl");
        trials.push(Trial::test(format!("interp: sessions/{session}"), move || session_file(interp, &path)));
    }
    if let Ok(wanted) = std::env::var("BROADLOOM_NESL_DEVICE_SESSIONS") {
        let mut paths: Vec<_> = std::fs::read_dir(&root).expect("the sessions").flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "nesl"));
        paths.sort();
        for (name, device) in DEVICES.into_iter().filter(|(name, _)| *name == wanted) {
            for path in paths.clone() {
                let session = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                trials.push(Trial::test(format!("{name}: all sessions/{session}"), move || session_file(device, &path)));
            }
        }
    }
    for (name, device) in DEVICES {
        let programs = &SEQUENTIAL[if name == "cpu" { 0..11 } else { 0..SEQUENTIAL.len() }];
        trials.push(Trial::test(format!("{name}: sequential calls"), move || sequential(programs, || Target::new(device))));
        trials.push(Trial::test(format!("{name}: sequential calls in warps"), move || {
            sequential(programs, || Target::new(device).with_calls_in_warps())
        }));
    }
    for (name, device) in DEVICES {
        trials.push(Trial::test(format!("{name}: warps take parts of calls"), move || {
            tasks(|| Target::new(device).with_calls_in_warps())
        }));
        trials.push(Trial::test(format!("{name}: cores take parts of calls"), move || tasks(|| Target::new(device))));
    }
    for (name, device) in DEVICES {
        trials.push(Trial::test(format!("{name}: tail calls are loops"), move || loops::programs(device)));
        trials.push(Trial::test(format!("{name}: loops without end"), move || loops::endless(device)));
        trials.push(Trial::test(format!("{name}: recursion of one call is a loop"), move || rounds::programs(device)));
    }
    trials.push(Trial::test("cpu: loops of one call pause", rounds::pauses));
    trials.push(Trial::test("cpu: loops of one call without end", rounds::endless));
    trials.push(Trial::test("cpu: kernels of loops do not depend on the number of rounds", loops::kernels));
    trials.push(Trial::test("interp: 25 random programs for teams", || teams::random(interp, 25)));
    trials.push(Trial::test("interp: kernels and waits of teams", teams::structure));
    trials.push(Trial::test("sequential calls are short on GPUs", costs::short_on_gpus));
    trials.push(Trial::test("interp: calls that fail run flattened", failing));
    trials.push(Trial::test("interp: calls without memory for arenas run flattened", without_arenas));
    trials.push(Trial::test("interp: lengths that would wrap are refused", wrapping));
    trials.push(Trial::test("cpu: a character takes a byte", characters));
    trials.push(Trial::test("cpu: sequential calls save launches", fewer_launches));
    trials.push(Trial::test("interp: kernels and waits", structure));
    trials.push(Trial::test("interp: kernels and waits of a level", levels));
    trials.push(Trial::test("interp: kernels of calls", calls));
    trials.push(Trial::test("interp: templates of calls", called_again));
    for (name, device) in DEVICES {
        trials.push(Trial::test(format!("{name}: templates for other sizes"), move || templates::sizes(device)));
    }
    for (name, device) in DEVICES.into_iter().filter(|(name, _)| *name == "cpu") {
        trials.push(Trial::test(format!("{name}: a thousand sizes are traced once"), move || templates::thousand(device)));
    }
    trials.push(Trial::test("interp: ints of the host are sizes", templates::ints));
    trials.push(Trial::test("interp: errors of calls with other sizes", templates::errors));
    trials.push(Trial::test("interp: limits of calls with other sizes", templates::limits));
    for (name, device) in DEVICES {
        let count = if name == "cpu" { 4 } else { 16 };
        trials.push(Trial::test(format!("{name}: regions between waits"), move || regions::programs(device, count)));
    }
    for (name, device) in DEVICES.into_iter().filter(|(name, _)| *name == "cpu") {
        trials.push(Trial::test(format!("{name}: a region of a thousand rounds is traced once"), move || {
            regions::thousand(device)
        }));
    }
    trials.push(Trial::test("interp: errors in regions", regions::errors));
    trials.push(Trial::test("interp: vectors of the top level are copied once", variables));
    trials.push(Trial::test("interp: a function is called with columns", columns));
    trials.push(Trial::test("interp: numbers that the host knows need no kernel", known_numbers));
    let count = std::env::var("BROADLOOM_NESL_DEVICE_RANDOM").ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    trials.push(Trial::test(format!("interp: {count} random programs"), move || random(interp, count)));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Programs whose answers are compared as text.
const SMALL: [&str; 16] = [
    "let s = \"a bc  def\"; w = wordify(s) in ({v ++ \"!\" : v in w}, {uppercase(c) : c in s | c /= `b}, s <- [(0, `z), (3, s[3])], \
     s -> {#s - 1 - i : i in index(#s)}, {parse_int(v) : v in [\"12\", \"-3\", \"x\"]}, {#v : v in linify(s ++ [newline] ++ s)}, \
     {if c == `a then code_char(100) else c : c in s}, {eql(v, \"bc\") : v in w}, collect({(v, 1) : v in w ++ w}), max_val(s));",
    "let a = {float(i) : i in [0:20]} in sum({x * y : x in a; y in a});",
    "let v = [3, 1, 4, 1, 5, 9, 2, 6] in ({x in v | x > 2}, {x + y : x in v; y in reverse(v)}, sum(v), max_val(v));",
    "{sum({v * x : v in row; x in [1.0, 2.0, 3.0] -> {i : i in [0:#row]}}) : row in [[1.0, 2.0], [] float, [3.0]]};",
    "function qsort(a) = if #a < 2 then a else let p = a[#a / 2]; r = {qsort(v) : v in [{e in a | e < p}, {e in a | e > p}]} \
     in r[0] ++ {e in a | e == p} ++ r[1]; qsort([3, 1, 2, 5, 4, 9, 8, 0, 3]);",
    "function size(kids, v) = 1 + sum({size(kids, c) : c in kids[v]}); size([[1, 2], [3], [] int, [4], [] int], 0);",
    "let x = [1, 2, 3] in {x[i] : i in [0, 1, 7]};",
    "{12 / x : x in [1, 0, 3]};",
    "let v = [1, 2, 0]; _ = {6 / x : x in v} in print_line(\"never\");",
    "{sqrt(x) : x in [4.0, -1.0]};",
    "{max_val(v) : v in [[] float, [1.5, 2.5]]} ++ {min_val(v) : v in [[] float, [1.5, 2.5]]};",
    "{(plus_scan(v), max_scan(v), rank(v)) : v in [[3, 1, 2], [] int, [5]]};",
    "(permute([7, 8, 9], [2, 0, 1]), [7, 8, 9] <- [(1, 5)], [7, 8] -> [1, 1, 0], rank([2.0, -0.0, 0.0]));",
    "{if x > 1 then [x] else [] int : x in [0:4]};",
    "unpack([1], [f]);",
    // Ranges with steps.
    "({[i:i * 3:2] : i in [0:4]}, [9:9:2], sum([-7:2000:3]), {#[x:y:z] : x in [1, -5]; y in [8, -5]; z in [3, 2]});",
];

fn sessions(open: Open, settings: Settings) -> [Session; 2] {
    // Regions become templates at their first start.
    let target = Target::new(open).with_threshold(0).with_regions_from(1);
    [support::session(settings), support::session_on(settings, target)]
}

/// Returns answers as text; for an error its code, message and place.
pub(crate) fn answer(outputs: &[Output]) -> String {
    let one = |output: &Output| match output {
        Output::Error(report) => {
            let place = |error: &broadloom_diag::Diagnostic| error.primary.as_ref().map(|label| label.span);
            let one = |error: &broadloom_diag::Diagnostic| match error.code.0 {
                // The first limit that is reached depends on the order of work.
                "N0302" | "N0303" | "N0304" => "a limit\n".to_owned(),
                _ => format!("{} {} {:?}\n", error.code, error.message, place(error)),
            };
            report.diagnostics.iter().map(one).collect()
        }
        other => other.to_string(),
    };
    outputs.iter().map(one).collect()
}

fn programs(open: Open, settings: Settings, programs: &[&str]) -> Result<(), Failed> {
    let [mut evaluator, mut device] = sessions(open, settings);
    let mut wrong = vec![];
    for program in programs {
        let (expected, found) = (answer(&evaluator.eval("small", program)), answer(&device.eval("small", program)));
        if expected != found {
            wrong.push(format!("{program}\n  found    {found}  expected {expected}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Programs with their maximum numbers of launches and of waits.
const STRUCTURE: [(&str, &str, u64, u64); 5] = [
    ("dot product", "let a = {float(i) : i in [0:1000]} in sum({x * y : x in a; y in a});", 1, 1),
    (
        "Black-Scholes",
        "function cnd(d) = let k = 1.0 / (1.0 + 0.2316419 * abs(d)); \
           w = 0.39894228 * exp(-0.5 * d * d) * k * (0.31938153 + k * (-0.356563782 + k * 1.781477937)) \
           in if d > 0.0 then 1.0 - w else w; \
         function price(s, x, y) = let q = sqrt(y); d = (ln(s / x) + 0.06 * y) / (0.3 * q) \
           in s * cnd(d) - x * exp(-0.02 * y) * cnd(d - 0.3 * q); \
         sum({price(5.0 + float(i), 20.0, 1.0 + float(i)) : i in [0:1000]});",
        1,
        1,
    ),
    ("sum of a filter", "let v = [0:1000] in sum({x * x : x in {y in v | rem(y, 3) == 0}});", 1, 1),
    (
        "sparse matrix-vector",
        "let m = {{(rem(i * j, 50), float(j)) : j in [0:rem(i, 7)]} : i in [0:200]}; x = {float(i) : i in [0:50]} \
         in sum({sum({v * x[i] : (i, v) in row}) : row in m});",
        40,
        5,
    ),
    (
        // Ten levels. The middle of an ordered sequence is the best pivot, so each level has twice as many
        // parts as the previous one.
        "quicksort",
        "function qsort(a) = if #a < 2 then a else let p = a[#a / 2]; r = {qsort(v) : v in [{e in a | e < p}, {e in a | e > p}]} \
         in r[0] ++ {e in a | e == p} ++ r[1]; sum(qsort([0:1023]));",
        279,
        14,
    ),
];

/// Counts launches and waits, and compares the answers.
fn structure() -> Result<(), Failed> {
    let mut wrong = vec![];
    for (name, program, launches, waits) in STRUCTURE {
        let mut evaluator = support::session(Settings::default());
        let target = Target::new(interp).with_threshold(100).without_sequential_calls();
        let mut device = support::session_on(Settings::default(), target);
        let (expected, found) = (answer(&evaluator.eval("small", program)), answer(&device.eval("small", program)));
        let done = device.statistics();
        if expected != found || !found.contains("it = ") {
            wrong.push(format!("{name}:\n  found    {found}  expected {expected}"));
        }
        if done.launches > launches || done.waits > waits {
            wrong.push(format!("{name}: {} launches, {} waits; at most {launches}, {waits}", done.launches, done.waits));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Checks the launches and waits of one more level of quicksort: the difference of ordered sequences with ten
/// and with eleven levels.
fn levels() -> Result<(), Failed> {
    let count = |length: usize| {
        let text = format!(
            "function qsort(a) = if #a < 2 then a else let p = a[#a / 2]; less = {{e in a | e < p}}; same = {{e in a | e == p}}; \
               more = {{e in a | e > p}}; r = {{qsort(v) : v in [less, more]}} in r[0] ++ same ++ r[1]; sum(qsort([0:{length}]));"
        );
        let target = Target::new(interp).with_threshold(100).without_sequential_calls();
        let mut device = support::session_on(Settings::default(), target);
        let found = answer(&device.eval("small", &text));
        let sum = length * (length - 1) / 2;
        if !found.contains(&format!("it = {sum} ")) {
            return Err(Failed::from(found));
        }
        Ok(device.statistics())
    };
    let (before, after) = (count(1023)?, count(2047)?);
    let (launches, waits) = (after.launches - before.launches, after.waits - before.waits);
    if launches > LAUNCHES_OF_A_LEVEL || waits > WAITS_OF_A_LEVEL {
        return Err(format!("a level has {launches} launches and {waits} waits").into());
    }
    Ok(())
}

const LAUNCHES_OF_A_LEVEL: u64 = 28;
const WAITS_OF_A_LEVEL: u64 = 1;

/// Programs with calls that run sequentially.
const SEQUENTIAL: [&str; 26] = [
    // Filters over the same sequences, some of which use the others.
    "function parted(v, w, n) = if n == 0 then v else let low = {(x, y) : x in v; y in w | x < y}; \
     a = {x : x in v; y in w | x > y}; b = {y * x : x in v; y in w | oddp(x + y)}; c = {x + #a : x in v; y in w | x /= #b} \
     in a ++ parted(b ++ c ++ {x : (x, y) in low}, b ++ c ++ {y : (x, y) in low}, n - 1) ++ [n]; \
     {parted(v, w, n) : v in [[3, 1, 4, 1, 5], [2, 7], [9]]; w in [[2, 7, 1, 8, 2], [8, 1], [9]]; n in [2, 1, 1]};",
    // Results of a function in any memory order, used twice, before the function's memory, and in its
    // branches.
    "function mixed(v, n) = if n == 0 then v ++ v else let r = mixed(drop(v, 1), n - 1); s = mixed({x + n : x in v}, n - 1) \
     in if oddp(n) then s ++ v ++ r ++ s else if n == 2 then r ++ s ++ [n] else s ++ r ++ take(s, 3) ++ dist(n, 2); \
     {mixed(v, n) : v in [[1, 2, 3, 4], [5, 6, 7]]; n in [3, 2]};",
    "function halves(v) = if #v < 2 then {x < 0.5 : x in v} else let a = halves(take(v, #v / 2)); b = halves(drop(v, #v / 2)) \
     in b ++ a; {halves(v) : v in [[0.25, 0.75, 0.5], [1.0], [] float]};",
    "function ranked(v, n) = if n == 0 then ([] int, [] int) else let w = {float(x) - 2.0 : x in v} ++ [0.0, -0.0]; \
     (a, b) = ranked(drop(v, 1), n - 1) in (rank(w) ++ rank_down(w) ++ a, sort(v) ++ rank_down(v) ++ b); \
     {ranked(v, n) : v in [[3, 1, 2, 1, -5, 4, 2, 2, 9], [7], [2, 2]]; n in [2, 1, 2]};",
    "function hashed(s, n) = if n == 0 then [] int else hashed(s, n - 1) ++ [hash(s, 1000003), hash((n, oddp(n), float(n) / 3.0), 9973), \
     hash([(`a, [n]), (`b, [] int)], 65521), hash(0.0, 100), hash(-0.0, 100)] ++ {char_code(c) : c in @(n * -1237) ++ @oddp(n) ++ @`z}; \
     {hashed(s, n) : s in [\"ab\", \"\"]; n in [2, 3]} ++ [{char_code(c) : c in @(-2147483647 - 1)}];",
    "function opened(v, n) = if n == 0 then unpack(v, [f, t, t, f]) else opened({x + n : x in v}, n - 1) ++ unpack(v, [t, f, t]); \
     {opened(v, n) : v in [[1, 2], [3, 4]]; n in [1, 2]};",
    "function qsort(a) = if #a < 2 then a else let p = a[#a / 2]; r = {qsort(v) : v in [{e in a | e < p}, {e in a | e > p}]} \
     in r[0] ++ {e in a | e == p} ++ r[1]; {qsort(v) : v in [[3, 1, 2, 5, 4, 9, 8, 0, 3], [] int, [2, 1]]};",
    // Some calls are small, others are not.
    "function qsort(a) = if #a < 2 then a else let p = a[#a / 2]; r = {qsort(v) : v in [{e in a | e < p}, {e in a | e > p}]} \
     in r[0] ++ {e in a | e == p} ++ r[1]; {qsort({rem(i * 7919, 1009) : i in [0:n]}) : n in [60, 3, 0, 11, 40, 12, 30, 25, 28]};",
    "function fib(n) = if n < 2 then n else fib(n - 1) + fib(n - 2); {fib(i) : i in [0:12]};",
    // Sequences of sequences as arguments and results.
    "function rows(v) = if #v < 2 then v else let r = {rows(w) : w in [take(v, #v / 2), drop(v, #v / 2)]} in r[1] ++ r[0]; \
     {rows(v) : v in [[[1, 2], [] int, [3]], [[4]], [] [int], [[5, 6, 7], [8]]]};",
    "function tree(n) = if n == 0 then [([1.5], t)] else tree(n - 1) ++ [([float(n), 0.25], oddp(n))]; {tree(i) : i in [0:4]};",
    "function gcds(a, b) = if b == 0 then (a, [] int) else let (g, s) = gcds(b, rem(a, b)) in (g, [a / b] ++ s); \
     {gcds(a, b) : a in [12, 7, -9, 0]; b in [18, 0, 6, 5]};",
    "function words(s) = if #s == 0 then \"end\" else words(drop(s, 1)) ++ \"-\" ++ take(s, 1); {words(w) : w in [\"abc\", \"\", \"z\"]};",
    "function scans(v, n) = if n == 0 then v else scans({a + b * c : a in plus_scan(v); b in max_scan([3, 1] ++ drop(v, 2)); \
     c in min_scan(reverse(v))}, n - 1); {scans(v, n) : v in [[1, 2, 3], [4, 5]]; n in [2, 1]};",
    "function bits(n) = if n == 0 then (0, t, f) else let (c, a, b) = bits(rshift(n, 1)) in (c + (n and 1), a and oddp(n), b or evenp(n)); \
     {bits(i) : i in [0, 1, 6, 7]};",
    "function moved(v, n) = if n == 0 then v else moved(permute(v, {rem(i + 1, #v) : i in index(#v)}) <- [(0, n)], n - 1); \
     {moved(v, n) : v in [[5, 6, 7], [8, 9]]; n in [3, 2]};",
    "function shifted(x, n) = if n == 0 then [x, float(trunc(x)), float(floor(x)), float(ceil(x)), sqrt(abs(x))] \
     else shifted(x / 2.0 - 1.5, n - 1); {shifted(x, n) : x in [10.0, -3.25]; n in [2, 1]};",
    "function parts(v, n) = if n == 0 then [v] else flatten({parts(w, n - 1) : w in partition(v, [1, #v - 1])}); \
     {parts(v, 1) : v in [[1, 2, 3], [4]]};",
    "function nested(n) = if n == 0 then [[[1]]] else nested(n - 1) ++ [[[n], [] int], [] [int]]; {nested(i) : i in [0, 2, 1]};",
    "function applied(g, v) = if #v == 0 then [] int else [g(v[0])] ++ applied(g, drop(v, 1)); \
     let k = 10 in {applied(x => x * k + i, v) : v in [[1, 2], [3]]; i in [4, 5]};",
    "function even(n) : int -> bool; function odd(n) = if n == 0 then f else even(n - 1); \
     function even(n) = if n == 0 then t else odd(n - 1); {(even(i), odd(i)) : i in [0:5]};",
    "function same(a, b) = if #a == 0 then eql(a, b) else if eql(a, b) then t else same(drop(a, 1), drop(b, 1)); \
     {same(a, b) : a in [[[1]], [[2], [3]]]; b in [[[1]], [[4], [3]]]};",
    "function most(v, n) = if n == 0 then (max_val(v), min_val(v), sum(v), product(v)) else most(v ++ v, n - 1); \
     {most(v, n) : v in [[] float, [1.5, -2.0]]; n in [1, 2]};",
    // The last digits may differ.
    "function waves(x, n) = if n == 0 then {round(1000.0 * y) : y in [exp(x), ln(x + 3.0), sin(x), cos(x), tan(x), asin(x / 4.0), \
     acos(x / 4.0), atan(x), sinh(x), cosh(x), tanh(x)]} else waves(x * 0.5, n - 1) ++ [round(exp(x))]; \
     {waves(x, n) : x in [1.5, -0.75]; n in [1, 2]};",
    // Sequences of the program are part of the form.
    "table = [3, -1, 4]; pairs = [(1.5, t, `a), (-2.25, f, `b)]; none = [] int; \
     function looked(n) = if n < 0 then none else looked(n - 1) ++ table ++ [table[n], sum(table)] ++ \
     {btoi(b) + trunc(x) + char_code(c) : (x, b, c) in pairs}; {looked(i) : i in [0:3]};",
    "function ranges(n) = if n == 0 then [] int else ranges(n - 1) ++ [n:n * 3:2] ++ dist(n, 2); {ranges(i) : i in [0:4]};",
];

/// Compares the answers, and counts calls that ran sequentially.
fn sequential(programs: &[&str], target: impl Fn() -> Target) -> Result<(), Failed> {
    let mut wrong = vec![];
    for (wide, narrow) in [(false, false), (true, true)] {
        for program in programs {
            let mut settings = Settings::default();
            (settings.options.widths.wide_int, settings.options.widths.narrow_float) = (wide, narrow);
            let mut evaluator = support::session(settings);
            let target = target().with_threshold(0).with_sequential_limit(16);
            let mut device = support::session_on(settings, target);
            let (expected, found) = (answer(&evaluator.eval("small", program)), answer(&device.eval("small", program)));
            if expected != found || !found.contains("it = ") {
                wrong.push(format!("{program}\n  found    {found}  expected {expected}"));
            }
            let done = device.statistics();
            if done.sequential_calls + done.loop_calls == 0 {
                wrong.push(format!("{program}\n  no call ran sequentially"));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Programs with calls that are long enough for other workers to take parts of them: sequences, nested
/// sequences and scalars as results, and a call that fails.
const TASKS: [&str; 4] = [
    "function qsort(a) = if #a < 2 then a else let p = a[#a / 2]; r = {qsort(v) : v in [{e in a | e < p}, {e in a | e > p}]} \
     in r[0] ++ {e in a | e == p} ++ r[1]; {qsort({rem(i * 7919, 1009) : i in [0:n]}) : n in [300, 3, 0, 170]};",
    "function halves(v) = if #v < 3 then [v] else flatten({halves(w) : w in [take(v, #v / 2), drop(v, #v / 2), [#v]]}); \
     {halves(index(n)) : n in [90, 5, 60]};",
    "function tree(n) = if n < 2 then (n, oddp(n), float(n)) else let r = {tree(m) : m in [n - 1, n - 2, n / 2]} \
     in (sum({a : (a, b, c) in r}), any({b : (a, b, c) in r}), sum({c : (a, b, c) in r})); {tree(i) : i in [9, 0, 7]};",
    "function deep(v, n) = if n == 0 then v[7] else sum({deep(w, n - 1) : w in [v, v, v]}); \
     {deep(index(8), n) : n in [4, 1]} ++ {deep(v, n) : v in [index(9), index(3)]; n in [1, 3]};",
];

/// Compares the answers of calls whose parts other workers take.
fn tasks(target: impl Fn() -> Target) -> Result<(), Failed> {
    let mut wrong = vec![];
    for program in TASKS {
        let mut evaluator = support::session(Settings::default());
        let target = target().with_threshold(0).with_sequential_limit(4096);
        let mut device = support::session_on(Settings::default(), target);
        let (expected, found) = (answer(&evaluator.eval("small", program)), answer(&device.eval("small", program)));
        let ran = device.statistics().sequential_calls > 0;
        if expected != found || !ran {
            wrong.push(format!("{program}\n  found    {found}  expected {expected}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Checks that errors have the messages and places of flattened code. Calls that need much memory, depth or
/// time run flattened.
fn failing() -> Result<(), Failed> {
    let texts = [
        "function deep(v, n) = if n == 0 then v[7] else deep(v, n - 1); {deep(v, n) : v in [[1], [2]]; n in [1, 2]};",
        "function half(n, x) = if n == 0 then 1 / x else half(n - 1, x); {half(n, x) : n in [2, 3]; x in [1, 0]};",
        "function root(n, x) = if n == 0 then sqrt(x) else root(n - 1, x); {root(n, x) : n in [1, 0]; x in [4.0, -4.0]};",
        "function logs(n, x) = if n == 0 then ln(x) else logs(n - 1, x); {logs(n, x) : n in [1, 0]; x in [4.0, -4.0]};",
        "function long(n) = if n == 0 then 0 else 1 + long(n - 1); {long(n) : n in [200, 3]};",
        "function large(n) = if n == 0 then [0] else let v = large(n - 1) in v ++ v; {#large(n) : n in [13, 1]};",
        "function check(n) = if n == 0 then error(\"it is 0\") else check(n - 1); {check(n) : n in [1, 2]};",
    ];
    programs(interp, Settings::default(), &texts)
}

/// Checks a memory limit: an arena for 100,000 elements does not fit, their flattened sums do.
fn without_arenas() -> Result<(), Failed> {
    let text = "function sums(v, n) = if n == 0 then sum(v) else 0 + sums(v, n - 1); {sums([0:100000], n) : n in [1, 2]};";
    let open = |memory_bytes: u64| {
        move || Ok(Device::new(Interp::new(broadloom_interp::Options { memory_bytes, ..Default::default() })))
    };
    for (memory, is_sequential) in [(1 << 23, false), (1 << 26, true)] {
        let target = Target::new(open(memory)).with_threshold(0).with_sequential_limit(1 << 20);
        let mut device = support::session_on(Settings::default(), target);
        let (found, done) = (answer(&device.eval("small", text)), device.statistics());
        if !found.contains("it = [704982704, 704982704]") || (done.sequential_calls > 0) != is_sequential {
            return Err(format!("{memory} bytes: {found}{} sequential calls", done.sequential_calls).into());
        }
    }
    Ok(())
}

/// Checks a wrapping length. Of three appended sequences, the first two have the maximum length; modulo 2^32
/// the total is 1. A sequential call must not take that for a length: it writes nothing and fails, and
/// flattened code reports the error.
fn wrapping() -> Result<(), Failed> {
    let text = "function long(n, m) = if n == 0 then let v = dist(1, m) in sum(v ++ v ++ [1, 2, 3]) else long(n - 1, m); \
                {long(n, m) : n in [1, 0]; m in [2147483647, 2147483647]};";
    let mut settings = Settings::default();
    settings.options.max_bytes = 1 << 20;
    let target = Target::new(interp).with_threshold(0).with_sequential_limit(16);
    let found = answer(&support::session_on(settings, target).eval("long", text));
    let is_told = found.contains("N0301") || found.contains("a limit");
    if !is_told || found.contains("it = ") {
        return Err(found.into());
    }
    // A sum of ints wraps, even if the host knows all of them.
    for (is_wide, program, expected) in
        support::COUNTED.into_iter().chain([(false, "sum(dist(1073741824, 5));", "it = 1073741824")])
    {
        let mut settings = Settings::default();
        settings.options.widths.wide_int = is_wide;
        let mut session = support::session_on(settings, Target::new(interp).with_threshold(0));
        let found: String = session.eval("counted", program).iter().map(ToString::to_string).collect();
        let is_placed = !expected.starts_with("Error") || found.contains("--> counted:1:");
        if !found.contains(expected) || !is_placed {
            return Err(format!("{program}\n  found    {found}  expected {expected}").into());
        }
    }
    Ok(())
}

/// Checks that forty strings of 65,536 characters fit into 8 MiB, evaluated, flattened and on a device.
fn characters() -> Result<(), Failed> {
    let strings: String = (1..=40).map(|number| format!("s{number} = reverse(s{}); ", number - 1)).collect();
    let codes: Vec<String> = (0..=40).map(|number| format!("char_code(s{number}[1])")).collect();
    let text = format!(
        "function double(s, n) = if n == 0 then s else double(s ++ s, n - 1);\n\
         let s0 = double(\"abcdefghijklmnop\", 12); {strings} in {};",
        codes.join(" + ")
    );
    let mut settings = Settings::default();
    settings.options.max_bytes = 8 << 20;
    let flattened = Settings { engine: broadloom_nesl::session::Engine::Vcode, ..settings };
    let sessions =
        [support::session(settings), support::session(flattened), support::session_on(settings, Target::new(support::cpu))];
    for mut session in sessions {
        let found = answer(&session.eval("strings", &text));
        if !found.contains("it = 4278 : int") {
            return Err(found.into());
        }
    }
    Ok(())
}

/// Checks that the launches of quicksort of 100,000 numbers fall to less than a fifth.
fn fewer_launches() -> Result<(), Failed> {
    let text = "function qsort(a) = if #a < 2 then a else let p = a[#a / 2]; r = {qsort(v) : v in [{e in a | e < p}, {e in a | e > p}]} \
                in r[0] ++ {e in a | e == p} ++ r[1]; \
                let v = {rem(i * 7919, 100003) : i in [0:100000]}; s = qsort(v) \
                in (#s, sum({btoi(a <= b) : a in take(s, 99999); b in drop(s, 1)}));";
    let (_, cpu) = DEVICES[1];
    let run = |target: Target| {
        let mut session = support::session_on(Settings::default(), target);
        (answer(&session.eval("sort", text)), session.statistics())
    };
    let (found, done) = run(Target::new(cpu));
    let (expected, before) = run(Target::new(cpu).without_sequential_calls());
    let is_right = found == expected && found.contains("it = (100000, 99999)");
    if is_right && done.sequential_calls > 0 && done.launches * 5 < before.launches {
        return Ok(());
    }
    Err(format!("{found}{expected}{} launches, flattened {}", done.launches, before.launches).into())
}

/// Functions of lines on the device, with the numbers of launches and of waits of a call.
const CALLS: [(&str, &str, u64, u64); 4] = [
    ("dot", "function g(o, i, a) : ([int], [int], [float]) -> float = sum({x * x : x in a});", 1, 0),
    (
        // The kernel of the results also checks divisors and the argument of a root.
        "quotients",
        "function g(o, i, a) : ([int], [int], [float]) -> ([float], [float]) = \
           ({(1.0 + x) / (x + 0.5) : x in a}, {sqrt(x) / (2.0 * 0.25) : x in a});",
        1,
        1,
    ),
    (
        "sparse matrix-vector",
        "function g(m, x) : ([[(int, float)]], [float]) -> [float] = {sum({v * x[i] : (i, v) in row}) : row in m};",
        1,
        1,
    ),
    (
        "sums of filtered lists",
        "function g(m, x) : ([[(int, float)]], [float]) -> [float] = \
       {sum({v * v : (i, v) in row | v > 1.0}) : row in m};",
        1,
        0,
    ),
];

/// Counts launches and waits of a call with lines of the device.
fn calls() -> Result<(), Failed> {
    let mut wrong = vec![];
    for (name, text, launches, waits) in CALLS {
        let mut program = Program::new(text, "g", Options::default(), Target::new(interp).with_threshold(100))?;
        let context = program.context()?;
        let line = |ty: Type, bytes: Vec<u8>, size: usize| {
            Node::upload(&context, ty, Shape::from(bytes.len() / size), &bytes).map(Column::Device)
        };
        let is_ragged = text.contains("[[");
        let offsets: Vec<i64> = (0..=200).map(|row| row * 5 - row % 3).collect();
        let total = offsets[200];
        let mut arguments = vec![
            line(Type::I64, offsets.iter().flat_map(|x| x.to_le_bytes()).collect(), 8)?,
            line(Type::I32, (0..total).flat_map(|x| ((x * 7 % total) as i32).to_le_bytes()).collect(), 4)?,
            line(Type::F64, (0..total).flat_map(|x| ((x % 5) as f64).to_le_bytes()).collect(), 8)?,
        ];
        if is_ragged {
            arguments.push(arguments[2].clone());
        } else {
            arguments[0] = arguments[1].clone();
        }
        // The machine executes the first call. The second is traced. The third executes no instruction.
        let (mut before, mut first) = (program.statistics(), vec![]);
        for number in 1..=3 {
            let results = program.call(&arguments)?;
            let done = program.statistics();
            let results = results.iter().map(numbers).collect::<Result<Vec<_>, _>>()?;
            let (own, own_waits) = (done.launches - before.launches, done.waits - before.waits);
            if (own, own_waits) != (launches, waits) {
                wrong.push(format!("{name}, call {number}: {own} launches, {own_waits} waits; {launches}, {waits} are right"));
            }
            match number {
                1 => first = results,
                _ if results != first => wrong.push(format!("{name}, call {number}: other results")),
                _ => {}
            }
            if done.templates != number - 1 || number == 3 && done.instructions != before.instructions {
                let executed = done.instructions - before.instructions;
                wrong.push(format!("{name}, call {number}: {} templates, {executed} instructions", done.templates));
            }
            before = program.statistics();
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Calls a compiled function with ragged columns of the host and of the device.
fn columns() -> Result<(), Failed> {
    let text = "function scaled(rows, k) : ([[float]], float) -> ([[float]], [int]) = \
                  ({{x * k : x in row | x > 0.0} : row in rows}, {#row : row in rows});";
    let (offsets, values) = (vec![0i64, 2, 2, 5], vec![1.0f64, -2.0, 3.0, 4.0, -5.0]);
    let mut program = Program::new(text, "scaled", Options::default(), Target::new(interp).with_threshold(0))?;
    let context = program.context()?;
    let line = |ty: Type, bytes: Vec<u8>| Node::upload(&context, ty, Shape::from(bytes.len() / 8), &bytes).map(Column::Device);
    let on_device = [
        line(Type::I64, offsets.iter().flat_map(|x| x.to_le_bytes()).collect())?,
        line(Type::F64, values.iter().flat_map(|x| x.to_le_bytes()).collect())?,
    ];
    let on_host = [Column::Ints(offsets), Column::Floats(values)];
    for rows in [on_host, on_device.clone(), on_device.clone(), on_device] {
        let [offsets, values] = rows;
        let result = program.call(&[offsets, values, Column::Floats(vec![10.0])])?;
        let found = result.iter().map(numbers).collect::<Result<Vec<_>, _>>()?;
        if found != [vec![0.0, 1.0, 1.0, 3.0], vec![10.0, 30.0, 40.0], vec![2.0, 0.0, 3.0]] {
            return Err(format!("{found:?}").into());
        }
    }
    if program.statistics().templates != 2 {
        return Err(format!("{} calls were launched from a template", program.statistics().templates).into());
    }
    let wrong = program.call(&[Column::Ints(vec![0, 3, 2]), Column::Floats(vec![1.0, 2.0]), Column::Floats(vec![1.0])]);
    match wrong {
        Err(error) if error.0.contains("offsets begin with 0") => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

/// Reads a column.
fn numbers(column: &Column) -> broadloom_graph::Result<Vec<f64>> {
    let number = |lane: &Literal| lane.as_f64().or(lane.as_i128().map(|value| value as f64)).unwrap_or(f64::NAN);
    match column {
        Column::Device(node) => node.read().map(|array| array.lanes.iter().map(number).collect()),
        Column::Ints(values) => Ok(values.iter().map(|value| *value as f64).collect()),
        Column::Floats(values) => Ok(values.clone()),
        Column::Bools(values) => Ok(values.iter().map(|value| f64::from(u8::from(*value))).collect()),
    }
}

/// Calls functions with lines of 500 numbers, first `1..500`. Templates must give the answers of the machine,
/// including errors with their places, other elements and other sizes. Functions with effects, and those that
/// wait, have no template.
fn called_again() -> Result<(), Failed> {
    let open = || Target::new(interp).with_threshold(100);
    let line = |program: &mut Program, count: usize, zero: Option<usize>| -> Result<Column, Failed> {
        let value = |i: usize| if Some(i) == zero { 0.0 } else { 1.0 + i as f64 };
        let bytes: Vec<u8> = (0..count).flat_map(|i| value(i).to_le_bytes()).collect();
        Ok(Column::Device(Node::upload(&program.context()?, Type::F64, Shape::from(count), &bytes)?))
    };
    let one = |program: &mut Program, column: Column| -> Result<Vec<Vec<f64>>, Failed> {
        Ok(program.call(&[column])?.iter().map(numbers).collect::<Result<_, _>>()?)
    };
    // A condition that does not hold.
    let text = "function g(a) : [float] -> [float] = {1.0 / x : x in a};";
    let mut program = Program::new(text, "g", Options::default(), open())?;
    let (good, bad) = (line(&mut program, 500, None)?, line(&mut program, 500, Some(77))?);
    let expected = program.call(std::slice::from_ref(&bad)).err().ok_or("nothing is wrong")?;
    for _ in 0..3 {
        let found = one(&mut program, good.clone())?;
        if found != [(1..=500).map(|i| 1.0 / f64::from(i)).collect::<Vec<f64>>()] {
            return Err(format!("{found:?}").into());
        }
        match program.call(std::slice::from_ref(&bad)) {
            Err(error) if error == expected => {}
            other => return Err(format!("{other:?}; expected {expected}").into()),
        }
    }
    // Several calls under way, one of them wrong.
    let mut program = Program::new(text, "g", Options::default(), open())?;
    let (good, bad) = (line(&mut program, 500, None)?, line(&mut program, 500, Some(77))?);
    for _ in 0..2 {
        one(&mut program, good.clone())?;
    }
    let waits = program.statistics().waits;
    let begun = [&good, &bad, &good].map(|column| program.submit(std::slice::from_ref(column)));
    if program.statistics().waits != waits {
        return Err("a call that was begun waits".into());
    }
    for (number, pending) in begun.into_iter().enumerate() {
        let found = program.finish(pending?).map(|columns| columns.len());
        if found != if number == 1 { Err(expected.clone()) } else { Ok(1) } {
            return Err(format!("call {number} under way: {found:?}").into());
        }
    }
    // A length that only the device knows, and a number of the host.
    let text = "function g(a) : [float] -> ([float], [float], int) = ({x / x in a | x > 5.0}, {sqrt(x) : x in a | x > 7.0}, #a);"
        .replace("x / x in a", "x / (x + 1.0) : x in a");
    let mut program = Program::new(&text, "g", Options::default(), open())?;
    for count in [500, 500, 500, 300, 300, 500, 300, 300] {
        let column = line(&mut program, count, None)?;
        let found = one(&mut program, column)?;
        let most = count as i32;
        let quotients = (6..=most).map(|x| f64::from(x) / f64::from(x + 1)).collect::<Vec<f64>>();
        let roots = (8..=most).map(|x| f64::from(x).sqrt()).collect::<Vec<f64>>();
        if found != [quotients, roots, vec![f64::from(most)]] {
            return Err(format!("{count}: {found:?}").into());
        }
    }
    let done = program.statistics();
    // The host waits once for each call, and once for each of the two lines that it reads.
    if (done.templates, done.traces) != (7, 1) || done.waits != 8 + 2 * 8 {
        return Err(format!("{} calls were launched from a template, {} waits", done.templates, done.waits).into());
    }
    // Other random numbers, and a branch on data.
    for text in [
        "function g(a) : [float] -> float = float(rand(1000000)) + 0.0 * sum(a);",
        "function g(a) : [float] -> float = if sum(a) > 1000.0 then sum(a) else max_val(a);",
    ] {
        let mut program = Program::new(text, "g", Options::default(), open())?;
        let column = line(&mut program, 500, None)?;
        let found = (0..4).map(|_| one(&mut program, column.clone())).collect::<Result<Vec<_>, _>>()?;
        let is_random = text.contains("rand");
        let differs = found.windows(2).any(|pair| pair[0] != pair[1]);
        if differs != is_random || program.statistics().templates != 0 {
            return Err(format!("{text}: {found:?}").into());
        }
    }
    Ok(())
}

/// Checks that a vector of the top level is copied to the device once, even if calls have a branch on data
/// and therefore no template.
fn variables() -> Result<(), Failed> {
    let text = "weights = {float(i) : i in [0:500]}; \
                function g(a) : [float] -> float = let s = sum({x * w : x in a; w in weights}) in \
                  if s > 0.0 then sum({x + w : x in a; w in weights}) else max_val(weights);";
    let mut program = Program::new(text, "g", Options::default(), Target::new(interp).with_threshold(100))?;
    let context = program.context()?;
    let mut copies = vec![];
    for first in 1..=4 {
        let bytes: Vec<u8> = (0..500).flat_map(|i| f64::from(first + i).to_le_bytes()).collect();
        let line = Column::Device(Node::upload(&context, Type::F64, Shape::from(500), &bytes)?);
        let found = program.call(&[line])?.iter().map(numbers).collect::<Result<Vec<_>, _>>()?;
        if found != [[f64::from(500 * first + 499 * 500)]] {
            return Err(format!("{found:?}").into());
        }
        copies.push(program.statistics().copies);
    }
    if copies != [1; 4] || program.statistics().templates != 0 { Err(format!("{copies:?} copies").into()) } else { Ok(()) }
}

/// Checks two lines of equal length. The host knows both lengths, so the sum is the only kernel and nothing
/// waits.
fn known_numbers() -> Result<(), Failed> {
    let text = "function dot(a, b) : ([float], [float]) -> float = sum({x * y : x in a; y in b});";
    let mut program = Program::new(text, "dot", Options::default(), Target::new(interp).with_threshold(100))?;
    let context = program.context()?;
    let bytes: Vec<u8> = (0..5000).flat_map(|x| f64::from(x % 7).to_le_bytes()).collect();
    let line = Column::Device(Node::upload(&context, Type::F64, Shape::from(5000), &bytes)?);
    let result = program.call(&[line.clone(), line.clone()])?;
    let Some(Column::Device(sum)) = result.first() else { return Err("the sum is on the host".into()) };
    let (statistics, expected) = (program.statistics(), (0..5000).map(|x| f64::from((x % 7) * (x % 7))).sum::<f64>());
    let found = sum.read()?.lanes.first().and_then(|lane| lane.as_f64());
    match (found, statistics.launches, statistics.waits) {
        (Some(found), 1, 0) if found == expected => {}
        other => return Err(format!("{other:?}").into()),
    }
    let short = Column::Device(Node::upload(&context, Type::F64, Shape::from(100), &bytes[..800])?);
    match program.call(&[line, short]) {
        Err(error) if error.0.contains("length") => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

fn session_file(open: Open, path: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(path)?;
    let mut sources = Sources::new();
    let program = parse(sources.add("", text.as_str()), &text);
    let forms: Vec<&str> = program.forms.iter().map(|form| sources.text(form.span)).collect();
    programs(open, support::settings(&text), &forms)
}

/// Runs random programs. If a program has several errors, the reported one depends on the order of work.
fn random(open: Open, count: u64) -> Result<(), Failed> {
    let mut settings = Settings::default();
    settings.options.max_steps = 3_000_000;
    let [mut evaluator, mut device] = sessions(open, settings);
    let mut wrong = vec![];
    for number in 1..=count {
        let program = generator::Generator::new(number).program(number as u32);
        let (expected, found) = (evaluator.eval("random", &program), device.eval("random", &program));
        let is_error = |outputs: &[Output]| outputs.iter().any(|output| matches!(output, Output::Error(_)));
        let internal = answer(&found).contains("internal error") || answer(&found).contains("N0306");
        let agree = if is_error(&expected) { is_error(&found) && !internal } else { answer(&expected) == answer(&found) };
        if !agree {
            wrong.push(format!("seed {number}: {program}  found    {}  expected {}", answer(&found), answer(&expected)));
        }
        if wrong.len() == 5 {
            break;
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}
