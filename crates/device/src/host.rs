//! Host memory for copies to and from a device.
//!
//! A device may copy faster, and asynchronously, from pinned memory. Copies run in stream order. **Access to
//! the values first waits for the copies**, so the host never reads or changes data of a pending copy.

use crate::{Buffer, Device, Element, Error, HostMemory, Result, Stream, trace};
use std::fmt::Debug;
use std::marker::PhantomData;
use zerocopy::FromBytes;

/// Values in host memory for fast copies.
#[derive(Debug)]
pub struct HostBuffer<T> {
    device: Device,
    memory: Box<dyn HostMemory>,
    count: usize,
    element: PhantomData<T>,
}

impl<T: Element> HostBuffer<T> {
    pub(crate) fn allocate(device: &Device, count: usize) -> Result<HostBuffer<T>> {
        let bytes = count.checked_mul(T::BYTES).ok_or(Error::OutOfMemory { requested: u64::MAX, available: 0 })?;
        let memory = device.backend().allocate_host(bytes)?;
        Ok(HostBuffer { device: device.clone(), memory, count, element: PhantomData })
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Tests if there are no values.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the values after waiting for all copies.
    pub fn values(&mut self) -> Result<&mut [T]> {
        let _span = trace::span("wait for host memory");
        let bytes = self.memory.bytes()?;
        let (address, count) = (bytes.as_ptr() as u64, bytes.len() as u64);
        <[T]>::mut_from_bytes(bytes).map_err(|_| Error::BadAddress { call: "values", address, bytes: count })
    }

    /// Copies all values to a buffer of the same length in stream order.
    pub fn upload(&mut self, stream: Stream, to: &Buffer<T>) -> Result<()> {
        self.same_length("upload", to)?;
        let mut span = trace::span("upload");
        span.note("bytes", self.count * T::BYTES);
        self.memory.upload(self.device.backend().as_ref(), stream, 0..self.count * T::BYTES, to.address())
    }

    /// Copies all values from a buffer of the same length in stream order.
    pub fn download(&mut self, stream: Stream, from: &Buffer<T>) -> Result<()> {
        self.same_length("download", from)?;
        let mut span = trace::span("download");
        span.note("bytes", self.count * T::BYTES);
        self.memory.download(self.device.backend().as_ref(), stream, from.address(), 0..self.count * T::BYTES)
    }

    fn same_length(&self, call: &'static str, buffer: &Buffer<T>) -> Result<()> {
        let bytes = (self.count * T::BYTES) as u64;
        if buffer.len() == self.count { Ok(()) } else { Err(Error::BadAddress { call, address: buffer.address(), bytes }) }
    }
}
