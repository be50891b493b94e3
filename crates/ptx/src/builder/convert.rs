//! Conversions to modifiers and operands.
//!
//! The modifiers are a single modifier or a tuple of them. A [`Type`] or [`Space`] counts as the modifier of
//! its name, and `None` as no modifier. Code that is generic in a type or in `.ftz` thus needs no branches:
//! `b.mul((Rn, ftz.then_some(Ftz), ty), x, y)`.
//!
//! The operands are registers, numbers, addresses, symbols, labels and special registers. Arrays of registers
//! are vectors.

use crate::ids::{Reg, Targets};
use crate::inst::{Address, Base, Guard, Operand, Symbol, TextureOperand};
use crate::table::Modifier;
use crate::types::{Space, Type};
use smallvec::SmallVec;

/// Modifiers in the order written, and the first word that is not a modifier.
#[derive(Clone, Debug, Default)]
pub struct ModifierList {
    pub(super) modifiers: SmallVec<[Modifier; 8]>,
    pub(super) unknown: Option<&'static str>,
}

impl ModifierList {
    /// Returns the modifiers in the order written.
    pub fn modifiers(&self) -> &[Modifier] {
        &self.modifiers
    }

    fn word(&mut self, word: &'static str) {
        match Modifier::from_text(word) {
            Some(modifier) => self.modifiers.push(modifier),
            None => self.unknown = self.unknown.or(Some(word)),
        }
    }
}

/// Value that can be converted to one modifier.
pub trait ToModifier {
    /// Appends itself to a list.
    fn add_to(self, list: &mut ModifierList);
}

impl ToModifier for Modifier {
    fn add_to(self, list: &mut ModifierList) {
        list.modifiers.push(self);
    }
}

impl ToModifier for Type {
    fn add_to(self, list: &mut ModifierList) {
        list.word(self.name());
    }
}

impl ToModifier for Space {
    fn add_to(self, list: &mut ModifierList) {
        if self != Space::Generic {
            list.word(self.name());
        }
    }
}

impl<T: ToModifier> ToModifier for Option<T> {
    fn add_to(self, list: &mut ModifierList) {
        if let Some(modifier) = self {
            modifier.add_to(list);
        }
    }
}

/// Value that can be converted to the modifiers of an instruction: `()`, one modifier, a tuple or a slice.
pub trait IntoModifiers {
    /// Converts to the list.
    fn into_modifiers(self) -> ModifierList;
}

impl<T: ToModifier> IntoModifiers for T {
    fn into_modifiers(self) -> ModifierList {
        let mut list = ModifierList::default();
        self.add_to(&mut list);
        list
    }
}

impl IntoModifiers for () {
    fn into_modifiers(self) -> ModifierList {
        ModifierList::default()
    }
}

impl IntoModifiers for &[Modifier] {
    fn into_modifiers(self) -> ModifierList {
        ModifierList { modifiers: SmallVec::from_slice(self), unknown: None }
    }
}

impl<const N: usize> IntoModifiers for [Modifier; N] {
    fn into_modifiers(self) -> ModifierList {
        self.as_slice().into_modifiers()
    }
}

/// Value that can be converted to the sources of an instruction: a tuple of operands, or a list.
pub trait IntoOperands {
    /// Converts to the list.
    fn into_operands(self) -> SmallVec<[Operand; 4]>;
}

impl IntoOperands for () {
    fn into_operands(self) -> SmallVec<[Operand; 4]> {
        SmallVec::new()
    }
}

impl IntoOperands for Vec<Operand> {
    fn into_operands(self) -> SmallVec<[Operand; 4]> {
        SmallVec::from_vec(self)
    }
}

impl IntoOperands for &[Operand] {
    fn into_operands(self) -> SmallVec<[Operand; 4]> {
        self.iter().cloned().collect()
    }
}

macro_rules! tuples {
    ($($name:ident)+) => {
        impl<$($name: ToModifier),+> IntoModifiers for ($($name,)+) {
            #[allow(non_snake_case, reason = "the type parameters name the elements too")]
            fn into_modifiers(self) -> ModifierList {
                let ($($name,)+) = self;
                let mut list = ModifierList::default();
                $($name.add_to(&mut list);)+
                list
            }
        }

        impl<$($name: Into<Operand>),+> IntoOperands for ($($name,)+) {
            #[allow(non_snake_case, reason = "the type parameters name the elements too")]
            fn into_operands(self) -> SmallVec<[Operand; 4]> {
                let ($($name,)+) = self;
                let mut list = SmallVec::new();
                $(list.push($name.into());)+
                list
            }
        }
    };
}

tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);
tuples!(A B C D E F G H);
tuples!(A B C D E F G H I);
tuples!(A B C D E F G H I J);
tuples!(A B C D E F G H I J K);
tuples!(A B C D E F G H I J K L);

impl Reg {
    /// Returns the address `bytes` bytes after the one in this register.
    pub fn offset(self, bytes: i64) -> Address {
        Address { base: Base::Reg(self), offset: bytes }
    }
}

impl Symbol {
    /// Returns the address `bytes` bytes after this symbol's.
    pub fn offset(self, bytes: i64) -> Address {
        Address { base: Base::Symbol(self), offset: bytes }
    }
}

impl Address {
    /// Returns the address `bytes` bytes after this one.
    #[must_use]
    pub fn offset(self, bytes: i64) -> Address {
        Address { offset: self.offset.wrapping_add(bytes), ..self }
    }
}

impl From<Reg> for Guard {
    fn from(reg: Reg) -> Self {
        Guard { reg, negated: false }
    }
}

/// `!p`: negates a predicate, as a guard or an operand.
impl std::ops::Not for Reg {
    type Output = Guard;
    fn not(self) -> Guard {
        Guard { reg: self, negated: true }
    }
}

impl std::ops::Not for Guard {
    type Output = Guard;
    fn not(self) -> Guard {
        Guard { negated: !self.negated, ..self }
    }
}

impl From<Guard> for Operand {
    fn from(guard: Guard) -> Self {
        if guard.negated { Operand::Not(guard.reg) } else { Operand::Reg(guard.reg) }
    }
}

impl From<Symbol> for Operand {
    fn from(symbol: Symbol) -> Self {
        Operand::Symbol(symbol, 0)
    }
}

impl From<Targets> for Operand {
    fn from(targets: Targets) -> Self {
        Operand::Targets(targets)
    }
}

impl From<TextureOperand> for Operand {
    fn from(texture: TextureOperand) -> Self {
        Operand::Texture(Box::new(texture))
    }
}

impl<const N: usize> From<[Reg; N]> for Operand {
    fn from(regs: [Reg; N]) -> Self {
        regs.as_slice().into()
    }
}

impl From<&[Reg]> for Operand {
    fn from(regs: &[Reg]) -> Self {
        Operand::Vector(regs.iter().copied().map(Operand::Reg).collect())
    }
}

impl From<Vec<Operand>> for Operand {
    fn from(list: Vec<Operand>) -> Self {
        Operand::Vector(list.into_boxed_slice())
    }
}
