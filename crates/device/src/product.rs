//! Matrix products by a vendor library of the device.

/// Element type of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProductElement {
    /// `f32`.
    F32,
    /// `f64`.
    F64,
}

impl ProductElement {
    /// Returns the size of a number in bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            ProductElement::F32 => 4,
            ProductElement::F64 => 8,
        }
    }
}

/// Matrix in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Matrix {
    /// Address of the first number.
    pub address: u64,
    /// Row stride in numbers, or column stride if transposed. At least the length of a row, or of a column.
    pub stride: u64,
    /// True for a column-major matrix.
    pub transposed: bool,
}

/// Product of two matrices of floats: `result = left · right`. Numbers are not rounded to fewer bits before
/// multiplication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixProduct {
    /// Type of all numbers.
    pub element: ProductElement,
    /// Rows of the left factor and of the result.
    pub rows: u64,
    /// Columns of the right factor and of the result.
    pub columns: u64,
    /// Columns of the left factor and rows of the right one; not 0.
    pub common: u64,
    /// Left factor.
    pub left: Matrix,
    /// Right factor.
    pub right: Matrix,
    /// Result, which is not transposed.
    pub result: Matrix,
}

impl MatrixProduct {
    /// Returns the extent in bytes of the left factor, the right factor and the result; `None` if it exceeds
    /// 64 bits.
    pub fn bytes(&self) -> Option<[u64; 3]> {
        let reach = |matrix: &Matrix, rows: u64, columns: u64| {
            let (lines, length) = if matrix.transposed { (columns, rows) } else { (rows, columns) };
            if lines == 0 || length == 0 {
                return Some(0);
            }
            (lines - 1).checked_mul(matrix.stride)?.checked_add(length)?.checked_mul(self.element.bytes())
        };
        Some([
            reach(&self.left, self.rows, self.common)?,
            reach(&self.right, self.common, self.columns)?,
            reach(&self.result, self.rows, self.columns)?,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reach_of_matrices() {
        let matrix = |stride, transposed| Matrix { address: 0, stride, transposed };
        let product = MatrixProduct {
            element: ProductElement::F32,
            rows: 3,
            columns: 5,
            common: 7,
            left: matrix(10, false),
            right: matrix(9, true),
            result: matrix(5, false),
        };
        assert_eq!(product.bytes(), Some([(2 * 10 + 7) * 4, (4 * 9 + 7) * 4, 15 * 4]));
        assert_eq!(MatrixProduct { left: matrix(u64::MAX, false), ..product }.bytes(), None);
        assert_eq!(MatrixProduct { rows: 0, ..product }.bytes(), Some([0, (4 * 9 + 7) * 4, 0]));
    }
}
