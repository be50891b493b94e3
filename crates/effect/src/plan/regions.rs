//! Regions of interest: from the results backwards to the sources.

use super::items::{Items, Work};
use crate::Rect;
use crate::functor::Axis;
use crate::graph::region::{aligned, grown};

/// Computes the region of each item that its consumers need. Consumers are processed before their inputs.
pub(crate) fn flow(items: &mut Items, wanted: &[Rect], realign: bool) {
    let join = |needed: &mut Option<Rect>, region: Rect| {
        *needed = Some(match *needed {
            None => region,
            // Both regions lie in one image, so their union does too.
            Some(own) => own.union(region).unwrap_or(own),
        });
    };
    for (port, region) in items.results.clone().iter().zip(wanted) {
        join(&mut items.items[port.item].needed, *region);
    }
    for number in (0..items.items.len()).rev() {
        let item = &mut items.items[number];
        let Some(mut needed) = item.needed else { continue };
        if matches!(&item.work, Work::Whole(whole) if whole.window.is_none()) {
            needed = item.bounds;
            item.needed = Some(needed);
        } else if realign && !matches!(item.work, Work::Source(_) | Work::Host(_)) {
            needed = aligned(needed, item.bounds);
            item.needed = Some(needed);
        }
        let item = &items.items[number];
        let (inputs, work) = (item.inputs.clone(), item.work.clone());
        for (place, port) in inputs.iter().enumerate() {
            let (own, source) = (items.items[number].bounds, &mut items.items[port.item]);
            let region = match &work {
                Work::Source(_) | Work::Host(_) | Work::Transpose => needed,
                Work::Whole(whole) => match whole.window {
                    Some(window) => grown(needed, window.reach, source.bounds, window.boundary),
                    None => source.bounds,
                },
                Work::Functor(primitive) => match primitive.reach_of(place) {
                    Some(reach) => grown(needed, reach, source.bounds, primitive.boundary),
                    None => match primitive.along_in(place) {
                        // Across the axis both images have the same extent.
                        Some(Axis::Horizontal) => Rect { y: needed.y, height: needed.height, ..source.bounds },
                        Some(Axis::Vertical) => {
                            let bounds = source.bounds;
                            let first = i64::from(needed.y) - i64::from(own.y);
                            let pixels = first..first + i64::from(needed.height);
                            let rows = primitive.span.map_or(0..i64::from(bounds.height), |span| span.of(pixels, bounds.height));
                            let (y, height) = (bounds.y + rows.start as i32, (rows.end - rows.start) as u32);
                            Rect { x: needed.x, y, width: needed.width, height }
                        }
                        None => {
                            let read = primitive.placement.and_then(|placement| placement.of(needed, own, source.bounds));
                            read.unwrap_or(source.bounds)
                        }
                    },
                },
            };
            join(&mut source.needed, region);
        }
    }
}
