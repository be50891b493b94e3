//! Look-up tables of colours.

use crate::functor::{Indexer, Kernel, Output, Primitive, Real, Whole};
use crate::{Boundary, Error, Picture, Result};
use broadloom_graph::{Node, Shape};
use broadloom_scalar::Type;

/// Table of colours, with one or three dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// True if the table has three dimensions.
    pub is_solid: bool,
    /// Number of entries along a side.
    pub side: usize,
    /// Minimum values of red, green and blue.
    pub low: [f32; 3],
    /// Maximum values of red, green and blue.
    pub high: [f32; 3],
    /// Entries of the table. Red changes fastest.
    pub entries: Vec<[f32; 3]>,
    /// True if colours are interpolated in tetrahedra rather than in cubes.
    pub tetrahedral: bool,
}

/// Returns a component of an entry of the table. Its column is red, and its row is green plus blue times the
/// side.
fn entry<'k>(k: &Kernel<'k>, component: usize, at: [Whole<'k>; 3], side: i32) -> Real<'k> {
    k.input(1).component(component).pick(at[0], at[1] + at[2] * side)
}

/// Returns the value in a tetrahedron from its corners and the fractions of the colours, the largest first.
fn path<'k>([first, one, two, last]: [Real<'k>; 4], [high, middle, low]: [Real<'k>; 3]) -> Real<'k> {
    first * (1.0 - high) + one * (high - middle) + two * (middle - low) + last * low
}

/// Applies a table to pixels of three components.
pub fn lut(picture: &Picture, table: &Table) -> Result<Picture> {
    let side = table.side;
    let count = if table.is_solid { side.saturating_mul(side).saturating_mul(side) } else { side };
    if table.entries.len() != count || !(2..=1 << 20).contains(&side) {
        let reason = format!("a table with a side of {side} and {} entries", table.entries.len());
        return Err(Error::Functor { name: "lut".into(), reason });
    }
    let rows = count / side;
    let planes = (0..3).flat_map(|component| table.entries.iter().flat_map(move |entry| entry[component].to_le_bytes()));
    let bytes: Vec<u8> = planes.collect();
    let node = Node::upload(picture.context(), Type::F32, Shape::from([3, rows, side]), &bytes)?;
    let entries = Picture::from_node(node, 0, 0)?;
    let (last, side) = (side as i32 - 1, side as i32);
    let scale = |component: usize| last as f32 / (table.high[component] - table.low[component]);
    let parameters = [table.low[0], table.low[1], table.low[2], scale(0), scale(1), scale(2)];
    let inputs = [Indexer::point().pixel(3), Indexer::anywhere().pixel(3)];
    let functor = Primitive::from_kernel("lut", &inputs, &[Output::Pixel(3)], &parameters, |k| {
        let place = |component: usize| {
            let at = (k.input(0).component(component).centre() - k.parameter(component)) * k.parameter(component + 3);
            let at = at.max(0.0).min(last as f32);
            let lower = at.floor().cast::<i32>().min(last - 1);
            (lower, at - lower.cast::<f32>())
        };
        let [(r, fr), (g, fg), (b, fb)] = [0, 1, 2].map(place);
        if !table.is_solid {
            let line = |component: usize| {
                let (lower, share) = ([r, g, b][component], [fr, fg, fb][component]);
                let at = |step: i32| k.input(1).component(component).pick(lower + step, 0);
                at(0) + (at(1) - at(0)) * share
            };
            return (0..3).map(line).collect();
        }
        let value = |component: usize| {
            let at = |i: i32, j: i32, l: i32| entry(&k, component, [r + i, g + j, b + l], side);
            if !table.tetrahedral {
                let line = |j: i32, l: i32| at(0, j, l) * (1.0 - fr) + at(1, j, l) * fr;
                let plane = |l: i32| line(0, l) * (1.0 - fg) + line(1, l) * fg;
                return plane(0) * (1.0 - fb) + plane(1) * fb;
            }
            // The path leads from the first corner to the last, along the largest fraction first.
            let (first, last) = (at(0, 0, 0), at(1, 1, 1));
            let path = |one, two, shares| path([first, one, two, last], shares);
            let (rg, gb, rb) = (fr.ge(fg), fg.ge(fb), fr.ge(fb));
            let [ar, ag, ab] = [at(1, 0, 0), at(0, 1, 0), at(0, 0, 1)];
            let [arg, agb, arb] = [at(1, 1, 0), at(0, 1, 1), at(1, 0, 1)];
            let red_first = gb.select::<f32>(
                path(ar, arg, [fr, fg, fb]),
                rb.select::<f32>(path(ar, arb, [fr, fb, fg]), path(ab, arb, [fb, fr, fg])),
            );
            let green_first = (!gb).select::<f32>(
                path(ab, agb, [fb, fg, fr]),
                rb.select::<f32>(path(ag, arg, [fg, fr, fb]), path(ag, agb, [fg, fb, fr])),
            );
            rg.select(red_first, green_first)
        };
        (0..3).map(value).collect()
    })?;
    functor.with_boundary(Boundary::Clamp).one(&[picture, &entries])
}
