//! Results of a parsed graph.

use super::parse::Graph;
use crate::expr::error::Result;
use crate::expr::host_array::HostArray;
use crate::expr::node::Node;

/// Results of a graph, to be computed together with the numbers of their elements.
#[derive(Clone, Debug)]
pub struct Results {
    results: Vec<(String, Node, Option<Node>)>,
}

/// Computed result of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct ComputedResult {
    /// Name in the text.
    pub name: String,
    /// Its elements that are defined.
    pub array: HostArray,
    /// Number of elements in memory, if those behind the defined ones are arbitrary.
    pub of: Option<usize>,
}

impl Graph {
    /// Returns the results. Call this before they are computed.
    pub fn results(&self) -> Result<Results> {
        let result = |(name, node): &(String, Node)| Ok((name.clone(), node.clone(), node.defined_count()?));
        Ok(Results { results: self.outputs.iter().map(result).collect::<Result<_>>()? })
    }
}

impl Results {
    /// Returns all nodes to be computed: the results, and the numbers of their elements.
    pub fn nodes(&self) -> Vec<Node> {
        let results = self.results.iter().map(|(_, node, _)| node);
        results.chain(self.results.iter().filter_map(|(.., count)| count.as_ref())).cloned().collect()
    }

    /// Reads the results with a function that returns the elements of a node.
    pub fn read(&self, read: impl Fn(&Node) -> Result<HostArray>) -> Result<Vec<ComputedResult>> {
        let result = |(name, node, count): &(String, Node, Option<Node>)| {
            let (name, array) = (name.clone(), read(node)?);
            let Some(count) = count else { return Ok(ComputedResult { name, array, of: None }) };
            let count = read(count)?.lanes.first().map_or(0, |count| count.bits() as usize);
            let of = Some(array.shape.count());
            Ok(ComputedResult { name, array: array.first(count), of })
        };
        self.results.iter().map(result).collect()
    }
}

impl ComputedResult {
    /// Returns the name with the number of its elements: `values`, or `values (4 of 10 elements)`.
    pub fn title(&self) -> String {
        match self.of {
            None => self.name.clone(),
            Some(of) => format!("{} ({} of {of} elements)", self.name, self.array.shape.count()),
        }
    }
}
