//! Asynchronous copies of a thread (manual: "cp.async").
//!
//! A copy is done when it is issued, which is allowed. The watcher is told which copies are not waited for
//! yet: an access to their bytes could see a copy that elsewhere is done at another time.

use super::access::Request;
use super::{Engine, NextAction, Stop};
use crate::cta::{CodeSite, Cta};
use crate::op::{Arg, CopyOp};
use crate::watch::{Kind, Watch};
use broadloom_eval::copy::Copy;
use broadloom_ptx::Space;

impl<W: Watch> Engine<'_, W> {
    pub(super) fn copy_async(
        &mut self,
        cta: &mut Cta,
        site: CodeSite<'_>,
        registers: usize,
        what: CopyOp,
    ) -> Result<NextAction, Stop> {
        let op = site.op;
        match what {
            CopyOp::Start => self.start_copy(cta, site, registers)?,
            CopyOp::Commit => self.watch.commit_copies(cta, site.thread),
            CopyOp::WaitGroup => {
                let left = op.reads.first().map_or(0, |arg| self.read(cta, site, registers, arg));
                self.watch.wait_for_copies(cta, site.thread, Some(left));
            }
            CopyOp::WaitAll => self.watch.wait_for_copies(cta, site.thread, None),
            CopyOp::Arrive => {
                let address = self.read(cta, site, registers, &op.reads[0]);
                self.watch.wait_for_copies(cta, site.thread, None);
                self.copies_came(cta, site, address)?;
            }
        }
        Ok(NextAction::Step)
    }

    fn start_copy(&mut self, cta: &mut Cta, site: CodeSite<'_>, registers: usize) -> Result<(), Stop> {
        let op = site.op;
        let Some(copy) = Copy::of(&self.program.module.functions[site.func].insts[op.inst]) else { return Ok(()) };
        let mut operand = |place: Option<usize>, otherwise: u64| match place.and_then(|place| op.reads.get(place)) {
            Some(arg) if *arg != Arg::Sink => self.read(cta, site, registers, arg),
            _ => otherwise,
        };
        let bytes = u64::from(copy.bytes);
        let size = operand(copy.size, bytes).min(bytes);
        let size = if operand(copy.ignore, 0) != 0 { 0 } else { size };
        let (to, from) = (operand(Some(0), 0), operand(Some(1), 0));
        let mut buffer = [0; 16];
        if size > 0
            && let Some(place) = self.approach_with(cta, site, Request::weak(Space::Global, from, size, bytes, Kind::Read))?
        {
            self.load_bytes(cta, site.thread, place, &mut buffer[..size as usize]);
        }
        let write = Request::weak(Space::Shared, to, bytes, bytes, Kind::Write);
        if let Some(place) = self.approach_with(cta, site, write)? {
            self.store_bytes(cta, site.thread, place, &buffer[..bytes as usize]);
            if let super::access::AddressTarget::Shared(offset) = place {
                self.watch.copy(cta, site, offset, bytes);
            }
        }
        Ok(())
    }
}
