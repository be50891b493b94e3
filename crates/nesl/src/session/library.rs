//! The library: the files of `prelude/`, in the order in which they are read.
//!
//! A process reads them once for each choice of widths. Later sessions get a copy of the definitions.
//! Variables are evaluated for each session, since some of them depend on the host.

use super::worker::{Variable, Worker};
use crate::core::Environment;
use crate::infer::Widths;
use crate::syntax::parse;
use broadloom_diag::{SourceId, Sources};
use std::sync::{Arc, Mutex, PoisonError};

/// Names and texts of the files.
pub(super) const FILES: [(&str, &str); 12] = [
    ("logic.nesl", include_str!("../../prelude/logic.nesl")),
    ("arithmetic.nesl", include_str!("../../prelude/arithmetic.nesl")),
    ("elementary.nesl", include_str!("../../prelude/elementary.nesl")),
    ("sequence.nesl", include_str!("../../prelude/sequence.nesl")),
    ("reorder.nesl", include_str!("../../prelude/reorder.nesl")),
    ("apply.nesl", include_str!("../../prelude/apply.nesl")),
    ("nest.nesl", include_str!("../../prelude/nest.nesl")),
    ("collection.nesl", include_str!("../../prelude/collection.nesl")),
    ("table.nesl", include_str!("../../prelude/table.nesl")),
    ("text.nesl", include_str!("../../prelude/text.nesl")),
    ("files.nesl", include_str!("../../prelude/files.nesl")),
    ("helpers.nesl", include_str!("../../prelude/helpers.nesl")),
];

/// Prefix of names that are hidden from programs.
pub(super) const HIDDEN: &str = "prim_";

/// Names of the library that a program may redefine.
pub(super) const REDEFINABLE: [&str; 40] = [
    "all",
    "any",
    "bottop",
    "cond_put",
    "count",
    "display",
    "drop",
    "elt",
    "enumerate",
    "exp_string",
    "hash",
    "head_rest",
    "index",
    "interleave",
    "iseq",
    "join",
    "ln",
    "max_index",
    "max_val",
    "min_index",
    "min_val",
    "mod",
    "partition",
    "permute",
    "put",
    "rand",
    "rem",
    "rest_tail",
    "rotate",
    "split",
    "sqrt",
    "subseq",
    "sum",
    "take",
    "trace_string_depth",
    "trace_string_length",
    "transpose",
    "unpack",
    "user",
    "zip",
];

/// Library as read by a session.
struct Library {
    widths: Widths,
    env: Environment,
    sources: Sources,
    last: Option<SourceId>,
    variables: Vec<Variable>,
}

/// The library for each choice of widths used by a session of the process.
static LIBRARIES: Mutex<Vec<Arc<Library>>> = Mutex::new(vec![]);

impl Worker {
    /// Reads the library, or copies the one that another session has read.
    pub(super) fn load_library(&mut self) {
        let widths = self.state.options.widths;
        let known = || LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner);
        let library = known().iter().find(|library| library.widths == widths).cloned();
        if let Some(library) = library {
            (self.env, self.sources) = (library.env.clone(), library.sources.clone());
            self.state.library = library.last;
            for (id, body) in &library.variables {
                self.state.globals[*id] = self.run(body).ok();
            }
            return;
        }
        for (name, text) in FILES {
            let source = self.sources.add(format!("prelude/{name}"), text);
            self.state.library = Some(source);
            let program = parse(source, text);
            self.forms(&program);
        }
        self.seal_library();
        // A stop drops the rest of a text.
        if self.state.options.is_stopped() {
            return;
        }
        let (env, sources, variables) = (self.env.clone(), self.sources.clone(), std::mem::take(&mut self.variables));
        let library = Library { widths, env, sources, last: self.state.library, variables };
        known().push(Arc::new(library));
    }
}
