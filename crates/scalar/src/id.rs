//! Numbers of the nodes, variables, arrays and blocks of a body.

use smallvec::SmallVec;

/// The number of a node in its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub(crate) u32);

impl Id {
    /// Returns the number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

macro_rules! numbered {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// Returns the number as an index.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        })*
    };
}

numbered! {
    /// The number of a variable in its body.
    Var,
    /// The number of a local array in its body.
    ArrayId,
    /// The number of a constant table in its body.
    TableId,
    /// The number of an array in shared memory in its body.
    SharedId,
    /// The number of an accessor of a function.
    AccessorId,
    /// The number of a block of statements in its body.
    BlockId,
}

/// A short list of operands.
pub type Ids = SmallVec<[Id; 4]>;
