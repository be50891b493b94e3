//! Products of matrices in device memory.

use crate::inner::Inner;
use broadloom_device::{Error, Matrix, MatrixProduct, Result, Stream};
use std::ffi::c_int;

impl Inner {
    /// Checks that matrices are in device memory and that their sizes fit the library's integers.
    pub(crate) fn check_product(&self, product: &MatrixProduct) -> Result<()> {
        let sides = [&product.left, &product.right, &product.result];
        let too_large = || Error::BadLaunch { kernel: "product".to_owned(), reason: "its matrices are too large".to_owned() };
        let bytes = product.bytes().ok_or_else(too_large)?;
        let sizes = [product.rows, product.columns, product.common];
        if sizes.into_iter().chain(sides.map(|side| side.stride)).any(|size| c_int::try_from(size).is_err()) {
            return Err(too_large());
        }
        let length = |side: &Matrix, rows: u64, columns: u64| if side.transposed { rows } else { columns };
        let lengths = [
            length(&product.left, product.rows, product.common),
            length(&product.right, product.common, product.columns),
            length(&product.result, product.rows, product.columns),
        ];
        if product.common == 0
            || product.result.transposed
            || sides.iter().zip(lengths).any(|(side, length)| side.stride < length.max(1))
        {
            let reason = "its matrices do not lie as a product takes them".to_owned();
            return Err(Error::BadLaunch { kernel: "product".to_owned(), reason });
        }
        let pool = self.pool();
        sides.iter().zip(bytes).try_for_each(|(side, bytes)| pool.check("product", side.address, bytes))
    }

    /// Tests if there is a library that multiplies matrices.
    pub(crate) fn has_products(&self) -> bool {
        self.blas.functions(&self.first, &self.options.blas).is_some()
    }

    /// Multiplies matrices.
    pub(crate) fn product(&self, stream: Stream, product: &MatrixProduct) -> Result<()> {
        self.check_product(product)?;
        let queue = self.queue(stream)?;
        self.context.enter()?;
        let Some(functions) = self.blas.functions(&self.first, &self.options.blas) else {
            let reason = "no library that multiplies matrices could be opened".to_owned();
            return Err(Error::BadLaunch { kernel: "product".to_owned(), reason });
        };
        if product.rows == 0 || product.columns == 0 {
            return Ok(());
        }
        // SAFETY: the matrices were checked to be inside buffers, which live until all earlier work is done.
        let call = unsafe { self.blas.multiply(functions, &queue, product) }?;
        queue.journal().note(&call.into(), None);
        self.given(&queue);
        if self.options.synchronous { self.wait(&queue) } else { Ok(()) }
    }
}
