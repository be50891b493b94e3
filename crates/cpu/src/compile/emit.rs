//! Translation of a function in SSA form with uniform branches to LLVM code for one warp.
//!
//! A register whose shape is known across all lanes is kept as one scalar, the value of lane 0. Its lanes are
//! equal, or a constant distance apart. All other registers are vectors of 32 lanes. An instruction whose
//! result is kept as a scalar is computed on lane 0 of its operands; all others are computed on vectors. On
//! the slow path a warp has one lane, and everything is a scalar.
//!
//! NaN results of `f32` are made canonical only where their bits become visible: when they are stored or used
//! as bits. Until then one NaN cannot be distinguished from another. Registers that may hold another NaN are
//! called noisy (`nans.rs`).

use super::Checks;
use super::bounds::Checked;
use super::counters::Counters;
use super::far::Ahead;
use super::in_step::Target;
use super::lanes::{Shapes, offsets};
use super::llvm::{Ir, Label, Ty, Val};
use super::nans::{Nans, is_choice};
use super::pieces::{Current, Plan};
use super::roots::Streams;
use super::special::Specials;
use crate::abi::{self, Kind};
use crate::code::{Accesses, Rare, Site};
use broadloom_analysis::{Cfg, LANE_BITS};
use broadloom_eval::Operation;
use broadloom_eval::matrix::Product;
use broadloom_ptx::{Block, Func, Function, Inst, InstData, Lines, Module, Opcode, Operand, Reg, Type};
use broadloom_transform::split_at_barriers::plain_barrier;
use cranelift_entity::SecondaryMap;
use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

/// Host features that LLVM does not use by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// 512-bit vectors with masks.
    pub avx512: bool,
    /// Detection of equal lanes in a vector with one instruction.
    pub conflicts: bool,
    /// Atomics of 128 bits.
    pub wide_atomics: bool,
}

/// Reason why a function could not be translated. It is an internal error, since every verified kernel can be
/// translated.
#[derive(Debug)]
pub(crate) struct Untranslated(pub(crate) String);

pub(crate) type Emitted<T> = Result<T, Untranslated>;

/// Translation of one kernel.
pub(crate) struct Emitter<'e> {
    pub(crate) ir: &'e Ir,
    pub(crate) module: &'e Module,
    pub(crate) function: &'e Function,
    pub(crate) shapes: &'e Shapes,
    pub(crate) host: Host,
    pub(crate) block: [u32; 3],
    /// Number of lanes of a warp; `None` on the slow path, where a warp is one thread.
    pub(crate) lanes: Option<u32>,
    /// Places of the variables in shared, local and parameter memory.
    pub(crate) layout: &'e super::layout::Layout,
    pub(crate) warp: Val,
    pub(crate) services: Val,
    /// Linear index of the first lane.
    pub(crate) first: Val,
    pub(crate) specials: Specials,
    pub(crate) values: SecondaryMap<Reg, Option<Val>>,
    nans: Nans,
    /// Label at which the warp is done.
    pub(crate) done: Label,
    pub(crate) rare: Vec<Rare>,
    pub(crate) sites: Vec<Site>,
    /// Instruction being translated.
    pub(crate) at: Option<Inst>,
    /// Reads at which a loop may wait for another thread.
    polls: &'e HashSet<Inst>,
    pub(crate) loads: Accesses,
    pub(crate) stores: Accesses,
    /// Pointers to the function's arguments and to the space for its results. `None` in a kernel.
    pub(crate) passed: Option<(Val, Val)>,
    /// Lanes that run this function: threads of the block that call it. `None` if all lanes do.
    pub(crate) exists: Option<Val>,
    /// Lanes that are threads of the block; `None` if all lanes are.
    pub(crate) threads: Option<Val>,
    /// Offset of the frame in the local memory of each lane, in vector code.
    pub(crate) frame_start: Val,
    /// Maximum bytes of local memory for the frames of a lane, if they might exceed it.
    pub(crate) stack_limit: Option<u64>,
    /// Rows for arguments and results of calls.
    pub(crate) rows: Vec<Val>,
    /// Local memory on the stack; `None` if the runtime provides it.
    pub(crate) frame: Option<Val>,
    /// Memory that masked-off lanes store to; created on first use.
    pub(crate) sink: Cell<Option<Val>>,
    /// Functions that can be called.
    pub(crate) callees: &'e BTreeMap<Func, Target>,
    /// Shape of the cluster that the block belongs to.
    pub(crate) cluster: crate::cluster::Shape,
    /// Number of instructions at which lanes of the slow path meet.
    pub(crate) exchanges: u32,
    /// Matrix products, each with the function that computes it.
    pub(crate) products: Vec<(Product, Val)>,
    /// Memory for inputs and outputs of runtime calls, by type.
    rooms: Vec<(Ty, Val)>,
    labels: SecondaryMap<Block, Option<Label>>,
    pub(crate) definitions: SecondaryMap<Reg, Option<Inst>>,
    used: SecondaryMap<Reg, bool>,
    /// True if one call runs all warps of a block.
    pub(crate) in_block: bool,
    /// Pieces of the kernel, if there are several.
    pub(crate) plan: Option<Rc<Plan>>,
    /// Piece being emitted.
    pub(crate) current: Current,
    /// Memory in which warps record the piece they continue in.
    pub(crate) states: Option<Val>,
    /// Bytes after the local memory of a warp that a block keeps.
    pub(crate) kept_bytes: u64,
    /// Shared arrays of counters.
    pub(crate) counters: Option<Counters>,
    /// Write-only arrays.
    pub(crate) streams: Streams,
    /// Addresses whose value in the next iteration of a loop is known.
    pub(crate) ahead: SecondaryMap<Reg, Option<Rc<Ahead>>>,
    /// Check of addresses before accesses.
    pub(super) checks: Checks,
    /// Accesses that need no check of their own.
    pub(super) checked: Checked,
    /// Line table of the high-level source, built when the first position is recorded.
    pub(crate) lines: Option<Lines<'e>>,
}

/// Input of an emitter.
pub(crate) struct Input<'e> {
    pub(crate) ir: &'e Ir,
    pub(crate) module: &'e Module,
    pub(crate) function: &'e Function,
    pub(crate) shapes: &'e Shapes,
    pub(crate) host: Host,
    pub(crate) block: [u32; 3],
    pub(crate) kind: Kind,
    pub(crate) layout: &'e super::layout::Layout,
    pub(crate) callees: &'e BTreeMap<Func, Target>,
    pub(crate) cluster: crate::cluster::Shape,
    pub(crate) stack_limit: Option<u64>,
    pub(crate) polls: &'e HashSet<Inst>,
    pub(crate) checks: Checks,
}

/// Results of an emitter besides the code.
#[derive(Default)]
pub(crate) struct Output {
    pub(crate) rare: Vec<Rare>,
    pub(crate) sites: Vec<Site>,
    pub(crate) loads: Accesses,
    pub(crate) stores: Accesses,
    pub(crate) exchanges: u32,
    pub(crate) products: Vec<(Product, Val)>,
    pub(crate) kept_bytes: u64,
    pub(crate) stream_bytes: u64,
}

/// Translates a function into the body of the one that `input.ir` has begun. `output` continues the results
/// of other functions.
pub(crate) fn emit(input: Input<'_>, output: Output) -> Emitted<Output> {
    let ir = input.ir;
    let entry = ir.block("entry");
    ir.go_on_in(entry);
    let warp = ir.argument(0);
    let passed = (!input.function.is_kernel).then(|| (ir.argument(1), ir.argument(2)));
    let services = ir.load_invariant(ir.pointer(), ir.offset_by(warp, abi::offset::SERVICES), 8);
    // A called function does not iterate over warps.
    let kind = if input.function.is_kernel || input.kind == Kind::Threads { input.kind } else { Kind::Warps };
    let done = match kind {
        // Each piece has its own label.
        Kind::Block => entry,
        Kind::Warps | Kind::Threads => ir.block("done"),
    };
    let lanes = (input.kind != Kind::Threads).then_some(32);
    let i32 = ir.int(32);
    let entered = passed.filter(|_| lanes.is_some()).map(|_| Emitter::entered(ir));
    let first = match kind {
        Kind::Block => ir.constant(i32, 0),
        Kind::Warps | Kind::Threads => {
            let load = || ir.load_invariant(i32, ir.offset_by(warp, abi::offset::FIRST), 4);
            entered.map_or_else(load, |entered| entered.first)
        }
    };
    let streamed = output.stream_bytes;
    let nans = Nans::new(input.function);
    let mut emitter = Emitter {
        ir,
        module: input.module,
        function: input.function,
        shapes: input.shapes,
        host: input.host,
        block: input.block,
        lanes,
        layout: input.layout,
        warp,
        services,
        first,
        specials: Specials::default(),
        values: SecondaryMap::new(),
        nans,
        done,
        rare: output.rare,
        sites: output.sites,
        at: None,
        polls: input.polls,
        loads: output.loads,
        stores: output.stores,
        exchanges: output.exchanges,
        products: output.products,
        rooms: vec![],
        passed,
        exists: None,
        threads: None,
        frame_start: entered.map_or(ir.constant(ir.int(64), 0), |entered| entered.frame),
        stack_limit: input.stack_limit,
        rows: vec![],
        frame: None,
        sink: Cell::new(None),
        callees: input.callees,
        cluster: input.cluster,
        labels: SecondaryMap::new(),
        definitions: SecondaryMap::new(),
        used: SecondaryMap::new(),
        in_block: kind == Kind::Block,
        plan: None,
        current: Current::default(),
        states: None,
        kept_bytes: output.kept_bytes,
        counters: None,
        streams: Streams::default(),
        ahead: SecondaryMap::new(),
        checks: input.checks,
        checked: Checked::default(),
        lines: None,
    };
    for (inst, data) in input.function.instructions() {
        for reg in data.writes() {
            emitter.definitions[reg] = Some(inst);
        }
        for reg in data.reads() {
            emitter.used[reg] = true;
        }
    }
    for edge in input.function.blocks.values().flat_map(|block| &block.edges) {
        for reg in &edge.args {
            emitter.used[*reg] = true;
        }
    }
    if input.kind == Kind::Threads && input.layout.local_bytes > 0 {
        let bytes = ir.vector(ir.int(8), input.layout.local_bytes as u32);
        emitter.frame = Some(ir.stack(bytes, 64));
    }
    let cfg = Cfg::new(input.function).ok_or_else(|| Untranslated("a kernel without a body".into()))?;
    match kind {
        Kind::Block => {
            emitter.make_rows();
            emitter.streams = emitter.find_streams();
            emitter.whole_block(&cfg)?;
        }
        Kind::Warps | Kind::Threads => {
            emitter.begin_warp(first);
            if let Some(entered) = entered {
                emitter.exists = Some(emitter.as_predicates(entered.lanes));
            }
            emitter.make_rows();
            emitter.take_parameters();
            emitter.blocks(&cfg, cfg.order(), cfg.entry(), &mut SecondaryMap::new())?;
            ir.go_on_in(done);
            ir.ret();
        }
    }
    let Emitter { rare, sites, loads, stores, exchanges, products, kept_bytes, streams, .. } = emitter;
    Ok(Output { rare, sites, loads, stores, exchanges, products, kept_bytes, stream_bytes: streamed + streams.thread_bytes })
}

impl<'e> Emitter<'e> {
    /// Returns memory on the stack for inputs and outputs of one runtime call. Calls with the same type share
    /// it: a kernel with thousands of them would otherwise use megabytes that no cache holds.
    pub(crate) fn room(&mut self, ty: Ty) -> Val {
        if let Some((_, room)) = self.rooms.iter().find(|(other, _)| *other == ty) {
            return *room;
        }
        let room = self.ir.stack(ty, 64);
        self.rooms.push((ty, room));
        room
    }

    /// Prepares for a warp, given the number of its first thread.
    pub(crate) fn begin_warp(&mut self, first: Val) {
        let ir = self.ir;
        self.first = first;
        self.specials = Specials::default();
        let threads: u32 = self.block.iter().product();
        if let Some(lanes) = self.lanes.filter(|lanes| !threads.is_multiple_of(*lanes)) {
            let count = ir.constant(ir.vector(ir.int(32), lanes), u64::from(threads));
            let numbers = self.spread(first, 1, lanes);
            self.threads = Some(ir.icmp(super::llvm::IntPred::LLVMIntULT, numbers, count));
        }
        self.exists = self.threads;
        self.prepare_specials();
    }

    /// Emits some blocks of the function, starting at one of them. Blocks that were emitted before are not
    /// counted again.
    pub(crate) fn blocks(
        &mut self,
        cfg: &Cfg,
        order: &[Block],
        entry: Block,
        emitted: &mut SecondaryMap<Block, bool>,
    ) -> Emitted<()> {
        let function = self.function;
        for block in order {
            self.labels[*block] = Some(self.ir.block(&block.to_string()));
        }
        // A loop that waits for other threads must yield to them.
        let pauses = |block: &Block| !self.in_block && function.blocks[*block].insts.iter().any(|inst| self.polls.contains(inst));
        let pausing: HashSet<Block> = order.iter().copied().filter(pauses).collect();
        let abreast = if self.in_block || self.lanes.is_none() { vec![] } else { self.abreast(cfg) };
        self.ir.branch(self.label(entry)?);
        for block in order {
            // The predecessor of the start of a piece has stored the values in their places.
            if self.plan.is_some() && *block == entry {
                continue;
            }
            self.ir.go_on_in(self.label(*block)?);
            for param in &function.blocks[*block].params {
                let phi = self.ir.phi(self.kept_type(*param));
                self.values[*param] = Some(phi);
            }
        }
        for block in order {
            self.ir.go_on_in(self.label(*block)?);
            for param in &function.blocks[*block].params {
                if let (Some(variable), Some(value)) = (self.current.variables[*param], self.values[*param]) {
                    self.ir.store(value, variable, 64);
                }
            }
            if pausing.contains(block) {
                self.pause_sometimes();
            }
            if abreast.contains(block) {
                self.pause();
            }
            let counted = (self.loads, self.stores);
            let mut ended = false;
            let insts = self.in_pairs(*block);
            self.checked.begin(&insts);
            let mut next = 0;
            while let Some(id) = insts.get(next) {
                self.at = Some(*id);
                let inst = &function.insts[*id];
                let together = self.load_group(&insts[next..])?;
                next += together.max(1);
                if together > 0 {
                    continue;
                }
                if inst.is_control() {
                    self.leave(*block, inst)?;
                    ended = true;
                } else if let Some(second) = insts.get(next)
                    && self.load_pair([*id, *second])?
                {
                    next += 1;
                } else if !(self.is_there(inst) || self.in_block && plain_barrier(inst).is_some()) {
                    self.instruction(inst)?;
                }
            }
            if !ended {
                self.go_on(*block, 0)?;
            }
            if std::mem::replace(&mut emitted[*block], true) {
                (self.loads, self.stores) = counted;
            }
        }
        Ok(())
    }

    fn label(&self, block: Block) -> Emitted<Label> {
        self.labels[block].ok_or_else(|| Untranslated(format!("{block} has no label")))
    }

    /// Follows an edge of a block from the builder's position.
    fn go_on(&mut self, block: Block, edge: usize) -> Emitted<()> {
        match self.function.blocks[block].edges.get(edge) {
            None => self.finish_thread(Opcode::Ret)?,
            Some(edge) => {
                if let Some((plan, piece)) = self.crosses(edge.target) {
                    return self.cross(&plan, piece, &edge.args, block);
                }
                self.pass(&edge.args, edge.target)?;
                self.ir.branch(self.label(edge.target)?);
            }
        }
        Ok(())
    }

    /// Passes the arguments of an edge from here to the parameters of a block.
    fn pass(&mut self, args: &[Reg], target: Block) -> Emitted<()> {
        let function = self.function;
        for (arg, param) in args.iter().zip(&function.blocks[target].params) {
            let value = self.handed_on(*arg, *param)?;
            let phi = self.values[*param].ok_or_else(|| Untranslated("a parameter without a place".into()))?;
            self.ir.incoming(phi, value, self.ir.here());
        }
        Ok(())
    }

    /// Returns the value of a register as a block parameter keeps it.
    pub(crate) fn handed_on(&self, arg: Reg, param: Reg) -> Emitted<Val> {
        let value = if self.is_kept_as_scalar(param) { self.lane0(arg)? } else { self.all_lanes(arg)? };
        Ok(if self.is_noisy(arg) && !self.is_noisy(param) { self.canonical_bits(value) } else { value })
    }

    /// Emits the last instruction of a block.
    fn leave(&mut self, block: Block, inst: &InstData) -> Emitted<()> {
        let opcode = inst.opcode().ok_or_else(|| Untranslated("an opaque instruction".into()))?;
        let condition = match inst.guard {
            None => None,
            Some(guard) => {
                let value = self.lane0(guard.reg)?;
                Some(if guard.negated { self.ir.not(value) } else { value })
            }
        };
        let ends = matches!(opcode, Opcode::Ret | Opcode::Exit);
        match condition {
            _ if opcode == Opcode::Trap => {
                self.trap(inst)?;
                if inst.guard.is_some() { self.go_on(block, 0) } else { self.end_here() }
            }
            None if opcode == Opcode::Bra => self.go_on(block, 0),
            Some(condition) if opcode == Opcode::Bra => self.two_ways(block, condition),
            None if ends => self.finish_thread(opcode),
            Some(condition) if ends => {
                let (end, on) = (self.ir.block("end"), self.ir.block("on"));
                self.ir.branch_if(condition, end, on);
                self.ir.go_on_in(end);
                self.finish_thread(opcode)?;
                self.ir.go_on_in(on);
                self.go_on(block, 0)
            }
            None | Some(_) => Err(Untranslated(format!("`{}` ends a block", inst.mnemonic_text()))),
        }
    }

    /// Emits `ret` and `exit`. In a called function `exit` ends the thread; in vector code it occurs only in
    /// kernels.
    fn finish_thread(&mut self, opcode: Opcode) -> Emitted<()> {
        if opcode == Opcode::Exit && self.passed.is_some() {
            if self.lanes.is_some() {
                return Err(Untranslated("an `exit` of a function in vector code".into()));
            }
            self.serve(super::Service::Exit, self.ir.void(), &[self.warp]);
            return self.end_here();
        }
        self.give_results()?;
        self.ir.branch(self.done);
        Ok(())
    }

    /// Returns whether a register has a value already.
    pub(crate) fn has_value(&self, reg: Reg) -> bool {
        self.values[reg].is_some()
    }

    /// Marks this point as unreachable.
    fn end_here(&mut self) -> Emitted<()> {
        self.ir.unreachable();
        Ok(())
    }

    fn two_ways(&mut self, block: Block, condition: Val) -> Emitted<()> {
        let function = self.function;
        let [taken, other] = function.blocks[block].edges.as_slice() else {
            return Err(Untranslated(format!("{block} does not have two edges")));
        };
        let crosses = self.crosses(taken.target).is_some() || self.crosses(other.target).is_some();
        if crosses || taken.target == other.target && !taken.args.is_empty() {
            // Two edges to one block, or an edge with code of its own: each gets its own block.
            let (yes, no) = (self.ir.block("taken"), self.ir.block("other"));
            self.ir.branch_if(condition, yes, no);
            self.ir.go_on_in(yes);
            self.go_on(block, 0)?;
            self.ir.go_on_in(no);
            return self.go_on(block, 1);
        }
        self.pass(&taken.args, taken.target)?;
        if taken.target != other.target {
            self.pass(&other.args, other.target)?;
        }
        self.ir.branch_if(condition, self.label(taken.target)?, self.label(other.target)?);
        Ok(())
    }

    // Values.

    /// Returns whether a register is kept as the value of its first lane.
    pub(crate) fn is_kept_as_scalar(&self, reg: Reg) -> bool {
        if self.lanes.is_none() {
            return true;
        }
        let shape = self.shapes.shape(reg);
        let ty = self.function.regs[reg].ty;
        shape.is_uniform() || (shape.known() == LANE_BITS && is_plain_integer(ty))
    }

    /// Returns the offset of each lane from the first, for a register that is kept as a scalar. Returns
    /// `None` if all lanes are equal.
    pub(crate) fn offsets(&self, reg: Reg) -> Option<Vec<i64>> {
        let shape = self.shapes.shape(reg);
        if self.lanes.is_none() || shape.is_uniform() { None } else { offsets(&shape) }
    }

    /// Returns the type of a register in one lane.
    pub(crate) fn register_type(&self, ty: Type) -> Ty {
        match ty {
            Type::Pred => self.ir.int(1),
            Type::F32 => self.ir.float(),
            Type::F64 => self.ir.double(),
            ty => self.ir.int(ty.bits()),
        }
    }

    pub(crate) fn kept_type(&self, reg: Reg) -> Ty {
        let ty = self.register_type(self.function.regs[reg].ty);
        if self.is_kept_as_scalar(reg) { ty } else { self.ir.lanes_of(ty, self.lanes) }
    }

    pub(crate) fn kept(&self, reg: Reg) -> Emitted<Val> {
        if let Some(variable) = self.current.variables[reg] {
            return Ok(self.ir.load(self.kept_type(reg), variable, 64));
        }
        let name = || format!("`{}` has no value yet", self.function.regs[reg].name);
        self.values[reg].ok_or_else(|| Untranslated(name()))
    }

    /// Returns the value of a register in lane 0.
    pub(crate) fn lane0(&self, reg: Reg) -> Emitted<Val> {
        let value = self.kept(reg)?;
        Ok(if self.ir.lanes(value).is_some() { self.ir.extract_at(value, 0) } else { value })
    }

    /// Returns the value of a register in all lanes.
    pub(crate) fn all_lanes(&self, reg: Reg) -> Emitted<Val> {
        let value = self.kept(reg)?;
        let Some(lanes) = self.lanes else { return Ok(value) };
        if self.ir.lanes(value).is_some() {
            return Ok(value);
        }
        Ok(match self.offsets(reg) {
            None => self.ir.splat(value, lanes),
            Some(offsets) => self.ir.add(self.ir.splat(value, lanes), self.numbers(self.ir.type_of(value), &offsets)),
        })
    }

    /// Returns a vector of integer constants.
    pub(crate) fn numbers(&self, element: Ty, numbers: &[i64]) -> Val {
        let values: Vec<Val> = numbers.iter().map(|number| self.ir.constant(element, *number as u64)).collect();
        self.ir.constants(&values)
    }

    /// Broadcasts a scalar to all lanes and adds a stride from lane to lane.
    pub(crate) fn spread(&self, scalar: Val, stride: i64, lanes: u32) -> Val {
        let splat = self.ir.splat(scalar, lanes);
        if stride == 0 {
            return splat;
        }
        let steps = self.ir.steps(self.ir.type_of(scalar), lanes, stride as u64);
        self.ir.add(splat, steps)
    }

    /// Returns the instruction that writes a register; `None` for parameters of blocks.
    pub(crate) fn definition(&self, reg: Reg) -> Option<&InstData> {
        self.definitions[reg].map(|inst| &self.function.insts[inst])
    }

    /// Returns whether a register is read.
    pub(crate) fn is_used(&self, reg: Reg) -> bool {
        self.used[reg]
    }

    pub(crate) fn is_noisy(&self, reg: Reg) -> bool {
        self.nans.is_noisy(reg)
    }

    /// Sets the value of a register: a scalar, or one value per lane, in the register's own type.
    pub(crate) fn define(&mut self, reg: Reg, value: Val) {
        let value = match (self.is_kept_as_scalar(reg), self.ir.lanes(value), self.lanes) {
            (true, Some(_), _) => self.ir.extract_at(value, 0),
            (false, None, Some(lanes)) => self.ir.splat(value, lanes),
            _ => value,
        };
        if let Some(variable) = self.current.variables[reg] {
            self.ir.store(value, variable, 64);
        }
        self.values[reg] = Some(value);
    }

    // Instructions.

    pub(crate) fn instruction(&mut self, inst: &InstData) -> Emitted<()> {
        let opcode = inst.opcode().ok_or_else(|| Untranslated("an opaque instruction".into()))?;
        if Operation::of(inst).is_some_and(|operation| operation.function().is_some()) {
            return self.pure(inst);
        }
        self.machine(opcode, inst)
    }

    /// Emits an instruction that is a function of its inputs.
    fn pure(&mut self, inst: &InstData) -> Emitted<()> {
        let results = inst.writes();
        if results.is_empty() {
            return Ok(());
        }
        let scalar = results.iter().all(|reg| self.is_kept_as_scalar(*reg));
        let written: Vec<(Operand, Type)> = self.written(inst);
        let inputs: Vec<Val> = match (is_choice(inst), results.iter().any(|reg| self.is_noisy(*reg))) {
            (false, _) => self.vector_inputs(inst, scalar)?,
            (true, true) => {
                let each = broadloom_eval::inputs(inst).map(|(operand, ty)| self.fetch_as_is(operand, ty, scalar));
                each.collect::<Emitted<_>>()?
            }
            (true, false) => self.inputs(inst, scalar)?,
        };
        match self.lower_pure(inst, &inputs)? {
            Some(mut values) => {
                if super::float::may_flush_late(inst) {
                    values = self.flush_before_rounding(inst, &written, values, scalar)?;
                }
                for ((operand, ty), value) in written.iter().zip(values) {
                    self.assign(operand, *ty, value)?;
                }
                Ok(())
            }
            None => self.evaluate(inst, &written, scalar),
        }
    }
}

/// Returns whether a type is an integer or untyped bits of at most 64 bits.
pub(crate) fn is_plain_integer(ty: Type) -> bool {
    matches!(ty, Type::B16 | Type::B32 | Type::B64 | Type::U16 | Type::U32 | Type::U64 | Type::S16 | Type::S32 | Type::S64)
        || matches!(ty, Type::B8 | Type::U8 | Type::S8)
}
