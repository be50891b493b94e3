//! Calls: of functions that the runtime implements, and of functions of the module on the slow path.
//! [`super::in_step`] has the calls by whole warps.

use super::address::Reach;
use super::emitter::{Emitter, TranslationError, TranslationResult};
use super::llvm::{IntPred, Ty, Val};
use super::runtime::Service;
use crate::abi::{Builtin, Reason, function_address};
use broadloom_ptx::{Address, Base, Call, Callee, Func, InstData, Operand, Param, Symbol, Type};

/// Bytes of an argument or a result that is copied in words, at most.
const MOST_IN_WORDS: u64 = 256;

impl Emitter<'_> {
    pub(super) fn call(&mut self, inst: &InstData) -> TranslationResult<()> {
        let Some(call) = inst.call().cloned() else {
            return Err(TranslationError("a `call` without operands".into()));
        };
        match call.callee {
            Callee::Direct(func) if self.is_builtin(func) => self.call_builtin(inst, &call, func),
            Callee::Direct(_) | Callee::Indirect { .. } if self.lanes.is_some() => self.call_in_step(inst, &call),
            Callee::Direct(func) => self.call_function(inst, &call, func),
            Callee::Indirect { reg, .. } => self.call_indirect(inst, &call, reg),
        }
    }

    /// Returns whether the runtime implements a function.
    fn is_builtin(&self, func: Func) -> bool {
        let function = &self.module.functions[func];
        !function.has_body && is_builtin(&function.name)
    }

    /// Returns the value of an argument in 64 bits: a register, a number, or the contents of a variable in
    /// the frame.
    fn argument(&self, inst: &InstData, operand: &Operand) -> TranslationResult<Val> {
        let ir = self.ir;
        let i64 = ir.int(64);
        let scalar = self.lanes.is_none();
        match operand {
            Operand::Symbol(symbol @ Symbol::Local(var), _) => {
                let variable = &self.function.variables[*var];
                let bytes = variable.bytes().unwrap_or(8).clamp(1, 8);
                let ty = ir.int(8 * bytes as u32);
                let address = Address { base: Base::Symbol(*symbol), offset: 0 };
                let value = match self.reach(inst, &address)? {
                    Reach::Uniform(pointer) => ir.freeze(ir.load(ty, pointer, 1)),
                    reach => {
                        let pointers = self.pointers(&reach);
                        let lanes = self.lanes.unwrap_or(1);
                        let (all, vector) = (ir.constant(ir.vector(ir.int(1), lanes), 1), ir.vector(ty, lanes));
                        let align = ir.constant(ir.int(32), 1);
                        let value = ir.intrinsic(
                            "llvm.masked.gather",
                            &[vector, ir.type_of(pointers)],
                            &[pointers, align, all, ir.zero(vector)],
                        );
                        ir.freeze(value)
                    }
                };
                let value = ir.resize(value, i64, false);
                Ok(match (ir.lanes(value), self.lanes) {
                    (None, Some(lanes)) => ir.splat(value, lanes),
                    _ => value,
                })
            }
            Operand::Reg(reg) => {
                let ty = Type::bits_of(self.function.regs[*reg].ty.bits()).unwrap_or(Type::B64);
                Ok(ir.resize(self.fetch(operand, ty, scalar)?, i64, false))
            }
            other => self.fetch(other, Type::B64, scalar),
        }
    }

    fn call_builtin(&mut self, inst: &InstData, call: &Call, func: Func) -> TranslationResult<()> {
        let ir = self.ir;
        let builtin = builtin(&self.module.functions[func].name).ok_or_else(|| TranslationError("an unknown builtin".into()))?;
        let (i32, i64) = (ir.int(32), ir.int(64));
        let lanes = self.lanes.unwrap_or(1);
        let count = call.arguments.len().max(1) as u32;
        let (from, to) = (ir.stack(ir.vector(i64, lanes * count), 64), ir.stack(ir.vector(i64, lanes), 64));
        for (index, operand) in call.arguments.iter().enumerate() {
            let value = self.argument(inst, operand)?;
            ir.store(value, ir.offset_by(from, index as u64 * 8 * u64::from(lanes)), 8);
        }
        let active = self.active(inst)?;
        let mask = self.as_mask(active);
        ir.store(ir.zero(ir.lanes_of(i64, self.lanes)), to, 8);
        let arguments = [self.warp, ir.constant(i32, builtin as u64), mask, from, to];
        self.if_any(active, i32, |emitter| {
            emitter.serve(Service::Builtin, ir.void(), &arguments);
            ir.constant(i32, 0)
        });
        let value = ir.load(ir.lanes_of(i64, self.lanes), to, 8);
        match call.results.first() {
            Some(operand) => self.give(inst, operand, value),
            None => Ok(()),
        }
    }

    /// Assigns the result of a call, 64 bits per lane, to its operand.
    fn give(&mut self, inst: &InstData, operand: &Operand, value: Val) -> TranslationResult<()> {
        let ir = self.ir;
        match operand {
            Operand::Symbol(symbol @ Symbol::Local(var), _) => {
                let bytes = self.function.variables[*var].bytes().unwrap_or(8).clamp(1, 8);
                let value = ir.resize(value, ir.int(8 * bytes as u32), false);
                let address = Address { base: Base::Symbol(*symbol), offset: 0 };
                match self.reach(inst, &address)? {
                    Reach::Uniform(pointer) => ir.store(value, pointer, 1),
                    reach => {
                        let pointers = self.pointers(&reach);
                        let active = self.active(inst)?;
                        let align = ir.constant(ir.int(32), 1);
                        let types = [ir.type_of(value), ir.type_of(pointers)];
                        ir.intrinsic("llvm.masked.scatter", &types, &[value, pointers, align, active]);
                    }
                }
                Ok(())
            }
            Operand::Reg(reg) => {
                let ty = self.function.regs[*reg].ty;
                let bits = ir.resize(value, ir.int(ty.bits()), false);
                let value = ir.bitcast(bits, self.register_type(ty));
                self.define(*reg, value);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Emits a call of a function of the module, on the slow path. Arguments and results lie in the caller's
    /// memory.
    fn call_function(&mut self, inst: &InstData, call: &Call, func: Func) -> TranslationResult<()> {
        let ir = self.ir;
        let active = self.active(inst)?;
        let Some(target) = self.callees.get(&func).map(|target| target.function) else {
            let nowhere = ir.constant(ir.int(64), 0);
            self.fault(inst, Reason::Undefined, active, nowhere);
            return self.without_results(call);
        };
        let callee = &self.module.functions[func];
        let (args, results) = self.put_arguments(inst, call, &callee.params, callee)?;
        if inst.guard.is_some() {
            let (go, after) = (ir.block("call"), ir.block("called"));
            ir.branch_if(active, go, after);
            ir.go_on_in(go);
            ir.call(target, ir.void(), &[self.warp, args, results]);
            ir.branch(after);
            ir.go_on_in(after);
        } else {
            ir.call(target, ir.void(), &[self.warp, args, results]);
        }
        self.take_results(inst, call, &callee.results, callee, results)
    }

    /// Emits an indirect call, on the slow path. The address is compared with those of all functions with a
    /// fitting signature.
    fn call_indirect(&mut self, inst: &InstData, call: &Call, reg: broadloom_ptx::Reg) -> TranslationResult<()> {
        let ir = self.ir;
        let address = ir.resize(self.lane0(reg)?, ir.int(64), false);
        let fits = |func: &Func| self.fits(call, &self.module.functions[*func]);
        let mut fitting: Vec<(Func, Val)> =
            self.callees.iter().map(|(func, target)| (*func, target.function)).filter(|(func, _)| fits(func)).collect();
        let active = self.active(inst)?;
        let Some((shape, _)) = fitting.first().copied() else {
            self.fault(inst, Reason::BadCall, active, address);
            return self.without_results(call);
        };
        let callee = &self.module.functions[shape];
        fitting.retain(|(func, _)| {
            let other = &self.module.functions[*func];
            let alike = |params: &[Param], others: &[Param]| {
                super::layout::passed(callee, params) == super::layout::passed(other, others)
            };
            alike(&callee.params, &other.params) && alike(&callee.results, &other.results)
        });
        let (args, results) = self.put_arguments(inst, call, &callee.params, callee)?;
        let after = ir.block("called");
        if inst.guard.is_some() {
            let go = ir.block("call");
            ir.branch_if(active, go, after);
            ir.go_on_in(go);
        }
        for (func, target) in fitting {
            let (yes, no) = (ir.block("is"), ir.block("other"));
            let this = ir.constant(ir.int(64), function_address(func));
            ir.branch_if(ir.icmp(IntPred::LLVMIntEQ, address, this), yes, no);
            ir.go_on_in(yes);
            ir.call(target, ir.void(), &[self.warp, args, results]);
            ir.branch(after);
            ir.go_on_in(no);
        }
        let always = ir.constant(ir.int(1), 1);
        self.fault(inst, Reason::BadCall, always, address);
        ir.branch(after);
        ir.go_on_in(after);
        self.take_results(inst, call, &callee.results, callee, results)
    }

    /// Stores the arguments side by side in memory and reserves space for the results.
    fn put_arguments(
        &mut self,
        inst: &InstData,
        call: &Call,
        params: &[Param],
        callee: &broadloom_ptx::Function,
    ) -> TranslationResult<(Val, Val)> {
        let ir = self.ir;
        let (places, bytes) = super::layout::passed(callee, params);
        let (_, result_bytes) = super::layout::passed(callee, &callee.results);
        let room = |bytes: u64| ir.stack(self.bytes_type(bytes.max(1)), 64);
        let (args, results) = (room(bytes), room(result_bytes));
        for (operand, (place, size)) in call.arguments.iter().zip(places) {
            let to = ir.offset_by(args, place);
            match operand {
                Operand::Symbol(symbol @ Symbol::Local(_), _) => {
                    let address = Address { base: Base::Symbol(*symbol), offset: 0 };
                    let Reach::Uniform(from) = self.reach(inst, &address)? else {
                        return Err(TranslationError("an argument that is not in the frame".into()));
                    };
                    self.copy_passed(from, to, size);
                }
                other => {
                    let value = self.argument(inst, other)?;
                    ir.store(ir.resize(value, ir.int(8 * size.clamp(1, 8) as u32), false), to, 1);
                }
            }
        }
        Ok((args, results))
    }

    fn take_results(
        &mut self,
        inst: &InstData,
        call: &Call,
        results: &[Param],
        callee: &broadloom_ptx::Function,
        from: Val,
    ) -> TranslationResult<()> {
        let ir = self.ir;
        let (places, _) = super::layout::passed(callee, results);
        for (operand, (place, size)) in call.results.iter().zip(places) {
            let from = ir.offset_by(from, place);
            match operand {
                Operand::Symbol(symbol @ Symbol::Local(_), _) => {
                    let address = Address { base: Base::Symbol(*symbol), offset: 0 };
                    let Reach::Uniform(to) = self.reach(inst, &address)? else {
                        return Err(TranslationError("a result that is not in the frame".into()));
                    };
                    self.copy_passed(from, to, size);
                }
                Operand::Reg(reg) => {
                    let ty = self.function.regs[*reg].ty;
                    // A call whose guard is false writes nothing there.
                    let value = ir.freeze(ir.load(self.register_type(ty), from, 1));
                    self.define(*reg, value);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Copies an argument or a result. Few words are copied one by one: a wider load would wait until the narrow
    /// stores before it have reached the cache.
    fn copy_passed(&self, from: Val, to: Val, bytes: u64) {
        let ir = self.ir;
        let copy = |ty: Ty, at: u64| {
            let value = ir.freeze(ir.load(ty, ir.offset_by(from, at), 1));
            ir.store(value, ir.offset_by(to, at), 1);
        };
        if bytes > MOST_IN_WORDS {
            return copy(self.bytes_type(bytes), 0);
        }
        let words = bytes / 8 * 8;
        (0..words).step_by(8).for_each(|at| copy(ir.int(64), at));
        (words..bytes).for_each(|at| copy(ir.int(8), at));
    }

    fn bytes_type(&self, bytes: u64) -> Ty {
        self.ir.vector(self.ir.int(8), bytes as u32)
    }

    /// Loads parameters in registers at the start of the function.
    pub(crate) fn take_parameters(&mut self) {
        let ir = self.ir;
        let function = self.function;
        let Some((args, _)) = self.passed else { return };
        if self.lanes.is_some() {
            return self.take_rows();
        }
        let (places, _) = super::layout::passed(function, &function.params);
        for (param, (place, _)) in function.params.iter().zip(places) {
            if let Param::Reg(reg) = param {
                let value = ir.load(self.register_type(function.regs[*reg].ty), ir.offset_by(args, place), 1);
                self.define(*reg, value);
            }
        }
    }

    /// Stores results in registers at the end of the function.
    pub(crate) fn give_results(&mut self) -> TranslationResult<()> {
        let ir = self.ir;
        let function = self.function;
        // In vector code all results are in memory.
        let Some((_, results)) = self.passed.filter(|_| self.lanes.is_none()) else { return Ok(()) };
        let (places, _) = super::layout::passed(function, &function.results);
        for (param, (place, _)) in function.results.iter().zip(places) {
            if let Param::Reg(reg) = param
                && self.has_value(*reg)
            {
                let value = self.fetch(&Operand::Reg(*reg), function.regs[*reg].ty, true)?;
                ir.store(value, ir.offset_by(results, place), 1);
            }
        }
        Ok(())
    }
}

fn builtin(name: &str) -> Option<Builtin> {
    Some(match name {
        "vprintf" => Builtin::Printf,
        "malloc" => Builtin::Malloc,
        "free" => Builtin::Free,
        "__assertfail" => Builtin::Assert,
        _ => return None,
    })
}

/// Returns whether the runtime implements a function of this name.
pub(crate) fn is_builtin(name: &str) -> bool {
    builtin(name).is_some()
}
