//! Error codes of launches.

broadloom_diag::codes! {
    BAD_ARGUMENT "L0001" "Malformed argument.";
    BAD_VALUE "L0002" "Value out of range for its type.";
    TOO_LARGE "L0003" "Buffer larger than [`crate::MAX_BYTES`].";
    MISFIT "L0004" "Argument that does not match the kernel's parameter.";
    NO_KERNEL "L0005" "Missing or unknown kernel name.";
    BAD_FILE "L0006" "Unreadable file.";
    BAD_OPTION "L0007" "Malformed launch option.";
}
