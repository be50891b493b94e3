//! Lists of values in temporary memory.

use super::{Draft, Writer};
use crate::Count;
use crate::program::Argument;
use broadloom_scalar::{Cache, Memory, Type, Value};

/// Arrays in temporary memory of a run, one for each value of a list.
#[derive(Clone, Debug)]
pub struct Temporaries(Vec<(usize, Type)>);

impl Temporaries {
    /// Appends arrays of these types with `count` elements each to a program.
    pub fn new(draft: &mut Draft, types: &[Type], count: &Count) -> Temporaries {
        Temporaries(types.iter().map(|ty| (draft.temporary(count.clone() * ty.bytes(), false), *ty)).collect())
    }

    fn each<'a>(&'a self, k: &'a Writer) -> impl Iterator<Item = (Memory, Type)> + 'a {
        self.0.iter().map(|(number, ty)| (k.memory(Argument::Temporary(*number), ty.element()), *ty))
    }

    /// Loads the values at an index.
    pub fn load(&self, k: &Writer, index: Value) -> Vec<Value> {
        self.each(k).map(|(memory, ty)| k.load_element(memory, ty, index)).collect()
    }

    /// Stores values at an index.
    pub fn store(&self, k: &Writer, index: Value, values: &[Value]) {
        self.each(k).zip(values).for_each(|((memory, _), value)| k.store_element(memory, index, *value, Cache::Normal));
    }
}
