//! Programs in memory.

use super::extension::{Check, Foreign};
use super::sequential::Sequential;
use super::tail_loop::TailLoop;
use super::{Op, Type};
use broadloom_diag::Span;
use cranelift_entity::{EntityRef, PrimaryMap, entity_impl};
use std::sync::Arc;

/// Names a function of a [`Program`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FuncId(u32);
entity_impl!(FuncId, "func");

/// A vector in the text of a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// Ints; of length 1 they are written as a scalar.
    Int(Arc<[i64]>),
    /// A vector of floats.
    Float(Arc<[f64]>),
    /// Truth values.
    Bool(Arc<[bool]>),
    /// The lengths of segments.
    Segdes(Arc<[i64]>),
    /// Characters, as ints.
    Text(Arc<[u8]>),
}

impl Constant {
    /// Returns the type on the stack.
    pub fn ty(&self) -> Type {
        match self {
            Constant::Int(_) | Constant::Text(_) => Type::Int,
            Constant::Float(_) => Type::Float,
            Constant::Bool(_) => Type::Bool,
            Constant::Segdes(_) => Type::Segdes,
        }
    }
}

/// An instruction. Positions on the stack count from its top, which is 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Inst {
    /// An instruction of the table with its type suffix.
    Op(Op, Type),
    /// Pushes a vector.
    Const(Constant),
    /// Pushes copies of `count` entries that are below `from` others.
    Copy(u32, u32),
    /// Removes `count` entries that are below `from` others.
    Pop(u32, u32),
    /// Moves `count` entries that are below `from` others to the top.
    CopyPop(u32, u32),
    /// Joins the two entries at the top to a pair.
    Pair,
    /// Splits the pair at the top into two entries.
    Unpair,
    /// Calls a function.
    Call(FuncId),
    /// Takes a bool. If it is false, continues at the index after the matching `ELSE`, or after `ENDIF`.
    If(u32),
    /// Continues at the index after the matching `ENDIF`.
    Else(u32),
    /// The end of a conditional; does nothing.
    EndIf,
    /// Ends the program.
    Exit,
    /// Returns.
    Return,
    /// Extension: takes operands and ends the run with an error unless they are valid.
    Check(Check),
    /// Extension: calls a function of the host by name for every element.
    Foreign(Box<Foreign>),
    /// Extension: takes the sizes of calls. Pushes 2 if all of them run sequentially, 1 if some do, 0 if none
    /// does. Then pushes the largest small size.
    Small,
    /// A call that the machine may execute by a sequential form. In text it is a `CALL` of the flattened
    /// function.
    Sequential(Box<SequentialCall>),
    /// A call that the machine executes by a loop form. In text it is a `CALL` of the flattened function.
    Loop(Box<LoopCall>),
}

/// Call that may be executed by a sequential form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequentialCall {
    /// The sequential form.
    pub form: Arc<Sequential>,
    /// The flattened function that takes the same operands and leaves the same results.
    pub fallback: FuncId,
}

/// Call that may be executed by a loop form.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopCall {
    /// The loop form.
    pub form: Arc<TailLoop>,
    /// The flattened function that takes the same operands and leaves the same results.
    pub fallback: FuncId,
}

/// Instructions between `FUNC` and `RET`.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// The name behind `FUNC`.
    pub name: String,
    /// The name in the program that it was compiled from; `None` for functions of a library.
    pub source: Option<String>,
    /// The types of operands and results, if they are declared.
    pub signature: Option<(Vec<Type>, Vec<Type>)>,
    /// The instructions; the last one is [`Inst::Return`].
    pub code: Vec<Inst>,
    /// The source place of each instruction.
    pub spans: Vec<Span>,
}

/// The functions of VCODE, and the one that starts.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// All functions; calls refer to them by id.
    pub functions: PrimaryMap<FuncId, Function>,
    /// The entry function.
    pub main: Option<FuncId>,
}

impl Program {
    /// Joins programs into one that executes them in order and leaves the results of all on the stack.
    pub fn in_order(programs: Vec<Program>) -> Program {
        if programs.len() == 1 {
            return programs.into_iter().next().unwrap_or_default();
        }
        let mut whole = Program::default();
        let mut code = vec![];
        for (index, program) in programs.into_iter().enumerate() {
            let base = whole.functions.len();
            let moved = |id: FuncId| FuncId::new(id.index() + base);
            code.extend(program.main.map(|main| Inst::Call(moved(main))));
            for (_, mut function) in program.functions {
                // A name ends with the number of the program, since the programs have functions of equal
                // names.
                function.name = format!("{}-{}", function.name, index + 1);
                for inst in &mut function.code {
                    match inst {
                        Inst::Call(callee) => *callee = moved(*callee),
                        Inst::Sequential(call) => call.fallback = moved(call.fallback),
                        Inst::Loop(call) => call.fallback = moved(call.fallback),
                        _ => {}
                    }
                }
                whole.functions.push(function);
            }
        }
        code.push(Inst::Return);
        let spans = vec![Span::default(); code.len()];
        whole.main = Some(whole.functions.push(Function { name: "MAIN".to_owned(), code, spans, ..Function::default() }));
        whole
    }
}
