//! Words of items on tapes.

use super::value::leaves;
use crate::language::core::{Layout, Type};
use broadloom_scalar::Element;
use broadloom_skeleton::cost::dataflow;

/// The words of an item on a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Words {
    /// The type of a word. Items with mixed types use words of `i32`, with floats stored by their bits.
    pub element: Element,
    /// Words of an item.
    pub count: u32,
}

impl Words {
    /// Returns the words of a layout. Returns `None` if kernels do not support it.
    pub fn of(layout: &Layout) -> Option<Words> {
        let (mut element, mut count, mut fits) = (None, 0u64, true);
        leaves(layout, 1, &mut |ty, times| {
            let own = match ty {
                Type::Boolean | Type::Bit | Type::Int => Element::I32,
                Type::Float => Element::F32,
                Type::Double => Element::F64,
                _ => {
                    fits = false;
                    Element::I32
                }
            };
            element = Some(match element {
                None => own,
                Some(other) if other == own => own,
                Some(Element::F64) => {
                    fits = false;
                    own
                }
                Some(_) => {
                    fits &= own != Element::F64;
                    Element::I32
                }
            });
            count = count.saturating_add(times);
        });
        let element = element.filter(|_| fits && count > 0 && count <= dataflow::ITEM_WORDS)?;
        Some(Words { element, count: count as u32 })
    }

    /// Returns the bytes of an item.
    pub fn bytes(self) -> u64 {
        u64::from(self.element.bytes()) * u64::from(self.count)
    }
}
