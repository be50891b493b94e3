//! Inspection of a program's file: whether it contains kernels, and whether it requests a library that can be
//! replaced.
//!
//! Only the section table and the names are read. **A file that cannot be judged is accepted: the system
//! reports what is wrong with it.**

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Maximum size in bytes of a table or of names.
const MOST: u64 = 64 << 20;

fn bytes_at(file: &mut File, at: u64, count: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![];
    file.seek(SeekFrom::Start(at)).ok()?;
    file.take(count.min(MOST)).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 == count).then_some(bytes)
}

fn number(bytes: &[u8], at: usize, count: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + count)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Properties of a program's file.
#[derive(Debug, Default)]
struct ElfProperties {
    /// True if the program contains kernels.
    has_kernels: bool,
    /// True if the program requests a library that can be replaced.
    replaceable: bool,
    /// True if the program has its own library folders, which are searched first.
    has_rpath: bool,
}

/// Inspects a program's file. Returns `None` if it cannot be judged.
fn elf_properties(path: &Path) -> Option<ElfProperties> {
    let mut file = File::open(path).ok()?;
    let head = bytes_at(&mut file, 0, 64)?;
    // Little-endian ELF-64.
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, size, count, names) =
        (number(&head, 40, 8)?, number(&head, 58, 2)?, number(&head, 60, 2)?, number(&head, 62, 2)?);
    let table = bytes_at(&mut file, table, size.checked_mul(count)?)?;
    let section = |index: u64| {
        let start = usize::try_from(index.checked_mul(size)?).ok()?;
        table.get(start..start.checked_add(64)?)
    };
    let contents = |file: &mut File, section: &[u8]| bytes_at(file, number(section, 24, 8)?, number(section, 32, 8)?);
    let names = contents(&mut file, section(names)?)?;
    let mut properties = ElfProperties::default();
    for section in (0..count).filter_map(section) {
        let name = names.get(usize::try_from(number(section, 0, 4)?).ok()?..).unwrap_or_default();
        properties.has_kernels |= name.starts_with(b".nv_fatbin\0");
        if name.starts_with(b".dynstr\0") {
            let linked = contents(&mut file, section)?;
            let asks_for = |name: &[u8]| linked.windows(name.len()).any(|bytes| bytes == name);
            properties.replaceable = asks_for(b"libcudart.so") || asks_for(b"libcuda.so");
        }
        if name.starts_with(b".dynamic\0") {
            const RPATH: u64 = 15;
            let entries = contents(&mut file, section)?;
            properties.has_rpath = entries.chunks_exact(16).any(|entry| number(entry, 0, 8) == Some(RPATH));
        }
    }
    Some(properties)
}

/// Returns the reason why a program cannot run with another runtime, if there is one.
pub fn objection(path: &Path) -> Option<&'static str> {
    let properties = elf_properties(path)?;
    let objection = "it was linked with the static CUDA runtime, which cannot be replaced";
    (properties.has_kernels && !properties.replaceable).then_some(objection)
}

/// Tests if a program finds the replacement library through the search path. Such a program requests NVIDIA's
/// libraries itself, and has no folders that are searched first.
pub fn finds_runtime(path: &Path) -> bool {
    elf_properties(path).is_some_and(|properties| properties.replaceable && !properties.has_rpath)
}
