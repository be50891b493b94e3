//! Types after inference: interned, immutable, printed like in the original.

mod class;
mod print;
mod store;

pub use class::{Base, Class};
pub use print::TypePrinter;
pub use store::{DatatypeId, DefId, LambdaId, MAX_TYPE_DEPTH, MAX_TYPE_SIZE, Scheme, Type, TypeId, TypeStore};
