//! Images from and to arrays of the `ndarray` library.

use super::{Image, ImageError, Plane, Rect, Sample, reserved};
use ndarray::{Array3, ArrayBase, Data, Ix3};

impl Image {
    /// Creates an image at the origin from an array with the axes plane, row, column. The array may have any
    /// layout.
    ///
    /// ```
    /// use broadloom_effect::Image;
    ///
    /// let host = ndarray::array![[[0.0f32, 1.0], [2.0, 3.0]]];
    /// let image = Image::from_ndarray(&["Y"], &host)?;
    /// assert_eq!(image.to_ndarray()?, host);
    /// # Ok::<(), broadloom_effect::ImageError>(())
    /// ```
    pub fn from_ndarray<T: Sample, S: Data<Elem = T>>(names: &[&str], host: &ArrayBase<S, Ix3>) -> Result<Image, ImageError> {
        let (planes, rows, columns) = host.dim();
        let size = ImageError::Size { width: columns as u64, height: rows as u64 };
        let (Ok(width), Ok(height)) = (u32::try_from(columns), u32::try_from(rows)) else { return Err(size) };
        let bounds = Rect::sized(width, height).checked()?;
        if planes != names.len() {
            return Err(ImageError::Shape(host.shape().to_vec()));
        }
        let plane = |(name, values): (&&str, ndarray::ArrayView2<'_, T>)| {
            let mut samples = reserved(bounds.area())?;
            samples.extend(values.iter().copied());
            Plane::new(name, width, height, samples)
        };
        Image::new(bounds, names.iter().zip(host.outer_iter()).map(plane).collect::<Result<_, _>>()?)
    }

    /// Returns the values as an array with the axes plane, row, column.
    pub fn to_ndarray(&self) -> Result<Array3<f32>, ImageError> {
        let shape = (self.planes().len(), self.height() as usize, self.width() as usize);
        let mut values = reserved(self.bounds().area().saturating_mul(shape.0 as u64))?;
        for plane in self.planes() {
            values.extend(plane.to_f32());
        }
        Array3::from_shape_vec(shape, values).map_err(|_| ImageError::Shape(vec![shape.0, shape.1, shape.2]))
    }
}
