//! `broadloom cache`: the folder in which compiled code is kept for all devices.

use crate::failure::{Exit, Failure, codes};
use crate::options::{Cache, CacheAction};
use crate::terminal::Terminal;
use broadloom::device::CacheFolder;
use broadloom::device::cache::{Counts, DeviceContents, Miss};
use broadloom::diag::Diagnostic;

/// Says what is in the folder, or empties it.
pub fn run(options: &Cache, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let (folder, device) = (CacheFolder::Default, options.device.as_deref());
    let (outcome, what) = match options.action {
        CacheAction::Stats => (folder.contents(), ""),
        CacheAction::Clear => (folder.clear(device), " removed"),
    };
    let contents = outcome.map_err(|error| {
        let name = folder.path().map_or_else(String::new, |path| path.display().to_string());
        Failure::new(Exit::Machine, Diagnostic::error(codes::CACHE, format!("the folder {name}: {error}")))
    })?;
    let Some(mut contents) = contents else {
        terminal.write("compiled code is kept nowhere: BROADLOOM_CACHE is `off`, or neither it nor HOME is set\n");
        return Ok(Exit::Done);
    };
    contents.devices.retain(|contents| device.is_none_or(|device| device == contents.device));
    let size = sized(contents.entries(), "piece", contents.bytes());
    terminal.write(&format!("{}: {size} of compiled code{what}\n", contents.folder.display()));
    if options.action == CacheAction::Stats {
        contents.devices.iter().for_each(|contents| describe(contents, terminal));
    }
    Ok(Exit::Done)
}

fn sized(count: u64, what: &str, bytes: u64) -> String {
    format!("{count} {what}{}, {:.1} KiB", if count == 1 { "" } else { "s" }, bytes as f64 / 1024.0)
}

fn describe(contents: &DeviceContents, terminal: &mut Terminal) {
    let DeviceContents { device, entries, bytes, counts } = contents;
    let what = if *device == "cuda" { "module" } else { "kernel" };
    terminal.write(&format!("  {device:<6}{}\n", sized(*entries, what, *bytes)));
    if *counts != Counts::default() {
        let times = |count: u64| format!("{count} time{}", if count == 1 { "" } else { "s" });
        terminal.write(&format!("        found {}, not found {}\n", times(counts.found), times(counts.all_missed())));
        for reason in Miss::ALL.into_iter().filter(|reason| counts.missed(*reason) > 0) {
            terminal.write(&format!("        {:>7}  {reason}\n", counts.missed(reason)));
        }
    }
}
