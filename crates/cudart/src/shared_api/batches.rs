//! Copies with attributes, and batches of copies, prefetches and discards.
//!
//! A whole batch is checked before any of it is done. Its pieces are then submitted to the stream one by one,
//! since the order inside a batch is unspecified. Managed memory lies where both host and device reach it, so
//! prefetches and discards change nothing.

use crate::boundary::{Call, exported};
use crate::location::MemLocation;
use crate::objects::advice::Advice;
use crate::objects::boxes::{CopyBox, Direction, Side};
use crate::objects::streams::Stream;
use crate::objects::textures::Array;
use crate::objects::work::Work;
use crate::pointer::{In, Out};
use crate::status::{Outcome, Status};
use crate::types::{BoxOperation, CopyAttributes, CopyOperand, Extent};
use crate::version::runtime_version;
use std::sync::Arc;

/// Time at which the source may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// In stream order, or at any time.
    Later,
    /// Before the call returns.
    DuringCall,
}

impl Order {
    /// Converts a `cudaMemcpySrcAccessOrder`. The flags are a hint.
    fn new(number: u32, flags: u32) -> Outcome<Order> {
        match (number, flags) {
            (1 | 3, 0 | 1) => Ok(Order::Later),
            (2, 0 | 1) => Ok(Order::DuringCall),
            _ => Err(Status::INVALID_VALUE),
        }
    }
}

/// Returns the stream of a batch, which may not be the legacy default stream.
fn stream_of_batch(call: &Call, handle: usize) -> Outcome<Arc<Stream>> {
    let stream = call.stream(handle)?;
    if stream.is_legacy() { Err(Status::INVALID_VALUE) } else { Ok(stream) }
}

/// Returns the attributes of each of `count` operations. `firsts` holds ascending indices; entry `i` applies
/// from index `firsts[i]` on.
fn applied<T: Copy>(entries: In<T>, firsts: In<usize>, entry_count: usize, count: usize) -> Outcome<Vec<T>> {
    if count == 0 || entry_count == 0 || entry_count > count {
        return Err(Status::INVALID_VALUE);
    }
    let (entries, firsts) = (entries.get_all(entry_count)?, firsts.get_all(entry_count)?);
    let rising = firsts.windows(2).all(|pair| pair[0] < pair[1]);
    if firsts[0] != 0 || !rising || firsts[entry_count - 1] >= count {
        return Err(Status::INVALID_VALUE);
    }
    let ends = firsts[1..].iter().copied().chain([count]);
    Ok(firsts.iter().zip(ends).zip(entries).flat_map(|((first, end), entry)| vec![entry; end - first]).collect())
}

/// Checks copies and performs them. On error `failed` receives the index of the wrong copy, or the largest
/// number if none is wrong.
fn copy_all(call: &Call, stream: &Stream, copies: Vec<(CopyBox, Order)>, failed: Out<usize>) -> Outcome {
    failed.set_if_wanted(usize::MAX);
    call.runtime.device()?;
    let now = copies.iter().any(|(_, order)| *order == Order::DuringCall);
    if now && stream.capturing().is_some() {
        return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
    }
    for (index, (copy, _)) in copies.iter().enumerate() {
        copy.check(call.runtime, Direction::Default).inspect_err(|_| failed.set_if_wanted(index))?;
    }
    copies.into_iter().try_for_each(|(copy, _)| call.runtime.submit(stream, Work::Copy(copy)))?;
    if now { call.runtime.wait(stream) } else { Ok(()) }
}

/// Batch of linear copies.
struct Linear {
    to: In<u64>,
    from: In<u64>,
    sizes: In<usize>,
    count: usize,
    attributes: In<CopyAttributes>,
    firsts: In<usize>,
    attribute_count: usize,
}

fn copy_linear(call: &Call, list: &Linear, failed: Out<usize>, stream: usize) -> Outcome {
    let stream = stream_of_batch(call, stream)?;
    let count = list.count;
    let attributes = applied(list.attributes, list.firsts, list.attribute_count, count)?;
    let (to, from, sizes) = (list.to.get_all(count)?, list.from.get_all(count)?, list.sizes.get_all(count)?);
    let mut copies = vec![];
    for (index, attribute) in attributes.iter().enumerate() {
        let order = Order::new(attribute.order, attribute.flags).inspect_err(|_| failed.set_if_wanted(index))?;
        copies.push((CopyBox::linear(to[index], from[index], sizes[index]), order));
    }
    copy_all(call, &stream, copies, failed)
}

fn array_of(call: &Call, operand: &CopyOperand) -> Outcome<Option<Arc<Array>>> {
    match operand.kind {
        1 => Ok(None),
        2 => call.runtime.arrays.get(operand.words[0]).map(Some).map_err(|_| Status::INVALID_VALUE),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// Converts one side of a box whose extent counts elements of `element` bytes.
fn side(array: Option<&Array>, operand: &CopyOperand, extent: Extent, element: usize) -> Outcome<Side> {
    let [first, second, third, fourth] = operand.words;
    let Some(array) = array else {
        let (length, rows) = (if second == 0 { extent.width } else { second }, if third == 0 { extent.height } else { third });
        if length < extent.width || rows < extent.height {
            return Err(Status::INVALID_VALUE);
        }
        let pitch = length.checked_mul(element).ok_or(Status::INVALID_VALUE)?;
        return Ok(Side { address: first as u64, pitch, rows });
    };
    let (place, wanted) = ([second, third, fourth], [extent.width, extent.height, extent.depth]);
    let room = array.extent.map(|size| size.max(1));
    if (0..3).any(|axis| place[axis].checked_add(wanted[axis]).is_none_or(|end| end > room[axis])) {
        return Err(Status::INVALID_VALUE);
    }
    let offset = (place[2] * room[1] + place[1]) * array.pitch + place[0] * element;
    Ok(Side { address: array.address + offset as u64, pitch: array.pitch, rows: room[1] })
}

/// Converts a `cudaMemcpy3DBatchOp` to a box.
fn box_of(call: &Call, operation: &BoxOperation) -> Outcome<(CopyBox, Order)> {
    let order = Order::new(operation.order, operation.flags)?;
    let (from, to) = (array_of(call, &operation.from)?, array_of(call, &operation.to)?);
    let element = match (&from, &to) {
        (Some(from), Some(to)) if from.element_bytes() != to.element_bytes() => return Err(Status::INVALID_VALUE),
        (Some(array), _) | (None, Some(array)) => array.element_bytes(),
        (None, None) => 1,
    };
    let extent = operation.extent;
    if extent.width == 0 || extent.height == 0 || extent.depth == 0 {
        return Err(Status::INVALID_VALUE);
    }
    let copy = CopyBox {
        to: side(to.as_deref(), &operation.to, extent, element)?,
        from: side(from.as_deref(), &operation.from, extent, element)?,
        width: extent.width.checked_mul(element).ok_or(Status::INVALID_VALUE)?,
        height: extent.height,
        depth: extent.depth,
    };
    Ok((copy, order))
}

fn copy_boxes(call: &Call, count: usize, list: In<BoxOperation>, failed: Out<usize>, flags: u64, stream: usize) -> Outcome {
    let stream = stream_of_batch(call, stream)?;
    if count == 0 || flags != 0 {
        return Err(Status::INVALID_VALUE);
    }
    let mut copies = vec![];
    for (index, operation) in list.get_all(count)?.iter().enumerate() {
        copies.push(box_of(call, operation).inspect_err(|_| failed.set_if_wanted(index))?);
    }
    copy_all(call, &stream, copies, failed)
}

/// Checks ranges of managed memory, or of host memory that the device can access.
fn ranges(call: &Call, addresses: In<u64>, sizes: In<usize>, count: usize, flags: u64) -> Outcome<Vec<(u64, u64)>> {
    // Concurrent access by host and device requires a shared address space.
    call.runtime.shares_addresses()?;
    if count == 0 || flags != 0 {
        return Err(Status::INVALID_VALUE);
    }
    let ranges: Vec<(u64, u64)> =
        addresses.get_all(count)?.into_iter().zip(sizes.get_all(count)?.into_iter().map(|bytes| bytes as u64)).collect();
    ranges.iter().try_for_each(|(address, bytes)| call.runtime.managed_range(*address, *bytes))?;
    Ok(ranges)
}

/// Target locations of a prefetch batch.
struct PrefetchTargets {
    locations: In<MemLocation>,
    firsts: In<usize>,
    count: usize,
}

fn prefetch(
    call: &Call,
    addresses: In<u64>,
    sizes: In<usize>,
    count: usize,
    wanted: &PrefetchTargets,
    flags: u64,
    stream: usize,
) -> Outcome {
    let stream = stream_of_batch(call, stream)?;
    let ranges = ranges(call, addresses, sizes, count, flags)?;
    let locations = applied(wanted.locations, wanted.firsts, wanted.count, count)?;
    let locations: Vec<MemLocation> = locations.into_iter().map(MemLocation::checked).collect::<Outcome<_>>()?;
    for ((address, bytes), location) in ranges.into_iter().zip(locations) {
        call.runtime.advise(address, bytes, Advice::Fetched(location))?;
    }
    call.runtime.submit(&stream, Work::Empty)
}

exported! { runtime
    /// Copies bytes in stream order, with attributes.
    fn cudaMemcpyWithAttributesAsync / cudaMemcpyWithAttributesAsync_ptsz | cuMemcpyWithAttributesAsync / cuMemcpyWithAttributesAsync_ptsz
    (call, to: u64, from: u64, bytes: usize, attributes: In<CopyAttributes>, stream: usize) {
        let attributes = attributes.get()?;
        let order = Order::new(attributes.order, attributes.flags)?;
        copy_all(call, &*call.stream(stream)?, vec![(CopyBox::linear(to, from, bytes), order)], Out::at(0))
    }

    /// Copies a box in stream order, with attributes.
    fn cudaMemcpy3DWithAttributesAsync / cudaMemcpy3DWithAttributesAsync_ptsz | cuMemcpy3DWithAttributesAsync / cuMemcpy3DWithAttributesAsync_ptsz
    (call, operation: In<BoxOperation>, flags: u64, stream: usize) {
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let copy = box_of(call, &operation.get()?)?;
        copy_all(call, &*call.stream(stream)?, vec![copy], Out::at(0))
    }

    /// Copies a batch of bytes. In the CUDA 12 runtime a pointer for the index of a wrong copy comes before
    /// the stream.
    fn cudaMemcpyBatchAsync / cudaMemcpyBatchAsync_ptsz
    (call, to: In<u64>, from: In<u64>, sizes: In<usize>, count: usize, attributes: In<CopyAttributes>, firsts: In<usize>, attribute_count: usize, eighth: usize, ninth: usize) {
        let (failed, stream) = if runtime_version() >= 13 { (0, eighth) } else { (eighth, ninth) };
        copy_linear(call, &Linear { to, from, sizes, count, attributes, firsts, attribute_count }, Out::at(failed), stream)
    }

    /// Copies a batch of boxes. In the CUDA 12 runtime a pointer for the index of a wrong copy comes before
    /// the flags.
    fn cudaMemcpy3DBatchAsync / cudaMemcpy3DBatchAsync_ptsz(call, count: usize, list: In<BoxOperation>, third: usize, fourth: usize, fifth: usize) {
        let (failed, flags, stream) = if runtime_version() >= 13 { (0, third, fourth) } else { (third, fourth, fifth) };
        copy_boxes(call, count, list, Out::at(failed), flags as u64, stream)
    }

    fn cudaMemPrefetchBatchAsync / cudaMemPrefetchBatchAsync_ptsz = cudaMemDiscardAndPrefetchBatchAsync / cudaMemDiscardAndPrefetchBatchAsync_ptsz
        | cuMemPrefetchBatchAsync / cuMemPrefetchBatchAsync_ptsz = cuMemDiscardAndPrefetchBatchAsync / cuMemDiscardAndPrefetchBatchAsync_ptsz
    (call, addresses: In<u64>, sizes: In<usize>, count: usize, locations: In<MemLocation>, firsts: In<usize>, location_count: usize, flags: u64, stream: usize) {
        prefetch(call, addresses, sizes, count, &PrefetchTargets { locations, firsts, count: location_count }, flags, stream)
    }

    fn cudaMemDiscardBatchAsync / cudaMemDiscardBatchAsync_ptsz | cuMemDiscardBatchAsync / cuMemDiscardBatchAsync_ptsz
    (call, addresses: In<u64>, sizes: In<usize>, count: usize, flags: u64, stream: usize) {
        let stream = stream_of_batch(call, stream)?;
        ranges(call, addresses, sizes, count, flags)?;
        call.runtime.submit(&stream, Work::Empty)
    }
}

exported! { driver
    /// Copies a batch of bytes. `failed` receives the index of a wrong copy.
    fn cuMemcpyBatchAsync / cuMemcpyBatchAsync_ptsz
    (call, to: In<u64>, from: In<u64>, sizes: In<usize>, count: usize, attributes: In<CopyAttributes>, firsts: In<usize>, attribute_count: usize, failed: Out<usize>, stream: usize) {
        copy_linear(call, &Linear { to, from, sizes, count, attributes, firsts, attribute_count }, failed, stream)
    }

    /// Copies a batch of bytes, without the index of a wrong copy.
    fn cuMemcpyBatchAsync_v2 / cuMemcpyBatchAsync_v2_ptsz
    (call, to: In<u64>, from: In<u64>, sizes: In<usize>, count: usize, attributes: In<CopyAttributes>, firsts: In<usize>, attribute_count: usize, stream: usize) {
        copy_linear(call, &Linear { to, from, sizes, count, attributes, firsts, attribute_count }, Out::at(0), stream)
    }

    /// Copies a batch of boxes. `failed` receives the index of a wrong copy.
    fn cuMemcpy3DBatchAsync / cuMemcpy3DBatchAsync_ptsz(call, count: usize, list: In<BoxOperation>, failed: Out<usize>, flags: u64, stream: usize)
        => copy_boxes(call, count, list, failed, flags, stream);
    /// Copies a batch of boxes, without the index of a wrong copy.
    fn cuMemcpy3DBatchAsync_v2 / cuMemcpy3DBatchAsync_v2_ptsz(call, count: usize, list: In<BoxOperation>, flags: u64, stream: usize)
        => copy_boxes(call, count, list, Out::at(0), flags, stream);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_applies_up_to_the_next() {
        let applied = |entries: &[u32], firsts: &[usize], count: usize| {
            let (entries, list) = (In::at(entries.as_ptr() as usize), In::at(firsts.as_ptr() as usize));
            applied(entries, list, firsts.len(), count)
        };
        assert_eq!(applied(&[7, 8], &[0, 2], 5), Ok(vec![7, 7, 8, 8, 8]));
        assert_eq!(applied(&[7], &[0], 1), Ok(vec![7]));
        for (firsts, count) in [(&[1usize][..], 3), (&[0, 0], 3), (&[0, 3], 3), (&[0, 1], 1), (&[], 3), (&[0], 0)] {
            assert_eq!(applied(&[7, 8], firsts, count), Err(Status::INVALID_VALUE), "{firsts:?} of {count}");
        }
    }
}
