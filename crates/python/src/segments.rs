//! Operations on segments of a line, for ragged arrays.

use crate::arrays::combine;
use crate::call::{Answer, Arguments, Entry};
use crate::complex;
use crate::error::of_graph;
use crate::handle::Handle;
use broadloom::graph::{Combine, Direction, Extreme, Node, SortKey};
use broadloom::graph::{Segments, Total};
use broadloom_scalar::Element;
use pyo3::PyResult;
use std::ffi::CStr;

/// Functions of the module.
pub(crate) const FUNCTIONS: &[Entry] = &[
    (c"segments", c"segments(offsets, count): the segments of a line of `count` elements.", segments),
    (c"segment_numbers", c"segment_numbers(segments): the number of the segment of each element.", numbers),
    (c"segment_places", c"segment_places(segments): the index of each element in its segment.", places),
    (c"segment_reduce", c"segment_reduce(segments, line, combine): one value for each segment.", reduce),
    (c"segment_extreme", c"segment_extreme(segments, line, greatest): the index in each segment; -1 if empty.", extreme),
    (c"segment_scan", c"segment_scan(segments, line, combine, inclusive): prefixes combined in each segment.", scan),
    (c"segment_sort", c"segment_sort(segments, line, descending): sorted segments, and where each element was.", sort),
    (c"segment_spread", c"segment_spread(segments, values): the value of its segment for each element.", spread),
    (c"segment_pack", c"segment_pack(segments, flags, lines): offsets and lines of the elements with a true flag.", pack),
];

impl Handle for Segments {
    const NAME: &'static CStr = c"broadloom.segments";
}

fn segments(arguments: &Arguments<'_, '_>) -> Answer {
    let (offsets, total) = (arguments.handle::<Node>(0)?, Total::Host(arguments.get(1)?));
    arguments.wrap(Segments::from_offsets(&offsets, total).map_err(of_graph)?)
}

fn numbers(arguments: &Arguments<'_, '_>) -> Answer {
    arguments.wrap(arguments.handle::<Segments>(0)?.ids().map_err(of_graph)?)
}

fn places(arguments: &Arguments<'_, '_>) -> Answer {
    arguments.wrap(arguments.handle::<Segments>(0)?.places().map_err(of_graph)?)
}

/// Returns the way to combine elements of a line that an argument names.
fn combination(arguments: &Arguments<'_, '_>, index: usize, line: &Node) -> PyResult<Combine> {
    complex::combine(combine(&arguments.get::<String>(index)?)?, line.ty()).map_err(of_graph)
}

fn reduce(arguments: &Arguments<'_, '_>) -> Answer {
    let (segments, line) = (arguments.handle::<Segments>(0)?, arguments.handle::<Node>(1)?);
    let found = segments.reduce(&[(&line, combination(arguments, 2, &line)?)]);
    arguments.wrap_all(found.map_err(of_graph)?)
}

fn extreme(arguments: &Arguments<'_, '_>) -> Answer {
    let (segments, line) = (arguments.handle::<Segments>(0)?, arguments.handle::<Node>(1)?);
    let which = if arguments.get::<bool>(2)? { Extreme::Greatest } else { Extreme::Least };
    arguments.wrap(segments.extreme(&line, which, Element::I64).map_err(of_graph)?)
}

fn scan(arguments: &Arguments<'_, '_>) -> Answer {
    let (segments, line) = (arguments.handle::<Segments>(0)?, arguments.handle::<Node>(1)?);
    let values = [(&line, combination(arguments, 2, &line)?)];
    let found = segments.scan(&values, arguments.get(3)?, Direction::Forwards);
    arguments.wrap_all(found.map_err(of_graph)?)
}

fn sort(arguments: &Arguments<'_, '_>) -> Answer {
    let (segments, line) = (arguments.handle::<Segments>(0)?, arguments.handle::<Node>(1)?);
    let key = SortKey { descending: arguments.get(2)?, bits: None };
    let sorted = Node::position(line.context(), line.shape().clone(), 0, Element::I64)
        .and_then(|places| segments.sort(&[(&line, key)], &[&places]));
    arguments.wrap_all(sorted.map_err(of_graph)?)
}

fn spread(arguments: &Arguments<'_, '_>) -> Answer {
    let (segments, values) = (arguments.handle::<Segments>(0)?, arguments.handle::<Node>(1)?);
    arguments.wrap(segments.distribute(&values).map_err(of_graph)?)
}

fn pack(arguments: &Arguments<'_, '_>) -> Answer {
    let (segments, flags) = (arguments.handle::<Segments>(0)?, arguments.handle::<Node>(1)?);
    let lines = arguments.handles::<Node>(2)?;
    let packed = segments.pack(&flags, &lines.iter().collect::<Vec<&Node>>());
    let packed = packed.and_then(|(segments, lines)| Ok([vec![segments.offsets()?], lines].concat()));
    arguments.wrap_all(packed.map_err(of_graph)?)
}
