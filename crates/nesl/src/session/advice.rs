//! Advice for run-time errors in code that a condition seems to guard.

use super::worker::Worker;
use crate::codes;
use crate::core::{Body, DefinitionKind, Expr, ExprId, Origin};
use crate::eval::Fault;
use broadloom_diag::Diagnostic;

impl Worker {
    /// Returns a run-time error, with advice if a condition seems to guard its code.
    pub(super) fn advised(&self, fault: &Fault, body: &Body) -> Diagnostic {
        let error = fault.diagnostic();
        let Some(span) = fault.span.filter(|_| fault.code == codes::RUN_TIME) else { return error };
        let user = self.env.definitions.values().filter(|known| known.origin == Origin::User);
        let functions =
            user.filter_map(|known| if let DefinitionKind::Function(body) = &known.kind { Some(&**body) } else { None });
        let values = self.env.lambdas.values().map(|lambda| &*lambda.body);
        for body in std::iter::once(body).chain(functions).chain(values) {
            let holds = |expr: ExprId| {
                let place = body.spans[expr];
                place.source == span.source && place.start <= span.start && span.end <= place.end
            };
            for expr in body.exprs.values() {
                match expr {
                    Expr::Each(each) if each.filter.is_some() && holds(each.body) => {
                        return error
                            .note("a filter does not guard the body: it is computed for all elements, and then some are kept")
                            .help("filter first, `{g(x) : x in {y in v | c(y)}}`, or use `if`, which does guard");
                    }
                    Expr::Call(function, argument) => {
                        let (Expr::Definition(callee, _), Expr::Pair(_, right)) =
                            (&body.exprs[*function], &body.exprs[*argument])
                        else {
                            continue;
                        };
                        let name = self.env.definitions[*callee].name.as_str();
                        if matches!(name, "and" | "or") && holds(*right) {
                            return error
                                .note(format!("`{name}` evaluates both of its sides"))
                                .help("`if a then b else f` evaluates `b` only if `a` is true");
                        }
                    }
                    _ => {}
                }
            }
        }
        error
    }
}
