//! Sets of defined bytes.

use broadloom_interp::check::defined::Bytes;

#[test]
fn ranges_are_set_and_cleared() {
    let mut bytes = Bytes::default();
    bytes.set(60, 10, true);
    assert!(!bytes.has(59) && bytes.has(60) && bytes.has(69) && !bytes.has(70));
    bytes.set(64, 2, false);
    assert!(bytes.has(63) && !bytes.has(64) && !bytes.has(65) && bytes.has(66));
    assert!(bytes.any(65, 2) && !bytes.any(64, 2));
    bytes.set(0, 256, true);
    assert!((0..256).all(|at| bytes.has(at)));
}
