//! Functions that the device provides: `vprintf`, `malloc`, `free`, `__assertfail`.

use super::{Engine, NextAction, Stop};
use crate::cta::{CodeSite, Cta};
use crate::marks;
use crate::memory::Owner;
use crate::op::CallSite;
use crate::watch::Watch;
use broadloom_device::{FaultKind, KernelMemory, format_printf};
use broadloom_ptx::{Func, Space};

/// Longest string that is read from a kernel's memory.
const MAX_STRING: u64 = 1 << 16;

/// Memory as seen by a thread that calls a device function.
struct ThreadMemory<'a, 'e, W: Watch> {
    engine: &'a mut Engine<'e, W>,
    cta: &'a mut Cta,
    site: CodeSite<'a>,
}

impl<W: Watch> KernelMemory for ThreadMemory<'_, '_, W> {
    type Error = Stop;

    fn bytes<const N: usize>(&mut self, address: u64) -> Result<[u8; N], Stop> {
        self.engine.generic_bytes::<N>(self.cta, self.site, address)
    }

    fn string(&mut self, address: u64) -> Result<Vec<u8>, Stop> {
        self.engine.string(self.cta, self.site, address)
    }
}

impl<W: Watch> Engine<'_, W> {
    pub(super) fn builtin(
        &mut self,
        cta: &mut Cta,
        site: CodeSite<'_>,
        registers: usize,
        func: Func,
        call: &CallSite,
    ) -> Result<NextAction, Stop> {
        let program = self.program;
        let name = program.module.functions[func].name.as_str();
        let arguments: Vec<u64> = call
            .arguments
            .iter()
            .map(|passed| {
                let bytes = self.take(cta, site, registers, passed);
                let mut wide = [0u8; 8];
                let count = bytes.len().min(8);
                wide[..count].copy_from_slice(&bytes[..count]);
                u64::from_le_bytes(wide)
            })
            .collect();
        let argument = |index: usize| arguments.get(index).copied().unwrap_or(0);
        let result = match name {
            "vprintf" => {
                let format = self.string(cta, site, argument(0))?;
                let (text, count) = format_printf(&mut ThreadMemory { engine: self, cta, site }, &format, argument(1))?;
                (self.output)(&text);
                count
            }
            "malloc" => self.heap_allocate(cta, site, argument(0)),
            "free" => {
                self.heap_free(cta, site, argument(0))?;
                0
            }
            "__assertfail" => {
                let message = String::from_utf8_lossy(&self.string(cta, site, argument(0))?).into_owned();
                let file = String::from_utf8_lossy(&self.string(cta, site, argument(1))?).into_owned();
                let function = String::from_utf8_lossy(&self.string(cta, site, argument(3))?).into_owned();
                let text = format!("{file}:{}: {function}: assertion `{message}` failed", argument(2) as u32);
                return Err(self.fault(cta, site, FaultKind::Assert, None, text));
            }
            name => {
                let message = format!("`{name}` is declared but defined nowhere");
                return Err(self.fault(cta, site, FaultKind::BadCall, None, message));
            }
        };
        if let Some(place) = call.results.first() {
            self.give(cta, site.thread, place, &result.to_le_bytes());
        }
        Ok(NextAction::Step)
    }

    fn heap_allocate(&mut self, cta: &Cta, site: CodeSite<'_>, bytes: u64) -> u64 {
        if bytes == 0 || bytes > self.heap_left {
            return 0;
        }
        let Ok(address) = self.memory.allocate(bytes, Owner::Heap) else { return 0 };
        self.heap_left -= bytes;
        if W::ON
            && let Ok(found) = self.memory.find(address, bytes)
        {
            let serial = found.serial;
            self.watch.malloc(cta, site, serial, bytes);
        }
        address
    }

    fn heap_free(&mut self, cta: &Cta, site: CodeSite<'_>, address: u64) -> Result<(), Stop> {
        if address == 0 {
            return Ok(());
        }
        let address = marks::unmarked(address);
        let found = self.memory.find(address, 1).ok().map(|found| (found.serial, found.size, found.owner == Owner::Heap));
        if let Some((_, _, false)) = found {
            let message = format!("{address:#x} did not come from malloc");
            return self.complain(cta, site, FaultKind::BadFree, Space::Global, Some(address), message);
        }
        match self.memory.free(address) {
            Ok(()) => {
                if let Some((serial, size, _)) = found {
                    self.heap_left += size;
                    self.watch.free(cta, site, serial);
                }
                Ok(())
            }
            Err(why) => self.complain(cta, site, FaultKind::BadFree, Space::Global, Some(address), why.to_string()),
        }
    }

    /// Reads a C string in generic memory, without its zero.
    pub(super) fn string(&mut self, cta: &mut Cta, site: CodeSite<'_>, address: u64) -> Result<Vec<u8>, Stop> {
        let mut text = vec![];
        for offset in 0..MAX_STRING {
            let byte = self.generic_bytes::<1>(cta, site, address.wrapping_add(offset))?[0];
            if byte == 0 {
                break;
            }
            text.push(byte);
        }
        Ok(text)
    }

    /// Reads bytes of generic memory for a device function.
    pub(super) fn generic_bytes<const N: usize>(
        &mut self,
        cta: &mut Cta,
        site: CodeSite<'_>,
        address: u64,
    ) -> Result<[u8; N], Stop> {
        let mut bytes = [0; N];
        let place = self.place(cta, site.thread, Space::Generic, true, address).ok();
        let readable = match place {
            Some(super::access::AddressTarget::Device(address)) => self.memory.find(address, N as u64).is_ok(),
            Some(super::access::AddressTarget::Shared(offset)) => offset + N as u64 <= self.shared_bytes,
            Some(super::access::AddressTarget::Peer { offset, .. }) => offset + N as u64 <= self.shared_bytes,
            Some(super::access::AddressTarget::Local(offset)) => offset + N as u64 <= cta.threads[site.thread].local.len() as u64,
            Some(super::access::AddressTarget::Param(offset)) => offset + N as u64 <= self.params.len() as u64,
            None => false,
        };
        match place {
            Some(place) if readable => self.load_bytes(cta, site.thread, place, &mut bytes),
            _ => {
                let address = marks::unmarked(address);
                let message = format!("{address:#x} is not in any memory");
                self.complain(cta, site, FaultKind::OutOfBounds, Space::Generic, Some(address), message)?;
            }
        }
        Ok(bytes)
    }
}
