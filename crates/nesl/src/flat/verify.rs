//! Checks of the invariants of flattened programs. The documentation of the module above lists them.

use super::{Block, Function, Op, Program, Stmt, VarId};
use crate::invariant::BrokenInvariant;
use crate::vcode::{Slot, Type};
use cranelift_entity::EntitySet;

/// Checks a program. The error names the function, the operation and the reason.
pub fn verify(program: &Program) -> Result<(), BrokenInvariant> {
    for function in program.functions.values() {
        let mut defined = EntitySet::new();
        defined.extend(function.params.iter().copied());
        FlatChecker { program, function }.block(&function.body, &mut defined).map_err(|broken| broken.at(&function.name))?;
    }
    match program.main.and_then(|main| program.functions.get(main)) {
        Some(_) => Ok(()),
        None => Err("there is no function to start with".into()),
    }
}

struct FlatChecker<'a> {
    program: &'a Program,
    function: &'a Function,
}

impl FlatChecker<'_> {
    fn block(&self, block: &Block, defined: &mut EntitySet<VarId>) -> Result<(), BrokenInvariant> {
        let outside = defined.clone();
        for stmt in &block.stmts {
            if let Some(unknown) = stmt.args.iter().find(|&&var| !defined.contains(var)) {
                return Err(format!("{:?} uses {unknown}, which is not defined", stmt.op).into());
            }
            self.stmt(stmt, defined).map_err(|broken| broken.at(format_args!("{:?} {:?}", stmt.op, stmt.args)))?;
            for &result in &stmt.results {
                if !defined.insert(result) {
                    return Err(format!("{result} is defined twice").into());
                }
            }
        }
        if let Some(unknown) = block.results.iter().find(|&&var| !defined.contains(var)) {
            return Err(format!("a block gives {unknown}, which is not defined").into());
        }
        *defined = outside;
        Ok(())
    }

    fn types(&self, vars: &[VarId]) -> Vec<Type> {
        vars.iter().map(|&var| self.function.vars[var].ty).collect()
    }

    fn stmt(&self, stmt: &Stmt, defined: &mut EntitySet<VarId>) -> Result<(), BrokenInvariant> {
        let (args, results) = (self.types(&stmt.args), self.types(&stmt.results));
        let agree = |wanted_args: Vec<Type>, wanted_results: Vec<Type>| {
            if args == wanted_args && results == wanted_results { Ok(()) } else { Err("types do not agree".into()) }
        };
        match &stmt.op {
            Op::Vector(op, given) => {
                let of = |slots: &[Slot]| -> Vec<Type> {
                    let ty = |slot: &Slot| match slot {
                        Slot::Given => given.stacked(),
                        Slot::Is(ty) => *ty,
                    };
                    slots.iter().map(ty).collect()
                };
                agree(of(op.operands()), of(op.results()))?;
                let space = |var: VarId| self.function.vars[var].space;
                let mut all = stmt.args.iter().chain(&stmt.results);
                if op.is_elementwise() && !all.all(|&var| space(var) == space(stmt.args[0])) {
                    return Err("an element-wise operation has operands of two spaces".into());
                }
                Ok(())
            }
            Op::Const(constant) => agree(vec![], vec![constant.ty()]),
            Op::Check(check) => agree(check.operands().to_vec(), vec![]),
            Op::Foreign(call) => {
                let (mut wanted, mut given) = (vec![], vec![]);
                call.argument.types(&mut wanted);
                call.result.types(&mut given);
                agree(wanted, given)
            }
            Op::Small => agree(vec![Type::Int], vec![Type::Int, Type::Int]),
            Op::Call(callee) | Op::Sequential(_, callee) | Op::Loop(_, callee) => {
                let callee = self.program.functions.get(*callee).ok_or("the callee does not exist")?;
                let of = |vars: &[VarId]| vars.iter().map(|&var| callee.vars[var].ty).collect();
                agree(of(&callee.params), of(&callee.body.results))
            }
            Op::If(branches) => {
                if args != [Type::Bool] {
                    return Err("a conditional needs one bool".into());
                }
                for branch in [&branches.0, &branches.1] {
                    self.block(branch, defined)?;
                    if self.types(&branch.results) != results {
                        return Err("a branch gives other types than the conditional".into());
                    }
                }
                Ok(())
            }
        }
    }
}
