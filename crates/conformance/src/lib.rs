//! The corpus as a conformance suite.
//!
//! Each kernel of the corpus has a [`Case`]: it makes inputs, launches the kernel's entry points on a given
//! device, and compares the results with an independent reference in plain Rust. Integers and correctly
//! rounded floats agree bit for bit; approximate results agree within bounds that stand beside the
//! comparison.
//!
//! Invariants: a case knows no executor, and its inputs are the same in each run. Every file of `corpus/cuda`
//! has a case; a test checks that.

mod cases;
mod compare;
mod inputs;
mod trial;

use std::path::{Path, PathBuf};

pub use cases::SUITE;
pub use trial::{DeviceUnderTest, Failure, Outcome};

use trial::Trial;

/// Variants in which every kernel was compiled.
pub const VARIANTS: [&str; 4] = ["sm75", "sm75.g", "sm90", "sm90.g"];

/// Kernel of the corpus with its check.
#[derive(Clone, Copy)]
pub struct Case {
    /// Name of its source, without `.cu`.
    pub kernel: &'static str,
    pub(crate) check: fn(&mut Trial<'_>) -> Outcome,
}

impl Case {
    /// Returns the file with its PTX in a variant.
    pub fn ptx(&self, variant: &str) -> PathBuf {
        corpus().join("ptx").join(format!("{}.{variant}.ptx", self.kernel))
    }

    /// Returns the name and the text of a variant.
    fn text(&self, variant: &str) -> Result<(String, String), Failure> {
        let name = format!("corpus/ptx/{}.{variant}.ptx", self.kernel);
        let text = std::fs::read_to_string(self.ptx(variant)).map_err(|error| Failure::Module(format!("{name}: {error}")))?;
        Ok((name, text))
    }

    /// Returns whether a variant is an earlier one with another header. If so, its module is verified.
    pub fn is_repeated(&self, variant: &str) -> Result<bool, Failure> {
        let (name, text) = self.text(variant)?;
        for earlier in VARIANTS.iter().take_while(|earlier| **earlier != variant) {
            if code(&self.text(earlier)?.1) == code(&text) {
                return trial::verified(&name, &text).map(|_| true);
            }
        }
        Ok(false)
    }

    /// Runs one variant on a device and compares its results.
    pub fn run(&self, subject: &DeviceUnderTest, variant: &str) -> Outcome {
        let (name, text) = self.text(variant)?;
        self.run_text(subject, &name, &text)
    }

    /// Runs the text of a variant on a device and compares its results; `name` is its name in diagnostics.
    pub fn run_text(&self, subject: &DeviceUnderTest, name: &str, text: &str) -> Outcome {
        (self.check)(&mut Trial::load(subject, name, text)?)
    }
}

/// Returns the text behind the header of a module.
fn code(text: &str) -> &str {
    text.split_once(".address_size").map_or(text, |(_, code)| code)
}

/// Returns the folder of the corpus.
pub fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")
}
