//! The table of instructions: name, allowed type suffixes, operands and results.

use super::Type;

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
    ($($variant:ident $name:literal $choice:ident ($($operand:ident)*) -> ($($result:ident)*),)*) => {
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

ops! {
    Add "+" number (g g) -> (g),
    Subtract "-" number (g g) -> (g),
    Multiply "*" number (g g) -> (g),
    Divide "/" number (g g) -> (g),
    Modulo "%" i (i i) -> (i),
    Less "<" number (g g) -> (b),
    LessEqual "<=" number (g g) -> (b),
    Greater ">" number (g g) -> (b),
    GreaterEqual ">=" number (g g) -> (b),
    Equal "=" number (g g) -> (b),
    NotEqual "!=" number (g g) -> (b),
    LeftShift "LSHIFT" i (i i) -> (i),
    RightShift "RSHIFT" i (i i) -> (i),
    Not "NOT" logical (g) -> (g),
    And "AND" logical (g g) -> (g),
    Or "OR" logical (g g) -> (g),
    Xor "XOR" logical (g g) -> (g),
    Select "SELECT" scalar (b g g) -> (g),
    Random "RAND" i (i) -> (i),
    Floor "FLOOR" f (f) -> (i),
    Ceil "CEIL" f (f) -> (i),
    Trunc "TRUNC" f (f) -> (i),
    Round "ROUND" f (f) -> (i),
    Log "LOG" f (f) -> (f),
    Sqrt "SQRT" f (f) -> (f),
    Exp "EXP" f (f) -> (f),
    Sin "SIN" f (f) -> (f),
    Cos "COS" f (f) -> (f),
    Tan "TAN" f (f) -> (f),
    Asin "ASIN" f (f) -> (f),
    Acos "ACOS" f (f) -> (f),
    Atan "ATAN" f (f) -> (f),
    Sinh "SINH" f (f) -> (f),
    Cosh "COSH" f (f) -> (f),
    Tanh "TANH" f (f) -> (f),
    IntToFloat "I_TO_F" i (i) -> (f),
    IntToBool "I_TO_B" i (i) -> (b),
    BoolToInt "B_TO_I" b (b) -> (i),
    AddScan "+_SCAN" number (g s) -> (g),
    MultiplyScan "*_SCAN" number (g s) -> (g),
    MaxScan "MAX_SCAN" number (g s) -> (g),
    MinScan "MIN_SCAN" number (g s) -> (g),
    AndScan "AND_SCAN" logical (g s) -> (g),
    OrScan "OR_SCAN" logical (g s) -> (g),
    XorScan "XOR_SCAN" logical (g s) -> (g),
    AddReduce "+_REDUCE" number (g s) -> (g),
    MultiplyReduce "*_REDUCE" number (g s) -> (g),
    MaxReduce "MAX_REDUCE" number (g s) -> (g),
    MinReduce "MIN_REDUCE" number (g s) -> (g),
    AndReduce "AND_REDUCE" logical (g s) -> (g),
    OrReduce "OR_REDUCE" logical (g s) -> (g),
    XorReduce "XOR_REDUCE" logical (g s) -> (g),
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
    RankUp "RANK_UP" number (g s) -> (i),
    RankDown "RANK_DOWN" number (g s) -> (i),
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
}

impl Op {
    /// Tells whether the result of an element depends only on the operands at the same index.
    pub fn is_elementwise(self) -> bool {
        (self as usize) <= Op::BoolToInt as usize
    }

    /// Tells whether the instruction has effects outside the program or depends on its own earlier calls.
    pub fn has_effect(self) -> bool {
        self == Op::Random || self as usize >= Op::StartTimer as usize
    }
}
