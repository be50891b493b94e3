//! Expressions as loop forms: a scalar that an apply-to-each computes by reductions of sequences.
//!
//! ```text
//! {{sum({x * y : x in r; y in c}) : c in columns} : r in rows}
//! ```
//!
//! Flattened, the products are a vector with an element for each of them. As a loop form, each sum is a loop of
//! its element, and takes the memory of its result. An expression has a loop form if its value is a scalar or a
//! tuple of scalars, if a reduction in it goes through sequences that several elements share or that are not
//! stored, and if [`tail_loop`](super::tail_loop) can write all of it. Sequences whose elements belong to one
//! element of the context each, such as the rows of a ragged matrix, are reduced by segments: the work is then
//! spread evenly however long they are.
//!
//! The form is compiled beside the flattened expression, which executes few elements with long sequences.

use super::callee::Elements;
use super::instance::visit;
use super::serial::free_locals;
use super::tail_loop::{LoopResult, LoopWriter, MAX_OPERANDS, Operands};
use super::value::{Context, Form, Val};
use super::{Callee, Compiler, Key, Lowering, Origin, internal};
use crate::core::{Body, DefId, DefinitionKind, Expr, ExprId, LocalId, Primitive};
use crate::eval::Run;
use crate::flat::{self, FuncId};
use crate::types::{Type as Nesl, TypeId};
use crate::vcode::{Shape, TailLoop, Type};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

/// Variables of an expression: those of its body, and those of the program that are sequences.
struct Variables {
    locals: Vec<LocalId>,
    globals: Vec<(DefId, TypeId, ExprId)>,
}

impl Lowering<'_, '_> {
    /// Compiles an expression as a loop of each element of the context. Returns `None` if it has no such form,
    /// or gains nothing by it.
    pub(super) fn element_loop(&mut self, id: ExprId) -> Run<Option<Val>> {
        let (body, context) = (self.body.clone(), self.context());
        let is_candidate = matches!(body.exprs[id], Expr::Call(..) | Expr::If(..) | Expr::Let(..));
        if !self.loops || context.single || !is_candidate || self.c.widths.is_none() || self.flattened.contains(&id) {
            return Ok(None);
        }
        if !self.is_scalar(body.types[id]) || !self.c.reduces(&body, id) {
            return Ok(None);
        }
        let variables = self.variables(id);
        let mut values = vec![];
        for local in &variables.locals {
            values.push(self.local(*local)?);
        }
        for (_, _, place) in &variables.globals {
            values.push(self.definition(*place)?);
        }
        let Ok(form) = self.element_form(id, &variables, &values) else {
            self.flattened.insert(id);
            return Ok(None);
        };
        let values: Vec<Val> = values.iter().map(|value| self.as_nested_parts(value, context)).collect();
        let mut args = vec![context.segment];
        values.iter().for_each(|value| value.vectors(&mut args));
        let types = variables.locals.iter().map(|local| body.locals[*local].ty);
        let types = types.chain(variables.globals.iter().map(|(_, ty, _)| *ty)).collect();
        let elements = Elements { body: body.clone(), instance: self.instance.clone(), expr: id, free: variables.locals, types };
        let callee = Callee::Elements(self.c.elements.len());
        self.c.elements.push(elements);
        let key = Key { callee, single: false, forms: vec![], plain: true };
        let fallback = self.c.function(key, "elements", None)?;
        Ok(Some(self.results(body.types[id], flat::Op::Loop(Arc::new(form), fallback), args)))
    }

    fn variables(&self, id: ExprId) -> Variables {
        let locals = free_locals(self.c.env, &self.body, &[id]);
        let mut globals: Vec<(DefId, TypeId, ExprId)> = vec![];
        visit(&self.body, id, &mut |place, expr| {
            if let Expr::Definition(definition, _) = expr
                && matches!(self.c.env.definitions[*definition].kind, DefinitionKind::Value)
                && !globals.iter().any(|(known, _, _)| known == definition)
            {
                globals.push((*definition, self.body.types[place], place));
            }
        });
        Variables { locals, globals }
    }

    fn element_form(&mut self, id: ExprId, variables: &Variables, values: &[Val]) -> LoopResult<TailLoop> {
        let body = self.body.clone();
        let (mut operands, mut results, mut own) = (Operands::default(), vec![], HashSet::new());
        let (mut locals, mut globals) = (HashMap::new(), HashMap::new());
        let mut values = values.iter();
        for local in &variables.locals {
            let (shape, from) = (self.c.shape(body.locals[*local].ty)?, operands.tables());
            locals.insert(*local, operands.add_nested(&shape)?);
            if values.next().is_some_and(is_dense) {
                own.extend(from..operands.tables());
            }
        }
        for (definition, ty, _) in &variables.globals {
            let shape = self.c.shape(*ty)?;
            globals.insert(*definition, operands.add_nested(&shape)?);
        }
        let result: Shape = self.c.shape(body.types[id])?;
        result.results(&mut results);
        if operands.list.is_empty() {
            return Err("all elements have the same value".to_owned());
        }
        if operands.list.len() + results.len() > MAX_OPERANDS {
            return Err("it has too many variables".to_owned());
        }
        LoopWriter::of_expression(self.c, body, (locals, globals), own, operands).expression(id, results)
    }

    /// Converts all sequences to parts of their pools.
    fn as_nested_parts(&mut self, value: &Val, context: Context) -> Val {
        match value {
            Val::Base(_) => value.clone(),
            Val::Pair(parts) => {
                let first = self.as_nested_parts(&parts.0, context);
                let rest = self.as_nested_parts(&parts.1, context);
                Val::pair(first, rest)
            }
            Val::Seq(seq) => {
                let (starts, lengths) = self.starts_and_lengths(seq, context);
                let elements = self.as_nested_parts(&seq.elements, seq.pool);
                Val::seq(Form::Virtual(starts, lengths), elements, seq.pool)
            }
            Val::Function(captured) => {
                Val::Function(Rc::new(captured.iter().map(|value| self.as_nested_parts(value, context)).collect()))
            }
        }
    }

    /// Makes a value whose vectors are parameters, and whose sequences are parts of pools.
    fn parts_parameter(&mut self, ty: TypeId, context: Context) -> Val {
        let ty = self.c.resolve(ty);
        match self.c.env.types[ty].clone() {
            Nesl::Base(base) => Val::Base(self.b.param(super::vector_type(base), context.space)),
            Nesl::Pair(first, rest) => {
                let first = self.parts_parameter(first, context);
                Val::pair(first, self.parts_parameter(rest, context))
            }
            Nesl::Seq(element) => {
                let (starts, lengths) = (self.b.param(Type::Int, context.space), self.b.param(Type::Int, context.space));
                let root = self.root();
                let pool = Context { segment: self.b.param(Type::Segdes, root.space), space: self.b.space(), single: false };
                let elements = self.parts_parameter(element, pool);
                Val::seq(Form::Virtual(starts, lengths), elements, pool)
            }
            Nesl::Function { identity, .. } => {
                let parts = match &self.c.env.types[identity] {
                    Nesl::Closure(_, parts) => parts.clone(),
                    _ => vec![],
                };
                Val::Function(Rc::new(parts.into_iter().map(|part| self.parts_parameter(part, context)).collect()))
            }
            Nesl::Data(..) | Nesl::Variable(_) | Nesl::Definition(_) | Nesl::Closure(..) => Val::Function(Rc::default()),
        }
    }
}

/// Tells whether a value has sequences, all with elements of their own.
fn is_dense(value: &Val) -> bool {
    let mut forms = vec![];
    value.forms(&mut forms);
    !forms.is_empty() && forms.iter().all(|is_virtual| !is_virtual)
}

impl Compiler<'_> {
    /// Tells whether an expression reduces a sequence, directly or in functions of the program or the library.
    fn reduces(&mut self, body: &Body, id: ExprId) -> bool {
        let mut called = vec![];
        visit(body, id, &mut |_, expr| {
            if let Expr::Definition(definition, _) = expr {
                called.push(*definition);
            }
        });
        called.into_iter().any(|definition| self.is_reduction(definition))
    }

    fn is_reduction(&mut self, definition: DefId) -> bool {
        if let Some(known) = self.reductions.get(&definition) {
            return *known;
        }
        self.reductions.insert(definition, false);
        let reduces = match self.env.definitions[definition].kind.clone() {
            DefinitionKind::Primitive(primitive) => matches!(primitive, Primitive::Reduce(_)),
            DefinitionKind::Function(body) => body.result.is_some_and(|result| self.reduces(&body, result)),
            DefinitionKind::Declared | DefinitionKind::Value | DefinitionKind::Constructor(_) => false,
        };
        self.reductions.insert(definition, reduces);
        reduces
    }

    /// Compiles the flattened form of an expression that has a loop form.
    pub(super) fn lower_elements(&mut self, id: FuncId, index: usize) -> Run<()> {
        let Some(elements) = self.elements.get(index).cloned() else { return internal("an expression is not known") };
        let (name, body) = (self.program.functions[id].name.clone(), elements.body.clone());
        let mut lowering = Lowering::new(self, body.clone(), name, None);
        lowering.instance = elements.instance;
        lowering.loops = false;
        lowering.b.span = body.spans[elements.expr];
        lowering.push_root();
        let root = lowering.root();
        let segment = lowering.b.param(Type::Segdes, root.space);
        let context = Context { segment, space: lowering.pool_space(segment), single: false };
        lowering.push_level(context, Origin::Distribute(segment));
        let mut free = elements.free.into_iter();
        for ty in elements.types {
            let value = lowering.parts_parameter(ty, context);
            if let Some(local) = free.next() {
                lowering.bind_local(local, value);
            }
        }
        let function = lowering.finish(elements.expr)?;
        self.program.functions[id] = function;
        Ok(())
    }
}
