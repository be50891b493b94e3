//! The table of instructions: name, allowed type suffixes, operands and results.

use super::Type;
use super::elementwise::Failure;
use crate::primitives::{Elementwise, Fold, elementwise_rows, fold_rows};

/// Type suffixes allowed for the name of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The type is fixed and not written.
    Fixed(Type),
    /// `INT` or `FLOAT`.
    Number,
    /// `INT` or `BOOL`.
    Logical,
    /// `INT`, `FLOAT` or `BOOL`.
    Scalar,
    /// Any type, segment descriptors included.
    Any,
    /// Only `INT`, which must be written.
    Int,
}

impl Choice {
    /// Tells whether a type may be written.
    pub fn allows(self, ty: Type) -> bool {
        match self {
            Choice::Fixed(_) => false,
            Choice::Number => matches!(ty, Type::Int | Type::Float),
            Choice::Logical => matches!(ty, Type::Int | Type::Bool),
            Choice::Scalar => matches!(ty, Type::Int | Type::Float | Type::Bool),
            Choice::Any => true,
            Choice::Int => ty == Type::Int,
        }
    }
}

/// The type of an operand or a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The type written after the name.
    Given,
    /// This type.
    Is(Type),
}

macro_rules! ops {
    (@slot g) => { Slot::Given };
    (@slot i) => { Slot::Is(Type::Int) };
    (@slot f) => { Slot::Is(Type::Float) };
    (@slot b) => { Slot::Is(Type::Bool) };
    (@slot s) => { Slot::Is(Type::Segdes) };
    (@choice number) => { Choice::Number };
    (@choice logical) => { Choice::Logical };
    (@choice scalar) => { Choice::Scalar };
    (@choice any) => { Choice::Any };
    (@choice int) => { Choice::Int };
    (@choice f) => { Choice::Fixed(Type::Float) };
    (@choice i) => { Choice::Fixed(Type::Int) };
    (@choice b) => { Choice::Fixed(Type::Bool) };
    (@choice s) => { Choice::Fixed(Type::Segdes) };
    // Rows of the table of primitives follow those of other instructions.
    (
        { $($variant:tt $name:tt $choice:tt $operands:tt -> $results:tt,)* }
        folds { $($fold:ident [$($fold_name:literal),*] $scan:ident $scan_name:literal
            $reduce:ident $reduce_name:literal $fold_choice:ident $fold_columns:tt)* }
        elementwise { $($element:ident [$($element_name:literal)|*] $vcode:literal $element_choice:ident
            $element_operands:tt -> $element_results:tt $columns:tt)* }
    ) => {
        ops! { @all
            $($element $vcode $element_choice $element_operands -> $element_results,)*
            $($scan $scan_name $fold_choice (g s) -> (g), $reduce $reduce_name $fold_choice (g s) -> (g),)*
            $($variant $name $choice $operands -> $results,)*
        }

        impl From<Elementwise> for Op {
            fn from(operation: Elementwise) -> Op {
                match operation { $(Elementwise::$element => Op::$element,)* }
            }
        }

        impl Op {
            /// Returns the operation on scalars that it does element by element.
            pub fn elementwise(self) -> Option<Elementwise> {
                match self { $(Op::$element => Some(Elementwise::$element),)* _ => None }
            }

            /// Returns its fold, and whether it is a scan.
            pub fn fold(self) -> Option<(Fold, bool)> {
                match self {
                    $(Op::$scan => Some((Fold::$fold, true)), Op::$reduce => Some((Fold::$fold, false)),)*
                    _ => None,
                }
            }
        }
    };
    (@all $($variant:ident $name:literal $choice:ident ($($operand:ident)*) -> ($($result:ident)*),)*) => {
        /// An instruction that takes its operands from the stack and pushes its results.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum Op { $($variant,)* }

        impl Op {
            /// All instructions of the table.
            pub const ALL: &'static [Op] = &[$(Op::$variant,)*];

            /// Returns the name in program text.
            pub fn name(self) -> &'static str {
                match self { $(Op::$variant => $name,)* }
            }

            /// Returns the type suffixes allowed after the name.
            pub fn choice(self) -> Choice {
                match self { $(Op::$variant => ops!(@choice $choice),)* }
            }

            /// Returns the operands, the top of the stack last.
            pub fn operands(self) -> &'static [Slot] {
                match self { $(Op::$variant => &[$(ops!(@slot $operand),)*],)* }
            }

            /// Returns the results, the top of the stack last.
            pub fn results(self) -> &'static [Slot] {
                match self { $(Op::$variant => &[$(ops!(@slot $result),)*],)* }
            }

            /// Returns the instruction with a name.
            pub fn by_name(name: &str) -> Option<Op> {
                match name { $($name => Some(Op::$variant),)* _ => None }
            }
        }
    };
}

fold_rows! { elementwise_rows! ops! {
    Select "SELECT" scalar (b g g) -> (g),
    Random "RAND" i (i) -> (i),
    RankUp "RANK_UP" number (g s) -> (i),
    RankDown "RANK_DOWN" number (g s) -> (i),
    Permute "PERMUTE" scalar (g i s) -> (g),
    DefaultPermute "DPERMUTE" scalar (g i g s s) -> (g),
    FlagPermute "FPERMUTE" scalar (g i b s s) -> (g),
    BackPermute "BPERMUTE" scalar (g i s s) -> (g),
    BackFlagPermute "BFPERMUTE" scalar (g i b s s) -> (g),
    DefaultFlagPermute "DFPERMUTE" scalar (g i b g s s) -> (g),
    Extract "EXTRACT" scalar (g i s) -> (g),
    Replace "REPLACE" scalar (g i g s) -> (g),
    Distribute "DIST" scalar (g s) -> (g),
    Index "INDEX" i (i i s) -> (i),
    Pack "PACK" scalar (g b s) -> (g s),
    Length "LENGTH" scalar (g) -> (i),
    MakeSegdes "MAKE_SEGDES" s (i) -> (s),
    Lengths "LENGTHS" i (s) -> (i),
    StartTimer "START_TIMER" i () -> (),
    StopTimer "STOP_TIMER" i () -> (f),
    Read "READ" any () -> (g i b),
    Write "WRITE" any (g) -> (i b),
    Open "FOPEN" i (i i) -> (i i b),
    Close "FCLOSE" i (i) -> (i b),
    ReadFrom "FREAD" any (i) -> (g i b),
    ReadChars "FREAD_CHAR" i (i i i) -> (i i i b),
    WriteTo "FWRITE" any (g i) -> (i b),
    Spawn "SPAWN" i (i i i i) -> (i i i i b),
    SeedRandom "SRAND" int (i) -> (b),
} }

impl Op {
    /// Tells whether the result of an element depends only on the operands at the same index.
    pub fn is_elementwise(self) -> bool {
        self.elementwise().is_some() || matches!(self, Op::Select | Op::Random)
    }

    /// Returns the error that an elementwise instruction may end with.
    pub(crate) fn failure(self) -> Option<Failure> {
        self.elementwise().and_then(Elementwise::failure)
    }

    /// Returns the type of its only result for a type suffix.
    pub fn result(self, given: Type) -> Type {
        match self.results() {
            [Slot::Is(ty)] => *ty,
            _ => given,
        }
    }

    /// Tells whether the instruction has effects outside the program or depends on its own earlier calls.
    pub fn has_effect(self) -> bool {
        self == Op::Random || self as usize >= Op::StartTimer as usize
    }
}
