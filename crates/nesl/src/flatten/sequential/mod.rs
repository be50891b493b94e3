//! Sequential forms: a function as PTX in which one thread, or one warp, runs one call.
//!
//! Input: the typed program, not flattened. Output: [`vcode::Sequential`](crate::vcode::Sequential), a module
//! with one kernel. Flattened code calls it if calls are small; see `Accelerator::small` in [`crate::run`]. A
//! function without a sequential form stays flattened: forms exist for code without effects whose primitives
//! are those of [`primitive`].
//!
//! - Scalars are registers. A sequence is a length and one pointer for each slot of its elements. The slots
//!   of a sequence are its length and its pointers, so a nested sequence is an array of lengths and arrays of
//!   pointers.
//! - Memory is allocated from the thread's arena by moving its top. A function moves a result of flat
//!   sequences down to the start of its own memory, and releases the rest. An apply-to-each with scalar
//!   elements releases memory after each of them.
//! - An apply-to-each is a loop. Ranges and `dist` are stored only if their address is needed. In a thread,
//!   several filters over the same sequences are one loop, see [`together`]. Short branches and results of
//!   `++` have special code, see [`tail`].
//! - A call of a function to itself that is the last thing it does is a jump, see [`rounds`].
//! - Functions that are not recursive are expanded at their calls; the others are PTX functions. They return
//!   a status, the top of the arena, the remaining fuel, and their result.
//! - In the form for warps all lanes execute the same code, and loops with independent rounds are distributed
//!   over the lanes: see [`lanes`]. Calls in an apply-to-each become tasks that other warps may take: see
//!   [`tasks`].
//! - The form for cores is the form for threads with such tasks.
//! - In the form for teams many warps run a large call together, and split at its recursive calls: see
//!   [`teams`].
//! - An error, a full arena, a recursion that is too deep and a call without fuel end the call with a
//!   failure. The flattened code then executes all calls, so errors have their message and place.

mod code;
mod entry;
mod expr;
mod form;
mod generic;
mod lanes;
mod math;
mod primitive;
mod rank;
mod rounds;
mod tail;
mod tasks;
mod team_entry;
mod teams;
mod together;

use super::{Callee, Compiler};
use crate::core::Primitive;
use crate::infer::Widths;
use crate::types::{Base, Type as Nesl, TypeId};
use crate::vcode::Shape;
use broadloom_ptx::Type;
use broadloom_scalar::MathFunction;
use code::{Class, Code, Kind, Reg, Team, slots};
use std::collections::HashMap;
use std::fmt::Write;

/// Code, or the reason why there is no sequential form.
type CodeResult<T> = Result<T, String>;

/// Maximum size of the text of a module in bytes. Compiling larger ones takes longer than they save.
const MAX_TEXT: usize = 1 << 19;

/// A PTX function.
#[derive(Clone)]
struct Signature {
    name: String,
    params: Vec<Kind>,
    results: Vec<Kind>,
    /// True if a team executes it.
    in_team: bool,
}

/// Worker that runs a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Workers {
    Threads,
    /// Threads that take parts of each other's calls: one for each core of a CPU.
    Cores,
    Warps,
    Teams,
}

/// Module under construction.
struct Module<'c, 'e> {
    c: &'c mut Compiler<'e>,
    widths: Widths,
    /// Functions by their code, and whether a team executes them.
    functions: HashMap<(Callee, bool), Signature>,
    queue: Vec<(Callee, Signature)>,
    prototypes: String,
    arrays: usize,
    /// Elementary functions that have been written.
    elementary: Vec<MathFunction>,
    done: String,
    workers: Workers,
    /// Functions whose calls are tasks.
    tasks: Vec<Signature>,
    /// True if functions for teams split the team, or call each other without a split.
    has_parts: bool,
    has_calls: bool,
    /// True if functions for teams have a loop whose rounds run in order.
    has_order: bool,
    /// True if the first function returns its arguments when it has run for long, see [`rounds`].
    pauses: bool,
}

/// Registers that every function takes: the top and the limit of the arena, the depth and the fuel; in the
/// form for warps, the address of the queue of tasks; in the form for teams, the team.
#[derive(Clone, Copy)]
struct FrameRegisters {
    top: Reg,
    limit: Reg,
    depth: Reg,
    fuel: Reg,
    queue: Option<Reg>,
    team: Option<Team>,
}

/// Registers returned by a function.
struct CallResults {
    status: Reg,
    top: Reg,
    fuel: Reg,
    results: Vec<Reg>,
}

impl Compiler<'_> {
    /// Returns the shapes of the parameters of a function, captured variables first, and of its result.
    pub(super) fn shapes(&mut self, callee: &Callee) -> CodeResult<(Shape, Shape)> {
        let body = self.body(callee).map_err(|fault| fault.message.clone())?;
        let argument = self.argument_type(callee, &body).map_err(|fault| fault.message.clone())?;
        let mut taken = vec![];
        if let Callee::Lambda(lambda, _) = callee {
            for (_, inner) in self.env.lambdas[*lambda].captures.clone() {
                taken.push(self.shape(body.locals[inner].ty)?);
            }
        }
        taken.push(self.shape(argument)?);
        let Some(result) = body.result else { return Err("it has no result".to_owned()) };
        Ok((Shape::Tuple(taken), self.shape(body.types[result])?))
    }

    pub(super) fn shape(&mut self, ty: TypeId) -> CodeResult<Shape> {
        let ty = self.resolve(ty);
        Ok(match self.env.types[ty].clone() {
            Nesl::Base(Base::Int | Base::Char) => Shape::Int,
            Nesl::Base(Base::Float) => Shape::Float,
            Nesl::Base(Base::Bool) => Shape::Bool,
            Nesl::Seq(element) => Shape::Seq(Box::new(self.shape(element)?)),
            Nesl::Pair(first, rest) => Shape::Tuple(vec![self.shape(first)?, self.shape(rest)?]),
            Nesl::Function { identity, .. } => match self.env.types[identity].clone() {
                Nesl::Closure(_, parts) => {
                    Shape::Tuple(parts.into_iter().map(|part| self.shape(part)).collect::<CodeResult<Vec<Shape>>>()?)
                }
                _ => Shape::Tuple(vec![]),
            },
            Nesl::Data(..) | Nesl::Variable(_) | Nesl::Definition(_) | Nesl::Closure(..) => {
                return Err("a type is not known".to_owned());
            }
        })
    }
}

impl Module<'_, '_> {
    /// Returns the PTX function of some code; queues it to be written if it is new.
    fn function(&mut self, callee: &Callee, in_team: bool) -> CodeResult<Signature> {
        let key = (callee.clone(), in_team);
        if let Some(known) = self.functions.get(&key) {
            return Ok(known.clone());
        }
        if self.functions.len() >= 200 {
            return Err("it calls too many functions".to_owned());
        }
        let (argument, result) = self.c.shapes(callee)?;
        let (mut params, mut results) = (vec![], vec![]);
        slots(&argument, &mut params);
        slots(&self.returned_shape(argument, result), &mut results);
        let source: String = self.c.name(callee).0.chars().filter(char::is_ascii_alphanumeric).collect();
        let name = format!("f{}_{source}", self.functions.len());
        let signature = Signature { name, params, results, in_team };
        let _ = writeln!(self.prototypes, "{};", self.head(&signature));
        self.functions.insert(key, signature.clone());
        self.queue.push((callee.clone(), signature.clone()));
        Ok(signature)
    }

    /// Returns the number of parameters before the slots of the arguments: those of [`FrameRegisters`].
    fn given(&self, signature: &Signature) -> usize {
        match self.workers {
            Workers::Threads => 4,
            _ if signature.in_team => 8,
            Workers::Cores | Workers::Warps | Workers::Teams => 5,
        }
    }

    /// Tells whether lanes of warps execute the code.
    fn in_warps(&self) -> bool {
        matches!(self.workers, Workers::Warps | Workers::Teams)
    }

    /// Tells whether workers have a queue of tasks.
    fn has_queue(&self) -> bool {
        self.workers != Workers::Threads
    }

    /// Returns the head of a function.
    fn head(&self, signature: &Signature) -> String {
        let mut params =
            vec![".param .b64 a0".to_owned(), ".param .b64 a1".into(), ".param .b32 a2".into(), ".param .b64 a3".into()];
        if self.has_queue() {
            params.push(".param .b64 a4".to_owned());
        }
        if signature.in_team {
            params.extend([".param .b32 a5".to_owned(), ".param .b32 a6".into(), ".param .b64 a7".into()]);
        }
        for (number, kind) in signature.params.iter().enumerate() {
            params.push(format!(".param {} a{}", self.param_type(*kind), number + self.given(signature)));
        }
        format!(".func (.param .align 8 .b8 rr[{}]) {} ({})", signature.bytes(), signature.name, params.join(", "))
    }

    /// Calls a function. Bools are passed and returned as numbers.
    fn call(&self, code: &mut Code, signature: &Signature, given: &FrameRegisters, regs: &[Reg]) -> CallResults {
        let FrameRegisters { top, limit, depth, fuel, queue, team } = given;
        let mut arguments = vec![(Type::B64, *top), (Type::B64, *limit), (Type::B32, *depth), (Type::B64, *fuel)];
        arguments.extend(queue.map(|queue| (Type::B64, queue)));
        if let (Some(team), true) = (team, signature.in_team) {
            arguments.extend([(Type::B32, team.first), (Type::B32, team.warps), (Type::B64, team.sync)]);
        }
        arguments.extend(regs.iter().zip(&signature.params).map(|(reg, kind)| (self.param_type(*kind), *reg)));
        let (status, top, fuel) = (code.reg(Class::B32), code.reg(Class::B64), code.reg(Class::B64));
        let mut loaded = vec![(Type::B32, 0, status), (Type::B64, 8, top), (Type::B64, 16, fuel)];
        for (number, kind) in signature.results.iter().enumerate() {
            let to = if *kind == Kind::Bool { code.reg(Class::B32) } else { code.of(*kind) };
            loaded.push((self.param_type(*kind), 24 + 8 * number, to));
        }
        code.call(&signature.name, &arguments, signature.bytes(), &loaded);
        let results = loaded[3..].iter().map(|(.., to)| *to).collect();
        CallResults { status, top, fuel, results }
    }

    /// Returns the PTX type of a parameter for a slot.
    fn param_type(&self, kind: Kind) -> Type {
        match kind {
            Kind::Int if self.widths.wide_int => Type::B64,
            Kind::Int | Kind::Bool | Kind::Length => Type::B32,
            Kind::Float if self.widths.narrow_float => Type::F32,
            Kind::Float => Type::F64,
            Kind::Pointer => Type::B64,
        }
    }
}

impl Signature {
    /// Returns the size of the results in bytes: status, top, fuel, slots.
    fn bytes(&self) -> usize {
        24 + 8 * self.results.len()
    }
}

/// Returns the reason why a primitive has no sequential form: an effect, or missing code.
fn reason(primitive: Primitive) -> String {
    format!("it uses `{primitive:?}`, which runs flattened only")
}
