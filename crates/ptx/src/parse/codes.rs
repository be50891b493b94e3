//! The codes of everything the parser can find wrong.

use broadloom_diag::Code;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        $($(#[$doc])* pub const $name: Code = Code($code);)*
    };
}

codes! {
    /// The input is larger than [`super::MAX_INPUT`].
    INPUT_TOO_LARGE = "P0001";
    /// A character that PTX does not have.
    BAD_CHARACTER = "P0002";
    /// A comment without its end.
    OPEN_COMMENT = "P0003";
    /// A string without its end.
    OPEN_STRING = "P0004";
    /// A constant that cannot be read.
    BAD_NUMBER = "P0005";
    /// Something else was expected.
    UNEXPECTED = "P0006";
    /// `.version`, `.target` or `.address_size` is missing or wrong.
    BAD_HEADER = "P0007";
    /// A directive that PTX does not have.
    UNKNOWN_DIRECTIVE = "P0008";
    /// A type that does not exist or does not fit.
    BAD_TYPE = "P0009";
    /// A name declared twice.
    DUPLICATE = "P0010";
    /// A name that was never declared.
    UNDECLARED = "P0011";
    /// A label that is never defined.
    UNDEFINED_LABEL = "P0012";
    /// A name that is something else than needed here.
    WRONG_NAME = "P0013";
    /// A modifier that the instruction does not take.
    BAD_MODIFIER = "P0014";
    /// Operands that do not fit the instruction.
    BAD_OPERANDS = "P0015";
    /// A constant expression that has no value.
    BAD_EXPRESSION = "P0016";
    /// A bracket or brace without its partner.
    UNBALANCED = "P0017";
    /// Something nested or sized beyond what is read.
    LIMIT = "P0018";
    /// An initialiser that does not fit.
    BAD_INITIALISER = "P0019";
    /// Data that is no text.
    BINARY = "P0020";
}
