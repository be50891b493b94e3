//! Rows of planes as the interleaved bytes of a file.

use crate::image::{Plane, Sample, SampleType, with_samples};
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

/// Planes whose samples stand one behind the other in each pixel of a file, converted to one type.
#[derive(Clone, Debug)]
pub(super) struct Interleaved<'a> {
    pub(super) planes: Vec<&'a Plane>,
    pub(super) wanted: SampleType,
    pub(super) order: ByteOrder,
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

    /// Returns the bytes of rows.
    pub(super) fn rows(&self, rows: Range<u32>) -> Vec<u8> {
        let mut bytes = vec![0; self.line() * rows.len()];
        for (line, y) in bytes.chunks_exact_mut(self.line()).zip(rows) {
            for (index, plane) in self.planes.iter().enumerate() {
                with_samples!(plane.samples(), samples => self.scatter(row_of(samples, plane, y), index, line));
            }
        }
        bytes
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
