//! Entries that are kept, shared, broken and refused.
