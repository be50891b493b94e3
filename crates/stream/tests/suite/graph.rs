//! Elaborated graphs, their schedules, and facts about filters.

use broadloom_stream::Program;
use broadloom_stream::core::{Facts, StreamKind, facts};
use broadloom_stream::eval::{Limits, Memory};
use broadloom_stream::graph::NodeKind;

fn compile(text: &str) -> Program {
    let mut host = Memory::default();
    Program::compile("graph.str", text, &mut host, &Limits::default()).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Returns the facts of the filter with a name.
fn facts_of(program: &Program, name: &str) -> Facts {
    let node = program.graph.nodes.values().find(|node| node.name == name).expect("the filter");
    let NodeKind::Filter(instance) = &node.kind else { panic!("{name} is no filter") };
    let StreamKind::Filter(filter) = &program.core.streams[instance.stream].kind else { panic!("{name} is no filter") };
    facts(&program.core, filter)
}

#[test]
fn repetitions_bounds_and_initial_firings() {
    let program = compile(
        "void->void pipeline Top { add A; add B; add C; }
         void->int filter A { work push 3 { push(1); push(2); push(3); } }
         int->int filter B { work push 2 pop 5 peek 8 { for (int i = 0; i < 5; i++) pop(); push(1); push(2); } }
         int->void filter C { work pop 1 { pop(); } }",
    );
    let schedule = program.schedule.as_ref().expect("a schedule");
    assert_eq!(schedule.repetitions, [5, 3, 6]);
    assert_eq!(schedule.init_firings, [1, 0, 0]);
    assert_eq!(schedule.remaining, [3, 0]);
    assert!(schedule.bounds[0] >= 8 && schedule.bounds[0] <= 18, "{:?}", schedule.bounds);
    let dot = program.graph.to_dot(&program.core);
    assert!(dot.contains("node0 -> node1 [label=\"int\"]"), "{dot}");
}

#[test]
fn equal_branches_share_their_code() {
    let program = compile(
        "void->void pipeline Top {
             add void->int filter { work push 1 { push(1); } }
             add splitjoin { split duplicate; for (int i = 0; i < 3; i++) add Scale(7); join roundrobin; }
             add int->void filter { work pop 1 { pop(); } }
         }
         int->int filter Scale(int k) { int[k] table; init { table[k - 1] = k; } work push 1 pop 1 { push(table[6] * pop()); } }",
    );
    let instances: Vec<_> = program
        .graph
        .nodes
        .values()
        .filter_map(|node| match &node.kind {
            NodeKind::Filter(instance) if node.name.starts_with("Scale") => Some(instance),
            _ => None,
        })
        .collect();
    assert_eq!(instances.len(), 3);
    assert!(instances.iter().all(|other| other.stream == instances[0].stream && other.params == instances[0].params));
    assert!(instances.iter().all(|other| other.fields == instances[0].fields));
}

#[test]
fn facts_about_filters() {
    let program = compile(
        "void->void pipeline Top { portal<Sink> p; add Source(p); add Fir; add Through; add Sink to p; }
         void->int filter Source(portal<Sink> p) { int n; work push 1 { p.set(n); push(iter()); } }
         int->int filter Fir { int[2] h = {1, 2}; work push 1 pop 1 peek 2 { push(h[0] * peek(0) + h[1] * peek(1)); pop(); } }
         int->int filter Through {
             int[4] last;
             void keep(int[4] a, int v) { a[v & 3] = v; }
             work push 1 pop 1 { keep(last, peek(0)); push(pop()); }
         }
         int->void filter Sink { int base; work pop 1 { println(base + pop()); } handler set(int b) { base = b; } }",
    );
    let source = facts_of(&program, "Source");
    assert!(source.sends && source.counts && source.is_stateless() && !source.prints);
    let fir = facts_of(&program, "Fir");
    assert!(fir.is_stateless() && fir.peeks);
    let through = facts_of(&program, "Through");
    assert_eq!(through.written, [0], "a field is written through a function that gets it");
    let sink = facts_of(&program, "Sink");
    assert!(sink.prints && sink.written == [0], "a handler writes");
}
