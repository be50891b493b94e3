//! Typed IDs, which index the tables of functions and modules.

use cranelift_entity::entity_impl;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub struct $name(u32);
            entity_impl!($name, $prefix);
        )*
    };
}

ids! {
    /// A register of a function.
    Reg "r";
    /// A block of a function.
    Block "block";
    /// An instruction of a function.
    Inst "inst";
    /// A variable, of the module or of a function.
    Var "var";
    /// A function or kernel of a module.
    Func "func";
    /// A `.callprototype` of a function.
    Proto "proto";
    /// A `.branchtargets` list of a function.
    Targets "targets";
    /// A `.loc` of a function.
    Loc "loc";
}
