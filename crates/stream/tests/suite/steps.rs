//! Steps between the numbers of items on two tapes, and numbers as sums of digits.

use broadloom_scalar::{Builder, Type};
use broadloom_stream::restructure::digits::Digits;
use broadloom_stream::restructure::wiring::{Range, Step, anchors, apply, image, preimage, shift, target};

/// Reversed bits are digits, each with a factor. Contiguous places are one digit.
#[test]
fn numbers_are_sums_of_digits() {
    let reversed = Digits::of(8, &|n| (n & 1) * 4 + (n & 2) + n / 4 + 5).unwrap();
    assert_eq!((reversed.start, &reversed.terms[..]), (5, &[(1, 2, 4), (2, 2, 2), (4, 2, 1)][..]));
    let rows = Digits::of(12, &|n| n % 4 * 2 + n / 4 * 100).unwrap();
    assert_eq!(rows.terms, [(1, 4, 2), (4, 3, 100)]);
    assert!(Digits::of(4, &|n| n * n).is_none());
    assert!((0..12).all(|n| rows.value(n) == n % 4 * 2 + n / 4 * 100));
}

/// Rows of one matrix and columns of another have one anchor each.
#[test]
fn windows_have_anchors() {
    let half = |offset| Step::Spread { weight: 16, total: 32, offset };
    let repeat = |join| Step::Shuffle { branches: 4, split: None, join, inner: vec![] };
    let transpose = Step::Shuffle { branches: 4, split: Some(1), join: 4, inner: vec![] };
    let steps = [Step::select(vec![(4, vec![repeat(4), half(0)]), (4, vec![repeat(16), transpose, half(16)])]).unwrap()];
    let found = anchors(&steps, 0, 8, 8, 16);
    assert_eq!(found, [(0, 0), (0, 1), (0, 2), (0, 3), (4, 0), (4, 4), (4, 8), (4, 12)]);
}

/// Code, ranges and their inverse agree with the definition, for negative numbers too.
#[test]
fn steps_agree_with_their_definition() {
    let port = |weight, total, offset| Step::Spread { weight, total, offset };
    let shuffle = |inner| Step::Shuffle { branches: 2, split: Some(1), join: 4, inner };
    let chains = [
        vec![port(2, 5, 3)],
        vec![port(1, 3, 0), port(3, 4, 1)],
        vec![shuffle(vec![])],
        vec![Step::Shuffle { branches: 3, split: None, join: 2, inner: vec![] }],
        vec![Step::Shuffle { branches: 3, split: Some(1), join: 4, inner: vec![shuffle(vec![])] }],
        vec![Step::select(vec![(2, vec![port(2, 5, 3)]), (1, vec![port(1, 5, 0)])]).unwrap()],
    ];
    for steps in &chains {
        let b = Builder::function("index");
        let i = b.parameter("i", Type::I32);
        let moved = apply(&b, steps, i, -24);
        let code = b.finish_function(&[moved]).unwrap();
        for index in -24i64..24 {
            let wanted = target(steps, index);
            let found = code.evaluate(&[(index as i32).into()]).unwrap()[0].as_i128();
            assert_eq!(found, Some(wanted.into()), "{steps:?} at {index}");
            let range = image(steps, Range::new(index, index + 5));
            assert!((index..index + 5).all(|index| (range.start..range.end).contains(&target(steps, index))));
        }
    }
    for steps in chains.iter().filter(|steps| steps.iter().all(|step| step.inverse().is_some())) {
        let back: Vec<Step> = steps.iter().rev().filter_map(Step::inverse).collect();
        assert!((-60i64..60).all(|index| target(&back, target(steps, index)) == index), "{steps:?}");
        let period = steps[0].period().unwrap();
        assert_eq!(shift(steps, period), Some(period));
        assert_eq!(preimage(steps, Range::new(-period, period)), Range::new(-period, period));
    }
    for index in -20i64..20 {
        for steps in &chains[..2] {
            let items = preimage(steps, Range::new(index, index + 7));
            let inside = |item: i64| (index..index + 7).contains(&target(steps, item));
            assert!((items.start - 9..items.end + 9).all(|item| inside(item) == (items.start..items.end).contains(&item)));
        }
    }
}
