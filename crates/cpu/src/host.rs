//! What the host says of its caches.

use std::sync::OnceLock;

/// Bytes of the last-level cache, where the host tells.
pub(crate) fn cache_bytes() -> Option<u64> {
    static BYTES: OnceLock<Option<u64>> = OnceLock::new();
    *BYTES.get_or_init(|| (0..8).filter_map(size).max())
}

fn size(index: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size")).ok()?;
    parse(text.trim())
}

/// A number with an optional unit: `2048K`.
fn parse(text: &str) -> Option<u64> {
    let (number, shift) = match (text.strip_suffix('K'), text.strip_suffix('M')) {
        (Some(number), _) => (number, 10),
        (None, Some(number)) => (number, 20),
        (None, None) => (text, 0),
    };
    number.parse::<u64>().ok()?.checked_shl(shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse("2048K"), Some(2 << 20));
        assert_eq!(parse("300M"), Some(300 << 20));
        assert_eq!(parse("64"), Some(64));
        assert_eq!(parse("much"), None);
    }
}
