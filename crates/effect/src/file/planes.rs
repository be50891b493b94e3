//! Planes of an image in the order of formats that hold grey or RGB.

use super::error::Problem;
use super::format::Format;
use crate::image::{Image, Plane};

/// Returns the planes of grey or RGB, with or without alpha, in the order of the file.
pub(super) fn simple_planes(format: Format, image: &Image, alpha: bool) -> Result<Vec<&Plane>, Problem> {
    let of = |channel: &str| image.planes().iter().find(|plane| plane.channel() == channel);
    let planes: Vec<&Plane> = image.planes().iter().collect();
    let opacity = of("A");
    let colors = match (of("R"), of("G"), of("B")) {
        (Some(red), Some(green), Some(blue)) => vec![red, green, blue],
        _ => planes.iter().copied().filter(|plane| opacity.is_none_or(|alpha| plane.name() != alpha.name())).collect(),
    };
    let mut chosen = if colors.is_empty() { planes.clone() } else { colors };
    if chosen.len() < planes.len() && alpha {
        chosen.extend(opacity);
    }
    let fits = matches!(chosen.len(), 1 | 3) || alpha && matches!(chosen.len(), 2 | 4) && opacity.is_some();
    match fits && chosen.len() == planes.len() {
        true => Ok(chosen),
        false => Err(Problem::Planes { format, names: image.names().map(str::to_owned).collect() }),
    }
}
