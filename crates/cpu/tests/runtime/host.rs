//! Workers and processors.

use broadloom_cpu::host::settle;

fn processors() -> usize {
    // SAFETY: as in `settle`.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut allowed), 0);
        libc::CPU_COUNT(&allowed) as usize
    }
}

#[test]
fn a_worker_has_a_processor_of_its_own_where_there_is_one_for_each() {
    let all = processors();
    let left = |worker, workers| {
        let thread = std::thread::spawn(move || {
            settle(worker, workers);
            processors()
        });
        thread.join().unwrap()
    };
    assert_eq!(left(0, all), 1);
    assert_eq!(left(all - 1, all), 1);
    assert_eq!(left(0, all + 1), all, "some would share, others be idle");
}
