//! Files and folders that only this user can have written.
//!
//! Compiled code is executed from files, so a file written by another user is that user's code in this
//! process. The attacker is any other user except root: one who can write to shared folders, but can neither
//! write to this user's folders nor read the [`Secret`]. Processes of this user and root are trusted.
//!
//! - A [`Folder`] belongs to this user, and no one else can write to it. Each folder above it belongs to this
//!   user or to root; others can write there only if it has the sticky bit, as `/tmp` has.
//! - A file is opened relative to its open folder and examined after opening, never before. Links are not
//!   followed, and only regular files are read.
//! - The size is checked before memory is allocated for the contents.
//! - New folders have mode 0700 and new files mode 0600, whatever the umask.
//!
//! **A [`Refusal`] names the path that is not used, the reason, and the remedy.**

mod folder;
mod secret;
mod temporary;

pub(crate) use folder::UNFINISHED;
pub use folder::{Folder, FolderEntry, KnownFolder};
pub use secret::{SECRET_BYTES, Secret, state_folder};
pub use temporary::Temporary;

use rustix::fs::FileType;
use std::fmt;
use std::path::{Path, PathBuf};

/// Refused path with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The file or folder that is not trusted.
    pub path: PathBuf,
    /// Why it is not trusted.
    pub reason: Reason,
}

/// Reason for refusing a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The path belongs to another user, with this ID.
    Owner(u32),
    /// Others can write to it. The value is the mode.
    Writable(u32),
    /// Others can read it although it is a secret. The value is the mode.
    Readable(u32),
    /// Symbolic link.
    Link,
    /// File with several hard links. The value is their number.
    HardLinks(u64),
    /// Not a regular file or folder, as required.
    Kind(&'static str),
    /// File larger than the limit.
    Size {
        /// Size in bytes.
        bytes: u64,
        /// Limit in bytes.
        most: u64,
    },
    /// Unexpected contents.
    Content(String),
    /// Access refused by the system.
    System(String),
    /// Unknown path, because an environment variable is missing.
    NoHome,
}

impl Refusal {
    fn new(path: &Path, reason: Reason) -> Refusal {
        Refusal { path: path.to_owned(), reason }
    }

    pub(crate) fn system(path: &Path, error: impl fmt::Display) -> Refusal {
        Refusal::new(path, Reason::System(error.to_string()))
    }

    /// Tests if the path may contain data of another user, rather than being inaccessible.
    pub fn is_distrust(&self) -> bool {
        match self.reason {
            Reason::Owner(_)
            | Reason::Writable(_)
            | Reason::Readable(_)
            | Reason::Link
            | Reason::HardLinks(_)
            | Reason::Size { .. }
            | Reason::Content(_)
            | Reason::NoHome => true,
            Reason::Kind(kind) => kind != NO_FOLDER,
            Reason::System(_) => false,
        }
    }

    /// Returns the remedy.
    pub fn help(&self) -> String {
        let path = self.path.display();
        match &self.reason {
            Reason::Owner(_) => "remove it, or use a folder of your own".to_owned(),
            Reason::Writable(_) => {
                format!("run `chmod go-w {path}`, and remove what it holds if others may have written to it")
            }
            Reason::Readable(_) => "remove it: a new secret is made, and compiled code is made again".to_owned(),
            Reason::Link => "remove it, or name the folder that it leads to".to_owned(),
            Reason::HardLinks(_) | Reason::Kind(_) | Reason::Size { .. } | Reason::Content(_) => "remove it".to_owned(),
            Reason::System(_) => "check that you may read and write it".to_owned(),
            Reason::NoHome => "set HOME or XDG_STATE_HOME to the absolute path of a folder of your own".to_owned(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.reason {
            Reason::Owner(owner) => write!(f, "it belongs to user {owner}, and you are user {}", user()),
            Reason::Writable(mode) => write!(f, "others can write to it (mode {mode:04o})"),
            Reason::Readable(mode) => write!(f, "others can read it (mode {mode:04o}), and it is a secret"),
            Reason::Link => f.write_str("it is a symbolic link, which is not followed here"),
            Reason::HardLinks(count) => write!(f, "it is a file with {count} names (hard links)"),
            Reason::Kind(kind) => write!(f, "it is {kind}"),
            Reason::Size { bytes, most } => write!(f, "it has {bytes} bytes, more than the limit of {most}"),
            Reason::Content(what) => f.write_str(what),
            Reason::System(error) => f.write_str(error),
            Reason::NoHome => f.write_str("its place is not known, since neither XDG_STATE_HOME nor HOME is an absolute path"),
        }
    }
}

impl std::error::Error for Refusal {}

/// Reason for a path that should be a folder but is not.
const NO_FOLDER: &str = "not a folder";

/// Returns the effective user ID of this process.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns a random number for file names. It only has to make collisions rare.
fn random_number() -> u64 {
    let mut number = [0; 8];
    let _ = rustix::rand::getrandom(&mut number[..], rustix::rand::GetRandomFlags::empty());
    u64::from_le_bytes(number)
}

/// Facts about an open file.
#[derive(Clone, Copy, Debug)]
struct Facts {
    kind: FileType,
    owner: u32,
    mode: u32,
    links: u64,
    bytes: u64,
}

impl Facts {
    fn of(facts: &std::fs::Metadata) -> Facts {
        use std::os::unix::fs::MetadataExt;
        Facts {
            kind: FileType::from_raw_mode(facts.mode()),
            owner: facts.uid(),
            mode: facts.mode() & 0o7777,
            links: facts.nlink(),
            bytes: facts.len(),
        }
    }

    /// Checks that only this user, or root if allowed, may have written it.
    fn own(&self, or_root: bool) -> Result<(), Reason> {
        if self.owner != user() && !(or_root && self.owner == 0) {
            Err(Reason::Owner(self.owner))
        } else if self.mode & 0o022 != 0 {
            Err(Reason::Writable(self.mode))
        } else {
            Ok(())
        }
    }

    /// Checks a parent folder: others must not be able to rename its contents.
    fn above(&self) -> Result<(), Reason> {
        const STICKY: u32 = 0o1000;
        if self.owner != user() && self.owner != 0 {
            Err(Reason::Owner(self.owner))
        } else if self.mode & 0o022 != 0 && self.mode & STICKY == 0 {
            Err(Reason::Writable(self.mode))
        } else {
            Ok(())
        }
    }

    /// Checks a file of this user.
    fn own_file(&self, or_root: bool) -> Result<(), Reason> {
        match self.kind {
            FileType::RegularFile => {}
            FileType::Symlink => return Err(Reason::Link),
            FileType::Fifo => return Err(Reason::Kind("a FIFO, not a regular file")),
            FileType::Directory => return Err(Reason::Kind("a folder, not a regular file")),
            FileType::Socket => return Err(Reason::Kind("a socket, not a regular file")),
            FileType::CharacterDevice | FileType::BlockDevice => return Err(Reason::Kind("a device, not a regular file")),
            FileType::Unknown => return Err(Reason::Kind("not a regular file")),
        }
        self.own(or_root)?;
        // A file that was replaced after it was opened has no name left.
        if self.links > 1 { Err(Reason::HardLinks(self.links)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
