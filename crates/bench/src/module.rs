//! Modules of the device from PTX text.

use crate::error::Failure;
use broadloom::device::{Device, Module};
use broadloom::diag::Sources;
use broadloom::ptx;
use std::sync::Arc;

/// Parses and verifies PTX text. Errors name the file.
pub(crate) fn parse(file: &str, text: &str) -> Result<Arc<ptx::Verified>, Failure> {
    let mut sources = Sources::new();
    let id = sources.add(file, text);
    let module = ptx::parse(&sources, id).and_then(ptx::verify);
    module.map(Arc::new).map_err(|errors| Failure::Module(sources.render_all(&errors)))
}

/// Loads PTX text on a device.
pub(crate) fn load(device: &Device, file: &str, text: &str) -> Result<Module, Failure> {
    Ok(device.load(&parse(file, text)?)?)
}
