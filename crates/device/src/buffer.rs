//! Memory of a device.

use crate::{Backend, Device, Error, Result, Stream};
use broadloom_ptx::Type;
use std::marker::PhantomData;
use std::sync::Arc;

/// A type that buffers hold. Values are copied as little-endian bytes.
pub trait Element: Copy + Send + Sync + 'static {
    /// The PTX type.
    const TYPE: Type;
    /// Bytes of one value.
    const BYTES: usize;
    /// Writes the value's bytes.
    fn to_bytes(self, bytes: &mut [u8]);
    /// Reads a value from its bytes.
    fn from_bytes(bytes: &[u8]) -> Self;
}

macro_rules! elements {
    ($($rust:ty => $ty:ident,)*) => {
        $(impl Element for $rust {
            const TYPE: Type = Type::$ty;
            const BYTES: usize = size_of::<$rust>();
            fn to_bytes(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
            fn from_bytes(bytes: &[u8]) -> Self {
                let mut array = [0; size_of::<$rust>()];
                array.copy_from_slice(bytes);
                <$rust>::from_le_bytes(array)
            }
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
    pub(crate) fn allocate(device: &Device, count: usize) -> Result<Self> {
        let bytes = (count as u64)
            .checked_mul(T::BYTES as u64)
            .ok_or(Error::OutOfMemory { requested: u64::MAX, available: device.machine().memory_bytes })?;
        let backend = device.backend().clone();
        let address = backend.allocate(bytes)?;
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

    /// Copies values from the host; as many as the buffer holds.
    pub fn write(&self, values: &[T]) -> Result<()> {
        if values.len() != self.count {
            return Err(Error::BadAddress {
                call: "write to a buffer",
                address: self.address(),
                bytes: (values.len() * T::BYTES) as u64,
            });
        }
        let mut bytes = vec![0; values.len() * T::BYTES];
        for (value, place) in values.iter().zip(bytes.chunks_exact_mut(T::BYTES)) {
            value.to_bytes(place);
        }
        self.raw.backend.write(Stream::default(), self.address(), &bytes)
    }

    /// Waits for all earlier work and copies the values to the host.
    pub fn read(&self) -> Result<Vec<T>> {
        let mut bytes = vec![0; self.count * T::BYTES];
        self.raw.backend.read(Stream::default(), self.address(), &mut bytes)?;
        Ok(bytes.chunks_exact(T::BYTES).map(T::from_bytes).collect())
    }

    /// Sets every byte.
    pub fn fill_bytes(&self, byte: u8) -> Result<()> {
        self.raw.backend.fill(Stream::default(), self.address(), byte, (self.count * T::BYTES) as u64)
    }
}
