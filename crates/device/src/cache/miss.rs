//! Reasons for cache misses.

use std::fmt;

broadloom_diag::named! {
    /// Reason for a cache miss.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Miss {
        /// The cache is disabled.
        Disabled = "disabled",
        /// No entry of this code is known.
        Unseen = "unseen",
        /// The entry was made by another version of Broadloom.
        OtherVersion = "other-version",
        /// The entry was made for another machine: other CPU features, another GPU or driver.
        OtherMachine = "other-machine",
        /// The entry was made with other options, or for another block shape.
        OtherOptions = "other-options",
        /// The entry was evicted.
        Evicted = "evicted",
        /// The entry was damaged, or not made by this user.
        Corrupt = "corrupt",
        /// The folder cannot be read.
        Unreadable = "unreadable",
        /// Another user may have written to the folder or the file, or there is no secret to verify it.
        Untrusted = "untrusted",
        /// Code of this kind is not cached.
        Unkept = "unkept",
    }
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Miss::Disabled => "nothing is kept on disk",
            Miss::Unseen => "never seen before",
            Miss::OtherVersion => "made by another version of Broadloom",
            Miss::OtherMachine => "made for other features of the machine or another driver",
            Miss::OtherOptions => "made with other options or for another shape of block",
            Miss::Evicted => "it had to make room for others",
            Miss::Corrupt => "what was kept was broken, or made by another user",
            Miss::Unreadable => "the folder cannot be read",
            Miss::Untrusted => "others could write to the folder or the file; `broadloom cache stats` names it",
            Miss::Unkept => "code of this kind is left to the driver",
        })
    }
}
