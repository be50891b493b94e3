//! Types under inference: a graph with variables, and unification.
//!
//! A failed unification changes nothing: its assignments are undone. Work is bounded: types deeper than
//! [`MAX_TYPE_DEPTH`] are an error, and the steps of one definition are limited.

use crate::hash::QuickMap;
use crate::types::{Base, Class, DatatypeId, DefId, LambdaId, MAX_TYPE_DEPTH, Scheme, Type, TypeId, TypeStore};

/// Names a node of [`Tys`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ty(u32);

/// A type under inference.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// A variable whose type is not known yet, only its class.
    Var(Class),
    /// Bound to another variable.
    Link(Ty),
    Base(Base),
    Seq(Ty),
    Pair(Ty, Ty),
    Function(Ty, Ty, Ty),
    Data(DatatypeId, Vec<Ty>),
    Definition(DefId),
    Closure(LambdaId, Vec<Ty>),
    /// The type of a reported error; it agrees with every type.
    Error,
}

/// Reason why two types do not agree: the innermost parts that differ.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clash {
    Types(Ty, Ty),
    Class(Class, Ty),
    Classes(Class, Class),
    Infinite,
    Functions,
    TooLarge,
}

/// Limit of unification steps for one definition, in addition to the steps for each of its expressions.
const FUEL: u64 = 5_000_000;

#[derive(Debug)]
pub(crate) struct Tys {
    nodes: Vec<Node>,
    /// Assignments to undo when a unification fails.
    trail: Vec<(Ty, Node)>,
    fuel: u64,
}

impl Tys {
    /// Makes a table for a text with this many expressions.
    pub(crate) fn new(exprs: usize) -> Self {
        Tys { nodes: vec![], trail: vec![], fuel: FUEL + 100 * exprs as u64 }
    }

    pub(crate) fn add(&mut self, node: Node) -> Ty {
        self.nodes.push(node);
        Ty(self.nodes.len() as u32 - 1)
    }

    pub(crate) fn var(&mut self, class: Class) -> Ty {
        self.add(Node::Var(class))
    }

    pub(crate) fn any(&mut self) -> Ty {
        self.var(Class::ANY)
    }

    pub(crate) fn base(&mut self, base: Base) -> Ty {
        self.add(Node::Base(base))
    }

    pub(crate) fn seq(&mut self, element: Ty) -> Ty {
        self.add(Node::Seq(element))
    }

    pub(crate) fn find(&self, mut ty: Ty) -> Ty {
        while let Node::Link(next) = self.nodes[ty.0 as usize] {
            ty = next;
        }
        ty
    }

    pub(crate) fn node(&self, ty: Ty) -> &Node {
        &self.nodes[self.find(ty).0 as usize]
    }

    fn set(&mut self, ty: Ty, node: Node) {
        let old = std::mem::replace(&mut self.nodes[ty.0 as usize], node);
        self.trail.push((ty, old));
    }

    /// Makes two types equal, or returns the difference and changes nothing.
    pub(crate) fn unify(&mut self, a: Ty, b: Ty) -> Result<(), Clash> {
        self.trail.clear();
        let result = self.unify_at(a, b, 0);
        if result.is_err() {
            while let Some((ty, node)) = self.trail.pop() {
                self.nodes[ty.0 as usize] = node;
            }
        }
        result
    }

    fn spend(&mut self, depth: u32) -> Result<(), Clash> {
        if self.fuel == 0 || depth > MAX_TYPE_DEPTH {
            return Err(Clash::TooLarge);
        }
        self.fuel -= 1;
        Ok(())
    }

    fn unify_at(&mut self, a: Ty, b: Ty, depth: u32) -> Result<(), Clash> {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return Ok(());
        }
        self.spend(depth)?;
        let (left, right) = (self.nodes[a.0 as usize].clone(), self.nodes[b.0 as usize].clone());
        match (left, right) {
            (Node::Error, _) | (_, Node::Error) => Ok(()),
            (Node::Var(x), Node::Var(y)) => {
                let both = x.and(y);
                if both.is_empty() {
                    return Err(Clash::Classes(x, y));
                }
                self.set(a, both.single().map_or(Node::Var(both), Node::Base));
                self.set(b, Node::Link(a));
                Ok(())
            }
            (Node::Var(class), _) => self.assign(a, class, b, depth),
            (_, Node::Var(class)) => self.assign(b, class, a, depth),
            (Node::Base(x), Node::Base(y)) if x == y => Ok(()),
            (Node::Seq(x), Node::Seq(y)) => self.unify_at(x, y, depth + 1),
            (Node::Pair(p, q), Node::Pair(x, y)) => {
                self.unify_at(p, x, depth + 1)?;
                self.unify_at(q, y, depth + 1)
            }
            (Node::Function(i, p, q), Node::Function(j, x, y)) => {
                self.unify_at(p, x, depth + 1)?;
                self.unify_at(q, y, depth + 1)?;
                self.unify_at(i, j, depth + 1)
            }
            (Node::Data(x, p), Node::Data(y, q)) if x == y => self.unify_all(&p, &q, depth),
            (Node::Definition(x), Node::Definition(y)) if x == y => Ok(()),
            (Node::Closure(x, p), Node::Closure(y, q)) if x == y => self.unify_all(&p, &q, depth),
            (Node::Definition(_) | Node::Closure(..), Node::Definition(_) | Node::Closure(..)) => Err(Clash::Functions),
            _ => Err(Clash::Types(a, b)),
        }
    }

    fn unify_all(&mut self, a: &[Ty], b: &[Ty], depth: u32) -> Result<(), Clash> {
        a.iter().zip(b).try_for_each(|(&x, &y)| self.unify_at(x, y, depth + 1))
    }

    fn assign(&mut self, var: Ty, class: Class, ty: Ty, depth: u32) -> Result<(), Clash> {
        let fits = match self.nodes[ty.0 as usize] {
            Node::Base(base) => class.contains(base),
            _ => class == Class::ANY,
        };
        if !fits {
            return Err(Clash::Class(class, ty));
        }
        self.occurs(var, ty, depth)?;
        self.set(var, Node::Link(ty));
        Ok(())
    }

    fn occurs(&mut self, var: Ty, ty: Ty, depth: u32) -> Result<(), Clash> {
        self.spend(depth)?;
        let ty = self.find(ty);
        if ty == var {
            return Err(Clash::Infinite);
        }
        match self.nodes[ty.0 as usize].clone() {
            Node::Var(_) | Node::Link(_) | Node::Base(_) | Node::Definition(_) | Node::Error => Ok(()),
            Node::Seq(element) => self.occurs(var, element, depth + 1),
            Node::Pair(p, q) => [p, q].into_iter().try_for_each(|part| self.occurs(var, part, depth + 1)),
            Node::Function(i, p, q) => [i, p, q].into_iter().try_for_each(|part| self.occurs(var, part, depth + 1)),
            Node::Data(_, parts) | Node::Closure(_, parts) => {
                parts.into_iter().try_for_each(|part| self.occurs(var, part, depth + 1))
            }
        }
    }

    /// Imports a type of the store and replaces its variables.
    pub(crate) fn import(&mut self, store: &TypeStore, ty: TypeId, variables: &[Ty]) -> Ty {
        let node = match &store[ty] {
            Type::Base(base) => Node::Base(*base),
            Type::Variable(index) => return variables[*index as usize],
            Type::Seq(element) => Node::Seq(self.import(store, *element, variables)),
            Type::Pair(first, rest) => Node::Pair(self.import(store, *first, variables), self.import(store, *rest, variables)),
            Type::Function { identity, argument, result } => Node::Function(
                self.import(store, *identity, variables),
                self.import(store, *argument, variables),
                self.import(store, *result, variables),
            ),
            Type::Data(data, parts) => Node::Data(*data, parts.iter().map(|&part| self.import(store, part, variables)).collect()),
            Type::Definition(definition) => Node::Definition(*definition),
            Type::Closure(lambda, parts) => {
                Node::Closure(*lambda, parts.iter().map(|&part| self.import(store, part, variables)).collect())
            }
        };
        self.add(node)
    }

    /// Imports a scheme with fresh variables, which are returned too.
    pub(crate) fn instantiate(&mut self, store: &TypeStore, scheme: &Scheme) -> (Ty, Vec<Ty>) {
        let variables: Vec<Ty> = scheme.variables.iter().map(|&class| self.var(class)).collect();
        (self.import(store, scheme.ty, &variables), variables)
    }
}

/// Export of types of a [`Tys`] to a store. Variables become numbered ones, or integers once the numbering is
/// closed.
pub(crate) struct Export<'a> {
    pub(crate) tys: &'a Tys,
    pub(crate) store: &'a mut TypeStore,
    pub(crate) variables: Vec<Ty>,
    pub(crate) classes: Vec<Class>,
    /// True once further variables no longer get numbers: no visible type contains them.
    pub(crate) closed: bool,
    done: QuickMap<Ty, TypeId>,
    too_deep: bool,
}

impl<'a> Export<'a> {
    pub(crate) fn new(tys: &'a Tys, store: &'a mut TypeStore) -> Self {
        Export { tys, store, variables: vec![], classes: vec![], closed: false, done: QuickMap::default(), too_deep: false }
    }

    /// Returns the type; `None` if it exceeds the limits on types.
    pub(crate) fn export(&mut self, ty: Ty) -> Option<TypeId> {
        let id = self.at(ty, 0);
        (!self.too_deep && self.store.is_within_limits(id)).then_some(id)
    }

    fn at(&mut self, ty: Ty, depth: u32) -> TypeId {
        let ty = self.tys.find(ty);
        if let Some(&id) = self.done.get(&ty) {
            return id;
        }
        if depth > 2 * MAX_TYPE_DEPTH {
            self.too_deep = true;
            return self.store.base(Base::Int);
        }
        let node = match self.tys.node(ty).clone() {
            Node::Var(_) if self.closed => Type::Base(Base::Int),
            Node::Var(class) => {
                self.variables.push(ty);
                self.classes.push(class);
                Type::Variable(self.variables.len() as u32 - 1)
            }
            Node::Error | Node::Link(_) => Type::Base(Base::Int),
            Node::Base(base) => Type::Base(base),
            Node::Seq(element) => Type::Seq(self.at(element, depth + 1)),
            Node::Pair(first, rest) => {
                let first = self.at(first, depth + 1);
                Type::Pair(first, self.at(rest, depth + 1))
            }
            Node::Function(identity, argument, result) => {
                let identity = self.at(identity, depth + 1);
                let argument = self.at(argument, depth + 1);
                Type::Function { identity, argument, result: self.at(result, depth + 1) }
            }
            Node::Data(data, parts) => Type::Data(data, parts.into_iter().map(|part| self.at(part, depth + 1)).collect()),
            Node::Definition(definition) => Type::Definition(definition),
            Node::Closure(lambda, parts) => {
                Type::Closure(lambda, parts.into_iter().map(|part| self.at(part, depth + 1)).collect())
            }
        };
        let id = self.store.intern(node);
        self.done.insert(ty, id);
        id
    }
}
