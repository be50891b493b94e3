//! Error codes of the verifier.

use broadloom_diag::Code;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        $($(#[$doc])* pub const $name: Code = Code($code);)*
    };
}

codes! {
    /// Dangling ID.
    BAD_ID = "V0001";
    /// Duplicate name.
    DUPLICATE_NAME = "V0002";
    /// Name or string that PTX cannot express.
    BAD_NAME = "V0003";
    /// Items of a module that do not agree with its tables.
    BAD_ITEMS = "V0004";
    /// Incompatible `.version`, `.target` or `.address_size`.
    BAD_HEADER = "V0005";
    /// Malformed blocks.
    BAD_BLOCK = "V0006";
    /// Branch to a block without a label.
    NO_LABEL = "V0007";
    /// Modifiers or operands that do not belong to the instruction's form.
    BAD_FORM = "V0008";
    /// Feature newer than the `.version` of the module.
    NEEDS_VERSION = "V0009";
    /// Feature that the `.target` of the module does not have.
    NEEDS_TARGET = "V0010";
    /// Register of the wrong kind.
    WRONG_KIND = "V0011";
    /// Register of the wrong width.
    WRONG_WIDTH = "V0012";
    /// Immediate of the wrong kind.
    BAD_IMMEDIATE = "V0013";
    /// Immediate out of range.
    OUT_OF_RANGE = "V0014";
    /// Vector with incompatible elements.
    BAD_VECTOR = "V0015";
    /// Result that cannot be discarded.
    BAD_SINK = "V0016";
    /// Special register where none is allowed, or of the wrong width.
    BAD_SPECIAL = "V0017";
    /// Guard that is not a predicate.
    BAD_GUARD = "V0018";
    /// Malformed address.
    BAD_ADDRESS = "V0019";
    /// Variable in a different state space than the instruction's.
    WRONG_SPACE = "V0020";
    /// Address that is always misaligned.
    MISALIGNED = "V0021";
    /// Invalid use of a parameter.
    BAD_PARAM_USE = "V0022";
    /// Symbol whose address cannot be taken here.
    BAD_SYMBOL = "V0023";
    /// Call of something that is not callable.
    BAD_CALLEE = "V0024";
    /// Wrong number of arguments or results.
    ARGUMENT_COUNT = "V0025";
    /// Argument or result that does not fit the parameter.
    BAD_ARGUMENT = "V0026";
    /// Invalid parameter of a kernel or function.
    BAD_PARAM = "V0027";
    /// Invalid directive of a function.
    BAD_DIRECTIVE = "V0028";
    /// Invalid type or state space of a variable.
    BAD_VARIABLE = "V0029";
    /// Array of unknown size.
    INCOMPLETE = "V0030";
    /// Initialiser that does not fit the variable.
    BAD_INITIALISER = "V0031";
    /// Memory limit exceeded.
    LIMIT = "V0032";
    /// Invalid linkage.
    BAD_LINKAGE = "V0033";
    /// Invalid alias.
    BAD_ALIAS = "V0034";
    /// Part of a register, or a minus sign, where none is allowed.
    BAD_PART = "V0035";
    /// Incompatible texture operands.
    BAD_TEXTURE = "V0036";
    /// Violation of the function's body form.
    BAD_SSA = "V0037";
}
