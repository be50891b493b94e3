//! Arrays that are held in memory between stages.

use super::items::Port;
use broadloom_graph::Node;
use std::collections::BTreeSet;

/// Arrays in memory while items are lowered, and the items that depend on them.
#[derive(Debug)]
pub(super) struct Ledger {
    /// Size of each array in bytes.
    bytes: Vec<u64>,
    /// Arrays from which the values of each item are computed.
    behind: Vec<BTreeSet<usize>>,
}

impl Ledger {
    pub(super) fn new(items: usize) -> Ledger {
        Ledger { bytes: vec![], behind: vec![BTreeSet::new(); items] }
    }

    /// Records an item that is computed from its inputs when it is needed.
    pub(super) fn pending(&mut self, number: usize, inputs: &[Port]) {
        self.behind[number] = inputs.iter().flat_map(|port| self.behind[port.item].iter().copied()).collect();
    }

    /// Records an item whose values are in memory.
    pub(super) fn settled(&mut self, number: usize, bytes: u64) {
        self.behind[number] = BTreeSet::from([self.bytes.len()]);
        self.bytes.push(bytes);
    }

    /// Returns the bytes of the arrays on which some items depend.
    pub(super) fn held(&self, items: impl Iterator<Item = usize>) -> u64 {
        let arrays: BTreeSet<usize> = items.flat_map(|item| self.behind[item].iter().copied()).collect();
        arrays.iter().map(|array| self.bytes[*array]).sum()
    }
}

/// Returns the bytes of an array.
pub(super) fn bytes_of(node: &Node) -> u64 {
    node.shape().count() as u64 * u64::from(node.ty().bytes())
}
