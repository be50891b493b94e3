//! Cache entries on disk: `DEVICE/xx/CODE-VERSION-MACHINE-OPTIONS.kernel` below the folder, with `xx` the
//! first digits of the code's hash.
//!
//! Entries of the same code are in one small folder, which explains a miss. Beside the entries of a device
//! are two notes: `evicted` lists recently evicted entries, and `counts` the hits and misses.
//!
//! Each folder is opened relative to its parent and examined ([`Folder`]). Files that others could have
//! written are not read.

use super::counts::{self, Counts};
use super::key::{FORMAT, Key};
use super::miss::Miss;
use crate::private::{Folder, FolderEntry, KnownFolder, Refusal, Secret, UNFINISHED};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Devices with cached code.
pub(super) const DEVICES: [&str; 2] = ["cpu", "cuda"];
const MAGIC: [u8; 8] = *b"broadlm\0";
/// Size in bytes before the tag of an entry: magic, format, key.
const UNTAGGED: usize = 8 + 4 + 32;
/// Size in bytes of an entry's header.
pub(super) const HEADER: usize = UNTAGGED + 32;
/// Maximum size of an entry in bytes. Larger files are not read.
pub(super) const MOST_ENTRY: u64 = 256 << 20;
/// Purpose that tags of entries include; tags of other files differ.
const PURPOSE: &[u8] = b"compiled code";
/// Number of new files after which the folder is swept.
pub(super) const SWEEP_EVERY: u64 = 64;
/// Age at which unfinished files are removed.
const ABANDONED: Duration = Duration::from_secs(3600);
/// Resolution of the time of last use.
const USE_GRAIN: Duration = Duration::from_secs(3600);
/// File extension of entries.
pub(super) const ENDING: &str = "kernel";
/// Note of evicted entries, beside the entries of a device.
pub(super) const EVICTED: &str = "evicted";
/// Maximum bytes of names of evicted files.
const MOST_EVICTED: usize = 64 << 10;
/// Maximum size of a note in bytes.
const MOST_NOTE: u64 = 1 << 20;

/// Entries of a device.
#[derive(Debug)]
pub(super) struct Disk {
    device: &'static str,
    folder: KnownFolder,
    most_bytes: u64,
    /// Secret for tags, if it is not the user's.
    secret: Option<Secret>,
    stored: AtomicU64,
}

/// Converts a refusal to the reason for a miss.
fn missed(refusal: &Refusal) -> Miss {
    if refusal.is_distrust() { Miss::Untrusted } else { Miss::Unreadable }
}

impl Disk {
    pub(super) fn new(device: &'static str, folder: PathBuf, most_bytes: u64, secret: Option<Secret>) -> Disk {
        Disk { device, folder: KnownFolder::new(folder), most_bytes, secret, stored: AtomicU64::new(0) }
    }

    fn secret(&self) -> Result<&Secret, &Refusal> {
        match &self.secret {
            Some(secret) => Ok(secret),
            None => Secret::of_user(),
        }
    }

    /// Adds to the counts, if the folder exists.
    pub(super) fn add_counts(&self, more: &Counts) {
        if let Ok(Some(folder)) = self.device_folder() {
            counts::add(&folder, more);
        }
    }

    fn device_folder(&self) -> Result<Option<Folder>, Refusal> {
        self.folder.open()?.map_or(Ok(None), |folder| folder.folder(self.device))
    }

    fn shelf(&self, key: &Key) -> Result<Option<Folder>, Refusal> {
        self.device_folder()?.map_or(Ok(None), |folder| folder.folder(&key.names().0))
    }

    /// Returns the file name of an entry.
    fn name(key: &Key) -> String {
        format!("{}.{ENDING}", key.names().1)
    }

    /// Reads a complete entry with its header.
    pub(super) fn read(&self, key: &Key) -> Result<Vec<u8>, Miss> {
        let secret = self.secret().map_err(missed)?;
        let Some(shelf) = self.shelf(key).map_err(|refusal| missed(&refusal))? else { return Err(self.explain(key, None)) };
        let name = Disk::name(key);
        let Some(file) = shelf.file(&name).map_err(|refusal| missed(&refusal))? else {
            return Err(self.explain(key, Some(&shelf)));
        };
        let entry = shelf.contents(&name, &file, MOST_ENTRY).map_err(|refusal| missed(&refusal))?;
        if !is_whole(&entry, key, secret) {
            let _ = shelf.remove(&name);
            return Err(Miss::Corrupt);
        }
        touch(&file);
        Ok(entry)
    }

    /// Removes an entry, which will be rewritten. If it cannot be removed, it is found damaged again.
    pub(super) fn remove(&self, key: &Key) {
        if let Ok(Some(shelf)) = self.shelf(key) {
            let _ = shelf.remove(Disk::name(key));
        }
    }

    /// Determines the reason for a missing entry from its neighbours.
    fn explain(&self, key: &Key, shelf: Option<&Folder>) -> Miss {
        let (_, name) = key.names();
        let note = self.device_folder().ok().flatten().and_then(|folder| folder.read(EVICTED, MOST_NOTE).ok().flatten());
        let evicted = note.and_then(|note| String::from_utf8(note).ok()).unwrap_or_default();
        if evicted.lines().any(|line| line == name) {
            return Miss::Evicted;
        }
        let entries = match shelf.map(Folder::names) {
            None => return Miss::Unseen,
            Some(Ok(entries)) => entries,
            Some(Err(_)) => return Miss::Unreadable,
        };
        let own: Vec<&str> = name.split('-').collect();
        let mut found = Miss::Unseen;
        for other in entries {
            let Some(other) = other.to_str().and_then(|name| name.strip_suffix(ENDING)?.strip_suffix('.')) else { continue };
            // Another process has written it since the lookup.
            if other == name {
                continue;
            }
            let other: Vec<&str> = other.split('-').collect();
            let ([code, version, machine, _], [own_code, own_version, own_machine, _]) = (&other[..], &own[..]) else { continue };
            if code != own_code {
                continue;
            }
            // The most similar entry is the best explanation.
            match (version == own_version, machine == own_machine) {
                (true, true) => return Miss::OtherOptions,
                (true, false) => found = Miss::OtherMachine,
                (false, _) if found == Miss::Unseen => found = Miss::OtherVersion,
                (false, _) => {}
            }
        }
        found
    }

    /// Writes an entry, if possible.
    pub(super) fn write(&self, key: &Key, body: &[u8]) {
        let length = (HEADER + body.len()) as u64;
        if length > self.most_bytes.min(MOST_ENTRY) {
            return;
        }
        let Ok(secret) = self.secret() else { return };
        let Ok(folder) = self.folder.create() else { return };
        let count = self.stored.fetch_add(1, Ordering::Relaxed);
        if count.is_multiple_of(SWEEP_EVERY) {
            sweep(&folder, self.most_bytes.saturating_sub(length));
        }
        let shelf = folder.folder_made(self.device).and_then(|folder| folder.folder_made(&key.names().0));
        let Ok(shelf) = shelf else { return };
        let mut entry = Vec::with_capacity(HEADER + body.len());
        entry.extend(MAGIC);
        entry.extend(FORMAT.to_le_bytes());
        entry.extend(key.whole);
        let tag = secret.tag(&[PURPOSE, &entry, body]);
        entry.extend(tag.as_bytes());
        entry.extend(body);
        // Errors of the folder are ignored.
        let _ = shelf.write(&Disk::name(key), &entry);
    }
}

/// Checks that an entry is complete, belongs to a key and was tagged with the secret.
fn is_whole(entry: &[u8], key: &Key, secret: &Secret) -> bool {
    let Some((header, body)) = entry.split_at_checked(HEADER) else { return false };
    let (untagged, tag) = header.split_at(UNTAGGED);
    // The comparison of tags takes constant time.
    untagged[..8] == MAGIC
        && untagged[8..12] == FORMAT.to_le_bytes()
        && untagged[12..] == key.whole
        && blake3::Hash::from_slice(tag).is_ok_and(|tag| tag == secret.tag(&[PURPOSE, untagged, body]))
}

/// Updates the time of last use of a file.
fn touch(file: &File) {
    let now = SystemTime::now();
    let used = file.metadata().and_then(|facts| facts.modified());
    if used.is_ok_and(|used| now.duration_since(used).is_ok_and(|age| age > USE_GRAIN)) {
        let _ = file.set_modified(now);
    }
}

fn has_ending(name: &OsStr, endings: &[&str]) -> bool {
    Path::new(name).extension().and_then(OsStr::to_str).is_some_and(|ending| endings.contains(&ending))
}

/// Tests if a file name is that of an entry.
pub(super) fn is_entry(name: &OsStr) -> bool {
    has_ending(name, &[ENDING])
}

/// Visits the cache's own files in a folder: entries and unfinished entries, each with its device and folder.
/// Files of earlier versions are in the folder itself and have no device. Returns the refused folders.
pub(super) fn visit<E>(
    folder: &Folder,
    mut act: impl FnMut(Option<&'static str>, &Folder, &FolderEntry) -> Result<(), E>,
) -> Result<Vec<Refusal>, E> {
    let mut refused = vec![];
    let mut visit = |device: Option<&'static str>, shelf: &Folder, refused: &mut Vec<Refusal>| -> Result<(), E> {
        let names = shelf.names().unwrap_or_else(|error| {
            refused.push(Refusal::system(shelf.path(), error));
            vec![]
        });
        for name in names.iter().filter(|name| has_ending(name, &[ENDING, UNFINISHED])) {
            // Other processes remove files as well.
            if let Some(named) = shelf.named(name) {
                act(device, shelf, &named)?;
            }
        }
        Ok(())
    };
    visit(None, folder, &mut refused)?;
    for device in DEVICES {
        let folder = match folder.folder(device) {
            Ok(Some(folder)) => folder,
            Ok(None) => continue,
            Err(refusal) => {
                refused.push(refusal);
                continue;
            }
        };
        for name in folder.names().unwrap_or_default() {
            let Some(name) = name.to_str().filter(|name| name.len() == 2 && name.bytes().all(|c| c.is_ascii_hexdigit())) else {
                continue;
            };
            match folder.folder(name) {
                Ok(Some(shelf)) => visit(Some(device), &shelf, &mut refused)?,
                Ok(None) => {}
                Err(refusal) => refused.push(refusal),
            }
        }
    }
    Ok(refused)
}

/// File that may be evicted.
type EvictableFile = (SystemTime, u64, Option<&'static str>, String, OsString);

/// Evicts the least recently used entries until the others fit, and removes abandoned unfinished files.
pub(super) fn sweep(folder: &Folder, most_bytes: u64) {
    let now = SystemTime::now();
    let mut entries: Vec<EvictableFile> = vec![];
    let visited = visit::<()>(folder, |device, shelf, named| {
        if is_entry(&named.name) {
            let of = shelf.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
            entries.push((named.modified, named.bytes, device, of, named.name.clone()));
        } else if now.duration_since(named.modified).is_ok_and(|age| age > ABANDONED) {
            let _ = shelf.remove(&named.name);
        }
        Ok(())
    });
    if visited.is_err() {
        return;
    }
    entries.sort();
    let mut bytes: u64 = entries.iter().map(|(_, bytes, ..)| bytes).sum();
    let mut gone: Vec<(&str, String)> = vec![];
    for (_, length, device, shelf, name) in entries {
        if bytes <= most_bytes {
            break;
        }
        let removed = match device {
            None => folder.remove(&name).is_ok(),
            Some(device) => {
                let shelf = folder.folder(device).ok().flatten().and_then(|folder| folder.folder(&shelf).ok().flatten());
                shelf.is_some_and(|shelf| shelf.remove(&name).is_ok())
            }
        };
        if removed {
            bytes -= length;
            if let (Some(device), Some(name)) = (device, Path::new(&name).file_stem().and_then(|name| name.to_str())) {
                gone.push((device, name.to_owned()));
            }
        }
    }
    for device in DEVICES {
        let names: Vec<&str> = gone.iter().filter(|(of, _)| *of == device).map(|(_, name)| name.as_str()).collect();
        if !names.is_empty()
            && let Ok(Some(folder)) = folder.folder(device)
        {
            remember(&folder, &names);
        }
    }
}

/// Adds names to a note, and drops the oldest if it is too long.
fn remember(folder: &Folder, names: &[&str]) {
    let note = folder.read(EVICTED, MOST_NOTE).ok().flatten().unwrap_or_default();
    let mut text = String::from_utf8(note).unwrap_or_default();
    names.iter().for_each(|name| text.extend([name, "\n"]));
    let mut kept = text.as_str();
    if text.len() > MOST_EVICTED {
        let rest = text.get(text.len() - MOST_EVICTED / 2..).and_then(|rest| rest.split_once('\n'));
        kept = rest.map_or("", |(_, rest)| rest);
    }
    // A note that cannot be written is lost.
    let _ = folder.write(EVICTED, kept.as_bytes());
}
