//! Tests of files of other programs: colours against LittleCMS, whose values are in `files/colors.txt`, and deep pixels.

use broadloom_effect::file::{Limits, decode};
use broadloom_effect::image::TargetSpace;

/// Files with a profile: primaries and a gamma, tables of RGB, and tables of CMYK, which become sRGB when they are read.
const FILES: [(&str, &[u8]); 3] = [
    ("matrix.png", include_bytes!("files/matrix.png")),
    ("table.png", include_bytes!("files/table.png")),
    ("cmyk.tif", include_bytes!("files/cmyk.tif")),
];

#[test]
fn profiles_give_the_colours_of_littlecms() {
    for (name, bytes) in FILES {
        let image = decode(name, bytes.to_vec(), Limits::default()).unwrap().to_space(TargetSpace::Srgb).unwrap();
        let found: Vec<Vec<f32>> = image.planes().iter().map(|plane| plane.to_f32()).collect();
        let lines = include_str!("files/colors.txt").lines().filter_map(|line| line.strip_prefix(name));
        let mut count = 0;
        for (pixel, line) in lines.enumerate() {
            let expected: Vec<f32> = line.split_whitespace().map(|number| number.parse().unwrap()).collect();
            let own: Vec<f32> = found.iter().map(|plane| plane[pixel].clamp(0.0, 1.0)).collect();
            let is_near = own.iter().zip(&expected).all(|(own, expected)| (own - expected).abs() < 1.5 / 255.0);
            assert!(is_near && own.len() == expected.len(), "{name}, pixel {pixel}: {own:?}, not {expected:?}");
            count += 1;
        }
        assert_eq!((count, image.width()), (30, 30), "{name}");
    }
}

#[test]
fn deep_pixels_are_told() {
    let error = decode("deep.exr", include_bytes!("files/deep.exr").to_vec(), Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), "deep.exr: an EXR with deep pixels, which are not read: flatten it before");
}
