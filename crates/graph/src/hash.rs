//! The hash function of tables that every evaluation reads: nodes by address, expressions and plans by structure. The keys come from the
//! program itself, so nobody can choose colliding keys.

/// A table with [`Quick`] hashes.
pub(crate) type QuickMap<K, V> = rustc_hash::FxHashMap<K, V>;

/// A set with [`Quick`] hashes.
pub(crate) type QuickSet<K> = rustc_hash::FxHashSet<K>;

/// The hash of words so far.
pub(crate) type Quick = rustc_hash::FxHasher;
