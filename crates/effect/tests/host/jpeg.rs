//! Tests of JPEG files.

use crate::values::{equal, noise, values};
use broadloom_effect::file::{self, Compression, Format, Limits, WriteOptions, decode, encode};
use broadloom_effect::{Image, Plane, SampleType};

fn waves(width: u32, height: u32, names: &[&str]) -> Image {
    let planes = names.iter().enumerate().map(|(index, name)| {
        let value = |at: u32| 0.5 + 0.4 * ((at % width) as f32 * 0.1 + index as f32).sin() * ((at / width) as f32 * 0.07).cos();
        Plane::new(name, width, height, (0..width * height).map(value).collect::<Vec<f32>>()).unwrap().converted(SampleType::U8)
    });
    Image::new(broadloom_effect::Rect::sized(width, height), planes.collect()).unwrap()
}

fn encoded(image: &Image, quality: u8, compression: Compression) -> Vec<u8> {
    encode(Format::Jpeg, image, &WriteOptions { quality, compression, ..WriteOptions::default() }).unwrap()
}

fn decoded(bytes: &[u8]) -> Result<Image, file::FileError> {
    decode("x.jpg", bytes.to_vec(), Limits::default())
}

/// Decodes with the library that reads the other kinds of files.
fn by_the_library(bytes: &[u8]) -> Vec<u8> {
    let options = zune_jpeg::zune_core::options::DecoderOptions::default();
    let mut decoder = zune_jpeg::JpegDecoder::new_with_options(zune_jpeg::zune_core::bytestream::ZCursor::new(bytes), options);
    decoder.decode().unwrap()
}

/// Samples are those of the library, for sizes with and without whole units, with full and halved colours.
#[test]
fn samples_are_those_of_other_decoders() {
    for (width, height) in [(64, 48), (61, 47), (17, 3), (1, 1), (8, 33)] {
        for names in [&["Y"][..], &["R", "G", "B"]] {
            for (quality, most) in [(95, 3), (80, 24)] {
                let image = waves(width, height, names);
                let bytes = encoded(&image, quality, Compression::Fast);
                let own = decoded(&bytes).unwrap();
                assert!(own.names().eq(names.iter().copied()), "{width}×{height}");
                let library = by_the_library(&bytes);
                // Grey may be red, green and blue there.
                let count = library.len() / (width * height) as usize;
                for (index, plane) in own.planes().iter().enumerate() {
                    let samples = plane.to_f32().into_iter().map(|value| (value * 255.0).round() as i32);
                    // Decoders differ in how they interpolate colours at edges.
                    let far = samples.zip(library[index..].iter().step_by(count)).map(|(a, b)| (a - i32::from(*b)).abs()).max();
                    assert!(far.unwrap() <= most, "{width}×{height} of {names:?} at {quality}: {far:?}");
                }
                let off =
                    values(&own).concat().iter().zip(values(&image).concat()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(off < if quality > 90 { 0.04 } else { 0.25 }, "{width}×{height} of {names:?} at {quality}: {off}");
            }
        }
    }
}

/// Better codes change no sample and make a smaller file.
#[test]
fn codes_are_made_for_the_image() {
    for image in [waves(120, 90, &["R", "G", "B"]), waves(120, 90, &["Y"]), noise(70, 50, &["R", "G", "B"], 1)] {
        let [fast, best] = [Compression::Fast, Compression::Best].map(|compression| encoded(&image, 85, compression));
        assert!(best.len() < fast.len(), "{} {}", best.len(), fast.len());
        assert!(equal(&decoded(&fast).unwrap(), &decoded(&best).unwrap()));
        assert!(by_the_library(&fast) == by_the_library(&best));
    }
}

/// Files that every viewer opens: bytes between segments, bytes of ones before markers, no end marker.
#[test]
fn loose_files_are_read() {
    let image = waves(40, 30, &["R", "G", "B"]);
    let bytes = encoded(&image, 92, Compression::Fast);
    let wanted = decoded(&bytes).unwrap();
    let at = 2 + 18;
    assert_eq!(bytes[at], 0xff);
    for inserted in [&[0u8, 7, 9][..], &[0xff, 0xff], &[0x41; 300]] {
        let loose = [&bytes[..at], inserted, &bytes[at..]].concat();
        assert!(equal(&decoded(&loose).unwrap(), &wanted), "{inserted:?}");
    }
    assert!(equal(&decoded(&bytes[..bytes.len() - 2]).unwrap(), &wanted));
    assert!(equal(&decoded(&[&bytes[..], b"more behind the end"].concat()).unwrap(), &wanted));
    // A scan that ends early, or whose restart marker is another one, is broken.
    let error = decoded(&bytes[..bytes.len() - 30]).unwrap_err().to_string();
    assert!(error.contains("broken JPEG"), "{error}");
    let marker = bytes.array_windows().position(|pair| *pair == [0xff, 0xd1]).unwrap();
    let mut other = bytes.clone();
    other[marker + 1] = 0xd5;
    assert!(decoded(&other).unwrap_err().to_string().contains("the restart marker 1 is missing"));
}

/// Changed bytes give an image or an error.
#[test]
fn broken_files_never_panic() {
    let bytes = encoded(&waves(40, 30, &["R", "G", "B"]), 80, Compression::Fast);
    let mut random = crate::values::Random(3);
    for _ in 0..400 {
        let mut broken = bytes.clone();
        for _ in 0..1 + random.bits() % 4 {
            let at = random.bits() as usize % broken.len();
            broken[at] = random.bits() as u8;
        }
        let _ = decoded(&broken);
    }
}
