//! Host facts: caches and processors.

use broadloom_device::parse_bytes;
use std::sync::OnceLock;

/// Returns the bytes of the last-level cache, if the host reports them.
pub(crate) fn cache_bytes() -> Option<u64> {
    caches().iter().map(|(_, bytes)| *bytes).max()
}

/// Returns the bytes of the second-level cache of a core, if the host reports them.
pub(crate) fn core_cache_bytes() -> Option<u64> {
    caches().iter().find(|(level, _)| *level == 2).map(|(_, bytes)| *bytes)
}

/// Returns the levels and sizes of the caches that a core uses.
fn caches() -> &'static [(u32, u64)] {
    static CACHES: OnceLock<Vec<(u32, u64)>> = OnceLock::new();
    let cache = |index: u32| {
        let told = |what: &str| std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{what}")).ok();
        Some((told("level")?.trim().parse().ok()?, parse_bytes(&told("size")?)?))
    };
    CACHES.get_or_init(|| (0..8).filter_map(cache).collect())
}

/// Pins the thread of a worker to its own processor, if this process has as many processors as workers.
///
/// Otherwise a worker that is woken by another one may wait on the same processor while another is idle,
/// until the system balances its load. That takes some milliseconds, in which a launch is over.
pub fn settle(worker: usize, workers: usize) {
    let bytes = size_of::<libc::cpu_set_t>();
    // SAFETY: a set of processors is plain bits, and both calls get its size.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, bytes, &raw mut allowed) != 0 || libc::CPU_COUNT(&allowed) as usize != workers {
            return;
        }
        let own = (0..8 * bytes).filter(|processor| libc::CPU_ISSET(*processor, &allowed)).nth(worker);
        let Some(own) = own else { return };
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(own, &mut one);
        // If it is refused, the system keeps choosing.
        libc::sched_setaffinity(0, bytes, &raw const one);
    }
}
