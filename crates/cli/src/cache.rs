//! `broadloom cache`: the folder in which compiled kernels are kept.

use crate::failure::{Exit, Failure, codes};
use crate::options::{Cache, CacheAction};
use crate::terminal::Terminal;
use broadloom::cpu::{CacheFolder, Contents};
use broadloom::diag::Diagnostic;

/// Says what is in the folder, or empties it.
pub fn run(options: &Cache, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let folder = CacheFolder::Default;
    let (outcome, what) = match options.action {
        CacheAction::Stats => (folder.contents(), ""),
        CacheAction::Clear => (folder.clear(), " removed"),
    };
    let contents = outcome.map_err(|error| {
        let name = folder.path().map_or_else(String::new, |path| path.display().to_string());
        Failure::new(Exit::Machine, Diagnostic::error(codes::CACHE, format!("the folder {name}: {error}")))
    })?;
    match contents {
        Some(Contents { folder, kernels, bytes }) => {
            let plural = if kernels == 1 { "" } else { "s" };
            let bytes = bytes as f64 / 1024.0;
            terminal.write(&format!("{}: {kernels} compiled kernel{plural}, {bytes:.1} KiB{what}\n", folder.display()));
        }
        None => terminal.write("compiled kernels are kept nowhere: neither BROADLOOM_CACHE nor HOME is set\n"),
    }
    Ok(Exit::Done)
}
