//! Numbers of bytes that a person sets.

/// The most memory that a device may take: `BROADLOOM_MEMORY_LIMIT`, a number with `K`, `M`, `G` or `T` behind it; `None` when it is not set
/// or not a number.
pub fn memory_limit() -> Option<u64> {
    std::env::var("BROADLOOM_MEMORY_LIMIT").ok().and_then(|text| parse_bytes(&text))
}

/// A number of bytes with an optional unit: `4096`, `512M`, `2GiB`.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim().trim_end_matches(['B', 'b']).trim_end_matches(['i']);
    let (number, shift) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 10),
        (at, 'm' | 'M') => (&text[..at], 20),
        (at, 'g' | 'G') => (&text[..at], 30),
        (at, 't' | 'T') => (&text[..at], 40),
        _ => (text, 0),
    };
    number.trim().parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        assert_eq!(parse_bytes("4096"), Some(4096));
        assert_eq!(parse_bytes(" 2G\n"), Some(2 << 30));
        assert_eq!(parse_bytes("512MiB"), Some(512 << 20));
        assert_eq!(parse_bytes("32K"), Some(32 << 10));
        for bad in ["", "G", "-1", "1.5G", "99999999999999999999", "18446744073709551615K"] {
            assert_eq!(parse_bytes(bad), None, "{bad}");
        }
    }
}
