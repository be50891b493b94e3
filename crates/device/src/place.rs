//! How messages name threads of a kernel, and places in the high-level source of one.

/// `block 1, thread 5`, with all three dimensions where one is not enough.
pub fn party(block: [u32; 3], thread: [u32; 3]) -> String {
    format!("block {}, thread {}", index(block), index(thread))
}

/// The index of a block or thread: `7`, or `(7, 1, 0)`.
pub fn index([x, y, z]: [u32; 3]) -> String {
    if y == 0 && z == 0 { x.to_string() } else { format!("({x}, {y}, {z})") }
}

/// A place in the high-level source, `file:line`, with the line itself where the file is at hand.
pub fn with_source_line(place: &str) -> String {
    let line = || {
        let (path, number) = place.rsplit_once(':')?;
        let text = std::fs::read_to_string(path).ok()?;
        let line = text.lines().nth(number.parse::<usize>().ok()?.checked_sub(1)?)?.trim();
        (!line.is_empty()).then(|| format!("{place}: {line}"))
    };
    line().unwrap_or_else(|| place.to_owned())
}
