//! Size of the readable memory at an address given by a program.
//!
//! A fat binary states its own size, and a broken one may state any size. The size is compared with the
//! mapped memory before anything is read. Fat binaries of programs lie in segments that the loader lists;
//! other addresses are looked up in `/proc/self/maps`.

use std::ffi::c_void;
use std::io::{BufRead, BufReader};

/// Returns the number of readable bytes at an address, or 0 if there are none or the number is unknown.
pub(crate) fn readable(address: usize) -> usize {
    in_segments(address).or_else(|| in_mappings(address)).unwrap_or(0)
}

/// Address, and the number of bytes up to the end of its segment.
struct Search {
    address: u64,
    found: Option<u64>,
}

/// Looks up an address in the segments of the program and its libraries.
fn in_segments(address: usize) -> Option<usize> {
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> i32 {
        // SAFETY: the loader passes a description that is valid during this call, with the stated number of
        // headers. The search is the one below, and nothing else accesses it meanwhile.
        let (base, headers, search) = unsafe {
            let info = &*info;
            let headers: &[libc::Elf64_Phdr] = if info.dlpi_phdr.is_null() {
                &[]
            } else {
                std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum))
            };
            (info.dlpi_addr, headers, &mut *search.cast::<Search>())
        };
        for header in headers.iter().filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_R != 0) {
            let offset = search.address.wrapping_sub(base.wrapping_add(header.p_vaddr));
            if offset < header.p_memsz {
                search.found = Some(header.p_memsz - offset);
                return 1;
            }
        }
        0
    }
    let mut search = Search { address: address as u64, found: None };
    // SAFETY: the function is called only during this call, with a search that outlives it.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found.and_then(|bytes| usize::try_from(bytes).ok())
}

/// Looks up an address in all mappings of the process.
fn in_mappings(address: usize) -> Option<usize> {
    let maps = BufReader::new(std::fs::File::open("/proc/self/maps").ok()?);
    extent(address, maps.lines().map_while(Result::ok))
}

/// Returns the number of readable bytes at an address, from lines such as `7f00-8f00 r--p …` in address
/// order.
fn extent(address: usize, lines: impl Iterator<Item = String>) -> Option<usize> {
    let mut end = None;
    for line in lines {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let (from, to) = (usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?);
        let is_readable = rest.starts_with('r');
        match end {
            None if !(from..to).contains(&address) => {}
            None if is_readable => end = Some(to),
            None => return None,
            Some(before) if before == from && is_readable => end = Some(to),
            Some(_) => break,
        }
    }
    end.map(|end| end - address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_side_by_side_are_one() {
        let maps = ["1000-2000 r--p 0", "2000-3000 rw-p 0", "3000-4000 ---p 0", "5000-6000 r-xp 0", "7000-8000 rw-p 0"];
        let found = |address| extent(address, maps.iter().map(|line| (*line).to_owned()));
        assert_eq!((found(0x1000), found(0x1fff), found(0x2ff0)), (Some(0x2000), Some(0x1001), Some(0x10)));
        assert_eq!((found(0x3000), found(0x4000), found(0x5800), found(0xfff)), (None, None, Some(0x800), None));
        assert_eq!(extent(0, ["nonsense".to_owned()].into_iter()), None);
    }

    #[test]
    fn constants_and_heap_are_there() {
        static WORDS: [u64; 4] = [1, 2, 3, 4];
        let heap = vec![0u8; 100_000];
        assert!(in_segments(WORDS.as_ptr() as usize).is_some_and(|bytes| bytes >= size_of_val(&WORDS)));
        assert_eq!(in_segments(heap.as_ptr() as usize), None);
        assert!(readable(heap.as_ptr() as usize) >= heap.len());
        assert_eq!((readable(0), readable(8), readable(usize::MAX)), (0, 0, 0));
    }
}
