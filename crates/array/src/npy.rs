//! Reading and writing of NumPy's `.npy` files.

use crate::array::Array;
use crate::element::Element;
use broadloom_graph::{Context, Node, Shape};
use broadloom_launch::{Element as FileElement, HostArray, NpyError, read_npy, write_npy, write_npy_bool};
use broadloom_scalar::{Element as Scalar, Type};
use std::path::{Path, PathBuf};

/// Error of reading or writing a file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Failure to read or write the file.
    #[error("`{}`: {source}", .path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        source: NpyError,
    },
    /// Error of the array.
    #[error(transparent)]
    Array(#[from] broadloom_graph::Error),
    /// File with another element type.
    #[error("`{}` holds `{found}`, not `{wanted}`", .path.display())]
    Type {
        /// Path of the file.
        path: PathBuf,
        /// Type in the file.
        found: &'static str,
        /// Requested type.
        wanted: Type,
    },
}

impl FileError {
    fn of(path: &Path) -> impl FnOnce(NpyError) -> FileError {
        move |source| FileError::File { path: path.to_owned(), source }
    }
}

/// Returns the element type of a file. Files store truth values as bytes.
fn file_element(element: Scalar) -> FileElement {
    match element {
        Scalar::Bool | Scalar::U8 => FileElement::U8,
        Scalar::I8 => FileElement::I8,
        Scalar::I16 => FileElement::I16,
        Scalar::I32 => FileElement::I32,
        Scalar::I64 => FileElement::I64,
        Scalar::U16 => FileElement::U16,
        Scalar::U32 => FileElement::U32,
        Scalar::U64 => FileElement::U64,
        Scalar::F16 => FileElement::F16,
        Scalar::F32 => FileElement::F32,
        Scalar::F64 => FileElement::F64,
    }
}

impl<T: Element> Array<T> {
    /// Reads an array from a `.npy` file. The file must have this element type. For vectors, the last axis of
    /// the file holds the lanes. Truth values are bytes: 0 is false, and all other values are true.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let path = std::env::temp_dir().join(format!("broadloom-doc-{}.npy", std::process::id()));
    /// Array::new(&context, &[1.0f32, 2.0, 3.0, 4.0], [2, 2])?.save_npy(&path)?;
    /// let back = Array::<f32>::load_npy(&context, &path)?;
    /// assert_eq!(back.t().to_vec()?, [1.0, 3.0, 2.0, 4.0]);
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load_npy(context: &Context, path: impl AsRef<Path>) -> Result<Array<T>, FileError> {
        let path = path.as_ref();
        let mut file = read_npy(path).map_err(FileError::of(path))?;
        let (lanes, wanted) = (T::TYPE.lanes() as u64, file_element(T::TYPE.element()));
        let split = lanes == 1 || file.shape.pop() == Some(lanes);
        if file.element != wanted || !split {
            return Err(FileError::Type { path: path.to_owned(), found: file.element.name(), wanted: T::TYPE });
        }
        if T::TYPE == Type::BOOL {
            file.bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        let shape: Vec<usize> = file.shape.iter().map(|extent| usize::try_from(*extent).unwrap_or(usize::MAX)).collect();
        Ok(Array::from_node(Node::upload(context, T::TYPE, Shape::from(shape), &file.bytes)?)?)
    }

    /// Writes the array to a `.npy` file. Waits for its elements. Truth values are written as NumPy's `bool`.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let path = std::env::temp_dir().join(format!("broadloom-doc-bool-{}.npy", std::process::id()));
    /// let a = Array::line(&context, &[1, -2, 3])?.gt(0)?;
    /// a.save_npy(&path)?;
    /// assert!(String::from_utf8_lossy(&std::fs::read(&path)?).contains("'descr': '|b1'"));
    /// assert_eq!(Array::<bool>::load_npy(&context, &path)?.to_vec()?, [true, false, true]);
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save_npy(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        let bytes = self.node().evaluate()?.read().map_err(broadloom_graph::Error::from)?;
        let mut shape: Vec<u64> = self.shape().extents().iter().map(|extent| *extent as u64).collect();
        if !T::TYPE.is_scalar() {
            shape.push(T::TYPE.lanes() as u64);
        }
        let array = HostArray { element: file_element(T::TYPE.element()), shape, bytes };
        let path = path.as_ref();
        let written = match T::TYPE.element() {
            Scalar::Bool => write_npy_bool(path, &array),
            _ => write_npy(path, &array),
        };
        written.map_err(FileError::of(path))
    }
}
