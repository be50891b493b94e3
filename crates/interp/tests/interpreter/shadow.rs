//! Histories of pages and bytes.

use broadloom_interp::check::clock::Clock;
use broadloom_interp::check::history::{AccessEffect, Clash, History, Record, View};
use broadloom_interp::check::shadow::{Area, Shadow};
use broadloom_ptx::{Func, Inst};

#[test]
fn pages_split_for_bytes_and_keep_what_they_knew() {
    let (func, inst) = (Func::from_u32(0), Inst::from_u32(0));
    let record = Record { block: 1, thread: 2, time: 3, func, inst, manner: AccessEffect::PLAIN_WRITE };
    let clock = Clock::default();
    let view = View { block: 1, clock: &clock, met: &[] };
    let reader = Record { thread: 3, manner: AccessEffect::PLAIN_READ, ..record };
    let mut shadow = Shadow::default();
    shadow.places(Area::Device(1), 8, 4).for_each(|place| place.add(record, &view));
    let mut races = |area: Area, offset: u64, bytes: u64| {
        let clash = |place: &&mut History| place.clash(&reader, &view, |_, _| true) == Some(Clash::Race(record));
        shadow.places(area, offset, bytes).filter(clash).count()
    };
    assert_eq!(races(Area::Device(1), 9, 1), 1);
    assert_eq!(races(Area::Device(1), 4, 8), 4);
    assert_eq!(races(Area::Device(2), 8, 4), 0);
}
