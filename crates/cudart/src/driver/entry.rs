//! Lookup of functions by name and version.

use crate::boundary::exported;
use crate::pointer::{Out, Text};
use crate::shared_api::entry::{LookupResult, look_up};
use crate::status::Status;

exported! { driver
    /// Looks up a function. A missing function is an error.
    fn cuGetProcAddress(call, name: Text, place: Out<usize>, version: i32, flags: u64) {
        match look_up(call, name, place, version, flags, Out::at(0))? {
            LookupResult::Function(_) => Ok(()),
            LookupResult::Unknown | LookupResult::Newer => Err(Status::NOT_FOUND),
        }
    }

    /// Looks up a function. A missing function yields the address 0.
    fn cuGetProcAddress_v2 / cuGetProcAddress_v2_ptsz(call, name: Text, place: Out<usize>, version: i32, flags: u64, found: Out<u32>)
        => look_up(call, name, place, version, flags, found).map(drop);
}
