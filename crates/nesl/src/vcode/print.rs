//! Programs as text.

use super::{Choice, Constant, Function, Inst, Program};
use std::fmt::{self, Write as _};

impl fmt::Display for Program {
    /// Writes the main function first: without a function `MAIN`, a program starts at its first function.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let main = self.main.into_iter().filter(|&main| self.functions.is_valid(main));
        let rest = self.functions.keys().filter(|&id| Some(id) != self.main);
        for (index, id) in main.chain(rest).enumerate() {
            f.write_str(if index == 0 { "" } else { "\n" })?;
            self.function(&self.functions[id], f)?;
        }
        Ok(())
    }
}

impl Program {
    fn function(&self, function: &Function, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "FUNC {}", function.name)?;
        if let Some((operands, results)) = &function.signature {
            let names = |types: &[super::Type]| types.iter().map(|ty| format!(" {}", ty.name())).collect::<String>();
            writeln!(f, "I{} O{}", names(operands), names(results))?;
        }
        function.code.iter().try_for_each(|inst| self.inst(inst, f))
    }

    fn inst(&self, inst: &Inst, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match inst {
            Inst::Op(op, ty) => match op.choice() {
                Choice::Fixed(_) => writeln!(f, "{}", op.name()),
                _ => writeln!(f, "{} {}", op.name(), ty.name()),
            },
            Inst::Const(constant) => writeln!(f, "CONST {constant}"),
            Inst::Copy(count, from) => writeln!(f, "COPY {count} {from}"),
            Inst::Pop(count, from) => writeln!(f, "POP {count} {from}"),
            Inst::CopyPop(count, from) => writeln!(f, "CPOP {count} {from}"),
            Inst::Pair => writeln!(f, "PAIR"),
            Inst::Unpair => writeln!(f, "UNPAIR"),
            Inst::Call(callee) => writeln!(f, "CALL {}", self.functions.get(*callee).map_or("", |callee| &callee.name)),
            Inst::Sequential(call) => {
                writeln!(f, "CALL {}", self.functions.get(call.fallback).map_or("", |callee| &callee.name))
            }
            Inst::Loop(call) => writeln!(f, "CALL {}", self.functions.get(call.fallback).map_or("", |callee| &callee.name)),
            Inst::Small => writeln!(f, "SMALL"),
            Inst::If(_) => writeln!(f, "IF"),
            Inst::Else(_) => writeln!(f, "ELSE"),
            Inst::EndIf => writeln!(f, "ENDIF"),
            Inst::Exit => writeln!(f, "EXIT"),
            Inst::Return => writeln!(f, "RET"),
            Inst::Check(check) => writeln!(f, "CHECK \"{}\"", check.name()),
            Inst::Foreign(call) => writeln!(f, "HOST \"{}\" \"{}\" \"{}\"", call.name, call.argument, call.result),
        }
    }
}

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Constant::Int(values) => list(f, "INT", values, |value| value.to_string()),
            Constant::Float(values) => list(f, "FLOAT", values, |value| float(*value)),
            Constant::Bool(values) => list(f, "BOOL", values, |value| if *value { "T" } else { "F" }.to_owned()),
            Constant::Segdes(values) => list(f, "SEGDES", values, |value| value.to_string()),
            // A quotation mark or a byte beyond ASCII is not allowed in a string.
            Constant::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) if text.is_ascii() && !text.contains('"') => write!(f, "CHAR \"{text}\""),
                _ => {
                    let codes: Vec<i64> = bytes.iter().map(|&byte| i64::from(byte)).collect();
                    f.write_str("INT (")?;
                    codes.iter().try_for_each(|code| write!(f, " {code}"))?;
                    f.write_str(" )")
                }
            },
        }
    }
}

fn list<T>(f: &mut fmt::Formatter<'_>, ty: &str, values: &[T], show: impl Fn(&T) -> String) -> fmt::Result {
    match values {
        [value] => write!(f, "{ty} {}", show(value)),
        _ => {
            write!(f, "{ty} (")?;
            values.iter().try_for_each(|value| write!(f, " {}", show(value)))?;
            f.write_str(" )")
        }
    }
}

/// Writes a float such that reading returns the same float. `NAN`, `+INF` and `-INF` are an extension.
fn float(value: f64) -> String {
    if value.is_nan() {
        return "NAN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+INF" } else { "-INF" }.to_owned();
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mut out = mantissa.to_owned();
    if !out.contains('.') {
        out.push_str(".0");
    }
    let _ = write!(out, "e{exponent}");
    out
}
