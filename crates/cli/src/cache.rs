//! `broadloom cache`: the folder of compiled code of all devices.

use crate::exec;
use crate::failure::{Exit, Failure, codes};
use crate::options::{Cache, CacheAction};
use crate::terminal::{Terminal, counted};
use broadloom::device::CacheFolder;
use broadloom::device::cache::{Counts, DeviceContents, Miss};
use broadloom::device::private::Refusal;
use broadloom::diag::Diagnostic;
use std::io;
use std::path::Path;

/// Lists the contents of the folder, or clears it.
pub fn run(options: &Cache, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let (folder, device) = (CacheFolder::Default, options.device.as_deref());
    let (contents, what) = match options.action {
        CacheAction::Stats => (folder.contents(), ""),
        CacheAction::Clear => (folder.clear(device).map_err(refused)?, " removed"),
    };
    let Some(mut contents) = contents else {
        let is_off = std::env::var_os("BROADLOOM_CACHE").is_some_and(|value| value == "off");
        let reason = if is_off { "BROADLOOM_CACHE is `off`" } else { "none of BROADLOOM_CACHE, XDG_CACHE_HOME and HOME is set" };
        terminal.write(&format!("compiled code is kept nowhere: {reason}\n"));
        return Ok(Exit::Done);
    };
    contents.devices.retain(|contents| device.is_none_or(|device| device == contents.device));
    let size = sized(contents.entries(), "piece", contents.bytes());
    terminal.write(&format!("{}: {size} of compiled code{what}\n", contents.folder.display()));
    if options.action == CacheAction::Stats {
        contents.devices.iter().for_each(|contents| describe(contents, terminal));
        let mut refused = contents.refused;
        let stand_in = exec::refusal().filter(|refusal| !refused.contains(refusal));
        refused.extend(stand_in);
        if refused.is_empty()
            && let Err(error) = try_writing(&contents.folder)
        {
            terminal.write(&format!("nothing is stored: the folder cannot be written: {error}\n      "));
            terminal.write("set BROADLOOM_CACHE to a folder of your own, or to `off`\n");
        }
        if !refused.is_empty() {
            terminal.write("not used:\n");
        }
        for refusal in refused {
            terminal.write(&format!("  {refusal}\n      {}\n", refusal.help()));
        }
        if contents.more_refused > 0 {
            terminal.write(&format!("  and {} more files\n", contents.more_refused));
        }
    }
    Ok(Exit::Done)
}

/// Tests if a folder, or the nearest existing one above it, can be written. Nothing is left behind.
fn try_writing(folder: &Path) -> io::Result<()> {
    let existing = folder.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    let existing = if existing.as_os_str().is_empty() { Path::new(".") } else { existing };
    let probe = existing.join(format!(".broadloom-{}", std::process::id()));
    std::fs::create_dir(&probe)?;
    std::fs::remove_dir(&probe)
}

/// Converts a refused folder to a failure.
fn refused(refusal: Refusal) -> Failure {
    Failure::new(Exit::Machine, Diagnostic::error(codes::CACHE, refusal.to_string()).help(refusal.help()))
}

fn sized(count: u64, thing: &str, bytes: u64) -> String {
    format!("{}, {:.1} KiB", counted(count, thing), bytes as f64 / 1024.0)
}

fn describe(contents: &DeviceContents, terminal: &mut Terminal) {
    let DeviceContents { device, entries, bytes, counts } = contents;
    let what = if *device == "cuda" { "module" } else { "kernel" };
    terminal.write(&format!("  {device:<6}{}\n", sized(*entries, what, *bytes)));
    if *counts != Counts::default() {
        let times = |count: u64| counted(count, "time");
        terminal.write(&format!("        found {}, not found {}\n", times(counts.found), times(counts.all_missed())));
        for reason in Miss::ALL.into_iter().filter(|reason| counts.missed(*reason) > 0) {
            terminal.write(&format!("        {:>7}  {reason}\n", counts.missed(reason)));
        }
    }
}
