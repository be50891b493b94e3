//! Words of messages.

/// Returns a number and a noun: "1 item", "2 items".
pub(crate) fn plural(count: impl Into<u128>, noun: &str) -> String {
    let count = count.into();
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
