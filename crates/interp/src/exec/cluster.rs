//! Clusters of blocks (manual: "barrier.cluster", "mapa", "getctarank", "st.async", "red.async", "st.bulk").
//!
//! Asynchronous operations are done at once; the manual gives no duration for them.

use super::access::AddressTarget;
use super::{Engine, NextAction, Stop};
use crate::cta::{CodeSite, Cta, Wait};
use crate::marks;
use crate::memory::{CLUSTER_STRIDE, SHARED_BASE};
use crate::watch::{Kind, Meeting, Watch};
use broadloom_device::FaultKind;
use broadloom_ptx::{Modifier, Space};

impl<W: Watch> Engine<'_, W> {
    /// Runs `barrier.cluster.arrive`.
    pub(super) fn arrive_at_cluster(&mut self, cta: &mut Cta, site: CodeSite<'_>) -> Result<NextAction, Stop> {
        let (op, index) = (site.op, site.thread);
        if cta.threads[index].arrived.is_some() {
            let message = "the thread has arrived at the barrier of the cluster and not waited since".to_owned();
            return Err(self.fault(cta, site, FaultKind::BadBarrier, None, message));
        }
        cta.threads[index].arrived = Some(self.cluster.phase);
        self.cluster.arrived += 1;
        self.events += 1;
        if !op.has(Modifier::Relaxed) {
            self.watch.arrive_at(cta, index, Meeting::Cluster(self.cluster.number()));
        }
        self.complete_cluster_barrier();
        Ok(NextAction::Step)
    }

    /// Runs `barrier.cluster.wait`.
    pub(super) fn wait_for_cluster(&mut self, cta: &mut Cta, site: CodeSite<'_>) -> Result<NextAction, Stop> {
        let thread = &mut cta.threads[site.thread];
        match thread.arrived {
            None => {
                let message = "the thread waits at the barrier of the cluster and has not arrived".to_owned();
                Err(self.fault(cta, site, FaultKind::BadBarrier, None, message))
            }
            Some(phase) if phase < self.cluster.phase => {
                thread.arrived = None;
                self.watch.learn_from(cta, site.thread, Meeting::Cluster(self.cluster.number()));
                Ok(NextAction::Step)
            }
            Some(_) => {
                thread.wait = Wait::Cluster;
                cta.parked += 1;
                Ok(NextAction::Stop)
            }
        }
    }

    /// Completes the barrier if every thread of the cluster that has not exited has arrived.
    fn complete_cluster_barrier(&mut self) {
        let cluster = &mut self.cluster;
        if cluster.arrived > 0 && cluster.arrived >= cluster.alive {
            cluster.phase += 1;
            cluster.arrived = 0;
            let number = cluster.number();
            self.watch.complete(Meeting::Cluster(number));
        }
    }

    /// Records that a thread has exited.
    pub(super) fn leave_cluster(&mut self, arrived: Option<u64>, block_ended: bool) {
        self.events += 1;
        let cluster = &mut self.cluster;
        cluster.alive -= 1;
        if arrived == Some(cluster.phase) {
            cluster.arrived -= 1;
        }
        if block_ended && let Some(peer) = cluster.peers.get_mut(cluster.rank as usize) {
            peer.ended = true;
        }
        self.complete_cluster_barrier();
    }

    /// Wakes threads that wait for an mbarrier or for their cluster.
    pub(crate) fn wake(&self, cta: &mut Cta) {
        if std::mem::take(&mut cta.parked) == 0 {
            return;
        }
        for thread in &mut cta.threads {
            match thread.wait {
                Wait::Mbarrier => {
                    thread.wait = Wait::Nothing;
                    thread.asked = true;
                }
                Wait::Cluster if thread.arrived.is_some_and(|phase| phase < self.cluster.phase) => thread.wait = Wait::Nothing,
                Wait::Cluster => cta.parked += 1,
                Wait::Nothing | Wait::Barrier(_) | Wait::Lanes(_) | Wait::Convergence | Wait::Exited => {}
            }
        }
    }

    /// Runs `mapa`. In a cluster of one block, the address does not change.
    pub(super) fn map_address(&mut self, cta: &mut Cta, site: CodeSite<'_>, registers: usize) -> Result<NextAction, Stop> {
        let op = site.op;
        let address = self.read(cta, site, registers, &op.reads[0]);
        let rank = self.read(cta, site, registers, &op.reads[1]) & 0xffff_ffff;
        let blocks = u64::from(self.cluster.blocks());
        if rank >= blocks {
            let message = format!("rank {rank} in a cluster of {blocks} blocks");
            self.complain(cta, site, FaultKind::OutOfBounds, Space::Shared, Some(address), message)?;
        }
        let base = if op.space == Space::Shared { 0 } else { SHARED_BASE };
        let offset = address.wrapping_sub(base) % CLUSTER_STRIDE;
        let mapped = if blocks == 1 { address } else { base + (rank + 1) * CLUSTER_STRIDE + offset };
        self.write(cta, site.thread, registers, &op.writes[0], mapped);
        Ok(NextAction::Step)
    }

    /// Runs `getctarank`.
    pub(super) fn rank_of_address(&mut self, cta: &mut Cta, site: CodeSite<'_>, registers: usize) -> Result<NextAction, Stop> {
        let op = site.op;
        let address = self.read(cta, site, registers, &op.reads[0]);
        let address = if W::ON { marks::unmarked(address) } else { address };
        let base = if op.space == Space::Shared { 0 } else { SHARED_BASE };
        let rank = match address.wrapping_sub(base) / CLUSTER_STRIDE {
            0 => u64::from(self.cluster.rank),
            window => window - 1,
        };
        self.write(cta, site.thread, registers, &op.writes[0], rank);
        Ok(NextAction::Step)
    }

    /// Runs `st.async` and `red.async`: the access itself, then the update of the mbarrier that waits for its
    /// bytes, if there is one.
    pub(super) fn access_async(
        &mut self,
        cta: &mut Cta,
        site: CodeSite<'_>,
        registers: usize,
        reduces: bool,
    ) -> Result<NextAction, Stop> {
        let op = site.op;
        let count = match &op.reads[1] {
            crate::op::Arg::Vector(list) => list.len() as u32,
            _ => 1,
        };
        let next = if reduces { self.atomic(cta, site, registers)? } else { self.store(cta, site, registers)? };
        if let Some(mbarrier) = op.reads.get(2) {
            let address = self.read(cta, site, registers, mbarrier);
            self.bytes_came(cta, site, address, count * op.ty.bytes())?;
        }
        Ok(next)
    }

    /// Runs `st.bulk`: zeros, eight bytes at a time.
    pub(super) fn store_bulk(&mut self, cta: &mut Cta, site: CodeSite<'_>, registers: usize) -> Result<NextAction, Stop> {
        let op = site.op;
        let address = self.read(cta, site, registers, &op.reads[0]);
        let bytes = self.read(cta, site, registers, &op.reads[1]);
        if !bytes.is_multiple_of(8) {
            let message = format!("{bytes} bytes are not a multiple of 8");
            self.complain(cta, site, FaultKind::Misaligned, op.space, Some(address), message)?;
        }
        if !matches!(self.place(cta, site.thread, op.space, false, address), Ok(AddressTarget::Shared(_))) {
            let address = marks::unmarked(address);
            let message = format!("{address:#x} is not in the shared memory of the block");
            self.complain(cta, site, FaultKind::WrongSpace, op.space, Some(address), message)?;
            return Ok(NextAction::Step);
        }
        for offset in (0..bytes & !7).step_by(8) {
            match self.approach(cta, site, address.wrapping_add(offset), 8, 8, Kind::Write)? {
                Some(place) => self.store_bytes(cta, site.thread, place, &[0; 8]),
                // Reported once; the rest lies after it.
                None => break,
            }
        }
        Ok(NextAction::Step)
    }
}
