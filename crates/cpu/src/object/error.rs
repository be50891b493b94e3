//! Reasons why an object is not loaded.

/// Reason why an object was not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectError {
    /// Not an object file, or a broken one, with the reason.
    Malformed(&'static str),
    /// An object for another machine.
    OtherMachine(u16),
    /// A name that nothing defines.
    Undefined(String),
    /// A relocation that this loader does not know.
    UnknownRelocation(u32),
    /// A relocation whose value does not fit.
    OutOfRange(u32),
    /// The host gave no memory.
    NoMemory(String),
}

impl std::fmt::Display for ObjectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ObjectError::Malformed(what) => write!(f, "not a whole object file: {what}"),
            ObjectError::OtherMachine(machine) => write!(f, "an object file for another machine ({machine})"),
            ObjectError::Undefined(name) => write!(f, "`{name}` is used and nothing defines it"),
            ObjectError::UnknownRelocation(kind) => write!(f, "relocation of the unknown kind {kind}"),
            ObjectError::OutOfRange(kind) => write!(f, "relocation of the kind {kind} does not reach its target"),
            ObjectError::NoMemory(why) => write!(f, "no memory for code: {why}"),
        }
    }
}
