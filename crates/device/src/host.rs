//! Host memory for copies to and from a device.
//!
//! A device may copy faster, and asynchronously, from pinned memory. Copies run in stream order. **Access to
//! the values first waits for the copies**, so the host never reads or changes data of a pending copy.

use crate::{Backend, Buffer, Device, Element, Error, Result, Stream, trace};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Range;
use zerocopy::{FromBytes, IntoBytes};

/// Host memory of an executor. It is aligned to 16 bytes.
pub trait HostMemory: Debug + Send {
    /// Returns the bytes after waiting for all copies.
    fn bytes(&mut self) -> Result<&mut [u8]>;

    /// Copies a range to the device in stream order.
    fn upload(&mut self, backend: &dyn Backend, stream: Stream, from: Range<usize>, to: u64) -> Result<()>;

    /// Copies from the device to a range in stream order.
    fn download(&mut self, backend: &dyn Backend, stream: Stream, from: u64, to: Range<usize>) -> Result<()>;
}

/// Pageable memory, for devices that are the host.
#[derive(Debug)]
pub(crate) struct PageableMemory {
    words: Vec<u128>,
    bytes: usize,
}

impl PageableMemory {
    pub(crate) fn new(bytes: usize) -> Result<PageableMemory> {
        let mut words = vec![];
        let refused = |_| Error::OutOfMemory { requested: bytes as u64, available: 0 };
        words.try_reserve_exact(bytes.div_ceil(16)).map_err(refused)?;
        words.resize(bytes.div_ceil(16), 0);
        Ok(PageableMemory { words, bytes })
    }

    fn range(&mut self, call: &'static str, range: Range<usize>) -> Result<&mut [u8]> {
        let (address, bytes) = (range.start as u64, range.len() as u64);
        let all = &mut self.words.as_mut_bytes()[..self.bytes];
        all.get_mut(range).ok_or(Error::BadAddress { call, address, bytes })
    }
}

impl HostMemory for PageableMemory {
    fn bytes(&mut self) -> Result<&mut [u8]> {
        Ok(&mut self.words.as_mut_bytes()[..self.bytes])
    }

    fn upload(&mut self, backend: &dyn Backend, stream: Stream, from: Range<usize>, to: u64) -> Result<()> {
        backend.write(stream, to, self.range("upload", from)?)
    }

    fn download(&mut self, backend: &dyn Backend, stream: Stream, from: u64, to: Range<usize>) -> Result<()> {
        backend.read(stream, from, self.range("download", to)?)
    }
}

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
