//! Functions of the driver by their names.

use crate::boundary::{Call, DefaultStream, exported};
use crate::driver::entry::{PER_THREAD, find};
use crate::pointer::{Out, Text};
use crate::runtime::devices::DRIVER_VERSION;
use crate::status::{Outcome, Status};

/// Looks a function up; whether it was found goes to its own place.
fn look_up(call: &Call, symbol: Text, place: Out<usize>, version: i32, flags: u64, found: Out<u32>) -> Outcome {
    place.wanted()?;
    if flags > 2 {
        return Err(Status::INVALID_VALUE);
    }
    let flags = if flags == 0 && call.default == DefaultStream::PerThread { PER_THREAD } else { flags };
    match find(&symbol.get()?, version, flags) {
        Some(address) => {
            found.set_if_wanted(0);
            place.set(address)
        }
        None => {
            found.set_if_wanted(1);
            place.set(0)?;
            if found.is_null() { Err(Status::NOT_FOUND) } else { Ok(()) }
        }
    }
}

exported! { runtime
    /// A function of the driver.
    fn cudaGetDriverEntryPoint / cudaGetDriverEntryPoint_ptsz(call, symbol: Text, place: Out<usize>, flags: u64, found: Out<u32>) {
        look_up(call, symbol, place, DRIVER_VERSION, flags, found)
    }

    /// A function of the driver as a version of CUDA knows it.
    fn cudaGetDriverEntryPointByVersion / cudaGetDriverEntryPointByVersion_ptsz(call, symbol: Text, place: Out<usize>, version: u32, flags: u64, found: Out<u32>) {
        look_up(call, symbol, place, version as i32, flags, found)
    }
}
