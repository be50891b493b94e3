//! File names of frames: `in.%04d.exr` and `in.####.exr` mean `in.0001.exr`, `in.0002.exr` and so on.

use std::path::{Path, PathBuf};

/// File name pattern with a frame number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    folder: PathBuf,
    before: String,
    digits: usize,
    behind: String,
}

/// Maximum number of digits of a frame number.
const MAX_DIGITS: usize = 18;

impl Pattern {
    /// Parses a path as a pattern. Returns `None` if it has no frame number.
    pub fn new(path: &Path) -> Option<Pattern> {
        let name = path.file_name()?.to_str()?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        // A single `#` may be part of any name.
        if let Some(at) = name.find("##") {
            let digits = name[at..].bytes().take_while(|byte| *byte == b'#').count();
            let (before, behind) = (name[..at].to_owned(), name[at + digits..].to_owned());
            return Some(Pattern { folder, before, digits, behind }).filter(|_| digits <= MAX_DIGITS);
        }
        for (at, _) in name.match_indices('%') {
            let rest = &name[at + 1..];
            let Some((digits, behind)) = rest.split_once('d') else { continue };
            let is_count = digits.is_empty() || digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
            let count = if digits.is_empty() { Some(0) } else { digits.parse().ok() };
            if let Some(digits) = count.filter(|count| is_count && *count <= MAX_DIGITS) {
                return Some(Pattern { folder, before: name[..at].to_owned(), digits, behind: behind.to_owned() });
            }
        }
        None
    }

    /// Returns the file name of a frame.
    pub fn file(&self, frame: u64) -> PathBuf {
        self.folder.join(format!("{}{frame:0width$}{}", self.before, self.behind, width = self.digits))
    }

    /// Returns the frame number of a file name.
    fn number(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(self.before.as_str())?.strip_suffix(self.behind.as_str())?;
        let number = digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
        (format!("{number:0width$}", width = self.digits) == digits).then_some(number)
    }

    /// Returns the numbers of the existing frames, in order.
    pub fn existing(&self) -> std::io::Result<Vec<u64>> {
        let folder = if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder };
        let mut numbers = vec![];
        for entry in std::fs::read_dir(folder)? {
            numbers.extend(entry?.file_name().to_str().and_then(|name| self.number(name)));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_in_names() {
        let pattern = Pattern::new(Path::new("a/in.%04d.exr")).unwrap();
        assert_eq!(pattern.file(7), Path::new("a/in.0007.exr"));
        assert_eq!(pattern.file(12345), Path::new("a/in.12345.exr"));
        assert_eq!(pattern.number("in.0012.exr"), Some(12));
        for other in ["in.12.exr", "in.00012.exr", "in.+012.exr", "in..exr", "in.0012.png", "x.0012.exr"] {
            assert_eq!(pattern.number(other), None, "{other}");
        }
        let plain = Pattern::new(Path::new("100%_%d.png")).unwrap();
        assert_eq!((plain.file(3), plain.number("100%_10.png")), ("100%_3.png".into(), Some(10)));
        let marks = Pattern::new(Path::new("a/in.####.exr")).unwrap();
        assert_eq!((marks.file(7), &marks), ("a/in.0007.exr".into(), &pattern));
        for none in [
            "in#1.exr",
            "###################.exr",
            "in.exr",
            "%",
            "%x",
            "%4d.png",
            "50%.png",
            "%0999999999999999999999d.png",
            "%099d.png",
        ] {
            assert_eq!(Pattern::new(Path::new(none)), None, "{none}");
        }
    }
}
