//! Recursion of a call that runs once: the host starts a loop, and one thread of the device goes on.

use crate::answer;
use crate::support::{self, Open, cpu};
use broadloom_device::Stop;
use broadloom_nesl::run::Target;
use broadloom_nesl::session::Settings;
use libtest_mimic::Failed;

/// Programs, and whether a thread runs their loops to the end.
const PROGRAMS: [(&str, bool); 16] = [
    ("function count(n, k) = if n == 0 then k else count(n - 1, k + 2); count(1000, 0);", true),
    // Sequences that rounds make, in one array and in several.
    (
        "function step(v, n) = if n == 0 then v \
         else step({0.25 * a + 0.5 * b + 0.25 * c : a in previous(v, 0.0); b in v; c in next(v, 0.0)}, n - 1); \
         step({float(rem(i * 37, 101)) : i in index(40)}, 200);",
        true,
    ),
    (
        "function step(a, b, x, y, k) = if k > #a + #b then x else \
         let d = {if (i == 0) or (k - i <= 0) or (k - i > #b) then 0 else if a[i-1] == b[k-i-1] then y[i-1] + 1 \
         else max(x[i-1], x[i]) : i in index(#a + 1)} in step(a, b, d, x, k + 1); \
         let a = \"abcbdabacbdb\"; b = \"bdcabaabcbda\"; z = dist(0, #a + 1) in step(a, b, z, z, 1);",
        true,
    ),
    // Parameters that are exchanged, parts of themselves, pairs, empty, or the same.
    ("function swap(a, b, n) = if n == 0 then (a, b) else swap(b, a ++ [n], n - 1); swap([1], [2, 3], 61);", true),
    (
        "function last(v, w, n) = if #v < 2 then (v, w, n) else last(drop(v, 1), drop(v, 1), n + 1); last(index(300), [] int, 0);",
        true,
    ),
    (
        "function zips(v, n) = if n == 0 then v else zips({(y, x + 1.0) : (x, y) in v}, n - 1); zips([(1.0, 2.0), (3.0, 4.5)], 77);",
        true,
    ),
    (
        "function keep(v, s, n) = if n == 0 then (v, s) else keep({x + 1 : x in v | x /= 7}, reverse(s), n - 1); keep([0:9], \"text\", 9);",
        true,
    ),
    (
        "function same(v, w, n) = if n == 0 then (v, w) else let u = {x xor n : x in v} in same(u, u, n - 1); same([1:30], [] int, 90);",
        true,
    ),
    ("function flip(b, v, n) = if n == 0 then (b, v) else flip(not(b), {not(x) : x in v}, n - 1); flip(t, [t, f, f], 31);", true),
    // Several tail calls; a result that is longer than the parameters.
    (
        "function walk(v, n) = if n == 0 then v ++ v ++ [n] else if oddp(n) then walk(v ++ [n], n - 1) \
         else let w = plus_scan(v) in walk(w, n - 1); walk([1, 2, 3], 24);",
        true,
    ),
    // Functions in functions, and a loop in a loop.
    (
        "function inner(x, n) = if n == 0 then x else inner(x * 3 + 1, n - 1); \
         function outer(v, n) = if n == 0 then v else outer({inner(x, 2) : x in v}, n - 1); outer([1, 2, 3], 5);",
        false,
    ),
    // Errors have the place and the message of flattened code.
    ("function at(v, n) = if n == 0 then v[0] else at(v, v[n]); at([3, 7, 1, 2], 1);", false),
    ("function root(x, n) = if n == 0 then x else root(sqrt(x) - 0.5, n - 1); root(100.0, 40);", false),
    ("function div(v, n) = div({x / n : x in v}, n - 1); div([12, 8], 3);", false),
    ("function check(n) = if n == 0 then error(\"it is 0\") else check(n - 1); check(20);", false),
    // Nested sequences stay flattened.
    ("function nest(v, n) = if n == 0 then v else nest({w ++ [n] : w in v}, n - 1); nest([[1], [] int], 4);", false),
];

/// Compares the answers with those of the evaluator, for both widths of numbers.
pub(crate) fn programs(open: Open) -> Result<(), Failed> {
    let mut wrong = vec![];
    for (wide, narrow) in [(false, false), (true, true)] {
        for (program, is_loop) in PROGRAMS {
            let mut settings = Settings::default();
            (settings.options.widths.wide_int, settings.options.widths.narrow_float) = (wide, narrow);
            let mut evaluator = support::session(settings);
            let target = Target::new(open).with_sequential_limit(1 << 12);
            let mut device = support::session_on(settings, target);
            let (expected, found) = (answer(&evaluator.eval("rounds", program)), answer(&device.eval("rounds", program)));
            if expected != found {
                wrong.push(format!("{program}\n  found    {found}  expected {expected}"));
            } else if is_loop && device.statistics().sequential_calls != 1 {
                wrong.push(format!("{program}\n  {} calls of a thread", device.statistics().sequential_calls));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Checks that a loop of many rounds pauses and goes on, in memory that does not depend on their number.
pub(crate) fn pauses() -> Result<(), Failed> {
    let text = "function add(v, n) = if n == 0 then v else add({x + n : x in v}, n - 1); add(index(100), 1000000);";
    let mut settings = Settings::default();
    settings.options.max_bytes = 1 << 20;
    let mut device = support::session_on(settings, Target::new(cpu));
    let (found, done) = (answer(&device.eval("rounds", text)), device.statistics());
    // The sum wraps to 32 bits.
    let first = (1_000_000i64 * 1_000_001 / 2) as i32;
    if !found.contains(&format!("it = [{first}, {},", first + 1)) || done.sequential_calls < 2 {
        return Err(format!("{found}{} calls of a thread", done.sequential_calls).into());
    }
    Ok(())
}

/// Loops without end stop at the limit of steps and at a request, and name the function.
pub(crate) fn endless() -> Result<(), Failed> {
    let text = "function again(v, n) = again({x + n : x in v}, n + 1); again([1, 2], 0);";
    let eval = |settings: Settings| -> String {
        let found = support::session_on(settings, Target::new(cpu).with_sequential_limit(16)).eval("endless", text);
        found.iter().map(ToString::to_string).collect()
    };
    let mut settings = Settings::default();
    settings.options.max_steps = 10_000_000;
    let found = eval(settings);
    if !found.contains("Error[N0303]: `again` was stopped after 10000000 steps") {
        return Err(found.into());
    }
    let stop: &'static Stop = Box::leak(Box::default());
    let mut settings = Settings::default();
    settings.options.stop = Some(stop);
    let watch = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        stop.request_by_time_limit();
    });
    let found = eval(settings);
    watch.join().map_err(|_| "the thread that interrupts has failed")?;
    if found.contains("N0307") && found.contains("`again`") { Ok(()) } else { Err(found.into()) }
}
