//! Templates of the regions between two waits, inside functions that branch on data.

use crate::support::{self, Open, interp};
use broadloom_graph::{Node, Shape};
use broadloom_nesl::eval::Options;
use broadloom_nesl::run::{Statistics, Target};
use broadloom_nesl::session::{Session, Settings};
use broadloom_nesl::{Column, Program};
use broadloom_scalar::Type;
use libtest_mimic::Failed;

/// Checks that a loop of a thousand rounds, each with another number of elements, executes the instructions
/// of a few rounds only.
pub(crate) fn thousand(open: Open) -> Result<(), Failed> {
    let text = "function rounds(a, n) : ([int], int) -> (int, int) =
          if #a < 20 then (n, sum(a)) else rounds({x - 1 : x in a | x > 0}, n + 1);
        function g(a) : [int] -> (int, int) = rounds(a, 0);";
    let called = |target: Target| -> Result<(String, Statistics), Failed> {
        let mut program = Program::new(text, "g", Options::default(), target)?;
        let bytes: Vec<u8> = (0..1020i32).flat_map(i32::to_le_bytes).collect();
        let column = Node::upload(&program.context()?, Type::I32, Shape::from(1020), &bytes)?;
        let results = program.call(&[Column::Device(column)])?;
        let found = results.iter().map(crate::numbers).collect::<Result<Vec<_>, _>>()?;
        Ok((format!("{found:?}"), program.statistics()))
    };
    let target = || Target::new(open).with_threshold(10);
    let (found, done) = called(target())?;
    let (expected, plain) = called(target().without_templates())?;
    if found != expected || found != "[[1001.0], [171.0]]" {
        return Err(format!("{found}, expected {expected}").into());
    }
    let is_few = done.traces <= 3 && done.regions > 980 && done.instructions * 30 < plain.instructions;
    if !is_few || plain.regions != 0 || done.waits > plain.waits {
        return Err(format!("{done:?}\nwithout templates {plain:?}").into());
    }
    Ok(())
}

/// Programs that wait in loops and recursions.
pub(crate) const PROGRAMS: [&str; 16] = [
    "function go(v, n) = if all({x == 1 : x in v}) then n else \
     go({if x == 1 then 1 else if oddp(x) then 3 * x + 1 else x / 2 : x in v}, n + 1); go([1:30], 0);",
    "function go(v, n) = if #v < 3 then (v, n) else go({x - 2 : x in v | x > 3}, n + #v); go([0:40], 0);",
    "function go(v, eps) = let w = {0.5 * (x + 2.0 / x) : x in v} in \
     if max_val({abs(x - y) : x in v; y in w}) < eps then w else go(w, eps); go({float(i) : i in [1:20]}, 0.000001);",
    "function go(v, e) = if sum(v) < e then (v, e) else go({x / 2.0 : x in v}, e * 0.9); go({float(i) : i in [1:20]}, 1.0);",
    "function qsort(a) = if #a < 2 then a else let p = a[#a / 2]; r = {qsort(v) : v in [{e in a | e < p}, {e in a | e > p}]} \
     in r[0] ++ {e in a | e == p} ++ r[1]; qsort({rem(i * 37, 101) : i in [0:60]});",
    "function depth(v) = if sum(v) == 0 then 0 else 1 + depth({x / 2 : x in v}); depth([0:100]);",
    "function both(v) = if sum(v) < 10 then v else let w = both({x / 2 : x in v}) in {x + y : x in w; y in v}; both([0:30]);",
    "function step(v) = {x - 1 : x in v}; function go(v, k) = if any({x > 0 : x in v}) then go(step(step(v)), k - 3) else (v, k); \
     go([0:30], 5);",
    "function go(m, n) = if n > 40 then m else go({{x + n : x in r | x < 90} : r in m}, n + sum({#r : r in m})); \
     go({[i:2 * i] : i in [0:8]}, 0);",
    "function go(p, d) = let (a, b) = p in if sum(a) > 60 then (p, d) else go((b, {x + 5 : x in a}), f); \
     go(([1, 2, 3], [4, 5, 6]), t);",
    "function reach(front, seen, edges, n) = if #front == 0 then (seen, n) else \
     let next = flatten({edges[v] : v in front}); fresh = {v in next | not(seen[v])}; \
     seen2 = seen <- {(v, t) : v in fresh}; once = {i in index(#seen) | seen2[i] and not(seen[i])} \
     in reach(once, seen2, edges, n + 1); \
     reach([0], [t] ++ dist(f, 29), {{rem(i * 3 + j, 30) : j in [1:3]} : i in [0:30]}, 0);",
    "function go(v) = if sum(v) > 5000 then v else go(v ++ {x + 1 : x in v}); go([1, 2]);",
    "function go(v, s) = if max_val(v) > 500 then s else go({x + y : x in v; y in reverse(v)}, s ++ [sum(v)]); go([1, 2, 3], [] int);",
    "function go(v, lo, hi) = if hi - lo < 2 then lo else let m = (lo + hi) / 2 in if v[m] > 50 then go(v, lo, m) else go(v, m, hi); \
     go({i * 3 : i in [0:64]}, 0, 64);",
    "function go(a, b) = if sum(a) == 0 then b else if oddp(sum(a)) then go({x / 2 : x in a}, b + 1) else go({x / 3 : x in a}, b - 7); \
     go([3:40], 0);",
    "function go(v, c) = if sum({char_code(x) : x in c}) > 9000 then (v, c) else go({x + #c : x in v}, c ++ \"ab\"); go([0:12], \"x\");",
];

/// Programs that end in an error in a later round.
const WRONG: [&str; 10] = [
    "function go(v, i) = if sum(v) > 100000 then v else\n  go({x + v[i] : x in v}, i + 1); go([1:6], 0);",
    "function go(v, i) = if sum(v) > 100000 then v else\n  go({x / (9 - i) : x in v}, i + 1); go([1000:1030], 0);",
    "function go(v) = if sum(v) < -3000 then v else\n  go({100 / x - 1 + x - 100 / x : x in v}); go([5:30]);",
    "function go(v, n) = if sum(v) > 2000000 then v else\n  go({x + y : x in v; y in take(v, #v - n / 7)}, n + 1); go([5:30], 0);",
    "function go(v) = if sum(v) < 0 then v else\n  go({x + 1 : x in v}); go([1:30]);",
    "function go(v) = if sum(v) < 0 then v else\n  go({rem(x, 7) : x in v} ++ [1, 2, 3, 4, 5, 6, 7]); go([1:30]);",
    "function deep(v) = if sum(v) < 0 then 0 else\n  1 + deep({rem(x + 1, 9) : x in v}); deep([1:30]);",
    "function go(v, i) = if sum(v) < 0 then v else\n  let w = {sqrt(20.0 - float(x + i)) : x in v} in go({x + round(y) - round(y) : x in v; y in w}, i + 1); go([1:10], 0);",
    "function go(v) = if sum(v) < 0 then v else\n  go({x + 1 : x in permute(v, {rem(x, 9) : x in v})}); go([0:9]);",
    "function go(v, n) = if sum(v) < 0 then v else\n  let w = {x + 1 : x in v}; _ = print_line(@n) in go(w, n + w[n]); go([0:9], 0);",
];

/// Compares two sessions. In the first, every program must launch a region from a template.
fn compare(found: &mut Session, expected: &mut Session, texts: &[&str]) -> Result<(), Failed> {
    let mut wrong = vec![];
    for text in texts {
        let before = found.statistics();
        let [answer, wanted] = [&mut *found, &mut *expected].map(|session| support::transcript(&session.eval("region", text)));
        if answer != wanted {
            wrong.push(format!("{text}\n  found    {answer}  expected {wanted}"));
        }
        let done = found.statistics();
        if done.regions == before.regions {
            wrong.push(format!(
                "{text}\n  no region: {} traces, {} waits",
                done.traces - before.traces,
                done.waits - before.waits
            ));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// The convex hull of points on a spiral and in a square, and quicksort of unordered numbers.
pub(crate) const RECURSIONS: [&str; 2] = [
    "function cross((x, y), ((x1, y1), (x2, y2))) : ((float, float), ((float, float), (float, float))) -> float = \
       (x1 - x) * (y2 - y) - (y1 - y) * (x2 - x); \
     function above(points, p1, p2) = let areas = {cross(p, (p1, p2)) : p in points}; \
       outside = {p in points; a in areas | a > 0.0} in if #outside < 2 then [p1] ++ outside \
       else let far = points[max_index(areas)] in flatten({above(outside, a, b) : a in [p1, far]; b in [far, p2]}); \
     function hull(points) = let xs = {x : (x, y) in points}; left = points[min_index(xs)]; right = points[max_index(xs)] \
       in above(points, left, right) ++ above(points, right, left); \
     #hull({(sqrt(float(i)) * cos(float(i)), sqrt(float(i)) * sin(float(i))) : i in [0:900]} ++ \
       {(float(rem(i * 7919, 1009)) / 100.0, float(rem(i * 104729, 997)) / 100.0) : i in [0:150]});",
    "function qsort(a) = if #a < 2 then a else let p = a[#a / 2]; r = {qsort(v) : v in [{e in a | e < p}, {e in a | e > p}]} \
     in r[0] ++ {e in a | e == p} ++ r[1]; let s = qsort({rem(i * 7919, 1201) : i in [0:1200]}) in sum({x * rem(i, 7) : x in s; i in index(#s)});",
];

/// Returns the counts of a program with and without regions, each in a separate session. Their answers must
/// be equal.
fn counted(text: &str, target: impl Fn() -> Target) -> Result<[Statistics; 2], Failed> {
    let run = |target: Target| {
        let mut session = support::session_on(Settings::default(), target);
        (support::transcript(&session.eval("region", text)), session.statistics())
    };
    let ((found, done), (expected, plain)) = (run(target()), run(target().with_regions_from(u32::MAX)));
    if found != expected || !found.contains("it = ") {
        return Err(format!("{text}\n  found    {found}  expected {expected}").into());
    }
    Ok([done, plain])
}

/// Checks that a region launched from a template has no more kernels and no more waits than the machine, and
/// neither has the rest of the program.
pub(crate) fn economy(programs: &[&str]) -> Result<(), Failed> {
    let mut wrong = vec![];
    for text in programs {
        let target = || Target::new(interp).with_threshold(10).without_sequential_calls().with_regions_from(3);
        let [done, plain] = counted(text, target)?;
        if done.launches > plain.launches || done.waits > plain.waits {
            let (regions, found, expected) = (done.regions, (done.launches, done.waits), (plain.launches, plain.waits));
            wrong.push(format!("{text}\n  {regions} regions, launches and waits {found:?}, of the machine {expected:?}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Returns a target whose regions become templates at their first start.
fn early(open: Open) -> Target {
    Target::new(open).with_threshold(0).without_sequential_calls().with_regions_from(1)
}

/// Compares the answers of programs with those of the evaluator.
pub(crate) fn programs(open: Open, count: usize) -> Result<(), Failed> {
    let mut settings = Settings::default();
    settings.options.max_steps = 1_000_000;
    compare(&mut support::session_on(settings, early(open)), &mut support::session(settings), &PROGRAMS[..count])
}

/// Checks that errors and limits have the texts and places of the machine's errors.
pub(crate) fn errors() -> Result<(), Failed> {
    let mut settings = Settings::default();
    (settings.options.max_steps, settings.options.max_bytes, settings.options.max_depth) = (20_000, 1 << 16, 40);
    // With a threshold of 0 the device computes ints, which counts other steps.
    let early = || early(interp).with_threshold(2);
    let [mut found, mut expected] = [early(), early().without_templates()].map(|target| support::session_on(settings, target));
    compare(&mut found, &mut expected, &WRONG)
}
