//! Shapes of all registers of a function across the lanes of a warp, and divergent branches.
//!
//! The analysis works on a function in SSA form. It starts optimistically with no shape known and propagates
//! facts until none changes: a value that is never found to differ between lanes does not differ. A block
//! parameter is the merge of its arguments, in groups of lanes that arrive by the same path
//! ([`crate::divergence`] determines these, and how lanes run together). If all edges pass the same register,
//! the parameter equals it. A value that is read outside a loop that lanes leave in different iterations is
//! known only in groups of lanes that leave together.
//!
//! In an irreducible graph with a divergent branch every register is unknown. With one lane everything is
//! uniform.

use crate::bit_set::BitSet;
use crate::cfg::Cfg;
use crate::divergence::{Apart, Paths};
use crate::facts::Facts;
use crate::loops::{Loop, Loops};
use crate::obligations::Obligation;
use crate::ranges::RangePlan;
use crate::rules::{Rules, Site};
use crate::shape::{LANE_BITS, Shape};
use broadloom_ptx::{Base, Block, BodyForm, Function, Inst, Opcode, Operand, Param, Reg};
use cranelift_entity::{EntityRef, SecondaryMap};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Permitted assumptions about lanes that differ by known amounts in 32 bits when they are read as wider
/// integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assume {
    /// None beyond what the facts prove.
    Nothing,
    /// Lanes do not wrap, wherever this is provable for some conceivable launch. Assumptions are
    /// [recorded](Shapes::obligations), to be [proved](crate::Ranges::proves) for each launch.
    NoWrap,
}

/// Shapes of a function's registers.
#[derive(Clone, Debug)]
pub struct Shapes {
    shapes: Vec<Shape>,
    /// Shapes as read anywhere.
    everywhere: Vec<Shape>,
    home: SecondaryMap<Reg, Option<Block>>,
    /// For the loops around each block, from the innermost out, the size of the groups in which lanes leave
    /// together.
    around: SecondaryMap<Block, Vec<(Loop, u32)>>,
    /// Size of the groups in which lanes take the same edge out of a block.
    together: SecondaryMap<Block, Option<u32>>,
    divergent_loops: BTreeMap<Loop, u32>,
    partial: BitSet<Block>,
    obligations: Vec<Obligation>,
}

impl Shapes {
    /// Computes the shapes. The plan is that of the same function.
    pub fn new(function: &Function, cfg: &Cfg, loops: &Loops, plan: &RangePlan, facts: &Facts, assume: Assume) -> Shapes {
        let ranges = plan.ranges(facts);
        let modest = match assume {
            Assume::Nothing => None,
            Assume::NoWrap => Some(plan.modest_ranges(facts)),
        };
        let rules = Rules::new(function, facts, &ranges, modest.as_ref());
        if facts.lanes == 1 || function.form == BodyForm::Registers {
            let group = if facts.lanes == 1 { LANE_BITS } else { 0 };
            return Shapes::all_alike(function, cfg, &rules, group);
        }
        let mut solver = Solver::new(function, cfg, loops, plan, rules);
        if !solver.solve() {
            return Shapes::all_alike(function, cfg, &solver.rules, 0);
        }
        solver.finish()
    }

    fn all_alike(function: &Function, cfg: &Cfg, rules: &Rules<'_>, group: u32) -> Shapes {
        let shapes: Vec<Shape> = function.regs.keys().map(|reg| Shape::same_in_groups(rules.bits(reg), group)).collect();
        let mut together = SecondaryMap::new();
        let mut partial = BitSet::new();
        if group < LANE_BITS {
            partial.extend(cfg.order().iter().copied());
            for block in cfg.order().iter().filter(|block| branch(function, **block).is_some()) {
                together[*block] = Some(0);
            }
        }
        Shapes {
            everywhere: shapes.clone(),
            shapes,
            home: SecondaryMap::new(),
            around: SecondaryMap::new(),
            together,
            divergent_loops: BTreeMap::new(),
            partial,
            obligations: vec![],
        }
    }

    /// Returns the shape of a register wherever it is read.
    pub fn shape(&self, reg: Reg) -> Shape {
        self.everywhere[reg.index()]
    }

    /// Returns the shape of a register as read in a block: more may be known inside the loop in which it is
    /// defined.
    pub fn shape_in(&self, reg: Reg, block: Block) -> Shape {
        let shape = self.shapes[reg.index()];
        let Some(home) = self.home[reg] else { return shape };
        let left = self.around[home].iter().filter(|(id, _)| !self.around[block].iter().any(|(around, _)| around == id));
        shape.reduced(left.map(|(_, group)| *group).min().unwrap_or(LANE_BITS))
    }

    /// Returns whether a register is equal in all lanes, wherever it is read.
    pub fn is_uniform(&self, reg: Reg) -> bool {
        self.shape(reg).is_uniform()
    }

    /// Returns whether a register is equal in all lanes that read it in a block.
    pub fn is_uniform_in(&self, reg: Reg, block: Block) -> bool {
        self.shape_in(reg, block).is_uniform()
    }

    /// Returns whether lanes may take different edges out of a block, or exit there while others continue.
    pub fn is_divergent_branch(&self, block: Block) -> bool {
        self.together[block].is_some_and(|group| group < LANE_BITS)
    }

    /// Returns the largest `g` such that the lanes of each aligned group of `2^g` take the same edge out of a
    /// block: 5 if all do.
    pub fn branch_group(&self, block: Block) -> u32 {
        self.together[block].unwrap_or(LANE_BITS)
    }

    /// Returns the blocks that end in a divergent branch.
    pub fn divergent_branches(&self) -> impl Iterator<Item = Block> + '_ {
        self.together.iter().filter(|(_, group)| group.is_some_and(|group| group < LANE_BITS)).map(|(block, _)| block)
    }

    /// Returns whether lanes may leave a loop in different iterations.
    pub fn is_divergent_loop(&self, id: Loop) -> bool {
        self.divergent_loops.contains_key(&id)
    }

    /// Returns whether a block may run with only some of the lanes.
    pub fn is_partial(&self, block: Block) -> bool {
        self.partial.contains(block)
    }

    /// Returns the blocks that may run with only some of the lanes.
    pub fn divergent_blocks(&self) -> &BitSet<Block> {
        &self.partial
    }

    /// Returns the assumptions, to be proved for each launch.
    pub fn obligations(&self) -> &[Obligation] {
        &self.obligations
    }

    /// Returns the shape of the address at which an instruction of a block accesses memory; `None` if it has
    /// none.
    pub fn address(&self, function: &Function, block: Block, inst: Inst) -> Option<Shape> {
        let address = function.insts[inst].bracketed()?;
        Some(match address.base {
            Base::Reg(reg) => {
                let base = self.shape_in(reg, block);
                base.plus(&Shape::constant(base.bits(), address.offset as u64))
            }
            Base::Symbol(_) => Shape::uniform(64),
            Base::Absolute => Shape::constant(64, address.offset as u64),
        })
    }
}

/// Returns the registers that decide which edge control takes out of a block; `None` if there is no choice.
fn branch(function: &Function, block: Block) -> Option<Vec<Reg>> {
    let last = &function.insts[*function.blocks[block].insts.last()?];
    if !last.is_control() {
        return None;
    }
    let mut decide: Vec<Reg> = last.guard.iter().map(|guard| guard.reg).collect();
    if let (Some(Opcode::BrxIdx), Some(Operand::Reg(index))) = (last.opcode(), last.operands.first()) {
        decide.push(*index);
    }
    (!decide.is_empty()).then_some(decide)
}

struct Solver<'a> {
    function: &'a Function,
    cfg: &'a Cfg,
    loops: &'a Loops,
    plan: &'a RangePlan,
    rules: Rules<'a>,
    shapes: Vec<Option<Shape>>,
    /// Size of the groups in which lanes reach a block by the same path.
    joined: SecondaryMap<Block, Option<u32>>,
    left: BTreeMap<Loop, u32>,
    together: SecondaryMap<Block, Option<u32>>,
    apart: BTreeMap<Block, Apart>,
    partial: BitSet<Block>,
    changed: bool,
    obligations: Vec<Obligation>,
}

impl<'a> Solver<'a> {
    fn new(function: &'a Function, cfg: &'a Cfg, loops: &'a Loops, plan: &'a RangePlan, rules: Rules<'a>) -> Self {
        let mut solver = Solver {
            function,
            cfg,
            loops,
            plan,
            shapes: vec![None; function.regs.len()],
            rules,
            joined: SecondaryMap::new(),
            left: BTreeMap::new(),
            together: SecondaryMap::new(),
            apart: BTreeMap::new(),
            partial: BitSet::new(),
            changed: true,
            obligations: vec![],
        };
        for param in function.params.iter().chain(&function.results) {
            if let Param::Reg(reg) = param {
                solver.shapes[reg.index()] = Some(Shape::varying(solver.rules.bits(*reg)));
            }
        }
        if !function.is_kernel {
            solver.partial.extend(cfg.order().iter().copied());
        }
        solver
    }

    /// Solves the equations. Returns `false` if everything is unknown.
    fn solve(&mut self) -> bool {
        let paths = Paths::new(self.function, self.cfg, self.loops);
        for block in self.cfg.order() {
            let mut insts = self.function.blocks[*block].insts.iter();
            // The callee may end lanes.
            if insts.any(|inst| self.function.insts[*inst].opcode() == Some(Opcode::Call)) {
                self.partial.insert(*block);
                self.partial.union_with(&paths.reachable(*block));
            }
        }
        while std::mem::replace(&mut self.changed, false) {
            self.round();
            if !self.branches(&paths) {
                return false;
            }
        }
        true
    }

    fn round(&mut self) {
        self.obligations.clear();
        for index in 0..self.cfg.order().len() {
            let block = self.cfg.order()[index];
            for (position, param) in self.function.blocks[block].params.iter().enumerate() {
                if let Some(shape) = self.merged(block, position) {
                    self.lower(*param, shape);
                }
            }
            for inst in &self.function.blocks[block].insts {
                let site = Site {
                    inst: *inst,
                    block,
                    whole: !self.partial.contains(block),
                    shape: &|reg| self.read(reg, block),
                    whole_at: &|reg| self.plan.home(reg).is_some_and(|home| !self.partial.contains(home)),
                    assumed: RefCell::new(vec![]),
                };
                let Some(results) = self.rules.results(&site) else { continue };
                let assumed = site.assumed.into_inner();
                self.obligations.extend(assumed);
                for (reg, shape) in self.function.insts[*inst].writes().into_iter().zip(results) {
                    self.lower(reg, shape);
                }
            }
        }
    }

    /// Returns the merged shape of the arguments of a block parameter.
    fn merged(&self, block: Block, position: usize) -> Option<Shape> {
        let sources = self.cfg.predecessors(block).iter();
        let mut args: Vec<Reg> = sources
            .flat_map(|from| &self.function.blocks[*from].edges)
            .filter(|edge| edge.target == block)
            .map(|edge| edge.args[position])
            .collect();
        args.sort_unstable();
        args.dedup();
        // An argument counts as read at the target of the edge: it may come out of a loop.
        if let [only] = args[..] {
            return self.read(only, block);
        }
        let shapes = args.into_iter().filter_map(|arg| self.read(arg, block));
        let met = shapes.reduce(|a, b| a.meet(&b))?;
        Some(met.reduced(self.joined[block].unwrap_or(LANE_BITS)))
    }

    fn read(&self, reg: Reg, block: Block) -> Option<Shape> {
        let shape = self.shapes[reg.index()]?;
        let Some(home) = self.plan.home(reg) else { return Some(shape) };
        let left = self.loops.around(home).take_while(|id| !self.loops.contains(*id, block));
        let group = left.filter_map(|id| self.left.get(&id)).min();
        Some(shape.reduced(group.copied().unwrap_or(LANE_BITS)))
    }

    fn lower(&mut self, reg: Reg, shape: Shape) {
        let old = &mut self.shapes[reg.index()];
        let new = match old {
            Some(old) => old.meet(&shape),
            None => shape,
        };
        self.changed |= *old != Some(new);
        *old = Some(new);
    }

    /// Finds newly divergent branches and their consequences.
    fn branches(&mut self, paths: &Paths<'_>) -> bool {
        for block in self.cfg.order() {
            let Some(decide) = branch(self.function, *block) else { continue };
            let groups = decide.iter().filter_map(|reg| self.read(*reg, *block)).map(|shape| shape.uniform_group());
            let group = groups.min().unwrap_or(LANE_BITS);
            if self.together[*block].replace(group) == Some(group) || group == LANE_BITS {
                continue;
            }
            self.changed = true;
            if !self.loops.is_reducible() {
                return false;
            }
            if self.cfg.successors(*block).len() < 2 {
                self.partial.union_with(&paths.reachable(*block));
                continue;
            }
            let apart = self.apart.entry(*block).or_insert_with(|| paths.apart(*block));
            for join in apart.joins.iter() {
                let held = self.joined[join].get_or_insert(LANE_BITS);
                *held = (*held).min(group);
            }
            for id in &apart.loops {
                let held = self.left.entry(*id).or_insert(LANE_BITS);
                *held = (*held).min(group);
            }
            self.partial.union_with(&apart.partial);
        }
        true
    }

    fn finish(self) -> Shapes {
        let unknown = |index: usize| Shape::varying(self.rules.bits(Reg::new(index)));
        let shapes: Vec<Shape> =
            self.shapes.iter().enumerate().map(|(index, shape)| shape.unwrap_or_else(|| unknown(index))).collect();
        let mut home = SecondaryMap::new();
        for reg in self.function.regs.keys() {
            home[reg] = self.plan.home(reg);
        }
        let mut around = SecondaryMap::new();
        for block in self.cfg.order() {
            let group = |id: Loop| (id, self.left.get(&id).copied().unwrap_or(LANE_BITS));
            around[*block] = self.loops.around(*block).map(group).collect();
        }
        let mut found = Shapes {
            everywhere: shapes.clone(),
            shapes,
            home,
            around,
            together: self.together,
            divergent_loops: self.left,
            partial: self.partial,
            obligations: self.obligations,
        };
        for block in self.cfg.order() {
            let data = &self.function.blocks[*block];
            let inside = data.insts.iter().flat_map(|inst| self.function.insts[*inst].reads()).map(|reg| (reg, *block));
            let leaving = data.edges.iter().flat_map(|edge| edge.args.iter().map(|arg| (*arg, edge.target)));
            for (reg, place) in inside.chain(leaving) {
                let shape = found.shape_in(reg, place);
                let held = &mut found.everywhere[reg.index()];
                *held = held.meet(&shape);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::Assume;
    use crate::Facts;
    use crate::testing::Random;
    use crate::testing::checks::{Kernel, params};
    use crate::testing::programs::program;
    use crate::testing::threads::Launch;

    const ROUNDS: usize = 12;
    const BLOCKS: [[u32; 3]; 10] =
        [[64, 1, 1], [32, 2, 1], [16, 4, 1], [8, 8, 1], [48, 1, 1], [12, 6, 1], [4, 4, 4], [33, 1, 1], [24, 2, 1], [2, 3, 8]];

    fn shapes_of(text: &str, block: [u32; 3], names: &[&str]) -> Vec<String> {
        let kernel = Kernel::new(text);
        let facts = Facts::new(block);
        let found = kernel.shapes(&facts, Assume::Nothing);
        names.iter().map(|name| format!("{:?}", found.shape(kernel.reg(name)))).collect()
    }

    #[test]
    fn thread_numbers_and_what_is_made_of_them() {
        let text = ".entry k() { .reg .b32 t, w, l, h, g, y, f; .reg .pred p, q, r, s;
            mov.u32 t, %tid.x; mov.u32 y, %tid.y;
            shr.u32 w, t, 5; and.b32 l, t, 31; shr.u32 h, t, 4; div.u32 g, t, 8; mad.lo.s32 f, y, 16, t;
            setp.lt.u32 p, t, 64; setp.gt.u32 q, t, 63; setp.lt.u32 r, t, 65; setp.gt.s32 s, t, 15; ret; }";
        let names = ["t", "y", "w", "l", "h", "g", "f", "p", "q", "r", "s"];
        assert_eq!(
            shapes_of(text, [256, 1, 1], &names),
            [
                "+1 per lane of 32, first a multiple of 2^5",
                "uniform, first 0",
                "uniform",
                "+1 per lane of 32, first 0",
                "+0 per lane of 16, steps [0, 0, 0, 0, 1], first a multiple of 2^1",
                "+0 per lane of 8, steps [0, 0, 0, 1, 2], first a multiple of 2^2",
                "+1 per lane of 32, first a multiple of 2^5",
                "uniform",
                "uniform",
                "varying",
                "+0 per lane of 16",
            ]
        );
        assert_eq!(
            shapes_of(text, [16, 16, 1], &names)[..7],
            [
                "+1 per lane of 16, steps [1, 2, 4, 8, 0], first 0",
                "+0 per lane of 16, steps [0, 0, 0, 0, 1], first a multiple of 2^1",
                "uniform, first 0",
                "+1 per lane of 16, steps [1, 2, 4, 8, 0], first 0",
                "uniform, first 0",
                "+0 per lane of 8, steps [0, 0, 0, 1, 0], first 0",
                "+1 per lane of 32, first a multiple of 2^5",
            ]
        );
        assert_eq!(shapes_of(text, [12, 4, 1], &names)[..2], ["+1 per lane of 4, first a multiple of 2^2", "+0 per lane of 4"]);
        assert_eq!(shapes_of(text, [96, 2, 1], &names)[..2], ["+1 per lane of 32, first a multiple of 2^5", "uniform"]);
    }

    /// `for (i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) a[i] = 2 * a[i]`,
    /// as a compiler emits it.
    const GRID_STRIDE: &str = ".entry k(.param .u32 n, .param .u32 m, .param .u64 base) {
        .reg .pred p; .reg .b32 nn, c, b, t, i, g, s, v; .reg .b64 a, o, x;
        ld.param.u32 nn, [n]; ld.param.u64 a, [base];
        mov.u32 b, %ntid.x; mov.u32 c, %ctaid.x; mov.u32 t, %tid.x; mad.lo.s32 i, c, b, t;
        setp.ge.s32 p, i, nn; @p bra END;
        mov.u32 g, %nctaid.x; mul.lo.s32 s, b, g; cvta.to.global.u64 a, a;
        LOOP: mul.wide.s32 o, i, 4; add.s64 x, a, o; ld.global.u32 v, [x]; shl.b32 v, v, 1; st.global.u32 [x], v;
        add.s32 i, i, s; setp.lt.s32 p, i, nn; @p bra LOOP;
        END: ret; }";

    #[test]
    fn a_grid_stride_loop_is_contiguous_and_proved_at_launch() {
        let kernel = Kernel::new(GRID_STRIDE);
        let (block, store) = kernel.inst("st.global");
        let address = |facts: &Facts, assume: Assume| {
            let found = kernel.shapes(facts, assume);
            (found.address(&kernel.function, block, store).unwrap(), found)
        };
        // Warps that start at multiples of 32 never wrap in the middle.
        let (shape, found) = address(&Facts::new([256, 1, 1]), Assume::Nothing);
        assert_eq!((shape.group(), shape.stride()), (5, 4));
        assert!(found.is_partial(block) && found.divergent_branches().count() == 2);
        // Others may, depending on the launch.
        let facts = Facts::new([48, 1, 1]);
        assert!(address(&facts, Assume::Nothing).0.group() < 5);
        let (shape, found) = address(&facts, Assume::NoWrap);
        assert_eq!((shape.group(), shape.stride(), found.obligations().len()), (5, 4, 1));
        let proves = |grid: u32, n: u32| {
            let facts = Facts::new([48, 1, 1]).with_grid([grid, 1, 1]).with_params(params(n, 0, 4096));
            kernel.plan.ranges(&facts).proves(found.obligations())
        };
        assert!(proves(1, 1) && proves(1000, 1 << 20) && proves(1 << 16, 1 << 30) && proves(4, 0));
        // The counter of lanes that are still in range would wrap.
        assert!(!proves(1 << 22, 0x7fff_fff0) && !proves(1 << 27, 5));
        let full = Facts::new([48, 1, 1]).with_grid([100, 1, 1]).with_params(params(1 << 20, 0, 4096));
        assert_eq!(address(&full, Assume::Nothing).0.stride(), 4);
    }

    #[test]
    fn lanes_that_vote_on_going_on_are_bounded_too() {
        let kernel = Kernel::new(
            ".entry k(.param .u32 n, .param .u32 m, .param .u64 base) {
             .reg .pred p, q, r, l; .reg .b32 nn, c, b, t, i, j, g, s, v; .reg .b64 a, o, x;
             ld.param.u32 nn, [n]; ld.param.u64 a, [base];
             mov.u32 b, %ntid.x; mov.u32 c, %ctaid.x; mov.u32 t, %tid.x; mad.lo.s32 i, c, b, t; setp.lt.s32 l, i, nn;
             mov.u32 g, %nctaid.x; mul.lo.s32 s, b, g;
             LOOP: mul.lo.s32 j, i, 3; mul.wide.s32 o, j, 4; add.s64 x, a, o; @l st.global.u32 [x], j;
             add.s32 i, i, s; setp.lt.s32 p, i, nn; and.pred l, l, p; vote.sync.any.pred r, l, 0xffffffff; @r bra LOOP;
             ret; }",
        );
        let found = kernel.shapes(&Facts::new([256, 1, 1]), Assume::NoWrap);
        let (block, store) = kernel.inst("st.global");
        let address = found.address(&kernel.function, block, store).unwrap();
        assert_eq!((address.group(), address.stride(), found.obligations().len()), (5, 12, 1));
        assert_eq!(found.divergent_branches().count(), 0);
        let proves = |grid: u32, n: u32| {
            let facts = Facts::new([256, 1, 1]).with_grid([grid, 1, 1]).with_params(params(n, 0, 4096));
            kernel.plan.ranges(&facts).proves(found.obligations())
        };
        assert!(proves(1, 1) && proves(1000, 1 << 20) && proves(4, 0));
        // Three times the counter, or the counter of a lane that only continues with the others, would wrap.
        assert!(!proves(1000, 0x7000_0000) && !proves(1 << 22, 0x6000_0000) && !proves(1 << 23, 5));
    }

    #[test]
    fn what_memory_holds_is_not_assumed_to_be_small() {
        let kernel = Kernel::new(
            ".entry k(.param .u32 n, .param .u32 m, .param .u64 base) { .reg .b32 s, t, j, v; .reg .b64 a, o, x;
             ld.param.u64 a, [base]; ld.global.u32 s, [a]; mov.u32 t, %tid.x; add.s32 j, s, t;
             mul.wide.s32 o, j, 4; add.s64 x, a, o; ld.global.u32 v, [x]; st.global.u32 [x], v; ret; }",
        );
        let found = kernel.shapes(&Facts::new([64, 1, 1]), Assume::NoWrap);
        assert!(found.obligations().is_empty());
        assert!(found.is_uniform(kernel.reg("s")) && found.shape(kernel.reg("j")).stride() == 1);
        assert!(found.shape(kernel.reg("o")).is_varying());
    }

    #[test]
    fn lanes_that_leave_a_loop_apart_take_different_values_along() {
        let kernel = Kernel::new(
            ".entry k(.param .u32 n, .param .u32 m, .param .u64 base) { .reg .b32 t, i, u, v, w; .reg .pred p;
             mov.u32 t, %laneid; mov.u32 i, 0;
             LOOP: add.s32 u, i, 7; add.s32 i, i, 1; setp.lt.u32 p, i, t; @p bra LOOP;
             add.s32 v, u, 1; mov.u32 w, 5; ret; }",
        );
        let facts = Facts::new([32, 1, 1]);
        let found = kernel.shapes(&facts, Assume::Nothing);
        let (u, v, i) = (kernel.reg("u"), kernel.reg("v"), kernel.reg("i"));
        let (inside, _) = kernel.inst("setp");
        assert!(found.is_uniform_in(u, inside) && !found.is_uniform(u) && found.is_uniform(i));
        assert!(found.shape(v).is_varying() && found.is_uniform(kernel.reg("w")));
        let (id, _) = kernel.loops.iter().next().unwrap();
        assert!(found.is_divergent_loop(id) && found.is_divergent_branch(inside));
        let alone = kernel.shapes(&Facts { lanes: 1, ..facts }, Assume::Nothing);
        assert!(alone.is_uniform(v) && alone.divergent_branches().count() == 0 && !alone.is_partial(inside));
    }

    #[test]
    fn what_lanes_exchange() {
        let kernel = Kernel::new(
            ".entry k(.param .u32 n, .param .u32 m, .param .u64 base) { .reg .b32 t, b, mm, r, i, j, x, y, z, l; .reg .pred p, q; .reg .b64 a;
             mov.u32 t, %tid.x; setp.eq.u32 p, t, 3;
             vote.sync.ballot.b32 b, p, 0xffffffff; vote.sync.any.pred q, p, 0xffffffff; activemask.b32 mm;
             redux.sync.add.u32 r, t, 0xffffffff; shfl.sync.idx.b32 i, t, 0, 31, -1; shfl.sync.idx.b32 j, t, 3, 6175, -1;
             shfl.sync.down.b32 x, t, 1, 31, -1; match.any.sync.b32 y, t, -1; ld.param.u64 a, [base]; atom.global.add.u32 z, [a], 1;
             ld.volatile.global.u32 l, [a]; ret; }",
        );
        let found = kernel.shapes(&Facts::new([64, 1, 1]), Assume::Nothing);
        let group = |name: &str| found.shape(kernel.reg(name)).uniform_group();
        assert_eq!(["b", "q", "mm", "r", "i", "j", "x", "y", "z", "l"].map(group), [5, 5, 5, 5, 5, 3, 0, 0, 0, 0]);
    }

    #[test]
    fn branches_that_rows_take_together_keep_rows_together() {
        let kernel = Kernel::new(
            ".entry k(.param .u32 n, .param .u32 m, .param .u64 base) { .reg .b32 x, y, v, w; .reg .pred p;
             mov.u32 x, %tid.x; mov.u32 y, %tid.y; mov.u32 v, x; setp.lt.u32 p, y, 3; @p bra END; add.s32 v, x, 100;
             END: add.s32 w, v, 1; ret; }",
        );
        let found = kernel.shapes(&Facts::new([16, 16, 1]), Assume::Nothing);
        let shape = found.shape(kernel.reg("w"));
        assert_eq!((shape.group(), shape.stride()), (4, 1));
        assert_eq!(found.divergent_branches().map(|block| found.branch_group(block)).collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn threads_of_random_kernels_agree() {
        let mut random = Random::new(11);
        let (mut known, mut all) = (0, 0);
        for round in 0..ROUNDS {
            let text = program(&mut random, 4 + round % 12);
            let kernel = Kernel::new(&text);
            let pick = |random: &mut Random| [0, 1, 5, 64, 100, 4096, 0x7fff_fff0, 0x8000_0000, u32::MAX - 3][random.below(9)];
            let (n, m) = (pick(&mut random), pick(&mut random));
            let grid = [[1, 1, 1], [3, 1, 1], [1 << 20, 1, 1], [0x7fff_ffff, 1, 1]][random.below(4)];
            let block = BLOCKS[random.below(BLOCKS.len())];
            let launch = Launch { block, grid, params: params(n, m, 0x7f00_0000_1000) };
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                kernel.check(&launch, &[[0, 0, 0], [grid[0] - 1, 0, 0]])
            }));
            match result {
                Ok(Some(count)) => {
                    known += count;
                    all += kernel.function.regs.len();
                }
                Ok(None) => {}
                Err(error) => panic!("round {round}: {:?}\n{text}", error.downcast_ref::<String>()),
            }
        }
        assert!(all > 200 && known * 3 > all, "{known} of {all} registers are known");
    }
}
