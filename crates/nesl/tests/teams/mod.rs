//! Calls that run in teams of warps: programs, random programs, launches and waits.

use super::{answer, support};
use crate::support::{Open, interp};
use broadloom_nesl::run::Target;
use broadloom_nesl::session::Settings;
use broadloom_random::Random;
use libtest_mimic::Failed;

/// Programs with calls for teams, and whether teams run them: filters, reductions, elements, several columns,
/// calls with many and with no elements, a team that does not split, code that can fail; then programs that
/// only flattened code or warps run.
const TEAMS: [(&str, bool); 14] = [
    (
        "function qsort(a) = if #a < 2 then a else let p = a[#a / 2]; r = {qsort(v) : v in [{e in a | e < p}, {e in a | e > p}]} \
         in r[0] ++ {e in a | e == p} ++ r[1]; {qsort({rem(i * 7919, 1009) : i in [0:n]}) : n in [900, 3, 0, 170, 1, 41]};",
        true,
    ),
    (
        "function pairs(a) = if #a < 4 then a else let (k, x) = a[#a / 2]; \
         r = {pairs(v) : v in [{(i, y) : (i, y) in a | i < k}, {(i, y) : (i, y) in a | i > k}]} \
         in r[1] ++ {(i, y * 2.0) : (i, y) in a | i == k} ++ r[0]; \
         {pairs({(rem(i * 7919, 1009), float(i)) : i in [0:n]}) : n in [500, 260]};",
        true,
    ),
    (
        "function tops(v, n) = if n == 0 or #v < 2 then [max_val(v), min_val(v), sum(v), #v] else \
         let m = sum(v) / #v; r = {tops(w, n - 1) : w in [{e in v | e <= m}, {e in v | e > m}]} in r[0] ++ r[1]; \
         {tops({rem(i * 7919, 1009) : i in [0:n]}, 4) : n in [700, 0, 33, 5]};",
        true,
    ),
    // Many calls in an apply-to-each of a function with a scalar result.
    (
        "function counts(v, n) = if n == 0 then #v else let h = {e in v | evenp(e)}; \
         s = {counts(h, m) : m in [0, 0, n - 1, 0, n / 2, 0, 0, 0, 0, n - 1]} in sum(s) + max_val(s); \
         {counts(index(n), 3) : n in [300, 20]};",
        true,
    ),
    // Arguments that are parts of a sequence, and a result that is not moved.
    (
        "function halves(v) = if #v < 9 then {e * e : e in v} else \
         let r = {halves(w) : w in [take(v, #v / 2), drop(v, #v / 2)]} in if oddp(#v) then r[1] else r[0]; \
         {halves(index(n)) : n in [800, 45, 3]};",
        true,
    ),
    // A team that does not split: it calls itself.
    (
        "function selected(v, k) = let p = v[#v / 2]; less = {e in v | e < p}; more = {e in v | e > p} \
         in if k < #less then selected(less, k) else if k >= #v - #more then selected(more, k - (#v - #more)) else p; \
         {selected({rem(i * 7919, 1009) : i in [0:n]}, k) : n in [900, 51, 300]; k in [450, 7, 299]};",
        true,
    ),
    (
        "function spread(v, n) = if n == 0 then v -> {rem(7 * i, #v) : i in index(#v)} else \
         let r = {spread(w, n - 1) : w in [v, {e + 1 : e in v}]} in r[0] ++ rep(r[1], n, 0); \
         {spread(index(n), 3) : n in [200, 9]};",
        true,
    ),
    (
        "function flags(v, n) = if n == 0 then (any(v), all(v), parity(v), count(v)) else \
         let r = {flags(w, n - 1) : w in [v, {not(e) : e in v}]}; (a, b, c, d) = r[0]; (p, q, r, s) = r[1] \
         in (a and p, b or q, c xor r, d + s); {flags({rem(i, 3) == 0 : i in index(n)}, 2) : n in [500, 40]};",
        true,
    ),
    // Rounds that fail, in a part of a team and in all of it.
    (
        "function bad(v, n) = if #v < 100 then {100 / e : e in v} else \
         let r = {bad(w, n + 1) : w in [take(v, #v / 2), drop(v, #v / 2)]} in r[0] ++ r[1]; \
         {bad(v, 0) : v in [{i + 1 : i in [0:300]}, {rem(i, 289) : i in [0:290]}]};",
        false,
    ),
    (
        "function worse(v, n) = if n == 0 then {100 / e : e in v} else worse(v, n - 1); {worse(index(n), 2) : n in [500, 300]};",
        false,
    ),
    // A recursion that is too deep, or endless.
    ("function long(v) = if #v == 0 then 0 else 1 + long(drop(v, 1)); {long(index(n)) : n in [150, 200]};", false),
    // Loops in order, nested results.
    (
        "function scans(v, n) = if n == 0 then plus_scan(v) else let r = {scans(w, n - 1) : w in [v, v]} in r[0] ++ r[1]; \
         {scans(index(n), 2) : n in [300, 20]};",
        false,
    ),
    (
        "function nested(v) = if #v < 50 then [v] else let r = {nested(w) : w in [take(v, #v / 2), drop(v, #v / 2)]} \
         in r[0] ++ r[1]; {nested(index(n)) : n in [200, 90]};",
        false,
    ),
    // A function that calls itself and splits.
    (
        "function both(v, n) = if n == 0 then v else let r = {both(w, n - 1) : w in [v, v]} in both(r[0], 0) ++ both(r[1], 0); \
         {both(index(n), 2) : n in [200, 90]};",
        false,
    ),
];

/// Compares the answers of calls in teams.
pub(crate) fn programs(open: Open) -> Result<(), Failed> {
    let mut wrong = vec![];
    for (wide, narrow) in [(false, false), (true, true)] {
        for (program, in_teams) in TEAMS {
            let mut settings = Settings::default();
            (settings.options.widths.wide_int, settings.options.widths.narrow_float) = (wide, narrow);
            let mut evaluator = support::session(settings);
            let target = Target::new(open).with_calls_in_teams().with_threshold(0).with_sequential_limit(16);
            let mut device = support::session_on(settings, target);
            let (expected, found) = (answer(&evaluator.eval("large", program)), answer(&device.eval("large", program)));
            if expected != found || in_teams && !found.contains("it = ") {
                wrong.push(format!("{program}\n  found    {found}  expected {expected}"));
            }
            if (device.statistics().team_calls > 0) != in_teams {
                wrong.push(format!("{program}\n  {} calls in teams", device.statistics().team_calls));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Makes a function that splits teams, from pieces. A piece may fail on some data.
fn recursion(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut one = |pieces: &[&'static str]| pieces[random.below(pieces.len())];
    let limit = one(&["2", "5", "40"]);
    let leaf = one(&["v", "{e * e : e in v}", "[#v, sum(v)]", "{e : e in v | oddp(e)}", "v ++ v", "[max_val(v)]"]);
    let number = one(&["v[#v / 2]", "sum(v) / #v", "max_val(v) - 3", "v[0]", "min_val({e + n : e in v})"]);
    const PARTS: [&str; 9] = [
        "{e in v | e < m}",
        "{e in v | e > m}",
        "{e + 1 : e in v | rem(e, 3) == 1}",
        "take(v, #v / 2)",
        "drop(v, #v / 3)",
        "{if e > m then e - m else m * 2 : e in v}",
        "v -> {rem(i * 5, #v) : i in index(#v)}",
        "[m, n]",
        "{a + b : a in v; b in [0:#v]}",
    ];
    let parts = [one(&PARTS), one(&PARTS), one(&PARTS)].join(", ");
    let last = one(&["", ", [] int", ", {e / (e - m) : e in v | e /= m}"]);
    let result = one(&[
        "r[0] ++ r[1]",
        "{e in r[0] | e > m} ++ r[1] ++ [m]",
        "[sum(r[0]), max_val(r[1])] ++ r[2]",
        "if #r[0] > #r[1] then r[0] else r[1] ++ [m]",
        "rep(r[2] ++ [1], m, 0) ++ {a - b : a in take(r[0], 1); b in dist(n, min(1, #r[0]))}",
        "{e * 3 : e in r[1]} ++ r[0] ++ r[2]",
    ]);
    format!(
        "function g(v, n) = if n == 0 or #v < {limit} then {leaf} else let m = {number}; \
         r = {{g(w, n - 1) : w in [{parts}{last}]}} in {result}; \
         {{g({{rem(i * 7919, 1009) : i in [0:k]}}, n) : k in [400, 0, 37, 5]; n in [3, 2, 1, 3]}};"
    )
}

/// Compares the answers of random functions. Most of them run in teams.
pub(crate) fn random(open: Open, count: u64) -> Result<(), Failed> {
    let (mut wrong, mut in_teams) = (vec![], 0);
    for seed in 1..=count {
        let program = recursion(seed);
        let mut evaluator = support::session(Settings::default());
        let target = Target::new(open).with_calls_in_teams().with_threshold(0).with_sequential_limit(16);
        let mut device = support::session_on(Settings::default(), target);
        let (expected, found) = (answer(&evaluator.eval("random", &program)), answer(&device.eval("random", &program)));
        let agree = if expected.contains("it = ") { expected == found } else { !found.contains("it = ") };
        if !agree {
            wrong.push(format!("seed {seed}: {program}\n  found    {found}  expected {expected}"));
        }
        in_teams += u64::from(device.statistics().team_calls > 0);
    }
    if in_teams < count / 3 {
        wrong.push(format!("{in_teams} of {count} ran in teams"));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Quicksort has one flattened level. The rest is one launch, whatever the depth of the recursion.
pub(crate) fn structure() -> Result<(), Failed> {
    for length in [1023, 4095] {
        let text = format!(
            "function qsort(a) = if #a < 2 then a else let p = a[#a / 2]; r = {{qsort(v) : v in [{{e in a | e < p}}, {{e in a | e > p}}]}} \
             in r[0] ++ {{e in a | e == p}} ++ r[1]; sum(qsort([0:{length}]));"
        );
        let target = Target::new(interp).with_calls_in_teams().with_threshold(100).with_sequential_limit(16);
        let mut device = support::session_on(Settings::default(), target);
        let found = answer(&device.eval("large", &text));
        let done = device.statistics();
        let sum = i64::from(length) * i64::from(length - 1) / 2;
        if !found.contains(&format!("it = {sum} ")) || done.launches > LAUNCHES || done.waits > WAITS || done.team_calls != 2 {
            return Err(format!("{found}{} launches, {} waits, {} calls", done.launches, done.waits, done.team_calls).into());
        }
    }
    Ok(())
}

const LAUNCHES: u64 = 30;
const WAITS: u64 = 7;
