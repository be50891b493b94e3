//! Mapped pages.

use broadloom_cpu::map::{HUGE_PAGE, Mapping, Pages, page_bytes};

#[test]
fn pages_are_aligned_and_usable_to_the_last_byte() {
    for (pages, bytes) in
        [(Pages::Data, 1), (Pages::Data, 5 << 20), (Pages::Sparse, 5 << 20), (Pages::Stack, 100_000), (Pages::Code, 4096)]
    {
        let mapping = Mapping::new(bytes, pages).unwrap();
        assert!(mapping.bytes() >= bytes);
        let align = if pages == Pages::Data && bytes >= HUGE_PAGE { HUGE_PAGE } else { page_bytes() };
        assert_eq!(mapping.start() as usize % align, 0);
        // SAFETY: the first and the last byte are inside the mapping.
        unsafe {
            mapping.start().write(1);
            mapping.start().add(mapping.bytes() - 1).write(2);
            assert_eq!(mapping.start().read(), 1);
        }
        assert!(mapping.in_guard(mapping.start() as usize - 1));
        assert!(!mapping.in_guard(mapping.start() as usize));
    }
}

#[test]
fn slack_may_be_touched_on_both_sides() {
    for (bytes, slack) in [(1, 1), (100_000, HUGE_PAGE), (5 << 20, HUGE_PAGE)] {
        let mapping = Mapping::with_slack(bytes, Pages::Data, slack).unwrap();
        assert!(mapping.bytes() < bytes + page_bytes());
        // SAFETY: the slack of the mapping begins `slack` bytes before it and ends as many behind it.
        unsafe {
            mapping.start().sub(slack).write(1);
            mapping.start().add(mapping.bytes() + slack - 1).write(2);
            assert_eq!(mapping.start().sub(1).read(), u8::from(slack == 1));
            assert_eq!(mapping.start().read(), 0);
        }
    }
}

#[test]
fn more_than_there_is_is_an_error() {
    assert!(Mapping::with_slack(1, Pages::Data, usize::MAX / 2).is_err());
    assert!(Mapping::new(usize::MAX - 100, Pages::Data).is_err());
    assert!(Mapping::new(usize::MAX / 2, Pages::Data).is_err());
}
