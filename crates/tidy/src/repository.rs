//! Files of the repository: those that git tracks and those that it would add.

#[cfg(feature = "manifests")]
use crate::Crate;
use crate::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Paths of the checkout that contains this crate.
#[derive(Debug)]
pub struct Repository {
    root: PathBuf,
    paths: Vec<String>,
}

impl Repository {
    /// Opens the repository that contains this crate.
    ///
    /// # Panics
    /// If git cannot list the files: then no law can be checked.
    pub fn open() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        // `safe.directory`: a checkout that belongs to another user, as in many containers, is read
        // nevertheless.
        let listing = Command::new("git")
            .args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(&root)
            .output()
            .expect("the laws need git to list the files of the repository");
        assert!(listing.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listing.stderr));
        let names = String::from_utf8_lossy(&listing.stdout).into_owned();
        // Files that are deleted but not yet committed are still listed.
        let mut paths: Vec<String> =
            names.split('\0').filter(|path| !path.is_empty() && root.join(path).is_file()).map(str::to_owned).collect();
        paths.sort();
        paths.dedup();
        Repository { root, paths }
    }

    /// Writes a file that a law generates.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, path: &str, text: &str) {
        std::fs::write(self.root.join(path), text).unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// Returns all paths from the root, sorted.
    pub fn paths(&self) -> &[String] {
        &self.paths
    }

    /// Tests if a file or a folder of this path is in the repository.
    pub fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let inside = |file: &String| file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.paths.iter().any(inside)
    }

    /// Returns a file, if it exists and is text.
    pub fn file(&self, path: &str) -> Option<File> {
        let text = std::fs::read_to_string(self.root.join(path)).ok()?;
        Some(File { path: path.to_owned(), text })
    }

    /// Returns all text files whose path satisfies a predicate.
    pub fn files<'a>(&'a self, wanted: impl Fn(&str) -> bool + 'a) -> impl Iterator<Item = File> + 'a {
        self.paths.iter().filter(move |path| wanted(path)).filter_map(|path| self.file(path))
    }

    /// Returns the documents for readers: those of the root and the guides.
    pub fn documents(&self) -> impl Iterator<Item = File> + '_ {
        self.files(|path| path.ends_with(".md") && (!path.contains('/') || path.starts_with("docs/")))
    }

    /// Returns all Rust files.
    pub fn rust_files(&self) -> impl Iterator<Item = File> + '_ {
        self.files(|path| path.ends_with(".rs"))
    }

    /// Returns the crates, by folder name.
    #[cfg(feature = "manifests")]
    pub fn crates(&self) -> Vec<Crate> {
        let manifests =
            self.files(|path| path.starts_with("crates/") && path.matches('/').count() == 2 && path.ends_with("/Cargo.toml"));
        manifests.map(|file| Crate::read(&file)).collect()
    }
}
