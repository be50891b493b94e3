//! The codes of everything the verifier can find wrong.

use broadloom_diag::Code;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        $($(#[$doc])* pub const $name: Code = Code($code);)*
    };
}

codes! {
    /// An id that points to nothing.
    BAD_ID = "V0001";
    /// A name that two things have.
    DUPLICATE_NAME = "V0002";
    /// A name or string that PTX cannot write.
    BAD_NAME = "V0003";
    /// The list of a module's items does not agree with its tables.
    BAD_ITEMS = "V0004";
    /// `.version`, `.target` or `.address_size` that do not go together.
    BAD_HEADER = "V0005";
    /// Blocks that do not make a function.
    BAD_BLOCK = "V0006";
    /// A branch to a block without a label.
    NO_LABEL = "V0007";
    /// Modifiers or operands that are none of the instruction's form.
    BAD_FORM = "V0008";
    /// Something newer than the `.version` of the module.
    NEEDS_VERSION = "V0009";
    /// Something that the `.target` of the module does not have.
    NEEDS_TARGET = "V0010";
    /// A register of another kind than the instruction takes.
    WRONG_KIND = "V0011";
    /// A register of another width than the instruction takes.
    WRONG_WIDTH = "V0012";
    /// An immediate of another kind than the instruction takes.
    BAD_IMMEDIATE = "V0013";
    /// An immediate outside of what the instruction takes.
    OUT_OF_RANGE = "V0014";
    /// A vector whose elements do not go together.
    BAD_VECTOR = "V0015";
    /// A result thrown away that cannot be.
    BAD_SINK = "V0016";
    /// A special register where none may stand, or of another width.
    BAD_SPECIAL = "V0017";
    /// A guard that is no predicate.
    BAD_GUARD = "V0018";
    /// An address that is none.
    BAD_ADDRESS = "V0019";
    /// A variable in another state space than the instruction's.
    WRONG_SPACE = "V0020";
    /// An address that is misaligned whatever happens.
    MISALIGNED = "V0021";
    /// A parameter used in a way parameters cannot be.
    BAD_PARAM_USE = "V0022";
    /// A name whose address cannot be taken here.
    BAD_SYMBOL = "V0023";
    /// A call of something that cannot be called.
    BAD_CALLEE = "V0024";
    /// A call with too many or too few arguments or results.
    ARGUMENT_COUNT = "V0025";
    /// An argument or result that does not fit the parameter.
    BAD_ARGUMENT = "V0026";
    /// A parameter that a kernel or function cannot have.
    BAD_PARAM = "V0027";
    /// A directive that the function cannot have.
    BAD_DIRECTIVE = "V0028";
    /// A variable of a type or in a space that it cannot have.
    BAD_VARIABLE = "V0029";
    /// An array whose size nothing says.
    INCOMPLETE = "V0030";
    /// First contents that do not fit the variable.
    BAD_INITIALISER = "V0031";
    /// More memory than a machine has.
    LIMIT = "V0032";
    /// A linkage that does not go with the rest.
    BAD_LINKAGE = "V0033";
    /// An alias that cannot be.
    BAD_ALIAS = "V0034";
    /// A part of a register, or a minus before it, where none may stand.
    BAD_PART = "V0035";
    /// Texture operands that do not go together.
    BAD_TEXTURE = "V0036";
    /// A function that is not in the form that it should be in.
    BAD_SSA = "V0037";
}
