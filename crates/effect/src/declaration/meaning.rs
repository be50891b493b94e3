//! Meaning of settings that depend on each other or on the image: ranges, sizes, colours, curves.

use super::{Angle, CurveShape, EffectError, FlipAxis, Inputs, Settings};
use crate::image::{Alpha, Rect};

/// Maximum number of cells of a bilateral grid from `low` to `high`.
const MAX_GRID: f64 = 4094.0;

/// Fails if the number or the sizes of images do not fit the effect.
pub(crate) fn check(settings: &Settings, inputs: &[(Rect, Vec<&str>)]) -> Result<(), EffectError> {
    let effect = settings.effect();
    let wanted = match effect.inputs {
        Inputs::Images(roles) => roles.len(),
        Inputs::Frames(parameter) => 2 * settings.integer(parameter) as usize + 1,
    };
    let fail = |reason| Err(EffectError::Inputs { effect: effect.name, reason });
    if inputs.len() != wanted {
        let plural = if wanted == 1 { "" } else { "s" };
        return fail(format!("it takes {wanted} image{plural}, and there are {}", inputs.len()));
    }
    let (first, names) = &inputs[0];
    if let Some((other, _)) = inputs.iter().find(|(bounds, _)| bounds != first) {
        return fail(format!("its images must cover the same pixels; one is {first}, another {other}"));
    }
    if matches!(effect.inputs, Inputs::Frames(_)) && inputs.iter().any(|(_, own)| own != names) {
        return fail("its frames must have the same planes".to_owned());
    }
    Ok(())
}

/// Returns `black` and `white` of a sensor. Fails if they are equal in `f32`.
pub(crate) fn levels(settings: &Settings) -> Result<(f64, f64), EffectError> {
    let (black, white) = (settings.number("black"), settings.number("white"));
    match black as f32 != white as f32 {
        true => Ok((black, white)),
        false => Err(EffectError::BadValue {
            effect: settings.effect().name.to_owned(),
            name: "white".to_owned(),
            value: white.to_string(),
            reason: format!("it must differ from black, which is {black}, as an f32"),
        }),
    }
}

/// Returns `low` and `high`. Fails unless `low` is less than `high` in `f32`.
pub(crate) fn range(settings: &Settings) -> Result<(f64, f64), EffectError> {
    let (low, high) = (settings.number("low"), settings.number("high"));
    match (low as f32) < high as f32 {
        true => Ok((low, high)),
        false => Err(EffectError::BadValue {
            effect: settings.effect().name.to_owned(),
            name: "high".to_owned(),
            value: high.to_string(),
            reason: format!("it must be greater than low, which is {low}, as an f32"),
        }),
    }
}

/// Returns the thresholds `low` and `high` of gradients. Fails if `low` is greater than `high`.
pub(crate) fn thresholds(settings: &Settings) -> Result<(f64, f64), EffectError> {
    let (low, high) = (settings.number("low"), settings.number("high"));
    match low <= high {
        true => Ok((low, high)),
        false => Err(EffectError::BadValue {
            effect: settings.effect().name.to_owned(),
            name: "low".to_owned(),
            value: low.to_string(),
            reason: format!("it must be at most high, which is {high}; the values of an image are 0 … 1"),
        }),
    }
}

/// Returns `low` and `high` of a bilateral grid. Fails if the grid has too many cells.
pub(crate) fn grid_range(settings: &Settings) -> Result<(f64, f64), EffectError> {
    let (low, high) = range(settings)?;
    if (high - low) / settings.number("range") <= MAX_GRID {
        return Ok((low, high));
    }
    let (effect, name) = (settings.effect().name.to_owned(), "range".to_owned());
    let reason = format!("it must be at least 1/{MAX_GRID} of high − low, which are {high} and {low}");
    Err(EffectError::BadValue { effect, name, value: settings.value("range").to_string(), reason })
}

/// Returns the new size. A side of 0 preserves the aspect ratio.
pub(crate) fn new_size(settings: &Settings, bounds: Rect) -> Result<(i64, i64), EffectError> {
    let (width, height, percent) = (settings.integer("width"), settings.integer("height"), settings.number("percent"));
    let (old_width, old_height) = (i64::from(bounds.width), i64::from(bounds.height));
    let scaled = |side: i64, by: f64, of: f64| ((side as f64 * by / of).round() as i64).max(1);
    let fail = |reason: &str| Err(EffectError::Inputs { effect: settings.effect().name, reason: reason.to_owned() });
    match (width, height) {
        (0, 0) if percent > 0.0 => Ok((scaled(old_width, percent, 100.0), scaled(old_height, percent, 100.0))),
        _ if percent > 0.0 => fail("its new size is given twice: set percent, or width and height"),
        (0, 0) => fail("it needs a new size: set width, height or both, or percent"),
        (0, height) => Ok((scaled(old_width, height as f64, old_height as f64), height)),
        (width, 0) => Ok((width, scaled(old_height, width as f64, old_width as f64))),
        both => Ok(both),
    }
}

/// Returns the part of an image that `crop` keeps, with columns and rows from the corner of the image.
pub(crate) fn cropped(settings: &Settings, bounds: Rect) -> Result<Rect, EffectError> {
    let value = |name: &str| settings.integer(name).clamp(0, i64::from(i32::MAX)) as u32;
    let (x, y, width, height) = (value("x"), value("y"), value("width"), value("height"));
    let extent = |at: u32, wanted: u32, side: u32| if wanted == 0 { side.saturating_sub(at) } else { wanted };
    let part = Rect::new(x as i32, y as i32, extent(x, width, bounds.width), extent(y, height, bounds.height));
    match part.checked().is_ok() && Rect::sized(bounds.width, bounds.height).contains(part) {
        true => Ok(part),
        false => Err(EffectError::Inputs {
            effect: settings.effect().name,
            reason: format!("{part} is not in the image, which has {}×{} pixels", bounds.width, bounds.height),
        }),
    }
}

/// Turn of an image: transposition, then reversed columns and rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// True if columns and rows of the image are exchanged.
    pub(crate) is_transposed: bool,
    /// True for columns and for rows of the result if they are counted from their ends.
    pub(crate) reversed: [bool; 2],
}

impl Turn {
    /// Returns the turn of `rotate`.
    pub(crate) fn rotation(settings: &Settings) -> Turn {
        let (is_transposed, reversed) = match settings.chosen("angle") {
            Angle::Quarter => (true, [true, false]),
            Angle::Half => (false, [true, true]),
            Angle::ThreeQuarters => (true, [false, true]),
        };
        Turn { is_transposed, reversed }
    }

    /// Returns the turn of `flip`.
    pub(crate) fn reflection(settings: &Settings) -> Turn {
        let axis: FlipAxis = settings.chosen("axis");
        Turn { is_transposed: false, reversed: [FlipAxis::Horizontal, FlipAxis::Vertical].map(|own| own == axis) }
    }
}

/// Returns the layer of a plane: its name before the last dot; empty if there is no dot.
pub(crate) fn layer(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(layer, _)| layer)
}

/// Returns the channel of a plane: its name after the last dot.
pub(crate) fn channel(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, channel)| channel)
}

/// Returns the indices of red, green and blue: the planes of these names in the layer of the first `R`;
/// otherwise the first three planes.
pub(crate) fn colors(effect: &'static str, names: &[&str]) -> Result<[usize; 3], EffectError> {
    if let Some(red) = names.iter().position(|name| channel(name) == "R") {
        let of = |wanted: &str| names.iter().position(|name| layer(name) == layer(names[red]) && channel(name) == wanted);
        if let (Some(green), Some(blue)) = (of("G"), of("B")) {
            return Ok([red, green, blue]);
        }
    }
    match names.len() {
        3.. => Ok([0, 1, 2]),
        count => {
            let reason = format!("it needs red, green and blue; the image has {count} of them");
            Err(EffectError::Inputs { effect, reason })
        }
    }
}

/// A curve through points, with its slopes at the points.
pub(crate) struct Curve {
    /// Abscissas in ascending order.
    pub(crate) xs: Vec<f64>,
    /// Ordinates.
    pub(crate) ys: Vec<f64>,
    /// Slopes at the points; empty if the curve consists of straight lines.
    pub(crate) slopes: Vec<f64>,
}

impl Curve {
    /// Creates the curve from the settings of `curves`.
    pub(crate) fn new(settings: &Settings) -> Result<Curve, EffectError> {
        let points = settings.numbers("points");
        let xs: Vec<f64> = points.iter().step_by(2).copied().collect();
        let ys: Vec<f64> = points.iter().skip(1).step_by(2).copied().collect();
        if let Some(at) = xs.windows(2).position(|pair| pair[0] as f32 >= pair[1] as f32) {
            return Err(EffectError::BadValue {
                effect: settings.effect().name.to_owned(),
                name: "points".to_owned(),
                value: settings.value("points").to_string(),
                reason: format!("x must ascend as f32, and {} is followed by {}", xs[at], xs[at + 1]),
            });
        }
        let slopes = match settings.chosen("interpolation") {
            CurveShape::Cubic => slopes(&xs, &ys),
            CurveShape::Linear => vec![],
        };
        Ok(Curve { xs, ys, slopes })
    }
}

/// Computes slopes by Fritsch and Carlson: means of the secants, limited so that the curve is monotonic
/// between points.
fn slopes(xs: &[f64], ys: &[f64]) -> Vec<f64> {
    let secants: Vec<f64> = xs.windows(2).zip(ys.windows(2)).map(|(x, y)| (y[1] - y[0]) / (x[1] - x[0])).collect();
    let last = secants.len();
    let mut slopes: Vec<f64> = (0..=last)
        .map(|i| match i {
            0 => secants[0],
            i if i == last => secants[last - 1],
            i if secants[i - 1] * secants[i] <= 0.0 => 0.0,
            i => (secants[i - 1] + secants[i]) / 2.0,
        })
        .collect();
    for (i, secant) in secants.iter().enumerate() {
        if *secant == 0.0 {
            (slopes[i], slopes[i + 1]) = (0.0, 0.0);
            continue;
        }
        let (a, b) = (slopes[i] / secant, slopes[i + 1] / secant);
        let size = (a * a + b * b).sqrt();
        if size > 3.0 {
            (slopes[i], slopes[i + 1]) = (3.0 * a / size * secant, 3.0 * b / size * secant);
        }
    }
    slopes
}

/// Factor of the colours of a keyed image, in which alpha is the old alpha times the opacity of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFactor {
    /// Colours stay: straight alpha from straight alpha.
    One,
    /// Colours are multiplied by the opacity: associated alpha from associated alpha.
    Opacity,
    /// Colours are multiplied by the new alpha: associated alpha from straight alpha.
    NewAlpha,
    /// Colours are divided by the old alpha: straight alpha from associated alpha.
    PerOldAlpha,
}

impl KeyFactor {
    /// Returns the factor for the alpha of an image, and for associated or straight alpha of the result. Unknown alpha
    /// counts as straight.
    pub fn new(alpha: Alpha, is_associated: bool) -> KeyFactor {
        match (alpha, is_associated) {
            (Alpha::Straight | Alpha::Unknown, false) => KeyFactor::One,
            (Alpha::Straight | Alpha::Unknown, true) => KeyFactor::NewAlpha,
            (Alpha::Associated, true) => KeyFactor::Opacity,
            (Alpha::Associated, false) => KeyFactor::PerOldAlpha,
        }
    }
}

/// Returns whether a plane has colours: neither alpha nor depth.
pub(crate) fn is_color(name: &str) -> bool {
    !matches!(channel(name), "A" | "Z")
}

/// Returns the name of the plane with the alpha of a colour.
pub(crate) fn alpha_name(color: &str) -> String {
    match layer(color) {
        "" => "A".to_owned(),
        layer => format!("{layer}.A"),
    }
}
