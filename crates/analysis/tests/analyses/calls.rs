//! Strongly connected components of call graphs.

use broadloom_analysis::calls::components;
use broadloom_ptx::Func;
use std::collections::BTreeSet;

fn func(number: usize) -> Func {
    Func::from_u32(number as u32)
}

#[test]
fn components_are_what_reaches_itself() {
    let mut numbers = crate::testing::Random::new(1);
    let mut random = |below: u64| numbers.below(below);
    for _ in 0..200 {
        let count = 1 + random(9) as usize;
        let edges: Vec<Vec<Func>> =
            (0..count).map(|_| (0..random(4)).map(|_| func(random(count as u64) as usize)).collect()).collect();
        let reach = |start: usize| {
            let (mut seen, mut work) = (BTreeSet::new(), vec![func(start)]);
            while let Some(at) = work.pop() {
                work.extend(edges[at.as_u32() as usize].iter().filter(|to| seen.insert(**to)));
            }
            seen
        };
        let roots: Vec<Func> = (0..count).map(func).collect();
        let found = components(&roots, |at| edges[at.as_u32() as usize].clone());
        assert_eq!(found.iter().map(Vec::len).sum::<usize>(), count);
        let place = |at: Func| found.iter().position(|component| component.contains(&at)).unwrap();
        for from in 0..count {
            for to in reach(from) {
                let mutual = reach(to.as_u32() as usize).contains(&func(from));
                assert_eq!(place(func(from)) == place(to), mutual || func(from) == to, "{edges:?}");
                assert!(place(to) <= place(func(from)), "{edges:?}");
            }
        }
    }
}

#[test]
fn a_long_chain_needs_no_stack() {
    let last = 1_000_000;
    let found = components(&[func(0)], |at| match at.as_u32() as usize {
        at if at < last => vec![func(at + 1)],
        _ => vec![],
    });
    assert_eq!((found.len(), found[0][0]), (last + 1, func(last)));
}
