//! The hash function of tables that each evaluation reads: nodes by address, expressions and plans by
//! structure. The keys come from the program itself, so an attacker cannot choose colliding keys.

/// A table with [`Quick`] hashes.
pub(crate) type QuickMap<K, V> = rustc_hash::FxHashMap<K, V>;

/// A set with [`Quick`] hashes.
pub(crate) type QuickSet<K> = rustc_hash::FxHashSet<K>;

/// Hash state of words.
pub(crate) type Quick = rustc_hash::FxHasher;
