//! Items of tapes: reads and writes their words.

use super::reason::Reason;
use super::translator::{Translator, Writes};
use super::value::{Atom, Term, element, leaf_count, leaves};
use crate::language::core::{Layout, Type, Value};
use broadloom_scalar::{Element, Type as ScalarType, Value as ScalarValue};

impl<'a> Translator<'a> {
    /// Reads an item from words that start at an index.
    pub(super) fn read_item(&mut self, index: Atom) -> Result<Term, Reason> {
        let (Some((reads, words)), Some(layout)) = (self.input, self.subject.input) else {
            return Err("it reads a tape that it does not have".into());
        };
        let base = self.scaled(&index, words.count);
        let read = |translator: &Self, offset: u64| {
            let at = translator.made(&translator.offset(&base, offset));
            let loaded = translator.loaded.filter(|(position, _)| *position == at);
            loaded.map_or_else(|| reads(translator.b, at), |(_, word)| word)
        };
        if let Layout::Scalar(ty) = layout {
            return Ok(match ty {
                Type::Complex => Term::Complex(Atom::ScalarValue(read(self, 0)), Atom::ScalarValue(read(self, 1))),
                ty => Term::Atom(Atom::ScalarValue(self.scalar_of(read(self, 0), ty)?)),
            });
        }
        let place = self.allocate(layout)?;
        self.each_word(layout, |translator, leaf, ty, count, start| {
            let at = translator.offset(&base, start);
            let counter = translator.b.begin_for(0, translator.b.literal(count as i32), 1, Default::default());
            let word = reads(translator.b, translator.b.add(translator.made(&at), counter));
            let value = translator.scalar_of(word, ty);
            let stored = value.and_then(|value| translator.store_word(&place, leaf, counter, value));
            translator.b.end_for();
            stored
        })?;
        Ok(Term::Ref(place))
    }

    /// Writes an item to words that start at an index.
    pub(super) fn write_item(&mut self, index: Atom, value: &Term) -> Result<(), Reason> {
        let (Some((writes, words)), Some(layout)) = (self.output, self.subject.output) else {
            return Err("it writes a tape that it does not have".into());
        };
        let base = self.scaled(&index, words.count);
        match value {
            Term::Void => Err("it pushes the value of a function without one".into()),
            Term::Atom(atom) => {
                let word = self.word_of(self.made(atom), words.element);
                self.put_word(writes, self.made(&base), word);
                Ok(())
            }
            Term::Complex(real, imaginary) => {
                for (offset, part) in [real, imaginary].into_iter().enumerate() {
                    let at = self.offset(&base, offset as u64);
                    let word = self.word_of(self.made(part), words.element);
                    self.put_word(writes, self.made(&at), word);
                }
                Ok(())
            }
            Term::Ref(place) if place.layout == *layout => {
                let place = place.clone();
                self.each_word(layout, |translator, leaf, _, count, start| {
                    let at = translator.offset(&base, start);
                    let counter = translator.b.begin_for(0, translator.b.literal(count as i32), 1, Default::default());
                    let value = translator.load_word(&place, leaf, count, counter);
                    let word = translator.word_of(value, words.element);
                    translator.put_word(writes, translator.b.add(translator.made(&at), counter), word);
                    translator.b.end_for();
                    Ok(())
                })
            }
            Term::Ref(_) => Err("it pushes an array of another length than the tape carries".into()),
        }
    }

    /// Writes a word. If several threads run the same code, only one of them writes it.
    fn put_word(&self, writes: Writes<'a>, at: ScalarValue, word: ScalarValue) {
        match self.cooperation.filter(|_| !self.sharing) {
            None => writes(self.b, at, word),
            Some(cooperation) => self.b.if_then(self.b.eq(cooperation.thread, 0), || writes(self.b, at, word)),
        }
    }

    /// Calls a function for each leaf of an item: its number, type, count and first word. Words of an item
    /// are stored leaf by leaf.
    fn each_word(
        &mut self,
        layout: &Layout,
        mut visit: impl FnMut(&mut Self, usize, &Type, u64, u64) -> Result<(), Reason>,
    ) -> Result<(), Reason> {
        let mut found = Vec::with_capacity(leaf_count(layout));
        leaves(layout, 1, &mut |ty, count| found.push((ty.clone(), count)));
        let mut start = 0;
        for (leaf, (ty, count)) in found.into_iter().enumerate() {
            visit(self, leaf, &ty, count, start)?;
            start += count;
        }
        Ok(())
    }

    fn scalar_of(&self, word: ScalarValue, ty: &Type) -> Result<ScalarValue, Reason> {
        let element = element(ty)?;
        Ok(match (self.b.type_of(word).element(), element) {
            (Element::I32, Element::Bool) => self.b.ne(word, 0),
            (Element::I32, Element::F32) => self.b.bitcast(word, ScalarType::F32),
            _ => word,
        })
    }

    fn word_of(&self, value: ScalarValue, element: Element) -> ScalarValue {
        match (self.b.type_of(value).element(), element) {
            (Element::Bool, Element::I32) => self.b.convert(value, ScalarType::I32),
            (Element::F32, Element::I32) => self.b.bitcast(value, ScalarType::I32),
            _ => value,
        }
    }

    fn scaled(&self, index: &Atom, by: u32) -> Atom {
        match index {
            _ if by == 1 => index.clone(),
            Atom::Known(Value::Int(index)) => Atom::Known(Value::Int(index.wrapping_mul(by as i32))),
            index => Atom::ScalarValue(self.b.mul(self.made(index), by as i32)),
        }
    }

    fn offset(&self, index: &Atom, by: u64) -> Atom {
        match index {
            _ if by == 0 => index.clone(),
            Atom::Known(Value::Int(index)) => Atom::Known(Value::Int(index.wrapping_add(by as i32))),
            index => Atom::ScalarValue(self.b.add(self.made(index), by as i32)),
        }
    }
}
