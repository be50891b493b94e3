//! Options of the driver's compiler. Two kinds have an effect: log buffers, which programs print whatever the
//! call returned, and the maximum number of registers per thread, which limits the reported register count of
//! kernels.

use crate::pointer::{In, Out};
use crate::status::Outcome;
use crate::tell::heard;

/// `CU_JIT_MAX_REGISTERS`.
const MAX_REGISTERS: u32 = 0;
/// `CU_JIT_INFO_LOG_BUFFER`. The next option number is the buffer's size.
const INFO: u32 = 3;
/// `CU_JIT_ERROR_LOG_BUFFER`. The next option number is the buffer's size.
const ERROR: u32 = 5;

/// Log buffers of the program.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    info: Option<Log>,
    error: Option<Log>,
}

#[derive(Debug)]
struct Log {
    text: usize,
    room: usize,
    /// Address that receives the number of bytes written: the option value that held the buffer's size.
    filled: usize,
}

impl Logs {
    /// Finds the log buffers in the options.
    pub(crate) fn among(count: u32, options: usize, values: usize) -> Outcome<Logs> {
        let options = In::<u32>::at(options).get_all(count as usize)?;
        let wanted = In::<usize>::at(values).get_all(options.len())?;
        let log = |option: u32| {
            let place = |option: u32| options.iter().position(|given| *given == option);
            let (text, room) = (place(option)?, place(option + 1)?);
            // The size is an `unsigned int`; the rest of its word is undefined.
            let bytes = wanted[room] as u32 as usize;
            Some(Log { text: wanted[text], room: bytes, filled: values + room * size_of::<usize>() })
        };
        Ok(Logs { info: log(INFO), error: log(ERROR) })
    }

    /// Runs `body` and writes its messages to the info log, or to the error log if it failed.
    pub(crate) fn write<T>(&self, body: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let (outcome, told) = heard(body);
        let (info, error) = if outcome.is_ok() { (told.as_str(), "") } else { ("", told.as_str()) };
        for (log, text) in [(&self.info, info), (&self.error, error)] {
            if let Some(log) = log {
                log.write(text);
            }
        }
        outcome
    }
}

/// Finds the maximum number of registers per thread in the options. The value 0 means no limit.
pub(crate) fn most_registers(count: u32, options: usize, values: usize) -> Outcome<Option<u32>> {
    let options = In::<u32>::at(options).get_all(count as usize)?;
    let values = In::<usize>::at(values).get_all(options.len())?;
    let given = options.iter().zip(values).find(|(option, _)| **option == MAX_REGISTERS);
    Ok(given.map(|(_, value)| value as u32).filter(|most| *most != 0))
}

impl Log {
    /// Writes a zero-terminated text, truncated to the size of the buffer.
    fn write(&self, text: &str) {
        let Some(most) = self.room.checked_sub(1).filter(|_| self.text != 0) else { return };
        let bytes = &text.as_bytes()[..text.len().min(most)];
        let _ = Out::at(self.text).set_all(bytes);
        Out::at(self.text + bytes.len()).set_if_wanted(0_u8);
        Out::at(self.filled).set_if_wanted(bytes.len());
    }
}
