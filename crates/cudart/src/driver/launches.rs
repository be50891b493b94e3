//! Launches.

use crate::boundary::{Call, exported};
use crate::kernels::{Arguments, Request};
use crate::pointer::In;
pub(crate) use crate::shared_api::launches::*;
pub(crate) use crate::shared_api::occupancy::*;
use crate::status::{Outcome, Status};
use crate::types::{DriverLaunchConfig, DriverLaunchParams};

fn launch(call: &Call, function: usize, request: Request, stream: usize, params: In<usize>, more: usize) -> Outcome {
    let kernel = call.runtime.kernel(function).map_err(|_| Status::INVALID_HANDLE)?;
    let arguments = match (params.is_null(), more) {
        (true, list) if list != 0 => Arguments::from_list(list)?,
        _ => Arguments::Places(params),
    };
    call.runtime.launch(&kernel, &request, arguments, &*call.stream(stream)?).map_err(Status::of_driver)
}

exported! { driver
    fn cuLaunchKernel / cuLaunchKernel_ptsz(call, function: usize, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: usize, params: In<usize>, more: usize) {
        let request = Request { grid: [gx, gy, gz], block: [bx, by, bz], shared: shared as usize, cooperative: false, cluster: None };
        launch(call, function, request, stream, params, more)
    }

    fn cuLaunchCooperativeKernel / cuLaunchCooperativeKernel_ptsz(call, function: usize, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: usize, params: In<usize>) {
        let request = Request { grid: [gx, gy, gz], block: [bx, by, bz], shared: shared as usize, cooperative: true, cluster: None };
        launch(call, function, request, stream, params, 0)
    }

    fn cuLaunchKernelEx / cuLaunchKernelEx_ptsz(call, config: In<DriverLaunchConfig>, function: usize, params: In<usize>, more: usize) {
        let config = config.get()?;
        let (cooperative, cluster) = asked(In::at(config.attributes), config.count)?;
        let request = Request { grid: config.grid, block: config.block, shared: config.shared as usize, cooperative, cluster };
        launch(call, function, request, config.stream, params, more)
    }

    /// Launches cooperative kernels on several devices. There is one device, so only one launch is allowed.
    fn cuLaunchCooperativeKernelMultiDevice(call, list: In<DriverLaunchParams>, devices: u32, flags: u32) {
        if devices != 1 || flags > 3 {
            return Err(Status::INVALID_VALUE);
        }
        let params = list.get()?;
        let request = Request { grid: params.grid, block: params.block, shared: params.shared as usize, cooperative: true, cluster: None };
        launch(call, params.function, request, params.stream, In::at(params.arguments), 0)
    }
}
