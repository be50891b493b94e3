//! The hash of tables that are looked at in every evaluation: nodes by their address, expressions and plans by their structure. What is in them comes from the
//! program itself, so nobody picks keys that collide.

/// A table with [`Quick`] hashes.
pub(crate) type QuickMap<K, V> = rustc_hash::FxHashMap<K, V>;

/// The hash of words so far.
pub(crate) type Quick = rustc_hash::FxHasher;
