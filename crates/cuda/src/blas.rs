//! Matrix products by cuBLAS, loaded at run time.
//!
//! **The library is optional: if it is missing or does not start, the device reports no matrix products, and
//! kernels compute them.** Each stream has its own handle with its own workspace. Streams therefore do not
//! disturb each other, and equal calls give equal bits. The interface is that of "cuBLAS Library", the
//! functions whose names end in `_v2`.
//!
//! The library uses column-major matrices. A row-major matrix is its transpose, so the transpose of the
//! product is requested: the right factor comes first.

use crate::driver::{self, library_name};
use crate::ffi::StreamHandle;
use crate::queue::Queue;
use broadloom_device::{Error, Matrix, MatrixProduct, ProductElement, Result};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::collections::HashMap;
use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// `cublasHandle_t`.
type Handle = usize;
/// `cublasStatus_t`.
type Status = c_int;
/// `cublasOperation_t`: not transposed, and transposed.
const PLAIN: c_int = 0;
const TRANSPOSED: c_int = 1;

type Gemm<T> = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const T,
    u64,
    c_int,
    u64,
    c_int,
    *const T,
    u64,
    c_int,
) -> Status;

/// Returns the names of the library to try.
pub(crate) fn library_names() -> Vec<String> {
    if let Ok(name) = std::env::var("BROADLOOM_CUBLAS") {
        return if name.is_empty() { vec![] } else { vec![name] };
    }
    if library_name() != driver::LIBRARY {
        return vec![];
    }
    ["libcublas.so.13", "libcublas.so.12"].map(str::to_owned).to_vec()
}

/// Functions of the library.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlasFunctions {
    create: unsafe extern "C" fn(*mut Handle) -> Status,
    destroy: unsafe extern "C" fn(Handle) -> Status,
    set_stream: unsafe extern "C" fn(Handle, StreamHandle) -> Status,
    single: Gemm<f32>,
    double: Gemm<f64>,
}

impl BlasFunctions {
    /// Opens a library, which stays open until the process ends.
    fn open(name: &str) -> Option<BlasFunctions> {
        // SAFETY: the library's initialisers are trusted as much as the driver's. The functions of these names
        // have the types of the fields, as the library documents.
        unsafe {
            let library = ManuallyDrop::new(Library::open(Some(name), RTLD_NOW | RTLD_LOCAL).ok()?);
            Some(BlasFunctions {
                create: *library.get("cublasCreate_v2").ok()?,
                destroy: *library.get("cublasDestroy_v2").ok()?,
                set_stream: *library.get("cublasSetStream_v2").ok()?,
                single: *library.get("cublasSgemm_v2").ok()?,
                double: *library.get("cublasDgemm_v2").ok()?,
            })
        }
    }
}

/// The library, loaded on first use.
#[derive(Debug, Default)]
pub(crate) struct Blas {
    /// Functions of the library; `None` if it is missing.
    functions: OnceLock<Option<BlasFunctions>>,
    handles: Mutex<Handles>,
}

#[derive(Debug, Default)]
struct Handles {
    /// Handles by stream number.
    of_streams: HashMap<u32, Handle>,
    /// Handles of destroyed streams, kept until their work is done.
    retired: Vec<(Handle, Arc<Queue>)>,
}

impl Handles {
    /// Destroys unused handles. The context must be current.
    fn reap(&mut self, functions: &BlasFunctions) {
        self.retired.retain(|(handle, queue)| {
            let is_done = queue.look().unwrap_or(false);
            if is_done {
                // SAFETY: the library created the handle, and it is destroyed once.
                let _ = unsafe { (functions.destroy)(*handle) };
            }
            !is_done
        });
    }
}

/// Converts the status of a library call to a result.
fn checked(call: &'static str, status: Status) -> Result<()> {
    let text = match status {
        0 => return Ok(()),
        1 => "not initialised",
        3 => "no memory for the library",
        7 => "an argument that it does not take",
        8 => "the GPU is too old for it",
        13 => "a kernel of it failed",
        14 => "an error of its own",
        15 => "not supported",
        _ => "a failure",
    };
    Err(Error::Driver { call, code: status.unsigned_abs(), message: format!("cuBLAS says {text} (status {status})") })
}

/// Creates a handle for a stream. The context must be current.
fn create(functions: &BlasFunctions, stream: StreamHandle) -> Result<Handle> {
    let mut handle = 0;
    // SAFETY: the call writes the handle.
    checked("cublasCreate", unsafe { (functions.create)(&mut handle) })?;
    // SAFETY: both are alive.
    let set = checked("cublasSetStream", unsafe { (functions.set_stream)(handle, stream) });
    if set.is_err() {
        // SAFETY: the library just created the handle.
        let _ = unsafe { (functions.destroy)(handle) };
    }
    set.map(|()| handle)
}

impl Blas {
    /// Returns the functions of the library, or `None` if it is missing or does not start. It is the first of
    /// `names` that starts; `first` is the default stream.
    pub(crate) fn functions(&self, first: &Queue, names: &[String]) -> Option<&BlasFunctions> {
        self.functions.get_or_init(|| self.start(first, names)).as_ref()
    }

    /// Opens the first library that loads and creates a handle, which belongs to the default stream.
    fn start(&self, first: &Queue, names: &[String]) -> Option<BlasFunctions> {
        first.context.enter().ok()?;
        names.iter().find_map(|name| {
            let functions = BlasFunctions::open(name)?;
            let handle = create(&functions, first.handle).ok()?;
            self.handles().of_streams.insert(first.stream, handle);
            Some(functions)
        })
    }

    fn handles(&self) -> MutexGuard<'_, Handles> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Retires the handle of a destroyed stream. The context must be current.
    pub(crate) fn retire(&self, queue: &Arc<Queue>) {
        let Some(Some(functions)) = self.functions.get() else { return };
        let mut handles = self.handles();
        if let Some(handle) = handles.of_streams.remove(&queue.stream) {
            handles.retired.push((handle, queue.clone()));
        }
        handles.reap(functions);
    }

    /// Destroys all handles. The context must be current, and all work done.
    pub(crate) fn release(&self) {
        let Some(Some(functions)) = self.functions.get() else { return };
        let handles = std::mem::take(&mut *self.handles());
        for handle in handles.of_streams.into_values().chain(handles.retired.into_iter().map(|(handle, _)| handle)) {
            // SAFETY: the library created the handle, and it is destroyed once.
            let _ = unsafe { (functions.destroy)(handle) };
        }
    }

    /// Multiplies matrices. The context must be current. Returns the name of the call.
    ///
    /// # Safety
    ///
    /// The matrices are inside buffers that live until the work is done, and their sizes fit `c_int`.
    pub(crate) unsafe fn multiply(
        &self,
        functions: &BlasFunctions,
        queue: &Queue,
        product: &MatrixProduct,
    ) -> Result<&'static str> {
        let mut handles = self.handles();
        let handle = match handles.of_streams.get(&queue.stream) {
            Some(handle) => *handle,
            None => {
                handles.reap(functions);
                let handle = create(functions, queue.handle)?;
                handles.of_streams.insert(queue.stream, handle);
                handle
            }
        };
        // SAFETY: the handle is alive; the rest is guaranteed by the caller.
        let (call, status) = unsafe {
            match product.element {
                ProductElement::F32 => ("cublasSgemm", multiply(functions.single, handle, product, [1.0, 0.0])),
                ProductElement::F64 => ("cublasDgemm", multiply(functions.double, handle, product, [1.0, 0.0])),
            }
        };
        drop(handles);
        checked(call, status).map(|()| call)
    }
}

/// Calls the library for a product: `new` times the product plus `old` times the old contents.
///
/// # Safety
///
/// The handle is alive, and the matrices satisfy the conditions of [`Blas::multiply`].
unsafe fn multiply<T>(function: Gemm<T>, handle: Handle, product: &MatrixProduct, [new, old]: [T; 2]) -> Status {
    let way = |side: &Matrix| if side.transposed { TRANSPOSED } else { PLAIN };
    let [rows, columns, common] = [product.rows, product.columns, product.common].map(|size| size as c_int);
    let (left, right, result) = (&product.left, &product.right, &product.result);
    let [left_stride, right_stride, stride] = [left, right, result].map(|side| side.stride as c_int);
    // SAFETY: guaranteed by the caller; the two numbers are read before the call returns.
    unsafe {
        function(
            handle,
            way(right),
            way(left),
            columns,
            rows,
            common,
            &new,
            right.address,
            right_stride,
            left.address,
            left_stride,
            &old,
            result.address,
            stride,
        )
    }
}
