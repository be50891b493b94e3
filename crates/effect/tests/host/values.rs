//! Values for tests.

use broadloom_effect::{Image, Plane, Rect, SampleType};
pub(crate) use broadloom_random::Random;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns an image of random values, with padded rows.
pub(crate) fn noise(width: u32, height: u32, names: &[&str], seed: u64) -> Image {
    let mut random = Random(seed * 2 + 1);
    let pitch = width as usize + seed as usize % 3;
    let planes = names.iter().map(|name| {
        let samples: Vec<f32> =
            (0..pitch * height as usize).map(|_| (random.bits() >> 40) as f32 / (1u64 << 24) as f32).collect();
        Plane::with_pitch(name, width, height, pitch, samples).unwrap()
    });
    Image::new(Rect::sized(width, height), planes.collect()).unwrap()
}

/// Returns the values of all planes.
pub(crate) fn values(image: &Image) -> Vec<Vec<f32>> {
    image.planes().iter().map(Plane::to_f32).collect()
}

/// Returns whether two images are equal: rectangle, names, types, values.
pub(crate) fn equal(a: &Image, b: &Image) -> bool {
    let types = |image: &Image| -> Vec<SampleType> { image.planes().iter().map(Plane::sample_type).collect() };
    a.bounds() == b.bounds() && a.names().eq(b.names()) && types(a) == types(b) && values(a) == values(b)
}

/// A folder that is removed when dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    /// Creates a folder.
    pub(crate) fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("broadloom-effect-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// Returns the path of a file.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
