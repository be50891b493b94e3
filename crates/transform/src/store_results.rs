//! `store_results`: stores results of a function that are registers to memory.
//!
//! **In**: SSA form as `to_ssa` leaves it: results that are registers are copied before each `ret`. **Out**:
//! SSA form of a function whose results are `.param` variables, which are stored instead. Keeps the results
//! and their sizes. A kernel has no results and is unchanged. A result of a type that cannot be stored is
//! unchanged too.
//!
//! If lanes return one by one, each must store its result where it is found after all have returned. A
//! register would hold the result of the last lane.

use crate::names::Names;
use crate::write::Writer;
use broadloom_ptx::{Address, Base, Function, Inst, InstData, Module, Operand, Param, Reg, Space, Symbol, Type, Var, Variable};
use std::collections::HashMap;

/// Name of the pass.
pub const NAME: &str = "store_results";

/// Moves results of a function from registers to memory.
pub fn run(module: &Module, function: &mut Function) {
    let mut names = Names::all(module, function);
    let mut stored: HashMap<Reg, Var> = HashMap::new();
    for index in 0..function.results.len() {
        let Param::Reg(reg) = function.results[index] else { continue };
        let ty = function.regs[reg].ty;
        if store(ty, reg, Var::from_u32(0)).is_none() {
            continue;
        }
        let element = if ty == Type::Pred { Type::B8 } else { ty };
        let var = function.variables.push(Variable::new(names.take("result"), Space::Param, element));
        function.results[index] = Param::Memory(var);
        stored.insert(reg, var);
    }
    if stored.is_empty() {
        return;
    }
    for block in function.layout.clone() {
        let mut insts = vec![];
        for inst in std::mem::take(&mut function.blocks[block].insts) {
            insts.extend(replaced(function, &mut names, inst, &stored).unwrap_or_else(|| vec![inst]));
        }
        function.blocks[block].insts = insts;
    }
}

/// Returns the replacement of a copy to a result.
fn replaced(function: &mut Function, names: &mut Names<'_>, inst: Inst, stored: &HashMap<Reg, Var>) -> Option<Vec<Inst>> {
    let data = &function.insts[inst];
    let result = data.writes().first().copied()?;
    let var = *stored.get(&result)?;
    let value = data.reads().first().copied()?;
    let ty = function.regs[result].ty;
    let mut writer = Writer::new(function);
    writer.at(inst);
    let from = if ty == Type::Pred {
        let number = writer.reg(names.take("%result"), Type::U16);
        writer.emit("selp.u16", [number.into(), 1.into(), 0.into(), value.into()]);
        number
    } else {
        value
    };
    writer.push(store(ty, from, var)?);
    Some(writer.take())
}

/// Returns the store of a register of a type; predicates are bytes in memory.
fn store(ty: Type, from: Reg, var: Var) -> Option<InstData> {
    let word = if ty == Type::Pred { "b8" } else { Type::bits_of(ty.bits())?.name() };
    let place = Operand::Memory(Address { base: Base::Symbol(Symbol::Local(var)), offset: 0 });
    InstData::of(&format!("st.param.{word}"), [place, from.into()])
}
