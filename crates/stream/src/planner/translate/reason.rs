//! Why a filter is not translated.

/// The reason why a filter is not translated, as text that follows the name of the filter.
pub type Reason = String;
