//! Some cuBLAS functions, so that one library replaces both. Matrix products run on the host, in the order of
//! the common axis.
//!
//! They are computed synchronously, after all earlier work of the stream.

use crate::code::{self, Code, Outcome};
use crate::device::answer;
use crate::state::{Object, call, current, device, enter, giving_back, judged, object, remove, state, stream};
use std::ffi::c_int;

pub(crate) unsafe fn create(place: *mut usize) -> Code {
    call("cublasCreate", || {
        let gpu = current()?;
        // SAFETY: the caller's output pointer.
        unsafe { answer(place, enter(gpu, Object::Blas { stream: 0 })) }
    })
}

pub(crate) fn destroy(handle: usize) -> Code {
    giving_back("cublasDestroy", || remove(handle, "handle of cuBLAS"))
}

pub(crate) fn set_stream(handle: usize, at: usize) -> Code {
    call("cublasSetStream", || {
        stream(at)?;
        let (gpu, _) = object(handle, "handle of cuBLAS")?;
        match state().gpus[gpu].objects.get_mut(&handle) {
            Some(Object::Blas { stream }) => *stream = at,
            _ => return Err(code::INVALID_HANDLE),
        }
        Ok(())
    })
}

/// Column-major matrix, as the library sees it.
pub(crate) struct Side {
    pub(crate) transposed: c_int,
    pub(crate) address: u64,
    pub(crate) stride: c_int,
}

/// Element of a matrix.
pub(crate) trait Number: Copy {
    const BYTES: usize;
    fn of(bytes: &[u8]) -> Self;
    fn put(self, bytes: &mut [u8]);
    fn multiply_add(self, other: Self, sum: Self) -> Self;
    const ZERO: Self;
}

macro_rules! numbers {
    ($($ty:ty)*) => {
        $(impl Number for $ty {
            const BYTES: usize = size_of::<$ty>();
            const ZERO: $ty = 0.0;
            fn of(bytes: &[u8]) -> $ty {
                let mut whole = [0; size_of::<$ty>()];
                whole.copy_from_slice(&bytes[..size_of::<$ty>()]);
                <$ty>::from_le_bytes(whole)
            }
            fn put(self, bytes: &mut [u8]) {
                bytes[..size_of::<$ty>()].copy_from_slice(&self.to_le_bytes());
            }
            fn multiply_add(self, other: $ty, sum: $ty) -> $ty {
                self.mul_add(other, sum)
            }
        })*
    };
}

numbers! { f32 f64 }

/// Computes `c = a · b`, where `c` has `m` rows and `n` columns, `k` is the common extent, and the scale
/// factors are 1 and 0.
pub(crate) fn product<T: Number>(
    call_name: &'static str,
    handle: usize,
    [m, n, k]: [c_int; 3],
    a: &Side,
    b: &Side,
    c: &Side,
) -> Code {
    call(call_name, || {
        let Object::Blas { stream: at } = object(handle, "handle of cuBLAS")?.1 else { return Err(code::INVALID_HANDLE) };
        let (gpu, stream) = stream(at)?;
        let size = |size: c_int| usize::try_from(size).map_err(|_| code::INVALID_VALUE);
        let (m, n, k) = (size(m)?, size(n)?, size(k)?);
        let owner = device(gpu)?;
        let read = |side: &Side, rows: usize, columns: usize| -> Outcome<Vec<u8>> {
            let (length, lines) = if side.transposed != 0 { (columns, rows) } else { (rows, columns) };
            let stride = size(side.stride)?;
            if stride < length.max(1) {
                return Err(code::INVALID_VALUE);
            }
            let mut bytes = vec![0; if lines * length == 0 { 0 } else { ((lines - 1) * stride + length) * T::BYTES }];
            judged(gpu, owner.backend().read(stream, side.address, &mut bytes))?;
            Ok(bytes)
        };
        let at = |side: &Side, bytes: &[u8], row: usize, column: usize| {
            let (row, column) = if side.transposed != 0 { (column, row) } else { (row, column) };
            T::of(&bytes[(column * side.stride as usize + row) * T::BYTES..])
        };
        let (left, right, mut result) = (read(a, m, k)?, read(b, k, n)?, read(c, m, n)?);
        for column in 0..n {
            for row in 0..m {
                let term = |sum: T, step: usize| at(a, &left, row, step).multiply_add(at(b, &right, step, column), sum);
                (0..k).fold(T::ZERO, term).put(&mut result[(column * c.stride as usize + row) * T::BYTES..]);
            }
        }
        judged(gpu, owner.backend().write(stream, c.address, &result))
    })
}
