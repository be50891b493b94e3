//! Files that are read band by band.

use super::rows::{Opened, ReadRows};
use super::source::Place;
use super::{FileError, Format, Problem};
use crate::image::{Image, Rect};
use std::path::{Path, PathBuf};

/// A file whose image is read band by band, from the first row to the last.
pub struct RowReader {
    path: PathBuf,
    format: Format,
    header: Image,
    rows: Decoder,
    place: Place,
    len: u64,
    /// Number of rows that were read.
    read: u32,
}

enum Decoder {
    Whole(Image),
    Rows(Box<dyn ReadRows>),
}

impl RowReader {
    pub(super) fn new(path: &Path, format: Format, opened: Opened, place: Place, len: u64) -> RowReader {
        let (header, rows) = match opened {
            Opened::Whole(image) => (image.as_placeholder(), Decoder::Whole(image)),
            Opened::Rows(header, rows) => (header, Decoder::Rows(rows)),
        };
        RowReader { path: path.to_owned(), format, header, rows, place, len, read: 0 }
    }

    /// Returns a placeholder of the image: its samples are 0.
    pub fn header(&self) -> &Image {
        &self.header
    }

    /// Reads the next rows, at most this many; `None` behind the last row. Fails there if the rest of the file is broken.
    pub fn read(&mut self, rows: u32) -> Result<Option<Image>, FileError> {
        let bounds = self.header.bounds();
        let count = rows.max(1).min(bounds.height - self.read);
        self.band(bounds, count)
            .map_err(|problem| FileError::new(&self.path, problem.at(self.format, self.place.get().min(self.len))))
    }

    /// Returns a reader of the image with its pixels turned upright. Reads all rows.
    pub fn upright(self) -> Result<RowReader, FileError> {
        let RowReader { path, format, place, len, read, .. } = &self;
        let (path, format, place, len, read) = (path.clone(), *format, place.clone(), *len, *read);
        let image = self.into_image()?;
        let image = image.upright().map_err(|error| FileError::new(&path, error.into()))?;
        let header = image.as_placeholder();
        Ok(RowReader { path, format, header, rows: Decoder::Whole(image), place, len, read })
    }

    /// Reads all rows.
    pub fn into_image(self) -> Result<Image, FileError> {
        let RowReader { path, format, header, rows, place, len, .. } = self;
        let opened = match rows {
            Decoder::Whole(image) => Opened::Whole(image),
            Decoder::Rows(rows) => Opened::Rows(header, rows),
        };
        opened.whole().map_err(|problem| FileError::new(&path, problem.at(format, place.get().min(len))))
    }

    fn band(&mut self, bounds: Rect, count: u32) -> Result<Option<Image>, Problem> {
        if count == 0 {
            return match &mut self.rows {
                Decoder::Whole(_) => Ok(None),
                Decoder::Rows(rows) => rows.finish().map(|()| None),
            };
        }
        let first = self.read;
        self.read += count;
        Ok(Some(match &mut self.rows {
            Decoder::Whole(image) => image.rows(first..first + count),
            Decoder::Rows(rows) => {
                let bounds = Rect { y: bounds.y + first as i32, height: count, ..bounds };
                self.header.replaced(bounds, rows.read(count)?)?
            }
        }))
    }
}
