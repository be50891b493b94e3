//! Translates the firing of a filter, as a function or directly into a kernel.

use super::cooperate::shared_loops;
use super::reason::Reason;
use super::translated::{FilterCode, Rounds, Window};
use super::translator::{KernelSite, Reads, Subject, Translator, Writes};
use super::value::{Atom, Leaf, Ref};
use super::words::Words;
use super::{rounds, totals};
use crate::language::core::{Layout, Value};
use broadloom_scalar::{AccessorKind, Builder, Type as ScalarType, Value as ScalarValue};
use broadloom_skeleton::cost::dataflow;
use std::rc::Rc;

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
pub(crate) fn fire<'a>(subject: Subject<'a>, site: &KernelSite<'a>) -> Result<(), Reason> {
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
        ..Translator::new(site.b, subject, tapes, window, site.firing, site.bad)
    };
    translator.invoke(subject.filter.work.function, vec![])?;
    if translator.stopped { Ok(()) } else { translator.check_rates() }
}

/// Translates the `work` function of a filter.
pub(crate) fn translate(subject: Subject<'_>) -> Result<FilterCode, Reason> {
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
fn translate_with(subject: Subject<'_>, one_round: bool) -> Result<(FilterCode, u32), Reason> {
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
    let mut translator = Translator::new(&b, subject, tapes, window, firing, bad);
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
    let many = u64::from(window.pop) * input.map_or(0, |words| u64::from(words.count)) >= dataflow::SHARED_FIRING_WORDS;
    let (program, work) = (subject.program, subject.filter.work.function);
    let adds_up = many && shared_loops(program, work).0;
    let pushes_sums = adds_up && window.pop == window.peek && totals::pushes_sums(program, work);
    let adds_items = !one_round && window.pop == window.peek && window.push == 1 && totals::adds_items(program, work);
    let made = FilterCode {
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
