//! Error codes of the parser.

use broadloom_diag::Code;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        $($(#[$doc])* pub const $name: Code = Code($code);)*
    };
}

codes! {
    /// The input is larger than [`super::MAX_INPUT`].
    INPUT_TOO_LARGE = "P0001";
    /// Character that PTX does not have.
    BAD_CHARACTER = "P0002";
    /// Unterminated comment.
    OPEN_COMMENT = "P0003";
    /// Unterminated string.
    OPEN_STRING = "P0004";
    /// Malformed constant.
    BAD_NUMBER = "P0005";
    /// Unexpected token.
    UNEXPECTED = "P0006";
    /// `.version`, `.target` or `.address_size` is missing or wrong.
    BAD_HEADER = "P0007";
    /// Unknown directive.
    UNKNOWN_DIRECTIVE = "P0008";
    /// Unknown or unsuitable type.
    BAD_TYPE = "P0009";
    /// Name declared twice.
    DUPLICATE = "P0010";
    /// Undeclared name.
    UNDECLARED = "P0011";
    /// Undefined label.
    UNDEFINED_LABEL = "P0012";
    /// Name of the wrong kind.
    WRONG_NAME = "P0013";
    /// Modifier that the instruction does not take.
    BAD_MODIFIER = "P0014";
    /// Operands that do not fit the instruction.
    BAD_OPERANDS = "P0015";
    /// Constant expression without a value.
    BAD_EXPRESSION = "P0016";
    /// Unbalanced bracket or brace.
    UNBALANCED = "P0017";
    /// Nesting or size beyond a limit of the parser.
    LIMIT = "P0018";
    /// Initialiser that does not fit.
    BAD_INITIALISER = "P0019";
    /// Binary data instead of text.
    BINARY = "P0020";
}
