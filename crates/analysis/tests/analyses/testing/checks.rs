//! Checks of shapes and ranges against the execution of threads.

use super::ssa::kernel;
use super::threads::{Launch, Thread, Trace, Visit};
use super::{limits, mask};
use broadloom_analysis::shape::{LANE_BITS, Shape};
use broadloom_analysis::{Assume, Cfg, Dominators, Facts, KnownParams, Loops, Proof, RangePlan, Ranges, Shapes};
use broadloom_ptx::{Block, Function, Inst, Opcode, Reg};
use cranelift_entity::SecondaryMap;
use std::collections::BTreeSet;

/// Function that returns the first value of a register in a group of lanes.
type First<'a> = dyn Fn(Reg, &Shape, usize) -> Result<Option<u64>, String> + 'a;

/// Kernel with its analyses.
pub(crate) struct Kernel {
    pub(crate) function: Function,
    pub(crate) cfg: Cfg,
    pub(crate) loops: Loops,
    pub(crate) plan: RangePlan,
    /// Registers that have a value at a block.
    visible: SecondaryMap<Block, Vec<Reg>>,
}

impl Kernel {
    pub(crate) fn new(text: &str) -> Kernel {
        let function = kernel(text);
        let cfg = Cfg::new(&function).unwrap();
        let dominators = Dominators::new(&cfg);
        let loops = Loops::new(&cfg, &dominators);
        let plan = RangePlan::new(&function, &cfg, &dominators, &loops);
        let mut visible = SecondaryMap::new();
        for block in cfg.order() {
            let above = cfg.order().iter().filter(|above| dominators.dominates(**above, *block));
            let written = above.flat_map(|block| {
                let data = &function.blocks[*block];
                data.params.iter().copied().chain(data.insts.iter().flat_map(|inst| function.insts[*inst].writes()))
            });
            visible[*block] = written.collect();
        }
        Kernel { function, cfg, loops, plan, visible }
    }

    pub(crate) fn shapes(&self, facts: &Facts, assume: Assume) -> Shapes {
        Shapes::new(&self.function, &self.cfg, &self.loops, &self.plan, facts, assume)
    }

    /// Returns the last register that a name of the text became.
    pub(crate) fn reg(&self, name: &str) -> Reg {
        let is = |reg: &Reg| self.function.regs[*reg].name.rsplit_once('_').is_some_and(|(stem, _)| stem == name);
        self.function.regs.keys().rfind(is).unwrap_or_else(|| panic!("{name}"))
    }

    /// Returns the instruction that a mnemonic begins, and its block.
    pub(crate) fn inst(&self, mnemonic: &str) -> (Block, Inst) {
        let all = self.function.layout.iter().flat_map(|b| self.function.blocks[*b].insts.iter().map(move |inst| (*b, *inst)));
        let mut found = all.filter(|(_, inst)| self.function.insts[*inst].mnemonic_text().starts_with(mnemonic));
        found.next().unwrap_or_else(|| panic!("{mnemonic}"))
    }

    /// Returns the traces of the lanes of all warps of a block; `None` if they run too long.
    fn warps(&self, launch: &Launch, ctaid: [u32; 3]) -> Option<Vec<Vec<Trace>>> {
        let threads: u32 = launch.block.iter().product();
        let numbers: Vec<u32> = (0..threads).collect();
        let run = |number: &u32| {
            let Kernel { function, cfg, loops, .. } = self;
            Thread { function, cfg, loops, launch, ctaid, number: *number }.run()
        };
        numbers.chunks(32).map(|warp| warp.iter().map(run).collect()).collect()
    }

    /// Checks shapes and ranges against some blocks of a launch. Returns the number of registers that are not
    /// varying; `None` if threads run too long.
    pub(crate) fn check(&self, launch: &Launch, ctaids: &[[u32; 3]]) -> Option<usize> {
        let full = Facts::new(launch.block).with_grid(launch.grid).with_params(launch.params.clone());
        let partly = Facts::new(launch.block);
        let mut sets = vec![self.shapes(&full, Assume::Nothing), self.shapes(&partly, Assume::Nothing)];
        let ranges = [self.plan.ranges(&full), self.plan.ranges(&partly)];
        let assumed = self.shapes(&partly, Assume::NoWrap);
        // The extracted proof agrees with the plan.
        let kept = Proof::new(&self.plan, assumed.obligations()).map(|proof| proof.encode());
        let holds = kept.is_none_or(|bytes| Proof::decode(&bytes).unwrap().holds(&full));
        assert_eq!(holds, ranges[0].proves(assumed.obligations()), "{launch:?}");
        if holds {
            sets.push(assumed);
        }
        for ctaid in ctaids {
            for warp in self.warps(launch, *ctaid)? {
                sets.iter().for_each(|shapes| self.check_shapes(shapes, &warp, launch, *ctaid));
                ranges.iter().for_each(|ranges| self.check_ranges(ranges, &warp));
            }
        }
        Some(self.function.regs.keys().filter(|reg| !sets[0].shape(*reg).is_varying()).count())
    }

    fn check_ranges(&self, ranges: &Ranges<'_>, warp: &[Trace]) {
        for trace in warp {
            for ((block, visit), regs) in trace {
                for reg in self.visible[*block].iter().copied() {
                    let (value, range) = (regs[reg.as_u32() as usize].unwrap(), ranges.range_in(reg, *block));
                    let name = &self.function.regs[reg].name;
                    assert!(range.contains(value), "{name} is {value:#x} at {block} {visit:?}, not in {range:?}");
                }
                for inst in &self.function.blocks[*block].insts {
                    self.check_exact(ranges, *block, *inst, regs);
                }
            }
        }
    }

    fn check_exact(&self, ranges: &Ranges<'_>, block: Block, inst: Inst, regs: &[Option<u64>]) {
        let data = &self.function.insts[inst];
        let bits = data.types().next().map_or(32, |ty| ty.bits());
        let exact = ranges.exact(&self.function, block, inst);
        let operands: Vec<u64> = broadloom_eval::inputs(data)
            .map(|(operand, ty)| match operand {
                broadloom_ptx::Operand::Reg(reg) => regs[reg.as_u32() as usize].unwrap(),
                broadloom_ptx::Operand::Imm(imm) => broadloom_eval::immediate(*imm, ty),
                _ => 0,
            })
            .collect();
        for (claimed, signed) in [(exact.signed, true), (exact.unsigned, false)] {
            if !claimed {
                continue;
            }
            let read = |index: usize| match signed {
                true => i128::from(broadloom_eval::sign_extend(operands[index], bits)),
                false => i128::from(operands[index]),
            };
            let value = match data.opcode() {
                Some(Opcode::Add) => read(0) + read(1),
                Some(Opcode::Sub) => read(0) - read(1),
                Some(Opcode::Mul) if !data.mnemonic_text().contains("wide") => read(0) * read(1),
                Some(Opcode::Mad) if !data.mnemonic_text().contains("wide") => read(0) * read(1) + read(2),
                Some(Opcode::Shl) => read(0) << operands[1],
                _ => continue,
            };
            let (least, most) = limits(bits, signed);
            assert!((least..=most).contains(&value), "{} {operands:?} exact {signed}", data.mnemonic_text());
        }
    }

    fn check_shapes(&self, shapes: &Shapes, warp: &[Trace], launch: &Launch, ctaid: [u32; 3]) {
        let visits: BTreeSet<&Visit> = warp.iter().flat_map(|trace| trace.keys()).collect();
        for visit in visits {
            let block = visit.0;
            let lanes: Vec<Option<&Vec<Option<u64>>>> = warp.iter().map(|trace| trace.get(visit)).collect();
            let first = |reg: Reg, shape: &Shape, group: usize| first(reg, shape, group, &lanes);
            for reg in self.visible[block].iter().copied() {
                let name = &self.function.regs[reg].name;
                let is_read =
                    self.function.blocks[block].insts.iter().any(|inst| self.function.insts[*inst].reads().contains(&reg));
                let claims = [Some(shapes.shape_in(reg, block)), is_read.then(|| shapes.shape(reg))];
                for shape in claims.into_iter().flatten() {
                    for group in 0..32 >> shape.known() {
                        if let Err(why) = first(reg, &shape, group) {
                            panic!("{name} at {visit:?} is not {shape:?}: {why} in {ctaid:?} of {launch:?}");
                        }
                    }
                }
            }
            if !shapes.is_partial(block) {
                assert!(lanes.iter().all(|lane| lane.is_some()), "all lanes are at {visit:?}");
            }
            self.check_first_values(shapes, block, &first, launch, ctaid);
        }
    }

    /// Checks that the first value of a result is the instruction's result on the first values of its
    /// operands.
    fn check_first_values(&self, shapes: &Shapes, block: Block, first: &First<'_>, launch: &Launch, ctaid: [u32; 3]) {
        for inst in &self.function.blocks[block].insts {
            let data = &self.function.insts[*inst];
            let [result] = data.writes()[..] else { continue };
            let shape = shapes.shape_in(result, block);
            let known = |reg: &Reg| shapes.shape_in(*reg, block).known();
            if data.opcode() == Some(Opcode::Ld) || data.reads().iter().any(|reg| known(reg) < shape.known()) {
                continue;
            }
            for group in 0..32 >> shape.known() {
                let Ok(Some(expected)) = first(result, &shape, group) else { continue };
                let Kernel { function, cfg, loops, .. } = self;
                let thread = Thread { function, cfg, loops, launch, ctaid, number: 0 };
                let specials = data.operands.iter().any(|operand| matches!(operand, broadloom_ptx::Operand::Special(_)));
                if specials {
                    continue;
                }
                let read = |reg: Reg| first(reg, &shapes.shape_in(reg, block).reduced(shape.known()), group).unwrap().unwrap();
                let value = thread.execute(data, read)[0] & mask(self.function.regs[result].ty.bits());
                let text = data.mnemonic_text();
                assert_eq!(value, expected, "first value of {text} in group {group} at {block}, {shape:?}");
            }
        }
    }
}

/// Returns the first value of a group of lanes, derived by its shape from the lanes that are present.
fn first(reg: Reg, shape: &Shape, group: usize, lanes: &[Option<&Vec<Option<u64>>>]) -> Result<Option<u64>, String> {
    let bits = mask(shape.bits());
    let mut found: Option<u64> = None;
    let size = 1 << shape.known();
    assert!(size <= 1 << LANE_BITS);
    for index in 0..size {
        let Some(regs) = lanes.get(group * size + index).copied().flatten() else { continue };
        let value = regs[reg.as_u32() as usize].unwrap();
        let start = value.wrapping_sub(shape.offset(index as u32).unwrap()) & bits;
        if *found.get_or_insert(start) != start {
            return Err(format!("lane {index} of group {group} holds {value:#x}, the first is {:#x}", found.unwrap()));
        }
    }
    // A shape with steps for half a group gives no zeros if that half is missing.
    match found {
        Some(start) if start.trailing_zeros().min(shape.bits()) < shape.zeros() => Err(format!("the first is {start:#x}")),
        found => Ok(found),
    }
}

/// Returns the parameter block of a random program's kernel.
pub(crate) fn params(n: u32, m: u32, base: u64) -> KnownParams {
    let mut params = KnownParams::default();
    params.set(0, u64::from(n), 4);
    params.set(4, u64::from(m), 4);
    params.set(8, base, 8);
    params
}
