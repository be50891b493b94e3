//! The state of a filter: the fields that its firings write.

use super::fire::fire;
use super::reason::Reason;
use super::translator::{KernelSite, Subject};
use super::value::{Leaf, element, leaves};
use super::words::Words;
use crate::language::core::{Filter, Layout, Program, facts};
use crate::language::graph::Instance;
use broadloom_scalar::{Builder, Element, Type as ScalarType, Value as ScalarValue};
use broadloom_skeleton::cost::dataflow;
use std::rc::Rc;

/// Word types in state memory.
pub(crate) const CLASSES: [Element; 3] = [Element::I32, Element::F32, Element::F64];

/// Returns the index in [`CLASSES`] of the type that an element has in memory.
pub(crate) fn class_of(element: Element) -> usize {
    match element {
        Element::F32 => 1,
        Element::F64 => 2,
        _ => 0,
    }
}

/// Returns the fields that firings of a filter write, with their layouts.
pub(crate) fn written_fields(program: &Program, filter: &Filter, instance: &Instance) -> Result<Vec<(usize, Layout)>, Reason> {
    let mut found = vec![];
    for field in facts(program, filter).written {
        let (Some(value), Some(declared)) = (instance.fields.get(field), filter.fields.get(field)) else { continue };
        let layout =
            Layout::of(value, &declared.declared.ty, &program.structs).ok_or("it keeps a value that kernels do not have")?;
        let mut fits = true;
        leaves(&layout, 1, &mut |ty, count| fits &= element(ty).is_ok() && (1..dataflow::STATE_WORDS).contains(&count));
        if !fits {
            return Err("it keeps a value that kernels do not have".into());
        }
        found.push((field, layout));
    }
    Ok(found)
}

/// Checks that the firings of a filter can run one after the other in a kernel. Returns the reason if not.
pub(crate) fn check_in_order(subject: &Subject<'_>) -> Result<(), Reason> {
    let k = Builder::kernel("firing");
    let state = written_fields(subject.program, subject.filter, subject.instance)?.into_iter().map(|(field, layout)| {
        let mut store = vec![];
        let mut problem = None;
        leaves(&layout, 1, &mut |ty, count| match element(ty) {
            Ok(own) if count == 1 => store.push(Leaf::Variable(k.variable(own))),
            Ok(own) => store.push(Leaf::Memory(k.pointer("state", CLASSES[class_of(own)]), 0, own)),
            Err(reason) => problem = Some(reason),
        });
        problem.map_or(Ok((field, layout, Rc::new(store))), Err)
    });
    let state = state.collect::<Result<Vec<_>, Reason>>()?;
    let words = |layout: Option<&Layout>| layout.and_then(Words::of).map_or(Element::I32, |words| words.element);
    let (input, output) = (k.pointer("input", words(subject.input)), k.pointer("output", words(subject.output)));
    let reads = |k: &Builder, at: ScalarValue| k.load(input, at);
    let writes = |k: &Builder, at: ScalarValue, value: ScalarValue| k.store(output, at, value);
    let (firing, bad) = (k.parameter("firing", ScalarType::I32), k.variable_with(k.literal(false)));
    fire(*subject, &KernelSite { b: &k, reads: &reads, writes: &writes, firing, bad, state: &state, cooperation: None })?;
    if k.has_failed() {
        return Err(k
            .finish_kernel()
            .map_or_else(|error| format!("its code is not accepted: {error}"), |_| String::new())
            .into());
    }
    Ok(())
}
