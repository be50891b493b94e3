//! Random graphs with rates without common factors, nested splitjoins, peeks, `prework` and feedback: two
//! schedules that are made in different ways give the same output, and tapes stay within the stated bounds.

use broadloom_stream::Program;
use broadloom_stream::eval::{Limits, Memory, Settings};
use broadloom_stream::schedule::Style;
use std::fmt::Write as _;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn filter(&mut self, push: u64, pop: u64) -> String {
        let peek = pop + self.below(4);
        let mut text = "int->int filter { int s; ".to_owned();
        if self.below(4) == 0 {
            let items = self.below(3);
            let _ = write!(text, "prework push {items} {{ for (int i = 0; i < {items}; i++) push(i); }} ");
        }
        let _ = write!(
            text,
            "work push {push} pop {pop} peek {peek} {{ int a = s; for (int i = 0; i < {peek}; i++) a = a * 3 + peek(i); "
        );
        if self.below(2) == 0 {
            text += "s = a % 1000; ";
        }
        let _ = write!(text, "for (int i = 0; i < {push}; i++) push(a % 9973 + i); for (int i = 0; i < {pop}; i++) pop(); }} }}");
        text
    }

    /// A stream that pushes `push` items for every `pop` items, times a common factor.
    fn stream(&mut self, depth: u64, push: u64, pop: u64) -> String {
        match self.below(if depth == 0 { 1 } else { 4 }) {
            0 => self.filter(push, pop),
            1 => {
                let middle = 1 + self.below(5);
                let (first, second) = (self.stream(depth - 1, middle, pop), self.stream(depth - 1, push, middle));
                format!("pipeline {{ add {first} add {second} }}")
            }
            2 => {
                let count = 2 + self.below(2);
                let weight = 1 + self.below(3);
                let mut text = String::from("splitjoin { split ");
                let duplicate = self.below(2) == 0;
                text += &if duplicate { "duplicate;".to_owned() } else { format!("roundrobin({weight});") };
                // All branches have one proportion of output to input, times factors of their own.
                let (out, taken) = (push, if duplicate { pop * count } else { pop });
                for _ in 0..count {
                    let factor = 1 + self.below(2);
                    let _ = write!(text, " add {}", self.stream(depth - 1, out * factor, taken * factor));
                }
                let _ = write!(text, " join roundrobin({}); }}", 1 + self.below(3));
                text
            }
            _ => {
                let delay = 1 + self.below(4);
                let (front, rear) = (self.filter(1, pop), self.filter(push, 1));
                format!(
                    "pipeline {{ add {front} add int->int feedbackloop {{ join roundrobin(1, 1); \
                     body int->int filter {{ work push 2 pop 2 {{ int a = pop(); int b = pop(); push(a + b % 7); push(a); }} }} \
                     split roundrobin(1, 1); loop Identity<int>; for (int i = 0; i < {delay}; i++) enqueue i; }} add {rear} }}"
                )
            }
        }
    }
}

#[test]
fn schedules_agree_on_random_graphs() {
    let limits = Limits { schedule: 1 << 14, steps: 20_000_000, ..Limits::default() };
    let mut compared = 0;
    for seed in 0..120 {
        let mut random = Random(seed * 7919 + 17);
        let (push, pop) = (1 + random.below(4), 1 + random.below(4));
        let inner = random.stream(3, push, pop);
        let burst = 1 + random.below(3);
        let text = format!(
            "void->void pipeline Top {{ add void->int filter {{ int n; work push {burst} {{ for (int i = 0; i < {burst}; i++) push(n++); }} }} \
             add {inner} add int->void filter {{ work pop 1 {{ println(pop()); }} }} }}"
        );
        let mut host = Memory::default();
        let program = match Program::compile("random.str", &text, &mut host, &limits) {
            Ok(program) => program,
            Err(failure) if failure.to_string().contains("S0504") => continue,
            Err(failure) => panic!("seed {seed}: {failure}\n{text}"),
        };
        let mut outputs = vec![];
        for style in [Style::Phased, Style::Pull] {
            let mut host = Memory::default();
            let settings = Settings { iterations: Some(3), limits: limits.clone(), style: Some(style) };
            program.run(&mut host, &settings).unwrap_or_else(|failure| panic!("seed {seed}: {failure}\n{text}"));
            outputs.push(host.output);
        }
        let (a, b): (Vec<&str>, Vec<&str>) = (outputs[0].lines().collect(), outputs[1].lines().collect());
        let shared = a.len().min(b.len());
        assert!(shared > 0, "seed {seed} prints nothing\n{text}");
        assert_eq!(a[..shared], b[..shared], "seed {seed}\n{text}");
        let schedule = program.schedule.as_ref().unwrap();
        for (tape, found) in program.graph.tapes.iter() {
            assert!(schedule.bound(tape) >= found.enqueued.len() as u64);
        }
        compared += 1;
    }
    assert!(compared > 60, "only {compared} graphs were small enough");
}
