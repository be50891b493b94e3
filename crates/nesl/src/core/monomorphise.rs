//! Replacement of type variables by types: from a polymorphic body to the body of one instance.

use crate::core::{Body, Expr};
use crate::hash::QuickMap;
use crate::types::{Type, TypeId, TypeStore};

/// Replacement of the variables of a scheme by the types of one instance.
pub struct Instantiate<'a> {
    types: &'a mut TypeStore,
    instance: &'a [TypeId],
    done: QuickMap<TypeId, TypeId>,
}

impl<'a> Instantiate<'a> {
    /// Prepares the replacement of variable `i` by `instance[i]`.
    pub fn new(types: &'a mut TypeStore, instance: &'a [TypeId]) -> Self {
        Instantiate { types, instance, done: QuickMap::default() }
    }

    /// Replaces the variables of a type.
    pub fn ty(&mut self, ty: TypeId) -> TypeId {
        if let Some(&done) = self.done.get(&ty) {
            return done;
        }
        let new = match self.types[ty].clone() {
            Type::Base(_) | Type::Definition(_) => return ty,
            Type::Variable(index) => return self.instance.get(index as usize).copied().unwrap_or(ty),
            Type::Seq(element) => Type::Seq(self.ty(element)),
            Type::Pair(first, rest) => Type::Pair(self.ty(first), self.ty(rest)),
            Type::Function { identity, argument, result } => {
                Type::Function { identity: self.ty(identity), argument: self.ty(argument), result: self.ty(result) }
            }
            Type::Data(data, parts) => Type::Data(data, self.all(&parts)),
            Type::Closure(lambda, parts) => Type::Closure(lambda, self.all(&parts)),
        };
        let new = self.types.intern(new);
        self.done.insert(ty, new);
        new
    }

    fn all(&mut self, types: &[TypeId]) -> Vec<TypeId> {
        types.iter().map(|&ty| self.ty(ty)).collect()
    }

    /// Replaces the variables of all types of a body.
    pub fn body(&mut self, body: &Body) -> Body {
        let mut new = body.clone();
        for ty in new.types.values_mut() {
            *ty = self.ty(*ty);
        }
        for local in new.locals.values_mut() {
            local.ty = self.ty(local.ty);
        }
        for expr in new.exprs.values_mut() {
            if let Expr::Definition(_, instance) = expr {
                *instance = self.all(instance);
            }
        }
        new
    }
}
