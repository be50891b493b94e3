//! Error codes of the builder.

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
    /// Block that is used but never placed, or placed twice.
    BAD_BLOCK = "B0003";
    /// Function that was started but not defined, or defined twice.
    BAD_FUNCTION = "B0004";
    /// Name that is used twice or that PTX cannot express.
    BAD_NAME = "B0005";
    /// Arguments that do not match the called function.
    BAD_CALL = "B0006";
}
