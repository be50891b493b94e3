//! Translation of a filter's firing into scalar code.
//!
//! The result is a [`Function`] of the number of the firing. It reads the words that the firing sees through one
//! accessor and writes the words that it pushes through another, both counted from the start of the firing's
//! window. Where words lie in memory is not its concern. It returns whether the firing failed: an index outside of
//! an array, a division by zero, a rate that is not kept, a variable that is read before it is set. What exactly
//! went wrong, the evaluator says, which repeats the firing.
//!
//! Parameters, fields that no firing writes and `static` variables are constants of the code. Everything that
//! depends on constants alone is computed here, by the evaluator's own arithmetic.
//!
//! Invariant: a translated firing gives the evaluator's items bit for bit, but for elementary functions, which are
//! computed in double precision and rounded once.
//!
//! Filters that print, send messages, draw random numbers, write fields or recurse are refused with the reason.

mod count;
mod expr;
mod math;
mod stmt;
mod store;

pub(crate) use store::leaves;

use crate::core::{Declared, Filter, FunctionId, Layout, Program, Type, Value};
use crate::graph::Instance;
use broadloom_scalar::{Accessor, AccessorKind, Builder, Element, Function, Type as ScalarType, Value as Made, Variable};
use count::Head;
use std::collections::HashMap;
use store::{Atom, Ref, Term, leaf_count};

/// The reason why a filter is not translated, in words that follow the name of the filter.
pub type Reason = String;

/// The words of an item on a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Words {
    /// The type of a word. Items that mix types are words of `i32`, floats by their bits.
    pub element: Element,
    /// Words of an item.
    pub count: u32,
}

/// The most words of an item.
const MAX_WORDS: u64 = 1 << 14;

impl Words {
    /// Returns the words of a layout; `None` where kernels do not have it.
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
        let element = element.filter(|_| fits && count > 0 && count <= MAX_WORDS)?;
        Some(Words { element, count: count as u32 })
    }

    /// Returns the bytes of an item.
    pub fn bytes(self) -> u64 {
        u64::from(self.element.bytes()) * u64::from(self.count)
    }
}

/// Rates of a firing, in items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// Items taken.
    pub pop: u32,
    /// Items seen, at least those taken.
    pub peek: u32,
    /// Items put.
    pub push: u32,
}

/// A field that grows by the same amount in every firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Induction {
    /// The field.
    pub field: usize,
    /// Its value before the first firing.
    pub start: i32,
    /// The amount.
    pub step: i32,
}

/// The firing of a filter as scalar code: parameter 0 is the number of the firing, of type `i32`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Translated {
    /// The code. Its accessors are the input, then the output, where the filter has them.
    pub function: Function,
    /// Words of an item of the input.
    pub input: Option<Words>,
    /// Words of an item of the output.
    pub output: Option<Words>,
    /// Rates of a firing.
    pub window: Window,
    /// Whether a firing can fail.
    pub fails: bool,
    /// Whether a firing depends on its number.
    pub numbered: bool,
    /// Words of local arrays, before they become registers.
    pub local_words: u64,
}

/// A filter to be translated, with everything that is constant.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) program: &'a Program,
    pub(crate) filter: &'a Filter,
    pub(crate) instance: &'a Instance,
    pub(crate) statics: &'a [Value],
    pub(crate) input: Option<&'a Layout>,
    pub(crate) output: Option<&'a Layout>,
    /// Fields that firings change by a constant amount each.
    pub(crate) inductions: &'a [Induction],
}

/// The state of a local.
#[derive(Clone, Debug, Default)]
struct Local {
    /// Its value, where it is set once.
    term: Option<Term>,
    /// Its storage.
    place: Option<Ref>,
    /// Its value here, where it is constant.
    known: Option<Value>,
    /// Whether it is certainly set here.
    set: bool,
    /// Whether it is set, at run time.
    flag: Option<Variable>,
}

/// A function that is being translated.
struct Frame {
    function: FunctionId,
    locals: Vec<Local>,
    /// The place of the result, where it is returned from several places.
    result: Option<Ref>,
    /// The result, where it is returned at the end.
    returned: Option<Term>,
    /// Whether the function was left, where that happens before its end.
    left: Option<Variable>,
    /// Locals that are written after their declaration.
    written: Vec<bool>,
}

struct Translator<'a> {
    b: &'a Builder,
    subject: Subject<'a>,
    input: Option<(Accessor, Words)>,
    output: Option<(Accessor, Words)>,
    window: Window,
    firing: Made,
    bad: Variable,
    popped: Head,
    pushed: Head,
    frames: Vec<Frame>,
    constants: HashMap<(u8, usize), Ref>,
    inductions: HashMap<usize, Variable>,
    words: u64,
    numbered: bool,
}

/// Calls inside of calls.
const MAX_DEPTH: usize = 64;

/// Translates the `work` function of a filter.
pub(crate) fn translate(subject: Subject<'_>) -> Result<Translated, Reason> {
    let rates = subject.instance.work;
    let exact = |rate: crate::graph::Rate| rate.known().ok_or("its rates are dynamic");
    let window = Window { pop: exact(rates.pop)?, peek: exact(rates.peek)?, push: exact(rates.push)? };
    let words = |layout: Option<&Layout>| match layout {
        Some(layout) => Words::of(layout).map(Some).ok_or("its tapes carry items that kernels do not have"),
        None => Ok(None),
    };
    let (input, output) = (words(subject.input)?, words(subject.output)?);
    let b = Builder::function("firing");
    let firing = b.parameter("firing", ScalarType::I32);
    let input_accessor = input.map(|words| (b.accessor("input", AccessorKind::Input, words.element, 1), words));
    let output_accessor = output.map(|words| (b.accessor("output", AccessorKind::Output, words.element, 1), words));
    let bad = b.variable_with(b.literal(false));
    let zero = || Head::Fixed(Atom::Known(Value::Int(0)));
    let mut translator = Translator {
        b: &b,
        subject,
        input: input_accessor,
        output: output_accessor,
        window,
        firing,
        bad,
        popped: zero(),
        pushed: zero(),
        frames: vec![],
        constants: HashMap::new(),
        inductions: HashMap::new(),
        words: 0,
        numbered: false,
    };
    for induction in subject.inductions {
        let now = b.add(b.mul(firing, induction.step), induction.start);
        translator.inductions.insert(induction.field, b.variable_with(now));
    }
    translator.invoke(subject.filter.work.function, vec![])?;
    translator.check_rates()?;
    let (local_words, numbered) = (translator.words, translator.numbered || !subject.inductions.is_empty());
    let result = b.get(bad);
    let function = b.finish_function(&[result]).map_err(|error| format!("its code is not accepted: {error}"))?;
    let function = function.simplify().map_err(|error| format!("its code is not accepted: {error}"))?;
    let failure = function.body().node(function.results()[0]);
    let fails = !matches!(failure.op, broadloom_scalar::Op::Literal(literal) if literal.bits() == 0);
    Ok(Translated { function, input, output, window, fails, numbered, local_words })
}

impl<'a> Translator<'a> {
    /// Marks the firing as failed where a condition holds.
    fn fail_if(&mut self, condition: Made) {
        self.b.set(self.bad, self.b.or(self.b.get(self.bad), condition));
    }

    fn frame(&mut self) -> Result<&mut Frame, Reason> {
        self.frames.last_mut().ok_or_else(|| "its code stands outside of a function".into())
    }

    /// Returns the layout of a declared type, whose lengths are constant.
    fn layout(&mut self, declared: &'a Declared) -> Result<Layout, Reason> {
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

    /// Reads an item from words that start at an index.
    fn read_item(&mut self, index: Atom) -> Result<Term, Reason> {
        let (Some((accessor, words)), Some(layout)) = (self.input, self.subject.input) else {
            return Err("it reads a tape that it does not have".into());
        };
        let base = self.scaled(&index, words.count);
        let read = |translator: &Self, offset: u64| {
            let at = translator.offset(&base, offset);
            translator.b.read(accessor, &[translator.made(&at).into()])
        };
        if let Layout::Scalar(ty) = layout {
            return Ok(match ty {
                Type::Complex => Term::Complex(Atom::Made(read(self, 0)), Atom::Made(read(self, 1))),
                ty => Term::Atom(Atom::Made(self.scalar_of(read(self, 0), ty)?)),
            });
        }
        let place = self.allocate(layout)?;
        self.each_word(layout, |translator, leaf, ty, count, start| {
            let at = translator.offset(&base, start);
            let counter = translator.b.begin_for(0, translator.b.literal(count as i32), 1, Default::default());
            let word = translator.b.read(accessor, &[translator.b.add(translator.made(&at), counter).into()]);
            let value = translator.scalar_of(word, ty);
            let stored = value.and_then(|value| translator.store_word(&place, leaf, counter, value));
            translator.b.end_for();
            stored
        })?;
        Ok(Term::Ref(place))
    }

    /// Writes an item to words that start at an index.
    fn write_item(&mut self, index: Atom, value: &Term) -> Result<(), Reason> {
        let (Some((accessor, words)), Some(layout)) = (self.output, self.subject.output) else {
            return Err("it writes a tape that it does not have".into());
        };
        let base = self.scaled(&index, words.count);
        match value {
            Term::Void => Err("it pushes the value of a function without one".into()),
            Term::Atom(atom) => {
                let word = self.word_of(self.made(atom), words.element);
                self.b.write(accessor, &[self.made(&base).into()], word);
                Ok(())
            }
            Term::Complex(real, imaginary) => {
                for (offset, part) in [real, imaginary].into_iter().enumerate() {
                    let at = self.offset(&base, offset as u64);
                    let word = self.word_of(self.made(part), words.element);
                    self.b.write(accessor, &[self.made(&at).into()], word);
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
                    translator.b.write(accessor, &[translator.b.add(translator.made(&at), counter).into()], word);
                    translator.b.end_for();
                    Ok(())
                })
            }
            Term::Ref(_) => Err("it pushes an array of another length than the tape carries".into()),
        }
    }

    /// Calls a function for each leaf of an item: its number, type, count and first word. Words of an item lie
    /// leaf by leaf.
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

    fn scalar_of(&self, word: Made, ty: &Type) -> Result<Made, Reason> {
        let element = store::element(ty)?;
        Ok(match (self.b.type_of(word).element(), element) {
            (Element::I32, Element::Bool) => self.b.ne(word, 0),
            (Element::I32, Element::F32) => self.b.bitcast(word, ScalarType::F32),
            _ => word,
        })
    }

    fn word_of(&self, value: Made, element: Element) -> Made {
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
            index => Atom::Made(self.b.mul(self.made(index), by as i32)),
        }
    }

    fn offset(&self, index: &Atom, by: u64) -> Atom {
        match index {
            _ if by == 0 => index.clone(),
            Atom::Known(Value::Int(index)) => Atom::Known(Value::Int(index.wrapping_add(by as i32))),
            index => Atom::Made(self.b.add(self.made(index), by as i32)),
        }
    }
}
