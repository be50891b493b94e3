//! The user's secret, which authenticates stored data.
//!
//! The secret is 32 random bytes in the file `secret` of the [state folder](state_folder), readable by this
//! user alone. It is created once and read once per process. Removing it only invalidates the data stored
//! with it.

use super::{Facts, Folder, Reason, Refusal};
use rustix::rand::GetRandomFlags;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Size of a secret in bytes.
pub const SECRET_BYTES: usize = 32;
const NAME: &str = "secret";

/// Key for tags that only this user can compute and verify.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; SECRET_BYTES]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Returns the state folder of this user: `broadloom` in `$XDG_STATE_HOME` or `~/.local/state`.
pub fn state_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let states = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local").join("state")));
    states.map(|states| states.join("broadloom"))
}

impl Secret {
    /// Returns the secret of this user, read or created by the first call of the process.
    pub fn of_user() -> Result<&'static Secret, &'static Refusal> {
        static SECRET: OnceLock<Result<Secret, Refusal>> = OnceLock::new();
        SECRET.get_or_init(|| Secret::at(&state_folder().ok_or_else(no_home)?)).as_ref()
    }

    /// Returns why the secret of this user is unavailable. A missing secret is no reason, and is not created.
    pub fn refusal() -> Option<Refusal> {
        let Some(folder) = state_folder() else { return Some(no_home()) };
        let found = Folder::open(&folder).and_then(|folder| folder.map_or(Ok(None), |folder| existing(&folder)));
        found.err()
    }

    /// Returns the secret in a folder and creates it if it does not exist. If several processes create one,
    /// the first wins.
    pub fn at(folder: &Path) -> Result<Secret, Refusal> {
        let folder = Folder::create(folder)?;
        if let Some(secret) = existing(&folder)? {
            return Ok(secret);
        }
        let failed = |error: &dyn fmt::Display| Refusal::system(&folder.path().join(NAME), error);
        let mut bytes = [0; SECRET_BYTES];
        let mut filled = 0;
        while filled < bytes.len() {
            filled += rustix::rand::getrandom(&mut bytes[filled..], GetRandomFlags::empty()).map_err(|error| failed(&error))?;
        }
        if folder.write_new(NAME, &bytes).map_err(|error| failed(&error))? {
            return Ok(Secret(bytes));
        }
        existing(&folder)?.ok_or_else(|| failed(&"it was removed while it was made"))
    }

    /// Returns the tag of some parts: a hash that cannot be computed without the secret.
    pub fn tag(&self, parts: &[&[u8]]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        hasher.finalize()
    }

    #[cfg(test)]
    pub(crate) fn of_byte(byte: u8) -> Secret {
        Secret([byte; SECRET_BYTES])
    }
}

fn no_home() -> Refusal {
    Refusal::new(Path::new(NAME), Reason::NoHome)
}

fn existing(folder: &Folder) -> Result<Option<Secret>, Refusal> {
    let path = || folder.path().join(NAME);
    let file = match folder.file(NAME) {
        // On file systems without an exclusive rename, a new secret briefly has two names.
        Err(Refusal { reason: Reason::HardLinks(2), .. }) => {
            std::thread::sleep(std::time::Duration::from_millis(20));
            folder.file(NAME)?
        }
        file => file?,
    };
    let Some(file) = file else { return Ok(None) };
    let facts = Facts::of(&file.metadata().map_err(|error| Refusal::system(&path(), error))?);
    if facts.mode & 0o077 != 0 {
        return Err(Refusal::new(&path(), Reason::Readable(facts.mode)));
    }
    let bytes = folder.contents(NAME, &file, SECRET_BYTES as u64)?;
    let bytes: [u8; SECRET_BYTES] = bytes.try_into().map_err(|bytes: Vec<u8>| {
        Refusal::new(&path(), Reason::Content(format!("it has {} bytes, and a secret has {SECRET_BYTES}", bytes.len())))
    })?;
    Ok(Some(Secret(bytes)))
}
