//! Copies between devices, of which there is one, and attributes of pairs of devices.

use crate::boundary::exported;
use crate::location::check_device;
use crate::pointer::Out;
use crate::status::Status;

exported! { runtime
    fn cudaDeviceGetP2PAttribute | cuDeviceGetP2PAttribute(_call, value: Out<i32>, attribute: u32, from: i32, to: i32) {
        value.wanted()?;
        check_device(from)?;
        check_device(to)?;
        if (1..=5).contains(&attribute) { Err(Status::INVALID_DEVICE) } else { Err(Status::INVALID_VALUE) }
    }
}
