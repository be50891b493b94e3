//! Shapes of clusters and their barriers.

use broadloom_cpu::cluster::{ClusterBarrier, ClusterShape};

#[test]
fn blocks_of_a_cluster_lie_beside_each_other() {
    let shape = ClusterShape { size: [2, 2, 1], explicit: true };
    let grid = [4, 2, 3];
    assert_eq!(shape.ctaid(grid, 0, 3), [1, 1, 0]);
    assert_eq!(shape.ctaid(grid, 1, 0), [2, 0, 0]);
    assert_eq!(shape.ctaid(grid, 2, 1), [1, 0, 1]);
    let mut seen: Vec<[u32; 3]> = (0..6).flat_map(|cluster| (0..4).map(move |rank| shape.ctaid(grid, cluster, rank))).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 24);
    assert_eq!(ClusterShape::default().ctaid(grid, 13, 0), [1, 1, 1]);
}

#[test]
fn who_has_ended_is_not_waited_for() {
    let mut barrier = ClusterBarrier::new(3);
    assert!(!barrier.complete());
    barrier.arrived = 2;
    assert!(!barrier.complete());
    barrier.alive = 2;
    assert!(barrier.complete());
    assert_eq!((barrier.phase, barrier.arrived), (1, 0));
}
