//! Image effects: noise is removed from a picture.

use crate::report::{Row, Times};
use crate::session::Session;
use crate::{Result, plain};
use broadloom::effect::{ColorSpace, Image, file};
use std::path::Path;
use std::time::Instant;

const SEARCH: i32 = 9;
const PATCH: i32 = 5;
const STRENGTH: f32 = 0.12;

/// Colours of a picture, row by row.
struct Picture {
    width: usize,
    height: usize,
    /// Red, green and blue planes.
    planes: [Vec<f32>; 3],
}

impl Picture {
    /// Reads the first three planes of a file.
    fn read(path: &Path) -> Result<Picture> {
        let image = file::read(path)?;
        let plane = |name: &str| Ok::<_, String>(image.plane(name).ok_or(format!("no plane {name}"))?.to_f32());
        Ok(Picture {
            width: image.width() as usize,
            height: image.height() as usize,
            planes: [plane("R")?, plane("G")?, plane("B")?],
        })
    }

    fn write(&self, path: &Path) -> Result<()> {
        let planes = ["R", "G", "B"].into_iter().zip(self.planes.iter().cloned());
        let image = Image::from_f32(self.width as u32, self.height as u32, planes)?.with_color(ColorSpace::Srgb);
        Ok(file::write_as(path, &image, Some(broadloom::effect::SampleType::U8))?)
    }

    /// Returns the root of the mean squared difference.
    fn error(&self, other: &Picture) -> f64 {
        let pairs = self.planes.iter().flatten().zip(other.planes.iter().flatten());
        let sum: f64 = pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum();
        (sum / (3 * self.width * self.height) as f64).sqrt()
    }
}

/// Draws a moon over a lake between mountains.
fn scene(width: usize, height: usize) -> Picture {
    let mut planes: [Vec<f32>; 3] = Default::default();
    for row in 0..height {
        for column in 0..width {
            let color = color(column as f32 / width as f32, row as f32 / height as f32, width as f32 / height as f32);
            planes.iter_mut().zip(color).for_each(|(plane, value)| plane.push(value.clamp(0.0, 1.0)));
        }
    }
    Picture { width, height, planes }
}

/// Returns the colour at a position in 0 … 1.
fn color(x: f32, y: f32, aspect: f32) -> [f32; 3] {
    const SHORE: f32 = 0.68;
    // The lake mirrors what is above it, with waves, and is darker.
    let (seen, dark) = if y < SHORE { (y, 1.0) } else { (2.0 * SHORE - y + 0.006 * (90.0 * y).sin(), 0.6) };
    let mix = |a: [f32; 3], b: [f32; 3], t: f32| std::array::from_fn(|i| a[i] + (b[i] - a[i]) * t);
    let mut color: [f32; 3] = mix([0.05, 0.06, 0.20], [0.95, 0.55, 0.35], (seen / SHORE).clamp(0.0, 1.0).powi(2));
    let moon = ((x - 0.68) * aspect).hypot(seen - 0.2);
    if moon < 0.09 {
        color = [0.98, 0.95, 0.80];
    } else {
        color = mix(color, [0.98, 0.90, 0.70], 0.5 * (-(moon - 0.09) * 14.0).exp());
    }
    let ridges =
        [(0.46, 0.10, 7.0, [0.42, 0.33, 0.45]), (0.54, 0.08, 11.0, [0.26, 0.22, 0.34]), (0.61, 0.05, 17.0, [0.12, 0.13, 0.20])];
    for (top, rise, waves, shade) in ridges {
        let edge =
            top + rise * ((waves * x).sin() * 0.5 + (waves * 2.3 * x + top * 40.0).sin() * 0.3 + (waves * 5.1 * x).sin() * 0.1);
        if seen > edge {
            color = shade;
        }
    }
    color.map(|value| value * dark)
}

/// Adds noise with a standard deviation of about 0.08.
fn noisy(picture: &Picture) -> Picture {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    // A sum of four uniform numbers is close to a Gaussian.
    let mut noise = || 0.14 * (uniform() + uniform() + uniform() + uniform());
    let planes = picture.planes.each_ref().map(|plane| plane.iter().map(|value| (value + noise()).clamp(0.0, 1.0)).collect());
    Picture { planes, ..*picture }
}

/// Draws pictures side by side, two pixels in a character.
fn draw(pictures: [&Picture; 2]) {
    const COLUMNS: usize = 38;
    let rows = COLUMNS * pictures[0].height / pictures[0].width / 2;
    let pixel = |picture: &Picture, column: usize, row: usize| {
        let (x, y) = ((2 * column + 1) * picture.width / (2 * COLUMNS), (2 * row + 1) * picture.height / (4 * rows));
        picture.planes.each_ref().map(|plane| (plane[y * picture.width + x] * 255.0) as u8)
    };
    for row in 0..rows {
        for picture in pictures {
            for column in 0..COLUMNS {
                let ([r, g, b], [s, h, c]) = (pixel(picture, column, 2 * row), pixel(picture, column, 2 * row + 1));
                print!("\x1b[38;2;{r};{g};{b};48;2;{s};{h};{c}m▀");
            }
            print!("\x1b[0m ");
        }
        println!();
    }
}

pub(crate) fn run(session: &Session) -> Result<Row> {
    let (width, height) = (session.size(768, 60), session.size(432, 40));
    let clean = scene(width, height);
    let (before, after) = (session.folder().join("before.png"), session.folder().join("after.png"));
    noisy(&clean).write(&before)?;
    let shown = [&before, &after].map(|path| session.shown(path));
    let settings = [format!("search={SEARCH}"), format!("patch={PATCH}"), format!("strength={STRENGTH}")];
    let (first, again) = session.call(&[
        "effect",
        "nlmeans",
        &shown[0],
        &shown[1],
        "--set",
        &settings[0],
        "--set",
        &settings[1],
        "--set",
        &settings[2],
        "--device",
        session.device(),
    ])?;
    first.succeeded()?;
    again.succeeded()?;
    let (noisy, smooth) = (Picture::read(&before)?, Picture::read(&after)?);

    let start = Instant::now();
    let plane = |x: &Vec<f32>| plain::nlmeans(x, width, height, SEARCH, PATCH, STRENGTH);
    let expected = Picture { width, height, planes: noisy.planes.each_ref().map(plane) };
    let plain = start.elapsed();
    let difference = expected.error(&smooth);
    // The file has eight bits.
    if difference > 2.0 / 255.0 {
        return Err(format!("the picture differs from the plain loop by {difference:.4}").into());
    }
    if session.is_terminal() {
        draw([&noisy, &smooth]);
    }
    let answer = format!("{width}×{height}, error {:.3} → {:.3}", noisy.error(&clean), smooth.error(&clean));
    println!("before {}, after {}", shown[0], shown[1]);
    Ok(Row { job: "noise out of an image", answer, times: Times { first: first.time, again: again.time, plain: Some(plain) } })
}
