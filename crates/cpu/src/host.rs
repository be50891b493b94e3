//! What the host says of its caches and processors.

use broadloom_device::parse_bytes;
use std::sync::OnceLock;

/// Bytes of the last-level cache, where the host tells.
pub(crate) fn cache_bytes() -> Option<u64> {
    static BYTES: OnceLock<Option<u64>> = OnceLock::new();
    let size = |index: u32| {
        let text = std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size")).ok()?;
        parse_bytes(&text)
    };
    *BYTES.get_or_init(|| (0..8).filter_map(size).max())
}

/// Keeps the thread of a worker on a processor of its own, where there are as many for this process as there are workers.
///
/// A worker that is woken by another one may otherwise wait on the same processor, while one is idle, until the system balances its load:
/// some milliseconds, in which a launch is over.
pub(crate) fn settle(worker: usize, workers: usize) {
    let bytes = size_of::<libc::cpu_set_t>();
    // SAFETY: a set of processors is plain bits, and both calls are told how many there are.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, bytes, &raw mut allowed) != 0 || libc::CPU_COUNT(&allowed) as usize != workers {
            return;
        }
        let own = (0..8 * bytes).filter(|processor| libc::CPU_ISSET(*processor, &allowed)).nth(worker);
        let Some(own) = own else { return };
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(own, &mut one);
        // Where it is refused, the system goes on to choose.
        libc::sched_setaffinity(0, bytes, &raw const one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
