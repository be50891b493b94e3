//! Tests of images: sizes, pitches, regions, sample types, colour.

use broadloom_effect::image::{linear_to_srgb, srgb_to_linear};
use broadloom_effect::{ColorSpace, Image, ImageError, Plane, Rect, SampleType, Samples};
use half::f16;

#[test]
fn sizes_are_checked_before_memory_is_asked_for() {
    for (width, height) in [(0, 1), (1, 0), (1 << 31, 1), (1, u32::MAX)] {
        let expected = ImageError::Size { width: u64::from(width), height: u64::from(height) };
        assert_eq!(Image::filled(Rect::sized(width, height), &["Y"], 0u8).unwrap_err(), expected);
        assert_eq!(Plane::new("Y", width, height, Vec::<f32>::new()).unwrap_err(), expected);
    }
    let vast = Image::filled(Rect::sized(i32::MAX as u32, i32::MAX as u32), &["Y"], 0f32).unwrap_err();
    assert!(vast.to_string().starts_with("there is no memory for"), "{vast}");
    assert!(Rect::new(i32::MAX - 1, 0, 2, 1).checked().is_err());
    assert!(Rect::new(i32::MIN, i32::MIN, 5, 5).checked().is_ok());
    let none = Image::new(Rect::sized(1, 1), vec![]).unwrap_err();
    assert_eq!(none.to_string(), "an image of 0 planes: there must be from 1 to 1024");
}

#[test]
fn planes_must_fit() {
    let plane = |name: &str, width| Plane::new(name, width, 1, vec![0u8; width as usize]).unwrap();
    let two = Image::new(Rect::sized(2, 1), vec![plane("R", 2), plane("R", 2)]).unwrap_err();
    assert_eq!(two.to_string(), "two planes have the name `R`");
    let size = Image::new(Rect::sized(2, 1), vec![plane("R", 3)]).unwrap_err();
    assert_eq!(size.to_string(), "plane `R` has 3×1 pixels, the image is 2×1 at (0, 0)");
    assert!(Plane::with_pitch("R", 3, 2, 2, vec![0u8; 99]).is_err());
    assert!(Plane::with_pitch("R", 3, 2, 5, vec![0u8; 7]).is_err());
    assert!(Plane::with_pitch("R", 3, 2, 5, vec![0u8; 8]).is_ok());
    assert!(Plane::with_pitch("R", 3, 2, usize::MAX, vec![0u8; 8]).is_err());
}

#[test]
fn views_share_samples_whatever_the_pitch() {
    let (width, height, pitch) = (5u32, 4u32, 7);
    let samples: Vec<u16> = (0..pitch as u16 * height as u16).collect();
    let plane = Plane::with_pitch("diffuse.R", width, height, pitch, samples).unwrap();
    assert_eq!((plane.layer(), plane.channel()), ("diffuse", "R"));
    let image = Image::new(Rect::new(-2, 10, width, height), vec![plane]).unwrap();
    let view = image.view(Rect::new(-1, 11, 2, 3)).unwrap();
    assert_eq!(view.planes()[0].row::<u16>(2), Some(&[22u16, 23][..]));
    assert_eq!(view.planes()[0].row::<u16>(3), None);
    assert_eq!(view.planes()[0].row::<f32>(0), None);
    let again = view.view(Rect::new(0, 13, 1, 1)).unwrap();
    assert_eq!(again.planes()[0].to_f32(), [23.0 / 65535.0]);
    let (Samples::U16(whole), Samples::U16(part)) = (image.planes()[0].samples(), again.planes()[0].samples()) else {
        panic!("samples changed their type")
    };
    assert!(std::sync::Arc::ptr_eq(whole, part));
    for outside in [Rect::new(-3, 10, 2, 2), Rect::new(2, 10, 2, 1), Rect::new(0, 12, 1, 3)] {
        assert!(matches!(image.view(outside), Err(ImageError::Region { .. })));
    }
    assert!(matches!(image.view(Rect::new(0, 11, 0, 1)), Err(ImageError::Size { .. })));
}

#[test]
fn rectangles_meet_and_join() {
    let a = Rect::new(-2, -2, 4, 4);
    assert_eq!(a.intersection(Rect::new(1, 0, 9, 1)), Some(Rect::new(1, 0, 1, 1)));
    assert_eq!(a.intersection(Rect::new(2, 0, 9, 1)), None);
    assert_eq!(a.union(Rect::new(5, 0, 1, 1)), Ok(Rect::new(-2, -2, 8, 4)));
    assert!(Rect::new(i32::MIN, 0, 1, 1).union(Rect::new(i32::MAX - 1, 0, 1, 1)).is_err());
}

#[test]
fn integers_are_scaled_and_saturate() {
    let bytes = Plane::new("Y", 256, 1, (0..=255u8).collect()).unwrap();
    for through in [SampleType::F32, SampleType::U16, SampleType::F16] {
        let back = bytes.converted(through).converted(SampleType::U8);
        assert_eq!(back.row::<u8>(0), bytes.row::<u8>(0), "{through}");
    }
    let words = Plane::new("Y", 65536, 1, (0..=65535u16).collect()).unwrap();
    assert_eq!(words.converted(SampleType::F32).converted(SampleType::U16).row::<u16>(0), words.row::<u16>(0));
    let odd = Plane::new("Y", 5, 1, vec![-1.0f32, 2.0, f32::NAN, f32::INFINITY, 0.5]).unwrap();
    assert_eq!(odd.converted(SampleType::U8).row::<u8>(0), Some(&[0, 255, 0, 255, 128][..]));
    assert_eq!(odd.converted(SampleType::F16).row::<f16>(0).unwrap()[1], f16::from_f32(2.0));
}

#[test]
fn planes_have_types_of_their_own() {
    let red = Plane::new("R", 1, 1, vec![f16::ONE]).unwrap();
    let depth = Plane::new("Z", 1, 1, vec![7.5f32]).unwrap();
    let image = Image::new(Rect::sized(1, 1), vec![red, depth]).unwrap();
    assert_eq!((image.sample_type(), image.bytes()), (SampleType::F32, 6));
    assert_eq!(image.select(&["Z"]).unwrap().planes()[0].to_f32(), [7.5]);
    let missing = image.select(&["G"]).unwrap_err();
    assert_eq!(missing.to_string(), "there is no plane `G`; there is R, Z");
}

#[test]
fn colour_is_converted_where_asked() {
    for i in 0..=1000 {
        let x = i as f32 / 1000.0;
        assert!((srgb_to_linear(linear_to_srgb(x)) - x).abs() < 1e-6);
        assert_eq!(srgb_to_linear(-x), -srgb_to_linear(x));
    }
    assert!((linear_to_srgb(0.18) - 0.461_356).abs() < 1e-5);
    let image = Image::from_f32(1, 1, [("R", vec![0.5]), ("A", vec![0.5])]).unwrap().with_color(ColorSpace::Srgb);
    let linear = image.to_linear();
    assert_eq!(linear.color(), ColorSpace::Linear);
    assert!((linear.planes()[0].to_f32()[0] - 0.214_041).abs() < 1e-6);
    assert_eq!(linear.planes()[1].to_f32(), [0.5]);
    assert_eq!(linear.to_linear().planes()[0].to_f32(), linear.planes()[0].to_f32());
    assert!((linear.to_srgb().planes()[0].to_f32()[0] - 0.5).abs() < 1e-6);
}

#[test]
fn arrays_of_the_host_have_any_layout() {
    let host = ndarray::Array3::from_shape_fn((3, 2, 4), |(p, y, x)| (p * 100 + y * 10 + x) as f32);
    let swapped = host.view().permuted_axes([0, 2, 1]);
    let image = Image::from_ndarray(&["R", "G", "B"], &swapped).unwrap();
    assert_eq!((image.width(), image.height()), (2, 4));
    assert_eq!(image.to_ndarray().unwrap(), swapped);
    assert!(matches!(Image::from_ndarray(&["R"], &host), Err(ImageError::Shape(_))));
}
