//! Options for the driver's compiler, of which two matter here: logs, which programs print whatever the call returned, and the most registers of a
//! thread, which limits what is told of kernels.

use crate::pointer::{In, Out};
use crate::status::Outcome;
use crate::tell::heard;

/// `CU_JIT_MAX_REGISTERS`.
const MAX_REGISTERS: u32 = 0;
/// `CU_JIT_INFO_LOG_BUFFER`; the option behind it is the room that there is.
const INFO: u32 = 3;
/// `CU_JIT_ERROR_LOG_BUFFER`, and its room behind it.
const ERROR: u32 = 5;

/// Where a program reads what its compiler said.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    info: Option<Log>,
    error: Option<Log>,
}

#[derive(Debug)]
struct Log {
    text: usize,
    room: usize,
    /// Where the bytes that were written are told: the value that had the room.
    filled: usize,
}

impl Logs {
    /// The logs among options.
    pub(crate) fn among(count: u32, options: usize, values: usize) -> Outcome<Logs> {
        let options = In::<u32>::at(options).get_all(count as usize)?;
        let wanted = In::<usize>::at(values).get_all(options.len())?;
        let log = |option: u32| {
            let place = |option: u32| options.iter().position(|given| *given == option);
            let (text, room) = (place(option)?, place(option + 1)?);
            // A room is an `unsigned int`, whatever stands in the rest of its word.
            let bytes = wanted[room] as u32 as usize;
            Some(Log { text: wanted[text], room: bytes, filled: values + room * size_of::<usize>() })
        };
        Ok(Logs { info: log(INFO), error: log(ERROR) })
    }

    /// Does something, and writes what was told meanwhile: to the log of errors when it failed.
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

/// The most registers of a thread among options; 0 is no limit.
pub(crate) fn most_registers(count: u32, options: usize, values: usize) -> Outcome<Option<u32>> {
    let options = In::<u32>::at(options).get_all(count as usize)?;
    let values = In::<usize>::at(values).get_all(options.len())?;
    let given = options.iter().zip(values).find(|(option, _)| **option == MAX_REGISTERS);
    Ok(given.map(|(_, value)| value as u32).filter(|most| *most != 0))
}

impl Log {
    /// Writes as much of a text as there is room for, and a zero.
    fn write(&self, text: &str) {
        let Some(most) = self.room.checked_sub(1).filter(|_| self.text != 0) else { return };
        let bytes = &text.as_bytes()[..text.len().min(most)];
        let _ = Out::at(self.text).set_all(bytes);
        Out::at(self.text + bytes.len()).set_if_wanted(0_u8);
        Out::at(self.filled).set_if_wanted(bytes.len());
    }
}
