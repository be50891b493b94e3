//! Random programs: rates without common factors, nested splitjoins, peeks, `prework` and feedback.

use std::fmt::Write as _;

/// A generator of programs.
pub(crate) struct Random {
    pub(crate) random: broadloom_random::Random,
    /// One in this many filters has state.
    pub(crate) stateful: u64,
    /// One in this many filters adds up many items.
    pub(crate) reductions: u64,
}

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
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
        if self.below(self.stateful) == 0 {
            // Some firings must run in order, some can be combined.
            text += ["s = a % 1000; ", "s = a; ", "s = s ^ peek(0); ", "if (peek(0) > s) s = peek(0); "][self.below(4) as usize];
        }
        let _ = write!(text, "for (int i = 0; i < {push}; i++) push(a % 9973 + i); for (int i = 0; i < {pop}; i++) pop(); }} }}");
        text
    }

    /// Returns a filter that adds up many items, some of them in an array.
    fn reduction(&mut self, push: u64, pop: u64) -> String {
        let factor = 128 / pop + 1 + self.below(8);
        let (push, pop) = (push * factor, pop * factor);
        let sum = ["a += x; ", "a = a ^ x; ", "if (x % 3 == 1) a += 2; ", "h[x & 7]++; ", "a -= x; h[(x >> 2) & 7] += i; "];
        let sum = sum[self.below(5) as usize];
        format!(
            "int->int filter {{ work push {push} pop {pop} {{ int a = 1; int[8] h; \
             for (int i = 0; i < {pop}; i++) {{ int x = pop(); {sum}}} \
             for (int i = 0; i < {push}; i++) push((a + h[i & 7]) % 9973 + i); }} }}"
        )
    }

    /// Returns a stream that pushes `push` items for every `pop` items, times a common factor.
    fn stream(&mut self, depth: u64, push: u64, pop: u64) -> String {
        match self.below(if depth == 0 { 1 } else { 4 }) {
            0 if self.below(self.reductions) == 0 => self.reduction(push, pop),
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
                // All branches have the same ratio of output to input, each times its own factor.
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

    /// Returns a program with a source that counts, a stream, and a sink that prints.
    pub(crate) fn program(&mut self, depth: u64) -> String {
        let (push, pop) = (1 + self.below(4), 1 + self.below(4));
        let inner = self.stream(depth, push, pop);
        let burst = 1 + self.below(3);
        format!(
            "void->void pipeline Top {{ add void->int filter {{ int n; work push {burst} {{ for (int i = 0; i < {burst}; i++) push(n++); }} }} \
             add {inner} add int->void filter {{ work pop 1 {{ println(pop()); }} }} }}"
        )
    }

    /// Returns a program between two files, and one in which a firing fails at an item.
    pub(crate) fn file_programs(&mut self, depth: u64) -> [String; 2] {
        let (push, pop) = (1 + self.below(4), 1 + self.below(4));
        let (inner, bad) = (self.stream(depth, push, pop), self.below(9973));
        ["", &format!("add int->int filter {{ work push 1 pop 1 {{ int x = pop(); push(x + 0 / (x - {bad})); }} }}")].map(
            |check| {
                format!(
                    "void->void pipeline Top {{ add FileReader<int>(\"in\"); add {inner} {check} add FileWriter<int>(\"out\"); }}"
                )
            },
        )
    }
}
