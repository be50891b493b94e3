//! PFM: a text header, then rows of floats from bottom to top.

use super::limits::check_size;
use super::planes::simple_planes;
use super::source::Source;
use super::target::Out;
use super::{Format, Limits, Problem};
use crate::image::{Image, Plane, Rect, SampleType, reserved};
use std::io::{BufRead, Read};

/// Maximum length of a header.
const MAX_HEADER: usize = 256;

/// Reads a word of the header and the blank after it. Returns both.
fn word_and_blank(source: &mut Source, budget: &mut usize) -> Result<(String, u8), Problem> {
    let mut word = String::new();
    loop {
        let byte = match source.fill_buf().map_err(Problem::Read)?.first() {
            Some(byte) => *byte,
            None => return Err(Problem::Decode("the file ends in its header".to_owned())),
        };
        source.consume(1);
        *budget = budget.checked_sub(1).ok_or_else(|| Problem::Decode("the header has no end".to_owned()))?;
        match byte {
            byte if byte.is_ascii_whitespace() && word.is_empty() => {}
            byte if byte.is_ascii_whitespace() => return Ok((word, byte)),
            byte if byte.is_ascii_graphic() => word.push(char::from(byte)),
            byte => return Err(Problem::Decode(format!("the header has the byte {byte:#04x}"))),
        }
    }
}

/// Reads a word of the header and the blank after it.
fn word(source: &mut Source, budget: &mut usize) -> Result<String, Problem> {
    word_and_blank(source, budget).map(|(word, _)| word)
}

/// Reads an image. The magnitude of the scale is not applied: values are those in the file.
pub(super) fn read(mut source: Source, limits: Limits) -> Result<Image, Problem> {
    let mut budget = MAX_HEADER;
    let names: &[&str] = match word(&mut source, &mut budget)?.as_str() {
        "PF" => &["R", "G", "B"],
        "Pf" => &["Y"],
        other => return Err(Problem::Decode(format!("it begins with {other}, not with PF or Pf"))),
    };
    let number = |what: &str, text: String| {
        text.parse::<f64>().ok().filter(|x| x.is_finite()).ok_or_else(|| Problem::Decode(format!("the {what} is {text}")))
    };
    let width = number("width", word(&mut source, &mut budget)?)?;
    let height = number("height", word(&mut source, &mut budget)?)?;
    let (text, blank) = word_and_blank(&mut source, &mut budget)?;
    let scale = number("scale", text)?;
    if [width, height].iter().any(|side| side.fract() != 0.0 || *side < 0.0 || *side > 1e18) {
        return Err(Problem::Decode(format!("the size is {width}×{height}")));
    }
    let pixel = 4 * names.len() as u64;
    let (width, height) = check_size(width as u64, height as u64, pixel, limits)?;
    let bounds = Rect::sized(width, height);
    let mut left = source.len().saturating_sub(source.place().get());
    // The lines of some headers end in \r\n.
    if blank == b'\r' && left == bounds.area() * pixel + 1 && source.peek().map_err(Problem::Read)?.first() == Some(&b'\n') {
        source.consume(1);
        left -= 1;
    }
    if left < bounds.area() * pixel {
        return Err(Problem::Decode(format!("{width}×{height} pixels need {} bytes, and {left} follow", bounds.area() * pixel)));
    }
    let mut planes = vec![];
    for _ in names {
        let mut samples = reserved::<f32>(bounds.area())?;
        samples.resize(bounds.area() as usize, 0.0);
        planes.push(samples);
    }
    let columns = width as usize;
    let mut line = vec![0; columns * pixel as usize];
    for row in (0..height as usize).rev() {
        source.read_exact(&mut line).map_err(|error| Problem::Decode(error.to_string()))?;
        for (index, bytes) in line.as_chunks::<4>().0.iter().enumerate() {
            let value = if scale < 0.0 { f32::from_le_bytes(*bytes) } else { f32::from_be_bytes(*bytes) };
            planes[index % names.len()][row * columns + index / names.len()] = value;
        }
    }
    let planes = names.iter().zip(planes).map(|(name, samples)| Plane::new(name, width, height, samples));
    Ok(Image::new(bounds, planes.collect::<Result<_, _>>()?)?)
}

/// Writes an image in little-endian order.
pub(super) fn write(out: &mut dyn Out, image: &Image) -> Result<(), Problem> {
    let planes = simple_planes(Format::Pfm, image, false)?;
    let planes: Vec<Plane> = planes.into_iter().map(|plane| plane.converted(SampleType::F32)).collect();
    let kind = if planes.len() == 3 { "PF" } else { "Pf" };
    write!(out, "{kind}\n{} {}\n-1.0\n", image.width(), image.height()).map_err(Problem::Write)?;
    let mut line = vec![];
    for y in (0..image.height()).rev() {
        line.clear();
        let rows: Vec<&[f32]> = planes.iter().filter_map(|plane| plane.row(y)).collect();
        for x in 0..image.width() as usize {
            line.extend(rows.iter().flat_map(|row| row[x].to_le_bytes()));
        }
        out.write_all(&line).map_err(Problem::Write)?;
    }
    Ok(())
}
