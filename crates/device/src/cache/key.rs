//! Keys of compiled code: digests of everything that the code depends on.

use std::fmt::Write as _;

/// Version of the format of entries and their names.
pub(super) const FORMAT: u32 = 4;

/// Inputs of compiled code. They include everything that the code depends on.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// Device: `cpu`, `cuda`.
    pub device: &'static str,
    /// Digest of the source code.
    pub code: [u8; 32],
    /// Compiler: the version of Broadloom, with the build if that matters.
    pub version: &'a str,
    /// Target: features of the CPU, or the GPU and its driver.
    pub machine: &'a str,
    /// Options, and the block shape.
    pub options: &'a str,
}

/// Returns the digest of bytes.
pub fn digest(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}

/// Key of compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub(super) device: &'static str,
    pub(super) whole: [u8; 32],
    code: [u8; 16],
    /// Version, machine and options.
    rest: [[u8; 8]; 3],
}

impl Key {
    /// Computes the key for the inputs.
    pub fn new(origin: &Origin<'_>) -> Key {
        let Origin { device, code, version, machine, options } = *origin;
        // Entries in another format count as made by another version.
        let version = format!("{} {version}", FORMAT);
        let parts = [&version, machine, options].map(|text| *blake3::hash(text.as_bytes()).as_bytes());
        let mut whole = blake3::Hasher::new();
        whole.update(device.as_bytes()).update(&code);
        parts.iter().for_each(|part| {
            whole.update(part);
        });
        let first = |part: [u8; 32]| *part.first_chunk().unwrap_or(&[0; 8]);
        let code = *code.first_chunk().unwrap_or(&[0; 16]);
        Key { device, whole: *whole.finalize().as_bytes(), code, rest: parts.map(first) }
    }

    /// Returns the names of the entry's folder and file. They start with the code, so that entries of the
    /// same code are found.
    pub(super) fn names(&self) -> (String, String) {
        let code = hex(&self.code);
        let [version, machine, options] = self.rest.map(|part| hex(&part));
        (code[..2].to_owned(), format!("{code}-{version}-{machine}-{options}"))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
