//! Reasons why an object is not loaded.

/// Reason why an object was not loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// Not an object file, or a broken one, with the reason.
    #[error("not a whole object file: {0}")]
    Malformed(&'static str),
    /// An object for another machine.
    #[error("an object file for another machine ({0})")]
    OtherMachine(u16),
    /// A name that nothing defines.
    #[error("`{0}` is used and nothing defines it")]
    Undefined(String),
    /// A relocation that this loader does not know.
    #[error("relocation of the unknown kind {0}")]
    UnknownRelocation(u32),
    /// A relocation whose value does not fit.
    #[error("relocation of the kind {0} does not reach its target")]
    OutOfRange(u32),
    /// The host gave no memory.
    #[error("no memory for code: {0}")]
    NoMemory(String),
}
