//! Calls by whole warps.
//!
//! A function that is called in lockstep gets the calling lanes as a mask. It runs like a kernel whose other
//! lanes are not threads. Its signature is `fn(warp, arguments, results, lanes, frame, first)`. Arguments and
//! results lie in *rows*, one for each parameter, with the lanes side by side. `frame` is the offset of its
//! part of local memory in each lane's window, and `first` the number of the first lane in the block. The
//! function is called only if at least one lane calls it, so recursion ends.
//!
//! Rows have memory for all lanes, so no mask is needed to read or write them. Lanes that do not call keep
//! their values.

use super::emitter::{CallTarget, Emitter, TranslationError, TranslationResult};
use super::layout::{LANES, row_bytes, rows};
use super::llvm::{IntPred, Ty, Val};
use super::operand::bits_type;
use crate::abi::{Reason, function_address};
use broadloom_eval::immediate;
use broadloom_ptx::{Base, Call, Callee, Func, Function, InstData, Operand, Param, Reg, Symbol, Type, Variable};

/// Arguments of a function called in lockstep, besides its parameters.
#[derive(Clone, Copy)]
pub(crate) struct EntryArguments {
    /// Mask of the calling lanes.
    pub(crate) lanes: Val,
    /// Offset of its frame.
    pub(crate) frame: Val,
    /// Number of the first lane.
    pub(crate) first: Val,
}

/// Memory for the arguments and results of a call.
struct CallRows {
    args: Val,
    results: Val,
}

/// Maximum bytes that are copied without a loop.
const MOST_IN_LINE: u64 = 2048;

impl Emitter<'_> {
    /// Returns the arguments of a function called in lockstep.
    pub(crate) fn entered(ir: &super::llvm::Ir) -> EntryArguments {
        EntryArguments { lanes: ir.argument(3), frame: ir.argument(4), first: ir.argument(5) }
    }

    /// Allocates rows for the arguments and results of the calls of this function.
    pub(crate) fn make_rows(&mut self) {
        let ir = self.ir;
        let row = |bytes: &u64| match self.element(*bytes) {
            Some(ty) => ir.stack_of_zeros(ty, 64),
            None => ir.stack(self.bytes_of(LANES * (*bytes).max(1)), 64),
        };
        self.rows = self.layout.rows.iter().map(row).collect();
    }

    fn bytes_of(&self, bytes: u64) -> Ty {
        self.ir.vector(self.ir.int(8), bytes as u32)
    }

    /// Emits a call of a function of the module.
    pub(crate) fn call_in_step(&mut self, inst: &InstData, call: &Call) -> TranslationResult<()> {
        match call.callee {
            Callee::Direct(func) => self.call_one(inst, call, func),
            Callee::Indirect { reg, .. } => self.call_each(inst, call, reg),
        }
    }

    fn call_one(&mut self, inst: &InstData, call: &Call, func: Func) -> TranslationResult<()> {
        let ir = self.ir;
        let active = self.active(inst)?;
        let Some(target) = self.callees.get(&func).copied() else {
            let nowhere = ir.constant(ir.int(64), 0);
            self.fault(inst, Reason::Undefined, active, nowhere);
            return self.without_results(call);
        };
        let callee = &self.module.functions[func];
        let passed = self.pass_in_rows(call, callee)?;
        let places = self.places(call)?;
        let after = ir.block("called");
        // Without a guard at least one lane is active, or this function would not run.
        if inst.guard.is_some() {
            let go = ir.block("call");
            ir.branch_if(self.any(active), go, after);
            ir.go_on_in(go);
        }
        self.enter_function(inst, target, &passed, self.as_mask(active));
        self.take_from_rows(callee, &passed, &places, active);
        ir.branch(after);
        ir.go_on_in(after);
        self.define_results(call, &places)
    }

    /// Emits an indirect call. While lanes are left, the function of the first one is called for all lanes
    /// with the same function.
    fn call_each(&mut self, inst: &InstData, call: &Call, reg: Reg) -> TranslationResult<()> {
        let ir = self.ir;
        let (i32, i64) = (ir.int(32), ir.int(64));
        let active = self.active(inst)?;
        let uniform = self.is_kept_as_scalar(reg) && self.offsets(reg).is_none();
        let address = if uniform { self.lane0(reg)? } else { self.all_lanes(reg)? };
        let addresses = ir.resize(address, i64, false);
        let groups = self.fitting(call)?;
        let places = self.places(call)?;
        let (head, body, next, after) = (ir.block("calls"), ir.block("lead"), ir.block("next"), ir.block("called"));
        let before = ir.here();
        let mask = self.as_mask(active);
        ir.branch(head);
        ir.go_on_in(head);
        let left = ir.phi(i32);
        ir.incoming(left, mask, before);
        let none = ir.icmp(IntPred::LLVMIntEQ, left, ir.constant(i32, 0));
        ir.branch_if(none, after, body);
        ir.go_on_in(body);
        let (lead, same) = match ir.lanes(addresses) {
            None => (addresses, left),
            Some(lanes) => {
                let first = ir.intrinsic("llvm.cttz", &[i32], &[left, ir.constant(ir.int(1), 0)]);
                let lead = ir.extract(addresses, ir.and(first, ir.constant(i32, 31)));
                let same = self.as_mask(ir.icmp(IntPred::LLVMIntEQ, addresses, ir.splat(lead, lanes)));
                (lead, ir.and(same, left))
            }
        };
        let callers = self.as_predicates(same);
        for (shape, passed, funcs) in &groups {
            let callee = &self.module.functions[*shape];
            for (func, target) in funcs {
                let (yes, no) = (ir.block("is"), ir.block("other"));
                let this = ir.constant(i64, function_address(*func));
                ir.branch_if(ir.icmp(IntPred::LLVMIntEQ, lead, this), yes, no);
                ir.go_on_in(yes);
                self.enter_function(inst, *target, passed, same);
                self.take_from_rows(callee, passed, &places, callers);
                ir.branch(next);
                ir.go_on_in(no);
            }
        }
        self.fault(inst, Reason::BadCall, callers, lead);
        ir.branch(next);
        ir.go_on_in(next);
        ir.incoming(left, ir.and(left, ir.not(same)), next);
        ir.branch(head);
        ir.go_on_in(after);
        self.define_results(call, &places)
    }

    /// Returns the functions that a pointer may lead to. Those that take their arguments in the same way form
    /// a group: its first function, the memory for arguments, its members.
    #[allow(clippy::type_complexity, reason = "used once, where it is taken apart")]
    fn fitting(&mut self, call: &Call) -> TranslationResult<Vec<(Func, CallRows, Vec<(Func, CallTarget)>)>> {
        let callees: Vec<(Func, CallTarget)> = self.callees.iter().map(|(func, target)| (*func, *target)).collect();
        let mut groups: Vec<(Func, CallRows, Vec<(Func, CallTarget)>)> = vec![];
        for (func, target) in callees.into_iter().filter(|(_, target)| target.is_addressed) {
            let callee = &self.module.functions[func];
            if !self.fits(call, callee) {
                continue;
            }
            let alike = |other: Func| passing(callee) == passing(&self.module.functions[other]);
            match groups.iter_mut().find(|(other, ..)| alike(*other)) {
                Some((_, _, funcs)) => funcs.push((func, target)),
                None => {
                    let passed = self.pass_in_rows(call, callee)?;
                    groups.push((func, passed, vec![(func, target)]));
                }
            }
        }
        Ok(groups)
    }

    /// Returns whether a function has the parameters and results of a call's prototype.
    pub(crate) fn fits(&self, call: &Call, callee: &Function) -> bool {
        let Callee::Indirect { proto: Some(proto), .. } = call.callee else { return false };
        let proto = &self.function.protos[proto];
        let fits = |formals: &[Variable], params: &[Param]| {
            let (places, _) = rows(callee, params);
            formals.iter().map(row_bytes).eq(places.into_iter().map(|(_, bytes)| bytes))
        };
        fits(&proto.params, &callee.params) && fits(&proto.results, &callee.results)
    }

    /// Emits a call of a function for a mask of lanes that is not empty.
    fn enter_function(&mut self, inst: &InstData, target: CallTarget, passed: &CallRows, lanes: Val) {
        let ir = self.ir;
        let i64 = ir.int(64);
        let frame = ir.add(self.frame_start, ir.constant(i64, self.layout.frame_bytes));
        if let (Some(limit), true) = (self.stack_limit, target.frame_bytes > 0) {
            let full = ir.icmp(IntPred::LLVMIntUGT, frame, ir.constant(i64, limit.saturating_sub(target.frame_bytes)));
            let without = self.as_predicates(ir.select(full, lanes, ir.constant(ir.int(32), 0)));
            self.fault(inst, Reason::StackOverflow, without, ir.constant(i64, 0));
        }
        let arguments = [self.warp, passed.args, passed.results, lanes, frame, self.first];
        ir.call(target.function, ir.void(), &arguments);
    }

    /// Stores arguments into rows, and allocates space for results.
    fn pass_in_rows(&mut self, call: &Call, callee: &Function) -> TranslationResult<CallRows> {
        let ir = self.ir;
        let (places, bytes) = rows(callee, &callee.params);
        let (result_places, result_bytes) = rows(callee, &callee.results);
        let room = |bytes: u64| ir.stack(self.bytes_of(bytes.max(1)), 64);
        let passed = CallRows { args: room(bytes), results: room(result_bytes) };
        for ((operand, param), (place, bytes)) in call.arguments.iter().zip(&callee.params).zip(places) {
            let to = ir.offset_by(passed.args, place);
            match operand {
                Operand::Symbol(symbol @ Symbol::Local(_), _) => self.copy_row(self.row(*symbol)?, to, bytes),
                other => {
                    let ty = match param {
                        Param::Memory(var) => callee.variables[*var].ty,
                        Param::Reg(reg) => callee.regs[*reg].ty,
                    };
                    let value = self.passed_value(other, ty)?;
                    ir.store(value, to, bytes.max(1) as u32);
                }
            }
        }
        for (operand, (place, bytes)) in call.results.iter().zip(result_places) {
            // Values that lanes outside the call keep.
            if let (Operand::Symbol(symbol @ Symbol::Local(_), _), None) = (operand, self.element(bytes)) {
                self.copy_row(self.row(*symbol)?, ir.offset_by(passed.results, place), bytes);
            }
        }
        Ok(passed)
    }

    /// Returns the value for a parameter of a type, in all lanes.
    fn passed_value(&self, operand: &Operand, ty: Type) -> TranslationResult<Val> {
        let ir = self.ir;
        let value = match operand {
            Operand::Imm(imm) => self.constant(immediate(*imm, ty), bits_type_of(ty), false),
            Operand::Reg(reg) => self.fetch(operand, bits_type_of(self.function.regs[*reg].ty), false)?,
            other => self.fetch(other, Type::B64, false)?,
        };
        Ok(ir.resize(value, ir.int(8 * ty.bytes()), false))
    }

    fn row(&self, symbol: Symbol) -> TranslationResult<Val> {
        let row = self.row_of(Base::Symbol(symbol));
        row.map(|(row, _)| row).ok_or_else(|| TranslationError("an argument that lies in no row".into()))
    }

    /// Returns the vector type with one element per lane that fills a row, if there is one.
    fn element(&self, bytes: u64) -> Option<Ty> {
        matches!(bytes, 1 | 2 | 4 | 8).then(|| self.ir.vector(self.ir.int(8 * bytes as u32), LANES as u32))
    }

    /// Returns the destinations of a call's results: rows, and temporary rows for registers.
    fn places(&self, call: &Call) -> TranslationResult<Vec<Option<Val>>> {
        let ir = self.ir;
        let place = |operand: &Operand| match operand {
            Operand::Symbol(symbol @ Symbol::Local(_), _) => self.row(*symbol).map(Some),
            Operand::Reg(reg) => {
                let bytes = LANES * u64::from(self.function.regs[*reg].ty.bytes());
                Ok(Some(ir.stack_of_zeros(self.bytes_of(bytes), 64)))
            }
            _ => Ok(None),
        };
        call.results.iter().map(place).collect()
    }

    /// Copies the results of a function to their destinations, for the calling lanes.
    fn take_from_rows(&self, callee: &Function, passed: &CallRows, places: &[Option<Val>], callers: Val) {
        let ir = self.ir;
        for (to, (place, bytes)) in places.iter().zip(rows(callee, &callee.results).0) {
            let Some(to) = *to else { continue };
            let from = ir.offset_by(passed.results, place);
            match self.element(bytes) {
                Some(ty) => {
                    let (new, old) = (ir.load(ty, from, bytes as u32), ir.load(ty, to, bytes as u32));
                    ir.store(ir.select(callers, new, old), to, bytes as u32);
                }
                // The function overwrote the callers' part; the rest still has the values of the other lanes.
                None => self.copy_row(from, to, bytes),
            }
        }
    }

    /// Defines the result registers of a call.
    fn define_results(&mut self, call: &Call, places: &[Option<Val>]) -> TranslationResult<()> {
        for (operand, place) in call.results.iter().zip(places) {
            if let (Operand::Reg(reg), Some(place)) = (operand, place) {
                let value = self.load_register(*reg, *place);
                self.define(*reg, value);
            }
        }
        Ok(())
    }

    /// Loads the values of a register in all lanes from a row.
    fn load_register(&self, reg: Reg, row: Val) -> Val {
        let ir = self.ir;
        let ty = self.function.regs[reg].ty;
        if ty == Type::Pred {
            let bytes = ir.load(ir.vector(ir.int(8), LANES as u32), row, 1);
            return ir.icmp(IntPred::LLVMIntNE, bytes, ir.constant(ir.type_of(bytes), 0));
        }
        ir.load(ir.vector(self.register_type(ty), LANES as u32), row, ty.bytes())
    }

    /// Loads parameters in registers at the start of the function.
    pub(crate) fn take_rows(&mut self) {
        let function = self.function;
        let Some((args, _)) = self.passed else { return };
        for (param, (place, _)) in function.params.iter().zip(rows(function, &function.params).0) {
            if let Param::Reg(reg) = param {
                let value = self.load_register(*reg, self.ir.offset_by(args, place));
                self.define(*reg, value);
            }
        }
    }

    /// Copies a row with `bytes` bytes per lane.
    fn copy_row(&self, from: Val, to: Val, bytes: u64) {
        let ir = self.ir;
        if let Some(ty) = self.element(bytes) {
            ir.store(ir.load(ty, from, bytes as u32), to, bytes as u32);
            return;
        }
        let (i64, total) = (ir.int(64), LANES * bytes);
        // A row is a multiple of 32 bytes.
        let chunk = if total.is_multiple_of(64) { 64 } else { 32 };
        let ty = self.bytes_of(chunk);
        if total <= MOST_IN_LINE {
            for at in (0..total).step_by(chunk as usize) {
                ir.store(ir.load(ty, ir.offset_by(from, at), 1), ir.offset_by(to, at), 1);
            }
            return;
        }
        let (before, head, after) = (ir.here(), ir.block("copy"), ir.block("copied"));
        ir.branch(head);
        ir.go_on_in(head);
        let at = ir.phi(i64);
        ir.incoming(at, ir.constant(i64, 0), before);
        ir.store(ir.load(ty, ir.offset(from, at), 1), ir.offset(to, at), 1);
        let next = ir.add(at, ir.constant(i64, chunk));
        ir.incoming(at, next, head);
        let more = ir.icmp(IntPred::LLVMIntULT, next, ir.constant(i64, total));
        ir.branch_if(more, head, after);
        ir.go_on_in(after);
    }

    /// Defines the result registers of a call that never happens.
    pub(crate) fn without_results(&mut self, call: &Call) -> TranslationResult<()> {
        for operand in &call.results {
            if let Operand::Reg(reg) = operand {
                let zero = self.ir.zero(self.register_type(self.function.regs[*reg].ty));
                self.define(*reg, zero);
            }
        }
        Ok(())
    }
}

/// Returns the untyped bits type of the same width; predicates are unchanged.
fn bits_type_of(ty: Type) -> Type {
    if ty == Type::Pred { ty } else { bits_type(ty) }
}

/// Returns the row layout of a function's parameters and results.
fn passing(function: &Function) -> [Vec<(u64, u64)>; 2] {
    [rows(function, &function.params).0, rows(function, &function.results).0]
}
