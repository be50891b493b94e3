//! Error log.

use crate::boundary::exported;
use crate::log;
use crate::pointer::{Out, Text};
use crate::status::{Outcome, Status};

/// Returns the entry of an iterator, if one is given.
fn first(iterator: Out<u32>) -> Outcome<Option<u32>> {
    if iterator.is_null() { Ok(None) } else { iterator.get().map(Some) }
}

exported! { runtime
    fn cudaLogsRegisterCallback | cuLogsRegisterCallback(_call, function: usize, data: usize, handle: Out<usize>) {
        handle.set_if_wanted(log::listen(function, data)?);
        Ok(())
    }

    fn cudaLogsUnregisterCallback | cuLogsUnregisterCallback(_call, handle: usize) => log::ignore(handle);
    fn cudaLogsCurrent | cuLogsCurrent(_call, iterator: Out<u32>, flags: u32)
        => if flags == 0 { iterator.set(log::end()) } else { Err(Status::INVALID_VALUE) };

    fn cudaLogsDumpToFile | cuLogsDumpToFile(_call, iterator: Out<u32>, path: Text, flags: u32) {
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let (text, next) = log::entries(first(iterator)?, usize::MAX);
        std::fs::write(path.get()?, text).map_err(|_| Status::INVALID_VALUE)?;
        iterator.set_if_wanted(next);
        Ok(())
    }

    /// Writes the latest entries that fit into a buffer, zero-terminated.
    fn cudaLogsDumpToMemory | cuLogsDumpToMemory(_call, iterator: Out<u32>, buffer: Out<u8>, size: Out<usize>, flags: u32) {
        buffer.wanted()?;
        let room = size.get()?;
        if flags != 0 || room == 0 {
            return Err(Status::INVALID_VALUE);
        }
        let first = first(iterator)?;
        let (text, next) = log::entries(first, room - 1);
        size.set(text.len())?;
        buffer.set_all(&[text.as_bytes(), &[0]].concat())?;
        if text.is_empty() && !log::entries(first, usize::MAX).0.is_empty() {
            return Err(Status::INVALID_VALUE);
        }
        iterator.set_if_wanted(next);
        Ok(())
    }
}
