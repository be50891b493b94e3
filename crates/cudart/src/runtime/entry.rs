//! Lookup of driver functions by name.

use crate::boundary::exported;
use crate::pointer::{Out, Text};
use crate::shared_api::entry::look_up;
use crate::version::release;

exported! { runtime
    fn cudaGetDriverEntryPoint / cudaGetDriverEntryPoint_ptsz(call, symbol: Text, place: Out<usize>, flags: u64, found: Out<u32>)
        => look_up(call, symbol, place, release(), flags, found).map(drop);
    fn cudaGetDriverEntryPointByVersion / cudaGetDriverEntryPointByVersion_ptsz(call, symbol: Text, place: Out<usize>, version: u32, flags: u64, found: Out<u32>)
        => look_up(call, symbol, place, i32::try_from(version).unwrap_or(i32::MAX), flags, found).map(drop);
}
