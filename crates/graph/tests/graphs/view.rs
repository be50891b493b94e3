//! Views of views.

use broadloom_graph::{AxisMap, Rule, Shape, View};
use broadloom_scalar::Literal;
use smallvec::smallvec;

fn along(offset: i64, stride: i64, rule: Rule, length: usize, input: usize) -> Option<View> {
    let map = AxisMap { source: Some(0), offset, stride, rule };
    let fill = (rule == Rule::Constant).then(|| smallvec![Literal::from(7i32)]);
    View::new("test", &Shape::from(input), &[map], Shape::from(length), fill).ok()
}

/// Composed and separate views read the same elements.
#[test]
fn views_of_views_see_the_same_elements() {
    let rules = [Rule::Inside, Rule::Clamp, Rule::Wrap, Rule::Mirror, Rule::Constant];
    let mut composed = 0;
    for input in [1usize, 2, 5] {
        for (inner_rule, outer_rule) in rules.iter().flat_map(|a| rules.iter().map(move |b| (*a, *b))) {
            for (a, b) in (-3..4).flat_map(|a| (-3..4).map(move |b| (a, b))) {
                for (s, t) in [(1, 1), (2, 1), (-1, 1), (1, -1), (1, 2), (-1, -1)] {
                    for (m, n) in [(input, input), (3, 4), (1, 2), (6, 3)] {
                        let Some(inner) = along(a, s, inner_rule, m, input) else { continue };
                        let Some(outer) = along(b, t, outer_rule, n, m) else { continue };
                        let Some(both) = outer.after(&inner, &Shape::from(input)) else { continue };
                        composed += 1;
                        for i in 0..n {
                            let expected =
                                outer.locate(&[i], &inner.shape).and_then(|middle| inner.locate(&middle, &Shape::from(input)));
                            assert_eq!(both.locate(&[i], &Shape::from(input)), expected, "{outer:?} after {inner:?}");
                        }
                    }
                }
            }
        }
    }
    assert!(composed > 1000, "{composed}");
}

#[test]
fn rules_are_dropped_where_they_do_nothing() {
    assert_eq!(along(0, 1, Rule::Wrap, 5, 5).map(|view| view.is_identity(&Shape::from(5))), Some(true));
    assert_eq!(along(1, 1, Rule::Inside, 5, 5), None);
    assert_eq!(along(0, 1, Rule::Clamp, 3, 0), None);
    assert_eq!(along(6, 1, Rule::Constant, 3, 5).map(|view| view.is_constant(&Shape::from(5))), Some(true));
}
