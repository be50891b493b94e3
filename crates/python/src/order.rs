//! Functions that sort and select.

use crate::call::{Answer, Arguments, Entry};
use crate::error::of_graph;
use broadloom::Context;
use broadloom::graph::{Node, SortKey};
use broadloom_scalar::{Element, Type};

/// Functions of the module.
pub(crate) const FUNCTIONS: &[Entry] = &[
    (c"sort_rows", c"sort_rows(line, rows, descending): the keys and their places, sorted in rows of equal length.", sort_rows),
    (c"pack", c"pack(line, mask): the elements where the mask is true.", pack),
    (c"histogram", c"histogram(line, bins): the number of elements equal to 0, 1, 2 …", histogram),
];

/// Sorts the rows of a line: returns the sorted line, and the place of each element in its row before.
fn sort_rows(arguments: &Arguments<'_, '_>) -> Answer {
    let (line, rows) = (arguments.handle::<Node>(0)?, arguments.get::<usize>(1)?);
    let key = SortKey { descending: arguments.get(2)?, bits: None };
    let sorted = sorted_rows(line.context(), &line, rows, key).map_err(of_graph)?;
    arguments.wrap_all(sorted)
}

fn sorted_rows(context: &Context, line: &Node, rows: usize, key: SortKey) -> broadloom::graph::Result<Vec<Node>> {
    let length = line.shape().count().checked_div(rows).unwrap_or(0);
    let places = Node::position(context, [rows, length].into(), 1, Element::I64)?.flattened()?;
    if rows == 1 || length == 0 {
        return Node::sort(&[(line, key)], &[&places]);
    }
    let starts: Vec<u8> = (0..=rows).flat_map(|row| ((row * length) as i64).to_le_bytes()).collect();
    let offsets = Node::upload(context, Type::of(Element::I64), (rows + 1).into(), &starts)?;
    Node::segmented_sort(&offsets, Some(length.into()), &[(line, key)], &[&places])
}

fn pack(arguments: &Arguments<'_, '_>) -> Answer {
    let packed = arguments.handle::<Node>(0)?.pack(&arguments.handle::<Node>(1)?);
    arguments.wrap(packed.map_err(of_graph)?)
}

fn histogram(arguments: &Arguments<'_, '_>) -> Answer {
    let counts = arguments.handle::<Node>(0)?.histogram(arguments.get(1)?);
    arguments.wrap(counts.map_err(of_graph)?)
}
