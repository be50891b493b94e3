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

    /// Returns the bytes of groups of rows that represent the image, without taking them: of the whole image, or of its
    /// first band.
    pub(super) fn samples(&self, groups: u32, rows: u32) -> Result<Option<Vec<u8>>, Problem> {
        let of = |planes: &[&Plane]| {
            let height = planes[0].height();
            let first = |group: u32| (height - rows) / (groups - 1) * group;
            (height >= groups * rows).then(|| {
                let mut bytes = vec![0; self.line() * (groups * rows) as usize];
                for (group, part) in (0..groups).zip(bytes.chunks_exact_mut(self.line() * rows as usize)) {
                    self.fill(planes, first(group)..first(group) + rows, &mut part.chunks_exact_mut(self.line()));
                }
                bytes
            })
        };
        match self.from {
            Rows::Whole(_) => Ok(of(&self.planes)),
            Rows::Bands(image, queue) => {
                let mut found = None;
                queue.above(0, |band, _| found = of(&self.planes_of(image, band)))?;
                Ok(found)
            }
        }
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
        for (y, line) in rows.zip(lines) {
            for (index, plane) in planes.iter().enumerate() {
                with_samples!(plane.samples(), samples => self.scatter(row_of(samples, plane, y), index, line));
            }
        }
    }

    /// Writes a row of a plane to its places among the samples of a line.
    fn scatter<T: Sample>(&self, row: &[T], index: usize, line: &mut [u8]) {
        let is_big = self.order == ByteOrder::Big;
        match (self.wanted, is_big) {
            (SampleType::U8, _) => self.put(row, index, line, |value: u8| [value]),
            (SampleType::U16, true) => self.put(row, index, line, u16::to_be_bytes),
            (SampleType::U16, false) => self.put(row, index, line, u16::to_le_bytes),
            (SampleType::F16, true) => self.put(row, index, line, f16::to_be_bytes),
            (SampleType::F16, false) => self.put(row, index, line, f16::to_le_bytes),
            (SampleType::F32, true) => self.put(row, index, line, f32::to_be_bytes),
            (SampleType::F32, false) => self.put(row, index, line, f32::to_le_bytes),
            (SampleType::U32, true) => self.put(row, index, line, u32::to_be_bytes),
            (SampleType::U32, false) => self.put(row, index, line, u32::to_le_bytes),
        }
    }

    fn put<T: Sample, U: Sample, const N: usize>(&self, row: &[T], index: usize, line: &mut [u8], bytes: impl Fn(U) -> [u8; N]) {
        // A sample that has the type already is copied bit for bit.
        let convert = |sample: &T| match (sample as &dyn std::any::Any).downcast_ref::<U>() {
            Some(same) => *same,
            None => U::from_f32(sample.to_f32()),
        };
        let count = self.planes.len();
        let (places, _) = line.as_chunks_mut::<N>();
        for (place, sample) in places[index..].iter_mut().step_by(count).zip(row) {
            *place = bytes(convert(sample));
        }
    }
}

/// Returns a row of a plane.
fn row_of<'a, T>(samples: &'a [T], plane: &Plane, y: u32) -> &'a [T] {
    let first = plane.start() + y as usize * plane.pitch();
    &samples[first..first + plane.width() as usize]
}
