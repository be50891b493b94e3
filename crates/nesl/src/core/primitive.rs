//! Functions of the implementation. The library declares their types and describes them.

use crate::primitives::{Elementwise, Fold};

macro_rules! primitives {
    ($($variant:ident: $($name:literal)|+,)*) => {
        /// Function of the implementation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum Primitive {
            /// Operation on scalars.
            Elementwise(Elementwise),
            /// Combinations of the elements before each element.
            Scan(Fold),
            /// Combination of all elements.
            Reduce(Fold),
            $($variant,)*
        }

        impl Primitive {
            /// Returns the primitive for a name of the library.
            pub fn by_name(name: &str) -> Option<Primitive> {
                if let Some(operation) = Elementwise::ALL.iter().find(|row| row.names().contains(&name)) {
                    return Some(Primitive::Elementwise(*operation));
                }
                if let Some(fold) = Fold::ALL.iter().find(|row| row.names().contains(&name)) {
                    let is_scan = fold.names()[0] == name;
                    return Some(if is_scan { Primitive::Scan(*fold) } else { Primitive::Reduce(*fold) });
                }
                match name { $($($name)|+ => Some(Primitive::$variant),)* _ => None }
            }

            /// Returns the first of its names in the library.
            pub fn name(self) -> &'static str {
                match self {
                    Primitive::Elementwise(operation) => operation.names().first().copied().unwrap_or_default(),
                    Primitive::Scan(fold) => fold.names()[0],
                    Primitive::Reduce(fold) => fold.names()[1],
                    $(Primitive::$variant => [$($name),+][0],)*
                }
            }
        }
    };
}

primitives! {
    Negate: "negate",
    CharCode: "char_code",
    CodeChar: "code_char",
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
