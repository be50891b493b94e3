//! Calls of effects on a device: values of settings, planes that an effect changes, and the calls of effects
//! with more than one of either.

use super::{
    Bayer, Camera, Clahe, ColourKey, GridSettings, Levels, LocalLaplacian, PointCurve, Table, Temporal, detail, luma,
    mean_of_components,
};
use crate::declaration::{
    self, DeviceCall, EffectError, Interpolation, KeyFactor, Pattern, PlaneSource, Premultiply, Turn, alpha_name, channel,
    colors, cropped, grid_range, is_color, layer, levels, new_size, range, thresholds,
};
use crate::file::Cube;
use crate::image::{Alpha, ImageError};
use crate::layers::Layers;
use crate::{Boundary, Error, Picture, Result as Computed};
use broadloom_skeleton::Rule;

type Outcome = Result<Layers, EffectError>;

/// Converts an error of an effect.
pub(super) fn failed(effect: &str, error: Error) -> EffectError {
    match error {
        Error::Image(error) => EffectError::Image(error),
        other => EffectError::Device { effect: effect.to_owned(), reason: other.to_string() },
    }
}

impl DeviceCall<'_> {
    /// Returns the value of a number parameter, as devices compute with it.
    pub(crate) fn number(&self, name: &str) -> f32 {
        self.settings.number(name) as f32
    }

    /// Returns the value of a number parameter in double precision.
    pub(crate) fn wide(&self, name: &str) -> f64 {
        self.settings.number(name)
    }

    /// Returns the value of an integer parameter.
    pub(crate) fn whole(&self, name: &str) -> u32 {
        self.settings.integer(name).clamp(0, i64::from(u32::MAX)) as u32
    }

    /// Returns the boundary rule.
    pub(crate) fn boundary(&self) -> Boundary {
        match self.settings.rule() {
            Rule::Mirror => Boundary::Mirror,
            Rule::Wrap => Boundary::Wrap,
            Rule::Constant => Boundary::Constant(self.settings.border() as f32),
            Rule::Clamp | Rule::Inside => Boundary::Clamp,
        }
    }

    /// Returns the position of red in the pattern of a sensor.
    pub(crate) fn bayer(&self) -> Bayer {
        let (column, row) = self.settings.chosen::<Pattern>("pattern").red();
        Bayer { column: column.into(), row: row.into() }
    }

    /// Returns the matrix of colours.
    pub(crate) fn matrix(&self) -> [f32; 9] {
        let mut matrix = [0.0; 9];
        matrix.iter_mut().zip(self.settings.numbers("matrix")).for_each(|(own, value)| *own = *value as f32);
        matrix
    }

    fn failed(&self, error: Error) -> EffectError {
        let effect = self.settings.effect().name;
        match error {
            // The functors are built in, so the settings or sizes exceed their limits.
            Error::Functor { reason, .. } => EffectError::Inputs { effect, reason },
            other => failed(effect, other),
        }
    }

    pub(crate) fn picture(&self, image: &Layers) -> Result<Picture, EffectError> {
        image.picture(self.context).map_err(|error| self.failed(error))
    }

    /// Applies a function to some planes. Returns the planes of its result under other names.
    fn planes(&self, indices: &[usize], names: &[&str], function: impl FnOnce(&Picture) -> Computed<Picture>) -> Outcome {
        let picture = self.picture(&self.image.select(indices))?;
        let result = function(&picture).map_err(|error| self.failed(error))?;
        Ok(self.image.with_picture(&result, names))
    }

    /// Changes some planes and keeps the others.
    fn some(&self, indices: &[usize], function: impl FnOnce(&Picture) -> Computed<Picture>) -> Outcome {
        if indices.is_empty() {
            return Ok(self.image.clone());
        }
        let all = self.image.names();
        let names: Vec<&str> = indices.iter().map(|index| all[*index]).collect();
        Ok(self.image.replaced(&names, self.planes(indices, &names, function)?))
    }

    fn count(&self) -> usize {
        self.image.names().len()
    }

    /// Changes all planes.
    pub(crate) fn each(&self, function: impl FnOnce(&Picture) -> Computed<Picture>) -> Outcome {
        self.some(&(0..self.count()).collect::<Vec<usize>>(), function)
    }

    /// Changes all planes but alpha.
    pub(crate) fn each_color(&self, function: impl FnOnce(&Picture) -> Computed<Picture>) -> Outcome {
        let names = self.image.names();
        let indices: Vec<usize> = (0..names.len()).filter(|index| channel(names[*index]) != "A").collect();
        self.some(&indices, function)
    }

    /// Changes red, green and blue.
    pub(crate) fn colors(&self, function: impl FnOnce(&Picture) -> Computed<Picture>) -> Outcome {
        let indices = colors(self.settings.effect().name, &self.image.names())?;
        self.some(&indices, function)
    }

    /// Computes one plane, `Y`, from all planes.
    pub(crate) fn single(&self, function: impl FnOnce(&Picture) -> Computed<Picture>) -> Outcome {
        self.planes(&(0..self.count()).collect::<Vec<usize>>(), &["Y"], function)
    }

    /// Computes red, green and blue from the single plane of a sensor.
    pub(crate) fn sensor(&self, function: impl FnOnce(&Picture) -> Computed<Picture>) -> Outcome {
        match self.count() {
            1 => self.planes(&[0], &["R", "G", "B"], function),
            count => Err(EffectError::Inputs {
                effect: self.settings.effect().name,
                reason: format!("it needs one plane with the values of a sensor; the image has {count}"),
            }),
        }
    }

    fn bad(&self, name: &str, reason: &str) -> EffectError {
        EffectError::BadValue {
            effect: self.settings.effect().name.to_owned(),
            name: name.to_owned(),
            value: self.settings.value(name).to_string(),
            reason: reason.to_owned(),
        }
    }
}

/// Calls `bilateral_grid`.
pub(crate) fn bilateral_grid(call: &DeviceCall<'_>) -> Outcome {
    let (low, high) = grid_range(call.settings)?;
    let grid = GridSettings { cell: call.whole("cell"), range: call.wide("range"), low, high };
    call.each(|x| super::bilateral_grid(x, &grid, call.boundary()))
}

/// Calls `camera`.
pub(crate) fn camera(call: &DeviceCall<'_>) -> Outcome {
    levels(call.settings)?;
    let settings = Camera {
        pattern: call.bayer(),
        levels: [call.number("black"), call.number("white")],
        gains: [call.number("red"), call.number("blue")],
        matrix: call.matrix(),
        gamma: call.number("gamma"),
        contrast: call.number("contrast"),
        sharpen: call.number("sharpen"),
    };
    Ok(call.sensor(|x| super::camera(x, &settings, call.boundary()))?.with_gamma(call.wide("gamma")))
}

/// Calls `canny`.
pub(crate) fn canny(call: &DeviceCall<'_>) -> Outcome {
    let (low, high) = thresholds(call.settings)?;
    let (low, high) = (low as f32, high as f32);
    call.single(|x| super::canny(x, call.wide("sigma"), low, high, call.boundary()))
}

/// Calls `clahe`.
pub(crate) fn clahe(call: &DeviceCall<'_>) -> Outcome {
    let (low, high) = range(call.settings)?;
    let settings = Clahe { tiles: call.whole("tiles"), clip: call.wide("clip"), bins: call.whole("bins"), low, high };
    call.each_color(|x| super::clahe(x, &settings, call.boundary()))
}

/// Calls `curves`.
pub(crate) fn curves(call: &DeviceCall<'_>) -> Outcome {
    let curve = declaration::Curve::new(call.settings)?;
    let narrow = |values: &[f64]| values.iter().map(|value| *value as f32).collect();
    let curve = PointCurve { xs: narrow(&curve.xs), ys: narrow(&curve.ys), slopes: narrow(&curve.slopes) };
    call.each_color(|x| super::curves(x, &curve))
}

/// Calls `key`.
pub(crate) fn key(call: &DeviceCall<'_>) -> Outcome {
    let color = call.settings.numbers("color");
    let is_associated = call.settings.chosen::<Premultiply>("premultiply") == Premultiply::Yes;
    let settings = ColourKey {
        color: [color[0] as f32, color[1] as f32, color[2] as f32],
        tolerance: call.number("tolerance"),
        softness: call.number("softness"),
        spill: call.number("spill"),
        factor: KeyFactor::new(call.image.alpha(), is_associated),
    };
    let alpha_of_result = if is_associated { Alpha::Associated } else { Alpha::Straight };
    if settings.color[0] == settings.color[1] && settings.color[1] == settings.color[2] {
        return Err(call.bad("color", "it must not be grey"));
    }
    let all = call.image.names();
    let [red, green, blue] = colors(call.settings.effect().name, &all)?;
    let alpha_name = alpha_name(all[red]);
    if let Some(alpha) = all.iter().position(|name| *name == alpha_name) {
        let keyed = call.some(&[red, green, blue, alpha], |x| super::key(x, &settings))?;
        return Ok(keyed.with_alpha(alpha_of_result));
    }
    // An image without alpha is opaque.
    let image = call.image.with_filled(&alpha_name, 1.0).map_err(|error| call.failed(error))?;
    let keyed = DeviceCall { image: &image, ..*call }.some(&[red, green, blue, all.len()], |x| super::key(x, &settings))?;
    Ok(keyed.with_alpha(alpha_of_result))
}

/// Calls `local_laplacian`.
pub(crate) fn local_laplacian(call: &DeviceCall<'_>) -> Outcome {
    let settings = LocalLaplacian {
        copies: call.whole("levels"),
        pyramid: call.whole("pyramid"),
        alpha: call.number("alpha"),
        beta: call.number("beta"),
    };
    match colors(call.settings.effect().name, &call.image.names()) {
        Ok(indices) => call.some(&indices, |x| detail(x, &luma(x)?, &settings, call.boundary())),
        Err(_) => call.each_color(|x| detail(x, &mean_of_components(x)?, &settings, call.boundary())),
    }
}

/// Calls `lut`, which reads a table.
pub(crate) fn lut(call: &DeviceCall<'_>) -> Outcome {
    let cube = Cube::read(call.settings.file("file"))?;
    let narrow = |values: [f64; 3]| values.map(|value| value as f32);
    let table = Table {
        is_solid: cube.is_solid,
        side: cube.side,
        low: narrow(cube.low),
        high: narrow(cube.high),
        entries: cube.entries.iter().map(|entry| narrow(*entry)).collect(),
        tetrahedral: call.settings.chosen::<Interpolation>("interpolation") == Interpolation::Tetrahedral,
    };
    call.colors(|x| super::lut(x, &table))
}

/// Calls `resize`.
pub(crate) fn resize(call: &DeviceCall<'_>) -> Outcome {
    let (width, height) = new_size(call.settings, call.image.bounds())?;
    let filter = call.settings.chosen("filter");
    call.each(|x| super::resize(x, width.max(0) as usize, height.max(0) as usize, filter))
}

/// Calls `temporal_degrain` with the frames around an image.
pub(crate) fn temporal_degrain(call: &DeviceCall<'_>) -> Outcome {
    let temporal = Temporal { block: call.whole("block"), search: call.whole("search"), strength: call.number("strength") };
    let frames = call.inputs.iter().map(|frame| call.picture(frame)).collect::<Result<Vec<Picture>, _>>()?;
    call.each(|_| super::temporal_degrain(&frames, &temporal, call.boundary()))
}

/// Calls `warp` with the field of displacements.
pub(crate) fn warp(call: &DeviceCall<'_>) -> Outcome {
    if call.inputs[1].names().len() < 2 {
        let reason = "its field needs two planes: the displacement along x and along y".to_owned();
        return Err(EffectError::Inputs { effect: call.settings.effect().name, reason });
    }
    let field = call.picture(&call.inputs[1].select(&[0, 1]))?;
    call.each(|x| super::warp(x, &field, call.number("scale"), call.boundary()))
}

/// Calls `crop`.
pub(crate) fn crop(call: &DeviceCall<'_>) -> Outcome {
    let part = cropped(call.settings, call.image.bounds())?;
    call.each(|x| super::crop(x, part))
}

/// Calls `rotate`.
pub(crate) fn rotate(call: &DeviceCall<'_>) -> Outcome {
    call.each(|x| super::turn(x, Turn::rotation(call.settings)))
}

/// Calls `flip`.
pub(crate) fn flip(call: &DeviceCall<'_>) -> Outcome {
    call.each(|x| super::turn(x, Turn::reflection(call.settings)))
}

/// Calls `grayscale`: the brightness replaces red, green and blue.
pub(crate) fn grayscale(call: &DeviceCall<'_>) -> Outcome {
    let all = call.image.names();
    let indices = colors(call.settings.effect().name, &all)?;
    let weights = call.settings.numbers("weights");
    let weights = [0, 1, 2].map(|index| weights[index] as f32);
    let name = match layer(all[indices[0]]) {
        "" => "Y".to_owned(),
        layer => format!("{layer}.Y"),
    };
    let grey = call.planes(&indices, &[&name], |x| super::weighted(x, weights))?;
    Ok(call.image.replaced(&indices.map(|index| all[index]), grey))
}

/// Calls `levels`.
pub(crate) fn change_levels(call: &DeviceCall<'_>) -> Outcome {
    let (black, white) = levels(call.settings)?;
    let settings = Levels {
        black: black as f32,
        white: white as f32,
        gamma: call.number("gamma"),
        low: call.number("low"),
        high: call.number("high"),
    };
    call.each_color(|x| super::levels(x, &settings))
}

/// Calls `premultiply`: converts the colours of each layer with alpha.
pub(crate) fn premultiply(call: &DeviceCall<'_>) -> Outcome {
    let label: Alpha = call.settings.chosen("alpha");
    let factor = KeyFactor::new(call.image.alpha(), label == Alpha::Associated);
    if matches!(factor, KeyFactor::One | KeyFactor::Opacity) {
        return Ok(call.image.clone().with_alpha(label));
    }
    let all = call.image.names();
    let mut image = call.image.clone();
    for (alpha, name) in all.iter().enumerate().filter(|(_, name)| channel(name) == "A") {
        let is_of_layer = |index: &usize| is_color(all[*index]) && alpha_name(all[*index]) == **name;
        let mut indices: Vec<usize> = (0..all.len()).filter(is_of_layer).collect();
        if indices.is_empty() {
            continue;
        }
        indices.push(alpha);
        image = DeviceCall { image: &image, ..*call }.some(&indices, |x| super::by_alpha(x, factor))?;
    }
    Ok(image.with_alpha(label))
}

/// Calls `channels`: selects planes, renames them, and adds planes of one value.
pub(crate) fn channels(call: &DeviceCall<'_>) -> Outcome {
    let all = call.image.names();
    let mut image = call.image.select(&[]);
    for plane in call.settings.planes("planes") {
        image = match &plane.source {
            PlaneSource::Value(value) => image.with_filled(&plane.name, *value as f32).map_err(|error| call.failed(error))?,
            PlaneSource::Plane(name) => {
                let missing =
                    || ImageError::NoPlane { name: name.clone(), there: all.iter().map(|name| (*name).to_owned()).collect() };
                let index = all.iter().position(|own| own == name).ok_or_else(missing)?;
                image.with_planes_of(&call.image.select(&[index]).renamed(&plane.name))
            }
        };
    }
    Ok(image)
}

/// Calls `composite`: each colour over that of the background.
pub(crate) fn composite(call: &DeviceCall<'_>) -> Outcome {
    let [image, background] = call.inputs else { return Ok(call.image.clone()) };
    let (names, below) = (image.names(), background.names());
    let mut result = call.image.select(&[]);
    for name in names.iter().filter(|name| channel(name) != "A") {
        let alpha = alpha_name(name);
        let found = [&names, &below].map(|all| {
            let of = |wanted: &str| all.iter().position(|own| *own == wanted);
            of(name).map(|color| (color, of(&alpha).filter(|_| is_color(name))))
        });
        let [Some(front), Some(back)] = found else {
            let reason = format!("the background has no plane `{name}`; it has {}", below.join(", "));
            return Err(EffectError::Inputs { effect: call.settings.effect().name, reason });
        };
        let picture = |image: &Layers, (color, alpha): (usize, Option<usize>)| {
            let indices: Vec<usize> = std::iter::once(color).chain(alpha).collect();
            call.picture(&image.select(&indices))
        };
        let [front, back] = [picture(image, front)?, picture(background, back)?];
        let are_straight = [image, background].map(|image| image.alpha() != Alpha::Associated);
        let over = super::over(&front, &back, are_straight).map_err(|error| call.failed(error))?;
        result = result.with_planes_of(&call.image.with_picture(&over, &[name]));
    }
    for name in below.iter().filter(|name| channel(name) == "A") {
        let of = |all: &[&str]| all.iter().position(|own| own == name);
        let back = of(&below).map(|index| background.select(&[index]));
        let Some(back) = back else { continue };
        let plane = match of(&names) {
            None => call.image.clone().with_filled(name, 1.0).map_err(|error| call.failed(error))?.select(&[names.len()]),
            Some(index) => {
                let front = call.picture(&image.select(&[index]))?;
                let over = super::alpha_over(&front, &call.picture(&back)?).map_err(|error| call.failed(error))?;
                call.image.with_picture(&over, &[name])
            }
        };
        result = result.with_planes_of(&plane);
    }
    Ok(result.with_alpha(Alpha::Associated))
}
