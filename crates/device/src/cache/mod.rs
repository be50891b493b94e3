//! Compiled code of every device, kept in memory and on disk.
//!
//! Code is found by what it was made from: a [`Key`] holds the code itself, the version of Broadloom, the machine and the options, each hashed
//! by itself, so that a [`Miss`] can say what has changed since. On disk every entry is a file that is written aside and renamed, so that processes may
//! share the folder; it carries its key and a tag, and whatever is not whole is as good as not there. The folder is bounded: the
//! files that were not used for the longest time go first. **Nothing that happens to the folder is an error: without it, code is made
//! again.**
//!
//! Code from an entry is executed, so it must be this user's own. Folders and files that another user could have written are not opened
//! ([`private`](crate::private)), and the tag of an entry is a hash keyed by the user's [`Secret`](crate::private::Secret): an entry that was made elsewhere
//! is broken. Where there is no secret, nothing is kept.
//!
//! The contents of an entry are the executor's own affair: bytes here, decoded by whoever asked.

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

/// Where compiled code is kept between runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheFolder {
    /// `$BROADLOOM_CACHE`, or `broadloom` in `$XDG_CACHE_HOME` or `~/.cache`; nowhere when `$BROADLOOM_CACHE` is `off`.
    Default,
    /// A folder of one's own.
    At(PathBuf),
    /// Nowhere.
    Nowhere,
}

impl CacheFolder {
    /// Where it is; `None` when code is kept nowhere.
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

/// Bytes of code that are kept on disk unless somebody says otherwise.
pub const CACHE_BYTES: u64 = 1 << 30;

/// The inputs of compiled code. Everything that its bytes depend on is in one of these.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The device that it is for: `cpu`, `cuda`.
    pub device: &'static str,
    /// A digest of the code in the form that it was made from.
    pub code: [u8; 32],
    /// The compiler: the version of Broadloom, down to the build where that matters.
    pub version: &'a str,
    /// The target: features of the CPU, or the GPU and its driver.
    pub machine: &'a str,
    /// How it was made: options, the shape of block.
    pub options: &'a str,
}

/// The digest of some bytes.
pub fn digest(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}

/// The key of compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    device: &'static str,
    whole: [u8; 32],
    code: [u8; 16],
    /// The version, the machine and the options.
    rest: [[u8; 8]; 3],
}

impl Key {
    /// The key of what is made from something.
    pub fn new(origin: &Origin<'_>) -> Key {
        let Origin { device, code, version, machine, options } = *origin;
        // An entry in another format was made by another version.
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

    /// The names of the folder that it is in and of its file: the code first, so that what was made from the same code is found.
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

/// Why code was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Miss {
    /// Nothing is kept on disk.
    Disabled,
    /// Nothing was made from this code, as far as is known.
    Unseen,
    /// It was made by another version of Broadloom.
    OtherVersion,
    /// It was made for another machine: other features of the CPU, another GPU or driver.
    OtherMachine,
    /// It was made with other options, or for another shape of block.
    OtherOptions,
    /// It was there, and had to make room.
    Evicted,
    /// The entry was not whole, or not made by this user.
    Corrupt,
    /// The folder cannot be read.
    Unreadable,
    /// Somebody else may have written to the folder or to the file, or there is no secret to tell.
    Untrusted,
    /// Code of this kind is not kept here.
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

    /// One word for it.
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

/// Compiled code of one device. `T` is what it becomes in memory.
#[derive(Debug)]
pub struct Cache<T> {
    disk: Option<Disk>,
    memory: Mutex<Memory<T>>,
    counts: Mutex<Counts>,
}

impl<T> Cache<T> {
    /// A cache over a folder with at most so many bytes on disk, all devices together, and in memory.
    pub fn new(device: &'static str, folder: &CacheFolder, most_bytes: u64, most_in_memory: usize) -> Cache<T> {
        let disk = folder.path().map(|folder| Disk::new(device, folder, most_bytes, None));
        Cache { disk, memory: Mutex::new(Memory::new(most_in_memory)), counts: Mutex::default() }
    }

    /// A cache whose entries have tags by another secret than the user's.
    #[cfg(test)]
    fn with_secret(device: &'static str, folder: &CacheFolder, most_bytes: u64, secret: crate::private::Secret) -> Cache<T> {
        let disk = folder.path().map(|folder| Disk::new(device, folder, most_bytes, Some(secret)));
        Cache { disk, memory: Mutex::new(Memory::new(1 << 20)), counts: Mutex::default() }
    }

    /// What was made before. In memory it also goes by a variant: a number for what `decode` adds to the entry, such as places in a text.
    /// `decode` gives the value and its bytes in memory.
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

    /// Keeps something in memory.
    pub fn keep(&self, key: &Key, variant: u64, value: &Arc<T>, bytes: usize) {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).keep((*key, variant), value.clone(), bytes);
    }

    /// Writes an entry to disk, if that can be done.
    pub fn store(&self, key: &Key, body: &[u8]) {
        if let Some(disk) = &self.disk {
            disk.write(key, body);
        }
    }

    /// Forgets something that turned out to be of no use.
    pub fn discard(&self, key: &Key) {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).forget(key);
        if let Some(disk) = &self.disk {
            disk.remove(key);
        }
    }

    /// Counts what somebody found, or why not. One may look several times for what counts once.
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
