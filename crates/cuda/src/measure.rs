//! Cost of a launch by the driver's call alone, for comparison.

use crate::ffi::{ModuleHandle, StreamHandle};
use crate::inner::Inner;
use std::ffi::CString;
use std::time::Instant;

/// Module, unloaded on drop.
struct ScopedModule<'a>(&'a Inner, ModuleHandle);

impl Drop for ScopedModule<'_> {
    fn drop(&mut self) {
        if self.0.context.enter_to_release() {
            let _ = self.0.context.driver.unload_module(self.1);
        }
    }
}

/// Measures the host's seconds per empty launch, without waiting, over some launches.
pub(crate) fn bare_launch_time(inner: &Inner, launches: u32) -> Option<f64> {
    let (context, driver) = (&inner.context, &inner.context.driver);
    context.enter().ok()?;
    let (isa, sm) = (inner.machine.isa, inner.machine.sm);
    let header = format!(".version {isa}\n.target sm_{sm}\n.address_size 64\n");
    let text = CString::new(format!("{header}.visible .entry empty()\n{{\n\tret;\n}}\n")).ok()?;
    let module = driver.load_module(&text, None).map_err(|(failed, _)| context.error(failed)).ok()?;
    let module = ScopedModule(inner, module);
    let function = context.checked(driver.function(module.1, c"empty")).ok()?;
    let queue = inner.queue(broadloom_device::Stream::default()).ok()?;
    let stream: StreamHandle = queue.handle;
    let launch = || {
        // SAFETY: the kernel has no parameters, so there is no parameter list.
        let launched = unsafe { driver.launch(function, [1; 3], [1; 3], 0, stream, std::ptr::null()) };
        context.checked(launched).map(|()| inner.given(&queue))
    };
    launch().ok()?;
    inner.wait(&queue).ok()?;
    let start = Instant::now();
    for _ in 0..launches {
        launch().ok()?;
    }
    let time = start.elapsed().as_secs_f64();
    inner.wait(&queue).ok()?;
    Some(time / f64::from(launches.max(1)))
}
