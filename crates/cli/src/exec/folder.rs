//! Folder of the shim libraries, which have NVIDIA's names and lead to the replacement library.
//!
//! The loader executes any library that it finds there. The folder therefore contains only links to the
//! replacement library and to this command, and shims with known contents. The link marks the folder: the
//! replacement library never takes a library beside it for NVIDIA's. The folder's name is a hash of its
//! contents. The folder, its files and all parent folders must belong to this user or root. No one else may write
//! to them ([`private`](broadloom::device::private)). **Each run examines all of it before the folder is
//! added to the search path.**
//!
//! The folder is created beside the compiled code. If the cache is disabled or cannot be written, these
//! locations are tried in this order:
//!
//! - a folder installed beside the library;
//! - the folder for temporary files;
//! - the user's state folder;
//! - a new folder with a random name.

use broadloom::device::CacheFolder;
use broadloom::device::private::{Folder, Reason, Refusal, Temporary, state_folder};
use broadloom_shim::Shim;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// Maximum size in bytes of a shim.
const MOST_BYTES: u64 = 1 << 20;

/// Folder of shims, by its contents.
pub struct ShimFolder<'a> {
    /// Purpose of the folder. The folder beside an installed library is named `broadloom-` followed by this.
    pub kind: &'a str,
    /// Shims, each with its symbol version.
    pub names: &'a [(&'a str, Option<&'a str>)],
    /// Replacement library to which all shims lead.
    pub library: &'a Path,
    /// Name of the link to the replacement library.
    pub link: &'a str,
    /// Names of programs with their link targets.
    pub programs: &'a [(&'a str, PathBuf)],
}

impl ShimFolder<'_> {
    fn files(&self) -> impl Iterator<Item = (&str, Vec<u8>)> {
        let shim = |name, version| Shim { name, version, replacement: self.library };
        self.names.iter().map(move |(name, version)| (*name, shim(*name, *version).bytes()))
    }

    fn links(&self) -> impl Iterator<Item = (&str, &Path)> {
        [(self.link, self.library)].into_iter().chain(self.programs.iter().map(|(name, target)| (*name, target.as_path())))
    }

    /// Returns the name of the folder. It is different for each version of the library and of this command.
    fn name(&self) -> String {
        let mut hasher = DefaultHasher::new();
        (self.kind, self.library, self.link, self.programs).hash(&mut hasher);
        self.files().for_each(|file| file.hash(&mut hasher));
        format!("{:016x}", hasher.finish())
    }

    /// Finds or creates the folder. Returns its path, and the refused locations with the reasons.
    pub fn prepare(&self) -> (Option<PathBuf>, Vec<Refusal>) {
        let (mut refused, name) = (vec![], self.name());
        let mut tried = |outcome: Result<Option<PathBuf>, Refusal>| {
            outcome.unwrap_or_else(|refusal| {
                refused.push(refusal);
                None
            })
        };
        let cache = CacheFolder::Default.path().map(|folder| folder.join("exec"));
        let user = std::env::temp_dir().join(format!("broadloom-{}", broadloom::device::private::user()));
        let beside = self.library.with_file_name(format!("broadloom-{}", self.kind));
        let found = cache
            .and_then(|folder| tried(self.create(&folder, &name).map(Some)))
            .or_else(|| tried(self.installed(&beside)))
            .or_else(|| tried(self.create(&user, &name).map(Some)))
            .or_else(|| tried(self.create(&state_folder()?.join("exec"), &name).map(Some)))
            .or_else(|| {
                // A user who occupies the known names cannot have occupied this one.
                let new = Temporary::new("broadloom");
                tried(new.and_then(|new| {
                    self.create(new.path(), &name).map(|path| {
                        new.keep();
                        Some(path)
                    })
                }))
            });
        (found, refused)
    }

    /// Examines the folder beside compiled code, if it exists.
    pub fn refusal(&self) -> Option<Refusal> {
        let exec = Folder::open(&CacheFolder::Default.path()?.join("exec"));
        let folder = exec.and_then(|exec| exec.map_or(Ok(None), |exec| exec.folder(&self.name())));
        folder.and_then(|folder| folder.map_or(Ok(()), |folder| self.missing(&folder).map(drop))).err()
    }

    /// Returns a complete folder of the installation.
    fn installed(&self, path: &Path) -> Result<Option<PathBuf>, Refusal> {
        let Some(folder) = Folder::open_installed(path)? else { return Ok(None) };
        match self.missing(&folder)?.is_empty() {
            true => self.on_search_path(&folder).map(Some),
            false => Ok(None),
        }
    }

    /// Returns a subfolder and creates it if it does not exist.
    fn create(&self, within: &Path, name: &str) -> Result<PathBuf, Refusal> {
        let within = Folder::create(within)?;
        let written =
            |error: std::io::Error| Refusal { path: within.path().join(name), reason: Reason::System(error.to_string()) };
        if within.folder(name)?.is_none() {
            // Created under another name first, so that no one sees an incomplete folder.
            let aside = format!("{name}.{}", std::process::id());
            if let Some(new) = within.new_folder(&aside)? {
                self.fill(&new, &self.missing(&new)?).map_err(written)?;
                if !within.rename_folder(&aside, name).map_err(written)? {
                    let _ = self.everything().iter().try_for_each(|name| new.remove(name));
                    let _ = within.remove_folder(&aside);
                }
            }
        }
        let folder = within.folder_made(name)?;
        let missing = self.missing(&folder)?;
        if !missing.is_empty() {
            // Cleaners of temporary folders remove files that were not used for long.
            self.fill(&folder, &missing).map_err(written)?;
            self.missing(&folder)?;
        }
        self.on_search_path(&folder)
    }

    fn everything(&self) -> Vec<&str> {
        self.names.iter().map(|(name, _)| *name).chain(self.links().map(|(name, _)| name)).collect()
    }

    /// Examines a folder. Returns the missing names, or an error for foreign contents.
    fn missing(&self, folder: &Folder) -> Result<Vec<&str>, Refusal> {
        let wrong = |name: &str, what: &str| Refusal { path: folder.path().join(name), reason: Reason::Content(what.to_owned()) };
        let names = folder.names().map_err(|error| wrong("", &error.to_string()))?;
        let everything = self.everything();
        if let Some(name) = names.iter().find(|name| !everything.iter().any(|known| *name == known)) {
            return Err(wrong(&name.to_string_lossy(), "Broadloom did not put it among the libraries that programs are given"));
        }
        let mut missing = vec![];
        for (name, wanted) in self.links() {
            match folder.link_target(name.as_ref())? {
                Some(target) if target == wanted => {}
                Some(_) => return Err(wrong(name, "it leads elsewhere than to Broadloom's library or command")),
                None => missing.push(name),
            }
        }
        for ((name, _), (_, bytes)) in self.names.iter().zip(self.files()) {
            match folder.read(name, MOST_BYTES)? {
                Some(found) if found == bytes => {}
                Some(_) => return Err(wrong(name, "it does not hold what Broadloom put there")),
                None => missing.push(name),
            }
        }
        Ok(missing)
    }

    fn fill(&self, folder: &Folder, missing: &[&str]) -> std::io::Result<()> {
        for (name, bytes) in self.files().filter(|(name, _)| missing.contains(name)) {
            folder.write(name, &bytes)?;
        }
        for (name, target) in self.links() {
            match folder.link(name, target) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Returns a folder's path for the loader. Some characters have a special meaning in a search path.
    fn on_search_path(&self, folder: &Folder) -> Result<PathBuf, Refusal> {
        let path = folder.path().to_owned();
        if path.to_string_lossy().contains([':', ';', '$']) {
            let what = "the loader would read the `:`, `;` or `$` in its path as part of a search path".to_owned();
            return Err(Refusal { path, reason: Reason::Content(what) });
        }
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const NAMES: [(&str, Option<&str>); 2] = [("liba.so.1", Some("liba.so.1")), ("liba.so", None)];

    fn create(within: &Path) -> Result<PathBuf, Refusal> {
        let programs = [("program", PathBuf::from("/bin/command"))];
        let library = Path::new("/lib/stand-in.so");
        let wanted = ShimFolder { kind: "cuda", names: &NAMES, library, link: "stand-in.so", programs: &programs };
        wanted.create(within, "folder")
    }

    #[test]
    fn a_folder_holds_nothing_but_what_was_put_there() {
        let temporary = Temporary::new("broadloom-stand-in").unwrap();
        let within = temporary.path().join("exec");
        let folder = create(&within).unwrap();
        assert_eq!(create(&within), Ok(folder.clone()));
        let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["liba.so", "liba.so.1", "program", "stand-in.so"]);
        assert_eq!(fs::read_dir(&within).unwrap().count(), 1);
        // Missing files are restored; foreign files are refused.
        fs::remove_file(folder.join("liba.so")).unwrap();
        fs::remove_file(folder.join("stand-in.so")).unwrap();
        assert_eq!(create(&within), Ok(folder.clone()));
        let refused = |path: &Path| {
            let refusal = create(&within).unwrap_err();
            assert_eq!(refusal.path, path, "{refusal}");
            refusal.reason
        };
        let extra = folder.join("libm.so.6");
        fs::write(&extra, "an attack").unwrap();
        assert!(matches!(refused(&extra), Reason::Content(_)));
        fs::remove_file(&extra).unwrap();
        let library = folder.join("liba.so");
        let bytes = fs::read(&library).unwrap();
        fs::write(&library, "an attack").unwrap();
        assert!(matches!(refused(&library), Reason::Content(_)));
        fs::write(&library, bytes).unwrap();
        fs::set_permissions(&library, fs::Permissions::from_mode(0o620)).unwrap();
        assert_eq!(refused(&library), Reason::Writable(0o620));
        fs::remove_file(&library).unwrap();
        symlink("/lib/other.so", &library).unwrap();
        assert_eq!(refused(&library), Reason::Link);
        fs::remove_file(&library).unwrap();
        for link in ["stand-in.so", "program"].map(|name| folder.join(name)) {
            fs::remove_file(&link).unwrap();
            symlink("/lib/other.so", &link).unwrap();
            assert!(matches!(refused(&link), Reason::Content(_)));
            fs::remove_file(&link).unwrap();
            assert_eq!(create(&within), Ok(folder.clone()));
        }
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o770)).unwrap();
        assert_eq!(refused(&folder), Reason::Writable(0o770));
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(&within, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(refused(&within), Reason::Writable(0o777));
    }

    #[test]
    fn the_loader_reads_a_path_as_it_is_meant() {
        let temporary = Temporary::new("broadloom-search-path").unwrap();
        for name in ["a:b", "a;b", "$ORIGIN"] {
            assert!(matches!(create(&temporary.path().join(name)).unwrap_err().reason, Reason::Content(_)), "{name}");
        }
    }
}
