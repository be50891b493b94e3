//! Variables of a translated filter: allocates, reads and writes the storage of values.

use super::reason::Reason;
use super::translator::Translator;
use super::value::{Atom, Leaf, Ref, Term, element, leaf_count, leaves, literal, scatter};
use crate::language::core::{DeclaredType, Layout, Program, Type, Value};
use broadloom_scalar::{Element, Literal, Type as ScalarType, Value as ScalarValue};
use broadloom_skeleton::cost::dataflow;
use std::cell::Cell;

impl<'a> Translator<'a> {
    /// Returns the layout of a declared type. Its lengths must be constant.
    pub(super) fn layout(&mut self, declared: &'a DeclaredType) -> Result<Layout, Reason> {
        let mut inner = &declared.ty;
        while let Type::Array(element) = inner {
            inner = element;
        }
        let program: &'a Program = self.subject.program;
        let mut layout = match inner {
            Type::Struct(id) => {
                let members = &program.structs[*id].members;
                let members = members.iter().map(|(_, member)| self.layout(member)).collect::<Result<Vec<_>, _>>()?;
                Layout::Struct(*id, members.into())
            }
            other => Layout::Scalar(other.clone()),
        };
        for length in declared.lengths.iter().rev() {
            let Atom::Known(Value::Int(length)) = self.atom(length)? else {
                return Err("it has an array whose length is not constant".into());
            };
            let length = u32::try_from(length).map_err(|_| "it has an array of negative length")?;
            layout = Layout::Array(layout.into(), length);
        }
        Ok(layout)
    }

    /// Returns the code of a scalar.
    pub(super) fn made(&self, atom: &Atom) -> ScalarValue {
        match atom {
            Atom::ScalarValue(value) => *value,
            Atom::Known(value) => match literal(value) {
                Some(literal) => self.b.literal(literal),
                None => self.b.fail("a value that kernels do not have"),
            },
        }
    }

    /// Allocates storage for a layout. Its contents are not set.
    pub(super) fn allocate(&mut self, layout: &Layout) -> Result<Ref, Reason> {
        let mut wanted = vec![];
        leaves(layout, 1, &mut |ty, count| wanted.push((ty.clone(), count)));
        let mut store = vec![];
        for (ty, count) in wanted {
            let element = element(&ty)?;
            let is_scalar = count == 1 && !matches!(layout, Layout::Array(..));
            store.push(match u32::try_from(count) {
                Ok(_) if is_scalar => Leaf::Variable(self.b.variable(element)),
                Ok(0) => return Err("it has an array of length 0".into()),
                Ok(length) if length <= dataflow::ARRAY_SCALARS => {
                    self.words += u64::from(length);
                    Leaf::Array(self.b.array(element, length), element)
                }
                _ => {
                    return Err(format!(
                        "it has an array of {count} scalars, more than the {} of a thread",
                        dataflow::ARRAY_SCALARS
                    )
                    .into());
                }
            });
        }
        Ok(Ref { layout: layout.clone(), store: store.into(), first: 0, at: Atom::Known(Value::Int(0)) })
    }

    /// Allocates storage that holds a constant.
    pub(super) fn constant(&self, layout: &Layout, value: &Value) -> Result<Ref, Reason> {
        let mut parts = vec![vec![]; leaf_count(layout)];
        scatter(layout, value, 0, &mut parts).ok_or("it reads a constant that is ragged")?;
        let store: Vec<Leaf> = parts.into_iter().map(|part| Leaf::Constants(part.into(), Cell::new(None))).collect();
        Ok(Ref { layout: layout.clone(), store: store.into(), first: 0, at: Atom::Known(Value::Int(0)) })
    }

    /// Returns the element of an array at an index, with a bounds check.
    pub(super) fn element(&mut self, place: &Ref, index: Atom) -> Result<Ref, Reason> {
        let Layout::Array(inner, length) = &place.layout else { return Err("it indexes a value that is no array".into()) };
        let index = self.checked_index(index, 0, i64::from(*length));
        let at = match (&place.at, &index) {
            (Atom::Known(Value::Int(0)), _) => index,
            (Atom::Known(Value::Int(at)), Atom::Known(Value::Int(index))) => {
                Atom::Known(Value::Int(at.wrapping_mul(*length as i32).wrapping_add(*index)))
            }
            (at, index) => {
                let (at, index) = (self.made(at), self.made(index));
                Atom::ScalarValue(self.b.add(self.b.mul(at, *length as i32), index))
            }
        };
        Ok(Ref { layout: (**inner).clone(), at, ..place.clone() })
    }

    /// Returns an index within bounds. An index out of bounds marks the firing as failed.
    pub(super) fn checked_index(&mut self, index: Atom, low: i64, high: i64) -> Atom {
        match index {
            Atom::Known(Value::Int(known)) if (low..high).contains(&i64::from(known)) => index,
            Atom::Known(_) => {
                self.b.set(self.bad, true);
                Atom::Known(Value::Int(low as i32))
            }
            Atom::ScalarValue(value) => {
                let (least, most) = self.b.range(value);
                if least >= i128::from(low) && most < i128::from(high) {
                    return index;
                }
                let outside = self.b.or(self.b.lt(value, low), self.b.ge(value, high));
                self.fail_if(outside);
                Atom::ScalarValue(self.b.select(outside, low, value))
            }
        }
    }

    /// Returns a member of a struct.
    pub(super) fn member(&self, place: &Ref, member: usize) -> Result<Ref, Reason> {
        let Layout::Struct(_, members) = &place.layout else { return Err("it takes a member of a value that has none".into()) };
        let first = place.first + members.iter().take(member).map(leaf_count).sum::<usize>();
        Ok(Ref { layout: members[member].clone(), first, ..place.clone() })
    }

    pub(super) fn load_leaf(&self, leaf: &Leaf, at: &Atom) -> Atom {
        match leaf {
            Leaf::Variable(variable) => Atom::ScalarValue(self.b.get(*variable)),
            Leaf::Array(array, _) => Atom::ScalarValue(self.b.element(*array, self.made(at))),
            Leaf::Memory(memory, start, element) => {
                let word = self.b.load(*memory, self.b.add(self.made(at), *start));
                Atom::ScalarValue(if *element == Element::Bool { self.b.ne(word, 0) } else { word })
            }
            Leaf::Constants(values, table) => match at {
                Atom::Known(Value::Int(index)) => {
                    values.get(*index as usize).map_or(Atom::Known(Value::Int(0)), |value| Atom::Known(value.clone()))
                }
                _ if values.windows(2).all(|pair| pair[0] == pair[1]) && !values.is_empty() => Atom::Known(values[0].clone()),
                _ => {
                    let id = table.get().unwrap_or_else(|| {
                        let entries: Vec<Literal> = values.iter().filter_map(literal).collect();
                        self.b.table(&entries)
                    });
                    table.set(Some(id));
                    let index = self.b.convert(self.made(at), ScalarType::U32);
                    Atom::ScalarValue(self.b.lookup(id, index))
                }
            },
        }
    }

    /// Returns the value at a place: a scalar by value, an array or struct by reference.
    pub(super) fn load(&self, place: &Ref) -> Term {
        match &place.layout {
            Layout::Scalar(Type::Complex) => Term::Complex(
                self.load_leaf(&place.store[place.first], &place.at),
                self.load_leaf(&place.store[place.first + 1], &place.at),
            ),
            Layout::Scalar(_) => Term::Atom(self.load_leaf(&place.store[place.first], &place.at)),
            Layout::Struct(..) | Layout::Array(..) => Term::Ref(place.clone()),
        }
    }

    fn store_leaf(&self, leaf: &Leaf, at: &Atom, value: &Atom) -> Result<(), Reason> {
        match leaf {
            Leaf::Variable(variable) => self.b.set(*variable, self.made(value)),
            Leaf::Array(array, _) => self.b.set_element(*array, self.made(at), self.made(value)),
            Leaf::Memory(memory, start, element) => {
                let word = self.made(value);
                let word = if *element == Element::Bool { self.b.convert(word, ScalarType::I32) } else { word };
                self.b.store(*memory, self.b.add(self.made(at), *start), word);
            }
            Leaf::Constants(..) => return Err("it writes a field".into()),
        }
        Ok(())
    }

    /// Stores a part of a complex number.
    pub(super) fn store_part(&self, place: &Ref, part: usize, value: &Atom) -> Result<(), Reason> {
        self.store_leaf(&place.store[place.first + part], &place.at, value)
    }

    /// Stores a value of the same type.
    pub(super) fn store(&mut self, place: &Ref, value: &Term) -> Result<(), Reason> {
        match value {
            Term::Void => Err("it stores a value of a function without one".into()),
            Term::Atom(value) => self.store_part(place, 0, value),
            Term::Complex(real, imaginary) => {
                self.store_part(place, 0, real)?;
                self.store_part(place, 1, imaginary)
            }
            Term::Ref(from) => self.copy(place, from),
        }
    }

    /// Copies an array or struct.
    fn copy(&mut self, to: &Ref, from: &Ref) -> Result<(), Reason> {
        if to.layout != from.layout {
            return Err("it assigns an array to one of another length".into());
        }
        let mut counts = vec![];
        leaves(&to.layout, 1, &mut |_, count| counts.push(count));
        for (leaf, count) in counts.into_iter().enumerate() {
            let (target, source) = (to.store[to.first + leaf].clone(), from.store[from.first + leaf].clone());
            let base = |at: &Atom| match at {
                Atom::Known(Value::Int(at)) => Atom::Known(Value::Int(at.wrapping_mul(count as i32))),
                at => Atom::ScalarValue(self.b.mul(self.made(at), count as i32)),
            };
            let (target_at, source_at) = (base(&to.at), base(&from.at));
            if count == 1 {
                let value = self.load_leaf(&source, &source_at);
                self.store_leaf(&target, &target_at, &value)?;
                continue;
            }
            let counter = self.b.begin_for(0, self.b.literal(count as i32), 1, Default::default());
            let value = self.load_leaf(&source, &Atom::ScalarValue(self.b.add(self.made(&source_at), counter)));
            let stored = self.store_leaf(&target, &Atom::ScalarValue(self.b.add(self.made(&target_at), counter)), &value);
            self.b.end_for();
            stored?;
        }
        Ok(())
    }

    /// Stores a scalar of a leaf of fresh storage.
    pub(super) fn store_word(&self, place: &Ref, leaf: usize, index: ScalarValue, value: ScalarValue) -> Result<(), Reason> {
        self.store_leaf(&place.store[place.first + leaf], &Atom::ScalarValue(index), &Atom::ScalarValue(value))
    }

    /// Loads a scalar of a leaf that has `count` scalars at the place.
    pub(super) fn load_word(&self, place: &Ref, leaf: usize, count: u64, index: ScalarValue) -> ScalarValue {
        let at = match &place.at {
            Atom::Known(Value::Int(0)) => index,
            at => self.b.add(self.b.mul(self.made(at), count as i32), index),
        };
        self.made(&self.load_leaf(&place.store[place.first + leaf], &Atom::ScalarValue(at)))
    }

    /// Sets all scalars of fresh storage to zero.
    pub(super) fn clear(&mut self, place: &Ref) {
        for leaf in place.store.iter() {
            match leaf {
                Leaf::Variable(variable) => self.b.set(*variable, self.zero_of(variable.ty().element())),
                Leaf::Array(array, element) => {
                    let zero = self.zero_of(*element);
                    let counter = self.b.begin_for(0, self.b.literal(array.length() as i32), 1, Default::default());
                    self.b.set_element(*array, counter, zero);
                    self.b.end_for();
                }
                Leaf::Constants(..) | Leaf::Memory(..) => {}
            }
        }
    }

    fn zero_of(&self, element: Element) -> ScalarValue {
        self.b.literal(Literal::zero(element))
    }
}
