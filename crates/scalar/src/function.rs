//! Functions: code that front ends pass to patterns, to be inlined into kernels.

use crate::body::{Body, Statement};
use crate::declaration::{AccessorDecl, ParameterDecl};
use crate::id::Id;
use crate::op::Op;
use crate::schedule::Schedule;
use crate::structure::Structure;
use crate::types::{Literal, Type};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A function of one thread: parameters, accessors, code, results. It is cheap to clone, and compared and
/// hashed by value, so it can be part of a key.
#[derive(Clone)]
pub struct Function(Arc<FunctionData>);

#[derive(PartialEq, Eq)]
struct FunctionData {
    hash: u64,
    name: String,
    parameters: Vec<ParameterDecl>,
    accessors: Vec<AccessorDecl>,
    body: Body,
    results: Vec<Id>,
}

impl Function {
    pub(crate) fn new(
        name: String,
        parameters: Vec<ParameterDecl>,
        accessors: Vec<AccessorDecl>,
        body: Body,
        results: Vec<Id>,
    ) -> Function {
        let mut hasher = DefaultHasher::new();
        // Names are not hashed, because they do not affect the result.
        parameters.iter().for_each(|parameter| parameter.ty.hash(&mut hasher));
        accessors.iter().for_each(|accessor| (accessor.kind, accessor.ty, accessor.rank).hash(&mut hasher));
        (&body, &results).hash(&mut hasher);
        Function(Arc::new(FunctionData { hash: hasher.finish(), name, parameters, accessors, body, results }))
    }

    /// Returns the name for texts and messages.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the declarations of the parameters, in order.
    pub fn parameters(&self) -> &[ParameterDecl] {
        &self.0.parameters
    }

    /// Returns the declarations of the accessors, in order.
    pub fn accessors(&self) -> &[AccessorDecl] {
        &self.0.accessors
    }

    /// Returns its code.
    pub fn body(&self) -> &Body {
        &self.0.body
    }

    /// Returns the estimated number of emitted operations.
    pub fn operations(&self) -> u64 {
        let operations = |op: &Op| match op {
            Op::Literal(_) | Op::Parameter(_) => 0,
            Op::Math(function, precision, _) => function.operations(*precision),
            _ => 1,
        };
        self.body().nodes().map(|(_, node)| operations(&node.op)).sum()
    }

    /// Estimates the number of times that each node is computed in a call: the iterations of the loops around
    /// it. A loop with an unknown number of iterations counts as `unknown`. Both sides of a condition count.
    /// Returns `None` if there are no loops.
    pub fn times(&self, unknown: u64) -> Option<Vec<u64>> {
        let has_loops = self.body().blocks().any(|(_, block)| block.loops > 0);
        has_loops.then(|| times(self.body(), self.results(), unknown))
    }

    /// Returns its results, as nodes of the body.
    pub fn results(&self) -> &[Id] {
        &self.0.results
    }

    /// Returns the type of each result, in order.
    pub fn result_types(&self) -> Vec<Type> {
        self.0.results.iter().map(|id| self.0.body.type_of(*id)).collect()
    }
}

/// Returns the number of times that each node is computed: 0 if it is not needed.
fn times(body: &Body, results: &[Id], unknown: u64) -> Vec<u64> {
    let structure = Structure::of(body);
    let schedule = Schedule::of(body, &structure, results);
    let mut of_block: Vec<u64> = vec![0; body.blocks().count()];
    of_block[Body::ENTRY.index()] = 1;
    // Blocks come before the blocks inside them.
    for block in &structure.order {
        let own = of_block[block.index()];
        for statement in &body.block(*block).statements {
            let rounds = match statement {
                Statement::For { start, end, step, .. } => rounds(body, [*start, *end, *step]).unwrap_or(unknown),
                Statement::While { .. } => unknown,
                _ => 1,
            };
            for inner in statement.blocks().into_iter().flatten() {
                of_block[inner.index()] = own.saturating_mul(rounds);
            }
        }
    }
    schedule.place_of.iter().map(|place| place.map_or(0, |(block, _)| of_block[block.index()])).collect()
}

/// Returns the number of iterations of a loop whose bounds are literals.
fn rounds(body: &Body, bounds: [Id; 3]) -> Option<u64> {
    let [start, end, step] = bounds.map(|id| body.literal(id).and_then(Literal::as_i128));
    let (distance, step) = (end?.checked_sub(start?)?, step?);
    let (distance, step) = if step < 0 { (-distance, -step) } else { (distance, step) };
    match (distance, step) {
        (_, 0) => None,
        (distance, _) if distance <= 0 => Some(0),
        (distance, step) => u64::try_from((distance + step - 1) / step).ok(),
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
