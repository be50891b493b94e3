//! Error codes of the verifier.

broadloom_diag::codes! {
    BAD_ID "V0001" "Dangling ID.";
    DUPLICATE_NAME "V0002" "Duplicate name.";
    BAD_NAME "V0003" "Name or string that PTX cannot express.";
    BAD_ITEMS "V0004" "Items of a module that do not agree with its tables.";
    BAD_HEADER "V0005" "Incompatible `.version`, `.target` or `.address_size`.";
    BAD_BLOCK "V0006" "Malformed blocks.";
    NO_LABEL "V0007" "Branch to a block without a label.";
    BAD_FORM "V0008" "Modifiers or operands that do not belong to the instruction's form.";
    NEEDS_VERSION "V0009" "Feature newer than the `.version` of the module.";
    NEEDS_TARGET "V0010" "Feature that the `.target` of the module does not have.";
    WRONG_KIND "V0011" "Register of the wrong kind.";
    WRONG_WIDTH "V0012" "Register of the wrong width.";
    BAD_IMMEDIATE "V0013" "Immediate of the wrong kind.";
    OUT_OF_RANGE "V0014" "Immediate out of range.";
    BAD_VECTOR "V0015" "Vector with incompatible elements.";
    BAD_SINK "V0016" "Result that cannot be discarded.";
    BAD_SPECIAL "V0017" "Special register where none is allowed, or of the wrong width.";
    BAD_GUARD "V0018" "Guard that is not a predicate.";
    BAD_ADDRESS "V0019" "Malformed address.";
    WRONG_SPACE "V0020" "Variable in a different state space than the instruction's.";
    MISALIGNED "V0021" "Address that is always misaligned.";
    BAD_PARAM_USE "V0022" "Invalid use of a parameter.";
    BAD_SYMBOL "V0023" "Symbol whose address cannot be taken here.";
    BAD_CALLEE "V0024" "Call of something that is not callable.";
    ARGUMENT_COUNT "V0025" "Wrong number of arguments or results.";
    BAD_ARGUMENT "V0026" "Argument or result that does not fit the parameter.";
    BAD_PARAM "V0027" "Invalid parameter of a kernel or function.";
    BAD_DIRECTIVE "V0028" "Invalid directive of a function.";
    BAD_VARIABLE "V0029" "Invalid type or state space of a variable.";
    INCOMPLETE "V0030" "Array of unknown size.";
    BAD_INITIALISER "V0031" "Initialiser that does not fit the variable.";
    LIMIT "V0032" "Memory limit exceeded.";
    BAD_LINKAGE "V0033" "Invalid linkage.";
    BAD_ALIAS "V0034" "Invalid alias.";
    BAD_PART "V0035" "Part of a register, or a minus sign, where none is allowed.";
    BAD_TEXTURE "V0036" "Incompatible texture operands.";
    BAD_SSA "V0037" "Violation of the function's body form.";
}
