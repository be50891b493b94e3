//! Fat binaries in ELF objects of a host compiler, and in archives of such objects.
//!
//! `nvcc` puts device code into sections of an ELF object, one fat binary after the other. **Reading
//! arbitrary bytes yields fat binaries or an error; it never panics.**

use crate::fatbin::container_bytes;

const ARCHIVE: &[u8] = b"!<arch>\n";
/// Size of a member's header in bytes.
const MEMBER: usize = 60;
/// Position of the size, in decimal digits, in a member's header.
const SIZE: std::ops::Range<usize> = 48..58;
/// Sections that hold fat binaries: of whole programs, and of relocatable code (`-rdc=true`).
const SECTIONS: [&[u8]; 2] = [b".nv_fatbin", b"__nv_relfatbin"];
/// Alignment of fat binaries in their section.
const ALIGNMENT: usize = 8;

/// Archive or object that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ArchiveError {
    #[error("it is no archive")]
    NoArchive,
    #[error("member {0} of the archive is cut off")]
    MemberCutOff(usize),
    #[error("it is no object of 64 bits, or it is cut off")]
    NoObject,
    #[error("a fat binary is cut off")]
    FatBinaryCutOff,
}

/// Returns the files in an archive, without its symbol and name tables.
pub(crate) fn members(bytes: &[u8]) -> Result<Vec<&[u8]>, ArchiveError> {
    let mut rest = bytes.strip_prefix(ARCHIVE).ok_or(ArchiveError::NoArchive)?;
    let mut members = vec![];
    while !rest.is_empty() {
        let cut = || ArchiveError::MemberCutOff(members.len());
        let header = rest.get(..MEMBER).filter(|header| header.ends_with(b"`\n")).ok_or_else(cut)?;
        let size = std::str::from_utf8(&header[SIZE]).ok().and_then(|size| size.trim().parse::<usize>().ok()).ok_or_else(cut)?;
        let contents = rest[MEMBER..].get(..size).ok_or_else(cut)?;
        let name = header[..16].trim_ascii_end();
        if !matches!(name, b"/" | b"//" | b"/SYM64/") {
            members.push(contents);
        }
        // Members start at even offsets.
        rest = rest.get(MEMBER + size + size % 2..).unwrap_or_default();
    }
    Ok(members)
}

/// Returns the fat binaries in an object.
pub(crate) fn fat_binaries(object: &[u8]) -> Result<Vec<&[u8]>, ArchiveError> {
    let mut found = vec![];
    for section in sections(object).ok_or(ArchiveError::NoObject)? {
        let mut rest = section;
        while rest.len() >= crate::fatbin::CONTAINER_HEADER {
            match container_bytes(rest) {
                Some(size) => {
                    found.push(rest.get(..size).ok_or(ArchiveError::FatBinaryCutOff)?);
                    rest = rest.get(size.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
                }
                None => rest = &rest[ALIGNMENT..],
            }
        }
    }
    Ok(found)
}

/// Returns the contents of the sections that hold fat binaries (ELF-64, "Sections").
fn sections(object: &[u8]) -> Option<Vec<&[u8]>> {
    let u16_at = |at: usize| object.get(at..)?.first_chunk().copied().map(u16::from_le_bytes).map(usize::from);
    let u32_at = |at: usize| object.get(at..)?.first_chunk().copied().map(u32::from_le_bytes).map(|value| value as usize);
    let u64_at = |at: usize| {
        object.get(at..)?.first_chunk().copied().map(u64::from_le_bytes).and_then(|value| usize::try_from(value).ok())
    };
    // Magic number of little-endian ELF-64.
    if !object.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, step, count, names) = (u64_at(0x28)?, u16_at(0x3a)?, u16_at(0x3c)?, u16_at(0x3e)?);
    let header = |index: usize| table.checked_add(index.checked_mul(step)?);
    let contents = |header: usize| {
        let start = u64_at(header.checked_add(24)?)?;
        object.get(start..start.checked_add(u64_at(header.checked_add(32)?)?)?)
    };
    let names = contents(header(names)?)?;
    let mut found = vec![];
    for index in 0..count {
        let header = header(index)?;
        let name = names.get(u32_at(header)?..)?;
        let name = name.split(|byte| *byte == 0).next()?;
        if SECTIONS.contains(&name) {
            found.push(contents(header)?);
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds an object with the null section, one section of fat binaries and the section of names.
    fn object(section: &[u8]) -> Vec<u8> {
        let names = b"\0__nv_relfatbin\0.shstrtab\0";
        let mut object = b"\x7fELF\x02\x01\x01".to_vec();
        object.resize(64, 0);
        let mut headers = vec![0; 64];
        for (name, bytes) in [(1u32, section), (16, names)] {
            let mut header = vec![0; 64];
            header[..4].copy_from_slice(&name.to_le_bytes());
            header[24..32].copy_from_slice(&(object.len() as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            object.extend(bytes);
            headers.extend(header);
        }
        let table = object.len() as u64;
        object[0x28..0x30].copy_from_slice(&table.to_le_bytes());
        for (at, value) in [(0x3a, 64u16), (0x3c, 3), (0x3e, 2)] {
            object[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        object.extend(headers);
        object
    }

    fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = ARCHIVE.to_vec();
        for (name, contents) in members {
            bytes.extend(format!("{name:<16}{:<32}{:<10}`\n", "0", contents.len()).bytes());
            bytes.extend(*contents);
            bytes.resize(bytes.len().next_multiple_of(2), b'\n');
        }
        bytes
    }

    fn container(payload: &[u8]) -> Vec<u8> {
        let mut bytes = 0xba55_ed50u32.to_le_bytes().to_vec();
        bytes.extend(1u16.to_le_bytes());
        bytes.extend(16u16.to_le_bytes());
        bytes.extend((payload.len() as u64).to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn all_fat_binaries_of_all_objects_are_found() {
        let (first, second) = (container(b"abc"), container(b"defgh"));
        let mut section = first.clone();
        section.resize(section.len().next_multiple_of(ALIGNMENT) + ALIGNMENT, 0);
        section.extend(&second);
        let object = object(&section);
        assert_eq!(fat_binaries(&object).unwrap(), [&first[..], &second[..]]);
        let archive = archive(&[("/", b"table"), ("//", b"names"), ("a.o/", &object), ("b.o/", b"odd")]);
        assert_eq!(members(&archive).unwrap(), [&object[..], b"odd"]);
    }

    #[test]
    fn damage_is_told() {
        let object = object(&container(b"abc"));
        let archive = archive(&[("a.o/", &object)]);
        // An object of odd size is followed by one byte of padding.
        for end in 0..archive.len() / 2 * 2 - object.len() % 2 {
            assert!(end == ARCHIVE.len() || members(&archive[..end]).is_err(), "{end}");
        }
        // The last fields of the section table are not read.
        let table = usize::try_from(u64::from_le_bytes(object[40..48].try_into().unwrap())).unwrap();
        for end in 0..=table {
            assert!(fat_binaries(&object[..end]).is_err(), "{end}");
        }
        for at in 0..object.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = object.clone();
                damaged[at] = value;
                let _ = fat_binaries(&damaged);
            }
        }
    }
}
