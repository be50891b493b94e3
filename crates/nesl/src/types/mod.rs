//! Types as they are after inference: interned, immutable, printed as the original prints them.

mod class;
mod print;
mod store;

pub use class::{Base, Class};
pub use print::TypePrinter;
pub use store::{DatatypeId, DefId, LambdaId, MAX_TYPE_DEPTH, MAX_TYPE_SIZE, Scheme, Type, TypeId, TypeStore};
