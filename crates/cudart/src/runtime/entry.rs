//! Functions of the driver by their names.

use crate::boundary::exported;
use crate::driver::entry::look_up;
use crate::pointer::{Out, Text};
use crate::runtime::devices::release;

exported! { runtime
    /// Finds a function of the driver as the release of CUDA knows it that the program was linked with.
    fn cudaGetDriverEntryPoint / cudaGetDriverEntryPoint_ptsz(call, symbol: Text, place: Out<usize>, flags: u64, found: Out<u32>) {
        look_up(call, symbol, place, release(), flags, found).map(drop)
    }

    /// Finds a function of the driver as a version of CUDA knows it.
    fn cudaGetDriverEntryPointByVersion / cudaGetDriverEntryPointByVersion_ptsz(call, symbol: Text, place: Out<usize>, version: u32, flags: u64, found: Out<u32>) {
        look_up(call, symbol, place, i32::try_from(version).unwrap_or(i32::MAX), flags, found).map(drop)
    }
}
