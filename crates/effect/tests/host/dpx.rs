//! Tests of DPX files.

use crate::values::{Folder, equal, noise};
use broadloom_effect::file::{self, WriteOptions, read};
use broadloom_effect::image::Orientation;
use broadloom_effect::{Alpha, ColorSpace, Image, Plane, SampleType};

/// Writes an image with so many bits.
fn written(folder: &Folder, image: &Image, bits: u8) -> Vec<u8> {
    let samples = Some(if bits == 8 { SampleType::U8 } else { SampleType::U16 });
    file::write_with(folder.file("x.dpx"), image, &WriteOptions { samples, bits: Some(bits), ..WriteOptions::default() })
        .unwrap();
    std::fs::read(folder.file("x.dpx")).unwrap()
}

/// Every depth keeps its values, also where rows end inside of a word.
#[test]
fn values_of_all_depths_stay() {
    let folder = Folder::new();
    for names in [&["Y"][..], &["R", "G", "B"], &["R", "G", "B", "A"]] {
        for bits in [8u8, 10, 12, 16] {
            let most = (1u32 << bits) - 1;
            let image = noise(37, 5, names, 1).with_alpha(Alpha::Straight);
            // Values that the depth has.
            let planes = image.planes().iter().map(|plane| {
                let codes = plane.to_f32().into_iter().map(|value| (value * most as f32) as u32);
                match bits {
                    8 => Plane::new(plane.name(), 37, 5, codes.map(|code| code as u8).collect::<Vec<u8>>()),
                    _ => Plane::new(
                        plane.name(),
                        37,
                        5,
                        codes.map(|code| ((code * 65535 + most / 2) / most) as u16).collect::<Vec<u16>>(),
                    ),
                }
            });
            let image = image.with_planes(planes.collect::<Result<_, _>>().unwrap()).unwrap();
            let bytes = written(&folder, &image, bits);
            assert_eq!((&bytes[..4], bytes[803]), (&b"SDPX"[..], bits));
            assert_eq!(u32::from_be_bytes(bytes[16..20].try_into().unwrap()) as usize, bytes.len());
            assert!(equal(&read(folder.file("x.dpx")).unwrap(), &image), "{bits} bits of {names:?}");
        }
    }
}

/// The samples of a pixel of 10 bits begin at the highest bit; the lowest two bits are padding (SMPTE 268M, method A).
#[test]
fn words_have_the_order_of_the_standard() {
    let folder = Folder::new();
    let image = Image::from_f32(1, 1, [("R", vec![1.0]), ("G", vec![0.0]), ("B", vec![513.0 / 1023.0])]).unwrap();
    let bytes = written(&folder, &image, 10);
    assert_eq!(bytes[2048..], (1023u32 << 22 | 513 << 2).to_be_bytes());
    // The same in the other byte order.
    let mut little = bytes.clone();
    for at in [0, 4, 772, 776, 780, 808, 812, 2048] {
        little[at..at + 4].reverse();
    }
    [768, 770, 804, 806].into_iter().for_each(|at| little[at..at + 2].reverse());
    std::fs::write(folder.file("y.dpx"), little).unwrap();
    assert!(equal(&read(folder.file("y.dpx")).unwrap(), &read(folder.file("x.dpx")).unwrap()));
    // Packed samples fill words from the lowest bit on.
    let mut packed = bytes;
    packed[804..806].fill(0);
    packed[2048..2052].copy_from_slice(&(1023u32 | 513 << 20).to_be_bytes());
    std::fs::write(folder.file("y.dpx"), packed).unwrap();
    assert!(equal(&read(folder.file("y.dpx")).unwrap(), &read(folder.file("x.dpx")).unwrap()));
}

/// The header of a file is written again, but for what describes the pixels.
#[test]
fn the_header_stays() {
    let folder = Folder::new();
    let mut bytes = written(&folder, &noise(6, 4, &["R", "G", "B"], 1), 12);
    // A project, a film roll, a mirrored image of density with 4 bytes of user data.
    bytes[260..265].copy_from_slice(b"Storm");
    bytes[1680..1685].copy_from_slice(b"R0042");
    (bytes[769], bytes[801]) = (1, 1);
    bytes.splice(2048..2048, *b"mine");
    (bytes[6], bytes[7], bytes[810], bytes[811]) = (8, 4, 8, 4);
    std::fs::write(folder.file("in.dpx"), &bytes).unwrap();
    let image = read(folder.file("in.dpx")).unwrap();
    assert_eq!((image.orientation(), image.color()), (Orientation::Mirrored, ColorSpace::Srgb));
    assert_eq!(image.encoding_doubt().unwrap(), "its DPX has the transfer characteristic 1");
    let error = image.to_space(broadloom_effect::image::TargetSpace::Srgb).unwrap_err().to_string();
    assert!(error.contains("the density of a film"), "{error}");
    assert_eq!(file::losses("x.png", &image, None), ["not written, because PNG does not hold it: the header of the DPX"]);
    assert!(file::losses("x.dpx", &image, None).is_empty());
    file::write(folder.file("out.dpx"), &image).unwrap();
    let mut again = std::fs::read(folder.file("out.dpx")).unwrap();
    // The size of the file.
    again[16..20].copy_from_slice(&bytes[16..20]);
    assert!(again == bytes);
}

#[test]
fn kinds_that_are_not_read_are_named() {
    let folder = Folder::new();
    let bytes = written(&folder, &noise(6, 4, &["R", "G", "B"], 1), 10);
    for (at, value, reason) in
        [(800, 100, "descriptor 100"), (803, 32, "32 bits"), (807, 1, "compressed by runs"), (783, 1, "signed")]
    {
        let mut other = bytes.clone();
        other[at] = value;
        std::fs::write(folder.file("y.dpx"), other).unwrap();
        let error = read(folder.file("y.dpx")).unwrap_err().to_string();
        assert!(error.contains("a DPX of a kind that is not read") && error.contains(reason), "{error}");
    }
    std::fs::write(folder.file("y.dpx"), &bytes[..2060]).unwrap();
    let error = read(folder.file("y.dpx")).unwrap_err().to_string();
    assert!(error.contains("broken DPX") && error.contains("rows of"), "{error}");
}
