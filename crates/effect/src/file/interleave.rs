//! Rows of planes as the interleaved bytes of a file.

use super::queue::RowQueue;
use super::strips::in_order;
use super::{Problem, options::WriteOptions};
use crate::image::{Image, Plane, Sample, SampleType, with_samples};
use half::f16;
use std::ops::Range;

/// Order of the bytes of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    /// The most significant byte comes first.
    Big,
    /// The least significant byte comes first.
    Little,
}

/// Rows of an image that is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rows<'a> {
    /// All rows are in memory.
    Whole(&'a Image),
    /// Rows come in bands. The image is a placeholder.
    Bands(&'a Image, &'a RowQueue),
}

impl<'a> Rows<'a> {
    /// Returns the image, or its placeholder.
    pub(super) fn image(self) -> &'a Image {
        match self {
            Rows::Whole(image) | Rows::Bands(image, _) => image,
        }
    }

    /// Returns the image. Waits for all rows, and gives them the sample type with which they are written.
    pub(super) fn whole(self, options: &WriteOptions) -> Result<Image, Problem> {
        let (image, queue) = match self {
            Rows::Whole(image) => return Ok(image.clone()),
            Rows::Bands(image, queue) => (image, queue),
        };
        let mut parts = vec![];
        queue.take(0..image.height(), |band, rows| {
            let typed = |plane: &Plane| match (plane.sample_type(), options.samples) {
                (SampleType::U32, _) | (_, None) => plane.clone(),
                (_, Some(wanted)) => plane.converted(wanted),
            };
            let part = band.rows(rows);
            parts.push(part.with_planes(part.planes().iter().map(typed).collect()));
        })?;
        let parts = parts.into_iter().collect::<Result<Vec<Image>, _>>()?;
        Ok(image.with_planes(Image::of_bands(image.bounds(), &parts)?.planes().to_vec())?)
    }
}

/// Planes whose samples stand one behind the other in each pixel of a file, converted to one type.
#[derive(Clone, Debug)]
pub(super) struct Interleaved<'a> {
    pub(super) planes: Vec<&'a Plane>,
    pub(super) wanted: SampleType,
    pub(super) order: ByteOrder,
    /// Rows of the image whose planes they are.
    pub(super) from: Rows<'a>,
}

impl Interleaved<'_> {
    /// Returns the number of bytes of a pixel.
    pub(super) fn pixel(&self) -> usize {
        self.planes.len() * self.wanted.bytes()
    }

    /// Returns the number of bytes of a row.
    pub(super) fn line(&self) -> usize {
        self.pixel() * self.planes[0].width() as usize
    }

    /// Returns the bytes of rows. Rows of bands are returned once.
    pub(super) fn rows(&self, rows: Range<u32>) -> Result<Vec<u8>, Problem> {
        let mut bytes = vec![0; self.line() * rows.len()];
        let mut lines = bytes.chunks_exact_mut(self.line());
        match self.from {
            Rows::Whole(_) => self.fill(&self.planes, rows, &mut lines),
            Rows::Bands(image, queue) => {
                queue.take(rows, |band, rows| self.fill(&self.planes_of(image, band), rows, &mut lines))?;
            }
        }
        Ok(bytes)
    }

    /// Returns the samples of rows plane by plane, as integers of 8 bits. Rows of bands are returned once.
    pub(super) fn planar(&self, rows: Range<u32>) -> Result<Vec<Vec<u8>>, Problem> {
        let area = self.planes[0].width() as usize * rows.len();
        let mut all: Vec<Vec<u8>> = self.planes.iter().map(|_| Vec::with_capacity(area)).collect();
        let mut append = |planes: &[&Plane], rows: Range<u32>| {
            for (plane, own) in planes.iter().zip(&mut all) {
                with_samples!(plane.samples(), samples => rows.clone().for_each(|y| {
                    own.extend(row_of(samples, plane, y).iter().map(|sample| converted::<_, u8>(*sample)));
                }));
            }
        };
        match self.from {
            Rows::Whole(_) => append(&self.planes, rows),
            Rows::Bands(image, queue) => queue.take(rows, |band, rows| append(&self.planes_of(image, band), rows))?,
        }
        Ok(all)
    }

    /// Returns the bytes of the row above a row; zeros above the image. Must be called before that row is taken.
    pub(super) fn above(&self, row: u32) -> Result<Vec<u8>, Problem> {
        let mut bytes = vec![0; self.line()];
        let mut lines = bytes.chunks_exact_mut(self.line());
        match (row.checked_sub(1), self.from) {
            (None, _) => {}
            (Some(above), Rows::Whole(_)) => self.fill(&self.planes, above..row, &mut lines),
            (Some(above), Rows::Bands(image, queue)) => {
                queue.above(above, |band, rows| self.fill(&self.planes_of(image, band), rows, &mut lines))?;
            }
        }
        Ok(bytes)
    }

    /// Encodes strips on all cores and writes them in order, as [`in_order`] does.
    pub(super) fn in_order<T: Send>(
        &self,
        count: usize,
        encode: impl Fn(usize) -> Result<T, Problem> + Sync,
        mut write: impl FnMut(T) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        in_order(count, encode, |strip| {
            let written = strip.and_then(&mut write);
            if let (Err(_), Rows::Bands(_, queue)) = (&written, self.from) {
                // Other encoders must not wait for rows.
                queue.stop();
            }
            written
        })
    }

    /// Returns the planes of a band that are those of the placeholder.
    fn planes_of<'b>(&self, image: &Image, band: &'b Image) -> Vec<&'b Plane> {
        let all = image.planes();
        let place = |plane: &&Plane| all.iter().position(|own| own.shares_memory(plane)).unwrap_or(0);
        self.planes.iter().map(|plane| &band.planes()[place(plane)]).collect()
    }

    /// Writes rows of planes to lines of bytes.
    fn fill<'b>(&self, planes: &[&Plane], rows: Range<u32>, lines: &mut impl Iterator<Item = &'b mut [u8]>) {
        let is_big = self.order == ByteOrder::Big;
        match (self.wanted, is_big) {
            (SampleType::U8, _) => fill_with(planes, rows, lines, |value: u8| [value]),
            (SampleType::U16, true) => fill_with(planes, rows, lines, u16::to_be_bytes),
            (SampleType::U16, false) => fill_with(planes, rows, lines, u16::to_le_bytes),
            (SampleType::F16, true) => fill_with(planes, rows, lines, f16::to_be_bytes),
            (SampleType::F16, false) => fill_with(planes, rows, lines, f16::to_le_bytes),
            (SampleType::F32, true) => fill_with(planes, rows, lines, f32::to_be_bytes),
            (SampleType::F32, false) => fill_with(planes, rows, lines, f32::to_le_bytes),
            (SampleType::U32, true) => fill_with(planes, rows, lines, u32::to_be_bytes),
            (SampleType::U32, false) => fill_with(planes, rows, lines, u32::to_le_bytes),
        }
    }
}

/// Writes rows of planes to lines of samples of a type. Samples that have the type already are copied bit for bit.
fn fill_with<'b, T: Sample, const N: usize>(
    planes: &[&Plane],
    rows: Range<u32>,
    lines: &mut impl Iterator<Item = &'b mut [u8]>,
    bytes: impl Fn(T) -> [u8; N] + Copy,
) {
    let mut converted: Vec<Vec<T>> = planes.iter().map(|_| vec![]).collect();
    for (y, line) in rows.zip(lines) {
        for (plane, own) in planes.iter().zip(&mut converted).filter(|(plane, _)| plane.sample_type() != T::TYPE) {
            own.clear();
            with_samples!(plane.samples(), samples => {
                own.extend(row_of(samples, plane, y).iter().map(|sample| T::from_f32(Sample::to_f32(*sample))));
            });
        }
        let rows: Vec<&[T]> = planes.iter().zip(&converted).map(|(plane, own)| plane.row::<T>(y).unwrap_or(own)).collect();
        let places = line.as_chunks_mut::<N>().0;
        // Usual numbers of planes, so that the compiler knows the distance of their samples.
        match rows[..] {
            [only] => places.iter_mut().zip(only).for_each(|(place, sample)| *place = bytes(*sample)),
            [r, g, b] => {
                for (((pixel, r), g), b) in places.as_chunks_mut::<3>().0.iter_mut().zip(r).zip(g).zip(b) {
                    *pixel = [bytes(*r), bytes(*g), bytes(*b)];
                }
            }
            [r, g, b, a] => {
                for ((((pixel, r), g), b), a) in places.as_chunks_mut::<4>().0.iter_mut().zip(r).zip(g).zip(b).zip(a) {
                    *pixel = [bytes(*r), bytes(*g), bytes(*b), bytes(*a)];
                }
            }
            _ => {
                for (index, row) in rows.iter().enumerate() {
                    for (place, sample) in places[index..].iter_mut().step_by(rows.len()).zip(*row) {
                        *place = bytes(*sample);
                    }
                }
            }
        }
    }
}

/// Appends interleaved samples to the vectors of their planes.
pub(super) fn separate<F: Copy, T>(samples: &[F], planes: &mut [Vec<T>], convert: impl Fn(F) -> T) {
    fn split<F: Copy, T, const N: usize>(samples: &[F], planes: &mut [Vec<T>], convert: impl Fn(F) -> T) {
        let (pixels, _) = samples.as_chunks::<N>();
        for (index, plane) in planes.iter_mut().enumerate() {
            plane.extend(pixels.iter().map(|pixel| convert(pixel[index])));
        }
    }
    match planes.len() {
        1 => split::<F, T, 1>(samples, planes, convert),
        3 => split::<F, T, 3>(samples, planes, convert),
        4 => split::<F, T, 4>(samples, planes, convert),
        count => {
            for (index, plane) in planes.iter_mut().enumerate() {
                plane.extend(samples.chunks_exact(count).map(|pixel| convert(pixel[index])));
            }
        }
    }
}

/// Converts a sample. One that has the type already is copied.
fn converted<T: Sample, U: Sample>(sample: T) -> U {
    match (&sample as &dyn std::any::Any).downcast_ref::<U>() {
        Some(same) => *same,
        None => U::from_f32(sample.to_f32()),
    }
}

/// Returns a row of a plane.
fn row_of<'a, T>(samples: &'a [T], plane: &Plane, y: u32) -> &'a [T] {
    let first = plane.start() + y as usize * plane.pitch();
    &samples[first..first + plane.width() as usize]
}
