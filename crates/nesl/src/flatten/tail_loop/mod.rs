//! Loop forms: code that each element of a context executes in a loop of its own.
//!
//! Input: the typed program. Output: [`TailLoop`]. In a context of many elements a call of a function with a
//! loop form is one operation, in which each element runs its own loop: memory and kernels do not depend on the
//! number of rounds. Expressions that reduce sequences become loop forms, too, see [`super::element_loop`].
//!
//! A function has a loop form if its result is a scalar or a tuple of scalars, each call of itself is the last
//! thing it does, and all other calls can be expanded. It may read sequences, take parts of them and reduce
//! them; a sequence that it passes on must be a part of the same parameter. Functions that it calls last are
//! expanded, too, so functions that call each other in turn are one loop. Conditions on constants are decided
//! here, so that an expanded recursion on a constant ends. Sequences that rounds make are never stored, see
//! [`sequence`].

mod fold;
mod operands;
mod sequence;

use super::callee::Node;
use super::small::CallLowering;
use super::value::Val as Vectors;
use super::{Callee, Compiler, Key, internal};
use crate::core::{Body, DefId, DefinitionKind, Expr, ExprId, LocalId, Pattern, PatternId, Primitive};
use crate::eval::{Run, Value};
use crate::flat;
use crate::types::{Base, Type as Nesl, TypeId};
use crate::vcode::{Check, Choice, LoopBlock, LoopEnd, Op, Reg, Shape, Step, TailLoop, Type};
pub(super) use operands::{LoopResult, Operands, Val};
use operands::{Part, Sequence};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

/// Maximum nesting of expanded functions.
const MAX_EXPANDED: u32 = 16;

/// Maximum number of operands and results of a loop.
pub(super) const MAX_OPERANDS: usize = 48;

/// Maximum number of steps of a loop.
const MAX_STEPS: usize = 1500;

/// Maximum length of a chain of calls that is searched for recursion.
const MAX_PATH: usize = 100;

/// Writes the round of a loop.
pub(super) struct LoopWriter<'c, 'e> {
    c: &'c mut Compiler<'e>,
    /// The function; `None` for an expression.
    root: Option<Callee>,
    /// The captured variables and the argument of a call.
    given: Val,
    body: Rc<Body>,
    locals: HashMap<LocalId, Val>,
    /// Variables of the program that are operands.
    globals: HashMap<DefId, Val>,
    /// The number of parameters, which are the first registers.
    parameters: usize,
    registers: Vec<Type>,
    /// Registers with a constant value: an int, or the bits of a float or a bool.
    constants: HashMap<Reg, i64>,
    steps: Vec<Step>,
    written: usize,
    expanded: u32,
    repeats: bool,
    /// Number of folds around the code that is written.
    depth: u32,
    /// Number of folds that have been written.
    folds: u32,
    /// Registers that are lengths of sequences.
    lengths: HashSet<Reg>,
    /// Tables whose elements belong to one element of the context each.
    own: HashSet<usize>,
    /// True if there is a fold over sequences that have no elements of their own.
    gains: bool,
    /// Parameters that are lengths of sequences that are never stored.
    extents: Vec<Reg>,
}

impl Compiler<'_> {
    /// Returns the loop form of a recursive function, if it has one.
    pub(super) fn tail_loop(&mut self, callee: &Callee) -> Option<Arc<TailLoop>> {
        let Callee::Definition(definition, _) = callee else { return None };
        self.widths?;
        if !self.recurs(Node::Definition(*definition)) {
            return None;
        }
        if let Some(known) = self.loops.get(callee) {
            return known.clone();
        }
        let form = self.loop_form(callee);
        if form.is_ok() {
            let name = self.name(callee).0;
            self.notes.push(format!("`{name}` is a loop of each element"));
        }
        let form = form.ok().map(Arc::new);
        self.loops.insert(callee.clone(), form.clone());
        form
    }

    /// Tells whether all recursion that a function reaches is that of functions with a loop form. Its own code
    /// is then better flattened.
    pub(super) fn recurs_in_loops(&mut self, callee: &Callee) -> bool {
        self.reaches_loops_only(callee, &mut vec![], &mut HashSet::new())
    }

    fn reaches_loops_only(&mut self, callee: &Callee, path: &mut Vec<Callee>, seen: &mut HashSet<Callee>) -> bool {
        let Callee::Definition(definition, _) = callee else { return false };
        if !self.recurs(Node::Definition(*definition)) || self.tail_loop(callee).is_some() || seen.contains(callee) {
            return true;
        }
        if path.contains(callee) || path.len() >= MAX_PATH {
            return false;
        }
        let Ok(body) = self.body(callee) else { return false };
        path.push(callee.clone());
        let calls_loops = body.exprs.values().all(|expr| match expr {
            Expr::Definition(definition, instance)
                if matches!(self.env.definitions[*definition].kind, DefinitionKind::Function(_)) =>
            {
                self.reaches_loops_only(&Callee::Definition(*definition, instance.clone()), path, seen)
            }
            Expr::Lambda(lambda) => !self.recurs(Node::Lambda(*lambda)),
            _ => true,
        });
        path.pop();
        if calls_loops {
            seen.insert(callee.clone());
        }
        calls_loops
    }

    fn loop_form(&mut self, callee: &Callee) -> LoopResult<TailLoop> {
        let (argument, result) = self.shapes(callee)?;
        if !result.is_scalar() {
            return Err("its result has sequences".to_owned());
        }
        let (mut operands, mut results) = (Operands::default(), vec![]);
        let given = operands.add(&argument)?;
        result.results(&mut results);
        if operands.list.len() + results.len() > MAX_OPERANDS {
            return Err("it has too many parameters".to_owned());
        }
        let (body, source) = (self.body(callee).map_err(|fault| fault.message)?, self.name(callee).0);
        let Some(id) = body.result else { return Err("it has no result".to_owned()) };
        let mut writer = LoopWriter::new(self, body, given.clone(), &operands);
        writer.root = Some(callee.clone());
        let Val::Tuple(given) = given else { return Err("no arguments".to_owned()) };
        writer.bind_argument(&given)?;
        let round = writer.tail(id)?;
        if !writer.repeats {
            return Err("it does not call itself last".to_owned());
        }
        Ok(writer.form(source, operands, results, round))
    }

    /// Compiles a function that is a call of a loop form.
    pub(super) fn lower_loop(&mut self, id: flat::FuncId, key: &Key, form: Arc<TailLoop>) -> Run<()> {
        let CallLowering { mut lowering, types, flattened, result } = self.call_lowering(id, key)?;
        let [argument] = types[..] else { return internal("a loop captures variables") };
        let context = lowering.context();
        let value: Vectors = lowering.parameter(argument, context, &mut key.forms.iter().copied());
        let value = lowering.as_parts(&value, context);
        let mut args = vec![context.segment];
        value.vectors(&mut args);
        let value = lowering.results(result, flat::Op::Loop(form, flattened), args);
        let mut results = vec![];
        value.vectors(&mut results);
        self.program.functions[id] = lowering.b.finish(results);
        Ok(())
    }
}

impl<'c, 'e> LoopWriter<'c, 'e> {
    pub(super) fn new(c: &'c mut Compiler<'e>, body: Rc<Body>, given: Val, operands: &Operands) -> Self {
        LoopWriter {
            c,
            root: None,
            given,
            body,
            locals: HashMap::new(),
            globals: HashMap::new(),
            parameters: operands.params.len(),
            registers: operands.params.clone(),
            constants: HashMap::new(),
            steps: vec![],
            written: 0,
            expanded: 0,
            repeats: false,
            depth: 0,
            folds: 0,
            lengths: operands.lengths.iter().copied().collect(),
            own: HashSet::new(),
            gains: false,
            extents: vec![],
        }
    }

    /// Returns a writer for an expression over these variables. `own` are the tables whose elements belong to one
    /// element of the context each.
    pub(super) fn of_expression(
        c: &'c mut Compiler<'e>,
        body: Rc<Body>,
        (locals, globals): (HashMap<LocalId, Val>, HashMap<DefId, Val>),
        own: HashSet<usize>,
        operands: Operands,
    ) -> ExpressionWriter<'c, 'e> {
        let mut writer = LoopWriter::new(c, body, Val::Tuple([].into()), &operands);
        (writer.locals, writer.globals, writer.own) = (locals, globals, own);
        ExpressionWriter { writer, operands }
    }

    /// Returns the loop form of written code.
    fn form(self, source: String, operands: Operands, results: Vec<Type>, round: LoopBlock) -> TailLoop {
        let may_fail = may_fail(&round);
        let Operands { list: operands, params, .. } = operands;
        let mut invariant = vec![true; params.len()];
        note_changes(&round, &mut invariant);
        let (registers, repeats) = (self.registers, self.repeats);
        let extents = self.extents;
        TailLoop { source, operands, params, invariant, results, registers, round, may_fail, repeats, extents }
    }
}

/// Writes the loop form of an expression.
pub(super) struct ExpressionWriter<'c, 'e> {
    writer: LoopWriter<'c, 'e>,
    operands: Operands,
}

impl ExpressionWriter<'_, '_> {
    /// Returns the loop form, unless nothing is gained by it.
    pub(super) fn expression(mut self, id: ExprId, results: Vec<Type>) -> LoopResult<TailLoop> {
        let value = self.writer.value(id)?;
        if !self.writer.gains {
            return Err("its sequences are reduced by segments".to_owned());
        }
        let end = LoopEnd::Return(slots_of(&[value]));
        let round = LoopBlock { steps: std::mem::take(&mut self.writer.steps), end };
        Ok(self.writer.form("apply-to-each".to_owned(), self.operands, results, round))
    }
}

impl LoopWriter<'_, '_> {
    fn reg(&mut self, ty: Type) -> Reg {
        self.registers.push(ty);
        self.registers.len() as Reg - 1
    }

    fn push(&mut self, step: Step) -> LoopResult<()> {
        self.written += 1;
        if self.written > MAX_STEPS {
            return Err("its code is too large".to_owned());
        }
        self.steps.push(step);
        Ok(())
    }

    fn constant(&mut self, ty: Type, bits: i64) -> LoopResult<Reg> {
        let bits = match (ty, self.c.widths) {
            (Type::Int, Some(widths)) if !widths.wide_int => i64::from(bits as i32),
            (Type::Float, Some(widths)) if widths.narrow_float => f64::from(f64::from_bits(bits as u64) as f32).to_bits() as i64,
            _ => bits,
        };
        let to = self.reg(ty);
        self.constants.insert(to, bits);
        self.push(Step::Const(to, bits))?;
        Ok(to)
    }

    fn op(&mut self, id: ExprId, op: Op, ty: Type, args: &[Reg]) -> LoopResult<Reg> {
        if let Some((ty, bits)) = self.folded(op, ty, args) {
            return self.constant(ty, bits);
        }
        if let (Type::Int, [a, b]) = (ty, args) {
            let is_zero = |reg: &Reg| self.constants.get(reg) == Some(&0);
            if matches!(op, Op::Add | Op::Subtract) && is_zero(b) {
                return Ok(*a);
            }
            if op == Op::Add && is_zero(a) {
                return Ok(*b);
            }
        }
        let to = self.reg(op.result(ty));
        let first = *args.first().ok_or("no operand")?;
        let mut all = [first; 3];
        all[..args.len()].copy_from_slice(args);
        let span = self.body.spans[id];
        self.push(Step::Op { to, op, ty, args: all, span })?;
        Ok(to)
    }

    /// Computes an operation on ints that are constants, so that conditions on them are decided here.
    fn folded(&self, op: Op, ty: Type, args: &[Reg]) -> Option<(Type, i64)> {
        let (a, b) = match *args {
            [a, b] if ty == Type::Int => (*self.constants.get(&a)?, *self.constants.get(&b)?),
            _ => return None,
        };
        let value = op.elementwise()?.of_scalars(ty, self.c.widths?, [a, b])?;
        Some((op.result(ty), value.ok()?.bits()))
    }

    fn bind(&mut self, pattern: PatternId, value: &Val) -> LoopResult<()> {
        match (self.body.patterns[pattern], value) {
            (Pattern::Local(local), _) => drop(self.locals.insert(local, value.clone())),
            (Pattern::Pair(first, rest), Val::Tuple(parts)) if parts.len() == 2 => {
                self.bind(first, &parts[0])?;
                self.bind(rest, &parts[1])?;
            }
            _ => return Err("a pattern does not fit its value".to_owned()),
        }
        Ok(())
    }

    /// Binds the parameter to the last of the captured variables and the argument.
    fn bind_argument(&mut self, given: &[Val]) -> LoopResult<()> {
        match (self.body.parameter, given.last()) {
            (Some(pattern), Some(argument)) => self.bind(pattern, argument),
            _ => Ok(()),
        }
    }

    /// Writes the code of an expression in the body of a function.
    fn within<T>(
        &mut self,
        callee: &Callee,
        given: &[Val],
        write: impl FnOnce(&mut Self, ExprId) -> LoopResult<T>,
    ) -> LoopResult<T> {
        if self.expanded >= MAX_EXPANDED {
            return Err("its calls nest too deeply".to_owned());
        }
        let body = self.c.body(callee).map_err(|fault| fault.message)?;
        let Some(result) = body.result else { return Err("it calls a function without a result".to_owned()) };
        let captures = match callee {
            Callee::Lambda(lambda, _) => self.c.env.lambdas[*lambda].captures.clone(),
            Callee::Definition(..) | Callee::Serial(_) | Callee::Elements(_) => vec![],
        };
        let body = std::mem::replace(&mut self.body, body);
        let locals = std::mem::take(&mut self.locals);
        self.expanded += 1;
        for ((_, inner), value) in captures.iter().zip(given) {
            self.locals.insert(*inner, value.clone());
        }
        let written = self.bind_argument(given).and_then(|()| write(self, result));
        self.expanded -= 1;
        (self.body, self.locals) = (body, locals);
        written
    }

    /// Writes an expression whose value is that of the function, and ends the block.
    fn tail(&mut self, id: ExprId) -> LoopResult<LoopBlock> {
        let before = std::mem::take(&mut self.steps);
        let locals = self.locals.clone();
        let end = self.end(id);
        self.locals = locals;
        let steps = std::mem::replace(&mut self.steps, before);
        Ok(LoopBlock { steps, end: end? })
    }

    fn end(&mut self, id: ExprId) -> LoopResult<LoopEnd> {
        let body = self.body.clone();
        let mut last = id;
        while let Expr::Let(pattern, value, next) = &body.exprs[last] {
            let value = self.value(*value)?;
            self.bind(*pattern, &value)?;
            last = *next;
        }
        match &body.exprs[last] {
            Expr::If(condition, then, otherwise) => {
                let condition = self.scalar(*condition)?;
                match self.constants.get(&condition) {
                    Some(0) => self.end(*otherwise),
                    Some(_) => self.end(*then),
                    None => {
                        let then = self.tail(*then)?;
                        Ok(LoopEnd::If(condition, Box::new((then, self.tail(*otherwise)?))))
                    }
                }
            }
            Expr::Call(function, argument) => {
                let Some((callee, given)) = self.called(*function, *argument)? else { return self.returned(last) };
                if self.root.as_ref() == Some(&callee) {
                    self.repeats = true;
                    let given = Val::Tuple(given.into());
                    if !has_tables_of(&given, &self.given) {
                        return Err("it makes sequences".to_owned());
                    }
                    return Ok(LoopEnd::Again(slots_of(&[given])));
                }
                self.within(&callee, &given, |w, result| w.end(result))
            }
            _ => self.returned(last),
        }
    }

    fn returned(&mut self, id: ExprId) -> LoopResult<LoopEnd> {
        let value = self.value(id)?;
        Ok(LoopEnd::Return(slots_of(&[value])))
    }

    /// Returns a called function of the program or the library, with the captured variables and the argument.
    /// Returns `None` for a primitive or a constructor.
    fn called(&mut self, function: ExprId, argument: ExprId) -> LoopResult<Option<(Callee, Vec<Val>)>> {
        let body = self.body.clone();
        let (callee, captured) = match &body.exprs[function] {
            Expr::Definition(definition, instance) => match self.c.env.definitions[*definition].kind {
                DefinitionKind::Function(_) => (Callee::Definition(*definition, instance.clone()), vec![]),
                DefinitionKind::Primitive(_) | DefinitionKind::Constructor(_) => return Ok(None),
                DefinitionKind::Declared | DefinitionKind::Value => return Err("it calls no function".to_owned()),
            },
            _ => {
                let Val::Tuple(captured) = self.value(function)? else { return Err("this is no function".to_owned()) };
                (self.c.callee(body.types[function]).map_err(|fault| fault.message)?, captured.to_vec())
            }
        };
        if let Callee::Definition(definition, _) = &callee
            && !matches!(self.c.env.definitions[*definition].kind, DefinitionKind::Function(_))
        {
            return Err("it calls a primitive as a value".to_owned());
        }
        let mut given = captured;
        given.push(self.value(argument)?);
        Ok(Some((callee, given)))
    }

    fn scalar(&mut self, id: ExprId) -> LoopResult<Reg> {
        match self.value(id)? {
            Val::Scalar(reg) => Ok(reg),
            Val::Tuple(_) | Val::Seq(_) => Err("a scalar was expected".to_owned()),
        }
    }

    /// Writes an expression.
    fn value(&mut self, id: ExprId) -> LoopResult<Val> {
        let body = self.body.clone();
        Ok(match &body.exprs[id] {
            Expr::Int(value) => Val::Scalar(self.constant(Type::Int, *value)?),
            Expr::Float(value) => Val::Scalar(self.constant(Type::Float, value.to_bits() as i64)?),
            Expr::Bool(value) => Val::Scalar(self.constant(Type::Bool, i64::from(*value))?),
            Expr::Char(value) => Val::Scalar(self.constant(Type::Int, i64::from(*value))?),
            Expr::Local(local) => self.locals.get(local).cloned().ok_or("a variable is not bound")?,
            Expr::Definition(definition, _) => match self.c.env.definitions[*definition].kind {
                DefinitionKind::Value if self.globals.contains_key(definition) => self.globals[definition].clone(),
                DefinitionKind::Value => {
                    let Some(value) = self.c.globals[*definition].clone() else {
                        return Err("a variable has no value".to_owned());
                    };
                    self.literal(&value, body.types[id])?
                }
                _ => Val::Tuple([].into()),
            },
            Expr::Pair(first, rest) => {
                let first = self.value(*first)?;
                Val::Tuple([first, self.value(*rest)?].into())
            }
            Expr::Call(function, argument) => match self.called(*function, *argument)? {
                Some((callee, _)) if self.root.as_ref() == Some(&callee) => {
                    return Err("a call of itself is not its last one".to_owned());
                }
                Some((callee, given)) => self.within(&callee, &given, |w, result| w.value(result))?,
                None => self.primitive(id, *function, *argument)?,
            },
            Expr::If(condition, then, otherwise) => self.conditional(*condition, *then, *otherwise, body.types[id])?,
            Expr::Let(..) => {
                let mut last = id;
                while let Expr::Let(pattern, value, next) = &body.exprs[last] {
                    let value = self.value(*value)?;
                    self.bind(*pattern, &value)?;
                    last = *next;
                }
                self.value(last)?
            }
            Expr::Lambda(lambda) => {
                // The code of a function value is found by its type, which must not have variables.
                let captures = self.c.env.lambdas[*lambda].captures.clone();
                let captured = captures.iter().map(|(outer, _)| self.locals.get(outer).cloned()).collect::<Option<Vec<Val>>>();
                Val::Tuple(captured.ok_or("a variable is not bound")?.into())
            }
            Expr::Each(each) => {
                let each = self.each(id, each)?;
                self.require_items(&each)?;
                Val::Seq(each)
            }
            Expr::Sequence(items) => {
                let items = items.iter().map(|item| self.value(*item)).collect::<LoopResult<Vec<Val>>>()?;
                self.list(items)?
            }
            Expr::Text(_) | Expr::Time(_) => return Err("it has texts or a timer".to_owned()),
        })
    }

    fn conditional(&mut self, condition: ExprId, then: ExprId, otherwise: ExprId, ty: TypeId) -> LoopResult<Val> {
        let condition = self.scalar(condition)?;
        match self.constants.get(&condition) {
            Some(0) => return self.value(otherwise),
            Some(_) => return self.value(then),
            None => {}
        }
        self.chosen(condition, ty, |w| w.value(then), |w| w.value(otherwise))
    }

    /// Writes two branches. Sequences that they return must be parts of one table.
    fn chosen(
        &mut self,
        condition: Reg,
        ty: TypeId,
        then: impl FnOnce(&mut Self) -> LoopResult<Val>,
        otherwise: impl FnOnce(&mut Self) -> LoopResult<Val>,
    ) -> LoopResult<Val> {
        let shape = self.c.shape(ty)?;
        let (then, value) = self.branch(then)?;
        let (otherwise, other) = self.branch(otherwise)?;
        if !has_tables_of(&value, &other) {
            return Err("it chooses between sequences".to_owned());
        }
        let mut types = vec![];
        slot_types(&shape, &mut types);
        let results: Vec<Reg> = types.into_iter().map(|ty| self.reg(ty)).collect();
        let mut lists = vec![];
        for (mut steps, value) in [(then, &value), (otherwise, &other)] {
            steps.extend(results.iter().zip(slots_of(std::slice::from_ref(value))).map(|(to, from)| Step::Copy(*to, from)));
            lists.push(steps);
        }
        let (Some(otherwise), Some(then)) = (lists.pop(), lists.pop()) else { return Err("a branch is missing".to_owned()) };
        self.push(Step::Choose(condition, then, otherwise))?;
        Ok(unslot(&value, &mut results.into_iter()))
    }

    /// Writes the steps of a branch.
    fn branch(&mut self, write: impl FnOnce(&mut Self) -> LoopResult<Val>) -> LoopResult<(Vec<Step>, Val)> {
        let before = std::mem::take(&mut self.steps);
        let (locals, constants) = (self.locals.clone(), self.constants.clone());
        let value = write(self);
        (self.locals, self.constants) = (locals, constants);
        let steps = std::mem::replace(&mut self.steps, before);
        Ok((steps, value?))
    }

    /// Makes the value of a variable of the program.
    fn literal(&mut self, value: &Value, ty: TypeId) -> LoopResult<Val> {
        let ty = self.c.resolve(ty);
        Ok(Val::Scalar(match (&self.c.env.types[ty], value) {
            (Nesl::Base(Base::Int), Value::Int(value)) => self.constant(Type::Int, *value)?,
            (Nesl::Base(Base::Char), Value::Char(value)) => self.constant(Type::Int, i64::from(*value))?,
            (Nesl::Base(Base::Float), Value::Float(value)) => self.constant(Type::Float, value.to_bits() as i64)?,
            (Nesl::Base(Base::Bool), Value::Bool(value)) => self.constant(Type::Bool, i64::from(*value))?,
            (Nesl::Pair(first, rest), Value::Pair(parts)) => {
                let (first, rest) = (*first, *rest);
                let first = self.literal(&parts.0, first)?;
                return Ok(Val::Tuple([first, self.literal(&parts.1, rest)?].into()));
            }
            _ => return Err("it uses a variable of the program that is no scalar".to_owned()),
        }))
    }

    fn primitive(&mut self, id: ExprId, function: ExprId, argument: ExprId) -> LoopResult<Val> {
        use Primitive as P;
        let body = self.body.clone();
        let Expr::Definition(definition, _) = body.exprs[function] else { return Err("this is no primitive".to_owned()) };
        let primitive = match self.c.env.definitions[definition].kind {
            DefinitionKind::Primitive(primitive) => primitive,
            _ => return self.value(argument),
        };
        if let (P::Require, Expr::Pair(condition, text)) = (primitive, &body.exprs[argument])
            && let Expr::Text(text) = &body.exprs[*text]
        {
            let condition = self.scalar(*condition)?;
            self.push(Step::Require(condition, String::from_utf8_lossy(text).into(), body.spans[id]))?;
            return Ok(Val::Scalar(self.constant(Type::Bool, 1)?));
        }
        let value = match primitive {
            P::Reduce(_) => self.consumed(argument)?,
            _ => self.value(argument)?,
        };
        if let Some(value) = self.of_sequence(id, primitive, &value)? {
            return Ok(value);
        }
        let regs = slots_of(std::slice::from_ref(&value));
        let [first, ..] = regs[..] else { return Err("a primitive without operands".to_owned()) };
        let ty = self.registers[first as usize];
        let (is_float, to_float) = (ty == Type::Float, self.base_type(body.types[id]) == Some(Type::Float));
        Ok(Val::Scalar(match primitive {
            P::Negate => {
                let zero = self.constant(ty, 0)?;
                self.op(id, Op::Subtract, ty, &[zero, first])?
            }
            P::CharCode => first,
            P::CodeChar => {
                self.push(Step::Check(Check::Code, [first; 3], body.spans[id]))?;
                first
            }
            P::IntToAny | P::AsFloat if to_float && !is_float => self.op(id, Op::IntToFloat, Type::Int, &[first])?,
            P::IntToAny | P::AsFloat => first,
            P::FloatToAny if to_float => first,
            P::Elementwise(operation) if Op::from(operation).operands().len() == regs.len() => {
                let op = Op::from(operation);
                if ty == Type::Bool && op.choice() == Choice::Number {
                    return Err("it compares bools".to_owned());
                }
                self.op(id, op, ty, &regs)?
            }
            _ => return Err("it calls a primitive that is not for scalars".to_owned()),
        }))
    }

    fn base_type(&mut self, ty: TypeId) -> Option<Type> {
        match self.c.shape(ty).ok()? {
            Shape::Int => Some(Type::Int),
            Shape::Float => Some(Type::Float),
            Shape::Bool => Some(Type::Bool),
            Shape::Tuple(_) | Shape::Seq(_) => None,
        }
    }
}

/// Makes a value like another one from registers.
fn unslot(like: &Val, regs: &mut dyn Iterator<Item = Reg>) -> Val {
    match like {
        Val::Tuple(parts) => Val::Tuple(parts.iter().map(|part| unslot(part, regs)).collect()),
        Val::Seq(seq) => match &**seq {
            Sequence::Part(part) => {
                let (start, length) = (regs.next().unwrap_or(0), regs.next().unwrap_or(0));
                Val::Seq(Rc::new(Sequence::Part(Part { start, length, ..part.clone() })))
            }
            _ => like.clone(),
        },
        Val::Scalar(_) => Val::Scalar(regs.next().unwrap_or(0)),
    }
}

/// Lists the types of the registers of values of a shape.
fn slot_types(shape: &Shape, out: &mut Vec<Type>) {
    match shape {
        Shape::Seq(_) => out.extend([Type::Int, Type::Int]),
        Shape::Tuple(parts) => parts.iter().for_each(|part| slot_types(part, out)),
        Shape::Int => out.push(Type::Int),
        Shape::Float => out.push(Type::Float),
        Shape::Bool => out.push(Type::Bool),
    }
}

/// Lists the registers of values.
fn slots_of(values: &[Val]) -> Vec<Reg> {
    let mut out = vec![];
    let mut open: Vec<&Val> = values.iter().rev().collect();
    while let Some(value) = open.pop() {
        match value {
            Val::Scalar(reg) => out.push(*reg),
            Val::Tuple(parts) => open.extend(parts.iter().rev()),
            Val::Seq(seq) => {
                if let Sequence::Part(part) = &**seq {
                    out.extend([part.start, part.length]);
                }
            }
        }
    }
    out
}

/// Tells whether the sequences of a value are parts of the same tables as those of another one.
fn has_tables_of(value: &Val, other: &Val) -> bool {
    match (value, other) {
        (Val::Tuple(a), Val::Tuple(b)) => a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| has_tables_of(a, b)),
        (Val::Seq(a), Val::Seq(b)) => match (&**a, &**b) {
            (Sequence::Part(a), Sequence::Part(b)) => a.table == b.table,
            _ => false,
        },
        (Val::Scalar(_), Val::Scalar(_)) => true,
        _ => false,
    }
}

fn may_fail(block: &LoopBlock) -> bool {
    let inner = match &block.end {
        LoopEnd::If(_, branches) => may_fail(&branches.0) || may_fail(&branches.1),
        LoopEnd::Return(_) | LoopEnd::Again(_) => false,
    };
    inner || block.steps.iter().any(Step::may_fail)
}

/// Finds the parameters that a round changes.
fn note_changes(block: &LoopBlock, invariant: &mut [bool]) {
    match &block.end {
        LoopEnd::If(_, branches) => {
            note_changes(&branches.0, invariant);
            note_changes(&branches.1, invariant);
        }
        LoopEnd::Again(regs) => {
            for (index, (own, reg)) in invariant.iter_mut().zip(regs).enumerate() {
                *own &= *reg as usize == index;
            }
        }
        LoopEnd::Return(_) => {}
    }
}
