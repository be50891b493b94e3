//! Flattening: nested data parallelism to operations on flat vectors (Blelloch and Sabot; Palmer, Prins and
//! Westfold).
//!
//! Input: the typed program. Output: one [`flat::Program`](crate::flat::Program) per top-level expression.
//!
//! All code is lifted: it is executed for the `n` elements of a context at once, and every scalar is a vector
//! of `n` elements. The outermost context has one element. An apply-to-each opens the context of the elements
//! of its sequences. An `if` inside one opens a context for each branch, with the elements that take the
//! branch. A function is compiled once for the context of one element, where an `if` is a real branch, and
//! once for contexts of any size. The latter serves every depth, since deeper nesting is only a larger
//! context.
//!
//! - A variable is brought into a context at its use there. Scalars are copied to every element; sequences
//!   are shared, see [`value`]. A function is compiled for the forms, dense or virtual, of its sequences.
//! - Functions are known: the type of a function identifies it, so a call refers to code and a function value
//!   is its captured variables.
//! - A branch and the body of an apply-to-each that may recur are guarded by a real branch on their context
//!   being empty, which ends the recursion. A function that may recur is therefore never called for an empty
//!   context. An apply-to-each over a sequence that is written out, `[a, b]`, needs no guard.
//! - A function over scalars whose recursion is a tail call is one operation, see [`tail_loop`]. So is a scalar
//!   expression that reduces shared sequences, see [`element_loop`].
//! - Branches that are scalar and cannot fail are both computed, and the result is selected.

mod call;
mod callee;
mod compile;
mod element_loop;
mod expr;
mod generic;
mod instance;
mod operation;
mod primitive;
mod rounds;
mod sequential;
mod serial;
mod small;
mod tail_loop;
mod value;

pub(crate) use callee::Callee;
pub(crate) use compile::{Compiled, compile, compile_function};

use crate::codes;
use crate::core::{Body, DefId, Environment, ExprId, Instantiate, LambdaId, LocalId};
use crate::eval::{Fault, Run, Value};
use crate::flat::{self, Builder, FuncId, SpaceId, VarId};
use crate::hash::QuickMap;
use crate::infer::Widths;
use crate::types::{Base, Type as Nesl, TypeId};
use crate::vcode::{Constant, Layout, Sequential, TailLoop, Type};
use callee::{Elements, Node, Steps};
use cranelift_entity::SecondaryMap;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use value::{Context, Form, Sequence, Val};

/// Maximum number of functions that one expression is compiled to.
const MAX_FUNCTIONS: usize = 20_000;

/// Types and contexts that a function is compiled for.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    callee: Callee,
    /// True if the context has one element.
    single: bool,
    /// True for each virtual sequence among those of the captured variables and the argument.
    forms: Vec<bool>,
    /// True for the flattened function itself, without a search for small calls.
    plain: bool,
}

/// Compiler of one expression.
pub(crate) struct Compiler<'e> {
    env: &'e mut Environment,
    globals: &'e SecondaryMap<DefId, Option<Value>>,
    /// Function that returns the types that replace the type variables in the code of a function value.
    instance_of: &'e dyn Fn(&Value) -> Vec<TypeId>,
    program: flat::Program,
    functions: HashMap<Key, FuncId>,
    queue: Vec<(FuncId, Key)>,
    bodies: HashMap<Callee, Rc<Body>>,
    /// The code of function values, by their types.
    closures: HashMap<TypeId, Callee>,
    /// Types of function values in definitions, with the numbers of their variables.
    lambda_types: HashMap<LambdaId, (TypeId, usize)>,
    recursive: HashMap<Node, bool>,
    /// Apply-to-eachs whose elements are computed one after the other.
    serial: Vec<Steps>,
    /// Expressions that have a loop form.
    elements: Vec<Elements>,
    /// For each definition that was looked at, whether it reduces a sequence.
    reductions: HashMap<DefId, bool>,
    /// The widths of numbers, if sequential forms are made.
    widths: Option<Widths>,
    /// The sequential forms of recursive functions.
    forms: HashMap<Callee, Option<Arc<Sequential>>>,
    /// The modules of functions whose recursion is a loop.
    loop_modules: HashMap<Callee, Option<Arc<Sequential>>>,
    /// The loop forms of recursive functions.
    loops: HashMap<Callee, Option<Arc<TailLoop>>>,
    /// For each recursive function, whether it has a sequential form, or the reason why not.
    notes: Vec<String>,
}

impl<'e> Compiler<'e> {
    fn new(
        env: &'e mut Environment,
        globals: &'e SecondaryMap<DefId, Option<Value>>,
        instance_of: &'e dyn Fn(&Value) -> Vec<TypeId>,
        widths: Option<Widths>,
    ) -> Self {
        Compiler {
            env,
            globals,
            instance_of,
            program: flat::Program::default(),
            functions: HashMap::new(),
            queue: vec![],
            bodies: HashMap::new(),
            closures: HashMap::new(),
            lambda_types: HashMap::new(),
            recursive: HashMap::new(),
            serial: vec![],
            elements: vec![],
            reductions: HashMap::new(),
            widths,
            forms: HashMap::new(),
            loop_modules: HashMap::new(),
            loops: HashMap::new(),
            notes: vec![],
        }
    }
}

pub(crate) fn internal<T>(reason: &str) -> Run<T> {
    Err(Fault::new(codes::RUN_TIME, format!("internal error: {reason}; please report it")))
}

impl Compiler<'_> {
    /// Returns the function for a key, to be compiled later if it is new.
    fn function(&mut self, key: Key, name: &str, source: Option<String>) -> Run<FuncId> {
        if let Some(&id) = self.functions.get(&key) {
            return Ok(id);
        }
        if self.functions.len() >= MAX_FUNCTIONS {
            let message = format!("`{name}` is called with more than {MAX_FUNCTIONS} types");
            return Err(Fault::new(codes::TYPE_TOO_LARGE, message));
        }
        let number = self.program.functions.len();
        let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
        let name = format!("{name}_{number}");
        let id = self.program.functions.push(flat::Function { name, source, ..flat::Function::default() });
        self.functions.insert(key.clone(), id);
        self.queue.push((id, key));
        Ok(id)
    }

    /// Replaces a datatype by its content.
    fn resolve(&mut self, mut ty: TypeId) -> TypeId {
        while let Nesl::Data(datatype, arguments) = self.env.types[ty].clone() {
            let content = self.env.datatypes[datatype].content;
            ty = Instantiate::new(&mut self.env.types, &arguments).ty(content);
        }
        ty
    }

    /// Returns the layout of a type; functions are represented by nothing.
    fn layout(&mut self, ty: TypeId) -> Layout {
        let ty = self.resolve(ty);
        match self.env.types[ty] {
            Nesl::Base(Base::Int) => Layout::Int,
            Nesl::Base(Base::Float) => Layout::Float,
            Nesl::Base(Base::Bool) => Layout::Bool,
            Nesl::Base(Base::Char) => Layout::Char,
            Nesl::Seq(element) => Layout::Seq(Box::new(self.layout(element))),
            Nesl::Pair(first, rest) => Layout::Pair(Box::new(self.layout(first)), Box::new(self.layout(rest))),
            _ => Layout::Nothing,
        }
    }
}

/// Relation of a context to the one around it.
#[derive(Clone, Copy)]
enum Origin {
    /// It is the outermost one.
    Root,
    /// Its elements are those of segments.
    Distribute(VarId),
    /// Its elements are those with a true flag.
    Restrict(VarId),
    /// It is the same context, in a separate block.
    Scope,
}

struct Level {
    context: Context,
    origin: Origin,
    locals: QuickMap<LocalId, Val>,
}

/// Lowering of one function.
struct Lowering<'c, 'e> {
    c: &'c mut Compiler<'e>,
    b: Builder,
    body: Rc<Body>,
    instance: Vec<TypeId>,
    levels: Vec<Level>,
    /// The spaces of the elements of segment descriptors.
    pools: QuickMap<VarId, SpaceId>,
    /// True if expressions may become loops of elements.
    loops: bool,
    /// Expressions that have no loop form.
    flattened: HashSet<ExprId>,
}

impl<'c, 'e> Lowering<'c, 'e> {
    fn new(c: &'c mut Compiler<'e>, body: Rc<Body>, name: String, source: Option<String>) -> Self {
        let b = Builder::new(name, source);
        Lowering {
            c,
            b,
            body,
            instance: vec![],
            levels: vec![],
            pools: QuickMap::default(),
            loops: true,
            flattened: HashSet::new(),
        }
    }

    fn push_root(&mut self) {
        let space = self.b.space();
        let segment = self.b.constant(Constant::Segdes([1].into()), space);
        self.levels.push(Level {
            context: Context { segment, space, single: true },
            origin: Origin::Root,
            locals: QuickMap::default(),
        });
    }

    fn push_level(&mut self, context: Context, origin: Origin) {
        self.levels.push(Level { context, origin, locals: QuickMap::default() });
    }

    fn root(&self) -> Context {
        self.levels[0].context
    }

    fn context(&self) -> Context {
        self.levels[self.levels.len() - 1].context
    }

    fn finish(mut self, result: ExprId) -> Run<flat::Function> {
        let context = self.context();
        let value = self.expr(result)?;
        let value = self.materialise(&value, context);
        let mut results = vec![];
        value.vectors(&mut results);
        Ok(self.b.finish(results))
    }

    fn bind_local(&mut self, local: LocalId, value: Val) {
        if let Some(level) = self.levels.last_mut() {
            level.locals.insert(local, value);
        }
    }

    /// Returns a variable as a value of the current context.
    fn local(&mut self, local: LocalId) -> Run<Val> {
        let last = self.levels.len() - 1;
        let Some(known) = self.levels.iter().rposition(|level| level.locals.contains_key(&local)) else {
            return internal("a variable is not bound");
        };
        let mut value = self.levels[known].locals[&local].clone();
        if known < last {
            if self.levels[known].context.single && !self.context().single {
                let (root, context) = (self.root(), self.context());
                value = self.distribute(&value, root, context.segment, context);
            } else {
                for index in known + 1..=last {
                    let (outer, context) = (self.levels[index - 1].context, self.levels[index].context);
                    value = match self.levels[index].origin {
                        Origin::Root | Origin::Scope => value,
                        Origin::Distribute(segments) => self.distribute(&value, outer, segments, context),
                        Origin::Restrict(flags) => self.restrict(&value, outer, flags, context),
                    };
                }
            }
            self.bind_local(local, value.clone());
        }
        Ok(value)
    }

    /// Makes a value whose vectors are parameters.
    fn parameter(&mut self, ty: TypeId, context: Context, forms: &mut dyn Iterator<Item = bool>) -> Val {
        let value = self.unflatten(ty, context, &mut |this, ty, space| this.b.param(ty, space), Some(forms));
        self.with_pools(&value, context)
    }

    /// Makes a value of a type from new vectors. Its pools are not computed yet.
    fn unflatten(
        &mut self,
        ty: TypeId,
        context: Context,
        make: &mut dyn FnMut(&mut Self, Type, SpaceId) -> VarId,
        mut forms: Option<&mut dyn Iterator<Item = bool>>,
    ) -> Val {
        let ty = self.c.resolve(ty);
        match self.c.env.types[ty].clone() {
            Nesl::Base(base) => Val::Base(make(self, vector_type(base), context.space)),
            Nesl::Pair(first, rest) => {
                let first = match &mut forms {
                    Some(forms) => self.unflatten(first, context, make, Some(&mut **forms)),
                    None => self.unflatten(first, context, make, None),
                };
                Val::pair(first, self.unflatten(rest, context, make, forms))
            }
            Nesl::Seq(element) => {
                let is_virtual = forms.and_then(Iterator::next).unwrap_or(false);
                let (form, segment, space) = if is_virtual {
                    let (starts, lengths) = (make(self, Type::Int, context.space), make(self, Type::Int, context.space));
                    let root = self.root();
                    (Form::Virtual(starts, lengths), make(self, Type::Segdes, root.space), self.b.space())
                } else {
                    let segments = make(self, Type::Segdes, context.space);
                    (Form::Dense(segments), segments, self.pool_space(segments))
                };
                let pool = Context { segment, space, single: false };
                let elements = self.unflatten(element, pool, make, None);
                Val::seq(form, elements, pool)
            }
            Nesl::Function { identity, .. } => {
                let parts = match &self.c.env.types[identity] {
                    Nesl::Closure(_, parts) => parts.clone(),
                    _ => vec![],
                };
                let mut captured = vec![];
                for part in parts {
                    captured.push(match &mut forms {
                        Some(forms) => self.unflatten(part, context, make, Some(&mut **forms)),
                        None => self.unflatten(part, context, make, None),
                    });
                }
                Val::Function(Rc::new(captured))
            }
            Nesl::Data(..) | Nesl::Variable(_) | Nesl::Definition(_) | Nesl::Closure(..) => Val::Function(Rc::default()),
        }
    }

    /// Computes the pools of the dense sequences of a value.
    fn with_pools(&mut self, value: &Val, context: Context) -> Val {
        match value {
            Val::Base(_) => value.clone(),
            Val::Pair(parts) => {
                let first = self.with_pools(&parts.0, context);
                let rest = self.with_pools(&parts.1, context);
                Val::pair(first, rest)
            }
            Val::Seq(seq) => {
                let Sequence { form, elements, pool } = &**seq;
                let pool = match form {
                    Form::Dense(segments) => self.pool(*segments, context),
                    Form::Virtual(..) => *pool,
                };
                let elements = self.with_pools(elements, pool);
                Val::seq(*form, elements, pool)
            }
            Val::Function(captured) => {
                Val::Function(Rc::new(captured.iter().map(|value| self.with_pools(value, context)).collect()))
            }
        }
    }

    /// Makes the results of a call or a conditional, defined by `op`.
    fn results(&mut self, ty: TypeId, op: flat::Op, args: Vec<VarId>) -> Val {
        let context = self.context();
        let mut vars = vec![];
        let value = self.unflatten(
            ty,
            context,
            &mut |this, ty, space| {
                let var = this.b.var(ty, space);
                vars.push(var);
                var
            },
            None,
        );
        self.b.define(op, args.into(), vars.into());
        self.with_pools(&value, context)
    }
}

/// Returns the type of the vectors of a base type.
fn vector_type(base: Base) -> Type {
    match base {
        Base::Int | Base::Char => Type::Int,
        Base::Float => Type::Float,
        Base::Bool => Type::Bool,
    }
}
