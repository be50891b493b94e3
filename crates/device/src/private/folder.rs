//! Folders that only this user can write to, held open while they are used.
//!
//! A path is walked from the root, one component at a time, each opened relative to the previous one without
//! following links. Links above the last component are resolved by the walk itself, if they belong to this
//! user or to root. Every folder on the path is therefore examined through the descriptor that the next step
//! uses.

use super::{Facts, NO_FOLDER, Reason, Refusal};
use rustix::fs::{AtFlags, Dir, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

/// Maximum number of links in a path.
const MOST_LINKS: u32 = 40;
/// Maximum number of attempts to create a folder that another process removes meanwhile.
const MOST_ATTEMPTS: u32 = 8;

const FOLDER: Mode = Mode::RWXU;
const FILE: Mode = Mode::RUSR.union(Mode::WUSR);
const STEP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const OPENED: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Flags for reading. A FIFO or a terminal in place of a file neither blocks nor becomes the controlling
/// terminal.
const READ: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Open folder that belongs to this user and that no one else can write to.
#[derive(Debug)]
pub struct Folder {
    opened: File,
    path: PathBuf,
    /// True if it and its contents may belong to root.
    or_root: bool,
}

/// Directory entry, without following links.
#[derive(Clone, Debug)]
pub struct FolderEntry {
    /// File name without its folder.
    pub name: OsString,
    /// Size in bytes.
    pub bytes: u64,
    /// Time of the last change.
    pub modified: SystemTime,
    /// Reason why the file is not used.
    pub refusal: Option<Reason>,
}

impl Folder {
    /// Opens a folder; `None` if it does not exist.
    pub fn open(path: &Path) -> Result<Option<Folder>, Refusal> {
        walk(path, false, false)
    }

    /// Opens a folder that may belong to root, such as an installed one; `None` if it does not exist.
    pub fn open_installed(path: &Path) -> Result<Option<Folder>, Refusal> {
        walk(path, false, true)
    }

    /// Opens a folder and creates missing folders of its path, each with mode 0700.
    pub fn create(path: &Path) -> Result<Folder, Refusal> {
        walk(path, true, false)?.ok_or_else(|| Refusal::system(path, "it was removed while it was made"))
    }

    /// Returns the path by which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a subfolder; `None` if it does not exist.
    pub fn folder(&self, name: &str) -> Result<Option<Folder>, Refusal> {
        let path = self.path.join(name);
        match rustix::fs::openat(&self.opened, name, OPENED, Mode::empty()) {
            Ok(opened) => own(File::from(opened), path, self.or_root).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.objection(OsStr::new(name), true, error)),
        }
    }

    /// Opens a subfolder and creates it if it does not exist.
    pub fn folder_made(&self, name: &str) -> Result<Folder, Refusal> {
        for _ in 0..MOST_ATTEMPTS {
            if let Some(found) = self.folder(name)? {
                return Ok(found);
            }
            make(&self.opened, OsStr::new(name)).map_err(|error| Refusal::system(&self.path.join(name), error))?;
        }
        Err(Refusal::system(&self.path.join(name), "it was removed while it was made"))
    }

    /// Creates a subfolder; `None` if the name is taken.
    pub fn new_folder(&self, name: &str) -> Result<Option<Folder>, Refusal> {
        match rustix::fs::mkdirat(&self.opened, name, FOLDER) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(None),
            Err(error) => return Err(Refusal::system(&self.path.join(name), error)),
        }
        let chmod = rustix::fs::chmodat(&self.opened, name, FOLDER, AtFlags::empty());
        chmod.map_err(|error| Refusal::system(&self.path.join(name), error))?;
        self.folder(name)
    }

    /// Opens a file for reading; `None` if it does not exist.
    pub fn file(&self, name: impl AsRef<OsStr>) -> Result<Option<File>, Refusal> {
        let name = name.as_ref();
        match rustix::fs::openat(&self.opened, name, READ, Mode::empty()) {
            Ok(opened) => self.own_file(name, File::from(opened)).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.objection(name, false, error)),
        }
    }

    /// Opens a file for reading and writing and creates it if it does not exist.
    pub fn file_to_change(&self, name: &str) -> Result<File, Refusal> {
        let flags = READ | OFlags::RDWR | OFlags::CREATE;
        match rustix::fs::openat(&self.opened, name, flags, FILE) {
            Ok(opened) => {
                let file = self.own_file(OsStr::new(name), File::from(opened))?;
                // The umask removes bits from the mode of a new file.
                if file.metadata().is_ok_and(|facts| Facts::of(&facts).mode & 0o777 != FILE.as_raw_mode()) {
                    rustix::fs::fchmod(&file, FILE).map_err(|error| Refusal::system(&self.path.join(name), error))?;
                }
                Ok(file)
            }
            Err(error) => Err(self.objection(OsStr::new(name), false, error)),
        }
    }

    fn own_file(&self, name: &OsStr, opened: File) -> Result<File, Refusal> {
        let path = || self.path.join(name);
        let facts = opened.metadata().map_err(|error| Refusal::system(&path(), error))?;
        Facts::of(&facts).own_file(self.or_root).map_err(|reason| Refusal::new(&path(), reason))?;
        Ok(opened)
    }

    /// Reads an opened file of this folder, up to a maximum size.
    pub fn contents(&self, name: impl AsRef<OsStr>, file: &File, most: u64) -> Result<Vec<u8>, Refusal> {
        let path = || self.path.join(name.as_ref());
        let bytes = file.metadata().map_err(|error| Refusal::system(&path(), error))?.len();
        let large = |bytes| Refusal::new(&path(), Reason::Size { bytes, most });
        if bytes > most {
            return Err(large(bytes));
        }
        let mut contents = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
        let read = file.take(most.saturating_add(1)).read_to_end(&mut contents);
        read.map_err(|error| Refusal::system(&path(), error))?;
        if contents.len() as u64 > most { Err(large(contents.len() as u64)) } else { Ok(contents) }
    }

    /// Reads a file up to a maximum size; `None` if it does not exist.
    pub fn read(&self, name: impl AsRef<OsStr>, most: u64) -> Result<Option<Vec<u8>>, Refusal> {
        let Some(file) = self.file(&name)? else { return Ok(None) };
        self.contents(name, &file, most).map(Some)
    }

    /// Writes a temporary file of mode 0600 and renames it, replacing any file of that name.
    pub fn write(&self, name: &str, contents: &[u8]) -> io::Result<()> {
        let aside = self.write_aside(contents, FILE)?;
        rustix::fs::renameat(&self.opened, &aside, &self.opened, name).map_err(|error| self.without(&aside, error))
    }

    /// Writes an executable of mode 0700, as [`Folder::write`] does.
    pub fn write_program(&self, name: &str, contents: &[u8]) -> io::Result<()> {
        let aside = self.write_aside(contents, FOLDER)?;
        rustix::fs::renameat(&self.opened, &aside, &self.opened, name).map_err(|error| self.without(&aside, error))
    }

    /// Writes a new file; `false` if the name is taken.
    pub(super) fn write_new(&self, name: &str, contents: &[u8]) -> io::Result<bool> {
        let aside = self.write_aside(contents, FILE)?;
        let mut moved = rustix::fs::renameat_with(&self.opened, &aside, &self.opened, name, RenameFlags::NOREPLACE);
        if matches!(moved, Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)) {
            // Some file systems lack this operation. A hard link also keeps an existing name.
            moved = rustix::fs::linkat(&self.opened, &aside, &self.opened, name, AtFlags::empty());
            let _ = rustix::fs::unlinkat(&self.opened, &aside, AtFlags::empty());
        }
        match moved {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => {
                let _ = rustix::fs::unlinkat(&self.opened, &aside, AtFlags::empty());
                Ok(false)
            }
            Err(error) => Err(self.without(&aside, error)),
        }
    }

    /// Creates a symbolic link.
    pub fn link(&self, name: &str, target: &Path) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.opened, name)?)
    }

    /// Returns the target of a symbolic link of this user; `None` if the name does not exist.
    pub fn link_target(&self, name: &OsStr) -> Result<Option<PathBuf>, Refusal> {
        let path = || self.path.join(name);
        let facts = match self.facts(name) {
            Ok(facts) => facts,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(Refusal::system(&path(), error)),
        };
        if facts.kind != rustix::fs::FileType::Symlink {
            return Err(Refusal::new(&path(), Reason::Kind("not a symbolic link")));
        }
        if facts.owner != super::user() && !(self.or_root && facts.owner == 0) {
            return Err(Refusal::new(&path(), Reason::Owner(facts.owner)));
        }
        let target = rustix::fs::readlinkat(&self.opened, name, vec![]).map_err(|error| Refusal::system(&path(), error))?;
        Ok(Some(PathBuf::from(OsString::from_vec(target.into_bytes()))))
    }

    /// Renames a subfolder; `false` if the name is taken.
    pub fn rename_folder(&self, from: &str, to: &str) -> io::Result<bool> {
        match rustix::fs::renameat(&self.opened, from, &self.opened, to) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a file under a unique temporary name.
    fn write_aside(&self, contents: &[u8], mode: Mode) -> io::Result<String> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        // Processes of several containers may have the same ID, and forked processes the same random number.
        static PROCESS: OnceLock<u64> = OnceLock::new();
        let process = PROCESS.get_or_init(super::random_number);
        let aside = format!("{}-{process:016x}-{serial}.{UNFINISHED}", std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&self.opened, &aside, flags, mode)?);
        // The umask removes bits.
        let written = rustix::fs::fchmod(&file, mode).map_err(io::Error::from).and_then(|()| file.write_all(contents));
        written.map(|()| aside.clone()).map_err(|error| self.without(&aside, error))
    }

    fn without<E: Into<io::Error>>(&self, aside: &str, error: E) -> io::Error {
        let _ = rustix::fs::unlinkat(&self.opened, aside, AtFlags::empty());
        error.into()
    }

    /// Removes a file or a link. A missing file counts as removed.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.opened, name.as_ref(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes an empty subfolder.
    pub fn remove_folder(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.opened, name, AtFlags::REMOVEDIR)?)
    }

    /// Returns all names in the folder.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = vec![];
        for entry in Dir::read_from(&self.opened)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        Ok(names)
    }

    /// Returns a directory entry; `None` if it does not exist.
    pub fn named(&self, name: &OsStr) -> Option<FolderEntry> {
        let found = rustix::fs::statat(&self.opened, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let facts = Facts::of_stat(&found);
        let since = Duration::from_secs(u64::try_from(found.st_mtime).unwrap_or(0));
        let modified = SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH);
        Some(FolderEntry { name: name.to_owned(), bytes: facts.bytes, modified, refusal: facts.own_file(self.or_root).err() })
    }

    fn facts(&self, name: &OsStr) -> Result<Facts, Errno> {
        rustix::fs::statat(&self.opened, name, AtFlags::SYMLINK_NOFOLLOW).map(|found| Facts::of_stat(&found))
    }

    /// Determines why a name could not be opened. The answer may be outdated; it only serves the message.
    fn objection(&self, name: &OsStr, as_folder: bool, error: Errno) -> Refusal {
        let path = self.path.join(name);
        let reason = match self.facts(name) {
            Ok(facts) if facts.kind == rustix::fs::FileType::Symlink => Some(Reason::Link),
            Ok(facts) if as_folder && facts.kind != rustix::fs::FileType::Directory => Some(Reason::Kind(NO_FOLDER)),
            Ok(facts) if as_folder => facts.own(self.or_root).err(),
            Ok(facts) => facts.own_file(self.or_root).err(),
            Err(_) => None,
        };
        reason.map_or_else(|| Refusal::system(&path, error), |reason| Refusal::new(&path, reason))
    }
}

/// File extension of unfinished files.
pub(crate) const UNFINISHED: &str = "unfinished";

impl Facts {
    fn of_stat(found: &rustix::fs::Stat) -> Facts {
        #[allow(clippy::unnecessary_cast, reason = "these have other widths on other machines")]
        Facts {
            kind: rustix::fs::FileType::from_raw_mode(found.st_mode),
            owner: found.st_uid,
            mode: found.st_mode & 0o7777,
            links: found.st_nlink as u64,
            bytes: u64::try_from(found.st_size).unwrap_or(0),
        }
    }
}

/// Checks an opened folder.
fn own(opened: File, path: PathBuf, or_root: bool) -> Result<Folder, Refusal> {
    let facts = opened.metadata().map_err(|error| Refusal::system(&path, error))?;
    match Facts::of(&facts).own(or_root) {
        Ok(()) => Ok(Folder { opened, path, or_root }),
        Err(reason) => Err(Refusal { path, reason }),
    }
}

/// Creates a folder. Another process may be faster.
fn make(parent: &File, name: &OsStr) -> Result<(), Errno> {
    match rustix::fs::mkdirat(parent, name, FOLDER) {
        // The umask removes bits. No one else can have replaced the new folder: see `Facts::above`.
        Ok(()) => rustix::fs::chmodat(parent, name, FOLDER, AtFlags::empty()),
        Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns the components of a path, last first.
fn components(path: &Path) -> impl Iterator<Item = OsString> {
    let names = path.components().rev().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    names.collect::<Vec<_>>().into_iter()
}

fn walk(path: &Path, create: bool, or_root: bool) -> Result<Option<Folder>, Refusal> {
    let whole = std::path::absolute(path).map_err(|error| Refusal::system(path, error))?;
    let root = || File::open("/").map_err(|error| Refusal::system(Path::new("/"), error));
    let (mut here, mut shown) = (root()?, PathBuf::from("/"));
    let mut ahead: Vec<OsString> = components(&whole).collect();
    let (mut links, mut attempts) = (0, 0);
    while let Some(name) = ahead.pop() {
        // Folder in which the next name is looked up.
        let facts = here.metadata().map_err(|error| Refusal::system(&shown, error))?;
        Facts::of(&facts).above().map_err(|reason| Refusal::new(&shown, reason))?;
        // The path so far has no links, so its last name is the folder itself.
        let next = if name == ".." { shown.parent().unwrap_or(&shown).to_owned() } else { shown.join(&name) };
        let is_last = ahead.is_empty();
        match rustix::fs::openat(&here, &name, if is_last { OPENED } else { STEP }, Mode::empty()) {
            Ok(opened) => (here, shown) = (File::from(opened), next),
            Err(Errno::NOENT) if !create => return Ok(None),
            Err(Errno::NOENT) if attempts < MOST_ATTEMPTS => {
                attempts += 1;
                make(&here, &name).map_err(|error| Refusal::system(&next, error))?;
                ahead.push(name);
            }
            Err(error @ (Errno::NOTDIR | Errno::LOOP)) => {
                let found = rustix::fs::statat(&here, &name, AtFlags::SYMLINK_NOFOLLOW);
                let facts = Facts::of_stat(&found.map_err(|_| Refusal::system(&next, error))?);
                if facts.kind != rustix::fs::FileType::Symlink {
                    return Err(Refusal::new(&next, Reason::Kind(NO_FOLDER)));
                }
                if is_last {
                    return Err(Refusal::new(&next, Reason::Link));
                }
                if facts.owner != super::user() && facts.owner != 0 {
                    return Err(Refusal::new(&next, Reason::Owner(facts.owner)));
                }
                links += 1;
                if links > MOST_LINKS {
                    return Err(Refusal::system(&next, Errno::LOOP));
                }
                let target = rustix::fs::readlinkat(&here, &name, vec![]).map_err(|error| Refusal::system(&next, error))?;
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                if target.is_absolute() {
                    (here, shown) = (root()?, PathBuf::from("/"));
                }
                ahead.extend(components(&target));
            }
            Err(error) => return Err(Refusal::system(&next, error)),
        }
    }
    own(here, shown, or_root).map(Some)
}

/// Folder by its path, which is examined once.
#[derive(Debug)]
pub struct KnownFolder {
    path: PathBuf,
    /// Device and inode of the folder whose path was examined.
    examined: Mutex<Option<(u64, u64)>>,
}

impl KnownFolder {
    /// Names a folder without opening it.
    pub fn new(path: PathBuf) -> KnownFolder {
        KnownFolder { path, examined: Mutex::default() }
    }

    /// Returns where the folder is, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the folder; `None` if it does not exist.
    pub fn open(&self) -> Result<Option<Folder>, Refusal> {
        let examined = *self.examined.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(examined) = examined
            && let Ok(opened) = rustix::fs::open(&self.path, OPENED, Mode::empty())
        {
            let opened = File::from(opened);
            if opened.metadata().is_ok_and(|facts| (facts.dev(), facts.ino()) == examined) {
                return own(opened, self.path.clone(), false).map(Some);
            }
        }
        Ok(self.remembered(Folder::open(&self.path)?))
    }

    /// Opens the folder and creates it if it does not exist.
    pub fn create(&self) -> Result<Folder, Refusal> {
        if let Some(found) = self.open()? {
            return Ok(found);
        }
        let made = Folder::create(&self.path)?;
        self.remembered(Some(made)).ok_or_else(|| Refusal::system(&self.path, "it was removed while it was made"))
    }

    fn remembered(&self, found: Option<Folder>) -> Option<Folder> {
        let number = found.as_ref().and_then(|folder| folder.opened.metadata().ok()).map(|facts| (facts.dev(), facts.ino()));
        *self.examined.lock().unwrap_or_else(PoisonError::into_inner) = number;
        // Messages show the path that the user gave.
        found.map(|folder| Folder { path: self.path.clone(), ..folder })
    }
}
