//! Flattened programs as text, for people.

use super::{Block, Function, Op, Program, VarId};
use std::fmt;

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.functions.values().try_for_each(|function| {
            let params: Vec<String> = function.params.iter().map(|&var| declared(function, var)).collect();
            writeln!(f, "function {}({})", function.name, params.join(", "))?;
            self.block(f, function, &function.body, 1)
        })
    }
}

fn declared(function: &Function, var: VarId) -> String {
    let known = &function.vars[var];
    format!("{var}: {} {}", known.ty.name().to_lowercase(), known.space)
}

fn names(vars: &[VarId]) -> String {
    vars.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Program {
    fn block(&self, f: &mut fmt::Formatter<'_>, function: &Function, block: &Block, depth: usize) -> fmt::Result {
        let indent = "  ".repeat(depth);
        for stmt in &block.stmts {
            let results: Vec<String> = stmt.results.iter().map(|&var| declared(function, var)).collect();
            let equals = if results.is_empty() { "" } else { " = " };
            write!(f, "{indent}{}{equals}", results.join(", "))?;
            match &stmt.op {
                Op::Vector(op, ty) => writeln!(f, "{} {} {}", op.name(), ty.name(), names(&stmt.args))?,
                Op::Const(constant) => writeln!(f, "{constant}")?,
                Op::Check(check) => writeln!(f, "check {} {}", check.name(), names(&stmt.args))?,
                Op::Foreign(call) => writeln!(f, "host {} {}", call.name, names(&stmt.args))?,
                Op::Call(callee) => writeln!(f, "{}({})", self.functions[*callee].name, names(&stmt.args))?,
                Op::Small => writeln!(f, "small {}", names(&stmt.args))?,
                Op::Sequential(form, callee) => {
                    writeln!(f, "{} or {}({})", form.name, self.functions[*callee].name, names(&stmt.args))?;
                }
                Op::Loop(form, callee) => {
                    writeln!(f, "loop {} or {}({})", form.source, self.functions[*callee].name, names(&stmt.args))?;
                }
                Op::If(branches) => {
                    writeln!(f, "if {}", names(&stmt.args))?;
                    self.block(f, function, &branches.0, depth + 1)?;
                    writeln!(f, "{indent}else")?;
                    self.block(f, function, &branches.1, depth + 1)?;
                }
            }
        }
        writeln!(f, "{indent}give {}", names(&block.results))
    }
}
