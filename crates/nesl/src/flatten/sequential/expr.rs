//! Functions and expressions.

use super::code::{Class, Code, Kind, Label, Reg, slots};
use super::{CodeResult, FrameRegisters, Module, Signature, Workers};
use crate::core::Primitive;
use crate::core::{Body, DefinitionKind, Each, Expr, ExprId, LocalId, Pattern, PatternId};
use crate::eval::Value;
use crate::flatten::Callee;
use crate::flatten::callee::Node;
use crate::types::{Base, Type as Nesl, TypeId};
use crate::vcode::Shape;
use broadloom_ptx::builder::Instructions;
use broadloom_ptx::{Modifier as M, Type};
use std::collections::HashMap;
use std::fmt::Write;
use std::rc::Rc;

/// Maximum number of elements of a sequence of the program that becomes part of a module.
const MAX_ARRAY: usize = 4096;

/// Maximum nesting of expanded functions.
const MAX_EXPANDED: u32 = 16;

/// A value.
#[derive(Clone)]
pub(super) enum Val {
    Base(Kind, Reg),
    Tuple(Rc<[Val]>),
    Seq(Rc<Seq>),
}

/// A sequence.
pub(super) struct Seq {
    pub(super) length: Reg,
    /// The shape of its elements.
    pub(super) shape: Shape,
    pub(super) items: Items,
}

pub(super) enum Items {
    /// Arrays, one for each slot of the elements.
    Stored(Vec<Reg>),
    /// Ints: a start and a step.
    Range(Reg, Reg),
    /// One value at all indices.
    Same(Val),
}

impl Val {
    pub(super) fn pair(first: Val, rest: Val) -> Val {
        Val::Tuple([first, rest].into())
    }

    pub(super) fn unit() -> Val {
        Val::Tuple([].into())
    }

    pub(super) fn seq(length: Reg, shape: Shape, items: Items) -> Val {
        Val::Seq(Rc::new(Seq { length, shape, items }))
    }
}

/// A loop over indices from 0.
pub(super) struct Loop {
    pub(super) index: Reg,
    head: Label,
    end: Label,
}

/// The loop of a function that calls itself last.
pub(super) struct Rounds {
    pub(super) callee: Callee,
    pub(super) head: Label,
    /// The registers of the parameters, and their kinds.
    pub(super) params: Vec<Reg>,
    pub(super) kinds: Vec<Kind>,
    pub(super) argument: Shape,
    /// True if the function pauses between rounds.
    pub(super) pauses: bool,
}

/// Writes one PTX function.
pub(super) struct Writer<'m, 'c, 'e> {
    pub(super) m: &'m mut Module<'c, 'e>,
    pub(super) code: Code,
    pub(super) body: Rc<Body>,
    instance: Vec<TypeId>,
    pub(super) locals: HashMap<LocalId, Val>,
    pub(super) top: Reg,
    pub(super) limit: Reg,
    pub(super) depth: Reg,
    pub(super) fuel: Reg,
    /// The address of the queue of tasks, if workers have one.
    pub(super) queue: Option<Reg>,
    /// The number of elements of the function's arguments, if threads have tasks.
    pub(super) size: Option<Reg>,
    /// The top of the arena at the start of the function.
    pub(super) mark: Reg,
    /// The end of the memory given to parts of the team; 0 if none was given.
    pub(super) consumed: Reg,
    /// The label that ends the call with a failure.
    pub(super) fail: Label,
    /// True in code of one round of a loop that is distributed over lanes.
    pub(super) varying: bool,
    /// True if such code contains an operation that all lanes must execute together.
    pub(super) refused: bool,
    /// True if the next expression is the result of the function.
    pub(super) at_end: bool,
    /// The loop of the function, if it calls itself last.
    pub(super) rounds: Option<Rc<Rounds>>,
    expanded: u32,
}

impl Module<'_, '_> {
    /// Writes a function.
    pub(super) fn write(&mut self, callee: &Callee, signature: &Signature) -> CodeResult<()> {
        let body = self.c.body(callee).map_err(|fault| fault.message.clone())?;
        let (argument, _) = self.c.shapes(callee)?;
        let head = self.head(signature);
        let mut code = Code::new(self.widths, self.in_warps());
        let (top, limit, depth, fuel) = (code.reg(Class::B64), code.reg(Class::B64), code.reg(Class::B32), code.reg(Class::B64));
        let queue = self.has_queue().then(|| code.reg(Class::B64));
        let (mark, consumed) = (code.reg(Class::B64), code.reg(Class::B64));
        let (fail, given) = (code.label(), self.given(signature));
        let mut w = Writer {
            m: self,
            code,
            body: body.clone(),
            instance: vec![],
            locals: HashMap::new(),
            top,
            limit,
            depth,
            fuel,
            queue,
            size: None,
            mark,
            consumed,
            fail,
            varying: false,
            refused: false,
            at_end: false,
            rounds: None,
            expanded: 0,
        };
        w.code.meet();
        w.code.load_param(top, Type::B64, "a0");
        w.code.load_param(limit, Type::B64, "a1");
        w.code.load_param(depth, Type::B32, "a2");
        w.code.load_param(fuel, Type::B64, "a3");
        if let Some(queue) = queue {
            w.code.load_param(queue, Type::B64, "a4");
        }
        if signature.in_team {
            let sync = w.code.reg(Class::B64);
            let team = w.code.team_regs(sync);
            w.code.load_param(team.first, Type::B32, "a5");
            w.code.load_param(team.warps, Type::B32, "a6");
            w.code.load_param(sync, Type::B64, "a7");
            w.code.to(consumed).mov(M::U64, 0);
            w.code.name_team(&team);
            w.code.team = Some(team);
        }
        let mut params = vec![];
        for (number, kind) in signature.params.iter().enumerate() {
            let ty = w.m.param_type(*kind);
            params.push(match kind {
                Kind::Bool => {
                    let (number_of, pred) = (w.code.reg(Class::B32), w.code.reg(Class::Pred));
                    w.code.load_param(number_of, Type::B32, format_args!("a{}", number + given));
                    w.code.to(pred).setp((M::Ne, M::U32), number_of, 0);
                    pred
                }
                _ => {
                    let reg = w.code.of(*kind);
                    w.code.load_param(reg, ty, format_args!("a{}", number + given));
                    reg
                }
            });
        }
        if w.m.workers == Workers::Cores {
            let size = w.code.length(0);
            for (reg, _) in params.iter().zip(&signature.params).filter(|(_, kind)| **kind == Kind::Length) {
                w.code.to(size).add(M::U32, size, reg);
            }
            w.size = Some(size);
        }
        let none = w.code.reg(Class::Pred);
        w.code.to(none).setp((M::Eq, M::U32), depth, 0);
        w.code.go_if(none, fail);
        w.code.to(depth).sub(M::U32, depth, 1);
        w.code.set(Kind::Pointer, mark, top);
        w.begin_rounds(callee, &body, &argument, &params);
        let one = w.code.length(1);
        w.burn(one);
        let Val::Tuple(taken) = w.unslot(&argument, &mut params.into_iter())? else { return Err("no arguments".into()) };
        match w.rounds.clone() {
            Some(rounds) => w.within(callee, &taken, body, |w| w.round(&taken, &rounds))?,
            None => {
                w.at_end = true;
                let value = w.enter(callee, &taken, body)?;
                w.give(&value, mark)?;
            }
        }
        w.code.place(fail);
        w.code.store_param(Type::B32, "rr", 1);
        w.code.run().ret(());
        let (declarations, text) = (w.code.declarations(), std::mem::take(&mut w.code.text));
        let _ = write!(self.done, "{head}\n{{\n{declarations}{text}}}\n\n");
        Ok(())
    }

    /// Adds elements of this size and returns the name of the array.
    fn array(&mut self, bytes: u32, elements: &[u64]) -> String {
        let name = format!("array{}", self.arrays);
        self.arrays += 1;
        let numbers: Vec<String> = elements.iter().map(u64::to_string).collect();
        let count = numbers.len().max(1);
        let numbers = if numbers.is_empty() { "0".to_owned() } else { numbers.join(", ") };
        let _ = writeln!(self.prototypes, ".global .align 8 .b{} {name}[{count}] = {{{numbers}}};", 8 * bytes);
        name
    }
}

impl Writer<'_, '_, '_> {
    /// Binds captured variables and the argument of a function, and computes its result.
    fn enter(&mut self, callee: &Callee, taken: &[Val], body: Rc<Body>) -> CodeResult<Val> {
        self.within(callee, taken, body, |w| w.inside(taken))
    }

    /// Writes code that belongs to a function, with its captured variables.
    pub(super) fn within<T>(
        &mut self,
        callee: &Callee,
        taken: &[Val],
        body: Rc<Body>,
        write: impl FnOnce(&mut Self) -> CodeResult<T>,
    ) -> CodeResult<T> {
        let captures = match callee {
            Callee::Lambda(lambda, _) => self.m.c.env.lambdas[*lambda].captures.clone(),
            _ => vec![],
        };
        let instance = match callee {
            Callee::Definition(_, instance) | Callee::Lambda(_, instance) => instance.clone(),
            Callee::Serial(_) | Callee::Elements(_) => vec![],
        };
        let body = std::mem::replace(&mut self.body, body);
        let locals = std::mem::take(&mut self.locals);
        let instance = std::mem::replace(&mut self.instance, instance);
        for ((_, inner), value) in captures.iter().zip(taken) {
            self.locals.insert(*inner, value.clone());
        }
        let value = write(self);
        (self.body, self.locals, self.instance) = (body, locals, instance);
        value
    }

    /// Binds the parameter.
    pub(super) fn bind_argument(&mut self, taken: &[Val]) -> CodeResult<()> {
        match (self.body.parameter, taken.last()) {
            (Some(pattern), Some(argument)) => self.bind(pattern, argument),
            _ => Ok(()),
        }
    }

    fn inside(&mut self, taken: &[Val]) -> CodeResult<Val> {
        self.bind_argument(taken)?;
        let Some(result) = self.body.result else { return Err("it has no result".to_owned()) };
        self.expr(result)
    }

    /// Returns a result from a PTX function. Flat sequences are moved to the mark, and the memory after them
    /// is released.
    pub(super) fn give(&mut self, value: &Val, mark: Reg) -> CodeResult<()> {
        let regs = self.stored(value)?;
        let (mut kinds, mut columns) = (vec![], vec![]);
        let shape = self.shape_of(value);
        slots(&shape, &mut kinds);
        let mut regs: Vec<Reg> = kinds.iter().zip(regs).map(|(kind, reg)| self.code.copy(*kind, reg)).collect();
        let is_flat = flat_columns(&shape, &mut 0, &mut columns);
        if self.code.team.is_some() {
            self.code.to(self.top).max(M::U64, self.top, self.consumed);
        } else if is_flat {
            self.release(&mut regs, &columns, mark);
        }
        self.code.store_param(Type::B32, "rr", 0);
        self.code.store_param(Type::B64, "rr+8", self.top);
        self.code.store_param(Type::B64, "rr+16", self.fuel);
        for (number, (kind, reg)) in kinds.iter().zip(regs).enumerate() {
            let reg = if *kind == Kind::Bool { self.code.number(reg) } else { reg };
            let ty = self.m.param_type(*kind);
            self.code.store_param(ty, format_args!("rr+{}", 24 + 8 * number), reg);
        }
        self.code.run().ret(());
        Ok(())
    }

    /// Moves columns, each a length, a pointer and a kind, to the mark if that overwrites none of them.
    fn release(&mut self, regs: &mut [Reg], columns: &[(usize, usize, Kind)], mark: Reg) {
        let (keep, end) = (self.code.label(), self.code.reg(Class::B64));
        if columns.len() > 1 {
            self.code.to(end).mov(M::B64, mark);
            for &(length, pointer, kind) in columns {
                let (next, before) = (self.code.label(), self.code.reg(Class::Pred));
                let any = self.is_outside(regs[pointer], mark);
                self.code.go_if(any, next);
                self.code.to(before).setp((M::Lt, M::U64), regs[pointer], end);
                self.code.go_if(before, keep);
                let bytes = self.code.bytes(kind);
                self.code.to(end).mad((M::Wide, M::U32), regs[length], bytes, regs[pointer]);
                self.code.place(next);
            }
        }
        let to = self.code.copy(Kind::Pointer, mark);
        for &(length, pointer, kind) in columns {
            let (next, there, same) = (self.code.label(), self.code.label(), self.code.reg(Class::Pred));
            let any = self.is_outside(regs[pointer], mark);
            self.code.go_if(any, next);
            self.code.to(same).setp((M::Eq, M::U64), regs[pointer], to);
            self.code.go_if(same, there);
            self.move_down(kind, regs[pointer], to, regs[length]);
            self.code.to(regs[pointer]).mov(M::B64, to);
            self.code.place(there);
            let bytes = self.code.bytes(kind);
            self.code.to(to).mad((M::Wide, M::U32), regs[length], bytes, to);
            self.code.to(to).add(M::U64, to, 7);
            self.code.to(to).and(M::B64, to, -8);
            self.code.place(next);
        }
        self.code.to(self.top).mov(M::B64, to);
        self.code.place(keep);
    }

    /// Tells whether an address is not in the memory between the mark and the end of the arena.
    pub(super) fn is_outside(&mut self, pointer: Reg, mark: Reg) -> Reg {
        let [low, high, any] = [(); 3].map(|()| self.code.reg(Class::Pred));
        self.code.to(low).setp((M::Lt, M::U64), pointer, mark);
        self.code.to(high).setp((M::Ge, M::U64), pointer, self.limit);
        self.code.to(any).or(M::Pred, low, high);
        any
    }

    /// Begins a loop over indices below a length.
    pub(super) fn begin(&mut self, length: Reg) -> Loop {
        self.refused |= self.varying;
        self.m.has_order |= self.code.team.is_some() && !self.varying;
        self.code.sync();
        let (index, done) = (self.code.length(0), self.code.reg(Class::Pred));
        let (head, end) = (self.code.label(), self.code.label());
        self.code.place(head);
        self.code.to(done).setp((M::Ge, M::U32), index, length);
        self.code.go_if(done, end);
        Loop { index, head, end }
    }

    pub(super) fn end(&mut self, each: Loop) {
        self.code.to(each.index).add(M::U32, each.index, 1);
        self.code.go(each.head);
        self.code.place(each.end);
        self.code.sync();
    }

    /// Consumes fuel for the rounds of a loop.
    pub(super) fn burn(&mut self, length: Reg) {
        self.refused |= self.varying;
        let (wide, none) = (self.code.reg(Class::B64), self.code.reg(Class::Pred));
        self.code.to(wide).cvt((M::U64, M::U32), length);
        self.code.to(self.fuel).sub(M::S64, self.fuel, wide);
        self.code.to(none).setp((M::Lt, M::S64), self.fuel, 0);
        self.fail_if(none);
    }

    pub(super) fn fail_if(&mut self, pred: Reg) {
        let fail = self.fail;
        self.code.go_if(pred, fail);
    }

    /// Allocates memory for elements of a kind. Lengths are below 2^32, so the sizes do not wrap.
    pub(super) fn take(&mut self, length: Reg, kind: Kind) -> Reg {
        self.refused |= self.varying;
        let (pointer, full) = (self.code.copy(Kind::Pointer, self.top), self.code.reg(Class::Pred));
        let bytes = self.code.bytes(kind);
        self.code.to(self.top).mad((M::Wide, M::U32), length, bytes, self.top);
        self.code.to(self.top).add(M::U64, self.top, 7);
        self.code.to(self.top).and(M::B64, self.top, -8);
        self.code.to(full).setp((M::Gt, M::U64), self.top, self.limit);
        self.fail_if(full);
        pointer
    }

    /// Allocates memory for a sequence.
    pub(super) fn room(&mut self, length: Reg, shape: &Shape) -> Vec<Reg> {
        let mut kinds = vec![];
        slots(shape, &mut kinds);
        kinds.into_iter().map(|kind| self.take(length, kind)).collect()
    }

    /// Stores a value at an index of a sequence in memory.
    pub(super) fn put(&mut self, arrays: &[Reg], shape: &Shape, index: Reg, value: &Val) -> CodeResult<()> {
        let regs = self.stored(value)?;
        self.store(arrays, shape, index, &regs);
        Ok(())
    }

    /// Stores the slots of a value at an index of a sequence in memory.
    pub(super) fn store(&mut self, arrays: &[Reg], shape: &Shape, index: Reg, regs: &[Reg]) {
        let mut kinds = vec![];
        slots(shape, &mut kinds);
        for ((kind, array), reg) in kinds.into_iter().zip(arrays).zip(regs) {
            self.code.store_at(kind, *array, index, *reg);
        }
    }

    /// Returns the element of a sequence at an index that is in range.
    pub(super) fn element(&mut self, seq: &Seq, index: Reg) -> CodeResult<Val> {
        match &seq.items {
            Items::Stored(arrays) => {
                let mut kinds = vec![];
                slots(&seq.shape, &mut kinds);
                let regs: Vec<Reg> =
                    kinds.into_iter().zip(arrays).map(|(kind, array)| self.code.load_at(kind, *array, index)).collect();
                self.unslot(&seq.shape, &mut regs.into_iter())
            }
            Items::Range(start, step) => {
                let (at, value, ty) = (self.code.as_int(index), self.code.of(Kind::Int), self.code.ty(Kind::Int));
                self.code.to(value).mad((M::Lo, ty), at, step, start);
                Ok(Val::Base(Kind::Int, value))
            }
            Items::Same(value) => Ok(value.clone()),
        }
    }

    /// Returns the slots of a value; sequences are stored.
    pub(super) fn stored(&mut self, value: &Val) -> CodeResult<Vec<Reg>> {
        Ok(match value {
            Val::Base(_, reg) => vec![*reg],
            Val::Tuple(parts) => {
                let mut all = vec![];
                for part in parts.iter() {
                    all.extend(self.stored(part)?);
                }
                all
            }
            Val::Seq(seq) => {
                let mut all = vec![seq.length];
                all.extend(self.arrays(seq)?);
                all
            }
        })
    }

    /// Returns the arrays of a sequence; stores the sequence if necessary.
    pub(super) fn arrays(&mut self, seq: &Seq) -> CodeResult<Vec<Reg>> {
        if let Items::Stored(arrays) = &seq.items {
            return Ok(arrays.clone());
        }
        self.burn(seq.length);
        let arrays = self.room(seq.length, &seq.shape);
        self.copy_elements(seq, &arrays)?;
        Ok(arrays)
    }

    /// Copies all elements of a sequence to arrays.
    pub(super) fn copy_elements(&mut self, seq: &Seq, arrays: &[Reg]) -> CodeResult<()> {
        let load = |w: &mut Self, index: Reg| {
            let value = w.element(seq, index)?;
            w.stored(&value)
        };
        self.spread(seq.length, load, |w, index, regs| w.store(arrays, &seq.shape, index, regs))
    }

    /// Makes a value from its slots.
    pub(super) fn unslot(&mut self, shape: &Shape, regs: &mut dyn Iterator<Item = Reg>) -> CodeResult<Val> {
        let mut next = || regs.next().ok_or_else(|| "a value has too few parts".to_owned());
        Ok(match shape {
            Shape::Int => Val::Base(Kind::Int, next()?),
            Shape::Float => Val::Base(Kind::Float, next()?),
            Shape::Bool => Val::Base(Kind::Bool, next()?),
            Shape::Tuple(parts) => {
                Val::Tuple(parts.iter().map(|part| self.unslot(part, regs)).collect::<CodeResult<Vec<Val>>>()?.into())
            }
            Shape::Seq(element) => {
                let (length, mut kinds) = (next()?, vec![]);
                slots(element, &mut kinds);
                let arrays = kinds.iter().map(|_| next()).collect::<CodeResult<Vec<Reg>>>()?;
                Val::seq(length, (**element).clone(), Items::Stored(arrays))
            }
        })
    }

    pub(super) fn shape_of(&self, value: &Val) -> Shape {
        match value {
            Val::Base(Kind::Float, _) => Shape::Float,
            Val::Base(Kind::Bool, _) => Shape::Bool,
            Val::Base(..) => Shape::Int,
            Val::Tuple(parts) => Shape::Tuple(parts.iter().map(|part| self.shape_of(part)).collect()),
            Val::Seq(seq) => Shape::Seq(Box::new(seq.shape.clone())),
        }
    }

    pub(super) fn bind(&mut self, pattern: PatternId, value: &Val) -> CodeResult<()> {
        match self.body.patterns[pattern] {
            Pattern::Local(local) => {
                self.locals.insert(local, value.clone());
            }
            Pattern::Pair(first, rest) => {
                let Val::Tuple(parts) = value else { return Err("a pattern does not fit its value".to_owned()) };
                let [a, b] = &parts[..] else { return Err("a pattern does not fit its value".to_owned()) };
                self.bind(first, a)?;
                self.bind(rest, b)?;
            }
        }
        Ok(())
    }

    /// Computes an expression.
    pub(super) fn expr(&mut self, id: ExprId) -> CodeResult<Val> {
        let body = self.body.clone();
        let at_end = std::mem::take(&mut self.at_end);
        match &body.exprs[id] {
            Expr::Int(value) => Ok(Val::Base(Kind::Int, self.code.int(*value))),
            Expr::Float(value) => Ok(Val::Base(Kind::Float, self.code.float(*value))),
            Expr::Bool(value) => Ok(Val::Base(Kind::Bool, self.code.bool(*value))),
            Expr::Char(value) => Ok(Val::Base(Kind::Int, self.code.int(i64::from(*value)))),
            Expr::Text(bytes) => {
                let codes: Vec<u64> = bytes.iter().map(|byte| u64::from(*byte)).collect();
                Ok(self.stored_array(&Shape::Int, bytes.len(), &[codes]))
            }
            Expr::Local(local) => self.locals.get(local).cloned().ok_or_else(|| "a variable is not bound".to_owned()),
            Expr::Definition(definition, _) => match self.m.c.env.definitions[*definition].kind {
                DefinitionKind::Value => match self.m.c.globals[*definition].clone() {
                    Some(value) => self.literal(&value, body.types[id]),
                    None => Err("a variable has no value".to_owned()),
                },
                _ => Ok(Val::unit()),
            },
            Expr::Pair(first, rest) => {
                let first = self.expr(*first)?;
                Ok(Val::pair(first, self.expr(*rest)?))
            }
            Expr::Call(..) if at_end && self.is_append(id) => {
                let mut parts = vec![];
                self.appended(id, &mut parts)?;
                self.append_at_end(&parts)
            }
            Expr::Call(function, argument) => self.call(id, *function, *argument),
            Expr::If(condition, then, otherwise) => {
                let condition = self.scalar(*condition)?;
                self.conditional(condition, [*then, *otherwise], body.types[id], at_end)
            }
            Expr::Let(..) => {
                let rest = self.bindings(id)?;
                self.at_end = at_end;
                self.expr(rest)
            }
            Expr::Each(each) => self.each(each, body.types[id]),
            Expr::Sequence(elements) => {
                let Shape::Seq(shape) = self.m.c.shape(body.types[id])? else { return Err("no sequence".to_owned()) };
                let values = elements.iter().map(|element| self.expr(*element)).collect::<CodeResult<Vec<Val>>>()?;
                let length = self.code.length(values.len() as u32);
                let arrays = self.room(length, &shape);
                self.code.meet();
                for (index, value) in values.iter().enumerate() {
                    let index = self.code.length(index as u32);
                    self.put(&arrays, &shape, index, value)?;
                }
                Ok(Val::seq(length, *shape, Items::Stored(arrays)))
            }
            Expr::Lambda(lambda) => {
                let captures = self.m.c.env.lambdas[*lambda].captures.clone();
                self.m.c.closures.insert(body.types[id], Callee::Lambda(*lambda, self.instance.clone()));
                let captured = captures.iter().map(|(outer, _)| self.locals.get(outer).cloned());
                let captured: Option<Vec<Val>> = captured.collect();
                Ok(Val::Tuple(captured.ok_or("a variable is not bound")?.into()))
            }
            Expr::Time(_) => Err("it measures time".to_owned()),
        }
    }

    /// Computes the values of nested `let`s and binds their patterns. Returns the expression behind them.
    pub(super) fn bindings(&mut self, id: ExprId) -> CodeResult<ExprId> {
        let body = self.body.clone();
        let mut rest = id;
        while let Expr::Let(pattern, value, next) = &body.exprs[rest] {
            if let Some(behind) = self.filters(rest)? {
                rest = behind;
                continue;
            }
            let value = self.expr(*value)?;
            self.bind(*pattern, &value)?;
            rest = *next;
        }
        Ok(rest)
    }

    /// Makes a sequence from columns that are part of the module.
    fn stored_array(&mut self, shape: &Shape, count: usize, columns: &[Vec<u64>]) -> Val {
        self.refused |= self.varying;
        let mut kinds = vec![];
        slots(shape, &mut kinds);
        let stored = kinds.iter().zip(columns).map(|(kind, column)| {
            let (name, array) = (self.m.array(self.code.bytes(*kind), column), self.code.reg(Class::B64));
            self.code.address_of(array, &name);
            array
        });
        let items = Items::Stored(stored.collect());
        let length = self.code.length(count as u32);
        Val::seq(length, shape.clone(), items)
    }

    /// Adds the bits of a scalar value to columns.
    fn add_bits(&self, value: &Value, columns: &mut dyn Iterator<Item = &mut Vec<u64>>) {
        if let Value::Pair(parts) = value {
            self.add_bits(&parts.0, columns);
            return self.add_bits(&parts.1, columns);
        }
        let bits = match value {
            Value::Int(value) if self.code.widths.wide_int => *value as u64,
            Value::Int(value) => u64::from(*value as u32),
            Value::Float(value) if self.code.widths.narrow_float => u64::from((*value as f32).to_bits()),
            Value::Float(value) => value.to_bits(),
            Value::Bool(value) => u64::from(*value),
            Value::Char(value) => u64::from(*value),
            Value::Pair(_) | Value::Seq(_) | Value::Function(_) => return,
        };
        if let Some(column) = columns.next() {
            column.push(bits);
        }
    }

    /// Makes the value of a variable of the program: a scalar, or a short sequence of scalars.
    fn literal(&mut self, value: &Value, ty: TypeId) -> CodeResult<Val> {
        let ty = self.m.c.resolve(ty);
        Ok(match (&self.m.c.env.types[ty], value) {
            (Nesl::Base(Base::Int), Value::Int(value)) => Val::Base(Kind::Int, self.code.int(*value)),
            (Nesl::Base(Base::Char), Value::Char(value)) => Val::Base(Kind::Int, self.code.int(i64::from(*value))),
            (Nesl::Base(Base::Float), Value::Float(value)) => Val::Base(Kind::Float, self.code.float(*value)),
            (Nesl::Base(Base::Bool), Value::Bool(value)) => Val::Base(Kind::Bool, self.code.bool(*value)),
            (Nesl::Pair(first, rest), Value::Pair(parts)) => {
                let (first, rest) = (*first, *rest);
                let first = self.literal(&parts.0, first)?;
                Val::pair(first, self.literal(&parts.1, rest)?)
            }
            (Nesl::Seq(element), Value::Seq(values)) if values.len() <= MAX_ARRAY => {
                let shape = self.m.c.shape(*element)?;
                if !shape.is_scalar() {
                    return Err("it uses a variable of the program that is a nested sequence".to_owned());
                }
                let mut kinds = vec![];
                slots(&shape, &mut kinds);
                let mut columns = vec![vec![]; kinds.len()];
                values.iter().for_each(|value| self.add_bits(value, &mut columns.iter_mut()));
                self.stored_array(&shape, values.len(), &columns)
            }
            _ => return Err("it uses a variable of the program that is long or no data".to_owned()),
        })
    }

    /// Computes an expression of a base type.
    pub(super) fn scalar(&mut self, id: ExprId) -> CodeResult<Reg> {
        match self.expr(id)? {
            Val::Base(_, reg) => Ok(reg),
            _ => Err("a scalar was expected".to_owned()),
        }
    }

    fn conditional(&mut self, condition: Reg, branches: [ExprId; 2], ty: TypeId, at_end: bool) -> CodeResult<Val> {
        let shape = self.m.c.shape(ty)?;
        let mut kinds = vec![];
        slots(&shape, &mut kinds);
        let results: Vec<Reg> = kinds.iter().map(|kind| self.code.of(*kind)).collect();
        let (other, end) = (self.code.label(), self.code.label());
        self.code.go_unless(condition, other);
        for (index, branch) in branches.into_iter().enumerate() {
            self.at_end = at_end;
            let value = self.expr(branch)?;
            let regs = self.stored(&value)?;
            for ((kind, to), from) in kinds.iter().zip(&results).zip(regs) {
                self.code.set(*kind, *to, from);
            }
            if index == 0 {
                self.code.go(end);
                self.code.place(other);
            }
        }
        self.code.place(end);
        self.unslot(&shape, &mut results.into_iter())
    }

    /// Computes the sequences of generators and checks that their lengths agree.
    pub(super) fn sources(&mut self, each: &Each) -> CodeResult<Vec<Rc<Seq>>> {
        let mut sources: Vec<Rc<Seq>> = vec![];
        for (_, source) in &each.generators {
            let Val::Seq(seq) = self.expr(*source)? else { return Err("a generator has no sequence".to_owned()) };
            if let Some(first) = sources.first()
                && first.length != seq.length
            {
                let differs = self.code.reg(Class::Pred);
                self.code.to(differs).setp((M::Ne, M::U32), first.length, seq.length);
                self.fail_if(differs);
            }
            sources.push(seq);
        }
        Ok(sources)
    }

    /// Binds the patterns of generators to the elements at an index.
    pub(super) fn bind_elements(&mut self, each: &Each, sources: &[Rc<Seq>], index: Reg) -> CodeResult<()> {
        for ((pattern, _), seq) in each.generators.iter().zip(sources) {
            let value = self.element(seq, index)?;
            self.bind(*pattern, &value)?;
        }
        Ok(())
    }

    /// Computes an apply-to-each. All bodies are computed, including those of elements that the filter drops:
    /// they may fail.
    fn each(&mut self, each: &Each, ty: TypeId) -> CodeResult<Val> {
        let Shape::Seq(shape) = self.m.c.shape(ty)? else { return Err("no sequence".to_owned()) };
        let sources = self.sources(each)?;
        let Some(length) = sources.first().map(|first| first.length) else { return Err("no generator".to_owned()) };
        self.burn(length);
        let arrays = self.room(length, &shape);
        let kept = match self.each_in_lanes(each, &sources, length, (&shape, &arrays)) {
            Some(kept) => kept,
            None if self.each_in_parts(each, &sources, length, (&shape, &arrays))? => length,
            None if self.each_in_tasks(each, &sources, length, (&shape, &arrays))? => length,
            None => self.each_in_order(each, &sources, length, (&shape, &arrays))?,
        };
        let Some(_) = each.filter else { return Ok(Val::seq(length, *shape, Items::Stored(arrays))) };
        self.release_behind(&shape, &arrays, kept);
        Ok(Val::seq(kept, *shape, Items::Stored(arrays)))
    }

    /// Releases the memory after the elements that a filter keeps, if they are one column of scalars and the
    /// last allocation.
    pub(super) fn release_behind(&mut self, shape: &Shape, arrays: &[Reg], kept: Reg) {
        let mut kinds = vec![];
        slots(shape, &mut kinds);
        if let ([kind], [array], true) = (&kinds[..], arrays, shape.is_scalar()) {
            let bytes = self.code.bytes(*kind);
            self.code.to(self.top).mad((M::Wide, M::U32), kept, bytes, array);
            self.code.to(self.top).add(M::U64, self.top, 7);
            self.code.to(self.top).and(M::B64, self.top, -8);
        }
    }

    /// Writes the loop of an apply-to-each that processes the elements in order. Returns the number of
    /// elements that the filter keeps.
    pub(super) fn each_in_order(
        &mut self,
        each: &Each,
        sources: &[Rc<Seq>],
        length: Reg,
        (shape, arrays): (&Shape, &[Reg]),
    ) -> CodeResult<Reg> {
        let kept = self.code.length(0);
        let around = self.begin(length);
        let mark = self.code.copy(Kind::Pointer, self.top);
        self.bind_elements(each, sources, around.index)?;
        let value = self.expr(each.body)?;
        match each.filter {
            None => self.put(arrays, shape, around.index, &value)?,
            Some(filter) => {
                let holds = self.scalar(filter)?;
                self.put(arrays, shape, kept, &value)?;
                let one = self.code.number(holds);
                self.code.to(kept).add(M::U32, kept, one);
            }
        }
        if shape.is_scalar() {
            self.code.to(self.top).mov(M::B64, mark);
        }
        self.end(around);
        Ok(kept)
    }

    fn call(&mut self, id: ExprId, function: ExprId, argument: ExprId) -> CodeResult<Val> {
        let body = self.body.clone();
        let (callee, captured) = match &body.exprs[function] {
            Expr::Definition(definition, instance)
                if !matches!(self.m.c.env.definitions[*definition].kind, DefinitionKind::Value) =>
            {
                (Callee::Definition(*definition, instance.clone()), Val::unit())
            }
            _ => {
                let value = self.expr(function)?;
                (self.m.c.callee(body.types[function]).map_err(|fault| fault.message.clone())?, value)
            }
        };
        if let Callee::Definition(definition, _) = callee {
            match self.m.c.env.definitions[definition].kind {
                DefinitionKind::Primitive(primitive) => return self.primitive_call(id, primitive, argument),
                DefinitionKind::Constructor(_) => return self.expr(argument),
                DefinitionKind::Declared => return Err("it calls a function that is not defined".to_owned()),
                DefinitionKind::Value => return Err("it calls a variable".to_owned()),
                DefinitionKind::Function(_) => {}
            }
        }
        let Val::Tuple(captured) = captured else { return Err("this is no function".to_owned()) };
        let mut taken = captured.to_vec();
        taken.push(self.expr(argument)?);
        self.invoke(&callee, &taken)
    }

    /// Calls a known function with its captured variables and its argument.
    fn invoke(&mut self, callee: &Callee, taken: &[Val]) -> CodeResult<Val> {
        let body = self.m.c.body(callee).map_err(|fault| fault.message.clone())?;
        let node = match callee {
            Callee::Definition(definition, _) => Node::Definition(*definition),
            Callee::Lambda(lambda, _) => Node::Lambda(*lambda),
            Callee::Serial(_) | Callee::Elements(_) => return Err("it has steps in an order".to_owned()),
        };
        if self.code.text.len() > super::MAX_TEXT {
            return Err("its code is too large".to_owned());
        }
        if self.expanded < MAX_EXPANDED && !self.m.c.recurs(node) {
            self.expanded += 1;
            let value = self.enter(callee, taken, body);
            self.expanded -= 1;
            return value;
        }
        if self.varying {
            self.refused = true;
            return Err("a call in a loop that is spread over lanes".to_owned());
        }
        self.m.has_calls |= self.code.team.is_some();
        if let Some(value) = self.call_or_branch(callee, taken, &body)? {
            return Ok(value);
        }
        let signature = self.m.function(callee, self.code.team.is_some())?;
        let (_, result) = self.m.c.shapes(callee)?;
        let mut regs = vec![];
        for value in taken {
            regs.extend(self.stored(value)?);
        }
        self.called(&signature, &result, &regs)
    }

    /// Calls a PTX function with the slots of its arguments.
    pub(super) fn called(&mut self, signature: &Signature, result: &Shape, regs: &[Reg]) -> CodeResult<Val> {
        let regs: Vec<Reg> = regs
            .iter()
            .zip(&signature.params)
            .map(|(reg, kind)| if *kind == Kind::Bool && reg.class == Class::Pred { self.code.number(*reg) } else { *reg })
            .collect();
        let Writer { top, limit, depth, fuel, queue, .. } = *self;
        let given = FrameRegisters { top, limit, depth, fuel, queue, team: self.code.team };
        let called = self.m.call(&mut self.code, signature, &given, &regs);
        let failed = self.code.reg(Class::Pred);
        self.code.to(failed).setp((M::Ne, M::U32), called.status, 0);
        self.fail_if(failed);
        self.code.to(self.top).mov(M::B64, called.top);
        self.code.to(self.fuel).mov(M::B64, called.fuel);
        self.returned(signature, result, &called.results)
    }

    /// Makes a value from the slots that a function has returned.
    pub(super) fn returned(&mut self, signature: &Signature, result: &Shape, regs: &[Reg]) -> CodeResult<Val> {
        let mut slots = vec![];
        for (reg, kind) in regs.iter().zip(&signature.results) {
            slots.push(match kind {
                Kind::Bool => {
                    let pred = self.code.reg(Class::Pred);
                    self.code.to(pred).setp((M::Ne, M::U32), reg, 0);
                    pred
                }
                _ => *reg,
            });
        }
        self.unslot(result, &mut slots.into_iter())
    }

    /// Computes a primitive; apply-to-eachs that it consumes are not stored if possible.
    fn primitive_call(&mut self, id: ExprId, primitive: Primitive, argument: ExprId) -> CodeResult<Val> {
        let body = self.body.clone();
        let (ty, result) = (body.types[argument], body.types[id]);
        match (primitive, &body.exprs[argument]) {
            (Primitive::Reduce(fold), Expr::Each(each)) if each.filter.is_none() && self.is_scalar_each(each) => {
                self.reduce_each(fold, each, ty)
            }
            (Primitive::Append, Expr::Pair(..)) => {
                let mut parts = vec![];
                self.appended(id, &mut parts)?;
                self.append(&parts)
            }
            _ => {
                let argument = self.expr(argument)?;
                self.primitive(primitive, &argument, ty, result)
            }
        }
    }

    pub(super) fn is_scalar_each(&mut self, each: &Each) -> bool {
        self.m.c.shape(self.body.types[each.body]).is_ok_and(|shape| shape.is_scalar())
    }

    /// Tells whether an expression is a `++` of two operands.
    fn is_append(&self, id: ExprId) -> bool {
        let Expr::Call(function, argument) = &self.body.exprs[id] else { return false };
        let Expr::Definition(definition, _) = &self.body.exprs[*function] else { return false };
        matches!(self.m.c.env.definitions[*definition].kind, DefinitionKind::Primitive(Primitive::Append))
            && matches!(self.body.exprs[*argument], Expr::Pair(..))
    }

    /// Lists the operands of nested `++` in order.
    fn appended(&mut self, id: ExprId, out: &mut Vec<Val>) -> CodeResult<()> {
        let body = self.body.clone();
        if self.is_append(id)
            && let Expr::Call(_, argument) = &body.exprs[id]
            && let Expr::Pair(first, second) = &body.exprs[*argument]
        {
            self.appended(*first, out)?;
            return self.appended(*second, out);
        }
        let value = self.expr(id)?;
        out.push(value);
        Ok(())
    }
}

/// Lists the columns of flat sequences: slots of length and pointer, and the kind of elements. Returns false
/// if there are nested sequences.
pub(super) fn flat_columns(shape: &Shape, slot: &mut usize, out: &mut Vec<(usize, usize, Kind)>) -> bool {
    match shape {
        Shape::Int | Shape::Float | Shape::Bool => {
            *slot += 1;
            true
        }
        Shape::Tuple(parts) => parts.iter().all(|part| flat_columns(part, slot, out)),
        Shape::Seq(element) => {
            let (length, mut kinds) = (*slot, vec![]);
            slots(element, &mut kinds);
            for (number, kind) in kinds.iter().enumerate() {
                out.push((length, length + 1 + number, *kind));
            }
            *slot += 1 + kinds.len();
            element.is_scalar()
        }
    }
}
