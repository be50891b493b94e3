//! Base types and classes of types.

use std::fmt;

/// A type without parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// An integer.
    Int,
    /// A floating-point number.
    Float,
    /// A truth value.
    Bool,
    /// A character.
    Char,
}

impl Base {
    /// All base types.
    pub const ALL: [Base; 4] = [Base::Int, Base::Float, Base::Bool, Base::Char];

    /// Returns the name.
    pub fn text(self) -> &'static str {
        match self {
            Base::Int => "int",
            Base::Float => "float",
            Base::Bool => "bool",
            Base::Char => "char",
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of types that a type variable may stand for: all types, or some base types.
///
/// Classes are closed under intersection, except for sets of one type, which inference replaces by that type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Class(u8);

impl Class {
    /// All types, functions included.
    pub const ANY: Class = Class(0xFF);
    /// `int` and `float`.
    pub const NUMBER: Class = Class(0b0011);
    /// `int`, `float` and `char`.
    pub const ORDINAL: Class = Class(0b1011);
    /// `int` and `bool`.
    pub const LOGICAL: Class = Class(0b0101);

    /// The classes a program can name.
    pub const ALL: [Class; 4] = [Class::ANY, Class::NUMBER, Class::ORDINAL, Class::LOGICAL];

    /// Returns the types that are in both classes.
    #[must_use]
    pub fn and(self, other: Class) -> Class {
        Class(self.0 & other.0)
    }

    /// Tells whether no type is in the class.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the type of a class that holds one type only.
    pub fn single(self) -> Option<Base> {
        Base::ALL.into_iter().find(|base| base.bit() == self.0)
    }

    /// Tells whether a base type is in the class.
    pub fn contains(self, base: Base) -> bool {
        self.0 & base.bit() != 0
    }

    /// Returns the class with a name.
    pub fn by_name(name: &str) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.to_string() == name)
    }

    /// Lists the types of the class in words.
    pub fn members(self) -> String {
        if self == Class::ANY {
            return "any type".to_owned();
        }
        let members: Vec<String> =
            Base::ALL.into_iter().filter(|&base| self.contains(base)).map(|b| format!("`{}`", b.text())).collect();
        match members.as_slice() {
            [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
            _ => members.concat(),
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Class::ANY => "any",
            Class::NUMBER => "number",
            Class::ORDINAL => "ordinal",
            Class::LOGICAL => "logical",
            Class(_) => "none",
        })
    }
}
