//! The instances that a run refers to, made at their first use.

use super::Evaluation;
use super::code::{BodyCode, Code, CodeId, CodeKind, make};
use super::fault::{Fault, Run};
use crate::codes;
use crate::core::{Body, DefId, Expr, ExprId, Instantiate, LambdaId};
use crate::types::TypeId;
use std::rc::Rc;

impl Evaluation<'_> {
    /// Makes the code of a top-level expression.
    pub(super) fn top_level(&mut self, body: &Body) -> Rc<Code> {
        let int = self.env.types.base(crate::types::Base::Int);
        Rc::new(Code {
            kind: CodeKind::Body(BodyCode::new(body.clone())),
            instance: vec![],
            argument: int,
            result: int,
            name: "the top level".to_owned(),
            library: false,
        })
    }

    pub(super) fn code(&self, id: CodeId) -> Rc<Code> {
        self.state.codes.codes[id].clone()
    }

    /// Returns the instance that an expression of a body refers to.
    pub(super) fn target(&mut self, code: &BodyCode, expr: ExprId) -> Run<CodeId> {
        if let Some(id) = code.targets.borrow()[expr].expand() {
            return Ok(id);
        }
        let Expr::Definition(definition, instance) = &code.body.exprs[expr] else {
            return Fault::at_run_time("internal error: this is no definition; please report it");
        };
        let id = self.definition_code(*definition, instance)?;
        code.targets.borrow_mut()[expr] = id.into();
        Ok(id)
    }

    fn definition_code(&mut self, definition: DefId, instance: &[TypeId]) -> Run<CodeId> {
        if let Some(&id) = self.state.codes.definitions.get(&(definition, instance.to_vec())) {
            return Ok(id);
        }
        let code = Rc::new(make(self.env, definition, instance));
        let limited = instance.iter().chain([&code.argument, &code.result]);
        if !limited.copied().all(|ty| self.env.types.is_within_limits(ty)) {
            return Err(Fault::new(codes::TYPE_TOO_LARGE, format!("calls of `{}` nest types without end", code.name)));
        }
        let id = self.state.codes.codes.push(code);
        self.state.codes.definitions.insert((definition, instance.to_vec()), id);
        Ok(id)
    }

    /// Returns the instance of a function value within an instance.
    pub(super) fn lambda_code(&mut self, lambda: LambdaId, inside: &Code) -> CodeId {
        let key = (lambda, inside.instance.clone());
        if let Some(&id) = self.state.codes.lambdas.get(&key) {
            return id;
        }
        let body = self.env.lambdas[lambda].body.clone();
        let body = Instantiate::new(&mut self.env.types, &inside.instance).body(&body);
        let code = Rc::new(Code {
            kind: CodeKind::Body(BodyCode::new(body)),
            instance: inside.instance.clone(),
            argument: inside.argument,
            result: inside.result,
            name: format!("a function value in {}", inside.name),
            library: inside.library,
        });
        let id = self.state.codes.codes.push(code);
        self.state.codes.lambdas.insert(key, id);
        id
    }
}
