//! Calls, and definitions as values.

use super::instance::variables;
use super::value::Val;
use super::{Callee, Key, Lowering, internal};
use crate::core::{DefId, DefinitionKind, Expr, ExprId};
use crate::eval::{Fault, Run, Value};
use crate::flat;
use crate::types::{Base, Type as Nesl, TypeId};
use crate::vcode::{Check, Constant};
use std::rc::Rc;

impl Lowering<'_, '_> {
    /// Compiles a definition that is used as a value.
    pub(super) fn definition(&mut self, id: ExprId) -> Run<Val> {
        let Expr::Definition(definition, _) = self.body.exprs[id] else { return internal("this is no definition") };
        match self.c.env.definitions[definition].kind {
            DefinitionKind::Value => self.global(definition, self.body.types[id]),
            DefinitionKind::Function(_)
            | DefinitionKind::Primitive(_)
            | DefinitionKind::Declared
            | DefinitionKind::Constructor(_) => Ok(Val::Function(Rc::default())),
        }
    }

    fn global(&mut self, definition: DefId, ty: TypeId) -> Run<Val> {
        let Some(value) = self.c.globals[definition].clone() else { return Fault::at_run_time("the variable has no value") };
        let value = self.literal_value(&value, ty)?;
        Ok(self.brought(&value))
    }

    /// Makes a value of the outermost context from a constant.
    fn literal_value(&mut self, value: &Value, ty: TypeId) -> Run<Val> {
        let mut vectors = vec![];
        self.constants(std::slice::from_ref(value), ty, &mut vectors)?;
        Ok(self.held(ty, vectors))
    }

    /// Makes a value of the outermost context from constant vectors of the program.
    pub(super) fn held(&mut self, ty: TypeId, vectors: Vec<Constant>) -> Val {
        let root = self.root();
        let mut vectors = vectors.into_iter();
        let made = self.unflatten(
            ty,
            root,
            &mut |this, ty, space| {
                let constant = vectors.next().unwrap_or_else(|| super::value::zero(ty));
                this.b.constant(constant, space)
            },
            None,
        );
        self.with_pools(&made, root)
    }

    /// Lists the vectors of values of one type.
    fn constants(&mut self, values: &[Value], ty: TypeId, out: &mut Vec<Constant>) -> Run<()> {
        let ty = self.c.resolve(ty);
        match self.c.env.types[ty].clone() {
            Nesl::Base(base) => out.push(match base {
                Base::Int => Constant::Int(values.iter().map(Value::int).collect()),
                Base::Float => Constant::Float(values.iter().map(Value::float).collect()),
                Base::Bool => Constant::Bool(values.iter().map(Value::bool).collect()),
                Base::Char => Constant::Int(values.iter().map(|value| i64::from(value.char())).collect()),
            }),
            Nesl::Pair(first, rest) => {
                let firsts: Vec<Value> = values.iter().map(|value| value.parts().0.clone()).collect();
                let rests: Vec<Value> = values.iter().map(|value| value.parts().1.clone()).collect();
                self.constants(&firsts, first, out)?;
                self.constants(&rests, rest, out)?;
            }
            Nesl::Seq(element) => {
                out.push(Constant::Segdes(values.iter().map(|value| value.length() as i64).collect()));
                if self.base(element) == Some(Base::Char) {
                    out.push(Constant::Text(match values {
                        [text] => text.bytes(),
                        texts => texts.iter().flat_map(|text| text.bytes().to_vec()).collect(),
                    }));
                    return Ok(());
                }
                let elements: Vec<Value> = values.iter().flat_map(|value| value.elements().iter().cloned()).collect();
                self.constants(&elements, element, out)?;
            }
            Nesl::Function { identity, .. } => {
                let Nesl::Closure(lambda, parts) = self.c.env.types[identity].clone() else { return Ok(()) };
                if let Some(value) = values.first() {
                    let (types, instance) = (&self.c.env.types, (self.c.instance_of)(value));
                    let needed = self.c.env.lambdas[lambda].body.types.values().map(|&ty| variables(types, ty)).max();
                    let known = instance.len() >= needed.unwrap_or(0) && instance.iter().all(|&ty| variables(types, ty) == 0);
                    // The type determines the types that replace the variables of a polymorphic value here.
                    if known || self.c.lambda_type(lambda).is_none() {
                        self.c.closures.insert(ty, Callee::Lambda(lambda, instance));
                    } else {
                        self.c.callee(ty)?;
                    }
                }
                let captures = self.c.env.lambdas[lambda].captures.clone();
                for ((_, inner), part) in captures.into_iter().zip(parts) {
                    let captured = |value: &Value| match value {
                        Value::Function(function) => {
                            function.captured.iter().find(|(local, _)| *local == inner).map(|(_, value)| value.clone())
                        }
                        _ => None,
                    };
                    let captured: Option<Vec<Value>> = values.iter().map(captured).collect();
                    let Some(captured) = captured else { return internal("a captured variable has no value") };
                    self.constants(&captured, part, out)?;
                }
            }
            Nesl::Data(..) | Nesl::Variable(_) | Nesl::Definition(_) | Nesl::Closure(..) => {}
        }
        Ok(())
    }

    pub(super) fn call(&mut self, id: ExprId, function: ExprId, argument: ExprId) -> Run<Val> {
        let body = self.body.clone();
        let (callee, captured) = match &body.exprs[function] {
            Expr::Definition(definition, instance)
                if !matches!(self.c.env.definitions[*definition].kind, DefinitionKind::Value) =>
            {
                (Callee::Definition(*definition, instance.clone()), Val::Function(Rc::default()))
            }
            _ => {
                let value = self.expr(function)?;
                (self.c.callee(body.types[function])?, value)
            }
        };
        let value = self.expr(argument)?;
        self.apply(&callee, captured, value, body.types[argument], body.types[id])
    }

    /// Calls known code.
    pub(super) fn apply(
        &mut self,
        callee: &Callee,
        captured: Val,
        argument: Val,
        argument_type: TypeId,
        result: TypeId,
    ) -> Run<Val> {
        if let Callee::Definition(definition, _) = callee {
            match self.c.env.definitions[*definition].kind {
                DefinitionKind::Primitive(primitive) => return self.primitive(primitive, argument, argument_type, result),
                DefinitionKind::Constructor(_) => return Ok(argument),
                DefinitionKind::Declared => {
                    let name = self.c.env.definitions[*definition].name.to_string();
                    let message = format!("`{name}` was declared but is not defined with this type");
                    let text: Rc<[u8]> = message.into_bytes().into();
                    let text = self.shared(Constant::Text(text[..].into()), text.len());
                    self.fail(Check::Undefined, &text)?;
                    let context = self.context();
                    return self.neutral(result, context);
                }
                DefinitionKind::Function(_) => {}
                DefinitionKind::Value => return internal("a variable was called"),
            }
        }
        let context = self.context();
        let (captured, argument) = (self.argument(&captured), self.argument(&argument));
        let (mut forms, mut args) = (vec![], vec![]);
        if !context.single {
            args.push(context.segment);
        }
        for value in [&captured, &argument] {
            value.forms(&mut forms);
            value.vectors(&mut args);
        }
        let (name, user) = self.c.name(callee);
        let key = Key { callee: callee.clone(), single: context.single, forms, plain: false };
        let id = self.c.function(key, &name, user.then(|| name.clone()))?;
        Ok(self.results(result, flat::Op::Call(id), args))
    }
}
