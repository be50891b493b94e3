//! Code emission for a plan.
//!
//! Code is emitted in the order of the plan. A node that keeps its branches leaves *open ends*: blocks that
//! are complete except for their jump, each with its target node and arguments. The code after a head is one
//! *line* of straight code. A *way* to a node adds the lanes that go there to the node's mask, and passes its
//! values to those lanes only. The first way to a node in a line passes them to all lanes, because no other
//! lane has a value there yet.

use super::build::{Builder, Variable};
use super::levels::{Kind, Levels, Node};
use super::plan::{LevelPlan, MaskedCode, MaskedPart, Plan, left};
use super::steady::SteadyValues;
use crate::purity::is_speculable;
use broadloom_analysis::Cfg;
use broadloom_ptx::{Block, Edge, Function, Guard, Imm, Opcode, Operand, Reg, Type};
use cranelift_entity::SecondaryMap;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Lanes that run some code; `None` means all.
pub(super) type Mask = Option<Reg>;

/// Number of instructions above which a node is skipped when no lane waits for it, even if they only compute.
const CHEAP: usize = 6;

/// Block without its jump.
struct UnfinishedBlock {
    block: Block,
    target: Node,
    args: Vec<Reg>,
    /// Node that it comes from.
    from: Node,
    /// For a back edge to the header: the lanes that take it, if not all that arrived.
    lanes: Option<Reg>,
}

/// Transition to a node from one line of code.
struct Transition {
    target: Node,
    args: Vec<Reg>,
    lanes: Lanes,
}

/// Lanes of a transition.
#[derive(Clone, Copy)]
enum Lanes {
    /// Lanes of a mask.
    All(Mask),
    /// Lanes of a mask for which a guard holds.
    Where(Mask, Guard),
}

/// Ways to go on after a node.
enum Continuations {
    Opens(Vec<UnfinishedBlock>),
    /// All lanes are still in the current block.
    Split(Vec<Transition>),
}

pub(super) struct Emitter<'a> {
    pub(super) input: &'a Function,
    pub(super) cfg: &'a Cfg,
    pub(super) levels: &'a Levels,
    pub(super) plans: &'a [LevelPlan],
    pub(super) steady: &'a SteadyValues,
    /// Level in which each register is defined.
    pub(super) homes: &'a SecondaryMap<Reg, usize>,
    /// For each divergent loop, registers that are computed in it and read outside, with the node of the loop
    /// that defines them.
    pub(super) outs: &'a [Vec<(Reg, Node)>],
    /// Arguments that are equal on all exits of a divergent loop to a node, one for each parameter of the
    /// target.
    pub(super) brought: HashMap<(usize, Node), Vec<Option<Reg>>>,
    pub(super) builder: Builder<'a>,
    /// Block at which code is emitted.
    pub(super) at: Block,
    pub(super) combined: HashMap<(Block, Mask, Guard), Reg>,
    pub(super) everybody: Option<Reg>,
    /// Number of lines of code so far.
    pub(super) lines: usize,
}

impl Emitter<'_> {
    /// Emits the whole function.
    pub(super) fn function(&mut self, mask: Mask) {
        let plans = self.plans;
        let mut opens = self.region(0, &plans[0].plan, mask);
        // A dead block may come before some of its predecessors: it is emitted again for each of them.
        while let Some(open) = opens.pop() {
            let target = open.target;
            self.join(0, target, vec![open]);
            if let Continuations::Opens(more) = self.node(0, target, mask, false) {
                opens.extend(more);
            }
        }
    }

    /// Returns the variable that holds a register for a reader in a level.
    fn variable(&self, reg: Reg, level: usize) -> Variable {
        match left(self.levels, self.plans, self.homes[reg], level) {
            Some(outermost) => Variable::Out(outermost, reg),
            None => Variable::Value(reg),
        }
    }

    /// Returns the current value of a register of the original function.
    pub(super) fn value(&mut self, reg: Reg, level: usize) -> Reg {
        let variable = self.variable(reg, level);
        self.builder.read(variable, self.at)
    }

    /// Emits the nodes of a region, the first one here. Returns its open ends.
    fn region(&mut self, level: usize, plan: &Plan, mask: Mask) -> Vec<UnfinishedBlock> {
        let mut pending: BTreeMap<Node, Vec<UnfinishedBlock>> = BTreeMap::new();
        for (index, step) in plan.steps.iter().enumerate() {
            if index > 0 {
                // A node that no lane returns to is omitted.
                let Some(opens) = pending.remove(&step.node) else { continue };
                self.join(level, step.node, opens);
            }
            let ways = self.node(level, step.node, mask, step.masked.is_some());
            let opens = match (&step.masked, ways) {
                (Some(masked), ways) => self.masked(level, step.node, masked, ways, mask),
                (None, Continuations::Opens(opens)) => opens,
                // Only heads split.
                (None, Continuations::Split(_)) => vec![],
            };
            for open in opens {
                pending.entry(open.target).or_default().push(open);
            }
        }
        pending.into_values().flatten().collect()
    }

    /// Continues at the join of several open ends.
    fn join(&mut self, level: usize, node: Node, opens: Vec<UnfinishedBlock>) {
        let params = self.levels.params(self.input, level, node);
        for open in &opens {
            for (param, arg) in params.iter().zip(&open.args) {
                self.builder.write(Variable::Value(*param), open.block, *arg);
            }
        }
        self.meet(opens.iter().map(|open| open.block).collect());
    }

    /// Continues after one or more blocks.
    fn meet(&mut self, blocks: Vec<Block>) {
        if let [block] = blocks.as_slice() {
            self.at = *block;
            return;
        }
        self.at = self.builder.block();
        for block in blocks {
            self.builder.jump(block, self.at);
        }
        self.builder.seal(self.at);
    }

    /// Emits a node here.
    fn node(&mut self, level: usize, node: Node, mask: Mask, split: bool) -> Continuations {
        match self.levels.levels[level].kinds[node] {
            Kind::Block(block) => self.block(level, node, block, mask, split),
            Kind::Loop(inner) => self.a_loop(level, node, inner, mask),
            Kind::Back | Kind::Exit(_) | Kind::End => Continuations::Opens(vec![]),
        }
    }

    fn block(&mut self, level: usize, node: Node, block: Block, mask: Mask, split: bool) -> Continuations {
        let data = &self.input.blocks[block];
        let last = data.insts.last().filter(|last| self.input.insts[**last].is_control());
        let body = &data.insts[..data.insts.len() - usize::from(last.is_some())];
        for inst in body {
            self.instruction(*inst, level, mask);
        }
        let guard = last.and_then(|last| self.input.insts[*last].guard);
        let opcode = last.and_then(|last| self.input.insts[*last].opcode());
        if let Some(last) = last.filter(|_| opcode != Some(Opcode::Bra)) {
            return self.last(*last, level, node, block, mask);
        }
        match (data.edges.as_slice(), guard) {
            ([holds, fails], Some(guard)) => {
                let guard = Guard { reg: self.value(guard.reg, level), ..guard };
                let fails_guard = Guard { negated: !guard.negated, ..guard };
                if split {
                    let holds = self.way(level, holds, Lanes::Where(mask, guard));
                    let fails = self.way(level, fails, Lanes::Where(mask, fails_guard));
                    return Continuations::Split(vec![holds, fails]);
                }
                let guard = match mask {
                    Some(_) if !self.steady.guard(last, level) => {
                        let lanes = self.combine(mask, guard);
                        Guard { reg: self.any(lanes), negated: false }
                    }
                    Some(_) | None => guard,
                };
                let args = [self.args(level, holds), self.args(level, fails)];
                let blocks = self.builder.branch(self.at, guard);
                let opens = [holds, fails].into_iter().zip(blocks).zip(args);
                let open = |((edge, block), args): ((&Edge, Block), Vec<Reg>)| self.open(level, node, edge, block, args);
                Continuations::Opens(opens.map(open).collect())
            }
            ([edge, ..], _) => {
                let args = self.args(level, edge);
                Continuations::Opens(vec![self.open(level, node, edge, self.at, args)])
            }
            ([], _) => Continuations::Opens(vec![]),
        }
    }

    /// Emits a `ret`, `exit` or `trap` at the end of a block.
    fn last(&mut self, inst: broadloom_ptx::Inst, level: usize, node: Node, block: Block, mask: Mask) -> Continuations {
        let mut data = self.input.insts[inst].clone();
        let own = data.guard.map(|guard| Guard { reg: self.value(guard.reg, level), ..guard });
        let traps = data.opcode() == Some(Opcode::Trap);
        // Lanes leave together with all others, but trap on their own.
        data.guard = match (traps, mask, own) {
            (true, Some(_), Some(own)) => Some(Guard { reg: self.combine(mask, own), negated: false }),
            (_, _, own) => own,
        };
        self.builder.push(self.at, data);
        match self.input.blocks[block].edges.first() {
            Some(edge) => {
                let args = self.args(level, edge);
                // Control continues after a guard in a new block, since this one is at its end.
                let next = self.builder.block();
                self.builder.jump(self.at, next);
                self.builder.seal(next);
                Continuations::Opens(vec![self.open(level, node, edge, next, args)])
            }
            None => {
                self.builder.leave(self.at);
                Continuations::Opens(vec![])
            }
        }
    }

    fn args(&mut self, level: usize, edge: &Edge) -> Vec<Reg> {
        edge.args.iter().map(|arg| self.value(*arg, level)).collect()
    }

    fn target(&self, level: usize, block: Block) -> Node {
        let kind = self.levels.kind_in(level, block);
        // Every edge leads to a node of its level.
        self.levels.levels[level].node(kind).unwrap_or(0)
    }

    fn open(&self, level: usize, from: Node, edge: &Edge, block: Block, args: Vec<Reg>) -> UnfinishedBlock {
        UnfinishedBlock { block, target: self.target(level, edge.target), args, from, lanes: None }
    }

    fn way(&mut self, level: usize, edge: &Edge, lanes: Lanes) -> Transition {
        Transition { target: self.target(level, edge.target), args: self.args(level, edge), lanes }
    }

    /// Emits the code after a head.
    fn masked(&mut self, level: usize, head: Node, masked: &MaskedCode, ways: Continuations, mask: Mask) -> Vec<UnfinishedBlock> {
        let nobody = self.builder.zero(Type::Pred);
        let is_back = |node: &Node| self.levels.levels[level].kinds[*node] == Kind::Back;
        let waiting: Vec<Node> =
            masked.parts.iter().map(|part| part.entry).chain(masked.sinks.iter().copied().filter(is_back)).collect();
        // Each open end of the head starts its own line, so in all of them no lane waits yet or has passed a
        // value.
        let starts = match &ways {
            Continuations::Opens(opens) => opens.iter().map(|open| open.block).collect(),
            Continuations::Split(_) => vec![self.at],
        };
        let mut line = self.line(level, masked.join);
        for block in starts {
            waiting.iter().for_each(|node| self.builder.write(Variable::Mask(level, *node), block, nobody));
            for node in waiting.iter().copied().chain(masked.join) {
                for param in self.levels.params(self.input, level, node) {
                    self.builder.clear(self.brought_to(&line, node, *param), block);
                }
            }
        }
        if !self.arrive(&mut line, head, ways, mask) {
            return vec![];
        }
        let mut opens = vec![];
        for (index, part) in masked.parts.iter().enumerate() {
            let lanes = self.builder.read(Variable::Mask(level, part.entry), self.at);
            if lanes == nobody {
                continue;
            }
            let goes_back = index + 1 == masked.parts.len() && self.is_way_back(&line, part);
            if !goes_back && !self.is_worth_a_test(level, part) {
                self.part(&mut line, part, lanes);
                continue;
            }
            let any = self.any(lanes);
            let [inside, skip] = self.builder.branch(self.at, Guard { reg: any, negated: false });
            self.at = inside;
            if goes_back {
                // All lanes that run this iterate again, and there is at least one: no vote is needed.
                let inner = part.inner.as_ref().map_or_else(Vec::new, |plan| self.region(level, plan, Some(lanes)));
                opens.extend(inner.into_iter().map(|open| UnfinishedBlock { lanes: Some(lanes), ..open }));
                self.at = skip;
            } else if self.part(&mut line, part, lanes) {
                self.meet(vec![self.at, skip]);
            } else {
                self.at = skip;
            }
        }
        match masked.join {
            Some(join) => {
                let params = self.levels.params(self.input, level, join);
                let args = params.iter().map(|param| self.builder.read(Variable::Join(line.number, *param), self.at)).collect();
                opens.push(UnfinishedBlock { block: self.at, target: join, args, from: head, lanes: None });
            }
            None => {
                // No lane returns from there, so none arrives here.
                let trap = crate::write::made("trap", []);
                self.builder.push(self.at, trap);
                self.builder.leave(self.at);
            }
        }
        opens
    }

    fn line(&mut self, level: usize, join: Option<Node>) -> Line {
        self.lines += 1;
        Line { number: self.lines, level, join, reached: BTreeSet::new() }
    }

    /// Returns whether a part, the last of a line, is the only way back to the header. It then decides
    /// whether the loop continues.
    fn is_way_back(&self, line: &Line, part: &MaskedPart) -> bool {
        let level = &self.levels.levels[line.level];
        let ends = line.join.is_some_and(|join| level.kinds[join] == Kind::End);
        let back = part.stop.filter(|stop| level.kinds[*stop] == Kind::Back && part.inner.is_some());
        ends && back.is_some_and(|back| !line.reached.contains(&back))
    }

    /// Emits a part here. Returns whether control comes out of it.
    fn part(&mut self, line: &mut Line, part: &MaskedPart, lanes: Reg) -> bool {
        let ways = match &part.inner {
            Some(plan) => Continuations::Opens(self.region(line.level, plan, Some(lanes))),
            None => self.node(line.level, part.entry, Some(lanes), true),
        };
        self.arrive(line, part.entry, ways, Some(lanes))
    }

    /// Returns whether a vote on the lanes waiting for a part pays off or is necessary.
    fn is_worth_a_test(&self, level: usize, part: &MaskedPart) -> bool {
        let mut count = 0;
        for node in &part.members {
            match self.levels.levels[level].kinds[*node] {
                Kind::Block(block) => {
                    for inst in &self.input.blocks[block].insts {
                        let data = &self.input.insts[*inst];
                        if data.opcode() == Some(Opcode::Bra) {
                            continue;
                        }
                        if !is_speculable(data) {
                            return true;
                        }
                        count += 1;
                    }
                }
                Kind::Loop(_) => return true,
                Kind::Back | Kind::Exit(_) | Kind::End => {}
            }
        }
        count > CHEAP
    }

    /// Adds the transitions out of a node or part to a line. Returns whether control comes out at all.
    fn arrive(&mut self, line: &mut Line, from: Node, ways: Continuations, mask: Mask) -> bool {
        match ways {
            Continuations::Split(ways) => {
                for way in ways {
                    let first = line.reached.insert(way.target);
                    self.pass(line, from, &way, first);
                }
                true
            }
            Continuations::Opens(opens) => {
                // Only one of them is taken, so each may be the first.
                let before = line.reached.clone();
                let mut blocks = vec![];
                for UnfinishedBlock { block, target, args, .. } in opens {
                    self.at = block;
                    line.reached.insert(target);
                    self.pass(line, from, &Transition { target, args, lanes: Lanes::All(mask) }, !before.contains(&target));
                    blocks.push(self.at);
                }
                if blocks.is_empty() {
                    return false;
                }
                self.meet(blocks);
                true
            }
        }
    }

    /// Sends lanes to a node.
    fn pass(&mut self, line: &Line, from: Node, way: &Transition, first: bool) {
        let Line { level, join, .. } = *line;
        let params = self.levels.params(self.input, level, way.target);
        let kind = self.levels.levels[level].kinds[way.target];
        let leaves = matches!(kind, Kind::Exit(_));
        let first = first && !leaves;
        let waits = Some(way.target) != join && (!leaves || self.counts_exits(level));
        if waits {
            let lanes = self.lanes(way.lanes);
            let lanes = self.real(lanes);
            let variable = Variable::Mask(level, way.target);
            let others = self.builder.read(variable, self.at);
            let all = self.either(others, lanes);
            self.builder.write(variable, self.at, all);
        }
        let brought = self.brought.get(&(level, way.target)).cloned().unwrap_or_default();
        for (index, (param, arg)) in params.iter().zip(&way.args).enumerate() {
            if leaves && brought.get(index).is_some_and(Option::is_some) {
                continue;
            }
            self.blend(self.brought_to(line, way.target, *param), *arg, way.lanes, first);
        }
        if leaves {
            self.keep_values(level, from, way.lanes);
        }
    }

    /// Returns the variable for the arguments that lanes of a line pass to a parameter of a node.
    fn brought_to(&self, line: &Line, node: Node, param: Reg) -> Variable {
        match self.levels.levels[line.level].kinds[node] {
            _ if Some(node) == line.join => Variable::Join(line.number, param),
            Kind::Block(_) | Kind::Loop(_) => Variable::Value(param),
            Kind::Back | Kind::Exit(_) | Kind::End => Variable::In(line.level, node, param),
        }
    }

    /// Keeps the values that a loop has computed, for lanes that leave it.
    fn keep_values(&mut self, level: usize, from: Node, lanes: Lanes) {
        let outs = self.outs;
        for (reg, home) in outs[level].iter().copied() {
            if self.levels.levels[level].dominates(home, from) {
                let value = self.value(reg, level);
                self.blend(Variable::Out(level, reg), value, lanes, false);
            }
        }
    }

    /// Assigns a value to a variable in some lanes. `first` is set if no other lane has a value.
    fn blend(&mut self, variable: Variable, value: Reg, lanes: Lanes, first: bool) {
        let value = match self.lanes_if(lanes, first) {
            None => value,
            Some(lanes) => match self.builder.read(variable, self.at) {
                others if others == value => value,
                others => self.builder.select(self.at, lanes, value, others),
            },
        };
        self.builder.write(variable, self.at, value);
    }

    fn lanes_if(&mut self, lanes: Lanes, first: bool) -> Mask {
        if first { None } else { self.lanes(lanes) }
    }

    fn lanes(&mut self, lanes: Lanes) -> Mask {
        match lanes {
            Lanes::All(mask) => mask,
            Lanes::Where(mask, guard) => Some(self.combine(mask, guard)),
        }
    }

    /// Returns whether a loop has more than one exit, so that the lanes of each must be tracked.
    fn counts_exits(&self, level: usize) -> bool {
        self.levels.levels[level].exits().len() > 1
    }

    /// Emits a loop here.
    fn a_loop(&mut self, outer: usize, node: Node, level: usize, mask: Mask) -> Continuations {
        let (levels, plans) = (self.levels, self.plans);
        let divergent = plans[level].divergent;
        let exits = levels.levels[level].exits();
        let header_params = &self.input.blocks[levels.levels[level].header].params;
        if divergent {
            let everybody = self.real(mask);
            self.builder.write(Variable::Lanes(level), self.at, everybody);
            let nobody = self.builder.zero(Type::Pred);
            for (exit, block) in &exits {
                self.builder.write(Variable::Mask(level, *exit), self.at, nobody);
                let brought = self.brought_out(level, *block);
                self.brought.insert((level, *exit), brought);
                for param in &self.input.blocks[*block].params {
                    self.builder.clear(Variable::In(level, *exit, *param), self.at);
                }
            }
            let outs = self.outs;
            outs[level].iter().for_each(|(reg, _)| self.builder.clear(Variable::Out(level, *reg), self.at));
        }
        let header = self.builder.block();
        self.builder.jump(self.at, header);
        self.at = header;
        let lanes = if divergent { Some(self.builder.read(Variable::Lanes(level), self.at)) } else { mask };
        let opens = self.region(level, &plans[level].plan, lanes);
        let mut out = vec![];
        let mut after = vec![];
        for open in opens {
            self.at = open.block;
            match levels.levels[level].kinds[open.target] {
                Kind::Back => {
                    if let Some(lanes) = open.lanes.or(lanes).filter(|_| divergent) {
                        self.builder.write(Variable::Lanes(level), self.at, lanes);
                    }
                    self.go_back(header_params, &open.args, header);
                }
                Kind::Exit(_) if divergent => {
                    let line = self.line(level, None);
                    let way = Transition { target: open.target, args: open.args, lanes: Lanes::All(lanes) };
                    self.pass(&line, open.from, &way, false);
                    after.push(self.at);
                }
                Kind::Exit(block) => out.push(UnfinishedBlock { target: self.target(outer, block), from: node, ..open }),
                Kind::End => {
                    if let Some(skip) = self.go_back_if_any(level, header_params, header) {
                        after.push(skip);
                    }
                }
                Kind::Block(_) | Kind::Loop(_) => {}
            }
        }
        self.builder.seal(header);
        if !divergent {
            return Continuations::Opens(out);
        }
        if after.is_empty() {
            return Continuations::Opens(vec![]);
        }
        self.meet(after);
        let mut ways = vec![];
        for (exit, block) in &exits {
            let params = &self.input.blocks[*block].params;
            let brought = self.brought.remove(&(level, *exit)).unwrap_or_default();
            let arg = |(param, brought): (&Reg, Option<Reg>)| match brought {
                Some(reg) => self.value(reg, outer),
                None => self.builder.read(Variable::In(level, *exit, *param), self.at),
            };
            let args = params.iter().zip(brought).map(arg).collect();
            let target = self.target(outer, *block);
            if exits.len() == 1 {
                return Continuations::Opens(vec![UnfinishedBlock { block: self.at, target, args, from: node, lanes: None }]);
            }
            let lanes = Some(self.builder.read(Variable::Mask(level, *exit), self.at));
            ways.push(Transition { target, args, lanes: Lanes::All(lanes) });
        }
        Continuations::Split(ways)
    }

    /// Returns, for each parameter of an exit block, the argument that all exits of a loop pass, if it is one
    /// value from before the loop. Lanes have it whenever they leave, and those that leave by another exit
    /// have it too.
    fn brought_out(&self, level: usize, block: Block) -> Vec<Option<Reg>> {
        let mut brought: Vec<Option<Reg>> = vec![None; self.input.blocks[block].params.len()];
        let mut first = true;
        let inside = |from: &&Block| self.levels.is_inside(self.levels.innermost(**from), level);
        for from in self.cfg.predecessors(block).iter().filter(inside) {
            for edge in self.input.blocks[*from].edges.iter().filter(|edge| edge.target == block) {
                for (known, arg) in brought.iter_mut().zip(&edge.args) {
                    let lasts = !self.levels.is_inside(self.homes[*arg], level);
                    *known = Some(*arg).filter(|arg| lasts && (first || *known == Some(*arg)));
                }
                first = false;
            }
        }
        brought
    }

    fn go_back(&mut self, params: &[Reg], args: &[Reg], header: Block) {
        for (param, arg) in params.iter().zip(args) {
            self.builder.write(Variable::Value(*param), self.at, *arg);
        }
        self.builder.jump(self.at, header);
    }

    /// Emits the end of a line in a divergent loop: back to the header while a lane waits there. Returns the
    /// block at which control leaves the loop.
    fn go_back_if_any(&mut self, level: usize, params: &[Reg], header: Block) -> Option<Block> {
        let levels = self.levels;
        let Some(back) = levels.levels[level].node(Kind::Back) else { return Some(self.at) };
        let waiting = self.builder.read(Variable::Mask(level, back), self.at);
        if waiting == self.builder.zero(Type::Pred) {
            return Some(self.at);
        }
        let args: Vec<Reg> = params.iter().map(|param| self.builder.read(Variable::In(level, back, *param), self.at)).collect();
        let any = self.any(waiting);
        let [again, leave] = self.builder.branch(self.at, Guard { reg: any, negated: false });
        self.at = again;
        self.builder.write(Variable::Lanes(level), self.at, waiting);
        self.go_back(params, &args, header);
        Some(leave)
    }

    /// Returns the lanes of a mask for which a guard holds.
    pub(super) fn combine(&mut self, mask: Mask, guard: Guard) -> Reg {
        if mask.is_none() && !guard.negated {
            return guard.reg;
        }
        if let Some(lanes) = self.combined.get(&(self.at, mask, guard)) {
            return *lanes;
        }
        let predicate = if guard.negated { Operand::Not(guard.reg) } else { Operand::Reg(guard.reg) };
        let lanes = match mask {
            None => self.builder.compute(self.at, Type::Pred, "not.pred", [Operand::Sink, Operand::Reg(guard.reg)]),
            Some(mask) => self.builder.compute(self.at, Type::Pred, "and.pred", [Operand::Sink, Operand::Reg(mask), predicate]),
        };
        self.combined.insert((self.at, mask, guard), lanes);
        lanes
    }

    /// Returns whether any lane is in a mask, as a uniform predicate.
    pub(super) fn any(&mut self, lanes: Reg) -> Reg {
        self.builder.compute(self.at, Type::Pred, "vote.sync.any.pred", [Operand::Sink, Operand::Reg(lanes), all_lanes()])
    }

    fn either(&mut self, a: Reg, b: Reg) -> Reg {
        if a == b || a == self.builder.zero(Type::Pred) {
            return b;
        }
        self.builder.compute(self.at, Type::Pred, "or.pred", [Operand::Sink, Operand::Reg(a), Operand::Reg(b)])
    }

    /// Returns a mask as a predicate.
    fn real(&mut self, mask: Mask) -> Reg {
        if let Some(lanes) = mask.or(self.everybody) {
            return lanes;
        }
        let nobody = self.builder.zero(Type::Pred);
        let everybody = self.builder.first(Type::Pred, "not.pred", [Operand::Sink, Operand::Reg(nobody)]);
        self.everybody = Some(everybody);
        everybody
    }
}

/// Line of code after a head.
struct Line {
    /// Number of the line. Nested lines may have the same join.
    number: usize,
    level: usize,
    join: Option<Node>,
    /// Nodes with an emitted transition.
    reached: BTreeSet<Node>,
}

/// Returns the member mask with all lanes.
pub(super) fn all_lanes() -> Operand {
    Operand::Imm(Imm::Int(0xffff_ffff))
}
