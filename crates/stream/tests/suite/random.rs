//! Random graphs with rates without common factors, nested splitjoins, peeks, `prework` and feedback. Two
//! different schedules give the same output, and tapes stay within the stated bounds.

use crate::graphs::Random;
use broadloom_stream::Program;
use broadloom_stream::eval::{Limits, Memory, Settings};
use broadloom_stream::schedule::Style;

#[test]
fn schedules_agree_on_random_graphs() {
    let limits = Limits { schedule: 1 << 14, steps: 20_000_000, ..Limits::default() };
    let mut compared = 0;
    for seed in 0..120 {
        let text = Random { random: broadloom_random::Random::new(seed), stateful: 2, reductions: 12 }.program(3);
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
