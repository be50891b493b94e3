//! Thin, connected edges.

use super::blur::gaussian;
use super::edges::{gradients, mean_of_components};
use crate::functor::{Indexer, Output, Primitive};
use crate::graph::{InRows, TakeRows};
use crate::image::{Image, Plane, Rect, reserved};
use crate::plan::read_u8;
use crate::{Boundary, Picture, Result};
use broadloom_graph::{Context, Node};
use std::fmt;
use std::sync::Arc;

/// Computes edges by thresholds with hysteresis. The host connects them, in a map with a byte for each pixel.
pub fn canny(picture: &Picture, sigma: f64, low: f32, high: f32, boundary: Boundary) -> Result<Picture> {
    let soft = gaussian(&mean_of_components(picture)?, sigma, boundary)?;
    let [gx, gy] = gradients(&soft, boundary)?;
    let size = Primitive::point("size", 2, |x| (x[0] * x[0] + x[1] * x[1]).sqrt())?.one(&[&gx, &gy])?;
    let inputs = [Indexer::square(1), Indexer::point(), Indexer::point()];
    let tan = (std::f64::consts::PI / 8.0).tan() as f32;
    let thin = Primitive::from_kernel("thin", &inputs, &[Output::Component], &[], |k| {
        let (dx, dy) = (k.input(1).centre(), k.input(2).centre());
        let at = |x: i32, y: i32| k.input(0).at(x, y);
        let here = at(0, 0);
        let kept = |x: i32, y: i32| here.gt(at(-x, -y)).and(here.ge(at(x, y))).select::<f32>(here, 0.0);
        let alike = dx.lt(0.0).select(dy.lt(0.0), !dy.lt(0.0));
        let steep = (dx.abs()).le(dy.abs() * tan);
        let flat = (dy.abs()).le(dx.abs() * tan);
        let slanted = alike.select::<f32>(kept(1, 1), kept(-1, 1));
        vec![flat.select(kept(1, 0), steep.select::<f32>(kept(0, 1), slanted))]
    })?;
    let thin = thin.with_boundary(Boundary::Constant(0.0)).one(&[&size, &gx, &gy])?;
    let classes = Primitive::from_kernel("classes", &[Indexer::point()], &[Output::Component], &[low, high], |k| {
        let x = k.input(0).centre();
        let above = x.gt(k.parameter(1)).select::<f32>(1.0, WEAK_VALUE);
        vec![x.gt(k.parameter(0)).select::<f32>(above, 0.0)]
    })?;
    let classes = classes.one(&[&thin])?;
    let (bounds, context) = (classes.bounds(), classes.context().clone());
    let begin = move || -> Result<Box<dyn TakeRows>> {
        Ok(Box::new(EdgeMap { context: context.clone(), bounds, classes: reserved(bounds.area())? }))
    };
    Ok(classes.of_rows("edges", InRows::new(bounds, 1, Arc::new(begin)).on_host()))
}

/// Sample of an edge that is kept.
const STRONG: u8 = 255;
/// Sample of an edge that is kept if it is connected to a strong one.
const WEAK: u8 = 128;
/// Value that becomes [`WEAK`].
const WEAK_VALUE: f32 = 0.5;

/// Edges of the rows that were taken, a byte for each pixel.
struct EdgeMap {
    context: Context,
    bounds: Rect,
    classes: Vec<u8>,
}

impl fmt::Debug for EdgeMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "edges of {} pixels of {}", self.classes.len(), self.bounds)
    }
}

impl TakeRows for EdgeMap {
    fn take(&mut self, rows: &Node, first: u32) -> Result<()> {
        let height = rows.shape().extents()[1] as u32;
        let region = Rect { y: self.bounds.y + first as i32, height, ..self.bounds };
        let image = read_u8(rows, region)?;
        (0..height).filter_map(|y| image.planes()[0].row::<u8>(y)).for_each(|row| self.classes.extend_from_slice(row));
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Picture> {
        let Rect { width, height, .. } = self.bounds;
        keep_connected(&mut self.classes, width as usize);
        let plane = Plane::new("edges", width, height, std::mem::take(&mut self.classes))?;
        Ok(Picture::from_image(&self.context, &Image::new(self.bounds, vec![plane])?))
    }
}

/// Makes weak edges strong that are connected to strong ones along rows, columns or diagonals. Removes the others.
fn keep_connected(classes: &mut [u8], width: usize) {
    let height = classes.len() / width.max(1);
    let mut open: Vec<usize> = vec![];
    for seed in 0..classes.len() {
        if classes[seed] != STRONG {
            continue;
        }
        open.push(seed);
        while let Some(place) = open.pop() {
            let (x, y) = (place % width, place / width);
            for row in y.saturating_sub(1)..(y + 2).min(height) {
                let first = row * width + x.saturating_sub(1);
                let end = row * width + (x + 2).min(width);
                for (neighbour, class) in (first..).zip(&mut classes[first..end]) {
                    if *class == WEAK {
                        *class = STRONG;
                        open.push(neighbour);
                    }
                }
            }
        }
    }
    classes.iter_mut().filter(|class| **class != STRONG).for_each(|class| *class = 0);
}
