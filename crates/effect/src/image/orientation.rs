//! Orientation: how the rows and columns of an image are shown.

use super::{Image, ImageError, Plane, Rect, Sample, Samples, reserved, with_samples};

/// Place of the first row and the first column of an image as it is shown, with the number that EXIF and TIFF
/// use (tag 274).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Orientation {
    /// The first row is the top, the first column is the left.
    #[default]
    Upright = 1,
    /// Shown mirrored along x.
    Mirrored = 2,
    /// Shown turned by 180°.
    Turned = 3,
    /// Shown mirrored along y.
    Flipped = 4,
    /// Shown with rows and columns exchanged.
    Transposed = 5,
    /// Shown turned clockwise by 90°.
    Clockwise = 6,
    /// Shown with rows and columns exchanged, and turned by 180°.
    Transverse = 7,
    /// Shown turned anticlockwise by 90°.
    Anticlockwise = 8,
}

impl Orientation {
    /// Orientations in the order of their numbers.
    const ALL: [Orientation; 8] = [
        Orientation::Upright,
        Orientation::Mirrored,
        Orientation::Turned,
        Orientation::Flipped,
        Orientation::Transposed,
        Orientation::Clockwise,
        Orientation::Transverse,
        Orientation::Anticlockwise,
    ];

    /// Returns the orientation with a number from 1 to 8.
    pub fn of_number(number: u16) -> Option<Orientation> {
        Orientation::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Returns the number of EXIF and TIFF.
    pub fn number(self) -> u16 {
        self as u16
    }

    /// Returns whether rows are shown as columns.
    pub fn swaps_sides(self) -> bool {
        self.number() >= 5
    }

    /// Returns the stored column and row of a pixel as it is shown. `width` and `height` are the stored size.
    fn stored(self, x: usize, y: usize, width: usize, height: usize) -> (usize, usize) {
        let (right, bottom) = (width - 1, height - 1);
        match self {
            Orientation::Upright => (x, y),
            Orientation::Mirrored => (right - x, y),
            Orientation::Turned => (right - x, bottom - y),
            Orientation::Flipped => (x, bottom - y),
            Orientation::Transposed => (y, x),
            Orientation::Clockwise => (y, bottom - x),
            Orientation::Transverse => (right - y, bottom - x),
            Orientation::Anticlockwise => (right - y, x),
        }
    }
}

impl Image {
    /// Returns the image with its pixels in the order in which they are shown, at the origin. Samples keep their
    /// types and values. An upright image is returned as it is.
    ///
    /// ```
    /// use broadloom_effect::Image;
    /// use broadloom_effect::image::Orientation;
    ///
    /// let image = Image::from_f32(2, 1, [("Y", vec![0.0, 1.0])])?;
    /// let upright = image.with_orientation(Some(Orientation::Clockwise)).upright()?;
    /// assert_eq!((upright.width(), upright.height()), (1, 2));
    /// # Ok::<(), broadloom_effect::ImageError>(())
    /// ```
    pub fn upright(&self) -> Result<Image, ImageError> {
        let orientation = self.orientation();
        if orientation == Orientation::Upright {
            return Ok(self.clone());
        }
        let (width, height) = match orientation.swaps_sides() {
            true => (self.height(), self.width()),
            false => (self.width(), self.height()),
        };
        let planes = self.planes().iter().map(|plane| turned(plane, orientation, width, height));
        let mut result = self.replaced(Rect::sized(width, height), planes.collect::<Result<_, _>>()?)?;
        let metadata = result.metadata_mut();
        metadata.orientation = Some(Orientation::Upright);
        metadata.read_bounds = None;
        if let Some(resolution) = metadata.resolution.as_mut().filter(|_| orientation.swaps_sides()) {
            std::mem::swap(&mut resolution.x, &mut resolution.y);
        }
        result.display = None;
        Ok(result)
    }
}

/// Returns a plane with its samples in the order in which they are shown. `width` and `height` are the size shown.
fn turned(plane: &Plane, orientation: Orientation, width: u32, height: u32) -> Result<Plane, ImageError> {
    fn samples<T: Sample>(plane: &Plane, orientation: Orientation, width: usize, height: usize) -> Result<Samples, ImageError> {
        let (columns, rows) = (plane.width() as usize, plane.height() as usize);
        let stored: Vec<&[T]> = (0..plane.height()).filter_map(|y| plane.row(y)).collect();
        let mut shown = reserved::<T>((width * height) as u64)?;
        for y in 0..height {
            shown.extend((0..width).map(|x| {
                let (column, row) = orientation.stored(x, y, columns, rows);
                stored[row][column]
            }));
        }
        Ok(Samples::new(shown))
    }
    fn typed<T: Sample>(_: &[T], plane: &Plane, orientation: Orientation, size: (u32, u32)) -> Result<Samples, ImageError> {
        samples::<T>(plane, orientation, size.0 as usize, size.1 as usize)
    }
    let shown = with_samples!(plane.samples(), own => typed(own, plane, orientation, (width, height)))?;
    Plane::from_samples(plane.name(), width, height, width as usize, shown)
}
