//! Conversion of colours between spaces that are given by primaries, a white point and a curve.
//!
//! Colours are decoded to light, multiplied by a matrix through XYZ with the white point D50, to which other white points
//! are adapted by the matrix of Bradford, and encoded by the curve of the target. Nothing is clipped. Profiles with
//! tables for devices, and curves for absolute luminance (PQ, HLG), are refused.

use super::profile::{D50, fixed, written};
use super::{
    Alpha, ColorDescription, ColorSpace, Image, ImageError, Plane, Profile, SampleType, Samples, linear_to_srgb, srgb_to_linear,
    tables,
};

/// A matrix of three rows.
pub(super) type Matrix = [[f64; 3]; 3];

/// Chromaticities x, y of white, red, green and blue.
pub(super) type Chromaticities = [f64; 8];

const REC709: Chromaticities = [0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06];
const REC2020: Chromaticities = [0.3127, 0.329, 0.708, 0.292, 0.17, 0.797, 0.131, 0.046];
const P3: Chromaticities = [0.3127, 0.329, 0.68, 0.32, 0.265, 0.69, 0.15, 0.06];
const AP0: Chromaticities = [0.32168, 0.33767, 0.7347, 0.2653, 0.0, 1.0, 0.0001, -0.077];

const BRADFORD: Matrix = [[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]];

/// Curve from samples to light. Curves are odd functions.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Curve {
    Linear,
    Srgb,
    Rec709,
    /// Light is the sample to this power.
    Gamma(f64),
    /// `(a·x + b)^g + e` from `d` on, `c·x + f` below: g, a, b, c, d, e, f.
    Parameters([f64; 7]),
    /// Light at equal distances from 0 to 1.
    Table(Vec<f32>),
}

impl Curve {
    /// Returns the light of a sample.
    fn decoded(&self, x: f32) -> f32 {
        let size = f64::from(x.abs());
        let light = match self {
            Curve::Linear => return x,
            Curve::Srgb => return srgb_to_linear(x),
            Curve::Rec709 if size < 0.081 => size / 4.5,
            Curve::Rec709 => ((size + 0.099) / 1.099).powf(1.0 / 0.45),
            Curve::Gamma(gamma) => size.powf(*gamma),
            Curve::Parameters([g, a, b, c, d, e, f]) => match size >= *d {
                true => (a * size + b).max(0.0).powf(*g) + e,
                false => c * size + f,
            },
            Curve::Table(table) => {
                let place = (size * (table.len() - 1) as f64).min((table.len() - 1) as f64);
                let lower = (place as usize).min(table.len().saturating_sub(2));
                let [low, high] = [table[lower], table[(lower + 1).min(table.len() - 1)]].map(f64::from);
                low + (place - lower as f64) * (high - low)
            }
        };
        (light as f32).copysign(x)
    }

    /// Returns the sample of light. Only targets are encoded, which have no tables.
    fn encoded(&self, x: f32) -> f32 {
        let size = f64::from(x.abs());
        let sample = match self {
            Curve::Srgb => return linear_to_srgb(x),
            Curve::Rec709 if size < 0.018 => size * 4.5,
            Curve::Rec709 => 1.099 * size.powf(0.45) - 0.099,
            Curve::Gamma(gamma) => size.powf(1.0 / gamma),
            Curve::Linear | Curve::Parameters(_) | Curve::Table(_) => return x,
        };
        (sample as f32).copysign(x)
    }
}

fn product(a: Matrix, b: Matrix) -> Matrix {
    a.map(|row| [0, 1, 2].map(|column| (0..3).map(|k| row[k] * b[k][column]).sum()))
}

pub(super) fn applied(matrix: Matrix, vector: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| (0..3).map(|k| row[k] * vector[k]).sum())
}

/// Returns the inverse; `None` if there is none.
fn inverse(m: Matrix) -> Option<Matrix> {
    let minor = |i: usize, j: usize| {
        let at = |i: usize, j: usize| m[i % 3][j % 3];
        at(i + 1, j + 1) * at(i + 2, j + 2) - at(i + 1, j + 2) * at(i + 2, j + 1)
    };
    let determinant: f64 = (0..3).map(|j| m[0][j] * minor(0, j)).sum();
    let is_sound = determinant.is_finite() && determinant.abs() > 1e-9;
    is_sound.then(|| [0, 1, 2].map(|i| [0, 1, 2].map(|j| minor(j, i) / determinant)))
}

/// Returns XYZ of chromaticities with Y = 1.
fn xyz(x: f64, y: f64) -> [f64; 3] {
    [x / y, 1.0, (1.0 - x - y) / y]
}

/// Returns the matrix that adapts a white point to D50.
pub(super) fn adaptation(white: [f64; 3]) -> Option<Matrix> {
    let (from, to) = (applied(BRADFORD, white), applied(BRADFORD, D50));
    let scale = [0, 1, 2].map(|i| [0, 1, 2].map(|j| if i == j { to[i] / from[i] } else { 0.0 }));
    Some(product(inverse(BRADFORD)?, product(scale, BRADFORD)))
}

/// Returns the matrix from light to XYZ of D50; `None` if the chromaticities have none.
pub(super) fn to_xyz(of: Chromaticities) -> Option<Matrix> {
    let white = xyz(of[0], of[1]);
    // The primaries may have y = 0, so they are not scaled to Y = 1.
    let primary = |at: usize| [of[at], of[at + 1], 1.0 - of[at] - of[at + 1]];
    let columns = [primary(2), primary(4), primary(6)];
    let primaries = [0, 1, 2].map(|row| [0, 1, 2].map(|column| columns[column][row]));
    let scale = applied(inverse(primaries)?, white);
    let matrix = primaries.map(|row| [0, 1, 2].map(|column| row[column] * scale[column]));
    let matrix = product(adaptation(white)?, matrix);
    matrix.as_flattened().iter().all(|value| value.is_finite()).then_some(matrix)
}

/// Space of colours that images are converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetSpace {
    /// sRGB (IEC 61966-2-1).
    Srgb,
    /// Linear light with the primaries of sRGB.
    Linear,
    /// Display P3: primaries of P3, white D65, the curve of sRGB.
    P3,
    /// ITU-R BT.709, with the curve of cameras.
    Rec709,
    /// ACES2065-1: linear light with the primaries AP0.
    Aces,
}

impl TargetSpace {
    /// Returns the name of the space.
    pub fn name(self) -> &'static str {
        match self {
            TargetSpace::Srgb => "sRGB",
            TargetSpace::Linear => "linear sRGB",
            TargetSpace::P3 => "Display P3",
            TargetSpace::Rec709 => "Rec. 709",
            TargetSpace::Aces => "ACES2065-1",
        }
    }

    pub(super) fn chromaticities(self) -> Chromaticities {
        match self {
            TargetSpace::Srgb | TargetSpace::Linear | TargetSpace::Rec709 => REC709,
            TargetSpace::P3 => P3,
            TargetSpace::Aces => AP0,
        }
    }

    pub(super) fn curve(self) -> Curve {
        match self {
            TargetSpace::Srgb | TargetSpace::P3 => Curve::Srgb,
            TargetSpace::Rec709 => Curve::Rec709,
            TargetSpace::Linear | TargetSpace::Aces => Curve::Linear,
        }
    }

    /// Returns the encoding of light in the samples.
    fn color(self) -> ColorSpace {
        match self {
            TargetSpace::Linear | TargetSpace::Aces => ColorSpace::Linear,
            TargetSpace::Srgb | TargetSpace::P3 | TargetSpace::Rec709 => ColorSpace::Srgb,
        }
    }

    /// Returns what a file says about the colours. Grey has a curve alone.
    fn description(self, is_rgb: bool) -> ColorDescription {
        let none = ColorDescription::default();
        let profile = || is_rgb.then(|| Profile::of_space(self)).flatten();
        match self {
            TargetSpace::Srgb => ColorDescription { srgb: Some(0), ..none },
            TargetSpace::Linear => none,
            TargetSpace::P3 => ColorDescription { profile: profile(), cicp: Some([12, 13, 0, 1]), ..none },
            TargetSpace::Rec709 => ColorDescription { profile: profile(), cicp: Some([1, 1, 0, 1]), ..none },
            TargetSpace::Aces => ColorDescription { profile: profile(), chromaticities: Some(AP0), ..none },
        }
    }
}

/// Space of the colours of an image: curves of red, green and blue or of grey, and the matrix from light to XYZ.
struct Source {
    curves: Vec<Curve>,
    to_xyz: Matrix,
}

/// Returns the space that the code points of ITU-T H.273 name.
fn of_code_points(cicp: [u8; 4]) -> Result<Source, UnknownColors> {
    let primaries = match cicp[0] {
        1 | 2 => REC709,
        9 => REC2020,
        12 => P3,
        other => return Err(UnknownColors::Primaries(other)),
    };
    let curve = match cicp[1] {
        1 | 6 | 14 | 15 => Curve::Rec709,
        2 | 13 => Curve::Srgb,
        4 => Curve::Gamma(2.2),
        5 => Curve::Gamma(2.8),
        8 => Curve::Linear,
        other => return Err(UnknownColors::Transfer(other)),
    };
    let to_xyz = to_xyz(primaries).ok_or(UnknownColors::NoMatrix("primaries"))?;
    Ok(Source { curves: vec![curve], to_xyz })
}

fn source(image: &Image, is_rgb: bool) -> Result<Source, UnknownColors> {
    let color = &image.metadata().color;
    if let Some(cicp) = color.cicp {
        return of_code_points(cicp);
    }
    if let Some(profile) = color.profile.as_ref().filter(|profile| profile.components() == Some(if is_rgb { 3 } else { 1 })) {
        let (curves, to_xyz) = profile.model().ok_or(UnknownColors::Tables)?;
        return Ok(Source { curves, to_xyz });
    }
    match color.transfer {
        // Rec. 709 and video of 625 and 525 lines have its curve.
        Some(6..=8) => {
            return Ok(Source {
                curves: vec![Curve::Rec709],
                to_xyz: to_xyz(REC709).ok_or(UnknownColors::NoMatrix("primaries"))?,
            });
        }
        Some(transfer @ (1 | 3)) => return Err(UnknownColors::Density(transfer)),
        _ => {}
    }
    let curve = match (image.color(), color.gamma, color.srgb) {
        (ColorSpace::Linear, ..) => Curve::Linear,
        (ColorSpace::Srgb, Some(gamma), None) if gamma > 0 && !super::is_srgb_gamma(gamma) => {
            Curve::Gamma(1e5 / f64::from(gamma))
        }
        (ColorSpace::Srgb, ..) => Curve::Srgb,
    };
    let chromaticities = color.chromaticities.filter(|_| color.srgb.is_none()).unwrap_or(REC709);
    let to_xyz = to_xyz(chromaticities).ok_or(UnknownColors::NoMatrix("chromaticities"))?;
    Ok(Source { curves: vec![curve], to_xyz })
}

/// Applies a function to all places, in parts on all cores.
fn on_all_cores(planes: &mut [Vec<f32>], function: impl Fn(&mut [&mut [f32]]) + Sync) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let part = planes.first().map_or(1, Vec::len).div_ceil(cores).max(1 << 12);
    let mut parts: Vec<Vec<&mut [f32]>> = vec![];
    for plane in planes {
        for (index, part) in plane.chunks_mut(part).enumerate() {
            match parts.get_mut(index) {
                Some(parts) => parts.push(part),
                None => parts.push(vec![part]),
            }
        }
    }
    std::thread::scope(|scope| {
        for mut part in parts {
            let function = &function;
            scope.spawn(move || function(&mut part));
        }
    });
}

impl Image {
    /// Returns the image with its colours in another space, as `f32`, and says so in its metadata. Alpha, depth and
    /// integers of 32 bits keep their values. The error says why the colours are not known.
    pub fn to_space(&self, target: TargetSpace) -> Result<Image, SpaceError> {
        let is_color = |plane: &Plane| !matches!(plane.channel(), "A" | "Z") && plane.sample_type() != SampleType::U32;
        let is_rgb = self.planes().iter().any(|plane| plane.channel() == "R");
        let Source { curves, to_xyz: from } = match source(self, is_rgb) {
            Err(UnknownColors::Tables) if is_rgb => return self.by_tables(target),
            known => known?,
        };
        let back = to_xyz(target.chromaticities()).and_then(inverse);
        let back = back.ok_or(UnknownColors::Target)?;
        let matrix = product(back, from).map(|row| row.map(|value| value as f32));
        let (curve_of, encode) = (|index: usize| &curves[index.min(curves.len() - 1)], target.curve());
        let mut planes = self.planes().to_vec();
        for index in 0..planes.len() {
            let plane = &self.planes()[index];
            let of = |channel: &str| {
                let is_own = |other: &Plane| other.channel() == channel && other.layer() == plane.layer() && is_color(other);
                self.planes().iter().position(is_own)
            };
            let indices = match (plane.channel(), of("R"), of("G"), of("B")) {
                ("R", Some(red), Some(green), Some(blue)) => vec![red, green, blue],
                ("G" | "B", Some(_), Some(_), Some(_)) => continue,
                _ if is_color(plane) => vec![index],
                _ => continue,
            };
            let alpha = self.alpha_of(plane).filter(|_| self.alpha() == Alpha::Associated).map(Plane::to_f32);
            let mut values = indices.iter().map(|index| self.planes()[*index].to_f32()).collect::<Vec<Vec<f32>>>();
            // Alpha is a plane of its own, so that it is divided into the same parts.
            let has_alpha = alpha.is_some();
            values.extend(alpha);
            on_all_cores(&mut values, |parts| {
                let (parts, alpha) = parts.split_at_mut(indices.len());
                for at in 0..parts[0].len() {
                    let factor = if has_alpha && alpha[0][at] != 0.0 { alpha[0][at] } else { 1.0 };
                    let light = |index: usize| curve_of(index).decoded(parts[index][at] / factor);
                    if parts.len() == 1 {
                        parts[0][at] = encode.encoded(light(0)) * factor;
                        continue;
                    }
                    let rgb = [light(0), light(1), light(2)];
                    for (row, part) in matrix.iter().zip(parts.iter_mut()) {
                        part[at] = encode.encoded(row[0] * rgb[0] + row[1] * rgb[1] + row[2] * rgb[2]) * factor;
                    }
                }
            });
            for (index, values) in indices.iter().zip(values) {
                let (width, height) = (self.width(), self.height());
                let name = self.planes()[*index].name();
                planes[*index] = Plane::from_samples(name, width, height, width as usize, Samples::new(values))?;
            }
        }
        let mut image = self.with_planes(planes)?.with_implied_color(target.color());
        image.metadata_mut().color = target.description(is_rgb);
        Ok(image)
    }
}

impl Image {
    /// Returns the image with the colours of red, green and blue in another space, converted by the tables of its profile.
    /// Values are limited to the range of the target.
    fn by_tables(&self, target: TargetSpace) -> Result<Image, SpaceError> {
        let image = self.straight()?;
        let (Some(from), Some(to)) = (&self.metadata().color.profile, Profile::of_space(target)) else {
            return Err(UnknownColors::Tables.into());
        };
        let mut planes = image.planes().to_vec();
        for red in image.planes().iter().filter(|plane| plane.channel() == "R") {
            let of = |channel: &str| {
                image.planes().iter().position(|plane| plane.channel() == channel && plane.layer() == red.layer())
            };
            let (Some(r), Some(g), Some(b)) = (of("R"), of("G"), of("B")) else { continue };
            let values = [r, g, b].map(|index| image.planes()[index].to_f32());
            let results = tables::converted(from, &to, &values).ok_or(UnknownColors::Tables)?;
            for (index, values) in [r, g, b].into_iter().zip(results) {
                planes[index] = Plane::new(image.planes()[index].name(), self.width(), self.height(), values)?;
            }
        }
        let mut image = image.with_planes(planes)?.with_implied_color(target.color());
        image.metadata_mut().color = target.description(true);
        let image = if self.alpha() == Alpha::Associated { image.associated()? } else { image };
        Ok(image.with_alpha(self.alpha()))
    }
}

/// Returns sRGB of cyan, magenta, yellow and black by their profile; `None` if it has no conversion.
pub(crate) fn srgb_of_inks(profile: &Profile, inks: &[Vec<f32>]) -> Option<[Vec<f32>; 3]> {
    tables::converted(profile, &Profile::of_space(TargetSpace::Srgb)?, inks)
}

/// Colours of an image that have no conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownColors {
    /// Unknown primaries.
    #[error("its code points name the primaries {0}, which are not converted")]
    Primaries(u8),
    /// Unknown transfer function.
    #[error("its code points name the transfer function {0}, which is not converted")]
    Transfer(u8),
    /// Density of a film, of a DPX.
    #[error("its DPX has the transfer characteristic {0}, the density of a film, which is not converted")]
    Density(u8),
    /// Profile with tables that have no conversion.
    #[error("its ICC profile has tables that cannot be converted")]
    Tables,
    /// Target space without a matrix.
    #[error("the target has no matrix")]
    Target,
    /// Primaries or chromaticities that lie on a line.
    #[error("its {0} have no matrix")]
    NoMatrix(&'static str),
}

/// Colours that cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum SpaceError {
    /// The colours of the image are not known.
    #[error(transparent)]
    Unknown(#[from] UnknownColors),
    /// The image cannot be created.
    #[error(transparent)]
    Image(#[from] ImageError),
}

/// Returns the curve of the data of a tag.
fn curve(data: &[u8]) -> Option<Curve> {
    match data.get(..4)? {
        b"curv" => {
            let count = u32::from_be_bytes(data.get(8..12)?.try_into().ok()?) as usize;
            let entries = data.get(12..12usize.checked_add(count.checked_mul(2)?)?)?.as_chunks::<2>().0;
            let values = || entries.iter().map(|entry| u16::from_be_bytes(*entry));
            match count {
                0 => Some(Curve::Linear),
                // One entry is an exponent with 8 bits behind the point.
                1 => values().next().map(|value| Curve::Gamma(f64::from(value) / 256.0)),
                _ => Some(Curve::Table(values().map(|value| f32::from(value) / 65535.0).collect())),
            }
        }
        b"para" => {
            let kind = u16::from_be_bytes(data.get(8..10)?.try_into().ok()?);
            let p = |index: usize| fixed(data, 12 + index * 4);
            let g = p(0)?;
            Some(match kind {
                0 => Curve::Gamma(g),
                1 => Curve::Parameters([g, p(1)?, p(2)?, 0.0, -p(2)? / p(1)?, 0.0, 0.0]),
                2 => Curve::Parameters([g, p(1)?, p(2)?, 0.0, -p(2)? / p(1)?, p(3)?, p(3)?]),
                3 => Curve::Parameters([g, p(1)?, p(2)?, p(3)?, p(4)?, 0.0, 0.0]),
                4 => Curve::Parameters([g, p(1)?, p(2)?, p(3)?, p(4)?, p(5)?, p(6)?]),
                _ => return None,
            })
        }
        _ => None,
    }
}

impl Profile {
    /// Returns the curves of red, green and blue or of grey, and the matrix from light to XYZ; `None` if tables describe
    /// the colours.
    fn model(&self) -> Option<(Vec<Curve>, Matrix)> {
        let (curves, primaries) = self.curves_and_primaries()?;
        let curves = curves.into_iter().map(curve).collect::<Option<Vec<Curve>>>()?;
        let matrix = match primaries {
            Some(columns) => [0, 1, 2].map(|row| [0, 1, 2].map(|column| columns[column][row])),
            None => to_xyz(REC709)?,
        };
        Some((curves, matrix))
    }

    /// Creates the profile of a space; `None` where none is needed.
    fn of_space(space: TargetSpace) -> Option<Profile> {
        let white = xyz(space.chromaticities()[0], space.chromaticities()[1]);
        let (matrix, adaptation) = (to_xyz(space.chromaticities())?, adaptation(white)?);
        let parameters: &[f64] = match space.curve() {
            Curve::Srgb => &[2.4, 1.0 / 1.055, 0.055 / 1.055, 1.0 / 12.92, 0.04045],
            Curve::Rec709 => &[1.0 / 0.45, 1.0 / 1.099, 0.099 / 1.099, 1.0 / 4.5, 0.081],
            _ => &[1.0],
        };
        Some(Profile::new(written(space.name(), matrix, adaptation, parameters)))
    }
}
