//! Matrices of a warp (manual: "Warp Level Matrix Instructions").
//!
//! A product is a call with the registers of all lanes in memory. It calls vector code (`product.rs`), or the
//! runtime for rare products. Instructions that move matrices are loads and stores for which lanes exchange
//! addresses. On the slow path, where a warp is one thread, the runtime brings the lanes together.

use super::emitter::{Emitter, TranslationError, TranslationResult};
use super::llvm::{IntPred, Ir, Ty, Val};
use super::product;
use super::runtime::Service;
use crate::abi::{Exchange, ExchangeOperands, Reason};
use crate::code::RareInstruction;
use broadloom_eval::matrix::{Product, Rows, Transfer};
use broadloom_ptx::{InstData, Opcode, Operand, Type};
use std::mem::offset_of;

/// Returns the registers of a fragment.
fn registers(inst: &InstData, index: usize) -> Vec<Operand> {
    inst.operands.get(index).map_or(vec![], |fragment| fragment.elements().to_vec())
}

impl Emitter<'_> {
    /// Emits an instruction of the class `matrix`.
    pub(crate) fn matrix(&mut self, opcode: Opcode, inst: &InstData) -> TranslationResult<()> {
        let unknown = || TranslationError(format!("`{}`", inst.mnemonic_text()));
        if matches!(opcode, Opcode::WmmaLoad | Opcode::WmmaStore) {
            let transfer = Transfer::of(inst).ok_or_else(unknown)?;
            return self.fragment(inst, &transfer);
        }
        self.demand_whole_warp(inst)?;
        if let Some(rows) = Rows::of(inst) {
            return self.rows_of_matrices(inst, rows);
        }
        if opcode == Opcode::Movmatrix {
            return self.transpose(inst);
        }
        let product = Product::of(inst).ok_or_else(unknown)?;
        self.multiply(inst, &product)
    }

    /// Emits a fault if some lanes are missing.
    fn demand_whole_warp(&mut self, inst: &InstData) -> TranslationResult<()> {
        let ir = self.ir;
        let i32 = ir.int(32);
        let active = self.active(inst)?;
        let here = match self.lanes {
            Some(_) if self.guard(inst)?.is_none() => return Ok(()),
            Some(_) => self.as_mask(active),
            None => {
                let one = ir.constant(ir.int(64), 1);
                let mask = self.exchange_value(active, Exchange::Ballot, one, ir.constant(i32, 0));
                ir.trunc(mask, i32)
            }
        };
        let missing = ir.icmp(IntPred::LLVMIntNE, here, ir.constant(i32, 0xffff_ffff));
        let missing = if ir.lanes(active).is_some() { ir.splat(missing, 32) } else { missing };
        let wrong = ir.and(active, missing);
        let count = ir.zext(ir.intrinsic("llvm.ctpop", &[i32], &[here]), ir.int(64));
        self.fault(inst, Reason::MissingLanes, wrong, count);
        Ok(())
    }

    /// Exchanges one value with other lanes on the slow path. Returns the received value.
    fn exchange_value(&mut self, active: Val, kind: Exchange, value: Val, select: Val) -> Val {
        let ir = self.ir;
        let (i32, i64) = (ir.int(32), ir.int(64));
        let site = self.next_site();
        let place = ir.stack(ir.vector(ir.int(8), size_of::<ExchangeOperands>() as u32), 8);
        let put = |value: Val, at: usize, align: u32| ir.store(value, ir.offset_by(place, at as u64), align);
        let result = self.each_lane(active, Type::B64, true, |emitter, _| {
            put(ir.constant(i32, 0xffff_ffff), offset_of!(ExchangeOperands, members), 4);
            put(select, offset_of!(ExchangeOperands, select), 4);
            put(ir.constant(i32, 0x1f), offset_of!(ExchangeOperands, control), 4);
            put(ir.constant(i32, 0), offset_of!(ExchangeOperands, flag), 4);
            put(ir.constant(i32, site), offset_of!(ExchangeOperands, site), 4);
            put(ir.constant(i32, 0), offset_of!(ExchangeOperands, convergent), 4);
            put(value, offset_of!(ExchangeOperands, value), 8);
            emitter.serve(Service::Exchange, ir.void(), &[emitter.warp, ir.constant(i32, kind as u64), place]);
            ir.load(i64, ir.offset_by(place, offset_of!(ExchangeOperands, value) as u64), 8)
        });
        result.unwrap_or(ir.constant(i64, 0))
    }

    /// Returns the number of the lane, on the slow path.
    fn lane_number(&self) -> Val {
        self.ir.and(self.first, self.ir.constant(self.ir.int(32), 31))
    }

    /// Returns the value of another lane, in 64 bits. `source` computes that lane's number from the own
    /// number.
    fn of_lane(&mut self, inst: &InstData, value: Val, source: impl Fn(&Ir, Val) -> Val) -> TranslationResult<Val> {
        let ir = self.ir;
        let value = ir.resize(value, ir.int(64), false);
        let Some(lanes) = self.lanes else {
            let lane = self.lane_number();
            let active = self.active(inst)?;
            return Ok(self.exchange_value(active, Exchange::ShuffleIndex, value, source(ir, lane)));
        };
        let sources = source(ir, ir.steps(ir.int(32), lanes, 1));
        let picks: Option<Vec<u32>> =
            (0..lanes).map(|lane| ir.as_constant(ir.extract_at(sources, lane)).map(|number| number as u32 & 31)).collect();
        let picks = picks.ok_or_else(|| TranslationError("lanes that are not known".into()))?;
        let value = if ir.lanes(value).is_some() { value } else { ir.splat(value, lanes) };
        Ok(ir.pick(value, &picks))
    }

    // Products.

    fn multiply(&mut self, inst: &InstData, product: &Product) -> TranslationResult<()> {
        let ir = self.ir;
        let inputs = broadloom_eval::inputs(inst).map(|(operand, ty)| self.fetch(operand, ty, self.lanes.is_none()));
        let inputs: Vec<Val> = inputs.collect::<TranslationResult<_>>()?;
        let places = registers(inst, 0);
        let (i32, i64) = (ir.int(32), ir.int(64));
        let ty = if product.d == Type::F64 { Type::B64 } else { Type::B32 };
        let active = self.active(inst)?;
        let is_code = self.lanes.is_some() && product::has_code(product);
        let word = if is_code { ir.int(ty.bits()) } else { i64 };
        let row = ir.lanes_of(word, self.lanes);
        let bytes = u64::from(ir.bits(word) / 8) * u64::from(self.lanes.unwrap_or(1));
        let rows = |count: usize| ir.vector(word, count as u32 * self.lanes.unwrap_or(1));
        let from = self.room(rows(inputs.len() + places.len()));
        let to = ir.offset_by(from, inputs.len() as u64 * bytes);
        for (index, value) in inputs.iter().enumerate().filter(|(index, _)| !is_code || product::reads(product, *index as u32)) {
            let bits = ir.bitcast(*value, ir.int(ir.bits(ir.type_of(*value))));
            ir.store(ir.resize(bits, word, false), ir.offset_by(from, index as u64 * bytes), 8);
        }
        if is_code {
            let function = self.product_function(product);
            self.if_any(active, i32, |emitter| {
                emitter.ir.call(function, ir.void(), &[from, to]);
                ir.constant(i32, 0)
            });
        } else {
            let number = ir.constant(i32, self.rare.len() as u64);
            self.rare.push(RareInstruction::of(inst));
            if self.lanes.is_some() {
                let mask = self.as_mask(active);
                self.if_any(active, i32, |emitter| {
                    emitter.serve(Service::Evaluate, ir.void(), &[emitter.warp, number, mask, from, to]);
                    ir.constant(i32, 0)
                });
            } else {
                self.exchange_value(active, Exchange::Product, ir.ptrtoint(from, i64), number);
            }
        }
        for (index, operand) in places.iter().enumerate() {
            let value = ir.load(row, ir.offset_by(to, index as u64 * bytes), 8);
            self.assign(operand, ty, ir.resize(value, ir.int(ty.bits()), false))?;
        }
        Ok(())
    }

    /// Returns the function for a kind of product, shared by all instructions of the kernel.
    fn product_function(&mut self, product: &Product) -> Val {
        if let Some((_, function)) = self.products.iter().find(|(other, _)| other == product) {
            return *function;
        }
        let function = self.ir.declare(&format!("product{}", self.products.len()), 2, false);
        self.products.push((*product, function));
        function
    }

    // Memory.

    /// Loads an integer from any address in each active lane.
    fn load_words(&self, ty: Ty, pointers: Val, active: Val) -> Val {
        let ir = self.ir;
        let bytes = u64::from(ir.bits(ty) / 8);
        match self.lanes {
            Some(lanes) => {
                let row = ir.vector(ty, lanes);
                let align = ir.constant(ir.int(32), bytes);
                ir.intrinsic("llvm.masked.gather", &[row, ir.type_of(pointers)], &[pointers, align, active, ir.zero(row)])
            }
            None => {
                let bits = Type::bits_of(ir.bits(ty)).unwrap_or(Type::B64);
                let value = self.each_lane(active, bits, true, |_, _| ir.load(ty, pointers, bytes as u32));
                value.unwrap_or(ir.zero(ty))
            }
        }
    }

    /// Stores to any address in each active lane.
    fn store_words(&self, value: Val, pointers: Val, active: Val) {
        let ir = self.ir;
        let bytes = u64::from(ir.bits(ir.type_of(value)) / 8);
        if self.lanes.is_some() {
            let (row, all) = (ir.type_of(value), ir.type_of(pointers));
            let align = ir.constant(ir.int(32), bytes);
            ir.intrinsic("llvm.masked.scatter", &[row, all], &[value, pointers, align, active]);
            return;
        }
        self.each_lane(active, Type::B32, false, |_, _| {
            ir.store(value, pointers, bytes as u32);
            ir.constant(ir.int(32), 0)
        });
    }

    /// Emits `ldmatrix` and `stmatrix`: a lane moves its own elements, at addresses that other lanes provide.
    fn rows_of_matrices(&mut self, inst: &InstData, rows: Rows) -> TranslationResult<()> {
        let ir = self.ir;
        let i64 = ir.int(64);
        let address = self.address_of(inst)?;
        let named = self.addresses(&self.reach(inst, &address)?);
        let loads = inst.opcode() == Some(Opcode::Ldmatrix);
        let registers = registers(inst, usize::from(!loads));
        let active = self.active(inst)?;
        let numbers = match self.lanes {
            Some(lanes) => ir.steps(ir.int(32), lanes, 1),
            None => self.lane_number(),
        };
        let number = |value: u64| ir.constant(ir.type_of(numbers), value);
        let group = |ir: &Ir, lane: Val| ir.lshr(lane, ir.constant(ir.type_of(lane), 2));
        let member = |ir: &Ir, lane: Val| ir.and(lane, ir.constant(ir.type_of(lane), 3));
        for (matrix, operand) in (0u64..).zip(&registers) {
            let stored = if loads { None } else { Some(self.fetch(operand, Type::B32, self.lanes.is_none())?) };
            if !rows.transposed {
                let start =
                    self.of_lane(inst, named, |ir, lane| ir.add(group(ir, lane), ir.constant(ir.type_of(lane), 8 * matrix)))?;
                let bytes = ir.shl(member(ir, numbers), number(2));
                let place = ir.as_pointer(ir.add(start, ir.zext(bytes, i64)));
                self.check_lanes(inst, place, 4, active)?;
                match stored {
                    Some(value) => self.store_words(value, place, active),
                    None => {
                        let value = self.load_words(ir.int(32), place, active);
                        self.assign(operand, Type::B32, value)?;
                    }
                }
                continue;
            }
            let mut halves = vec![];
            for part in 0..2 {
                let start = self.of_lane(inst, named, |ir, lane| {
                    let ty = ir.type_of(lane);
                    ir.add(ir.shl(member(ir, lane), ir.constant(ty, 1)), ir.constant(ty, 8 * matrix + part))
                })?;
                let bytes = ir.shl(group(ir, numbers), number(1));
                let place = ir.as_pointer(ir.add(start, ir.zext(bytes, i64)));
                self.check_lanes(inst, place, 2, active)?;
                match stored {
                    Some(value) => {
                        let half = ir.lshr(value, ir.constant(ir.type_of(value), 16 * part));
                        self.store_words(ir.trunc(half, ir.int(16)), place, active);
                    }
                    None => halves.push(ir.zext(self.load_words(ir.int(16), place, active), ir.int(32))),
                }
            }
            if let [low, high] = halves.as_slice() {
                let high = ir.shl(*high, ir.constant(ir.type_of(*high), 16));
                self.assign(operand, Type::B32, ir.or(*low, high))?;
            }
        }
        Ok(())
    }

    /// Emits `movmatrix`.
    fn transpose(&mut self, inst: &InstData) -> TranslationResult<()> {
        let ir = self.ir;
        let (Some(result), Some(source)) = (inst.operands.first().cloned(), inst.operands.get(1)) else {
            return Err(TranslationError("a `movmatrix` without operands".into()));
        };
        let value = self.fetch(source, Type::B32, self.lanes.is_none())?;
        let numbers = match self.lanes {
            Some(lanes) => ir.steps(ir.int(32), lanes, 1),
            None => self.lane_number(),
        };
        let number = |value: u64| ir.constant(ir.type_of(numbers), value);
        // Selects the half of the other lane's register.
        let shift = ir.shl(ir.and(ir.lshr(numbers, number(2)), number(1)), number(4));
        let mut halves = vec![];
        for part in 0..2 {
            let other = self.of_lane(inst, value, |ir, lane| {
                let c = |value: u64| ir.constant(ir.type_of(lane), value);
                let row = ir.add(ir.shl(ir.and(lane, c(3)), c(1)), c(part));
                ir.add(ir.shl(row, c(2)), ir.lshr(lane, c(3)))
            })?;
            let other = ir.trunc(other, ir.int(32));
            halves.push(ir.and(ir.lshr(other, shift), ir.constant(ir.type_of(other), 0xffff)));
        }
        let high = ir.shl(halves[1], ir.constant(ir.type_of(halves[1]), 16));
        self.assign(&result, Type::B32, ir.or(halves[0], high))
    }

    /// Emits `wmma.load` and `wmma.store`: each lane moves the elements that it holds.
    fn fragment(&mut self, inst: &InstData, transfer: &Transfer) -> TranslationResult<()> {
        let ir = self.ir;
        let i64 = ir.int(64);
        let loads = inst.opcode() == Some(Opcode::WmmaLoad);
        let registers = registers(inst, usize::from(!loads));
        let address = self.address_of(inst)?;
        let base = self.addresses(&self.reach(inst, &address)?);
        let active = self.active(inst)?;
        let scalar = self.lanes.is_none();
        let stride = match inst.operands.get(2) {
            Some(operand) if !matches!(operand, Operand::Absent) => {
                let uniform = scalar
                    || matches!(operand, Operand::Reg(reg) if self.is_kept_as_scalar(*reg) && self.offsets(*reg).is_none());
                ir.zext(self.fetch(operand, Type::U32, uniform)?, i64)
            }
            _ => ir.constant(i64, u64::from(transfer.least_stride())),
        };
        let row = ir.lanes_of(i64, self.lanes);
        let lane = if scalar { Some(ir.zext(self.lane_number(), i64)) } else { None };
        // Returns a number that depends on the lane.
        let by_lane = |emitter: &Self, value: &dyn Fn(u32) -> u32| match lane {
            None => emitter.numbers(i64, &(0..32).map(|lane| i64::from(value(lane))).collect::<Vec<_>>()),
            Some(lane) => {
                let table = (0..32).map(|lane| ir.constant(i64, u64::from(value(lane)))).collect::<Vec<_>>();
                ir.extract(ir.constants(&table), lane)
            }
        };
        let (bits, pieces) = transfer.pieces();
        let (per, size) = (transfer.per_register(), u64::from(transfer.ty.bits()));
        let register_ty = if transfer.ty == Type::F64 { Type::B64 } else { Type::B32 };
        let word = ir.int(register_ty.bits());
        let mut loaded: Vec<((u32, u32), Val)> = vec![];
        for (register, operand) in (0u32..).zip(&registers) {
            let here = transfer.place(0, register * per);
            if let Some((_, value)) = loaded.iter().find(|(place, _)| *place == here) {
                let value = *value;
                self.assign(operand, register_ty, value)?;
                continue;
            }
            let stored = if loads { None } else { Some(self.fetch(operand, register_ty, scalar)?) };
            let mut whole = None;
            for piece in 0..pieces {
                let lines = by_lane(self, &|lane| transfer.place(lane, register * per + piece).0);
                let elements = by_lane(self, &|lane| transfer.place(lane, register * per + piece).1);
                let strides = self.as_wide(stride, row);
                let offset = ir.add(ir.mul(lines, strides), elements);
                let bytes = ir.lshr(ir.mul(offset, ir.constant(row, size)), ir.constant(row, 3));
                let place = ir.as_pointer(ir.add(self.as_wide(base, row), bytes));
                let shift = u64::from(bits * piece);
                self.check_lanes(inst, place, u64::from(bits / 8), active)?;
                match stored {
                    Some(value) => {
                        let part = ir.lshr(value, ir.constant(ir.type_of(value), shift));
                        self.store_words(ir.resize(part, ir.int(bits), false), place, active);
                    }
                    None => {
                        let part = ir.resize(self.load_words(ir.int(bits), place, active), word, false);
                        let part = ir.shl(part, ir.constant(ir.type_of(part), shift));
                        whole = Some(whole.map_or(part, |whole| ir.or(whole, part)));
                    }
                }
            }
            if let Some(whole) = whole {
                self.assign(operand, register_ty, whole)?;
                loaded.push((here, whole));
            }
        }
        Ok(())
    }
}
