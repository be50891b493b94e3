//! Compile time against the size of the graph, and the structure that keeps large graphs small.

use super::{check, compile, devices};
use broadloom_stream::compiled::Compiled;
use std::time::{Duration, Instant};

/// Returns the text of the recursive Fourier transform of this many points.
fn transform(points: usize) -> String {
    let rotate = "float tr = peek(n + 2 * i) * c[i] - peek(n + 2 * i + 1) * s[i];
                  float ti = peek(n + 2 * i) * s[i] + peek(n + 2 * i + 1) * c[i];";
    format!(
        "void->void pipeline Top {{ add Source; add Transform({points}); add Print; }}
         void->float filter Source {{ int n; work push 1 {{ push((n * 37 % 101) * 0.25); n++; }} }}
         float->void filter Print {{ work pop 1 {{ println(pop()); }} }}
         float->float pipeline Transform(int n) {{
             if (n > 1) {{
                 add splitjoin {{ split roundrobin(2); add Transform(n / 2); add Transform(n / 2); join roundrobin(n); }}
                 add Butterfly(n);
             }} else {{
                 add Identity<float>;
             }}
         }}
         float->float filter Butterfly(int n) {{
             float[n] c, s;
             init {{ for (int i = 0; i < n / 2; i++) {{ c[i] = cos(-2 * pi * i / n); s[i] = sin(-2 * pi * i / n); }} }}
             work pop 2 * n push 2 * n {{
                 for (int i = 0; i < n / 2; i++) {{ {rotate} push(peek(2 * i) + tr); push(peek(2 * i + 1) + ti); }}
                 for (int i = 0; i < n / 2; i++) {{ {rotate} push(peek(2 * i) - tr); push(peek(2 * i + 1) - ti); }}
                 for (int i = 0; i < 2 * n; i++) pop();
             }}
         }}"
    )
}

/// Returns the text of a pipeline of this many filters.
fn pipeline(count: usize, filter: &str) -> String {
    format!(
        "void->void pipeline Top {{
             add void->float filter {{ int n; work push 1 {{ push(n++); }} }}
             for (int i = 0; i < {count}; i++) add F(i);
             add float->void filter {{ work pop 1 {{ println(pop()); }} }}
         }}
         float->float filter F(int k) {{ work pop 1 push 1 {{ {filter} }} }}"
    )
}

/// Returns the text of a splitjoin of this many different branches.
fn branches(count: usize) -> String {
    format!(
        "void->void pipeline Top {{
             add void->int filter {{ int n; work push 1 {{ push(n++); }} }}
             add splitjoin {{ split roundrobin; for (int i = 0; i < {count}; i++) add F(i); join roundrobin; }}
             add int->void filter {{ work pop 1 {{ println(pop()); }} }}
         }}
         int->int filter F(int k) {{ work pop 1 push 1 {{ push(pop() * 3 ^ k); }} }}"
    )
}

/// The halves of a recursive transform are equal at each level, so that a filter is left for each of them.
#[test]
fn recursion_is_found_in_the_graph() {
    for device in devices() {
        for (points, levels) in [(8, 3), (64, 6)] {
            let (summary, statistics) = check(&transform(points), 3, &device);
            let (source, filters) = (1, points - 1);
            assert_eq!((summary.actors, summary.filters), (levels + source, filters + source), "{summary:?}");
            assert_eq!(statistics.handed_back, 0, "{statistics:?}");
        }
    }
}

/// Branches within branches that deal and join other numbers of items than their filters take.
#[test]
fn branches_in_branches_collapse() {
    let text = |split: u32, inner: u32, join: u32, outer: u32| {
        format!(
            "void->void pipeline Top {{
                 add void->int filter {{ int n; work push 1 {{ push(n++); }} }}
                 add splitjoin {{
                     split roundrobin({split});
                     for (int i = 0; i < 3; i++) add pipeline {{
                         add splitjoin {{ split roundrobin({inner}); add Twice; add Twice; join roundrobin({join}); }}
                         add Odd;
                     }}
                     join roundrobin({outer});
                 }}
                 add int->void filter {{ work pop 1 {{ println(pop()); }} }}
             }}
             int->int filter Twice {{ work push 2 pop 2 {{ push(peek(1) * 2); push(pop() * 5 + 1); pop(); }} }}
             int->int filter Odd {{ work push 3 pop 4 {{ push(pop() + 7 * pop()); push(pop()); push(pop()); }} }}"
        )
    };
    let [interp, _] = devices();
    for split in 1..=4 {
        for inner in 1..=3 {
            for join in 1..=4 {
                let (summary, statistics) = check(&text(split, inner, join, split + inner), 4, &interp);
                assert!(summary.actors <= 10 && statistics.handed_back == 0, "{summary:?} {statistics:?}");
            }
        }
    }
}

/// Returns the time of a compilation.
fn time(text: &str) -> Duration {
    let [interp, _] = devices();
    let start = Instant::now();
    let program = compile(text);
    Compiled::new(&program, &interp).unwrap_or_else(|failure| panic!("{failure}"));
    start.elapsed()
}

/// Programs of any size: their name, the text of a size, and the smaller size to measure.
type Family<'f> = (&'static str, &'f dyn Fn(usize) -> String, usize);

/// Four times the graph takes less than twice four times the time. A quadratic pass would take 16 times. The
/// shortest of up to eight times counts, because other work of the machine lengthens some.
#[test]
fn passes_are_near_linear() {
    let nonlinear = "float x = pop(); push(x * x + k);";
    let texts: [Family<'_>; 4] = [
        ("recursion", &transform, 256),
        ("linear filters", &|count| pipeline(count, "push(pop() * 0.5 + k);"), 1000),
        ("filters", &|count| pipeline(count, nonlinear), 1000),
        ("branches", &branches, 500),
    ];
    for (name, text, size) in texts {
        let (text, larger) = (text(size), text(4 * size));
        let small = (0..3).map(|_| time(&text)).min().unwrap_or_default();
        let mut large = Duration::MAX;
        let is_near_linear = (0..8).any(|_| {
            large = large.min(time(&larger));
            large < 8 * small + Duration::from_millis(50)
        });
        assert!(is_near_linear, "{name}: {size} in {small:?}, {} in {large:?}", 4 * size);
    }
}
