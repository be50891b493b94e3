//! Thin, connected edges.

use super::blur::gaussian;
use super::edges::{gradients, mean_of_components};
use crate::functor::{Indexer, Output, Primitive};
use crate::graph::Origin;
use crate::plan::{Options, Plan};
use crate::{Boundary, Picture, Plane, Result};
use broadloom_graph::{Combine, Node};

/// Rounds of growth between two checks for new pixels.
const ROUNDS: usize = 16;

/// Computes edges by thresholds with hysteresis. Growing edges takes as long as the longest edge. This
/// function therefore computes the image and waits for the device.
pub fn canny(picture: &Picture, sigma: f64, low: f32, high: f32, boundary: Boundary, options: &Options) -> Result<Picture> {
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
    let seeds = Primitive::from_kernel("seeds", &[Indexer::point()], &[Output::Component; 2], &[low, high], |k| {
        let x = k.input(0).centre();
        let weak = x.gt(k.parameter(0));
        vec![weak.and(x.gt(k.parameter(1))).select::<f32>(1.0, 0.0), weak.select::<f32>(1.0, 0.0)]
    })?;
    let [mut edges, weak] = seeds.call([&thin])?;
    let inputs = [Indexer::square(1), Indexer::point()];
    let grow = Primitive::from_kernel("grow", &inputs, &[Output::Component], &[], |k| {
        let at = |x: i32, y: i32| k.input(0).at(x, y);
        let row = |y: i32| at(-1, y).max(at(0, y)).max(at(1, y));
        vec![row(-1).max(row(0)).max(row(1)).min(k.input(1).centre())]
    })?;
    let grow = grow.with_boundary(Boundary::Constant(0.0));
    let computed = |pictures: &[&Picture]| -> Result<Vec<Picture>> {
        let wanted: Vec<_> = pictures.iter().map(|picture| ((*picture).clone(), picture.bounds())).collect();
        let plan = Plan::new(&wanted, options)?;
        if !plan.fits() {
            // Images that do not fit into memory are computed in tiles and stay on the host. Growing them
            // reads a few pixels around each tile.
            return Ok(plan.run()?.iter().map(|image| Picture::from_image(picture.context(), image)).collect());
        }
        let nodes = plan.nodes()?;
        let place = |(node, picture): (Node, &&Picture)| Picture::from_node(node, picture.bounds().x, picture.bounds().y);
        nodes.into_iter().zip(pictures).map(place).collect()
    };
    let count = |picture: &Picture| -> Result<f64> {
        if let Origin::Host(image) = picture.origin() {
            return Ok(image.planes().iter().flat_map(Plane::to_f32).map(f64::from).sum());
        }
        let nodes = Plan::new(&[(picture.clone(), picture.bounds())], options)?.nodes()?;
        let sum = nodes[0].reduce(Combine::Sum, &[0, 1, 2])?.read()?;
        Ok(sum.lanes.first().and_then(|lane| lane.as_f64()).unwrap_or(0.0))
    };
    let both = computed(&[&edges, &weak])?;
    let weak = both[1].clone();
    edges = both[0].clone();
    let mut before = count(&edges)?;
    loop {
        for _ in 0..ROUNDS {
            edges = grow.one(&[&edges, &weak])?;
        }
        edges = computed(&[&edges])?.swap_remove(0);
        let now = count(&edges)?;
        if now == before {
            return Ok(edges);
        }
        before = now;
    }
}
