//! Memory of a device.

use crate::trace::{Span, span};
use crate::{Backend, Device, Error, Result, Stream};
use broadloom_ptx::Type;
use std::marker::PhantomData;
use std::sync::Arc;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A type that buffers hold. Values are copied as the bytes that they are in the host's memory, which is little-endian.
pub trait Element: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static {
    /// The PTX type.
    const TYPE: Type;
    /// Bytes of one value.
    const BYTES: usize = size_of::<Self>();
    /// Writes the value's bytes.
    fn to_bytes(self, bytes: &mut [u8]) {
        bytes.copy_from_slice(self.as_bytes());
    }
    /// Reads a value from its bytes; zero when there are too few or too many.
    fn from_bytes(bytes: &[u8]) -> Self {
        Self::read_from_bytes(bytes).unwrap_or_else(|_| Self::new_zeroed())
    }
}

macro_rules! elements {
    ($($rust:ty => $ty:ident,)*) => {
        $(impl Element for $rust {
            const TYPE: Type = Type::$ty;
        })*
    };
}

elements! {
    u8 => U8, u16 => U16, u32 => U32, u64 => U64, i8 => S8, i16 => S16, i32 => S32, i64 => S64, f32 => F32, f64 => F64,
    half::f16 => F16, half::bf16 => Bf16,
}

/// Memory of a device, given back when the last handle to it is dropped.
#[derive(Debug)]
pub struct RawBuffer {
    backend: Arc<dyn Backend>,
    address: u64,
    bytes: u64,
}

impl RawBuffer {
    /// Where it is, as kernels see it.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// How large it is.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for RawBuffer {
    fn drop(&mut self) {
        // Nobody is left to tell; the device reports a failed free at its next call.
        let _ = self.backend.free(self.address);
    }
}

/// A run of values in the memory of a device; cheap to clone and to cut.
#[derive(Clone, Debug)]
pub struct Buffer<T> {
    raw: Arc<RawBuffer>,
    offset: u64,
    count: usize,
    element: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    pub(crate) fn allocate(device: &Device, count: usize, behind: Option<Stream>) -> Result<Self> {
        let bytes = (count as u64)
            .checked_mul(T::BYTES as u64)
            .ok_or(Error::OutOfMemory { requested: u64::MAX, available: device.machine().memory_bytes })?;
        let backend = device.backend().clone();
        let address = match behind {
            Some(stream) => backend.allocate_behind(stream, bytes)?,
            None => backend.allocate(bytes)?,
        };
        Ok(Buffer { raw: Arc::new(RawBuffer { backend, address, bytes }), offset: 0, count, element: PhantomData })
    }

    /// How many values.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Where the first value is, as kernels see it.
    pub fn address(&self) -> u64 {
        self.raw.address + self.offset
    }

    /// The memory behind it.
    pub fn raw(&self) -> &Arc<RawBuffer> {
        &self.raw
    }

    /// A part of it, sharing the memory; `None` when the range leaves the buffer.
    pub fn slice(&self, start: usize, count: usize) -> Option<Buffer<T>> {
        let end = start.checked_add(count)?;
        (end <= self.count).then(|| Buffer {
            raw: self.raw.clone(),
            offset: self.offset + (start * T::BYTES) as u64,
            count,
            element: PhantomData,
        })
    }

    /// Returns the memory as values of another type; `None` when it does not hold a whole number of them, or not at their alignment.
    pub fn view<U: Element>(&self) -> Option<Buffer<U>> {
        let bytes = self.count * T::BYTES;
        let fits = bytes.is_multiple_of(U::BYTES) && self.address().is_multiple_of(U::BYTES as u64);
        fits.then(|| Buffer { raw: self.raw.clone(), offset: self.offset, count: bytes / U::BYTES, element: PhantomData })
    }

    /// Copies values from the host; as many as the buffer holds.
    pub fn write(&self, values: &[T]) -> Result<()> {
        self.write_in(Stream::default(), values)
    }

    /// Copies values from the host behind the earlier work of a stream. The values may be changed when the call returns.
    pub fn write_in(&self, stream: Stream, values: &[T]) -> Result<()> {
        self.same_length("write to a buffer", values.len())?;
        let _span = self.span("write");
        self.raw.backend.write(stream, self.address(), values.as_bytes())
    }

    /// Waits for all earlier work and copies the values to the host.
    pub fn read(&self) -> Result<Vec<T>> {
        let requested = (self.count as u64).saturating_mul(T::BYTES as u64);
        let mut values = T::new_vec_zeroed(self.count).map_err(|_| Error::OutOfMemory { requested, available: 0 })?;
        self.read_into(Stream::default(), &mut values)?;
        Ok(values)
    }

    /// Waits for all earlier work of a stream and copies the values to the host; as many as the buffer holds.
    pub fn read_into(&self, stream: Stream, values: &mut [T]) -> Result<()> {
        self.same_length("read of a buffer", values.len())?;
        let _span = self.span("read");
        self.raw.backend.read(stream, self.address(), values.as_mut_bytes())
    }

    /// Copies the values of a buffer of the same length and the same device, behind the earlier work of a stream.
    pub fn copy_from(&self, stream: Stream, from: &Buffer<T>) -> Result<()> {
        self.same_length("copy to a buffer", from.count)?;
        let _span = self.span("copy");
        self.raw.backend.copy(stream, self.address(), from.address(), (self.count * T::BYTES) as u64)
    }

    /// Sets every byte.
    pub fn fill_bytes(&self, byte: u8) -> Result<()> {
        self.fill_bytes_in(Stream::default(), byte)
    }

    /// Sets every byte behind the earlier work of a stream.
    pub fn fill_bytes_in(&self, stream: Stream, byte: u8) -> Result<()> {
        let _span = self.span("fill");
        self.raw.backend.fill(stream, self.address(), byte, (self.count * T::BYTES) as u64)
    }

    /// A span of the host for something that is done to all of it.
    fn span(&self, name: &'static str) -> Span {
        let mut span = span(name);
        span.note("bytes", self.count * T::BYTES);
        span
    }

    fn same_length(&self, call: &'static str, count: usize) -> Result<()> {
        if count == self.count {
            return Ok(());
        }
        Err(Error::BadAddress { call, address: self.address(), bytes: (count * T::BYTES) as u64 })
    }
}
