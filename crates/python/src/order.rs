//! Functions that sort and select.

use crate::call::{Answer, Arguments, Entry};
use crate::error::of_graph;
use broadloom::Context;
use broadloom::graph::{Elementwise, Node, SortKey};
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
    let sorted = match line.ty().is_scalar() {
        true => sorted_rows(line.context(), &[&line], rows, key),
        false => sorted_complex(&line, rows, key),
    };
    arguments.wrap_all(sorted.map_err(of_graph)?)
}

/// Sorts complex numbers by their real parts, and equal ones by their imaginary parts.
fn sorted_complex(line: &Node, rows: usize, key: SortKey) -> broadloom::graph::Result<Vec<Node>> {
    let part = |lane: u8| Node::elementwise(Elementwise::Lane(lane), &[line]);
    let sorted = sorted_rows(line.context(), &[&part(0)?, &part(1)?], rows, key)?;
    let [real, imaginary, places] = &sorted[..] else { return Ok(sorted) };
    Ok(vec![Node::elementwise(Elementwise::Vector, &[real, imaginary])?, places.clone()])
}

fn sorted_rows(context: &Context, lines: &[&Node], rows: usize, key: SortKey) -> broadloom::graph::Result<Vec<Node>> {
    let line = lines[0];
    let keys: Vec<(&Node, SortKey)> = lines.iter().map(|line| (*line, key)).collect();
    let length = line.shape().count().checked_div(rows).unwrap_or(0);
    let places = Node::position(context, [rows, length].into(), 1, Element::I64)?.flattened()?;
    if rows == 1 || length == 0 {
        return Node::sort(&keys, &[&places]);
    }
    let starts: Vec<u8> = (0..=rows).flat_map(|row| ((row * length) as i64).to_le_bytes()).collect();
    let offsets = Node::upload(context, Type::of(Element::I64), (rows + 1).into(), &starts)?;
    Node::segmented_sort(&offsets, Some(length.into()), &keys, &[&places])
}

fn pack(arguments: &Arguments<'_, '_>) -> Answer {
    let packed = arguments.handle::<Node>(0)?.pack(&arguments.handle::<Node>(1)?);
    arguments.wrap(packed.map_err(of_graph)?)
}

fn histogram(arguments: &Arguments<'_, '_>) -> Answer {
    let counts = arguments.handle::<Node>(0)?.histogram(arguments.get(1)?);
    arguments.wrap(counts.map_err(of_graph)?)
}
