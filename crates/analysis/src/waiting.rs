//! Loops that may wait for a write of another thread, and the reads at which they do.
//!
//! Suppose that no other thread writes. A read whose address is constant then gives the same value in every
//! iteration. A loop *waits* if all its exit conditions depend on such values alone: only another thread can
//! end it, so an executor must let others run. The decision follows from the data that exit conditions depend
//! on, not from the kinds of instructions in the loop.
//!
//! - The *slice* of a loop is everything that its exit conditions depend on: registers, block parameters and
//!   the branches that select their values.
//! - A value *advances* if it changes from iteration to iteration by itself: a counter, a pointer that
//!   follows a list, a clock, the result of an `atom.add` of a number other than zero, and everything
//!   computed from one. An index that stays the same on one back edge does not advance. Two ends of a range,
//!   of which one moves in every iteration, advance together.
//! - A read is *steady* if neither its address nor its result advances.
//! - A *strong* read (atomic, volatile, relaxed, acquire) is meant to see writes of others. The loop waits at
//!   each steady one in the slice, even if a counter eventually ends the loop. An index that wraps around
//!   (`(i + 1) & 31`) does not count as advancing for it.
//! - A *weak* read is any other. The loop waits at a steady one if no exit ends the loop by itself, the loop
//!   does not write to the same array, and, in shared memory, there is no barrier in every iteration: threads
//!   wait at the barrier there.
//!
//! Values are not tracked through the thread's memory or through calls. A value from there may come from any
//! strong read of the loop, and from any function that the loop calls. A cycle with several entries is
//! treated as a loop in which nothing advances.

use crate::cfg::Cfg;
use crate::dominators::Dominators;
use crate::loops::Loops;
use broadloom_ptx::{
    Base, Block, Callee, Class, Effects, Func, Function, Imm, Inst, InstData, Modifier, Module, Opcode, Operand, Param, Reg,
    Space, Symbol, Type,
};
use cranelift_entity::SecondaryMap;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Maximum length of the chains of instructions that are followed; beyond it values are assumed not to
/// advance.
const DEEPEST: u32 = 64;
/// Maximum number of values that are examined together, and maximum depth of selections between them.
const MOST_TOGETHER: usize = 4;
const DEEPEST_CHOICE: u32 = 6;
/// Maximum blocks of a loop for which the branches that select values are determined; in larger loops all
/// branches count.
const MOST_BLOCKS: usize = 1000;
/// Maximum depth of trees of `and`, `or` and `not` that are followed.
const DEEPEST_CONDITION: u32 = 16;

/// Read that a loop waits at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    /// The read, or the call of a function that reads.
    pub inst: Inst,
    /// Header of the loop; `None` for a cycle without one.
    pub header: Option<Block>,
}

/// Reads that loops of a function in SSA form wait at.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    waits: Vec<Wait>,
}

impl Waiting {
    /// Analyses a function.
    pub fn new(module: &Module, function: &Function, cfg: &Cfg, dominators: &Dominators, loops: &Loops) -> Waiting {
        let reads = |block: &Block| function.blocks[*block].insts.iter().any(|inst| may_read(&function.insts[*inst]));
        let mut regions: Vec<(Option<Block>, BTreeSet<Block>)> =
            loops.iter().map(|(_, data)| (Some(data.header), data.blocks.iter().copied().collect())).collect();
        regions.extend(loops.irreducible_edges().iter().map(|(from, to)| (None, circle(cfg, *from, *to))));
        regions.retain(|(_, blocks)| blocks.iter().any(reads));
        if regions.is_empty() {
            return Waiting::default();
        }
        let places = RegisterDefinitions::new(function, cfg);
        let mut waits = BTreeSet::new();
        for (header, inside) in regions {
            let region =
                Region { module, function, cfg, dominators, places: &places, header, inside, advancing: RefCell::default() };
            waits.extend(region.waits().into_iter().map(|inst| Wait { inst, header }));
        }
        Waiting { waits: waits.into_iter().collect() }
    }

    /// Returns all waits, each once for every loop that waits there.
    pub fn waits(&self) -> &[Wait] {
        &self.waits
    }

    /// Returns whether a loop waits at an instruction.
    pub fn contains(&self, inst: Inst) -> bool {
        self.waits.iter().any(|wait| wait.inst == inst)
    }
}

/// Returns the blocks on all paths from one block to another.
fn circle(cfg: &Cfg, last: Block, first: Block) -> BTreeSet<Block> {
    let reached = |start: Block, next: &dyn Fn(Block) -> Vec<Block>| {
        let mut found = BTreeSet::from([start]);
        let mut work = vec![start];
        while let Some(block) = work.pop() {
            work.extend(next(block).into_iter().filter(|block| found.insert(*block)));
        }
        found
    };
    let behind = reached(first, &|block| cfg.successors(block).to_vec());
    let before = reached(last, &|block| cfg.predecessors(block).to_vec());
    behind.intersection(&before).copied().collect()
}

/// Returns whether an instruction reads memory, or calls a function that may.
fn may_read(data: &InstData) -> bool {
    data.effects().may_read()
}

/// Returns whether an instruction is a read that sees concurrent writes of other threads: an atomic, or a
/// volatile, relaxed or acquire load.
pub fn is_strong_read(data: &InstData) -> bool {
    let strong = data.effects().has(Effects::READ) && data.is_ordered() && !data.has(Modifier::Release);
    let reads = data.opcode() == Some(Opcode::Atom) || strong;
    reads && is_shared_with_others(data)
}

/// Returns whether an atomic changes the value each time, so that a repetition sees another value.
pub fn advances_memory(data: &InstData) -> bool {
    let zero = data.operands.get(2).is_some_and(is_zero);
    let counts = data.has(Modifier::Inc) || data.has(Modifier::Dec);
    let adds = data.has(Modifier::Add) && matches!(data.operands.get(2), Some(Operand::Imm(_)));
    data.opcode() == Some(Opcode::Atom) && (counts || adds) && !zero
}

/// Returns whether an operand is a zero of any type.
pub fn is_zero(operand: &Operand) -> bool {
    match operand {
        Operand::Imm(Imm::Int(value)) => *value == 0,
        Operand::Imm(Imm::Uint(value)) => *value == 0,
        Operand::Imm(Imm::F32(bits)) => bits << 1 == 0,
        Operand::Imm(Imm::F64(bits)) => bits << 1 == 0,
        _ => false,
    }
}

/// Returns whether an instruction reads memory that other threads may write concurrently.
fn is_shared_with_others(data: &InstData) -> bool {
    let phases = data.class() == Some(Class::Mbarrier);
    let read_only = data.has(Modifier::Nc) || data.class() == Some(Class::Texture);
    match data.space() {
        Space::Global | Space::Shared | Space::Generic => !phases && !read_only,
        Space::Reg => data.class() == Some(Class::Surface),
        Space::Local | Space::Param | Space::Const | Space::Tex => false,
    }
}

/// Returns whether an instruction reads memory in which the thread itself may have stored a value that it
/// read elsewhere.
fn is_own_memory(data: &InstData) -> bool {
    data.effects().has(Effects::READ) && matches!(data.space(), Space::Local | Space::Param | Space::Generic)
}

struct RegisterDefinitions {
    makers: SecondaryMap<Reg, Option<(Block, Inst)>>,
    params: SecondaryMap<Reg, Option<(Block, usize)>>,
    /// Arguments of the parameters of a block, each with the block that it comes from.
    edges: SecondaryMap<Block, Vec<(Block, Vec<Reg>)>>,
}

impl RegisterDefinitions {
    fn new(function: &Function, cfg: &Cfg) -> RegisterDefinitions {
        let mut places =
            RegisterDefinitions { makers: SecondaryMap::new(), params: SecondaryMap::new(), edges: SecondaryMap::new() };
        for block in cfg.order() {
            let data = &function.blocks[*block];
            for inst in &data.insts {
                function.insts[*inst].each_written(|reg| places.makers[reg] = Some((*block, *inst)));
            }
            for (index, param) in data.params.iter().enumerate() {
                places.params[*param] = Some((*block, index));
            }
            for edge in &data.edges {
                places.edges[edge.target].push((*block, edge.args.to_vec()));
            }
        }
        places
    }
}

/// Exit of a loop: it is taken if a predicate has a value.
#[derive(Clone, Copy)]
struct Exit {
    condition: Reg,
    when: bool,
}

/// Values that exit conditions depend on.
#[derive(Default)]
struct Slice {
    reads: Vec<Inst>,
    /// True if a value came through the thread's memory or out of a call.
    through_memory: bool,
}

struct Region<'a> {
    module: &'a Module,
    function: &'a Function,
    cfg: &'a Cfg,
    dominators: &'a Dominators,
    places: &'a RegisterDefinitions,
    header: Option<Block>,
    inside: BTreeSet<Block>,
    /// Cache of visited registers, and whether they advance.
    advancing: RefCell<HashMap<(Reg, Certainty), bool>>,
}

impl Region<'_> {
    /// Returns the reads that the loop waits at.
    fn waits(&self) -> Vec<Inst> {
        let exits = self.exits();
        let slice = self.slice(&exits);
        let data = |inst: &Inst| &self.function.insts[*inst];
        let mut reads = slice.reads;
        if slice.through_memory {
            reads.extend(self.insts().filter(|inst| is_strong_read(data(inst)) || data(inst).callee().is_some()));
        }
        reads.retain(|inst| self.is_steady(data(inst)));
        let (mut found, weak): (Vec<Inst>, Vec<Inst>) = reads.into_iter().partition(|inst| self.is_strong(data(inst)));
        let ends = || self.header.is_some() && exits.iter().any(|exit| self.ends(exit.condition, exit.when, DEEPEST_CONDITION));
        if !weak.is_empty() && !ends() {
            let written = self.written();
            let is_written = |data: &InstData| written.iter().any(|(space, pointers)| self.is_in(data, *space, pointers));
            let waited_at = |data: &InstData| self.is_weak(data) && !is_written(data) && !self.meets_others(data);
            found.extend(weak.into_iter().filter(|inst| waited_at(data(inst))));
        }
        found
    }

    fn insts(&self) -> impl Iterator<Item = Inst> + '_ {
        self.inside.iter().flat_map(|block| &self.function.blocks[*block].insts).copied()
    }

    /// Returns the predicate that decides at the end of a block.
    fn condition(&self, block: Block) -> Option<(Reg, bool, &InstData)> {
        let data = &self.function.insts[*self.function.blocks[block].insts.last()?];
        data.guard.filter(|_| data.is_control()).map(|guard| (guard.reg, guard.negated, data))
    }

    /// Returns the exits; all branches if there is no loop to leave.
    fn exits(&self) -> Vec<Exit> {
        let mut exits = vec![];
        for block in &self.inside {
            let Some((condition, negated, data)) = self.condition(*block) else { continue };
            let leaves = |edge: usize| {
                let target = self.function.blocks[*block].edges.get(edge);
                self.header.is_none() || target.is_some_and(|edge| !self.inside.contains(&edge.target))
            };
            if data.opcode() != Some(Opcode::Bra) || leaves(0) {
                exits.push(Exit { condition, when: !negated });
            }
            if data.opcode() == Some(Opcode::Bra) && leaves(1) {
                exits.push(Exit { condition, when: negated });
            }
        }
        exits
    }

    /// Returns the reads that exits depend on.
    fn slice(&self, exits: &[Exit]) -> Slice {
        let mut slice = Slice::default();
        let mut work: Vec<Reg> = exits.iter().map(|exit| exit.condition).collect();
        let (mut seen, mut joins): (HashSet<Reg>, HashSet<Block>) = Default::default();
        while let Some(reg) = work.pop() {
            if !seen.insert(reg) {
                continue;
            }
            if let Some((_, inst)) = self.places.makers[reg].filter(|(block, _)| self.inside.contains(block)) {
                let data = &self.function.insts[inst];
                if may_read(data) && is_shared_with_others(data) && !slice.reads.contains(&inst) {
                    slice.reads.push(inst);
                }
                slice.through_memory |= is_own_memory(data) && !self.is_of_launch(data) || data.effects().has(Effects::CALL);
                work.extend(data.reads());
            } else if let Some((block, index)) = self.places.params[reg].filter(|(block, _)| self.inside.contains(block)) {
                let edges = self.places.edges[block].iter().filter(|(from, _)| self.inside.contains(from));
                work.extend(edges.filter_map(|(_, args)| args.get(index).copied()));
                if self.inside.len() <= MOST_BLOCKS && joins.insert(block) {
                    work.extend(self.choices(block));
                } else if joins.is_empty() {
                    joins.insert(block);
                    work.extend(self.inside.iter().filter_map(|from| self.condition(*from)).map(|(reg, ..)| reg));
                }
            }
        }
        slice
    }

    /// Returns whether a load reads a kernel parameter, which never changes.
    fn is_of_launch(&self, data: &InstData) -> bool {
        self.function.is_kernel
            && data.space() == Space::Param
            && match data.address().map(|address| address.base) {
                Some(Base::Symbol(Symbol::Local(var))) => self.function.params.contains(&Param::Memory(var)),
                _ => false,
            }
    }

    /// Returns the conditions that decide by which path control reaches a block: those between it and its
    /// dominator.
    fn choices(&self, block: Block) -> Vec<Reg> {
        let ways = self.places.edges[block].iter().filter(|(from, _)| self.inside.contains(from)).count();
        if ways < 2 {
            return vec![];
        }
        let above = self.dominators.immediate(block).filter(|above| self.inside.contains(above));
        let between = |from: &&Block| match above {
            Some(above) if self.header.is_some() => {
                self.dominators.dominates(above, **from) && self.cfg.position(**from) < self.cfg.position(block)
            }
            _ => true,
        };
        self.inside.iter().filter(between).filter_map(|from| self.condition(*from)).map(|(reg, ..)| reg).collect()
    }

    // Values that are read.

    fn is_strong(&self, data: &InstData) -> bool {
        match data.callee() {
            Some(callee) => self.function_reads(callee, &is_strong_read),
            None => is_strong_read(data),
        }
    }

    fn is_weak(&self, data: &InstData) -> bool {
        match data.callee() {
            Some(callee) => self.function_reads(callee, &|data| may_read(data) && is_shared_with_others(data)),
            None => true,
        }
    }

    /// Returns whether a called function, or one that it calls, contains a matching instruction. Functions
    /// without a body are provided by the device and never wait.
    fn function_reads(&self, callee: Callee, what: &dyn Fn(&InstData) -> bool) -> bool {
        let functions = &self.module.functions;
        let all = || functions.keys().filter(|func| functions[*func].has_body && !functions[*func].is_kernel);
        let named = |callee: Callee| -> Vec<Func> {
            match callee {
                Callee::Direct(func) => vec![func],
                Callee::Indirect { .. } => all().collect(),
            }
        };
        let mut seen: HashSet<Func> = HashSet::new();
        let mut work = named(callee);
        while let Some(func) = work.pop() {
            if !seen.insert(func) {
                continue;
            }
            for (_, data) in functions[func].instructions() {
                match data.callee() {
                    Some(callee) => work.extend(named(callee)),
                    None if what(data) => return true,
                    None => {}
                }
            }
        }
        false
    }

    /// Returns whether a read gives the same value in every iteration unless another thread writes.
    fn is_steady(&self, data: &InstData) -> bool {
        let strong = is_strong_read(data);
        let rigour = if strong { Certainty::Strict } else { Certainty::Loose };
        let address = data.address().map(|address| address.base);
        let moves = match address {
            Some(Base::Reg(reg)) => self.advances(reg, rigour, DEEPEST),
            Some(Base::Symbol(_) | Base::Absolute) => false,
            // Coordinates of a surface; arguments of a call do not matter, since the callee may ignore them.
            None => data.callee().is_none() && data.reads().into_iter().any(|reg| self.advances(reg, rigour, DEEPEST)),
        };
        !(moves || strong && advances_memory(data))
    }

    /// Returns the writes of the loop itself: the spaces, and what the addresses are derived from.
    fn written(&self) -> Vec<(Space, BTreeSet<String>)> {
        let writes = |data: &&InstData| data.effects().writes_memory();
        let all = self.insts().map(|inst| &self.function.insts[inst]).filter(writes);
        let mut places: Vec<(Space, BTreeSet<String>)> = vec![];
        for place in all.map(|data| (data.space(), self.pointers(data))) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    /// Returns whether a read may alias a write.
    fn is_in(&self, read: &InstData, space: Space, pointers: &BTreeSet<String>) -> bool {
        let same_space = match (read.space(), space) {
            (Space::Generic, space) | (space, Space::Generic) => !matches!(space, Space::Local | Space::Param | Space::Const),
            (a, b) => a == b,
        };
        let own = self.pointers(read);
        same_space && (own.is_empty() || pointers.is_empty() || !own.is_disjoint(pointers))
    }

    /// Returns the parameters, variables and loads that an address is derived from, as far as they can hold a
    /// pointer.
    fn pointers(&self, data: &InstData) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut work = match data.address().map(|address| address.base) {
            Some(Base::Reg(reg)) => vec![reg],
            Some(Base::Symbol(symbol)) => return BTreeSet::from([format!("{symbol:?}")]),
            Some(Base::Absolute) | None => return found,
        };
        let mut seen = HashSet::new();
        while let Some(reg) = work.pop() {
            if !seen.insert(reg) {
                continue;
            }
            if let Some((block, index)) = self.places.params[reg] {
                work.extend(self.places.edges[block].iter().filter_map(|(_, args)| args.get(index).copied()));
            }
            let Some((_, inst)) = self.places.makers[reg] else { continue };
            let data = &self.function.insts[inst];
            let wide = data.types().any(|ty| ty.bits() == 64);
            for operand in &data.operands {
                match operand {
                    Operand::Symbol(symbol, _) => _ = found.insert(format!("{symbol:?}")),
                    Operand::Memory(address) if wide => _ = found.insert(format!("{address:?}")),
                    _ => {}
                }
            }
            if data.address().is_none() {
                work.extend(data.reads());
            }
        }
        found
    }

    /// Returns whether a read of shared memory is in a loop with a barrier in every iteration.
    fn meets_others(&self, data: &InstData) -> bool {
        let Some(header) = self.header else { return false };
        let has_barrier = |block: &&Block| {
            let insts = &self.function.blocks[**block].insts;
            insts.iter().any(|inst| self.function.insts[*inst].effects().has(Effects::BARRIER))
        };
        let latches: Vec<Block> =
            self.places.edges[header].iter().map(|(from, _)| *from).filter(|from| self.inside.contains(from)).collect();
        let always = |block: &Block| latches.iter().all(|latch| self.dominators.dominates(*block, *latch));
        matches!(data.space(), Space::Shared | Space::Generic) && self.inside.iter().filter(has_barrier).any(always)
    }

    // Values that advance by themselves.

    /// Returns whether a predicate eventually gets a value by itself.
    fn ends(&self, reg: Reg, when: bool, depth: u32) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        if let Some((block, index)) = self.places.params[reg].filter(|(block, _)| self.inside.contains(block)) {
            let edges = self.places.edges[block].iter().filter(|(from, _)| self.inside.contains(from));
            return Some(block) != self.header
                && edges.filter_map(|(_, args)| args.get(index)).all(|arg| self.ends(*arg, when, depth / 2));
        }
        let Some((_, inst)) = self.places.makers[reg].filter(|(block, _)| self.inside.contains(block)) else { return false };
        let data = &self.function.insts[inst];
        let inputs = || data.operands.iter().skip(1);
        let part = |operand: &Operand, when: bool| match operand {
            Operand::Reg(reg) => self.ends(*reg, when, depth),
            Operand::Not(reg) => self.ends(*reg, !when, depth),
            _ => false,
        };
        // `and` is true if both are, `or` if one is.
        let both = |and: bool| and == when;
        match data.opcode() {
            Some(Opcode::Not) => inputs().all(|operand| part(operand, !when)),
            Some(Opcode::And | Opcode::Or) if both(data.opcode() == Some(Opcode::And)) => {
                inputs().all(|operand| part(operand, when))
            }
            Some(Opcode::And | Opcode::Or) => inputs().any(|operand| part(operand, when)),
            Some(Opcode::Mov | Opcode::Vote | Opcode::VoteSync) => inputs().any(|operand| part(operand, when)),
            Some(Opcode::Setp) => {
                let advances =
                    |operand: &Operand| matches!(operand, Operand::Reg(reg) if self.advances(*reg, Certainty::Loose, DEEPEST));
                let compared = inputs().any(|operand| !self.is_predicate(operand) && advances(operand))
                    || self.advance_together(inputs().filter(|operand| !self.is_predicate(operand)));
                let mut others = inputs().filter(|operand| self.is_predicate(operand));
                match (data.has(Modifier::And), data.has(Modifier::Or)) {
                    (true, _) if both(true) => compared && others.all(|operand| part(operand, when)),
                    (_, true) if both(false) => compared && others.all(|operand| part(operand, when)),
                    (false, false) => compared,
                    _ => compared || others.any(|operand| part(operand, when)),
                }
            }
            _ => data.reads().into_iter().any(|reg| self.advances(reg, Certainty::Loose, DEEPEST)),
        }
    }

    /// Returns whether a register holds another value in every iteration, or in the end.
    fn advances(&self, reg: Reg, rigour: Certainty, depth: u32) -> bool {
        if let Some(known) = self.advancing.borrow().get(&(reg, rigour)) {
            return *known;
        }
        let Some(depth) = depth.checked_sub(1) else { return false };
        // If it is visited again during the search, the other arguments decide.
        self.advancing.borrow_mut().insert((reg, rigour), true);
        let advances = self.advances_anew(reg, rigour, depth);
        self.advancing.borrow_mut().insert((reg, rigour), advances);
        advances
    }

    fn advances_anew(&self, reg: Reg, rigour: Certainty, depth: u32) -> bool {
        if let Some((block, index)) = self.places.params[reg].filter(|(block, _)| self.inside.contains(block)) {
            let mut args =
                self.places.edges[block].iter().filter(|(from, _)| self.inside.contains(from)).map(|(_, args)| args[index]);
            return match self.header {
                None => false,
                // A predicate has only two values.
                Some(header) if header == block => {
                    self.function.regs[reg].ty != Type::Pred && args.all(|arg| self.moves(arg, reg, rigour, DEEPEST))
                }
                Some(_) => args.all(|arg| self.advances(arg, rigour, depth)),
            };
        }
        let Some((_, inst)) = self.places.makers[reg].filter(|(block, _)| self.inside.contains(block)) else { return false };
        let data = &self.function.insts[inst];
        let clock = |operand: &Operand| matches!(operand, Operand::Special(special) if is_clock(special.text()));
        if data.operands.iter().any(clock) || advances_memory(data) {
            return true;
        }
        let of = |operand: &Operand| match operand {
            Operand::Reg(reg) | Operand::Not(reg) | Operand::Part { reg, .. } => self.advances(*reg, rigour, depth),
            Operand::Memory(address) => matches!(address.base, Base::Reg(reg) if self.advances(reg, rigour, depth)),
            _ => false,
        };
        let inputs = || data.operands.iter().skip(1);
        match Self::kind(data, rigour) {
            Kind::Moving | Kind::Seeing => inputs().any(of),
            Kind::Choosing => inputs().filter(|operand| !self.is_predicate(operand)).all(of),
            Kind::Bounding => inputs().all(of),
            Kind::Other => false,
        }
    }

    fn is_predicate(&self, operand: &Operand) -> bool {
        matches!(operand, Operand::Reg(reg) | Operand::Not(reg) if self.function.regs[*reg].ty == Type::Pred)
    }

    /// Returns whether the next value of a header parameter differs from the current one, on every path.
    fn moves(&self, value: Reg, param: Reg, rigour: Certainty, depth: u32) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        if value == param {
            return false;
        }
        if let Some((block, index)) = self.places.params[value].filter(|(block, _)| self.inside.contains(block)) {
            let mut args =
                self.places.edges[block].iter().filter(|(from, _)| self.inside.contains(from)).map(|(_, args)| args[index]);
            // For an inner loop only the initial values are examined: its counters are not those of this
            // loop.
            return Some(block) != self.header && args.all(|arg| arg == value || self.moves(arg, param, rigour, depth / 2));
        }
        let Some((_, inst)) = self.places.makers[value].filter(|(block, _)| self.inside.contains(block)) else { return false };
        let data = &self.function.insts[inst];
        if advances_memory(data) {
            return true;
        }
        let register = |operand: &Operand| match operand {
            Operand::Reg(reg) | Operand::Not(reg) | Operand::Part { reg, .. } => Some(*reg),
            Operand::Memory(address) => match address.base {
                Base::Reg(reg) => Some(reg),
                Base::Symbol(_) | Base::Absolute => None,
            },
            _ => None,
        };
        let comes_from = |operand: &Operand| register(operand).is_some_and(|reg| self.comes_from(reg, param));
        let inputs = || data.operands.iter().skip(1);
        let copies = matches!(data.opcode(), Some(Opcode::Mov | Opcode::Cvt | Opcode::Cvta | Opcode::CvtaTo));
        match Self::kind(data, rigour) {
            Kind::Moving if copies => inputs().filter_map(register).any(|reg| self.moves(reg, param, rigour, depth)),
            Kind::Moving => inputs().any(comes_from),
            Kind::Choosing => {
                let mut values = inputs().filter(|operand| !self.is_predicate(operand));
                values.all(|operand| register(operand).is_some_and(|reg| self.moves(reg, param, rigour, depth / 2)))
            }
            Kind::Bounding => inputs().all(comes_from),
            Kind::Seeing | Kind::Other => false,
        }
    }

    /// Returns whether in every iteration one of some values moves, like the ends of a range in a binary
    /// search.
    fn advance_together<'o>(&self, operands: impl Iterator<Item = &'o Operand>) -> bool {
        let Some(header) = self.header else { return false };
        let regs: Vec<Reg> =
            operands.filter_map(|operand| if let Operand::Reg(reg) = operand { Some(*reg) } else { None }).collect();
        let params = self.function.blocks[header].params.iter().enumerate();
        let seen: Vec<(usize, Reg)> = params
            .filter(|(_, param)| self.function.regs[**param].ty != Type::Pred)
            .filter(|(_, param)| regs.iter().any(|reg| self.comes_from(*reg, **param)))
            .map(|(index, param)| (index, *param))
            .collect();
        if !(2..=MOST_TOGETHER).contains(&seen.len()) {
            return false;
        }
        let mut back = self.places.edges[header].iter().filter(|(from, _)| self.inside.contains(from));
        back.all(|(_, args)| {
            let pairs: Vec<(Reg, Reg)> = seen.iter().map(|(index, param)| (args[*index], *param)).collect();
            self.one_moves(&pairs, DEEPEST_CHOICE)
        })
    }

    /// Returns whether one of some values differs from the parameter that it becomes, on every path and for
    /// every selection.
    fn one_moves(&self, pairs: &[(Reg, Reg)], depth: u32) -> bool {
        if pairs.iter().any(|(value, param)| self.moves(*value, *param, Certainty::Loose, DEEPEST)) {
            return true;
        }
        let Some(depth) = depth.checked_sub(1) else { return false };
        let join_of = |value: Reg| {
            self.places.params[value].filter(|(block, _)| self.inside.contains(block) && Some(*block) != self.header)
        };
        if let Some((join, _)) = pairs.iter().find_map(|(value, _)| join_of(*value)) {
            let mut edges = self.places.edges[join].iter().filter(|(from, _)| self.inside.contains(from));
            return edges.all(|(_, args)| {
                let passed =
                    |value: Reg| join_of(value).filter(|(block, _)| *block == join).map_or(value, |(_, index)| args[index]);
                let pairs: Vec<(Reg, Reg)> = pairs.iter().map(|(value, param)| (passed(*value), *param)).collect();
                self.one_moves(&pairs, depth)
            });
        }
        let selection = |value: Reg| {
            let (_, inst) = self.places.makers[value].filter(|(block, _)| self.inside.contains(block))?;
            let data = &self.function.insts[inst];
            match (data.opcode(), data.operands.as_slice()) {
                (Some(Opcode::Selp), [_, Operand::Reg(a), Operand::Reg(b), Operand::Reg(choice)]) => Some(([*a, *b], *choice)),
                _ => None,
            }
        };
        let Some(choice) = pairs.iter().find_map(|(value, _)| selection(*value)).map(|(_, choice)| choice) else { return false };
        (0..2).all(|side| {
            let chosen = |value: Reg| match selection(value) {
                Some((values, other)) if other == choice => values[side],
                _ => value,
            };
            let pairs: Vec<(Reg, Reg)> = pairs.iter().map(|(value, param)| (chosen(*value), *param)).collect();
            self.one_moves(&pairs, depth)
        })
    }

    /// Returns whether a register is computed from another in the same iteration.
    fn comes_from(&self, reg: Reg, from: Reg) -> bool {
        let mut seen = HashSet::new();
        let mut work = vec![reg];
        while let Some(reg) = work.pop() {
            if reg == from {
                return true;
            }
            if !seen.insert(reg) {
                continue;
            }
            if let Some((_, inst)) = self.places.makers[reg].filter(|(block, _)| self.inside.contains(block)) {
                work.extend(self.function.insts[inst].reads());
            } else if let Some((block, index)) = self.places.params[reg].filter(|(block, _)| self.inside.contains(block))
                && Some(block) != self.header
            {
                let edges = self.places.edges[block].iter().filter(|(from, _)| self.inside.contains(from));
                work.extend(edges.filter_map(|(_, args)| args.get(index).copied()));
            }
        }
        false
    }

    /// Returns the effect of an instruction on advancing values.
    fn kind(data: &InstData, rigour: Certainty) -> Kind {
        let is_float = data.types().next().is_some_and(|ty| matches!(ty, Type::F16 | Type::F32 | Type::F64 | Type::Bf16));
        match data.opcode() {
            Some(Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Mad | Opcode::Fma | Opcode::Div) => Kind::Moving,
            Some(Opcode::Shl | Opcode::Shr | Opcode::Mov | Opcode::Cvt | Opcode::Cvta | Opcode::CvtaTo | Opcode::Neg) => {
                Kind::Moving
            }
            Some(Opcode::Setp | Opcode::Set) => Kind::Seeing,
            Some(_) if data.effects().has(Effects::WARP) => Kind::Seeing,
            Some(Opcode::Selp) => Kind::Choosing,
            Some(Opcode::Min | Opcode::Max) if !is_float => Kind::Bounding,
            // `mask & (mask - 1)` moves, `(i + 1) & 31` wraps around.
            Some(Opcode::And | Opcode::Or | Opcode::Xor | Opcode::Lop3) if !is_float => match rigour {
                Certainty::Strict => Kind::Bounding,
                Certainty::Loose => Kind::Moving,
            },
            Some(Opcode::Ld | Opcode::Ldu) if !is_strong_read(data) => Kind::Moving,
            Some(_) if is_float && data.effects().is_pure() => Kind::Moving,
            Some(_) | None => Kind::Other,
        }
    }
}

/// Required certainty that a value does not return to an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Certainty {
    /// A value that wraps around does not advance.
    Strict,
    /// It is enough that the value differs in the next iteration.
    Loose,
}

/// Effect of an instruction on advancing values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Its result advances if one of its operands does.
    Moving,
    /// Its result is one of its operands: each must advance.
    Choosing,
    /// Its result may stay the same unless all operands advance.
    Bounding,
    /// Its result shows that an operand advances, but has few values: it does not advance from iteration to
    /// iteration.
    Seeing,
    /// Its result is unknown.
    Other,
}

fn is_clock(name: &str) -> bool {
    ["%clock", "%globaltimer"].iter().any(|start| name.starts_with(start))
}
