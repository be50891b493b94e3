//! Interactions between filters: messages, neighbours of stateful filters, and decisions after linear
//! filters.

use super::{FAST, check, compile, devices};
use broadloom_stream::compiled::Compiled;

const HANDLERS: &str = "
int->int filter Scale { int k = 1; work push 1 pop 1 { push(pop() * k % 10007); } handler set(int v) { k = v; } }
int->int filter Send(portal<Scale> p) { work push 1 pop 1 { int x = pop(); if (x % 5 == 0) p.set(x % 9 + 1) LATENCY; push(x); } }
void->int filter Source { int n; int step = 1; work push 1 { push(n); n += step; } handler faster(int s) { step = s; } }
int->int filter Watch(portal<Source> p) {
    work push 1 pop 1 { int x = pop(); if (x % 7 == 3) p.faster(x % 4 + 1) [9:9]; push(x); }
}
int->int filter Sum { work push 1 pop 1 peek 2 { push(peek(0) + peek(1)); pop(); } }
int->int filter Twice { work push 2 pop 1 { int x = pop(); push(2 * x); push(x); } }
int->void filter Printer { work pop 1 { println(pop()); } }
";

/// Filters between a sender and a receiver below it run on the device, and messages arrive on time.
#[test]
fn messages_downstream_leave_filters_on_the_device() {
    for (latency, on_host) in [("[2:2]", 3), ("", 3), ("[0:70]", 3), ("[-2:-1]", 4)] {
        let text = format!(
            "void->void pipeline Top {{ portal<Scale> p; add Source; add Twice; add Send(p); add Sum; add Scale to p; add Twice;
             add Printer; }} {HANDLERS}"
        );
        for device in devices() {
            let (summary, statistics) = check(&text.replace("LATENCY", latency), 300, &device);
            // A message into the past is an error that the evaluator reports.
            let fails = latency.contains('-');
            assert_eq!((summary.on_host, statistics.handed_back), (on_host, u64::from(fails)), "{latency} {summary:?}");
            assert!(fails || (statistics.states > 290 && statistics.batches == 1), "{latency} {statistics:?}");
        }
    }
}

/// Nodes from a receiver to a sender below it run on the host, the others on the device.
#[test]
fn messages_upstream_keep_only_what_is_between_on_the_host() {
    let text = format!(
        "void->void pipeline Top {{ portal<Source> p; add Source to p;
         add splitjoin {{ split duplicate; add Twice; add Identity<int>; join roundrobin(2, 1); }}
         add Watch(p); add Twice; add Sum; add Printer; }} {}",
        HANDLERS.replace("LATENCY", "")
    );
    for device in devices() {
        let (summary, statistics) = check(&text, 100, &device);
        assert_eq!((summary.on_host, summary.filters), (7, 2), "{summary:?}");
        assert!(statistics.states > 90 && statistics.handed_back == 0, "{statistics:?}");
    }
}

/// Cheap filters around stateful filters are in their kernel. Expensive ones have kernels of their own.
#[test]
fn cheap_neighbours_of_state_are_in_its_kernel() {
    let program = |around: &str| {
        format!(
            "void->void pipeline Top {{
                 add void->int filter {{ int n; work push 1 {{ push(n++); }} }}
                 {around}
                 add int->int filter {{ int s = 1; work push 1 pop 1 {{ s = (s * 31 + pop()) % 1009; push(s); }} }}
                 add int->int filter {{ work push 1 pop 1 peek 3 {{ push(peek(2) ^ pop()); }} }}
                 add int->int filter {{ int s = 1; work push 1 pop 2 {{ s = (s * 17 + pop() * pop()) % 2003; push(s); }} }}
                 {around}
                 add int->void filter {{ work pop 1 {{ println(pop()); }} }}
             }}"
        )
    };
    let cheap = "add int->int filter { work push 1 pop 1 { push(pop() * 3 + 1); } }";
    let dear = "add int->float filter { work push 1 pop 1 { float x = pop(); push(exp(sin(x) + cos(x)) * atan(x)); } }
                add float->int filter { work push 1 pop 1 { push((int) (pop() * 100 + tan(1.0 + peek(0) / 1000))); } }";
    for device in devices() {
        let (summary, statistics) = check(&program(cheap), 70, &device);
        assert_eq!((summary.kernels, summary.islands, summary.on_host), (1, 1, 1), "{summary:?}");
        assert!(statistics.states > 60 && statistics.handed_back == 0, "{statistics:?}");
        let (summary, _) = check(&program(dear), 70, &device);
        assert_eq!((summary.kernels, summary.islands), (3, 1), "{summary:?}");
    }
}

/// Linear filters before a filter that rounds or compares add in the written order, because their last digits
/// matter.
#[test]
fn linear_filters_before_decisions_stay_exact() {
    let program = |last: &str| {
        format!(
            "void->void pipeline Top {{
                 add void->float filter {{ int n; work push 1 {{ push((n++ * 7919 % 1000) * 0.37); }} }}
                 add float->float filter {{ work push 1 pop 1 {{ push(pop() * 1.7); }} }}
                 add float->float filter {{ work push 1 pop 1 {{ push(pop() / 3 + 0.1); }} }}
                 {last}
             }}"
        )
    };
    let floats = "add float->void filter { work pop 1 { println(pop()); } }";
    let whole = "add float->int filter { work push 1 pop 1 { push((int) (pop() * 1000000)); } }
                 add int->void filter { work pop 1 { println(pop()); } }";
    let compared = "add float->void filter { work pop 1 { float x = pop(); println(x > 40 ? 1 : 0); } }";
    for device in devices() {
        for (last, combined) in [(floats, true), (whole, false), (compared, false)] {
            let program = compile(&program(last));
            let explained = Compiled::with(&program, &device, FAST).unwrap().explain();
            assert_eq!(explained.contains("2 linear filters as one"), combined, "{explained}");
        }
        check(&program(whole), 200, &device);
    }
}
