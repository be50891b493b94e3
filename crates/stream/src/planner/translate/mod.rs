//! Translation of a filter's firing into scalar code.
//!
//! The result is a [`Function`] of the number of the firing. It reads input words through one accessor and
//! writes the pushed words through another. Both count words from the start of the firing's window. Where
//! words are stored in memory is not its concern.
//!
//! The function returns whether the firing failed: an index outside of an array, a division by zero, a broken
//! rate, or a variable that is read before it is set. The evaluator then repeats the firing and reports the
//! exact error.
//!
//! Parameters, fields that no firing writes and `static` variables are constants of the code. Everything that
//! depends on constants alone is computed here, by the evaluator's own arithmetic.
//!
//! Invariant: a translated firing gives the evaluator's items bit for bit, except for elementary functions,
//! which are computed in double precision and rounded once.
//!
//! [`fire`] writes the same code directly into a kernel. There, the fields that firings write are stored in
//! variables, local arrays or device memory.
//!
//! Filters that print, send messages, draw random numbers or recurse are refused with the reason. `translate`
//! also refuses filters that write fields, except inductions.

mod cooperate;
mod count;
mod expr;
mod math;
mod rounds;
mod state;
mod stmt;
mod store;
mod totals;

pub(crate) use cooperate::{Cooperation, Fold, Measure, ROW, Rows, Share, shared_loops};
pub(crate) use state::{CLASSES, MAX_STATE, check_in_order, class_of, written_fields};
pub(crate) use store::{Leaf, element, leaves, scalars};

use crate::language::core::{Declared, Filter, FunctionId, Layout, Program, Type, Value};
use crate::language::graph::{Graph, Instance, Node, TapeId};
use broadloom_scalar::{AccessorKind, Builder, Element, Function, Memory, Type as ScalarType, Value as ScalarValue, Variable};
use count::Head;
use std::collections::HashMap;
use std::rc::Rc;
use store::{Atom, Ref, Term, leaf_count};

/// The reason why a filter is not translated, as text that follows the name of the filter.
pub type Reason = String;

/// The words of an item on a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Words {
    /// The type of a word. Items with mixed types use words of `i32`, with floats stored by their bits.
    pub element: Element,
    /// Words of an item.
    pub count: u32,
}

/// Maximum words of an item.
const MAX_WORDS: u64 = 1 << 14;

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
    /// Items popped.
    pub pop: u32,
    /// Items peeked, at least those popped.
    pub peek: u32,
    /// Items pushed.
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
    /// The code. Its accessors are the input, then the output, if the filter has them.
    pub function: Function,
    /// Words of an item of the input.
    pub input: Option<Words>,
    /// Words of an item of the output.
    pub output: Option<Words>,
    /// Rates of a firing.
    pub window: Window,
    /// True if a firing can fail.
    pub fails: bool,
    /// True if a firing depends on its number.
    pub numbered: bool,
    /// Fields that follow from the number of the firing.
    pub inductions: Vec<Induction>,
    /// Words of local arrays, before they become registers.
    pub local_words: u64,
    /// True if a firing adds up many items in loops whose rounds threads can share.
    pub adds_up: bool,
    /// True if a firing pushes only sums of integers, so that consecutive firings can be added up as one.
    pub pushes_sums: bool,
    /// True if a firing pushes the sum of the integers that it pops.
    pub adds_items: bool,
    /// The code of a round of the firing's loop, if its rounds are independent.
    pub rounds: Option<Rounds>,
}

/// A firing that is split along its loop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rounds {
    /// The code of a round: parameter 1 is its number.
    pub function: Function,
    /// Number of rounds in a firing.
    pub count: u32,
}

/// Minimum input words of a firing whose loops threads share.
const SHARED_WORDS: u64 = 256;

/// A filter to translate, with all its constants.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) program: &'a Program,
    pub(crate) filter: &'a Filter,
    pub(crate) instance: &'a Instance,
    pub(crate) statics: &'a [Value],
    pub(crate) input: Option<&'a Layout>,
    pub(crate) output: Option<&'a Layout>,
    /// Fields that each firing changes by a constant amount.
    pub(crate) inductions: &'a [Induction],
}

impl<'a> Subject<'a> {
    /// Returns the filter of a node, without inductions.
    pub(crate) fn of(program: &'a Program, graph: &'a Graph, node: &'a Node) -> Option<Subject<'a>> {
        let (filter, instance) = node.filter(program)?;
        let layout = |tapes: &[TapeId]| tapes.first().map(|tape| &graph.tapes[*tape].layout);
        let (input, output) = (layout(&node.inputs), layout(&node.outputs));
        Some(Subject { program, filter, instance, statics: &graph.statics, input, output, inductions: &[] })
    }
}

/// The state of a local.
#[derive(Clone, Debug, Default)]
struct Local {
    /// Its value, if it is set only once.
    term: Option<Term>,
    /// Its storage.
    place: Option<Ref>,
    /// Its value at this point, if it is constant.
    known: Option<Value>,
    /// True if it is definitely set at this point.
    set: bool,
    /// A flag that is true at run time if it is set.
    flag: Option<Variable>,
}

/// A function during translation.
struct Frame {
    function: FunctionId,
    locals: Vec<Local>,
    /// The storage of the result, if there are several returns.
    result: Option<Ref>,
    /// The result, if the only return is at the end.
    returned: Option<Term>,
    /// A flag that is true at run time if the function was left before its end.
    left: Option<Variable>,
    /// Locals that are written after their declaration.
    written: Vec<bool>,
}

/// Code that reads a word of a firing's window.
pub(crate) type Reads<'a> = &'a dyn Fn(&Builder, ScalarValue) -> ScalarValue;
/// Code that writes a word that a firing pushes.
pub(crate) type Writes<'a> = &'a dyn Fn(&Builder, ScalarValue, ScalarValue);

/// The site in a kernel where a firing is written.
pub(crate) struct Site<'a> {
    pub(crate) b: &'a Builder,
    pub(crate) reads: Reads<'a>,
    pub(crate) writes: Writes<'a>,
    /// The number of the firing.
    pub(crate) firing: ScalarValue,
    /// The variable that records failures.
    pub(crate) bad: Variable,
    /// Fields that firings write, with the storage of their leaves.
    pub(crate) state: &'a [(usize, Layout, Rc<Vec<Leaf>>)],
    /// The threads that run the firing together, if there are several.
    pub(crate) cooperation: Option<Cooperation<'a>>,
}

struct Translator<'a> {
    b: &'a Builder,
    subject: Subject<'a>,
    input: Option<(Reads<'a>, Words)>,
    output: Option<(Writes<'a>, Words)>,
    window: Window,
    firing: ScalarValue,
    bad: Variable,
    popped: Head,
    pushed: Head,
    frames: Vec<Frame>,
    constants: HashMap<(u8, usize), Ref>,
    inductions: HashMap<usize, Variable>,
    state: HashMap<usize, Ref>,
    cooperation: Option<Cooperation<'a>>,
    /// Arrays that rounds of shared loops add to, and their memory if they have several copies.
    shared_arrays: Vec<usize>,
    counters: Vec<(usize, Memory)>,
    /// The position of an input word that is already loaded, and the word.
    loaded: Option<(ScalarValue, ScalarValue)>,
    /// Nesting depth of conditions and loops.
    nesting: u32,
    /// Rounds so far of all loops of the firing without a known number of rounds.
    looped: Variable,
    /// Product of the rounds of the enclosing counted loops.
    enclosing_rounds: u64,
    /// True inside a shared loop.
    sharing: bool,
    /// `split` is true if a loop was split among blocks, `stopped` if the code ends there.
    split: bool,
    stopped: bool,
    /// The loop along which the firing is split, a flag that is true while its body is written, and its
    /// number of rounds.
    rounds: Option<rounds::Split<'a>>,
    in_round: bool,
    count: u32,
    words: u64,
    numbered: bool,
}

/// The input and the output of a firing, if it has them, with the words of their items.
type Ends<'a> = (Option<(Reads<'a>, Words)>, Option<(Writes<'a>, Words)>);

impl<'a> Translator<'a> {
    /// Starts a firing from its number and the variable that records failures.
    fn new(
        b: &'a Builder,
        subject: Subject<'a>,
        (input, output): Ends<'a>,
        window: Window,
        (firing, bad): (ScalarValue, Variable),
    ) -> Translator<'a> {
        let zero = || Head::Fixed(Atom::Known(Value::Int(0)));
        Translator {
            b,
            subject,
            input,
            output,
            window,
            firing,
            bad,
            popped: zero(),
            pushed: zero(),
            frames: vec![],
            constants: HashMap::new(),
            inductions: HashMap::new(),
            state: HashMap::new(),
            cooperation: None,
            shared_arrays: vec![],
            counters: vec![],
            loaded: None,
            nesting: 0,
            looped: b.variable_with(b.literal(0)),
            enclosing_rounds: 1,
            sharing: false,
            split: false,
            stopped: false,
            rounds: None,
            in_round: false,
            count: 0,
            words: 0,
            numbered: false,
        }
    }
}

/// Maximum rounds of all conditional loops of a firing. A firing with more rounds fails: the evaluator
/// repeats it.
const MAX_LOOPED: i32 = 1 << 24;

/// Maximum rounds of nested counted loops. A filter with more rounds stays in the evaluator.
const MAX_COUNTED: u64 = 1 << 28;

/// Maximum depth of nested calls.
const MAX_DEPTH: usize = 64;

/// Returns the rates of a filter, and the words of its tapes.
fn frame_of(subject: &Subject<'_>) -> Result<(Window, Option<Words>, Option<Words>), Reason> {
    let rates = subject.instance.work;
    let exact = |rate: crate::language::graph::Rate| rate.known().ok_or("its rates are dynamic");
    let window = Window { pop: exact(rates.pop)?, peek: exact(rates.peek)?, push: exact(rates.push)? };
    let words = |layout: Option<&Layout>| match layout {
        Some(layout) => Words::of(layout).map(Some).ok_or("its tapes carry items that kernels do not have"),
        None => Ok(None),
    };
    Ok((window, words(subject.input)?, words(subject.output)?))
}

/// Writes a firing into a kernel.
pub(crate) fn fire<'a>(subject: Subject<'a>, site: &Site<'a>) -> Result<(), Reason> {
    let (mut window, input, output) = frame_of(&subject)?;
    let firings = site.cooperation.map_or(1, |cooperation| cooperation.firings);
    if firings > 1 {
        let all = window.pop.checked_mul(firings).filter(|_| window.pop == window.peek);
        window.pop = all.ok_or("its firings see more items than they pop")?;
        window.peek = window.pop;
    }
    let place = |layout: &Layout, store: &Rc<Vec<Leaf>>| Ref {
        layout: layout.clone(),
        store: store.clone(),
        first: 0,
        at: Atom::Known(Value::Int(0)),
    };
    let tapes = (input.map(|words| (site.reads, words)), output.map(|words| (site.writes, words)));
    let mut translator = Translator {
        state: site.state.iter().map(|(field, layout, store)| (*field, place(layout, store))).collect(),
        cooperation: site.cooperation,
        shared_arrays: site.cooperation.map_or(vec![], |_| shared_loops(subject.program, subject.filter.work.function).1),
        ..Translator::new(site.b, subject, tapes, window, (site.firing, site.bad))
    };
    translator.invoke(subject.filter.work.function, vec![])?;
    if translator.stopped { Ok(()) } else { translator.check_rates() }
}

/// Translates the `work` function of a filter.
pub(crate) fn translate(subject: Subject<'_>) -> Result<Translated, Reason> {
    let (mut whole, _) = translate_with(subject, false)?;
    if !whole.fails
        && let Ok((part, count)) = translate_with(subject, true)
        && !part.fails
    {
        whole.rounds = Some(Rounds { function: part.function, count });
    }
    Ok(whole)
}

/// Translates a firing, or one round of its loop. Returns the rounds as well.
fn translate_with(subject: Subject<'_>, one_round: bool) -> Result<(Translated, u32), Reason> {
    let (window, input, output) = frame_of(&subject)?;
    let b = Builder::function("firing");
    let firing = b.parameter("firing", ScalarType::I32);
    let source = input.map(|words| b.accessor("input", AccessorKind::Input, words.element, 1));
    let sink = output.map(|words| b.accessor("output", AccessorKind::Output, words.element, 1));
    let reads = |b: &Builder, at: ScalarValue| match source {
        Some(source) => b.read(source, &[at.into()]),
        None => b.fail("a tape that is not there is read"),
    };
    let writes = |b: &Builder, at: ScalarValue, value: ScalarValue| {
        if let Some(sink) = sink {
            b.write(sink, &[at.into()], value);
        }
    };
    let bad = b.variable_with(b.literal(false));
    let tapes = (input.map(|words| (&reads as Reads<'_>, words)), output.map(|words| (&writes as Writes<'_>, words)));
    let mut translator = Translator::new(&b, subject, tapes, window, (firing, bad));
    if one_round {
        let round = b.parameter("round", ScalarType::I32);
        let body = subject.program.functions[subject.filter.work.function].body.as_deref().unwrap_or(&[]);
        let found = rounds::find(subject.program, body, round).filter(|_| subject.inductions.is_empty());
        translator.rounds = Some(found.ok_or("it has no loop to split")?);
    }
    for induction in subject.inductions {
        let now = b.add(b.mul(firing, induction.step), induction.start);
        translator.inductions.insert(induction.field, b.variable_with(now));
    }
    translator.invoke(subject.filter.work.function, vec![])?;
    if one_round && !translator.stopped {
        return Err("it has no loop to split".into());
    }
    if !translator.stopped {
        translator.check_rates()?;
    }
    let count = translator.count;
    let (local_words, numbered) = (translator.words, translator.numbered || !subject.inductions.is_empty());
    let result = b.get(bad);
    let function = b.finish_function(&[result]).map_err(|error| format!("its code is not accepted: {error}"))?;
    let function = function.simplify().map_err(|error| format!("its code is not accepted: {error}"))?;
    let failure = function.body().node(function.results()[0]);
    let fails = !matches!(failure.op, broadloom_scalar::Op::Literal(literal) if literal.bits() == 0);
    let many = u64::from(window.pop) * input.map_or(0, |words| u64::from(words.count)) >= SHARED_WORDS;
    let (program, work) = (subject.program, subject.filter.work.function);
    let adds_up = many && shared_loops(program, work).0;
    let pushes_sums = adds_up && window.pop == window.peek && totals::pushes_sums(program, work);
    let adds_items = !one_round && window.pop == window.peek && window.push == 1 && totals::adds_items(program, work);
    let made = Translated {
        function,
        input,
        output,
        window,
        fails,
        numbered,
        inductions: subject.inductions.to_vec(),
        local_words,
        adds_up,
        pushes_sums,
        adds_items,
        rounds: None,
    };
    Ok((made, count))
}

impl<'a> Translator<'a> {
    /// Marks the firing as failed if a condition holds at run time.
    fn fail_if(&mut self, condition: ScalarValue) {
        self.b.set(self.bad, self.b.or(self.b.get(self.bad), condition));
    }

    fn frame(&mut self) -> Result<&mut Frame, Reason> {
        self.frames.last_mut().ok_or_else(|| "its code stands outside of a function".into())
    }

    /// Returns the layout of a declared type. Its lengths must be constant.
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
    fn write_item(&mut self, index: Atom, value: &Term) -> Result<(), Reason> {
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
        let element = store::element(ty)?;
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
