//! The table of types: equal types have equal ids.

use crate::hash::QuickMap;
use crate::types::{Base, Class};
use cranelift_entity::{PrimaryMap, entity_impl};

/// Names a type of a [`TypeStore`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(u32);
entity_impl!(TypeId, "ty");

/// Names a definition: a function, a constructor or a global variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DefId(u32);
entity_impl!(DefId, "def");

/// Names a function value `p => e`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LambdaId(u32);
entity_impl!(LambdaId, "lambda");

/// Names a datatype.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DatatypeId(u32);
entity_impl!(DatatypeId, "data");

/// Maximum nesting depth of a type.
pub const MAX_TYPE_DEPTH: u32 = 150;

/// Maximum number of nodes of a type. Parts that occur twice count twice.
pub const MAX_TYPE_SIZE: u32 = 10_000;

/// A type.
///
/// The type of a function identifies the function. A program therefore calls known functions only and can be
/// compiled without function pointers. That part, the identity, is a [`Type::Definition`], a
/// [`Type::Closure`] or a variable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A base type.
    Base(Base),
    /// A sequence.
    Seq(TypeId),
    /// A pair; larger tuples are pairs whose second part is a tuple.
    Pair(TypeId, TypeId),
    /// A function from an argument to a result.
    Function {
        /// The identity of the function.
        identity: TypeId,
        /// The type of its argument.
        argument: TypeId,
        /// The type of its result.
        result: TypeId,
    },
    /// A datatype with its arguments.
    Data(DatatypeId, Vec<TypeId>),
    /// Variable of a [`Scheme`], by its number.
    Variable(u32),
    /// The identity of a defined function.
    Definition(DefId),
    /// The identity of a function value with the types of its captured variables.
    Closure(LambdaId, Vec<TypeId>),
}

/// Type with variables, each of which stands for any type of its class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// The classes of the variables.
    pub variables: Vec<Class>,
    /// The type.
    pub ty: TypeId,
}

/// All types of a session.
#[derive(Clone, Debug, Default)]
pub struct TypeStore {
    types: PrimaryMap<TypeId, Type>,
    /// Depth and size of each type.
    extents: PrimaryMap<TypeId, (u32, u32)>,
    ids: QuickMap<Type, TypeId>,
}

impl std::ops::Index<TypeId> for TypeStore {
    type Output = Type;
    fn index(&self, id: TypeId) -> &Type {
        &self.types[id]
    }
}

impl TypeStore {
    /// Returns the id of a type.
    pub fn intern(&mut self, ty: Type) -> TypeId {
        if let Some(&id) = self.ids.get(&ty) {
            return id;
        }
        let mut extent = (0u32, 1u32);
        let mut add = |part: TypeId| {
            let (depth, size) = self.extents[part];
            extent = (extent.0.max(depth), extent.1.saturating_add(size));
        };
        match &ty {
            Type::Base(_) | Type::Variable(_) | Type::Definition(_) => {}
            Type::Seq(element) => add(*element),
            Type::Pair(first, rest) => [*first, *rest].into_iter().for_each(add),
            Type::Function { identity, argument, result } => [*identity, *argument, *result].into_iter().for_each(add),
            Type::Data(_, parts) | Type::Closure(_, parts) => parts.iter().copied().for_each(add),
        }
        let id = self.types.push(ty.clone());
        self.extents.push((extent.0 + 1, extent.1));
        self.ids.insert(ty, id);
        id
    }

    /// Returns a base type.
    pub fn base(&mut self, base: Base) -> TypeId {
        self.intern(Type::Base(base))
    }

    /// Tells whether a type is within the limits on depth and size.
    pub fn is_within_limits(&self, id: TypeId) -> bool {
        let (depth, size) = self.extents[id];
        depth <= MAX_TYPE_DEPTH && size <= MAX_TYPE_SIZE
    }
}
