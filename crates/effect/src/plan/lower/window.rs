//! Windows of images of one size, read at computed offsets.

use super::{CallSite, axes, cropped};
use crate::Result;
use crate::functor::Reach;
use broadloom_graph::Node;
use broadloom_scalar::{AccessorKind, Binding, Builder, Function, Type, Value, windowing};
use broadloom_skeleton::{Staging, Tile};

/// Returns the canonical function for images whose rows and columns are exchanged.
pub(crate) fn turned(function: &Function) -> Result<Function> {
    let f = Builder::function(function.name());
    let mut arguments: Vec<Value> =
        function.parameters().iter().map(|parameter| f.parameter(&parameter.name, parameter.ty)).collect();
    arguments.swap(1, 2);
    let windows = function.accessors().iter().map(|own| f.accessor(&own.name, AccessorKind::Window, own.ty, own.rank));
    let windows: Vec<_> = windows.collect();
    let mut bindings: Vec<_> = windows
        .into_iter()
        .map(|window| {
            windowing(move |f: &Builder, offsets: &[Value]| {
                f.window(window, &[offsets[0].into(), offsets[2].into(), offsets[1].into()])
            })
        })
        .collect();
    let mut bindings: Vec<&mut dyn Binding> = bindings.iter_mut().map(|binding| binding as &mut dyn Binding).collect();
    let results = f.inline(function, &arguments, &mut bindings);
    Ok(f.finish_function(&results)?)
}

/// Lowers a call whose inputs are read in windows; `None` if the images have different sizes. In checking
/// mode, the last result is a report of reads outside the windows.
pub(crate) fn window(site: &CallSite<'_>, function: &Function, reach: Reach, tile: Option<Tile>) -> Result<Option<Vec<Node>>> {
    let Some(region) = site.common_window(reach) else { return Ok(None) };
    let slots = &site.primitive.code.slots;
    let arrays = slots.iter().map(|slot| site.array(slot, region)).collect::<Result<Vec<Node>>>()?;
    let arrays: Vec<&Node> = arrays.iter().collect();
    let scalars = site.scalars(region)?;
    let beside: Vec<&Node> = scalars.iter().collect();
    let [rows, columns] = axes(site.transposed, (reach.above, reach.below), (reach.left, reach.right));
    let reach = [(0, 0), rows, columns];
    let boundary = site.primitive.boundary.rules(arrays.len());
    let function = if site.transposed { &turned(function)? } else { function };
    debug_assert_eq!(function.parameters()[0].ty, Type::I32, "a canonical function");
    let staging = tile.map_or(Staging::Never, Staging::Tile);
    let results = Node::window_in(function, &arrays, &beside, &reach, &boundary, staging)?;
    results.iter().map(|result| cropped(result, region, site.region, site.transposed)).collect::<Result<Vec<Node>>>().map(Some)
}
