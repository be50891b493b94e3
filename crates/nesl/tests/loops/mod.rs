//! Tail calls inside an apply-to-each: loops of the elements, at any depth and in constant memory.

use crate::answer;
use crate::support::{self, Open, cpu};
use broadloom_device::Stop;
use broadloom_nesl::run::Target;
use broadloom_nesl::session::Settings;
use libtest_mimic::Failed;

/// Programs with the least number of calls that run as loops on the device, if every operation does.
const PROGRAMS: [(&str, u64); 40] = [
    ("function count(n, k) = if n == 0 then k else count(n - 1, k + 1); {count(n, 0) : n in [1000000, 5, 0]};", 3),
    // Several tail calls, in several branches.
    (
        "function collatz(n, k) = if n == 1 then k else if evenp(n) then collatz(n / 2, k + 1) else collatz(3 * n + 1, k + 1); \
         {collatz(i + 1, 0) : i in index(100)};",
        100,
    ),
    (
        "function escape(cr, ci, zr, zi, n) = if (n == 200) or (zr * zr + zi * zi > 4.0) then n \
         else escape(cr, ci, zr * zr - zi * zi + cr, 2.0 * zr * zi + ci, n + 1); \
         {{escape(-2.0 + float(x) / 4.0, -1.0 + float(y) / 4.0, 0.0, 0.0, 0) : x in index(9)} : y in index(8)};",
        72,
    ),
    // Tuples as parameters and results, exchanged parameters.
    ("function fib(n, (a, b)) = if n == 0 then (a, b) else fib(n - 1, (b, a + b)); {fib(n, (0, 1)) : n in [0, 1, 7, 90]};", 4),
    ("function swap(a, b, n) = if n == 0 then (a, b, t) else swap(b, a, n - 1); {swap(1.5, 2.5, n) : n in [4, 5]};", 2),
    // Functions that call each other in turn.
    (
        "function even(n) : int -> bool; function odd(n) = if n == 0 then f else even(n - 1); \
         function even(n) = if n == 0 then t else odd(n - 1); {(even(i), odd(i)) : i in [0, 1, 10, 1001]};",
        8,
    ),
    // Functions of the library, powers, characters, variables of the program, bindings.
    (
        "function powers(x, n, a) = if n == 0 then a else powers(x, n - 1, mod(a * x^3, 1009)); {powers(x, 50, 1) : x in [1, 2, -3]};",
        3,
    ),
    (
        "k = 3; function step(c, n) = if n == 0 then c else step(code_char(97 + mod(char_code(c) - 97 + k, 26)), n - 1); {step(c, 30) : c in \"az\"};",
        2,
    ),
    (
        "function root(x, y) = let z = (y + x / y) / 2.0 in if abs(z - y) < 0.000001 then z else root(x, z); {root(x, x) : x in [2.0, 9.0]};",
        2,
    ),
    (
        "function g(x, n) = if n == 0 then x else let y = if x > 10 then x - 7 else x + 3; z = min(x, y) in if z < 5 then g(y, n - 1) else g(z + 1, n - 1); {g(x, 99) : x in [-5:12]};",
        17,
    ),
    // A loop inside other functions, twice, and in a branch.
    (
        "function gcds(a, b) = gcd(a, b) + gcd(b, a + 1); {if a > b then gcds(a, b) else 0 : a in [12, 7, 9, 100]; b in [18, 2, 6, 75]};",
        6,
    ),
    ("{gcd(a, b) : a in [12, -8]; b in [18, 20]};", 2),
    // A function as a parameter.
    (
        "function times(g, x, n) = if n == 0 then x else times(g, g(x), n - 1); let k = 3 in {times(x => x * k + 1, x, 40) : x in [1, 2]};",
        2,
    ),
    // Errors have the place of the element that fails first.
    ("function div(n, d) = if n == 0 then d else div(n - 1, 10 / d - 1); {div(n, 4) : n in [3, 1, 9]};", 0),
    ("function down(x, n) = if n == 0 then x else down(sqrt(x) - 0.5, n - 1); {down(x, 40) : x in [100.0, 3.0]};", 0),
    ("function code(n, c) = if n == 0 then c else code(n - 1, code_char(char_code(c) * 2)); {code(n, `a) : n in [1, 2]};", 0),
    ("function power(n, a) = if n == 0 then a else power(n - 1, a + 2^(n - 3)); {power(n, 0) : n in [3, 5]};", 0),
    // Sequences that rounds read, and parts of them.
    (
        "function lower(s, x, a, b) = if a >= b then a else let m = (a + b) / 2 in if s[m] < x then lower(s, x, m + 1, b) else lower(s, x, a, m); \
         let s = {i * i : i in index(40)} in {lower(s, x, 0, #s) : x in [0, 1, 5, 36, 1521, 9999]};",
        6,
    ),
    (
        "function digits(s, i, n) = if i == #s then n else digits(s, i + 1, n * 10 + char_code(s[i]) - 48); {digits(s, 0, 0) : s in [\"12\", \"\", \"907\"]};",
        3,
    ),
    (
        "function total(v, n) = if #v == 0 then n else total(drop(v, 1), n + v[0]); {total(v, 0.0) : v in [[1.5, 2.5], [] float, [4.0]]};",
        3,
    ),
    (
        "function lookup(table, key, i) = if i == #table then (-1, f) else let (k, v, b) = table[i] in if k == key then (v, b) else lookup(table, key, i + 1); \
      {lookup(table, key, 0) : table in [[(1, 10, t), (2, 20, f)], [(3, 30, t)]]; key in [2, 4]};",
        2,
    ),
    (
        "function common(a, b, i, j, n) = if (i == #a) or (j == #b) then n else if a[i] == b[j] then common(a, b, i + 1, j + 1, n + 1) \
      else if a[i] < b[j] then common(a, b, i + 1, j, n) else common(a, b, i, j + 1, n); \
      let w = [1, 3, 4, 7] in {common(v, w, 0, 0, 0) : v in [[1, 2, 3], [] int, [0, 4, 7, 8]]};",
        3,
    ),
    ("function at(v, i) = if i == 3 then v[i] else at(v, i + 1); {at(v, 0) : v in [[1, 2, 3, 4], [5]]};", 0),
    ("function cut(v, n) = if n == 0 then #v else cut(subseq(v, 1, n), n - 1); {cut(v, 2) : v in [[1, 2, 3], [1]]};", 0),
    // Sequences that are exchanged or made are no loop.
    (
        "function other(a, b, n) = if n == 0 then #a else other(b, a ++ [n], n - 1); {other(v, [1], 3) : v in [[1, 2, 3], [1]]};",
        0,
    ),
    // Reductions of sequences that elements share, or that are not stored.
    ("{{sum({x * y : x in r; y in c}) : c in [[1.0, 2.0], [3.0, 4.0]]} : r in [[1.0, 10.0], [2.5, 20.0], [0.0, 1.0]]};", 6),
    (
        "n = 3; a = {{float(i * j) : j in index(n)} : i in index(n)}; {{sum({a[i][k] * a[k][j] : k in index(n)}) : j in index(n)} : i in index(n)};",
        9,
    ),
    (
        "cs = [(1.0, 2.0), (3.0, 4.0)]; {min_index({(x - a) * (x - a) + y * b : (a, b) in cs}) : (x, y) in [(1.0, 1.0), (3.0, 3.0)]};",
        2,
    ),
    ("let v = [3, 1, 4, 1, 5] in {(#{y in v | y < x}, max_val({y in v | y < x}), any({y == x : y in v})) : x in [0:7]};", 7),
    ("let v = [2.5, -1.0e30, 7.0] in {(min_val({x * y : y in v}), max_val({y in v | y > x})) : x in [1.0, -1.0, 9.0]};", 3),
    ("let v = \"abz\" in {(max_val({c in v | c < d}), min_val({c in v | c > d})) : d in \"aqz\"};", 3),
    ("let v = [3, 1, 4] in {let s = {y * x : y in v} in (sum(s), max_val(s), s[x]) : x in [0:3]};", 3),
    ("let v = [3, 1, 4] in {sum({sum({y * z + x : y in v}) : z in v}) : x in [0:3]};", 3),
    ("let v = [3, 1, 4] in {if x > 1 then sum({y in v | y > x}) else -1 : x in [0:4]};", 0),
    ("let v = [3, 1, 4] in {(sum(take(v, x)), sum([x, x + 1] ++ v), sum(v -> [x, 0])) : x in [0:3]};", 0),
    ("let v = [3, 1, 4] in {sum({12 / (y - x) : y in v}) : x in [0:3]};", 0),
    ("let v = [3, 1, 4] in {let s = {v[y + x] : y in [0:2]} in x : x in [0:3]};", 0),
    ("{sum({i : i in [x:2]}) : x in [0:4]};", 0),
    ("{sum({a * b : a in [1, 2, 3]; b in index(n)}) : n in [3, 2]};", 0),
    // Other recursion is no loop.
    ("function fac(n) = if n < 2 then 1 else n * fac(n - 1); {fac(n) : n in [0, 5]};", 0),
];

/// Compares the answers with those of the evaluator, for all widths of numbers.
pub(crate) fn programs(open: Open) -> Result<(), Failed> {
    let mut wrong = vec![];
    for (wide, narrow) in [(false, false), (true, true)] {
        for threshold in [0, 1 << 16] {
            for (program, calls) in PROGRAMS {
                let mut settings = Settings::default();
                (settings.options.widths.wide_int, settings.options.widths.narrow_float) = (wide, narrow);
                let mut evaluator = support::session(settings);
                let mut device = support::session_on(settings, Target::new(open).with_threshold(threshold));
                let (expected, found) = (answer(&evaluator.eval("loop", program)), answer(&device.eval("loop", program)));
                if expected != found {
                    wrong.push(format!("{program}\n  found    {found}  expected {expected}"));
                }
                if threshold == 0 && device.statistics().loop_calls < calls {
                    wrong.push(format!("{program}\n  {} calls are loops", device.statistics().loop_calls));
                }
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Checks that more rounds need no more kernels, and no more memory.
pub(crate) fn kernels() -> Result<(), Failed> {
    let count = |rounds: u32| {
        let text = format!(
            "function count(n, k, x) = if n == 0 then (k, x) else if oddp(n) then count(n - 1, k + 1, x) else count(n - 1, k, x + 0.5); \
             let r = {{count({rounds} + (n and 6), 0, 0.0) : n in index(100000)}} in max_val({{k : (k, x) in r}});"
        );
        let mut settings = Settings::default();
        settings.options.max_bytes = 16 << 20;
        let mut device = support::session_on(settings, Target::new(cpu));
        let found = answer(&device.eval("loop", &text));
        if !found.contains(&format!("it = {} : int", (rounds + 6) / 2)) {
            return Err(Failed::from(found));
        }
        Ok(device.statistics())
    };
    let (few, many) = (count(96)?, count(1000)?);
    if few.launches == many.launches && few.plans == many.plans && few.loop_calls == 100_000 {
        return Ok(());
    }
    Err(format!("{} and {} launches, {} and {} plans", few.launches, many.launches, few.plans, many.plans).into())
}

/// Loops without end stop at the limit of steps and at a request, and name the function.
pub(crate) fn endless(open: Open) -> Result<(), Failed> {
    let text = "function again(n) = again(n + 1); {again(n) : n in [1, 2]};";
    let mut settings = Settings::default();
    settings.options.max_steps = 100_000;
    for threshold in [0, 1 << 16] {
        let found: String = support::session_on(settings, Target::new(open).with_threshold(threshold))
            .eval("endless", text)
            .iter()
            .map(ToString::to_string)
            .collect();
        if !found.contains("Error[N0303]: `again` was stopped after 100000 steps") {
            return Err(found.into());
        }
    }
    for threshold in [0, 1 << 16] {
        // Trials of several devices run at the same time, so each has its own.
        let stop: &'static Stop = Box::leak(Box::default());
        let mut settings = Settings::default();
        settings.options.stop = Some(stop);
        let mut session = support::session_on(settings, Target::new(open).with_threshold(threshold));
        session.eval("endless", "1;");
        let watch = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            stop.request_by_time_limit();
        });
        let found: String = session.eval("endless", text).iter().map(ToString::to_string).collect();
        watch.join().map_err(|_| "the thread that interrupts has failed")?;
        if !found.contains("N0307") || !found.contains("`again`") {
            return Err(found.into());
        }
    }
    Ok(())
}
