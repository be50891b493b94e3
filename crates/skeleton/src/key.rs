//! Equality and hashing of values behind trait objects.
//!
//! Caches of programs and plans are keyed by patterns and operations, which other crates may define. Every
//! type that is `Eq` and `Hash` implements [`Key`]. Values of different types are never equal.

use std::any::{Any, TypeId};
use std::hash::{Hash, Hasher};

/// A value that can be compared and hashed through a trait object.
pub trait Key: Any {
    /// Returns the value as [`Any`], for casts to its type.
    fn as_any(&self) -> &dyn Any;

    /// Compares with a value of any type.
    fn is_equal(&self, other: &dyn Any) -> bool;

    /// Adds the value and its type to a hash.
    fn write_hash(&self, state: &mut dyn Hasher);
}

impl<T: Any + Eq + Hash> Key for T {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_equal(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>() == Some(self)
    }

    fn write_hash(&self, mut state: &mut dyn Hasher) {
        TypeId::of::<T>().hash(&mut state);
        self.hash(&mut state);
    }
}
