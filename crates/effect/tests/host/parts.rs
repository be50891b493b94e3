//! Tests of parts of the library that need no image: regions of windows, sorting networks, and files that are
//! being written.

use broadloom_effect::effects::median::{exchanges, network};
use broadloom_effect::file::Problem;
use broadloom_effect::file::target::{Out, replace};
use broadloom_effect::functor::Reach;
use broadloom_effect::graph::region::{aligned, grown, shrunk};
use broadloom_effect::{Boundary, Rect};
use std::{fs, io};

#[test]
fn windows_at_an_edge_need_no_more_than_the_image() {
    let (bounds, reach) = (Rect::new(-5, 2, 40, 30), Reach { left: 3, right: 4, above: 1, below: 2 });
    let inner = Rect::new(10, 10, 5, 5);
    assert_eq!(grown(inner, reach, bounds, Boundary::Mirror), Rect::new(7, 9, 12, 8));
    assert_eq!(grown(Rect::new(-4, 2, 5, 5), reach, bounds, Boundary::Clamp), Rect::new(-5, 2, 10, 7));
    assert_eq!(grown(Rect::new(-4, 10, 5, 5), reach, bounds, Boundary::Wrap), Rect::new(-5, 9, 40, 8));
    assert_eq!(shrunk(bounds, reach), Some(Rect::new(-2, 3, 33, 27)));
    assert_eq!(shrunk(Rect::sized(7, 9), reach), None);
    assert_eq!(aligned(Rect::new(12, 10, 5, 5), bounds), Rect::new(11, 10, 16, 5));
    assert_eq!(aligned(Rect::new(30, 10, 5, 5), bounds), Rect::new(27, 10, 8, 5));
}

/// A network sorts all sequences if it sorts all sequences of zeros and ones.
#[test]
fn networks_sort() {
    for count in [1, 2, 3, 5, 9, 12] {
        for bits in 0..1u32 << count {
            let mut values: Vec<u32> = (0..count).map(|bit| bits >> bit & 1).collect();
            for (low, high) in network(count) {
                (values[low], values[high]) = (values[low].min(values[high]), values[low].max(values[high]));
            }
            assert!(values.is_sorted(), "{count} values, {bits:b}");
        }
    }
    for bits in 0..1u32 << 9 {
        let mut values: Vec<u32> = (0..9).map(|bit| bits >> bit & 1).collect();
        for (low, high) in exchanges(9) {
            (values[low], values[high]) = (values[low].min(values[high]), values[low].max(values[high]));
        }
        assert_eq!(values[4], u32::from(bits.count_ones() >= 5), "{bits:b}");
    }
    // Each bit of a word is a case: 64 at a time.
    let mut random = broadloom_random::Random::new(1);
    for _ in 0..2000 {
        let mut values: Vec<u64> = (0..25).map(|_| random.bits()).collect();
        let ones: Vec<u32> = (0..64).map(|bit| values.iter().map(|value| (value >> bit & 1) as u32).sum()).collect();
        for (low, high) in exchanges(25) {
            (values[low], values[high]) = (values[low] & values[high], values[low] | values[high]);
        }
        assert!((0..64).all(|bit| (values[12] >> bit & 1 == 1) == (ones[bit] >= 13)));
    }
    let mut many: Vec<usize> = (0..25).map(|i| i * 7 % 25).collect();
    for (low, high) in network(25) {
        (many[low], many[high]) = (many[low].min(many[high]), many[low].max(many[high]));
    }
    assert!(many.is_sorted());
}

#[test]
fn failures_leave_the_old_file_and_nothing_else() {
    let folder = std::env::temp_dir().join(format!("broadloom-target-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("x.png");
    let fail = |out: &mut dyn Out| {
        out.write_all(&[7; 1 << 17]).unwrap();
        Err(Problem::Write(io::ErrorKind::StorageFull.into()))
    };
    assert!(replace(&path, fail).is_err());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    replace(&path, |out| out.write_all(b"old").map_err(Problem::Write)).unwrap();
    assert!(replace(&path, fail).is_err());
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    fs::remove_dir_all(&folder).unwrap();
}
