//! Functions that a kernel calls and that were not inlined, prepared to be called by whole warps.
//!
//! Each function is converted to SSA form and linearised on its own, like a kernel. It only knows the lanes
//! that call it, so a call is correct if its lanes do not depend on other lanes. Some functions do: a
//! function with a barrier, or with a warp operation whose member mask it did not compute itself, *meets
//! others*, and so does every caller of it. All lanes that still have such operations ahead must reach such a
//! call together.
//!
//! Local memory of a lane holds the frames of all active functions in sequence. If no function with a frame
//! is recursive, the total size is known. Otherwise there is a limit, which each call checks.

use super::error::{CompileFailure, InStep, Obstacle};
use super::lanes::Shapes;
use super::layout::{Layout, pointed_params};
use super::unit::{Unit, divergent_barrier, flow, in_ssa_form, made_from, number_spans, polls, restore_spans};
use broadloom_analysis::calls::components;
use broadloom_analysis::waiting::{advances_memory, is_strong_read};
use broadloom_analysis::{Assume, Cfg, Facts as LaunchFacts, Shapes as WarpShapes};
use broadloom_ptx::{Callee, Effects, Func, Function, InstData, Module, Opcode, Operand, Param, Reg};
use broadloom_transform::inline_calls::Choice;
use broadloom_transform::linearise::Blocks;
use broadloom_transform::return_exits::{addressed, resolve};
use broadloom_transform::{check, linearise, remove_dead};
use std::collections::{BTreeMap, BTreeSet};

/// Functions called by a kernel, in SSA form.
pub(crate) struct CalledFunctions {
    functions: BTreeMap<Func, Function>,
    /// Functions whose address is taken.
    pub(crate) addressed: BTreeSet<Func>,
    /// Functions that meet others.
    meeting: BTreeSet<Func>,
}

impl CalledFunctions {
    /// Collects the functions that a kernel calls. The inner error is the reason why they cannot be called in
    /// lockstep.
    pub(crate) fn new(module: &Module, kernel: &Function, block: [u32; 3], choice: &mut Choice) -> InStep<CalledFunctions> {
        let mut called = CalledFunctions::none();
        if let Some(reason) = obstacle(module, kernel) {
            return Ok(Err(Obstacle(reason)));
        }
        if kernel.instructions().all(|(_, inst)| inst.call().is_none()) {
            return Ok(Ok(called));
        }
        called.addressed = addressed(module);
        let mut work: Vec<Func> = called.callees(module, kernel).into_iter().collect();
        while let Some(func) = work.pop() {
            if called.functions.contains_key(&func) {
                continue;
            }
            let function = in_ssa_form(module, func, block, choice, true)?;
            if let Some(reason) = obstacle(module, &function) {
                return Ok(Err(Obstacle(reason)));
            }
            work.extend(called.callees(module, &function));
            called.functions.insert(func, function);
        }
        called.find_meeting(module)?;
        Ok(match called.waiting(module) {
            Some(func) => {
                let name = &module.functions[func].name;
                Err(Obstacle(format!("lanes may wait for each other in `{name}`, which calls itself")))
            }
            None => Ok(called),
        })
    }

    fn none() -> CalledFunctions {
        CalledFunctions { functions: BTreeMap::new(), addressed: BTreeSet::new(), meeting: BTreeSet::new() }
    }

    /// Returns whether one of the functions contains `exit`.
    pub(crate) fn ends_threads(&self) -> bool {
        let ends = |function: &Function| function.instructions().any(|(_, inst)| inst.opcode() == Some(Opcode::Exit));
        self.functions.values().any(ends)
    }

    /// Returns the functions with a body that a function can call.
    fn callees(&self, module: &Module, function: &Function) -> BTreeSet<Func> {
        callees(module, function, &self.addressed)
    }

    fn find_meeting(&mut self, module: &Module) -> Result<(), CompileFailure> {
        for (func, function) in &self.functions {
            let cfg = Cfg::new(function).ok_or(CompileFailure::NoBody)?;
            if linearise::meets_others(function, &cfg).is_some() {
                self.meeting.insert(*func);
            }
        }
        // A caller of a function that meets others meets others.
        let mut callers: BTreeMap<Func, Vec<Func>> = BTreeMap::new();
        for (func, function) in &self.functions {
            self.callees(module, function).into_iter().for_each(|callee| callers.entry(callee).or_default().push(*func));
        }
        let mut work: Vec<Func> = self.meeting.iter().copied().collect();
        while let Some(func) = work.pop() {
            let new = callers.remove(&func).unwrap_or_default().into_iter().filter(|caller| self.meeting.insert(*caller));
            work.extend(new);
        }
        Ok(())
    }

    /// Returns whether an instruction calls a function that meets others.
    fn meets(&self, module: &Module, inst: &InstData) -> bool {
        match inst.callee() {
            Some(Callee::Direct(func)) => self.meeting.contains(&resolve(module, func)),
            Some(Callee::Indirect { .. }) => self.addressed.iter().any(|func| self.meeting.contains(func)),
            None => false,
        }
    }

    /// Returns the functions that may call themselves, directly or indirectly.
    fn recursive(&self, module: &Module) -> BTreeSet<Func> {
        recursive(self.functions.iter().map(|(func, function)| (*func, function)), module, &self.addressed)
    }

    /// Finds a recursive function that reads memory that others change. A lane may retry there until another
    /// lane has made progress, but a lane that waits for the call to return makes none.
    fn waiting(&self, module: &Module) -> Option<Func> {
        let asks = |inst: &InstData| inst.effects().has(Effects::POLL);
        let waits = |inst: &InstData| is_strong_read(inst) && !advances_memory(inst) || asks(inst);
        self.recursive(module).into_iter().find(|func| self.functions[func].instructions().any(|(_, inst)| waits(inst)))
    }

    /// Returns the reason why lanes of a function may diverge before an instruction that they must reach
    /// together.
    pub(crate) fn comes_apart(
        &self,
        module: &Module,
        function: &Function,
        cfg: &Cfg,
        shapes: &WarpShapes,
        block: [u32; 3],
    ) -> Option<String> {
        let meets = |inst: &InstData| self.meets(module, inst);
        let text = |inst: &InstData| match inst.callee()? {
            Callee::Direct(func) => {
                let name = &module.functions[func].name;
                Some(format!("lanes may come apart to a call of `{name}`, which must be come to together"))
            }
            Callee::Indirect { .. } => {
                Some("lanes may come apart to a call through a pointer to what must be come to together".to_owned())
            }
        };
        let is_divergent = |block| shapes.is_divergent_branch(block);
        if let Some(reason) = linearise::comes_apart(function, cfg, &is_divergent, &meets, Some(block)) {
            return reason.inst.and_then(|inst| text(&function.insts[inst])).or(Some(reason.text));
        }
        let differs = |reg: Reg| !shapes.is_uniform(reg);
        let parts = |inst: &InstData| {
            let pointer = inst.call().and_then(|call| match call.callee {
                Callee::Indirect { reg, .. } => Some(reg),
                Callee::Direct(_) => None,
            });
            meets(inst) && inst.guard.map(|guard| guard.reg).into_iter().chain(pointer).any(differs)
        };
        function.instructions().find(|(_, inst)| parts(inst)).and_then(|(_, inst)| text(inst))
    }

    /// Returns all functions with uniform branches, or the reason why that is impossible.
    pub(crate) fn linearised(self, module: &Module, block: [u32; 3]) -> InStep<Vec<Unit>> {
        let mut units = vec![];
        for (func, function) in &self.functions {
            match self.unit(module, *func, function.clone(), block)? {
                Ok(unit) => units.push(unit),
                Err(Obstacle(reason)) => {
                    let name = &module.functions[*func].name;
                    return Ok(Err(Obstacle(format!("it calls `{name}`, which cannot run in step: {reason}"))));
                }
            }
        }
        Ok(Ok(units))
    }

    fn unit(&self, module: &Module, func: Func, mut function: Function, block: [u32; 3]) -> InStep<Unit> {
        let shapes_of = |function: &Function| -> Result<(Cfg, WarpShapes), CompileFailure> {
            let (cfg, loops, plan) = flow(function)?;
            let shapes = WarpShapes::new(function, &cfg, &loops, &plan, &LaunchFacts::new(block), Assume::Nothing);
            Ok((cfg, shapes))
        };
        let (cfg, shapes) = shapes_of(&function)?;
        let apart = divergent_barrier(&function, &shapes).or_else(|| self.comes_apart(module, &function, &cfg, &shapes, block));
        if let Some(reason) = apart {
            return Ok(Err(Obstacle(reason)));
        }
        let polls = polls(module, &function);
        let spans = number_spans(&mut function);
        if let Err(reason) = linearise::run(module, &mut function, &|block| shapes.is_divergent_branch(block), Blocks::Any) {
            return Ok(Err(Obstacle(reason.to_string())));
        }
        remove_dead::run(module, &mut function);
        let polls = made_from(&function, &polls);
        restore_spans(&mut function, &spans);
        if cfg!(debug_assertions) {
            check(linearise::NAME, module, &function)?;
        }
        let (cfg, shapes) = shapes_of(&function)?;
        let parts = |block: &broadloom_ptx::Block| shapes.is_divergent_branch(*block) && cfg.successors(*block).len() > 1;
        if let Some(block) = cfg.order().iter().find(|block| parts(block)) {
            return Ok(Err(Obstacle(format!("a branch of {block} of `{}` is still divergent", function.name))));
        }
        Ok(Ok(Unit { func, function, shapes: Shapes::Warp(Box::new(shapes)), polls }))
    }
}

/// Returns the functions with a body that a function can call. `addressed` holds the functions whose address
/// is taken.
fn callees(module: &Module, function: &Function, addressed: &BTreeSet<Func>) -> BTreeSet<Func> {
    let mut found = BTreeSet::new();
    let mut indirect = false;
    for call in function.instructions().filter_map(|(_, inst)| inst.call()) {
        match call.callee {
            Callee::Direct(func) => drop(found.insert(resolve(module, func))),
            Callee::Indirect { .. } => indirect = true,
        }
    }
    if indirect {
        found.extend(addressed);
    }
    found.retain(|func| module.functions[*func].has_body);
    found
}

/// Returns the functions that may call themselves, directly or indirectly.
fn recursive<'f>(
    functions: impl Iterator<Item = (Func, &'f Function)>,
    module: &Module,
    addressed: &BTreeSet<Func>,
) -> BTreeSet<Func> {
    let calls: BTreeMap<Func, BTreeSet<Func>> =
        functions.map(|(func, function)| (func, callees(module, function, addressed))).collect();
    let of = |func: Func| calls.get(&func).map_or_else(Vec::new, |callees| callees.iter().copied().collect());
    let roots: Vec<Func> = calls.keys().copied().collect();
    let calls_itself = |component: &Vec<Func>| match component[..] {
        [func] => calls.get(&func).is_some_and(|callees| callees.contains(&func)),
        _ => true,
    };
    components(&roots, of).into_iter().filter(calls_itself).flatten().collect()
}

/// Returns the reason why a function cannot be vector code or cannot pass its arguments, independent of its
/// branches.
fn obstacle(module: &Module, function: &Function) -> Option<String> {
    let who = |text: &str| if function.is_kernel { format!("it {text}") } else { format!("`{}` {text}", function.name) };
    if function.instructions().any(|(_, inst)| inst.opcode() == Some(Opcode::Alloca)) {
        return Some(who("takes memory with `alloca`"));
    }
    if function.results.iter().any(|result| matches!(result, Param::Reg(_))) {
        return Some(who("gives back a register that cannot be stored"));
    }
    let pointed = pointed_params(function);
    let is_open = |var| function.variables[var].dims.contains(&None);
    let own = function.params.iter().chain(&function.results).filter_map(|param| match param {
        Param::Memory(var) if !function.is_kernel => Some(*var),
        Param::Memory(_) | Param::Reg(_) => None,
    });
    let calls = function.instructions().filter_map(|(_, inst)| inst.call()).filter(|call| match call.callee {
        Callee::Direct(func) => module.functions[resolve(module, func)].has_body,
        Callee::Indirect { .. } => true,
    });
    let passed = calls.flat_map(|call| call.arguments.iter().chain(&call.results)).filter_map(|operand| match operand {
        Operand::Symbol(broadloom_ptx::Symbol::Local(var), _) => Some(*var),
        _ => None,
    });
    let mut rows = own.chain(passed);
    let refused = rows.find(|var| pointed.contains(var) || is_open(*var))?;
    Some(match is_open(refused) {
        true => who("passes an array without a size"),
        false => who("reaches what it is passed through a pointer"),
    })
}

/// Local memory of a lane.
pub(crate) struct Frames {
    /// Stride between lanes in bytes.
    pub(crate) bytes: u64,
    /// Maximum bytes of all frames, if they might take more.
    pub(crate) limit: Option<u64>,
}

impl Frames {
    /// Computes the space for frames of a kernel and its callees. The window of a lane is slightly smaller
    /// than what a thread may have. Otherwise all windows would start at the same offset in a page and
    /// compete for the same cache lines of the host.
    pub(crate) fn new(module: &Module, units: &[Unit], layouts: &[Layout], stack_bytes: u64) -> Frames {
        // A function that is not recursive is active at most once.
        let all: u64 = layouts.iter().map(|layout| layout.frame_bytes).sum();
        if units.len() < 2 {
            return Frames { bytes: all, limit: None };
        }
        let functions = units.iter().skip(1).map(|unit| (unit.func, &unit.function));
        let recursive = recursive(functions, module, &addressed(module));
        let grows = units.iter().zip(layouts).any(|(unit, layout)| recursive.contains(&unit.func) && layout.frame_bytes > 0);
        if !grows {
            return Frames { bytes: all, limit: None };
        }
        let bytes = all.max(stack_bytes.saturating_sub(64) / 16 * 16);
        Frames { bytes, limit: Some(bytes) }
    }
}
