//! Tests of the choices of written files: compression, quality, formats.

use crate::values::{Folder, Random, equal, noise, values};
use broadloom_effect::file::{self, Compression, Format, Limits, Problem, WriteOptions, read};
use broadloom_effect::image::{Length, Orientation, Profile, Resolution, TargetSpace};
use broadloom_effect::{Alpha, ColorSpace, Image, Plane, Rect, Sample, SampleType};

const ALL: [Compression; 3] = [Compression::Fast, Compression::Balanced, Compression::Best];

/// Returns an image with waves and a little noise, as photographs have.
fn photograph(width: u32, height: u32, names: &[&str]) -> Image {
    let mut random = Random(5);
    let planes = names.iter().enumerate().map(|(index, name)| {
        let value = |at: u32| {
            let (x, y) = ((at % width) as f32, (at / width) as f32);
            let wave = (x * 0.01 + index as f32).sin() * (y * 0.013).cos() * 0.3 + (x * 0.2).sin() * (y * 0.17).sin() * 0.1;
            0.5 + wave + ((random.bits() >> 40) as f32 / (1u64 << 24) as f32 - 0.5) * 0.02
        };
        Plane::new(name, width, height, (0..width * height).map(value).collect::<Vec<f32>>()).unwrap()
    });
    Image::new(Rect::sized(width, height), planes.collect()).unwrap()
}

/// Every effort writes every sample, in one strip and in several, and a larger effort makes no larger file.
#[test]
fn compression_changes_no_sample() {
    let folder = Folder::new();
    let types = [SampleType::U8, SampleType::U16, SampleType::F16, SampleType::F32];
    let cases: [(&str, &[SampleType]); 3] = [("x.png", &types[..2]), ("x.tif", &types), ("x.exr", &types[2..])];
    let images = [photograph(520, 680, &["R", "G", "B"]), photograph(3, 1000, &["Y"]), noise(200, 150, &["R", "G", "B", "A"], 1)];
    for (name, types) in cases {
        for (index, image) in images.iter().enumerate() {
            // The largest image has one or two types: tests are not optimised.
            for sample in types.iter().filter(|sample| index > 0 || matches!(sample, SampleType::U8 | SampleType::F16)) {
                let image = image.converted(*sample);
                let sizes = ALL.map(|compression| {
                    let path = folder.file(name);
                    file::write_with(&path, &image, &WriteOptions { compression, ..WriteOptions::default() }).unwrap();
                    assert!(equal(&image, &read(&path).unwrap()), "{name} {index} of {sample}: {compression:?}");
                    std::fs::metadata(&path).unwrap().len()
                });
                let is_photograph = index == 0 && name != "x.exr" && *sample == SampleType::U8;
                assert!(!is_photograph || sizes[0] >= sizes[1] && sizes[1] >= sizes[2], "{name} of {sample}: {sizes:?}");
                // Noise does not become larger than its samples by more than headers and filters. Each row of an EXR has a header.
                let raw = image.bounds().area() as usize * image.planes().len() * sample.bytes();
                assert!(
                    sizes.iter().all(|size| *size as usize <= raw + raw / 20 + 4096 + 20 * image.height() as usize),
                    "{name} {index} of {sample}: {sizes:?} of {raw}"
                );
            }
        }
    }
}

/// A sample is rounded to the nearest integer, and halves away from 0.
#[test]
fn samples_are_rounded() {
    for value in (0..=255u32).flat_map(|x| [-0.5001, -0.5, -0.4999, 0.0, 0.4999, 0.5].map(|part| (x as f32 + part) / 255.0)) {
        assert_eq!(<u8 as Sample>::from_f32(value), (value * 255.0).round() as u8, "{value}");
        assert_eq!(<u16 as Sample>::from_f32(value), (f64::from(value) * 65535.0).round() as u16, "{value}");
    }
    for value in [f32::NAN, f32::INFINITY, -f32::INFINITY, -0.0, f32::MIN_POSITIVE, 0.499_999_97 / 255.0, 1e30, -1e30] {
        assert_eq!(<u8 as Sample>::from_f32(value), (value * 255.0).round() as u8, "{value}");
        assert_eq!(<u16 as Sample>::from_f32(value), (f64::from(value) * 65535.0).round() as u16, "{value}");
    }
}

fn psnr(a: &Image, b: &Image) -> f32 {
    let (mut sum, mut count) = (0.0, 0);
    for (a, b) in values(a).iter().zip(values(b)) {
        sum += a.iter().zip(&b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
        count += a.len();
    }
    (-10.0 * (sum / count as f64).log10()) as f32
}

/// A better quality is a larger file and a smaller error.
#[test]
fn jpeg_has_a_quality() {
    let folder = Folder::new();
    for names in [&["R", "G", "B"][..], &["Y"]] {
        let image = photograph(120, 90, names).converted(SampleType::U8);
        let found = [30, 90, 100].map(|quality| {
            let path = folder.file("x.jpg");
            file::write_with(&path, &image, &WriteOptions { quality, ..WriteOptions::default() }).unwrap();
            let back = read(&path).unwrap();
            assert!(back.names().eq(image.names()) && back.bounds() == image.bounds());
            (std::fs::metadata(&path).unwrap().len(), psnr(&image, &back))
        });
        assert!(found.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1), "{found:?}");
        assert!(found[1].1 > 38.0, "{found:?}");
    }
    let rgba = noise(4, 4, &["R", "G", "B", "A"], 1);
    let error = file::write(folder.file("x.jpg"), &rgba).unwrap_err().to_string();
    assert!(error.contains("JPEG holds grey or RGB; the image has R, G, B, A"), "{error}");
    let wide = Image::filled(Rect::sized(70_000, 1), &["Y"], 0.5f32).unwrap();
    let error = file::write(folder.file("x.jpg"), &wide).unwrap_err().to_string();
    assert!(error.contains("JPEG has at most 65535 columns and rows"), "{error}");
}

/// JPEG and WebP keep the profile, EXIF, XMP and the orientation.
#[test]
fn blocks_of_metadata_reach_jpeg_and_webp() {
    let folder = Folder::new();
    let mut image = photograph(16, 12, &["R", "G", "B"]).converted(SampleType::U8).with_color(ColorSpace::Srgb);
    let mut profile = vec![0; 100_000];
    profile[16..20].copy_from_slice(b"RGB ");
    let metadata = image.metadata_mut();
    metadata.color.profile = Some(Profile::new(profile.clone()));
    metadata.orientation = Some(Orientation::of_number(6).unwrap());
    metadata.resolution = Some(Resolution { x: (300, 1), y: (300, 1), unit: Length::Inch });
    metadata.xmp = Some(b"<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"/>".as_slice().into());
    for name in ["x.jpg", "x.webp"] {
        file::write(folder.file(name), &image).unwrap();
        let back = read(folder.file(name)).unwrap();
        let metadata = back.metadata();
        assert_eq!(metadata.color.profile.as_ref().map(|profile| &*profile.bytes), Some(&profile[..]), "{name}");
        assert_eq!(metadata.orientation, image.metadata().orientation, "{name}");
        assert_eq!(metadata.xmp, image.metadata().xmp, "{name}");
        assert_eq!(metadata.losses, Vec::<String>::new(), "{name}");
    }
    let resolution = read(folder.file("x.jpg")).unwrap().metadata().resolution.unwrap();
    assert_eq!(resolution.per(Length::Inch), Some((300.0, 300.0)));
    assert!(file::losses(folder.file("x.jpg"), &image, None).is_empty());
    assert_eq!(file::losses(folder.file("x.webp"), &image, None), ["not written, because WebP does not hold it: the resolution"]);
    image.metadata_mut().exif = Some(vec![0; 70_000].into());
    assert!(file::losses(folder.file("x.jpg"), &image, None)[0].contains("EXIF (it is too long)"));
}

/// WebP keeps every sample of 8 bits, also where alpha is 0.
#[test]
fn webp_is_lossless() {
    let folder = Folder::new();
    for (width, height) in [(1, 1), (7, 5), (130, 3)] {
        for names in [&["R", "G", "B"][..], &["R", "G", "B", "A"]] {
            let image = noise(width, height, names, 3).converted(SampleType::U8).with_alpha(Alpha::Straight);
            file::write(folder.file("x.webp"), &image).unwrap();
            assert!(equal(&image, &read(folder.file("x.webp")).unwrap()), "{width}×{height} {names:?}");
        }
    }
    let grey = noise(5, 4, &["Y"], 3).converted(SampleType::U8);
    file::write(folder.file("x.webp"), &grey).unwrap();
    let back = read(folder.file("x.webp")).unwrap();
    assert!(back.names().eq(["R", "G", "B"]) && values(&back).iter().all(|plane| *plane == values(&grey)[0]));
}

/// HDR keeps colours to 1/256 of the largest of a pixel, and is the same when it is written again.
#[test]
fn hdr_keeps_magnitudes() {
    let folder = Folder::new();
    for (width, height) in [(1, 1), (7, 5), (200, 9), (40_000, 1)] {
        let mut image = noise(width, height, &["R", "G", "B"], 2);
        let mut random = Random(3);
        let scale: Vec<f32> = (0..width * height).map(|_| 2f32.powi((random.bits() % 60) as i32 - 30)).collect();
        let planes = image.planes().iter().map(|plane| {
            let values = plane.to_f32().iter().zip(&scale).map(|(value, scale)| value * scale).collect::<Vec<f32>>();
            Plane::new(plane.name(), width, height, values).unwrap()
        });
        image = Image::new(image.bounds(), planes.collect()).unwrap();
        file::write(folder.file("x.hdr"), &image).unwrap();
        let back = read(folder.file("x.hdr")).unwrap();
        assert_eq!(back.color(), ColorSpace::Linear);
        let (before, after) = (values(&image), values(&back));
        for at in 0..before[0].len() {
            let most = before.iter().map(|plane| plane[at]).fold(0.0, f32::max);
            assert!(before.iter().zip(&after).all(|(a, b)| (a[at] - b[at]).abs() <= most / 255.0), "pixel {at}");
        }
        file::write(folder.file("y.hdr"), &back).unwrap();
        assert_eq!(values(&read(folder.file("y.hdr")).unwrap()), after);
    }
    // Rows without runs, with runs of the old form, and values that no pixel holds.
    let old = b"#?RADIANCE\n# a comment\nFORMAT=32-bit_rle_rgbe\nEXPOSURE=2\n\n-Y 1 +X 4\n\x80\x40\x20\x80\x01\x01\x01\x03";
    let image = file::decode("old.hdr", old.to_vec(), Limits::default()).unwrap();
    assert_eq!(values(&image), [[0.5; 4], [0.25; 4], [0.125; 4]]);
    assert_eq!(image.metadata().losses, ["lines of the header are not kept: EXPOSURE"]);
    let odd =
        Image::from_f32(2, 1, [("R", vec![f32::NAN, f32::INFINITY]), ("G", vec![-1.0, 1.0]), ("B", vec![1e-45, 0.0])]).unwrap();
    let back =
        file::decode("odd.hdr", file::encode(Format::Hdr, &odd, &WriteOptions::default()).unwrap(), Limits::default()).unwrap();
    assert_eq!(back.planes()[0].value(0, 0), Some(0.0));
    assert!(back.planes()[0].value(1, 0).unwrap() > 1e38);
}

/// The format of the choices comes before that of the name.
#[test]
fn bytes_are_files() {
    let image = noise(6, 5, &["R", "G", "B"], 1).converted(SampleType::U8);
    for format in [Format::Png, Format::Tiff, Format::WebP] {
        let bytes = file::encode(format, &image, &WriteOptions::default()).unwrap();
        assert!(equal(&image, &file::decode("memory", bytes, Limits::default()).unwrap()), "{format:?}");
    }
    let folder = Folder::new();
    let options = WriteOptions { format: Some(Format::Tiff), ..WriteOptions::default() };
    file::write_with(folder.file("x.png"), &image, &options).unwrap();
    assert!(std::fs::read(folder.file("x.png")).unwrap().starts_with(b"II*\0"));
    assert!(matches!(file::decode("memory", b"hello".to_vec(), Limits::default()).unwrap_err().problem, Problem::NoImage));
}

/// Colours in other spaces have the values of the standards, and come back.
#[test]
fn colours_have_other_spaces() {
    let pixel = |rgb: [f32; 3], color: ColorSpace| {
        let planes = ["R", "G", "B"].into_iter().zip(rgb).map(|(name, value)| (name, vec![value]));
        Image::from_f32(1, 1, planes.collect::<Vec<_>>()).unwrap().with_color(color)
    };
    let near = |image: &Image, expected: [f32; 3]| {
        let found: Vec<f32> = values(image).concat();
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 6e-4), "{found:?}, not {expected:?}");
    };
    let red = pixel([1.0, 0.0, 0.0], ColorSpace::Srgb);
    near(&red.to_space(TargetSpace::P3).unwrap(), [0.9175, 0.2003, 0.1386]);
    near(&red.to_space(TargetSpace::Aces).unwrap(), [0.4397, 0.0898, 0.0175]);
    near(&pixel([0.5; 3], ColorSpace::Srgb).to_space(TargetSpace::Linear).unwrap(), [0.2140; 3]);
    near(&pixel([0.5; 3], ColorSpace::Linear).to_space(TargetSpace::Rec709).unwrap(), [0.7055; 3]);
    near(&pixel([1.0; 3], ColorSpace::Linear).to_space(TargetSpace::Aces).unwrap(), [1.0; 3]);
    // Associated colours are those of their alpha.
    let half = Image::from_f32(1, 1, [("Y", vec![0.25]), ("A", vec![0.5])]).unwrap().with_alpha(Alpha::Associated);
    assert!((values(&half.to_space(TargetSpace::Srgb).unwrap())[0][0] - 0.5 * 0.735_36).abs() < 1e-4);
    // Every space is written and read again as what it is.
    let folder = Folder::new();
    let image = noise(40, 30, &["R", "G", "B"], 9).with_color(ColorSpace::Srgb);
    let spaces = [TargetSpace::Srgb, TargetSpace::Linear, TargetSpace::P3, TargetSpace::Rec709, TargetSpace::Aces];
    for space in spaces {
        for name in ["x.png", "x.tif", "x.exr"] {
            let mut converted = image.to_space(space).unwrap();
            let is_exr = name == "x.exr";
            // Floats without a profile are taken for linear light, which a warning tells.
            let is_untold = is_exr && converted.color() == ColorSpace::Srgb || name == "x.tif" && space == TargetSpace::Srgb;
            if is_untold {
                continue;
            }
            if is_exr {
                converted.metadata_mut().color.profile = None;
            }
            file::write(folder.file(name), &converted).unwrap();
            let back = read(folder.file(name)).unwrap().to_space(TargetSpace::Srgb).unwrap();
            let worst =
                values(&back).concat().iter().zip(values(&image).concat()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            // Linear light of 16 bits has few steps near black, and the numbers of a profile have 16 bits.
            let most = if name == "x.png" { 4e-3 } else { 1e-3 };
            assert!(worst < most, "{space:?} in {name}: {worst}");
        }
    }
    let mut odd = red.clone();
    odd.metadata_mut().color.cicp = Some([9, 16, 0, 1]);
    let error = odd.to_space(TargetSpace::Srgb).unwrap_err().to_string();
    assert_eq!(error, "its code points name the transfer function 16, which is not converted");
    odd.metadata_mut().color = Default::default();
    let mut tables = vec![0; 132];
    tables[16..20].copy_from_slice(b"RGB ");
    odd.metadata_mut().color.profile = Some(Profile::new(tables));
    assert!(odd.to_space(TargetSpace::Srgb).unwrap_err().to_string().contains("ICC profile has tables"));
}

/// Makes a TIFF of one strip from fields of type SHORT or LONG and the bytes of its pixels.
fn tiff(size: [u32; 2], fields: &[(u16, &[u32])], pixels: &[u8]) -> Vec<u8> {
    let strip = 1000u32;
    let bytes = [pixels.len() as u32];
    let mut all: Vec<(u16, &[u32])> =
        vec![(256, &size[..1]), (257, &size[1..]), (259, &[1]), (273, &[1000]), (278, &size[1..]), (279, &bytes)];
    all.extend(fields);
    all.sort_by_key(|(tag, _)| *tag);
    let mut file = b"II*\0\x08\0\0\0".to_vec();
    file.extend((all.len() as u16).to_le_bytes());
    let (mut behind, start) = (vec![], 400u32);
    for (tag, values) in all {
        file.extend(tag.to_le_bytes());
        file.extend(4u16.to_le_bytes());
        file.extend((values.len() as u32).to_le_bytes());
        match values {
            [one] => file.extend(one.to_le_bytes()),
            _ => {
                file.extend((start + behind.len() as u32).to_le_bytes());
                behind.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            }
        }
    }
    file.resize(start as usize, 0);
    file.extend(behind);
    file.resize(strip as usize, 0);
    file.extend(pixels);
    file
}

/// TIFFs of a palette, few bits, CMYK, and signed and long integers are read.
#[test]
fn kinds_of_a_tiff_are_read() {
    let decoded = |bytes: Vec<u8>| file::decode("x.tif", bytes, Limits::default()).unwrap_or_else(|error| panic!("{error}"));
    let of = |bytes: Vec<u8>| {
        decoded(bytes).planes().iter().map(|plane| plane.to_f32().iter().map(|x| x * 255.0).collect()).collect::<Vec<Vec<f32>>>()
    };
    // Ten pixels of one bit in two bytes for each row; 0 is black, then white.
    let bits = [0b1010_0000, 0b1100_0000, 0b0000_0001, 0b0100_0000];
    let expected = |on: f32| {
        let rows = [[1, 0, 1, 0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 0, 0, 0, 1, 0, 1]];
        vec![rows.concat().iter().map(|bit| if *bit == 1 { on } else { 255.0 - on }).collect::<Vec<f32>>()]
    };
    assert_eq!(of(tiff([10, 2], &[(258, &[1]), (262, &[1]), (277, &[1])], &bits)), expected(255.0));
    assert_eq!(of(tiff([10, 2], &[(258, &[1]), (262, &[0]), (277, &[1])], &bits)), expected(0.0));
    assert_eq!(of(tiff([3, 1], &[(258, &[4]), (262, &[1]), (277, &[1])], &[0x0f, 0x80])), [[0.0, 255.0, 136.0]]);
    // A palette of two bits: black, red, green, grey.
    let map: Vec<u32> = [[0, 255, 0, 128], [0, 0, 255, 128], [0, 0, 0, 128]].concat().iter().map(|value| value * 257).collect();
    let palette = decoded(tiff([4, 1], &[(258, &[2]), (262, &[3]), (277, &[1]), (320, &map)], &[0b00_01_10_11]));
    assert!(palette.names().eq(["R", "G", "B"]) && palette.sample_type() == SampleType::U8);
    let found: Vec<Vec<f32>> = values(&palette).iter().map(|plane| plane.iter().map(|x| (x * 255.0).round()).collect()).collect();
    assert_eq!(found, [[0.0, 255.0, 0.0, 128.0], [0.0, 0.0, 255.0, 128.0], [0.0, 0.0, 0.0, 128.0]]);
    let wide: Vec<u32> = map.iter().map(|value| value / 2).collect();
    assert_eq!(
        decoded(tiff([4, 1], &[(258, &[2]), (262, &[3]), (277, &[1]), (320, &wide)], &[0b00_01_10_11])).sample_type(),
        SampleType::U16
    );
    let short = tiff([4, 1], &[(258, &[2]), (262, &[3]), (277, &[1]), (320, &map[..7])], &[0]);
    assert!(file::decode("x.tif", short, Limits::default()).unwrap_err().to_string().contains("its palette has 7 numbers"));
    // CMYK: a light cyan, and black.
    let cmyk = decoded(tiff([2, 1], &[(258, &[8; 4]), (262, &[5]), (277, &[4])], &[51, 0, 0, 0, 0, 0, 0, 255]));
    assert_eq!(values(&cmyk), [[0.8, 0.0], [1.0, 0.0], [1.0, 0.0]]);
    assert!(cmyk.metadata().losses[0].contains("CMYK is read as RGB"));
    // Signed integers are their values; unsigned ones of 32 bits are identifiers.
    let heights: Vec<u8> = [-5i16, 8848].iter().flat_map(|value| value.to_le_bytes()).collect();
    let signed = decoded(tiff([2, 1], &[(258, &[16]), (262, &[1]), (277, &[1]), (339, &[2])], &heights));
    assert_eq!(
        (values(&signed), signed.sample_type(), signed.color()),
        (vec![vec![-5.0, 8848.0]], SampleType::F32, ColorSpace::Linear)
    );
    let long: Vec<u8> = [7u32, 4_000_000_000].iter().flat_map(|value| value.to_le_bytes()).collect();
    let long = decoded(tiff([2, 1], &[(258, &[32]), (262, &[1]), (277, &[1])], &long));
    assert_eq!(long.planes()[0].row::<u32>(0).unwrap(), [7, 4_000_000_000]);
}
