//! Device memory.

use crate::trace::{Span, span};
use crate::{Backend, Device, Error, Result, Stream};
use broadloom_ptx::Type;
use std::marker::PhantomData;
use std::sync::Arc;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Element type of buffers. Values are copied as their bytes in host memory, which is little-endian.
pub trait Element: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static {
    /// PTX type.
    const TYPE: Type;
    /// Size of one value in bytes.
    const BYTES: usize = size_of::<Self>();
    /// Writes the value's bytes.
    fn to_bytes(self, bytes: &mut [u8]) {
        bytes.copy_from_slice(self.as_bytes());
    }
    /// Reads a value from its bytes. Returns zero if the number of bytes is wrong.
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

/// Device memory, freed when the last handle is dropped.
#[derive(Debug)]
pub struct RawBuffer {
    backend: Arc<dyn Backend>,
    address: u64,
    bytes: u64,
}

impl RawBuffer {
    /// Returns the address, as kernels see it.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for RawBuffer {
    fn drop(&mut self) {
        // A destructor cannot report an error; the device reports a failed free at its next call.
        let _ = self.backend.free(self.address);
    }
}

/// Slice of values in device memory; cheap to clone and to slice.
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

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Tests if there are no values.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the address of the first value, as kernels see it.
    pub fn address(&self) -> u64 {
        self.raw.address + self.offset
    }

    /// Returns the underlying memory.
    pub fn raw(&self) -> &Arc<RawBuffer> {
        &self.raw
    }

    /// Returns a sub-slice that shares the memory, or `None` if the range is out of bounds.
    pub fn slice(&self, start: usize, count: usize) -> Option<Buffer<T>> {
        let end = start.checked_add(count)?;
        (end <= self.count).then(|| Buffer {
            raw: self.raw.clone(),
            offset: self.offset + (start * T::BYTES) as u64,
            count,
            element: PhantomData,
        })
    }

    /// Reinterprets the memory as values of another type. Returns `None` if size or alignment do not fit.
    pub fn view<U: Element>(&self) -> Option<Buffer<U>> {
        let bytes = self.count * T::BYTES;
        let fits = bytes.is_multiple_of(U::BYTES) && self.address().is_multiple_of(U::BYTES as u64);
        fits.then(|| Buffer { raw: self.raw.clone(), offset: self.offset, count: bytes / U::BYTES, element: PhantomData })
    }

    /// Copies values from the host. Their number must equal the buffer's.
    pub fn write(&self, values: &[T]) -> Result<()> {
        self.write_in(Stream::default(), values)
    }

    /// Copies values from the host in stream order. The values may be changed when the call returns.
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

    /// Waits for all earlier work of a stream and copies the values to the host. Their number must equal the
    /// buffer's.
    pub fn read_into(&self, stream: Stream, values: &mut [T]) -> Result<()> {
        self.same_length("read of a buffer", values.len())?;
        let _span = self.span("read");
        self.raw.backend.read(stream, self.address(), values.as_mut_bytes())
    }

    /// Copies a buffer of the same length and device in stream order.
    pub fn copy_from(&self, stream: Stream, from: &Buffer<T>) -> Result<()> {
        self.same_length("copy to a buffer", from.count)?;
        let _span = self.span("copy");
        self.raw.backend.copy(stream, self.address(), from.address(), (self.count * T::BYTES) as u64)
    }

    /// Sets every byte.
    pub fn fill_bytes(&self, byte: u8) -> Result<()> {
        self.fill_bytes_in(Stream::default(), byte)
    }

    /// Sets every byte in stream order.
    pub fn fill_bytes_in(&self, stream: Stream, byte: u8) -> Result<()> {
        let _span = self.span("fill");
        self.raw.backend.fill(stream, self.address(), byte, (self.count * T::BYTES) as u64)
    }

    /// Starts a host span for an operation on the whole buffer.
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
