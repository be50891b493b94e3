//! Barriers in shared memory (manual: "Parallel Synchronization and Communication Instructions: mbarrier").
//!
//! A thread that polls an incomplete phase yields to the others first. Then it polls once more and returns
//! the answer. Threads that poll in a loop therefore do not block those that could complete the phase.

use super::access::{self, AddressTarget, Request};
use super::{Engine, NextAction, Stop};
use crate::cta::{CodeSite, Cta, Wait};
use crate::marks;
use crate::op::{Arg, MbarrierOp};
use crate::watch::{Kind, Meeting, Order, Scope, Watch};
use broadloom_device::FaultKind;
use broadloom_eval::mbarrier::{Mbarrier, Misuse, Step};
use broadloom_ptx::{Modifier, Space};

impl<W: Watch> Engine<'_, W> {
    pub(super) fn mbarrier(
        &mut self,
        cta: &mut Cta,
        site: CodeSite<'_>,
        registers: usize,
        what: MbarrierOp,
    ) -> Result<NextAction, Stop> {
        let (op, index) = (site.op, site.thread);
        let address = self.read(cta, site, registers, &op.reads[0]);
        let operand = |engine: &mut Self, cta: &Cta| match op.reads.get(1) {
            Some(arg) if *arg != Arg::Sink => Some(engine.read(cta, site, registers, arg)),
            _ => None,
        };
        let second = operand(self, cta);
        let count = second.unwrap_or(1) as u32;
        match what {
            MbarrierOp::Init => {
                let made = Mbarrier::new(count).map(Mbarrier::bits);
                self.replace_mbarrier(cta, site, address, made)?;
            }
            MbarrierOp::Invalidate => {
                if self.mbarrier_at(cta, site, address, Kind::Atomic)?.is_some() {
                    self.replace_mbarrier(cta, site, address, Ok(0))?;
                }
            }
            MbarrierOp::ExpectTx => {
                self.count(cta, site, address, false, |barrier| barrier.expect(count))?;
            }
            MbarrierOp::CompleteTx => {
                self.count(cta, site, address, false, |barrier| barrier.complete(count))?;
            }
            MbarrierOp::Arrive | MbarrierOp::ArriveAndDrop => {
                let drop = what == MbarrierOp::ArriveAndDrop;
                let releases = !op.has(Modifier::Relaxed);
                let before = self.count(cta, site, address, releases, |barrier| {
                    if op.has(Modifier::NoComplete) {
                        barrier.arrive_without_completing(count, drop)
                    } else if op.has(Modifier::ExpectTx) {
                        barrier.arrive(1, count, drop)
                    } else {
                        barrier.arrive(count, 0, drop)
                    }
                })?;
                if let Some(place) = op.writes.first() {
                    self.write(cta, index, registers, place, before);
                }
            }
            MbarrierOp::CheckLayout => {
                // Only the older layout exists here.
                let alive = self.mbarrier_at(cta, site, address, Kind::Read)?.is_some();
                let same = alive && op.has(Modifier::LayoutV0);
                self.write(cta, index, registers, &op.writes[0], u64::from(same));
            }
            MbarrierOp::Wait => {
                let complete = match self.mbarrier_at(cta, site, address, Kind::Read)? {
                    // Reported; the waiting thread continues.
                    None => true,
                    Some((place, barrier)) => {
                        let state = second.unwrap_or(0);
                        let answer = match op.has(Modifier::Parity) {
                            true => Ok(barrier.is_complete_parity(state as u32)),
                            false => barrier.is_complete(state),
                        };
                        let complete = match answer {
                            Ok(complete) => complete,
                            Err(misuse) => {
                                self.misuse(cta, site, address, misuse)?;
                                true
                            }
                        };
                        let asked = std::mem::take(&mut cta.threads[index].asked);
                        if !complete && !asked {
                            cta.threads[index].wait = Wait::Mbarrier;
                            cta.parked += 1;
                            return Ok(NextAction::Stop);
                        }
                        if complete && !op.has(Modifier::Relaxed) {
                            let meeting = self.meeting(cta, place);
                            self.watch.learn_from(cta, index, meeting);
                        }
                        complete
                    }
                };
                if let Some(place) = op.writes.first() {
                    self.write(cta, index, registers, place, u64::from(complete));
                }
            }
        }
        Ok(NextAction::Step)
    }

    /// Reports bytes of an asynchronous operation to the mbarrier that waits for them.
    pub(super) fn bytes_came(&mut self, cta: &mut Cta, site: CodeSite<'_>, address: u64, bytes: u32) -> Result<(), Stop> {
        self.count(cta, site, address, true, |barrier| barrier.complete(bytes)).map(drop)
    }

    /// Makes an mbarrier track the thread's copies so far. They are done, so with `.noinc` this is an
    /// arrival. Otherwise one more arrival is expected and has already happened.
    pub(super) fn copies_came(&mut self, cta: &mut Cta, site: CodeSite<'_>, address: u64) -> Result<(), Stop> {
        if site.op.has(Modifier::Noinc) {
            return self.count(cta, site, address, true, |barrier| barrier.arrive(1, 0, false)).map(drop);
        }
        if let Some((place, _)) = self.mbarrier_at(cta, site, address, Kind::Atomic)? {
            let meeting = self.meeting(cta, place);
            self.watch.arrive_at(cta, site.thread, meeting);
        }
        Ok(())
    }

    /// Returns the place and contents of an mbarrier; `None` if there is none, which has then been reported.
    fn mbarrier_at(
        &mut self,
        cta: &mut Cta,
        site: CodeSite<'_>,
        address: u64,
        kind: Kind,
    ) -> Result<Option<(AddressTarget, Mbarrier)>, Stop> {
        let Some(place) = self.approach_mbarrier(cta, site, address, kind, Order::Relaxed)? else { return Ok(None) };
        let mut bytes = [0; 8];
        self.load_bytes(cta, site.thread, place, &mut bytes);
        match Mbarrier::from_bits(u64::from_le_bytes(bytes)) {
            Ok(barrier) => {
                self.watch.visit(cta, site, self.meeting(cta, place));
                Ok(Some((place, barrier)))
            }
            Err(misuse) => self.misuse(cta, site, address, misuse).map(|()| None),
        }
    }

    fn approach_mbarrier(
        &mut self,
        cta: &Cta,
        site: CodeSite<'_>,
        address: u64,
        kind: Kind,
        order: Order,
    ) -> Result<Option<AddressTarget>, Stop> {
        let space = site.op.space;
        let place = self.place(cta, site.thread, space, access::reaches_cluster(site.op), address);
        if !matches!(place, Ok(AddressTarget::Shared(_) | AddressTarget::Peer { .. })) {
            let address = marks::unmarked(address);
            let message = format!("{address:#x} is not in shared memory, where mbarriers live");
            self.complain(cta, site, FaultKind::WrongSpace, space, Some(address), message)?;
            return Ok(None);
        }
        // The object itself is changed atomically for all threads that can access it.
        self.approach_with(cta, site, Request { space, address, bytes: 8, align: 8, kind, order, scope: Scope::Gpu })
    }

    /// Stores an mbarrier, or none, to memory.
    fn replace_mbarrier(
        &mut self,
        cta: &mut Cta,
        site: CodeSite<'_>,
        address: u64,
        bits: Result<u64, Misuse>,
    ) -> Result<(), Stop> {
        let bits = match bits {
            Ok(bits) => bits,
            Err(misuse) => return self.misuse(cta, site, address, misuse),
        };
        if let Some(place) = self.approach_mbarrier(cta, site, address, Kind::Write, Order::Weak)? {
            self.store_bytes(cta, site.thread, place, &bits.to_le_bytes());
            let meeting = self.meeting(cta, place);
            self.watch.renew(cta, site, meeting);
            self.events += 1;
        }
        Ok(())
    }

    /// Updates the counts of an mbarrier. Returns the state before.
    fn count(
        &mut self,
        cta: &mut Cta,
        site: CodeSite<'_>,
        address: u64,
        releases: bool,
        step: impl FnOnce(Mbarrier) -> Result<Step, Misuse>,
    ) -> Result<u64, Stop> {
        let Some((place, barrier)) = self.mbarrier_at(cta, site, address, Kind::Atomic)? else { return Ok(0) };
        let Step { object, completed } = match step(barrier) {
            Ok(step) => step,
            Err(misuse) => return self.misuse(cta, site, address, misuse).map(|()| barrier.bits()),
        };
        self.store_bytes(cta, site.thread, place, &object.bits().to_le_bytes());
        self.events += 1;
        let meeting = self.meeting(cta, place);
        if releases {
            self.watch.arrive_at(cta, site.thread, meeting);
        }
        if completed {
            self.watch.complete(meeting);
        }
        Ok(barrier.bits())
    }

    fn meeting(&self, cta: &Cta, place: AddressTarget) -> Meeting {
        match place {
            AddressTarget::Peer { rank, offset } => {
                let number = self.cluster.peers.get(rank as usize).map_or(cta.number, |peer| peer.number);
                Meeting::Mbarrier { block: number, offset }
            }
            AddressTarget::Shared(offset)
            | AddressTarget::Local(offset)
            | AddressTarget::Param(offset)
            | AddressTarget::Device(offset) => Meeting::Mbarrier { block: cta.number, offset },
        }
    }

    fn misuse(&mut self, cta: &Cta, site: CodeSite<'_>, address: u64, misuse: Misuse) -> Result<(), Stop> {
        self.complain(cta, site, FaultKind::BadBarrier, Space::Shared, Some(address), misuse.to_string())
    }
}
