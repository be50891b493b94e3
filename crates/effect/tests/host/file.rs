//! Tests of files: images that are written can be read again, and broken and hostile files are errors.

use crate::values::{Folder, Random, equal, noise, values};
use broadloom_effect::file::{Compression, Cube, Limits, Problem, WriteOptions, read, read_with, write, write_as, write_with};
use broadloom_effect::{ColorSpace, Image, Plane, Rect, SampleType};
use std::path::Path;

const GREY: &[u8] = include_bytes!("files/grey.jpg");
const PROGRESSIVE: &[u8] = include_bytes!("files/progressive.jpg");
const TILES: &[u8] = include_bytes!("files/tiles.tif");
const SEPARATE: &[u8] = include_bytes!("files/separate.tif");

#[test]
fn what_is_written_is_read() {
    let folder = Folder::new();
    let all = [SampleType::U8, SampleType::U16, SampleType::F16, SampleType::F32];
    let rgba = ["R", "G", "B", "A"];
    type Case<'a> = (&'a str, &'a [SampleType], &'a [&'a [&'a str]]);
    let cases: [Case<'_>; 4] = [
        ("x.png", &all[..2], &[&["Y"], &["Y", "A"], &rgba[..3], &rgba]),
        (
            "x.tif",
            &all,
            &[
                &["Y"],
                &["Y", "A"],
                &rgba[..3],
                &rgba,
                &["C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8"],
                &["R", "G", "B", "C4"],
                &["R", "G", "B", "A", "C5"],
            ],
        ),
        ("x.exr", &all[2..], &[&["Y"], &rgba, &["R", "G", "B", "Z", "diffuse.R", "diffuse.G", "spec.left.R"]]),
        ("x.pfm", &all[3..], &[&["Y"], &rgba[..3]]),
    ];
    for (name, types, planes) in cases {
        let path = folder.file(name);
        for sample in types {
            for (index, names) in planes.iter().enumerate() {
                for (width, height) in [(1, 1), (7, 5), (1, 9), (130, 3)] {
                    let image = noise(width, height, names, index as u64).converted(*sample);
                    write(&path, &image).unwrap();
                    let back = read(&path).unwrap_or_else(|error| panic!("{error}: {names:?} of {sample}"));
                    assert!(equal(&image, &back), "{name}: {width}×{height}, {names:?} of {sample}");
                }
            }
        }
    }
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), cases.len());
}

#[test]
fn views_are_written_at_their_place() {
    let folder = Folder::new();
    let image = noise(9, 8, &["R", "G", "B"], 4).with_origin(-3, 5).unwrap();
    let view = image.view(Rect::new(-1, 7, 4, 5)).unwrap();
    write(folder.file("x.exr"), &view).unwrap();
    let back = read(folder.file("x.exr")).unwrap();
    assert!(equal(&view, &back));
    assert_eq!((back.bounds(), back.color()), (Rect::new(-1, 7, 4, 5), ColorSpace::Linear));
    write_as(folder.file("x.png"), &view, Some(SampleType::U8)).unwrap();
    assert_eq!(values(&read(folder.file("x.png")).unwrap()), values(&view.converted(SampleType::U8)));
}

#[test]
fn planes_of_an_exr_keep_their_types() {
    let folder = Folder::new();
    let red = noise(3, 2, &["R"], 1).converted(SampleType::F16).planes()[0].clone();
    let depth = noise(3, 2, &["Z"], 2).planes()[0].clone();
    let image = Image::new(Rect::sized(3, 2), vec![red, depth]).unwrap();
    write(folder.file("x.exr"), &image).unwrap();
    assert!(equal(&image, &read(folder.file("x.exr")).unwrap()));
}

/// Colours come first, then the other planes by name. A field's planes are along x and y.
#[test]
fn planes_of_an_exr_have_an_order() {
    let folder = Folder::new();
    let image = noise(3, 2, &["Y", "A", "B", "v.Y", "X", "v.X", "R", "G"], 1);
    write(folder.file("x.exr"), &image).unwrap();
    let back = read(folder.file("x.exr")).unwrap();
    let names: Vec<&str> = back.planes().iter().map(|plane| plane.name()).collect();
    assert_eq!(names, ["R", "G", "B", "A", "X", "Y", "v.X", "v.Y"]);
}

/// An offset beyond all files is a fault of the file, not of the machine.
#[test]
fn places_that_no_file_has_are_broken_content() {
    let folder = Folder::new();
    write(folder.file("x.exr"), &noise(5, 4, &["R", "G"], 1)).unwrap();
    let sound = std::fs::read(folder.file("x.exr")).unwrap();
    let mut refused = 0;
    for place in 0..sound.len() {
        let mut broken = sound.clone();
        broken[place] ^= 0x80;
        std::fs::write(folder.file("broken.exr"), broken).unwrap();
        if let Err(error) = read(folder.file("broken.exr")) {
            refused += 1;
            assert!(!error.to_string().contains("os error"), "{place}: {error}");
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn an_exr_keeps_its_display_window() {
    let folder = Folder::new();
    let image = noise(4, 3, &["Y"], 1).with_origin(-2, 5).unwrap();
    assert_eq!(image.display(), image.bounds());
    let display = Rect::new(-10, 0, 32, 24);
    let shown = image.clone().with_display(display).unwrap();
    write(folder.file("x.exr"), &shown).unwrap();
    let back = read(folder.file("x.exr")).unwrap();
    assert_eq!((back.bounds(), back.display()), (image.bounds(), display));
    // Changes of samples and planes keep it.
    let changed = back.converted(SampleType::F16).to_srgb().select(&["Y"]).unwrap();
    assert_eq!(changed.with_planes(image.planes().to_vec()).unwrap().display(), display);
    assert_eq!(back.with_origin(0, 0).unwrap().display(), Rect::sized(4, 3));
    write(folder.file("y.exr"), &image).unwrap();
    assert_eq!(read(folder.file("y.exr")).unwrap().display(), image.bounds());
    assert!(image.with_display(Rect::sized(0, 3)).is_err());
}

#[test]
fn colour_is_marked() {
    let folder = Folder::new();
    for color in [ColorSpace::Srgb, ColorSpace::Linear] {
        write(folder.file("x.png"), &noise(2, 2, &["Y"], 0).with_color(color)).unwrap();
        assert_eq!(read(folder.file("x.png")).unwrap().color(), color);
    }
}

#[test]
fn jpeg_is_read() {
    let folder = Folder::new();
    std::fs::write(folder.file("x.jpg"), GREY).unwrap();
    let grey = read(folder.file("x.jpg")).unwrap();
    assert_eq!((grey.width(), grey.height(), grey.color()), (11, 9, ColorSpace::Srgb));
    let near = |plane: &Plane, places: [(u32, u32, f32); 3]| {
        places.iter().all(|(x, y, value)| (plane.value(*x, *y).unwrap() * 255.0 - value).abs() <= 2.0)
    };
    assert!(near(&grey.planes()[0], [(0, 0, 0.0), (10, 8, 215.0), (5, 4, 108.0)]));
    std::fs::write(folder.file("x.jpg"), PROGRESSIVE).unwrap();
    let image = read(folder.file("x.jpg")).unwrap();
    assert_eq!(image.names().collect::<Vec<_>>(), ["R", "G", "B"]);
    assert!(near(&image.planes()[0], [(0, 0, 0.0), (10, 8, 215.0), (5, 4, 109.0)]));
    assert!(near(&image.planes()[2], [(0, 0, 0.0), (10, 8, 203.0), (5, 4, 99.0)]));
}

#[test]
fn a_layer_alone_has_colours_in_a_tiff() {
    let folder = Folder::new();
    let image = noise(5, 3, &["d.A", "d.B", "d.G", "d.R"], 1);
    write(folder.file("x.tif"), &image).unwrap();
    let back = read(folder.file("x.tif")).unwrap();
    assert_eq!(back.names().collect::<Vec<_>>(), ["R", "G", "B", "A"]);
    for plane in back.planes() {
        assert_eq!(plane.to_f32(), image.plane(&format!("d.{}", plane.name())).unwrap().to_f32());
    }
    write(folder.file("y.tif"), &noise(5, 3, &["d.R", "d.G", "d.B", "e.R"], 1)).unwrap();
    assert_eq!(read(folder.file("y.tif")).unwrap().names().collect::<Vec<_>>(), ["C1", "C2", "C3", "C4"]);
}

/// The files have 20 × 18 pixels in tiles of 16 × 16 with LZW, one of them with tiles for each component.
#[test]
fn tiles_of_a_tiff_are_read() {
    let folder = Folder::new();
    for (bytes, names) in [(TILES, &["Y"][..]), (SEPARATE, &["R", "G", "B"])] {
        std::fs::write(folder.file("x.tif"), bytes).unwrap();
        let image = read(folder.file("x.tif")).unwrap();
        assert_eq!((image.width(), image.height()), (20, 18));
        assert_eq!(image.names().collect::<Vec<_>>(), names);
        for (index, plane) in (0..).zip(image.planes()) {
            for (x, y) in (0..20).flat_map(|x| (0..18).map(move |y| (x, y))) {
                let sample = (plane.value(x, y).unwrap() * 255.0).round() as u32;
                assert_eq!(sample, (x * 7 + y * 31 + index * 50) % 256, "plane {index} at {x}, {y}");
            }
        }
    }
}

#[test]
fn lines_of_a_pfm_end_in_one_or_two_bytes() {
    let folder = Folder::new();
    let values = [1.5f32, f32::from_le_bytes([10, 0, 0, 64])];
    let samples: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    for header in ["Pf\n1 2\n-1\n", "Pf\n# by hand\n1 2\n# 3\n-1\n", "Pf 1 2 -1 ", "Pf\r\n1 2\r\n-1\r\n", "Pf\r1 2\r-1\r"] {
        for upward in [false, true] {
            let body = if upward { [&samples[4..], &samples[..4]].concat() } else { samples.clone() };
            std::fs::write(folder.file("x.pfm"), [header.as_bytes(), &body].concat()).unwrap();
            let image = read(folder.file("x.pfm")).unwrap();
            let rows = [0, 1].map(|y| image.planes()[0].value(0, y).unwrap());
            let expected = if upward { values } else { [values[1], values[0]] };
            assert_eq!(rows, expected, "{header:?}");
        }
    }
}

/// Makes a TIFF of 2 × 1 pixels of RGB and extra samples with 8 bits. The samples are 1, 2, 3, and so on.
fn rgb_with(extra: &[u16], is_big_endian: bool, is_predicted: bool) -> Vec<u8> {
    let count = 3 + extra.len() as u8;
    let short = |value: u16| if is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let long = |value: u32| if is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    // The second pixel, or the difference to the first.
    let second = (1..=count).map(|sample| if is_predicted { count } else { count + sample });
    let (strip, kinds) = (200, 220);
    let mut tags: Vec<(u16, u32, Vec<u8>)> = vec![];
    let single =
        [(256, 2), (257, 1), (258, 8), (259, 1), (262, 2), (277, u16::from(count)), (278, 1), (279, 2 * u16::from(count))];
    tags.extend(single.map(|(tag, value)| (tag, 1, short(value).to_vec())));
    tags.push((273, 1, short(strip).to_vec()));
    tags.push((317, 1, short(1 + u16::from(is_predicted)).to_vec()));
    let listed: Vec<u8> = extra.iter().flat_map(|kind| short(*kind)).collect();
    tags.push((338, extra.len() as u32, if extra.len() > 2 { long(kinds).to_vec() } else { listed.clone() }));
    tags.sort();
    let mut bytes = if is_big_endian { b"MM\0*\0\0\0\x08".to_vec() } else { b"II*\0\x08\0\0\0".to_vec() };
    bytes.extend(short(tags.len() as u16));
    for (tag, values, mut value) in tags {
        value.resize(4, 0);
        bytes.extend(short(tag).into_iter().chain(short(3)).chain(long(values)).chain(value));
    }
    bytes.resize(usize::from(strip), 0);
    bytes.extend((1..=count).chain(second));
    bytes.resize(kinds as usize, 0);
    bytes.extend(listed);
    bytes
}

#[test]
fn extra_samples_of_a_tiff_are_planes() {
    let folder = Folder::new();
    let cases: [(&[u16], &[&str]); 6] = [
        (&[0], &["R", "G", "B", "C4"]),
        (&[2], &["R", "G", "B", "A"]),
        (&[1, 0], &["R", "G", "B", "A", "C5"]),
        (&[0, 2], &["R", "G", "B", "C4", "A"]),
        (&[0, 0, 1], &["R", "G", "B", "C4", "C5", "A"]),
        (&[2, 0, 1], &["R", "G", "B", "A", "C5", "C6"]),
    ];
    for (extra, names) in cases {
        for (is_big_endian, is_predicted) in [(false, false), (false, true), (true, false), (true, true)] {
            std::fs::write(folder.file("x.tif"), rgb_with(extra, is_big_endian, is_predicted)).unwrap();
            let image = read(folder.file("x.tif")).unwrap_or_else(|error| panic!("{error}: {extra:?}"));
            assert_eq!(image.names().collect::<Vec<_>>(), names, "{extra:?}");
            for (index, plane) in image.planes().iter().enumerate() {
                let samples = [0, 1].map(|x| (plane.value(x, 0).unwrap() * 255.0).round() as usize);
                let expected = [index + 1, names.len() + index + 1];
                assert_eq!(samples, expected, "{extra:?}, plane {index}, {is_big_endian}, {is_predicted}");
            }
        }
    }
}

/// Makes small files of all formats.
fn samples(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let image = noise(6, 5, &["Y"], 3);
    let mut files = vec![("grey.jpg".to_owned(), GREY.to_vec()), ("progressive.jpg".to_owned(), PROGRESSIVE.to_vec())];
    for name in ["a.png", "a.jpg", "a.tif", "a.exr", "a.pfm", "a.hdr", "a.dpx", "a.webp"] {
        write(folder.file(name), &image).unwrap();
        files.push((name.to_owned(), std::fs::read(folder.file(name)).unwrap()));
    }
    let wide = WriteOptions { compression: Compression::Best, ..WriteOptions::default() };
    for name in ["best.png", "best.tif", "best.exr"] {
        write_with(folder.file(name), &noise(20, 9, &["R", "G", "B"], 4).converted(SampleType::F16), &wide).unwrap();
        files.push((name.to_owned(), std::fs::read(folder.file(name)).unwrap()));
    }
    files
}

#[test]
fn truncated_files_are_errors_with_their_names() {
    let folder = Folder::new();
    for (name, bytes) in samples(&folder) {
        let path = folder.file(&name);
        // The last bytes of a TIFF say that no directory follows. Viewers do not need the end marker of a JPEG.
        let needed = bytes.len() - if name.ends_with("tif") { 4 } else { 2 * usize::from(name.ends_with("jpg")) };
        for len in 0..needed {
            std::fs::write(&path, &bytes[..len]).unwrap();
            match read(&path) {
                // The scans before the end are a whole picture.
                Ok(image) if image.metadata().losses.concat().contains("no end marker") => assert_eq!(name, "progressive.jpg"),
                Ok(_) => panic!("{name}: {len} of {} bytes are taken for all", bytes.len()),
                Err(error) => {
                    assert!(error.to_string().contains(&name), "{error}");
                    assert!(!error.is_of_machine(), "{error}");
                    let place = if let Problem::Broken { at, .. } = error.problem { at } else { 0 };
                    assert!(place <= len as u64, "{name}: byte {place} of {len}");
                }
            }
        }
    }
}

#[test]
fn changed_bits_never_panic() {
    let folder = Folder::new();
    let mut random = Random(7);
    let limits = Limits { bytes: 1 << 24 };
    let tiles = [("tiles.tif", TILES), ("separate.tif", SEPARATE)].map(|(name, bytes)| (name.to_owned(), bytes.to_vec()));
    for (name, bytes) in samples(&folder).into_iter().chain(tiles) {
        let path = folder.file(&name);
        let mut changed = bytes.clone();
        for bit in 0..bytes.len() * 8 {
            // All bits of the first bytes, which hold sizes and tags, and some of the others.
            if bit >= 96 && !random.bits().is_multiple_of(48) {
                continue;
            }
            changed[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &changed).unwrap();
            if let Err(error) = read_with(&path, limits) {
                // The file is at fault, not the machine. The error does not show the library's own terms.
                assert!(!error.is_of_machine() && !error.to_string().contains("ChunkType"), "{error}");
            }
            changed[bit / 8] = bytes[bit / 8];
        }
    }
}

#[test]
fn broken_content_is_no_failure_of_the_machine() {
    let folder = Folder::new();
    // A TIFF of 4×4 pixels. Its tags claim Deflate compression, which its strip does not have.
    let mut tiff = b"II*\0\x08\0\0\0".to_vec();
    let tags: [(u16, u32); 9] = [(256, 4), (257, 4), (258, 8), (259, 8), (262, 1), (273, 128), (277, 1), (278, 4), (279, 16)];
    tiff.extend((tags.len() as u16).to_le_bytes());
    for (tag, value) in tags {
        tiff.extend(tag.to_le_bytes());
        tiff.extend(4u16.to_le_bytes());
        tiff.extend(1u32.to_le_bytes());
        tiff.extend(value.to_le_bytes());
    }
    tiff.resize(128, 0);
    tiff.extend([0xaa; 16]);
    let error = error_of(&folder, "x.tif", &tiff).to_string();
    assert!(error.starts_with("broken TIFF at byte"), "{error}");
}

/// Reads bytes as a file and returns the error.
fn error_of(folder: &Folder, name: &str, bytes: &[u8]) -> Problem {
    std::fs::write(folder.file(name), bytes).unwrap();
    read(folder.file(name)).unwrap_err().problem
}

#[test]
fn headers_alone_take_no_memory() {
    let folder = Folder::new();
    let pfm = |size: &str| format!("PF\n{size}\n-1.0\n").into_bytes();
    assert!(matches!(error_of(&folder, "x.pfm", &pfm("1000000000 1000000000")), Problem::TooLarge { .. }));
    assert!(matches!(error_of(&folder, "x.pfm", &pfm("0 5")), Problem::Size { .. }));
    assert!(matches!(error_of(&folder, "x.pfm", &pfm("2147483648 1")), Problem::Size { .. }));
    assert!(matches!(error_of(&folder, "x.pfm", &pfm("-1 1")), Problem::Broken { .. }));
    assert!(matches!(error_of(&folder, "x.pfm", &pfm("20000 20000")), Problem::Broken { .. }));
    for (name, bytes) in samples(&folder).into_iter().filter(|(name, _)| name.starts_with("a.")) {
        // Every position that may hold the size is set to a huge value.
        for (at, size) in (0..bytes.len() - 4).flat_map(|at| [6u32, 5].map(|size| (at, size))) {
            for (value, found) in
                [(size.to_le_bytes(), 0x3fff_fff0u32.to_le_bytes()), (size.to_be_bytes(), 0x3fff_fff0u32.to_be_bytes())]
            {
                if bytes[at..at + 4] == value && at < 800 {
                    let mut changed = bytes.clone();
                    changed[at..at + 4].copy_from_slice(&found);
                    std::fs::write(folder.file(&name), &changed).unwrap();
                    let _ = read(folder.file(&name));
                }
            }
        }
    }
    let mut png = samples(&folder).into_iter().find(|(name, _)| name == "a.png").unwrap().1;
    png[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
    let crc = crc(&png[12..29]);
    png[29..33].copy_from_slice(&crc.to_be_bytes());
    assert!(matches!(error_of(&folder, "x.png", &png), Problem::TooLarge { .. }));
    png[16..24].copy_from_slice(&[0, 0, 0x40, 0, 0, 0, 0x40, 0]);
    let crc = self::crc(&png[12..29]);
    png[29..33].copy_from_slice(&crc.to_be_bytes());
    let error = error_of(&folder, "x.png", &png).to_string();
    assert!(error.contains("16384×16384 pixels cannot be in a file of"), "{error}");
}

/// Computes the checksum of a PNG chunk.
fn crc(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

#[test]
fn files_that_cannot_be_are_told() {
    let folder = Folder::new();
    let text = |result: Result<(), broadloom_effect::FileError>| result.unwrap_err().problem.to_string();
    let image = noise(2, 2, &["R", "G", "B", "Z"], 0);
    assert_eq!(
        text(write(folder.file("x.gif"), &image)),
        "the format is not known by the name: use .png, .jpg, .tif, .exr, .webp, .hdr, .dpx or .pfm"
    );
    assert_eq!(
        text(write(folder.file("x.png"), &image)),
        "PNG holds grey or RGB, with or without alpha; the image has R, G, B, Z: write .tif or .exr"
    );
    assert_eq!(text(write_as(folder.file("x.exr"), &image, Some(SampleType::U8))), "EXR has no samples of u8: it has f16, f32");
    assert!(text(write(folder.file("none/x.exr"), &image)).starts_with("cannot be written: No such file"));
    assert!(text(write(folder.0.join("x.exr/").as_path(), &image)).starts_with("cannot be written"));
    std::fs::create_dir(folder.file("folder.exr")).unwrap();
    assert_eq!(text(write(folder.file("folder.exr"), &image)), "cannot be written: it is a folder");
    assert_eq!(read(folder.file("folder.exr")).unwrap_err().problem.to_string(), "cannot be read: it is a folder");
    assert!(read(folder.file("none.exr")).unwrap_err().to_string().contains("none.exr: cannot be read: No such file"));
    assert!(matches!(error_of(&folder, "x.png", b"hello"), Problem::NoImage));
    assert!(matches!(error_of(&folder, "x.png", b""), Problem::NoImage));
    let full = Path::new("/dev/full");
    if full.exists() {
        // A full disk: a symbolic link with the name of an image to a device that accepts no data.
        std::os::unix::fs::symlink(full, folder.file("full.exr")).unwrap();
        let image = noise(100, 100, &["Y"], 1);
        assert!(text(write(folder.file("full.exr"), &image)).contains("No space left"));
        assert!(full.exists());
    }
    let left: Vec<_> = std::fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".part")), "{left:?}");
}

#[test]
fn links_are_followed() {
    let folder = Folder::new();
    let image = noise(2, 2, &["Y"], 0);
    write(folder.file("x.pfm"), &image).unwrap();
    std::os::unix::fs::symlink(folder.file("x.pfm"), folder.file("link.pfm")).unwrap();
    let other = noise(3, 3, &["Y"], 0);
    write(folder.file("link.pfm"), &other).unwrap();
    assert!(folder.file("link.pfm").symlink_metadata().unwrap().is_symlink());
    assert!(equal(&other, &read(folder.file("x.pfm")).unwrap()));
}

#[test]
fn tables_of_colours_are_read() {
    let mut text = "TITLE \"x\"\n# comment\nLUT_3D_SIZE 2\nDOMAIN_MIN 0 0 0\nDOMAIN_MAX 2 2 2\n".to_owned();
    for index in 0..8 {
        text += &format!("{} {} {}\n", index & 1, (index >> 1 & 1) * 3, (index >> 2) * 5);
    }
    let cube = Cube::parse(&text).unwrap();
    for interpolated in [cube.trilinear([1.0, 0.5, 3.0]), cube.tetrahedral([1.0, 0.5, 3.0])] {
        assert_eq!(interpolated, [0.5, 0.75, 5.0]);
    }
    assert_eq!(cube.trilinear([f64::NAN, -1.0, 0.0]), [0.0, 0.0, 0.0]);
    let bad = [
        ("0 0 0", "line 1: the size comes before the table"),
        ("LUT_3D_SIZE 1000", "line 1: the size must be from 2 to 256"),
        ("LUT_1D_SIZE 2\n0 0 0", "line 2: the table ends after 1 of 2 entries"),
        ("LUT_1D_SIZE 2\n0 0 0\n1 1 1\n2 2 2", "line 4: the table has more than 2 entries"),
        ("LUT_1D_SIZE 2\n0 0 nan\n1 1 1", "line 2: it needs three numbers"),
        ("LUT_2D_SIZE 2", "line 1: the keyword LUT_2D_SIZE is not known"),
        ("", "line 0: there is no LUT_1D_SIZE or LUT_3D_SIZE"),
    ];
    for (text, expected) in bad {
        assert_eq!(Cube::parse(text).unwrap_err().to_string(), expected);
    }
}
