//! Products of matrices, done by a library of the device's maker where there is one.

/// The type of the numbers of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProductElement {
    /// `f32`.
    F32,
    /// `f64`.
    F64,
}

impl ProductElement {
    /// How many bytes a number has.
    pub const fn bytes(self) -> u64 {
        match self {
            ProductElement::F32 => 4,
            ProductElement::F64 => 8,
        }
    }
}

/// A matrix in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Matrix {
    /// Its first number.
    pub address: u64,
    /// How many numbers lie between the starts of two rows, or of two columns where it is transposed; at least as many as a row, or a column, has.
    pub stride: u64,
    /// Whether columns, rather than rows, lie side by side.
    pub transposed: bool,
}

/// The product of two matrices of floats: `result = left · right`. Numbers are not rounded to fewer bits before they are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixProduct {
    /// The type of all numbers.
    pub element: ProductElement,
    /// Rows of the left factor and of the result.
    pub rows: u64,
    /// Columns of the right factor and of the result.
    pub columns: u64,
    /// Columns of the left factor and rows of the right one; not 0.
    pub common: u64,
    /// The left factor.
    pub left: Matrix,
    /// The right factor.
    pub right: Matrix,
    /// The result, which is not transposed.
    pub result: Matrix,
}

impl MatrixProduct {
    /// How many bytes the left factor, the right one and the result reach over; `None` when they are beyond 64 bits.
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
