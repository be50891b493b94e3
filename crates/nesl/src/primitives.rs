//! The table of primitives on scalars, and of their folds.
//!
//! A row describes a primitive once: its names in NESL, the instruction of VCODE, and a column for each
//! execution. The columns are read where their types are known: names here and in [`crate::core`],
//! instructions in `vcode/op.rs`, the others in `vcode/elementwise.rs` and `vcode/fold.rs`. A new row needs
//! its declaration in `prelude/`, and nothing else; a test compares the columns of all rows.
//!
//! Columns of elementwise operations:
//!
//! - `fails`: the operand, the value of it that ends the run, and the message;
//! - `host`: the result for each type of operands, without the rounding to the width of numbers;
//! - `device`: the operation of graphs and of scalar functions;
//! - `thread`: the PTX of a sequential form. Rows without a name have none.
//!
//! Columns of folds: how two values are combined, the neutral values of ints, floats, bools and characters,
//! and the reduction of graphs.

/// Passes the rows of elementwise operations to a macro, behind other tokens.
macro_rules! elementwise_rows {
    ($then:ident! $($rest:tt)*) => { $then! { $($rest)* elementwise {
        Add ["+"] "+" number (g g) -> (g) {
            host: { Int: two(|_, a: i64, b: i64| a.wrapping_add(b)), Float: two(|_, a: f64, b: f64| a + b) },
            device: Binary(BinaryOp::Add),
            thread: Typed([(Opcode::Add, None), (Opcode::Add, Some(Rn))]),
        }
        Subtract ["-"] "-" number (g g) -> (g) {
            host: { Int: two(|_, a: i64, b: i64| a.wrapping_sub(b)), Float: two(|_, a: f64, b: f64| a - b) },
            device: Binary(BinaryOp::Sub),
            thread: Typed([(Opcode::Sub, None), (Opcode::Sub, Some(Rn))]),
        }
        Multiply ["*"] "*" number (g g) -> (g) {
            host: { Int: two(|_, a: i64, b: i64| a.wrapping_mul(b)), Float: two(|_, a: f64, b: f64| a * b) },
            device: Binary(BinaryOp::Mul),
            thread: Typed([(Opcode::Mul, Some(Lo)), (Opcode::Mul, Some(Rn))]),
        }
        Divide ["/"] "/" number (g g) -> (g) {
            fails: 1 Zero "division by zero",
            host: { Int: two(|_, a: i64, b: i64| a.wrapping_div(b)), Float: two(|_, a: f64, b: f64| a / b) },
            device: Binary(BinaryOp::Div),
            thread: Divide,
        }
        Modulo ["rem"] "%" i (i i) -> (i) {
            fails: 1 Zero "division by zero",
            host: { Int: two(|_, a: i64, b: i64| a.wrapping_rem(b)) },
            device: Binary(BinaryOp::Rem),
            thread: Remainder,
        }
        Less ["<"] "<" number (g g) -> (b) {
            host: { Int: two(|_, a: i64, b: i64| a < b), Float: two(|_, a: f64, b: f64| a < b) },
            device: Compare(CompareOp::Lt),
            thread: Compare([Lt, Lt]),
        }
        LessEqual ["<="] "<=" number (g g) -> (b) {
            host: { Int: two(|_, a: i64, b: i64| a <= b), Float: two(|_, a: f64, b: f64| a <= b) },
            device: Compare(CompareOp::Le),
            thread: Compare([Le, Le]),
        }
        Greater [">"] ">" number (g g) -> (b) {
            host: { Int: two(|_, a: i64, b: i64| a > b), Float: two(|_, a: f64, b: f64| a > b) },
            device: Compare(CompareOp::Gt),
            thread: Compare([Gt, Gt]),
        }
        GreaterEqual [">="] ">=" number (g g) -> (b) {
            host: { Int: two(|_, a: i64, b: i64| a >= b), Float: two(|_, a: f64, b: f64| a >= b) },
            device: Compare(CompareOp::Ge),
            thread: Compare([Ge, Ge]),
        }
        Equal ["==" | "="] "=" number (g g) -> (b) {
            host: { Int: two(|_, a: i64, b: i64| a == b), Float: two(|_, a: f64, b: f64| a == b) },
            device: Compare(CompareOp::Eq),
            thread: Compare([Eq, Eq]),
        }
        NotEqual ["/="] "!=" number (g g) -> (b) {
            host: { Int: two(|_, a: i64, b: i64| a != b), Float: two(|_, a: f64, b: f64| a != b) },
            device: Compare(CompareOp::Ne),
            thread: Compare([Ne, Neu]),
        }
        // A shift takes the low bits of its count, as processors do.
        LeftShift ["lshift"] "LSHIFT" i (i i) -> (i) {
            host: { Int: two(|w, a: i64, b: i64| a << (b & w.low_bits())) },
            device: Code("lshift", |f, x, int| f.shl(x[0], f.and(x[1], low_bits(int)))),
            thread: LeftShift,
        }
        RightShift ["rshift"] "RSHIFT" i (i i) -> (i) {
            host: { Int: two(|w, a: i64, b: i64| a >> (b & w.low_bits())) },
            device: Code("rshift", |f, x, int| f.shr(x[0], f.and(x[1], low_bits(int)))),
            thread: RightShift,
        }
        Not ["not"] "NOT" logical (g) -> (g) {
            host: { Int: one(|_, a: i64| !a), Bool: one(|_, a: bool| !a) },
            device: Unary(UnaryOp::Not),
            thread: Bits(Opcode::Not),
        }
        And ["and"] "AND" logical (g g) -> (g) {
            host: { Int: two(|_, a: i64, b: i64| a & b), Bool: two(|_, a: bool, b: bool| a & b) },
            device: Binary(BinaryOp::And),
            thread: Bits(Opcode::And),
        }
        Or ["or"] "OR" logical (g g) -> (g) {
            host: { Int: two(|_, a: i64, b: i64| a | b), Bool: two(|_, a: bool, b: bool| a | b) },
            device: Binary(BinaryOp::Or),
            thread: Bits(Opcode::Or),
        }
        Xor ["xor"] "XOR" logical (g g) -> (g) {
            host: { Int: two(|_, a: i64, b: i64| a ^ b), Bool: two(|_, a: bool, b: bool| a ^ b) },
            device: Binary(BinaryOp::Xor),
            thread: Bits(Opcode::Xor),
        }
        Floor ["floor"] "FLOOR" f (f) -> (i) {
            host: { Float: one(|w, a: f64| w.to_int(a.floor())) },
            device: Code("floor", |f, x, int| f.convert(f.floor(x[0]), int)),
            thread: ToInt(Rmi),
        }
        Ceil ["ceil"] "CEIL" f (f) -> (i) {
            host: { Float: one(|w, a: f64| w.to_int(a.ceil())) },
            device: Code("ceil", |f, x, int| f.convert(f.ceil(x[0]), int)),
            thread: ToInt(Rpi),
        }
        Trunc ["trunc"] "TRUNC" f (f) -> (i) {
            host: { Float: one(|w, a: f64| w.to_int(a)) },
            device: Convert(Type::Int),
            thread: ToInt(Rzi),
        }
        Round [] "ROUND" f (f) -> (i) {
            host: { Float: one(|w, a: f64| w.to_int(if a < 0.0 { a - 0.5 } else { a + 0.5 })) },
            device: Code("round", |f, x, int| {
                f.convert(f.select(f.lt(x[0], 0), f.sub(x[0], 0.5), f.add(x[0], 0.5)), int)
            }),
            thread: Absent,
        }
        Log ["ln"] "LOG" f (f) -> (f) {
            fails: 0 Negative "logarithm of a negative number",
            host: { Float: one(|_, a: f64| a.ln()) },
            device: Math(MathFunction::Log),
            thread: Elementary(MathFunction::Log),
        }
        Sqrt ["sqrt"] "SQRT" f (f) -> (f) {
            fails: 0 Negative "square root of a negative number",
            host: { Float: one(|_, a: f64| a.sqrt()) },
            device: Unary(UnaryOp::Sqrt),
            thread: Typed([(Opcode::Sqrt, None), (Opcode::Sqrt, Some(Rn))]),
        }
        Exp ["exp"] "EXP" f (f) -> (f) {
            host: { Float: one(|_, a: f64| a.exp()) },
            device: Math(MathFunction::Exp),
            thread: Elementary(MathFunction::Exp),
        }
        Sin ["sin"] "SIN" f (f) -> (f) {
            host: { Float: one(|_, a: f64| a.sin()) },
            device: Math(MathFunction::Sin),
            thread: Elementary(MathFunction::Sin),
        }
        Cos ["cos"] "COS" f (f) -> (f) {
            host: { Float: one(|_, a: f64| a.cos()) },
            device: Math(MathFunction::Cos),
            thread: Elementary(MathFunction::Cos),
        }
        Tan ["tan"] "TAN" f (f) -> (f) {
            host: { Float: one(|_, a: f64| a.tan()) },
            device: Math(MathFunction::Tan),
            thread: Elementary(MathFunction::Tan),
        }
        Asin ["asin"] "ASIN" f (f) -> (f) {
            host: { Float: one(|_, a: f64| a.asin()) },
            device: Math(MathFunction::Asin),
            thread: Elementary(MathFunction::Asin),
        }
        Acos ["acos"] "ACOS" f (f) -> (f) {
            host: { Float: one(|_, a: f64| a.acos()) },
            device: Math(MathFunction::Acos),
            thread: Elementary(MathFunction::Acos),
        }
        Atan ["atan"] "ATAN" f (f) -> (f) {
            host: { Float: one(|_, a: f64| a.atan()) },
            device: Math(MathFunction::Atan),
            thread: Elementary(MathFunction::Atan),
        }
        Sinh ["sinh"] "SINH" f (f) -> (f) {
            host: { Float: one(|_, a: f64| a.sinh()) },
            device: Math(MathFunction::Sinh),
            thread: Elementary(MathFunction::Sinh),
        }
        Cosh ["cosh"] "COSH" f (f) -> (f) {
            host: { Float: one(|_, a: f64| a.cosh()) },
            device: Math(MathFunction::Cosh),
            thread: Elementary(MathFunction::Cosh),
        }
        Tanh ["tanh"] "TANH" f (f) -> (f) {
            host: { Float: one(|_, a: f64| a.tanh()) },
            device: Math(MathFunction::Tanh),
            thread: Elementary(MathFunction::Tanh),
        }
        IntToFloat ["float"] "I_TO_F" i (i) -> (f) {
            host: { Int: one(|_, a: i64| a as f64) },
            device: Convert(Type::Float),
            thread: ToFloat,
        }
        IntToBool [] "I_TO_B" i (i) -> (b) {
            host: { Int: one(|_, a: i64| a != 0) },
            device: Code("truth", |f, x, _| f.ne(x[0], 0)),
            thread: Absent,
        }
        BoolToInt ["btoi"] "B_TO_I" b (b) -> (i) {
            host: { Bool: one(|_, a: bool| i64::from(a)) },
            device: Convert(Type::Int),
            thread: OfBool,
        }
    } } };
}

/// Passes the rows of folds to a macro, behind other tokens.
macro_rules! fold_rows {
    ($then:ident! $($rest:tt)*) => { $then! { $($rest)* folds {
        Sum ["plus_scan", "sum"] AddScan "+_SCAN" AddReduce "+_REDUCE" number {
            combine: Operation(Elementwise::Add),
            neutral: (|_| 0, 0.0, false, 0),
            device: Combine::Sum,
        }
        Product ["mult_scan", "product"] MultiplyScan "*_SCAN" MultiplyReduce "*_REDUCE" number {
            combine: Operation(Elementwise::Multiply),
            neutral: (|_| 1, 1.0, true, 1),
            device: Combine::Product,
        }
        Max ["max_scan", "max_val"] MaxScan "MAX_SCAN" MaxReduce "MAX_REDUCE" number {
            combine: Extremum(Elementwise::Greater),
            neutral: (|w| w.least_int(), -LARGEST_FLOAT, false, 0),
            device: Combine::Max,
        }
        Min ["min_scan", "min_val"] MinScan "MIN_SCAN" MinReduce "MIN_REDUCE" number {
            combine: Extremum(Elementwise::Less),
            neutral: (|w| !w.least_int(), LARGEST_FLOAT, true, 255),
            device: Combine::Min,
        }
        And ["and_scan", "all"] AndScan "AND_SCAN" AndReduce "AND_REDUCE" logical {
            combine: Operation(Elementwise::And),
            neutral: (|_| -1, 0.0, true, 0),
            device: Combine::All,
        }
        Or ["or_scan", "any"] OrScan "OR_SCAN" OrReduce "OR_REDUCE" logical {
            combine: Operation(Elementwise::Or),
            neutral: (|_| 0, 0.0, false, 0),
            device: Combine::Any,
        }
        Xor ["xor_scan", "parity"] XorScan "XOR_SCAN" XorReduce "XOR_REDUCE" logical {
            combine: Operation(Elementwise::Xor),
            neutral: (|_| 0, 0.0, false, 0),
            device: Combine::Odd,
        }
    } } };
}

pub(crate) use {elementwise_rows, fold_rows};

macro_rules! enums {
    (
        elementwise { $($variant:ident [$($name:literal)|*] $vcode:literal $choice:ident
            ($($operand:ident)*) -> ($($result:ident)*) { $($columns:tt)* })* }
        folds { $($fold:ident [$scan:literal, $reduce:literal] $scan_op:ident $scan_vcode:literal
            $reduce_op:ident $reduce_vcode:literal $fold_choice:ident { $($fold_columns:tt)* })* }
    ) => {
        /// Operation on scalars, done element by element on vectors.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum Elementwise { $($variant,)* }

        impl Elementwise {
            /// All rows of the table.
            pub const ALL: &'static [Elementwise] = &[$(Elementwise::$variant,)*];

            /// Returns the names of the primitive in NESL.
            pub fn names(self) -> &'static [&'static str] {
                match self { $(Elementwise::$variant => &[$($name,)*],)* }
            }
        }

        /// Operation that combines the elements of a sequence.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum Fold { $($fold,)* }

        impl Fold {
            /// All rows of the table.
            pub const ALL: &'static [Fold] = &[$(Fold::$fold,)*];

            /// Returns the names of its scan and its reduction in NESL.
            pub fn names(self) -> [&'static str; 2] {
                match self { $(Fold::$fold => [$scan, $reduce],)* }
            }
        }
    };
}

elementwise_rows! { fold_rows! enums! }
