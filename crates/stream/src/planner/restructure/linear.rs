//! Linear filters: recognised from their code and combined.
//!
//! A filter is linear if every float that it pushes is a constant plus a sum of the floats that it peeks,
//! with constant coefficients. This follows from its code: a value is *free* of the input, *linear* in it, or
//! neither. Products of two linear values, comparisons of them and indices of them are neither. The
//! coefficients come from one evaluation of the code on linear forms.
//!
//! Two consecutive linear filters are one filter whose matrix is the product of theirs. Linear branches of a
//! splitjoin that duplicates are one filter that pushes for all of them. Filters are combined if that takes
//! fewer products. Combined filters add in another order, and products of linear filters are not rounded
//! before they are added. The last digits may therefore differ.

use super::section::{Actor, Port, Role, Section, Taps, Users};
use super::wiring::Step;
use crate::language::graph::NodeId;
use crate::language::schedule::gcd;
use crate::planner::classify::ClassifiedNode;
use crate::planner::translate::{FilterCode, Reason, Window, Words};
use broadloom_scalar::Unroll;
use broadloom_scalar::{AccessorKind, BinaryOp, Builder, Element, Function, Literal, Op, Statement, Type, UnaryOp};
use broadloom_skeleton::cost::dataflow;
use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

use std::sync::Arc;

/// The dependence of a value on the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Free,
    Linear,
    Other,
}

/// A linear filter: for each item that it pushes, a row of coefficients and a constant.
#[derive(Clone, Debug, PartialEq)]
struct Linear {
    rows: Vec<Vec<f64>>,
    constants: Vec<f64>,
}

impl Linear {
    fn products(&self) -> usize {
        self.rows.iter().flatten().filter(|one| **one != 0.0).count()
    }
}

/// Returns whether all values that a function writes are linear in the values it reads.
fn is_linear(function: &Function) -> bool {
    let body = function.body();
    let statements = || body.blocks().flat_map(|(_, block)| &block.statements);
    let (mut vars, mut arrays): (Vec<Class>, Vec<Class>) = (vec![], vec![]);
    let at = |list: &[Class], index: usize| list.get(index).copied().unwrap_or(Class::Free);
    loop {
        let mut nodes: Vec<Class> = vec![];
        for (_, node) in body.nodes() {
            let of = |id: &broadloom_scalar::Id| nodes[id.index()];
            let mut all = Class::Free;
            node.op.each_operand(|operand| all = all.max(nodes[operand.index()]));
            let is_float = node.ty.element().is_float();
            let mixed = |class: Class| if class == Class::Linear && !is_float { Class::Other } else { class };
            let found = match &node.op {
                Op::Read(..) => {
                    if all == Class::Free {
                        Class::Linear
                    } else {
                        Class::Other
                    }
                }
                Op::Get(var) => at(&vars, var.index()),
                Op::Element(array, index) => {
                    if of(index) == Class::Free {
                        at(&arrays, array.index())
                    } else {
                        Class::Other
                    }
                }
                Op::Unary(UnaryOp::Neg, _) | Op::Binary(BinaryOp::Add | BinaryOp::Sub, ..) | Op::Assume(..) => all,
                Op::Binary(BinaryOp::Mul, a, b) if of(a) == Class::Free || of(b) == Class::Free => all,
                Op::Binary(BinaryOp::Div, _, b) if of(b) == Class::Free => all,
                Op::Select(condition, ..) if of(condition) == Class::Free => all,
                Op::Convert(a) if all == Class::Linear && body.type_of(*a).element().is_float() => all,
                _ if all == Class::Free && (node.op.is_pure() || matches!(node.op, Op::Counter(_))) => Class::Free,
                _ => Class::Other,
            };
            nodes.push(mixed(found));
        }
        let of = |id: &broadloom_scalar::Id| nodes[id.index()];
        let mut changed = false;
        let mut raise = |list: &mut Vec<Class>, index: usize, class: Class| {
            if list.len() <= index {
                list.resize(index + 1, Class::Free);
            }
            changed |= class > list[index];
            list[index] = list[index].max(class);
        };
        for statement in statements() {
            match statement {
                Statement::Set(var, value) => raise(&mut vars, var.index(), of(value)),
                Statement::SetElement { array, index, value } => {
                    let class = if of(index) == Class::Free { of(value) } else { Class::Other };
                    raise(&mut arrays, array.index(), class);
                }
                _ => {}
            }
        }
        if changed {
            continue;
        }
        return statements().all(|statement| match statement {
            Statement::Define(_) | Statement::Set(..) | Statement::SetElement { .. } | Statement::Break | Statement::Continue => {
                true
            }
            Statement::Write { indices, value, .. } => {
                indices.iter().all(|index| of(index) == Class::Free) && of(value) <= Class::Linear
            }
            Statement::If { condition, .. } | Statement::While { condition, .. } => of(condition) == Class::Free,
            Statement::For { start, end, step, .. } => [start, end, step].into_iter().all(|bound| of(bound) == Class::Free),
            _ => false,
        });
    }
}

/// Returns whether a filter is linear and its matrix is small.
fn is_candidate(code: &FilterCode) -> bool {
    let seen = code.window.peek.max(code.window.pop);
    let work = u64::from(seen) * broadloom_skeleton::cost::function(&code.function);
    seen <= dataflow::LINEAR_ITEMS
        && code.window.push <= dataflow::LINEAR_ITEMS
        && work <= dataflow::LINEAR_MATRIX
        && is_linear_filter(code)
}

/// Returns whether a filter of floats is linear and its coefficients are found in few operations.
fn is_linear_filter(code: &FilterCode) -> bool {
    let float = Words { element: Element::F32, count: 1 };
    let fits = code.input == Some(float) && code.output == Some(float) && !code.fails && !code.numbered;
    fits && broadloom_skeleton::cost::function(&code.function) <= dataflow::LINEAR_OPERATIONS && is_linear(&code.function)
}

/// Returns the coefficients of a filter if it is linear. One evaluation gives all of them.
fn coefficients(code: &FilterCode) -> Option<Linear> {
    let window = code.window;
    let (seen, pushed) = (window.peek.max(window.pop) as usize, window.push as usize);
    let (mut rows, mut constants) = (vec![vec![0.0; seen]; pushed], vec![0.0; pushed]);
    for form in code.function.linear_forms(&[Literal::from(0i32)]).ok()? {
        let place = usize::try_from(form.position).ok().filter(|place| *place < pushed)?;
        constants[place] = form.constant;
        rows[place].fill(0.0);
        for (_, item, factor) in form.factors {
            *rows[place].get_mut(usize::try_from(item).ok()?)? += factor;
        }
    }
    round(&mut rows);
    let finite = rows.iter().flatten().chain(&constants).all(|one| one.is_finite());
    finite.then_some(Linear { rows, constants })
}

/// Rounds coefficients to 32 bits, because floats of the code have 32 bits.
fn round(rows: &mut [Vec<f64>]) {
    rows.iter_mut().flatten().for_each(|one| *one = f64::from(*one as f32));
}

/// Returns the range from the first to the last item with a nonzero coefficient.
fn support(row: &[f64]) -> std::ops::Range<usize> {
    let used = |one: &f64| *one != 0.0;
    let first = row.iter().position(used).unwrap_or(0);
    first..row.iter().rposition(used).map_or(first, |last| last + 1)
}

/// Returns the items that all rows use.
fn shared_support(rows: &[Vec<f64>]) -> std::ops::Range<usize> {
    let supports = || rows.iter().map(|row| support(row));
    let start = supports().map(|support| support.start).max().unwrap_or(0);
    start..supports().map(|support| support.end).min().unwrap_or(0).max(start)
}

/// Divides the rows of a linear filter into groups that share their loads: neighbours that use almost the
/// same items. Returns each group with the number of its first row.
fn together(linear: &Linear) -> Vec<(usize, &[Vec<f64>])> {
    let (mut groups, mut start) = (vec![], 0);
    while start < linear.rows.len() {
        let fits = |count: &usize| {
            let rows = &linear.rows[start..start + count];
            let (shared, all): (usize, usize) = (shared_support(rows).len(), rows.iter().map(|row| support(row).len()).sum());
            shared > dataflow::UNROLLED_COEFFICIENTS && dataflow::rows_share_loads(all - shared * count, all)
        };
        let most = dataflow::LINEAR_SHARED_ROWS.min(linear.rows.len() - start);
        let count = (2..=most).rev().find(fits).unwrap_or(1);
        groups.push((start, &linear.rows[start..start + count]));
        start += count;
    }
    groups
}

/// Writes the code of a linear filter.
fn code_of(linear: &Linear, window: Window) -> Result<FilterCode, Reason> {
    let words = Words { element: Element::F32, count: 1 };
    let b = Builder::function("linear");
    b.parameter("firing", Type::I32);
    let input = b.accessor("input", AccessorKind::Input, Type::F32, 1);
    let output = b.accessor("output", AccessorKind::Output, Type::F32, 1);
    for (group, rows) in together(linear) {
        let sums: Vec<_> =
            (group..).take(rows.len()).map(|row| b.variable_with(b.literal(linear.constants[row] as f32))).collect();
        let add = |number: usize, item: broadloom_scalar::Value, by: broadloom_scalar::Value| {
            b.set(sums[number], b.add(b.get(sums[number]), b.mul(item, by)));
        };
        let write_out = |items: std::ops::Range<usize>| {
            for item in items.filter(|item| rows.iter().any(|row| row[*item] != 0.0)) {
                let value = b.read(input, &[b.literal(item as i32).into()]);
                let with = rows.iter().enumerate().filter(|(_, row)| row[item] != 0.0);
                with.for_each(|(number, row)| add(number, value, b.literal(row[item] as f32)));
            }
        };
        let (shared, width) = (shared_support(rows), rows.first().map_or(0, Vec::len));
        if shared.clone().filter(|item| rows.iter().any(|row| row[*item] != 0.0)).count() > dataflow::UNROLLED_COEFFICIENTS {
            // Items that some rows do not use are unrolled, so that an infinity does not spread to other
            // rows.
            write_out(0..shared.start);
            let columns = shared.clone().flat_map(|item| rows.iter().map(move |row| row[item]));
            let entries: Vec<Literal> = columns.map(|one| Literal::from(one as f32)).collect();
            let table = b.table(&entries);
            b.for_step(0, b.literal(shared.len() as i32), 1, Unroll::Auto, |index| {
                let item = b.read(input, &[b.add(index, shared.start as i32).into()]);
                for number in 0..rows.len() {
                    let at = b.add(b.mul(index, rows.len() as i32), number as i32);
                    add(number, item, b.lookup(table, b.convert(at, Type::U32)));
                }
            });
            write_out(shared.end..width);
        } else {
            write_out(0..width);
        }
        for (number, sum) in sums.iter().enumerate() {
            b.write(output, &[b.literal((group + number) as i32).into()], b.get(*sum));
        }
    }
    let function = b.finish_function(&[b.literal(false)])?;
    let function = function.simplify()?;
    let (input, output) = (Some(words), Some(words));
    Ok(FilterCode {
        function,
        input,
        output,
        window,
        fails: false,
        numbered: false,
        inductions: vec![],
        local_words: 0,
        adds_up: false,
        pushes_sums: false,
        adds_items: false,
        rounds: None,
    })
}

/// A cache of examined codes by address: the code, true if it is linear, and its coefficients once they were
/// computed.
#[derive(Default)]
struct LinearCache(FxHashMap<*const FilterCode, (Arc<FilterCode>, bool, Option<Linear>)>);

impl LinearCache {
    fn entry(&mut self, code: &Arc<FilterCode>) -> &mut (Arc<FilterCode>, bool, Option<Linear>) {
        self.0.entry(Arc::as_ptr(code)).or_insert_with(|| (code.clone(), is_candidate(code), None))
    }

    /// Records the coefficients of code that was generated from them.
    fn note(&mut self, code: &Arc<FilterCode>, mut linear: Linear) {
        round(&mut linear.rows);
        self.0.insert(Arc::as_ptr(code), (code.clone(), true, Some(linear)));
    }

    fn is_linear(&mut self, code: &Arc<FilterCode>) -> bool {
        self.entry(code).1
    }

    fn coefficients(&mut self, code: &Arc<FilterCode>) -> Option<Linear> {
        let entry = self.entry(code);
        if entry.1 && entry.2.is_none() {
            entry.2 = coefficients(code);
            entry.1 = entry.2.is_some();
        }
        entry.2.clone()
    }
}

/// The condition for combining two filters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CombineCondition {
    Always,
    WithFewerProducts,
    Never,
}

/// Combines linear filters of a section, except those whose last digits decide something.
pub(super) fn combine(section: &mut Section, classified: &[ClassifiedNode]) {
    let mut known = LinearCache::default();
    let pays = |_: &Actor| CombineCondition::WithFewerProducts;
    while pipelines(section, classified, &mut known, pays)
        || splitjoins(section, classified, &mut known, None)
        || whole_splitjoins(section, classified, &mut known)
    {}
}

/// Finds the coefficients of filters that are long convolutions: each pushed item uses the items of the one
/// before it, shifted by one.
pub(super) fn find_taps(section: &mut Section, classified: &[ClassifiedNode]) {
    for actor in &mut section.actors {
        let (Some(from), Some(to)) = (&actor.input, &actor.output) else { continue };
        let count = from.seen - from.rate + 1;
        let straight = [from, to].into_iter().all(|port| port.steps.is_empty() && !port.absolute);
        let wanted = straight
            && from.rate == to.rate
            && dataflow::CONVOLUTION_COEFFICIENTS.contains(&count)
            && is_loose(actor, classified);
        if !wanted || !is_linear_filter(&actor.code) {
            continue;
        }
        let Some(Linear { rows, constants }) = coefficients(&actor.code) else { continue };
        let count = count as usize;
        let first = &rows[0][..count];
        let is_shifted = |(index, row): (usize, &Vec<f64>)| {
            row[index..index + count] == *first && row[..index].iter().chain(&row[index + count..]).all(|one| *one == 0.0)
        };
        if rows.iter().enumerate().all(is_shifted) && constants.iter().all(|one| *one == constants[0]) {
            actor.taps = Some(Arc::new(Taps { coefficients: first.to_vec(), constant: constants[0] }));
        }
    }
}

/// Contracts products and sums of linear filters, except those whose last digits decide something or are
/// printed.
pub(super) fn contract(section: &mut Section, classified: &[ClassifiedNode]) {
    let mut known: FxHashMap<*const FilterCode, (Arc<FilterCode>, Arc<FilterCode>)> = FxHashMap::default();
    for actor in &mut section.actors {
        if !is_loose(actor, classified) {
            continue;
        }
        let (_, made) = known.entry(Arc::as_ptr(&actor.code)).or_insert_with(|| {
            let contracted = is_linear(&actor.code.function).then(|| actor.code.function.contract().ok()).flatten();
            let made = match contracted {
                Some(function) => Arc::new(FilterCode { function, ..(*actor.code).clone() }),
                None => actor.code.clone(),
            };
            (actor.code.clone(), made)
        });
        actor.code = made.clone();
    }
}

/// Returns whether an actor is a filter whose firings are all alike and whose last digits may change.
fn is_plain(actor: &Actor, classified: &[ClassifiedNode]) -> bool {
    let exact = |node: &NodeId| classified[node.index()].exact;
    !actor.nodes.is_empty() && !actor.has_prework && !actor.nodes.iter().any(exact)
}

/// Returns whether an actor is a filter whose sums may be rounded differently, because they are not printed.
fn is_loose(actor: &Actor, classified: &[ClassifiedNode]) -> bool {
    is_plain(actor, classified) && !actor.nodes.iter().any(|node| classified[node.index()].printed)
}

/// Merges several firings of a filter into one.
fn repeated(one: &Linear, pop: usize, firings: usize) -> Linear {
    let width = one.rows.first().map_or(0, Vec::len) + (firings - 1) * pop;
    let mut all = Linear { rows: vec![], constants: vec![] };
    for firing in 0..firings {
        for row in &one.rows {
            let mut wide = vec![0.0; width];
            wide[firing * pop..][..row.len()].copy_from_slice(row);
            all.rows.push(wide);
        }
        all.constants.extend(&one.constants);
    }
    all
}

/// Returns the combination of two consecutive filters. The second one begins with item `offset` of a firing
/// of the first one.
fn behind(first: &Linear, pop: usize, second: &Linear, offset: usize) -> Linear {
    let pushed = first.rows.len();
    let seen_items = offset + second.rows.first().map_or(0, Vec::len);
    let firings = seen_items.div_ceil(pushed.max(1));
    let width = first.rows.first().map_or(0, Vec::len);
    let seen = firings.saturating_sub(1) * pop + width;
    let mut rows = vec![vec![0.0; seen]; second.rows.len()];
    let mut constants = second.constants.clone();
    for (row, by) in second.rows.iter().enumerate() {
        for (item, factor) in by.iter().enumerate().filter(|(_, factor)| **factor != 0.0) {
            let (firing, output) = ((offset + item) / pushed, (offset + item) % pushed);
            constants[row] += factor * first.constants[output];
            for (column, one) in first.rows[output].iter().enumerate() {
                rows[row][firing * pop + column] += factor * one;
            }
        }
    }
    Linear { rows, constants }
}

/// Combines consecutive filters as long as that pays off or is requested. Returns whether there were any.
///
/// The buffers to look at are a work list: a combination adds those beside it.
fn pipelines(
    section: &mut Section,
    classified: &[ClassifiedNode],
    known: &mut LinearCache,
    wanted: impl Fn(&Actor) -> CombineCondition,
) -> bool {
    let mut users = Users::of(section);
    let between = |buffer: &usize| users.readers[*buffer].len() == 1 && users.writers[*buffer].len() == 1;
    let mut waiting: BTreeSet<usize> = (0..section.buffers.len()).filter(between).collect();
    let mut replaced = vec![false; section.actors.len()];
    while let Some(buffer) = waiting.pop_first() {
        let (Some(from), Some(to)) = (users.only(section, buffer, false), users.only(section, buffer, true)) else { continue };
        let (first, second) = (&section.actors[from], &section.actors[to]);
        let pays = wanted(second);
        if from == to || pays == CombineCondition::Never || !is_plain(first, classified) || !is_plain(second, classified) {
            continue;
        }
        let Some(combined) = pipeline(first, second, known, pays) else { continue };
        let first = &mut section.actors[from];
        let (mut name, mut nodes) = (std::mem::take(&mut first.name), std::mem::take(&mut first.nodes));
        // The input of the first filter is that of the combined one.
        for input in first.input.iter().map(|port| port.buffer) {
            users.readers[input].iter_mut().filter(|user| **user == from).for_each(|user| *user = to);
            waiting.insert(input);
        }
        users.readers[buffer].clear();
        users.writers[buffer].clear();
        replaced[from] = true;
        let second = &mut section.actors[to];
        name.push_str(" + ");
        name.push_str(&second.name);
        nodes.append(&mut second.nodes);
        *second = Actor { nodes, name, ..combined };
        waiting.extend(second.output.iter().map(|port| port.buffer));
    }
    let mut replaced = replaced.into_iter();
    let before = section.actors.len();
    section.actors.retain(|_| !replaced.next().unwrap_or(false));
    section.actors.len() < before
}

/// Returns the combination of two consecutive filters, without its name and nodes, if it pays off.
fn pipeline(first: &Actor, second: &Actor, known: &mut LinearCache, pays: CombineCondition) -> Option<Actor> {
    let (source, given) = (first.input.as_ref()?, first.output.as_ref()?);
    let (taken, sink) = (second.input.as_ref()?, second.output.as_ref()?);
    let (push, pop) = (given.rate, taken.rate);
    if !given.steps.is_empty() || !taken.steps.is_empty() || push < 1 || pop < 1 {
        return None;
    }
    // Firings of both that move the same number of items.
    let common = push / gcd(push, pop) * pop;
    let (firings, repeats) = (common / push, common / pop);
    let most = i64::from(dataflow::LINEAR_ITEMS);
    if common > most || second.firings % repeats != 0 || (repeats > 1 && repeats * sink.rate > dataflow::LINEAR_MERGED_ITEMS) {
        return None;
    }
    if !known.is_linear(&first.code) || !known.is_linear(&second.code) {
        return None;
    }
    let (a, b) = (known.coefficients(&first.code)?, known.coefficients(&second.code)?);
    let ahead = taken.start - given.start;
    let all = repeated(&b, pop as usize, repeats as usize);
    let both = behind(&a, source.rate as usize, &all, ahead.rem_euclid(push) as usize);
    let seen = both.rows.first().map_or(0, Vec::len) as i64;
    let apart = all.products() + a.products() * firings as usize;
    let finite = both.rows.iter().flatten().chain(&both.constants).all(|one| (*one as f32).is_finite());
    if (both.products() > apart && pays == CombineCondition::WithFewerProducts) || seen > most || !finite {
        return None;
    }
    let rate = source.rate * firings;
    let window = Window { pop: rate as u32, peek: seen.max(rate) as u32, push: (repeats * sink.rate) as u32 };
    let code = code_of(&both, window).map(Arc::new).ok()?;
    known.note(&code, both);
    let input = Port {
        start: source.start + ahead.div_euclid(push) * source.rate,
        rate,
        seen: seen.max(rate),
        absolute: false,
        ..source.clone()
    };
    let output = Port { rate: repeats * sink.rate, seen: repeats * sink.rate, ..sink.clone() };
    Some(Actor {
        nodes: vec![],
        name: String::new(),
        code,
        firings: second.firings / repeats,
        before: second.before.div_euclid(repeats),
        input: Some(input),
        output: Some(output),
        combined: true,
        first: second.first,
        has_prework: second.has_prework,
        taps: second.taps.clone(),
    })
}

/// Returns the number of products of the linear filters of a section in a unit.
fn products(section: &Section, known: &mut LinearCache) -> u64 {
    let mut sum = 0;
    for actor in &section.actors {
        let products = known.coefficients(&actor.code).map_or(0, |linear| linear.products());
        sum += products as u64 * actor.firings as u64;
    }
    sum
}

/// Combines whole splitjoins that duplicate with the filter behind them. Each branch alone may take more
/// products as one filter than as several, while all of them together take fewer. Returns whether there were
/// any.
fn whole_splitjoins(section: &mut Section, classified: &[ClassifiedNode], known: &mut LinearCache) -> bool {
    let users = Users::of(section);
    for buffer in 0..section.buffers.len() {
        let Some(behind) = users.only(section, buffer, true) else { continue };
        let branches = &users.writers[buffer];
        let mut ends = branches.iter().chain([&behind]).map(|index| &section.actors[*index]);
        let several = (2..=dataflow::LINEAR_BRANCHES).contains(&branches.len());
        if !several || !ends.all(|actor| is_plain(actor, classified) && known.is_linear(&actor.code)) {
            continue;
        }
        let (mut trial, own) = beside(section, &users, buffer);
        let before = products(&trial, known);
        if whole_splitjoin(&mut trial, classified, known, own) && products(&trial, known) < before {
            return whole_splitjoin(section, classified, known, buffer);
        }
    }
    false
}

/// Returns the actors that a combination of the splitjoin in front of a buffer can reach: the readers and
/// writers of the buffer, and the filters in a row before these writers. Returns their section and the number
/// of the buffer in it.
fn beside(section: &Section, users: &Users, buffer: usize) -> (Section, usize) {
    let mut chosen: BTreeSet<usize> = users.readers[buffer].iter().copied().collect();
    for branch in &users.writers[buffer] {
        let mut next = Some(*branch);
        while let Some(index) = next.filter(|index| chosen.insert(*index)) {
            let input = section.actors[index].input.as_ref().map(|port| port.buffer);
            let input = input.filter(|input| users.only(section, *input, true).is_some());
            next = input.and_then(|input| users.only(section, input, false));
        }
    }
    let mut actors: Vec<Actor> = chosen.into_iter().map(|index| section.actors[index].clone()).collect();
    let ports =
        |actors: &[Actor]| actors.iter().flat_map(|own| [&own.input, &own.output]).flatten().map(|port| port.buffer).collect();
    let numbers: BTreeSet<usize> = ports(&actors);
    let numbers: Vec<usize> = numbers.into_iter().collect();
    let own = |buffer: usize| numbers.binary_search(&buffer).unwrap_or(0);
    for port in actors.iter_mut().flat_map(|actor| [&mut actor.input, &mut actor.output]).flatten() {
        port.buffer = own(port.buffer);
    }
    let buffers = numbers.iter().map(|number| section.buffers[*number].clone()).collect();
    (Section { nodes: vec![], actors, buffers, units: section.units }, own(buffer))
}

/// Combines each branch of the splitjoin in front of a buffer, then the branches, then them with the filter
/// behind. Returns whether the branches were combined.
fn whole_splitjoin(section: &mut Section, classified: &[ClassifiedNode], known: &mut LinearCache, buffer: usize) -> bool {
    let when = |wanted: bool| if wanted { CombineCondition::Always } else { CombineCondition::Never };
    let is_at = |port: &Option<Port>| port.as_ref().is_some_and(|port| port.buffer == buffer);
    pipelines(section, classified, known, |actor| when(is_at(&actor.output)));
    if !splitjoins(section, classified, known, Some(buffer)) {
        return false;
    }
    pipelines(section, classified, known, |actor| when(is_at(&actor.input)));
    true
}

/// Combines the branches of a splitjoin that duplicates, if a linear filter follows it. With `buffer`, it
/// looks at that buffer only. Returns whether there was any.
fn splitjoins(section: &mut Section, classified: &[ClassifiedNode], known: &mut LinearCache, buffer: Option<usize>) -> bool {
    let users = Users::of(section);
    for buffer in buffer.map_or(0..section.buffers.len(), |buffer| buffer..buffer + 1) {
        let Some(behind) = users.only(section, buffer, true) else { continue };
        let last = &section.actors[behind];
        if !is_plain(last, classified)
            || last.input.as_ref().is_none_or(|port| !port.steps.is_empty())
            || !known.is_linear(&last.code)
        {
            continue;
        }
        let group = &users.writers[buffer];
        if group.len() < 2 || section.buffers[buffer].role != Role::Inner {
            continue;
        }
        let Some((mut order, total)) = branches(section, classified, group) else { continue };
        order.sort_unstable_by_key(|(offset, ..)| *offset);
        let parts: Option<Vec<Linear>> =
            order.iter().map(|(_, index, _)| known.coefficients(&section.actors[*index].code)).collect();
        let Some(parts) = parts else { continue };
        let first = section.actors[order[0].1].clone();
        let (Some(input), Some(output)) = (&first.input, &first.output) else { continue };
        let seen = order.iter().filter_map(|(_, index, _)| section.actors[*index].input.as_ref()).map(|port| port.seen).max();
        let seen = seen.unwrap_or(input.seen);
        // Rounds of the joiner in a firing.
        let rounds = output.rate / order[0].2;
        let pushed = rounds * total;
        let mut both = Linear { rows: vec![], constants: vec![] };
        for round in 0..rounds {
            for (part, (.., weight)) in parts.iter().zip(&order) {
                for at in (round * weight)..((round + 1) * weight) {
                    let (Some(row), Some(constant)) = (part.rows.get(at as usize), part.constants.get(at as usize)) else {
                        break;
                    };
                    let mut row = row.clone();
                    row.resize(seen as usize, 0.0);
                    both.rows.push(row);
                    both.constants.push(*constant);
                }
            }
        }
        if both.rows.len() as i64 != pushed || pushed > i64::from(dataflow::LINEAR_ITEMS) {
            continue;
        }
        let window = Window { pop: input.rate as u32, peek: seen as u32, push: pushed as u32 };
        let Ok(code) = code_of(&both, window).map(Arc::new) else { continue };
        known.note(&code, both);
        let port = Port {
            start: output.start / order[0].2 * total,
            steps: output.steps[1..].to_vec(),
            rate: pushed,
            seen: pushed,
            absolute: false,
            ..output.clone()
        };
        let actor = Actor {
            nodes: order.iter().flat_map(|(_, index, _)| section.actors[*index].nodes.clone()).collect(),
            name: order.iter().map(|(_, index, _)| section.actors[*index].name.clone()).collect::<Vec<_>>().join(", "),
            code,
            input: Some(Port { seen, ..input.clone() }),
            output: Some(port),
            combined: true,
            ..first.clone()
        };
        let place = order.iter().map(|(_, index, _)| *index).min().unwrap_or(0);
        section.actors[place] = actor;
        let mut index = 0;
        section.actors.retain(|_| {
            let keeps = !group.contains(&index) || index == place;
            index += 1;
            keeps
        });
        return true;
    }
    false
}

/// A branch of a joiner: its offset, its number and its weight.
type Branch = (i64, usize, i64);

/// Returns the branches of a joiner, and the sum of their weights.
fn branches(section: &Section, classified: &[ClassifiedNode], group: &[usize]) -> Option<(Vec<Branch>, i64)> {
    let first = &section.actors[group[0]];
    let (input, output) = (first.input.as_ref()?, first.output.as_ref()?);
    let mut found: Vec<Branch> = vec![];
    let (mut covered, mut whole) = (0, 0);
    for index in group {
        let actor = &section.actors[*index];
        let (own, port) = (actor.input.as_ref()?, actor.output.as_ref()?);
        let Step::Spread { weight, total, offset } = port.steps.first()? else { return None };
        let of_first = found.first().map_or(*weight, |(.., weight)| *weight);
        let alike = is_plain(actor, classified)
            && (own.buffer, &own.steps, own.start, own.rate) == (input.buffer, &input.steps, input.start, input.rate)
            && port.steps.get(1..) == output.steps.get(1..)
            && *weight > 0
            && port.rate % weight == 0
            && port.rate / weight == output.rate / of_first
            && port.start % weight == 0
            && port.start / weight == output.start / of_first
            && (actor.firings, actor.before, actor.first) == (first.firings, first.before, first.first);
        if !alike || (whole != 0 && whole != *total) {
            return None;
        }
        whole = *total;
        covered += weight;
        found.push((*offset, *index, *weight));
    }
    (covered == whole).then_some((found, whole))
}
