//! Texts of modules, and the images that the linker makes of them: a text after magic numbers.

use broadloom_diag::{Diagnostics, Sources};
use broadloom_ptx::Verified;

/// Magic number of an image of any driver.
pub(crate) const ELF: &[u8] = b"\x7fELF";
/// Magic number of an image of this driver, after the first.
pub(crate) const OURS: &[u8] = b"fakecuda";

/// Name of a kernel that is not compiled.
const REFUSED: &str = "refused";

/// Module that the driver does not load.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidModule {
    #[error(transparent)]
    NotText(#[from] std::str::Utf8Error),
    #[error("{0}")]
    Wrong(String),
    #[error("line {0}; refused, as its name asks for")]
    Refused(usize),
}

/// Parses and verifies a module.
pub(crate) fn verified(text: &[u8]) -> Result<Verified, InvalidModule> {
    let text = std::str::from_utf8(text)?;
    let mut sources = Sources::new();
    let id = sources.add("module", text);
    let module = broadloom_ptx::parse(&sources, id).and_then(broadloom_ptx::verify);
    let first = |wrong: Diagnostics| wrong.iter().next().map_or_else(String::new, |diagnostic| diagnostic.message.clone());
    let module = module.map_err(|wrong| InvalidModule::Wrong(first(wrong)))?;
    if module.kernels().any(|(_, kernel)| kernel.name == REFUSED) {
        let line = text.lines().position(|line| line.contains(REFUSED)).unwrap_or(0) + 1;
        return Err(InvalidModule::Refused(line));
    }
    Ok(module)
}
