//! Types of vectors.

/// The type of a vector. Characters are ints in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Integers.
    Int,
    /// A vector of floating-point numbers.
    Float,
    /// Truth values.
    Bool,
    /// A segment descriptor: the lengths of the segments of vectors.
    Segdes,
    /// Characters, read and written as text. On the stack they are ints.
    Char,
}

impl Type {
    /// Returns the name in program text.
    pub fn name(self) -> &'static str {
        match self {
            Type::Int => "INT",
            Type::Float => "FLOAT",
            Type::Bool => "BOOL",
            Type::Segdes => "SEGDES",
            Type::Char => "CHAR",
        }
    }

    /// Returns the type with a name.
    pub fn by_name(name: &str) -> Option<Type> {
        [Type::Int, Type::Float, Type::Bool, Type::Segdes, Type::Char].into_iter().find(|ty| ty.name() == name)
    }

    /// Returns the type on the stack.
    #[must_use]
    pub fn stacked(self) -> Type {
        if self == Type::Char { Type::Int } else { self }
    }
}
