//! Cache of compiled code of every device, in memory and on disk.
//!
//! A [`Key`] consists of the code, the version of Broadloom, the machine and the options. Each part is hashed
//! separately, so that a [`Miss`] can report which part has changed. On disk every entry is a file that is
//! written aside and renamed, so processes can share the folder. An entry carries its key and a tag; a
//! damaged entry counts as missing. The folder has a maximum size and evicts the least recently used files.
//! **No problem with the folder is an error: without it, code is compiled again.**
//!
//! Code of an entry is executed, so it must be this user's own. Folders and files that another user could
//! have written are not opened ([`private`](crate::private)). The tag of an entry is a hash keyed by the
//! user's [`Secret`](crate::private::Secret), so entries of others count as damaged. Without a secret nothing
//! is stored.
//!
//! The contents of an entry are opaque bytes, decoded by the executor.

mod contents;
mod counts;
mod disk;
mod memory;

pub use contents::{Contents, DeviceContents};
pub use counts::Counts;

use disk::Disk;
use memory::Memory;
use std::fmt;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Folder of compiled code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheFolder {
    /// `$BROADLOOM_CACHE`, or `broadloom` in `$XDG_CACHE_HOME` or `~/.cache`; disabled if `$BROADLOOM_CACHE`
    /// is `off`.
    Default,
    /// Given folder.
    At(PathBuf),
    /// Disabled.
    Nowhere,
}

impl CacheFolder {
    /// Returns the path, or `None` if the cache is disabled.
    pub fn path(&self) -> Option<PathBuf> {
        match self {
            CacheFolder::Nowhere => None,
            CacheFolder::At(folder) => Some(folder.clone()),
            CacheFolder::Default => {
                let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
                match set("BROADLOOM_CACHE") {
                    Some(folder) => Some(folder).filter(|folder| folder.as_os_str() != "off"),
                    None => set("XDG_CACHE_HOME")
                        .filter(|path| path.is_absolute())
                        .map(|path| path.join("broadloom"))
                        .or_else(|| set("HOME").map(|path| path.join(".cache").join("broadloom"))),
                }
            }
        }
    }
}

/// Default maximum size of the cache on disk in bytes.
pub const CACHE_BYTES: u64 = 1 << 30;

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
    device: &'static str,
    whole: [u8; 32],
    code: [u8; 16],
    /// Version, machine and options.
    rest: [[u8; 8]; 3],
}

impl Key {
    /// Computes the key for the inputs.
    pub fn new(origin: &Origin<'_>) -> Key {
        let Origin { device, code, version, machine, options } = *origin;
        // Entries in another format count as made by another version.
        let version = format!("{} {version}", disk::FORMAT);
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
    fn names(&self) -> (String, String) {
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

/// Reason for a cache miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Miss {
    /// The cache is disabled.
    Disabled,
    /// No entry of this code is known.
    Unseen,
    /// The entry was made by another version of Broadloom.
    OtherVersion,
    /// The entry was made for another machine: other CPU features, another GPU or driver.
    OtherMachine,
    /// The entry was made with other options, or for another block shape.
    OtherOptions,
    /// The entry was evicted.
    Evicted,
    /// The entry was damaged, or not made by this user.
    Corrupt,
    /// The folder cannot be read.
    Unreadable,
    /// Another user may have written to the folder or the file, or there is no secret to verify it.
    Untrusted,
    /// Code of this kind is not cached.
    Unkept,
}

impl Miss {
    /// All reasons.
    pub const ALL: [Miss; 10] = [
        Miss::Disabled,
        Miss::Unseen,
        Miss::OtherVersion,
        Miss::OtherMachine,
        Miss::OtherOptions,
        Miss::Evicted,
        Miss::Corrupt,
        Miss::Unreadable,
        Miss::Untrusted,
        Miss::Unkept,
    ];

    /// Returns a one-word name.
    pub fn name(self) -> &'static str {
        match self {
            Miss::Disabled => "disabled",
            Miss::Unseen => "unseen",
            Miss::OtherVersion => "other-version",
            Miss::OtherMachine => "other-machine",
            Miss::OtherOptions => "other-options",
            Miss::Evicted => "evicted",
            Miss::Corrupt => "corrupt",
            Miss::Unreadable => "unreadable",
            Miss::Untrusted => "untrusted",
            Miss::Unkept => "unkept",
        }
    }
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Miss::Disabled => "nothing is kept on disk",
            Miss::Unseen => "never seen before",
            Miss::OtherVersion => "made by another version of Broadloom",
            Miss::OtherMachine => "made for other features of the machine or another driver",
            Miss::OtherOptions => "made with other options or for another shape of block",
            Miss::Evicted => "it had to make room for others",
            Miss::Corrupt => "what was kept was broken, or made by another user",
            Miss::Unreadable => "the folder cannot be read",
            Miss::Untrusted => "others could write to the folder or the file; `broadloom cache stats` names it",
            Miss::Unkept => "code of this kind is left to the driver",
        })
    }
}

/// Cache of one device. `T` is the decoded form of the code.
#[derive(Debug)]
pub struct Cache<T> {
    disk: Option<Disk>,
    memory: Mutex<Memory<T>>,
    counts: Mutex<Counts>,
}

impl<T> Cache<T> {
    /// Creates a cache in a folder, with a maximum size on disk for all devices together, and in memory.
    pub fn new(device: &'static str, folder: &CacheFolder, most_bytes: u64, most_in_memory: usize) -> Cache<T> {
        let disk = folder.path().map(|folder| Disk::new(device, folder, most_bytes, None));
        Cache { disk, memory: Mutex::new(Memory::new(most_in_memory)), counts: Mutex::default() }
    }

    /// Creates a cache whose entries are tagged with a given secret.
    #[cfg(test)]
    fn with_secret(device: &'static str, folder: &CacheFolder, most_bytes: u64, secret: crate::private::Secret) -> Cache<T> {
        let disk = folder.path().map(|folder| Disk::new(device, folder, most_bytes, Some(secret)));
        Cache { disk, memory: Mutex::new(Memory::new(1 << 20)), counts: Mutex::default() }
    }

    /// Looks up code. The cache in memory is also keyed by a variant: a number for the information that
    /// `decode` adds to the entry, such as locations in a text. `decode` returns the value and its size in
    /// memory.
    pub fn find(&self, key: &Key, variant: u64, decode: impl FnOnce(&[u8]) -> Option<(T, usize)>) -> Result<Arc<T>, Miss> {
        if let Some(value) = self.memory.lock().unwrap_or_else(PoisonError::into_inner).find(&(*key, variant)) {
            return Ok(value);
        }
        let disk = self.disk.as_ref().ok_or(Miss::Disabled)?;
        let entry = disk.read(key)?;
        let Some((value, bytes)) = decode(&entry[disk::HEADER..]) else {
            disk.remove(key);
            return Err(Miss::Corrupt);
        };
        let value = Arc::new(value);
        self.keep(key, variant, &value, bytes);
        Ok(value)
    }

    /// Stores a value in memory.
    pub fn keep(&self, key: &Key, variant: u64, value: &Arc<T>, bytes: usize) {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).keep((*key, variant), value.clone(), bytes);
    }

    /// Writes an entry to disk, if possible.
    pub fn store(&self, key: &Key, body: &[u8]) {
        if let Some(disk) = &self.disk {
            disk.write(key, body);
        }
    }

    /// Removes a useless entry.
    pub fn discard(&self, key: &Key) {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).forget(key);
        if let Some(disk) = &self.disk {
            disk.remove(key);
        }
    }

    /// Counts a hit or a miss. One counted request may involve several lookups.
    pub fn count(&self, outcome: Result<(), Miss>) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).add(outcome);
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> Counts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for Cache<T> {
    fn drop(&mut self) {
        let counts = *self.counts.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(disk) = self.disk.as_ref().filter(|_| counts != Counts::default()) {
            disk.add_counts(&counts);
        }
    }
}

#[cfg(test)]
mod tests;
