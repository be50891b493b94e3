//! Tables of colours in `.cube` files (Adobe, *Cube LUT Specification* 1.0).

use super::{FileError, Problem};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum size of a file, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// Maximum side of a table of three dimensions, and of one.
const MAX_SIDES: (usize, usize) = (256, 65536);

/// Table of colours, with one or three dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Cube {
    /// True if the table has three dimensions.
    pub is_solid: bool,
    /// Number of entries along a side.
    pub side: usize,
    /// Minimum values of red, green and blue.
    pub low: [f64; 3],
    /// Maximum values of red, green and blue.
    pub high: [f64; 3],
    /// Entries of the table. Red changes fastest.
    pub entries: Vec<[f64; 3]>,
}

impl Cube {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Cube, FileError> {
        let fail = |problem| FileError::new(path, problem);
        let mut bytes = vec![];
        let file = File::open(path).map_err(|error| fail(Problem::Read(error)))?;
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| fail(Problem::Read(error)))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(fail(Problem::Unsupported(format!("a table of more than {} MiB", MAX_BYTES >> 20))));
        }
        // Titles may have any encoding.
        Cube::parse(&String::from_utf8_lossy(&bytes)).map_err(fail)
    }

    /// Parses the text of a file.
    ///
    /// ```
    /// use broadloom_effect::file::Cube;
    ///
    /// let cube = Cube::parse("LUT_1D_SIZE 2\n0 0 0\n1 2 3\n").unwrap();
    /// assert_eq!(cube.trilinear([0.5, 0.5, 0.5]), [0.5, 1.0, 1.5]);
    /// assert_eq!(Cube::parse("LUT_3D_SIZE 2\n0 0\n").unwrap_err().to_string(), "line 2: it needs three numbers");
    /// ```
    pub fn parse(text: &str) -> Result<Cube, Problem> {
        let mut size: Option<(bool, usize)> = None;
        let (mut low, mut high) = ([0.0; 3], [1.0; 3]);
        let mut entries: Vec<[f64; 3]> = vec![];
        let mut last = 0;
        for (index, content) in text.lines().enumerate() {
            let content = content.trim().trim_start_matches('\u{feff}');
            let fail = |reason: String| Problem::Line { line: index + 1, reason };
            last = index + 1;
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let mut words = content.split_whitespace();
            let first = words.next().unwrap_or_default();
            match first {
                "TITLE" => {}
                "LUT_1D_SIZE" | "LUT_3D_SIZE" => {
                    let is_solid = first == "LUT_3D_SIZE";
                    let most = if is_solid { MAX_SIDES.0 } else { MAX_SIDES.1 };
                    let side = words.next().and_then(|word| word.parse().ok()).filter(|side| (2..=most).contains(side));
                    let side = side.ok_or_else(|| fail(format!("the size must be from 2 to {most}")))?;
                    if size.replace((is_solid, side)).is_some() {
                        return Err(fail("the size is given twice".to_owned()));
                    }
                }
                "DOMAIN_MIN" | "DOMAIN_MAX" => {
                    let domain = three(words).ok_or_else(|| fail("it needs three numbers".to_owned()))?;
                    *if first == "DOMAIN_MIN" { &mut low } else { &mut high } = domain;
                }
                "LUT_1D_INPUT_RANGE" | "LUT_3D_INPUT_RANGE" => {
                    let range = two(words).ok_or_else(|| fail("it needs two numbers".to_owned()))?;
                    (low, high) = ([range[0]; 3], [range[1]; 3]);
                }
                word if word.starts_with(|first: char| first.is_ascii_alphabetic()) => {
                    return Err(fail(format!("the keyword {} is not known", word.chars().take(40).collect::<String>())));
                }
                _ => {
                    let Some((is_solid, side)) = size else { return Err(fail("the size comes before the table".to_owned())) };
                    let count = if is_solid { side * side * side } else { side };
                    if entries.len() == count {
                        return Err(fail(format!("the table has more than {count} entries")));
                    }
                    let entry = three(content.split_whitespace()).ok_or_else(|| fail("it needs three numbers".to_owned()))?;
                    entries.push(entry);
                }
            }
        }
        let fail = |reason: String| Problem::Line { line: last, reason };
        let (is_solid, side) = size.ok_or_else(|| fail("there is no LUT_1D_SIZE or LUT_3D_SIZE".to_owned()))?;
        let count = if is_solid { side * side * side } else { side };
        if entries.len() != count {
            return Err(fail(format!("the table ends after {} of {count} entries", entries.len())));
        }
        if low.iter().zip(high).any(|(low, high)| *low >= high) {
            return Err(fail("DOMAIN_MAX must be greater than DOMAIN_MIN".to_owned()));
        }
        Ok(Cube { is_solid, side, low, high, entries })
    }

    /// Returns the position of a colour in the table: the cell in each axis, and the weight of the next cell.
    fn place(&self, rgb: [f64; 3]) -> ([usize; 3], [f64; 3]) {
        let (mut cells, mut shares) = ([0; 3], [0.0; 3]);
        for channel in 0..3 {
            let (low, high) = (self.low[channel], self.high[channel]);
            let share = (rgb[channel] - low) / (high - low);
            // NaN is treated as the minimum.
            let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
            let scaled = share * (self.side - 1) as f64;
            cells[channel] = (scaled.floor() as usize).min(self.side - 2);
            shares[channel] = scaled - cells[channel] as f64;
        }
        (cells, shares)
    }

    fn entry(&self, [r, g, b]: [usize; 3]) -> [f64; 3] {
        self.entries[(b * self.side + g) * self.side + r]
    }

    /// Interpolates each channel separately, in a table of one dimension.
    fn lines(&self, rgb: [f64; 3]) -> [f64; 3] {
        let (cells, shares) = self.place(rgb);
        [0, 1, 2].map(|channel| {
            let (cell, share) = (cells[channel], shares[channel]);
            (1.0 - share) * self.entries[cell][channel] + share * self.entries[cell + 1][channel]
        })
    }

    /// Maps a colour by interpolation between the eight entries around it.
    pub fn trilinear(&self, rgb: [f64; 3]) -> [f64; 3] {
        if !self.is_solid {
            return self.lines(rgb);
        }
        let (cells, shares) = self.place(rgb);
        let mut sum = [0.0; 3];
        for corner in 0..8 {
            let steps = [corner & 1, corner >> 1 & 1, corner >> 2];
            let parts = steps.iter().zip(shares).map(|(step, share)| if *step == 1 { share } else { 1.0 - share });
            let weight: f64 = parts.product();
            let entry = self.entry([cells[0] + steps[0], cells[1] + steps[1], cells[2] + steps[2]]);
            sum = [0, 1, 2].map(|channel| sum[channel] + weight * entry[channel]);
        }
        sum
    }

    /// Maps a colour by interpolation in the tetrahedron around it. The path starts at the lowest corner of
    /// the cell and follows the axes in descending order of their weights.
    pub fn tetrahedral(&self, rgb: [f64; 3]) -> [f64; 3] {
        if !self.is_solid {
            return self.lines(rgb);
        }
        let (mut cell, shares) = self.place(rgb);
        let mut axes = [0, 1, 2];
        axes.sort_by(|a, b| shares[*b].total_cmp(&shares[*a]));
        let mut before = self.entry(cell);
        let mut sum = before;
        for axis in axes {
            cell[axis] += 1;
            let behind = self.entry(cell);
            sum = [0, 1, 2].map(|channel| sum[channel] + shares[axis] * (behind[channel] - before[channel]));
            before = behind;
        }
        sum
    }
}

fn numbers<'a, const N: usize>(mut words: impl Iterator<Item = &'a str>) -> Option<[f64; N]> {
    let mut numbers = [0.0; N];
    for number in &mut numbers {
        *number = words.next()?.parse().ok().filter(|number: &f64| number.is_finite())?;
    }
    words.next().is_none().then_some(numbers)
}

fn three<'a>(words: impl Iterator<Item = &'a str>) -> Option<[f64; 3]> {
    numbers(words)
}

fn two<'a>(words: impl Iterator<Item = &'a str>) -> Option<[f64; 2]> {
    numbers(words)
}
