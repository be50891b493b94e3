//! Origins of undefined values.

use super::finding::FindingKind;
use crate::cta::CodeSite;
use broadloom_ptx::{Func, Inst};
use std::collections::HashMap;

/// Instructions at which an undefined value was first used, each once.
#[derive(Debug, Default)]
pub(super) struct Origins {
    pub(super) list: Vec<Origin>,
    places: HashMap<(Func, Inst, String), u32>,
}

#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) func: Func,
    pub(super) inst: Inst,
    pub(super) kind: FindingKind,
    pub(super) message: String,
}

impl Origins {
    /// Adds an origin and returns its number, from one on.
    pub(super) fn add(&mut self, site: CodeSite<'_>, kind: FindingKind, message: String) -> u32 {
        let list = &mut self.list;
        *self.places.entry((site.func, site.op.inst, message.clone())).or_insert_with(|| {
            list.push(Origin { func: site.func, inst: site.op.inst, kind, message });
            list.len() as u32
        })
    }
}
