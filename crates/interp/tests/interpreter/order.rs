//! Order in which findings are told.

use broadloom_interp::check::order::{Rank, order};

#[test]
fn causes_come_first() {
    use Rank::{Order, Other, StrayWrite};
    // In the order of execution: a stray read, a stray write, a race.
    assert_eq!(order(0, &[(Other, None), (StrayWrite, None), (Order, None)]), [2, 1, 0]);
    // A race whose address comes from an uninitialised read, and one that does not.
    assert_eq!(order(5, &[(Other, None), (Order, Some(5)), (Order, None)]), [5, 6, 7]);
    // Two of a class keep their order; an earlier launch does not matter.
    assert_eq!(order(2, &[(Other, Some(0)), (Other, None)]), [2, 3]);
}
