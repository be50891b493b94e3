//! Writes generated kernels to files, for other tools to check: `dump FIRST COUNT FOLDER`.

use broadloom_fuzzgen::{Config, generate};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("dump FIRST COUNT FOLDER");
    let (first, count): (u64, u64) = (next()?.parse()?, next()?.parse()?);
    let folder = PathBuf::from(next()?);
    std::fs::create_dir_all(&folder)?;
    for seed in first..first + count {
        std::fs::write(folder.join(format!("fuzz-{seed}.ptx")), generate(seed, &Config::default()).text)?;
    }
    Ok(())
}
