//! Device memory: adopted and freed ranges.

use broadloom_interp::memory::{AccessError, FIRST, FUNCTION_BASE, GAP, Memory, Owner, SHARED_BASE};

#[test]
fn what_is_adopted_lies_where_it_lies() {
    let mut memory = Memory::new(1 << 20, FIRST);
    let first = memory.allocate(100, Owner::Buffer).unwrap();
    let place = first + 2 * GAP + 16;
    assert!(memory.adopt(place, 1000).is_ok());
    assert!(memory.adopt(place + 999, 8).is_err() && memory.adopt(first, 8).is_err());
    assert!(memory.adopt(0, 8).is_err() && memory.adopt(SHARED_BASE, 8).is_err() && memory.adopt(u64::MAX - 8, 16).is_err());
    assert!(memory.adopt(FUNCTION_BASE + 64, 8).is_err());
    let second = memory.allocate(100, Owner::Buffer).unwrap();
    assert!(second >= place + 1000 + GAP);
    memory.range("test", place + 990, 10).unwrap().fill(7);
    assert!(memory.range("test", place + 990, 11).is_err());
    // Its addresses may be reused, and are then zero.
    let serial = memory.serial_of(place).unwrap().0;
    memory.free(place).unwrap();
    assert!(matches!(memory.find(place, 1), Err(AccessError::Freed(..))));
    memory.adopt(place + 8, 992).unwrap();
    assert_eq!(memory.range("test", place + 990, 10).unwrap(), [0; 10]);
    assert!(memory.find(place, 1).is_err());
    assert_ne!(memory.serial_of(place + 8).unwrap().0, serial);
    assert_eq!(memory.used(), 200 + 992);
}
