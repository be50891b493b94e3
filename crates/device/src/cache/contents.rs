//! The contents of the folder of compiled code, for a person who asks.

use super::{CacheFolder, Counts, counts, disk};
use crate::private::{Folder, Refusal, Secret};
use std::ffi::OsStr;
use std::path::PathBuf;

/// Devices whose code is kept.
pub(super) const DEVICES: [&str; 2] = ["cpu", "cuda"];
/// Most paths that are told not to be used.
const MOST_REFUSED: usize = 20;

/// The contents of a folder of compiled code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The folder, whether it exists or not.
    pub folder: PathBuf,
    /// Its contents for each device.
    pub devices: Vec<DeviceContents>,
    /// Folders and files that are not used, with the reasons: the first of them.
    pub refused: Vec<Refusal>,
    /// How many more there are.
    pub more_refused: usize,
}

/// The entries of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceContents {
    /// The device: `cpu`, `cuda`.
    pub device: &'static str,
    /// Pieces of code: on the CPU kernels for one shape of block, on GPUs modules.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Hits and misses since the folder was empty.
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

    fn refuse(&mut self, refusal: Refusal) {
        if self.refused.len() < MOST_REFUSED {
            self.refused.push(refusal);
        } else {
            self.more_refused += 1;
        }
    }
}

impl CacheFolder {
    /// The devices whose code is kept, by name.
    pub fn devices() -> &'static [&'static str] {
        &DEVICES
    }

    /// Returns what it holds, and which of it is not used; `None` when code is kept nowhere. A folder that does not exist is empty.
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

    /// Removes all compiled code, of one device or of all, and nothing else; what was removed. Devices that are open make again what they
    /// need. Nothing is removed from a folder that others can write to.
    pub fn clear(&self, device: Option<&str>) -> Result<Option<Contents>, Refusal> {
        let Some(path) = self.path() else { return Ok(None) };
        let mut removed = empty(path, device);
        let Some(folder) = Folder::open(&removed.folder)? else { return Ok(Some(removed)) };
        let gone =
            |shelf: &Folder, name: &OsStr| shelf.remove(name).map_err(|error| Refusal::system(&shelf.path().join(name), error));
        let folders = visit(&folder, &mut removed, gone)?;
        for DeviceContents { device, .. } in &removed.devices {
            if let Some(folder) = folder.folder(device)? {
                [disk::EVICTED, disk::COUNTS].into_iter().try_for_each(|note| gone(&folder, note.as_ref()))?;
            }
        }
        // Files that were not used are gone as well; what is in folders that are not used is not.
        removed.refused.clear();
        folders.into_iter().next().map_or(Ok(Some(removed)), Err)
    }
}

fn empty(folder: PathBuf, only: Option<&str>) -> Contents {
    let chosen = DEVICES.into_iter().filter(|device| only.is_none_or(|only| only == *device));
    let devices = chosen.map(|device| DeviceContents { device, entries: 0, bytes: 0, counts: Counts::default() }).collect();
    Contents { folder, devices, refused: vec![], more_refused: 0 }
}

/// Goes through the files of the devices that are asked for. Returns the folders that are not used.
fn visit(
    folder: &Folder,
    contents: &mut Contents,
    act: impl Fn(&Folder, &OsStr) -> Result<(), Refusal>,
) -> Result<Vec<Refusal>, Refusal> {
    let all = contents.devices.len() == DEVICES.len();
    for place in &mut contents.devices {
        // A folder that is not used is told below.
        if let Ok(Some(folder)) = folder.folder(place.device) {
            place.counts = counts::read(&folder);
        }
    }
    disk::visit(folder, |device, shelf, named| {
        // Files of earlier versions are of no use to anybody.
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
