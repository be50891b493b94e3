//! Rows of an EXR of one part in lines: read and written block by block, on all cores.

use super::interleave::Rows;
use super::options::Compression;
use super::rows::{ReadRows, gathered};
use super::source::Source;
use super::strips::in_order;
use super::target::Out;
use super::{Problem, deflate};
use crate::image::{Image, Plane, Rect, Sample, SampleType, reserved};
use exr::block::chunk::{Chunk, CompressedBlock, CompressedScanLineBlock};
use exr::block::reader::{ChunksReader, FilteredChunksReader, ParallelBlockDecompressor, Reader, SequentialBlockDecompressor};
use exr::block::writer::ChunksWriter;
use exr::block::{UncompressedBlock, enumerate_ordered_header_block_indices};
use exr::error::Error;
use exr::meta::header::Header;
use half::f16;
use std::collections::BTreeMap;
use std::ops::Range;

/// Blocks of a file in any order.
enum Blocks {
    OnAllCores(Box<ParallelBlockDecompressor<FilteredChunksReader<Source>>>),
    OnOneCore(Box<SequentialBlockDecompressor<FilteredChunksReader<Source>>>),
}

impl Blocks {
    fn next(&mut self) -> Option<exr::error::Result<UncompressedBlock>> {
        match self {
            Blocks::OnAllCores(blocks) => blocks.decompress_next_block(),
            Blocks::OnOneCore(blocks) => blocks.decompress_next_block(),
        }
    }
}

/// Rows of a file.
pub(super) struct ExrRows {
    blocks: Blocks,
    /// Sample types of the channels in the order of the file.
    types: Vec<SampleType>,
    /// Numbers of the channels of the planes.
    places: Vec<usize>,
    header: Image,
    /// Blocks that are decoded before their turn, by their first row.
    early: BTreeMap<usize, UncompressedBlock>,
    /// First row of the next block.
    next: usize,
    pending: Option<Image>,
    broken: fn(Error) -> Problem,
}

impl ExrRows {
    /// Begins to read a file whose placeholder is `header`. `places` has the number of the channel of each plane.
    pub(super) fn new(
        source: Source,
        header: Image,
        types: Vec<SampleType>,
        places: Vec<usize>,
        broken: fn(Error) -> Problem,
    ) -> Result<ExrRows, Problem> {
        let reader = Reader::read_from_buffered(source, false).map_err(broken)?;
        let chunks = reader.filter_chunks(false, |_, _, _| true).map_err(broken)?;
        let blocks = match ParallelBlockDecompressor::new(chunks, false) {
            Ok(blocks) => Blocks::OnAllCores(Box::new(blocks)),
            Err(chunks) => Blocks::OnOneCore(Box::new(chunks.sequential_decompressor(false))),
        };
        Ok(ExrRows { blocks, types, places, header, early: BTreeMap::new(), next: 0, pending: None, broken })
    }

    /// Returns the next block of rows.
    fn block(&mut self) -> Result<Image, Problem> {
        loop {
            if let Some(block) = self.early.remove(&self.next) {
                self.next += block.index.pixel_size.1;
                return self.decoded(&block);
            }
            let block = self.blocks.next().ok_or_else(|| Problem::Decode("rows are missing".to_owned()))?.map_err(self.broken)?;
            if block.index.pixel_size.1 == 0 || self.early.insert(block.index.pixel_position.1, block).is_some() {
                return Err(Problem::Decode("rows are there twice".to_owned()));
            }
        }
    }

    /// Returns the planes of a block, which has line by line the samples of each channel.
    fn decoded(&self, block: &UncompressedBlock) -> Result<Image, Problem> {
        fn plane<T: Sample, const N: usize>(
            lines: &[&[u8]],
            first: usize,
            width: usize,
            of: impl Fn([u8; N]) -> T,
        ) -> Result<Vec<T>, Problem> {
            let mut samples = reserved::<T>((lines.len() * width) as u64)?;
            for line in lines {
                samples.extend(line[first..first + N * width].as_chunks::<N>().0.iter().map(|bytes| of(*bytes)));
            }
            Ok(samples)
        }
        let (width, rows) = (self.header.width() as usize, block.index.pixel_size.1);
        let line: usize = self.types.iter().map(|ty| ty.bytes() * width).sum();
        let lines: Vec<&[u8]> = block.data.chunks_exact(line.max(1)).collect();
        if lines.len() != rows || block.index.pixel_size.0 != width {
            return Err(Problem::Decode("a block has another size than its rows".to_owned()));
        }
        let (columns, height) = (width as u32, rows as u32);
        let planes = self.header.names().zip(&self.places).map(|(name, place)| {
            let first: usize = self.types[..*place].iter().map(|ty| ty.bytes() * width).sum();
            Ok(match self.types[*place] {
                SampleType::F16 => Plane::new(name, columns, height, plane(&lines, first, width, f16::from_ne_bytes)?)?,
                SampleType::U32 => Plane::new(name, columns, height, plane(&lines, first, width, u32::from_ne_bytes)?)?,
                SampleType::F32 | SampleType::U8 | SampleType::U16 => {
                    Plane::new(name, columns, height, plane(&lines, first, width, f32::from_ne_bytes)?)?
                }
            })
        });
        Ok(Image::new(Rect::sized(columns, height), planes.collect::<Result<Vec<Plane>, Problem>>()?)?)
    }
}

impl ReadRows for ExrRows {
    fn read(&mut self, rows: u32) -> Result<Vec<Plane>, Problem> {
        let mut pending = self.pending.take();
        let planes = gathered(&mut pending, rows, || self.block());
        self.pending = pending;
        planes
    }

    fn finish(&mut self) -> Result<(), Problem> {
        match self.blocks.next() {
            None => Ok(()),
            Some(block) => Err(block.map_or_else(self.broken, |_| Problem::Decode("it has more blocks than rows".to_owned()))),
        }
    }
}

/// Writes a file of one part. `channels` has the number of the plane and the sample type of each channel, in the order
/// of the header.
pub(super) fn write(
    out: &mut dyn Out,
    header: Header,
    channels: &[(usize, SampleType)],
    from: Rows<'_>,
    effort: Compression,
) -> Result<(), Problem> {
    let mut outcome = Ok(());
    let top = header.own_attributes.layer_position.1;
    let written = exr::block::write(out, std::iter::once(header).collect(), true, |meta, chunks| {
        let blocks: Vec<_> = enumerate_ordered_header_block_indices(&meta.headers).collect();
        let encode = |number: usize| {
            let (place, index) = blocks[number];
            let first = index.pixel_position.1 as u32;
            let rows = first..first + index.pixel_size.1 as u32;
            let mut data = vec![];
            let mut append = |image: &Image, rows: Range<u32>| {
                let part = image.rows(rows);
                let planes: Vec<Plane> = channels.iter().map(|(plane, ty)| part.planes()[*plane].converted(*ty)).collect();
                (0..part.height()).for_each(|y| planes.iter().for_each(|plane| append_row(plane, y, &mut data)));
            };
            match from {
                Rows::Whole(image) => append(image, rows),
                Rows::Bands(_, queue) => queue.take(rows, append)?,
            }
            if effort == Compression::Fast {
                let y_coordinate = index.pixel_position.1 as i32 + top;
                let block = CompressedScanLineBlock { y_coordinate, compressed_pixels_le: zipped(data) };
                return Ok((place, Chunk { layer_index: 0, compressed_block: CompressedBlock::ScanLine(block) }));
            }
            let chunk = UncompressedBlock { index, data }.compress_to_chunk(&meta.headers);
            chunk.map(|chunk| (place, chunk)).map_err(|error| Problem::Unsupported(format!("a block is not compressed: {error}")))
        };
        let stop = || {
            // Other encoders must not wait for rows.
            if let Rows::Bands(_, queue) = from {
                queue.stop();
            }
        };
        outcome = in_order(blocks.len(), encode, |encoded| {
            let (place, chunk) = encoded.inspect_err(|_| stop())?;
            chunks.write_chunk(place, chunk).map_err(|error| {
                stop();
                unwritten(error)
            })
        });
        if outcome.is_ok() { Ok(()) } else { Err(Error::Aborted) }
    });
    outcome.and(written.map_err(unwritten))
}

/// Compresses a block as ZIP does: differences of the first bytes of pairs, then of the second ones. A block that does not
/// become smaller stays as it is.
fn zipped(data: Vec<u8>) -> Vec<u8> {
    let (pairs, rest) = data.as_chunks::<2>();
    let mut parted = Vec::with_capacity(data.len());
    parted.extend(pairs.iter().map(|pair| pair[0]));
    parted.extend_from_slice(rest);
    parted.extend(pairs.iter().map(|pair| pair[1]));
    let mut differences = Vec::with_capacity(data.len());
    differences.extend(parted.first());
    differences.extend(parted.array_windows().map(|[before, byte]| byte.wrapping_sub(*before).wrapping_add(128)));
    let compressed = deflate::fast_zlib(&differences);
    if compressed.len() < data.len() { compressed } else { data }
}

/// Appends the samples of a row, the lowest byte first.
fn append_row(plane: &Plane, y: u32, data: &mut Vec<u8>) {
    fn append<T: Copy, const N: usize>(row: &[T], data: &mut Vec<u8>, bytes: impl Fn(T) -> [u8; N]) {
        let start = data.len();
        data.resize(start + N * row.len(), 0);
        data[start..].as_chunks_mut::<N>().0.iter_mut().zip(row).for_each(|(place, sample)| *place = bytes(*sample));
    }
    if let Some(row) = plane.row::<f16>(y) {
        append(row, data, f16::to_le_bytes);
    } else if let Some(row) = plane.row::<u32>(y) {
        append(row, data, u32::to_le_bytes);
    } else if let Some(row) = plane.row::<f32>(y) {
        append(row, data, f32::to_le_bytes);
    }
}

/// Returns the problem of a failed write.
pub(super) fn unwritten(error: Error) -> Problem {
    match error {
        Error::Io(error) => Problem::Write(error),
        error => Problem::Unsupported(format!("an EXR cannot hold the image: {error}")),
    }
}
