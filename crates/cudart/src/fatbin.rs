//! Fat binaries: the container in which `nvcc` embeds device code in an executable.
//!
//! ```text
//! container   u32 0xBA55ED50, u16 version, u16 bytes of this header, u64 bytes behind it
//! entry       u16 kind (1 PTX, 2 machine code), u16 version, u32 bytes of this header, u64 bytes of the payload with padding,
//!             u32 bytes of the payload when compressed, u32 offset of options, u16 minor, u16 major, u32 architecture, …,
//!             at 40: u64 flags, at 56: u64 bytes when not compressed
//! ```
//!
//! PTX is zero-terminated text, either plain, compressed as an LZ4 block (flag 0x2000), or compressed as a
//! zstd frame (flag 0x8000). **Reading arbitrary bytes yields entries or an error text; it never panics.**

use std::io::Read;

const MAGIC: u32 = 0xba55_ed50;
const PTX: u16 = 1;
const MACHINE_CODE: u16 = 2;
const LZ4: u64 = 0x2000;
const ZSTD: u64 = 0x8000;
/// Size in bytes of a container's header, up to its size field.
pub(crate) const CONTAINER_HEADER: usize = 16;
/// Size in bytes of an entry's header, up to the last field that is read.
const ENTRY_HEADER: usize = 64;
/// Maximum size in bytes of one PTX module.
const MOST: u64 = 256 << 20;
/// Maximum expansion ratio of an LZ4 block.
const LZ4_RATIO: u64 = 255;
/// Maximum window size in bytes of a zstd frame.
const MOST_WINDOW: u64 = 128 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// PTX text.
    Ptx,
    /// Machine code of one architecture.
    MachineCode,
    /// Unknown kind, by its number.
    Other(u16),
}

/// An entry of a fat binary.
#[derive(Clone, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) kind: EntryKind,
    /// Architecture: 75 is `compute_75` or `sm_75`.
    pub(crate) architecture: u32,
    flags: u64,
    payload: &'a [u8],
    uncompressed: u64,
}

fn word<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.get(..N)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    word(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    word(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    word(bytes, at).map(u64::from_le_bytes)
}

/// Returns the total size of a container from its header, or `None` if the bytes are no container.
pub(crate) fn container_bytes(header: &[u8]) -> Option<usize> {
    if u32_at(header, 0)? != MAGIC {
        return None;
    }
    let own = usize::from(u16_at(header, 6)?);
    if own < CONTAINER_HEADER {
        return None;
    }
    own.checked_add(usize::try_from(u64_at(header, 8)?).ok()?)
}

/// Fat binary that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FatbinError {
    #[error("there is no fat binary")]
    Unmapped,
    #[error("it is no fat binary")]
    NoContainer,
    #[error("the fat binary is cut off")]
    CutOff,
    #[error("entry {0} of the fat binary is cut off")]
    EntryCutOff(usize),
    #[error("the fat binary is said to have {said} bytes, and there are no more than {there}")]
    Overlong { said: usize, there: usize },
    #[error("its PTX is said to have {said} bytes, and it can have no more than {most}")]
    Large { said: u64, most: u64 },
    #[error("its PTX cannot be unpacked: {0}")]
    Packed(String),
    #[error("its PTX is not text")]
    NotText,
    #[error("it holds no kernels")]
    NoKernels,
    #[error("it holds machine code for {0} and no PTX; compile the program with `-gencode arch=compute_75,code=compute_75`")]
    NoPtx(String),
}

/// Returns the entries of a container.
pub(crate) fn entries(bytes: &[u8]) -> Result<Vec<Entry<'_>>, FatbinError> {
    let whole = container_bytes(bytes).ok_or(FatbinError::NoContainer)?;
    let bytes = bytes.get(..whole).ok_or(FatbinError::CutOff)?;
    let own = u16_at(bytes, 6).map_or(CONTAINER_HEADER, usize::from);
    let mut rest = bytes.get(own..).unwrap_or_default();
    let mut found = vec![];
    while !rest.is_empty() {
        let entry = entry(rest).ok_or(FatbinError::EntryCutOff(found.len()))?;
        rest = rest.get(entry.1..).unwrap_or_default();
        found.push(entry.0);
    }
    Ok(found)
}

/// Parses the first entry. Returns the entry and its size in bytes.
fn entry(bytes: &[u8]) -> Option<(Entry<'_>, usize)> {
    let header = usize::try_from(u32_at(bytes, 4)?).ok().filter(|header| *header >= ENTRY_HEADER)?;
    let padded = usize::try_from(u64_at(bytes, 8)?).ok()?;
    let end = header.checked_add(padded)?;
    let flags = u64_at(bytes, 40)?;
    let mut payload = bytes.get(header..end)?;
    let compressed = usize::try_from(u32_at(bytes, 16)?).ok()?;
    if flags & (LZ4 | ZSTD) != 0 && compressed != 0 {
        payload = payload.get(..compressed)?;
    }
    let kind = match u16_at(bytes, 0)? {
        PTX => EntryKind::Ptx,
        MACHINE_CODE => EntryKind::MachineCode,
        other => EntryKind::Other(other),
    };
    Some((Entry { kind, architecture: u32_at(bytes, 28)?, flags, payload, uncompressed: u64_at(bytes, 56)? }, end))
}

impl Entry<'_> {
    /// Returns the text of a PTX entry, decompressed.
    pub(crate) fn text(&self) -> Result<String, FatbinError> {
        let packed = self.flags & (LZ4 | ZSTD) != 0;
        let said = if packed { self.uncompressed } else { self.payload.len() as u64 };
        // The claimed size of compressed data is checked before memory is allocated for it.
        let most = if self.flags & LZ4 != 0 { MOST.min(LZ4_RATIO * self.payload.len() as u64) } else { MOST };
        if said > most {
            return Err(FatbinError::Large { said, most });
        }
        let size = usize::try_from(said).unwrap_or(usize::MAX);
        let failed = |error: &dyn std::fmt::Display| FatbinError::Packed(error.to_string());
        let mut bytes = if self.flags & LZ4 != 0 {
            lz4_flex::block::decompress(self.payload, size).map_err(|error| failed(&error))?
        } else if self.flags & ZSTD != 0 {
            // The decoder keeps the whole window in memory, even for small reads.
            if zstd_window(self.payload).is_none_or(|window| window > MOST_WINDOW.max(said)) {
                return Err(failed(&"its frame looks back further than is allowed"));
            }
            let mut decoder = ruzstd::decoding::StreamingDecoder::new(self.payload).map_err(|error| failed(&error))?;
            let mut bytes = vec![];
            decoder.by_ref().take(said).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
            bytes
        } else {
            self.payload.to_vec()
        };
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        bytes.truncate(end);
        String::from_utf8(bytes).map_err(|_| FatbinError::NotText)
    }
}

/// Returns the window size of a zstd frame from its header (RFC 8878, 3.1.1.1).
fn zstd_window(frame: &[u8]) -> Option<u64> {
    const SINGLE_SEGMENT: u8 = 0x20;
    let descriptor = *frame.get(4)?;
    if descriptor & SINGLE_SEGMENT == 0 {
        let window = u64::from(*frame.get(5)?);
        let base = 1u64 << (10 + (window >> 3));
        return Some(base + base / 8 * (window & 7));
    }
    // A single segment: the window is the content size, which follows the dictionary ID.
    let at = 5 + [0, 1, 2, 4][usize::from(descriptor & 3)];
    match descriptor >> 6 {
        0 => frame.get(at).map(|size| u64::from(*size)),
        1 => u16_at(frame, at).map(|size| u64::from(size) + 256),
        2 => u32_at(frame, at).map(u64::from),
        _ => u64_at(frame, at),
    }
}

/// Selects the PTX for a machine of a given capability (75 is 7.5): the highest architecture that the machine
/// supports, or else the lowest one in the container.
pub(crate) fn best<'e, 'b>(entries: &'e [Entry<'b>], capability: u32) -> Result<&'e Entry<'b>, FatbinError> {
    let ptx = || entries.iter().filter(|entry| entry.kind == EntryKind::Ptx);
    let fits = ptx().filter(|entry| entry.architecture <= capability).max_by_key(|entry| entry.architecture);
    if let Some(found) = fits.or_else(|| ptx().min_by_key(|entry| entry.architecture)) {
        return Ok(found);
    }
    let mut code: Vec<u32> =
        entries.iter().filter(|entry| entry.kind == EntryKind::MachineCode).map(|entry| entry.architecture).collect();
    code.sort_unstable();
    code.dedup();
    let names: Vec<String> = code.iter().map(|architecture| format!("sm_{architecture}")).collect();
    Err(if names.is_empty() { FatbinError::NoKernels } else { FatbinError::NoPtx(names.join(", ")) })
}

/// Returns the highest architecture, up to a limit, for which the program contains PTX. PTX above the limit
/// counts as the limit, unless the program also contains code for lower architectures. In that case the PTX
/// only serves future machines.
pub(crate) fn highest_ptx(entries: &[Entry<'_>], limit: u32) -> Option<u32> {
    let ptx = || entries.iter().filter(|entry| entry.kind == EntryKind::Ptx).map(|entry| entry.architecture);
    let below = ptx().filter(|architecture| *architecture <= limit).max();
    let only_beyond = entries.iter().all(|entry| entry.architecture > limit) && ptx().next().is_some();
    below.or(only_beyond.then_some(limit))
}

/// Copies the container at an address. The size in its header is checked against the mapped memory.
pub(crate) fn container_at(address: usize) -> Result<Vec<u8>, FatbinError> {
    let header = crate::pointer::bytes_there(address, CONTAINER_HEADER).map_err(|_| FatbinError::Unmapped)?;
    let whole = container_bytes(&header).ok_or(FatbinError::NoContainer)?;
    let there = crate::mapped::readable(address);
    if whole > there {
        return Err(FatbinError::Overlong { said: whole, there });
    }
    crate::pointer::bytes_at(address, whole).map_err(|_| FatbinError::Unmapped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocations::largest;

    fn entry_of(kind: u16, architecture: u32, flags: u64, payload: &[u8], uncompressed: usize) -> Vec<u8> {
        let padded = payload.len().next_multiple_of(8);
        let mut bytes = vec![0; 64];
        bytes[0..2].copy_from_slice(&kind.to_le_bytes());
        bytes[2..4].copy_from_slice(&0x101u16.to_le_bytes());
        bytes[4..8].copy_from_slice(&64u32.to_le_bytes());
        bytes[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
        bytes[16..20].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        bytes[28..32].copy_from_slice(&architecture.to_le_bytes());
        bytes[40..48].copy_from_slice(&flags.to_le_bytes());
        bytes[56..64].copy_from_slice(&(uncompressed as u64).to_le_bytes());
        bytes.extend(payload);
        bytes.resize(64 + padded, 0);
        bytes
    }

    fn container(entries: &[Vec<u8>]) -> Vec<u8> {
        let body = entries.concat();
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.extend([1, 0, 16, 0]);
        bytes.extend((body.len() as u64).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    const TEXT: &str =
        ".version 7.0\n.target sm_75\n.address_size 64\n// aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n";

    fn zero_ended() -> Vec<u8> {
        [TEXT.as_bytes(), &[0]].concat()
    }

    #[test]
    fn plain_and_packed_text_is_the_same() {
        let packed = lz4_flex::block::compress(&zero_ended());
        let frame = ruzstd::encoding::compress_to_vec(zero_ended().as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
        let bytes = container(&[
            entry_of(PTX, 75, 0x11, &zero_ended(), 0),
            entry_of(PTX, 80, 0x11 | LZ4, &packed, zero_ended().len()),
            entry_of(PTX, 90, 0x11 | ZSTD, &frame, zero_ended().len()),
        ]);
        let entries = entries(&bytes).unwrap();
        assert_eq!(entries.iter().map(|entry| entry.architecture).collect::<Vec<_>>(), [75, 80, 90]);
        for entry in &entries {
            assert_eq!(entry.text().unwrap(), TEXT);
        }
    }

    #[test]
    fn the_best_entry_is_the_highest_that_fits() {
        let ptx = |architecture| entry_of(PTX, architecture, 0, &zero_ended(), 0);
        let bytes = container(&[ptx(90), ptx(70), entry_of(MACHINE_CODE, 75, 0, &[1; 8], 0), ptx(60)]);
        let all = entries(&bytes).unwrap();
        let chosen = |capability| best(&all, capability).map(|entry| entry.architecture);
        assert_eq!((chosen(75), chosen(90), chosen(120), chosen(50)), (Ok(70), Ok(90), Ok(90), Ok(60)));
        assert_eq!((highest_ptx(&all, 90), highest_ptx(&all, 80), highest_ptx(&all, 50)), (Some(90), Some(70), Some(50)));
        // PTX for future machines, beside code for current ones.
        let later = container(&[entry_of(MACHINE_CODE, 75, 0, &[1; 8], 0), ptx(120)]);
        assert_eq!(highest_ptx(&entries(&later).unwrap(), 90), None);
        let code = container(&[entry_of(MACHINE_CODE, 86, 0, &[1; 8], 0), entry_of(MACHINE_CODE, 75, 0, &[1; 8], 0)]);
        let refused = best(&entries(&code).unwrap(), 75).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "it holds machine code for sm_75, sm_86 and no PTX; compile the program with `-gencode arch=compute_75,code=compute_75`"
        );
        assert_eq!(best(&entries(&container(&[])).unwrap(), 75).unwrap_err(), FatbinError::NoKernels);
    }

    /// Truncates and modifies every byte: reading yields entries or an error text.
    #[test]
    fn broken_bytes_are_refused() {
        let packed = lz4_flex::block::compress(&zero_ended());
        let frame = ruzstd::encoding::compress_to_vec(zero_ended().as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
        let bytes = container(&[
            entry_of(PTX, 80, LZ4, &packed, zero_ended().len()),
            entry_of(PTX, 90, ZSTD, &frame, zero_ended().len()),
        ]);
        for cut in 0..bytes.len() {
            assert!(entries(&bytes[..cut]).is_err(), "{cut} bytes");
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut broken = bytes.clone();
                broken[at] = value;
                for entry in entries(&broken).unwrap_or_default() {
                    let _ = entry.text();
                }
            }
        }
        assert_eq!(entries(b"\x7fELF, and more of it").unwrap_err(), FatbinError::NoContainer);
    }

    /// Implausible sizes are refused before memory is allocated for them.
    #[test]
    fn sizes_are_not_believed() {
        let packed = lz4_flex::block::compress(&zero_ended());
        let frame = ruzstd::encoding::compress_to_vec(zero_ended().as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
        let text = |flags, payload: &[u8], size: usize| {
            let bytes = container(&[entry_of(PTX, 80, flags, payload, size)]);
            let (outcome, taken) = largest(|| entries(&bytes).unwrap()[0].text());
            assert!(taken < 4 << 20, "{taken} bytes at once");
            outcome
        };
        for size in [packed.len() * 255 + 1, 1 << 30, 243 << 40, usize::MAX] {
            assert!(text(LZ4, &packed, size).unwrap_err().to_string().contains("can have no more than"), "{size}");
        }
        for size in [(MOST + 1) as usize, usize::MAX] {
            assert!(text(ZSTD, &frame, size).unwrap_err().to_string().contains("can have no more than"), "{size}");
        }
        // A frame with an understated size is truncated. A frame with a window of terabytes is refused.
        assert_eq!(text(ZSTD, &frame, 8).unwrap(), TEXT[..8]);
        let far = [&[0x28, 0xb5, 0x2f, 0xfd, 0, 0xff][..], &[0; 16]].concat();
        assert!(text(ZSTD, &far, 100).unwrap_err().to_string().contains("looks back"));
        let segment = [&[0x28, 0xb5, 0x2f, 0xfd, 0xe0][..], &[0xff; 16]].concat();
        assert!(text(ZSTD, &segment, 100).unwrap_err().to_string().contains("looks back"));
        assert_eq!((zstd_window(&frame).is_some(), zstd_window(&[0; 4])), (true, None));
    }

    /// Returns the containers of compiled programs.
    fn real() -> Vec<Vec<u8>> {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cuda/bin");
        let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let mut found = vec![];
        for path in paths {
            let bytes = std::fs::read(path).unwrap();
            for at in (0..bytes.len()).step_by(8) {
                let whole = container_bytes(&bytes[at..]).filter(|whole| *whole > 64);
                found.extend(whole.and_then(|whole| bytes[at..].get(..whole)).map(<[u8]>::to_vec));
            }
        }
        found
    }

    /// Real fat binaries with modified bytes yield text or an error, without large allocations.
    #[test]
    fn mutants_of_real_binaries_are_refused_or_read() {
        let real = real();
        assert!(real.len() >= 8, "{} containers", real.len());
        for container in &real {
            let entries = entries(container).unwrap();
            assert!(
                entries
                    .iter()
                    .filter(|entry| entry.kind == EntryKind::Ptx)
                    .all(|entry| entry.text().unwrap().contains(".version"))
            );
        }
        let mut numbers = broadloom_random::Random::new(1);
        let mut random = |below: usize| numbers.below(below);
        const WORDS: [u64; 10] = [0, 1, 7, 63, 0x7fff_ffff, 0xffff_ffff, 1 << 40, 243 << 40, u64::MAX >> 1, u64::MAX];
        let (mut read, mut refused) = (0, 0);
        for round in 0..4000 {
            let mut bytes = real[round % real.len()].clone();
            for _ in 0..=random(3) {
                // Half of the changes hit the headers.
                let at = if random(2) == 0 { random(96.min(bytes.len())) } else { random(bytes.len()) };
                match random(4) {
                    0 => bytes[at] ^= 1 << random(8),
                    1 => bytes[at] = random(256) as u8,
                    2 => {
                        let (at, word) = (at & !7, WORDS[random(WORDS.len())].to_le_bytes());
                        bytes.iter_mut().skip(at).zip(word).for_each(|(byte, new)| *byte = new);
                    }
                    _ => bytes.truncate(at.max(1)),
                }
            }
            let ((), taken) = largest(|| match entries(&bytes) {
                Err(_) => refused += 1,
                Ok(all) => {
                    let _ = best(&all, 75);
                    all.iter().for_each(|entry| if entry.text().is_ok() { read += 1 } else { refused += 1 });
                }
            });
            assert!(taken < 16 << 20, "mutant {round} took {taken} bytes at once");
        }
        assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
    }
}
