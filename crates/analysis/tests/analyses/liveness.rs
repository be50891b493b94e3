//! Live registers, compared with the definition on random code.

use crate::testing::{Random, parsed, random_code, random_graph};
use broadloom_analysis::bit_set::BitSet;
use broadloom_analysis::cfg::Cfg;
use broadloom_analysis::liveness::Liveness;
use broadloom_ptx::{Block, BodyForm, Function, Opcode, Param, Reg};

/// Checks the definition: a path from before an instruction that reads the register before it writes it.
fn is_live(function: &Function, cfg: &Cfg, reg: Reg, block: Block, index: usize) -> bool {
    let (mut work, mut seen) = (vec![(block, index)], vec![]);
    while let Some(place) = work.pop() {
        if seen.contains(&place) {
            continue;
        }
        seen.push(place);
        let (block, index) = place;
        let data = &function.blocks[block];
        match data.insts.get(index) {
            Some(inst) => {
                let inst = &function.insts[*inst];
                let results = function.results.contains(&Param::Reg(reg));
                if inst.reads().contains(&reg) || results && inst.opcode() == Some(Opcode::Ret) {
                    return true;
                }
                let kept = inst.guard.is_some() && function.form == BodyForm::Registers;
                if kept || !inst.writes().contains(&reg) {
                    work.push((block, index + 1));
                }
            }
            None if data.edges.iter().any(|edge| edge.args.contains(&reg)) => return true,
            None => {
                let targets = cfg.successors(block).iter();
                work.extend(targets.filter(|to| !function.blocks[**to].params.contains(&reg)).map(|to| (*to, 0)));
            }
        }
    }
    false
}

#[test]
fn agrees_with_the_definition_on_random_functions() {
    let mut random = Random::new(6);
    for round in 0..200 {
        let (cfg, count) = random_graph(&mut random, 9);
        let form = if round % 2 == 0 { BodyForm::Registers } else { BodyForm::Ssa };
        let function = random_code(&mut random, &cfg, count, form);
        let found = Liveness::new(&function, &cfg);
        for block in cfg.order() {
            let end = function.blocks[*block].insts.len();
            let places: Vec<_> = (0..=end).map(|index| found.live_before(&function, *block, index)).collect();
            found.walk_back(&function, *block, |index, live| assert_eq!(*live, places[index + 1]));
            let params = &function.blocks[*block].params;
            for reg in function.regs.keys() {
                for (index, place) in places.iter().enumerate() {
                    let expected = is_live(&function, &cfg, reg, *block, index);
                    // The result is read by the exit of the last instruction, which is not an instruction
                    // here.
                    let by_result = index == end && function.results.contains(&Param::Reg(reg));
                    assert!(place.contains(reg) == expected || by_result, "{reg} before {index} of {block}");
                }
                assert_eq!(found.live_in(*block).contains(reg), places[0].contains(reg) && !params.contains(&reg));
                assert_eq!(found.live_out(*block).contains(reg), places[end].contains(reg));
            }
        }
    }
}

#[test]
fn results_are_read_where_the_function_returns() {
    let module = parsed(
        ".func (.reg .b32 r) f (.reg .b32 a) { .reg .pred p; setp.eq.u32 p, a, 0; mov.u32 r, a; @p ret; add.u32 r, r, 1; }",
    );
    let function = &module.functions[module.function("f").unwrap()];
    let cfg = Cfg::new(function).unwrap();
    let found = Liveness::new(function, &cfg);
    let name = |reg: Reg| function.regs[reg].name.as_str();
    let names = |set: &BitSet<Reg>| set.iter().map(name).collect::<Vec<_>>().join(" ");
    let sets: Vec<_> = cfg.order().iter().map(|b| (names(found.live_in(*b)), names(found.live_out(*b)))).collect();
    assert_eq!(sets, [("a".into(), "r".into()), ("r".into(), "r".into())]);
}
