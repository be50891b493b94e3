//! Error codes of the parser.

broadloom_diag::codes! {
    INPUT_TOO_LARGE "P0001" "The input is larger than [`super::MAX_INPUT`].";
    BAD_CHARACTER "P0002" "Character that PTX does not have.";
    OPEN_COMMENT "P0003" "Unterminated comment.";
    OPEN_STRING "P0004" "Unterminated string.";
    BAD_NUMBER "P0005" "Malformed constant.";
    UNEXPECTED "P0006" "Unexpected token.";
    BAD_HEADER "P0007" "`.version`, `.target` or `.address_size` is missing or wrong.";
    UNKNOWN_DIRECTIVE "P0008" "Unknown directive.";
    BAD_TYPE "P0009" "Unknown or unsuitable type.";
    DUPLICATE "P0010" "Name declared twice.";
    UNDECLARED "P0011" "Undeclared name.";
    UNDEFINED_LABEL "P0012" "Undefined label.";
    WRONG_NAME "P0013" "Name of the wrong kind.";
    BAD_MODIFIER "P0014" "Modifier that the instruction does not take.";
    BAD_OPERANDS "P0015" "Operands that do not fit the instruction.";
    BAD_EXPRESSION "P0016" "Constant expression without a value.";
    UNBALANCED "P0017" "Unbalanced bracket or brace.";
    LIMIT "P0018" "Nesting or size beyond a limit of the parser.";
    BAD_INITIALISER "P0019" "Initialiser that does not fit.";
    BINARY "P0020" "Binary data instead of text.";
}
