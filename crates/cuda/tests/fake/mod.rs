//! Path and control of the fake driver.

#![allow(unsafe_code, reason = "the fake driver is a library of C")]
#![allow(dead_code, reason = "every test uses a part")]

use broadloom_cuda::{Cuda, Options};
use broadloom_device::{CacheFolder, Device, Result};
use broadloom_diag::Sources;
use broadloom_ptx::Verified;
use libloading::{Library, Symbol};
use std::ffi::{CString, c_char};
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Returns the library's path: cargo puts it beside the tests or one folder up.
pub(crate) fn library() -> String {
    let exe = std::env::current_exe().unwrap();
    let folders = exe.ancestors().skip(1).take(2).map(PathBuf::from);
    let found = folders.map(|folder| folder.join(broadloom_fakecuda::LIBRARY)).find(|path| path.exists());
    found.expect("the fake driver was not built").to_str().unwrap().to_owned()
}

/// Locks the fake driver, which has one state per process.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a test alone, and asserts that it leaves no object behind and violates no rule of the driver.
#[track_caller]
pub(crate) fn leaves_nothing(test: impl FnOnce(&Fake)) {
    let _one = alone();
    let fake = Fake::new();
    fake.forget();
    test(&fake);
    fake.assert_clean("at the end");
}

/// Control of the fake driver.
pub(crate) struct Fake {
    /// The library, which stays open: its threads run in it.
    library: ManuallyDrop<Library>,
}

impl Fake {
    pub(crate) fn new() -> Fake {
        Fake::at(&library())
    }

    /// Opens the control of a copy of the library.
    pub(crate) fn at(path: &str) -> Fake {
        // SAFETY: the fake driver is trusted.
        Fake { library: ManuallyDrop::new(unsafe { Library::new(path) }.unwrap()) }
    }

    /// Returns a function of the library, which has the type that its caller gives it.
    fn find<T>(&self, name: &str) -> Symbol<'_, T> {
        // SAFETY: every caller below gives the type that the fake driver declares.
        unsafe { self.library.get(name) }.unwrap()
    }

    /// Makes the n-th call of a function fail.
    pub(crate) fn fail(&self, function: &str, number: u64, code: u32) {
        let function = CString::new(function).unwrap();
        let fail = self.find::<extern "C" fn(*const c_char, u64, u32)>("fakecuda_fail");
        fail(function.as_ptr(), number, code);
    }

    pub(crate) fn forget(&self) {
        let forget = self.find::<extern "C" fn()>("fakecuda_forget");
        forget();
    }

    pub(crate) fn fired(&self) -> bool {
        let fired = self.find::<extern "C" fn() -> bool>("fakecuda_fired");
        fired()
    }

    pub(crate) fn calls(&self, function: &str) -> u64 {
        let function = CString::new(function).unwrap();
        let calls = self.find::<extern "C" fn(*const c_char) -> u64>("fakecuda_calls");
        calls(function.as_ptr())
    }

    pub(crate) fn alive(&self) -> u64 {
        let alive = self.find::<extern "C" fn() -> u64>("fakecuda_alive");
        alive()
    }

    /// Returns the number of violations and a report.
    pub(crate) fn report(&self) -> (u64, String) {
        let mut buffer = vec![0u8; 8192];
        let report = self.find::<extern "C" fn(*mut u8, usize) -> u64>("fakecuda_report");
        let count = report(buffer.as_mut_ptr(), buffer.len());
        let end = buffer.iter().position(|byte| *byte == 0).unwrap_or(0);
        (count, String::from_utf8_lossy(&buffer[..end]).into_owned())
    }

    /// Asserts that nothing is left and that no rule of the driver was violated.
    pub(crate) fn assert_clean(&self, when: &str) {
        let (violations, report) = self.report();
        assert_eq!((self.alive(), violations), (0, 0), "{when}: {report}");
    }
}

/// Returns options for the fake driver.
pub(crate) fn options() -> Options {
    let cache = CacheFolder::Nowhere;
    Options { driver: library(), memory_bytes: Some(256 << 20), cache, ..Options::default() }
}

/// Opens a device of the fake driver.
pub(crate) fn open() -> Result<Device> {
    Cuda::new(options()).map(Device::new)
}

/// Parses a module.
pub(crate) fn module(text: &str) -> Arc<Verified> {
    let mut sources = Sources::new();
    let id = sources.add("test.ptx", text);
    let module = broadloom_ptx::parse(&sources, id).unwrap_or_else(|wrong| panic!("{}", sources.render_all(&wrong)));
    Arc::new(broadloom_ptx::verify(module).unwrap_or_else(|wrong| panic!("{}", sources.render_all(&wrong))))
}

/// Kernels for tests: `scale` multiplies by a number, `wild` writes to an address, `together` implements a
/// grid-wide barrier by counting, `large` uses dynamic shared memory, `down` calls itself, `say` prints,
/// `forever` runs until a word is set.
pub(crate) const KERNELS: &str = "
.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 arguments);
.extern .func (.param .b64 result) malloc (.param .b64 bytes);
.visible .global .align 4 .u32 counter = 5;
.global .align 1 .b8 text[12] = {115, 97, 105, 100, 32, 37, 100, 10, 0, 0, 0, 0};
.extern .shared .align 16 .b8 room[];

.func (.param .b32 result) down(.param .b32 n)
{
    .reg .pred %p; .reg .b32 %r<4>;
    ld.param.b32 %r1, [n];
    setp.eq.u32 %p, %r1, 0;
    mov.u32 %r2, 0;
    @%p bra done;
    sub.u32 %r3, %r1, 1;
    {
    .param .b32 less; .param .b32 depth;
    st.param.b32 [less], %r3;
    call.uni (depth), down, (less);
    ld.param.b32 %r2, [depth];
    }
    add.u32 %r2, %r2, 1;
done:
    st.param.b32 [result], %r2;
    ret;
}

.visible .entry scale(.param .u64 data, .param .u32 count, .param .u32 factor)
{
    .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<4>;
    ld.param.u64 %d1, [data];
    ld.param.u32 %r1, [count];
    ld.param.u32 %r2, [factor];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.u32 %r3, %r3, %r4, %r5;
    setp.ge.u32 %p, %r3, %r1;
    @%p ret;
    mul.wide.u32 %d2, %r3, 4;
    add.u64 %d1, %d1, %d2;
    ld.global.u32 %r6, [%d1];
    mul.lo.u32 %r6, %r6, %r2;
    st.global.u32 [%d1], %r6;
    ret;
}

.visible .entry wild(.param .u64 address)
{
    .reg .b32 %r; .reg .b64 %d;
    ld.param.u64 %d, [address];
    mov.u32 %r, 1;
    st.global.u32 [%d], %r;
    ret;
}

.visible .entry together(.param .u64 data)
{
    .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d;
    ld.param.u64 %d, [data];
    mov.u32 %r1, %nctaid.x;
    atom.add.release.gpu.global.u32 %r2, [%d], 1;
again:
    ld.acquire.gpu.global.u32 %r3, [%d];
    setp.lt.u32 %p, %r3, %r1;
    @%p bra again;
    ret;
}

.visible .entry large(.param .u64 data)
{
    .reg .b32 %r<4>; .reg .b64 %d<3>;
    ld.param.u64 %d1, [data];
    mov.u32 %r1, %tid.x;
    mov.u32 %r3, room;
    shl.b32 %r2, %r1, 10;
    add.u32 %r3, %r3, %r2;
    st.shared.u32 [%r3], %r1;
    bar.sync 0;
    ld.shared.u32 %r2, [%r3];
    mul.wide.u32 %d2, %r1, 4;
    add.u64 %d1, %d1, %d2;
    st.global.u32 [%d1], %r2;
    ret;
}

.visible .entry say(.param .u32 number)
{
    .local .align 8 .b8 arguments[8];
    .reg .b32 %r<3>; .reg .b64 %d<4>;
    ld.param.u32 %r1, [number];
    mov.u64 %d1, arguments;
    cvta.local.u64 %d1, %d1;
    st.u32 [%d1], %r1;
    mov.u64 %d2, text;
    cvta.global.u64 %d2, %d2;
    {
    .param .b64 format; .param .b64 values; .param .b32 result;
    st.param.b64 [format], %d2;
    st.param.b64 [values], %d1;
    call.uni (result), vprintf, (format, values);
    ld.param.b32 %r2, [result];
    }
    ret;
}

.visible .entry forever(.param .u64 flag)
{
    .reg .pred %p; .reg .b32 %r; .reg .b64 %d;
    ld.param.u64 %d, [flag];
again:
    ld.volatile.global.u32 %r, [%d];
    setp.eq.u32 %p, %r, 0;
    @%p bra again;
    ret;
}
";

/// Module without functions, with `scale` as above.
pub(crate) const PLAIN: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 counter = 5;

.visible .entry scale(.param .u64 data, .param .u32 count, .param .u32 factor)
{
    .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<4>;
    ld.param.u64 %d1, [data];
    ld.param.u32 %r1, [count];
    ld.param.u32 %r2, [factor];
    mov.u32 %r3, %tid.x;
    setp.ge.u32 %p, %r3, %r1;
    @%p ret;
    mul.wide.u32 %d2, %r3, 4;
    add.u64 %d1, %d1, %d2;
    ld.global.u32 %r6, [%d1];
    mul.lo.u32 %r6, %r6, %r2;
    st.global.u32 [%d1], %r6;
    ret;
}
";
