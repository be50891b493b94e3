//! Planes: the samples of one component of an image.

use super::{ImageError, Rect};
use half::f16;
use std::fmt;
use std::sync::Arc;

/// The number format of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampleType {
    /// Integers of 8 bits; 255 represents 1.
    U8,
    /// Integers of 16 bits; 65535 represents 1.
    U16,
    /// Floating point of 16 bits.
    F16,
    /// Floating point of 32 bits.
    F32,
    /// Integers of 32 bits, such as identifiers of objects. They represent themselves.
    U32,
}

impl SampleType {
    /// Returns the size of a sample in bytes.
    pub fn bytes(self) -> usize {
        match self {
            SampleType::U8 => 1,
            SampleType::U16 | SampleType::F16 => 2,
            SampleType::F32 | SampleType::U32 => 4,
        }
    }

    /// Returns the name: `u8`, `u16`, `f16`, `f32`, `u32`.
    pub fn name(self) -> &'static str {
        match self {
            SampleType::U8 => "u8",
            SampleType::U16 => "u16",
            SampleType::F16 => "f16",
            SampleType::F32 => "f32",
            SampleType::U32 => "u32",
        }
    }

    /// Returns the smallest type that represents the samples of both exactly. Integers of 32 bits beside other samples
    /// become `f32`, which is exact up to 2²⁴.
    pub fn join(self, other: SampleType) -> SampleType {
        match (self, other) {
            (a, b) if a == b => a,
            (SampleType::U8, SampleType::U16) | (SampleType::U16, SampleType::U8) => SampleType::U16,
            _ => SampleType::F32,
        }
    }
}

impl fmt::Display for SampleType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A Rust type of samples.
pub trait Sample: Copy + Default + Send + Sync + fmt::Debug + 'static {
    /// The type as a value.
    const TYPE: SampleType;

    /// Returns the value that a sample represents. Integers of 8 and 16 bits are scaled to 0 … 1.
    fn to_f32(self) -> f32;

    /// Returns the nearest sample. Integers saturate, and NaN becomes 0 in integer types.
    fn from_f32(value: f32) -> Self;

    /// Wraps samples.
    fn wrap(samples: Arc<Vec<Self>>) -> Samples;

    /// Returns the samples if they have this type.
    fn unwrap(samples: &Samples) -> Option<&Arc<Vec<Self>>>;
}

macro_rules! sample {
    ($type:ty, $variant:ident, $to:expr, $from:expr) => {
        impl Sample for $type {
            const TYPE: SampleType = SampleType::$variant;

            #[inline]
            fn to_f32(self) -> f32 {
                $to(self)
            }

            #[inline]
            fn from_f32(value: f32) -> Self {
                $from(value)
            }

            fn wrap(samples: Arc<Vec<Self>>) -> Samples {
                Samples::$variant(samples)
            }

            fn unwrap(samples: &Samples) -> Option<&Arc<Vec<Self>>> {
                match samples {
                    Samples::$variant(samples) => Some(samples),
                    _ => None,
                }
            }
        }
    };
}

// Without a function call for the rounding, which takes longer than the rest and keeps loops from being vectorized. The
// difference to the integer below is exact.
sample!(u8, U8, |x: u8| f32::from(x) / 255.0, |x: f32| {
    let value = (x * 255.0).clamp(0.0, 255.0);
    let below = value as i32;
    (below + i32::from(value - below as f32 >= 0.5)) as u8
});
sample!(u16, U16, |x: u16| f32::from(x) / 65535.0, |x: f32| {
    let value = (f64::from(x) * 65535.0).clamp(0.0, 65535.0);
    let below = value as i32;
    (below + i32::from(value - f64::from(below) >= 0.5)) as u16
});
sample!(f16, F16, f16::to_f32, f16::from_f32);
sample!(f32, F32, |x: f32| x, |x: f32| x);
sample!(u32, U32, |x: u32| x as f32, |x: f32| x.round() as u32);

/// Shared samples in memory.
#[derive(Clone, Debug)]
pub enum Samples {
    /// Integers of 8 bits.
    U8(Arc<Vec<u8>>),
    /// Integers of 16 bits.
    U16(Arc<Vec<u16>>),
    /// Floating point of 16 bits.
    F16(Arc<Vec<f16>>),
    /// Floating point of 32 bits.
    F32(Arc<Vec<f32>>),
    /// Integers of 32 bits.
    U32(Arc<Vec<u32>>),
}

/// Evaluates an expression for the samples of any type.
macro_rules! with_samples {
    ($samples:expr, $name:ident => $body:expr) => {
        match $samples {
            $crate::image::Samples::U8($name) => $body,
            $crate::image::Samples::U16($name) => $body,
            $crate::image::Samples::F16($name) => $body,
            $crate::image::Samples::F32($name) => $body,
            $crate::image::Samples::U32($name) => $body,
        }
    };
}

pub(crate) use with_samples;

impl Samples {
    /// Wraps samples.
    pub fn new<T: Sample>(samples: Vec<T>) -> Samples {
        T::wrap(Arc::new(samples))
    }

    /// Returns the number format.
    pub fn sample_type(&self) -> SampleType {
        match self {
            Samples::U8(_) => SampleType::U8,
            Samples::U16(_) => SampleType::U16,
            Samples::F16(_) => SampleType::F16,
            Samples::F32(_) => SampleType::F32,
            Samples::U32(_) => SampleType::U32,
        }
    }

    /// Returns the number of samples in memory.
    pub fn len(&self) -> usize {
        with_samples!(self, samples => samples.len())
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One component of an image: a name and rows of samples. Row `y` begins at `start + y · pitch`.
#[derive(Clone, Debug)]
pub struct Plane {
    name: Arc<str>,
    samples: Samples,
    start: usize,
    pitch: usize,
    width: usize,
    height: usize,
}

impl Plane {
    /// Creates a plane whose rows are contiguous.
    pub fn new<T: Sample>(name: &str, width: u32, height: u32, samples: Vec<T>) -> Result<Plane, ImageError> {
        Plane::with_pitch(name, width, height, width as usize, samples)
    }

    /// Creates a plane whose rows begin `pitch` samples apart. Samples between rows are padding.
    pub fn with_pitch<T: Sample>(
        name: &str,
        width: u32,
        height: u32,
        pitch: usize,
        samples: Vec<T>,
    ) -> Result<Plane, ImageError> {
        Plane::from_samples(name, width, height, pitch, Samples::new(samples))
    }

    /// Creates a plane over samples that are already shared.
    pub fn from_samples(name: &str, width: u32, height: u32, pitch: usize, samples: Samples) -> Result<Plane, ImageError> {
        Rect::sized(width, height).checked()?;
        let (columns, rows) = (width as usize, height as usize);
        if pitch < columns {
            return Err(ImageError::Pitch { name: name.to_owned(), pitch, width });
        }
        let needed = (rows - 1).checked_mul(pitch).and_then(|before| before.checked_add(columns));
        if needed.is_none_or(|needed| needed > samples.len()) {
            return Err(ImageError::Samples { name: name.to_owned(), width, height, pitch, len: samples.len() });
        }
        Ok(Plane { name: name.into(), samples, start: 0, pitch, width: columns, height: rows })
    }

    /// Returns the name: `R`, `G`, `B`, `A`, `Y`, `Z`, or a layer and a channel such as `diffuse.R`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the plane under another name.
    pub fn renamed(mut self, name: &str) -> Plane {
        self.name = name.into();
        self
    }

    /// Returns the layer: the name before its last dot; empty if there is no dot.
    pub fn layer(&self) -> &str {
        self.name.rsplit_once('.').map_or("", |(layer, _)| layer)
    }

    /// Returns the channel: the name after its last dot.
    pub fn channel(&self) -> &str {
        self.name.rsplit_once('.').map_or(&self.name, |(_, channel)| channel)
    }

    /// Returns the number of columns.
    pub fn width(&self) -> u32 {
        self.width as u32
    }

    /// Returns the number of rows.
    pub fn height(&self) -> u32 {
        self.height as u32
    }

    /// Returns the distance between rows, in samples.
    pub fn pitch(&self) -> usize {
        self.pitch
    }

    /// Returns the index of the first sample in [`Plane::samples`].
    pub fn start(&self) -> usize {
        self.start
    }

    /// Returns the memory with the samples.
    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    /// Returns the number format.
    pub fn sample_type(&self) -> SampleType {
        self.samples.sample_type()
    }

    /// Returns a row; `None` if the samples have another type or there is no such row.
    pub fn row<T: Sample>(&self, y: u32) -> Option<&[T]> {
        let samples = T::unwrap(&self.samples)?;
        ((y as usize) < self.height).then(|| self.slice(samples, y as usize))
    }

    fn slice<'a, T>(&self, samples: &'a [T], y: usize) -> &'a [T] {
        let first = self.start + y * self.pitch;
        &samples[first..first + self.width]
    }

    /// Returns the value of a sample; `None` outside the plane. Columns and rows count from the corner of the
    /// plane.
    pub fn value(&self, x: u32, y: u32) -> Option<f32> {
        let (x, y) = (x as usize, y as usize);
        let is_inside = x < self.width && y < self.height;
        is_inside.then(|| with_samples!(&self.samples, samples => samples[self.start + y * self.pitch + x].to_f32()))
    }

    /// Returns all values, row by row without gaps.
    pub fn to_f32(&self) -> Vec<f32> {
        with_samples!(&self.samples, samples => {
            let mut values = Vec::with_capacity(self.width * self.height);
            (0..self.height).for_each(|y| values.extend(self.slice(samples, y).iter().map(|sample| sample.to_f32())));
            values
        })
    }

    /// Returns the plane with samples of another type. Integers saturate. A plane that already has the type
    /// is shared.
    pub fn converted(&self, target: SampleType) -> Plane {
        if target == self.sample_type() {
            return self.clone();
        }
        let samples = match target {
            SampleType::U8 => Samples::new(self.collect::<u8>()),
            SampleType::U16 => Samples::new(self.collect::<u16>()),
            SampleType::F16 => Samples::new(self.collect::<f16>()),
            SampleType::F32 => Samples::new(self.collect::<f32>()),
            SampleType::U32 => Samples::new(self.collect::<u32>()),
        };
        Plane { name: self.name.clone(), samples, start: 0, pitch: self.width, width: self.width, height: self.height }
    }

    fn collect<T: Sample>(&self) -> Vec<T> {
        with_samples!(&self.samples, samples => {
            let mut converted = Vec::with_capacity(self.width * self.height);
            let convert = |sample: &_| T::from_f32(Sample::to_f32(*sample));
            (0..self.height).for_each(|y| converted.extend(self.slice(samples, y).iter().map(convert)));
            converted
        })
    }

    /// Returns a plane whose rows are one row of zeros, in the memory of one row.
    pub(super) fn placeholder(name: &str, width: u32, height: u32, ty: SampleType) -> Plane {
        fn zeros<T: Sample>(width: usize) -> Samples {
            Samples::new(vec![T::default(); width])
        }
        let columns = width as usize;
        let samples = match ty {
            SampleType::U8 => zeros::<u8>(columns),
            SampleType::U16 => zeros::<u16>(columns),
            SampleType::F16 => zeros::<f16>(columns),
            SampleType::F32 => zeros::<f32>(columns),
            SampleType::U32 => zeros::<u32>(columns),
        };
        Plane { name: name.into(), samples, start: 0, pitch: 0, width: columns, height: height as usize }
    }

    /// Returns a plane whose rows are all the first row of this one, and share its memory.
    pub(super) fn repeated(&self, height: u32) -> Plane {
        Plane { pitch: 0, height: height as usize, ..self.clone() }
    }

    /// Returns whether both planes have the same first sample in memory.
    pub(crate) fn shares_memory(&self, other: &Plane) -> bool {
        fn address(plane: &Plane) -> usize {
            with_samples!(&plane.samples, samples => samples.as_ptr() as usize)
        }
        address(self) == address(other) && self.start == other.start
    }

    /// Returns a part that shares the samples. The part must lie inside the plane. Columns and rows count
    /// from its corner.
    pub(super) fn part(&self, x: usize, y: usize, width: usize, height: usize) -> Plane {
        Plane { start: self.start + y * self.pitch + x, width, height, ..self.clone() }
    }
}
