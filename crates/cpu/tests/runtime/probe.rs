//! Reads of memory that may be missing.

use broadloom_cpu::faults::{Gate, guard};
use broadloom_cpu::map::{Mapping, Pages};
use broadloom_cpu::probe::copy;

#[test]
fn what_is_there_is_read_and_what_is_not_is_told() {
    let gate = Gate::new();
    let _guard = guard(&gate);
    let mapping = Mapping::new(4096, Pages::Data).unwrap();
    let end = mapping.start() as u64 + mapping.bytes() as u64;
    // SAFETY: the last bytes of the mapping.
    unsafe { std::ptr::copy_nonoverlapping(b"hello".as_ptr(), (end - 5) as *mut u8, 5) };
    let mut bytes = [9; 8];
    assert_eq!(copy(end - 5, &mut bytes[..5], false), Some(5));
    assert_eq!(&bytes, b"hello\x09\x09\x09");
    assert_eq!(copy(end - 5, &mut bytes, true), None, "no zero before the end of memory");
    assert_eq!(copy(end - 20, &mut bytes, true), Some(0));
    for stray in [0, 8, end, end + 8, u64::MAX, 1 << 63] {
        assert_eq!(copy(stray, &mut bytes, false), None, "{stray:#x}");
    }
}
