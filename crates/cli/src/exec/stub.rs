//! Shared libraries that hold nothing but a name: what a compiled CUDA program asks the system's loader for.
//!
//! A program that was linked with NVIDIA's runtime names a library, `libcudart.so.12`, and a version of its symbols, which has the same name. The
//! library written here has both, and depends on the one that has the functions: the loader finds them there, since symbols without a version
//! serve for any. The format is that of the System V ABI and of the LSB for versions; a library is one segment of a few hundred bytes.

/// Where the segment lies.
const PAGE: u64 = 0x1000;

/// The machine that this is built for, as ELF numbers them.
const MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

/// Texts one behind the other, each with a zero behind it.
struct Texts(Vec<u8>);

impl Texts {
    fn add(&mut self, text: &str) -> u64 {
        let at = self.0.len() as u64;
        self.0.extend(text.as_bytes());
        self.0.push(0);
        at
    }
}

/// The hash of a name in tables of symbols and versions.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0u32, |hash, byte| {
        let hash = (hash << 4).wrapping_add(u32::from(byte));
        let high = hash & 0xf000_0000;
        (hash ^ (high >> 24)) & !high
    })
}

/// A library of a name that depends on another one; `version` is a version of symbols that it has.
pub fn library(name: &str, version: Option<&str>, needs: &str) -> Vec<u8> {
    const HEADERS: u64 = 64 + 3 * 56;
    let mut texts = Texts(vec![0]);
    let (name_at, needs_at, origin_at) = (texts.add(name), texts.add(needs), texts.add("$ORIGIN"));
    let version_at = version.map(|version| texts.add(version));

    // Behind the headers: texts, one empty symbol, a table of hashes for it, its version, versions, and what the loader reads.
    let text_at = HEADERS;
    let symbols_at = (text_at + texts.0.len() as u64).next_multiple_of(8);
    let hashes_at = symbols_at + 24;
    let symbol_version_at = hashes_at + 16;
    let versions_at = symbol_version_at + 8;
    let mut versions: Vec<u8> = vec![];
    let mut define = |flags: u16, index: u16, text: &str, at: u64, last: bool| {
        for half in [1, flags, index, 1] {
            versions.extend(half.to_le_bytes());
        }
        for word in [hash(text), 20, if last { 0 } else { 28 }, at as u32, 0] {
            versions.extend(word.to_le_bytes());
        }
    };
    define(1, 1, name, name_at, version.is_none());
    if let (Some(version), Some(at)) = (version, version_at) {
        define(0, 2, version, at, true);
    }
    let dynamic_at = (versions_at + versions.len() as u64).next_multiple_of(8);
    let tags: [(u64, u64); 12] = [
        (1, needs_at),
        (14, name_at),
        (29, origin_at),
        (4, hashes_at),
        (5, text_at),
        (10, texts.0.len() as u64),
        (6, symbols_at),
        (11, 24),
        (0x6fff_fff0, symbol_version_at),
        (0x6fff_fffc, versions_at),
        (0x6fff_fffd, 1 + u64::from(version.is_some())),
        (0, 0),
    ];
    let end = dynamic_at + 16 * tags.len() as u64;

    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    for half in [3, MACHINE] {
        bytes.extend(half.to_le_bytes());
    }
    bytes.extend(1u32.to_le_bytes());
    for word in [0u64, 64, 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(0u32.to_le_bytes());
    for half in [64u16, 56, 3, 64, 0, 0] {
        bytes.extend(half.to_le_bytes());
    }
    // The loader may write addresses into what it reads, so all of it is writable; the stack need not be executable.
    for (kind, flags, at, size, align) in
        [(1u32, 6u32, 0, end, PAGE), (2, 6, dynamic_at, end - dynamic_at, 8), (0x6474_e551, 6, 0, 0, 16)]
    {
        bytes.extend(kind.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        for word in [at, at, at, size, size, align] {
            bytes.extend(word.to_le_bytes());
        }
    }
    bytes.extend(&texts.0);
    bytes.resize((symbols_at + 24) as usize, 0);
    for word in [1u32, 1, 0, 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.resize(versions_at as usize, 0);
    bytes.extend(versions);
    bytes.resize(dynamic_at as usize, 0);
    for (tag, value) in tags {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(value.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_hashes_of_the_format() {
        assert_eq!((hash(""), hash("GLIBC_2.2.5")), (0, 0x0969_1a75));
        assert_ne!(hash("libcudart.so.12"), hash("libcudart.so.13"));
    }

    #[test]
    fn a_library_is_small_and_whole() {
        for version in [None, Some("libcudart.so.12")] {
            let bytes = library("libcudart.so.12", version, "libbroadloom_cudart.so");
            assert!(bytes.len() < 1024);
            let size = u64::from_le_bytes(bytes[64 + 32..64 + 40].try_into().unwrap());
            assert_eq!(size, bytes.len() as u64);
        }
    }
}
