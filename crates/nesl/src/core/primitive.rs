//! Functions of the implementation. The library declares their types and describes them.

macro_rules! primitives {
    ($($(#[$meta:meta])* $variant:ident: $($name:literal)|+,)*) => {
        /// Function of the implementation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum Primitive { $($(#[$meta])* $variant,)* }

        impl Primitive {
            /// Returns the primitive for a name of the library.
            pub fn by_name(name: &str) -> Option<Primitive> {
                match name { $($($name)|+ => Some(Primitive::$variant),)* _ => None }
            }
        }
    };
}

primitives! {
    Add: "+",
    Subtract: "-",
    Multiply: "*",
    Divide: "/",
    Negate: "negate",
    Rem: "rem",
    LeftShift: "lshift",
    RightShift: "rshift",
    Equal: "==" | "=",
    NotEqual: "/=",
    Less: "<",
    Greater: ">",
    LessEqual: "<=",
    GreaterEqual: ">=",
    And: "and",
    Or: "or",
    Xor: "xor",
    Not: "not",
    Float: "float",
    Ceil: "ceil",
    Floor: "floor",
    Trunc: "trunc",
    Btoi: "btoi",
    CharCode: "char_code",
    CodeChar: "code_char",
    Sqrt: "sqrt",
    Ln: "ln",
    Exp: "exp",
    Sin: "sin",
    Cos: "cos",
    Tan: "tan",
    Asin: "asin",
    Acos: "acos",
    Atan: "atan",
    Sinh: "sinh",
    Cosh: "cosh",
    Tanh: "tanh",
    IntToAny: "int_to_any",
    FloatToAny: "float_to_any",
    AsFloat: "prim_as_float",
    Rand: "rand",
    RandSeed: "rand_seed",
    Eql: "eql",
    Identity: "identity",
    HashCode: "prim_hash",
    Show: "@" | "string",
    Digits: "prim_digits",
    Decimal: "prim_decimal",
    Length: "#" | "length",
    Dist: "dist" | "seq_dist",
    Elt: "elt",
    Rep: "rep",
    Iseq: "iseq",
    PlusScan: "plus_scan",
    MultScan: "mult_scan",
    MaxScan: "max_scan",
    MinScan: "min_scan",
    OrScan: "or_scan",
    AndScan: "and_scan",
    XorScan: "xor_scan",
    Sum: "sum",
    Product: "product",
    MaxVal: "max_val",
    MinVal: "min_val",
    Any: "any",
    All: "all",
    Parity: "parity",
    Permute: "permute",
    Get: "->" | "read" | "get",
    Put: "put",
    Rank: "rank",
    RankDown: "rank_down",
    Pack: "pack",
    Append: "++" | "append",
    Flatten: "flatten",
    Partition: "partition",
    Subseq: "subseq",
    Unpack: "unpack",
    Require: "prim_require",
    Fail: "prim_fail",
    PrintString: "print_string",
    Open: "prim_open",
    Close: "prim_close",
    Write: "prim_write",
    Read: "prim_read",
    WriteObject: "prim_write_object",
    ReadObject: "prim_read_object",
    ReadNumbers: "prim_read_numbers",
    ReadTable: "prim_read_table",
    ReadArray: "prim_read_array",
    DataText: "prim_data_text",
    Spawn: "prim_spawn",
    EnvironmentVariable: "get_environment_variable",
    StartTimer: "start_timer",
    StopTimer: "stop_timer",
}

impl Primitive {
    /// Tells whether a call has an effect besides its value, so that the order of calls is visible.
    pub(crate) fn has_effect(self) -> bool {
        self.is_serial()
            || matches!(self, Primitive::Rand | Primitive::PrintString | Primitive::StartTimer | Primitive::StopTimer)
    }

    /// Tells whether calls must be executed one after the other, in the order of the program.
    pub fn is_serial(self) -> bool {
        matches!(
            self,
            Primitive::RandSeed
                | Primitive::Open
                | Primitive::Close
                | Primitive::Write
                | Primitive::Read
                | Primitive::WriteObject
                | Primitive::ReadObject
                | Primitive::ReadNumbers
                | Primitive::Spawn
        )
    }
}
