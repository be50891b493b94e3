//! The files of the repository: those that git tracks and those that it would add.

use crate::Crate;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of text.
#[derive(Clone, Debug)]
pub struct File {
    /// The path from the root, with forward slashes.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl File {
    /// The folder under `crates/` that holds it, if one does.
    pub fn krate(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Whether it is Rust.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// `path:line` of a byte of the text.
    pub fn place(&self, offset: usize) -> String {
        let line = self.text.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count() + 1;
        format!("{}:{line}", self.path)
    }
}

/// The repository.
#[derive(Debug)]
pub struct Repository {
    root: PathBuf,
    paths: Vec<String>,
}

impl Repository {
    /// The repository that this crate stands in.
    ///
    /// # Panics
    /// When git cannot list the files: then no law can be judged.
    pub fn open() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        // `safe.directory`: a checkout that belongs to another user, as in many containers, is read all the same.
        let listing = Command::new("git")
            .args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(&root)
            .output()
            .expect("the laws need git to list the files of the repository");
        assert!(listing.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listing.stderr));
        let names = String::from_utf8_lossy(&listing.stdout).into_owned();
        // A file that is deleted and not yet committed is still listed.
        let mut paths: Vec<String> =
            names.split('\0').filter(|path| !path.is_empty() && root.join(path).is_file()).map(str::to_owned).collect();
        paths.sort();
        paths.dedup();
        Repository { root, paths }
    }

    /// All paths, from the root, sorted.
    pub fn paths(&self) -> &[String] {
        &self.paths
    }

    /// Whether a file or a folder of this path is in the repository.
    pub fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let inside = |file: &String| file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.paths.iter().any(inside)
    }

    /// One file, if it is there and is text.
    pub fn file(&self, path: &str) -> Option<File> {
        let text = std::fs::read_to_string(self.root.join(path)).ok()?;
        Some(File { path: path.to_owned(), text })
    }

    /// All files of text whose path pleases.
    pub fn files<'a>(&'a self, wanted: impl Fn(&str) -> bool + 'a) -> impl Iterator<Item = File> + 'a {
        self.paths.iter().filter(move |path| wanted(path)).filter_map(|path| self.file(path))
    }

    /// All Rust files.
    pub fn rust_files(&self) -> impl Iterator<Item = File> + '_ {
        self.files(|path| path.ends_with(".rs"))
    }

    /// The crates, by folder name.
    pub fn crates(&self) -> Vec<Crate> {
        let manifests =
            self.files(|path| path.starts_with("crates/") && path.matches('/').count() == 2 && path.ends_with("/Cargo.toml"));
        manifests.map(|file| Crate::read(&file)).collect()
    }
}
