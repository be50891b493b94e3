//! Layouts of chains.

use broadloom_device::{Machine, MachineKind};
use broadloom_skeleton::{ChainLayout, Reach};

fn machine() -> Machine {
    let own = broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())).machine().clone();
    Machine { kind: MachineKind::Cpu, ..own }
}

/// A window of two rows after another one: each stage lags by the rows that it looks down, and a ring holds
/// the rows that are still read.
#[test]
fn rings_hold_the_rows_that_are_still_read() {
    let reach = |stage: usize, above: u32, below: u32| Reach { stage, rows: (above, below), columns: (3, 4) };
    let (second, third) = ([reach(0, 2, 2)], [reach(1, 1, 0), reach(0, 0, 0)]);
    let stages: [(&[Reach], Vec<u32>, u64); 3] = [(&[], vec![4], 10), (&second, vec![4], 10), (&third, vec![0], 10)];
    let layout = ChainLayout::new(&stages, &machine()).unwrap();
    assert_eq!(layout.lags, [0, 2, 2]);
    assert_eq!(layout.rows, [(3, 2), (1, 0), (0, 0)]);
    assert_eq!(layout.columns, [(6, 8), (3, 4), (0, 0)]);
    assert_eq!(layout.rings, [5, 2, 1]);
    assert_eq!((layout.width, layout.most_around()), (1024, 8));
    assert_eq!(layout.bytes, (5 * (1024 + 14) * 4u64).next_multiple_of(64) + (2 * (1024 + 7) * 4u64).next_multiple_of(64));
    // Rings that are too long for any columns.
    let far = [Reach { stage: 0, rows: (4000, 0), columns: (0, 0) }];
    assert_eq!(ChainLayout::new(&[(&[], vec![4], 1), (&far, vec![0], 1)], &machine()), None);
}
