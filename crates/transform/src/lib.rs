//! Passes over PTX functions. A pass takes a function of a module and changes it; it never runs code.
//!
//! One pass, one file, one verb. After every pass the function is verified in its declared form, and an error
//! is attributed to the pass. Hidden modules are public for the tests of this crate alone.

mod blocks;
mod compact;
pub mod facts;
pub mod fold;
pub mod fold_ranges;
pub mod from_ssa;
pub mod hoist_statics;
pub mod if_convert;
pub mod inline_calls;
pub mod linearise;
pub mod lower_branches;
pub mod lower_carry;
pub mod lower_copies;
mod names;
pub mod nest_loops;
pub mod pipeline;
pub mod promote_locals;
pub mod purity;
pub mod remove_dead;
pub mod return_exits;
pub mod share;
pub mod sink_stores;
pub mod split_at_barriers;
pub mod store_results;
mod substitution;
pub mod to_ssa;
pub mod unify_exits;
#[doc(hidden)]
pub mod write;

pub use facts::Facts;

use broadloom_diag::Diagnostics;
use broadloom_ptx::{Function, Module, verify_function};

/// Error for a pass that left a function invalid. It is always an internal error, never caused by the input.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The name of the pass, a verb phrase.
    pub pass: &'static str,
    /// The name of the function that is no longer valid.
    pub function: String,
    /// Errors of the verifier.
    pub diagnostics: Diagnostics,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "internal error: pass `{}` broke `{}`; please report this", self.pass, self.function)?;
        self.diagnostics.iter().try_for_each(|diagnostic| write!(f, "\n  {}", diagnostic.message))
    }
}

impl std::error::Error for Broken {}

/// Verifies the result of a pass.
pub fn check(pass: &'static str, module: &Module, function: &Function) -> Result<(), Broken> {
    verify_function(module, function).map_err(|diagnostics| Broken { pass, function: function.name.clone(), diagnostics })
}
