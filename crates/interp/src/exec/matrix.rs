//! Matrices of a warp (manual: "Warp Level Matrix Instructions").
//!
//! Products, `ldmatrix` and similar instructions run when all 32 lanes have arrived; it is an error if one
//! has exited or never existed. `wmma.load` and `wmma.store` need no other lanes: each thread moves the
//! elements that it holds.

use super::access::AddressTarget;
use super::{Engine, NextAction, Stop};
use crate::cta::{CodeSite, Cta};
use crate::op::{Arg, Matrix, Op};
use crate::watch::{Kind, Watch};
use broadloom_device::FaultKind;
use broadloom_eval::matrix::{LANES, ROW_BYTES, Rows, Transfer, transpose};
use broadloom_ptx::Space;

/// Returns the parts of an operand: a vector's, or itself.
fn parts(arg: &Arg) -> &[Arg] {
    match arg {
        Arg::Vector(parts) => parts,
        arg => std::slice::from_ref(arg),
    }
}

impl<W: Watch> Engine<'_, W> {
    /// Runs an instruction of a whole warp for its threads, given by lane.
    pub(super) fn matrix(&mut self, cta: &mut Cta, members: &[usize]) -> Result<(), Stop> {
        let program = self.program;
        let mut sites = Vec::with_capacity(LANES);
        for &index in members {
            let Some(frame) = cta.threads[index].frames.last() else { continue };
            let op: &Op = &program.routine(frame.func).ops[frame.pc];
            sites.push((CodeSite { func: frame.func, op, thread: index }, frame.registers));
        }
        let Some((first, _)) = sites.first().copied() else { return Ok(()) };
        self.watch.warp(cta, first, members, u32::MAX);
        if sites.len() != LANES {
            let message = format!("{} lanes of the warp come to it, and all {LANES} must", sites.len());
            return Err(self.fault(cta, first, FaultKind::BadBarrier, None, message));
        }
        let Some(matrix) = first.op.matrix.as_deref() else { return Ok(()) };
        let mut outputs = vec![];
        match matrix {
            Matrix::Product(product) => {
                let inputs = self.registers(cta, &sites, 0);
                outputs = vec![0; product.outputs() * LANES];
                product.multiply(&inputs, &mut outputs);
            }
            Matrix::Transpose => {
                let inputs = self.registers(cta, &sites, 0);
                outputs = vec![0; LANES];
                transpose(&inputs, &mut outputs);
            }
            Matrix::Load(rows) => {
                let memory = self.rows(cta, &sites, *rows, None)?;
                outputs = vec![0; rows.count as usize * LANES];
                rows.load(&memory, &mut outputs);
            }
            Matrix::Store(rows) => {
                let inputs = self.registers(cta, &sites, 1);
                let mut memory = vec![[0; ROW_BYTES as usize]; 8 * rows.count as usize];
                rows.store(&inputs, &mut memory);
                self.rows(cta, &sites, *rows, Some(&memory))?;
            }
            Matrix::Fragment(_) => {}
        }
        for (lane, (site, registers)) in sites.iter().enumerate() {
            let places = site.op.writes.first().map_or(&[] as &[Arg], parts);
            for (register, place) in places.iter().enumerate() {
                self.write(cta, site.thread, *registers, place, outputs[register * LANES + lane]);
            }
        }
        for (site, _) in &sites {
            self.resume(cta, site.thread);
        }
        Ok(())
    }

    /// Reads the operands of all lanes, starting at one of them, as `[register][lane]`.
    fn registers(&mut self, cta: &Cta, sites: &[(CodeSite<'_>, usize)], from: usize) -> Vec<u64> {
        let count: usize = sites[0].0.op.reads.iter().skip(from).map(|arg| parts(arg).len()).sum();
        let mut all = vec![0; count * LANES];
        for (lane, (site, registers)) in sites.iter().enumerate() {
            for (register, arg) in site.op.reads.iter().skip(from).flat_map(parts).enumerate() {
                all[register * LANES + lane] = self.read(cta, *site, *registers, arg);
            }
        }
        all
    }

    /// Reads or writes the rows of matrices at the addresses of the lanes.
    fn rows(
        &mut self,
        cta: &mut Cta,
        sites: &[(CodeSite<'_>, usize)],
        rows: Rows,
        write: Option<&[[u8; 16]]>,
    ) -> Result<Vec<[u8; 16]>, Stop> {
        let mut memory = vec![[0; ROW_BYTES as usize]; 8 * rows.count as usize];
        let kind = if write.is_some() { Kind::Write } else { Kind::Read };
        for (row, (site, registers)) in sites.iter().enumerate().take(memory.len()) {
            let address = self.read(cta, *site, *registers, &site.op.reads[0]);
            let Some(place) = self.approach(cta, *site, address, ROW_BYTES, ROW_BYTES, kind)? else { continue };
            if !matches!(place, AddressTarget::Shared(_) | AddressTarget::Peer { .. }) {
                let message = format!("{address:#x} is not in shared memory, where the rows of matrices lie");
                self.complain(cta, *site, FaultKind::WrongSpace, Space::Shared, Some(address), message)?;
                continue;
            }
            match write {
                Some(write) => self.store_bytes(cta, site.thread, place, &write[row]),
                None => self.load_bytes(cta, site.thread, place, &mut memory[row]),
            }
        }
        Ok(memory)
    }

    /// Runs `wmma.load` and `wmma.store`.
    pub(super) fn fragment(&mut self, cta: &mut Cta, site: CodeSite<'_>, registers: usize) -> Result<NextAction, Stop> {
        let op = site.op;
        let Some(Matrix::Fragment(transfer)) = op.matrix.as_deref() else { return Ok(NextAction::Step) };
        let is_store = op.writes.is_empty();
        let (held, stride) = if is_store { (op.reads.get(1), op.reads.get(2)) } else { (op.writes.first(), op.reads.get(1)) };
        let base = self.read(cta, site, registers, &op.reads[0]);
        let mask = if let Arg::Memory { mask, .. } = op.reads[0] { mask } else { u64::MAX };
        let stride = match stride {
            Some(arg) if *arg != Arg::Sink => self.read(cta, site, registers, arg) as u32,
            _ => transfer.least_stride(),
        };
        let lane = (site.thread % LANES) as u32;
        for (register, arg) in held.map_or(&[] as &[Arg], parts).iter().enumerate() {
            let mut value = if is_store { self.read(cta, site, registers, arg) } else { 0 };
            let (bits, pieces) = transfer.pieces();
            for piece in 0..pieces {
                let address = base.wrapping_add(piece_offset(transfer, stride, lane, register as u32, piece)) & mask;
                let (bytes, shift) = (u64::from(bits / 8), bits * piece % 64);
                let kind = if is_store { Kind::Write } else { Kind::Read };
                let Some(place) = self.approach(cta, site, address, bytes, bytes, kind)? else { continue };
                let mut buffer = [0; 8];
                let buffer = &mut buffer[..bytes as usize];
                if is_store {
                    buffer.copy_from_slice(&(value >> shift).to_le_bytes()[..bytes as usize]);
                    self.store_bytes(cta, site.thread, place, buffer);
                } else {
                    self.load_bytes(cta, site.thread, place, buffer);
                    value |= buffer.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)) << shift;
                }
            }
            if !is_store {
                self.write(cta, site.thread, registers, arg, value);
            }
        }
        Ok(NextAction::Step)
    }
}

/// Returns the offset of a piece of a register in memory, in bytes from the first element.
fn piece_offset(transfer: &Transfer, stride: u32, lane: u32, register: u32, piece: u32) -> u64 {
    let (line, element) = transfer.place(lane, register * transfer.per_register() + piece);
    (u64::from(line) * u64::from(stride) + u64::from(element)) * u64::from(transfer.ty.bits()) / 8
}
