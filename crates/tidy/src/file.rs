//! Text file of the repository.

/// Text file.
#[derive(Clone, Debug)]
pub struct File {
    /// Path from the root, with forward slashes.
    pub path: String,
    /// Contents.
    pub text: String,
}

impl File {
    /// Returns the folder under `crates/` that contains it, if any.
    pub fn krate(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Tests if it is a Rust file.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Formats the location of a byte as `path:line`.
    pub fn place(&self, offset: usize) -> String {
        let line = self.text.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count() + 1;
        format!("{}:{line}", self.path)
    }
}
