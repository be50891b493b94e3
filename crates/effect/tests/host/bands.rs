//! Tests of images that are read and written band by band.

use crate::values::{Folder, equal, noise};
use broadloom_effect::file::{self, Compression, Format, Limits, RowQueue, RowReader, WriteOptions, open_rows, read};
use broadloom_effect::{Image, Rect, SampleType};

const ALL: [SampleType; 5] = [SampleType::U8, SampleType::U16, SampleType::F16, SampleType::F32, SampleType::U32];
const FORMATS: [&str; 8] = ["x.png", "x.jpg", "x.tif", "x.exr", "x.webp", "x.hdr", "x.dpx", "x.pfm"];

/// Reads a file in bands of so many rows.
fn bands(mut reader: RowReader, rows: u32) -> Vec<Image> {
    std::iter::from_fn(|| reader.read(rows).unwrap()).collect()
}

/// Returns noise with planes that each format holds, of each of its sample types.
fn images(format: Format) -> Vec<Image> {
    let types: Vec<SampleType> = ALL.into_iter().filter(|ty| format.sample_types().contains(ty)).collect();
    let counts: &[usize] = match format {
        Format::Png | Format::Tiff | Format::Exr => &[1, 3, 4],
        Format::Dpx => &[1, 3],
        Format::Jpeg | Format::Pfm => &[1, 3],
        Format::WebP | Format::Hdr => &[3],
    };
    let names = |count: usize| if count == 1 { vec!["Y"] } else { vec!["R", "G", "B", "A"][..count].to_vec() };
    let of = |ty: SampleType| counts.iter().map(move |count| noise(37, 53, &names(*count), 3).converted(ty));
    types.into_iter().flat_map(of).collect()
}

/// Writes an image in bands of 5 rows.
fn write_in_bands(path: &str, image: &Image, options: &WriteOptions) {
    let format = Format::of_name(path.as_ref()).unwrap();
    let queue = RowQueue::new(format, image.bounds());
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| file::write_rows(path, image, &queue, options));
        for first in (0..image.height()).step_by(5) {
            let bounds = image.bounds();
            let band = Rect { y: bounds.y + first as i32, height: 5.min(bounds.height - first), ..bounds };
            assert!(queue.push(image.view(band).unwrap()).unwrap());
        }
        writer.join().unwrap().unwrap();
    });
}

#[test]
fn rows_are_those_of_the_whole_image() {
    let folder = Folder::new();
    for name in FORMATS {
        let path = folder.file(name);
        for image in images(Format::of_name(name.as_ref()).unwrap()) {
            file::write(&path, &image).unwrap();
            let whole = read(&path).unwrap();
            let reader = open_rows(&path, Limits::default()).unwrap();
            assert_eq!(reader.header().bounds(), whole.bounds(), "{name}");
            assert_eq!(reader.header().metadata().alpha, whole.metadata().alpha, "{name}");
            for rows in [1, 7, 16, 100] {
                let bands = bands(open_rows(&path, Limits::default()).unwrap(), rows);
                assert_eq!(bands.len(), 53usize.div_ceil(rows as usize), "{name} in bands of {rows}");
                let joined = Image::of_bands(whole.bounds(), &bands).unwrap();
                assert!(equal(&joined, &whole), "{name} of {} in bands of {rows}", image.sample_type());
            }
        }
    }
}

#[test]
fn files_of_bands_are_those_of_the_whole_image() {
    let folder = Folder::new();
    for name in FORMATS {
        let format = Format::of_name(name.as_ref()).unwrap();
        for (compression, image) in [Compression::Fast, Compression::Best]
            .into_iter()
            .flat_map(|effort| images(format).into_iter().map(move |image| (effort, image)))
        {
            let options = WriteOptions { compression, samples: Some(image.sample_type()), ..WriteOptions::default() };
            let (whole, parts) = (folder.file(&format!("whole.{name}")), folder.file(&format!("bands.{name}")));
            file::write_with(&whole, &image, &options).unwrap();
            write_in_bands(&parts.display().to_string(), &image, &options);
            assert!(equal(&read(&parts).unwrap(), &read(&whole).unwrap()), "{name} of {}, {compression:?}", image.sample_type());
            assert!(std::fs::read(&parts).unwrap() == std::fs::read(&whole).unwrap(), "{name}, {compression:?}");
        }
    }
}

#[test]
fn files_that_end_early_are_told_by_their_rows() {
    let folder = Folder::new();
    for name in FORMATS {
        let path = folder.file(name);
        let image = images(Format::of_name(name.as_ref()).unwrap()).pop().unwrap();
        file::write(&path, &image).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() * 2 / 3]).unwrap();
        let outcome = open_rows(&path, Limits::default()).and_then(|mut reader| {
            while reader.read(4)?.is_some() {}
            Ok(())
        });
        let message = outcome.unwrap_err().to_string();
        assert!(message.contains(name) && message.contains("broken"), "{message}");
    }
}

/// A writer that fails ends the side that adds rows, and a side that ends early leaves no file.
#[test]
fn a_failure_of_one_side_ends_the_other() {
    let folder = Folder::new();
    let image = noise(20, 200, &["R", "G", "B"], 1).converted(SampleType::U8);
    for name in FORMATS {
        let format = Format::of_name(name.as_ref()).unwrap();
        let queue = RowQueue::new(format, image.bounds());
        let missing = folder.file("missing").join(name);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| file::write_rows(&missing, &image, &queue, &WriteOptions::default()));
            let is_ended = (0..200).any(|y| !queue.push(image.view(Rect::new(0, y, 20, 1)).unwrap()).unwrap());
            assert!(is_ended && writer.join().unwrap().is_err(), "{name}");
        });
        let path = folder.file(name);
        let queue = RowQueue::new(format, image.bounds());
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| file::write_rows(&path, &image, &queue, &WriteOptions::default()));
            queue.push(image.view(Rect::new(0, 0, 20, 50)).unwrap()).unwrap();
            queue.stop();
            assert!(writer.join().unwrap().is_err(), "{name}");
        });
        assert!(!path.exists(), "{name}");
    }
}
