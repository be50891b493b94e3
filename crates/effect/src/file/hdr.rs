//! Radiance HDR (RGBE): a text header, then rows of red, green and blue with a common exponent.
//!
//! A sample is its byte times 2 to the power of the exponent − 136, as in OpenCV and most readers.

use super::interleave::{ByteOrder, Interleaved, Rows};
use super::limits::check_size;
use super::planes::simple_planes;
use super::rows::{Opened, ReadRows};
use super::source::Source;
use super::target::Out;
use super::{Format, Limits, Problem};
use crate::image::{ColorSpace, Image, Metadata, Plane, Rect, SampleType, reserved};
use std::io::{BufRead, Read};

/// Maximum number of bytes of a header.
const MAX_HEADER: u64 = 1 << 16;

/// Widths of rows that can be compressed by runs.
const RUN_WIDTHS: std::ops::Range<usize> = 8..32768;

fn broken(error: std::io::Error) -> Problem {
    Problem::of_read(error)
}

/// Reads a line of the header without its end.
fn line(source: &mut Source) -> Result<String, Problem> {
    let mut bytes = vec![];
    source.take(MAX_HEADER).read_until(b'\n', &mut bytes).map_err(broken)?;
    match bytes.pop() {
        Some(b'\n') => Ok(String::from_utf8_lossy(&bytes).trim().to_owned()),
        _ => Err(Problem::Decode("the header has no end".to_owned())),
    }
}

/// Reads the header: the size, and what is not kept.
fn header(source: &mut Source, metadata: &mut Metadata) -> Result<(u64, u64), Problem> {
    line(source)?;
    let mut unkept = vec![];
    loop {
        if source.place().get() > MAX_HEADER {
            return Err(Problem::Decode("the header has no end".to_owned()));
        }
        let text = line(source)?;
        match text.split_once('=') {
            _ if text.is_empty() => break,
            Some(("FORMAT", "32-bit_rle_rgbe")) => {}
            Some(("FORMAT", other)) => {
                return Err(Problem::Unsupported(format!("an HDR of the format {other}, which is not read")));
            }
            Some((name, _)) if !text.starts_with('#') => unkept.push(name.trim().chars().take(40).collect::<String>()),
            _ => {}
        }
    }
    if !unkept.is_empty() {
        unkept.sort();
        unkept.dedup();
        metadata.losses.push(format!("lines of the header are not kept: {}", unkept.join(", ")));
    }
    let size = line(source)?;
    match size.split_whitespace().collect::<Vec<&str>>()[..] {
        ["-Y", height, "+X", width] => width.parse().ok().zip(height.parse().ok()),
        _ => return Err(Problem::Unsupported(format!("an HDR whose rows are in the order `{size}`; `-Y … +X …` is read"))),
    }
    .ok_or_else(|| Problem::Decode(format!("the size is `{size}`")))
}

/// Reads a row of pixels of four bytes.
fn read_row(source: &mut Source, row: &mut [[u8; 4]]) -> Result<(), Problem> {
    let overlong = || Problem::Decode("a run is longer than its row".to_owned());
    let mut pixel = [0; 4];
    let mut at = 0;
    let mut shift = 0;
    while at < row.len() {
        source.read_exact(&mut pixel).map_err(broken)?;
        let is_new = at == 0 && RUN_WIDTHS.contains(&row.len()) && pixel[..2] == [2, 2] && pixel[2] < 128;
        if is_new {
            if usize::from(u16::from_be_bytes([pixel[2], pixel[3]])) != row.len() {
                return Err(Problem::Decode("a row has another width than the image".to_owned()));
            }
            return read_runs(source, row);
        }
        if pixel[..3] == [1, 1, 1] {
            // A run of the pixel before, in the old form. Longer runs have more bytes of their count.
            let count = usize::from(pixel[3]).checked_shl(shift).ok_or_else(overlong)?;
            let previous = at.checked_sub(1).map(|before| row[before]).ok_or_else(overlong)?;
            row.get_mut(at..at.saturating_add(count)).ok_or_else(overlong)?.fill(previous);
            (at, shift) = (at + count, shift + 8);
            if shift > 24 {
                return Err(overlong());
            }
        } else {
            row[at] = pixel;
            (at, shift) = (at + 1, 0);
        }
    }
    Ok(())
}

/// Reads a row whose four components stand one behind the other, in runs.
fn read_runs(source: &mut Source, row: &mut [[u8; 4]]) -> Result<(), Problem> {
    let mut byte = [0; 1];
    for component in 0..4 {
        let mut at = 0;
        while at < row.len() {
            source.read_exact(&mut byte).map_err(broken)?;
            let (count, is_run) = if byte[0] > 128 { (byte[0] - 128, true) } else { (byte[0], false) };
            let places = row.get_mut(at..at + usize::from(count)).filter(|places| !places.is_empty());
            let places = places.ok_or_else(|| Problem::Decode("a run is longer than its row".to_owned()))?;
            for (index, place) in places.iter_mut().enumerate() {
                if index == 0 || !is_run {
                    source.read_exact(&mut byte).map_err(broken)?;
                }
                place[component] = byte[0];
            }
            at += usize::from(count);
        }
    }
    Ok(())
}

/// Returns 2 to the power of a number.
fn power(exponent: i32) -> f32 {
    // Two factors, because the smallest powers are subnormal.
    let normal = |exponent: i32| f32::from_bits(((exponent + 127) as u32) << 23);
    normal(exponent / 2) * normal(exponent - exponent / 2)
}

/// Rows of a file.
struct HdrRows {
    source: Source,
    row: Vec<[u8; 4]>,
}

impl ReadRows for HdrRows {
    fn read(&mut self, rows: u32) -> Result<Vec<Plane>, Problem> {
        let width = self.row.len() as u32;
        let mut samples = [(); 3].map(|()| reserved::<f32>(u64::from(width) * u64::from(rows)));
        for _ in 0..rows {
            read_row(&mut self.source, &mut self.row)?;
            for (component, samples) in samples.iter_mut().enumerate() {
                let Ok(samples) = samples else { continue };
                samples.extend(self.row.iter().map(|pixel| match pixel[3] {
                    0 => 0.0,
                    exponent => f32::from(pixel[component]) * power(i32::from(exponent) - 136),
                }));
            }
        }
        NAMES.iter().zip(samples).map(|(name, samples)| Ok(Plane::new(name, width, rows, samples?)?)).collect()
    }
}

/// Names of the planes.
const NAMES: [&str; 3] = ["R", "G", "B"];

/// Opens an image.
pub(super) fn open(mut source: Source, limits: Limits) -> Result<Opened, Problem> {
    let mut metadata = Metadata::default();
    let (width, height) = header(&mut source, &mut metadata)?;
    let (width, height) = check_size(width, height, 12, limits)?;
    let bounds = Rect::sized(width, height);
    // A run of the old form has four bytes for at most 2²⁴ pixels.
    if bounds.area() > source.len().saturating_mul(1 << 22) {
        return Err(Problem::Decode(format!("{width}×{height} pixels cannot be in a file of {} bytes", source.len())));
    }
    let header = Image::placeholder(bounds, &NAMES.map(|name| (name.to_owned(), SampleType::F32)))?;
    let header = header.with_implied_color(ColorSpace::Linear).with_metadata(metadata);
    Ok(Opened::Rows(header, Box::new(HdrRows { source, row: vec![[0; 4]; width as usize] })))
}

/// Returns the bytes of a pixel. Values below 0 and NaN become 0. Values that are too large saturate.
fn encoded(rgb: [f32; 3]) -> [u8; 4] {
    // The largest value has the bytes 255 and the exponent 255; a float has no larger exponent than 127.
    let rgb = rgb.map(|value| if value > 0.0 { value.min(f32::MAX) } else { 0.0 });
    let most = rgb[0].max(rgb[1]).max(rgb[2]);
    if most < 1e-38 {
        return [0; 4];
    }
    // The exponent with which the largest value is from 128 to 255, after rounding.
    let mut exponent = (most.to_bits() >> 23) as i32 - 127 + 129;
    if (most / power(exponent - 136)).round() > 255.0 {
        exponent += 1;
    }
    let exponent = exponent.min(255);
    let bytes = rgb.map(|value| (value / power(exponent - 136)).round().min(255.0) as u8);
    [bytes[0], bytes[1], bytes[2], exponent as u8]
}

/// Appends the runs of a component of a row.
fn append_runs(row: &[[u8; 4]], component: usize, bytes: &mut Vec<u8>) {
    let mut at = 0;
    while at < row.len() {
        let run = |from: usize| row[from..].iter().take(127).take_while(|pixel| pixel[component] == row[from][component]).count();
        let same = run(at);
        if same >= 4 {
            bytes.extend([128 + same as u8, row[at][component]]);
            at += same;
            continue;
        }
        let mut count = same;
        while at + count < row.len() && count < 128 && run(at + count) < 4 {
            count += 1;
        }
        bytes.push(count as u8);
        bytes.extend(row[at..at + count].iter().map(|pixel| pixel[component]));
        at += count;
    }
}

/// Writes red, green and blue; grey as equal ones.
pub(super) fn write(out: &mut dyn Out, from: Rows<'_>) -> Result<(), Problem> {
    let image = from.image();
    let planes = simple_planes(Format::Hdr, image, false)?;
    let (width, height) = (image.width() as usize, image.height());
    write!(out, "#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y {height} +X {width}\n").map_err(Problem::Write)?;
    let pixels = Interleaved { planes, wanted: SampleType::F32, order: ByteOrder::Little, from };
    let count = pixels.planes.len();
    let mut bytes = vec![];
    for y in 0..height {
        let line = pixels.rows(y..y + 1)?;
        let (values, _) = line.as_chunks::<4>();
        let value = |at: usize| f32::from_le_bytes(values[at]);
        let row: Vec<[u8; 4]> = (0..width)
            .map(|x| encoded([0, 1, 2].map(|component| value(x * count + if count == 3 { component } else { 0 }))))
            .collect();
        bytes.clear();
        if RUN_WIDTHS.contains(&width) {
            bytes.extend([2, 2, (width >> 8) as u8, width as u8]);
            (0..4).for_each(|component| append_runs(&row, component, &mut bytes));
        } else {
            bytes.extend(row.as_flattened());
        }
        out.write_all(&bytes).map_err(Problem::Write)?;
    }
    Ok(())
}
