//! Memory of the host that a device copies from and to.
//!
//! A device may be able to copy faster, and without the host's help, where memory is pinned. Copies are in stream order; **whoever looks at
//! the values waits for the copies first**, so that the host never sees or changes what is under way.

use crate::{Backend, Buffer, Device, Element, Error, Result, Stream, trace};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Range;
use zerocopy::{FromBytes, IntoBytes};

/// Memory of the host, as an executor gives it. It starts at a multiple of 16.
pub trait HostMemory: Debug + Send {
    /// The bytes, once no copy touches them any more.
    fn bytes(&mut self) -> Result<&mut [u8]>;

    /// Copies a range of it to the device in stream order.
    fn upload(&mut self, backend: &dyn Backend, stream: Stream, from: Range<usize>, to: u64) -> Result<()>;

    /// Copies from the device into a range of it in stream order.
    fn download(&mut self, backend: &dyn Backend, stream: Stream, from: u64, to: Range<usize>) -> Result<()>;
}

/// Plain memory, for devices that are the host.
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

/// Values in memory of the host from which a device copies fastest.
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

    /// How many values.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The values, once no copy touches them any more.
    pub fn values(&mut self) -> Result<&mut [T]> {
        let _span = trace::span("wait for host memory");
        let bytes = self.memory.bytes()?;
        let (address, count) = (bytes.as_ptr() as u64, bytes.len() as u64);
        <[T]>::mut_from_bytes(bytes).map_err(|_| Error::BadAddress { call: "values", address, bytes: count })
    }

    /// Copies all values into a buffer of the same length, behind the earlier work of a stream.
    pub fn upload(&mut self, stream: Stream, to: &Buffer<T>) -> Result<()> {
        self.same_length("upload", to)?;
        let mut span = trace::span("upload");
        span.note("bytes", self.count * T::BYTES);
        self.memory.upload(self.device.backend().as_ref(), stream, 0..self.count * T::BYTES, to.address())
    }

    /// Copies all values of a buffer of the same length, behind the earlier work of a stream.
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
