//! Codes of the diagnostics: `N00xx` syntax, `N01xx` names, `N02xx` types, `N03xx` running, `N04xx` commands
//! and limits, `N05xx` VCODE.

use broadloom_diag::Code;

/// A character that starts no token.
pub const BAD_CHARACTER: Code = Code("N0001");
/// An unterminated comment.
pub const OPEN_COMMENT: Code = Code("N0002");
/// An unterminated string.
pub const OPEN_STRING: Code = Code("N0003");
/// A token that is not allowed at its place.
pub const UNEXPECTED: Code = Code("N0004");
/// A missing token.
pub const EXPECTED: Code = Code("N0005");
/// Nesting beyond the limit.
pub const TOO_DEEP: Code = Code("N0006");
/// An expression where a pattern is needed.
pub const BAD_PATTERN: Code = Code("N0007");
/// An invalid type expression.
pub const BAD_TYPE: Code = Code("N0008");
/// An optional argument at a place where it is not allowed.
pub const BAD_OPTIONAL: Code = Code("N0009");

/// A name without a definition.
pub const UNDEFINED: Code = Code("N0101");
/// A definition of a built-in name.
pub const BUILT_IN: Code = Code("N0102");
/// A reserved word as a name.
pub const RESERVED: Code = Code("N0103");
/// A variable twice in one pattern.
pub const REPEATED: Code = Code("N0104");
/// A type or class without a definition.
pub const UNKNOWN_TYPE: Code = Code("N0105");

/// Two types that differ.
pub const MISMATCH: Code = Code("N0201");
/// A call of a value that is not a function.
pub const NOT_A_FUNCTION: Code = Code("N0202");
/// A type outside a class.
pub const WRONG_CLASS: Code = Code("N0203");
/// A type that would contain itself.
pub const INFINITE_TYPE: Code = Code("N0204");
/// Two functions where one is required.
pub const TWO_FUNCTIONS: Code = Code("N0205");
/// A type beyond the limits.
pub const TYPE_TOO_LARGE: Code = Code("N0206");
/// A literal outside the range of its type.
pub const LITERAL_RANGE: Code = Code("N0207");
/// A serial function inside an apply-to-each.
pub const SERIAL_ONLY: Code = Code("N0208");
/// A call with a wrong number of arguments.
pub const ARGUMENT_COUNT: Code = Code("N0209");

/// A run-time error of an operation.
pub const RUN_TIME: Code = Code("N0301");
/// Recursion beyond the limit.
pub const RECURSION: Code = Code("N0302");
/// More steps than the limit.
pub const STEPS: Code = Code("N0303");
/// More memory than the limit.
pub const MEMORY: Code = Code("N0304");
/// `error(…)` of the program.
pub const USER_ERROR: Code = Code("N0305");
/// A device that cannot be opened or that failed.
pub const DEVICE: Code = Code("N0306");
/// A run that was interrupted from outside.
pub const INTERRUPTED: Code = Code("N0307");

/// Errors of a run that reached a limit of recursion, steps or memory.
pub const LIMITS: [Code; 3] = [RECURSION, STEPS, MEMORY];

/// A VCODE program that is not well-formed.
pub const VCODE: Code = Code("N0501");
/// A VCODE program whose types on the stack do not agree.
pub const VCODE_TYPES: Code = Code("N0502");

/// A command that cannot be executed.
pub const COMMAND: Code = Code("N0401");
/// A file that cannot be loaded.
pub const LOAD: Code = Code("N0402");
