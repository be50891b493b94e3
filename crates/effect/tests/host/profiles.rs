//! Tests of files of other programs: colours against LittleCMS, whose values are in `files/colors.txt`, and deep pixels.

use broadloom_effect::file::{Limits, decode};
use broadloom_effect::image::TargetSpace;

/// Files with a profile, and the largest difference in steps of 8 bits: primaries and a gamma, tables of RGB, and tables of
/// CMYK, which become sRGB when they are read. The library takes samples of tables.
const FILES: [(&str, &[u8], f32); 3] = [
    ("matrix.png", include_bytes!("files/matrix.png"), 0.1),
    ("table.png", include_bytes!("files/table.png"), 7.0),
    ("cmyk.tif", include_bytes!("files/cmyk.tif"), 7.0),
];

#[test]
fn profiles_give_the_colours_of_littlecms() {
    let mut worst = vec![];
    for (name, bytes, most) in FILES {
        let image = decode(name, bytes.to_vec(), Limits::default()).unwrap().to_space(TargetSpace::Srgb).unwrap();
        let found: Vec<Vec<f32>> = image.planes().iter().map(|plane| plane.to_f32()).collect();
        let lines = include_str!("files/colors.txt").lines().filter_map(|line| line.strip_prefix(name));
        let expected: Vec<f32> = lines.flat_map(str::split_whitespace).map(|number| number.parse().unwrap()).collect();
        assert_eq!((expected.len(), found.len(), image.width()), (90, 3, 30), "{name}");
        let of = |at: usize| (found[at % 3][at / 3].clamp(0.0, 1.0) - expected[at]).abs() * 255.0;
        worst.push((name, (0..90).map(of).fold(0.0, f32::max), most));
    }
    assert!(worst.iter().all(|(_, worst, most)| worst < most), "{worst:?}");
}

#[test]
fn deep_pixels_are_told() {
    let error = decode("deep.exr", include_bytes!("files/deep.exr").to_vec(), Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), "deep.exr: an EXR with deep pixels, which are not read: flatten it before");
}
