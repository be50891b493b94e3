//! Code on disk: `DEVICE/xx/CODE-VERSION-MACHINE-OPTIONS.kernel` below the folder, `xx` the first digits of the code.
//!
//! What was made from the same code lies side by side, so that a miss is explained by looking at one small folder. Beside the entries of a device lie
//! two notes: `evicted` names what had to make room lately, and `counts` what was found and what was not.

use super::{Key, Miss, contents::DEVICES};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Changes when entries or their names do.
const FORMAT: u32 = 3;
const MAGIC: [u8; 8] = *b"broadlm\0";
/// Bytes before what an entry holds: magic, format, key, checksum.
pub(super) const HEADER: usize = 8 + 4 + 32 + 32;
/// The folder is looked over after so many new files.
pub(super) const SWEEP_EVERY: u64 = 64;
/// Files under construction are left alone so long.
const ABANDONED: Duration = Duration::from_secs(3600);
/// The time of a file's last use is kept this exactly.
const USE_GRAIN: Duration = Duration::from_secs(3600);
/// Ends of the names of files.
pub(super) const ENDING: &str = "kernel";
pub(super) const UNFINISHED: &str = "unfinished";
/// Notes beside the entries of a device.
pub(super) const EVICTED: &str = "evicted";
pub(super) const COUNTS: &str = "counts";
/// Bytes of names that are remembered when their files had to make room.
const MOST_EVICTED: usize = 64 << 10;

/// The entries of a device.
#[derive(Debug)]
pub(super) struct Disk {
    device: &'static str,
    folder: PathBuf,
    most_bytes: u64,
    stored: AtomicU64,
}

impl Disk {
    pub(super) fn new(device: &'static str, folder: PathBuf, most_bytes: u64) -> Disk {
        Disk { device, folder, most_bytes, stored: AtomicU64::new(0) }
    }

    pub(super) fn counts_file(&self) -> PathBuf {
        self.folder.join(self.device).join(COUNTS)
    }

    /// The folder of an entry, and its file.
    fn places(&self, key: &Key) -> (PathBuf, PathBuf) {
        let (shelf, name) = key.names();
        let shelf = self.folder.join(self.device).join(shelf);
        let file = shelf.join(format!("{name}.{ENDING}"));
        (shelf, file)
    }

    /// An entry with its header, whole.
    pub(super) fn read(&self, key: &Key) -> Result<Vec<u8>, Miss> {
        let (shelf, file) = self.places(key);
        let bytes = match fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(self.explain(key, &shelf)),
            Err(_) => return Err(Miss::Unreadable),
        };
        if !is_whole(&bytes, key) {
            self.remove(key);
            return Err(Miss::Corrupt);
        }
        touch(&file);
        Ok(bytes)
    }

    /// Removes an entry. It will be written again; where it cannot be removed, it is found broken again.
    pub(super) fn remove(&self, key: &Key) {
        let _ = fs::remove_file(self.places(key).1);
    }

    /// Why an entry is not there, by what is.
    fn explain(&self, key: &Key, shelf: &Path) -> Miss {
        let (_, name) = key.names();
        let evicted = fs::read_to_string(self.folder.join(self.device).join(EVICTED)).unwrap_or_default();
        if evicted.lines().any(|line| line == name) {
            return Miss::Evicted;
        }
        let entries = match fs::read_dir(shelf) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Miss::Unseen,
            Err(_) => return Miss::Unreadable,
        };
        let own: Vec<&str> = name.split('-').collect();
        let mut found = Miss::Unseen;
        for entry in entries.flatten() {
            let other = entry.file_name();
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
        let (shelf, file) = self.places(key);
        let length = (HEADER + body.len()) as u64;
        if length > self.most_bytes || fs::create_dir_all(&shelf).is_err() {
            return;
        }
        let count = self.stored.fetch_add(1, Ordering::Relaxed);
        if count.is_multiple_of(SWEEP_EVERY) {
            sweep(&self.folder, self.most_bytes.saturating_sub(length));
        }
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let aside = shelf.join(format!("{}-{serial}.{UNFINISHED}", std::process::id()));
        let mut entry = Vec::with_capacity(HEADER + body.len());
        entry.extend(MAGIC);
        entry.extend(FORMAT.to_le_bytes());
        entry.extend(key.whole);
        entry.extend(blake3::hash(body).as_bytes());
        entry.extend(body);
        let written = fs::write(&aside, &entry).and_then(|()| fs::rename(&aside, file));
        if written.is_err() {
            let _ = fs::remove_file(&aside);
        }
    }
}

/// Whether an entry is one, belongs to a key and has the checksum of what it holds.
fn is_whole(entry: &[u8], key: &Key) -> bool {
    let Some((header, body)) = entry.split_at_checked(HEADER) else { return false };
    header[..8] == MAGIC
        && header[8..12] == FORMAT.to_le_bytes()
        && header[12..44] == key.whole
        && header[44..] == *blake3::hash(body).as_bytes()
}

/// Notes that a file was used.
fn touch(path: &Path) {
    let now = SystemTime::now();
    let old = |path: &Path| Some(now.duration_since(fs::metadata(path).ok()?.modified().ok()?).is_ok_and(|age| age > USE_GRAIN));
    if old(path) == Some(true)
        && let Ok(file) = fs::File::options().append(true).open(path)
    {
        let _ = file.set_modified(now);
    }
}

/// The files of a folder that are ours: entries and what becomes one, each with the device that it is for. Those of earlier versions lie
/// in the folder itself and are for none.
pub(super) fn files(folder: &Path) -> io::Result<Vec<(Option<&'static str>, PathBuf, fs::Metadata)>> {
    let mut all = vec![];
    let mut visit = |device: Option<&'static str>, shelf: &Path| -> io::Result<()> {
        let entries = match fs::read_dir(shelf) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            let ours = matches!(path.extension().and_then(|ending| ending.to_str()), Some(ENDING | UNFINISHED));
            // Other processes remove files as well.
            if ours && let Ok(facts) = entry.metadata() {
                all.push((device, path, facts));
            }
        }
        Ok(())
    };
    visit(None, folder)?;
    for device in DEVICES {
        let shelves = match fs::read_dir(folder.join(device)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            shelves => shelves?,
        };
        for shelf in shelves.flatten() {
            let name = shelf.file_name();
            let is_shelf = name.to_str().is_some_and(|name| name.len() == 2 && name.bytes().all(|c| c.is_ascii_hexdigit()));
            if is_shelf {
                visit(Some(device), &shelf.path())?;
            }
        }
    }
    Ok(all)
}

/// Removes the entries that were not used for the longest time until the others have room, and what was never finished.
pub(super) fn sweep(folder: &Path, most_bytes: u64) {
    let Ok(files) = files(folder) else { return };
    let now = SystemTime::now();
    let mut entries = vec![];
    for (device, path, facts) in files {
        let used = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        if path.extension().is_some_and(|ending| ending == ENDING) {
            entries.push((used, facts.len(), path, device));
        } else if now.duration_since(used).is_ok_and(|age| age > ABANDONED) {
            let _ = fs::remove_file(path);
        }
    }
    entries.sort();
    let mut bytes: u64 = entries.iter().map(|(_, bytes, ..)| bytes).sum();
    let mut gone: Vec<(&str, String)> = vec![];
    for (_, length, path, device) in entries {
        if bytes <= most_bytes {
            break;
        }
        if fs::remove_file(&path).is_ok() {
            bytes -= length;
            if let (Some(device), Some(name)) = (device, path.file_stem().and_then(|name| name.to_str())) {
                gone.push((device, name.to_owned()));
            }
        }
    }
    for device in DEVICES {
        let names: Vec<&str> = gone.iter().filter(|(of, _)| *of == device).map(|(_, name)| name.as_str()).collect();
        if !names.is_empty() {
            remember(&folder.join(device).join(EVICTED), &names);
        }
    }
}

/// Adds names to a note, and forgets the oldest when it has become long.
fn remember(note: &Path, names: &[&str]) {
    let text: String = names.iter().flat_map(|name| [name, "\n"]).collect();
    let appended = fs::File::options().create(true).append(true).open(note).and_then(|mut file| file.write_all(text.as_bytes()));
    if appended.is_err() {
        return;
    }
    let Ok(all) = fs::read_to_string(note) else { return };
    if all.len() > MOST_EVICTED {
        let kept = all.get(all.len() - MOST_EVICTED / 2..).and_then(|rest| rest.split_once('\n')).map_or("", |(_, rest)| rest);
        let aside = note.with_extension(format!("{}.{UNFINISHED}", std::process::id()));
        let written = fs::write(&aside, kept).and_then(|()| fs::rename(&aside, note));
        if written.is_err() {
            let _ = fs::remove_file(&aside);
        }
    }
}
