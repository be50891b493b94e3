//! `broadloom effect noise`: the noise of images, and the threshold of `degrain` for it.

use super::failure::failure;
use super::pipeline::{is_stream, read_stream};
use crate::failure::Failure;
use crate::terminal::Terminal;
use broadloom::effect::file::{self, FileError, Limits, RowReader};
use broadloom::effect::image::NoiseEstimate;
use std::path::{Path, PathBuf};

/// Number of rows that are read at a time.
const ROWS: u32 = 256;

/// Prints the noise of files.
pub(super) fn print(files: &[PathBuf], terminal: &mut Terminal) -> Result<(), Failure> {
    for path in files {
        let planes = estimated(path).map_err(|error| failure(error.into()))?;
        // Noise of a picture is about the same in all colours; the mean is less wrong where one of them is flat.
        let mean = planes.iter().map(|(_, noise)| noise).sum::<f64>() / planes.len().max(1) as f64;
        let planes: Vec<String> = planes.iter().map(|(name, noise)| format!("{name} {noise:.4}")).collect();
        let threshold = mean / 2.0;
        terminal.write(&format!("{}: {}; degrain --set threshold={threshold:.4}\n", path.display(), planes.join(", ")));
    }
    Ok(())
}

fn estimated(path: &Path) -> Result<Vec<(String, f64)>, FileError> {
    let mut reader: RowReader = if is_stream(path) { read_stream()? } else { file::open_rows(path, Limits::default())? };
    let mut estimate = NoiseEstimate::new(reader.header());
    while let Some(band) = reader.read(ROWS)? {
        estimate.add(&band);
    }
    Ok(estimate.finish())
}
