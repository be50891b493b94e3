//! Known bytes of the parameter block.

use broadloom_analysis::facts::KnownParams;

#[test]
fn known_bytes_are_found_again() {
    let mut params = KnownParams::default();
    params.set(8, 0x1122_3344, 4);
    assert_eq!(params.get(8, 4), Some(0x1122_3344));
    assert_eq!(params.get(9, 2), Some(0x2233));
    assert_eq!(params.get(8, 8), None);
    assert_eq!(params.get(0, 4), None);
    assert_eq!(params.get(12, 1), None);
    assert_eq!(KnownParams::block(&[1, 2, 3]).get(1, 2), Some(0x302));
}
