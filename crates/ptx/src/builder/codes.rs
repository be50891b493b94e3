//! Error codes of the builder.

broadloom_diag::codes! {
    BAD_MODIFIERS "B0001" "Modifiers that the instruction does not take.";
    BAD_OPERANDS "B0002" "Sources or results that do not fit the instruction.";
    BAD_BLOCK "B0003" "Block that is used but never placed, or placed twice.";
    BAD_FUNCTION "B0004" "Function that was started but not defined, or defined twice.";
    BAD_NAME "B0005" "Name that is used twice or that PTX cannot express.";
    BAD_CALL "B0006" "Arguments that do not match the called function.";
}
