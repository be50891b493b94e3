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
mod key;
mod memory;
mod miss;

pub use contents::{Contents, DeviceContents};
pub use counts::Counts;
pub use key::{Key, Origin, digest};
pub use miss::Miss;

use disk::Disk;
use memory::Memory;
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
