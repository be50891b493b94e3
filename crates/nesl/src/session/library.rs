//! The library: the files of `prelude/`, in the order in which they are read.

/// Names and texts of the files.
pub(super) const FILES: [(&str, &str); 12] = [
    ("logic.nesl", include_str!("../../prelude/logic.nesl")),
    ("arithmetic.nesl", include_str!("../../prelude/arithmetic.nesl")),
    ("elementary.nesl", include_str!("../../prelude/elementary.nesl")),
    ("sequence.nesl", include_str!("../../prelude/sequence.nesl")),
    ("reorder.nesl", include_str!("../../prelude/reorder.nesl")),
    ("apply.nesl", include_str!("../../prelude/apply.nesl")),
    ("nest.nesl", include_str!("../../prelude/nest.nesl")),
    ("collection.nesl", include_str!("../../prelude/collection.nesl")),
    ("table.nesl", include_str!("../../prelude/table.nesl")),
    ("text.nesl", include_str!("../../prelude/text.nesl")),
    ("files.nesl", include_str!("../../prelude/files.nesl")),
    ("helpers.nesl", include_str!("../../prelude/helpers.nesl")),
];

/// The prefix of names that programs do not see.
pub(super) const HIDDEN: &str = "prim_";

/// Names of the library that a program may define anew.
pub(super) const REDEFINABLE: [&str; 40] = [
    "all",
    "any",
    "bottop",
    "cond_put",
    "count",
    "display",
    "drop",
    "elt",
    "enumerate",
    "exp_string",
    "hash",
    "head_rest",
    "index",
    "interleave",
    "iseq",
    "join",
    "ln",
    "max_index",
    "max_val",
    "min_index",
    "min_val",
    "mod",
    "partition",
    "permute",
    "put",
    "rand",
    "rem",
    "rest_tail",
    "rotate",
    "split",
    "sqrt",
    "subseq",
    "sum",
    "take",
    "trace_string_depth",
    "trace_string_length",
    "transpose",
    "unpack",
    "user",
    "zip",
];
