//! What is in the folder of compiled kernels, for a person who asks.

use super::{ENDING, UNFINISHED, default_folder};
use crate::options::CacheFolder;
use std::path::PathBuf;
use std::{fs, io};

/// What a folder of compiled kernels holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The folder, whether it exists or not.
    pub folder: PathBuf,
    /// Compiled kernels, each for one shape of block.
    pub kernels: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl CacheFolder {
    /// Where it is; `None` when kernels are kept nowhere.
    pub fn path(&self) -> Option<PathBuf> {
        match self {
            CacheFolder::Nowhere => None,
            CacheFolder::At(folder) => Some(folder.clone()),
            CacheFolder::Default => default_folder(),
        }
    }

    /// What it holds; `None` when kernels are kept nowhere. A folder that does not exist is empty.
    pub fn contents(&self) -> io::Result<Option<Contents>> {
        self.visit(|_| Ok(()))
    }

    /// Removes all compiled kernels, and nothing else; what was removed. Devices that are open compile again what they need.
    pub fn clear(&self) -> io::Result<Option<Contents>> {
        self.visit(|path| match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        })
    }

    fn visit(&self, act: impl Fn(&PathBuf) -> io::Result<()>) -> io::Result<Option<Contents>> {
        let Some(folder) = self.path() else { return Ok(None) };
        let mut contents = Contents { folder, kernels: 0, bytes: 0 };
        let entries = match fs::read_dir(&contents.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(contents)),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            // Other processes remove files as well.
            let Ok(facts) = entry.metadata() else { continue };
            if ending == Some(ENDING) {
                contents.kernels += 1;
                contents.bytes += facts.len();
            }
            if matches!(ending, Some(ENDING | UNFINISHED)) {
                act(&path)?;
            }
        }
        Ok(Some(contents))
    }
}
