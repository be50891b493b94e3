//! Loads, stores and addresses (manual: "Data Movement and Conversion Instructions", "Memory Consistency
//! Model").

use super::ordering::{order, scope};
use super::{Engine, NextAction, Stop};
use crate::cta::{CodeSite, Cta};
use crate::marks::{self, WrongAddress};
use crate::memory::{AccessError, CLUSTER_STRIDE, LOCAL_BASE, Owner, PARAM_BASE, SHARED_BASE};
use crate::op::{Arg, Op};
use crate::watch::{Access, ByteMemory, Kind, Order, Scope, Watch};
use broadloom_device::FaultKind;
use broadloom_eval::sign_extend;
use broadloom_ptx::{Modifier, Opcode, Space};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressTarget {
    Device(u64),
    Shared(u64),
    /// In another block of the cluster.
    Peer {
        rank: u32,
        offset: u64,
    },
    Local(u64),
    Param(u64),
}

/// Memory that an instruction is about to access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) space: Space,
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// Alignment that the address must have.
    pub(super) align: u64,
    pub(super) kind: Kind,
    pub(super) order: Order,
    pub(super) scope: Scope,
}

impl Request {
    /// Creates the request of an asynchronous or texture access, which nothing orders.
    pub(super) fn weak(space: Space, address: u64, bytes: u64, align: u64, kind: Kind) -> Request {
        Request { space, address, bytes, align, kind, order: Order::Weak, scope: Scope::System }
    }
}

/// Returns whether a shared address may lead to another block of the cluster.
pub(super) fn reaches_cluster(op: &Op) -> bool {
    op.space == Space::Generic || op.has(Modifier::SharedCluster)
}

impl<W: Watch> Engine<'_, W> {
    /// Returns the target of a thread's address of a space.
    pub(super) fn place(
        &self,
        cta: &Cta,
        thread: usize,
        space: Space,
        in_cluster: bool,
        address: u64,
    ) -> Result<AddressTarget, WrongAddress> {
        let address = if W::ON { marks::own(cta, thread, address)? } else { address };
        let wrong = |actual| WrongAddress::Space { address, actual, space };
        let shared = |offset| self.place_in_shared(in_cluster, offset).ok_or_else(|| wrong("the shared memory of another block"));
        match space {
            Space::Shared => shared(address),
            Space::Local => Ok(AddressTarget::Local(address)),
            Space::Param if (LOCAL_BASE..SHARED_BASE).contains(&address) => Ok(AddressTarget::Local(address - LOCAL_BASE)),
            Space::Param => Ok(AddressTarget::Param(address.wrapping_sub(PARAM_BASE))),
            Space::Generic => Ok(match address {
                PARAM_BASE..LOCAL_BASE => AddressTarget::Param(address - PARAM_BASE),
                LOCAL_BASE..SHARED_BASE => AddressTarget::Local(address - LOCAL_BASE),
                SHARED_BASE..0x1_0000_0000 => shared(address - SHARED_BASE)?,
                _ => AddressTarget::Device(address),
            }),
            Space::Global | Space::Const | Space::Tex | Space::Reg => match address {
                LOCAL_BASE..SHARED_BASE => Err(wrong("local memory")),
                SHARED_BASE..0x1_0000_0000 => Err(wrong("shared memory")),
                // Grid constants are read through the parameter window, for any space of the instruction.
                PARAM_BASE..LOCAL_BASE => Ok(AddressTarget::Param(address - PARAM_BASE)),
                _ => Ok(AddressTarget::Device(address)),
            },
        }
    }

    /// Translates a shared address. Addresses after the first stride lead to the blocks of the cluster, by
    /// rank; there are none in a cluster of one. Returns `None` for another block that must not be accessed.
    fn place_in_shared(&self, in_cluster: bool, address: u64) -> Option<AddressTarget> {
        let blocks = self.cluster.blocks();
        if address < CLUSTER_STRIDE || blocks == 1 {
            return Some(AddressTarget::Shared(address));
        }
        let (rank, offset) = (address / CLUSTER_STRIDE - 1, address % CLUSTER_STRIDE);
        if rank == u64::from(self.cluster.rank) {
            Some(AddressTarget::Shared(offset))
        } else if rank >= u64::from(blocks) {
            Some(AddressTarget::Shared(address))
        } else {
            in_cluster.then_some(AddressTarget::Peer { rank: rank as u32, offset })
        }
    }

    /// Checks an access and reports it to the watcher. Returns `None` if it must not happen (only in a
    /// watched run).
    pub(super) fn approach(
        &mut self,
        cta: &Cta,
        site: CodeSite<'_>,
        address: u64,
        bytes: u64,
        align: u64,
        kind: Kind,
    ) -> Result<Option<AddressTarget>, Stop> {
        let (order, scope) = (order(site.op), scope(site.op));
        self.approach_with(cta, site, Request { space: site.op.space, address, bytes, align, kind, order, scope })
    }

    /// Checks and reports an access whose space, order or scope are not the instruction's.
    pub(super) fn approach_with(
        &mut self,
        cta: &Cta,
        site: CodeSite<'_>,
        request: Request,
    ) -> Result<Option<AddressTarget>, Stop> {
        let Request { space, address, bytes, align, kind, order, scope } = request;
        let place = self.place(cta, site.thread, space, reaches_cluster(site.op), address);
        let address = if W::ON { marks::unmarked(address) } else { address };
        let complain = |engine: &mut Self, fault: FaultKind, message: String| {
            engine.complain(cta, site, fault, space, Some(address), message).map(|()| None)
        };
        let place = match place {
            Ok(place) => place,
            Err(why) => return complain(self, FaultKind::WrongSpace, why.to_string()),
        };
        if !address.is_multiple_of(align) {
            return complain(self, FaultKind::Misaligned, format!("{address:#x} is not a multiple of {align}"));
        }
        let inside = |offset: u64, size: u64| offset.checked_add(bytes).is_some_and(|end| end <= size);
        let (home, offset) = match place {
            AddressTarget::Shared(offset) => {
                if !inside(offset, self.shared_bytes) {
                    let near = self.names.near_shared(offset, bytes).map(|near| format!(", {near}")).unwrap_or_default();
                    let message = format!(
                        "{bytes} bytes at {offset:#x} are outside of the block's {} bytes of shared memory{near}",
                        self.shared_bytes
                    );
                    return complain(self, FaultKind::OutOfBounds, message);
                }
                (ByteMemory::Shared, offset)
            }
            AddressTarget::Peer { rank, offset } => {
                if !inside(offset, self.shared_bytes) {
                    let size = self.shared_bytes;
                    let message = format!(
                        "{bytes} bytes at {offset:#x} are outside of the {size} bytes of shared memory of block {rank} of the cluster"
                    );
                    return complain(self, FaultKind::OutOfBounds, message);
                }
                let peer = &self.cluster.peers[rank as usize];
                if peer.ended {
                    let message = format!("block {rank} of the cluster has ended, and its shared memory with it");
                    return complain(self, FaultKind::OutOfBounds, message);
                }
                (ByteMemory::Peer(peer.number), offset)
            }
            AddressTarget::Local(offset) => {
                let size = cta.threads[site.thread].local.len() as u64;
                if !inside(offset, size) {
                    let message =
                        format!("{bytes} bytes at {offset:#x} are outside of the thread's {size} bytes of local memory");
                    return complain(self, FaultKind::OutOfBounds, message);
                }
                (ByteMemory::Local, offset)
            }
            AddressTarget::Param(offset) => {
                if !inside(offset, self.params.len() as u64) || kind != Kind::Read {
                    let what = if kind == Kind::Read { "outside of" } else { "written to, in" };
                    let message =
                        format!("{bytes} bytes at {offset:#x} are {what} the kernel's {} bytes of parameters", self.params.len());
                    return complain(self, FaultKind::OutOfBounds, message);
                }
                (ByteMemory::Param, offset)
            }
            AddressTarget::Device(address) => {
                let found = match self.memory.find(address, bytes) {
                    Ok(found) => found,
                    Err(AccessError::OutOfBounds(why, near)) => {
                        let message = why + &self.argument_near(near);
                        return complain(self, FaultKind::OutOfBounds, message);
                    }
                    Err(AccessError::Freed(why, near)) => {
                        let message = why + &self.argument_near(Some(near));
                        return complain(self, FaultKind::UseAfterFree, message);
                    }
                };
                let constant = matches!(found.owner, Owner::Const(_));
                if constant && kind != Kind::Read {
                    let message = format!("a write to {}", found.describe());
                    return complain(self, FaultKind::WrongSpace, message);
                }
                if space == Space::Const && !constant {
                    let message = format!("{} is not constant memory", found.describe());
                    return complain(self, FaultKind::WrongSpace, message);
                }
                (ByteMemory::Device(found.serial), address - found.start)
            }
        };
        if W::ON {
            let access = Access { kind, home, offset, bytes, order, scope };
            self.watch.access(cta, site, access);
        }
        Ok(Some(place))
    }

    /// Names the argument that points into an allocation, in parentheses.
    fn argument_near(&self, near: Option<(u64, u64)>) -> String {
        let argument = near.and_then(|(start, size)| self.names.argument(start, size));
        argument.map(|argument| format!(" ({argument})")).unwrap_or_default()
    }

    /// Returns the bytes of a checked place.
    pub(super) fn bytes<'s>(&'s mut self, cta: &'s mut Cta, index: usize, place: AddressTarget, count: u64) -> &'s mut [u8] {
        let (bytes, offset): (&mut [u8], u64) = match place {
            AddressTarget::Shared(offset) => (&mut cta.shared, offset),
            AddressTarget::Peer { rank, offset } => (&mut self.cluster.peers[rank as usize].shared, offset),
            AddressTarget::Local(offset) => (&mut cta.threads[index].local, offset),
            AddressTarget::Device(address) => match self.memory.find(address, count) {
                Ok(found) => {
                    let offset = address - found.start;
                    (&mut found.bytes, offset)
                }
                Err(_) => return &mut [],
            },
            AddressTarget::Param(_) => return &mut [],
        };
        bytes.get_mut(offset as usize..(offset + count) as usize).unwrap_or_default()
    }

    pub(super) fn load_bytes(&mut self, cta: &mut Cta, index: usize, place: AddressTarget, into: &mut [u8]) {
        if let AddressTarget::Param(offset) = place {
            let start = offset as usize;
            if let Some(found) = self.params.get(start..start + into.len()) {
                into.copy_from_slice(found);
            }
            return;
        }
        let count = into.len() as u64;
        let found = self.bytes(cta, index, place, count);
        if found.len() == into.len() {
            into.copy_from_slice(found);
        }
    }

    pub(super) fn store_bytes(&mut self, cta: &mut Cta, index: usize, place: AddressTarget, from: &[u8]) {
        let found = self.bytes(cta, index, place, from.len() as u64);
        if found.len() == from.len() {
            found.copy_from_slice(from);
        }
    }

    pub(super) fn load(&mut self, cta: &mut Cta, site: CodeSite<'_>, registers: usize) -> Result<NextAction, Stop> {
        let op = site.op;
        let address = self.read(cta, site, registers, &op.reads[0]);
        let size = op.ty.bytes() as usize;
        let places: &[Arg] = match &op.writes[0] {
            Arg::Vector(places) => places,
            place => std::slice::from_ref(place),
        };
        let total = size * places.len();
        let mut bytes = [0u8; 64];
        let bytes = &mut bytes[..total.min(64)];
        if let Some(place) = self.approach(cta, site, address, total as u64, total as u64, Kind::Read)? {
            self.load_bytes(cta, site.thread, place, bytes);
        }
        for (place, part) in places.iter().zip(bytes.chunks_exact(size)) {
            let mut wide = [0u8; 16];
            wide[..size].copy_from_slice(part);
            let value = u128::from_le_bytes(wide);
            match place {
                Arg::Wide { slot } => self.write_wide(cta, site.thread, registers, *slot, value),
                place if op.ty.is_signed() => {
                    let value = sign_extend(value as u64, op.ty.bits()) as u64;
                    self.write(cta, site.thread, registers, place, value);
                }
                place => self.write(cta, site.thread, registers, place, value as u64),
            }
        }
        Ok(NextAction::Step)
    }

    pub(super) fn store(&mut self, cta: &mut Cta, site: CodeSite<'_>, registers: usize) -> Result<NextAction, Stop> {
        let op = site.op;
        let address = self.read(cta, site, registers, &op.reads[0]);
        let size = op.ty.bytes() as usize;
        let sources: &[Arg] = match &op.reads[1] {
            Arg::Vector(sources) => sources,
            source => std::slice::from_ref(source),
        };
        let total = (size * sources.len()).min(64);
        let mut bytes = [0u8; 64];
        for (source, part) in sources.iter().zip(bytes.chunks_exact_mut(size)) {
            let value = self.read_wide(cta, site, registers, source);
            part.copy_from_slice(&value.to_le_bytes()[..size]);
        }
        if let Some(place) = self.approach(cta, site, address, total as u64, total as u64, Kind::Write)? {
            self.store_bytes(cta, site.thread, place, &bytes[..total]);
        }
        Ok(NextAction::Step)
    }

    /// Computes `cvta` and `cvta.to`. A foreign address keeps its mark.
    pub(super) fn convert_address(&self, cta: &Cta, thread: usize, op: &Op, value: u64) -> u64 {
        let base = match op.space {
            Space::Shared => SHARED_BASE,
            Space::Local => LOCAL_BASE,
            // Addresses of these spaces are generic addresses.
            Space::Global | Space::Const | Space::Param | Space::Generic | Space::Reg | Space::Tex => 0,
        };
        let marks = W::ON && op.ty.bits() == 64;
        if op.opcode == Opcode::CvtaTo {
            let own = if marks { marks::own(cta, thread, value).unwrap_or(value) } else { value };
            return own.wrapping_sub(base);
        }
        let generic = value.wrapping_add(base);
        if marks && base != 0 { marks::mark(cta, thread, generic) } else { generic }
    }

    /// Computes `isspacep`.
    pub(super) fn is_in_space(&mut self, cta: &Cta, thread: usize, op: &Op, address: u64) -> bool {
        let address = if W::ON { marks::unmarked(address) } else { address };
        let place = self.place(cta, thread, Space::Generic, true, address);
        let constant =
            |engine: &mut Self| engine.memory.find(address, 1).is_ok_and(|found| matches!(found.owner, Owner::Const(_)));
        match (op.space, place) {
            (Space::Shared, Ok(AddressTarget::Peer { .. })) => op.has(Modifier::SharedCluster),
            (Space::Shared, Ok(AddressTarget::Shared(_)))
            | (Space::Local, Ok(AddressTarget::Local(_)))
            | (Space::Param, Ok(AddressTarget::Param(_))) => true,
            (Space::Const, Ok(AddressTarget::Device(_))) => constant(self),
            (Space::Global, Ok(AddressTarget::Device(_))) => !constant(self),
            _ => false,
        }
    }
}
