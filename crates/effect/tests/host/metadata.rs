//! Tests of metadata: what a file says about its pixels is kept, converted, or named.

use crate::values::{Folder, Random, noise, values};
use broadloom_effect::catalogue::{Engine, Reference, chain};
use broadloom_effect::file::{Problem, losses, read, write, write_as};
use broadloom_effect::image::{Length, Profile, Resolution};
use broadloom_effect::{Alpha, ColorSpace, Image, Orientation, Plane, Rect, SampleType};

const GREY: &[u8] = include_bytes!("files/grey.jpg");

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

fn chunk(kind: &[u8; 4], bytes: &[u8]) -> Vec<u8> {
    let body = [&kind[..], bytes].concat();
    [&(bytes.len() as u32).to_be_bytes()[..], &body, &crc(&body).to_be_bytes()].concat()
}

/// Returns a PNG of RGB with chunks behind its header.
fn png(folder: &Folder, chunks: &[Vec<u8>]) -> Vec<u8> {
    let mut image = noise(7, 5, &["R", "G", "B"], 3).converted(SampleType::U8);
    image.metadata_mut().color = Default::default();
    let image = image.with_color(ColorSpace::Srgb);
    write(folder.file("plain.png"), &image).unwrap();
    let bytes = std::fs::read(folder.file("plain.png")).unwrap();
    // The first chunk behind the header is sRGB, with one byte.
    [&bytes[..33], &chunks.concat(), &bytes[33 + 13..]].concat()
}

/// Returns the chunks of a PNG.
fn chunks(path: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let bytes = std::fs::read(path).unwrap();
    let (mut at, mut chunks) = (8, vec![]);
    while at < bytes.len() {
        let len = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        chunks.push((String::from_utf8_lossy(&bytes[at + 4..at + 8]).into_owned(), bytes[at + 8..at + 8 + len].to_vec()));
        at += 12 + len;
    }
    chunks
}

/// Returns the content of an iCCP chunk with a profile that is not compressed.
fn iccp(name: &str, profile: &[u8]) -> Vec<u8> {
    let (mut a, mut b) = (1u32, 0u32);
    for byte in profile {
        a = (a + u32::from(*byte)) % 65521;
        b = (b + a) % 65521;
    }
    let len = profile.len() as u16;
    let stream = [&[0x78, 1, 1][..], &len.to_le_bytes(), &(!len).to_le_bytes(), profile, &(b << 16 | a).to_be_bytes()].concat();
    [name.as_bytes(), &[0, 0], &stream].concat()
}

/// Returns a profile of some colours. Its curve is a power unless it is that of sRGB.
fn profile(space: &[u8; 4], is_srgb: bool) -> Vec<u8> {
    let fixed = |value: f64| ((value * 65536.0).round() as i32).to_be_bytes();
    let curve = match is_srgb {
        true => [2.4, 1.0 / 1.055, 0.055 / 1.055, 1.0 / 12.92, 0.04045].map(fixed).concat(),
        false => [2.2, 1.0, 0.0, 0.0, 0.0].map(fixed).concat(),
    };
    let curve = [&b"para\0\0\0\0\0\x03\0\0"[..], &curve].concat();
    let primary = |xyz: [f64; 3]| [b"XYZ \0\0\0\0".to_vec(), xyz.map(fixed).concat()].concat();
    let tags = [
        (b"desc", [&b"desc\0\0\0\0\0\0\0\x05Test\0"[..], &[0; 7]].concat()),
        (b"rXYZ", primary([0.4361, 0.2225, 0.0139])),
        (b"gXYZ", primary([0.3851, 0.7169, 0.0971])),
        (b"bXYZ", primary([0.1431, 0.0606, 0.7141])),
        (b"rTRC", curve.clone()),
        (b"gTRC", curve.clone()),
        (b"bTRC", curve),
    ];
    let mut bytes = vec![0; 128];
    bytes[16..20].copy_from_slice(space);
    bytes[36..40].copy_from_slice(b"acsp");
    bytes.extend((tags.len() as u32).to_be_bytes());
    let mut at = 132 + tags.len() as u32 * 12;
    for (name, data) in &tags {
        bytes.extend([&name[..], &at.to_be_bytes(), &(data.len() as u32).to_be_bytes()].concat());
        at += data.len() as u32;
    }
    tags.iter().for_each(|(_, data)| bytes.extend(data));
    let len = bytes.len() as u32;
    bytes[..4].copy_from_slice(&len.to_be_bytes());
    bytes
}

/// Returns an EXIF block with a maker, an orientation, and a directory with a size and the time of exposure.
fn exif(orientation: u16, is_big_endian: bool) -> Vec<u8> {
    let short = |value: u16| if is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let long = |value: u32| if is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let value = |value: u16| [short(value), [0; 2]].concat();
    let entry = |tag: u16, kind: u16, count: u32, value: &[u8]| [&short(tag)[..], &short(kind), &long(count), value].concat();
    let mut bytes = if is_big_endian { b"MM\0*\0\0\0\x08".to_vec() } else { b"II*\0\x08\0\0\0".to_vec() };
    // The directory has 42 bytes, the text 6, the second directory 42, the fraction 8.
    bytes.extend(short(3));
    bytes.extend(entry(271, 2, 6, &long(50)));
    bytes.extend(entry(274, 3, 1, &value(orientation)));
    bytes.extend(entry(34665, 4, 1, &long(56)));
    bytes.extend(long(0));
    bytes.extend(b"Maker\0");
    bytes.extend(short(3));
    bytes.extend(entry(0x829a, 5, 1, &long(98)));
    bytes.extend(entry(0xa002, 3, 1, &value(7)));
    bytes.extend(entry(0xa003, 3, 1, &value(5)));
    bytes.extend(long(0));
    bytes.extend([long(1), long(125)].concat());
    bytes
}

/// Returns whether bytes contain others.
fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|own| own == part)
}

/// Applies an effect to an image.
fn applied(effect: &str, settings: &[&str], image: &Image) -> Image {
    Reference.run(&chain(effect, settings).unwrap()[0], std::slice::from_ref(image)).unwrap()
}

fn keep(folder: &Folder, from: &str, to: &str) -> Image {
    let image = read(folder.file(from)).unwrap();
    write(folder.file(to), &image).unwrap();
    read(folder.file(to)).unwrap()
}

#[test]
fn chunks_of_a_png_are_kept_bit_for_bit() {
    let folder = Folder::new();
    let xmp = b"XML:com.adobe.xmp\0\0\0\0\0<x tiff:Orientation=\"6\"/>";
    let kept: Vec<(&[u8; 4], Vec<u8>)> = vec![
        (b"iCCP", iccp("P", &profile(b"RGB ", false))),
        (b"gAMA", 50_000u32.to_be_bytes().to_vec()),
        (b"cHRM", (0..8u32).flat_map(|value| (value * 10_000 + 7).to_be_bytes()).collect()),
        (b"cICP", vec![9, 16, 0, 1]),
        (b"mDCV", vec![1; 24]),
        (b"pHYs", vec![0, 0, 0x2e, 0x23, 0, 0, 0x2e, 0x24, 1]),
        (b"eXIf", exif(6, true)),
        (b"tEXt", b"Author\0a person".to_vec()),
        (b"iTXt", xmp.to_vec()),
        (b"prVt", vec![5; 9]),
    ];
    let lost: [(&[u8; 4], &[u8]); 3] = [(b"sBIT", &[5, 6, 5]), (b"tIME", &[7, 234, 1, 1, 1, 1, 1]), (b"prVT", &[1])];
    let made = kept.iter().map(|(kind, bytes)| chunk(kind, bytes)).chain(lost.iter().map(|(kind, bytes)| chunk(kind, bytes)));
    std::fs::write(folder.file("in.png"), png(&folder, &made.collect::<Vec<_>>())).unwrap();
    let image = read(folder.file("in.png")).unwrap();
    assert_eq!(
        image.metadata().losses,
        ["chunks that depend on the pixels or are broken are not kept: prVT, sBIT, tIME"],
        "{:?}",
        image.metadata()
    );
    let result = applied("box", &["radius=0"], &image);
    assert_eq!(losses("out.png", &result, None), Vec::<String>::new());
    write_as(folder.file("out.png"), &result, Some(SampleType::U8)).unwrap();
    let found = chunks(&folder.file("out.png"));
    for (kind, bytes) in &kept {
        let kind = String::from_utf8_lossy(&kind[..]);
        assert_eq!(found.iter().filter(|(own, _)| *own == kind).map(|(_, bytes)| bytes).collect::<Vec<_>>(), [bytes], "{kind}");
    }
    let others = ["IHDR", "IDAT", "IEND"];
    assert_eq!(found.iter().filter(|(kind, _)| !others.contains(&kind.as_str())).count(), kept.len(), "{found:?}");
}

/// A PNG that says nothing is not marked as sRGB.
#[test]
fn a_png_is_marked_as_srgb_only_where_it_was() {
    let folder = Folder::new();
    let marks = |path: &str| {
        let all = chunks(&folder.file(path)).into_iter().map(|(kind, _)| kind);
        all.filter(|kind| !["IHDR", "IDAT", "IEND"].contains(&kind.as_str())).collect::<Vec<String>>()
    };
    for (made, expected) in
        [(vec![], &[][..]), (vec![chunk(b"sRGB", &[1])], &["sRGB"]), (vec![chunk(b"gAMA", &[0, 1, 0x86, 0xa0])], &["gAMA"])]
    {
        std::fs::write(folder.file("in.png"), png(&folder, &made)).unwrap();
        keep(&folder, "in.png", "out.png");
        assert_eq!(marks("out.png"), expected);
    }
    std::fs::write(folder.file("in.jpg"), GREY).unwrap();
    keep(&folder, "in.jpg", "out.png");
    assert_eq!(marks("out.png"), Vec::<String>::new());
}

/// Inserts segments behind the start of a JPEG.
fn jpeg(segments: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = GREY[..2].to_vec();
    for (marker, content) in segments {
        bytes.extend([0xff, *marker]);
        bytes.extend((content.len() as u16 + 2).to_be_bytes());
        bytes.extend(content);
    }
    bytes.extend(&GREY[2..]);
    bytes
}

#[test]
fn metadata_of_a_jpeg_reach_png_and_tiff() {
    let folder = Folder::new();
    let icc = profile(b"GRAY", false);
    let (first, second) = icc.split_at(100);
    // Parts of a profile have any order.
    let segments = [
        (0xe2, [&b"ICC_PROFILE\0\x02\x02"[..], second].concat()),
        (0xe0, b"JFIF\0\x01\x02\x01\x00\xc8\x00\x64\0\0".to_vec()),
        (0xe1, [&b"Exif\0\0"[..], &exif(8, false)].concat()),
        (0xe1, b"http://ns.adobe.com/xap/1.0/\0<x/>".to_vec()),
        (0xe2, [&b"ICC_PROFILE\0\x01\x02"[..], first].concat()),
        (0xed, b"Photoshop 3.0\x008BIM".to_vec()),
        (0xfe, b"a comment".to_vec()),
    ];
    std::fs::write(folder.file("in.jpg"), jpeg(&segments)).unwrap();
    for name in ["out.png", "out.tif"] {
        let back = keep(&folder, "in.jpg", name);
        let metadata = back.metadata();
        assert_eq!(metadata.color.profile, Some(Profile::new(icc.clone())), "{name}");
        assert_eq!((back.orientation(), metadata.xmp.as_deref()), (Orientation::Anticlockwise, Some(&b"<x/>"[..])), "{name}");
        let (x, y) = metadata.resolution.unwrap().per(Length::Inch).unwrap();
        assert!((x - 200.0).abs() < 0.01 && (y - 100.0).abs() < 0.01, "{name}: {x} {y}");
        let bytes = std::fs::read(folder.file(name)).unwrap();
        assert!(has(&bytes, b"Maker\0") && has(&bytes, &[1, 0, 0, 0, 125, 0, 0, 0]), "{name}");
    }
    // A TIFF holds the resources of Photoshop.
    assert!(has(&std::fs::read(folder.file("out.tif")).unwrap(), b"8BIM"));
    let image = read(folder.file("in.jpg")).unwrap();
    let missing = "not written, because PNG does not hold it: the comment of the JPEG, TIFF Photoshop resources";
    assert_eq!(losses("x.png", &image, None), [missing]);
    assert_eq!((losses("x.jpg", &image, None), image.metadata().losses.clone()), (vec![], vec![]));
    keep(&folder, "in.jpg", "out.jpg");
    let bytes = std::fs::read(folder.file("out.jpg")).unwrap();
    assert!(has(&bytes, b"\xff\xfe\0\x0ba comment") && has(&bytes, b"Photoshop 3.0\x008BIM"));
    // From TIFF to PNG and back.
    keep(&folder, "out.tif", "again.png");
    let back = keep(&folder, "again.png", "again.tif");
    assert_eq!(back.metadata().color.profile, Some(Profile::new(icc)));
    assert!(has(&std::fs::read(folder.file("again.tif")).unwrap(), b"Maker\0"));
}

/// Makes a TIFF of 2 × 1 grey pixels with fields of bytes, in little-endian order. `next` is the place of the next page.
fn tiff(fields: &[(u16, u16, Vec<u8>)], next: u32) -> Vec<u8> {
    let size = |kind: u16| [0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8][usize::from(kind)];
    let mut all: Vec<(u16, u16, Vec<u8>)> =
        [(256, 2u16), (257, 1), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1), (278, 1), (279, 2)]
            .map(|(tag, value)| (tag, 3, value.to_le_bytes().to_vec()))
            .to_vec();
    all.extend(fields.iter().cloned());
    all.sort();
    let mut bytes = b"II*\0\0\0\0\0\x11\x22".to_vec();
    let mut entries = vec![];
    for (tag, kind, value) in &all {
        let mut own = value.clone();
        if value.len() > 4 {
            own = (bytes.len() as u32).to_le_bytes().to_vec();
            bytes.extend(value);
        }
        own.resize(4, 0);
        let count = (value.len() / size(*kind)) as u32;
        entries.extend([&tag.to_le_bytes()[..], &kind.to_le_bytes(), &count.to_le_bytes(), &own].concat());
    }
    let place = bytes.len() as u32;
    bytes[4..8].copy_from_slice(&place.to_le_bytes());
    bytes.extend((all.len() as u16).to_le_bytes());
    bytes.extend(entries);
    bytes.extend(next.to_le_bytes());
    bytes
}

#[test]
fn fields_of_a_tiff_are_kept() {
    let folder = Folder::new();
    let longs = |values: &[u32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let doubles: Vec<u8> = [2.0f64, 2.0, 0.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let fields = [
        (270, 2, b"a picture of two pixels\0".to_vec()),
        (274, 3, vec![3, 0]),
        (282, 5, longs(&[2_997, 10])),
        (283, 5, longs(&[600, 2])),
        (296, 3, vec![2, 0]),
        (318, 5, longs(&[3127, 10_000, 329, 1000])),
        (319, 5, longs(&[64, 100, 33, 100, 3, 10, 6, 10, 15, 100, 6, 100])),
        (700, 1, b"<xmp tiff:Orientation='3'/>".to_vec()),
        (33550, 12, doubles),
        (33723, 7, b"IPTC as it is".to_vec()),
        (34675, 7, profile(b"GRAY", false)),
        (65000, 11, longs(&[1, 2, 3])),
    ];
    std::fs::write(folder.file("in.tif"), tiff(&fields, 0)).unwrap();
    let image = read(folder.file("in.tif")).unwrap();
    assert_eq!(losses("x.tif", &image, None), Vec::<String>::new());
    let resolution = Resolution { x: (2_997, 10), y: (600, 2), unit: Length::Inch };
    assert_eq!((image.orientation(), image.metadata().resolution), (Orientation::Turned, Some(resolution)));
    keep(&folder, "in.tif", "out.tif");
    let written = std::fs::read(folder.file("out.tif")).unwrap();
    let entry = |tag: u16, kind: u16| [tag.to_le_bytes(), kind.to_le_bytes()].concat();
    for (tag, kind, value) in &fields {
        assert!(has(&written, value) && has(&written, &entry(*tag, *kind)), "tag {tag}");
    }
    let said = losses("x.exr", &image.clone().with_color(ColorSpace::Linear), None);
    assert_eq!(
        said,
        [
            "not written, because EXR does not hold it: XMP, TIFF ImageDescription, TIFF ModelPixelScale, TIFF IPTC, TIFF tag 65000",
            "the pixels are turned upright: EXR holds no orientation",
        ]
    );
    // The place on a map is false for other pixels, and the orientation of XMP follows.
    let upright = image.upright().unwrap();
    assert_eq!(
        losses("x.tif", &upright, None),
        ["fields that are false where pixels have moved are not written: ModelPixelScale"]
    );
    write(folder.file("up.tif"), &upright).unwrap();
    let written = std::fs::read(folder.file("up.tif")).unwrap();
    assert!(has(&written, b"tiff:Orientation='1'") && !has(&written, &entry(33550, 12)));
    assert_eq!(values(&upright), [[f32::from(0x22u8) / 255.0, f32::from(0x11u8) / 255.0]]);
}

#[test]
fn pages_and_frames_that_are_not_read_are_named() {
    let folder = Folder::new();
    let single = tiff(&[], 0);
    // A place that the file does not have is no page.
    std::fs::write(folder.file("in.tif"), tiff(&[], 1 << 30)).unwrap();
    assert!(read(folder.file("in.tif")).unwrap().metadata().losses.is_empty());
    // The third page says that the second one follows: a chain without an end.
    let mut endless = tiff(&[], single.len() as u32);
    let (second, third) = (endless.len() as u32, endless.len() as u32 + 6);
    endless.extend([&[0, 0][..], &third.to_le_bytes(), &[0, 0], &second.to_le_bytes()].concat());
    std::fs::write(folder.file("in.tif"), endless).unwrap();
    assert!(read(folder.file("in.tif")).unwrap().metadata().losses.concat().contains("its pages 2 to 3 are not kept"));
    let mut three = tiff(&[], single.len() as u32);
    for last in [false, true] {
        let next = if last { 0 } else { three.len() as u32 + 6 };
        three.extend([&[0, 0][..], &next.to_le_bytes()].concat());
    }
    std::fs::write(folder.file("in.tif"), three).unwrap();
    let image = read(folder.file("in.tif")).unwrap();
    assert_eq!(image.metadata().losses, ["its pages 2 to 3 are not kept: they are too large or of a kind that is not copied"]);
    let animated = png(&folder, &[chunk(b"acTL", &[0, 0, 0, 4, 0, 0, 0, 0])]);
    std::fs::write(folder.file("in.png"), animated).unwrap();
    assert_eq!(read(folder.file("in.png")).unwrap().metadata().losses, ["only the first of its 4 frames is read"]);
}

/// Pages behind the first are copied to a TIFF bit for bit, and named elsewhere.
#[test]
fn pages_of_a_tiff_are_copied() {
    use tiff::encoder::{TiffEncoder, colortype::Gray16, colortype::RGB8};
    let folder = Folder::new();
    let mut file = std::io::Cursor::new(vec![]);
    let mut encoder = TiffEncoder::new(&mut file).unwrap();
    encoder.write_image::<RGB8>(2, 1, &[1, 2, 3, 4, 5, 6]).unwrap();
    let second: Vec<u16> = (0..70 * 40).map(|at| at * 23).collect();
    encoder.write_image::<Gray16>(70, 40, &second).unwrap();
    encoder.write_image::<RGB8>(1, 2, &[9, 8, 7, 6, 5, 4]).unwrap();
    std::fs::write(folder.file("in.tif"), file.into_inner()).unwrap();
    let image = read(folder.file("in.tif")).unwrap();
    assert_eq!(losses("x.tif", &image, None), ["only the first of 3 pages is changed; the others are copied as they are"]);
    assert_eq!(losses("x.png", &image, None), ["not written, because PNG does not hold it: the pages behind the first (2)"]);
    write_as(folder.file("out.tif"), &image.converted(SampleType::U16), None).unwrap();
    let mut decoder = tiff::decoder::Decoder::new(std::fs::File::open(folder.file("out.tif")).unwrap()).unwrap();
    let mut pages = vec![];
    loop {
        pages.push((decoder.dimensions().unwrap(), decoder.read_image().unwrap()));
        if !decoder.more_images() {
            break;
        }
        decoder.next_image().unwrap();
    }
    assert_eq!(pages.iter().map(|(size, _)| *size).collect::<Vec<_>>(), [(2, 1), (70, 40), (1, 2)]);
    assert!(matches!(&pages[1].1, tiff::decoder::DecodingResult::U16(samples) if *samples == second));
    assert!(matches!(&pages[2].1, tiff::decoder::DecodingResult::U8(samples) if *samples == [9, 8, 7, 6, 5, 4]));
}

#[test]
fn a_profile_stays_with_its_colours() {
    let folder = Folder::new();
    let mut image = noise(4, 3, &["R", "G", "B"], 1).with_color(ColorSpace::Srgb);
    image.metadata_mut().color = Default::default();
    image.metadata_mut().color.profile = Some(Profile::new(profile(b"RGB ", false)));
    let grey = applied("harris", &[] as &[&str], &image);
    for name in ["x.png", "x.tif"] {
        let said = losses(name, &grey, Some(SampleType::U8));
        assert_eq!(said, ["the ICC profile is not written: it is for RGB, and the image is grey"]);
        write_as(folder.file(name), &grey, Some(SampleType::U8)).unwrap();
        assert_eq!(read(folder.file(name)).unwrap().metadata().color, Default::default());
        write_as(folder.file(name), &image, Some(SampleType::U8)).unwrap();
        assert_eq!(read(folder.file(name)).unwrap().metadata().color, image.metadata().color);
    }
    // Other colours cannot be in an EXR. Those of sRGB can.
    let Err(error) = write(folder.file("x.exr"), &image) else { panic!("it is written") };
    assert!(error.to_string().contains("an EXR holds no ICC profile, and its colours would be taken"), "{error}");
    assert_eq!(losses("x.pfm", &image, None)[0], "not written, because PFM does not hold it: the ICC profile `Test`");
    assert_eq!(image.encoding_doubt().unwrap(), "its ICC profile `Test` has other curves");
    image.metadata_mut().color.profile = Some(Profile::new(profile(b"RGB ", true)));
    assert!(image.encoding_doubt().is_none());
    write(folder.file("x.exr"), &image).unwrap();
    assert_eq!(losses("x.exr", &image, None)[0], "not written, because EXR does not hold it: the ICC profile `Test`");
}

/// The numbers are those of EXIF 2.32, table 4.6.4: places of the first row and the first column.
#[test]
fn orientations_turn_pixels() {
    let folder = Folder::new();
    let image = Image::from_f32(3, 2, [("Y", vec![0.0, 0.1, 0.2, 0.3, 0.4, 0.5])]).unwrap();
    let expected: [&[f32]; 8] = [
        &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5],
        &[0.2, 0.1, 0.0, 0.5, 0.4, 0.3],
        &[0.5, 0.4, 0.3, 0.2, 0.1, 0.0],
        &[0.3, 0.4, 0.5, 0.0, 0.1, 0.2],
        &[0.0, 0.3, 0.1, 0.4, 0.2, 0.5],
        &[0.3, 0.0, 0.4, 0.1, 0.5, 0.2],
        &[0.5, 0.2, 0.4, 0.1, 0.3, 0.0],
        &[0.2, 0.5, 0.1, 0.4, 0.0, 0.3],
    ];
    for (number, expected) in (1..).zip(expected) {
        let orientation = Orientation::of_number(number).unwrap();
        let turned = image.clone().with_orientation(Some(orientation));
        let upright = turned.upright().unwrap();
        assert_eq!(values(&upright), [expected], "{orientation:?}");
        assert_eq!((upright.width(), upright.height()), if number > 4 { (2, 3) } else { (3, 2) });
        assert_eq!(upright.orientation(), Orientation::Upright);
        for name in ["x.png", "x.tif"] {
            write(folder.file(name), &turned).unwrap();
            assert_eq!(read(folder.file(name)).unwrap().orientation(), orientation, "{name}");
        }
        // EXR and PFM hold no orientation.
        for name in ["x.exr", "x.pfm"] {
            write(folder.file(name), &turned).unwrap();
            assert_eq!(values(&read(folder.file(name)).unwrap()), [expected], "{name}: {orientation:?}");
        }
    }
    assert_eq!((Orientation::of_number(0), Orientation::of_number(9)), (None, None));
}

#[test]
fn exif_says_nothing_false() {
    let folder = Folder::new();
    for is_big_endian in [false, true] {
        let block = exif(6, is_big_endian);
        std::fs::write(folder.file("in.png"), png(&folder, &[chunk(b"eXIf", &block)])).unwrap();
        let image = read(folder.file("in.png")).unwrap();
        let written = |image: &Image| {
            write(folder.file("out.png"), image).unwrap();
            let back = read(folder.file("out.png")).unwrap();
            (back.orientation(), back.metadata().exif.as_ref().unwrap().to_vec())
        };
        assert_eq!(written(&image), (Orientation::Clockwise, block.clone()));
        // Upright, and of another size: the numbers change in place.
        let upright = image.upright().unwrap();
        let (orientation, changed) = written(&upright);
        assert_eq!((orientation, changed.len(), changed != block), (Orientation::Upright, block.len(), true));
        let small = applied("resize", &["width=2", "height=9"], &image);
        let (orientation, changed) = written(&small);
        assert_eq!(orientation, Orientation::Clockwise);
        let size = |width: u8, height: u8| match is_big_endian {
            true => [[0, 3, 0, 0, 0, 1, 0, width, 0, 0], [0, 3, 0, 0, 0, 1, 0, height, 0, 0]],
            false => [[3, 0, 1, 0, 0, 0, width, 0, 0, 0], [3, 0, 1, 0, 0, 0, height, 0, 0, 0]],
        };
        assert!(size(7, 5).iter().all(|field| has(&block, field)));
        assert!(size(2, 9).iter().all(|field| has(&changed, field)), "{changed:?}");
        // A block without an orientation gets one.
        let mut bare = image.clone();
        let mut none = block.clone();
        let at = none.windows(2).position(|tag| tag == if is_big_endian { [1, 18] } else { [18, 1] }).unwrap();
        none[at..at + 2].copy_from_slice(if is_big_endian { &[1, 19] } else { &[19, 1] });
        bare.metadata_mut().exif = Some(none.into());
        let (orientation, changed) = written(&bare);
        assert_eq!((orientation, has(&changed, b"Maker\0")), (Orientation::Clockwise, true));
    }
}

#[test]
fn alpha_is_labelled_and_converted() {
    let folder = Folder::new();
    let planes = |color: f32| [("R", vec![color, 0.0]), ("G", vec![0.25, 0.0]), ("B", vec![0.0, 0.5]), ("A", vec![0.5, 0.0])];
    let image = Image::from_f32(2, 1, planes(0.5)).unwrap();
    let associated = image.clone().with_alpha(Alpha::Associated);
    let straight = image.with_alpha(Alpha::Straight);
    for image in [&associated, &straight] {
        write(folder.file("x.tif"), image).unwrap();
        let back = read(folder.file("x.tif")).unwrap();
        assert_eq!((back.alpha(), values(&back)), (image.alpha(), values(image)), "a TIFF holds either");
        assert!(losses("x.tif", image, None).is_empty());
    }
    // PNG is straight, EXR is associated.
    write(folder.file("x.png"), &associated).unwrap();
    let back = read(folder.file("x.png")).unwrap();
    let near = |image: &Image, place: usize, expected: f32| (values(image)[place / 2][place % 2] - expected).abs() < 1e-4;
    assert!(near(&back, 0, 1.0) && near(&back, 2, 0.5) && near(&back, 6, 0.5) && back.alpha() == Alpha::Straight);
    assert_eq!(
        losses("x.png", &associated, None),
        ["colours are divided by alpha: PNG holds straight alpha; colours of 1 pixels with an alpha of 0 are not shown"]
    );
    write(folder.file("x.exr"), &straight).unwrap();
    let back = read(folder.file("x.exr")).unwrap();
    assert_eq!((back.alpha(), values(&back)[0][0], values(&back)[1][0]), (Alpha::Associated, 0.25, 0.125));
    assert_eq!(losses("x.exr", &straight, None), ["colours are multiplied by alpha: EXR holds associated alpha"]);
    write(folder.file("x.png"), &straight).unwrap();
    assert!(near(&read(folder.file("x.png")).unwrap(), 0, 0.5) && losses("x.png", &straight, None).is_empty());
    // Curves of colours are those of straight colours.
    let encoded = associated.with_color(ColorSpace::Srgb).to_linear();
    assert_eq!(values(&encoded)[0][0], 0.5, "1.0, encoded and linear, times 0.5");
}

/// `key` has the alpha that it says, whichever alpha its input has.
#[test]
fn keys_have_the_alpha_that_they_say() {
    let rgb = [("R", vec![0.3f32]), ("G", vec![0.5]), ("B", vec![0.3]), ("A", vec![0.5])];
    let run = |alpha: Alpha, premultiply: &str| {
        let image = Image::from_f32(1, 1, rgb.clone()).unwrap().with_alpha(alpha);
        let settings = ["tolerance=0", "softness=1", "spill=0", &format!("premultiply={premultiply}")];
        let result = applied("key", &settings, &image);
        (result.alpha(), [0, 3].map(|plane| values(&result)[plane][0]))
    };
    let (alpha, [color, opacity]) = run(Alpha::Straight, "no");
    assert_eq!((alpha, color), (Alpha::Straight, 0.3));
    assert!(opacity > 0.01 && opacity < 0.49, "{opacity}");
    let (alpha, [multiplied, same]) = run(Alpha::Straight, "yes");
    assert_eq!((alpha, same), (Alpha::Associated, opacity));
    assert!((multiplied - 0.3 * opacity).abs() < 1e-6);
    let (alpha, [multiplied, _]) = run(Alpha::Associated, "yes");
    assert!(alpha == Alpha::Associated && (multiplied - 0.3 * opacity / 0.5).abs() < 1e-6);
    let (alpha, [divided, _]) = run(Alpha::Associated, "no");
    assert!(alpha == Alpha::Straight && (divided - 0.6).abs() < 1e-6);
}

#[test]
fn effects_on_colour_leave_alpha_alone() {
    let image = noise(9, 8, &["Y", "A"], 4);
    for effect in ["tone_map", "curves", "clahe", "local_laplacian"] {
        let settings: &[&str] = if effect == "curves" { &["points=0,0,1,0.5"] } else { &[] };
        let result = applied(effect, settings, &image);
        assert_eq!(values(&result)[1], values(&image)[1], "{effect}");
        assert_ne!(values(&result)[0], values(&image)[0], "{effect}");
    }
}

#[test]
fn identifiers_pass_through() {
    let folder = Folder::new();
    let identifiers = vec![u32::MAX, (1 << 24) + 1, 0, 0xdead_beef, 7, 1 << 31];
    let mut planes = noise(3, 2, &["R", "G", "B"], 1).planes().to_vec();
    planes.push(Plane::new("id", 3, 2, identifiers.clone()).unwrap());
    write(folder.file("in.exr"), &Image::new(Rect::sized(3, 2), planes).unwrap()).unwrap();
    let image = read(folder.file("in.exr")).unwrap();
    for settings in ["box", "harris"] {
        let steps = chain(settings, &[] as &[&str]).unwrap();
        let chained = broadloom_effect::catalogue::Chain {
            steps: &steps,
            inputs: std::slice::from_ref(&image),
            further: &[],
            planes: &[],
            region: None,
        };
        let result = Reference.run_chain(&chained, &mut |_, _| {}).unwrap();
        write(folder.file("out.exr"), &result).unwrap();
        let back = read(folder.file("out.exr")).unwrap();
        let found: Vec<u32> = (0..2).flat_map(|y| back.plane("id").unwrap().row::<u32>(y).unwrap().to_vec()).collect();
        assert_eq!(found, identifiers, "{settings}");
    }
    // Formats that would change them are refused, and hold what they can.
    for (name, problem) in [("x.png", "u16"), ("x.tif", "f32")] {
        let error = write(folder.file(name), &image).unwrap_err().problem.to_string();
        assert_eq!(error, format!("the plane `id` has 32-bit integers that {problem} does not hold: write .exr"));
    }
    let small = Image::new(Rect::sized(2, 1), vec![Plane::new("id", 2, 1, vec![5u32, 1 << 24]).unwrap()]).unwrap();
    write(folder.file("x.pfm"), &small).unwrap();
    assert_eq!(values(&read(folder.file("x.pfm")).unwrap()), [[5.0, 16_777_216.0]]);
}

/// Returns an attribute of an EXR.
fn attribute(name: &str, kind: &str, bytes: &[u8]) -> Vec<u8> {
    [name.as_bytes(), b"\0", kind.as_bytes(), b"\0", &(bytes.len() as u32).to_le_bytes(), bytes].concat()
}

/// Makes an EXR of two parts with one row of two pixels each: floats `Y` at (0, 0), integers `id` at (1, 0).
fn parts() -> Vec<u8> {
    let window = |x: i32| [x, 0, x + 1, 0].iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let header = |name: &str, channel: &str, kind: u32, x: i32| {
        let numbers = [kind, 0, 1, 1].into_iter().flat_map(u32::to_le_bytes);
        let list: Vec<u8> = channel.bytes().chain([0]).chain(numbers).chain([0]).collect();
        [
            attribute("channels", "chlist", &list),
            attribute("chunkCount", "int", &1u32.to_le_bytes()),
            attribute("compression", "compression", &[0]),
            attribute("dataWindow", "box2i", &window(x)),
            attribute("displayWindow", "box2i", &window(0)),
            attribute("lineOrder", "lineOrder", &[0]),
            attribute("name", "string", name.as_bytes()),
            attribute("note", "string", format!("of {name}").as_bytes()),
            attribute("pixelAspectRatio", "float", &1f32.to_le_bytes()),
            attribute("screenWindowCenter", "v2f", &[0; 8]),
            attribute("screenWindowWidth", "float", &1f32.to_le_bytes()),
            attribute("type", "string", b"scanlineimage"),
            vec![0],
        ]
        .concat()
    };
    let mut bytes = b"\x76\x2f\x31\x01\x02\x10\0\0".to_vec();
    bytes.extend([header("left", "Y", 2, 0), header("right", "id", 0, 1), vec![0]].concat());
    let first = bytes.len() as u64 + 16;
    bytes.extend([first.to_le_bytes(), (first + 20).to_le_bytes()].concat());
    for (part, values) in [(0u32, [0.5f32.to_bits(), 0.25f32.to_bits()]), (1, [0xffff_fffe, 3])] {
        bytes.extend([part, 0, 8, values[0], values[1]].iter().flat_map(|value| value.to_le_bytes()));
    }
    bytes
}

#[test]
fn parts_and_attributes_of_an_exr_are_kept() {
    let folder = Folder::new();
    std::fs::write(folder.file("in.exr"), parts()).unwrap();
    let image = read(folder.file("in.exr")).unwrap();
    assert_eq!(image.names().collect::<Vec<_>>(), ["left.Y", "right.id"]);
    assert_eq!(image.plane("right.id").unwrap().row::<u32>(0), Some(&[0, 0xffff_fffe, 3][..]));
    assert!(losses("x.exr", &image, None).is_empty());
    let said = losses("x.tif", &image, None).concat();
    assert!(said.contains("attribute name, attribute note") && said.contains("the data and the display window"), "{said}");
    let back = keep(&folder, "in.exr", "out.exr");
    assert_eq!(back.names().collect::<Vec<_>>(), ["left.Y", "right.id"]);
    assert_eq!(back.plane("right.id").unwrap().row::<u32>(0), Some(&[0, 0xffff_fffe, 3][..]));
    let (before, written) = (parts(), std::fs::read(folder.file("out.exr")).unwrap());
    // Two parts, each with its name, its window and its own attribute.
    assert_eq!(written[5], 0x10);
    for name in ["left", "right"] {
        let note = attribute("note", "string", format!("of {name}").as_bytes());
        assert!(has(&before, &note) && has(&written, &note) && has(&written, &attribute("name", "string", name.as_bytes())));
    }
    let right = attribute("dataWindow", "box2i", &[1u32, 0, 2, 0].map(u32::to_le_bytes).concat());
    assert!(has(&before, &right) && has(&written, &right));
    // A part of the image has both parts, over the same pixels.
    write(folder.file("out.exr"), &back.view(Rect::new(1, 0, 2, 1)).unwrap()).unwrap();
    let region = read(folder.file("out.exr")).unwrap();
    assert_eq!(region.plane("right.id").unwrap().row::<u32>(0), Some(&[0xffff_fffe, 3][..]));
}

#[test]
fn chromaticities_and_resolutions_reach_other_formats() {
    let folder = Folder::new();
    let mut image = noise(3, 2, &["R", "G", "B"], 1);
    let chromaticities = [0.3127, 0.329, 0.7, 0.3, 0.2, 0.7, 0.15, 0.05];
    image.metadata_mut().color.chromaticities = Some(chromaticities);
    image.metadata_mut().resolution = Some(Resolution { x: (11811, 1), y: (23622, 1), unit: Length::Metre });
    for name in ["x.png", "x.tif", "x.exr"] {
        write(folder.file(name), &image).unwrap();
        let back = read(folder.file(name)).unwrap();
        let found = back.metadata().color.chromaticities.unwrap();
        assert!(found.iter().zip(chromaticities).all(|(a, b)| (a - b).abs() < 1e-6), "{name}: {found:?}");
        let (x, y) = back.metadata().resolution.unwrap().per(Length::Inch).unwrap();
        assert!((x - 300.0).abs() < 0.01 && (y - 600.0).abs() < 0.01, "{name}: {x} {y}");
    }
    assert_eq!(losses("x.pfm", &image, None), ["not written, because PFM does not hold it: chromaticities, the resolution"]);
}

/// Writes an image to all formats. Metadata may be lost, but nothing else may happen.
fn write_everywhere(folder: &Folder, image: &Image) {
    for name in ["y.png", "y.tif", "y.exr", "y.pfm"] {
        losses(name, image, None);
        if let Err(error) = write(folder.file(name), image) {
            assert!(matches!(error.problem, Problem::Unsupported(_) | Problem::Planes { .. }), "{error}");
        } else {
            read(folder.file(name)).unwrap_or_else(|error| panic!("{name} is broken: {error}"));
        }
    }
}

#[test]
fn broken_metadata_never_panic() {
    let folder = Folder::new();
    let mut random = Random(11);
    let longs = |values: &[u32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let icc = profile(b"GRAY", true);
    let pieces = [chunk(b"iCCP", &iccp("P", &profile(b"RGB ", true))), chunk(b"eXIf", &exif(6, false)), chunk(b"tEXt", b"a\0b")];
    let tags = [
        (271, 2, b"a maker\0".to_vec()),
        (274, 3, vec![6, 0]),
        (282, 5, longs(&[0, 0])),
        (283, 5, longs(&[u32::MAX, 0])),
        (34675, 7, icc.clone()),
        (34665, 4, longs(&[8])),
        (34853, 4, longs(&[u32::MAX])),
    ];
    let segments = [
        (0xe1, [&b"Exif\0\0"[..], &exif(7, true)].concat()),
        (0xe2, [&b"ICC_PROFILE\0\x01\x01"[..], &icc].concat()),
        (0xe0, b"JFIF\0\x01\x02\x01\0\0\0\0\0\0".to_vec()),
    ];
    let files = [
        ("x.png", png(&folder, &pieces), 33),
        ("x.tif", tiff(&tags, 8), 10),
        ("x.jpg", jpeg(&segments), 2),
        ("x.exr", parts(), 8),
    ];
    let mut read_files = 0;
    for (name, sound, first) in files {
        let end = if name == "x.jpg" { sound.len() - GREY.len() } else { sound.len() };
        for round in 0..100 {
            let mut broken = sound.clone();
            for _ in 0..=round % 3 {
                let at = first + (random.bits() % (end - first) as u64) as usize;
                match random.bits() % 4 {
                    0 => broken[at] ^= 1 << (random.bits() % 8),
                    1 => broken[at] = 0xff,
                    2 => broken[at..].iter_mut().take(4).for_each(|byte| *byte = 0xff),
                    _ => broken[at..].iter_mut().take(8).for_each(|byte| *byte = 0),
                }
            }
            if name == "x.png" {
                repair(&mut broken);
            }
            std::fs::write(folder.file(name), &broken).unwrap();
            match read(folder.file(name)) {
                Ok(image) => {
                    read_files += 1;
                    write_everywhere(&folder, &image);
                    write_everywhere(&folder, &image.upright().unwrap());
                }
                Err(error) => assert!(!error.is_of_machine(), "{error}"),
            }
        }
    }
    assert!(read_files > 120, "{read_files} files are read");
}

/// Corrects the checksums of the chunks of a PNG, so that its metadata are read.
fn repair(bytes: &mut [u8]) {
    let mut at = 8;
    while at + 12 <= bytes.len() {
        let len = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let Some(body) = bytes.get(at + 4..at + 8 + len).filter(|_| at + 12 + len <= bytes.len()) else { return };
        let sum = crc(body).to_be_bytes();
        bytes[at + 8 + len..at + 12 + len].copy_from_slice(&sum);
        at += 12 + len;
    }
}

/// A chunk of 130 KB that would be a profile of 20 MB is not kept.
#[test]
fn a_profile_cannot_fill_the_memory() {
    let folder = Folder::new();
    // Deflate with fixed codes: a zero, then copies of 258 bytes at distance 1: 8 bits 11000101 and 5 bits 00000.
    let mut bits: Vec<u8> = vec![1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0];
    let copies = 20_000_000 / 258;
    (0..copies).for_each(|_| bits.extend([1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0]));
    bits.extend([0; 7]);
    let stream: Vec<u8> = bits.chunks(8).map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit)).collect();
    let pieces = [chunk(b"iCCP", &[&b"P\0\0\x78\x01"[..], &stream, &[0; 4]].concat())];
    std::fs::write(folder.file("x.png"), png(&folder, &pieces)).unwrap();
    let image = read(folder.file("x.png")).unwrap();
    assert!(image.metadata().color.profile.is_none());
    assert_eq!(image.metadata().losses, ["chunks that depend on the pixels or are broken are not kept: iCCP"]);
}
