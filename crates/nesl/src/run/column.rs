//! Columns: arguments and results of calls from Rust.

use broadloom_graph::Node;

/// Flat vector: a part of an argument or a result.
#[derive(Clone, Debug)]
pub enum Column {
    /// Ints, characters as their codes, or offsets.
    Ints(Vec<i64>),
    /// Floating-point numbers, in the width of the host.
    Floats(Vec<f64>),
    /// Truth values.
    Bools(Vec<bool>),
    /// A line on the device of the program: `i32` or `i64` for ints, `f64` or `f32` for floats, by the widths
    /// of the program; `i64` for offsets; `bool`.
    Device(Node),
}

impl PartialEq for Column {
    fn eq(&self, other: &Column) -> bool {
        match (self, other) {
            (Column::Ints(a), Column::Ints(b)) => a == b,
            (Column::Floats(a), Column::Floats(b)) => a == b,
            (Column::Bools(a), Column::Bools(b)) => a == b,
            (Column::Device(a), Column::Device(b)) => a.is_same(b),
            _ => false,
        }
    }
}
