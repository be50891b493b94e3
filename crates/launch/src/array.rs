//! Values on the host, and their display.

use crate::Element;
use std::fmt;

/// Maximum number of elements that are printed in full. Of longer arrays the first 16 elements and a hash are
/// printed.
pub const SHOWN_WHOLE: usize = 256;
const SHOWN_FIRST: usize = 16;

/// Values with a type and a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostArray {
    /// Element type.
    pub element: Element,
    /// Extent in each direction, the last one contiguous. Their product times the size of an element is the
    /// number of bytes.
    pub shape: Vec<u64>,
    /// Values, little-endian.
    pub bytes: Vec<u8>,
}

impl HostArray {
    /// Returns the number of elements.
    pub fn count(&self) -> usize {
        self.bytes.len() / self.element.bytes()
    }

    /// Returns a hash of all bytes (FNV-1a), for buffers too long to print.
    pub fn hash(&self) -> u64 {
        self.bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3))
    }
}

/// Formats `f32[4, 4]`, then the values in rows of 8 or of the last dimension if that is shorter, each with
/// the index of its first element. Repeated rows are printed once.
impl fmt::Display for HostArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        write!(f, "{}[{}]", self.element, shape.join(","))?;
        let count = self.count();
        let shown = if count > SHOWN_WHOLE { SHOWN_FIRST } else { count };
        if shown < count {
            write!(f, ", hash {:016x}", self.hash())?;
        }
        let width = match self.shape.last() {
            Some(&last) if self.shape.len() > 1 && (1..=16).contains(&last) => last as usize,
            _ => 8,
        };
        let digits = shown.saturating_sub(1).to_string().len();
        let row_bytes = width * self.element.bytes();
        let rows: Vec<&[u8]> = self.bytes[..shown * self.element.bytes()].chunks(row_bytes).collect();
        let mut index = 0;
        while index < rows.len() {
            let same = rows[index..].iter().take_while(|row| **row == rows[index]).count();
            let values: Vec<String> =
                rows[index].chunks_exact(self.element.bytes()).map(|value| self.element.show(value)).collect();
            write!(f, "\n  {:>digits$}: {}", index * width, values.join(" "))?;
            if same > 2 {
                write!(f, "\n  {:>digits$}  the same up to {}", "", (index + same) * width - 1)?;
                index += same;
            } else {
                index += 1;
            }
        }
        if shown < count {
            write!(f, "\n  {:>digits$}  and {} more", "", count - shown)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(element: Element, shape: &[u64], value: impl Fn(u64) -> u64) -> HostArray {
        let count: u64 = shape.iter().product();
        let bytes = (0..count).flat_map(|index| element.from_index(value(index))[..element.bytes()].to_vec()).collect();
        HostArray { element, shape: shape.to_vec(), bytes }
    }

    #[test]
    fn short_arrays_are_shown_whole() {
        let shown = array(Element::I32, &[10], |index| index).to_string();
        assert_eq!(shown, "i32[10]\n  0: 0 1 2 3 4 5 6 7\n  8: 8 9");
        let shown = array(Element::F32, &[2, 3], |index| index).to_string();
        assert_eq!(shown, "f32[2,3]\n  0: 0.0 1.0 2.0\n  3: 3.0 4.0 5.0");
        assert_eq!(array(Element::F32, &[0], |index| index).to_string(), "f32[0]");
    }

    #[test]
    fn equal_rows_stand_once() {
        let shown = array(Element::I32, &[34], |index| index / 32).to_string();
        assert_eq!(shown, "i32[34]\n   0: 0 0 0 0 0 0 0 0\n      the same up to 31\n  32: 1 1");
    }

    #[test]
    fn long_arrays_are_summed_up() {
        let shown = array(Element::U8, &[1000], |index| index).to_string();
        assert!(shown.starts_with("u8[1000], hash ") && shown.ends_with("and 984 more"), "{shown}");
        let other = array(Element::U8, &[1000], |index| index + u64::from(index == 999)).to_string();
        assert_ne!(shown, other, "the hash sees every value");
    }
}
