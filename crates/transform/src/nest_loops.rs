//! `nest_loops`: gives a nested loop its own header.
//!
//! **In**: SSA form. **Out**: SSA form with the same paths. Some back edges to a loop header change no
//! parameter and others do. This happens in `do { do word = *place; while (word == 0); … } while (…)` if both
//! loops begin at the same instruction. The edges without changes then become a loop inside the other one.
//! Lanes in lockstep then wait for each other after the inner loop.

use crate::names::Names;
use broadloom_analysis::{Cfg, Dominators, Loops};
use broadloom_ptx::{Block, BlockData, Edge, Function, Module, Operand};

/// Name of the pass.
pub const NAME: &str = "nest_loops";

/// Gives nested loops of a function in SSA form their own headers.
pub fn run(module: &Module, function: &mut Function) {
    let Some(cfg) = Cfg::new(function) else { return };
    let loops = Loops::new(&cfg, &Dominators::new(&cfg));
    for (_, data) in loops.iter() {
        let header = data.header;
        let params = &function.blocks[header].params;
        let back = || data.latches.iter().flat_map(|latch| &function.blocks[*latch].edges).filter(|edge| edge.target == header);
        let changes = |edge: &Edge| edge.args != *params;
        if !back().any(changes) || back().all(changes) {
            continue;
        }
        let label = Names::all(module, function).take("$rounds");
        let params = std::mem::take(&mut function.blocks[header].params);
        let outer =
            BlockData { label: Some(label), params: params.clone(), edges: vec![Edge::to(header)], ..BlockData::default() };
        let outer = function.blocks.push(outer);
        for from in &function.layout.clone() {
            let is_inside = data.latches.contains(from);
            lead(function, *from, header, |edge| if is_inside && edge.args == params { header } else { outer });
        }
        let at = function.layout.iter().position(|block| *block == header).unwrap_or(0);
        function.layout.insert(at, outer);
    }
}

/// Redirects the edges from a block to a header. Edges that still lead to the header lose their arguments.
fn lead(function: &mut Function, from: Block, header: Block, target: impl Fn(&Edge) -> Block) {
    let data = &mut function.blocks[from];
    for edge in data.edges.iter_mut().filter(|edge| edge.target == header) {
        edge.target = target(edge);
        if edge.target == header {
            edge.args.clear();
        }
    }
    let (Some(last), Some(taken)) = (data.insts.last(), data.edges.first()) else { return };
    for operand in &mut function.insts[*last].operands {
        if let Operand::Label(label) = operand {
            *label = taken.target;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{check, to_ssa};
    use broadloom_diag::Sources;
    use broadloom_ptx::parse;

    fn headers(body: &str) -> usize {
        let text = format!(
            ".version 8.0 .target sm_80 .address_size 64 .visible .entry k(.param .u64 out) {{
             .reg .b32 %r<9>; .reg .b64 %l<9>; .reg .pred %p<9>; ld.param.u64 %l0, [out]; mov.u32 %r1, 9; {body} ret; }}"
        );
        let mut sources = Sources::new();
        let id = sources.add("k.ptx", text);
        let module = parse(&sources, id).unwrap_or_else(|errors| panic!("{}", sources.render_all(&errors)));
        let mut function = module.kernels().next().unwrap().1.clone();
        to_ssa::run(&module, &mut function).unwrap();
        run(&module, &mut function);
        check(NAME, &module, &function).unwrap();
        let cfg = Cfg::new(&function).unwrap();
        Loops::new(&cfg, &Dominators::new(&cfg)).len()
    }

    #[test]
    fn a_wait_is_a_loop_of_its_own() {
        let again =
            "A: ld.volatile.u32 %r2, [%l0]; setp.eq.u32 %p1, %r2, 0; @%p1 bra A; add.u32 %r1, %r1, -1; setp.ne.u32 %p2, %r1, 0;";
        assert_eq!(headers(&format!("{again} @%p2 bra A;")), 2);
        assert_eq!(headers(&format!("{again} @!%p2 bra B; bra A; B:")), 2);
        assert_eq!(headers("A: ld.volatile.u32 %r2, [%l0]; setp.eq.u32 %p1, %r2, 0; @%p1 bra A;"), 1, "nothing else comes round");
        let both = "A: add.u32 %r1, %r1, -1; setp.eq.u32 %p1, %r1, 5; @%p1 bra A; setp.ne.u32 %p2, %r1, 0; @%p2 bra A;";
        assert_eq!(headers(both), 1, "both ways change something");
    }
}
