//! Attributes of kernels.

use crate::boundary::exported;
use crate::location::check_device;
use crate::pointer::Out;
use crate::types::FuncAttributes;

pub(crate) use crate::shared_api::functions::*;

exported! { runtime
    fn cudaFuncGetAttributes(call, facts: Out<FuncAttributes>, function: usize) {
        facts.wanted()?;
        let kernel = call.runtime.kernel(function)?;
        facts.set(attributes(call.runtime, &kernel)?)
    }

    fn cudaKernelSetAttributeForDevice(call, function: usize, attribute: u32, value: i32, device: i32) {
        check_device(device)?;
        let kernel = call.runtime.kernel(function)?;
        set_attribute(call.runtime, &kernel, attribute, value)
    }

    fn cudaGetFuncBySymbol(call, handle: Out<usize>, function: usize) {
        let kernel = call.runtime.kernel(function)?;
        kernel.resolved(call.runtime)?;
        handle.set(kernel.handle())
    }
}
