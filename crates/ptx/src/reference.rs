//! The reference page.
