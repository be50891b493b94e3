//! Listing and clearing of the cache folder.

use super::disk::DEVICES;
use super::{CacheFolder, Counts, counts, disk};
use crate::private::{Folder, Refusal, Secret};
use std::ffi::OsStr;
use std::path::PathBuf;

/// Maximum number of listed refusals.
const MOST_REFUSED: usize = 20;

/// Contents of a cache folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The folder, whether it exists or not.
    pub folder: PathBuf,
    /// Contents per device.
    pub devices: Vec<DeviceContents>,
    /// Refused folders and files with the reasons, up to a maximum.
    pub refused: Vec<Refusal>,
    /// Number of further refusals.
    pub more_refused: usize,
}

/// Entries of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceContents {
    /// Device: `cpu`, `cuda`.
    pub device: &'static str,
    /// Number of entries: on the CPU kernels for one block shape, on GPUs modules.
    pub entries: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Hits and misses since the folder was empty.
    pub counts: Counts,
}

impl Contents {
    /// Returns the number of entries of all devices.
    pub fn entries(&self) -> u64 {
        self.devices.iter().map(|device| device.entries).sum()
    }

    /// Returns the size in bytes of all devices.
    pub fn bytes(&self) -> u64 {
        self.devices.iter().map(|device| device.bytes).sum()
    }

    fn refuse(&mut self, refusal: Refusal) {
        if self.refused.len() < MOST_REFUSED {
            self.refused.push(refusal);
        } else {
            self.more_refused += 1;
        }
    }
}

impl CacheFolder {
    /// Returns the names of the devices with cached code.
    pub fn devices() -> &'static [&'static str] {
        &DEVICES
    }

    /// Returns the contents and the refused parts, or `None` if the cache is disabled. A missing folder is
    /// empty.
    pub fn contents(&self) -> Option<Contents> {
        let path = self.path()?;
        let mut contents = empty(path, None);
        if let Some(refusal) = Secret::refusal() {
            contents.refuse(refusal);
        }
        match Folder::open(&contents.folder) {
            Ok(Some(folder)) => {
                // Nothing is removed, so nothing can fail.
                let folders = visit(&folder, &mut contents, |_, _| Ok(())).unwrap_or_default();
                folders.into_iter().for_each(|refusal| contents.refuse(refusal));
            }
            Ok(None) => {}
            Err(refusal) => contents.refuse(refusal),
        }
        Some(contents)
    }

    /// Removes all cached code, of one device or of all, and nothing else. Returns the removed contents. Open
    /// devices recompile the code that they need. Nothing is removed from a folder that others can write to.
    pub fn clear(&self, device: Option<&str>) -> Result<Option<Contents>, Refusal> {
        let Some(path) = self.path() else { return Ok(None) };
        let mut removed = empty(path, device);
        let Some(folder) = Folder::open(&removed.folder)? else { return Ok(Some(removed)) };
        let gone =
            |shelf: &Folder, name: &OsStr| shelf.remove(name).map_err(|error| Refusal::system(&shelf.path().join(name), error));
        let folders = visit(&folder, &mut removed, gone)?;
        for DeviceContents { device, .. } in &removed.devices {
            if let Some(folder) = folder.folder(device)? {
                [disk::EVICTED, counts::NAME].into_iter().try_for_each(|note| gone(&folder, note.as_ref()))?;
            }
        }
        // Refused files were removed as well; the contents of refused folders were not.
        removed.refused.clear();
        folders.into_iter().next().map_or(Ok(Some(removed)), Err)
    }
}

fn empty(folder: PathBuf, only: Option<&str>) -> Contents {
    let chosen = DEVICES.into_iter().filter(|device| only.is_none_or(|only| only == *device));
    let devices = chosen.map(|device| DeviceContents { device, entries: 0, bytes: 0, counts: Counts::default() }).collect();
    Contents { folder, devices, refused: vec![], more_refused: 0 }
}

/// Visits the files of the requested devices. Returns the refused folders.
fn visit(
    folder: &Folder,
    contents: &mut Contents,
    act: impl Fn(&Folder, &OsStr) -> Result<(), Refusal>,
) -> Result<Vec<Refusal>, Refusal> {
    let all = contents.devices.len() == DEVICES.len();
    for place in &mut contents.devices {
        // A refused folder is reported below.
        if let Ok(Some(folder)) = folder.folder(place.device) {
            place.counts = counts::read(&folder);
        }
    }
    disk::visit(folder, |device, shelf, named| {
        // Files of earlier versions are useless.
        if device.is_none() {
            return if all { act(shelf, &named.name) } else { Ok(()) };
        }
        let Some(place) = contents.devices.iter_mut().find(|contents| Some(contents.device) == device) else { return Ok(()) };
        match &named.refusal {
            Some(reason) => contents.refuse(Refusal { path: shelf.path().join(&named.name), reason: reason.clone() }),
            None if disk::is_entry(&named.name) => {
                place.entries += 1;
                place.bytes += named.bytes;
            }
            None => {}
        }
        act(shelf, &named.name)
    })
}
