//! Code on disk: `DEVICE/xx/CODE-VERSION-MACHINE-OPTIONS.kernel` below the folder, `xx` the first digits of the code.
//!
//! Entries made from the same code lie side by side, so that a miss is explained by looking at one small folder. Beside the entries of a device lie
//! two notes: `evicted` names what had to make room lately, and `counts` what was found and what was not.
//!
//! Each folder is opened relative to the one above it and examined ([`Folder`]): what others could have written is not read.

use super::{Counts, Key, Miss, contents::DEVICES, counts};
use crate::private::{Folder, KnownFolder, Named, Refusal, Secret, UNFINISHED};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Changes when entries or their names do.
pub(super) const FORMAT: u32 = 4;
const MAGIC: [u8; 8] = *b"broadlm\0";
/// Bytes before the tag of an entry: magic, format, key.
const UNTAGGED: usize = 8 + 4 + 32;
/// Bytes before what an entry holds.
pub(super) const HEADER: usize = UNTAGGED + 32;
/// Most bytes of an entry. A larger file is not read.
pub(super) const MOST_ENTRY: u64 = 256 << 20;
/// The purpose that tags of entries are made for; tags of other files differ.
const PURPOSE: &[u8] = b"compiled code";
/// The folder is looked over after so many new files.
pub(super) const SWEEP_EVERY: u64 = 64;
/// Files under construction are left alone so long.
const ABANDONED: Duration = Duration::from_secs(3600);
/// The time of a file's last use is kept this exactly.
const USE_GRAIN: Duration = Duration::from_secs(3600);
/// Ends of the names of entries.
pub(super) const ENDING: &str = "kernel";
/// Notes beside the entries of a device.
pub(super) const EVICTED: &str = "evicted";
pub(super) const COUNTS: &str = "counts";
/// Bytes of names that are remembered when their files had to make room.
const MOST_EVICTED: usize = 64 << 10;
/// No note of names is longer.
const MOST_NOTE: u64 = 1 << 20;

/// The entries of a device.
#[derive(Debug)]
pub(super) struct Disk {
    device: &'static str,
    folder: KnownFolder,
    most_bytes: u64,
    /// The secret of tags, when it is not the user's.
    secret: Option<Secret>,
    stored: AtomicU64,
}

/// The reason for a miss that a refusal is.
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

    /// Adds to the counts, when there is a folder for them.
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

    /// The name of the file of an entry.
    fn name(key: &Key) -> String {
        format!("{}.{ENDING}", key.names().1)
    }

    /// An entry with its header, whole.
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

    /// Removes an entry. It will be written again; where it cannot be removed, it is found broken again.
    pub(super) fn remove(&self, key: &Key) {
        if let Ok(Some(shelf)) = self.shelf(key) {
            let _ = shelf.remove(Disk::name(key));
        }
    }

    /// Why an entry is not there, by what is.
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
            // Another process has written it meanwhile: when it was looked for, it was not there.
            if other == name {
                continue;
            }
            let other: Vec<&str> = other.split('-').collect();
            let ([code, version, machine, _], [own_code, own_version, own_machine, _]) = (&other[..], &own[..]) else { continue };
            if code != own_code {
                continue;
            }
            // The nearest relative is the best explanation.
            match (version == own_version, machine == own_machine) {
                (true, true) => return Miss::OtherOptions,
                (true, false) => found = Miss::OtherMachine,
                (false, _) if found == Miss::Unseen => found = Miss::OtherVersion,
                (false, _) => {}
            }
        }
        found
    }

    /// Writes an entry, if that can be done.
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
        // Nothing that happens to the folder is an error.
        let _ = shelf.write(&Disk::name(key), &entry);
    }
}

/// Whether an entry is one, belongs to a key and was made by who has the secret.
fn is_whole(entry: &[u8], key: &Key, secret: &Secret) -> bool {
    let Some((header, body)) = entry.split_at_checked(HEADER) else { return false };
    let (untagged, tag) = header.split_at(UNTAGGED);
    // The comparison of tags takes the same time whichever bytes differ.
    untagged[..8] == MAGIC
        && untagged[8..12] == FORMAT.to_le_bytes()
        && untagged[12..] == key.whole
        && blake3::Hash::from_slice(tag).is_ok_and(|tag| tag == secret.tag(&[PURPOSE, untagged, body]))
}

/// Notes that a file was used.
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

/// Whether a file is an entry by its name.
pub(super) fn is_entry(name: &OsStr) -> bool {
    has_ending(name, &[ENDING])
}

/// Visits the files of a folder that are ours by their names: entries and what becomes one, each with the device that it is for and the
/// folder that it is in. Those of earlier versions lie in the folder itself and are for none. Returns the folders that are not used.
pub(super) fn visit<E>(
    folder: &Folder,
    mut act: impl FnMut(Option<&'static str>, &Folder, &Named) -> Result<(), E>,
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

/// A file that may have to make room.
type Kept = (SystemTime, u64, Option<&'static str>, String, OsString);

/// Removes the entries that were not used for the longest time until the others have room, and what was never finished.
pub(super) fn sweep(folder: &Folder, most_bytes: u64) {
    let now = SystemTime::now();
    let mut entries: Vec<Kept> = vec![];
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

/// Adds names to a note, and forgets the oldest when it has become long.
fn remember(folder: &Folder, names: &[&str]) {
    let note = folder.read(EVICTED, MOST_NOTE).ok().flatten().unwrap_or_default();
    let mut text = String::from_utf8(note).unwrap_or_default();
    names.iter().for_each(|name| text.extend([name, "\n"]));
    let mut kept = text.as_str();
    if text.len() > MOST_EVICTED {
        let rest = text.get(text.len() - MOST_EVICTED / 2..).and_then(|rest| rest.split_once('\n'));
        kept = rest.map_or("", |(_, rest)| rest);
    }
    // A count that cannot be written is forgotten.
    let _ = folder.write(EVICTED, kept.as_bytes());
}
