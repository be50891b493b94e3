//! Compilation of an expression or a function, with the functions that it calls.

use super::instance::variables;
use super::value::Context;
use super::{Callee, Compiler, Key, Lowering, Origin, internal};
use crate::core::{Body, DefId, Environment, Instantiate};
use crate::eval::{Run, Value};
use crate::flat::{self, FuncId};
use crate::infer::Widths;
use crate::types::{Base, Type as Nesl, TypeId};
use crate::vcode::{Layout, Type};
use cranelift_entity::SecondaryMap;
use std::rc::Rc;

/// A compiled expression and the layout of its result.
pub(crate) struct Compiled {
    pub(crate) program: flat::Program,
    pub(crate) layout: Layout,
    /// For each recursive function, whether it has a sequential form, or the reason why not.
    pub(crate) notes: Vec<String>,
}

/// Compiles a top-level expression.
pub(crate) fn compile(
    env: &mut Environment,
    globals: &SecondaryMap<DefId, Option<Value>>,
    instance_of: &dyn Fn(&Value) -> Vec<TypeId>,
    sequential: Option<Widths>,
    body: &Body,
) -> Run<Compiled> {
    // The remaining type variables of an expression are unconstrained. All classes contain `int`.
    let count = body.types.values().map(|&ty| variables(&env.types, ty)).max().unwrap_or(0);
    let ints = vec![env.types.base(Base::Int); count];
    let body = &Instantiate::new(&mut env.types, &ints).body(body);
    let mut compiler = Compiler::new(env, globals, instance_of, sequential);
    let main = compiler.program.functions.push(flat::Function::default());
    compiler.program.main = Some(main);
    let Some(result) = body.result else { return internal("an expression has no result") };
    let layout = compiler.layout(body.types[result]);
    let mut lowering = Lowering::new(&mut compiler, Rc::new(body.clone()), "MAIN".to_owned(), None);
    lowering.push_root();
    let function = lowering.finish(result)?;
    compiler.program.functions[main] = function;
    compiler.finish(layout)
}

/// Compiles a function whose type has no variables. Also returns the layout of its argument.
pub(crate) fn compile_function(
    env: &mut Environment,
    globals: &SecondaryMap<DefId, Option<Value>>,
    instance_of: &dyn Fn(&Value) -> Vec<TypeId>,
    sequential: Option<Widths>,
    definition: DefId,
) -> Run<(Compiled, Layout)> {
    let mut compiler = Compiler::new(env, globals, instance_of, sequential);
    let (name, ty) = (compiler.env.definitions[definition].name.to_string(), compiler.env.definitions[definition].scheme.ty);
    let Nesl::Function { argument, result, .. } = compiler.env.types[ty] else { return internal("this is no function") };
    let (argument, result) = (compiler.layout(argument), compiler.layout(result));
    let callee = Callee::Definition(definition, vec![]);
    let key = Key { callee, single: true, forms: vec![false; argument.sequences()], plain: false };
    compiler.program.main = Some(compiler.function(key, &name, Some(name.clone()))?);
    Ok((compiler.finish(result)?, argument))
}

impl Compiler<'_> {
    /// Compiles the called functions, and optimises.
    fn finish(mut self, layout: Layout) -> Run<Compiled> {
        let compiler = &mut self;
        while let Some((id, key)) = compiler.queue.pop() {
            compiler.lower(id, &key)?;
        }
        if cfg!(debug_assertions)
            && let Err(reason) = flat::verify(&compiler.program)
        {
            return internal(&format!("flatten: {reason}"));
        }
        flat::inline_calls(&mut compiler.program);
        if cfg!(debug_assertions)
            && let Err(reason) = flat::verify(&compiler.program)
        {
            return internal(&format!("inline_calls: {reason}"));
        }
        flat::remove_dead_values(&mut compiler.program);
        if cfg!(debug_assertions)
            && let Err(reason) = flat::verify(&compiler.program)
        {
            return internal(&format!("remove_dead_values: {reason}"));
        }
        Ok(Compiled { program: self.program, layout, notes: self.notes })
    }

    fn lower(&mut self, id: FuncId, key: &Key) -> Run<()> {
        if let Callee::Serial(index) = key.callee {
            return self.lower_serial(id, key, index);
        }
        if let Callee::Elements(index) = key.callee {
            return self.lower_elements(id, index);
        }
        if !key.single
            && !key.plain
            && let Some(form) = self.tail_loop(&key.callee)
        {
            return self.lower_loop(id, key, form);
        }
        if !key.single
            && !key.plain
            && !self.recurs_in_loops(&key.callee)
            && let Some(form) = self.sequential(&key.callee)
        {
            return self.lower_small(id, key, form);
        }
        if key.single
            && !key.plain
            && let Some(form) = self.loop_module(&key.callee)
        {
            return self.lower_rounds(id, key, form);
        }
        let body = self.body(&key.callee)?;
        let (name, source) = (self.program.functions[id].name.clone(), self.program.functions[id].source.clone());
        let captures = match &key.callee {
            Callee::Definition(..) | Callee::Serial(_) | Callee::Elements(_) => vec![],
            Callee::Lambda(lambda, _) => self.env.lambdas[*lambda].captures.clone(),
        };
        let argument = self.argument_type(&key.callee, &body)?;
        let mut lowering = Lowering::new(self, body.clone(), name, source);
        lowering.instance = match &key.callee {
            Callee::Definition(_, instance) | Callee::Lambda(_, instance) => instance.clone(),
            Callee::Serial(_) | Callee::Elements(_) => vec![],
        };
        lowering.push_root();
        if !key.single {
            let root = lowering.root();
            let segment = lowering.b.param(Type::Segdes, root.space);
            let context = Context { segment, space: lowering.pool_space(segment), single: false };
            lowering.push_level(context, Origin::Distribute(segment));
        }
        let context = lowering.context();
        let mut forms = key.forms.iter().copied();
        for (_, inner) in captures {
            let value = lowering.parameter(body.locals[inner].ty, context, &mut forms);
            lowering.bind_local(inner, value);
        }
        let value = lowering.parameter(argument, context, &mut forms);
        if let Some(pattern) = body.parameter {
            lowering.bind(pattern, value)?;
        }
        let Some(result) = body.result else { return internal("a function has no result") };
        let function = lowering.finish(result)?;
        self.program.functions[id] = function;
        Ok(())
    }
}
