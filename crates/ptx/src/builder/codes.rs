//! The codes of everything the builder can find wrong.

use broadloom_diag::Code;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        $($(#[$doc])* pub const $name: Code = Code($code);)*
    };
}

codes! {
    /// Modifiers that the instruction does not take.
    BAD_MODIFIERS = "B0001";
    /// Sources or results that do not fit the instruction.
    BAD_OPERANDS = "B0002";
    /// A block that is used and never placed, or placed twice.
    BAD_BLOCK = "B0003";
    /// A function that was started and not defined, or defined twice.
    BAD_FUNCTION = "B0004";
    /// A name that is used twice or that PTX cannot write.
    BAD_NAME = "B0005";
    /// Arguments that do not fit the function called.
    BAD_CALL = "B0006";
}
