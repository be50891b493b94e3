//! Codes of the diagnostics: `S00xx` syntax, `S01xx` names, `S02xx` types, `S03xx` graph and schedule,
//! `S04xx` running, `S05xx` limits.

use broadloom_diag::Code;

/// A character that begins no token.
pub const BAD_CHARACTER: Code = Code("S0001");
/// A comment without its end.
pub const OPEN_COMMENT: Code = Code("S0002");
/// A string without its end, or with an unknown escape.
pub const BAD_STRING: Code = Code("S0003");
/// An unexpected token.
pub const UNEXPECTED: Code = Code("S0004");
/// Nesting beyond the limit.
pub const TOO_DEEP: Code = Code("S0005");
/// A malformed number.
pub const BAD_NUMBER: Code = Code("S0006");
/// A duplicated or missing part of a declaration.
pub const BAD_DECLARATION: Code = Code("S0007");

/// A name without a declaration.
pub const UNDEFINED: Code = Code("S0101");
/// Two declarations of one name.
pub const REPEATED: Code = Code("S0102");
/// A local that hides a stream parameter.
pub const HIDES_PARAMETER: Code = Code("S0103");
/// A program without exactly one top-level stream.
pub const TOP_LEVEL: Code = Code("S0104");

/// A value of the wrong type.
pub const MISMATCH: Code = Code("S0201");
/// An operator that is not defined for its operands.
pub const BAD_OPERANDS: Code = Code("S0202");
/// A call with a wrong number of arguments.
pub const ARGUMENT_COUNT: Code = Code("S0203");
/// An assignment to a constant.
pub const CONSTANT: Code = Code("S0204");
/// A statement or expression that is not allowed here.
pub const MISPLACED: Code = Code("S0205");
/// An unknown member, or an index into a value that is not an array.
pub const BAD_ACCESS: Code = Code("S0206");
/// A function that ends without a value.
pub const NO_RESULT: Code = Code("S0207");
/// A tape operation in a filter without that tape.
pub const NO_TAPE: Code = Code("S0208");

/// Connected streams with different item types.
pub const TAPE_TYPE: Code = Code("S0301");
/// A rate that is missing, negative or not a constant.
pub const BAD_RATE: Code = Code("S0302");
/// Rates without a steady state.
pub const UNBALANCED: Code = Code("S0303");
/// A feedback loop without enough items.
pub const DEADLOCK: Code = Code("S0304");
/// A splitjoin or feedbackloop with missing, repeated or surplus parts.
pub const BAD_SHAPE: Code = Code("S0305");
/// A message without a path between sender and receiver, or without a handler.
pub const BAD_MESSAGE: Code = Code("S0306");

/// A failed operation at run time.
pub const RUN_TIME: Code = Code("S0401");
/// A firing that pushed, popped or peeked a different number of items than declared.
pub const RATE_BROKEN: Code = Code("S0402");
/// A message that came too late.
pub const MISSED_DEADLINE: Code = Code("S0403");
/// A file that cannot be read or written.
pub const FILE: Code = Code("S0404");

/// A run that was stopped from outside.
pub const STOPPED: Code = Code("S0405");
/// A file that ended before a filter had its items, or within an item.
pub const END_OF_INPUT: Code = Code("S0406");

/// More steps than the limit.
pub const STEPS: Code = Code("S0501");
/// More memory than the limit.
pub const MEMORY: Code = Code("S0502");
/// Calls or streams nested beyond the limit.
pub const DEPTH: Code = Code("S0503");
/// A graph or a schedule beyond the limit.
pub const TOO_LARGE: Code = Code("S0504");

/// Errors of a run that reached a limit.
pub const LIMITS: [Code; 4] = [STEPS, MEMORY, DEPTH, TOO_LARGE];

/// A device that could not be used.
pub const DEVICE: Code = Code("S0601");
