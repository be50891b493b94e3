//! What is in the folder of compiled code, for a person who asks.

use super::{CacheFolder, Counts, counts, disk};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Devices whose code is kept.
pub(super) const DEVICES: [&str; 2] = ["cpu", "cuda"];

/// What a folder of compiled code holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The folder, whether it exists or not.
    pub folder: PathBuf,
    /// What it holds for each device.
    pub devices: Vec<DeviceContents>,
}

/// What is kept for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceContents {
    /// The device: `cpu`, `cuda`.
    pub device: &'static str,
    /// Pieces of code: on the CPU kernels for one shape of block, on GPUs modules.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What was found and what was not, since the folder was empty.
    pub counts: Counts,
}

impl Contents {
    /// Pieces of code for all devices.
    pub fn entries(&self) -> u64 {
        self.devices.iter().map(|device| device.entries).sum()
    }

    /// Bytes for all devices.
    pub fn bytes(&self) -> u64 {
        self.devices.iter().map(|device| device.bytes).sum()
    }
}

impl CacheFolder {
    /// The devices whose code is kept, by name.
    pub fn devices() -> &'static [&'static str] {
        &DEVICES
    }

    /// What it holds; `None` when code is kept nowhere. A folder that does not exist is empty.
    pub fn contents(&self) -> io::Result<Option<Contents>> {
        self.visit(None, |_| Ok(()))
    }

    /// Removes all compiled code, of one device or of all, and nothing else; what was removed. Devices that are open make again what they
    /// need.
    pub fn clear(&self, device: Option<&str>) -> io::Result<Option<Contents>> {
        let removed = self.visit(device, gone)?;
        if let Some(contents) = &removed {
            for DeviceContents { device, .. } in &contents.devices {
                let notes = contents.folder.join(device);
                [disk::EVICTED, disk::COUNTS].into_iter().try_for_each(|note| gone(&notes.join(note)))?;
            }
        }
        Ok(removed)
    }

    fn visit(&self, only: Option<&str>, act: impl Fn(&Path) -> io::Result<()>) -> io::Result<Option<Contents>> {
        let Some(folder) = self.path() else { return Ok(None) };
        let chosen = DEVICES.into_iter().filter(|device| only.is_none_or(|only| only == *device));
        let empty = |device| {
            let counts = counts::read_file(&folder.join(device).join(disk::COUNTS));
            DeviceContents { device, entries: 0, bytes: 0, counts }
        };
        let mut devices: Vec<DeviceContents> = chosen.map(empty).collect();
        for (device, path, facts) in disk::files(&folder)? {
            let place = devices.iter_mut().find(|contents| Some(contents.device) == device);
            let (is_asked_for, is_entry) = (place.is_some(), path.extension().is_some_and(|ending| ending == disk::ENDING));
            if let Some(place) = place.filter(|_| is_entry) {
                place.entries += 1;
                place.bytes += facts.len();
            }
            // Those of earlier versions are of no use to anybody.
            if is_asked_for || device.is_none() && only.is_none() {
                act(&path)?;
            }
        }
        Ok(Some(Contents { folder, devices }))
    }
}

/// Removes a file; one that is not there is removed.
fn gone(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
