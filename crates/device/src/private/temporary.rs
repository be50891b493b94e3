//! Temporary folders in the system's temporary folder.
//!
//! Names there are public, so a folder is created under a random name with mode 0700. Existing files of that
//! name are never used.

use super::{Folder, Refusal};
use std::path::{Path, PathBuf};

/// Maximum number of names to try.
const MOST_ATTEMPTS: u32 = 16;

/// New folder, removed with its contents on drop.
#[derive(Debug)]
pub struct Temporary(PathBuf);

impl Temporary {
    /// Creates a folder whose name starts with a prefix.
    pub fn new(prefix: &str) -> Result<Temporary, Refusal> {
        Temporary::within(&std::env::temp_dir(), prefix)
    }

    /// Creates a folder in another one, which may be writable by others if it has the sticky bit.
    pub fn within(parent: &Path, prefix: &str) -> Result<Temporary, Refusal> {
        for _ in 0..MOST_ATTEMPTS {
            let path = parent.join(format!("{prefix}-{:016x}", super::random_number()));
            match std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(&path) {
                Ok(()) => {
                    let made = Temporary(path);
                    use std::os::unix::fs::PermissionsExt;
                    // The umask removes bits.
                    std::fs::set_permissions(&made.0, std::fs::Permissions::from_mode(0o700))
                        .map_err(|error| Refusal::system(&made.0, error))?;
                    // The parent folders are examined as well.
                    return match Folder::open(&made.0)? {
                        Some(_) => Ok(made),
                        None => Err(Refusal::system(&made.0, "it was removed while it was made")),
                    };
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Refusal::system(parent, error)),
            }
        }
        Err(Refusal::system(parent, "no name is free there"))
    }

    /// Returns where the file is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Keeps the folder on drop.
    pub fn keep(self) -> PathBuf {
        let path = self.0.clone();
        std::mem::forget(self);
        path
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
